/* open.h - what the rooms above src/actor may use of the room naming: part of actor/actor.h. */
#ifndef TRPI_ACTOR_NAMING_OPEN_H
#define TRPI_ACTOR_NAMING_OPEN_H

#include "actor/kernel/open.h"
#include "base/address.h"

/* ---- paths and references as text ------------------------------------------------------------ */
/* The actor at a path of this system without wildcards ("/user/a", or with the own address), now;
 * TRP_REF_NONE: nobody. *ret_remote: it is another node's. Errors: TRP_EINVAL. Thread: any. */
trp_err trpi_path_find(trp_system *system, const char *path, trp_ref *ret_ref, bool *ret_remote);
/* A ref as text: its node's address, a path for people ("/": not known), the uid of the actor, "@",
 * that of the node. buffer: TRP_REF_TEXT_BYTES. Errors: TRP_EMSGSIZE. Any thread. */
trp_err trpi_ref_text_format(const trpi_node_id *id, const char *path, trp_ref ref, char *buffer,
                             size_t bytes);
/* Take such a text apart, or a path: uids that are not there are 0. *ret_path: where the path
 * begins in text; the address before it is zeros when text begins with it. Errors: TRP_EINVAL. */
trp_err trpi_ref_text_parse(const char *text, trpi_node_id *ret_id, const char **ret_path,
                            trp_ref *ret_ref);
/* The path that an actor will have whose mailbox is being made (trp_mailbox_ops.create). Returns
 * its length; 0: it has no name of its own, or the path does not fit. */
size_t trpi_path_unborn(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
/* The same, with automatic names: 0: it does not fit. */
size_t trpi_path_unborn_auto(trp_system *system, trp_ref ref, char *buffer, size_t bytes);

/* ---- names besides paths: aliases, categories ------------------------------------------------ */
enum trpi_directory_kind {
    TRPI_DIRECTORY_ALIAS = 0, /* one member */
    TRPI_DIRECTORY_CATEGORY = 1,
    TRPI_DIRECTORY_KINDS = 2
};
typedef struct trpi_member {
    trp_ref ref;
    uint64_t sent, base; /* of who visits; under the directory's lock */
} trpi_member;
/* In a run or a bracket, all three. Errors: as trp_alias_set, trp_category_join. */
trp_err trpi_directory_add(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                           trp_ref ref);
/* name NULL: all; ref none: all members. TRP_ENOENT: there was nothing to remove. */
trp_err trpi_directory_remove(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                              trp_ref ref);
/* Visit the members that live, in the order in which they came; name NULL: of all names. fn is
 * called under a lock: short, telling nobody; NULL: they are only counted. */
uint32_t trpi_directory_each(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                             void (*fn)(void *arg, const char *name, trpi_member *member),
                             void *arg);

/* Remember the path of a remote ref that arrived with it (bounded cache). */
void trpi_path_remember(trp_system *system, trp_ref ref, const char *path);

#endif
