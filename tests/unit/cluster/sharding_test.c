/* Shards: frames as bytes, and allocation. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/sharding/coordinator.h"

#include "tests/unit/golden.h"
#include "tests/unit/unit.h"

static trpi_node_id
node(uint32_t number)
{
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    (void)snprintf(id.address.protocol, sizeof id.address.protocol, "troupe.tcp");
    (void)snprintf(id.address.system, sizeof id.address.system, "demo");
    (void)snprintf(id.address.host, sizeof id.address.host, "10.0.0.1");
    id.address.port = (uint16_t)(2550 + number);
    id.uid = number;
    return id;
}

/* ---- allocation ------------------------------------------------------------------------------ */

/* FUTURE-06 */
static void
first_fit_goes_round_the_ring_as_in_the_worked_example(void)
{
    static const uint32_t instances[] = { 4, 3, 5 };
    static const uint32_t expected[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2 };
    uint32_t nodes[12];
    trpi_allocation_ring(10, instances, 3, nodes);
    UNIT_EQUAL(memcmp(nodes, expected, sizeof expected), 0);
}

/* FUTURE-07 */
static void
five_joiners_renumber_the_table_and_no_instance_moves(void)
{
    static const uint32_t joined[] = { 2, 4, 5, 7, 8 };
    static const uint32_t expected[] = { 1, 2, 4, 5, 7, 9, 10, 12, 14, 15, 1, 2 };
    uint32_t nodes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2 };
    trpi_allocation_renumber(joined, 5, nodes, 12);
    UNIT_EQUAL(memcmp(nodes, expected, sizeof expected), 0);
}

struct table {
    trpi_node_id ids[3];
    trpi_allocation_region regions[3];
    uint32_t homes[100];
    trpi_allocation_view view;
};

static void
table_make(struct table *t, const uint32_t *shards, const uint32_t *weights)
{
    uint32_t next = 0;
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < 3; i++) {
        t->ids[i] = node(i + 1);
        t->regions[i] = (trpi_allocation_region){ &t->ids[i], "1", shards[i], weights[i], true };
        for (uint32_t j = 0; j < shards[i]; j++) {
            t->homes[next++] = i;
        }
    }
    for (; next < 100; next++) {
        t->homes[next] = TRPI_ALLOCATION_NONE;
    }
    t->view = (trpi_allocation_view){ t->regions, 3, 100, t->homes, TRPI_ALLOCATION_NONE };
}

static void
a_shard_goes_where_the_fewest_are_for_the_weight(void)
{
    static const uint32_t shards[] = { 8, 6, 7 }, none[] = { 0, 0, 0 }, weights[] = { 9, 1, 1 };
    struct table t;
    table_make(&t, shards, none);
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_LEAST_SHARDS, &t.view), 1);
    t.regions[1].may_get = false;
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_LEAST_SHARDS, &t.view), 2);
    table_make(&t, shards, weights);
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_METRICS, &t.view), 0);
    table_make(&t, none, none);
    t.view.last = 1;
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_FIRST_FIT, &t.view), 2);
    t.view.last = 2;
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_FIRST_FIT, &t.view), 0);
    for (uint32_t i = 0; i < 3; i++) {
        t.regions[i].may_get = false;
    }
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_LEAST_SHARDS, &t.view), TRPI_ALLOCATION_NONE);
}

