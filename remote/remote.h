/* remote.h - the door of the remote room: start remoting on a system, send and receive control
 * frames, ask about peers. Everything else of remoting happens behind trpi_remote_ops
 * (actor/actor.h).
 */
#ifndef TRPI_REMOTE_REMOTE_H
#define TRPI_REMOTE_REMOTE_H

#include <troupe/failure_detector.h>

#include "actor/actor.h"
#include "base/transport.h"
#include "remote/faults/fault_text.h"
#include "remote/faults/faults.h"
#include "remote/security/tls.h"

typedef struct trpi_remote trpi_remote;

/* How changes of links are logged: each at the level of its weight, not at all, or all at one. */
enum trpi_lifecycle_logging { TRPI_LIFECYCLE_EACH = 0, TRPI_LIFECYCLE_OFF = -1 };

#define TRPI_FAULT_SCHEMES "trttl.gremlin." /* of an address that shows the adapters, before tcp */
#define TRPI_REMOTE_COOKIE_FILE_BYTES 512 /* a path, with its NUL */

typedef struct trpi_remote_options {
    const trpi_transport_ops *transport; /* NULL: tcp on nng */
    void *transport_arg;
    const char *host;               /* advertised; NULL: 127.0.0.1; a wildcard is TRP_EINVAL */
    uint16_t port;                  /* advertised; 0: the bound one */
    const char *bind_host;          /* NULL or "": host */
    int32_t bind_port;              /* -1: port */
    uint32_t handshake_timeout_ms;  /* 0: 15000 */
    uint32_t frame_bytes_max;       /* 0: 256 KiB ordinary and control */
    uint32_t lane_bytes_max;        /* outbound bytes of an ordinary lane; 0: 16 MiB */
    /* What may wait for one receiver, and for all together, here and at the peer that sends it; 0:
     * 64 and 256 MiB */
    uint32_t receiver_bytes_max, receivers_bytes_max;
    uint32_t control_bytes_max;     /* outbound bytes of the control lane; 0: 1 MiB */
    uint32_t ordinary_lanes;        /* to each peer; 0: 1, at most 8 */
    uint32_t large_threshold_bytes; /* a larger payload takes the large lane; 0: 64 KiB */
    uint32_t large_lane_bytes_max;  /* outbound bytes of it; 0: 64 MiB */
    uint32_t lane_idle_ms;          /* a lane's connection is closed after; 0: 300,000 */
    bool compress;                  /* what takes the large lane, where the peer understands it */
    uint32_t system_messages_max;   /* unacknowledged; 0: 20000 */
    uint32_t backoff_min_ms, backoff_max_ms; /* 0: 50, 10000 */
    uint32_t flush_on_shutdown_ms;  /* 0: 2000 */
    /* ---- who may talk to us. Texts are borrowed until trpi_remote_start() returns. */
    bool test_adapters;             /* trpi_remote_faults() can make this network bad */
    bool adapters_in_address;       /* and the own address shows them: TRPI_FAULT_SCHEMES */
    bool tls;                       /* encrypted, both ends prove who they are; troupe.tls:// */
    const char *tls_ca, *tls_cert, *tls_key, *tls_crl; /* PEM files; tls_crl NULL or "": no list */
    const char *tls_ciphers;        /* NULL or "": the three of TLS 1.3 */
    const char *const *tls_allowed; /* names; none: whoever the authority has signed */
    size_t tls_allowed_count;
    bool tls_ignore_address;        /* do not compare a peer's address with its certificate */
    uint32_t tls_reload_interval_ms; /* look whether the files have changed; 0: only when told */
    uint32_t tls_old_end_ms;        /* connections of replaced files; 0: 3,600,000 */
    bool accepts_later;             /* nobody is let in before trpi_remote_accept() */
    uint32_t tls_warn_ms;           /* before a certificate ends; 0: 14 days */
    /* Both ends must know it; the second one is taken too, while it is changed. NULL or "": none */
    const char *cookie, *cookie_before;
    /* The cookie is from this file, which nodes of one user share on loopback: it is shown to peers
     * there only, and a refusal names the file. NULL: it was configured. Fewer bytes than
     * TRPI_REMOTE_COOKIE_FILE_BYTES. */
    const char *cookie_file;
    /* Drop what manages actors here: system messages, possibly harmful ones, commands to the node,
     * and selections of other paths than these. */
    bool untrusted;
    const char *const *trusted_paths; /* "/user/receptionist" */
    size_t trusted_paths_count;
    /* Behaviours that peers may have made here: "bank.teller", "bank.*"; NULL: all that are
     * registered. */
    const char *const *deployable;
    size_t deployable_count;
    uint32_t pending_handshakes_max; /* connections that have not said who they are; 0: 1024 */
    uint32_t handshake_bytes_max;   /* that each of them may send; 0: 64 KiB */
    uint32_t unfinished_bytes_max;  /* of frames that have not come whole, of all; 0: 64 MiB */
    uint32_t peer_watches_max;      /* of actors here, by one incarnation of a peer; 0: 100,000 */
    uint32_t peers_max;             /* addresses that are known at a time; 0: 16,384 */
    uint32_t host_peers_max;        /* of callers of one host or certificate; 0: 4,096 */
    uint32_t host_nodes_max;        /* third nodes that they may name; 0: 4,096 */
    /* A peer has quarantined this node: from then on they never talk. Any thread, without locks;
     * must not block. NULL: nobody wants to know */
    void (*on_quarantined)(void *arg);
    void *on_quarantined_arg;
    char *why;                      /* why it failed, for a person; may be NULL */
    size_t why_bytes;
    /* ---- detectors and logging */
    /* remote watch failure detector; 0: the defaults of FD-21 */
    double watch_threshold;
    uint32_t watch_heartbeat_ms, watch_pause_ms;
    uint32_t watch_samples_max, watch_deviation_ms, watch_expected_ms;
    /* detector of dead links; 0: the defaults of FD-23 */
    double link_threshold;
    uint32_t link_heartbeat_ms, link_pause_ms, link_samples_max, link_deviation_ms;
    const trp_failure_detector *watch_detector, *link_detector; /* NULL: phi accrual */
    uint32_t resend_ms, give_up_ms; /* of system messages; 0: 1 s, 6 h */
    int32_t lifecycle_log;          /* trpi_lifecycle_logging, or a trp_log_level for all */
    bool log_sent, log_received;    /* each message, at DEBUG */
    uint32_t log_size_exceeding;    /* log types with a larger payload; 0: off */
    uint32_t wire_minor;   /* speak this minor version of the wire, 1 to 4; 0: the newest */
    uint32_t features_off; /* bits of TRPI_FEATURE_* not offered */
} trpi_remote_options;

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
enum trpi_control_channel { /* wire numbers */
    TRPI_CHANNEL_GOSSIP = 1,
    TRPI_CHANNEL_HEARTBEAT = 2,
    TRPI_CHANNEL_NODE = 3, /* carried commands of the command line */
    TRPI_CHANNEL_METRICS = 4,
    TRPI_CHANNEL_COUNT = 5
};
/* Called on a transport thread: short, must not block. from.uid is the peer's, proved by its
 * handshake. */
