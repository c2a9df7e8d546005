/* Where messages of publish and subscribe go, what is missed of them, and who waits: one registry
 * that other nodes tell their buckets, by frames of the test. */
#include <string.h>

#include "base/alloc.h"
#include "cluster/pubsub/registry_inner.h"
#include "cluster/pubsub/route.h"
#include "cluster/pubsub/waits.h"
#include "tests/unit/unit.h"

enum { NODES = 5 };

static trpi_pubreg *here;
static trpi_node_id ids[NODES];
static uint64_t versions[NODES];
static uint64_t seed;

static void
begin(void)
{
    trpi_pubreg_member members[NODES];
    memset(versions, 0, sizeof versions);
    memset(ids, 0, sizeof ids);
    seed = 1;
    for (uint32_t i = 0; i < NODES; i++) {
        (void)snprintf(ids[i].address.host, sizeof ids[i].address.host, "10.0.0.%u", i);
        ids[i].address.port = 2552;
        ids[i].uid = 100 + i;
        members[i] = (trpi_pubreg_member){ ids[i], TRP_MEMBER_UP };
    }
    UNIT_REQUIRE(trpi_pubreg_new(&ids[0], "news", NULL, &here) == TRP_OK);
    UNIT_EQUAL(trpi_pubreg_members(here, 1000, members, NODES), TRP_OK);
}

static trpi_pubsub_key
key_of(trpi_pubsub_kind kind, const char *name, const char *group)
{
    return (trpi_pubsub_key){ kind, (uint32_t)strlen(name),
                              group == NULL ? 0 : (uint32_t)strlen(group), name, group };
}

/* A node registers: this one, or another, which says so. */
static void
put(uint32_t node, trpi_pubsub_key key, uint32_t count)
{
    if (node == 0) {
        UNIT_EQUAL(trpi_pubreg_put(here, 1000, &key, count), TRP_OK);
        return;
    }
    trpi_pubsub_item item = { key, count, versions[node] + 1, versions[node] + 1 };
    trpi_pubsub_frame frame = { .kind = TRPI_PUBSUB_DELTA,
                                .to_uid = 100,
                                .life = 1,
                                .era = 1,
                                .seen = { .life = 1 },
                                .base = versions[node],
                                .version = versions[node] + 1,
                                .items = &item,
                                .items_count = 1,
                                .name = "news" };
    versions[node]++;
    UNIT_EQUAL(trpi_pubreg_frame(here, 1000, &ids[node], &frame), TRP_OK);
}

static uint32_t
at(uint32_t node)
{
    return trpi_pubreg_node_of(here, &ids[node]);
}

static const trpi_route_target *
target_of(const trpi_route *route, uint32_t node)
{
    const trpi_route_target *found = NULL;
    for (uint32_t i = 0; i < route->targets_count; i++) {
        if (route->targets[i].node == at(node)) {
            UNIT_TRUE(found == NULL); /* pubsub-R1 */
            found = &route->targets[i];
        }
    }
    return found;
}

/* ---- publish --------------------------------------------------------------------------------- */

/* CONTRIB-15: once over the wire, whatever is for it there. */
static void
each_node_gets_a_publication_once(void)
{
    trpi_route route = { 0 };
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    begin();
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    UNIT_EQUAL(route.targets_count, 0);
    put(0, news, 100000);
    put(1, news, 3);
    put(1, key_of(TRPI_PUBSUB_GROUP, "news", "left"), 2);
    put(1, key_of(TRPI_PUBSUB_GROUP, "news", "right"), 2);
    put(2, key_of(TRPI_PUBSUB_GROUP, "news", "only"), 1);
    put(3, key_of(TRPI_PUBSUB_TOPIC, "new", NULL), 1);
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    UNIT_EQUAL(route.targets_count, 3);
    UNIT_EQUAL(route.picks_count, 3);
    const trpi_route_target *one = target_of(&route, 1), *two = target_of(&route, 2);
    UNIT_REQUIRE(one != NULL && two != NULL && target_of(&route, 0) != NULL);
    UNIT_TRUE(one->all);
    UNIT_EQUAL(one->picks_count, 2);
    UNIT_EQUAL(one->stamp.number, 1);
    UNIT_EQUAL(one->stamp.since, 1);
    UNIT_FALSE(two->all);
    UNIT_EQUAL(two->picks_count, 1);
    UNIT_EQUAL(memcmp(route.picks[two->picks_first].entry->key.group, "only", 4), 0);
    for (uint32_t i = 0; i < 2; i++) {
        const trpi_route_pick *pick = &route.picks[one->picks_first + i];
        UNIT_EQUAL(pick->node, at(1));
        UNIT_TRUE(pick->member < 2);
    }
    trpi_route_fini(&route);
    trpi_pubreg_free(here);
}

