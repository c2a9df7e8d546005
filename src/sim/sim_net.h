/* sim_net.h - sockets of a simulated network, in memory and under one seed: the twin of
 * base/net_machine.c.
 *
 * A world of hosts. Host h has the addresses 10.0.x.y (x * 256 + y = h + 1), fd00::(h + 1),
 * 127.0.0.0/8 and ::1, and names of Unix-domain sockets of its own; world->host says whose code
 * runs. Without faults and delays the sockets answer as the machine's do on one host. A socket is
 * in one set at most. See sim_net.c for what is left out.
 */
#ifndef TRPI_SIM_SIM_NET_H
#define TRPI_SIM_SIM_NET_H

#include "base/net.h"
#include "sim/mem_transport.h"

#define TRPI_SIM_HOSTS_MAX 1024u
#define TRPI_SIM_SOCKETS_DEFAULT 65536u /* that one host may have open; then -EMFILE */
#define TRPI_SIM_SOCKET_FIRST (1 << 20) /* numbers begin here, and none is used again */
#define TRPI_SIM_HOST_BYTES 16          /* of its name, "n12" */

typedef struct trpi_sim_net trpi_sim_net;

/* The faults by chance: of 1,000, but for delay_ns. */
typedef struct trpi_sim_faults {
    uint32_t refused;    /* connects that are refused, or that nobody answers */
    uint32_t reset;      /* writes of which only a part arrives, and then the connection is reset */
    uint32_t partial;    /* writes that are taken or carried in parts; buffers are small */
    uint32_t lost;       /* datagrams */
    uint32_t duplicated; /* datagrams */
    uint32_t spurious;   /* reports that are not true any more */
    uint64_t delay_ns;   /* of each segment and datagram between hosts, drawn up to that */
} trpi_sim_faults;

/* Gives *ret_net, which must outlive the systems of world. seed: of its own random numbers.
 * Errors: TRP_ENOMEM. */
trp_err trpi_sim_net_new(trpi_world *world, uint64_t seed, trpi_sim_net **ret_net);
void trpi_sim_net_free(trpi_sim_net *net); /* NULL is fine */

void trpi_sim_net_faults_set(trpi_sim_net *net, const trpi_sim_faults *faults); /* NULL: none */
/* Asked about each connect, segment and datagram between two hosts: as the fault of a network of
 * mem_transport.h, so one function may serve both. In a cut direction a datagram is lost, and a
 * stream is reset (TRPI_MEM_CUT) or carries nothing any more (TRPI_MEM_DROP). NULL: none. */
void trpi_sim_net_link_set(trpi_sim_net *net, trpi_mem_fault_fn link, void *arg);
/* Reset the connections of a host with others: of their ends too. */
void trpi_sim_net_reset(trpi_sim_net *net, uint32_t host);
/* Let all that a link holds back arrive now. */
void trpi_sim_net_hasten(trpi_sim_net *net);

/* Name a host for the fault function and for trpi_sim_net_find(). At first "h0", "h1", ... */
void trpi_sim_net_name(trpi_sim_net *net, uint32_t host, const char *name);
/* The host of this name; TRPI_SIM_HOSTS_MAX: none. */
uint32_t trpi_sim_net_find(const trpi_sim_net *net, const char *name);
/* Its IPv4 address as text, "10.0.0.1". */
void trpi_sim_net_address(uint32_t host, char *ret_text, size_t bytes);
void trpi_sim_net_limit(trpi_sim_net *net, uint32_t host, uint32_t sockets_max);
uint32_t trpi_sim_net_open(const trpi_sim_net *net, uint32_t host); /* its open sockets */
/* End the process of a host: close what it has open. */
void trpi_sim_net_end(trpi_sim_net *net, uint32_t host);
/* Calls that named no open socket: on the machine such a call may hit another's. */
uint64_t trpi_sim_net_misuses(const trpi_sim_net *net);

extern const trpi_net_ops trpi_sim_net_ops; /* of a world whose net member is set */

#endif
