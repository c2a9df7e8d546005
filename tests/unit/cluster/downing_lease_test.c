/* downing_lease_test.c - the strategy lease: which node asks when, and the end of a refused side.
 *
 * DOWN; Akka's lease-majority. Five nodes, cut 0 1 2 | 3 4, stable-after 2 s. */
#include <unistd.h>

#include "cluster/shell/lease.h"
#include "tests/unit/cluster/scene.h"

enum { N = 5, STABLE = 2000, LATER = 1000 };

static struct mesh *
five_named(bool longest)
{
    struct mesh *m = mesh_new();
    trpi_member_options o = { .seed = 7, .downing_strategy = "lease" };
    o.downing.stable_after_ms = STABLE;
    o.downing.unstable_after_ms = 1000;
    o.downing.lease_minority_delay_ms = LATER;
    for (uint32_t i = 0; i < N; i++) {
        trpi_node_id id = mesh_id(i, 1000 + i);
        if (longest) {
            memset(id.address.system, 's', TRPI_SYSTEM_BYTES_MAX);
            memset(id.address.host + 5, 'h', TRPI_HOST_BYTES_MAX - 5); /* "host0hhh..." */
        }
        (void)mesh_add_as(m, id, NULL, &o);
    }
    for (uint32_t i = 0; i < N; i++) {
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
        mesh_run(m, 3000);
    }
    for (uint32_t i = 0; i < N; i++) {
        UNIT_EQUAL(mesh_status(m, 0, i), TRP_MEMBER_UP);
    }
    return m;
}

static struct mesh *
cluster_of_five(void)
{
    return five_named(false);
}

/* The nodes of mask see all others unreachable, and run `ms` by themselves. */
static void
side_runs(struct mesh *m, uint32_t mask, uint64_t ms)
{
    for (uint32_t i = 0; i < N; i++) {
        m->cut[i] = (mask >> i & 1) == 0;
    }
    for (uint32_t i = 0; i < N; i++) {
        if ((mask >> i & 1) != 0 && m->stopped[i] == TRPI_STOP_NONE) {
            mesh_observe(m, i, ((1u << N) - 1) & ~mask);
        }
    }
    mesh_run(m, ms);
}

static uint32_t
askers_count(const struct mesh *m)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < N; i++) {
        mask |= m->asks_lease[i] ? 1u << i : 0;
    }
    return mask;
}

static void
answer_why(struct mesh *m, uint32_t node, bool granted, const char *why)
{
    trpi_member_event event = { .kind = TRPI_MEMBER_LEASE, .count = granted ? 1 : 0, .text = why };
    m->asks_lease[node] = false;
    UNIT_EQUAL(mesh_step(m, node, &event), TRP_OK);
    mesh_drain(m);
}

static void
answer_lease(struct mesh *m, uint32_t node, bool granted)
{
    answer_why(m, node, granted, NULL);
}

static uint32_t
stopped_count(const struct mesh *m)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < N; i++) {
        mask |= m->stopped[i] == TRPI_STOP_DOWNED ? 1u << i : 0;
    }
    return mask;
}

static void
one_node_of_the_larger_side_asks_first_and_who_gets_it_stays(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE - 500);
    UNIT_EQUAL(askers_count(m), 0);
    side_runs(m, 0x07, 2500);
    UNIT_EQUAL(askers_count(m), 0x01);
    UNIT_TEXT(m->decision.decision, "acquire-lease");
    UNIT_TEXT(m->decision.reason,
              "the lease decides: 3 of 5 members on this side, 2 unreachable, 0 "
              "indirectly connected");
    answer_lease(m, 0, true);
    UNIT_TEXT(m->decision.decision, "down-unreachable");
    mesh_run(m, 3000);
    UNIT_EQUAL(stopped_count(m), 0);
    UNIT_EQUAL(mesh_status(m, 1, 3), 0);
    UNIT_EQUAL(mesh_status(m, 2, 4), 0);
    UNIT_TRUE(!m->released_lease[0]);
    mesh_run(m, 41000); /* no member is unreachable, and the other side has asked long ago */
    UNIT_TRUE(m->released_lease[0]);
    mesh_free(m);
}

