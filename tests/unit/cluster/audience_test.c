/* The audience of a mediator: the dense lists of subscribers, and the seats of each one. */
#include <troupe/pubsub.h>

#include "cluster/pubsub/audience.h"
#include "tests/unit/draw.h"
#include "tests/unit/unit.h"

static trpi_pubsub_key
topic(const char *name)
{
    return (trpi_pubsub_key){ .kind = TRPI_PUBSUB_TOPIC,
                              .name_bytes = (uint32_t)strlen(name),
                              .name = name };
}

static trp_ref
ref_of(uint32_t number)
{
    return (trp_ref){ 1, number, number + 7, 0 };
}

static trpi_seats *
seats_find(const trpi_audience *a, const char *name)
{
    trpi_pubsub_key key = topic(name);
    return trpi_audience_find(a, &key, trpi_pubsub_key_hash(&key));
}

/* audience-A1, audience-A2 */
static void
check_whole(const trpi_audience *a, const trpi_seats *seats)
{
    UNIT_EQUAL(seats->refs_count, seats->places_count);
    for (uint32_t i = 0; i < seats->refs_count; i++) {
        UNIT_EQUAL(seats->places[i]->index, i);
        UNIT_TRUE(trpi_audience_seat(a, seats, seats->refs[i]) == seats->places[i]);
        UNIT_TRUE(trpi_audience_any(a, seats->refs[i]) != NULL);
    }
}

static void
an_actor_sits_once_under_a_key_and_leaves(void)
{
    trpi_audience a = { 0 };
    trpi_seats *seats;
    trpi_pubsub_key key = topic("a");
    bool first;
    UNIT_EQUAL(trpi_audience_add(&a, &key, ref_of(1), 0, &seats, &first), TRP_OK);
    UNIT_TRUE(first);
    UNIT_EQUAL(trpi_audience_add(&a, &key, ref_of(1), TRP_SUBSCRIBE_TELLS_MISSED, &seats, &first),
               TRP_EEXIST);
    UNIT_TRUE(!first);
    UNIT_EQUAL(seats->askers, 1);
    UNIT_EQUAL(seats->refs_count, 1);
    key = topic("b");
    UNIT_EQUAL(trpi_audience_add(&a, &key, ref_of(1), 0, &seats, &first), TRP_OK);
    UNIT_TRUE(!first);
    UNIT_TRUE(!trpi_audience_leave(&a, trpi_audience_seat(&a, seats, ref_of(1)), ref_of(1)));
    trpi_audience_tidy(&a, seats);
    UNIT_TRUE(seats_find(&a, "b") == NULL);
    seats = seats_find(&a, "a");
    UNIT_TRUE(trpi_audience_leave(&a, trpi_audience_seat(&a, seats, ref_of(1)), ref_of(1)));
    UNIT_EQUAL(seats->askers, 0);
    trpi_audience_tidy(&a, seats);
    UNIT_TRUE(seats_find(&a, "a") == NULL);
    UNIT_TRUE(trpi_audience_any(&a, ref_of(1)) == NULL);
    trpi_audience_fini(&a);
}

static void
come(trpi_audience *a, const char *name, trp_ref ref, bool *sits)
{
    trpi_seats *seats;
    trpi_pubsub_key key = topic(name);
    bool first;
    UNIT_EQUAL(trpi_audience_add(a, &key, ref, 0, &seats, &first), *sits ? TRP_EEXIST : TRP_OK);
    *sits = true;
    check_whole(a, seats);
}

static void
go(trpi_audience *a, const char *name, trp_ref ref, bool *sits)
{
    trpi_seats *seats = seats_find(a, name);
    trpi_seat *seat = seats == NULL ? NULL : trpi_audience_seat(a, seats, ref);
    UNIT_EQUAL(seat != NULL, *sits);
    if (seat != NULL) {
        (void)trpi_audience_leave(a, seat, ref);
        check_whole(a, seats);
        trpi_audience_tidy(a, seats);
    }
    *sits = false;
}

static void
play(uint64_t seed)
{
    enum { ACTORS = 12, TOPICS = 5, STEPS = 500 };
    static const char *const names[TOPICS] = { "a", "b", "a/b", "", "\xff\x01" };
    bool sits[TOPICS][ACTORS] = { { false } };
    trpi_audience a = { 0 };
    unit_draw draw = { seed };
    for (int step = 0; step < STEPS && unit_failures() == 0; step++) {
        uint32_t t = unit_drawn(&draw, TOPICS), n = unit_drawn(&draw, ACTORS);
        if (unit_drawn(&draw, 2) == 0) {
            come(&a, names[t], ref_of(n), &sits[t][n]);
        } else {
            go(&a, names[t], ref_of(n), &sits[t][n]);
        }
    }
    for (uint32_t n = 0; n < ACTORS; n++) {
        bool any = false;
        for (uint32_t t = 0; t < TOPICS; t++) {
            any = any || sits[t][n];
        }
        UNIT_EQUAL(trpi_audience_any(&a, ref_of(n)) != NULL, any);
    }
    trpi_audience_fini(&a);
}

static void
any_order_of_coming_and_going_keeps_the_lists_whole(void)
{
    unit_seeds_play(play, 20, "tests/unit/cluster/cluster_tests", "audience_test");
}

/* CONTRIB-16: TRP_TOPIC_SUBSCRIBERS_MAX */
static void
a_topic_has_so_many_subscribers_and_no_more(void)
{
    trpi_audience a = { 0 };
    trpi_seats *seats = NULL, *other = NULL;
    trpi_pubsub_key key = topic("a");
    uint32_t refused = 0;
    bool first;
    for (uint32_t i = 0; i < TRP_TOPIC_SUBSCRIBERS_MAX; i++) {
        refused += trpi_audience_add(&a, &key, ref_of(i), 0, &seats, &first) != TRP_OK;
    }
    UNIT_EQUAL(refused, 0);
    trp_ref more = ref_of(TRP_TOPIC_SUBSCRIBERS_MAX);
    UNIT_EQUAL(trpi_audience_add(&a, &key, more, 0, &other, &first), TRP_ELIMIT);
    UNIT_EQUAL(seats->refs_count, TRP_TOPIC_SUBSCRIBERS_MAX);
    UNIT_TRUE(trpi_audience_any(&a, more) == NULL);
    UNIT_EQUAL(trpi_audience_add(&a, &key, ref_of(5), TRP_SUBSCRIBE_TELLS_MISSED, &other, &first),
               TRP_EEXIST);
    UNIT_TRUE(trpi_audience_leave(&a, trpi_audience_seat(&a, seats, ref_of(5)), ref_of(5)));
    UNIT_EQUAL(trpi_audience_add(&a, &key, more, 0, &other, &first), TRP_OK);
    key = topic("b"); /* each has its own */
    UNIT_EQUAL(trpi_audience_add(&a, &key, more, 0, &other, &first), TRP_OK);
    trpi_audience_fini(&a);
}

UNIT_BEGIN("audience")
UNIT(an_actor_sits_once_under_a_key_and_leaves)
UNIT(any_order_of_coming_and_going_keeps_the_lists_whole)
UNIT(a_topic_has_so_many_subscribers_and_no_more)
UNIT_END
