/* bridge_session.c - the actor that speaks with one program: reads its requests, hosts its actors.
 *
 * Shape.   connection -> bytes -> lines -> requests -> this actor's voice, or that of the actor
 *          which the request names, a child of this one
 * States.  started -> its stream is a connection -> registered: the program is greeted -> ended,
 *          with the connection
 * Must hold.
 *   bridge-session-N1  After each piece of input the next one is asked for, at once, or when
 *       unwritten bytes are low: a program that does not read is not read either.
 *   bridge-session-N2  The order of requests that name one actor is kept.
 *   bridge-session-N3  When the program has gone, the session ends, and its actors before it.
 *   bridge-session-N4  A program that the node has started is started again when its process has
 *       been waited for, its actors have ended, and a pause is over. The session stays.
 *   bridge-session-N5  The end of that process is noticed while something that it has started holds
 *       its stream; that is told to end, so that what was written before is read, then is cut off.
 * Limits.  bridge.h
 * Tests.   tests/system/bridge.sh, bridge_child.sh
 */
#include <signal.h>
#include <string.h>

#include <troupe/cluster.h>
#include <troupe/io.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/node/bridge_child.h"
#include "cluster/node/control_member.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/node_private.h"
#include "io/adopt.h"

#define PROTOCOL 1
#define MEMBERS_MAX 1024u /* that are shown when events are asked for */
#define STOP_MS 5000u
#define ALARM_KEY 1u
#define REAP_MS 50u
#define TERM_MS 2000u /* after the end of its stream a program is told to end, then killed */
#define KILL_MS 5000u
#define LEAVE_MS 7000u            /* what a kill does not end is left alone */
#define WATCH_MS 500u             /* between looks for the end of the process */
#define BUFFER_BYTES (1ull << 30) /* never reached: bridge-voice-V2 bounds what waits */

typedef struct session {
    trpi_bridge_voice voice; /* first */
    trpi_bridge_lines lines;
    uint64_t ending_ms; /* since when its process ends; 0: it does not */
    uint64_t over_ms;   /* since when its process has ended and its stream has not; 0: neither */
} session;

/* ---- input ----------------------------------------------------------------------------------- */

/* bridge-session-N1 */
static void
read_on(trp_ctx *ctx, session *s)
{
    trpi_bridge *b = s->voice.bridge;
    if (trp_ref_is_none(s->voice.connection)) {
        return;
    }
    if (atomic_load(&b->unwritten) >= TRPI_BRIDGE_HIGH_BYTES) {
        atomic_store(&b->waits, true);
        /* what came between is seen here, or its writer sees that this waits */
        if (atomic_load(&b->unwritten) >= TRPI_BRIDGE_LOW_BYTES ||
            !atomic_exchange(&b->waits, false)) {
            return;
        }
    }
    trp_tell(ctx, s->voice.connection, &trp_tcp_resume_reading_type, NULL, 0);
}

/* ---- hosting --------------------------------------------------------------------------------- */

static void
host_do(trp_ctx *ctx, session *s, const trpi_bridge_request *request)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_ref actor;
    trp_err err = trp_children_count(ctx) >= TRPI_BRIDGE_ACTORS_MAX
                      ? TRP_ELIMIT
                      : trpi_bridge_actor_spawn(ctx, &s->voice, request->actor, &actor);
    if (err == TRP_ELIMIT) {
        trpi_bridge_voice_refuse(ctx, &s->voice, request, TRPI_CTL_EXIT_TIMEOUT,
                                 "stop actors, or start another bridge",
                                 "this program hosts %u actors already", TRPI_BRIDGE_ACTORS_MAX);
    } else if (err == TRP_EEXIST) {
        trpi_bridge_voice_refuse(ctx, &s->voice, request, TRPI_CTL_EXIT_NO, NULL,
                                 "this program hosts an actor '%.255s' already", request->actor);
    } else if (err != TRP_OK) {
        trpi_bridge_voice_refuse(ctx, &s->voice, request, trpi_ctl_exit_of(err),
                                 "a name has no '/', and does not begin with '$'",
                                 "actor '%.255s': %s", request->actor, trp_strerror(err));
    } else if (request->has_id) {
        cJSON *answer = trpi_bridge_answer(request->id);
        bool ok = trpi_json_add_text(answer, "path",
                                     trp_path(s->voice.bridge->system, actor, path, sizeof path));
        trpi_bridge_voice_write(ctx, &s->voice, trpi_bridge_print(answer, ok));
    }
}

