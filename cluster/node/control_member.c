/* control_member.c - names of members, as operators write them, and members as JSON.
 *
 * Tests. tests/unit/node/control_member_test.c
 */
#include "cluster/node/control_member.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/assert.h"
#include "base/units.h"

#define HEX_UID_DIGITS 16u

/* ---- leader and oldest ----------------------------------------------------------------------- */

static bool
holds_role(const trp_member *member, const char *role)
{
    return !role || trp_member_has_role(member, role);
}

const trp_member *
trpi_view_oldest(const trpi_view *view, const char *role)
{
    const trp_member *oldest = NULL;
    for (size_t i = 0; i < view->count; i++) {
        const trp_member *m = &view->members[i].m;
        bool present = m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING;
        if (present && m->up_number && holds_role(m, role) &&
            (!oldest || m->up_number < oldest->up_number)) {
            oldest = m;
        }
    }
    return oldest;
}

static bool
role_comes_before(const trpi_view *view, size_t index, const char *role)
{
    size_t i = 0;
    while (i < index && !trp_member_has_role(&view->members[i].m, role)) {
        i++;
    }
    return i < index;
}

bool
trpi_view_each_role(const trpi_view *view, bool (*each)(void *arg, const char *role), void *arg)
{
    for (size_t i = 0; i < view->count; i++) {
        char roles[TRP_MEMBER_ROLES_BYTES], *rest = roles, *role = NULL;
        memcpy(roles, view->members[i].m.roles, sizeof roles);
        roles[sizeof roles - 1] = '\0';
        while ((role = strsep(&rest, ",")) != NULL) {
            if (*role && !role_comes_before(view, i, role) && !each(arg, role)) {
                return false;
            }
        }
    }
    return true;
}

/* Members are in order, so the first of the best status leads (MEMB-14, -16). */
const trp_member *
trpi_view_leader(const trpi_view *view, const char *role)
{
    static const struct {
        uint32_t a, b;
    } ranks[] = { { TRP_MEMBER_UP, TRP_MEMBER_LEAVING },
                  { TRP_MEMBER_JOINING, TRP_MEMBER_WEAKLY_UP },
                  { TRP_MEMBER_EXITING, TRP_MEMBER_EXITING } };
    for (size_t rank = 0; rank < sizeof ranks / sizeof ranks[0]; rank++) {
        for (size_t i = 0; i < view->count; i++) {
            const trp_member *m = &view->members[i].m;
            if ((m->status == ranks[rank].a || m->status == ranks[rank].b) &&
                (m->reachable || m->self) && holds_role(m, role)) {
                return m;
            }
        }
    }
    return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef enum name_kind { NAME_ADDRESS = 1, NAME_HOST_PORT, NAME_HOST, NAME_UID } name_kind;

typedef struct member_name {
    name_kind kind;
    char system[TRPI_SYSTEM_BYTES_MAX + 1]; /* "": any */
    char host[TRPI_HOST_BYTES_MAX + 1];
    unsigned port;
    uint64_t uids[2]; /* sixteen digits may be hex or decimal; else the same twice */
} member_name;

static bool
all_of(const char *text, int (*is)(int))
{
    const char *p = text;
    while (*p && is((unsigned char)*p)) {
        p++;
    }
    return *p == '\0' && p > text;
}

/* "host:port" or "host"; IPv6 in brackets when a port follows. */
static bool
host_parse(const char *text, member_name *ret_name)
{
    const char *colon = strrchr(text, ':'), *end = text + strlen(text);
    bool bracket = *text == '[';
    if (bracket) {
        const char *close = strchr(text, ']');
        if (!close) {
            return false;
        }
        colon = close[1] == ':' ? close + 1 : NULL;
        end = close;
        text++;
    } else if (colon && strchr(text, ':') != colon) {
        colon = NULL; /* a bare IPv6 address */
    }
    ret_name->kind = NAME_HOST;
    if (colon) {
        uint32_t port = 0;
        if (!trpi_whole32_parse(colon + 1, 0, UINT16_MAX, &port)) {
            return false;
        }
        ret_name->port = port;
        ret_name->kind = NAME_HOST_PORT;
        end = bracket ? end : colon;
    }
    size_t bytes = (size_t)(end - text);
    if (bytes == 0 || bytes > TRPI_HOST_BYTES_MAX) {
        return false;
    }
    memcpy(ret_name->host, text, bytes);
    ret_name->host[bytes] = '\0';
    return !ret_name->host[strcspn(ret_name->host, " /@")];
}

static bool
name_parse(const char *text, member_name *ret_name, const char **ret_hint)
{
    trpi_address address;
    memset(ret_name, 0, sizeof *ret_name);
    *ret_hint = NULL;
    if (strstr(text, "://")) {
        if (trpi_address_parse(text, &address, NULL, ret_hint) != TRP_OK) {
            return false;
        }
        ret_name->kind = NAME_ADDRESS;
        memcpy(ret_name->system, address.system, sizeof ret_name->system);
        memcpy(ret_name->host, address.host, sizeof ret_name->host);
        ret_name->port = address.port;
        return true;
    }
    if (strlen(text) == HEX_UID_DIGITS && all_of(text, isxdigit)) {
        ret_name->kind = NAME_UID;
        ret_name->uids[0] = strtoull(text, NULL, 16);
        ret_name->uids[1] = ret_name->uids[0];
        (void)trpi_whole_parse(text, 0, UINT64_MAX, &ret_name->uids[1]); /* digits alone */
        return true;
    }
    if (trpi_whole_parse(text, 0, UINT64_MAX, &ret_name->uids[0])) {
        ret_name->kind = NAME_UID;
        ret_name->uids[1] = ret_name->uids[0];
        return true;
    }
    const char *at = strchr(text, '@');
    if (at) {
        size_t bytes = (size_t)(at - text);
        if (bytes == 0 || bytes > TRPI_SYSTEM_BYTES_MAX) {
            return false;
        }
        memcpy(ret_name->system, text, bytes);
        text = at + 1;
    }
    return host_parse(text, ret_name);
}

static bool
name_matches(const member_name *name, const trp_member *member)
{
    trpi_address address;
    if (name->kind == NAME_UID) {
        return member->uid == name->uids[0] || member->uid == name->uids[1];
    }
    if (trpi_address_parse(member->address, &address, NULL, NULL) != TRP_OK) {
        return false;
    }
    return strcmp(address.host, name->host) == 0 &&
           (name->kind == NAME_HOST || address.port == name->port) &&
           (!name->system[0] || strcmp(address.system, name->system) == 0);
}

static void
members_list(const trpi_view *view, const member_name *name, char *buffer, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < view->count && count + 8 < bytes; i++) {
        if (!name || name_matches(name, &view->members[i].m)) {
            int more = snprintf(buffer + count, bytes - count, "%s%s", count ? ", " : "",
                                view->members[i].m.address);
            count += more > 0 && (size_t)more < bytes - count ? (size_t)more : bytes - count - 1;
        }
    }
    buffer[count < bytes ? count : bytes - 1] = '\0';
}

