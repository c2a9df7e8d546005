/* The order by age, and the oldest member: one function for all that lives once in a cluster. */
#include "cluster/engine/age.h"

#include "tests/unit/draw.h"
#include "tests/unit/unit.h"

static trpi_aged
member(uint16_t port, uint64_t uid, uint32_t up_number, uint32_t status)
{
    trpi_aged m = { .up_number = up_number, .status = status };
    m.id.uid = uid;
    m.id.address.port = port;
    (void)snprintf(m.id.address.protocol, sizeof m.id.address.protocol, "troupe.tcp");
    (void)snprintf(m.id.address.system, sizeof m.id.address.system, "demo");
    (void)snprintf(m.id.address.host, sizeof m.id.address.host, "10.0.0.1");
    return m;
}

/* CONTRIB-02 */
static void
the_lowest_up_number_is_the_oldest_then_the_address_then_the_uid(void)
{
    trpi_aged m[] = { member(3, 1, 7, TRP_MEMBER_UP), member(2, 1, 5, TRP_MEMBER_UP),
                      member(1, 9, 5, TRP_MEMBER_UP), member(1, 8, 5, TRP_MEMBER_UP) };
    UNIT_EQUAL(trpi_oldest(m, 4), 3);
    UNIT_EQUAL(trpi_oldest(m, 3), 2);
    UNIT_EQUAL(trpi_oldest(m, 2), 1);
    UNIT_EQUAL(trpi_oldest(m, 1), 0);
    UNIT_EQUAL(trpi_oldest(m, 0), TRPI_AGE_NONE);
    UNIT_TRUE(trpi_age_compare(&m[3], &m[2]) < 0);
    UNIT_TRUE(trpi_age_compare(&m[2], &m[1]) < 0);
    UNIT_TRUE(trpi_age_compare(&m[0], &m[1]) > 0);
    UNIT_EQUAL(trpi_age_compare(&m[2], &m[2]), 0);
}

/* CONTRIB-08: an Exiting member is out of the order, a Leaving one is not */
static void
only_members_that_are_up_or_leaving_and_have_been_up_count(void)
{
    static const struct {
        uint32_t up_number, status;
        bool counts;
    } rows[] = {
        { 1, TRP_MEMBER_UP, true },       { 1, TRP_MEMBER_LEAVING, true },
        { 0, TRP_MEMBER_LEAVING, false }, { 0, TRP_MEMBER_JOINING, false },
        { 1, TRP_MEMBER_EXITING, false }, { 1, TRP_MEMBER_DOWN, false },
        { 1, TRP_MEMBER_REMOVED, false }, { 0, TRP_MEMBER_WEAKLY_UP, false },
        { 0, TRP_MEMBER_UP, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trpi_aged m[] = { member(1, 1, rows[i].up_number, rows[i].status),
                          member(2, 2, 9, TRP_MEMBER_UP) };
        UNIT_EQUAL(trpi_age_counts(&m[0]), rows[i].counts);
        UNIT_EQUAL(trpi_oldest(m, 2), rows[i].counts ? 0 : 1);
    }
}

static void
a_copy_of_a_member_is_taken_whole_or_not_at_all(void)
{
    trp_member copy = { .uid = 5, .status = TRP_MEMBER_UP, .up_number = 3 };
    trpi_aged aged = { .up_number = 77 };
    (void)snprintf(copy.address, sizeof copy.address, "troupe.tcp://demo@10.0.0.1:2552");
    UNIT_TRUE(trpi_aged_of(&copy, &aged));
    UNIT_EQUAL(aged.up_number, 3);
    UNIT_EQUAL(aged.id.uid, 5);
    UNIT_EQUAL(aged.id.address.port, 2552);
    UNIT_EQUAL(aged.status, TRP_MEMBER_UP);
    aged.up_number = 77;
    copy.address[0] = '\0';
    UNIT_FALSE(trpi_aged_of(&copy, &aged));
    UNIT_EQUAL(aged.up_number, 77);
}

/* The public order of ages and the one of engines are the same. */
static void
it_agrees_with_the_public_order_on_random_members(void)
{
    unit_draw draw = unit_draw_begin("cluster_tests", "age_test");
    for (uint32_t round = 0; round < 200; round++) {
        trpi_aged aged[8];
        trp_member copies[8];
        for (uint32_t i = 0; i < 8; i++) {
            aged[i] = member((uint16_t)(1 + unit_drawn(&draw, 3)), 1 + i, 1 + unit_drawn(&draw, 4),
                             TRP_MEMBER_UP);
            copies[i] = (trp_member){ .uid = aged[i].id.uid,
                                      .up_number = aged[i].up_number,
                                      .status = aged[i].status };
            (void)trpi_address_format(&aged[i].id.address, copies[i].address,
                                      sizeof copies[i].address);
        }
        uint32_t oldest = trpi_oldest(aged, 8);
        for (uint32_t i = 0; i < 8; i++) {
            UNIT_TRUE(i == oldest || trp_member_is_older_than(&copies[i], &copies[oldest]) == 0);
        }
    }
}

UNIT_BEGIN("age")
UNIT(the_lowest_up_number_is_the_oldest_then_the_address_then_the_uid)
UNIT(only_members_that_are_up_or_leaving_and_have_been_up_count)
UNIT(a_copy_of_a_member_is_taken_whole_or_not_at_all)
UNIT(it_agrees_with_the_public_order_on_random_members)
UNIT_END
