/* mem_transport.h - a network in memory: byte streams between transports of one process.
 *
 * For unit tests and the simulator. A network is stepped: each step delivers one event (a connect,
 * some bytes, a close) in order of its due time. A thread of its own can step it
 * (trpi_mem_network_thread_start). Faults are decided by one hook, so that a test writes its own:
 * loss, delay, partition, other cuts of the stream.
 */
#ifndef TRPI_SIM_MEM_TRANSPORT_H
#define TRPI_SIM_MEM_TRANSPORT_H

#include "base/transport.h"

#define TRPI_MEM_LINKS_MAX 65536 /* open ends in one network; then connect answers TRP_ENOMEM */

typedef struct trpi_mem_network trpi_mem_network;

typedef enum trpi_mem_verdict {
    TRPI_MEM_PASS = 0,
    TRPI_MEM_CUT = 1, /* both ends are closed; a connect is refused */
    TRPI_MEM_DROP =
        2 /* swallowed: the direction is dead from here on, without notice; a connect hangs */
} trpi_mem_verdict;
typedef struct trpi_mem_event {
    const char *from_host, *to_host; /* as given to connect and listen */
    uint16_t to_port;                /* of the listener, in both directions */
    bool connect;
    size_t bytes;
    uint64_t delay_ns;  /* out: due so much later; order within a stream is kept all the same */
    size_t bytes_first; /* out: 0, or deliver in two parts, the first of so many bytes */
} trpi_mem_event;
typedef trpi_mem_verdict (*trpi_mem_fault_fn)(void *arg, trpi_mem_event *event);

trp_err trpi_mem_network_new(trpi_mem_network **ret_network);
/* after the thread and all transports; NULL ok */
void trpi_mem_network_free(trpi_mem_network *network);
/* fn NULL: no faults. Takes effect for bytes that are sent from now on. */
void trpi_mem_network_fault_set(trpi_mem_network *network, trpi_mem_fault_fn fn, void *arg);
/* Deliver the next event; false: there is none. The network's clock (begins at 0) moves to its due
 * time. Callbacks come from here. Thread: one at a time. */
bool trpi_mem_network_step(trpi_mem_network *network);
/* Deliver all that is due until now_ns and set the clock to it; for a network beside another
 * clock. Thread: as step. */
void trpi_mem_network_advance(trpi_mem_network *network, uint64_t now_ns);
/* of the next event; UINT64_MAX: none */
uint64_t trpi_mem_network_due_ns(trpi_mem_network *network);
/* Step in a thread of its own, without waiting for delays; for tests with real systems. */
trp_err trpi_mem_network_thread_start(trpi_mem_network *network);
void trpi_mem_network_thread_stop(trpi_mem_network *network);
/* Close all links between two hosts (NULL: any) now, as a broken cable does. */
void trpi_mem_network_cut(trpi_mem_network *network, const char *host_a, const char *host_b);
/* Frames on their way for a later time than now_ns arrive then, in their order. */
void trpi_mem_network_hasten(trpi_mem_network *network, uint64_t now_ns);

/* The driver; transport_arg is a trpi_mem_network. In connect the dialling host is the one that the
 * transport listens on ("" before listen). Its stop() needs a running thread, or no open link. */
extern const trpi_transport_ops trpi_mem_transport_ops;

#endif
