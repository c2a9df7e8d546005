/* marks_test.c - drained members: sets of marks, and how gossip spreads them. */
#include "cluster/engine/marks.h"
#include "base/hash.h"
#include "tests/unit/cluster/mesh.h"
#include "tests/unit/golden.h"

/* ---- sets ------------------------------------------------------------------------------------ */

static void
raise_mark(trpi_marks *marks, uint64_t key, uint64_t counter, bool raises)
{
    bool raised;
    trpi_check check;
    UNIT_EQUAL(trpi_marks_raise(marks, key, counter, &raised), TRP_OK);
    UNIT_EQUAL(raised, raises);
    const char *broken = trpi_marks_check(marks, &check);
    UNIT_TEXT(broken == NULL ? "" : broken, "");
}

static void
a_counter_only_rises(void)
{
    trpi_marks marks = { 0 };
    UNIT_EQUAL(trpi_marks_get(&marks, 7), 0);
    raise_mark(&marks, 7, 0, false);
    UNIT_EQUAL(marks.entries_count, 0);
    raise_mark(&marks, 7, 3, true);
    raise_mark(&marks, 3, 1, true);
    raise_mark(&marks, 9, 2, true);
    raise_mark(&marks, 7, 3, false);
    raise_mark(&marks, 7, 2, false);
    UNIT_EQUAL(trpi_marks_get(&marks, 7), 3);
    UNIT_EQUAL(trpi_marks_get(&marks, 3), 1);
    UNIT_EQUAL(trpi_marks_get(&marks, 8), 0);
    UNIT_TRUE(trpi_mark_is_drained(trpi_marks_get(&marks, 7)));
    UNIT_FALSE(trpi_mark_is_drained(trpi_marks_get(&marks, 9)));
    trpi_marks_fini(&marks);
}

static void
a_set_holds_as_many_as_a_view(void)
{
    trpi_marks marks = { 0 };
    bool raised;
    for (uint32_t i = 1; i <= TRPI_GOSSIP_MEMBERS_MAX; i++) {
        UNIT_REQUIRE(trpi_marks_raise(&marks, i, 1, &raised) == TRP_OK && raised);
    }
    UNIT_EQUAL(trpi_marks_raise(&marks, TRPI_GOSSIP_MEMBERS_MAX + 1, 1, &raised), TRP_ELIMIT);
    UNIT_FALSE(raised);
    UNIT_EQUAL(trpi_marks_raise(&marks, 5, 2, &raised), TRP_OK);
    UNIT_TRUE(raised);
    trpi_marks_fini(&marks);
}

static void
merges_in_any_order_are_equal(void)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        trpi_vclock_entry drawn[24];
        trpi_marks a = { 0 }, b = { 0 };
        bool raised;
        for (uint32_t i = 0; i < 24; i++) {
            uint64_t dice = trpi_hash_u64(seed * 100u + i);
            drawn[i] = (trpi_vclock_entry){ 1 + dice % 9, 1 + dice / 16 % 5 };
            UNIT_REQUIRE(trpi_marks_raise(&a, drawn[i].key, drawn[i].counter, &raised) == TRP_OK);
        }
        for (uint32_t i = 24; i-- > 0;) {
            UNIT_REQUIRE(trpi_marks_raise(&b, drawn[i].key, drawn[i].counter, &raised) == TRP_OK);
        }
        UNIT_REQUIRE(a.entries_count == b.entries_count);
        if (memcmp(a.entries, b.entries, a.entries_count * sizeof a.entries[0]) != 0) {
            fprintf(stderr, "seed %u\n", seed);
            UNIT_TRUE(false);
        }
        trpi_marks_fini(&a);
        trpi_marks_fini(&b);
    }
}

/* ---- gossip ---------------------------------------------------------------------------------- */

static bool
is_drained(const struct mesh *m, uint32_t at, uint32_t of)
{
    return trpi_member_is_drained(m->cores[at], trpi_ident_key(&m->ids[of]));
}

