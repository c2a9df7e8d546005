/* events.h - events of the cluster as server-sent events: their types, their text, and the last of
 * them, for readers that come back. Without sockets.
 *
 * Why.     A reader that was cut off must not miss a change without being told. Each event has an
 *          id; a reader that gives the last one that it has is told what came after it, or Reset
 *          and the present state.
 * Shape.   The feed is also the buffer of all readers: each has a number, that of the next event
 *          for it, and copies from there. A reader whose next event was overwritten is too slow.
 * Must hold.
 *   events-F1  No event of its types is missing between two that a reader is given.  (feed_read)
 *   events-F2  An id of another incarnation of the node is never resumed.         (feed_resumes)
 * Limits.  TRPI_MANAGEMENT_EVENTS_MAX are kept.
 * Thread.  One at a time.
 * Tests.   tests/unit/management/events_test.c, tests/fuzz/management_fuzz.c
 * Sources. Akka Management 1.x, cluster HTTP: types and their JSON; HTML, server-sent events.
 */
#ifndef TRPI_MANAGEMENT_EVENTS_H
#define TRPI_MANAGEMENT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/buffer.h"
#include "base/json.h"

#define TRPI_MANAGEMENT_EVENTS_MAX 1024u
#define TRPI_MANAGEMENT_EVENT_ID_BYTES 48 /* "UID-NUMBER" */

/* Take the types of a query, which is decoded; none: all of Akka's. Errors: TRP_EINVAL: *ret_bad
 * is no type; TRP_EMSGSIZE. */
trp_err trpi_management_types_take(const char *query, uint32_t *ret_bits, char *ret_bad,
                                   size_t bad_bytes);
/* Add the names of these types to a list. false: no memory. */
bool trpi_management_types_add(cJSON *list, uint32_t bits);

/* Append an event to text: {"event":{...}} of the control protocol as one server-sent event with
 * Akka's keys beside ours; without an id. Gives the bit of its type. Errors: TRP_EDATA (it is no
 * event), TRP_ENOMEM. */
trp_err trpi_management_event_write(const char *object, trpi_buffer *text, uint32_t *ret_bit);

typedef struct trpi_management_kept {
    char *text; /* NULL: none */
    uint32_t bit;
} trpi_management_kept;

typedef struct trpi_management_feed {
    uint64_t epoch; /* the node's uid */
    uint64_t next;  /* number of the next event; the first is 1 */
    uint64_t first; /* number of the oldest that is kept; next: none is */
    trpi_management_kept kept[TRPI_MANAGEMENT_EVENTS_MAX]; /* at number modulo size */
} trpi_management_feed;

void trpi_management_feed_init(trpi_management_feed *feed, uint64_t epoch);
void trpi_management_feed_fini(trpi_management_feed *feed);
/* Add an event. One that cannot be kept (no memory, object NULL) makes all readers too slow. */
void trpi_management_feed_add(trpi_management_feed *feed, const char *object);
/* Does the reader that has this id miss nothing that is not kept? Gives the number of its next
 * event. id NULL: no. */
bool trpi_management_feed_resumes(const trpi_management_feed *feed, const char *id,
                                  uint64_t *ret_next);
/* Append events of these types from *next on, about bytes_max, and move *next behind them. false:
 * the reader is too slow (events-F1), or there is no memory. */
bool trpi_management_feed_read(const trpi_management_feed *feed, uint64_t *next, uint32_t bits,
                               size_t bytes_max, trpi_buffer *text);
/* Write the last `count` events of these types that are kept: {"complete":BOOL,"events":[{"id":ID,
 * "event":{...}}]}; complete: none was overwritten since the node started. NULL: no memory; else
 * cJSON_free(). */
char *trpi_management_feed_list(const trpi_management_feed *feed, uint32_t bits, uint32_t count);
/* Append the id of event `number` by itself: the reader has the state up to there. */
trp_err trpi_management_feed_mark(const trpi_management_feed *feed, uint64_t number,
                                  trpi_buffer *text);

#endif