/* Each actor of a group as often as the others, wherever they are; by turns exactly so. */
static void
one_of_a_group_is_chosen_fairly(void)
{
    trpi_route route = { 0 };
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    uint32_t turns[NODES][3] = { { 0 } }, drawn[NODES][3] = { { 0 } };
    begin();
    put(0, key_of(TRPI_PUBSUB_GROUP, "news", "g"), 1);
    put(1, key_of(TRPI_PUBSUB_GROUP, "news", "g"), 3);
    for (uint32_t i = 0; i < 4000; i++) {
        trpi_route_choice choice = i % 2 == 0 ? TRPI_ROUTE_RANDOM : TRPI_ROUTE_ROUND_ROBIN;
        UNIT_EQUAL(trpi_route_publish(here, &news, choice, &seed, &route), TRP_OK);
        UNIT_EQUAL(route.targets_count, 1);
        UNIT_REQUIRE(route.picks_count == 1 && route.picks[0].member < 3);
        (i % 2 == 0 ? drawn : turns)[route.picks[0].node][route.picks[0].member]++;
    }
    for (uint32_t member = 0; member < 3; member++) {
        UNIT_EQUAL(turns[at(1)][member], 500);
        UNIT_TRUE(drawn[at(1)][member] > 400 && drawn[at(1)][member] < 600);
    }
    UNIT_EQUAL(turns[0][0], 500);
    UNIT_TRUE(drawn[0][0] > 400 && drawn[0][0] < 600);
    trpi_route_fini(&route);
    trpi_pubreg_free(here);
}

