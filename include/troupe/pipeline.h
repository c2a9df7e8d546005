/* troupe/pipeline.h - stages that turn commands into bytes, and bytes into events.
 *
 * A pipeline is a list of stages, the uppermost first. Commands go down through them, from the
 * program to the wire; events go up. A stage may answer one input with any number of commands and
 * events. Nothing here has a thread, a socket or a clock: the feeder of the pipeline, as a rule one
 * actor, runs it.
 *
 *     program     command |       ^ event
 *                         v       |
 *                 [ text        ]  strings above, bytes below        <- management
 *                 [ lines       ]  whole lines above, a stream below <- reaches all
 *                         |       ^
 *     wire        command v       | event
 *
 *     const trp_stage_use stages[] = { { &trp_text_stage, NULL }, { &trp_line_stage, NULL } };
 *     trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
 *     options.on_command = send_to_wire;
 *     options.on_event = heard_a_line;
 *     trp_err err = trp_pipeline_new(stages, 2, &options, &pipeline);
 *     ...
 *     trp_item item = trp_item_of_bytes(received);
 *     err = trp_pipeline_event(pipeline, &item);
 *     trp_item_clear(&item);
 *
 * A result goes straight to the next stage and takes no memory. A stage is never entered while one
 * of its functions runs: results for it wait until that returns.
 *
 * Failures. A function that returns an error ends the run: waiting results are dropped, and the
 * feeder gets the error and its reason (trp_pipeline_reason). The pipeline stays open. A
 * stage whose stream is broken, such as frames with an impossible length, fails again at each
 * further event; one that only refused a command goes on. An actor that runs a pipeline returns the
 * error, so that its supervisor decides, or handles it. After a trp_fail() out of a stage or sink
 * the pipeline can only be freed, as trp_defer() does it; return an error instead.
 */
#ifndef TROUPE_PIPELINE_H
#define TROUPE_PIPELINE_H

#include <troupe/base.h>
#include <troupe/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_STAGES_MAX 64                  /* of one pipeline */
#define TRP_STAGE_STATE_BYTES_MAX 65536    /* of one stage */
#define TRP_PIPELINE_WAITING_DEFAULT 65536 /* results that wait at the same time */

/* ---- items ----------------------------------------------------------------------------------- */

struct trp_item;

/* The kind of an item; kinds are told apart by their address. */
typedef struct trp_item_type {
    const char *name;
    void (*drop)(struct trp_item *item); /* gives back what it owns; NULL: nothing */
} trp_item_type;

/* One command, event or management command: a small value. Zeroed, it is none. */
typedef struct trp_item {
    const trp_item_type *type; /* NULL: none */
    union {
        trp_bytes bytes;
        void *pointer;
        uint64_t number;
        double real;
    } as;
} trp_item;

TRP_API extern const trp_item_type trp_item_bytes; /* as.bytes */
TRP_API extern const trp_item_type trp_item_text;  /* as.bytes, which are UTF-8 */
TRP_API extern const trp_item_type trp_item_tick;  /* management; as.number: the time in ms */
/* Of a connection below: events that the stream has ended, or that as.number bytes of the present
 * write are with the system; commands to close when all is written, or at once. */
TRP_API extern const trp_item_type trp_item_end;
TRP_API extern const trp_item_type trp_item_written;
TRP_API extern const trp_item_type trp_item_close;
TRP_API extern const trp_item_type trp_item_abort;
/* Events of trp_buffer_stage: as.number bytes wait; write no more for now, or go on. */
TRP_API extern const trp_item_type trp_item_high;
TRP_API extern const trp_item_type trp_item_low;

static inline trp_item
trp_item_of(const trp_item_type *type) /* with nothing in it yet */
{
    trp_item item;

    item.type = type;
    item.as.bytes = TRP_BYTES_EMPTY;
    return item;
}
static inline trp_item
trp_item_of_bytes(trp_bytes bytes) /* takes bytes */
{
    trp_item item = trp_item_of(&trp_item_bytes);

    item.as.bytes = bytes;
    return item;
}

/* Give back what an item owns; it is none afterwards. NULL, and none, are fine.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-01.  Since: 0.1 */
TRP_API void trp_item_clear(trp_item *item);

/* ---- stages ---------------------------------------------------------------------------------- */

typedef struct trp_port trp_port; /* the place of a stage in its pipeline */

