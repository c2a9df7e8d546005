/* troupe/tcp_pipeline.h - a pipeline over a connection, in one call.
 *
 * An actor between a connection and its handler runs the stages: the handler commands and is told
 * items, such as whole frames or lines, in place of bytes.
 *
 *     const trp_stage_use stages[] = { { &trp_line_stage, NULL } };
 *     err = trp_tcp_pipeline(ctx, connection, stages, 1, NULL, &s->lines);
 *     ...
 *     const trp_tcp_pipeline_event *event = trp_tcp_pipeline_event_of(msg);  -> event->item
 *     err = trp_tcp_pipeline_command(ctx, s->lines, &item);
 *     trp_tell(ctx, s->lines, &trp_tcp_close_type, NULL, 0);
 *
 * TLS is an option of the connection (troupe/io.h) and lies below all stages.
 *
 * The handler is told what the connection tells, too: trp_tcp_closed, trp_tcp_command_failed, the
 * marks of its buffer. It orders as it would order the connection: trp_tcp_close_type and
 * trp_tcp_abort_type pass through the stages (trp_item_close, trp_item_abort), the others go to the
 * connection at once. Items that it has not handled yet count as unhandled bytes of the
 * connection: a slow handler stops the peer.
 *
 * With trp_buffer_stage among the stages each write of theirs has an ack, which is the event
 * trp_item_written. The peer's end is the event trp_item_end, before trp_tcp_closed.
 */
#ifndef TROUPE_TCP_PIPELINE_H
#define TROUPE_TCP_PIPELINE_H

#include <troupe/io.h>
#include <troupe/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_TCP_PIPELINE_FRAME_TIMEOUT_MS 60000
#define TRP_TCP_PIPELINE_NO_TIMEOUT 0xffffffffu
#define TRP_TCP_PIPELINE_REASON_BYTES 200

typedef struct trp_tcp_pipeline_options {
    size_t size;
    trp_ref handler;                     /* TRP_REF_NONE: the running actor */
    const trp_tcp_register_options *how; /* of the connection; NULL: the defaults */
    void *context;                       /* of the pipeline */
    trp_byte_order order;                /* of the pipeline; 0: none */
    /* How long half a frame may wait for its rest (trp_pipeline_holds). 0:
     * TRP_TCP_PIPELINE_FRAME_TIMEOUT_MS; or TRP_TCP_PIPELINE_NO_TIMEOUT */
    uint32_t frame_timeout_ms;
    /* 0: a broken stream aborts the connection. 1: it is only read no more, so that the handler can
     * say a last word, and close it. */
    uint32_t keeps_broken;
    uint32_t zero;
} trp_tcp_pipeline_options;
#define TRP_TCP_PIPELINE_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(trp_tcp_pipeline_options), TRP_REF_NONE, NULL, NULL, (trp_byte_order)0, 0, 0, 0     \
    }

/* Run these stages over a connection, the uppermost first, in a child of the running actor, which
 * registers with the connection. When the handler ends, so does the child: the connection is
 * flushed and closed. The child ends after the connection has.
 *
 * Ownership: borrows stages and options; borrows each trp_stage and context until the child has
 *            ended.
 * Errors:    TRP_EINVAL  an argument is none, or options are out of range
 *            those of trp_pipeline_new and trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    PIPE-12, PIPE-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_pipeline(trp_ctx *ctx, trp_ref connection,
                                                const trp_stage_use *stages, size_t count,
                                                const trp_tcp_pipeline_options *options,
                                                trp_ref *ret_pipeline);

/* Tell the pipeline a command; or a management command, for all stages. One that fails is answered
 * by trp_tcp_pipeline_failed.
 *
 * Ownership: takes item, always; it is none afterwards.
 * Errors:    TRP_EINVAL  item is none
 *            TRP_ENOMEM  out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    PIPE-08, PIPE-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_pipeline_command(trp_ctx *ctx, trp_ref pipeline,
                                                        trp_item *item);
TRP_API TRP_MUST_CHECK trp_err trp_tcp_pipeline_manage(trp_ctx *ctx, trp_ref pipeline,
                                                       trp_item *item);

/* To the handler; the sender is the pipeline. Read it by trp_tcp_pipeline_event_of(). */
typedef struct trp_tcp_pipeline_event {
    trp_item item; /* the message's; trp_bytes_ref() keeps its bytes */
} trp_tcp_pipeline_event;
TRP_API extern trp_type trp_tcp_pipeline_event_type;
/* Borrow the event, until the behaviour call returns; NULL: msg is another message. */
static inline const trp_tcp_pipeline_event *
trp_tcp_pipeline_event_of(const trp_msg *msg)
{
    return (const trp_tcp_pipeline_event *)trp_msg_held(msg, &trp_tcp_pipeline_event_type);
}

/* To who gave a command that failed; or to the handler: the stream is broken, or half a frame has
 * waited too long (TRP_ETIMEDOUT). */
typedef struct trp_tcp_pipeline_failed {
    int32_t error;                              /* trp_err */
    uint32_t is_command;                        /* 1: a command failed, and the pipeline goes on */
    char reason[TRP_TCP_PIPELINE_REASON_BYTES]; /* a sentence, with the stage's name in front */
} trp_tcp_pipeline_failed;
TRP_API extern trp_type trp_tcp_pipeline_failed_type;

TRP_API extern const trp_protocol trp_tcp_pipeline_protocol;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_TCP_PIPELINE_H */
