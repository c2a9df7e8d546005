/* troupe/journal_query.h - read the events of a journal: those that are there, and those to come.
 *
 * A query is an actor. It reads the events of one persistence id, or of one tag, from the system's
 * journal (troupe/persistence.h) and tells them to its receiver, in order, and no more of them than
 * the receiver has asked for:
 *
 *     trp_journal_query_options options = TRP_JOURNAL_QUERY_OPTIONS_INIT;
 *     options.receiver = trp_self(ctx);
 *     options.tag = "order";
 *     options.after = last_offset;
 *     options.live = 1;
 *     err = trp_journal_query_spawn(ctx, &options, &query);
 *     trp_journal_query_request request = { 100 };
 *     trp_tell(ctx, query, &trp_journal_query_request_type, &request, 0);
 *
 * Then messages of trp_journal_query_event_type come. Demand that is
 * not met yet is remembered; without demand nothing is read. A query holds one batch at most.
 *
 * One that is not live ends when it finds no more. A live one waits: it is woken when an actor of
 * this node has persisted such an event, and looks every poll_ms for what other nodes have written.
 * When the journal fails or is away, the query tries again, after a pause that doubles each time,
 * and tells its receiver (trp_journal_query_state). A query ends with its receiver. When it is
 * restarted, it begins at options.after again.
 */
#ifndef TROUPE_JOURNAL_QUERY_H
#define TROUPE_JOURNAL_QUERY_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/journal.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_JOURNAL_QUERY_BATCH_DEFAULT 100u
#define TRP_JOURNAL_QUERY_BATCH_MAX 10000u
#define TRP_JOURNAL_QUERY_BATCH_BYTES_DEFAULT 1048576u
#define TRP_JOURNAL_QUERY_BATCH_BYTES_MAX 67108864u
#define TRP_JOURNAL_QUERY_DEMAND_MAX 1000000u /* asked for and not told yet; more is not counted */
#define TRP_JOURNAL_QUERY_POLL_MS_DEFAULT 1000u
#define TRP_JOURNAL_QUERY_RETRY_MS_DEFAULT 200u
#define TRP_JOURNAL_QUERY_RETRY_MS_MAX_DEFAULT 10000u
#define TRP_JOURNAL_QUERY_DELAY_MS_MAX 86400000u /* of poll_ms and retries: a day */
#define TRP_JOURNAL_QUERY_PAUSE_MS 10u /* between two reads that found the end, when woken */

/* Tell a query: so many events more may come. 0 events are not handled. */
typedef struct trp_journal_query_request {
    uint32_t events;
} trp_journal_query_request;
TRP_API extern trp_type trp_journal_query_request_type;

/* Told to the receiver for each event: a message that holds a trp_journal_event. It stays on this
 * node. Read it by trp_journal_query_event_of(). */
TRP_API extern trp_type trp_journal_query_event_type;

typedef enum trp_journal_query_status {
    TRP_JOURNAL_QUERY_RUNS = 1,    /* the journal has answered again */
    TRP_JOURNAL_QUERY_RETRIES = 2, /* a read has failed, and is repeated after retry_ms */
    TRP_JOURNAL_QUERY_AT_END = 3,  /* not live: all was told, and the query ends */
    TRP_JOURNAL_QUERY_ENDED = 4    /* the journal refuses such a read: the query ends */
} trp_journal_query_status;

/* Told to the receiver when the state of the query changes, and at each failure. */
typedef struct trp_journal_query_state {
    uint32_t status;   /* trp_journal_query_status */
    int32_t err;       /* trp_err of the failure, TRP_OK otherwise */
    uint32_t failures; /* in a row */
    uint32_t retry_ms; /* until the next attempt */
    uint64_t position; /* offset (by tag) or number (of an id) up to which all was told */
    char why[512];     /* of the failure; cut */
} trp_journal_query_state;
TRP_API extern trp_type trp_journal_query_state_type;

/* The three types. The first spawn registers them. */
TRP_API extern const trp_protocol trp_journal_query_protocol;

typedef struct trp_journal_query_options {
    size_t size;            /* sizeof(trp_journal_query_options) */
    const char *name;       /* as trp_spawn_options.name */
    const char *dispatcher; /* as trp_spawn_options.dispatcher */
    trp_ref receiver;       /* an actor of this system */
    const char *id;         /* events of this persistence id; NULL: of tag */
    const char *tag;        /* events with this tag; NULL, and id is NULL: all events */
    uint64_t after;         /* number (of an id) or offset (of a tag) of the last one known; 0 */
    uint64_t to;            /* of an id: the last number; 0: no end. Of a tag: 0 */
    uint32_t live;          /* 1: wait for what comes */
    uint32_t demand;        /* asked for at once, before the first request */
    uint32_t batch_events;  /* read at once, at most; 0: TRP_JOURNAL_QUERY_BATCH_DEFAULT */
    uint32_t batch_bytes;   /* 0: TRP_JOURNAL_QUERY_BATCH_BYTES_DEFAULT; one event may be more */
    uint32_t poll_ms;       /* 0: TRP_JOURNAL_QUERY_POLL_MS_DEFAULT */
    uint32_t retry_ms;      /* after the first failure; 0: TRP_JOURNAL_QUERY_RETRY_MS_DEFAULT */
    uint32_t retry_ms_max;  /* 0: TRP_JOURNAL_QUERY_RETRY_MS_MAX_DEFAULT, or retry_ms if more */
    uint32_t timeout_ms;    /* of a read that waits for its server; 0: the driver's */
} trp_journal_query_options;
#define TRP_JOURNAL_QUERY_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(trp_journal_query_options), NULL, NULL, TRP_REF_NONE, NULL, NULL, 0, 0, 0, 0, 0, 0, \
            0, 0, 0, 0                                                                             \
    }

/* Borrow the event of such a message, until the behaviour call returns (trp_msg_dup() keeps it);
 * NULL: msg is of another type. */
static inline const trp_journal_event *
trp_journal_query_event_of(const trp_msg *msg)
{
    return (const trp_journal_event *)trp_msg_held(msg, &trp_journal_query_event_type);
}

/* Start a query as a child of the running actor.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL    options is NULL; no receiver, or one on another node; both id and tag;
 *                          to without id; a number is above its limit
 *            TRP_EMSGSIZE  id or tag is too long
 *            TRP_ESTATE    the system has no journal
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 298.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_journal_query_spawn(trp_ctx *ctx,
                                                       const trp_journal_query_options *options,
                                                       trp_ref *ret_ref);

/* Start a query as a child of /user.
 *
 * Ownership: borrows options.
 * Errors:    as trp_journal_query_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 298.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_journal_query_spawn(
    trp_system *system, const trp_journal_query_options *options, trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_JOURNAL_QUERY_H */