typedef struct stopping {
    trpi_bridge_request request;
} stopping;

static trp_err
on_stopped(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    session *s = state;
    stopping *stop = arg;
    (void)reply;
    if (err == TRP_OK) {
        trpi_bridge_voice_ok(ctx, &s->voice, &stop->request);
    } else {
        trpi_bridge_voice_refuse(ctx, &s->voice, &stop->request, trpi_ctl_exit_of(err), NULL,
                                 "stop: %s", trp_strerror(err));
    }
    trp_alloc_free(ctx, stop);
    return TRP_OK;
}

/* An actor has done what came before the order. */
static void
stop_do(trp_ctx *ctx, session *s, const trpi_bridge_request *request, trp_ref actor)
{
    stopping *stop = trp_alloc(ctx, sizeof *stop);
    stop->request.has_id = request->has_id;
    stop->request.id = request->id;
    stop->request.op = request->op;
    trp_err err = trp_graceful_stop(ctx, actor, STOP_MS, on_stopped, stop);
    if (err != TRP_OK) {
        trp_alloc_free(ctx, stop);
        trpi_bridge_voice_refuse(ctx, &s->voice, request, trpi_ctl_exit_of(err), NULL, "stop: %s",
                                 trp_strerror(err));
    }
}

/* ---- events of the cluster ------------------------------------------------------------------- */

static const char *
event_of_status(uint32_t status)
{
    switch (status) {
    case TRP_MEMBER_JOINING:
        return "MemberJoined";
    case TRP_MEMBER_WEAKLY_UP:
        return "MemberWeaklyUp";
    case TRP_MEMBER_UP:
        return "MemberUp";
    case TRP_MEMBER_LEAVING:
        return "MemberLeft";
    case TRP_MEMBER_EXITING:
        return "MemberExited";
    default:
        return "MemberDowned";
    }
}

static bool
is_wanted(uint32_t bits, const char *name)
{
    for (unsigned i = 0; i < TRPI_CONTROL_EVENT_TYPES; i++) {
        if (strcmp(trpi_control_event_name(i), name) == 0) {
            return (bits >> i & 1u) != 0;
        }
    }
    return false;
}

static void
member_show(trp_ctx *ctx, session *s, const trp_member *member, const char *name)
{
    cJSON *event = trpi_bridge_event("cluster");
    bool ok = trpi_json_add_text(event, "type", name) &&
              trpi_member_add(event ? cJSON_AddObjectToObject(event, "member") : NULL, member) &&
              trpi_json_add_bool(event, "snapshot", true);
    trpi_bridge_voice_write(ctx, &s->voice, trpi_bridge_print(event, ok));
}

/* The present members come first, as events; a change meanwhile may be told twice. */
static void
events_do(trp_ctx *ctx, session *s, const trpi_bridge_request *request)
{
    trp_member *members = trpi_alloc(MEMBERS_MAX * sizeof *members);
    uint32_t bits = request->event_bits;
    size_t count = 0;
    if (members == NULL) {
        trpi_fail_as(ctx, TRP_ENOMEM, "the members cannot be shown");
    }
    atomic_store(&s->voice.bridge->event_bits, bits);
    trp_err err = trp_cluster_members(s->voice.bridge->system, members, MEMBERS_MAX, &count);
    trpi_bridge_voice_ok(ctx, &s->voice, request);
    for (size_t i = 0; err == TRP_OK && i < count && i < MEMBERS_MAX; i++) {
        const char *name = event_of_status(members[i].status);
        if (is_wanted(bits, name)) {
            member_show(ctx, s, &members[i], name);
        }
        if (members[i].reachable == 0 && is_wanted(bits, "UnreachableMember")) {
            member_show(ctx, s, &members[i], "UnreachableMember");
        }
    }
    trpi_free(members);
}

