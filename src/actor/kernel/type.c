/* type.c - message types: process-wide numbers and wire ids.
 *
 * Why.     A descriptor is static code and the same in every system of a process, so its number is
 *          the process's too. The number indexes a table that is read on each message, without a
 *          lock.
 * Must hold.
 *   type-Y1  An entry of `types` is written once, when the library is loaded or under the lock,
 *            before any descriptor of a protocol holds its number.
 *   type-Y2  Two names never share a wire id: the second registration is refused.
 * Limits.  TRP_TYPES_MAX numbers; a name of TRP_TYPE_NAME_BYTES_MAX.
 * Cost.    2.3 MiB of address space, of which the pages with registered types are touched.
 * Tests.   tests/unit/actor/type_test.c
 */
#include "actor/kernel/type.h"

#include <troupe/remoting.h>
#include <troupe/dispatcher.h>
#include <troupe/mailbox.h>

#include <troupe/router.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <troupe/log.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/payload.h"
#include "base/table.h"

#define WIRE_PLACES (2u * (TRP_TYPES_MAX + 1u)) /* at most half full: by_wire_id never grows */

#define BUILT_IN(symbol, text, size, type_tag, type_flags, type_number)                            \
    trp_type symbol = { text, size, type_tag, type_flags, NULL, 0, type_number }
#define INTERNAL(symbol, text, type_number)                                                        \
    BUILT_IN(symbol, text, 0, 0xfff0, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, type_number)

static const trp_field identity_fields[] = {
    { "id", TRP_FIELD_u64, offsetof(trp_actor_identity, id) },
    { "ref", TRP_FIELD_ref, offsetof(trp_actor_identity, ref) },
};
static const trp_field identify_fields[] = { { "id", TRP_FIELD_u64, offsetof(trp_identify, id) } };
static const trp_field i64_fields[] = { { "value", TRP_FIELD_i64, 0 } };

BUILT_IN(trp_string_type, "troupe.string", 0, trp_string_tag, TRP_TYPE_VARIABLE | TRP_TYPE_TEXT,
         TRPI_TYPE_STRING);
BUILT_IN(trp_json_type, "troupe.json", 0, trp_json_tag, TRP_TYPE_VARIABLE | TRP_TYPE_JSON,
         TRPI_TYPE_JSON);
BUILT_IN(trp_bytes_type, "troupe.bytes", 0, trp_bytes_tag, TRP_TYPE_VARIABLE, TRPI_TYPE_BYTES);
trp_type trp_i64_type = { "troupe.i64", 8, trp_i64_tag, 0, i64_fields, 1, TRPI_TYPE_I64 };
BUILT_IN(trp_terminated_type, "troupe.terminated", sizeof(trp_terminated), trp_terminated_tag,
         TRP_TYPE_LOCAL, TRPI_TYPE_TERMINATED);
BUILT_IN(trp_receive_timeout_type, "troupe.receive-timeout", 0, trp_receive_timeout_tag,
         TRP_TYPE_LOCAL, TRPI_TYPE_RECEIVE_TIMEOUT);
BUILT_IN(trp_poison_pill_type, "troupe.poison-pill", 0, trp_poison_pill_tag,
         TRP_TYPE_POSSIBLY_HARMFUL, TRPI_TYPE_POISON_PILL);
BUILT_IN(trp_kill_type, "troupe.kill", 0, trp_kill_tag, TRP_TYPE_POSSIBLY_HARMFUL, TRPI_TYPE_KILL);
trp_type trp_identify_type = { "troupe.identify", sizeof(trp_identify),
                               trp_identify_tag,  0,
                               identify_fields,   1,
                               TRPI_TYPE_IDENTIFY };
trp_type trp_actor_identity_type = { "troupe.actor-identity", sizeof(trp_actor_identity),
                                     trp_actor_identity_tag,  0,
                                     identity_fields,         2,
                                     TRPI_TYPE_ACTOR_IDENTITY };
BUILT_IN(trp_status_failure_type, "troupe.status-failure", sizeof(trp_status_failure),
         trp_status_failure_tag, 0, TRPI_TYPE_STATUS_FAILURE);
