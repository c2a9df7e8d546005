/* events_test.c - types of events, their text with Akka's keys, and what a reader that comes back
 * is given. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster/management/events.h"
#include "tests/unit/unit.h"

#define ALL 0xfffu

static uint32_t
types(const char *query)
{
    char bad[80] = "";
    uint32_t bits = 0;
    return trpi_management_types_take(query, &bits, bad, sizeof bad) == TRP_OK ? bits : 0;
}

static void
types_are_akkas_and_their_groups(void)
{
    char bad[80] = "";
    uint32_t bits = 7;
    UNIT_EQUAL(types(""), ALL);
    UNIT_EQUAL(types("other=1"), ALL);
    UNIT_EQUAL(types("type=ClusterDomainEvent"), ALL);
    UNIT_EQUAL(types("type=MemberUp"), 4);
    UNIT_EQUAL(types("type=MemberUp&type=MemberJoined&x=y"), 5);
    UNIT_EQUAL(types("type=ReachabilityEvent"), 0x180);
    UNIT_EQUAL(types("type=MemberEvent"), 0x7f);
    UNIT_EQUAL(types("type=SeenChanged"), 1u << 12); /* ours: only by name */
    UNIT_EQUAL(trpi_management_types_take("type=MemberUp&type=Nope", &bits, bad, sizeof bad),
               TRP_EINVAL);
    UNIT_TEXT(bad, "Nope");
    UNIT_EQUAL(trpi_management_types_take("type=", &bits, bad, sizeof bad), TRP_EINVAL);
    UNIT_TEXT(bad, "");
    cJSON *list = cJSON_CreateArray();
    UNIT_TRUE(trpi_management_types_add(list, 5));
    char *text = trpi_json_print(list);
    UNIT_TEXT(text, "[\"MemberJoined\",\"MemberUp\"]");
    cJSON_free(text);
    cJSON_Delete(list);
}

static void
written(const char *object, trp_err want, const char *text, uint32_t want_bit)
{
    trpi_buffer buffer = { 0 };
    uint32_t bit = 0;
    UNIT_EQUAL(trpi_management_event_write(object, &buffer, &bit), want);
    UNIT_EQUAL(bit, want_bit);
    char *got = trpi_buffer_take_text(&buffer);
    UNIT_TEXT(got != NULL ? got : "", text);
    trpi_free(got);
}

static void
an_event_has_akkas_keys_beside_ours(void)
{
    written(
        "{\"event\":{\"time\":\"T\",\"type\":\"MemberUp\",\"member\":{\"node\":\"A\",\"nodeUid\":"
        "\"18446744073709551615\",\"status\":\"Up\",\"roles\":[\"r\"]}}}",
        TRP_OK,
        "data:{\"time\":\"T\",\"type\":\"MemberUp\",\"member\":{\"node\":\"A\",\"nodeUid\":"
        "\"18446744073709551615\",\"status\":\"Up\",\"roles\":[\"r\"],\"dataCenter\":\"default\","
        "\"uniqueAddress\":{\"address\":\"A\",\"longUid\":-1}}}\nevent:MemberUp\n\n",
        4);
    written(
        "{\"event\":{\"type\":\"RoleLeaderChanged\",\"role\":\"r\",\"leader\":null}}", TRP_OK,
        "data:{\"type\":\"RoleLeaderChanged\",\"role\":\"r\",\"leader\":null,\"address\":null}\n"
        "event:RoleLeaderChanged\n\n",
        1u << 10);
    written("{\"event\":{\"type\":\"ClusterShuttingDown\"}}", TRP_OK,
            "data:{\"type\":\"ClusterShuttingDown\"}\nevent:ClusterShuttingDown\n\n", 1u << 11);
    written("{\"event\":{\"type\":\"Nope\"}}", TRP_EDATA, "", 0);
    written("{\"event\":{\"type\":\"MemberEvent\"}}", TRP_EDATA, "", 0); /* a group is no event */
    written("{\"progress\":\"x\"}", TRP_EDATA, "", 0);
    written("[]", TRP_EDATA, "", 0);
}

#define SHUT "{\"event\":{\"type\":\"ClusterShuttingDown\"}}"
#define SEEN "{\"event\":{\"type\":\"SeenChanged\"}}"

static trpi_management_feed feed;

/* Read the events of these types from *next on; the text is freed by the next call. */
static const char *
given(uint64_t *next, uint32_t bits)
{
    static char *text;
    trpi_buffer buffer = { 0 };
    trpi_free(text);
    text = NULL;
    if (!trpi_management_feed_read(&feed, next, bits, 1u << 20, &buffer)) {
        trpi_buffer_fini(&buffer);
        return "cut off";
    }
    text = trpi_buffer_take_text(&buffer);
    return text != NULL ? text : "";
}

