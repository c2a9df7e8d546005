/* Vector clocks, merge laws, transitions, views, codec limits (GOSSIP, MEMB-23). A failure of a
 * random history prints its seed. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster/gossip.h"
#include "cluster/gossip_codec.h"
#include "cluster/heartbeat.h"
#include "tests/unit/cluster/mesh.h"
#include "tests/unit/golden.h"

static uint64_t random_state;

static uint32_t
below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % bound);
}

#define IDENTS 6
static trpi_ident *idents[IDENTS];

static void
idents_make(void)
{
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_node_id id = mesh_id(i, 100 + i);
        const char *roles[2] = { "a", i % 2 == 0 ? "even" : "odd" };
        UNIT_REQUIRE(trpi_ident_new(&id, roles, 2, "1.0", &idents[i]) == TRP_OK);
    }
}

static void
idents_free(void)
{
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_ident_unref(idents[i]);
    }
}

/* ---- vclock ---------------------------------------------------------------------------------- */

/* GOSSIP-02 */
static void
clocks_compare_as_same_before_after_and_concurrent(void)
{
    trpi_vclock_entry a[4] = { { 1, 1 }, { 2, 2 } };
    trpi_vclock_entry b[4] = { { 1, 1 }, { 2, 3 } };
    trpi_vclock_entry c[4] = { { 1, 2 }, { 2, 2 } };
    UNIT_EQUAL(trpi_vclock_compare(a, 2, a, 2, NULL, NULL, NULL), TRPI_VCLOCK_SAME);
    UNIT_EQUAL(trpi_vclock_compare(a, 2, b, 2, NULL, NULL, NULL), TRPI_VCLOCK_BEFORE);
    UNIT_EQUAL(trpi_vclock_compare(b, 2, a, 2, NULL, NULL, NULL), TRPI_VCLOCK_AFTER);
    UNIT_EQUAL(trpi_vclock_compare(b, 2, c, 2, NULL, NULL, NULL), TRPI_VCLOCK_CONCURRENT);
    UNIT_EQUAL(trpi_vclock_compare(a, 1, a, 2, NULL, NULL, NULL), TRPI_VCLOCK_BEFORE);
    trpi_vclock_entry merged[8];
    UNIT_EQUAL(trpi_vclock_merge(b, 2, c, 2, merged), 2);
    UNIT_EQUAL(trpi_vclock_compare(merged, 2, b, 2, NULL, NULL, NULL), TRPI_VCLOCK_AFTER);
    UNIT_EQUAL(trpi_vclock_compare(merged, 2, c, 2, NULL, NULL, NULL), TRPI_VCLOCK_AFTER);
}

/* GOSSIP-12: counters, not wall time */
static void
counting_up_makes_a_clock_newer(void)
{
    trpi_vclock_entry a[4] = { { 5, 1 } };
    trpi_vclock_entry b[4] = { { 5, 1 } };
    uint32_t count = trpi_vclock_increment(b, 1, 3);
    count = trpi_vclock_increment(b, count, 3);
    UNIT_EQUAL(count, 2);
    UNIT_EQUAL(trpi_vclock_get(b, count, 3), 2);
    UNIT_EQUAL(trpi_vclock_get(b, count, 4), 0);
    UNIT_EQUAL(trpi_vclock_compare(a, 1, b, count, NULL, NULL, NULL), TRPI_VCLOCK_BEFORE);
}

/* ---- transitions ----------------------------------------------------------------------------- */