/* FUTURE-10 */
static void
a_question_to_the_program_names_regions_and_shards(void)
{
    static const uint32_t shards[] = { 8, 6, 7 }, weights[] = { 9, 0, 1 }, wanted[] = { 98, 99 };
    uint32_t counts[3], moves[100];
    struct table t;
    table_make(&t, shards, weights);
    t.regions[2].may_get = false;
    trpi_allocation_question *q = trpi_allocation_question_new("order", &t.view, wanted, 2, 5);
    UNIT_REQUIRE(q != NULL);
    UNIT_EQUAL(q->ask.regions_count, 3);
    UNIT_TRUE(strcmp(q->ask.type, "order") == 0);
    UNIT_TRUE(strcmp(q->ask.regions[1].address, "troupe.tcp://demo@10.0.0.1:2552") == 0);
    UNIT_TRUE(strcmp(q->ask.regions[2].app_version, "1") == 0);
    UNIT_EQUAL(q->ask.regions[1].uid, 2);
    UNIT_TRUE(trpi_node_id_equal(&q->nodes[1], &t.ids[1]));
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(q->ask.regions[i].shards, shards[i]);
        UNIT_EQUAL(q->ask.regions[i].weight, weights[i]);
        UNIT_EQUAL(q->ask.regions[i].may_get, i < 2);
    }
    UNIT_EQUAL(memcmp(q->ask.homes, t.homes, sizeof t.homes), 0);
    UNIT_EQUAL(memcmp(q->ask.wanted, wanted, sizeof wanted), 0);
    UNIT_TRUE(q->ask.wanted_homes[0] == TRP_ALLOCATION_NONE &&
              q->ask.wanted_homes[1] == TRP_ALLOCATION_NONE);
    UNIT_EQUAL(q->ask.moves_max, 5);
    UNIT_EQUAL(q->ask.moves_count, 0);
    for (uint32_t i = 0; i < 5; i++) { /* there is room for the whole answer */
        q->ask.moves[i] = i;
    }
    trpi_free(q);
    UNIT_EQUAL(trpi_allocation_choose(TRPI_ALLOCATION_USER, &t.view), 1); /* without an answer */
    t.regions[0].shards = 90;
    UNIT_EQUAL(trpi_allocation_rebalance(TRPI_ALLOCATION_USER, &t.view, 5, counts, moves), 0);
}

static void
a_round_moves_from_the_fullest_to_the_emptiest_within_its_limit(void)
{
    static const uint32_t shards[] = { 30, 0, 3 }, even[] = { 11, 11, 12 }, none[] = { 0, 0, 0 };
    uint32_t counts[3], moves[100];
    struct table t;
    table_make(&t, shards, none);
    UNIT_EQUAL(trpi_allocation_rebalance(TRPI_ALLOCATION_LEAST_SHARDS, &t.view, 5, counts, moves),
               5);
    for (uint32_t i = 0; i < 5; i++) {
        UNIT_EQUAL(t.homes[moves[i]], 0);
    }
    UNIT_EQUAL(trpi_allocation_rebalance(TRPI_ALLOCATION_LEAST_SHARDS, &t.view, 100, counts, moves),
               19);
    table_make(&t, even, none);
    UNIT_EQUAL(trpi_allocation_rebalance(TRPI_ALLOCATION_LEAST_SHARDS, &t.view, 100, counts, moves),
               0);
    UNIT_EQUAL(trpi_allocation_round(1000, 100, 100), 100);
    UNIT_EQUAL(trpi_allocation_round(1000, 20, 100), 20);
    UNIT_EQUAL(trpi_allocation_round(5, 100, 100), 1);
}

static void
versions_of_the_application_are_compared_by_their_numbers(void)
{
    UNIT_TRUE(trpi_app_version_compare("1.9", "1.10") < 0);
    UNIT_TRUE(trpi_app_version_compare("2", "1.10") > 0);
    UNIT_TRUE(trpi_app_version_compare("1.2", "1.2.1") < 0);
    UNIT_TRUE(trpi_app_version_compare("1.2-rc1", "1.2") < 0);
    UNIT_TRUE(trpi_app_version_compare("1.02", "1.2") == 0);
    UNIT_TRUE(trpi_app_version_compare("", "1") < 0);
}

/* ---- the coordinator ------------------------------------------------------------------------- */

static uint32_t allocation; /* of the settings in frames */
static uint32_t drained;    /* members, by number: bits */

static trpi_shard_frame
frame_to_coordinator(trpi_shard_frame_kind kind, trpi_shard_item *items, uint32_t count)
{
    trpi_shard_frame f;
    memset(&f, 0, sizeof f);
    f.kind = kind;
    f.to_uid = 1;
    f.term = (trpi_shard_term){ 1, 1 };
    f.items = items;
    f.items_count = count;
    f.hosts = true;
    f.accepted = count > 0; /* it could have none otherwise */
    f.settings.shards = 8;
    f.settings.allocation = allocation;
    (void)snprintf(f.type, sizeof f.type, "order");
    return f;
}

/* Count the frames of this kind that the last step sent to a node, and those of their items that
 * name this shard; ANY: all. */
enum { ANY = UINT16_MAX };

