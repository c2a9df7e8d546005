/* dispatcher_table.c - the dispatchers of a system: creation, registration, lending to routers.
 *
 * Limits.  TRP_DISPATCHERS_MAX; TRP_DISPATCHER_THREADS_MAX threads.
 * Tests.   tests/unit/actor/dispatcher_test.c
 * Sources. DISP-1 to -13, A4J-29 to -32.
 */
#include "actor/kernel/dispatcher.h"

#include <stdio.h>
#include <string.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/open.h"
#include "actor/kernel/shared_mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"
#include "base/sized.h"

static bool
id_is_valid(const char *id)
{
    size_t length = id != NULL ? strnlen(id, TRP_DISPATCHER_ID_BYTES_MAX + 1) : 0;

    return length > 0 && length <= TRP_DISPATCHER_ID_BYTES_MAX;
}

static bool
options_are_valid(const trp_dispatcher_options *options)
{
    return options->kind >= TRP_DISPATCHER_DEFAULT && options->kind <= TRP_DISPATCHER_CUSTOM &&
           options->throughput <= TRP_THROUGHPUT_MAX &&
           options->threads_max <= TRP_DISPATCHER_THREADS_MAX &&
           options->threads_min <= TRP_DISPATCHER_THREADS_MAX &&
           (options->threads_max == 0 || options->threads_min <= options->threads_max) &&
           options->threads_factor >= 0.0 &&
           options->threads_factor <= TRP_DISPATCHER_THREADS_FACTOR_MAX &&
           (options->kind == TRP_DISPATCHER_CUSTOM) == (options->execute != NULL) &&
           (options->kind != TRP_DISPATCHER_AFFINITY ||
            options->threads_max <= TRP_DISPATCHER_THREADS_CAP_DEFAULT) &&
           (options->no_teamwork == 0 || options->kind == TRP_DISPATCHER_BALANCING) &&
           (options->mailbox == NULL || id_is_valid(options->mailbox));
}

/* DISP-9: ceil(cores * factor) within the bounds. */
static uint32_t
threads_of(const trp_system *system, const trp_dispatcher_options *options)
{
    bool affine = options->kind == TRP_DISPATCHER_AFFINITY;
    uint32_t least = options->threads_min != 0 ? options->threads_min
                     : affine                  ? 1
                                               : TRP_DISPATCHER_THREADS_MIN_DEFAULT;
    uint32_t most =
        options->threads_max != 0 ? options->threads_max : TRP_DISPATCHER_THREADS_CAP_DEFAULT;
    double factor = options->threads_factor > 0.0 ? options->threads_factor
                    : affine                      ? 1.0
                                                  : TRP_DISPATCHER_THREADS_FACTOR_DEFAULT;
    double exact = (double)trpi_sched_cores(system->sched) * factor;
    uint32_t threads = (uint32_t)exact;

    if ((double)threads < exact) {
        threads++;
    }
    if (least > most) { /* one is a default: the configured one counts */
        if (options->threads_max != 0) {
            least = most;
        } else {
            most = least;
        }
    }
    return threads < least ? least : threads > most ? most : threads;
}