enum {
    TRP_STAGE_NEEDS_BYTE_ORDER = 1, /* a pipeline without one is refused */
    TRP_STAGE_NEEDS_CONTEXT = 2
};

/* A kind of stage, static as a rule. Each pipeline has a state of its own of it, zeroed. An item
 * that a function is given stays with the pipeline: the function passes it on by a
 * trp_port_emit_...(), or moves out what it keeps (and leaves zeros there); what is left is cleared
 * after it has returned. Functions must not block. */
typedef struct trp_stage {
    size_t size; /* sizeof(trp_stage) */
    const char *name;
    uint32_t state_bytes;
    uint32_t needs; /* TRP_STAGE_NEEDS_* */
    /* Begin, without emitting; NULL: nothing to do. After an error close is called as well. */
    trp_err (*open)(trp_port *port, void *state, const void *options);
    /* Give back what the state owns, also a half-built one. */
    void (*close)(void *state);
    trp_err (*command)(trp_port *port, void *state, trp_item *command); /* NULL: pass it on */
    trp_err (*event)(trp_port *port, void *state, trp_item *event);     /* NULL: pass it on */
    /* Every management command reaches every stage, in no order that is promised: act on your own
     * kinds, and on ticks. NULL: not interested. */
    trp_err (*manage)(trp_port *port, void *state, const trp_item *management);
    /* Return 1 while it keeps the beginning of something that its next events must complete, such
     * as half a frame; NULL: it never does. */
    uint32_t (*holds)(const void *state);
} trp_stage;

/* A stage as a pipeline has it. */
typedef struct trp_stage_use {
    const trp_stage *stage;
    const void *options; /* borrowed by trp_pipeline_new(); as the stage says, NULL: defaults */
} trp_stage_use;

/* Pass a command to the stage below, or out of the pipeline; an event to the stage above, or out.
 *
 * Ownership: takes item, always; it is none afterwards.
 * Errors:    TRP_ENOMEM  it has to wait, and there is no memory
 *            TRP_ELIMIT  it has to wait, and waiting_max results do already
 *            TRP_ESTATE  called by open
 *            that of the stage or function which it reached. The run is over: return the error.
 * Thread:    owner (inside a function of the stage).
 * Source:    PIPE-01, PIPE-06.  Since: 0.1 */
TRP_API trp_err trp_port_emit_command(trp_port *port, trp_item *item);
TRP_API trp_err trp_port_emit_event(trp_port *port, trp_item *item);

/* Keep the reason of a failure for trp_pipeline_reason() and return err:
 *     return trp_port_fail(port, TRP_EDATA, "a person has no name");
 *
 * Errors:    err
 * Thread:    owner (inside a function of the stage).
 * Source:    PIPE-02.  Since: 0.1 */
TRP_API trp_err trp_port_fail(trp_port *port, trp_err err, const char *format, ...)
    TRP_PRINTF(3, 4);

/* Return the context that the pipeline was given, and its byte order (0: none).
 *
 * Errors:    none
 * Thread:    owner (inside a function of the stage).
 * Source:    PIPE-05.  Since: 0.1 */
TRP_API void *trp_port_context(const trp_port *port);
TRP_API trp_byte_order trp_port_byte_order(const trp_port *port);

/* Ask for ticks: a trp_item_tick to all stages at least every so many ms.
 *
 * Errors:    none
 * Thread:    owner (inside a function of the stage).
 * Source:    PIPE-09.  Since: 0.1 */
TRP_API void trp_port_tick_every(trp_port *port, uint32_t interval_ms);

/* ---- pipelines ------------------------------------------------------------------------------- */

typedef struct trp_pipeline trp_pipeline;

/* Take what leaves the pipeline, as stages do. An error ends the run. It may feed the pipeline. */
typedef trp_err (*trp_sink_fn)(void *arg, trp_item *item);

typedef struct trp_pipeline_options {
    size_t size;
    void *context;          /* for the stages; it belongs to this pipeline alone */
    trp_byte_order order;   /* 0: none */
    uint32_t waiting_max;   /* 0: TRP_PIPELINE_WAITING_DEFAULT */
    trp_sink_fn on_command; /* NULL: they wait for trp_pipeline_next_command() */
    trp_sink_fn on_event;   /* NULL: they wait for trp_pipeline_next_event() */
    void *arg;              /* of both */
} trp_pipeline_options;
#define TRP_PIPELINE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(trp_pipeline_options), NULL, (trp_byte_order)0, 0, NULL, NULL, NULL                 \
    }

