/* remote.h - the door of the remote room: start remoting on a system, send and receive control
 * frames, ask about peers. Everything else of remoting happens behind trpi_remote_ops
 * (actor/actor.h).
 */
#ifndef TRPI_REMOTE_REMOTE_H
#define TRPI_REMOTE_REMOTE_H

#include "actor/actor.h"
#include "remote/association/options.h"
#include "remote/faults/fault_text.h"
#include "remote/faults/faults.h"
#include "remote/security/trouble.h"
#include "base/config.h"

/* Listen, advertise the address in the system and register as the system's remoting.
 * Errors: TRP_EINVAL (wildcard advertised, bad host), TRP_EADDRINUSE, TRP_EIO, TRP_ENOMEM,
 *         TRP_ECONFIG (files of TLS, cookie). */
trp_err trpi_remote_start(trp_system *system, const trpi_remote_options *options,
                          trpi_remote **ret_remote);
/* Accept connections, with the option accepts_later; those since the start are accepted now. Call
 * it once. Thread: owner. */
void trpi_remote_accept(trpi_remote *remote);
/* Flush, send GOODBYE to peers, close. Before trp_system_free(), after or before trp_system_stop().
 * NULL is fine. */
void trpi_remote_stop(trpi_remote *remote);
const trpi_address *trpi_remote_address(const trpi_remote *remote); /* advertised, port filled in */

/* ---- control frames for upper rooms (gossip, heartbeats, node queries) ----------------------- */
/* Set the receiver of a channel. fn NULL removes it, and returns when no call is in progress. */
void trpi_remote_control_bind(trpi_remote *remote, enum trpi_control_channel channel,
                              trpi_control_fn fn, void *arg);
/* Answer requests of the heartbeats' channel by reply where control lanes have a thread of their
 * own (the driver poll); the channel's receiver gets the rest, and all elsewhere. NULL: hand on
 * all. Thread: any. */
void trpi_remote_beats_answer(trpi_remote *remote, trpi_beat_reply reply);
/* Read answers to this node's own heartbeats by asked: they show that a peer is there, so that it
 * is sent no PING beside them (tick-T1). NULL: none are read. Thread: any. */
void trpi_remote_beats_read(trpi_remote *remote, trpi_beat_asked asked);
/* Send on the control lane, at most once. to->uid 0: the incarnation that lives at the address;
 * else only that one. Opens an association when there is none (frames wait, bounded, while it is
 * opened).
 * Errors: TRP_EQUARANTINED, TRP_EAGAIN (gated or control lane full), TRP_EMSGSIZE, TRP_ENOMEM,
 *         TRP_ECLOSED.
 * Thread: any; never blocks. */
trp_err trpi_remote_control_send(trpi_remote *remote, const trpi_node_id *to,
                                 enum trpi_control_channel channel, const void *bytes,
                                 size_t count);

/* Does that incarnation take gossip of drained members (TRPI_FEATURE_MARKS)? UNKNOWN: it was not
 * met. Thread: any; never blocks. */
typedef enum trpi_takes {
    TRPI_TAKES_UNKNOWN = 0,
    TRPI_TAKES_NO = 1,
    TRPI_TAKES_YES = 2
} trpi_takes;
trpi_takes trpi_remote_takes_marks(trpi_remote *remote, const trpi_node_id *id);
bool trpi_remote_offers_marks(const trpi_remote *remote); /* this node does */

/* No more communication with that incarnation; its watchers are told. Thread: any. */
void trpi_remote_quarantine(trpi_remote *remote, const trpi_node_id *id, const char *reason);

/* Choose the failure detector for a node with watched actors: remoting's own heartbeats, or
 * (delegated) the cluster, which then calls trpi_remote_quarantine() or trpi_node_terminated() when
 * the member is removed (FD-19, -20). */
void trpi_remote_watch_delegate(trpi_remote *remote, const trpi_address *address, bool delegated);

