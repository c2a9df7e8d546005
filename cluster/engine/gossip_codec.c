/* gossip_codec.c - frames and views to bytes and back.
 *
 * Why.     The only place where bytes of a peer become membership. Counts, ranges and references
 *          are checked here, so that the engine may assert.
 * Shape.   frame {k, to, ttl, ...}   k is trpi_frame_kind; keys that are not known are skipped
 *          view  {v:1, p:protocol, s:system, r:[role],
 *                 m:[[host, port, uid, status, up-number, version, [role#], weakly-up?,
 *                     up-since?, build?, settled?]],
 *                 o:[[member#, version, [member#]]], c:[[member#, counter]],
 *                 t:[[key, wall, status]]}
 *          A view stands as a byte string inside a frame, so that its encoding is made once per
 *          version.
 * Limits.  TRPI_GOSSIP_*_MAX, TRPI_PACK_*_MAX; numbers above their range refuse the frame.
 * Tests.   tests/unit/cluster/gossip_codec_test.c, tests/fuzz/gossip_fuzz.c
 */
#include "cluster/engine/gossip_codec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/pack.h"

#define VIEW_VERSION 1u

/* ---- view: encode ---------------------------------------------------------------------------- */

static uint64_t
role_hash(const void *arg, const void *element)
{
    return trpi_hash_text(((const trpi_role_table *)arg)->roles[*(const uint32_t *)element - 1]);
}

static bool
role_is_key(const void *arg, const void *element, const void *key)
{
    return strcmp(((const trpi_role_table *)arg)->roles[*(const uint32_t *)element - 1], key) == 0;
}

static const trpi_table_kind by_role = { sizeof(uint32_t), trpi_table_u32_is_empty, role_hash,
                                         role_is_key };

trpi_role_table *
trpi_role_table_new(void)
{
    return trpi_alloc(sizeof(trpi_role_table));
}

void
trpi_role_table_free(trpi_role_table *table)
{
    if (table != NULL) {
        trpi_table_fini(&table->index);
        trpi_free(table);
    }
}

static trp_err
role_index(trpi_role_table *table, const char *role, uint32_t *ret_index)
{
    trpi_assert_slow(table->count <= TRPI_GOSSIP_ROLES_MAX);
    uint64_t hash = trpi_hash_text(role);
    const uint32_t *known = trpi_table_find(&by_role, &table->index, table, hash, role);
    if (known != NULL) {
        *ret_index = *known - 1;
        return TRP_OK;
    }
    if (table->count == TRPI_GOSSIP_ROLES_MAX) {
        return TRP_ELIMIT;
    }
    uint32_t *number = trpi_table_add(&by_role, &table->index, table, hash, role);
    if (number == NULL) {
        return TRP_ENOMEM;
    }
    table->roles[table->count] = role;
    *ret_index = table->count++;
    *number = table->count;
    return TRP_OK;
}

trp_err
trpi_role_table_add(trpi_role_table *table, const trpi_ident *ident)
{
    trpi_assert_slow(ident->roles_count <= TRPI_ROLES_MAX);
    trp_err err = TRP_OK;
    for (uint32_t r = 0; r < ident->roles_count && err == TRP_OK; r++) {
        uint32_t index;
        err = role_index(table, ident->roles[r], &index);
    }
    trpi_assert_slow(table->count <= TRPI_GOSSIP_ROLES_MAX);
    return err;
}

uint32_t
trpi_role_table_missing(const trpi_role_table *table, const trpi_ident *ident)
{
    trpi_assert_slow(ident->roles_count <= TRPI_ROLES_MAX);
    uint32_t missing = 0;
    for (uint32_t r = 0; r < ident->roles_count; r++) {
        missing += trpi_table_find(&by_role, &table->index, table, trpi_hash_text(ident->roles[r]),
                                   ident->roles[r]) == NULL
                       ? 1
                       : 0;
    }
    trpi_assert_slow(missing <= ident->roles_count);
    return missing;
}

