/* Views and frames as bytes: limits, hostile input, the golden file (GOSSIP-15). */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/pack.h"
#include "cluster/engine/heartbeat.h"
#include "tests/unit/cluster/histories.h"
#include "tests/unit/golden.h"

/* ---- codec ----------------------------------------------------------------------------------- */

/* GOSSIP-15, GOSSIP-03: what is written is read back the same, byte for byte */
static void
a_view_survives_its_encoding(void)
{
    idents_make();
    random_state = 42;
    trpi_gossip *g = trpi_gossip_new();
    for (uint32_t i = 0; i < IDENTS; i++) {
        UNIT_EQUAL(trpi_gossip_add(g, idents[i], TRP_MEMBER_JOINING, 0), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    for (uint32_t i = 0; i < 40; i++) {
        g = edit(g, 0);
    }
    UNIT_EQUAL(trpi_gossip_encode(g), TRP_OK);
    trpi_gossip *back = NULL;
    UNIT_REQUIRE(trpi_gossip_decode(g->encoded, g->encoded_bytes, NULL, &back) == TRP_OK);
    UNIT_TRUE(equal_views(g, back));
    UNIT_TRUE(back->members_count == 0 || trpi_ident_has_role(back->members[0].ident, "a"));
    for (size_t cut = 0; cut < g->encoded_bytes; cut++) { /* every truncation is refused */
        trpi_gossip *none = NULL;
        UNIT_EQUAL(trpi_gossip_decode(g->encoded, cut, NULL, &none), TRP_EDATA);
    }
    trpi_gossip_unref(back);
    trpi_gossip_unref(g);
    idents_free();
}

/* In the simulator thousands of nodes hold a version; it is there once, with its members. */
static void
what_a_cache_keeps_is_shared(void)
{
    trpi_gossip_cache *cache = trpi_gossip_cache_new(64);
    trpi_gossip *g[2], *view[4], *merged[3];
    UNIT_REQUIRE(cache != NULL);
    idents_make();
    for (uint32_t i = 0; i < 2; i++) {
        g[i] = trpi_gossip_new();
        UNIT_EQUAL(trpi_gossip_add(g[i], idents[i], TRP_MEMBER_UP, 1), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(g[i], idents[5], TRP_MEMBER_UP, 2), TRP_OK);
        UNIT_EQUAL(trpi_gossip_count_up(g[i], idents[i]->key), TRP_OK);
        UNIT_EQUAL(trpi_gossip_freeze(g[i]), TRP_OK);
        UNIT_EQUAL(trpi_gossip_encode(g[i]), TRP_OK);
    }
    for (uint32_t i = 0; i < 3; i++) {
        const trpi_gossip *from = g[i % 2];
        UNIT_REQUIRE(trpi_gossip_cache_decode(cache, from->encoded, from->encoded_bytes, NULL,
                                              &view[i]) == TRP_OK);
    }
    UNIT_TRUE(view[0] == view[2] && view[0] != view[1]);
    UNIT_TRUE(view[0]->members[1].ident == view[1]->members[1].ident);
    for (uint32_t i = 0; i < 2; i++) {
        UNIT_REQUIRE(trpi_gossip_cache_merge(cache, view[0], view[1], &merged[i]) == TRP_OK);
    }
    UNIT_TRUE(merged[0] == merged[1]);
    UNIT_EQUAL(merged[0]->members_count, 3);
    /* a merge answers for no bytes; but once they have been decoded, it is that view */
    UNIT_EQUAL(trpi_gossip_encode(merged[0]), TRP_OK);
    UNIT_REQUIRE(trpi_gossip_cache_decode(cache, merged[0]->encoded, merged[0]->encoded_bytes, NULL,
                                          &view[3]) == TRP_OK);
    UNIT_TRUE(view[3] != merged[0]);
    UNIT_REQUIRE(trpi_gossip_cache_merge(cache, view[1], view[0], &merged[2]) == TRP_OK);
    UNIT_TRUE(view[3] == merged[2]);
    UNIT_TRUE(trpi_ident_ref(idents[5]) == trpi_gossip_cache_ident(NULL, idents[5]));
    trpi_gossip *made[] = { g[0],    g[1],      view[0],   view[1],  view[2],
                            view[3], merged[0], merged[1], merged[2] };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        trpi_gossip_unref(made[i]);
    }
    trpi_ident_unref(idents[5]);
    trpi_gossip_cache_free(cache);
    idents_free();
}

/* A host goes into logs, tables and the resolver. */
static void
a_member_whose_host_is_no_host_is_refused(void)
{
    static const char *const hosts[] = {
        "a b", "a\nb", "x@y", "::zz", "::0001", "h/user", "\x1b[2J"
    };
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        trpi_node_id id = mesh_id(0, 9);
        trpi_ident *ident = NULL;
        trpi_gossip *back = NULL;
        trpi_gossip *g = trpi_gossip_new();
        snprintf(id.address.host, sizeof id.address.host, "%s", hosts[i]);
        UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1.0", &ident) == TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(g, ident, TRP_MEMBER_UP, 1), TRP_OK);
        UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
        UNIT_EQUAL(trpi_gossip_encode(g), TRP_OK);
        UNIT_EQUAL(trpi_gossip_decode(g->encoded, g->encoded_bytes, NULL, &back), TRP_EDATA);
        trpi_gossip_unref(g);
        trpi_ident_unref(ident);
    }
}

