/* troupe/tls.h - TLS for sockets: certificates, keys and authorities, read from files, and read
 * again when these change.
 *
 *     trp_tls_options options = TRP_TLS_OPTIONS_INIT;
 *     char why[TRP_TLS_WHY_BYTES];
 *     options.is_server = 1;
 *     options.certificate = "/etc/echo/echo.pem";
 *     options.key = "/etc/echo/echo.key";
 *     trp_err err = trp_tls_new(system, &options, &tls, why, sizeof why);
 *     ...
 *     bind.tls = tls;
 *     err = trp_tcp_bind(ctx, "*:4433", &bind);
 *
 * Connections speak TLS 1.3, or 1.2 where version_min allows it. No session is resumed, so each new
 * connection is judged by the present files; those that are open go on with what they began with.
 */
#ifndef TROUPE_TLS_H
#define TROUPE_TLS_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_TLS_WHY_BYTES 400            /* room for every reason */
#define TRP_TLS_PROTOCOL_BYTES_MAX 63    /* of one application protocol (ALPN) */
#define TRP_TLS_RELOAD_DEFAULT_MS 60000  /* how often the files are looked at */
#define TRP_TLS_NEVER_RELOAD 0xffffffffu /* of reload_ms */
#define TRP_TLS_HANDSHAKE_TIMEOUT_MS 10000

typedef struct trp_tls trp_tls;

enum { TRP_TLS_1_3 = 0, TRP_TLS_1_2 = 1 };

enum {
    /* A client checks its server. A server asks for no certificate, unless authorities are named:
     * then it demands one. */
    TRP_TLS_PEER_DEFAULT = 0,
    TRP_TLS_PEER_REQUIRED = 1,
    TRP_TLS_PEER_OPTIONAL = 2, /* servers: a client may show none; one that it shows must hold */
    TRP_TLS_PEER_UNCHECKED = 3 /* a client takes any server: whoever is in between reads all */
};

typedef struct trp_tls_pair {
    const char *certificate, *key; /* as in the options */
} trp_tls_pair;

typedef struct trp_tls_options {
    size_t size;
    uint32_t is_server;         /* 1: for trp_tcp_bind(), 0: for trp_tcp_connect() */
    uint32_t peer;              /* TRP_TLS_PEER_* */
    uint32_t version_min;       /* TRP_TLS_1_3, TRP_TLS_1_2 */
    uint32_t protocol_optional; /* 1: a peer may speak none of the protocols */
    uint32_t reload_ms;         /* 0: TRP_TLS_RELOAD_DEFAULT_MS; or TRP_TLS_NEVER_RELOAD */
    uint32_t zero;
    const char *authorities;  /* PEM: who may sign a peer's certificate; a client's NULL: the
                                machine's own */
    const char *certificate;  /* PEM: the own one, then its chain; a client may have none */
    const char *key;          /* PEM, not encrypted; nobody but its owner may read the file */
    const char *revoked;      /* PEM: revoked certificates of peers; NULL: none */
    const trp_tls_pair *more; /* servers: certificates for other names, chosen by the name that a
                                 client asks for (SNI); else it is shown the first one */
    size_t more_count;
    /* Application protocols, the preferred one first (ALPN): a client offers them, and the server's
     * order decides. When there is none in common the handshake fails. */
    const char *const *protocols;
    size_t protocols_count;
    const char *const *allowed; /* names of peers; NULL: all that the authorities have signed */
    size_t allowed_count;
} trp_tls_options;
#define TRP_TLS_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_tls_options), 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, \
            0                                                                                      \
    }

/* Read the files, and look at them every reload_ms from now on, as long as the system runs and
 * somebody has *ret_tls: new connections use what they say then. Files that do not fit each other
 * are not taken, which is logged; the old ones stay in use. The key must belong to its certificate,
 * which must not have expired.
 *
 * Ownership: borrows options; gives *ret_tls (trp_tls_free). why: room for a sentence, which says
 *            what is wrong with which file; "" after success; NULL: not wanted.
 * Errors:    TRP_EINVAL   an argument is NULL, or options contradict each other
 *            TRP_ECONFIG  a file cannot be used
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED, TRP_ELIMIT, TRP_EUNSUPPORTED  as trp_tcp_manager
 * Thread:    any; takes a lock for a moment. Reads files, as a rule before actors start.
 * Source:    PIPE-13, PIPE-14.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tls_new(trp_system *system, const trp_tls_options *options,
                                           trp_tls **ret_tls, char *why, size_t why_bytes);

/* Read the files now, if they have changed since, and say so in *ret_changed (NULL: not wanted).
 *
 * Ownership: borrows tls. why: as trp_tls_new.
 * Errors:    TRP_EINVAL   tls is NULL
 *            TRP_ECONFIG, TRP_ENOMEM  as trp_tls_new; the old files stay in use
 * Thread:    any; takes a lock while it reads files: not from an actor of a busy dispatcher.
 * Source:    PIPE-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tls_check(trp_tls *tls, int *ret_changed, char *why,
                                             size_t why_bytes);

/* Give it back. Listeners and connections that were made with it keep it. NULL is fine.
 *
 * Ownership: takes tls.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    PIPE-13.  Since: 0.1 */
TRP_API void trp_tls_free(trp_tls *tls);

/* A connection with TLS knows this of its peer. */
#define TRP_TLS_NAME_BYTES 72
typedef struct trp_tls_peer {
    uint32_t version;         /* 0x304: TLS 1.3, 0x303: TLS 1.2, 0: no TLS */
    uint32_t has_certificate; /* 1: it has shown one; unless it is unchecked, it holds */
    int64_t until_ms;         /* when that expires, in ms since 1970 */
    char protocol[TRP_TLS_PROTOCOL_BYTES_MAX + 1]; /* agreed on (ALPN); "": none */
    char name[TRP_TLS_NAME_BYTES];                 /* of its certificate: common name */
    char issuer[TRP_TLS_NAME_BYTES];               /* who has signed it */
    char sha256[TRP_TLS_NAME_BYTES];               /* digest of it, hexadecimal */
    char asked[256]; /* the host that a client has asked for (SNI); "": none */
} trp_tls_peer;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_TLS_H */