static void
the_smaller_side_asks_later_and_stops_as_a_whole_when_it_is_refused(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x18, STABLE + LATER - 200);
    UNIT_EQUAL(askers_count(m), 0);
    side_runs(m, 0x18, 3000);
    UNIT_EQUAL(askers_count(m), 0x08);
    answer_lease(m, 3, false);
    UNIT_EQUAL(stopped_count(m), 0x18);
    UNIT_TEXT(m->decision.decision, "down-own-side");
    mesh_free(m);
}

/* LeaseMajority5NodeSpec: the lease decides, not the number. */
static void
the_larger_side_stops_when_the_smaller_one_was_quicker(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x18, STABLE + LATER + 3000);
    answer_lease(m, 3, true);
    mesh_run(m, 3000);
    UNIT_EQUAL(stopped_count(m), 0);
    UNIT_EQUAL(mesh_status(m, 4, 0), 0);
    side_runs(m, 0x07, STABLE + 3000);
    UNIT_EQUAL(askers_count(m) & 0x07, 0x01);
    answer_lease(m, 0, false);
    UNIT_EQUAL(stopped_count(m), 0x07);
    mesh_free(m);
}

static void
no_answer_is_a_refusal_and_one_that_comes_later_is_given_back(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE + 2000);
    UNIT_EQUAL(askers_count(m), 0x01);
    mesh_run(m, 7000); /* more than lease_timeout_ms */
    UNIT_EQUAL(stopped_count(m), 0x07);
    mesh_free(m);
}

/* downing-D8: of a broken link the later end goes, unless it has the lease, which would end with
 * it */
static void
who_has_the_lease_is_not_given_up(void)
{
    trpi_downing_options options = { .stable_after_ms = STABLE };
    struct scene s;
    scene_make(&s, 3, NULL);
    scene_row(&s, 0, 2);
    s.lease = TRPI_LEASE_HELD;
    UNIT_EQUAL(scene_decide(&s, "lease", &options, 2, 0x7), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 0);
    UNIT_EQUAL(scene_decide(&s, "lease", &options, 0, 0x7), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes[0], 2);
    scene_end(&s);
}

/* The answer is lost and the cut heals; at the next cut the lease is asked for anew. */
static void
a_lease_that_was_not_answered_is_asked_for_again(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE + 1500);
    UNIT_EQUAL(askers_count(m), 0x01);
    m->asks_lease[0] = false;
    memset(m->cut, 0, sizeof m->cut);
    for (uint32_t i = 0; i < 3; i++) {
        mesh_observe(m, i, 0);
    }
    mesh_run(m, 10000);
    side_runs(m, 0x07, STABLE + 3000);
    UNIT_EQUAL(stopped_count(m), 0);
    UNIT_EQUAL(askers_count(m), 0x01);
    answer_lease(m, 0, true);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 1, 3), 0);
    /* membership-downing-W4: it does not give it back at its end */
    UNIT_TRUE(trpi_member_needs_lease(m->cores[0]));
    UNIT_TRUE(!trpi_member_needs_lease(m->cores[1]));
    mesh_free(m);
}

static void
a_cut_that_heals_while_the_lease_is_asked_takes_nobody_out(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE + 1500);
    UNIT_EQUAL(askers_count(m), 0x01);
    for (uint32_t i = 0; i < N; i++) {
        m->cut[i] = false;
    }
    for (uint32_t i = 0; i < 3; i++) {
        mesh_observe(m, i, 0);
    }
    mesh_run(m, 1000);
    answer_lease(m, 0, true);
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < N; i++) {
        UNIT_EQUAL(mesh_status(m, 4, i), TRP_MEMBER_UP);
    }
    UNIT_EQUAL(stopped_count(m), 0);
    mesh_run(m, 41000);
    UNIT_TRUE(m->released_lease[0]);
    mesh_free(m);
}