/* MEMB-23, pair by pair; Joining -> Leaving is ours: a node may leave before it is Up */
static void
every_pair_of_statuses_is_legal_or_not_as_the_table_says(void)
{
    /* rows: from; columns: ? Joining Up Leaving Exiting Down Removed */
    static const char *const table[7] = {
                                          ".......", "..xx.xx", "...x.xx", "....xxx",
                                          ".....xx", "......x", "......." };
    for (uint32_t from = 0; from < 7; from++) {
        for (uint32_t to = 0; to < 7; to++) {
            UNIT_EQUAL(trpi_member_transition_is_legal(from, to), table[from][to] == 'x');
        }
    }
    UNIT_FALSE(trpi_member_transition_is_legal(7, 1));
    UNIT_FALSE(trpi_member_transition_is_legal(1, 7));
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* One random, legal edit by node `by`. Takes view, gives its successor. */
static trpi_gossip *
edit(trpi_gossip *view, uint32_t by)
{
    trpi_gossip *g = trpi_gossip_copy(view);
    uint32_t n = below(IDENTS);
    uint32_t at = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < g->members_count; i++) {
        at = g->members[i].ident == idents[n] ? i : at;
    }
    if (at == TRPI_GOSSIP_NONE) {
        UNIT_EQUAL(trpi_gossip_add(g, idents[n], TRP_MEMBER_JOINING, 0), TRP_OK);
    } else if (below(3) == 0) {
        uint64_t subjects[1] = { idents[n]->key };
        UNIT_EQUAL(trpi_gossip_observe(g, idents[by]->key, subjects, below(2)), TRP_OK);
    } else if (below(12) == 0 && n != by) {
        UNIT_EQUAL(trpi_gossip_bury(g, at, 1000 + (int64_t)below(100)), TRP_OK);
    } else {
        uint32_t status = g->members[at].status + 1 + below(2);
        if (status <= TRP_MEMBER_DOWN &&
            trpi_member_transition_is_legal(g->members[at].status, status)) {
            trpi_gossip_set_status(g, at, status);
            if (status == TRP_MEMBER_UP) {
                g->members[at].up_number = 1 + below(9);
            }
        }
    }
    UNIT_EQUAL(trpi_gossip_count_up(g, idents[by]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    trpi_gossip_unref(view);
    return g;
}

static trpi_gossip *
merge(trpi_gossip *a, trpi_gossip *b)
{
    trpi_gossip *merged = NULL;
    UNIT_REQUIRE(trpi_gossip_merge(a, b, &merged) == TRP_OK);
    return merged;
}

static bool
equal_views(trpi_gossip *a, trpi_gossip *b)
{
    UNIT_EQUAL(trpi_gossip_encode(a), TRP_OK);
    UNIT_EQUAL(trpi_gossip_encode(b), TRP_OK);
    return a->digest == b->digest && a->encoded_bytes == b->encoded_bytes &&
           memcmp(a->encoded, b->encoded, a->encoded_bytes) == 0;
}

static bool
is_monotone(const trpi_gossip *before, const trpi_gossip *after)
{
    for (uint32_t i = 0; i < before->members_count; i++) {
        uint64_t key = before->members[i].ident->key;
        uint32_t at = trpi_gossip_find(after, key);
        if (at == TRPI_GOSSIP_NONE ? trpi_gossip_tombstone(after, key) == NULL
                                   : after->members[at].status < before->members[i].status) {
            return false;
        }
    }
    for (uint32_t i = 0; i < before->tombstones_count; i++) {
        if (trpi_gossip_find(after, before->tombstones[i].key) != TRPI_GOSSIP_NONE) {
            return false; /* resurrected */
        }
    }
    return true;
}

static bool
laws_hold(uint64_t seed)
{
    trpi_gossip *v[3];
    random_state = seed;
    for (uint32_t i = 0; i < 3; i++) {
        v[i] = trpi_gossip_new();
        for (uint32_t k = 0; k < IDENTS; k++) {
            UNIT_EQUAL(trpi_gossip_add(v[i], idents[k], TRP_MEMBER_JOINING, 0), TRP_OK);
        }
        UNIT_EQUAL(trpi_gossip_freeze(v[i]), TRP_OK);
    }
    for (uint32_t step = 0; step < 24; step++) {
        uint32_t by = below(3);
        if (below(4) == 0) {
            trpi_gossip *merged = merge(v[by], v[(by + 1) % 3]);
            trpi_gossip_unref(v[by]);
            v[by] = merged;
        } else if (trpi_gossip_find(v[by], idents[by]->key) != TRPI_GOSSIP_NONE) {
            v[by] = edit(v[by], by);
        }
    }
    trpi_gossip *ab = merge(v[0], v[1]);
    trpi_gossip *ba = merge(v[1], v[0]);
    trpi_gossip *bc = merge(v[1], v[2]);
    trpi_gossip *ab_c = merge(ab, v[2]);
    trpi_gossip *a_bc = merge(v[0], bc);
    trpi_gossip *again = merge(ab_c, v[1]);
    bool hold = equal_views(ab, ba) && equal_views(ab_c, a_bc) && equal_views(again, ab_c) &&
                is_monotone(v[0], ab) && is_monotone(v[1], ab) && is_monotone(v[2], ab_c) &&
                trpi_gossip_compare(ab, v[0]) != TRPI_VCLOCK_BEFORE;
    trpi_gossip *made[] = { ab, ba, bc, ab_c, a_bc, again, v[0], v[1], v[2] };
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        trpi_gossip_unref(made[i]);
    }
    return hold;
}

/* GOSSIP-11 */
static void
merge_is_commutative_associative_idempotent_and_monotone(void)
{
    idents_make();
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        if (!laws_hold(seed)) {
            printf("  seed %llu\n", (unsigned long long)seed);
            UNIT_FAIL("a law of merge is broken");
            break;
        }
    }
    idents_free();
}