static void
bytes_that_are_no_frame_are_refused(void)
{
    trpi_node_id from = mesh_id(0, 1);
    trpi_frame frame;
    static const uint8_t huge[] = { 0xdd, 0xff, 0xff, 0xff, 0xff }; /* an array of 4 billion */
    static const uint8_t deep[] = {
        0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x01
    };
    static const uint8_t two[] = { 0x80, 0x80 };
    UNIT_EQUAL(trpi_frame_decode(huge, sizeof huge, &from, NULL, NULL, &frame), TRP_EDATA);
    UNIT_EQUAL(trpi_frame_decode(deep, sizeof deep, &from, NULL, NULL, &frame), TRP_EDATA);
    UNIT_EQUAL(trpi_frame_decode(two, sizeof two, &from, NULL, NULL, &frame), TRP_EDATA);
    UNIT_EQUAL(trpi_frame_decode(two, 1, &from, NULL, NULL, &frame), TRP_EDATA); /* no kind */
    UNIT_EQUAL(trpi_frame_decode(two, 0, &from, NULL, NULL, &frame), TRP_EDATA);
}

/* A peer decides how deep it nests; the reader has room for so many levels. */
static void
what_is_nested_too_deep_is_refused(void)
{
    uint8_t nested[TRPI_PACK_DEPTH_MAX + 2];
    trpi_pack_doc *doc = NULL;
    memset(nested, 0x91, sizeof nested); /* arrays of one */
    nested[TRPI_PACK_DEPTH_MAX] = 1;
    UNIT_EQUAL(trpi_pack_parse(nested, TRPI_PACK_DEPTH_MAX + 1, &doc), TRP_OK);
    trpi_pack_doc_free(doc);
    nested[TRPI_PACK_DEPTH_MAX] = 0x91;
    nested[TRPI_PACK_DEPTH_MAX + 1] = 1;
    UNIT_EQUAL(trpi_pack_parse(nested, TRPI_PACK_DEPTH_MAX + 2, &doc), TRP_EDATA);
}