static void
a_reader_that_comes_back_is_given_what_it_has_missed(void)
{
    uint64_t next = 0;
    trpi_management_feed_init(&feed, 7);
    UNIT_TRUE(trpi_management_feed_resumes(&feed, "7-0", &next));
    trpi_management_feed_add(&feed, SHUT);
    trpi_management_feed_add(&feed, SEEN);
    trpi_management_feed_add(&feed, SHUT);
    UNIT_TRUE(trpi_management_feed_resumes(&feed, "7-1", &next));
    UNIT_EQUAL(next, 2);
    UNIT_TEXT(given(&next, ALL),
              "id:7-3\ndata:{\"type\":\"ClusterShuttingDown\"}\nevent:ClusterShuttingDown\n\n");
    UNIT_EQUAL(next, 4);
    UNIT_TEXT(given(&next, ALL), "");
    UNIT_TRUE(trpi_management_feed_resumes(&feed, "7-3", &next));
    UNIT_EQUAL(next, 4);
    static const char *const others[] = { NULL,
                                          "",
                                          "7",
                                          "8-1",
                                          "7-4",
                                          "7--1",
                                          "7-1x",
                                          "x7-1",
                                          "-7-1",
                                          "7-",
                                          "-1",
                                          "7 -1",
                                          "7-18446744073709551616" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        UNIT_TRUE(!trpi_management_feed_resumes(&feed, others[i], &next));
    }
    trpi_management_feed_fini(&feed);
}

static void
a_reader_behind_the_limit_is_cut_off_and_one_at_it_is_not(void)
{
    uint64_t at_limit = 1, behind = 1;
    trpi_management_feed_init(&feed, 7);
    for (uint32_t i = 0; i < TRPI_MANAGEMENT_EVENTS_MAX; i++) {
        trpi_management_feed_add(&feed, SHUT);
    }
    const char *text = given(&at_limit, ALL);
    UNIT_TRUE(strncmp(text, "id:7-1\n", 7) == 0);
    UNIT_EQUAL(at_limit, TRPI_MANAGEMENT_EVENTS_MAX + 1u);
    trpi_management_feed_add(&feed, SHUT);
    UNIT_TEXT(given(&behind, ALL), "cut off");
    UNIT_TRUE(!trpi_management_feed_resumes(&feed, "7-0", &behind));
    UNIT_TRUE(trpi_management_feed_resumes(&feed, "7-1", &behind));
    UNIT_EQUAL(behind, 2);
    UNIT_TRUE(strncmp(given(&behind, ALL), "id:7-2\n", 7) == 0);
    trpi_management_feed_fini(&feed);
}

static void
an_event_that_is_lost_cuts_all_readers_off(void)
{
    uint64_t next = 1;
    trpi_management_feed_init(&feed, 7);
    trpi_management_feed_add(&feed, SHUT);
    trpi_management_feed_add(&feed, NULL); /* there was no memory for it */
    trpi_management_feed_add(&feed, SHUT);
    UNIT_TEXT(given(&next, ALL), "cut off");
    UNIT_TRUE(!trpi_management_feed_resumes(&feed, "7-1", &next));
    UNIT_TRUE(trpi_management_feed_resumes(&feed, "7-2", &next));
    UNIT_TRUE(strncmp(given(&next, ALL), "id:7-3\n", 7) == 0);
    trpi_management_feed_fini(&feed);
}

static void
listed(uint32_t bits, uint32_t count, const char *text)
{
    char *list = trpi_management_feed_list(&feed, bits, count);
    UNIT_TEXT(list, text);
    cJSON_free(list);
}

static void
the_log_has_the_last_events_of_its_types_with_their_ids(void)
{
    static const char first[] = "{\"id\":\"7-1\",\"event\":{\"type\":\"ClusterShuttingDown\"}}";
    static const char third[] = "{\"id\":\"7-3\",\"event\":{\"type\":\"ClusterShuttingDown\"}}";
    char text[200];
    trpi_management_feed_init(&feed, 7);
    listed(ALL, 10, "{\"complete\":true,\"events\":[]}");
    trpi_management_feed_add(&feed, SHUT);
    trpi_management_feed_add(&feed, SEEN);
    trpi_management_feed_add(&feed, SHUT);
    (void)snprintf(text, sizeof text, "{\"complete\":true,\"events\":[%s,%s]}", first, third);
    listed(ALL, 10, text);
    listed(ALL, 2, text);
    (void)snprintf(text, sizeof text, "{\"complete\":true,\"events\":[%s]}", third);
    listed(ALL, 1, text);
    listed(ALL, 0, "{\"complete\":true,\"events\":[]}");
    trpi_management_feed_add(&feed, NULL);
    trpi_management_feed_add(&feed, SEEN);
    listed(ALL, 10, "{\"complete\":false,\"events\":[]}");
    trpi_management_feed_fini(&feed);
}

UNIT_BEGIN("events")
UNIT(types_are_akkas_and_their_groups)
UNIT(an_event_has_akkas_keys_beside_ours)
UNIT(a_reader_that_comes_back_is_given_what_it_has_missed)
UNIT(a_reader_behind_the_limit_is_cut_off_and_one_at_it_is_not)
UNIT(an_event_that_is_lost_cuts_all_readers_off)
UNIT(the_log_has_the_last_events_of_its_types_with_their_ids)
UNIT_END