static trp_err
collect_roles(const trpi_gossip *g, trpi_role_table *table)
{
    trpi_assert_slow(g->frozen);
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < g->members_count && err == TRP_OK; i++) {
        err = trpi_role_table_add(table, g->members[i].ident);
    }
    return err;
}

static void
pack_member(trpi_pack_writer *w, const trpi_gossip_member *m, trpi_role_table *table)
{
    trpi_assert_slow(m->ident->roles_count <= TRPI_ROLES_MAX);
    trpi_assert_slow(m->status >= TRP_MEMBER_JOINING && m->status <= TRP_MEMBER_DOWN);
    bool more = m->up_since_s != 0 || m->ident->build[0] != '\0' || m->settled != 0;
    trpi_pack_array(w, m->settled != 0 ? 11 : more ? 10 : m->weakly_up != 0 ? 8 : 7);
    trpi_pack_text(w, m->ident->id.address.host);
    trpi_pack_u64(w, m->ident->id.address.port);
    trpi_pack_u64(w, m->ident->id.uid);
    trpi_pack_u64(w, m->status);
    trpi_pack_u64(w, m->up_number);
    trpi_pack_text(w, m->ident->app_version);
    trpi_pack_array(w, m->ident->roles_count);
    for (uint32_t r = 0; r < m->ident->roles_count; r++) {
        uint32_t index = 0;
        (void)role_index(table, m->ident->roles[r], &index); /* collect_roles() put it there */
        trpi_pack_u64(w, index);
    }
    if (m->weakly_up != 0 || more) {
        trpi_pack_u64(w, m->weakly_up);
    }
    if (more) {
        trpi_pack_u64(w, m->up_since_s);
        trpi_pack_text(w, m->ident->build);
    }
    if (m->settled != 0) {
        trpi_pack_u64(w, m->settled);
    }
}

static void
pack_observers(trpi_pack_writer *w, const trpi_gossip *g)
{
    trpi_assert_slow(g->versions_count <= g->members_count);
    trpi_pack_array(w, g->versions_count);
    uint32_t row = 0;
    for (uint32_t i = 0; i < g->versions_count; i++) {
        uint64_t observer = g->versions[i].observer;
        while (row < g->rows_count && g->rows[row].observer < observer) {
            row++;
        }
        uint32_t end = row;
        while (end < g->rows_count && g->rows[end].observer == observer) {
            end++;
        }
        trpi_pack_array(w, 3);
        trpi_pack_u64(w, trpi_gossip_find(g, observer));
        trpi_pack_u64(w, g->versions[i].version);
        trpi_pack_array(w, end - row);
        for (; row < end; row++) {
            trpi_pack_u64(w, trpi_gossip_find(g, g->rows[row].subject));
        }
    }
}

static void
pack_view(trpi_pack_writer *w, const trpi_gossip *g, trpi_role_table *table)
{
    trpi_assert_slow(table->count <= TRPI_GOSSIP_ROLES_MAX);
    trpi_assert_slow(g->frozen);
    trpi_pack_map(w, 8);
    trpi_pack_text(w, "v");
    trpi_pack_u64(w, VIEW_VERSION);
    trpi_pack_text(w, "p");
    trpi_pack_text(w, g->members_count > 0 ? g->members[0].ident->id.address.protocol : "");
    trpi_pack_text(w, "s");
    trpi_pack_text(w, g->members_count > 0 ? g->members[0].ident->id.address.system : "");
    trpi_pack_text(w, "r");
    trpi_pack_array(w, table->count);
    for (uint32_t i = 0; i < table->count; i++) {
        trpi_pack_text(w, table->roles[i]);
    }
    trpi_pack_text(w, "m");
    trpi_pack_array(w, g->members_count);
    for (uint32_t i = 0; i < g->members_count; i++) {
        pack_member(w, &g->members[i], table);
    }
    trpi_pack_text(w, "o");
    pack_observers(w, g);
    trpi_pack_text(w, "c");
    trpi_pack_array(w, g->clock_count);
    for (uint32_t i = 0; i < g->clock_count; i++) {
        trpi_pack_array(w, 2);
        trpi_pack_u64(w, trpi_gossip_find(g, g->clock[i].key));
        trpi_pack_u64(w, g->clock[i].counter);
    }
    trpi_pack_text(w, "t");
    trpi_pack_array(w, g->tombstones_count);
    for (uint32_t i = 0; i < g->tombstones_count; i++) {
        trpi_pack_array(w, g->tombstones[i].settled != 0 ? 4 : 3);
        trpi_pack_u64(w, g->tombstones[i].key);
        trpi_pack_i64(w, g->tombstones[i].wall_ms);
        trpi_pack_u64(w, g->tombstones[i].status);
        if (g->tombstones[i].settled != 0) {
            trpi_pack_u64(w, g->tombstones[i].settled);
        }
    }
}

