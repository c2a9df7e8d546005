/* secure_inner.h - the structs that the two files of the secure transport share. secure.c has the
 * invariants. */
#ifndef TRPI_REMOTE_SECURE_INNER_H
#define TRPI_REMOTE_SECURE_INNER_H

#include "remote/security/secure.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TRPI_SECURE_WHY_BYTES = 400 };

/* The certificates and secrets that a connection began with; immutable, reference counted. */
typedef struct trpi_credentials {
    atomic_int references; /* acq_rel at the end */
    trpi_tls_context *tls; /* NULL: a cookie alone */
    trpi_secrets secrets;
} trpi_credentials;

typedef struct trpi_channel_secure trpi_secure_link;

/* The trpi_transport that the upper room sees. */
typedef struct trpi_secure {
    const trpi_transport_ops *inner;
    trpi_transport *inner_transport;
    trpi_world *world;
    const trpi_transport_events *events;
    void *arg;
    trpi_secure_options options;
    trpi_tls_options tls; /* with own copies of the texts */
    bool is_tls;
    char self[TRPI_COOKIE_PLACE_BYTES]; /* advertised; "": not set. Written before accept() */
    pthread_mutex_t lock;               /* a link's lock is taken before it, never after */
    pthread_cond_t wake;
    pthread_t keeper;
    bool keeper_runs, ending, reload_asked; /* by lock */
    trpi_secrets secrets_next;              /* by lock; for the next reload */
    uint32_t reloads_asked, reloads_done;   /* by lock; equal: none is asked for or in progress */
    trpi_credentials *credentials;          /* by lock */
    trpi_secure_link *links;                /* connected ones; by lock */
    uint64_t wake_ms;                       /* by lock; the keeper waits until then; 0: it works */
    uint64_t looked_ms;                     /* the keeper's */
    uint64_t files_mark;                    /* the keeper's: of the files in use */
    char failure[TRPI_SECURE_WHY_BYTES];    /* of the last reload; "": it succeeded; by lock */
    uint64_t failure_ms;                    /* the keeper's: when it was reported */
    char host[TRPI_HOST_BYTES_MAX + 1];     /* advertised; "": not known yet; by lock */
    bool looked_for_trouble;                /* for the present files; by lock */
    uint64_t troubles_ms;                   /* the keeper's: of its last check */
    uint64_t told_ms[TRPI_TROUBLE_COUNT];   /* of each problem's last report; 0: there is none */
} trpi_secure;

typedef enum trpi_secure_stage {
    TRPI_SECURE_CONNECTING,
    TRPI_SECURE_TLS,
    TRPI_SECURE_COOKIE,
    TRPI_SECURE_OPEN,
    TRPI_SECURE_REFUSED /* the alert is being sent; input is dropped */
} trpi_secure_stage;

/* A link's place in the keeper's list; by transport->lock. secure_keeper.c writes it. */
typedef struct trpi_secure_listing {
    bool listed;
    uint64_t end_ms; /* when the keeper closes the link; 0: never */
    trpi_secure_link *next, *previous, *keeper_next;
} trpi_secure_listing;

/* The trpi_link that the upper room sees. */
struct trpi_channel_secure {
    trpi_secure *transport;
    trpi_link *inner; /* set before the first callback */
    void *user;
    atomic_int references; /* the upper room's until release(), the inner link's until closed(), the
                            * keeper's meanwhile; acq_rel at the end */
    bool dialled;
    trpi_credentials *credentials;
    pthread_mutex_t lock;
    trpi_tls_session *session;        /* NULL: a cookie alone; calls by lock */
    char to[TRPI_COOKIE_PLACE_BYTES]; /* the address that it dialled */
    bool no_cookie;                   /* it is a user's cookie, and the peer is not on loopback */
    trpi_cookie cookie;               /* the six below by lock */
    trpi_secure_stage stage;
    bool closing;
    size_t early_bytes;
    trpi_refusal refusal;
    char reason[400];
    /* Writing; by lock. */
    trpi_buffer batch, flight; /* queued; being sent by the inner link */
    bool in_flight, writing;
    bool direct; /* the upper room's own buffers are in flight */
    trpi_iov iov[TRPI_TRANSPORT_IOV_MAX];
    size_t iov_count, iov_at;
    uint8_t *plain; /* decrypted bytes of one read; used in the inner link's bytes() */
    trpi_secure_listing listing;
};

/* secure.c */
extern const trpi_transport_events trpi_secure_events; /* callbacks for the inner transport */
void trpi_secure_link_ref(trpi_secure_link *link);
void trpi_secure_link_unref(trpi_secure_link *link);
/* Close a link for this reason, unless it has one. Takes link->lock. */
void trpi_secure_link_end(trpi_secure_link *link, const char *reason);
trp_err trpi_secure_connect(trpi_transport *transport, const char *host, uint16_t port,
                            uint32_t timeout_ms, void *user, trpi_link **ret_link);
trp_err trpi_secure_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done);
void trpi_secure_pause(trpi_link *link);
bool trpi_secure_hand_over(trpi_link *link);
void trpi_secure_nudge(trpi_link *link);
trpi_waker *trpi_secure_waker(trpi_link *link);
void trpi_secure_wake(trpi_transport *transport, trpi_waker *waker);
trp_err trpi_secure_claims(trpi_link *link, const char *host, uint16_t port, char *ret_detail,
                           size_t detail_bytes);
uint64_t trpi_secure_whose(trpi_link *link);
void trpi_secure_named(trpi_link *link, char *ret_name, size_t bytes);
int64_t trpi_secure_until(trpi_link *link);
bool trpi_secure_outdated(trpi_link *link);
void trpi_secure_close(trpi_link *link);
void trpi_secure_release(trpi_link *link);

/* secure_keeper.c */
trpi_credentials *trpi_credentials_get(trpi_secure *secure);
void trpi_credentials_unref(trpi_credentials *credentials);
void trpi_secure_list(trpi_secure_link *link);
void trpi_secure_unlist(trpi_secure_link *link);
/* Return, when a link becomes open, whether the present files accept its peer. The caller holds
 * link->lock. */
bool trpi_secure_judge_again(trpi_secure_link *link, trpi_refusal *ret_why);
void trpi_secure_end_in(trpi_secure_link *link, uint64_t ms);

#endif
