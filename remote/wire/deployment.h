/* deployment.h - the tails of system messages: deployments (actors to be created) and failures.
 * Pure.
 *
 * Both are msgpack maps with text keys; unknown keys are skipped. docs/wire.md has the keys.
 */
#ifndef TRPI_REMOTE_DEPLOYMENT_H
#define TRPI_REMOTE_DEPLOYMENT_H

#include "actor/actor.h"
#include "remote/wire/codec.h"

/* A decoded deployment; the texts of trpi_deploy point into it. */
typedef struct trpi_deploy_read {
    trpi_deploy deploy; /* without arguments */
    uint32_t supervisor_slot, supervisor_generation;
    char behaviour[TRP_NAME_BYTES_MAX + 1];
    char path[TRP_PATH_BYTES_MAX + 1];
    char dispatcher[TRP_NAME_BYTES_MAX + 1], mailbox[TRP_NAME_BYTES_MAX + 1];
    const uint8_t *args; /* a USER frame, header and body; NULL: no arguments */
    size_t args_bytes;
    struct trpi_pack_doc *doc;
} trpi_deploy_read;

/* Append. map->receiving: the node that will read it. Errors: TRP_ENOTYPE (the arguments cannot be
 * encoded), TRP_EMSGSIZE (TRP_DEPLOY_ARGS_BYTES_MAX), TRP_ELIMIT (they name too many nodes),
 * TRP_ENOMEM. */
trp_err trpi_deploy_encode(trpi_serializers *serializers, trpi_node_map *map,
                           const trpi_deploy *deploy, trpi_buffer *out);
/* Borrows bytes until trpi_deploy_read_fini(). Errors: TRP_EDATA, TRP_ENOMEM; then there is nothing
 * to free. */
trp_err trpi_deploy_decode(const uint8_t *bytes, size_t count, trpi_deploy_read *ret_read);
void trpi_deploy_read_fini(trpi_deploy_read *read);

/* Errors: TRP_ENOMEM. */
trp_err trpi_failure_encode(const trp_failure *failure, trpi_buffer *out);
/* Errors: TRP_EDATA, TRP_ENOMEM. */
trp_err trpi_failure_decode(const uint8_t *bytes, size_t count, trp_failure *ret_failure);

/* Return whether a behaviour of this name may be deployed. Patterns: a name, "bank.*", "*". */
bool trpi_deploy_is_allowed(const char *const *patterns, size_t count, const char *behaviour);

#endif