/* How many nodes of a mask know that it is drained. */
static uint32_t
know(const struct mesh *m, uint32_t of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        count += m->cores[i] != NULL && is_drained(m, i, of);
    }
    return count;
}

/* any member may order it; twice is once; undrain takes it back */
static void
an_order_reaches_all_members(void)
{
    struct mesh *m = mesh_cluster(5, NULL);
    UNIT_EQUAL(mesh_order(m, 3, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    mesh_drain(m);
    UNIT_EQUAL(know(m, 1), 5);
    UNIT_EQUAL(know(m, 0) + know(m, 2) + know(m, 3) + know(m, 4), 0);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(know(m, 1), 5);
    UNIT_EQUAL(mesh_order(m, 4, TRPI_MEMBER_UNDRAIN, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 4, TRPI_MEMBER_UNDRAIN, 1), TRP_OK);
    mesh_drain(m);
    UNIT_EQUAL(know(m, 1), 0);
    mesh_free(m);
}

static void
the_member_that_is_told_is_named_in_each_log_once(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    m->infos[0] = '\0';
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    mesh_run(m, 5000);
    const char *first = strstr(m->infos, "host1:2553 is drained");
    UNIT_REQUIRE(first != NULL);
    const char *second = strstr(first + 1, "host1:2553 is drained");
    UNIT_REQUIRE(second != NULL);
    UNIT_TRUE(strstr(second + 1, "host1:2553 is drained") == NULL);
    mesh_free(m);
}

/* a member that was cut off, or joins later, learns it by gossip */
static void
a_member_that_missed_it_learns_it(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    m->cut[3] = true;
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    mesh_run(m, 1000);
    UNIT_EQUAL(know(m, 1), 3);
    m->cut[3] = false;
    mesh_run(m, 20000);
    UNIT_EQUAL(know(m, 1), 4);
    uint32_t late = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, late, 0), TRP_OK);
    mesh_run(m, 10000);
    UNIT_EQUAL(mesh_status(m, late, late), TRP_MEMBER_UP);
    UNIT_EQUAL(know(m, 1), 5);
    mesh_free(m);
}

/* The leader and oldest goes: the others go on with the mark. */
static void
the_mark_survives_the_leader(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 2), TRP_OK);
    mesh_drain(m);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_LEFT);
    for (uint32_t i = 1; i < 4; i++) {
        UNIT_TRUE(is_drained(m, i, 2));
    }
    mesh_free(m);
}

/* not a restart: another incarnation is not drained, and the old mark is forgotten */
static void
the_mark_ends_with_the_incarnation(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 2), TRP_OK);
    mesh_drain(m);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_LEFT);
    trpi_member_free(m->cores[2]);
    m->cores[2] = NULL;
    uint32_t again = mesh_add_as(m, mesh_id(2, 4711), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, again, 0), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_status(m, again, again), TRP_MEMBER_UP);
    UNIT_EQUAL(know(m, again), 0);
    UNIT_FALSE(is_drained(m, 0, 2));
    uint64_t frames = m->frames; /* membership-marks-A3: no frame beside the digests */
    mesh_run(m, 10000);
    UNIT_TRUE(m->frames - frames <= 3 * 13);
    mesh_free(m);
}

/* Orders on both sides of a lost link agree in the end: the later counter stands. */
static void
orders_that_cross_agree_in_the_end(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    m->cut[3] = true;
    UNIT_EQUAL(mesh_order(m, 3, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 3, TRPI_MEMBER_UNDRAIN, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 3, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_UNDRAIN, 1), TRP_OK);
    mesh_run(m, 500);
    m->cut[3] = false;
    mesh_run(m, 20000);
    UNIT_EQUAL(know(m, 1), 4);
    mesh_free(m);
}

/* Members of an earlier version are sent nothing that they do not know, and agree on the view. */
static void
members_without_the_feature_are_told_nothing(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->old[2] = true;
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1), TRP_OK);
    mesh_run(m, 10000);
    UNIT_EQUAL(know(m, 1), 2);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_TRUE(trpi_member_is_converged(m->cores[i]));
        UNIT_EQUAL(trpi_member_view(m->cores[i])->digest, trpi_member_view(m->cores[0])->digest);
    }
    mesh_free(m);
}

