/* bus_test.c - event buses: the four classifications, changes, limits, threads. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <troupe/bus.h>

/* An event is a path of words: "news/sport" is below "news". A subscriber is a number. */
static char told[256];

static void
event_note(void *arg, const void *event, trp_bus_value subscriber)
{
    size_t used = strlen(told);

    (void)arg;
    (void)snprintf(told + used, sizeof told - used, "%s%d:%s", used == 0 ? "" : " ",
                   (int)subscriber.number, (const char *)event);
}

static trp_bus_value
text_of(void *arg, const void *event)
{
    (void)arg;
    return trp_bus_of_pointer(event);
}

static int
text_compare(void *arg, trp_bus_value a, trp_bus_value b)
{
    (void)arg;
    return strcmp(a.pointer, b.pointer);
}

static int
text_below(void *arg, trp_bus_value classifier, trp_bus_value channel)
{
    const char *text = classifier.pointer, *prefix = channel.pointer;
    size_t bytes = strlen(prefix);

    (void)arg;
    return strncmp(text, prefix, bytes) == 0 && (text[bytes] == 0 || text[bytes] == '/');
}

static int
text_holds(void *arg, trp_bus_value classifier, const void *event)
{
    (void)arg;
    return strstr(event, classifier.pointer) != NULL;
}

static trp_bus *
open_bus(uint32_t kind, uint32_t max)
{
    trp_bus_options options = TRP_BUS_OPTIONS_INIT;
    trp_bus *bus = NULL;

    options.kind = kind;
    options.subscriptions_max = max;
    options.classify = kind == TRP_BUS_SCANNING ? NULL : text_of;
    options.is_below = kind == TRP_BUS_SUBCHANNEL ? text_below : NULL;
    options.matches = kind == TRP_BUS_SCANNING ? text_holds : NULL;
    options.compare_classifiers = text_compare;
    options.publish = event_note;
    told[0] = 0;
    UNIT_REQUIRE(trp_bus_new(&options, &bus) == TRP_OK);
    return bus;
}

static trp_err
bus_join(trp_bus *bus, uint64_t who, const char *what)
{
    return trp_bus_subscribe(bus, trp_bus_of_number(who), trp_bus_of_pointer(what));
}

static trp_err
bus_leave(trp_bus *bus, uint64_t who, const char *what)
{
    return trp_bus_unsubscribe(bus, trp_bus_of_number(who), trp_bus_of_pointer(what));
}

/* EB-01, EB-02, EB-03 */
static void
a_lookup_bus_tells_those_of_the_very_classifier(void)
{
    trp_bus *bus = open_bus(TRP_BUS_LOOKUP, 0);

    UNIT_EQUAL(trp_bus_publish(bus, "news"), 0);
    UNIT_EQUAL(bus_join(bus, 2, "news"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 1, "news"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 4, "news"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 1, "news"), TRP_EEXIST);
    UNIT_EQUAL(bus_join(bus, 4, "news"), TRP_EEXIST); /* also behind others of its classifier */
    UNIT_EQUAL(bus_join(bus, 3, "rain"), TRP_OK);
    UNIT_EQUAL(trp_bus_publish(bus, "news"), 3); /* in the order of the subscribers */
    UNIT_EQUAL(trp_bus_publish(bus, "news/sport"), 0);
    UNIT_EQUAL(trp_bus_publish(bus, "rain"), 1);
    UNIT_TEXT(told, "1:news 2:news 4:news 3:rain");
    UNIT_EQUAL(bus_leave(bus, 4, "news"), TRP_OK);
    UNIT_EQUAL(bus_leave(bus, 1, "rain"), TRP_ENOENT);
    UNIT_EQUAL(bus_leave(bus, 1, "news"), TRP_OK);
    UNIT_EQUAL(trp_bus_publish(bus, "news"), 1);
    UNIT_EQUAL(bus_join(bus, 2, "rain"), TRP_OK);
    UNIT_EQUAL(trp_bus_unsubscribe_all(bus, trp_bus_of_number(2)), TRP_OK);
    UNIT_EQUAL(trp_bus_unsubscribe_all(bus, trp_bus_of_number(2)), TRP_ENOENT);
    UNIT_EQUAL(trp_bus_publish(bus, "news"), 0);
    UNIT_EQUAL(trp_bus_publish(bus, "rain"), 1);
    trp_bus_free(bus);
}

/* EB-04 */
static void
a_sub_channel_bus_tells_those_above_too_and_each_once(void)
{
    trp_bus *bus = open_bus(TRP_BUS_SUBCHANNEL, 0);

    UNIT_EQUAL(bus_join(bus, 1, "news"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 1, "news/sport"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 2, "news/sport"), TRP_OK);
    UNIT_EQUAL(trp_bus_publish(bus, "news/sport/golf"), 2);
    UNIT_EQUAL(trp_bus_publish(bus, "news"), 1);
    UNIT_EQUAL(trp_bus_publish(bus, "newspaper"), 0);
    UNIT_TEXT(told, "1:news/sport/golf 2:news/sport/golf 1:news");
    UNIT_EQUAL(bus_leave(bus, 1, "news"), TRP_OK); /* the other one stays */
    UNIT_EQUAL(trp_bus_publish(bus, "news/sport"), 2);
    UNIT_EQUAL(trp_bus_publish(bus, "news"), 0);
    trp_bus_free(bus);
}

