/* Vector clocks, merge laws, transitions (GOSSIP, MEMB-23). A failed history prints its seed. */
#include "base/alloc.h"
#include "tests/unit/cluster/histories.h"

/* ---- vclock ---------------------------------------------------------------------------------- */

/* GOSSIP-02, GOSSIP-05 */
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

/* MEMB-23, MEMB-06, pair by pair; Joining and WeaklyUp -> Leaving: a node may leave before it is Up
 */
static void
every_pair_of_statuses_is_legal_or_not_as_the_table_says(void)
{
    /* rows: from; columns: ? Joining Up Leaving Exiting Down Removed WeaklyUp */
    static const char *const table[8] = { "........", "..++.+++", "...+.++.", "....+++.",
                                          ".....++.", "......+.", "........", "..++.++." };
    trpi_gossip *g = trpi_gossip_new();
    trpi_ident *ident;
    trpi_node_id id = mesh_id(0, 1);
    UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &ident) == TRP_OK);
    UNIT_EQUAL(trpi_gossip_add(g, ident, TRP_MEMBER_JOINING, 0), TRP_OK);
    for (uint32_t from = 0; from < 8; from++) {
        for (uint32_t to = 0; to < 8; to++) {
            bool legal = table[from][to] == '+';
            UNIT_EQUAL(trpi_member_transition_is_legal(from, to), legal);
            if (!legal || to == TRP_MEMBER_REMOVED) {
                continue;
            }
            g->members[0].weakly_up = from == TRP_MEMBER_WEAKLY_UP;
            g->members[0].status =
                (uint16_t)(g->members[0].weakly_up != 0 ? TRP_MEMBER_JOINING : from);
            trpi_gossip_set_status(g, 0, to); /* what is legal is done, and seen */
            UNIT_EQUAL(trpi_member_status(&g->members[0]), to);
            UNIT_EQUAL(g->members[0].weakly_up, to == TRP_MEMBER_WEAKLY_UP);
        }
    }
    UNIT_FALSE(trpi_member_transition_is_legal(8, 1));
    UNIT_FALSE(trpi_member_transition_is_legal(1, 8));
    UNIT_TEXT(trp_member_status_name(TRP_MEMBER_WEAKLY_UP), "WeaklyUp");
    UNIT_TEXT(trp_member_status_name(8), "?");
    trpi_ident_unref(ident);
    trpi_gossip_unref(g);
}

/* ---- merge ----------------------------------------------------------------------------------- */

static uint32_t
age_of(const trpi_gossip_member *m)
{
    return 2u * m->status + m->weakly_up;
}