/* ---- clients: peers without a host, and what they may send to -------------------------------- */
/* Accept so many of them; 0: none, as at the start. Thread: any. */
void trpi_remote_clients_accept(trpi_remote *remote, uint32_t clients_max);
uint32_t trpi_remote_clients_count(trpi_remote *remote); /* that are connected */
/* From now on messages of the client with that uid reach this actor here; until it is closed, which
 * is for the caller to do when the actor ends. Errors: TRP_ELIMIT (TRPI_DOORS_MAX), TRP_ENOMEM.
 * Thread: any. */
trp_err trpi_remote_door_open(trpi_remote *remote, trp_ref ref, uint64_t uid);
void trpi_remote_door_close(trpi_remote *remote, trp_ref ref);
/* Write the name in the certificate that a client has shown. false: none. Thread: any. */
bool trpi_remote_certificate_name(trpi_remote *remote, const trpi_address *address, char *ret_name,
                                  size_t bytes);
/* Return whether the node that was reached at address has refused the last handshake because its
 * own address is another one, which is given. Thread: any. */
bool trpi_remote_is_elsewhere(trpi_remote *remote, const trpi_address *address,
                              trpi_address *ret_address);

/* Read the files of TLS again, and take these cookies (both NULL: keep the present ones), soon and
 * on another thread; the log has the result. Errors: TRP_ESTATE (neither TLS nor cookie is in use),
 * TRP_EINVAL (too long). Thread: any; never blocks. */
trp_err trpi_remote_secrets_reload(trpi_remote *remote, const char *cookie,
                                   const char *cookie_before);

/* Is every such reload over? Then trpi_remote_trouble() has its result. Thread: any. */
bool trpi_remote_secrets_are_reloaded(trpi_remote *remote);

/* ---- loopback: the way of a message from another node, without another node ------------------ */
typedef struct trpi_loopback trpi_loopback;
/* Open a pair of sockets whose far end the system's poller reads: what is sent is reported, read,
 * decoded and delivered as a message of a peer is. Errors: TRP_EUNSUPPORTED (the world has no
 * sockets), TRP_EIO (no descriptor is left), TRP_ENOMEM, TRP_ECLOSED. Thread: any. */
trp_err trpi_remote_loopback_open(trpi_remote *remote, trpi_loopback **ret_loopback);
/* Send a message of trp_bytes_type to an actor of this system. Errors: TRP_EAGAIN (the poller has
 * not read what was sent before), TRP_ENOMEM. Thread: one at a time; never blocks. */
trp_err trpi_remote_loopback_send(trpi_loopback *loopback, trp_ref to, const void *bytes,
                                  size_t count);
/* Its memory is given back when the poller has let go of it. NULL is fine. Thread: owner. */
void trpi_remote_loopback_close(trpi_loopback *loopback);

/* Return the rules of the adapters throttle and gremlin, which live as long as remoting. NULL:
 * started without test_adapters. Thread: any. */
trpi_faults *trpi_remote_faults(trpi_remote *remote);

/* ---- status ---------------------------------------------------------------------------------- */
typedef struct trpi_tls_state {
    char subject[65], issuer[65];
    int64_t not_after_ms; /* wall clock */
} trpi_tls_state;
/* Describe the certificate in use. false: no TLS. */
bool trpi_remote_tls_state(trpi_remote *remote, trpi_tls_state *ret_state);
/* Describe a present or coming problem with this node's certificates, and what to do. false: none
 * of that kind. Thread: any. */
bool trpi_remote_trouble(trpi_remote *remote, trpi_trouble kind, trpi_trouble_text *ret_text);
/* Return when the certificate expires that the node at address has shown last; 0: not known. */
int64_t trpi_remote_certificate_until(trpi_remote *remote, const trpi_address *address);

/* Copy up to max peers, sorted by address; *ret_count is the number of all. */
void trpi_remote_peers(trpi_remote *remote, trpi_peer_info *peers, size_t max, size_t *ret_count);

/* Return whether the last attempt to reach address failed in the authentication of either side (a
 * certificate, a cookie, plain against TLS). Copies the reason. *ret_attempts: failed attempts
 * since it was last reached. */
bool trpi_remote_is_refused(trpi_remote *remote, const trpi_address *address,
                            uint32_t *ret_attempts, char *ret_reason, size_t reason_bytes);