/* EB-05 */
static void
a_scanning_bus_tells_once_for_each_classifier_that_matches(void)
{
    trp_bus *bus = open_bus(TRP_BUS_SCANNING, 0);

    UNIT_EQUAL(bus_join(bus, 1, "a"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 1, "b"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 2, "b"), TRP_OK);
    UNIT_EQUAL(trp_bus_publish(bus, "ab"), 3);
    UNIT_EQUAL(trp_bus_publish(bus, "b"), 2);
    UNIT_EQUAL(trp_bus_publish(bus, "c"), 0);
    UNIT_TEXT(told, "1:ab 1:ab 2:ab 1:b 2:b");
    trp_bus_free(bus);
}

static trp_bus_value
ref_of(void *arg, const void *event)
{
    (void)arg;
    return trp_bus_of_ref(*(const trp_ref *)event);
}

static void
ref_note(void *arg, const void *event, trp_bus_value subscriber)
{
    size_t used = strlen(told);

    (void)arg;
    (void)snprintf(told + used, sizeof told - used, "%u>%u ",
                   (unsigned)((const trp_ref *)event)->slot, (unsigned)subscriber.ref.slot);
}

/* EB-06 */
static void
an_actor_bus_has_refs_as_classifiers_and_subscribers(void)
{
    trp_bus_options options = TRP_BUS_OPTIONS_INIT;
    const trp_ref a = { 1, 1, 3, 0 }, again = { 1, 1, 5, 0 }, b = { 1, 2, 3, 0 };
    trp_bus *bus = NULL;

    told[0] = 0;
    options.kind = TRP_BUS_ACTOR;
    options.classify = ref_of;
    options.publish = ref_note;
    UNIT_REQUIRE(trp_bus_new(&options, &bus) == TRP_OK);
    UNIT_EQUAL(trp_bus_subscribe(bus, trp_bus_of_ref(b), trp_bus_of_ref(a)), TRP_OK);
    UNIT_EQUAL(trp_bus_subscribe(bus, trp_bus_of_ref(a), trp_bus_of_ref(a)), TRP_OK);
    UNIT_EQUAL(trp_bus_publish(bus, &a), 2);
    UNIT_EQUAL(trp_bus_publish(bus, &again), 0); /* another incarnation */
    UNIT_EQUAL(trp_bus_publish(bus, &b), 0);
    UNIT_TEXT(told, "1>1 1>2 ");
    trp_bus_free(bus);
}

/* ---- limits, and threads --------------------------------------------------------------------- */

static void
what_a_bus_needs_is_checked_and_it_is_bounded(void)
{
    trp_bus_options options = TRP_BUS_OPTIONS_INIT;
    trp_bus *bus;

    UNIT_EQUAL(trp_bus_new(&options, &bus), TRP_EINVAL);
    options.publish = event_note;
    options.kind = TRP_BUS_LOOKUP;
    UNIT_EQUAL(trp_bus_new(&options, &bus), TRP_EINVAL);
    options.classify = text_of;
    options.kind = TRP_BUS_SUBCHANNEL;
    UNIT_EQUAL(trp_bus_new(&options, &bus), TRP_EINVAL);
    options.kind = 5;
    UNIT_EQUAL(trp_bus_new(&options, &bus), TRP_EINVAL);
    bus = open_bus(TRP_BUS_LOOKUP, 2);
    UNIT_EQUAL(bus_join(bus, 1, "x"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 2, "x"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 3, "x"), TRP_ELIMIT);
    UNIT_EQUAL(bus_leave(bus, 1, "x"), TRP_OK);
    UNIT_EQUAL(bus_join(bus, 3, "x"), TRP_OK);
    trp_bus_free(bus);
    trp_bus_free(NULL);
    UNIT_EQUAL(trp_bus_publish(NULL, "x"), 0);
}

static atomic_uint heard;
static atomic_bool over;

static void
event_count(void *arg, const void *event, trp_bus_value subscriber)
{
    (void)arg;
    (void)event;
    if (subscriber.number == 1) {
        atomic_fetch_add(&heard, 1);
    }
}

static void *
come_and_go(void *arg)
{
    for (uint64_t i = 2; !atomic_load(&over); i++) {
        UNIT_EQUAL(bus_join(arg, 2 + i % 7, "x"), TRP_OK);
        UNIT_EQUAL(trp_bus_unsubscribe_all(arg, trp_bus_of_number(2 + i % 7)), TRP_OK);
    }
    return NULL;
}

/* A subscriber that stays gets every event, whatever the others do. */
static void
changes_beside_publishing_disturb_nobody(void)
{
    trp_bus_options options = TRP_BUS_OPTIONS_INIT;
    trp_bus *bus = NULL;
    pthread_t thread;

    options.kind = TRP_BUS_LOOKUP;
    options.classify = text_of;
    options.compare_classifiers = text_compare;
    options.publish = event_count;
    atomic_store(&heard, 0);
    atomic_store(&over, false);
    UNIT_REQUIRE(trp_bus_new(&options, &bus) == TRP_OK);
    UNIT_EQUAL(bus_join(bus, 1, "x"), TRP_OK);
    UNIT_EQUAL(pthread_create(&thread, NULL, come_and_go, bus), 0);
    for (int i = 0; i < 20000; i++) {
        UNIT_TRUE(trp_bus_publish(bus, "x") >= 1);
    }
    atomic_store(&over, true);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    UNIT_EQUAL(atomic_load(&heard), 20000);
    trp_bus_free(bus);
}

UNIT_BEGIN("bus")
UNIT(a_lookup_bus_tells_those_of_the_very_classifier)
UNIT(a_sub_channel_bus_tells_those_above_too_and_each_once)
UNIT(a_scanning_bus_tells_once_for_each_classifier_that_matches)
UNIT(an_actor_bus_has_refs_as_classifiers_and_subscribers)
UNIT(what_a_bus_needs_is_checked_and_it_is_bounded)
UNIT(changes_beside_publishing_disturb_nobody)
UNIT_END