static bool
is_monotone(const trpi_gossip *before, const trpi_gossip *after)
{
    for (uint32_t i = 0; i < before->members_count; i++) {
        uint64_t key = before->members[i].ident->key;
        uint32_t at = trpi_gossip_find(after, key);
        if (at == TRPI_GOSSIP_NONE ? trpi_gossip_tombstone(after, key) == NULL
                                   : age_of(&after->members[at]) < age_of(&before->members[i])) {
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
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        trpi_gossip_unref(made[i]);
    }
    return hold;
}

/* GOSSIP-11, MEMB-37 */
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

/* One member, Down, Up since since_s, with a version of node by more than `view` has, if any. */
static trpi_gossip *
down_since(trpi_gossip *view, uint32_t by, uint32_t since_s, uint32_t settled)
{
    trpi_gossip *g = view == NULL ? trpi_gossip_new() : trpi_gossip_copy(view);
    for (uint32_t k = 0; view == NULL && k < 3; k++) {
        UNIT_EQUAL(trpi_gossip_add(g, idents[k], k == 2 ? TRP_MEMBER_DOWN : TRP_MEMBER_UP, k + 1),
                   TRP_OK);
    }
    g->members[2].up_since_s = since_s;
    g->members[2].settled = settled;
    UNIT_EQUAL(trpi_gossip_count_up(g, idents[by]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    return g;
}

/* gossip-merge-M2, -M6: what is no part of the digest is merged too, by each way to a merge: one
 * side is newer, or both are concurrent */
static void
a_merge_keeps_the_earlier_moment_and_what_is_settled(void)
{
    idents_make();
    trpi_gossip *early = down_since(NULL, 0, 1000, 1);
    trpi_gossip *late = down_since(NULL, 1, 2000, 0);
    trpi_gossip *newer = down_since(early, 1, 3000, 0);
    trpi_gossip *pairs[][2] = {
        { early, late }, { late, early }, { early, newer }, { newer, early }
    };
    UNIT_EQUAL(trpi_gossip_compare(early, late), TRPI_VCLOCK_CONCURRENT);
    UNIT_EQUAL(trpi_gossip_compare(early, newer), TRPI_VCLOCK_BEFORE);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        trpi_gossip *merged = merge(pairs[i][0], pairs[i][1]);
        UNIT_EQUAL(merged->members[2].up_since_s, 1000);
        UNIT_EQUAL(merged->members[2].settled, 1);
        trpi_gossip_unref(merged);
    }
    trpi_gossip_unref(early);
    trpi_gossip_unref(late);
    trpi_gossip_unref(newer);
    idents_free();
}

static bool
is_number(const void *arg, uint32_t index)
{
    return index == *(const uint32_t *)arg;
}

/* GOSSIP-12, GAP-10, net#8467: a merge with a node that has not heard of the removal does not bring
 * the member back */
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
    UNIT_EQUAL(trpi_gossip_remove(new, 1, 1000), TRP_OK);
    UNIT_EQUAL(trpi_gossip_count_up(new, idents[0]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(new), TRP_OK);
    UNIT_EQUAL(trpi_gossip_compare(new, old), TRPI_VCLOCK_AFTER);
    UNIT_EQUAL(trpi_gossip_compare(old, new), TRPI_VCLOCK_BEFORE);
    UNIT_EQUAL(new->clock_count, 1); /* the entry of the removed is pruned */
    trpi_gossip *merged = merge(old, new);
    UNIT_TRUE(merged == new); /* shared, not copied */
    UNIT_EQUAL(merged->members_count, 1);
    trpi_gossip *pruned = trpi_gossip_copy(new);
    uint32_t which = 1;
    UNIT_EQUAL(trpi_gossip_prune(pruned, is_number, &which), 0);
    UNIT_EQUAL(pruned->tombstones_count, 1);
    which = 0;
    UNIT_EQUAL(trpi_gossip_prune(pruned, is_number, &which), 1);
    UNIT_EQUAL(pruned->tombstones_count, 0);
    trpi_gossip_unref(pruned);
    trpi_gossip_unref(merged);
    trpi_gossip_unref(new);
    trpi_gossip_unref(old);
    idents_free();
}

/* The n-th allocation fails; nothing leaks, nothing breaks */
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

/* ---- whose word counts (downing-D5) ---------------------------------------------------------- */

/* Bit i: member i is unreachable, when rows are "observer subject" pairs; down: bits. */
static uint32_t
unreachable_of(uint32_t n, const char *rows, uint32_t down)
{
    trpi_gossip *g = trpi_gossip_new();
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t status = (down >> i & 1) != 0 ? TRP_MEMBER_DOWN : TRP_MEMBER_UP;
        UNIT_EQUAL(trpi_gossip_add(g, idents[i], status, i + 1), TRP_OK);
    }
    for (const char *at = rows; *at != '\0'; at += at[2] == ' ' ? 3 : 2) {
        uint64_t observer = idents[at[0] - '0']->key, subject = idents[at[1] - '0']->key;
        UNIT_EQUAL(trpi_gossip_add_row(g, observer, subject), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add_version(g, observer, 1), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = trpi_gossip_find(g, idents[i]->key);
        mask |= trpi_gossip_is_unreachable(g, at) ? 1u << i : 0;
    }
    trpi_gossip_unref(g);
    return mask;
}

static void
the_word_of_an_observer_that_is_away_does_not_count(void)
{
    idents_make();
    UNIT_EQUAL(unreachable_of(3, "02", 0), 0x4);
    UNIT_EQUAL(unreachable_of(4, "31 03", 0), 0x8);    /* 3 said so, and has died */
    UNIT_EQUAL(unreachable_of(4, "31 13 03", 0), 0x8); /* 1 missed it as well */
    UNIT_EQUAL(unreachable_of(4, "12 23 31 01", 0),
               0xa); /* 1 is away, so 2 counts, so 3 is, and 1 still */
    UNIT_EQUAL(unreachable_of(4, "31", 1u << 3), 0);            /* a Down member observes no more */
    UNIT_EQUAL(unreachable_of(4, "30 31 32 03 13 23", 0), 0x8); /* one is deaf: it accuses all */
    UNIT_EQUAL(unreachable_of(3, "01 10", 0), 0x3); /* of two it is not known whose link it is */
    UNIT_EQUAL(unreachable_of(4, "02 03 12 13 20 21 30 31", 0), 0xf);
    /* all three observers are reported twice, and one that reports nobody once */
    UNIT_EQUAL(unreachable_of(4, "30 31 32 21 23 12 13", 0), 0xf);
    /* 2 reports no more than a Down one: the others are a circle of their own */
    UNIT_EQUAL(unreachable_of(5, "12 10 13 14 23 01 03 04 41 40 43", 1u << 3), 0x1f);
    UNIT_EQUAL(unreachable_of(5, "03 04 13 14 23 24 30 31 32 40 41 42", 0),
               0x18); /* three and two */
    idents_free();
}

UNIT_BEGIN("gossip")
UNIT(the_word_of_an_observer_that_is_away_does_not_count)
UNIT(clocks_compare_as_same_before_after_and_concurrent)
UNIT(counting_up_makes_a_clock_newer)
UNIT(every_pair_of_statuses_is_legal_or_not_as_the_table_says)
UNIT(merge_is_commutative_associative_idempotent_and_monotone)
UNIT(a_merge_keeps_the_earlier_moment_and_what_is_settled)
UNIT(a_removed_member_is_not_resurrected_by_an_older_view)
UNIT(a_merge_without_memory_is_an_error_and_changes_nothing)
UNIT_END