BUILT_IN(trp_dead_letter_type, "troupe.dead-letter", 0, trp_dead_letter_tag,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_DEAD_LETTER);
BUILT_IN(trp_unhandled_type, "troupe.unhandled", sizeof(trp_unhandled), trp_unhandled_tag,
         TRP_TYPE_LOCAL, TRPI_TYPE_UNHANDLED);
BUILT_IN(trp_all_dead_letters_type, "troupe.all-dead-letters", 0, trp_dead_letter_tag,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_ALL_DEAD_LETTERS);
BUILT_IN(trp_suppressed_dead_letter_type, "troupe.suppressed-dead-letter", 0,
         trp_suppressed_dead_letter_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_SUPPRESSED);
#define LOG_EVENT(symbol, text, number)                                                            \
    BUILT_IN(symbol, text, 0, trp_log_event_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, number)
LOG_EVENT(trp_log_event_type, "troupe.log", TRPI_TYPE_LOG_EVENT);
LOG_EVENT(trp_log_error_type, "troupe.log-error", TRPI_TYPE_LOG_ERROR);
LOG_EVENT(trp_log_warning_type, "troupe.log-warning", TRPI_TYPE_LOG_WARNING);
LOG_EVENT(trp_log_info_type, "troupe.log-info", TRPI_TYPE_LOG_INFO);
LOG_EVENT(trp_log_debug_type, "troupe.log-debug", TRPI_TYPE_LOG_DEBUG);
BUILT_IN(trp_logger_init_type, "troupe.logger-init", 0, trp_logger_init_tag, TRP_TYPE_LOCAL,
         TRPI_TYPE_LOGGER_INIT);
BUILT_IN(trp_logger_ready_type, "troupe.logger-ready", 0, trp_logger_ready_tag, TRP_TYPE_LOCAL,
         TRPI_TYPE_LOGGER_READY);
BUILT_IN(trp_mailbox_ready_type, "troupe.mailbox-ready", sizeof(trp_mailbox_ready),
         trp_mailbox_ready_tag, TRP_TYPE_LOCAL, TRPI_TYPE_MAILBOX_READY);
BUILT_IN(trp_stalled_type, "troupe.stalled", sizeof(trp_stalled), trp_stalled_tag, TRP_TYPE_LOCAL,
         TRPI_TYPE_STALLED);
#define REMOTING(symbol, text, number)                                                             \
    BUILT_IN(symbol, text, sizeof(trp_remoting_event), trp_remoting_tag, TRP_TYPE_LOCAL, number)
REMOTING(trp_remoting_event_type, "troupe.remoting-event", TRPI_TYPE_REMOTING_EVENT);
REMOTING(trp_association_event_type, "troupe.association-event", TRPI_TYPE_ASSOCIATION_EVENT);
REMOTING(trp_associated_type, "troupe.associated", TRPI_TYPE_ASSOCIATED);
REMOTING(trp_disassociated_type, "troupe.disassociated", TRPI_TYPE_DISASSOCIATED);
REMOTING(trp_association_error_type, "troupe.association-error", TRPI_TYPE_ASSOCIATION_ERROR);
REMOTING(trp_quarantined_type, "troupe.quarantined", TRPI_TYPE_QUARANTINED);
REMOTING(trp_remoting_listen_type, "troupe.remoting-listen", TRPI_TYPE_REMOTING_LISTEN);
REMOTING(trp_remoting_shutdown_type, "troupe.remoting-shutdown", TRPI_TYPE_REMOTING_SHUTDOWN);
REMOTING(trp_remoting_error_type, "troupe.remoting-error", TRPI_TYPE_REMOTING_ERROR);
REMOTING(trp_self_quarantined_type, "troupe.self-quarantined", TRPI_TYPE_SELF_QUARANTINED);
INTERNAL(trpi_timer_type, "troupe.priv-timer", TRPI_TYPE_TIMER);
INTERNAL(trpi_continue_type, "troupe.priv-continue", TRPI_TYPE_CONTINUE);
INTERNAL(trpi_select_type, "troupe.priv-select", TRPI_TYPE_SELECT);
INTERNAL(trpi_inspect_type, "troupe.priv-inspect", TRPI_TYPE_INSPECT);
INTERNAL(trpi_supervise_type, "troupe.priv-supervise", TRPI_TYPE_SUPERVISE);
INTERNAL(trpi_logger_end_type, "troupe.priv-logger-end", TRPI_TYPE_LOGGER_END);
BUILT_IN(trpi_ask_unhandled_type, "troupe.ask-unhandled", 0, 0xfff0, 0, TRPI_TYPE_ASK_UNHANDLED);
INTERNAL(trpi_logger_flush_type, "troupe.priv-logger-flush", TRPI_TYPE_LOGGER_FLUSH);
INTERNAL(trpi_withdrawn_type, "troupe.priv-withdrawn", TRPI_TYPE_WITHDRAWN);
INTERNAL(trpi_mark_type, "troupe.priv-mark", TRPI_TYPE_MARK);

