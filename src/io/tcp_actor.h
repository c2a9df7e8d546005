/* tcp_actor.h - the state of a connection's actor, shared by its two files. */
#ifndef TRPI_IO_TCP_ACTOR_H
#define TRPI_IO_TCP_ACTOR_H

#include "io/io.h"
#include "io/tcp_conn.h"

#define TRPI_TCP_READ_SMALL 4096u /* read into the stack, then copied */
#define TRPI_TCP_IOV_MAX 32

#define TRPI_TCP_ALARM_KEY 1u /* of the actor's one timer */

struct trpi_tcp_tls; /* tcp_tls.h */

/* A part of a write that waits. */
typedef struct trpi_tcp_out {
    trpi_tcp_part part; /* the brain's; first */
    trp_bytes bytes;
    int file;       /* -1: bytes */
    uint32_t index; /* in its command */
    off_t offset;
    uint64_t ack, write;
    trp_ref writer;
} trpi_tcp_out;

typedef struct trpi_tcp_actor {
    trpi_tcp_conn conn;
    trpi_io *io;
    trpi_io_socket *socket; /* NULL: not open, or ended */
    trp_ref handler;        /* TRP_REF_NONE until it registers, and after its end */
    trp_ref asker;          /* of RESUME_WRITING; before the connection is there: of connect */
    trp_ref closer;         /* that gave the last order to close */
    bool readable, writable, large, counted, connecting;
    bool local;               /* a Unix-domain stream */
    bool drain;               /* a short read does not mean that nothing is left */
    bool lingering;           /* its end was told; the last bytes of TLS are still to be sent */
    bool looping;             /* a message to go on is on its way */
    uint32_t next;            /* address to try */
    trp_msg *command;         /* of connect, while connecting */
    struct trpi_tcp_tls *tls; /* NULL: none */
    uint64_t unhandled_max, read_bytes, written_bytes, writes;
    uint32_t flush_ms;
    int error; /* of the last address that was tried */
    bool one_used;
    trpi_tcp_out one; /* a part that needs no memory of its own: one write at a time is usual */
} trpi_tcp_actor;

/* The connection is there: tell who, and wait for a handler. */
void trpi_tcp_actor_begin(trp_ctx *ctx, trpi_tcp_actor *a, trp_ref who, uint64_t number,
                          uint32_t register_ms);
/* Give the brain an event and carry out what it says. */
void trpi_tcp_actor_step(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_event *event);
/* Read and write what can be read and written, within a bound. */
void trpi_tcp_actor_pump(trp_ctx *ctx, trpi_tcp_actor *a);
/* Take a write command. */
void trpi_tcp_actor_write(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_write *write);
/* Tell the sender of the present message that its command failed. */
void trpi_tcp_actor_refuse(trp_ctx *ctx, trp_tcp_command command, uint64_t number, int error);
void trpi_tcp_actor_out_free(trpi_tcp_actor *a, trpi_tcp_out *out);

#endif