static uint32_t
count_sent(const trpi_coordinator *core, uint32_t number, trpi_shard_frame_kind kind,
           uint32_t shard, uint32_t *ret_items)
{
    uint32_t count, frames = 0;
    const trpi_coordinator_action *actions = trpi_coordinator_actions(core, &count);
    *ret_items = 0;
    for (uint32_t i = 0; i < count; i++) {
        trpi_shard_frame f;
        if (actions[i].kind != TRPI_COORDINATOR_SEND || actions[i].node.uid != number) {
            continue;
        }
        UNIT_REQUIRE(trpi_shard_frame_decode(actions[i].bytes.data, actions[i].bytes.count, &f) ==
                     TRP_OK);
        frames += f.kind == kind;
        for (uint32_t k = 0; f.kind == kind && k < f.items_count; k++) {
            *ret_items += shard == ANY || f.items[k].shard == shard;
        }
        trpi_shard_frame_fini(&f);
    }
    return frames;
}

static uint32_t
frames_to(const trpi_coordinator *core, uint32_t number, trpi_shard_frame_kind kind)
{
    uint32_t items;
    return count_sent(core, number, kind, ANY, &items);
}

/* Count the grants of this shard in the last step. */
static uint32_t
granted(const trpi_coordinator *core, uint32_t shard)
{
    uint32_t first, second;
    (void)count_sent(core, 1, TRPI_SHARD_FRAME_GRANT, shard, &first);
    (void)count_sent(core, 2, TRPI_SHARD_FRAME_GRANT, shard, &second);
    return first + second;
}

static uint32_t
sent_to(const trpi_coordinator *core, uint32_t number, trpi_shard_frame_kind kind)
{
    uint32_t items;
    (void)count_sent(core, number, kind, ANY, &items);
    return items;
}

static void
take_from(trpi_coordinator *core, uint64_t now_ms, uint32_t number, trpi_shard_frame_kind kind,
          trpi_shard_item *items, uint32_t count)
{
    trpi_shard_frame f = frame_to_coordinator(kind, items, count);
    trpi_coordinator_event event = { .kind = TRPI_COORDINATOR_FRAME,
                                     .from = node(number),
                                     .frame = &f };
    UNIT_EQUAL(trpi_coordinator_step(core, now_ms, &event), TRP_OK);
}

static void
members_up(trpi_shard_member *members, uint32_t count)
{
    memset(members, 0, count * sizeof *members);
    for (uint32_t i = 0; i < count; i++) {
        members[i].id = node(i + 1);
        members[i].up_number = i + 1;
        members[i].status = TRP_MEMBER_UP;
        members[i].has_role = true;
    }
}

static void
show_members(trpi_coordinator *core, uint64_t now_ms, const char *const *versions, uint32_t count)
{
    trpi_shard_member members[4];
    trpi_coordinator_event event = { .kind = TRPI_COORDINATOR_MEMBERS,
                                     .members = members,
                                     .members_count = count };
    members_up(members, count);
    for (uint32_t i = 0; i < count; i++) {
        members[i].drained = (drained >> members[i].id.uid & 1) != 0;
        (void)snprintf(members[i].app_version, sizeof members[i].app_version, "%s", versions[i]);
    }
    UNIT_EQUAL(trpi_coordinator_step(core, now_ms, &event), TRP_OK);
}

static void
tick(trpi_coordinator *core, uint64_t now_ms)
{
    trpi_coordinator_event event = { .kind = TRPI_COORDINATOR_TICK };
    UNIT_EQUAL(trpi_coordinator_step(core, now_ms, &event), TRP_OK);
}

/* A node sends nothing to node 3 any more. */
static void
avoided_by(trpi_coordinator *core, uint64_t now_ms, uint32_t number)
{
    trpi_shard_frame f = frame_to_coordinator(TRPI_SHARD_FRAME_AVOIDED, NULL, 0);
    trpi_coordinator_event event = { .kind = TRPI_COORDINATOR_FRAME,
                                     .from = node(number),
                                     .frame = &f };
    f.node = node(3);
    UNIT_EQUAL(trpi_coordinator_step(core, now_ms, &event), TRP_OK);
}

