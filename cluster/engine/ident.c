/* ident.c - the immutable part of a member. Tests: tests/unit/cluster/gossip_codec_test.c */
#include "cluster/engine/ident.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

uint64_t
trpi_ident_key(const trpi_node_id *id)
{
    uint64_t h = trpi_address_hash(&id->address);
    /* little-endian hosts only, as base/wire.h says of x86, arm */
    return trpi_hash(&h, sizeof h, id->uid);
}

static uint64_t
ident_ring_hash(const trpi_node_id *id)
{
    uint64_t h = trpi_hash(id->address.host, strlen(id->address.host), 0);
    return trpi_hash_u64(h ^ ((uint64_t)id->address.port << 17) ^ id->uid);
}

static bool
ident_text_is_valid(const char *text, size_t bytes_max)
{
    size_t bytes = strnlen(text, bytes_max + 1);
    if (bytes == 0 || bytes > bytes_max) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= ' ' || c == ',' || c == 0x7f || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

/* Write the texts behind the array of roles: each role with its NUL, all with commas, the address.
 */
static void
ident_texts(trpi_ident *ident, const char *const *sorted, char *text, const char *address)
{
    trpi_assert_slow(ident->roles_count <= TRPI_ROLES_MAX);
    for (uint32_t i = 0; i < ident->roles_count; i++) {
        size_t bytes = strlen(sorted[i]) + 1;
        memcpy(text, sorted[i], bytes);
        ident->roles[i] = text;
        text += bytes;
    }
    ident->roles_text = text;
    for (uint32_t i = 0; i < ident->roles_count; i++) {
        size_t bytes = strlen(sorted[i]);
        memcpy(text, sorted[i], bytes);
        text += bytes;
        *text++ = ',';
    }
    text -= ident->roles_count > 0 ? 1 : 0;
    *text++ = '\0';
    ident->roles_hash = trpi_hash_text(ident->roles_text);
    memcpy(text, address, strlen(address) + 1);
    ident->address = text;
}

/* Insert into a sorted list of distinct texts; returns the new count. */
static uint32_t
roles_insert(const char **sorted, uint32_t count, const char *role)
{
    trpi_assert_slow(count < TRPI_ROLES_MAX);
    uint32_t at = 0;
    while (at < count && strcmp(sorted[at], role) < 0) {
        at++;
    }
    if (at < count && strcmp(sorted[at], role) == 0) {
        return count;
    }
    memmove(sorted + at + 1, sorted + at, (count - at) * sizeof *sorted);
    sorted[at] = role;
    return count + 1;
}

trp_err
trpi_ident_new(const trpi_node_id *id, const char *const *roles, uint32_t roles_count,
               const char *app_version, trpi_ident **ret_ident)
{
    trpi_assert(id != NULL && ret_ident != NULL);
    if (id->uid == 0 || roles_count > TRPI_ROLES_MAX) {
        return id->uid == 0 ? TRP_EINVAL : TRP_ELIMIT;
    }
    if (app_version != NULL && app_version[0] != '\0' &&
        !ident_text_is_valid(app_version, TRPI_APP_VERSION_BYTES_MAX)) {
        return TRP_EINVAL;
    }
    const char *sorted[TRPI_ROLES_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < roles_count; i++) {
        if (!ident_text_is_valid(roles[i], TRPI_ROLE_BYTES_MAX)) {
            return TRP_EINVAL;
        }
        count = roles_insert(sorted, count, roles[i]);
    }
    size_t text_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        text_bytes += strlen(sorted[i]) + 1;
    }
    if (text_bytes > TRPI_ROLES_TEXT_BYTES_MAX + 1) {
        return TRP_ELIMIT;
    }
    char address[TRPI_ADDRESS_TEXT_BYTES];
    (void)trpi_address_format(&id->address, address, sizeof address);
    trpi_ident *ident = trpi_alloc(sizeof *ident + count * sizeof(char *) + 2 * text_bytes + 1 +
                                   strlen(address) + 1);
    if (ident == NULL) {
        return TRP_ENOMEM;
    }
    ident->refs = 1;
    ident->roles_count = count;
    ident->id = *id;
    ident->key = trpi_ident_key(id);
    ident->ring_hash = ident_ring_hash(id);
    if (app_version != NULL) {
        memcpy(ident->app_version, app_version, strlen(app_version));
    }
    ident_texts(ident, sorted, (char *)(ident->roles + count), address);
    *ret_ident = ident;
    return TRP_OK;
}

void
trpi_ident_set_build(trpi_ident *ident, const char *build)
{
    trpi_assert(ident->refs == 1);
    if (ident_text_is_valid(build, TRPI_BUILD_BYTES_MAX)) {
        memcpy(ident->build, build, strlen(build) + 1);
    }
}

trpi_ident *
trpi_ident_ref(trpi_ident *ident)
{
    ident->refs++;
    return ident;
}

void
trpi_ident_unref(trpi_ident *ident)
{
    if (ident != NULL) {
        trpi_assert(ident->refs > 0);
        if (--ident->refs == 0) {
            trpi_free(ident);
        }
    }
}

bool
trpi_ident_has_role(const trpi_ident *ident, const char *role)
{
    trpi_assert_slow(ident->roles_count <= TRPI_ROLES_MAX);
    for (uint32_t i = 0; i < ident->roles_count; i++) {
        if (strcmp(ident->roles[i], role) == 0) {
            return true;
        }
    }
    return false;
}

_Static_assert(TRPI_ADDRESS_TEXT_BYTES + sizeof(" uid 0123456789abcdef") - 1 ==
                   TRPI_LEASE_OWNER_BYTES,
               "an owner has room for the longest address");

char *
trpi_lease_owner(const trpi_node_id *id, char *buffer)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    (void)snprintf(buffer, TRPI_LEASE_OWNER_BYTES, "%s uid %016" PRIx64,
                   trpi_address_format(&id->address, address, sizeof address), id->uid);
    return buffer;
}