/* Build a pipeline of these stages, the uppermost first. One stage may be in it several times.
 *
 * Ownership: borrows stages and options, copied; borrows each trp_stage until the pipeline is
 *            freed; gives *ret_pipeline (trp_pipeline_free).
 * Errors:    TRP_EINVAL  no stage, a stage without what it needs, or options out of range
 *            TRP_ELIMIT  more than TRP_STAGES_MAX stages, or a state above
 *                        TRP_STAGE_STATE_BYTES_MAX
 *            TRP_ENOMEM  out of memory
 *            that of a stage that could not begin
 * Thread:    any; lock-free.
 * Source:    PIPE-04, PIPE-05, PIPE-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_pipeline_new(const trp_stage_use *stages, size_t count,
                                                const trp_pipeline_options *options,
                                                trp_pipeline **ret_pipeline);

/* End a pipeline with what waits in it, and close its stages. NULL is fine.
 *
 * Ownership: takes pipeline.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside); not from inside a run, but after a trp_fail() out
 *            of one.
 * Source:    PIPE-04.  Since: 0.1 */
TRP_API void trp_pipeline_free(trp_pipeline *pipeline);

/* Feed a command to the uppermost stage, or an event to the lowest, and run until nothing waits. A
 * call from inside a run, as of a sink, may return before its item was handled.
 *
 * Ownership: takes item, which is none afterwards; on an error it may still have it: trp_item_clear
 *            suits both.
 * Errors:    TRP_EINVAL  item is none
 *            TRP_ENOMEM, TRP_ELIMIT as trp_port_emit_command
 *            that of a stage or sink; trp_pipeline_reason() says why
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-02, PIPE-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_pipeline_command(trp_pipeline *pipeline, trp_item *item);
TRP_API TRP_MUST_CHECK trp_err trp_pipeline_event(trp_pipeline *pipeline, trp_item *item);

/* Give a management command to every stage.
 *
 * Ownership: borrows item.
 * Errors:    TRP_EINVAL  item is none
 *            TRP_ESTATE  called from inside a run
 *            that of a stage or sink; the stages after it are not reached
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_pipeline_manage(trp_pipeline *pipeline, const trp_item *item);

/* Return the shortest interval in which a stage wants ticks; 0: none does. The feeder sets
 * a timer, and gives the pipeline a trp_item_tick with the time as a management command.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-09.  Since: 0.1 */
TRP_API uint32_t trp_pipeline_tick_ms(const trp_pipeline *pipeline);

/* Return 1 while a stage keeps the beginning of something, such as half a frame: the feeder may
 * give up on a peer that does not complete it.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-12.  Since: 0.1 */
TRP_API int trp_pipeline_holds(const trp_pipeline *pipeline);

/* Take the next command or event that has left a pipeline without the function for it. false (0):
 * none is there.
 *
 * Ownership: gives *ret_item.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-07.  Since: 0.1 */
TRP_API int trp_pipeline_next_command(trp_pipeline *pipeline, trp_item *ret_item);
TRP_API int trp_pipeline_next_event(trp_pipeline *pipeline, trp_item *ret_item);

/* Return why the last run failed, with the stage's name in front; "" if it did not.
 *
 * Ownership: borrows until the next run.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    PIPE-02, PIPE-07.  Since: 0.1 */
TRP_API const char *trp_pipeline_reason(const trp_pipeline *pipeline);

/* ---- the stages that are there --------------------------------------------------------------- */

#define TRP_FRAME_BYTES_DEFAULT (1u << 20)
#define TRP_LINE_BYTES_DEFAULT 1024u
#define TRP_DELIMITER_BYTES_MAX 16u

/* Frames with their length in front. Whole frames above, a stream below. A command above bytes_max
 * is TRP_EMSGSIZE, and the stage goes on. A length in the stream above bytes_max (TRP_EMSGSIZE), or
 * below that of its own field (TRP_EPROTO), breaks the stream for good, as does its end inside a
 * frame (TRP_EPROTO). Memory: at most one frame and the piece in which it began. */
typedef enum trp_length_of {
    TRP_LENGTH_OF_FRAME = 0,  /* the length counts its own field */
    TRP_LENGTH_OF_PAYLOAD = 1 /* it counts what follows it */
} trp_length_of;
typedef struct trp_length_options {
    size_t size;
    uint32_t bytes_max;   /* as the length counts; 0: TRP_FRAME_BYTES_DEFAULT */
    uint32_t field_bytes; /* 1, 2, 3, 4 or 8; 0: 4 */
    trp_byte_order order; /* 0: big-endian */
    trp_length_of counts;
} trp_length_options;
#define TRP_LENGTH_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_length_options), 0, 0, (trp_byte_order)0, TRP_LENGTH_OF_FRAME                   \
    }