/* RollingUpdateShardAllocationSpec */
static void
shards_go_to_the_newer_version_during_a_rolling_update(void)
{
    static const char *const versions[] = { "1.9", "1.10", "1.9" };
    trpi_shard_item items[8];
    trpi_node_id self = node(1);
    trpi_coordinator *core = NULL;
    memset(items, 0, sizeof items);
    UNIT_REQUIRE(trpi_coordinator_new(&self, "order", "", NULL, &core) == TRP_OK);
    show_members(core, 1000, versions, 3);
    for (uint32_t number = 1; number <= 3; number++) {
        take_from(core, 1001, number, TRPI_SHARD_FRAME_HOSTS, NULL, 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        items[i].shard = i;
    }
    take_from(core, 1002, 3, TRPI_SHARD_FRAME_GET, items, 8);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_GRANT), 8);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT), 0);
    UNIT_EQUAL(sent_to(core, 3, TRPI_SHARD_FRAME_GRANT), 0);
    for (uint32_t i = 0; i < 8; i++) {
        items[i].epoch = 1ull << 32 | (i + 1);
    }
    take_from(core, 1003, 2, TRPI_SHARD_FRAME_STARTED, items, 8);
    UNIT_EQUAL(sent_to(core, 3, TRPI_SHARD_FRAME_HOME), 8);
    trpi_coordinator_event look = { .kind = TRPI_COORDINATOR_REBALANCE };
    UNIT_EQUAL(trpi_coordinator_step(core, 20000, &look), TRP_OK);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_HANDOFF), 0);
    show_members(core, 20001, (const char *const[]){ "1.10", "1.10", "1.10" }, 3); /* it is over */
    UNIT_EQUAL(trpi_coordinator_step(core, 20002, &look), TRP_OK);
    UNIT_TRUE(sent_to(core, 2, TRPI_SHARD_FRAME_HANDOFF) > 0);
    trpi_coordinator_free(core);
}

/* Take the question of the last step; NULL: there is none. */
static trpi_allocation_question *
question_of(trpi_coordinator *core)
{
    uint32_t count;
    const trpi_coordinator_action *actions = trpi_coordinator_actions(core, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (actions[i].kind == TRPI_COORDINATOR_ROUND) {
            return trpi_coordinator_take_question(core, i);
        }
    }
    return NULL;
}

/* sharding-C10 */
static void
a_program_that_does_not_answer_holds_no_shard_up(void)
{
    static const char *const versions[] = { "1", "1" };
    trpi_shard_item items[4];
    trpi_node_id self = node(1);
    trpi_coordinator *core = NULL;
    trpi_coordinator_event tick = { .kind = TRPI_COORDINATOR_TICK };
    allocation = TRPI_ALLOCATION_USER;
    memset(items, 0, sizeof items);
    for (uint32_t i = 0; i < 4; i++) {
        items[i].shard = i;
    }
    UNIT_REQUIRE(trpi_coordinator_new(&self, "order", "", NULL, &core) == TRP_OK);
    trpi_coordinator_asks_set(core, true);
    show_members(core, 1000, versions, 2);
    take_from(core, 1001, 1, TRPI_SHARD_FRAME_HOSTS, NULL, 0);
    take_from(core, 1001, 2, TRPI_SHARD_FRAME_HOSTS, NULL, 0);
    take_from(core, 1002, 2, TRPI_SHARD_FRAME_GET, items, 2);
    trpi_allocation_question *late = question_of(core);
    UNIT_REQUIRE(late != NULL);
    UNIT_EQUAL(late->ask.wanted_count, 2);
    take_from(core, 1003, 2, TRPI_SHARD_FRAME_GET, items + 2, 2); /* one question at a time */
    UNIT_TRUE(question_of(core) == NULL);
    UNIT_EQUAL(trpi_coordinator_step(core, 1001 + TRP_ALLOCATION_ANSWER_MS_DEFAULT, &tick), TRP_OK);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT), 0);
    UNIT_TRUE(trpi_coordinator_wake_ms(core) <= 1002 + TRP_ALLOCATION_ANSWER_MS_DEFAULT);
    UNIT_EQUAL(trpi_coordinator_step(core, 1002 + TRP_ALLOCATION_ANSWER_MS_DEFAULT, &tick), TRP_OK);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT), 2);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_GRANT), 2);
    late->ask.wanted_homes[0] = 1; /* too late: nothing comes of it */
    trpi_coordinator_event answer = { .kind = TRPI_COORDINATOR_ANSWER, .question = late };
    UNIT_EQUAL(trpi_coordinator_step(core, 6500, &answer), TRP_OK);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_GRANT), 2); /* sent again, as before */
    items[0].shard = 7;
    take_from(core, 6501, 2, TRPI_SHARD_FRAME_GET, items, 1);
    trpi_allocation_question *next = question_of(core); /* it is asked again */
    UNIT_REQUIRE(next != NULL);
    UNIT_EQUAL(next->ask.wanted[0], 7);
    next->ask.wanted_homes[0] = 1;
    answer.question = next;
    UNIT_EQUAL(trpi_coordinator_step(core, 6502, &answer), TRP_OK);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_GRANT), 1);
    trpi_free(late);
    trpi_free(next);
    trpi_coordinator_free(core);
    allocation = 0;
}

