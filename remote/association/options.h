/* options.h - the options of remoting and the status of a peer: types of the door
 * (remote/remote.h) that associations read and fill in.
 */
#ifndef TRPI_REMOTE_OPTIONS_H
#define TRPI_REMOTE_OPTIONS_H

#include <troupe/failure_detector.h>

#include "actor/actor.h"
#include "base/transport.h"

typedef struct trpi_remote trpi_remote;

/* How changes of links are logged: each at the level of its weight, not at all, or all at one. */
enum trpi_lifecycle_logging { TRPI_LIFECYCLE_EACH = 0, TRPI_LIFECYCLE_OFF = -1 };

#define TRPI_FAULT_SCHEMES "trttl.gremlin." /* of an address that shows the adapters, before tcp */
#define TRPI_REMOTE_COOKIE_FILE_BYTES 512   /* a path, with its NUL */

/* A zero field is the default of its key (remote/keys.c). */
typedef struct trpi_remote_options {
    const trpi_transport_ops *transport; /* NULL: tcp */
    void *transport_arg;
    const char *driver;    /* of tcp: nng, poll; NULL: the default */
    const char *host;      /* advertised; NULL: 127.0.0.1; a wildcard is TRP_EINVAL */
    uint16_t port;         /* advertised; 0: the bound one */
    const char *bind_host; /* NULL or "": host */
    int32_t bind_port;     /* -1: port */
    uint32_t handshake_timeout_ms;
    uint32_t frame_bytes_max; /* of an ordinary and a control frame */
    uint32_t lane_bytes_max;  /* outbound bytes of an ordinary lane */
    /* Bytes that may wait for one receiver, and for all together, here and at the sending peer */
    uint32_t receiver_bytes_max, receivers_bytes_max;
    uint32_t control_bytes_max;     /* outbound bytes of the control lane */
    uint32_t ordinary_lanes;        /* to each peer; at most 8 */
    uint32_t large_threshold_bytes; /* a larger payload takes the large lane */
    uint32_t large_lane_bytes_max;  /* outbound bytes of it */
    uint32_t lane_idle_ms;          /* a lane's connection is closed after */
    bool compress;                  /* what takes the large lane, where the peer understands it */
    uint32_t system_messages_max;   /* unacknowledged */
    uint32_t backoff_min_ms, backoff_max_ms;
    uint32_t flush_on_shutdown_ms;
    /* ---- trust and limits of peers. Texts are borrowed until trpi_remote_start() returns. */
    bool test_adapters;       /* trpi_remote_faults() can make this network bad */
    bool adapters_in_address; /* and the own address shows them: TRPI_FAULT_SCHEMES */
    bool tls;                 /* encrypted, with certificates at both ends; troupe.tls:// */
    const char *tls_ca, *tls_cert, *tls_key, *tls_crl; /* PEM files; tls_crl NULL or "": no list */
    const char *tls_ciphers;                           /* NULL or "": the three of TLS 1.3 */
    const char *const *tls_allowed; /* names; none: all that the authority has signed */
    size_t tls_allowed_count;
    bool tls_ignore_address;         /* do not compare a peer's address with its certificate */
    uint32_t tls_reload_interval_ms; /* look whether the files have changed; 0: only when told */
    uint32_t tls_old_end_ms;         /* connections of replaced files */
    bool nameless;                   /* listen nowhere: the address is made of the uid */
    bool accepts_later;              /* no connection is accepted before trpi_remote_accept() */
    uint32_t tls_warn_ms;            /* before a certificate ends */
    /* Both ends must know it; the second one is taken too, while it is changed. NULL or "": none */
    const char *cookie, *cookie_before;
    /* The cookie is from this file, which nodes of one user share on loopback: it is shown to peers
     * there only, and a refusal names the file. NULL: it was configured. Fewer bytes than
     * TRPI_REMOTE_COOKIE_FILE_BYTES. */
    const char *cookie_file;
    /* Drop messages that manage actors here: system messages, possibly harmful ones, commands to
     * the node, and selections of other paths than these. */
    bool untrusted;
    const char *const *trusted_paths; /* "/user/receptionist" */
    size_t trusted_paths_count;
    /* Behaviours that peers may have made here: "bank.teller", "bank.*"; NULL: all that are
     * registered. */
    const char *const *deployable;
    size_t deployable_count;
    uint32_t pending_handshakes_max; /* connections without a handshake */
    uint32_t handshake_bytes_max;    /* that each of them may send */
    uint32_t unfinished_bytes_max;   /* of frames that have not come whole, of all */
    uint32_t peer_watches_max;       /* of actors here, by one incarnation of a peer */
    uint32_t peers_max;              /* addresses that are known at a time */
    uint32_t host_peers_max;         /* of callers of one host or certificate */
    uint32_t host_nodes_max;         /* third nodes that they may name */
    /* A peer has quarantined this node: from then on they never talk. Any thread, without locks;
     * must not block. NULL: not called */
    void (*on_quarantined)(void *arg);
    void *on_quarantined_arg;
    char *why; /* why it failed, for a person; may be NULL */
    size_t why_bytes;
    /* ---- detectors and logging */
    /* remote watch failure detector (FD-21) */
    double watch_threshold;
    uint32_t watch_heartbeat_ms, watch_pause_ms;
    uint32_t watch_samples_max, watch_deviation_ms, watch_expected_ms;
    /* detector of dead links (FD-23) */
    double link_threshold;
    uint32_t link_heartbeat_ms, link_pause_ms, link_samples_max, link_deviation_ms;
    const trp_failure_detector *watch_detector, *link_detector; /* NULL: phi accrual */
    uint32_t resend_ms, give_up_ms;                             /* of system messages */
    int32_t lifecycle_log;       /* trpi_lifecycle_logging, or a trp_log_level for all */
    bool log_sent, log_received; /* each message, at DEBUG */
    uint32_t log_size_exceeding; /* log types with a larger payload; 0: off */
    uint32_t wire_minor;         /* speak this minor version of the wire, 1 to 4; 0: the newest */
    uint32_t features_off;       /* bits of TRPI_FEATURE_* not offered */
} trpi_remote_options;

