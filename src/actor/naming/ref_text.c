/* ref_text.c - a ref as text that can be kept, and back.
 *
 * Shape.   address "/" path "#" uid of the actor "@" uid of its node. The path is for readers:
 *          only the two uids and the address count.
 * Must hold.
 *   ref-text-X1  A text names the incarnation that was written, or no actor: never another
 *       incarnation.
 * Tests.   tests/unit/actor/ref_text_test.c
 * Sources. SYS-13, -28; SERIAL-11, -13, -14
 */
#include <troupe/path.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor/naming/open.h"
#include "actor/nodes/open.h"
#include "actor/naming/path.h"

trp_err
trpi_ref_text_format(const trpi_node_id *id, const char *path, trp_ref ref, char *buffer,
                     size_t bytes)
{
    char text[TRP_REF_TEXT_BYTES];
    char address[TRPI_ADDRESS_TEXT_BYTES];
    size_t path_bytes = strcspn(path, "#");
    int written =
        snprintf(text, sizeof text, "%s%.*s#%" PRIu64 "@%" PRIu64,
                 trpi_address_format(&id->address, address, sizeof address), (int)path_bytes, path,
                 (uint64_t)ref.generation << 32 | ref.slot, id->uid);

    if (written < 0 || (size_t)written >= sizeof text || (size_t)written >= bytes) {
        return TRP_EMSGSIZE;
    }
    memcpy(buffer, text, (size_t)written + 1);
    return TRP_OK;
}

/* Parse all decimal digits; false: there is none, or the number is too large. */
static bool
take_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *digit = *at;

    for (; *digit >= '0' && *digit <= '9'; digit++) {
        uint64_t more = (uint64_t)(*digit - '0');

        if (number > (UINT64_MAX - more) / 10) {
            return false;
        }
        number = number * 10 + more;
    }
    if (digit == *at) {
        return false;
    }
    *at = digit;
    *ret_number = number;
    return true;
}

/* "#uid" or "#uid@node"; *ret_uid 0: the text ends before it. */
static bool
take_uids(const char *at, uint64_t *ret_uid, uint64_t *ret_node)
{
    *ret_uid = *ret_node = 0;
    if (*at == 0) {
        return true;
    }
    at++;
    return take_number(&at, ret_uid) && *ret_uid != 0 &&
           (*at == 0 || (*at++ == '@' && take_number(&at, ret_node) && *ret_node != 0 && *at == 0));
}

trp_err
trpi_ref_text_parse(const char *text, trpi_node_id *ret_id, const char **ret_path, trp_ref *ret_ref)
{
    uint64_t uid;

    memset(ret_id, 0, sizeof *ret_id);
    *ret_path = text;
    *ret_ref = (trp_ref)TRP_REF_NONE;
    if (trp_path_check(text) != TRP_OK ||
        (text[0] != '/' && trpi_address_parse(text, &ret_id->address, ret_path, NULL) != TRP_OK) ||
        !take_uids(*ret_path + strcspn(*ret_path, "#"), &uid, &ret_id->uid)) {
        return TRP_EINVAL;
    }
    ret_ref->slot = (uint32_t)uid;
    ret_ref->generation = (uint32_t)(uid >> 32);
    return TRP_OK;
}

/* The path without an address, "" when it is not known. */
static const char *
path_of(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    const char *path = trp_path(system, ref, buffer, bytes);
    const char *scheme = strstr(path, "://");

    if (scheme != NULL) {
        path = scheme + 3 + strcspn(scheme + 3, "/");
    }
    return path[0] == '/' && path[1] == '#' ? "" : path;
}

/* Between trpi_enter() and trpi_leave(). */
static trp_err
ref_format(trp_system *system, trp_ref ref, trp_ref_form form, char *buffer, size_t bytes)
{
    char path_text[TRP_PATH_BYTES_MAX + 1];
    char address[TRPI_ADDRESS_TEXT_BYTES];
    const trpi_node_id *id;
    const char *path;
    int written;

    id = trp_ref_is_none(ref) ? NULL : trpi_node_id_get(system, ref.node);
    if (id == NULL) {
        return TRP_EINVAL;
    }
    path = path_of(system, ref, path_text, sizeof path_text);
    if (form == TRP_REF_WITH_UID) {
        return trpi_ref_text_format(id, path[0] == 0 ? "/" : path, ref, buffer, bytes);
    }
    trpi_address_format(&id->address, address, sizeof address);
    if (path[0] == 0) {
        return TRP_ENOENT;
    }
    if (strlen(address) + strlen(path) >= bytes) {
        return TRP_EMSGSIZE;
    }
    written = snprintf(buffer, bytes, "%s%s", address, path);
    return written > 0 ? TRP_OK : TRP_EINVAL;
}

trp_err
trp_ref_format(trp_system *system, trp_ref ref, trp_ref_form form, char *buffer, size_t bytes)
{
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system) || buffer == NULL || form > TRP_REF_WITH_UID) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = ref_format(system, ref, form, buffer, bytes);
    trpi_leave(ctx);
    return err;
}

/* Find the actor at a path without a uid. */
static trp_err
find_now(trp_system *system, const char *text, trp_ref *ret_ref)
{
    trp_ref found = TRP_REF_NONE;
    bool remote = false;
    trp_err err = trpi_path_find(system, text, &found, &remote);

    if (err != TRP_OK || remote) {
        return err != TRP_OK ? err : TRP_ESTATE;
    }
    if (trp_ref_is_none(found)) {
        return TRP_ENOENT;
    }
    *ret_ref = found;
    return TRP_OK;
}

trp_err
trp_ref_parse(trp_system *system, const char *text, trp_ref *ret_ref)
{
    const trpi_node_id *self;
    const char *path;
    trpi_node_id id;
    trp_ref ref;
    trp_err err;

    if (!trpi_system_is_valid(system) || text == NULL || ret_ref == NULL ||
        trpi_ref_text_parse(text, &id, &path, &ref) != TRP_OK) {
        return TRP_EINVAL;
    }
    if (trp_ref_is_none(ref)) {
        return find_now(system, text, ret_ref);
    }
    self = trpi_system_self(system);
    if (id.uid == 0) { /* ref-text-X1: no uid of the node; on this node the actor's uid suffices */
        if (path != text && !trpi_address_equal(&id.address, &self->address)) {
            return TRP_ESTATE;
        }
        ref.node = TRPI_NODE_SELF;
    } else if (path == text && id.uid != self->uid) {
        return TRP_EINVAL; /* another node, and no address of it */
    } else if (path == text) {
        ref.node = TRPI_NODE_SELF;
    } else {
        err = trpi_node_intern(system, &id, &ref.node);
        if (err != TRP_OK) {
            return err;
        }
    }
    if (ref.node != TRPI_NODE_SELF && path[1] != '#') {
        char names[TRP_PATH_BYTES_MAX + 1];

        (void)snprintf(names, sizeof names, "%.*s", (int)strcspn(path, "#"), path);
        trpi_path_remember(system, ref, names);
    }
    *ret_ref = ref;
    return TRP_OK;
}