trp_err
trpi_view_find(const trpi_view *view, const char *text, const trpi_view_member **ret_member,
               trpi_control_refusal *ret_refusal)
{
    member_name name;
    const char *hint = NULL;
    const trpi_view_member *found = NULL;
    size_t matches = 0;
    if (!name_parse(text, &name, &hint)) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_USAGE,
                            "'%.256s' is not the name of a member: %s", text,
                            hint ? hint : "write an address, host:port, or a uid");
        return TRP_EINVAL;
    }
    for (size_t i = 0; i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (!name_matches(&name, &v->m)) {
            continue;
        }
        /* A new incarnation on the address of a Down one is the member that is meant. */
        if (!found ||
            (strcmp(found->m.address, v->m.address) == 0 && found->m.status == TRP_MEMBER_DOWN)) {
            matches += !found;
            found = v;
        } else if (strcmp(found->m.address, v->m.address) != 0) {
            matches++;
        }
    }
    if (matches == 1) {
        *ret_member = found;
        return TRP_OK;
    }
    char list[768];
    members_list(view, matches ? &name : NULL, list, sizeof list);
    if (matches > 1) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_USAGE,
                            "'%.256s' fits more than one member: %s", text, list);
        return TRP_EINVAL;
    }
    trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_NOT_FOUND, "no such member %.256s", text);
    (void)snprintf(ret_refusal->hint, sizeof ret_refusal->hint, view->count ? "members: %s" : "%s",
                   view->count ? list : "this node has not joined a cluster");
    return TRP_ENOENT;
}

bool
trpi_member_find(trp_node *node, const char *text, trp_member *ret_member,
                 trpi_control_refusal *ret_refusal)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    if (trpi_view_take(node, &view) != TRP_OK) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_INTERNAL, "out of memory");
        return false;
    }
    bool ok = trpi_view_find(&view, text, &found, ret_refusal) == TRP_OK;
    if (ok) {
        *ret_member = found->m;
    }
    trpi_view_fini(&view);
    return ok;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

bool
trpi_member_add(cJSON *object, const trp_member *member)
{
    char roles[TRP_MEMBER_ROLES_BYTES], *rest = roles, *role = NULL;
    bool ok = trpi_json_add_text(object, "node", member->address) &&
              trpi_json_add_u64_string(object, "nodeUid", member->uid) &&
              trpi_json_add_text(object, "status", trp_member_status_name(member->status));
    cJSON *list = ok ? cJSON_AddArrayToObject(object, "roles") : NULL;
    memcpy(roles, member->roles, sizeof roles);
    roles[sizeof roles - 1] = '\0';
    while (list && (role = strsep(&rest, ",")) != NULL) {
        if (*role && !cJSON_AddItemToArray(list, cJSON_CreateString(role))) {
            return false;
        }
    }
    return list != NULL;
}
