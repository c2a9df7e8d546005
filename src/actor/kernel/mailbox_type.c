/* mailbox_type.c - registered mailbox types, their capabilities, and the choice for an actor.
 *
 * Must hold.
 *   mailbox-type-Q1  An entry is complete before it can be found, and stays until the system is
 *       freed.
 * Limits.  TRP_MAILBOXES_MAX.
 * Tests.   tests/unit/actor/bounded_mailbox_test.c
 * Sources. MBOX-1 to -6, -8 to -11; decision 24.
 */
#include <stdio.h>
#include <string.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/extra.h"
#include "actor/kernel/shared_mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"
#include "base/sized.h"

#define DEFAULT_ID "default-mailbox"

static bool
is_bounded_kind(const trp_mailbox_options *options)
{
    return options->kind == TRP_MAILBOX_KIND_BOUNDED ||
           options->kind == TRP_MAILBOX_KIND_BOUNDED_PRIORITY ||
           options->kind == TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE ||
           (options->kind == TRP_MAILBOX_KIND_CUSTOM && options->capacity != 0);
}

static uint32_t
capabilities_of(const trp_mailbox_options *options)
{
    uint32_t can =
        TRP_MAILBOX_DEQUE | (is_bounded_kind(options) ? TRP_MAILBOX_BOUNDED | TRP_MAILBOX_COUNTED
                                                      : TRP_MAILBOX_UNBOUNDED);

    switch (options->kind) {
    case TRP_MAILBOX_KIND_PRIORITY:
    case TRP_MAILBOX_KIND_BOUNDED_PRIORITY:
        return can | TRP_MAILBOX_PRIORITY | TRP_MAILBOX_STABLE | TRP_MAILBOX_COUNTED;
    case TRP_MAILBOX_KIND_CONTROL_AWARE:
    case TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE:
        return can | TRP_MAILBOX_CONTROL_AWARE | TRP_MAILBOX_COUNTED;
    case TRP_MAILBOX_KIND_COUNTED:
        return can | TRP_MAILBOX_COUNTED | TRP_MAILBOX_MULTI_CONSUMER;
    case TRP_MAILBOX_KIND_CUSTOM:
        return can | TRP_MAILBOX_COUNTED | options->capabilities;
    case TRP_MAILBOX_KIND_PEEK:
        return can | TRP_MAILBOX_COUNTED;
    case TRP_MAILBOX_KIND_BOUNDED: /* no sender waits for room in a shared one */
        return options->overflow == TRP_MAILBOX_DROP && options->push_timeout_ms == TRP_OFF
                   ? can | TRP_MAILBOX_MULTI_CONSUMER
                   : can;
    default:
        return can | TRP_MAILBOX_MULTI_CONSUMER;
    }
}

bool
trpi_mailbox_type_can_share(const trpi_mailbox_type *type)
{
    return (type->capabilities & TRP_MAILBOX_MULTI_CONSUMER) != 0 &&
           type->options.kind != TRP_MAILBOX_KIND_CUSTOM; /* its ops are for one thread at a time */
}

static bool
ops_are_valid(const trp_mailbox_ops *ops)
{
    return ops != NULL && TRPI_SIZED_FITS(ops, admit) && ops->create != NULL &&
           ops->enqueue != NULL && ops->dequeue != NULL && ops->count != NULL && ops->has != NULL &&
           ops->clean_up != NULL && ops->destroy != NULL;
}

static bool
options_are_valid(const trp_mailbox_options *options)
{
    bool priority;

    if (options->kind < TRP_MAILBOX_KIND_UNBOUNDED || options->kind > TRP_MAILBOX_KIND_PEEK) {
        return false;
    }
    priority = options->kind == TRP_MAILBOX_KIND_PRIORITY ||
               options->kind == TRP_MAILBOX_KIND_BOUNDED_PRIORITY;
    return options->capacity <= TRP_MAILBOX_CAPACITY_MAX &&
           options->overflow <= TRP_MAILBOX_NOTIFY && priority == (options->priority != NULL) &&
           (options->kind == TRP_MAILBOX_KIND_CUSTOM) == (options->ops != NULL) &&
           (options->ops == NULL || ops_are_valid(options->ops)) &&
           options->max_retries <= TRP_MAILBOX_RETRIES_MAX &&
           (options->kind == TRP_MAILBOX_KIND_PEEK || options->max_retries == 0) &&
           (options->capabilities & ~(uint32_t)TRP_MAILBOX_ALL) == 0;
}