/* Routers. Envelopes and lists hold numbers and refs of this node: they do not leave it. */
static const trp_field add_fields[] = { { "routee", TRP_FIELD_ref,
                                          offsetof(trp_add_routee, routee) } };
static const trp_field remove_fields[] = { { "routee", TRP_FIELD_ref,
                                             offsetof(trp_remove_routee, routee) } };
static const trp_field adjust_fields[] = { { "change", TRP_FIELD_i32,
                                             offsetof(trp_adjust_pool_size, change) } };
BUILT_IN(trp_broadcast_type, "troupe.broadcast", 0, trp_broadcast_tag,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_BROADCAST);
BUILT_IN(trp_keyed_type, "troupe.keyed", 0, trp_keyed_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL,
         TRPI_TYPE_KEYED);
BUILT_IN(trp_get_routees_type, "troupe.get-routees", 0, trp_get_routees_tag, 0,
         TRPI_TYPE_GET_ROUTEES);
BUILT_IN(trp_routees_type, "troupe.routees", 0, trp_routees_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL,
         TRPI_TYPE_ROUTEES);
trp_type trp_add_routee_type = { "troupe.add-routee", sizeof(trp_add_routee),
                                 trp_add_routee_tag,  TRP_TYPE_POSSIBLY_HARMFUL,
                                 add_fields,          1,
                                 TRPI_TYPE_ADD_ROUTEE };
trp_type trp_remove_routee_type = { "troupe.remove-routee", sizeof(trp_remove_routee),
                                    trp_remove_routee_tag,  TRP_TYPE_POSSIBLY_HARMFUL,
                                    remove_fields,          1,
                                    TRPI_TYPE_REMOVE_ROUTEE };
trp_type trp_adjust_pool_size_type = { "troupe.adjust-pool-size",
                                       sizeof(trp_adjust_pool_size),
                                       trp_adjust_pool_size_tag,
                                       TRP_TYPE_POSSIBLY_HARMFUL,
                                       adjust_fields,
                                       1,
                                       TRPI_TYPE_ADJUST_POOL_SIZE };
INTERNAL(trpi_resize_type, "troupe.priv-resize", TRPI_TYPE_RESIZE);

typedef struct type_entry {
    _Atomic(const trp_type *) type; /* release; pairs with acquire of trpi_type_get() */
    const trp_protocol *protocol;   /* NULL: built in */
    uint64_t wire_id;
    _Atomic uint16_t parent; /* set once, under the lock; 0: none */
} type_entry;