/* Under the lock. */
static trp_err
entry_make(trp_system *system, const char *id, const trp_dispatcher_options *options,
           uint32_t number)
{
    trpi_dispatcher *entry = trpi_alloc(sizeof *entry);
    trp_err err = TRP_OK;

    if (entry == NULL) {
        return TRP_ENOMEM;
    }
    (void)snprintf(entry->id, sizeof entry->id, "%s", id);
    entry->options = *options;
    entry->options.mailbox = NULL;
    if (options->mailbox != NULL) {
        (void)snprintf(entry->mailbox_id, sizeof entry->mailbox_id, "%s", options->mailbox);
        entry->options.mailbox = entry->mailbox_id;
    }
    entry->number = (uint8_t)number;
    if (entry->options.throughput == 0) {
        entry->options.throughput = system->options.throughput;
    }
    if (entry->options.keep_alive_ms == 0) {
        entry->options.keep_alive_ms = TRP_DISPATCHER_KEEP_ALIVE_DEFAULT_MS;
    }
    if (entry->options.shutdown_timeout_ms == 0) {
        entry->options.shutdown_timeout_ms = TRP_DISPATCHER_SHUTDOWN_DEFAULT_MS;
    }
    if (options->kind == TRP_DISPATCHER_BALANCING) {
        entry->shared = trpi_shared_new(options->no_teamwork == 0);
        if (entry->shared == NULL) {
            trpi_free(entry);
            return TRP_ENOMEM;
        }
    }
    entry->deadline_ns = (uint64_t)options->throughput_deadline_ms * 1000000u;
    if (trpi_dispatcher_has_group(options->kind) || options->kind == TRP_DISPATCHER_AFFINITY) {
        entry->threads_max = threads_of(system, options);
    }
    if (trpi_dispatcher_has_group(options->kind)) {
        trpi_group_options group = { entry->id, entry->threads_max, entry->options.keep_alive_ms,
                                     entry->options.shutdown_timeout_ms };

        err = trpi_sched_group_new(system->sched, entry->number, &group);
    }
    if (err != TRP_OK) {
        trpi_shared_free(entry->shared);
        trpi_free(entry);
        return err;
    }
    system->dispatchers->entries[number] = entry;
    return TRP_OK;
}

static trp_err
entry_add(trp_system *system, const char *id, const trp_dispatcher_options *options)
{
    trpi_dispatchers *all = system->dispatchers;
    uint32_t count;
    trp_err err;

    pthread_mutex_lock(&all->lock);
    count = atomic_load_explicit(&all->count, RELAXED);
    if (trpi_dispatcher_find(system, id) != NULL) {
        err = TRP_EEXIST;
    } else if (count == TRP_DISPATCHERS_MAX) {
        err = TRP_ELIMIT;
    } else {
        err = entry_make(system, id, options, count);
    }
    if (err == TRP_OK) {
        atomic_store_explicit(&all->count, count + 1, memory_order_release); /* dispatcher-F1 */
    }
    pthread_mutex_unlock(&all->lock);
    return err;
}

trp_err
trp_dispatcher_register(trp_system *system, const char *id, const trp_dispatcher_options *options)
{
    trp_dispatcher_options own;

    if (!trpi_system_is_valid(system) || !id_is_valid(id) || options == NULL ||
        !TRPI_SIZED_TAKE(options, &own, zero) || !options_are_valid(options) ||
        options->kind == TRP_DISPATCHER_DEFAULT || options->kind == TRP_DISPATCHER_SYSTEM) {
        return TRP_EINVAL;
    }
    if (options->mailbox != NULL) {
        const trpi_mailbox_type *type = trpi_mailbox_type_find(system, options->mailbox);

        if (type == NULL) {
            return TRP_ENOENT;
        }
        if (options->kind == TRP_DISPATCHER_BALANCING && !trpi_mailbox_type_can_share(type)) {
            return TRP_EINVAL;
        }
    }
    return entry_add(system, id, options);
}

trp_err
trpi_dispatchers_new(trp_system *system, const trp_dispatcher_options *standard)
{
    static const struct {
        const char *id;
        trp_dispatcher_kind kind;
    } fixed[TRPI_DISPATCHERS_FIXED] = {
        { "default", TRP_DISPATCHER_DEFAULT },        { "system", TRP_DISPATCHER_SYSTEM },
        { "pinned", TRP_DISPATCHER_PINNED },          { "blocking", TRP_DISPATCHER_BLOCKING },
        { "affinity", TRP_DISPATCHER_AFFINITY },      { "calling-thread", TRP_DISPATCHER_CALLING },
        { "troupe.internal", TRP_DISPATCHER_SYSTEM }, { "troupe.logging", TRP_DISPATCHER_PINNED },
    };
    trp_err err = TRP_OK;

    system->dispatchers = trpi_alloc(sizeof *system->dispatchers);
    if (system->dispatchers == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&system->dispatchers->lock, NULL);
    for (int i = 0; i < TRPI_DISPATCHERS_FIXED && err == TRP_OK; i++) {
        trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;

        if (fixed[i].kind == TRP_DISPATCHER_DEFAULT) {
            options = *standard;
        }
        options.kind = fixed[i].kind;
        if (fixed[i].kind == TRP_DISPATCHER_BLOCKING) {
            options.threads_min = TRP_DISPATCHER_THREADS_CAP_DEFAULT;
        }
        err = entry_add(system, fixed[i].id, &options);
    }
    return err;
}