static void
on_notice(trp_ctx *ctx, session *s, const trp_msg *msg)
{
    cJSON *object = NULL;
    if (trpi_json_parse(trp_msg_payload(msg), trp_msg_bytes(msg), &object, NULL) != TRP_OK) {
        return; /* no memory for it */
    }
    cJSON *event = trpi_bridge_event("cluster");
    bool ok = trpi_bridge_move(event, cJSON_DetachItemFromObject(object, "event"));
    cJSON_Delete(object);
    trpi_bridge_voice_write(ctx, &s->voice, trpi_bridge_print(event, ok));
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
ping_do(trp_ctx *ctx, session *s, const trpi_bridge_request *request)
{
    if (request->has_id) {
        trpi_bridge_voice_ok(ctx, &s->voice, request);
    } else {
        trpi_bridge_voice_write(ctx, &s->voice, trpi_bridge_print(trpi_bridge_event("pong"), true));
    }
}

/* Takes what request holds. */
static trp_err
request_route(trp_ctx *ctx, session *s, trpi_bridge_request *request)
{
    trp_err err = TRP_OK;
    trp_ref actor = TRP_REF_NONE;
    bool names = request->actor[0] != '\0' && request->op != TRPI_BRIDGE_HOST;
    if (names) {
        actor = trp_child(ctx, request->actor);
    }
    if (names && trp_ref_is_none(actor)) {
        trpi_bridge_voice_refuse(ctx, &s->voice, request, TRPI_CTL_EXIT_NOT_FOUND,
                                 "{\"op\":\"host\",\"actor\":NAME} comes first",
                                 "this program hosts no actor '%.255s'", request->actor);
    } else if (names) {
        trpi_bridge_actor_order(ctx, actor, request); /* bridge-session-N2 */
    } else if (request->op == TRPI_BRIDGE_HOST) {
        host_do(ctx, s, request);
    } else if (request->op == TRPI_BRIDGE_EVENTS) {
        events_do(ctx, s, request);
    } else if (request->op == TRPI_BRIDGE_PING) {
        ping_do(ctx, s, request);
    } else {
        err = trpi_bridge_voice_do(ctx, &s->voice, request);
    }
    trpi_bridge_request_fini(request);
    return err;
}

struct feeding {
    trp_ctx *ctx;
    session *s;
    trp_err err;
};

static void
line_take(void *arg, uint64_t number, trp_err err, const char *text, size_t bytes)
{
    struct feeding *f = arg;
    trpi_bridge_request request;
    trpi_control_refusal refusal;
    if (f->err != TRP_OK) {
        return;
    }
    if (err != TRP_OK) {
        trpi_control_refuse(
            &refusal, err == TRP_ENOMEM ? TRPI_CTL_EXIT_INTERNAL : TRPI_CTL_EXIT_DATA,
            err == TRP_ENOMEM ? "out of memory" : "the line is longer than 1048576 bytes");
        trpi_bridge_voice_write(f->ctx, &f->s->voice, trpi_bridge_refuse(NULL, number, &refusal));
    } else if (trpi_bridge_request_parse(text, bytes, &request, &refusal) != TRP_OK) {
        trpi_bridge_voice_write(f->ctx, &f->s->voice,
                                trpi_bridge_refuse(&request, number, &refusal));
    } else {
        f->err = request_route(f->ctx, f->s, &request);
    }
}

static trp_err
on_received(trp_ctx *ctx, session *s, const trp_tcp_received *received)
{
    struct feeding f = { ctx, s, TRP_OK };
    trp_bytes rest = trp_bytes_ref(received->bytes);
    trp_bytes_part part;
    while (trp_bytes_length(rest) > 0 && trp_bytes_parts(rest, &part, 1) > 0) {
        trpi_bridge_lines_feed(&s->lines, part.data, part.bytes, line_take, &f);
        trp_bytes_skip(&rest, part.bytes);
    }
    trp_bytes_unref(&rest);
    read_on(ctx, s);
    return f.err;
}

/* ---- the process of a bridge that the node starts -------------------------------------------- */

static void
alarm_set(trp_ctx *ctx, uint32_t delay_ms)
{
    trp_err err = trp_timer_once(ctx, ALARM_KEY, delay_ms, &trpi_bridge_alarm_type, NULL, 0);
    if (err != TRP_OK) {
        trpi_fail_as(ctx, err, "no timer for the program");
    }
}

/* Start the process, or say why not, and try again after a pause. */
static trp_err
process_start(trp_ctx *ctx, session *s)
{
    trpi_bridge *b = s->voice.bridge;
    int stream = -1, errors = -1;
    int error = trpi_bridge_child_start(b->child, trp_now_ms(ctx), &stream, &errors);
    if (error != 0) {
        uint32_t pause_ms = trpi_bridge_child_pause(b->child, trp_now_ms(ctx));
        trp_log(ctx, TRP_LOG_ERROR,
                "%s cannot be started: %s; next try in %u ms: bridge.%s.command", b->child->argv[0],
                strerror(error), pause_ms, b->name);
        alarm_set(ctx, pause_ms);
        return TRP_OK;
    }
    trp_log(ctx, TRP_LOG_INFO, "%s runs as process %ld", b->child->argv[0], (long)b->child->pid);
    trp_err err = trpi_io_adopt(ctx, stream, trp_self(ctx));
    trp_err of_errors = trpi_bridge_errors_spawn(ctx, b, errors);
    return err != TRP_OK ? err : of_errors;
}

/* The process has gone, or closed its output: its actors end, and it has to. */
static void
process_end(trp_ctx *ctx, session *s)
{
    trp_ref nobody = TRP_REF_NONE;
    for (trp_ref child = trp_child_next(ctx, nobody); !trp_ref_is_none(child);
         child = trp_child_next(ctx, child)) {
        trp_stop(ctx, child);
    }
    trpi_bridge_voice_end(ctx, &s->voice);
    trpi_bridge_lines_fini(&s->lines);
    atomic_store(&s->voice.bridge->event_bits, 0);
    s->ending_ms = trp_now_ms(ctx);
    s->over_ms = 0;
    alarm_set(ctx, REAP_MS);
}

/* bridge-session-N5 */
static void
process_look(trp_ctx *ctx, session *s)
{
    trpi_bridge *b = s->voice.bridge;
    uint64_t now_ms = trp_now_ms(ctx);
    if (s->over_ms == 0 && trpi_bridge_child_is_over(b->child)) {
        s->over_ms = now_ms;
        trpi_bridge_child_signal(b->child, SIGTERM);
    } else if (s->over_ms != 0 && now_ms - s->over_ms > KILL_MS) {
        trp_tell(ctx, s->voice.connection, &trp_tcp_abort_type, NULL, 0);
    } else if (s->over_ms != 0 && now_ms - s->over_ms > TERM_MS) {
        trpi_bridge_child_signal(b->child, SIGKILL);
    }
    alarm_set(ctx, s->over_ms != 0 ? REAP_MS : WATCH_MS);
}

/* bridge-session-N4 */
static trp_err
on_alarm(trp_ctx *ctx, session *s)
{
    trpi_bridge *b = s->voice.bridge;
    uint64_t now_ms = trp_now_ms(ctx);
    if (b->child == NULL) {
        return TRP_OK;
    }
    if (!trp_ref_is_none(s->voice.connection)) {
        process_look(ctx, s);
        return TRP_OK;
    }
    if (s->ending_ms == 0) {
        return process_start(ctx, s);
    }
    bool is_left = b->child->pid == 0 && now_ms - s->ending_ms > LEAVE_MS;
    if (!trpi_bridge_child_reap(b->child) && !is_left) {
        bool late = now_ms - s->ending_ms > TERM_MS;
        if (late) {
            trpi_bridge_child_signal(b->child, now_ms - s->ending_ms > KILL_MS ? SIGKILL : SIGTERM);
        }
        alarm_set(ctx, REAP_MS);
        return TRP_OK;
    }
    if (trp_children_count(ctx) > 0) { /* their names must be free */
        alarm_set(ctx, REAP_MS);
        return TRP_OK;
    }
    uint32_t pause_ms = trpi_bridge_child_pause(b->child, now_ms);
    trp_log(ctx, TRP_LOG_WARNING, "%s %s; it is started again in %u ms", b->child->argv[0],
            b->child->how, pause_ms);
    s->ending_ms = 0;
    alarm_set(ctx, pause_ms);
    return TRP_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
on_stream(trp_ctx *ctx, const trpi_bridge_stream *stream)
{
    int fd = atomic_exchange(&((trpi_bridge_stream *)(uintptr_t)stream)->fd, -1);
    return fd < 0 ? TRP_OK : trpi_io_adopt(ctx, fd, trp_self(ctx));
}

static void
on_connected(trp_ctx *ctx, session *s)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_tcp_register_options options = TRP_TCP_REGISTER_OPTIONS_INIT;
    options.pull = 1;
    options.low_bytes = options.high_bytes = options.max_bytes = BUFFER_BYTES;
    trp_err err = trp_tcp_register(ctx, trp_sender(ctx), trp_self(ctx), &options);
    if (err != TRP_OK) {
        trpi_fail_as(ctx, err, "the connection of the program cannot be registered");
    }
    s->voice.connection = trp_sender(ctx);
    cJSON *event = trpi_bridge_event("ready");
    bool ok =
        trpi_json_add_i64(event, "protocol", PROTOCOL) &&
        trpi_json_add_text(event, "version", trp_version()) &&
        trpi_json_add_text(event, "node", s->voice.bridge->node->address) &&
        trpi_json_add_text(event, "path",
                           trp_path(s->voice.bridge->system, trp_self(ctx), path, sizeof path)) &&
        trpi_json_add_i64(event, "lineBytesMax", TRPI_BRIDGE_LINE_BYTES_MAX);
    trpi_bridge_voice_write(ctx, &s->voice, trpi_bridge_print(event, ok));
    trpi_bridge_voice_go_on(ctx, &s->voice);
    if (s->voice.bridge->child != NULL) {
        alarm_set(ctx, WATCH_MS);
    }
    read_on(ctx, s);
}

static void
on_closed(trp_ctx *ctx, session *s, const trp_tcp_closed *closed)
{
    trp_ref nobody = TRP_REF_NONE;
    trp_log(ctx, TRP_LOG_DEBUG, "the program has gone%s%s", closed->reason[0] != '\0' ? ": " : "",
            closed->reason);
    s->voice.connection = nobody;
    if (s->voice.bridge->child != NULL) {
        process_end(ctx, s);
    } else {
        trp_stop(ctx, trp_self(ctx)); /* bridge-session-N3 */
    }
}

static trp_err
session_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    session *s = state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    const trp_tcp_closed *closed = trp_msg_as(msg, &trp_tcp_closed_type);
    const trpi_bridge_order *order = trp_msg_held(msg, &trpi_bridge_order_type);
    const trpi_bridge_stream *stream = trp_msg_held(msg, &trpi_bridge_stream_type);
    if (received != NULL) {
        return on_received(ctx, s, received);
    }
    if (stream != NULL) {
        return on_stream(ctx, stream);
    }
    if (order != NULL) {
        stop_do(ctx, s, &order->request, trp_sender(ctx));
        return TRP_OK;
    }
    if (closed != NULL) {
        on_closed(ctx, s, closed);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        on_connected(ctx, s);
    } else if (trp_msg_is(msg, &trpi_bridge_go_on_type)) {
        read_on(ctx, s);
    } else if (trp_msg_is(msg, &trpi_bridge_alarm_type)) {
        return on_alarm(ctx, s);
    } else if (trp_msg_is(msg, &trpi_bridge_notice_type)) {
        on_notice(ctx, s, msg);
    } else {
        return trpi_bridge_voice_receive(ctx, &s->voice, msg);
    }
    return TRP_OK;
}