/* sharding-C1, ClusterShardingGracefulShutdownSpec. Node 9 was removed, and may run for a while
 * what nobody here has. */
static void
a_leaving_node_does_not_wait_for_a_removed_one(void)
{
    trpi_shard_item hosted = { 0, TRPI_SHARD_HOLD_OWN, 5 }, other = { 1, 0, 0 };
    trpi_shard_gone gone = { node(9), true, 20000 };
    trpi_shard_member members[3];
    trpi_coordinator_event event = { .kind = TRPI_COORDINATOR_MEMBERS,
                                     .members = members,
                                     .members_count = 3,
                                     .gone = &gone,
                                     .gone_count = 1 };
    trpi_node_id self = node(1);
    trpi_coordinator *core = NULL;
    members_up(members, 3);
    UNIT_REQUIRE(trpi_coordinator_new(&self, "order", "", NULL, &core) == TRP_OK);
    UNIT_EQUAL(trpi_coordinator_step(core, 1000, &event), TRP_OK);
    take_from(core, 1001, 1, TRPI_SHARD_FRAME_HOSTS, NULL, 0);
    take_from(core, 1001, 2, TRPI_SHARD_FRAME_HOSTS, NULL, 0);
    take_from(core, 1001, 3, TRPI_SHARD_FRAME_HOSTS, &hosted, 1);
    UNIT_TRUE(!trpi_coordinator_is_ready(core));
    take_from(core, 1002, 2, TRPI_SHARD_FRAME_GET, &other, 1);
    take_from(core, 1003, 3, TRPI_SHARD_FRAME_LEAVING, NULL, 0);
    UNIT_EQUAL(sent_to(core, 3, TRPI_SHARD_FRAME_HANDOFF), 1);
    take_from(core, 1004, 3, TRPI_SHARD_FRAME_STOPPED, &hosted, 1);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT) + sent_to(core, 2, TRPI_SHARD_FRAME_GRANT),
               1); /* shard 0, and not the other one */
    UNIT_EQUAL(frames_to(core, 2, TRPI_SHARD_FRAME_AVOID), 1);
    avoided_by(core, 1005, 1);
    avoided_by(core, 1005, 2);
    UNIT_EQUAL(frames_to(core, 3, TRPI_SHARD_FRAME_MAY_LEAVE), 1);
    tick(core, 20999);
    UNIT_EQUAL(granted(core, 1), 0);
    tick(core, 21000); /* its take-over time is over */
    UNIT_EQUAL(granted(core, 1), 1);
    trpi_coordinator_free(core);
}

/* ---- the region ------------------------------------------------------------------------------ */

/* Show the region of node 3 the members 1, 2 and 3, Up in this order, the first one as it is. */
static void
region_sees(trpi_region_core *core, uint64_t now_ms, uint32_t status_of_first)
{
    trpi_shard_member members[3];
    trpi_region_event event = { .kind = TRPI_REGION_MEMBERS,
                                .members = members,
                                .members_count = 3 };
    members_up(members, 3);
    members[0].status = status_of_first;
    UNIT_EQUAL(trpi_region_core_step(core, now_ms, &event), TRP_OK);
}

/* The coordinator of a node asks. Return which node the region obeys then. */
static uint64_t
region_obeys(trpi_region_core *core, uint64_t now_ms, uint32_t number)
{
    trpi_shard_frame f = frame_to_coordinator(TRPI_SHARD_FRAME_ASK, NULL, 0);
    trpi_region_event event = { .kind = TRPI_REGION_FRAME, .from = node(number), .frame = &f };
    trpi_node_id boss = { .uid = 0 };
    trpi_shard_term term;
    trpi_check check;
    bool registered;
    f.to_uid = 3;
    f.term = (trpi_shard_term){ number, number };
    UNIT_EQUAL(trpi_region_core_step(core, now_ms, &event), TRP_OK);
    UNIT_TRUE(trpi_region_core_check(core, &check) == NULL);
    (void)trpi_region_core_coordinator(core, &boss, &term, &registered);
    return boss.uid;
}