/* ---- control frames ------------------------------------------------------------------------- */

/* Wire numbers. */
enum trpi_control_channel {
    TRPI_CHANNEL_GOSSIP = 1,
    TRPI_CHANNEL_HEARTBEAT = 2,
    TRPI_CHANNEL_NODE = 3, /* carried commands of the command line */
    TRPI_CHANNEL_METRICS = 4,
    TRPI_CHANNEL_SINGLETON = 5,
    TRPI_CHANNEL_SHARDING = 6,
    TRPI_CHANNEL_PUBSUB = 8,
    TRPI_CHANNEL_CLIENT = 9,        /* from a client to a receptionist */
    TRPI_CHANNEL_RECEPTIONIST = 10, /* from a receptionist to a client, and to others */
    TRPI_CHANNEL_COUNT = 11
};
/* Called on a transport thread: short, must not block. from.uid is the peer's, proved by its
 * handshake. arrived_ns: when this node read the frame. */
typedef void (*trpi_control_fn)(void *arg, const trpi_node_id *from, const uint8_t *bytes,
                                size_t count, uint64_t arrived_ns);

/* If bytes of the heartbeats' channel are a request, write the answer and return true. Pure: any
 * thread, without a lock or an allocation. */
enum { TRPI_BEAT_BYTES = 9 };
typedef bool (*trpi_beat_reply)(const uint8_t *bytes, size_t count,
                                uint8_t ret_answer[TRPI_BEAT_BYTES]);
/* If they are an answer, write when the request was made, by the world's clock, and return true.
 * Likewise. */
typedef bool (*trpi_beat_asked)(const uint8_t *bytes, size_t count, uint64_t *ret_asked_us);

/* ---- a peer ---------------------------------------------------------------------------------- */

enum { TRPI_REMOTE_LANES = 10, TRPI_REACH_WHY_BYTES = 160 };
/* The reason of a quarantined peer that has ended in good order. */
#define TRPI_PEER_SAID_GOODBYE "peer said goodbye"
typedef struct trpi_peer_info {
    trpi_node_id id;
    const char *state; /* "idle", "handshaking", "active", "gated", "quarantined" */
    char reason[160];  /* of the last change */
    uint64_t next_ms;  /* gated: until the next attempt, from now */
    uint64_t bytes_in, bytes_out, messages_in, messages_out, dropped;
    uint64_t round_trip_us;                  /* of the last PING or heartbeat; 0 unknown */
    uint32_t minor;                          /* of the wire, that both speak; 0: not met */
    char problem[TRPI_REACH_WHY_BYTES + 64]; /* a lane that cannot be dialled, and why; "": none */
    uint32_t slow_here;                      /* receivers here whose senders there are slowed */
    uint32_t slow_there;                     /* receivers there whose senders here are slowed; */
    uint64_t held_bytes;                     /* what is kept here for them */
    struct {
        const char *state; /* "open", "dialling", "closing", "closed"; NULL: was never used */
        uint64_t waiting_bytes;
    } lanes[TRPI_REMOTE_LANES]; /* control, ordinary ..., large */
} trpi_peer_info;

#endif