/* A view that a peer may have made up: what comes of reading it. */
static trp_err
read_back(uint32_t up_number, uint64_t counter, uint64_t version, uint32_t tombstones)
{
    trpi_gossip *g = trpi_gossip_new(), *back = NULL;
    UNIT_EQUAL(trpi_gossip_add(g, idents[0], TRP_MEMBER_UP, up_number), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_clock(g, idents[0]->key, counter), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_version(g, idents[0]->key, version), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    for (uint32_t i = 0; i < tombstones; i++) { /* after the freeze, which drops what is too much */
        trpi_tombstone t = { i + 1, 1, TRP_MEMBER_DOWN, 0 };
        UNIT_EQUAL(trpi_gossip_add_tombstone(g, t), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_encode(g), TRP_OK);
    trp_err err = trpi_gossip_decode(g->encoded, g->encoded_bytes, NULL, &back);
    trpi_gossip_unref(back);
    trpi_gossip_unref(g);
    return err;
}

static void
the_numbers_of_a_view_have_limits(void)
{
    const uint64_t most = TRPI_GOSSIP_COUNTER_MAX;
    idents_make();
    UNIT_EQUAL(read_back(TRPI_GOSSIP_UP_NUMBER_MAX, most, most, TRPI_GOSSIP_TOMBSTONES_MAX),
               TRP_OK);
    UNIT_EQUAL(read_back(TRPI_GOSSIP_UP_NUMBER_MAX + 1, 1, 1, 0), TRP_EDATA);
    UNIT_EQUAL(read_back(1, most + 1, 1, 0), TRP_EDATA);
    UNIT_EQUAL(read_back(1, 1, most + 1, 0), TRP_EDATA);
    UNIT_EQUAL(read_back(1, 1, 1, TRPI_GOSSIP_TOMBSTONES_MAX + 1), TRP_EDATA);
    idents_free();
}

/* 450 members and so many of all observations that they can make of each other. */
static trp_err
freeze_with_rows(uint32_t rows)
{
    enum { MEMBERS = 450 };
    uint64_t keys[MEMBERS];
    trpi_gossip *g = trpi_gossip_new();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        trpi_node_id id = mesh_id(i, 1 + i);
        trpi_ident *ident = NULL;
        UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &ident) == TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(g, ident, TRP_MEMBER_UP, i + 1), TRP_OK);
        keys[i] = ident->key;
        trpi_ident_unref(ident);
    }
    for (uint32_t i = 0, row = 0; row < rows; i++) {
        if (i / MEMBERS != i % MEMBERS) {
            UNIT_EQUAL(trpi_gossip_add_row(g, keys[i / MEMBERS], keys[i % MEMBERS]), TRP_OK);
            row++;
        }
    }
    trp_err err = trpi_gossip_freeze(g);
    trpi_gossip_unref(g);
    return err;
}