typedef void (*trpi_control_fn)(void *arg, const trpi_node_id *from, const uint8_t *bytes,
                                size_t count);
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

enum { TRPI_REMOTE_LANES = 10, TRPI_REACH_WHY_BYTES = 160 };
typedef struct trpi_peer_info {
    trpi_node_id id;
    const char *state;        /* "idle", "handshaking", "active", "gated", "quarantined" */
    char reason[160];         /* of the last change */
    uint64_t next_ms;         /* gated: until the next attempt, from now */
    uint64_t bytes_in, bytes_out, messages_in, messages_out, dropped;
    uint64_t round_trip_us;   /* of the last control ping; 0 unknown */
    uint32_t minor;           /* of the wire, that both speak; 0: not met */
    char problem[TRPI_REACH_WHY_BYTES + 64]; /* a lane that cannot be dialled, and why; "": none */
    uint32_t slow_here;       /* receivers here whose senders there are slowed */
    uint32_t slow_there;      /* receivers there whose senders here are slowed; */
    uint64_t held_bytes;      /* what is kept here for them */
    struct {
        const char *state;    /* "open", "dialling", "closing", "closed"; NULL: was never used */
        uint64_t waiting_bytes;
    } lanes[TRPI_REMOTE_LANES]; /* control, ordinary ..., large */
} trpi_peer_info;
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
    uint64_t gave_way; /* peers that were forgotten for others */
    uint32_t pending, pending_max; /* connections that have not said who they are; places */
    uint64_t starved;              /* times that no descriptor was free for a connection */
    /* since that, and since one of those gave way to a newcomer; UINT64_MAX: never */
    uint64_t starved_ago_ms, displaced_ago_ms;
} trpi_remote_stats;
void trpi_remote_stats_get(trpi_remote *remote, trpi_remote_stats *ret_stats);

#endif
