/* stage_tls.h - TLS as a stage: plain bytes above, records below.
 *
 * It begins with the first command or event. A client that waits for its server to speak first
 * gives it an empty command. Commands wait until the handshake is over, at most waiting_max bytes.
 * A large command becomes several records of one write; what is below takes it whole or keeps it
 * (trp_buffer_stage). Pieces of files do not come this way, since they must be encrypted: their
 * bytes do.
 *
 * trp_item_end from below passes only if the peer has ended the session, before or with it;
 * without, bytes may be missing, which is TRP_EPROTO. trp_item_close ends the session, and goes on
 * down.
 */
#ifndef TRPI_IO_STAGE_TLS_H
#define TRPI_IO_STAGE_TLS_H

#include <troupe/pipeline.h>

#include "tls/tls.h"

#define TRPI_TLS_STAGE_WAITING_DEFAULT (256u << 10)

typedef struct trpi_tls_stage_options {
    trpi_tls_context *context; /* shared */
    trpi_tls_session_options session;
    uint32_t waiting_max; /* 0: TRPI_TLS_STAGE_WAITING_DEFAULT */
} trpi_tls_stage_options;

extern const trp_stage trpi_tls_stage; /* options: trpi_tls_stage_options */

#endif
