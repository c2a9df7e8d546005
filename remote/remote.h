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
#include "remote/security/tls.h"
#include "base/config.h"

/* Listen, advertise the address in the system and register as its remoting.
 * Errors: TRP_EINVAL (wildcard advertised, bad host), TRP_EADDRINUSE, TRP_EIO, TRP_ENOMEM,
 *         TRP_ECONFIG (files of TLS, cookie). */
trp_err trpi_remote_start(trp_system *system, const trpi_remote_options *options,
                          trpi_remote **ret_remote);
/* accepts_later: from now on. Who has called since the start is let in now. Once. Thread: owner. */
void trpi_remote_accept(trpi_remote *remote);
/* Flush, say GOODBYE to peers, close. Before trp_system_free, after or before trp_system_stop. NULL
 * ok. */
void trpi_remote_stop(trpi_remote *remote);
const trpi_address *trpi_remote_address(const trpi_remote *remote); /* advertised, port filled in */

/* ---- control frames for upper rooms (gossip, heartbeats, node queries) ----------------------- */
/* fn NULL unbinds, and returns when no call is in progress. */
void trpi_remote_control_bind(trpi_remote *remote, enum trpi_control_channel channel,
                              trpi_control_fn fn, void *arg);
/* Send on the control lane, at most once. to->uid 0: whoever lives at the address; else only that
 * incarnation. Opens an association when there is none (frames wait, bounded, while it is opened).
 * Errors: TRP_EQUARANTINED, TRP_EAGAIN (gated or control lane full), TRP_EMSGSIZE, TRP_ENOMEM,
 *         TRP_ECLOSED.
 * Thread: any; never blocks. */
trp_err trpi_remote_control_send(trpi_remote *remote, const trpi_node_id *to,
                                 enum trpi_control_channel channel, const void *bytes,
                                 size_t count);

/* No more communication with that incarnation; its watchers are told. Thread: any. */
void trpi_remote_quarantine(trpi_remote *remote, const trpi_node_id *id, const char *reason);

/* Who judges the life of watched actors' node: remoting by its own heartbeats, or (delegated) the
 * cluster, which then calls trpi_remote_quarantine() or trpi_node_terminated() when the member is
 * removed (FD-19, -20). */
void trpi_remote_watch_delegate(trpi_remote *remote, const trpi_address *address, bool delegated);

/* Read the files of TLS again, and take these cookies (both NULL: as they are), soon and on another
 * thread; the log says what came of it. Errors: TRP_ESTATE (neither TLS nor cookie is in use),
 * TRP_EINVAL (too long). Thread: any; never blocks. */
trp_err trpi_remote_secrets_reload(trpi_remote *remote, const char *cookie,
                                   const char *cookie_before);

/* The rules of the adapters throttle and gremlin; they live as long as remoting does. NULL: not
 * started with test_adapters. Thread: any. */
trpi_faults *trpi_remote_faults(trpi_remote *remote);

/* ---- looking --------------------------------------------------------------------------------- */
typedef struct trpi_tls_state {
    char subject[65], issuer[65];
    int64_t not_after_ms; /* wall clock */
} trpi_tls_state;
/* The certificate in use. false: TLS is not. */
bool trpi_remote_tls_state(trpi_remote *remote, trpi_tls_state *ret_state);
/* What is wrong with this node's files, or soon will be, and what to do. false: nothing of that
 * kind. Thread: any. */
bool trpi_remote_trouble(trpi_remote *remote, trpi_trouble kind, trpi_trouble_text *ret_text);
/* When the certificate ends that the node at address has shown last; 0: not known. */
int64_t trpi_remote_certificate_until(trpi_remote *remote, const trpi_address *address);

/* Copy up to max peers, sorted by address; *ret_count the number there are. */
void trpi_remote_peers(trpi_remote *remote, trpi_peer_info *peers, size_t max, size_t *ret_count);

/* Did the last attempt to reach address fail for who one of both is (a certificate, a cookie, plain
 * against TLS)? Copies why. *ret_attempts: so many have failed since it was last reached. */