/* The built-in types, each with its parent in the hierarchy of events (0: none). */
static const struct built_in {
    const trp_type *type;
    uint16_t parent;
} built_in[] = {
    { &trp_terminated_type, 0 },
    { &trp_poison_pill_type, 0 },
    { &trp_kill_type, 0 },
    { &trp_identify_type, 0 },
    { &trp_receive_timeout_type, 0 },
    { &trpi_timer_type, 0 },
    { &trpi_continue_type, 0 },
    { &trpi_select_type, 0 },
    { &trpi_inspect_type, 0 },
    { &trpi_supervise_type, 0 },
    { &trpi_ask_unhandled_type, 0 },
    { &trpi_withdrawn_type, 0 },
    { &trpi_mark_type, 0 },
    { &trp_string_type, 0 },
    { &trp_json_type, 0 },
    { &trp_bytes_type, 0 },
    { &trp_i64_type, 0 },
    { &trp_actor_identity_type, 0 },
    { &trp_status_failure_type, 0 },
    { &trp_dead_letter_type, TRPI_TYPE_ALL_DEAD_LETTERS },
    { &trp_stalled_type, 0 },
    { &trp_mailbox_ready_type, 0 },
    { &trp_unhandled_type, 0 },
    { &trp_all_dead_letters_type, 0 },
    { &trp_suppressed_dead_letter_type, TRPI_TYPE_ALL_DEAD_LETTERS },
    { &trp_log_event_type, 0 },
    { &trp_log_error_type, TRPI_TYPE_LOG_EVENT },
    { &trp_log_warning_type, TRPI_TYPE_LOG_EVENT },
    { &trp_log_info_type, TRPI_TYPE_LOG_EVENT },
    { &trp_log_debug_type, TRPI_TYPE_LOG_EVENT },
    { &trp_logger_init_type, 0 },
    { &trp_logger_ready_type, 0 },
    { &trpi_logger_end_type, 0 },
    { &trpi_logger_flush_type, 0 },
    { &trp_broadcast_type, 0 },
    { &trp_keyed_type, 0 },
    { &trp_get_routees_type, 0 },
    { &trp_routees_type, 0 },
    { &trp_add_routee_type, 0 },
    { &trp_remove_routee_type, 0 },
    { &trp_adjust_pool_size_type, 0 },
    { &trpi_resize_type, 0 },
    { &trp_remoting_event_type, 0 },
    { &trp_association_event_type, TRPI_TYPE_REMOTING_EVENT },
    { &trp_associated_type, TRPI_TYPE_ASSOCIATION_EVENT },
    { &trp_disassociated_type, TRPI_TYPE_ASSOCIATION_EVENT },
    { &trp_association_error_type, TRPI_TYPE_ASSOCIATION_EVENT },
    { &trp_quarantined_type, TRPI_TYPE_REMOTING_EVENT },
    { &trp_remoting_listen_type, TRPI_TYPE_REMOTING_EVENT },
    { &trp_remoting_shutdown_type, TRPI_TYPE_REMOTING_EVENT },
    { &trp_self_quarantined_type, TRPI_TYPE_REMOTING_EVENT },
    { &trp_remoting_error_type, TRPI_TYPE_REMOTING_EVENT },
};

static type_entry types[TRP_TYPES_MAX + 1u]; /* by number; zeroed, so it is not in the file */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below, and writing `types` */
static uint16_t wire_places[WIRE_PLACES];
static trpi_table by_wire_id = { wire_places, WIRE_PLACES, 0 }; /* of numbers */
static uint32_t number_next = TRPI_TYPE_USER_FIRST;
static uint64_t (*wire_hash)(const char *name) = trpi_hash_text;

void
trpi_type_test_hash(uint64_t (*hash)(const char *name))
{
    pthread_mutex_lock(&lock);
    wire_hash = hash != NULL ? hash : trpi_hash_text;
    pthread_mutex_unlock(&lock);
}

const trp_type *
trpi_type_get(uint32_t number)
{
    return number > TRP_TYPES_MAX ? NULL
                                  : atomic_load_explicit(&types[number].type, memory_order_acquire);
}

const trp_type *
trp_msg_type(const trp_msg *msg)
{
    return trpi_type_get(msg->priv_type);
}

uint16_t
trp_msg_tag(const trp_msg *msg)
{
    const trp_type *type = trpi_type_get(msg->priv_type);

    return type != NULL ? type->tag : 0;
}

uint64_t
trpi_type_wire_id(uint32_t number)
{
    return trpi_type_get(number) == NULL ? 0 : types[number].wire_id; /* type-Y1 */
}

/* ---- under the lock -------------------------------------------------------------------------- */

static bool
wire_is_empty(const void *element)
{
    return *(const uint16_t *)element == 0;
}

