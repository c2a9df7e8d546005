/* secure_inner.h - what the two files of the secure transport share. The rules are secure.c's. */
#ifndef TRPI_REMOTE_SECURE_INNER_H
#define TRPI_REMOTE_SECURE_INNER_H

#include "remote/security/secure.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    TRPI_SECURE_FILES = 4, /* ca, cert, key, crl */
    TRPI_SECURE_WHY_BYTES = 400
};

/* What a connection begins with; immutable, counted. */
typedef struct trpi_credentials {
    atomic_int references; /* acq_rel at the end */
    trpi_tls_context *tls; /* NULL: a cookie alone */
    trpi_secrets secrets;
} trpi_credentials;

typedef struct trpi_channel_secure trpi_secure_link;

/* The trpi_transport that the user sees. */
typedef struct trpi_secure {
    const trpi_transport_ops *inner;
    trpi_transport *inner_transport;
    trpi_world *world;
    const trpi_transport_events *events;
    void *arg;
    trpi_secure_options options;
    trpi_tls_options tls; /* texts are ours */
    bool is_tls;
    char self[TRPI_COOKIE_PLACE_BYTES]; /* advertised; "": not said. Written before accept() */
    pthread_mutex_t lock;               /* a link's lock is taken before it, never after */
    pthread_cond_t wake;
    pthread_t keeper;
    bool keeper_runs, ending, reload_asked; /* by lock */
    trpi_secrets secrets_next;              /* by lock; what a reload brings */
    trpi_credentials *credentials;          /* by lock */
    trpi_secure_link *links;                /* connected ones; by lock */
    uint64_t looked_ms;                     /* the keeper's */
    uint64_t file_marks[TRPI_SECURE_FILES]; /* the keeper's: of what is in use */
    char failure[TRPI_SECURE_WHY_BYTES];    /* of the last reading; "": it went well; by lock */
    uint64_t failure_ms;                    /* the keeper's: when it was told */
    char host[TRPI_HOST_BYTES_MAX + 1];     /* advertised; "": not known yet; by lock */
    bool looked_for_trouble;                /* of what there is now; by lock */
    uint64_t troubles_ms;                   /* the keeper's: when it looked last */
    uint64_t told_ms[TRPI_TROUBLE_COUNT];   /* when each was told; 0: it is not there */
} trpi_secure;

typedef enum trpi_secure_stage {
    TRPI_SECURE_CONNECTING,
    TRPI_SECURE_TLS,
    TRPI_SECURE_COOKIE,
    TRPI_SECURE_OPEN,
    TRPI_SECURE_REFUSED /* the last words are on their way; what still comes is thrown away */
} trpi_secure_stage;

/* The trpi_link that the user sees. */
struct trpi_channel_secure {
    trpi_secure *transport;
    trpi_link *inner; /* set before the first callback */
    void *user;
    atomic_int references; /* the user's until release(), the inner link's until closed(), the
                            * keeper's while it looks; acq_rel at the end */
    bool dialled;
    trpi_credentials *credentials;
    pthread_mutex_t lock;
    trpi_tls_session *session;        /* NULL: a cookie alone; calls by lock */
    char to[TRPI_COOKIE_PLACE_BYTES]; /* whom it dialled */
    bool bare;                        /* that is no peer on loopback, and the cookie is for those */
    trpi_cookie cookie;               /* the six below by lock */
    trpi_secure_stage stage;
    bool closing;
    size_t early_bytes;
    trpi_refusal refusal;
    char reason[400];
    /* Writing; by lock. */
    trpi_buffer batch, flight; /* what waits, what the inner link is sending */
    bool in_flight, writing;
    bool passed; /* the user's own buffers are what is in flight */
    trpi_iov iov[TRPI_TRANSPORT_IOV_MAX];
    size_t iov_count, iov_at;
    uint8_t *plain; /* of one read; by the inner link's bytes() */
    /* by transport->lock */
    bool listed;
    uint64_t end_ms; /* the keeper closes it then; 0: not */
    trpi_secure_link *next, *previous, *keeper_next;
};

/* secure.c */
extern const trpi_transport_events trpi_secure_events; /* what the inner transport calls */
void trpi_secure_link_unref(trpi_secure_link *link);
trp_err trpi_secure_connect(trpi_transport *transport, const char *host, uint16_t port,
                            uint32_t timeout_ms, void *user, trpi_link **ret_link);
trp_err trpi_secure_write(trpi_link *link, const trpi_iov *iov, size_t count);
void trpi_secure_pause(trpi_link *link);
trp_err trpi_secure_claims(trpi_link *link, const char *host, uint16_t port, char *ret_detail,
                           size_t detail_bytes);
uint64_t trpi_secure_whose(trpi_link *link);
int64_t trpi_secure_until(trpi_link *link);
bool trpi_secure_outdated(trpi_link *link);
void trpi_secure_close(trpi_link *link);
void trpi_secure_release(trpi_link *link);

/* secure_keeper.c */
trpi_credentials *trpi_credentials_get(trpi_secure *secure);
void trpi_credentials_unref(trpi_credentials *credentials);
void trpi_secure_list(trpi_secure_link *link);
void trpi_secure_unlist(trpi_secure_link *link);
/* At the moment a link becomes open: would the present files take its peer? With link->lock. */
bool trpi_secure_judge_again(trpi_secure_link *link, trpi_refusal *ret_why);
void trpi_secure_end_in(trpi_secure_link *link, uint64_t ms);

#endif
