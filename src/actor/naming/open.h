/* open.h - what the rooms above src/actor may use of the room naming: part of actor/actor.h. */
#ifndef TRPI_ACTOR_NAMING_OPEN_H
#define TRPI_ACTOR_NAMING_OPEN_H

#include "actor/kernel/open.h"
#include "base/address.h"

/* ---- paths and references as text ------------------------------------------------------------ */
/* Find the live actor at a path without wildcards ("/user/a", or with this node's address);
 * TRP_REF_NONE: there is none. *ret_remote: the path is on another node. Errors: TRP_EINVAL.
 * Thread: any. */
trp_err trpi_path_find(trp_system *system, const char *path, trp_ref *ret_ref, bool *ret_remote);
/* Format a ref as text: its node's address, a path for readers ("/": not known), the uid of the
 * actor, "@", the uid of the node. buffer: TRP_REF_TEXT_BYTES. Errors: TRP_EMSGSIZE. Any thread. */
trp_err trpi_ref_text_format(const trpi_node_id *id, const char *path, trp_ref ref, char *buffer,
                             size_t bytes);
/* Parse such a text, or a path: a uid that is missing is 0. *ret_path: where the path begins in
 * text; when text begins with it, the address is all zero. Errors: TRP_EINVAL. */
trp_err trpi_ref_text_parse(const char *text, trpi_node_id *ret_id, const char **ret_path,
                            trp_ref *ret_ref);
/* Write the future path of an actor whose mailbox is being made (trp_mailbox_ops.create). Returns
 * its length; 0: the actor or one above it has no name of its own, or the path does not fit. */
size_t trpi_path_unborn(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
/* The same with automatic names; 0: the path does not fit. */
size_t trpi_path_unborn_auto(trp_system *system, trp_ref ref, char *buffer, size_t bytes);

/* ---- names besides paths: aliases, categories ------------------------------------------------ */
enum trpi_directory_kind {
    TRPI_DIRECTORY_ALIAS = 0, /* one member */
    TRPI_DIRECTORY_CATEGORY = 1,
    TRPI_DIRECTORY_KINDS = 2
};
typedef struct trpi_member {
    trp_ref ref;
    /* written by the visitors of trpi_directory_each(), under the directory's lock */
    uint64_t sent, base;
} trpi_member;
/* In a run or a bracket, all three. Errors: as trp_alias_set, trp_category_join. */
trp_err trpi_directory_add(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                           trp_ref ref);
/* name NULL: all; ref none: all members. TRP_ENOENT: there was nothing to remove. */
trp_err trpi_directory_remove(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                              trp_ref ref);
/* Visit the live members, oldest first; name NULL: of all names. fn is called under a lock: it is
 * short and sends nothing; NULL: members are only counted. */
uint32_t trpi_directory_each(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                             void (*fn)(void *arg, const char *name, trpi_member *member),
                             void *arg);

/* Remember the path of a remote ref that arrived with it (bounded cache). */
void trpi_path_remember(trp_system *system, trp_ref ref, const char *path);

#endif
