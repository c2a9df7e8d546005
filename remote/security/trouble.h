/* trouble.h - present and coming problems with a node's certificates, for a person. */
#ifndef TRPI_REMOTE_TROUBLE_H
#define TRPI_REMOTE_TROUBLE_H

#include "tls/tls.h"

typedef struct trpi_trouble_text {
    char what[560], help[160]; /* the problem, and what to do */
} trpi_trouble_text;
typedef enum trpi_trouble {
    TRPI_TROUBLE_RELOAD,      /* the last reload failed */
    TRPI_TROUBLE_CERTIFICATE, /* expires soon, or has expired */
    TRPI_TROUBLE_AUTHORITY,   /* the same of an authority in its chain */
    TRPI_TROUBLE_LIST,        /* the revocation list expires soon, or has expired */
    TRPI_TROUBLE_NAME,        /* the certificate does not name the own address */
    TRPI_TROUBLE_COUNT
} trpi_trouble;
/* Return whether info has a problem of this kind at wall_ms, or will have it within warn_ms;
 * only then *ret_text is valid. TRPI_TROUBLE_RELOAD: see trpi_secure_trouble(). Pure. */
bool trpi_tls_trouble(const trpi_tls_info *info, trpi_trouble kind, int64_t wall_ms,
                      int64_t warn_ms, trpi_trouble_text *ret_text);

#endif