/* Count the frames of this kind that the last step sent to a node. */
static uint32_t
region_sent(const trpi_region_core *core, uint32_t number, trpi_shard_frame_kind kind)
{
    uint32_t count, frames = 0;
    const trpi_region_action *actions = trpi_region_core_actions(core, &count);
    for (uint32_t i = 0; i < count; i++) {
        trpi_shard_frame f;
        if (actions[i].kind != TRPI_REGION_SEND || actions[i].node.uid != number) {
            continue;
        }
        UNIT_REQUIRE(trpi_shard_frame_decode(actions[i].bytes.data, actions[i].bytes.count, &f) ==
                     TRP_OK);
        frames += f.kind == kind;
        trpi_shard_frame_fini(&f);
    }
    return frames;
}

/* sharding-R12. Node 2 is on a side of a split that has marked node 1 Down; where node 1 is Up
 * nobody obeys it, or those would be bound to it when that side has stopped itself. */
static void
region_follows_its_view(bool started)
{
    trpi_node_id self = node(3);
    trpi_region_core *core = NULL;
    const trpi_sharding_settings settings = { .shards = 8 };
    trpi_region_event start = { .kind = TRPI_REGION_START, .settings = &settings, .hosts = true };
    UNIT_REQUIRE(trpi_region_core_new(&self, "order", NULL, &core) == TRP_OK);
    if (started) {
        UNIT_EQUAL(trpi_region_core_step(core, 1000, &start), TRP_OK);
    }
    region_sees(core, 1001, TRP_MEMBER_UP);
    UNIT_EQUAL(region_obeys(core, 1002, 1), 1);
    UNIT_EQUAL(region_sent(core, 1, TRPI_SHARD_FRAME_HOSTS), 1);
    UNIT_EQUAL(region_obeys(core, 1003, 2), 1);
    UNIT_EQUAL(region_sent(core, 2, TRPI_SHARD_FRAME_HOSTS), 0);
    UNIT_EQUAL(region_obeys(core, 1004, 1), 1);
    UNIT_EQUAL(region_sent(core, 1, TRPI_SHARD_FRAME_HOSTS), 1);
    UNIT_EQUAL(region_sent(core, 1, TRPI_SHARD_FRAME_STALE), 0);
    region_sees(core, 1005, TRP_MEMBER_DOWN); /* its own view says so now, too */
    UNIT_EQUAL(region_sent(core, 2, TRPI_SHARD_FRAME_HOSTS), started ? 1 : 0);
    UNIT_EQUAL(region_obeys(core, 1006, 2), 2);
    UNIT_EQUAL(region_sent(core, 2, TRPI_SHARD_FRAME_HOSTS), 1);
    UNIT_EQUAL(region_obeys(core, 1007, 1), 2);
    UNIT_EQUAL(region_sent(core, 1, TRPI_SHARD_FRAME_STALE), 1);
    trpi_region_core_free(core);
}

/* ClusterShardCoordinatorDowningSpec */
static void
a_region_obeys_the_coordinator_that_is_the_oldest_in_its_own_view(void)
{
    region_follows_its_view(true);
    region_follows_its_view(false); /* the type is not started there */
}

/* Make a coordinator on node 1 of three, in which node 2 hosts shards 0 to 3. */
static trpi_coordinator *
coordinator_of_three(trpi_shard_item items[4])
{
    static const char *const versions[] = { "1", "1", "1" };
    trpi_node_id self = node(1);
    trpi_coordinator *core = NULL;
    drained = 1u << 1 | 1u << 3;
    UNIT_REQUIRE(trpi_coordinator_new(&self, "order", "", NULL, &core) == TRP_OK);
    show_members(core, 1000, versions, 3);
    for (uint32_t number = 1; number <= 3; number++) {
        take_from(core, 1001, number, TRPI_SHARD_FRAME_HOSTS, NULL, 0);
    }
    memset(items, 0, 4 * sizeof *items);
    for (uint32_t i = 0; i < 4; i++) {
        items[i].shard = i;
    }
    take_from(core, 1002, 3, TRPI_SHARD_FRAME_GET, items, 4);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT), 0);
    UNIT_EQUAL(sent_to(core, 3, TRPI_SHARD_FRAME_GRANT), 0);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_GRANT), 4);
    for (uint32_t i = 0; i < 4; i++) {
        items[i].epoch = 1ull << 32 | (i + 1);
    }
    take_from(core, 1003, 2, TRPI_SHARD_FRAME_STARTED, items, 4);
    return core;
}