/* Return how many handshakes of this node were refused because the peer has quarantined it. */
uint64_t trpi_remote_barred_count(trpi_remote *remote);
/* Return whether that incarnation (uid 0: the last one there that said so) refuses this one for
 * that reason, and there is no association. */
bool trpi_remote_is_barred_by(trpi_remote *remote, const trpi_node_id *id);
/* Return whether, since the last call, an incarnation from that address made a handshake which has
 * quarantined this node, or is quarantined here. Gives its uid. */
bool trpi_remote_foreign_heard(trpi_remote *remote, const trpi_address *address, uint64_t *ret_uid);
/* Dial it soon, however long the back-off has become. Thread: any; never blocks. */
void trpi_remote_hurry(trpi_remote *remote, const trpi_address *address);
/* Check whether this node can dial that incarnation at its address. Call it again with the same
 * reach, zero at first, while it returns TRP_EAGAIN: the first call dials, unless a connection that
 * this node dialled is open. Errors, with *ret_why: TRP_ECONN (it cannot be dialled), TRP_ECLOSED
 * (another incarnation answers, or remoting stops), TRP_EQUARANTINED, TRP_ELIMIT, TRP_ENOMEM;
 * TRP_EINVAL: this node's own address. Thread: any; never blocks. */
typedef struct trpi_reach { /* zero at first */
    bool begun;
    uint32_t failed;
} trpi_reach;
trp_err trpi_remote_reach(trpi_remote *remote, const trpi_node_id *id, trpi_reach *reach,
                          char *ret_why, size_t why_bytes);
/* Describe why messages to address are not sent at present; false: no such problem is known. */
bool trpi_remote_problem(trpi_remote *remote, const trpi_address *address, char *ret_text,
                         size_t bytes);
/* Is that text of a peer whose port answers, while one of the two refuses what the other shows? */
bool trpi_remote_problem_is_refusal(const char *text);

/* Return whether the last attempt failed because of another system's name or a cookie. *ret_why:
 * "KEY: why". */
bool trpi_remote_is_incompatible(trpi_remote *remote, const trpi_address *address, char *ret_why,
                                 size_t why_bytes);
/* Return whether that peer refuses this node in favour of another node that has, or had, this
 * node's address. The peer is alive then. */
bool trpi_remote_has_rival(trpi_remote *remote, const trpi_address *address);
/* Write "#DIGEST" or "#DIGEST,#DIGEST" of these cookies, "#" without any: two nodes can compare
 * them without showing the cookies. Errors: TRP_EIO (no digest). */
#define TRPI_REMOTE_SECRETS_BYTES 48
trp_err trpi_remote_secrets_digest(const char *cookie, const char *cookie_before,
                                   char ret_text[TRPI_REMOTE_SECRETS_BYTES]);

typedef struct trpi_remote_stats {
    uint64_t accepted, handshakes_failed, garbage, oversize, wrong_version, handshake_timeouts,
        frames_in, frames_out, decode_errors, redelivered, quarantined, frames_skipped,
        frames_stale;                     /* messages and signals of a replaced connection */
    uint64_t refused[TRPI_REFUSAL_COUNT]; /* by trpi_refusal */
    uint64_t untrusted_dropped, deployments_refused;
    uint64_t unfinished_refused, unfinished_late; /* connections closed for an incomplete frame */
    uint64_t gave_way;                            /* peers forgotten in favour of others */
    uint32_t pending, pending_max; /* connections in their handshake, and the limit */
    uint64_t starved;              /* connections without a free descriptor */
    /* time since the last of these, and since a pending one was closed for a newcomer; UINT64_MAX:
     * never */
    uint64_t starved_ago_ms, displaced_ago_ms;
} trpi_remote_stats;
void trpi_remote_stats_get(trpi_remote *remote, trpi_remote_stats *ret_stats);

/* The configuration keys that remoting reads (keys.c). */
extern const trpi_config_part trpi_remote_keys;

/* Built-in types (event_types.c). */
extern const struct trpi_type_part trpi_remote_types;

#endif