/* Two nodes are cut off and removed; much later one of the three that stayed. */
static void
a_lease_that_is_used_again_is_kept_as_long_again(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE + 2000);
    answer_lease(m, 0, true);
    mesh_run(m, 35000);
    UNIT_TRUE(!m->released_lease[0]);
    side_runs(m, 0x03, STABLE + 5000); /* more than 40 s since it was granted */
    UNIT_EQUAL(mesh_status(m, 1, 2), 0);
    mesh_run(m, 34000);
    UNIT_TRUE(!m->released_lease[0]);
    mesh_run(m, 7000);
    UNIT_TRUE(m->released_lease[0]);
    mesh_free(m);
}

/* Node 0 is first in order, but comes when node 1 has the lease already; then one more is lost. */
static void
who_has_the_lease_acts_though_another_is_first(void)
{
    struct mesh *m = mesh_new();
    trpi_member_options o = { .seed = 7, .downing_strategy = "lease" };
    o.downing.stable_after_ms = STABLE;
    for (uint32_t i = 0; i < N; i++) {
        (void)mesh_add(m, &o);
    }
    for (uint32_t i = 1; i < N; i++) {
        UNIT_EQUAL(mesh_join(m, i, 1), TRP_OK);
        mesh_run(m, 3000);
    }
    side_runs(m, 0x0e, STABLE + 2000);
    UNIT_EQUAL(askers_count(m), 0x02);
    answer_lease(m, 1, true);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 1, 4), 0);
    m->cut[0] = false;
    UNIT_EQUAL(mesh_join(m, 0, 1), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_status(m, 1, 0), TRP_MEMBER_UP);
    UNIT_TRUE(!m->released_lease[1]);
    m->cut[3] = true;
    for (uint32_t i = 0; i < 3; i++) {
        mesh_observe(m, i, 1u << 3);
    }
    mesh_run(m, STABLE + 3000);
    UNIT_EQUAL(stopped_count(m), 0);
    UNIT_EQUAL(mesh_status(m, 0, 3), 0);
    mesh_free(m);
}

static void
who_is_refused_tells_which_sides_it_saw(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x18, STABLE + LATER + 2000);
    UNIT_EQUAL(askers_count(m), 0x08);
    answer_lease(m, 3, false);
    mesh_run(m, 1000);
    UNIT_EQUAL(stopped_count(m), 0x18);
    UNIT_TEXT(m->sides, "this side: host3:2555, host4:2556; not on it: host0:2552, host1:2553, "
                        "host2:2554");
    mesh_free(m);
}

static void
an_owner_on_the_own_side_is_no_refusal(void)
{
    for (int own = 0; own < 2; own++) {
        struct mesh *m = cluster_of_five();
        side_runs(m, 0x07, STABLE + 2000);
        UNIT_EQUAL(askers_count(m), 0x01);
        answer_why(m, 0, false,
                   own != 0 ? "troupe.tcp://test@host1:2553 uid 00000000000003e9 has it"
                            : "troupe.tcp://test@host3:2555 uid 00000000000003eb has it");
        mesh_run(m, 2000);
        UNIT_EQUAL(stopped_count(m), own != 0 ? 0 : 0x07);
        UNIT_EQUAL(askers_count(m), own != 0 ? 0x01 : 0); /* again */
        mesh_free(m);
    }
}

static void
ask_file(const char *path, const char *owner, trpi_lease_answer_fn answered, void *arg,
         trpi_lease_file **ret_file)
{
    trpi_lease *lease;
    UNIT_REQUIRE(trpi_lease_file_new(path, ret_file) == TRP_OK);
    UNIT_REQUIRE(trpi_lease_new("test-lease", owner, 1000, answered, arg, &lease) == TRP_OK);
    trpi_lease_set(lease, &trpi_lease_file_ops, *ret_file);
    trpi_lease_acquire(lease, true);
    trpi_lease_close(lease, false);
}

