/* troupe/projection.h - handle the events of a journal one by one, and remember how far.
 *
 * A projection reads the events of a tag (or of one id) from the system's journal, calls a handler
 * for each, in order, and keeps the offset of the last handled one in the same journal. Stopped,
 * crashed or moved to another host, it continues behind that offset.
 *
 *     static trp_err
 *     row_update(trp_projection *projection, trp_ctx *ctx, void *arg,
 *                const trp_journal_event *event)
 *     { ... return TRP_OK; }
 *
 *     trp_projection_options options = TRP_PROJECTION_OPTIONS_INIT;
 *     options.name = "orders-by-day";
 *     options.tag = "order";
 *     options.handler = row_update;
 *     err = trp_projection_spawn(ctx, &options, &projection);
 *
 * At least once: the offset is stored behind the handled events, save_events at a time, so that a
 * crash repeats the last of them. Exactly once: with exactly_once = 1 the effect of a handler is
 * the events that it emits (trp_projection_emit); they are stored under the id "projection/NAME" in
 * one group with the offset, so that a crash repeats nothing.
 *
 * A projection has one writer: a start claims the scope "projection/NAME", and an earlier
 * projection of the name stops when it stores its next offset. The handler runs in the projection's
 * actor: what blocks wants dispatcher = "blocking". When it fails, on_failure says what happens.
 */
#ifndef TROUPE_PROJECTION_H
#define TROUPE_PROJECTION_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/journal.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_PROJECTION_NAME_BYTES_MAX 200u
#define TRP_PROJECTION_SAVE_EVENTS_DEFAULT 100u
#define TRP_PROJECTION_SAVE_EVENTS_MAX 10000u
#define TRP_PROJECTION_SAVE_MS_DEFAULT 500u
#define TRP_PROJECTION_RETRIES_DEFAULT 5u
#define TRP_PROJECTION_RETRY_MS_DEFAULT 500u
#define TRP_PROJECTION_RETRY_MS_MAX_DEFAULT 30000u
#define TRP_PROJECTION_DELAY_MS_MAX 86400000u      /* of save_ms and retries: a day */
#define TRP_PROJECTION_EMITTED_MAX 500u            /* by the handling of one event */
#define TRP_PROJECTION_EMITTED_BYTES_MAX 16777216u /* data of these */

typedef struct trp_projection trp_projection; /* the running one; valid while its handler runs */

/* Handle one event, borrowed until return. Any result but TRP_OK is a failure. */
typedef trp_err (*trp_projection_fn)(trp_projection *projection, trp_ctx *ctx, void *arg,
                                     const trp_journal_event *event);

typedef enum trp_projection_on_failure {
    TRP_PROJECTION_RETRY_THEN_STOP = 0, /* try again, `retries` times, then stop */
    TRP_PROJECTION_RETRY_THEN_SKIP = 1, /* try again, then leave the event out; it is logged */
    TRP_PROJECTION_SKIP = 2,
    TRP_PROJECTION_STOP = 3
} trp_projection_on_failure;

typedef enum trp_projection_phase {
    TRP_PROJECTION_STARTS = 1,  /* takes its place and reads its offset */
    TRP_PROJECTION_RUNS = 2,    /* reads and handles */
    TRP_PROJECTION_RETRIES = 3, /* the handler has failed, and is called again */
    TRP_PROJECTION_WAITS = 4    /* the journal has failed, and is tried again */
} trp_projection_phase;

/* Ask a projection how it is: it replies trp_projection_status. */
TRP_API extern trp_type trp_projection_ask_status_type; /* no payload */
typedef struct trp_projection_status {
    uint32_t phase;    /* trp_projection_phase */
    int32_t err;       /* trp_err of the last failure; TRP_OK: none yet */
    uint64_t position; /* offset (of a tag) or number (of an id) of the last handled event */
    uint64_t saved;    /* the one that the journal has */
    uint64_t handled;  /* events, since it was started */
    uint64_t skipped;  /* events */
    uint64_t failures; /* of the handler */
} trp_projection_status;
TRP_API extern trp_type trp_projection_status_type;

/* The two types. The first spawn registers them. */
TRP_API extern const trp_protocol trp_projection_protocol;

typedef struct trp_projection_options {
    size_t size;            /* sizeof(trp_projection_options) */
    const char *name;       /* of the projection; also its actor's, with "/" as "-" */
    const char *dispatcher; /* as trp_spawn_options.dispatcher */
    const char *id;         /* events of this persistence id; NULL: of tag */
    const char *tag;        /* NULL, and id is NULL: all events */
    trp_projection_fn handler;
    void *arg; /* passed to handler; outlives the projection */
    uint32_t exactly_once;
    uint32_t ends;        /* 1: it ends when all was handled; 0: it waits for what comes */
    uint32_t save_events; /* handled, and the offset is stored; 0: ..._SAVE_EVENTS_DEFAULT */
    uint32_t save_ms;     /* or so long after one was; 0: ..._SAVE_MS_DEFAULT */
    uint32_t poll_ms;     /* as trp_journal_query_options.poll_ms */
    trp_projection_on_failure on_failure;
    uint32_t retries;      /* of one event; 0: ..._RETRIES_DEFAULT; TRP_FOREVER: any number */
    uint32_t retry_ms;     /* before the first, doubled each time; 0: ..._RETRY_MS_DEFAULT */
    uint32_t retry_ms_max; /* 0: ..._RETRY_MS_MAX_DEFAULT, or retry_ms if more */
    uint32_t zero;
} trp_projection_options;
#define TRP_PROJECTION_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(trp_projection_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0,         \
            TRP_PROJECTION_RETRY_THEN_STOP, 0, 0, 0, 0                                             \
    }

/* Start a projection as a child of the running actor.
 *
 * Ownership: borrows options; handler and arg are used until it has ended.
 * Errors:    TRP_EINVAL    options, name or handler is NULL; both id and tag; a number is above its
 *                          limit
 *            TRP_EMSGSIZE  name, id or tag is too long
 *            TRP_ESTATE    the system has no journal
 *            TRP_ECONFIG   the journal is this node's alone, and persistence.local-store-is-enough
 *                          is off; a log line says what to configure
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 299.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_projection_spawn(trp_ctx *ctx,
                                                    const trp_projection_options *options,
                                                    trp_ref *ret_ref);

/* Start a projection as a child of /user.
 *
 * Ownership: borrows options; handler and arg are used until it has ended.
 * Errors:    as trp_projection_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 299.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_projection_spawn(trp_system *system,
                                                           const trp_projection_options *options,
                                                           trp_ref *ret_ref);

/* Emit an event from the handler of a projection that is exactly once: type, version, time, tags
 * and data are taken. It is stored together with the offset, or not at all; what a failed call of
 * the handler has emitted is forgotten.
 *
 * Ownership: borrows event.
 * Errors:    TRP_EINVAL    an argument is NULL, or the event has no type
 *            TRP_ESTATE    the projection is not exactly once
 *            TRP_ELIMIT    TRP_PROJECTION_EMITTED_MAX, or too many tags
 *            TRP_EMSGSIZE  TRP_PROJECTION_EMITTED_BYTES_MAX
 *            TRP_ENOMEM    out of memory
 * Thread:    actor (inside the projection's handler only).
 * Source:    docs/adr, decision 299.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_projection_emit(trp_projection *projection,
                                                   const trp_journal_event *event);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PROJECTION_H */