static uint64_t
wire_hash_of(const void *arg, const void *element)
{
    (void)arg;
    return types[*(const uint16_t *)element].wire_id;
}

static bool
wire_is_key(const void *arg, const void *element, const void *key)
{
    return wire_hash_of(arg, element) == *(const uint64_t *)key;
}

static const trpi_table_kind wire = { sizeof(uint16_t), wire_is_empty, wire_hash_of, wire_is_key };

/* Enter a type in both tables; its wire id is not known yet. */
static void
type_enter(const trp_type *type, uint32_t number, const trp_protocol *protocol, uint64_t wire_id)
{
    uint16_t *place = trpi_table_add(&wire, &by_wire_id, NULL, wire_id, &wire_id);

    trpi_assert(*place == 0);
    types[number].protocol = protocol;
    types[number].wire_id = wire_id;
    atomic_store_explicit(&types[number].type, type, memory_order_release); /* type-Y1 */
    *place = (uint16_t)number;
}

/* Enter the built-in types when the library is loaded: no message pays for a test whether that was
 * done, and the file does not hold 2 MiB of zeros. 101: before constructors of a static program. */
__attribute__((constructor(101))) static void
built_in_enter(void)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        const trp_type *type = built_in[i].type;

        trpi_assert(type->number < TRPI_TYPE_USER_FIRST);
        type_enter(type, type->number, NULL, trpi_hash_text(type->name));
        atomic_store_explicit(&types[type->number].parent, built_in[i].parent,
                              memory_order_relaxed);
    }
}

static bool
name_is_valid(const char *name)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;

    return dot != NULL && dot != name && dot[1] != '\0' && strlen(name) <= TRP_TYPE_NAME_BYTES_MAX;
}

/* Recursion is as deep as types are (trpi_type_check). */
static bool
same_fields(const trp_type *a, const trp_type *b)
{
    if (a->bytes != b->bytes || a->flags != b->flags || a->fields_count != b->fields_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->fields_count; i++) {
        const trp_field *x = &a->fields[i], *y = &b->fields[i];

        if (x->kind != y->kind || x->offset != y->offset || strcmp(x->name, y->name) != 0 ||
            (trpi_kind_element(x->kind) == TRP_FIELD_STRUCT && !same_fields(x->of, y->of))) {
            return false;
        }
    }
    return true;
}

static bool
same_shape(const trp_type *a, const trp_type *b)
{
    return a->tag == b->tag && same_fields(a, b);
}

static trp_err
type_register(const trp_protocol *protocol, trp_type *type)
{
    uint64_t wire_id;
    const uint16_t *place;
    uint32_t number;
    trp_err err = type != NULL && name_is_valid(type->name) ? trpi_type_check(type) : TRP_EINVAL;

    if (err != TRP_OK) {
        return err;
    }
    wire_id = wire_hash(type->name);
    place = trpi_table_find(&wire, &by_wire_id, NULL, wire_id, &wire_id);
    if (place != NULL) {
        const trp_type *known = trpi_type_get(*place);

        number = *place;
        if (strcmp(known->name, type->name) !=
            0) { /* type-Y2; there is no system, hence no log, to tell it to */
            (void)fprintf(stderr,
                          "troupe: message types %s and %s have one wire id, %016llx: rename one\n",
                          known->name, type->name, (unsigned long long)wire_id);
            return TRP_ECOLLISION;
        }
        if (!same_shape(known, type)) {
            return TRP_EEXIST;
        }
        /* Another copy of the same declaration gets its number; one that has it may be read right
         * now. */
        if (__atomic_load_n(&type->number, __ATOMIC_RELAXED) != number) {
            __atomic_store_n(&type->number, number, __ATOMIC_RELAXED);
        }
        return TRP_OK;
    }
    if (number_next > TRP_TYPES_MAX) {
        return TRP_ELIMIT;
    }
    number = number_next++;
    type_enter(type, number, protocol, wire_id);
    __atomic_store_n(&type->number, number, __ATOMIC_RELAXED);
    return TRP_OK;
}

/* ---- public ---------------------------------------------------------------------------------- */