TRP_API extern const trp_stage trp_length_stage; /* options: trp_length_options */

/* Frames that end with a delimiter of one or several bytes. Whole frames above, a stream below. A
 * command above bytes_max is TRP_EMSGSIZE, one that would be cut differently TRP_EDATA; a frame
 * above bytes_max in the stream breaks it (TRP_EMSGSIZE), as does its end inside a frame
 * (TRP_EPROTO). */
typedef struct trp_delimiter_options {
    size_t size;
    uint32_t bytes_max;       /* without the delimiter; 0: TRP_LINE_BYTES_DEFAULT */
    uint32_t delimiter_bytes; /* 1 to TRP_DELIMITER_BYTES_MAX */
    const void *delimiter;    /* copied; NULL: "\n" */
    uint32_t is_included;     /* 1: frames have the delimiter, in commands and in events */
    uint32_t zero;
} trp_delimiter_options;
#define TRP_DELIMITER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_delimiter_options), 0, 0, NULL, 0, 0                                            \
    }
TRP_API extern const trp_stage trp_delimiter_stage; /* options: trp_delimiter_options */

/* Lines. Events end at LF or CR LF, neither of which they have. Commands are lines without an end,
 * and get LF or CR LF. Errors as trp_delimiter_stage. */
typedef struct trp_line_options {
    size_t size;
    uint32_t bytes_max; /* without the end; 0: TRP_LINE_BYTES_DEFAULT */
    uint32_t ends_crlf; /* 1: commands end with CR LF, 0: with LF */
} trp_line_options;
#define TRP_LINE_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(trp_line_options), 0, 0                                                             \
    }
TRP_API extern const trp_stage trp_line_stage; /* options: trp_line_options */

/* Text. trp_item_text above, trp_item_bytes below; both are UTF-8, and what is not is TRP_EDATA. As
 * a rule each event is a whole text, cut by a stage below. With is_stream events are pieces of one
 * text: a character that is split between two waits for its rest, and the end of the stream inside
 * one is TRP_EDATA. */
typedef struct trp_text_options {
    size_t size;
    uint32_t is_stream;
    uint32_t zero;
} trp_text_options;
#define TRP_TEXT_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(trp_text_options), 0, 0                                                             \
    }
TRP_API extern const trp_stage trp_text_stage; /* options: trp_text_options */

/* A buffer in front of a connection that takes one write at a time. It passes down one command of
 * bytes, keeps further ones until the event trp_item_written says that this one is done, and passes
 * them down as one. Above high_bytes it sends up trp_item_high, at low_bytes again trp_item_low;
 * what would be above bytes_max is refused (TRP_EAGAIN), or with aborts ends the connection: all is
 * dropped, and trp_item_abort goes down. trp_item_close waits until all is written. */
typedef struct trp_buffer_options {
    size_t size;
    uint32_t low_bytes;  /* 0: TRP_BUFFER_LOW_DEFAULT */
    uint32_t high_bytes; /* 0: TRP_BUFFER_HIGH_DEFAULT */
    uint32_t bytes_max;  /* 0: TRP_BUFFER_BYTES_DEFAULT; low <= high <= max */
    uint32_t aborts;     /* 1: as the document's BackpressureBuffer */
} trp_buffer_options;
#define TRP_BUFFER_LOW_DEFAULT (16u << 10)
#define TRP_BUFFER_HIGH_DEFAULT (64u << 10)
#define TRP_BUFFER_BYTES_DEFAULT (1u << 20)
#define TRP_BUFFER_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_buffer_options), 0, 0, 0, 0                                                     \
    }
TRP_API extern const trp_stage trp_buffer_stage; /* options: trp_buffer_options */

/* Nothing but ticks: it asks for them in an interval, for the other stages. */
typedef struct trp_ticks_options {
    size_t size;
    uint32_t interval_ms; /* at least 1 */
    uint32_t zero;
} trp_ticks_options;
#define TRP_TICKS_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(trp_ticks_options), 0, 0                                                            \
    }
TRP_API extern const trp_stage trp_ticks_stage; /* options: trp_ticks_options */

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PIPELINE_H */