trp_err
trpi_gossip_encode(trpi_gossip *gossip)
{
    trpi_assert(gossip->frozen);
    if (gossip->encoded != NULL) {
        return TRP_OK;
    }
    for (uint32_t i = 1; i < gossip->members_count; i++) {
        const trpi_address *a = &gossip->members[0].ident->id.address;
        const trpi_address *b = &gossip->members[i].ident->id.address;
        if (strcmp(a->protocol, b->protocol) != 0 || strcmp(a->system, b->system) != 0) {
            return TRP_EINVAL;
        }
    }
    trpi_role_table *table = trpi_role_table_new();
    if (table == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = collect_roles(gossip, table);
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    if (err == TRP_OK) {
        err = trpi_buffer_reserve(&w.buffer, 64 * (gossip->members_count + 1), TRPI_PACK_BYTES_MAX);
    }
    if (err == TRP_OK) {
        pack_view(&w, gossip, table);
        err = w.err == TRP_ELIMIT ? TRP_EMSGSIZE : w.err;
    }
    trpi_role_table_free(table);
    if (err != TRP_OK) {
        trpi_buffer_fini(&w.buffer);
        return err;
    }
    gossip->encoded = w.buffer.data;
    gossip->encoded_bytes = w.buffer.count;
    return TRP_OK;
}

/* ---- view: decode ---------------------------------------------------------------------------- */

struct view_reader {
    const trpi_pack_value *root;
    const trpi_gossip *known;
    trpi_gossip *gossip;
    trpi_address address; /* protocol and system of all */
    uint64_t *keys;       /* of the members, by their number in the frame */
    uint32_t members_count;
    char (*roles)[TRPI_ROLE_BYTES_MAX + 1];
    uint32_t roles_count;
};

static trp_err
read_roles(struct view_reader *r)
{
    const trpi_pack_value *array = trpi_pack_find(r->root, "r");
    if (!trpi_pack_get_count(array, TRPI_GOSSIP_ROLES_MAX, &r->roles_count)) {
        return TRP_EDATA;
    }
    r->roles = trpi_alloc((r->roles_count + 1) * sizeof *r->roles);
    if (r->roles == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < r->roles_count; i++) {
        if (!trpi_pack_get_text(trpi_pack_at(array, i), r->roles[i], sizeof r->roles[i])) {
            return TRP_EDATA;
        }
    }
    return TRP_OK;
}

/* Read the version of Troupe that this member runs; false: its entry does not have it. */
static bool
read_build(const trpi_pack_value *member, char build[TRPI_BUILD_BYTES_MAX + 1])
{
    return trpi_pack_get_text(trpi_pack_at(member, 9), build, TRPI_BUILD_BYTES_MAX + 1) &&
           build[0] != '\0';
}

static trp_err
read_new_ident(struct view_reader *r, const trpi_pack_value *member, const trpi_node_id *id,
               trpi_ident **ret_ident)
{
    char version[TRPI_APP_VERSION_BYTES_MAX + 1], build[TRPI_BUILD_BYTES_MAX + 1];
    const trpi_pack_value *array = trpi_pack_at(member, 6);
    uint32_t count = 0;
    const char *roles[TRPI_ROLES_MAX];
    if (!trpi_address_is_valid(&id->address) || /* it will be dialled, and printed */
        !trpi_pack_get_text(trpi_pack_at(member, 5), version, sizeof version) ||
        !trpi_pack_get_count(array, TRPI_ROLES_MAX, &count)) {
        return TRP_EDATA;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number;
        if (!trpi_pack_get_u64(trpi_pack_at(array, i), TRPI_GOSSIP_ROLES_MAX, &number) ||
            number >= r->roles_count) {
            return TRP_EDATA;
        }
        roles[i] = r->roles[number];
    }
    trp_err err = trpi_ident_new(id, roles, count, version, ret_ident);
    if (err == TRP_OK && read_build(member, build)) {
        trpi_ident_set_build(*ret_ident, build);
    }
    return err == TRP_EINVAL || err == TRP_ELIMIT ? TRP_EDATA : err;
}

/* Read since when a member is Up. Earlier builds do not write this field, and drop it from a view
 * that they pass on: then the value of this node's own view stands, if the Up-number is the same. A
 * field of an unknown form counts as unknown. */
static uint32_t
read_up_since(const trpi_pack_value *member, uint64_t up_number, const trpi_gossip_member *known)
{
    uint64_t since_s = 0;
    if (up_number != 0 && !trpi_pack_get_u64(trpi_pack_at(member, 8), UINT32_MAX, &since_s) &&
        known != NULL && known->up_number == up_number) {
        since_s = known->up_since_s;
    }
    return (uint32_t)since_s;
}

/* Read whether a member handles nothing any more. As the time above: earlier builds drop it, and
 * then this node's own knowledge stands. */
static uint32_t
read_settled(const trpi_pack_value *member, uint64_t status, const trpi_gossip_member *known)
{
    uint64_t settled = 0;
    if (status >= TRP_MEMBER_EXITING && !trpi_pack_get_u64(trpi_pack_at(member, 10), 1, &settled) &&
        known != NULL) {
        settled = known->settled;
    }
    return (uint32_t)settled;
}

static uint32_t
read_settled_of_tombstone(const struct view_reader *r, const trpi_pack_value *entry, uint64_t key)
{
    const trpi_tombstone *known = r->known == NULL ? NULL : trpi_gossip_tombstone(r->known, key);
    uint64_t settled = 0;
    if (!trpi_pack_get_u64(trpi_pack_at(entry, 3), 1, &settled) && known != NULL) {
        settled = known->settled;
    }
    return (uint32_t)settled;
}

static trp_err
read_member(struct view_reader *r, const trpi_pack_value *member, uint32_t number)
{
    trpi_node_id id = { .address = r->address };
    uint64_t port;
    uint64_t status;
    uint64_t up_number;
    uint64_t weakly_up = 0;
    const trpi_pack_value *weak = trpi_pack_at(member, 7); /* said only when it is so */
    if (!trpi_pack_get_text(trpi_pack_at(member, 0), id.address.host, sizeof id.address.host) ||
        id.address.host[0] == '\0' ||
        !trpi_pack_get_u64(trpi_pack_at(member, 1), UINT16_MAX, &port) ||
        !trpi_pack_get_u64(trpi_pack_at(member, 2), UINT64_MAX, &id.uid) || id.uid == 0 ||
        !trpi_pack_get_u64(trpi_pack_at(member, 3), TRP_MEMBER_DOWN, &status) ||
        status < TRP_MEMBER_JOINING ||
        !trpi_pack_get_u64(trpi_pack_at(member, 4), TRPI_GOSSIP_UP_NUMBER_MAX, &up_number) ||
        (weak != NULL && !trpi_pack_get_u64(weak, 1, &weakly_up))) {
        return TRP_EDATA;
    }
    id.address.port = (uint16_t)port;
    r->keys[number] = trpi_ident_key(&id);
    uint32_t at = r->known == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(r->known, r->keys[number]);
    trpi_ident *ident = NULL;
    const trpi_gossip_member *known = at == TRPI_GOSSIP_NONE ? NULL : &r->known->members[at];
    char build[TRPI_BUILD_BYTES_MAX + 1];
    if (known != NULL && trpi_node_id_equal(&known->ident->id, &id) &&
        (known->ident->build[0] != '\0' || !read_build(member, build))) {
        ident = trpi_ident_ref(known->ident);
    } else {
        trp_err err = read_new_ident(r, member, &id, &ident);
        if (err != TRP_OK) {
            return err;
        }
    }
    /* Sorted input only: then two equal members would be neighbours, and freeze has nothing to do.
     */
    trpi_gossip *g = r->gossip;
    if (g->members_count > 0 &&
        trpi_node_id_compare(&g->members[g->members_count - 1].ident->id, &ident->id) >= 0) {
        trpi_ident_unref(ident);
        return TRP_EDATA;
    }
    g->members[g->members_count++] =
        (trpi_gossip_member){ ident,
                              (uint32_t)up_number,
                              (uint16_t)status,
                              weakly_up != 0 && status == TRP_MEMBER_JOINING,
                              0,
                              read_up_since(member, up_number, known),
                              read_settled(member, status, known) };
    return TRP_OK;
}

static trp_err
read_members(struct view_reader *r)
{
    const trpi_pack_value *array = trpi_pack_find(r->root, "m");
    if (!trpi_pack_get_count(array, TRPI_GOSSIP_MEMBERS_MAX, &r->members_count)) {
        return TRP_EDATA;
    }
    r->keys = trpi_alloc((r->members_count + 1) * sizeof *r->keys);
    r->gossip->members = trpi_alloc((r->members_count + 1) * sizeof *r->gossip->members);
    if (r->keys == NULL || r->gossip->members == NULL) {
        return TRP_ENOMEM;
    }
    r->gossip->members_room = r->members_count + 1;
    for (uint32_t i = 0; i < r->members_count; i++) {
        trp_err err = read_member(r, trpi_pack_at(array, i), i);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

/* Read the key of the member whose number in the frame is `value`. */
static bool
read_key(const struct view_reader *r, const trpi_pack_value *value, uint64_t *ret_key)
{
    uint64_t number;
    if (!trpi_pack_get_u64(value, UINT32_MAX, &number) || number >= r->members_count) {
        return false;
    }
    *ret_key = r->keys[number];
    return true;
}

static trp_err
read_observers(struct view_reader *r)
{
    const trpi_pack_value *array = trpi_pack_find(r->root, "o");
    uint32_t count;
    if (!trpi_pack_get_count(array, r->members_count, &count)) {
        return TRP_EDATA;
    }
    for (uint32_t i = 0; i < count; i++) {
        const trpi_pack_value *entry = trpi_pack_at(array, i);
        const trpi_pack_value *subjects = trpi_pack_at(entry, 2);
        uint64_t observer;
        uint64_t version;
        uint32_t rows;
        if (!read_key(r, trpi_pack_at(entry, 0), &observer) ||
            !trpi_pack_get_u64(trpi_pack_at(entry, 1), TRPI_GOSSIP_COUNTER_MAX, &version) ||
            !trpi_pack_get_count(subjects, r->members_count, &rows)) {
            return TRP_EDATA;
        }
        trp_err err = trpi_gossip_add_version(r->gossip, observer, version);
        for (uint32_t s = 0; err == TRP_OK && s < rows; s++) {
            uint64_t subject;
            err = read_key(r, trpi_pack_at(subjects, s), &subject)
                      ? trpi_gossip_add_row(r->gossip, observer, subject)
                      : TRP_EDATA;
        }
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

static trp_err
read_clock_and_tombstones(struct view_reader *r)
{
    const trpi_pack_value *clock = trpi_pack_find(r->root, "c");
    const trpi_pack_value *tombstones = trpi_pack_find(r->root, "t");
    uint32_t clock_count;
    uint32_t tombstones_count;
    if (!trpi_pack_get_count(clock, r->members_count, &clock_count) ||
        !trpi_pack_get_count(tombstones, TRPI_GOSSIP_TOMBSTONES_MAX, &tombstones_count)) {
        return TRP_EDATA;
    }
    trp_err err = TRP_OK;
    for (uint32_t i = 0; err == TRP_OK && i < clock_count; i++) {
        const trpi_pack_value *entry = trpi_pack_at(clock, i);
        uint64_t key;
        uint64_t counter;
        if (!read_key(r, trpi_pack_at(entry, 0), &key) ||
            !trpi_pack_get_u64(trpi_pack_at(entry, 1), TRPI_GOSSIP_COUNTER_MAX, &counter) ||
            counter == 0) {
            return TRP_EDATA;
        }
        err = trpi_gossip_add_clock(r->gossip, key, counter);
    }
    for (uint32_t i = 0; err == TRP_OK && i < tombstones_count; i++) {
        const trpi_pack_value *entry = trpi_pack_at(tombstones, i);
        trpi_tombstone t = { 0, 0, 0, 0 };
        uint64_t status;
        if (!trpi_pack_get_u64(trpi_pack_at(entry, 0), UINT64_MAX, &t.key) ||
            !trpi_pack_get_i64(trpi_pack_at(entry, 1), &t.wall_ms) || t.wall_ms < 0 ||
            t.wall_ms > INT64_MAX / 2 ||
            !trpi_pack_get_u64(trpi_pack_at(entry, 2), TRP_MEMBER_DOWN, &status) ||
            status < TRP_MEMBER_EXITING) {
            return TRP_EDATA;
        }
        t.status = (uint32_t)status;
        t.settled = read_settled_of_tombstone(r, entry, t.key);
        err = trpi_gossip_add_tombstone(r->gossip, t);
    }
    return err;
}

static trp_err
read_view(struct view_reader *r)
{
    uint64_t version;
    if (!trpi_pack_get_u64(trpi_pack_find(r->root, "v"), UINT32_MAX, &version) ||
        version < VIEW_VERSION ||
        !trpi_pack_get_text(trpi_pack_find(r->root, "p"), r->address.protocol,
                            sizeof r->address.protocol) ||
        !trpi_pack_get_text(trpi_pack_find(r->root, "s"), r->address.system,
                            sizeof r->address.system)) {
        return TRP_EDATA;
    }
    trp_err err = read_roles(r);
    if (err == TRP_OK) {
        err = read_members(r);
    }
    if (err == TRP_OK) {
        err = read_observers(r);
    }
    if (err == TRP_OK) {
        err = read_clock_and_tombstones(r);
    }
    return err == TRP_OK ? trpi_gossip_freeze(r->gossip) : err;
}

trp_err
trpi_gossip_decode(const uint8_t *bytes, size_t count, const trpi_gossip *known,
                   trpi_gossip **ret_gossip)
{
    trpi_assert_slow(known == NULL || known->frozen);
    trpi_pack_doc *doc;
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err;
    }
    struct view_reader r = { .root = trpi_pack_root(doc), .known = known };
    r.gossip = trpi_gossip_new();
    err = r.gossip == NULL ? TRP_ENOMEM : read_view(&r);
    trpi_pack_doc_free(doc);
    trpi_free(r.keys);
    trpi_free(r.roles);
    if (err != TRP_OK) {
        trpi_gossip_unref(r.gossip);
        return err;
    }
    *ret_gossip = r.gossip;
    return TRP_OK;
}