static trp_err
session_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    session *s = state;
    trpi_bridge *b = ((const trpi_session_args *)trp_msg_payload(args))->bridge;
    s->voice.bridge = b;
    s->voice.actor = "";
    pthread_mutex_lock(&b->node->lock);
    b->session = trp_self(ctx);
    pthread_mutex_unlock(&b->node->lock);
    if (b->child != NULL &&
        (b->child->pid != 0 || b->child->group != 0)) { /* of the state before a restart */
        process_end(ctx, s);
        return TRP_OK;
    }
    return b->child != NULL ? process_start(ctx, s) : TRP_OK;
}

static void
session_stopped(trp_ctx *ctx, void *state)
{
    session *s = state;
    trpi_bridge_lines_fini(&s->lines);
    if (s->voice.bridge != NULL) {
        trpi_bridge_voice_end(ctx, &s->voice);
        if (s->voice.bridge->child != NULL) { /* that is the node's */
            trpi_bridge_child_signal(s->voice.bridge->child, SIGTERM);
        } else {
            trpi_bridge_over(s->voice.bridge);
        }
        s->voice.bridge = NULL;
    }
}

/* A program that has begun the bridge itself cannot be connected again. */
static trp_err
session_restarted(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    const trpi_session_args *a = trp_msg_payload(args);
    (void)why;
    return a->supervised ? session_start(ctx, state, args) : TRP_EINIT;
}

static const trp_strategy strategy = { .size = sizeof(trp_strategy),
                                       .decider = trp_stopping_decider };

const trp_behaviour trpi_bridge_session_behaviour = { .size = sizeof(trp_behaviour),
                                                      .name = "bridge",
                                                      .version = 1,
                                                      .state_bytes = sizeof(session),
                                                      .receive = session_receive,
                                                      .pre_start = session_start,
                                                      .post_stop = session_stopped,
                                                      .post_restart = session_restarted,
                                                      .strategy = &strategy };