bool trpi_remote_is_refused(trpi_remote *remote, const trpi_address *address,
                            uint32_t *ret_attempts, char *ret_reason, size_t reason_bytes);

/* How many handshakes of this node were refused so far because the peer has quarantined it. */
uint64_t trpi_remote_barred_count(trpi_remote *remote);
/* Does that very incarnation refuse this one for that reason, and is there no association? */
bool trpi_remote_is_barred_by(trpi_remote *remote, const trpi_node_id *id);
/* Has an incarnation shaken hands from that address, since this was asked last, that has this one
 * quarantined, or is quarantined here? Gives its uid. */
bool trpi_remote_foreign_heard(trpi_remote *remote, const trpi_address *address, uint64_t *ret_uid);
/* Dial it soon, however long the pause between attempts has become. Thread: any; never blocks. */
void trpi_remote_hurry(trpi_remote *remote, const trpi_address *address);
/* Can this node dial that incarnation at its address? Call it again with the same reach, zero at
 * first, while it says TRP_EAGAIN: the first call dials, unless a connection that was dialled
 * stands. Errors, with *ret_why: TRP_ECONN (it cannot be dialled), TRP_ECLOSED (another incarnation
 * answers; remoting stops), TRP_EQUARANTINED, TRP_ELIMIT, TRP_ENOMEM; TRP_EINVAL: this node's own
 * address. Thread: any; never blocks. */
typedef struct trpi_reach { /* zero at first */
    bool begun;
    uint32_t failed;
} trpi_reach;
trp_err trpi_remote_reach(trpi_remote *remote, const trpi_node_id *id, trpi_reach *reach,
                          char *ret_why, size_t why_bytes);
/* Why messages to address do not go at present; false: nothing is known against it. */
bool trpi_remote_problem(trpi_remote *remote, const trpi_address *address, char *ret_text,
                         size_t bytes);

/* Did it fail because another system lives there, or for a cookie? *ret_why: "KEY: why". */
bool trpi_remote_is_incompatible(trpi_remote *remote, const trpi_address *address, char *ret_why,
                                 size_t why_bytes);
/* Does that peer refuse this node for another node that has its address, or had it and is looked
 * for? It is alive then. */
bool trpi_remote_has_rival(trpi_remote *remote, const trpi_address *address);
/* "#DIGEST", or "#DIGEST,#DIGEST", of the cookies that are given; "#" of none: tells whether two
 * nodes have one in common, and not what it is. Errors: TRP_EIO (no digest). */
#define TRPI_REMOTE_SECRETS_BYTES 48
trp_err trpi_remote_secrets_digest(const char *cookie, const char *cookie_before,
                                   char ret_text[TRPI_REMOTE_SECRETS_BYTES]);

typedef struct trpi_remote_stats {
    uint64_t accepted, handshakes_failed, garbage, oversize, wrong_version, handshake_timeouts,
        frames_in, frames_out, decode_errors, redelivered, quarantined, frames_skipped,
        frames_stale; /* messages and signals of a connection that a later one has replaced */
    uint64_t refused[TRPI_REFUSAL_COUNT]; /* by trpi_refusal */
    uint64_t untrusted_dropped, deployments_refused;
    uint64_t unfinished_refused, unfinished_late; /* connections that were closed for a frame */
    uint64_t gave_way;                            /* peers that were forgotten for others */
    uint32_t pending, pending_max; /* connections that have not said who they are; places */
    uint64_t starved;              /* times that no descriptor was free for a connection */
    /* since that, and since one of those gave way to a newcomer; UINT64_MAX: never */
    uint64_t starved_ago_ms, displaced_ago_ms;
} trpi_remote_stats;
void trpi_remote_stats_get(trpi_remote *remote, trpi_remote_stats *ret_stats);

/* Keys of the configuration that remoting reads (keys.c). */
extern const trpi_config_part trpi_remote_keys;

#endif