/* Of graves the oldest go; a view with too many observations is none. */
static void
what_a_view_keeps_has_limits(void)
{
    trpi_gossip *g = trpi_gossip_new();
    uint64_t oldest = 0;
    for (uint32_t i = 0; i <= TRPI_GOSSIP_TOMBSTONES_MAX; i++) {
        trpi_tombstone t = { i + 1, 1000 + i, TRP_MEMBER_DOWN, 0 };
        UNIT_EQUAL(trpi_gossip_add_tombstone(g, t), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    UNIT_EQUAL(g->tombstones_count, TRPI_GOSSIP_TOMBSTONES_MAX);
    for (uint32_t i = 0; i < g->tombstones_count; i++) {
        oldest += g->tombstones[i].wall_ms == 1000 ? 1 : 0;
    }
    UNIT_EQUAL(oldest, 0);
    trpi_gossip_unref(g);
    UNIT_EQUAL(freeze_with_rows(TRPI_GOSSIP_ROWS_MAX), TRP_OK);
    UNIT_EQUAL(freeze_with_rows(TRPI_GOSSIP_ROWS_MAX + 1), TRP_ELIMIT);
}

/* Two nodes that answer each other come to an end, whatever one of them writes. */
static void
a_frame_leads_to_so_many_replies_at_most(void)
{
    for (uint32_t ttl = TRPI_FRAME_TTL_MAX - 1; ttl <= TRPI_FRAME_TTL_MAX + 1; ttl++) {
        trpi_frame digest = { .kind = TRPI_FRAME_DIGEST, .ttl = ttl, .digest = 1 }, back;
        trpi_buffer bytes = { 0 };
        trpi_node_id from = mesh_id(0, 1);
        UNIT_EQUAL(trpi_frame_encode(&digest, NULL, &bytes), TRP_OK);
        UNIT_REQUIRE(trpi_frame_decode(bytes.data, bytes.count, &from, NULL, NULL, &back) ==
                     TRP_OK);
        UNIT_EQUAL(back.ttl, ttl < TRPI_FRAME_TTL_MAX ? ttl : TRPI_FRAME_TTL_MAX);
        trpi_frame_fini(&back);
        trpi_buffer_fini(&bytes);
    }
}

/* Eight of 63 bytes and their commas are as long as all may be together. */
static void
roles_have_a_length(const trpi_node_id *id)
{
    char texts[9][TRPI_ROLE_BYTES_MAX + 1];
    const char *roles[9];
    trpi_ident *ident = NULL;
    for (uint32_t i = 0; i < 9; i++) {
        memset(texts[i], 'a' + (int)i, sizeof texts[i]);
        texts[i][i < 8 ? TRPI_ROLE_BYTES_MAX : 1] = '\0';
        roles[i] = texts[i];
    }
    UNIT_EQUAL(trpi_ident_new(id, roles, 8, "1", &ident), TRP_OK);
    UNIT_EQUAL(strlen(ident->roles_text), TRPI_ROLES_TEXT_BYTES_MAX);
    trpi_ident_unref(ident);
    UNIT_EQUAL(trpi_ident_new(id, roles, 9, "1", &ident), TRP_ELIMIT);
}

static void
an_identity_is_checked_at_its_limits(void)
{
    trpi_node_id id = mesh_id(0, 9);
    trpi_ident *ident = NULL;
    char role[TRPI_ROLE_BYTES_MAX + 2];
    const char *roles[TRPI_ROLES_MAX + 1];
    memset(role, 'r', sizeof role);
    role[TRPI_ROLE_BYTES_MAX] = '\0';
    roles[0] = role;
    UNIT_EQUAL(trpi_ident_new(&id, roles, 1, "1", &ident), TRP_OK);
    trpi_ident_unref(ident);
    role[TRPI_ROLE_BYTES_MAX] = 'r';
    role[TRPI_ROLE_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trpi_ident_new(&id, roles, 1, "1", &ident), TRP_EINVAL);
    for (uint32_t i = 0; i <= TRPI_ROLES_MAX; i++) {
        roles[i] = "same";
    }
    UNIT_EQUAL(trpi_ident_new(&id, roles, TRPI_ROLES_MAX, "1", &ident), TRP_OK);
    UNIT_EQUAL(ident->roles_count, 1); /* duplicates count once */
    trpi_ident_unref(ident);
    UNIT_EQUAL(trpi_ident_new(&id, roles, TRPI_ROLES_MAX + 1, "1", &ident), TRP_ELIMIT);
    roles[0] = "a,b";
    UNIT_EQUAL(trpi_ident_new(&id, roles, 1, "1", &ident), TRP_EINVAL);
    roles_have_a_length(&id);
    role[TRPI_APP_VERSION_BYTES_MAX] = '\0';
    UNIT_EQUAL(trpi_ident_new(&id, NULL, 0, role, &ident), TRP_OK);
    trpi_ident_unref(ident);
    role[TRPI_APP_VERSION_BYTES_MAX] = 'r';
    role[TRPI_APP_VERSION_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trpi_ident_new(&id, NULL, 0, role, &ident), TRP_EINVAL);
    id.uid = 0;
    UNIT_EQUAL(trpi_ident_new(&id, NULL, 0, "1", &ident), TRP_EINVAL);
}

/* Members with host names of 25 bytes, two roles and a count in the clock. */
static trpi_gossip *
large_view(uint32_t members)
{
    trpi_gossip *g = trpi_gossip_new();
    const char *roles[2] = { "backend", "frontend" };
    for (uint32_t i = 0; i < members; i++) {
        trpi_node_id id = mesh_id(0, 0x1234567812345678u + i);
        trpi_ident *ident;
        (void)snprintf(id.address.host, sizeof id.address.host, "worker-%06u.example.org", i);
        UNIT_REQUIRE(trpi_ident_new(&id, roles, 2, "1.0.0", &ident) == TRP_OK);
        trpi_ident_set_build(ident, "0.1.0");
        UNIT_REQUIRE(trpi_gossip_add(g, ident, TRP_MEMBER_UP, i + 1) == TRP_OK);
        UNIT_REQUIRE(trpi_gossip_add_clock(g, ident->key, 1 + i % 7) == TRP_OK);
        trpi_ident_unref(ident);
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        g->members[i].up_since_s = 1700000000;
    }
    UNIT_REQUIRE(trpi_gossip_freeze(g) == TRP_OK);
    return g;
}

/* It fits into one frame many times, so there is room for tombstones and longer names */
static void
the_view_of_the_largest_cluster_fits_into_a_frame(void)
{
    trpi_gossip *g = large_view(TRPI_GOSSIP_MEMBERS_MAX), *back = NULL;
    trpi_frame envelope = { .kind = TRPI_FRAME_ENVELOPE, .to_uid = 1, .gossip = g };
    trpi_buffer bytes = { 0 };
    UNIT_REQUIRE(trpi_frame_encode(&envelope, NULL, &bytes) == TRP_OK);
    printf("  %zu bytes\n", bytes.count);
    UNIT_TRUE(bytes.count < TRPI_PACK_BYTES_MAX / 4);
    UNIT_REQUIRE(trpi_gossip_decode(g->encoded, g->encoded_bytes, NULL, &back) == TRP_OK);
    UNIT_EQUAL(back->digest, g->digest);
    trpi_gossip_unref(back);
    trpi_gossip_unref(g);
    trpi_buffer_fini(&bytes);
}

/* ---- the golden file of wire version 1 ------------------------------------------------------- */

static void
golden_line(FILE *file, const char *name, const uint8_t *bytes, size_t count)
{
    fprintf(file, "%s ", name);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%02x", bytes[i]);
    }
    fprintf(file, "\n");
}

static void
golden_frame(FILE *file, const char *name, const trpi_frame *frame, const trpi_seen *seen)
{
    trpi_buffer bytes = { 0 };
    UNIT_EQUAL(trpi_frame_encode(frame, seen, &bytes), TRP_OK);
    golden_line(file, name, bytes.data, bytes.count);
    trpi_buffer_fini(&bytes);
}

/* A view with all that a view can hold. */
static trpi_gossip *
golden_view(void)
{
    static const uint32_t statuses[IDENTS] = { TRP_MEMBER_UP,      TRP_MEMBER_UP,
                                               TRP_MEMBER_LEAVING, TRP_MEMBER_EXITING,
                                               TRP_MEMBER_DOWN,    TRP_MEMBER_JOINING };
    trpi_gossip *g = trpi_gossip_new();
    trpi_tombstone gone = { 0x0102030405060708, 1700000000000, TRP_MEMBER_DOWN, 0 };
    uint64_t subject = idents[4]->key;
    for (uint32_t i = 0; i < IDENTS; i++) {
        uint32_t up_number = statuses[i] == TRP_MEMBER_JOINING ? 0 : i + 1;
        UNIT_EQUAL(trpi_gossip_add(g, idents[i], statuses[i], up_number), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add_clock(g, idents[i]->key, 100ull << (8 * i)), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_observe(g, idents[0]->key, &subject, 1), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_tombstone(g, gone), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    return g;
}

/* The set of members whose change of vote is known to be seen by all: some of them, and all. */
static void
golden_sure(FILE *file)
{
    trpi_gossip *g = golden_view();
    trpi_seen sure;
    UNIT_REQUIRE(trpi_seen_init(&sure, IDENTS) == TRP_OK);
    trpi_frame digest = {
        .kind = TRPI_FRAME_DIGEST, .to_uid = 102, .ttl = 8, .digest = g->digest, .told = &sure
    };
    trpi_seen_set(&sure, 1);
    trpi_seen_set(&sure, 3);
    golden_frame(file, "digest-some-votes-sure", &digest, NULL);
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_seen_set(&sure, i);
    }
    golden_frame(file, "digest-all-votes-sure", &digest, NULL);
    trpi_seen_fini(&sure);
    trpi_gossip_unref(g);
}

/* With the facts that no digest covers: since when it is Up, what it runs. */
static void
golden_facts(FILE *file)
{
    trpi_gossip *g = trpi_gossip_new();
    trpi_node_id id = mesh_id(0, 100);
    trpi_ident *ident;
    UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1.0", &ident) == TRP_OK);
    trpi_ident_set_build(ident, "0.1.0");
    trpi_frame join = { .kind = TRPI_FRAME_JOIN, .to_uid = 101, .ticket = 0x8899, .ident = ident };
    golden_frame(file, "join-build", &join, NULL);
    UNIT_EQUAL(trpi_gossip_add(g, ident, TRP_MEMBER_UP, 1), TRP_OK);
    g->members[0].up_since_s = 1700000000;
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    trpi_frame envelope = { .kind = TRPI_FRAME_ENVELOPE, .to_uid = 102, .gossip = g };
    golden_frame(file, "facts-up-since-and-build", &envelope, NULL);
    trpi_ident_unref(ident);
    trpi_gossip_unref(g);
}

static void
golden_write(FILE *file)
{
    trpi_gossip *g = golden_view();
    trpi_seen seen;
    UNIT_REQUIRE(trpi_seen_init(&seen, IDENTS) == TRP_OK);
    trpi_seen_set(&seen, 0);
    trpi_seen_set(&seen, 3);
    trpi_frame init = { .kind = TRPI_FRAME_INIT_JOIN, .system = "test" };
    golden_frame(file, "init-join", &init, NULL);
    trpi_compat compat = { .count = 0 };
    UNIT_EQUAL(trpi_compat_add(&compat, "cluster.downing.active-strategy", "manual"), TRP_OK);
    UNIT_EQUAL(trpi_compat_add(&compat, "remote.secure-cookie", "#"), TRP_OK);
    init.compat = &compat;
    init.code = 1;
    golden_frame(file, "init-join-configured", &init, NULL);
    trpi_frame ack = { .kind = TRPI_FRAME_INIT_JOIN_ACK, .to_uid = 101, .ticket = 0x8899 };
    golden_frame(file, "init-join-ack", &ack, NULL);
    trpi_frame nack = { .kind = TRPI_FRAME_INIT_JOIN_NACK,
                        .to_uid = 101,
                        .code = TRPI_NACK_REFUSED,
                        .reason = "no room" };
    golden_frame(file, "init-join-nack", &nack, NULL);
    trpi_frame join = {
        .kind = TRPI_FRAME_JOIN, .to_uid = 100, .ticket = 0x8899, .ident = idents[1]
    };
    golden_frame(file, "join", &join, NULL);
    trpi_frame welcome = { .kind = TRPI_FRAME_WELCOME, .to_uid = 101, .gossip = g };
    golden_frame(file, "welcome", &welcome, &seen);
    trpi_frame digest = { .kind = TRPI_FRAME_DIGEST, .to_uid = 102, .ttl = 8, .digest = g->digest };
    golden_frame(file, "digest", &digest, &seen);
    trpi_frame version = { .kind = TRPI_FRAME_VERSION,
                           .to_uid = 102,
                           .ttl = 7,
                           .digest = g->digest,
                           .clock = g->clock,
                           .clock_count = g->clock_count };
    golden_frame(file, "version", &version, &seen);
    trpi_frame envelope = { .kind = TRPI_FRAME_ENVELOPE, .to_uid = 102, .ttl = 6, .gossip = g };
    golden_frame(file, "envelope", &envelope, &seen);
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_seen_set(&seen, i);
    }
    golden_frame(file, "envelope-seen-by-all", &envelope, &seen);
    trpi_gossip *weak = trpi_gossip_copy(g);
    trpi_gossip_set_status(weak, IDENTS - 1, TRP_MEMBER_WEAKLY_UP);
    UNIT_EQUAL(trpi_gossip_freeze(weak), TRP_OK);
    envelope.gossip = weak;
    golden_frame(file, "envelope-weakly-up", &envelope, &seen);
    UNIT_TRUE(weak->digest != g->digest);
    trpi_gossip_unref(weak);
    trpi_frame gone = { .kind = TRPI_FRAME_GONE, .to_uid = 104, .code = TRP_MEMBER_DOWN };
    golden_frame(file, "gone", &gone, NULL);
    uint64_t by[2] = { 3, 0x0102030405060708 };
    gone.keys = by;
    gone.keys_count = 2;
    gone.near = true;
    golden_frame(file, "gone-by", &gone, NULL);
    trpi_seen_fini(&seen);
    trpi_gossip_unref(g);
    golden_sure(file);
    uint8_t answer[TRPI_HEARTBEAT_BYTES];
    const uint8_t request[TRPI_HEARTBEAT_BYTES] = { 1, 8, 7, 6, 5, 4, 3, 2, 1 };
    golden_line(file, "heartbeat-request", request, sizeof request);
    UNIT_TRUE(trpi_heartbeat_reply(request, sizeof request, answer));
    golden_line(file, "heartbeat-answer", answer, sizeof answer);
    golden_facts(file);
}

/* Every gossip frame of the file is understood, and says the same when it is written again. */
static void
golden_read(char *text)
{
    uint32_t frames = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *hex = strchr(line, ' ') + 1;
        uint8_t bytes[2048];
        size_t count = strlen(hex) / 2;
        UNIT_REQUIRE(count <= sizeof bytes);
        for (size_t i = 0; i < count; i++) {
            const char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
            bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
        }
        if (strncmp(line, "heartbeat-", 10) == 0) {
            continue;
        }
        trpi_frame frame;
        trpi_buffer again = { 0 };
        trpi_seen seen = { 0 }, sure = { 0 };
        bool has_seen = false;
        UNIT_REQUIRE(trpi_frame_decode(bytes, count, &idents[1]->id, NULL, NULL, &frame) == TRP_OK);
        if (frame.seen.all || frame.seen.bytes != NULL) {
            UNIT_EQUAL(trpi_seen_init(&seen, IDENTS), TRP_OK);
            has_seen = trpi_frame_seen(&frame.seen, &seen);
            UNIT_TRUE(has_seen);
        }
        if (frame.sure.all || frame.sure.bytes != NULL) {
            UNIT_EQUAL(trpi_seen_init(&sure, IDENTS), TRP_OK);
            UNIT_TRUE(trpi_frame_seen(&frame.sure, &sure));
            frame.told = &sure;
        }
        UNIT_EQUAL(trpi_frame_encode(&frame, has_seen ? &seen : NULL, &again), TRP_OK);
        UNIT_TRUE(again.count == count && memcmp(again.data, bytes, count) == 0);
        if (strncmp(line, "facts-", 6) == 0) {
            UNIT_EQUAL(frame.gossip->members[0].up_since_s, 1700000000);
            UNIT_TEXT(frame.gossip->members[0].ident->build, "0.1.0");
        } else if (frame.kind == TRPI_FRAME_ENVELOPE) {
            trpi_gossip *g = golden_view();
            bool weak = strncmp(line, "envelope-weakly-up", 18) == 0;
            UNIT_EQUAL(frame.gossip->members[IDENTS - 1].weakly_up, weak);
            UNIT_TRUE(equal_views(g, frame.gossip) != weak);
            UNIT_EQUAL(frame.gossip->tombstones_count, 1);
            UNIT_EQUAL(frame.gossip->rows_count, 1);
            trpi_gossip_unref(g);
        }
        trpi_seen_fini(&seen);
        trpi_seen_fini(&sure);
        trpi_buffer_fini(&again);
        trpi_frame_fini(&frame);
        frames++;
    }
    UNIT_EQUAL(frames, 17);
}

