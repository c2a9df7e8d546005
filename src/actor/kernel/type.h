/* type.h - numbers of message types: process-wide, given once, found without a lock.
 *
 * Built-in types have fixed numbers. Messages of those below TRPI_TYPE_AUTO_END pass the hook
 * automatic() and do not go straight to a behaviour: they are checked against a record (terminated,
 * timers, continuations) or are handled by the runtime (poison pill, kill, identify).
 */
#ifndef TRPI_ACTOR_KERNEL_TYPE_H
#define TRPI_ACTOR_KERNEL_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/message.h>

/* A flag of trp_type for a message of an upper room to its own actors: its loss means nothing. */
#define TRPI_TYPE_FLAG_SILENT 0x8000u

/* Types of the rooms of src/actor; those of other rooms: base/built_in_types.h. */
enum {
    TRPI_TYPE_NONE = 0,
    TRPI_TYPE_TERMINATED = 1,
    TRPI_TYPE_POISON_PILL = 2,
    TRPI_TYPE_KILL = 3,
    TRPI_TYPE_IDENTIFY = 4,
    TRPI_TYPE_RECEIVE_TIMEOUT = 5,
    TRPI_TYPE_TIMER = 6,          /* internal: a named timer fired */
    TRPI_TYPE_CONTINUE = 7,       /* internal: an ask of this actor was answered */
    TRPI_TYPE_WITHDRAWN = 11,     /* internal: a message that was withdrawn (pending.c) */
    TRPI_TYPE_ASK_UNHANDLED = 12, /* internal, also between nodes: not handled by the asked actor */
    TRPI_TYPE_MARK = 13,          /* internal: all messages before it were handled (marks.c) */
    TRPI_TYPE_AUTO_END = 16,
    TRPI_TYPE_STRING = 16,
    TRPI_TYPE_JSON = 17,
    TRPI_TYPE_BYTES = 18,
    TRPI_TYPE_I64 = 19,
    TRPI_TYPE_ACTOR_IDENTITY = 20,
    TRPI_TYPE_STATUS_FAILURE = 21,
    TRPI_TYPE_DEAD_LETTER = 22,
    TRPI_TYPE_UNHANDLED = 23,
    TRPI_TYPE_ALL_DEAD_LETTERS = 40,
    TRPI_TYPE_SUPPRESSED = 41,
    TRPI_TYPE_LOG_EVENT = 42,
    TRPI_TYPE_LOG_ERROR = 43, /* in the order of trp_log_level */
    TRPI_TYPE_LOG_WARNING = 44,
    TRPI_TYPE_LOG_INFO = 45,
    TRPI_TYPE_LOG_DEBUG = 46,
    TRPI_TYPE_LOGGER_INIT = 47,
    TRPI_TYPE_LOGGER_READY = 48,
    TRPI_TYPE_LOGGER_END = 49,
    TRPI_TYPE_LOGGER_FLUSH = 50, /* internal: freed after all lines before it were written */
    TRPI_TYPE_MAILBOX_READY = 56,
    TRPI_TYPE_STALLED = 57,
    TRPI_TYPE_USER_FIRST = 64
};

/* Is it a log event of some level? */
static inline bool
trpi_type_is_log(uint32_t number)
{
    return number >= TRPI_TYPE_LOG_EVENT && number <= TRPI_TYPE_LOG_DEBUG;
}
/* Return the parent in the hierarchy of events; 0: none. Lock-free; any thread. */
uint32_t trpi_type_parent(uint32_t number);

/* The descriptor of a number; NULL: no such type. Lock-free; any thread. */
const trp_type *trpi_type_get(uint32_t number);
/* Return the wire id: the 64-bit xxhash of the name. 0 for a number that is not registered. */
uint64_t trpi_type_wire_id(uint32_t number);
/* NULL: not registered here. Takes a lock; any thread. */
const trp_type *trpi_type_find_wire(uint64_t wire_id);
/* Is the type in one of the protocols? Always true for types of the library (tags from 0xff10
 * on). */
bool trpi_type_accepted(const trp_protocol *const *accepts, uint32_t number);
/* Register every protocol of a NULL-terminated list. Errors: as trp_protocol_register. */
trp_err trpi_types_accept(const trp_protocol *const *accepts);
/* For tests: set another hash for wire ids, so that names collide; NULL: the real one. */
void trpi_type_test_hash(uint64_t (*hash)(const char *name));

bool trpi_type_is_ordinary(uint16_t number); /* a type that is not the library's own */

#endif