/* sharding-C11: its shards move as of a node that leaves, and it is granted none */
static void
a_drained_node_hands_over_and_is_granted_nothing(void)
{
    static const char *const versions[] = { "1", "1", "1" };
    trpi_shard_item items[4];
    trpi_check check;
    trpi_coordinator_region_info info;
    trpi_coordinator *core = coordinator_of_three(items);
    drained = 1u << 2;
    show_members(core, 1100, versions, 3);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_HANDOFF), 4);
    UNIT_TRUE(trpi_coordinator_region(core, 1, &info) && info.drained && info.shards == 4);
    take_from(core, 1101, 2, TRPI_SHARD_FRAME_STOPPED, items, 4);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_GRANT), 0);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT), 2);
    UNIT_EQUAL(sent_to(core, 3, TRPI_SHARD_FRAME_GRANT), 2);
    UNIT_TRUE(trpi_coordinator_check(core, &check) == NULL);
    drained = 0;
    trpi_coordinator_free(core);
}

/* sharding-C11: until another may take them, they stay; what is free waits, and says for what */
static void
shards_stay_where_every_node_is_drained(void)
{
    static const char *const versions[] = { "1", "1", "1" };
    trpi_shard_item items[4];
    trpi_coordinator_wait wait;
    uint32_t at = 0;
    trpi_coordinator *core = coordinator_of_three(items);
    drained = 1u << 1 | 1u << 2 | 1u << 3;
    show_members(core, 1100, versions, 3);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_HANDOFF), 0);
    UNIT_FALSE(trpi_coordinator_waits(core, &at, &wait)); /* none is wanted */
    items[0].shard = 7;
    take_from(core, 1200, 3, TRPI_SHARD_FRAME_GET, items, 1);
    for (uint32_t number = 1; number <= 3; number++) {
        UNIT_EQUAL(sent_to(core, number, TRPI_SHARD_FRAME_GRANT), 0);
    }
    at = 0;
    UNIT_REQUIRE(trpi_coordinator_waits(core, &at, &wait));
    UNIT_EQUAL(wait.kind, TRPI_COORDINATOR_WAIT_UNDRAIN);
    UNIT_EQUAL(wait.shard, 7);
    drained = 1u << 2; /* now there are two that may */
    show_members(core, 1300, versions, 3);
    UNIT_EQUAL(sent_to(core, 2, TRPI_SHARD_FRAME_HANDOFF), 4);
    UNIT_EQUAL(sent_to(core, 1, TRPI_SHARD_FRAME_GRANT) + sent_to(core, 3, TRPI_SHARD_FRAME_GRANT),
               1);
    drained = 0;
    trpi_coordinator_free(core);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static trpi_shard_item three[] = { { 0, 0, 1ull << 32 | 5 },
                                   { 7, TRPI_SHARD_HOLD_STOPPING, 9 },
                                   { 99999, TRPI_SHARD_HOLD_OPENING, UINT64_MAX } };

static trpi_shard_frame
frame_of(uint32_t kind)
{
    trpi_shard_frame f;
    memset(&f, 0, sizeof f);
    f.kind = (trpi_shard_frame_kind)kind;
    f.to_uid = 77;
    f.term = (trpi_shard_term){ 3, 12 };
    (void)snprintf(f.type, sizeof f.type, "order");
    if (kind == TRPI_SHARD_FRAME_HOSTS || kind == TRPI_SHARD_FRAME_WELCOME) {
        f.hosts = f.accepted = f.leaving = kind == TRPI_SHARD_FRAME_HOSTS;
        f.settings = (trpi_sharding_settings){ .shards = 1000,
                                               .extractor_version = 2,
                                               .moves_max = 20,
                                               .moves_permille = 100,
                                               .members_min = 3,
                                               .rebalance_ms = 10000,
                                               .eager = true };
        (void)snprintf(f.role, sizeof f.role, "backend");
    }
    if (kind == TRPI_SHARD_FRAME_HOME || kind == TRPI_SHARD_FRAME_AVOID ||
        kind == TRPI_SHARD_FRAME_AVOIDED) {
        f.node = node(4);
    }
    if (kind == TRPI_SHARD_FRAME_REFUSE) {
        (void)snprintf(f.text, sizeof f.text, "other shards");
    }
    if (kind == TRPI_SHARD_FRAME_STALE) {
        f.bound = (trpi_shard_term){ 4, 13 };
    }
    if (kind == TRPI_SHARD_FRAME_HOSTS ||
        (kind >= TRPI_SHARD_FRAME_GET && kind <= TRPI_SHARD_FRAME_STARTED)) {
        f.items = three;
        f.items_count = 3;
    }
    return f;
}