/* SERIAL-04: Wire version 1 does not change: what an older build wrote is what this one writes and
 * reads. */
static void
the_bytes_of_wire_version_1_are_those_of_the_golden_file(void)
{
    idents_make();
    golden_read(unit_golden("gossip-1.txt", golden_write));
    idents_free();
}

static void
a_cache_without_memory_is_none(void)
{
    for (long n = 0; n < 2; n++) {
        trpi_alloc_fail_after(n);
        UNIT_TRUE(trpi_gossip_cache_new(64) == NULL);
        trpi_alloc_fail_after(-1);
    }
}

UNIT_BEGIN("gossip_codec")
UNIT(a_view_survives_its_encoding)
UNIT(what_a_cache_keeps_is_shared)
UNIT(a_member_whose_host_is_no_host_is_refused)
UNIT(the_view_of_the_largest_cluster_fits_into_a_frame)
UNIT(bytes_that_are_no_frame_are_refused)
UNIT(what_is_nested_too_deep_is_refused)
UNIT(the_numbers_of_a_view_have_limits)
UNIT(what_a_view_keeps_has_limits)
UNIT(a_frame_leads_to_so_many_replies_at_most)
UNIT(an_identity_is_checked_at_its_limits)
UNIT(the_bytes_of_wire_version_1_are_those_of_the_golden_file)
UNIT(a_cache_without_memory_is_none)
UNIT_END