static void
orders_about_nobody_are_refused(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    trpi_member_event event = { .kind = TRPI_MEMBER_DRAIN, .target = mesh_id(5, 0) };
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_ENOENT);
    event = (trpi_member_event){ .kind = TRPI_MEMBER_DRAIN }; /* none named: this node */
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
    UNIT_TRUE(is_drained(m, 0, 0));
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1), TRP_ESTATE);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_UNDRAIN, 1), TRP_OK); /* it is not drained */
    uint32_t alone = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_order(m, alone, TRPI_MEMBER_DRAIN, alone), TRP_ESTATE);
    mesh_free(m);
}

/* A peer's frame: members that are not there, zeros and the largest counter. */
static void
what_a_peer_says_is_bounded(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    trpi_vclock_entry entries[3] = { { 1, 5 }, { 2, 0 }, { 3, 9 } };
    trpi_frame frame = { .kind = TRPI_FRAME_MARKS,
                         .to_uid = m->ids[0].uid,
                         .ttl = TRPI_FRAME_TTL_MAX,
                         .clock = entries,
                         .clock_count = 3 };
    mesh_hand(m, 0, m->ids[1], &frame, NULL);
    UNIT_EQUAL(know(m, 0) + know(m, 1), 0);
    UNIT_EQUAL(m->head, m->tail); /* nothing is known: no answer */
    entries[0] = (trpi_vclock_entry){ trpi_ident_key(&m->ids[1]), TRPI_GOSSIP_COUNTER_MAX };
    frame.clock_count = 1;
    mesh_hand(m, 0, m->ids[1], &frame, NULL);
    mesh_run(m, 3000);
    UNIT_EQUAL(know(m, 1), 2 * (TRPI_GOSSIP_COUNTER_MAX % 2));
    (void)mesh_order(m, 0, TRPI_MEMBER_DRAIN, 1);
    (void)mesh_order(m, 0, TRPI_MEMBER_UNDRAIN, 1);
    mesh_run(m, 3000);
    UNIT_TRUE(trpi_member_is_converged(m->cores[0]) && trpi_member_is_converged(m->cores[1]));
    mesh_free(m);
}

/* Frames of the gossip channel that minor version 5 added. */
static void
golden_write(FILE *file)
{
    trpi_vclock_entry entries[2] = { { 0x0102030405060708, 1 }, { 0x1112131415161718, 4 } };
    trpi_frame frame = {
        .kind = TRPI_FRAME_MARKS, .to_uid = 102, .ttl = 2, .clock = entries, .clock_count = 2
    };
    trpi_buffer bytes = { 0 };
    UNIT_EQUAL(trpi_frame_encode(&frame, NULL, &bytes), TRP_OK);
    fprintf(file, "marks ");
    for (size_t i = 0; i < bytes.count; i++) {
        fprintf(file, "%02x", bytes.data[i]);
    }
    fprintf(file, "\n");
    trpi_buffer_fini(&bytes);
}

static void
the_bytes_of_marks_are_those_of_the_golden_file(void)
{
    (void)unit_golden("gossip-1.5.txt", golden_write);
}

UNIT_BEGIN("marks")
UNIT(the_bytes_of_marks_are_those_of_the_golden_file)
UNIT(a_counter_only_rises)
UNIT(a_set_holds_as_many_as_a_view)
UNIT(merges_in_any_order_are_equal)
UNIT(an_order_reaches_all_members)
UNIT(the_member_that_is_told_is_named_in_each_log_once)
UNIT(a_member_that_missed_it_learns_it)
UNIT(the_mark_survives_the_leader)
UNIT(the_mark_ends_with_the_incarnation)
UNIT(orders_that_cross_agree_in_the_end)
UNIT(members_without_the_feature_are_told_nothing)
UNIT(orders_about_nobody_are_refused)
UNIT(what_a_peer_says_is_bounded)
UNIT_END