static void
each_frame_reads_back_as_it_was_written(void)
{
    for (uint32_t kind = 1; kind < TRPI_SHARD_FRAME_KIND_COUNT; kind++) {
        trpi_shard_frame f = frame_of(kind), back;
        trpi_buffer bytes = { 0 }, again = { 0 };
        UNIT_EQUAL(trpi_shard_frame_encode(&f, &bytes), TRP_OK);
        UNIT_EQUAL(trpi_shard_frame_decode(bytes.data, bytes.count, &back), TRP_OK);
        UNIT_EQUAL(trpi_shard_frame_encode(&back, &again), TRP_OK);
        UNIT_EQUAL(bytes.count, again.count);
        UNIT_EQUAL(memcmp(bytes.data, again.data, bytes.count), 0);
        UNIT_EQUAL(back.items_count, f.items_count);
        for (size_t i = 0; i < bytes.count; i++) { /* a part of a frame is none */
            trpi_shard_frame part;
            UNIT_TRUE(trpi_shard_frame_decode(bytes.data, i, &part) != TRP_OK);
        }
        trpi_shard_frame_fini(&back);
        trpi_buffer_fini(&bytes);
        trpi_buffer_fini(&again);
    }
}

static void
golden_write(FILE *file)
{
    for (uint32_t kind = 1; kind < TRPI_SHARD_FRAME_KIND_COUNT; kind++) {
        trpi_shard_frame f = frame_of(kind);
        trpi_buffer bytes = { 0 };
        UNIT_EQUAL(trpi_shard_frame_encode(&f, &bytes), TRP_OK);
        fprintf(file, "%s ", trpi_shard_frame_name(f.kind));
        for (size_t i = 0; i < bytes.count; i++) {
            fprintf(file, "%02x", bytes.data[i]);
        }
        fprintf(file, "\n");
        trpi_buffer_fini(&bytes);
    }
}

static void
frames_are_those_of_the_golden_file(void)
{
    char *line = strtok(unit_golden("sharding-1.txt", golden_write), "\n");
    uint32_t lines = 0;
    for (; line != NULL; line = strtok(NULL, "\n"), lines++) {
        uint8_t bytes[512];
        size_t count = 0;
        trpi_shard_frame read;
        for (const char *hex = strchr(line, ' ') + 1; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
            char digits[3] = { hex[0], hex[1], '\0' };
            bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
        }
        UNIT_EQUAL(trpi_shard_frame_decode(bytes, count, &read), TRP_OK);
        trpi_shard_frame_fini(&read);
    }
    UNIT_EQUAL(lines, TRPI_SHARD_FRAME_KIND_COUNT - 1);
}

UNIT_BEGIN("sharding")
UNIT(first_fit_goes_round_the_ring_as_in_the_worked_example)
UNIT(five_joiners_renumber_the_table_and_no_instance_moves)
UNIT(a_shard_goes_where_the_fewest_are_for_the_weight)
UNIT(a_question_to_the_program_names_regions_and_shards)
UNIT(a_round_moves_from_the_fullest_to_the_emptiest_within_its_limit)
UNIT(versions_of_the_application_are_compared_by_their_numbers)
UNIT(shards_go_to_the_newer_version_during_a_rolling_update)
UNIT(a_program_that_does_not_answer_holds_no_shard_up)
UNIT(a_leaving_node_does_not_wait_for_a_removed_one)
UNIT(a_region_obeys_the_coordinator_that_is_the_oldest_in_its_own_view)
UNIT(a_drained_node_hands_over_and_is_granted_nothing)
UNIT(shards_stay_where_every_node_is_drained)
UNIT(each_frame_reads_back_as_it_was_written)
UNIT(frames_are_those_of_the_golden_file)
UNIT_END