static bool
id_is_valid(const char *id)
{
    size_t length = id != NULL ? strnlen(id, TRP_MAILBOX_ID_BYTES_MAX + 1) : 0;

    return length > 0 && length <= TRP_MAILBOX_ID_BYTES_MAX;
}

trpi_mailbox_type *
trpi_mailbox_type_find(const trp_system *system, const char *id)
{
    trpi_mailbox_types *types = system->mailbox_types;
    uint32_t count =
        atomic_load_explicit(&types->count, memory_order_acquire); /* mailbox-type-Q1 */

    for (uint32_t i = 0; i < count; i++) {
        trpi_mailbox_type *type = atomic_load_explicit(&types->entries[i], memory_order_acquire);

        if (strcmp(type->id, id) == 0) {
            return type;
        }
    }
    return NULL;
}

static trpi_mailbox_type *
type_make(const char *id, const trp_mailbox_options *options)
{
    trpi_mailbox_type *type = trpi_alloc(sizeof *type);

    if (type == NULL) {
        return NULL;
    }
    (void)snprintf(type->id, sizeof type->id, "%s", id);
    type->options = *options;
    if (!is_bounded_kind(options)) {
        type->options.capacity = 0;
    } else if (options->capacity == 0) {
        type->options.capacity = TRP_MAILBOX_CAPACITY_DEFAULT;
    }
    if (options->push_timeout_ms == 0) {
        type->options.push_timeout_ms = TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS;
    }
    if (options->kind == TRP_MAILBOX_KIND_PEEK) {
        type->options.ops = &trpi_peek_ops;
        type->options.arg = &type->options;
        type->options.max_retries =
            options->max_retries != 0 ? options->max_retries : TRP_MAILBOX_RETRIES_DEFAULT;
    }
    type->capabilities = capabilities_of(options);
    return type;
}

/* Under the lock. The default is always the first entry. */
static trp_err
type_add(trpi_mailbox_types *types, trp_system *system, trpi_mailbox_type *type)
{
    uint32_t count = atomic_load_explicit(&types->count, RELAXED);

    if (strcmp(type->id, DEFAULT_ID) == 0 && count > 0 && types->first_default == NULL) {
        types->first_default = atomic_load_explicit(&types->entries[0], RELAXED);
        atomic_store_explicit(&types->entries[0], type, memory_order_release);
        return TRP_OK;
    }
    if (trpi_mailbox_type_find(system, type->id) != NULL) {
        return TRP_EEXIST;
    }
    if (count == TRP_MAILBOXES_MAX) {
        return TRP_ELIMIT;
    }
    atomic_store_explicit(&types->entries[count], type, memory_order_release);
    atomic_store_explicit(&types->count, count + 1, memory_order_release);
    return TRP_OK;
}