trp_err
trp_protocol_register(const trp_protocol *protocol)
{
    trp_err err = TRP_OK;

    if (protocol == NULL || protocol->name == NULL ||
        (protocol->types_count != 0 && protocol->types == NULL)) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; err == TRP_OK && i < protocol->types_count; i++) {
        err = type_register(protocol, protocol->types[i]);
    }
    pthread_mutex_unlock(&lock);
    return err;
}

uint32_t
trpi_type_parent(uint32_t number)
{
    return number > TRP_TYPES_MAX ? 0
                                  : atomic_load_explicit(&types[number].parent,
                                                         memory_order_acquire); /* pair: extend */
}

/* Under the lock: levels below a type. Every known type is looked at: this is rare. */
static uint32_t
levels_below(uint32_t top)
{
    uint32_t most = 0;

    for (uint32_t number = 1; number < number_next; number++) {
        uint32_t levels = 0, at = number;

        while (at != 0 && at != top) {
            at = trpi_type_parent(at);
            levels++;
        }
        most = at == top && levels > most ? levels : most;
    }
    return most;
}

trp_err
trp_type_extend(const trp_type *type, const trp_type *parent)
{
    uint32_t depth = 1;
    uint32_t at, known;
    trp_err err = TRP_OK;

    if (type == NULL || parent == NULL || type->number == 0 || parent->number == 0) {
        return type == NULL || parent == NULL ? TRP_EINVAL : TRP_ENOTYPE;
    }
    pthread_mutex_lock(&lock);
    for (at = parent->number; at != 0; at = trpi_type_parent(at), depth++) {
        if (at == type->number) {
            err = TRP_EINVAL;
            break;
        }
    }
    known = trpi_type_parent(type->number);
    if (err == TRP_OK && known != 0 && known != parent->number) {
        err = TRP_EEXIST;
    } else if (err == TRP_OK && depth + levels_below(type->number) > TRP_TYPE_DEPTH_MAX) {
        err = TRP_ELIMIT;
    } else if (err == TRP_OK) {
        atomic_store_explicit(&types[type->number].parent, (uint16_t)parent->number,
                              memory_order_release); /* pair: trpi_type_parent */
    }
    pthread_mutex_unlock(&lock);
    return err;
}

const trp_type *
trpi_type_find_wire(uint64_t wire_id)
{
    const uint16_t *place;
    const trp_type *type;

    pthread_mutex_lock(&lock);
    place = trpi_table_find(&wire, &by_wire_id, NULL, wire_id, &wire_id);
    type = place != NULL ? trpi_type_get(*place) : NULL;
    pthread_mutex_unlock(&lock);
    return type;
}

const trp_type *
trp_type_find(const char *name)
{
    const trp_type *type = name != NULL ? trpi_type_find_wire(trpi_hash_text(name)) : NULL;

    return type != NULL && strcmp(type->name, name) == 0 ? type : NULL;
}

trp_err
trpi_types_accept(const trp_protocol *const *accepts)
{
    trp_err err = TRP_OK;

    for (; accepts != NULL && *accepts != NULL && err == TRP_OK; accepts++) {
        err = trp_protocol_register(*accepts);
    }
    return err;
}

bool
trpi_type_accepted(const trp_protocol *const *accepts, uint32_t number)
{
    const trp_protocol *protocol =
        types[number].protocol; /* type-Y1: written before the number was known */

    if (number < TRPI_TYPE_STRING ||
        (number >= TRPI_TYPE_ACTOR_IDENTITY && number < TRPI_TYPE_USER_FIRST)) {
        return true;
    }
    for (; protocol != NULL && *accepts != NULL; accepts++) {
        /* by name too: a plugin has its own copy of a shared declaration */
        if (*accepts == protocol || strcmp((*accepts)->name, protocol->name) == 0) {
            return true;
        }
    }
    return false;
}

bool
trpi_type_is_ordinary(uint16_t number) /* receive-filter-G1 */
{
    return number >= TRPI_TYPE_USER_FIRST ||
           (number >= TRPI_TYPE_STRING && number <= TRPI_TYPE_I64);
}
