/* faults.h - a transport that wraps another one and injects network faults, for tests: the adapters
 * throttle (rates, blackhole) and gremlin (loss, repetition, delay, reordering).
 *
 * The handshake tells the peer of a connection, so a rule for a peer holds for connections that
 * either side dialled. Rules may be set while connections are open. Units that the rest of a stream
 * depends on (preamble, LANE_OPEN, MANIFEST) are only delayed; the end of a connection is not
 * delayed.
 */
#ifndef TRPI_REMOTE_FAULTS_H
#define TRPI_REMOTE_FAULTS_H

#include "base/address.h"
#include "base/transport.h"
#include "remote/faults/fault_shaper.h"

#define TRPI_FAULT_RULES_MAX 256          /* peers with a rule */
#define TRPI_FAULT_HELD_BYTES_MAX 4194304 /* one way of a connection; then its writer waits */
#define TRPI_FAULT_PEER_ALL "*"
#define TRPI_FAULT_PEER_BYTES (TRPI_HOST_BYTES_MAX + 8) /* "host:port" and the NUL */

enum trpi_fault_direction { TRPI_FAULT_SEND = 1, TRPI_FAULT_RECEIVE = 2, TRPI_FAULT_BOTH = 3 };

typedef struct trpi_faults trpi_faults;

/* Make the faults of one system: trpi_faults_ops() and the result go into trpi_remote_options.
 * inner NULL: tcp on nng. Gives *ret_faults (trpi_faults_free, after the system's remoting has
 * stopped).
 * Errors: TRP_ENOMEM. */
trp_err trpi_faults_new(const trpi_transport_ops *inner, void *inner_arg, trpi_faults **ret_faults);
void trpi_faults_free(trpi_faults *faults);                           /* NULL is fine */
const trpi_transport_ops *trpi_faults_ops(const trpi_faults *faults); /* borrowed */

/* Set the rule of a peer from now on; peer is the "host:port" that a node advertises, or
 * TRPI_FAULT_PEER_ALL for all peers without a rule of their own. Frames that are queued already
 * keep their due time. Errors: TRP_EINVAL (rule), TRP_ELIMIT. Thread: any. */
trp_err trpi_faults_set(trpi_faults *faults, const char *peer, enum trpi_fault_direction direction,
                        const trpi_fault_rule *rule);
/* Write the name of the peer that advertises host:port. An IPv6 host has no brackets. */
void trpi_fault_peer_format(char out[TRPI_FAULT_PEER_BYTES], const char *host, uint16_t port);
typedef struct trpi_fault_entry {
    char peer[TRPI_FAULT_PEER_BYTES];
    trpi_fault_rule send, receive;
} trpi_fault_entry;
/* Copy up to max rules, sorted by peer; returns how many there are. Thread: any. */
uint32_t trpi_faults_list(trpi_faults *faults, trpi_fault_entry *entries, uint32_t max);
/* The rule that holds for peer: its own, or that of all. false: none. Thread: any. */
bool trpi_faults_find(trpi_faults *faults, const char *peer, trpi_fault_entry *ret_entry);
/* Close all open connections with peer at once and drop their queued frames. Returns how many.
 * Thread: any, but not while the system's remoting stops. */
uint32_t trpi_faults_disconnect(trpi_faults *faults, const char *peer);

typedef struct trpi_faults_stats {
    uint64_t passed, lost, repeated, delayed; /* frames */
    uint64_t cut_bytes;                       /* dropped when a connection ended */
} trpi_faults_stats;
void trpi_faults_stats_get(trpi_faults *faults, trpi_faults_stats *ret_stats);
/* The transport that is wrapped, while it is open. */
trpi_transport *trpi_faults_inner_transport(trpi_faults *faults);

#endif