/* Once it has grown a route takes no memory. */
static void
a_route_that_has_grown_takes_no_memory(void)
{
    trpi_route route = { 0 };
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    begin();
    put(0, news, 1);
    put(1, key_of(TRPI_PUBSUB_GROUP, "news", "g"), 3);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(trpi_pubreg_find(here, &news)->number, 0);
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(route.targets_count, 2);
    UNIT_EQUAL(trpi_pubreg_find(here, &news)->number, 2);
    trpi_route_fini(&route);
    trpi_pubreg_free(here);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* CONTRIB-13 */
static void
send_reaches_one_and_the_own_node_first_with_affinity(void)
{
    trpi_pubsub_key path = key_of(TRPI_PUBSUB_PATH, "/user/service", NULL);
    uint32_t nodes[NODES] = { 0 };
    begin();
    UNIT_EQUAL(trpi_route_send(here, &path, true, TRPI_ROUTE_RANDOM, &seed).node,
               TRPI_PUBREG_NOWHERE);
    put(1, path, 1);
    put(2, path, 1);
    UNIT_TRUE(trpi_route_send(here, &path, true, TRPI_ROUTE_RANDOM, &seed).node != 0);
    put(0, path, 1);
    for (uint32_t i = 0; i < 300; i++) {
        nodes[trpi_route_send(here, &path, false, TRPI_ROUTE_RANDOM, &seed).node]++;
        UNIT_EQUAL(trpi_route_send(here, &path, true, TRPI_ROUTE_RANDOM, &seed).node, 0);
        UNIT_EQUAL(trpi_route_send(here, &path, true, TRPI_ROUTE_ROUND_ROBIN, &seed).node, 0);
    }
    UNIT_TRUE(nodes[0] > 50 && nodes[at(1)] > 50 && nodes[at(2)] > 50);
    put(0, path, 0);
    put(1, path, 0);
    UNIT_EQUAL(trpi_route_send(here, &path, true, TRPI_ROUTE_RANDOM, &seed).node, at(2));
    trpi_pubreg_free(here);
}

/* CONTRIB-14 */
static void
send_to_all_may_leave_out_the_own_node(void)
{
    trpi_pubsub_key path = key_of(TRPI_PUBSUB_PATH, "/user/service", NULL);
    uint32_t position = 0, all = 0, others = 0;
    begin();
    UNIT_TRUE(trpi_route_all(here, &path, false, &position) == NULL);
    put(0, path, 1);
    put(1, path, 1);
    put(3, path, 1);
    for (; trpi_route_all(here, &path, false, &position) != NULL; all++) {
    }
    position = 0;
    const trpi_pubreg_place *place;
    for (; (place = trpi_route_all(here, &path, true, &position)) != NULL; others++) {
        UNIT_TRUE(place->node != TRPI_PUBREG_SELF);
    }
    UNIT_EQUAL(all, 3);
    UNIT_EQUAL(others, 2);
    trpi_pubreg_free(here);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The name of a subscription of this node, which began with a version. */
static uint64_t
begun_here(uint64_t version)
{
    return trpi_pubreg_subscription(1, version);
}

static uint64_t
arrive(uint64_t life, uint64_t number, uint64_t since, bool *late)
{
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    trpi_pubsub_arrival arrival = { 0 };
    trpi_pubsub_stamp stamp = { life, number, begun_here(trpi_pubreg_version(here)), since };
    UNIT_EQUAL(trpi_pubreg_arrived(here, &news, &ids[1], &stamp, &arrival), TRP_OK);
    if (late != NULL) {
        *late = arrival.late;
    }
    return arrival.missed;
}

static void
what_is_missed_is_counted_once(void)
{
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    trpi_pubsub_stamp stamp = { 1, 1, 1, 1 };
    trpi_pubsub_arrival arrival;
    bool late = false;
    begin();
    UNIT_EQUAL(trpi_pubreg_arrived(here, &news, &ids[1], &stamp, &arrival), TRP_ENOENT);
    put(0, news, 1);
    UNIT_EQUAL(arrive(1, 7, 5, NULL), 2); /* it was due from 5 on */
    UNIT_EQUAL(arrive(1, 8, 5, NULL), 0);
    UNIT_EQUAL(arrive(1, 12, 5, NULL), 3);
    UNIT_EQUAL(arrive(1, 12, 5, &late), 0);
    UNIT_TRUE(late);
    UNIT_EQUAL(arrive(1, 10, 5, &late), 0);
    UNIT_TRUE(late);
    UNIT_EQUAL(arrive(2, 4, 1, &late), 3); /* its mediator has begun again */
    UNIT_FALSE(late);
    UNIT_EQUAL(arrive(1, 13, 5, NULL), 0); /* of the earlier one */
    UNIT_EQUAL(arrive(2, 5, 1, NULL), 0);
    trpi_pubreg_free(here);
}

/* pubsub-G1: a number that no node gives changes nothing. */
static void
a_number_out_of_range_is_ignored(void)
{
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    begin();
    put(0, news, 1);
    UNIT_EQUAL(arrive(1, 1, 1, NULL), 0);
    UNIT_EQUAL(arrive(1, TRPI_PUBSUB_NUMBER_MAX + 1, 1, NULL), 0);
    UNIT_EQUAL(arrive(1, UINT64_MAX, 1, NULL), 0);
    UNIT_EQUAL(arrive(UINT64_MAX, 1, 1, NULL), 0);
    UNIT_EQUAL(arrive(1, 3, 1, NULL), 1);
    UNIT_EQUAL(arrive(TRPI_PUBSUB_NUMBER_MAX, TRPI_PUBSUB_NUMBER_MAX, TRPI_PUBSUB_NUMBER_MAX, NULL),
               0);
    trpi_pubreg_free(here);
}

/* It ends its subscription and begins another: what was published between is not missed. */
static void
a_new_subscription_misses_nothing_of_before(void)
{
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    trpi_pubsub_stamp old = { 1, 9, begun_here(1), 1 };
    trpi_pubsub_arrival arrival;
    begin();
    put(0, news, 1);
    UNIT_EQUAL(arrive(1, 1, 1, NULL), 0);
    put(0, news, 0);
    put(0, news, 1);
    UNIT_EQUAL(trpi_pubreg_arrived(here, &news, &ids[1], &old, &arrival), TRP_OK);
    UNIT_EQUAL(arrival.missed, 0); /* that node does not know of the new one yet */
    UNIT_EQUAL(arrive(1, 20, 19, NULL), 1);
    put(0, key_of(TRPI_PUBSUB_TOPIC, "other", NULL), 1);
    old = (trpi_pubsub_stamp){ 1, 22, begun_here(3), 19 };
    UNIT_EQUAL(trpi_pubreg_arrived(here, &news, &ids[1], &old, &arrival), TRP_OK);
    UNIT_EQUAL(arrival.missed, 1);
    trpi_pubreg_free(here);
}

/* A topic's number goes on where nobody was there for a while, and a new subscriber is due from
 * then on. */
static void
numbers_never_go_back(void)
{
    trpi_route route = { 0 };
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    begin();
    put(1, news, 1);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    }
    put(2, news, 1);
    put(1, news, 2); /* the same subscription, one more actor */
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    UNIT_EQUAL(target_of(&route, 2)->stamp.since, 4);
    UNIT_EQUAL(target_of(&route, 2)->stamp.number, 4);
    put(1, news, 0);
    put(2, news, 0);
    UNIT_TRUE(trpi_pubreg_find(here, &news) == NULL);
    put(1, news, 1);
    UNIT_EQUAL(trpi_route_publish(here, &news, TRPI_ROUTE_RANDOM, &seed, &route), TRP_OK);
    UNIT_EQUAL(target_of(&route, 1)->stamp.since, 5);
    UNIT_EQUAL(target_of(&route, 1)->stamp.number, 5);
    trpi_route_fini(&route);
    trpi_pubreg_free(here);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void
a_publication_waits_for_subscribers_until_its_deadline(void)
{
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    trpi_waits *waits = NULL;
    trpi_wait_end end;
    uint64_t first = 0, second = 0;
    begin();
    UNIT_REQUIRE(trpi_waits_new(&waits) == TRP_OK);
    UNIT_EQUAL(trpi_waits_wake_ms(waits), UINT64_MAX);
    UNIT_EQUAL(trpi_waits_add(waits, &news, 3, 2000, &first, &first), TRP_OK);
    UNIT_EQUAL(trpi_waits_add(waits, &news, 9, 3000, &second, &second), TRP_OK);
    UNIT_EQUAL(trpi_waits_wake_ms(waits), 2000);
    UNIT_FALSE(trpi_waits_step(waits, here, 1000, &end));
    put(1, news, 2);
    UNIT_FALSE(trpi_waits_step(waits, here, 1001, &end));
    put(2, key_of(TRPI_PUBSUB_GROUP, "news", "g"), 1); /* those of groups count */
    UNIT_TRUE(trpi_waits_step(waits, here, 1002, &end));
    UNIT_TRUE(end.ready && end.arg == &first && end.id == first && end.count == 3);
    UNIT_FALSE(trpi_waits_step(waits, here, 2999, &end));
    UNIT_TRUE(trpi_waits_step(waits, here, 3000, &end));
    UNIT_TRUE(!end.ready && end.arg == &second && end.count == 3);
    UNIT_FALSE(trpi_waits_step(waits, here, 9000, &end));
    UNIT_EQUAL(trpi_waits_add(waits, &news, 3, 2000, NULL, &first), TRP_OK);
    UNIT_TRUE(trpi_waits_step(waits, here, 1000, &end)); /* they are there already */
    UNIT_TRUE(end.ready);
    trpi_waits_free(waits);
    trpi_pubreg_free(here);
}

static void
so_many_publications_may_wait(void)
{
    trpi_pubsub_key news = key_of(TRPI_PUBSUB_TOPIC, "news", NULL);
    trpi_waits *waits = NULL;
    trpi_wait_end end;
    uint64_t id = 0;
    UNIT_REQUIRE(trpi_waits_new(&waits) == TRP_OK);
    for (uint32_t i = 0; i < TRPI_PUBSUB_WAITS_MAX; i++) {
        UNIT_REQUIRE(trpi_waits_add(waits, &news, 1, 2000, NULL, &id) == TRP_OK);
    }
    UNIT_EQUAL(trpi_waits_add(waits, &news, 1, 2000, NULL, &id), TRP_ELIMIT);
    UNIT_EQUAL(trpi_waits_count(waits), TRPI_PUBSUB_WAITS_MAX);
    UNIT_TRUE(trpi_waits_take(waits, &end));
    UNIT_EQUAL(trpi_waits_add(waits, &news, 1, 2000, NULL, &id), TRP_OK);
    trpi_waits_free(waits);
    trpi_waits_free(NULL);
}

static void
answers_are_counted_until_all_have_answered_or_it_is_too_late(void)
{
    trpi_tallies *tallies = NULL;
    trpi_tally_end end;
    uint64_t a = 0, b = 0, none = 0;
    begin();
    UNIT_REQUIRE(trpi_tallies_new(&tallies) == TRP_OK);
    UNIT_EQUAL(trpi_tallies_wake_ms(tallies), UINT64_MAX);
    UNIT_EQUAL(trpi_tallies_add(tallies, 5, &ids[1], 3, 2000, &a, &a), TRP_OK);
    UNIT_EQUAL(trpi_tallies_add(tallies, 0, &ids[1], 2, 3000, &b, &b), TRP_OK);
    UNIT_EQUAL(trpi_tallies_wake_ms(tallies), 2000);
    trpi_tallies_answer(tallies, a, &ids[1], 10);
    trpi_tallies_answer(tallies, a, &ids[1], 10); /* twice */
    trpi_tallies_answer(tallies, a, &ids[4], 10); /* nobody asked it */
    trpi_tallies_answer(tallies, 99, &ids[2], 10);
    UNIT_FALSE(trpi_tallies_step(tallies, 1000, &end));
    trpi_tallies_lost(tallies, &ids[3]);
    UNIT_FALSE(trpi_tallies_step(tallies, 1000, &end));
    trpi_tallies_answer(tallies, a, &ids[2], 100);
    UNIT_EQUAL(trpi_tallies_wake_ms(tallies), 0);
    UNIT_TRUE(trpi_tallies_step(tallies, 1000, &end));
    UNIT_TRUE(end.id == a && end.arg == &a && end.delivered == 115);
    UNIT_EQUAL(end.answered, 2);
    UNIT_EQUAL(end.silent, 1);
    trpi_tallies_answer(tallies, b, &ids[2], 1);
    UNIT_FALSE(trpi_tallies_step(tallies, 2999, &end));
    UNIT_TRUE(trpi_tallies_step(tallies, 3000, &end));
    UNIT_TRUE(end.id == b && end.delivered == 1 && end.answered == 1 && end.silent == 1);
    UNIT_EQUAL(trpi_tallies_add(tallies, 7, NULL, 0, 9000, NULL, &none), TRP_OK);
    UNIT_TRUE(trpi_tallies_step(tallies, 3000, &end)); /* nobody is asked */
    UNIT_EQUAL(end.delivered, 7);
    UNIT_EQUAL(trpi_tallies_add(tallies, 3, &ids[1], 2, 9000, NULL, &none), TRP_OK);
    trpi_tallies_missed(tallies, none, &ids[1]);
    trpi_tallies_missed(tallies, none, &ids[1]); /* twice */
    trpi_tallies_missed(tallies, none, NULL);    /* one more, whose answer is not waited for */
    trpi_tallies_missed(tallies, 99, NULL);
    UNIT_FALSE(trpi_tallies_step(tallies, 3000, &end));
    trpi_tallies_answer(tallies, none, &ids[1], 10); /* it was given up */
    trpi_tallies_answer(tallies, none, &ids[2], 4);
    UNIT_TRUE(trpi_tallies_step(tallies, 3000, &end));
    UNIT_TRUE(end.delivered == 7 && end.answered == 1 && end.silent == 2);
    for (uint32_t i = 0; i < TRPI_PUBSUB_TALLIES_MAX; i++) {
        UNIT_REQUIRE(trpi_tallies_add(tallies, 0, &ids[1], 1, 2000, NULL, &a) == TRP_OK);
    }
    UNIT_EQUAL(trpi_tallies_add(tallies, 0, &ids[1], 1, 2000, NULL, &a), TRP_ELIMIT);
    UNIT_EQUAL(trpi_tallies_count(tallies), TRPI_PUBSUB_TALLIES_MAX);
    trpi_tallies_free(tallies);
    trpi_tallies_free(NULL);
    trpi_pubreg_free(here);
}

UNIT_BEGIN("pubsub_route")
UNIT(each_node_gets_a_publication_once)
UNIT(one_of_a_group_is_chosen_fairly)
UNIT(a_route_that_has_grown_takes_no_memory)
UNIT(send_reaches_one_and_the_own_node_first_with_affinity)
UNIT(send_to_all_may_leave_out_the_own_node)
UNIT(what_is_missed_is_counted_once)
UNIT(a_number_out_of_range_is_ignored)
UNIT(a_new_subscription_misses_nothing_of_before)
UNIT(numbers_never_go_back)
UNIT(a_publication_waits_for_subscribers_until_its_deadline)
UNIT(so_many_publications_may_wait)
UNIT(answers_are_counted_until_all_have_answered_or_it_is_too_late)
UNIT_END