static void
first_hears(void *arg, bool granted, const char *why)
{
    answer_why(arg, 0, granted, why);
}

static void
is_granted(void *arg, bool granted, const char *why)
{
    (void)arg;
    (void)why;
    UNIT_TRUE(granted);
}

/* As above, by the file, and with the longest names there are: POD.SERVICE.NAMESPACE.svc... */
static void
an_owner_with_the_longest_name_is_known_as_well(void)
{
    char directory[] = "/tmp/troupe-lease-XXXXXX", path[64], owner[TRPI_LEASE_OWNER_BYTES];
    trpi_lease_file *files[2];
    UNIT_REQUIRE(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/lease", directory);
    for (uint32_t other = 0; other < 2; other++) { /* host1 has it, or host3 */
        struct mesh *m = five_named(true);
        side_runs(m, 0x07, STABLE + 2000);
        UNIT_EQUAL(askers_count(m), 0x01);
        ask_file(path, trpi_lease_owner(&m->ids[other == 0 ? 1 : 3], owner), is_granted, NULL,
                 &files[0]);
        ask_file(path, trpi_lease_owner(&m->ids[0], owner), first_hears, m, &files[1]);
        mesh_run(m, 2000);
        UNIT_EQUAL(stopped_count(m), other == 0 ? 0 : 0x07);
        UNIT_EQUAL(askers_count(m), other == 0 ? 0x01 : 0); /* again */
        trpi_lease_file_free(files[0]);
        trpi_lease_file_free(files[1]);
        mesh_free(m);
    }
    UNIT_EQUAL(unlink(path), 0);
    UNIT_EQUAL(rmdir(directory), 0);
}

/* Links inside of the smaller side change after each 2.5 s: it rests, but never for 3 s. */
static void
a_side_that_has_flapped_for_too_long_stops_instead_of_asking(void)
{
    struct mesh *m = cluster_of_five();
    for (uint32_t i = 0; i < 4; i++) {
        side_runs(m, 0x18, 0);
        mesh_observe(m, 3, i % 2 == 0 ? 0x17 : 0x07);
        mesh_run(m, STABLE + LATER / 2);
        UNIT_EQUAL(askers_count(m), 0);
    }
    UNIT_EQUAL(stopped_count(m), 0);
    mesh_observe(m, 3, 0x17);
    mesh_run(m, STABLE + LATER + 2000);
    UNIT_EQUAL(askers_count(m), 0);
    UNIT_EQUAL(stopped_count(m), 0x18);
    UNIT_TEXT(m->decision.decision, "down-own-side");
    mesh_free(m);
}

static void
the_last_moment_to_ask_comes_before_the_first_to_give_back(void)
{
    trpi_downing_options o = { .stable_after_ms = STABLE,
                               .unstable_after_ms = 1000,
                               .lease_minority_delay_ms = LATER,
                               .lease_timeout_ms = 5000 };
    uint64_t last_ms = trpi_downing_lease_ask_ms(&o);
    UNIT_EQUAL(last_ms, 4 * STABLE + 1000 + LATER);
    UNIT_EQUAL(trpi_downing_lease_hold_ms(&o), last_ms + STABLE + 5000);
    o.lease_release_after_ms = 40000;
    UNIT_EQUAL(trpi_downing_lease_hold_ms(&o), 40000);
    struct scene s;
    scene_make(&s, 3, NULL);
    scene_row(&s, 0, 2);
    s.apart_ms = last_ms;
    UNIT_EQUAL(scene_decide(&s, "lease", &o, 0, 0x03), TRPI_DOWNING_ACQUIRE);
    s.apart_ms = last_ms + 1;
    UNIT_EQUAL(scene_decide(&s, "lease", &o, 0, 0x03), TRPI_DOWNING_DOWN_SIDE);
    UNIT_EQUAL(s.decision.indexes_count, 2);
    scene_end(&s);
}

/* ... an Exiting member is not marked Down: it ends by itself. */
static void
a_side_that_stops_leaves_out_who_is_exiting(void)
{
    static const uint32_t status[SCENE_MEMBERS_MAX] = { 0, TRP_MEMBER_EXITING | SCENE_SURE };
    trpi_downing_options o = { .stable_after_ms = STABLE, .lease_minority_delay_ms = LATER };
    struct scene s;
    scene_make(&s, 4, status);
    scene_row(&s, 0, 3);
    s.lease = TRPI_LEASE_REFUSED;
    UNIT_EQUAL(scene_decide(&s, "lease", &o, 0, 0x07), TRPI_DOWNING_DOWN_SIDE);
    UNIT_EQUAL(s.decision.indexes_count, 2);
    UNIT_EQUAL(s.decision.indexes[0], 0);
    UNIT_EQUAL(s.decision.indexes[1], 2);
    scene_end(&s);
}

/* The owner's lock ends with it, perhaps before the other side has asked. */
static void
who_leaves_asks_only_when_nobody_else_can(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 7, 100);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    mesh_run(m, STABLE + 900);
    UNIT_EQUAL(mesh_status(m, 1, 0), TRP_MEMBER_LEAVING); /* no convergence while there is a cut */
    UNIT_EQUAL(askers_count(m), 2);
    mesh_free(m);
    m = cluster_of_five();
    side_runs(m, 1, 100);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    mesh_run(m, STABLE + LATER + 900);
    UNIT_EQUAL(askers_count(m), 1);
    mesh_free(m);
}