/* GOSSIP-12, net#8467: a merge with who has not heard of the removal does not bring the member
 * back */
static void
a_removed_member_is_not_resurrected_by_an_older_view(void)
{
    idents_make();
    trpi_gossip *old = trpi_gossip_new();
    UNIT_EQUAL(trpi_gossip_add(old, idents[0], TRP_MEMBER_UP, 1), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add(old, idents[1], TRP_MEMBER_DOWN, 2), TRP_OK);
    UNIT_EQUAL(trpi_gossip_count_up(old, idents[1]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(old), TRP_OK);
    trpi_gossip *new = trpi_gossip_copy(old);
    UNIT_EQUAL(trpi_gossip_bury(new, 1, 1000), TRP_OK);
    UNIT_EQUAL(trpi_gossip_count_up(new, idents[0]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(new), TRP_OK);
    UNIT_EQUAL(trpi_gossip_compare(new, old), TRPI_VCLOCK_AFTER);
    UNIT_EQUAL(trpi_gossip_compare(old, new), TRPI_VCLOCK_BEFORE);
    UNIT_EQUAL(new->clock_count, 1); /* the entry of the removed is pruned */
    trpi_gossip *merged = merge(old, new);
    UNIT_TRUE(merged == new); /* shared, not copied */
    UNIT_EQUAL(merged->members_count, 1);
    trpi_gossip *pruned = trpi_gossip_copy(new);
    UNIT_EQUAL(trpi_gossip_prune(pruned, 1500, 500), 0); /* at the age, and one past it */
    UNIT_EQUAL(trpi_gossip_prune(pruned, 1501, 500), 1);
    trpi_gossip_unref(pruned);
    trpi_gossip_unref(merged);
    trpi_gossip_unref(new);
    trpi_gossip_unref(old);
    idents_free();
}

/* ---- codec ----------------------------------------------------------------------------------- */

/* GOSSIP-15: what is written is read back the same, byte for byte */
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

/* A host goes into logs, tables and the resolver. */
static void
a_member_whose_host_is_no_host_is_refused(void)
{
    static const char *const hosts[] = { "a b",    "a\nb",   "x@y",    "::zz",
                                         "::0001", "h/user", "\x1b[2J" };
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
    UNIT_EQUAL(trpi_frame_decode(huge, sizeof(huge), &from, NULL, NULL, &frame), TRP_EDATA);
    UNIT_EQUAL(trpi_frame_decode(deep, sizeof(deep), &from, NULL, NULL, &frame), TRP_EDATA);
    UNIT_EQUAL(trpi_frame_decode(two, sizeof(two), &from, NULL, NULL, &frame), TRP_EDATA);
    UNIT_EQUAL(trpi_frame_decode(two, 1, &from, NULL, NULL, &frame), TRP_EDATA); /* no kind */
    UNIT_EQUAL(trpi_frame_decode(two, 0, &from, NULL, NULL, &frame), TRP_EDATA);
}

static void
an_identity_is_checked_at_its_limits(void)
{
    trpi_node_id id = mesh_id(0, 9);
    trpi_ident *ident = NULL;
    char role[TRPI_ROLE_BYTES_MAX + 2];
    const char *roles[TRPI_ROLES_MAX + 1];
    memset(role, 'r', sizeof(role));
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
    id.uid = 0;
    UNIT_EQUAL(trpi_ident_new(&id, NULL, 0, "1", &ident), TRP_EINVAL);
}

/* STYLE: the tests make the n-th allocation fail; nothing leaks, nothing breaks */
static void
a_merge_without_memory_is_an_error_and_changes_nothing(void)
{
    idents_make();
    random_state = 7;
    trpi_gossip *a = trpi_gossip_new();
    UNIT_EQUAL(trpi_gossip_add(a, idents[0], TRP_MEMBER_UP, 1), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(a), TRP_OK);
    trpi_gossip *b = edit(edit(trpi_gossip_ref(a), 0), 0);
    bool done = false;
    for (long n = 0; n < 100 && !done; n++) {
        trpi_gossip *merged = NULL;
        trpi_alloc_fail_after(n);
        trp_err err = trpi_gossip_merge(a, b, &merged);
        trpi_alloc_fail_after(-1);
        UNIT_TRUE(err == TRP_OK || err == TRP_ENOMEM);
        done = err == TRP_OK;
        trpi_gossip_unref(merged);
    }
    UNIT_TRUE(done);
    trpi_gossip_unref(a);
    trpi_gossip_unref(b);
    idents_free();
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
    trpi_frame envelope = {
        .kind = TRPI_FRAME_ENVELOPE, .to_uid = 102, .ttl = 6, .gossip = g
    };
    golden_frame(file, "envelope", &envelope, &seen);
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_seen_set(&seen, i);
    }
    golden_frame(file, "envelope-seen-by-all", &envelope, &seen);
    trpi_frame gone = { .kind = TRPI_FRAME_GONE, .to_uid = 104, .code = TRP_MEMBER_DOWN };
    golden_frame(file, "gone", &gone, NULL);
    trpi_seen_fini(&seen);
    trpi_gossip_unref(g);
    uint8_t answer[TRPI_HEARTBEAT_BYTES];
    const uint8_t request[TRPI_HEARTBEAT_BYTES] = { 1, 8, 7, 6, 5, 4, 3, 2, 1 };
    golden_line(file, "heartbeat-request", request, sizeof(request));
    UNIT_TRUE(trpi_heartbeat_reply(request, sizeof(request), answer));
    golden_line(file, "heartbeat-answer", answer, sizeof(answer));
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
        UNIT_REQUIRE(count <= sizeof(bytes));
        for (size_t i = 0; i < count; i++) {
            const char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
            bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
        }
        if (strncmp(line, "heartbeat-", 10) == 0) {
            continue;
        }
        trpi_frame frame;
        trpi_buffer again = { 0 };
        trpi_seen seen = { 0 };
        bool has_seen = false;
        UNIT_REQUIRE(trpi_frame_decode(bytes, count, &idents[1]->id, NULL, NULL, &frame) ==
                     TRP_OK);
        if (frame.seen_all || frame.seen_count > 0) {
            UNIT_EQUAL(trpi_seen_init(&seen, IDENTS), TRP_OK);
            has_seen = trpi_frame_seen(&frame, &seen);
            UNIT_TRUE(has_seen);
        }
        UNIT_EQUAL(trpi_frame_encode(&frame, has_seen ? &seen : NULL, &again), TRP_OK);
        UNIT_TRUE(again.count == count && memcmp(again.data, bytes, count) == 0);
        if (frame.kind == TRPI_FRAME_ENVELOPE) {
            trpi_gossip *g = golden_view();
            UNIT_TRUE(equal_views(g, frame.gossip));
            UNIT_EQUAL(frame.gossip->tombstones_count, 1);
            UNIT_EQUAL(frame.gossip->rows_count, 1);
            trpi_gossip_unref(g);
        }
        trpi_seen_fini(&seen);
        trpi_buffer_fini(&again);
        trpi_frame_fini(&frame);
        frames++;
    }
    UNIT_EQUAL(frames, 10);
}

/* Wire version 1 does not change: what an older build wrote is what this one writes and reads. */
static void
the_bytes_of_wire_version_1_are_those_of_the_golden_file(void)
{
    idents_make();
    golden_read(unit_golden("gossip-1.txt", golden_write));
    idents_free();
}

UNIT_BEGIN("gossip")
UNIT(clocks_compare_as_same_before_after_and_concurrent)
UNIT(counting_up_makes_a_clock_newer)
UNIT(every_pair_of_statuses_is_legal_or_not_as_the_table_says)
UNIT(merge_is_commutative_associative_idempotent_and_monotone)
UNIT(a_removed_member_is_not_resurrected_by_an_older_view)
UNIT(a_view_survives_its_encoding)
UNIT(a_member_whose_host_is_no_host_is_refused)
UNIT(bytes_that_are_no_frame_are_refused)
UNIT(an_identity_is_checked_at_its_limits)
UNIT(a_merge_without_memory_is_an_error_and_changes_nothing)
UNIT(the_bytes_of_wire_version_1_are_those_of_the_golden_file)
UNIT_END
