/* type.h - numbers of message types: process-wide, given once, found without a lock.
 *
 * Built-in types have fixed numbers. Those below TRPI_TYPE_AUTO_END are never handed to a behaviour
 * without a look by trpi_life_auto(): they need a record to be checked (terminated, timers,
 * continuations) or are orders (poison pill, kill, identify).
 */
#ifndef TRPI_ACTOR_KERNEL_TYPE_H
#define TRPI_ACTOR_KERNEL_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/message.h>

enum { /* of the rooms of src/actor; the others: base/built_in_types.h */
       TRPI_TYPE_NONE = 0,
       TRPI_TYPE_TERMINATED = 1,
       TRPI_TYPE_POISON_PILL = 2,
       TRPI_TYPE_KILL = 3,
       TRPI_TYPE_IDENTIFY = 4,
       TRPI_TYPE_RECEIVE_TIMEOUT = 5,
       TRPI_TYPE_TIMER = 6,      /* internal: a named timer fired; LIFE's payload */
       TRPI_TYPE_CONTINUE = 7,   /* internal: an ask of this actor is answered; LIFE's payload */
       TRPI_TYPE_WITHDRAWN = 11, /* what a message becomes that is taken back (pending.c) */
       TRPI_TYPE_ASK_UNHANDLED = 12, /* internal, travels: the asked actor did not handle it */
       TRPI_TYPE_MARK = 13, /* internal: what stands before it has been handled (marks.c) */
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
       TRPI_TYPE_LOGGER_FLUSH = 50, /* internal: freed when all lines before it are written */
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
/* The next type up in the hierarchy of events; 0: none. Lock-free; any thread. */
uint32_t trpi_type_parent(uint32_t number);

/* The descriptor of a number; NULL: no such type. Lock-free; any thread. */
const trp_type *trpi_type_get(uint32_t number);
/* 64-bit xxhash of the name; what travels. 0 for a number that is not registered. */
uint64_t trpi_type_wire_id(uint32_t number);
/* NULL: not registered here. Takes a lock; any thread. */
const trp_type *trpi_type_find_wire(uint64_t wire_id);
/* Does one of the protocols hold the type? Types of the library (tags from 0xff10 on) always pass.
 * */
bool trpi_type_accepted(const trp_protocol *const *accepts, uint32_t number);
/* Register every protocol of a NULL-terminated list. Errors: as trp_protocol_register. */
trp_err trpi_types_accept(const trp_protocol *const *accepts);
/* Tests: another hash for wire ids, so that two names can collide; NULL: the real one. */
void trpi_type_test_hash(uint64_t (*hash)(const char *name));

bool trpi_type_is_ordinary(uint16_t number); /* a type that is not the library's own */

#endif