trp_err
trpi_dispatchers_start(trp_system *system)
{
    trpi_private_options system_worker = { "system", true, false, 0, TRPI_DISPATCHER_SYSTEM, true };
    trpi_private_options internal_worker = { "internal", false, false, 0, TRPI_DISPATCHER_INTERNAL,
                                             false };
    trpi_dispatcher **entries = system->dispatchers->entries;
    trp_err err = trpi_sched_private_open(system->sched, &system_worker,
                                          &entries[TRPI_DISPATCHER_SYSTEM]->homes[0]);

    return err != TRP_OK ? err
                         : trpi_sched_private_open(system->sched, &internal_worker,
                                                   &entries[TRPI_DISPATCHER_INTERNAL]->homes[0]);
}

void
trpi_dispatchers_free(trp_system *system)
{
    trpi_dispatchers *all = system->dispatchers;
    trpi_job *next;

    if (all == NULL) {
        return;
    }
    for (trpi_job *job = all->jobs; job != NULL; job = next) {
        next = job->next;
        trpi_free(job);
    }
    for (uint32_t i = 0; i < atomic_load_explicit(&all->count, RELAXED); i++) {
        trpi_shared_free(all->entries[i]->shared);
        trpi_free(all->entries[i]);
    }
    trpi_mutex_destroy(&all->lock);
    trpi_free(all);
    system->dispatchers = NULL;
}

/* ---- lending --------------------------------------------------------------------------------- */

trp_err
trpi_balancing_borrow(trp_system *system, char *id, size_t bytes)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    trpi_dispatchers *all = system->dispatchers;
    trpi_dispatcher *found = NULL;
    trp_err err = TRP_OK;
    uint32_t count;

    pthread_mutex_lock(&all->lock);
    count = atomic_load_explicit(&all->count, RELAXED);
    for (uint32_t i = 0; i < count && found == NULL; i++) {
        trpi_dispatcher *entry = all->entries[i];

        if (entry->lends && !entry->lent && trpi_shared_is_empty(entry->shared)) {
            found = entry;
        }
    }
    if (found == NULL) {
        (void)snprintf(id, bytes, "troupe.balancing-router-%u", (unsigned)count);
        options.kind = TRP_DISPATCHER_BALANCING;
        err = trpi_dispatcher_find(system, id) != NULL ? TRP_EEXIST
              : count == TRP_DISPATCHERS_MAX           ? TRP_ELIMIT
                                                       : entry_make(system, id, &options, count);
        if (err == TRP_OK) {
            found = all->entries[count];
            found->lends = true;
            atomic_store_explicit(&all->count, count + 1, memory_order_release); /* dispatcher-F1 */
        }
    }
    if (found != NULL) {
        found->lent = true;
        (void)snprintf(id, bytes, "%s", found->id);
    }
    pthread_mutex_unlock(&all->lock);
    return err;
}

void
trpi_balancing_return(trp_system *system, const char *id)
{
    trpi_dispatcher *entry;

    if (system->dispatchers == NULL) { /* the system is being freed */
        return;
    }
    pthread_mutex_lock(&system->dispatchers->lock);
    entry = trpi_dispatcher_find(system, id);
    trpi_assert(entry != NULL && entry->lent);
    entry->lent = false;
    pthread_mutex_unlock(&system->dispatchers->lock);
}
