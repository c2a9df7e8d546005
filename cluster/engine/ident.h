/* ident.h - what never changes about a member: who it is, its roles, its application version.
 *
 * Counted and immutable, shared by all views of one node (and, in the simulator, of all nodes). The
 * counter is not atomic: an identity belongs to one thread.
 */
#ifndef TRPI_CLUSTER_IDENT_H
#define TRPI_CLUSTER_IDENT_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/lease.h>

#include "base/address.h"

#define TRPI_ROLES_MAX 32             /* of one member */
#define TRPI_ROLE_BYTES_MAX 63        /* without the NUL */
#define TRPI_ROLES_TEXT_BYTES_MAX 511 /* "a,b,c" without the NUL */
#define TRPI_APP_VERSION_BYTES_MAX 31 /* without the NUL */
#define TRPI_BUILD_BYTES_MAX 31       /* of the version of Troupe, without the NUL */

typedef struct trpi_ident {
    uint32_t refs;
    uint32_t roles_count;
    /* hash of address and uid: the member's name in clocks, rows and tombstones */
    uint64_t key;
    uint64_t ring_hash;  /* hash of host and port: its place on the heartbeat ring */
    uint64_t roles_hash; /* equal for equal roles */
    trpi_node_id id;
    char app_version[TRPI_APP_VERSION_BYTES_MAX + 1];
    char build[TRPI_BUILD_BYTES_MAX + 1]; /* the version of Troupe that it runs; "": unknown */
    const char *address;                  /* as text */
    const char *roles_text;               /* "a,b,c" */
    const char *roles[];                  /* sorted, unique; the texts stand behind */
} trpi_ident;

/* Gives *ret_ident. roles may be unsorted and have duplicates.
 * Errors: TRP_EINVAL (a role or version too long, empty, or with a comma or control character; no
 *         uid),
 * TRP_ELIMIT (too many roles or together too long), TRP_ENOMEM. */
trp_err trpi_ident_new(const trpi_node_id *id, const char *const *roles, uint32_t roles_count,
                       const char *app_version, trpi_ident **ret_ident);
/* Set the version of Troupe of an identity that is not shared yet; an invalid text leaves it
 * unknown. */
void trpi_ident_set_build(trpi_ident *ident, const char *build);
trpi_ident *trpi_ident_ref(trpi_ident *ident);
void trpi_ident_unref(trpi_ident *ident); /* NULL is fine */
bool trpi_ident_has_role(const trpi_ident *ident, const char *role);
uint64_t trpi_ident_key(const trpi_node_id *id);

#define TRPI_LEASE_OWNER_BYTES (TRP_LEASE_OWNER_BYTES_MAX + 1)
/* Write the name of a node as the owner of a lease, "ADDRESS uid HEX"; returns buffer, of
 * TRPI_LEASE_OWNER_BYTES. A refused node looks for such a name in the refusal. */
char *trpi_lease_owner(const trpi_node_id *id, char *buffer);

#endif