trp_err
trp_mailbox_register(trp_system *system, const char *id, const trp_mailbox_options *options)
{
    trp_mailbox_options own;
    trpi_mailbox_type *type;
    trp_err err;

    if (!trpi_system_is_valid(system) || !id_is_valid(id) || options == NULL ||
        !TRPI_SIZED_TAKE(options, &own, max_retries) || !options_are_valid(options)) {
        return TRP_EINVAL;
    }
    type = type_make(id, options);
    if (type == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_lock(&system->mailbox_types->lock);
    err = type_add(system->mailbox_types, system, type);
    pthread_mutex_unlock(&system->mailbox_types->lock);
    if (err != TRP_OK) {
        trpi_free(type);
    }
    return err;
}

trp_err
trp_mailbox_find(trp_system *system, const char *id, trp_mailbox_info *ret_info)
{
    const trpi_mailbox_type *type;
    trp_mailbox_info info;

    if (!trpi_system_is_valid(system) || id == NULL || ret_info == NULL) {
        return TRP_EINVAL;
    }
    type = trpi_mailbox_type_find(system, id);
    if (type == NULL) {
        return TRP_ENOENT;
    }
    info = (trp_mailbox_info){ .size = sizeof info,
                               .kind = type->options.kind,
                               .capabilities = type->capabilities,
                               .capacity = type->options.capacity,
                               .push_timeout_ms = type->options.push_timeout_ms,
                               .overflow = type->options.overflow };
    return TRPI_SIZED_FILL(ret_info, &info, zero) ? TRP_OK : TRP_EINVAL;
}

trp_err
trp_mailbox_require(trp_system *system, uint32_t requirement, const char *id)
{
    trpi_mailbox_type *type;

    if (!trpi_system_is_valid(system) || id == NULL || requirement == 0 ||
        (requirement & (requirement - 1)) != 0 || requirement > TRP_MAILBOX_ALL) {
        return TRP_EINVAL;
    }
    type = trpi_mailbox_type_find(system, id);
    if (type == NULL || (type->capabilities & requirement) == 0) {
        return TRP_ENOENT;
    }
    atomic_store_explicit(&system->mailbox_types->serving[__builtin_ctz(requirement)], type,
                          memory_order_release);
    return TRP_OK;
}

trp_err
trpi_mailbox_types_new(trp_system *system)
{
    static const struct {
        const char *id;
        uint32_t kind, serves;
    } fixed[] = {
        { DEFAULT_ID, TRP_MAILBOX_KIND_UNBOUNDED, 0 },
        { "unbounded", TRP_MAILBOX_KIND_UNBOUNDED,
          TRP_MAILBOX_UNBOUNDED | TRP_MAILBOX_MULTI_CONSUMER },
        { "single-consumer", TRP_MAILBOX_KIND_UNBOUNDED, 0 },
        { "bounded", TRP_MAILBOX_KIND_BOUNDED, TRP_MAILBOX_BOUNDED },
        { "unbounded-deque", TRP_MAILBOX_KIND_UNBOUNDED, TRP_MAILBOX_DEQUE },
        { "bounded-deque", TRP_MAILBOX_KIND_BOUNDED, 0 },
        { "control-aware", TRP_MAILBOX_KIND_CONTROL_AWARE, TRP_MAILBOX_CONTROL_AWARE },
        { "bounded-control-aware", TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE, 0 },
        { "counted", TRP_MAILBOX_KIND_COUNTED, TRP_MAILBOX_COUNTED },
    };
    trp_err err = TRP_OK;

    system->mailbox_types = trpi_alloc(sizeof *system->mailbox_types);
    if (system->mailbox_types == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&system->mailbox_types->lock, NULL);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0] && err == TRP_OK; i++) {
        trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
        trpi_mailbox_type *type;

        options.kind = fixed[i].kind;
        type = type_make(fixed[i].id, &options);
        if (type != NULL && strcmp(type->id, "single-consumer") == 0) {
            type->capabilities &= ~(uint32_t)TRP_MAILBOX_MULTI_CONSUMER; /* MBOX-3 */
        }
        err = type != NULL ? type_add(system->mailbox_types, system, type) : TRP_ENOMEM;
        for (uint32_t bits = err == TRP_OK ? fixed[i].serves : 0; bits != 0; bits &= bits - 1) {
            atomic_store_explicit(&system->mailbox_types->serving[__builtin_ctz(bits)], type,
                                  memory_order_release);
        }
    }
    return err;
}

