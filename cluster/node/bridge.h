/* bridge.h - programs in any language that host actors of this node: shared by the bridge's files.
 *
 * A bridge is an actor, /user/NAME, that speaks lines of JSON (docs/bridge.md) with one program,
 * over a connection of src/io. The actors that the program hosts are its children. Each of these
 * actors has a voice: it writes its own lines to the connection, and handles the requests that name
 * it, so that sender, order and traces are those of an ordinary actor. */
#ifndef TRPI_NODE_BRIDGE_H
#define TRPI_NODE_BRIDGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "cluster/node/bridge_request.h"
#include "cluster/node/control.h"

#define TRPI_BRIDGES_MAX 64u          /* of one node at a time */
#define TRPI_BRIDGE_ACTORS_MAX 256u   /* that one program hosts */
#define TRPI_BRIDGE_ASKS_MAX 256u     /* of one program, that wait for an answer; watches, too */
#define TRPI_BRIDGE_WATCHES_MAX 1024u /* of one program */
#define TRPI_BRIDGE_REPLIES_MAX 1024u /* senders that an actor can reply to: the latest */
#define TRPI_BRIDGE_WAITING_MAX 1000u /* messages of one actor that wait for the program to read */
/* Bytes that wait for the program to read, before messages wait in its actors and requests of its
 * own are not read. Above it each actor has at most one line on its way. */
#define TRPI_BRIDGE_HIGH_BYTES 1048576u
#define TRPI_BRIDGE_LOW_BYTES (TRPI_BRIDGE_HIGH_BYTES / 2)

struct trp_node;
struct trpi_bridge_child;

/* One program: what its session and its actors share. */
typedef struct trpi_bridge {
    struct trpi_bridge *next; /* with the node's lock, as session */
    struct trp_node *node;
    trp_system *system;
    trp_ref session;
    struct trpi_bridge_child *child; /* NULL: the program has begun the bridge */
    _Atomic uint64_t unwritten;      /* bytes of lines that the kernel has not taken */
    _Atomic bool waits;              /* the session reads on when unwritten is low */
    _Atomic uint32_t event_bits;     /* of the cluster; 0: none are wanted */
    _Atomic uint32_t asks, watches;
    char name[TRP_NAME_BYTES_MAX + 1];
} trpi_bridge;

/* ---- voices: bridge_voice.c ------------------------------------------------------------------ */

struct trpi_bridge_watch;
struct trpi_bridge_ack;
struct trpi_bridge_sender;
typedef struct trpi_bridge_voice {
    trpi_bridge *bridge;
    trp_ref connection;                 /* none: the program is not connected */
    const char *actor;                  /* "": of the session */
    uint64_t unwritten;                 /* of the bridge's, by this voice */
    uint64_t replies;                   /* number of the last message with a sender */
    bool stashed;                       /* messages wait in the stash */
    bool ending;                        /* the program stops it: its messages stay where they are */
    struct waiting *waitings;           /* asks and watches that wait for an answer */
    struct trpi_bridge_sender *senders; /* a ring; NULL: none yet */
    struct trpi_bridge_watch *watches;
    struct trpi_bridge_ack *acks; /* of the mediator, that are to come */
} trpi_bridge_voice;

/* Handle a message that is not the behaviour's own: an answer to what the voice has done, or a
 * message for the program. */
trp_err trpi_bridge_voice_receive(trp_ctx *ctx, trpi_bridge_voice *v, const trp_msg *msg);
/* Do what a request says, as part of its trace. Borrows request. */
trp_err trpi_bridge_voice_do(trp_ctx *ctx, trpi_bridge_voice *v,
                             const trpi_bridge_request *request);
/* Write a line, which it takes; NULL fails the actor for want of memory. */
void trpi_bridge_voice_write(trp_ctx *ctx, trpi_bridge_voice *v, char *line);
/* Refuse a request in words. */
void trpi_bridge_voice_refuse(trp_ctx *ctx, trpi_bridge_voice *v,
                              const trpi_bridge_request *request, int exit_code, const char *hint,
                              const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Answer {"id":N,"ok":true}, if the request has an id. */
void trpi_bridge_voice_ok(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request);
/* Watch an actor by its ref, as `to`. Errors: TRP_ELIMIT, those of trp_watch. */
trp_err trpi_bridge_voice_watch(trp_ctx *ctx, trpi_bridge_voice *v, trp_ref ref, const char *to);
/* Put waiting messages back into the mailbox, if the program reads. */
void trpi_bridge_voice_go_on(trp_ctx *ctx, trpi_bridge_voice *v);
/* The program has gone, or the actor ends: asks that it has not answered fail. */
void trpi_bridge_voice_end(trp_ctx *ctx, trpi_bridge_voice *v);

/* ---- actors: bridge_actor.c, bridge_session.c ------------------------------------------------ */

typedef struct trpi_bridge_order {
    trpi_bridge_request request;
} trpi_bridge_order;
/* To an actor: a request that names it. To the session, from an actor: stop me now. */
extern trp_type trpi_bridge_order_type;
extern trp_type trpi_bridge_alarm_type;  /* to itself: look after the process */
extern trp_type trpi_bridge_go_on_type;  /* to the session: unwritten is low */
extern trp_type trpi_bridge_notice_type; /* to the session: an event of the cluster, as JSON text */
extern trp_type trpi_bridge_stream_type; /* to the session: trpi_bridge_stream */
extern const trp_protocol trpi_bridge_protocol;

/* The program's stream, as a message to the session holds it. */
typedef struct trpi_bridge_stream {
    _Atomic int fd; /* set to -1 by its taker; else it is closed with the message */
} trpi_bridge_stream;
/* Tell it. Takes fd, always. Errors: TRP_ENOMEM. Thread: any. */
trp_err trpi_bridge_stream_give(trp_system *system, trp_ref session, int fd);

/* Host an actor, as a child of the running session. Errors: those of trp_spawn. */
trp_err trpi_bridge_actor_spawn(trp_ctx *ctx, const trpi_bridge_voice *session, const char *name,
                                trp_ref *ret_ref);
/* Give a request to the actor that it names. Takes what request holds, always. */
void trpi_bridge_actor_order(trp_ctx *ctx, trp_ref actor, trpi_bridge_request *request);

/* The arguments of a session. */
typedef struct trpi_session_args {
    trpi_bridge *bridge;
    uint64_t supervised; /* 1: it has a child, and bridge lives as long as the node */
} trpi_session_args;
extern const trp_behaviour trpi_bridge_session_behaviour;

/* ---- the node's bridges: bridge.c ------------------------------------------------------------ */

/* Serve `bridge`: the call's connection becomes the stream of a session. */
void trpi_node_serve_bridge(struct trp_node *node, trpi_call *call);
/* Start the programs of the configuration. Errors: TRP_ECONFIG (the name of a bridge is no name of
 * an actor, or is taken), TRP_ELIMIT, TRP_ENOMEM; *ret_what says which. */
trp_err trpi_bridges_begin(struct trp_node *node, char *ret_what, size_t what_bytes);
/* An event of the cluster, {"event":{...}}, for the programs that want it. Any thread. */
void trpi_bridges_event(struct trp_node *node, unsigned index, const char *text);
bool trpi_bridges_hear(struct trp_node *node); /* is any event wanted? */
void trpi_bridge_over(trpi_bridge *bridge);    /* its session has ended: free it */
void trpi_bridges_free(struct trp_node *node); /* the system has been freed */

#endif