/* membership-downing-W11 */
static void
an_owner_that_leaves_stays_for_as_long_as_it_keeps_the_lease(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE + 500);
    answer_lease(m, 0, true);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_LEAVE, 1), TRP_OK); /* another one goes at once */
    mesh_run(m, 15000);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_LEFT);
    UNIT_EQUAL(mesh_status(m, 2, 0), TRP_MEMBER_EXITING);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE);
    UNIT_FALSE(m->released_lease[0]);
    mesh_run(m, 41000);
    UNIT_TRUE(m->released_lease[0]);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_LEFT);
    UNIT_EQUAL(mesh_status(m, 2, 0), 0);
    mesh_free(m);
}

/* membership-downing-W11: nobody is left that needs it */
static void
an_owner_leaves_at_once_with_all_others(void)
{
    struct mesh *m = cluster_of_five();
    side_runs(m, 0x07, STABLE + 500);
    answer_lease(m, 0, true);
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_order(m, i, TRPI_MEMBER_LEAVE, i), TRP_OK);
    }
    mesh_run(m, 25000);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_LEFT);
    mesh_free(m);
}

UNIT_BEGIN("downing_lease")
UNIT(one_node_of_the_larger_side_asks_first_and_who_gets_it_stays)
UNIT(the_smaller_side_asks_later_and_stops_as_a_whole_when_it_is_refused)
UNIT(the_larger_side_stops_when_the_smaller_one_was_quicker)
UNIT(no_answer_is_a_refusal_and_one_that_comes_later_is_given_back)
UNIT(who_has_the_lease_is_not_given_up)
UNIT(a_lease_that_was_not_answered_is_asked_for_again)
UNIT(a_cut_that_heals_while_the_lease_is_asked_takes_nobody_out)
UNIT(a_lease_that_is_used_again_is_kept_as_long_again)
UNIT(who_has_the_lease_acts_though_another_is_first)
UNIT(who_is_refused_tells_which_sides_it_saw)
UNIT(an_owner_on_the_own_side_is_no_refusal)
UNIT(an_owner_with_the_longest_name_is_known_as_well)
UNIT(a_side_that_has_flapped_for_too_long_stops_instead_of_asking)
UNIT(a_side_that_stops_leaves_out_who_is_exiting)
UNIT(who_leaves_asks_only_when_nobody_else_can)
UNIT(an_owner_that_leaves_stays_for_as_long_as_it_keeps_the_lease)
UNIT(an_owner_leaves_at_once_with_all_others)
UNIT(the_last_moment_to_ask_comes_before_the_first_to_give_back)
UNIT_END