void
trpi_mailbox_types_free(trp_system *system)
{
    trpi_mailbox_types *types = system->mailbox_types;

    if (types == NULL) {
        return;
    }
    for (uint32_t i = 0; i < atomic_load_explicit(&types->count, RELAXED); i++) {
        trpi_free(atomic_load_explicit(&types->entries[i], RELAXED));
    }
    trpi_free(types->first_default);
    trpi_mutex_destroy(&types->lock);
    trpi_free(types);
    system->mailbox_types = NULL;
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* Return the mailbox type that is mapped to the lowest bit of a requirement. */
static trpi_mailbox_type *
type_serving(trp_system *system, uint32_t requirement)
{
    return requirement == 0
               ? NULL
               : atomic_load_explicit(&system->mailbox_types->serving[__builtin_ctz(requirement)],
                                      memory_order_acquire);
}

/* Choose the mailbox type of a cell (MBOX-10). *ret_type: NULL only with an error. */
static trp_err
type_choose(trp_system *system, const trpi_cell *cell, const trp_spawn_options *options,
            const trpi_mailbox_type **ret_type)
{
    const trpi_dispatcher *dispatcher = trpi_dispatcher_get(system, cell->task.number);
    const trp_behaviour *behaviour = cell->behaviour;
    uint32_t needs = behaviour->mailbox_requirement;
    uint32_t needs_there = dispatcher->options.mailbox_requirement;
    const char *id = options != NULL && options->mailbox != NULL ? options->mailbox /* 1, 2 */
                                                                 : dispatcher->options.mailbox;
    const trpi_mailbox_type *type;

    if (id != NULL) { /* 3: the dispatcher's */
        type = trpi_mailbox_type_find(system, id);
        if (type == NULL) {
            return TRP_ENOENT;
        }
    } else {
        type = type_serving(system, needs); /* 4 */
        if (type == NULL) {
            type = type_serving(system, needs_there); /* 5 */
        }
        if (type == NULL) {
            type = atomic_load_explicit(&system->mailbox_types->entries[0],
                                        memory_order_acquire); /* 6 */
        }
    }
    needs |= needs_there;
    if ((type->capabilities & needs) != needs) {
        return TRP_EINVAL; /* MBOX-8, -9 */
    }
    *ret_type = type;
    return TRP_OK;
}

static trp_err
shared_member_new(trp_ctx *ctx, trpi_cell *cell, const trpi_mailbox_type *type,
                  trpi_shared_mailbox *shared)
{
    trp_err err = trpi_bounded_new(ctx, cell, type);

    if (err == TRP_OK) {
        err = trpi_shared_join(shared, cell, (trpi_bounded_mailbox *)(uintptr_t)cell->ops);
        if (err != TRP_OK) {
            trpi_mailbox_undo(ctx, cell);
        }
    }
    return err;
}

trp_err
trpi_mailbox_choose(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options)
{
    const trpi_mailbox_type *type = NULL;
    trp_err err = type_choose(ctx->system, cell, options, &type);
    const trpi_dispatcher *dispatcher = trpi_dispatcher_get(ctx->system, cell->task.number);

    if (err == TRP_OK && dispatcher->shared != NULL) {
        return trpi_mailbox_type_can_share(type)
                   ? shared_member_new(ctx, cell, type, dispatcher->shared)
                   : TRP_EINVAL;
    }
    if (err != TRP_OK || type->options.kind == TRP_MAILBOX_KIND_UNBOUNDED) {
        return err;
    }
    return trpi_bounded_new(ctx, cell, type);
}

void
trpi_mailbox_undo(trp_ctx *ctx, trpi_cell *cell)
{
    if (trpi_ops_are_bounded(cell->ops)) { /* not published: no sender knows the generation */
        trpi_bounded_mailbox *mailbox = (trpi_bounded_mailbox *)(uintptr_t)cell->ops;

        if (mailbox->shared != NULL) {
            trpi_shared_leave(ctx, mailbox);
        }
        trpi_cell_ops_set(cell, NULL);
        trpi_bounded_free(mailbox);
    }
}

enum trpi_kind
trpi_mailbox_cell_kind(const trpi_cell *cell)
{
    return trpi_ops_are_bounded(cell->ops)  ? TRPI_KIND_BOUNDED
           : trpi_cell_is_child_proxy(cell) ? TRPI_KIND_CHILD_PROXY
                                            : TRPI_KIND_ACTOR;
}
