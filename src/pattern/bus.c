/* bus.c - event buses: lookup, sub-channel, scanning and actor classification.
 *
 * Shape.   One immutable, counted array of subscriptions {classifier, subscriber}, ordered by both.
 *          A change makes a new array; publishing takes a count, and calls the program's functions
 *          without the lock.
 * Must hold.
 *   bus-B1  An array never changes once others can see it; the last reference frees it.
 *   bus-B2  No function of the program is called with the lock held: a change is computed without
 *       it, and tried again when another one came first.
 *   bus-B3  In a sub-channel bus a subscriber is given an event once, however many of its channels
 *       it is in; in a scanning bus once for each subscription that matches.
 * Limits.  subscriptions_max.
 * Cost.    Publishing: two short sections under the lock; then lookup and actor O(log
 *          subscriptions), sub-channel and scanning O(subscriptions); with none, nothing.
 * Tests.   tests/unit/pattern/bus_test.c
 * Sources. EB-01 to -06; Akka 2.2.5, "Event Bus".
 */
#include <troupe/bus.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"

#define BUS_MAGIC 0x7472705f62757300ull

typedef struct subscription {
    trp_bus_value classifier, subscriber;
} subscription;

typedef struct table {
    uint32_t refs; /* under the lock */
    uint32_t count;
    subscription items[];
} table;

struct trp_bus {
    uint64_t magic;
    trp_bus_options options;
    pthread_mutex_t lock; /* guards present and the counts of all tables; a leaf */
    table *present;       /* never NULL */
};

/* ---- values ---------------------------------------------------------------------------------- */

static int
number_compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int
value_compare(trp_bus_value a, trp_bus_value b)
{
    const uint64_t x[] = { (uint64_t)a.ref.node << 32 | a.ref.slot, a.ref.generation,
                           (uint64_t)(uintptr_t)a.pointer, a.number };
    const uint64_t y[] = { (uint64_t)b.ref.node << 32 | b.ref.slot, b.ref.generation,
                           (uint64_t)(uintptr_t)b.pointer, b.number };
    int order = 0;

    for (size_t i = 0; i < sizeof x / sizeof x[0] && order == 0; i++) {
        order = number_compare(x[i], y[i]);
    }
    return order;
}

static int
classifiers_compare(const trp_bus *bus, trp_bus_value a, trp_bus_value b)
{
    return bus->options.compare_classifiers != NULL
               ? bus->options.compare_classifiers(bus->options.arg, a, b)
               : value_compare(a, b);
}

static int
subscribers_compare(const trp_bus *bus, trp_bus_value a, trp_bus_value b)
{
    return bus->options.compare_subscribers != NULL
               ? bus->options.compare_subscribers(bus->options.arg, a, b)
               : value_compare(a, b);
}

/* Return the first subscription that is not before this one; subscriber NULL: the classifier's
 * first. */
static uint32_t
subscription_place(const trp_bus *bus, const table *t, trp_bus_value classifier,
                   const trp_bus_value *subscriber)
{
    uint32_t low = 0, high = t->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = classifiers_compare(bus, t->items[middle].classifier, classifier);

        if (order == 0 && subscriber != NULL) {
            order = subscribers_compare(bus, t->items[middle].subscriber, *subscriber);
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static table *
table_new(uint32_t room)
{
    table *t = trpi_alloc(sizeof *t + room * sizeof t->items[0]);

    if (t != NULL) {
        t->refs = 1;
    }
    return t;
}

static table *
table_get(trp_bus *bus)
{
    table *t;

    pthread_mutex_lock(&bus->lock);
    t = bus->present;
    t->refs++;
    pthread_mutex_unlock(&bus->lock);
    return t;
}

static void
table_let_go(trp_bus *bus, table *t)
{
    bool last;

    pthread_mutex_lock(&bus->lock);
    last = --t->refs == 0;
    pthread_mutex_unlock(&bus->lock);
    if (last) { /* bus-B1 */
        trpi_free(t);
    }
}

/* Replace old, whose reference the caller gives up, by fresh. False: another change came first, and
 * fresh is freed (bus-B2). */
static bool
table_change(trp_bus *bus, table *old, table *fresh)
{
    bool changed;

    pthread_mutex_lock(&bus->lock);
    changed = bus->present == old;
    if (changed) {
        bus->present = fresh;
        old->refs--; /* the bus's reference; the caller has its own */
    }
    pthread_mutex_unlock(&bus->lock);
    if (!changed) {
        trpi_free(fresh);
    }
    table_let_go(bus, old);
    return changed;
}

/* ---- birth and end --------------------------------------------------------------------------- */

static bool
options_are_valid(const trp_bus_options *options)
{
    if (options->publish == NULL) {
        return false;
    }
    switch (options->kind) {
    case TRP_BUS_LOOKUP:
    case TRP_BUS_ACTOR:
        return options->classify != NULL;
    case TRP_BUS_SUBCHANNEL:
        return options->classify != NULL && options->is_below != NULL;
    case TRP_BUS_SCANNING:
        return options->matches != NULL;
    default:
        return false;
    }
}

trp_err
trp_bus_new(const trp_bus_options *options, trp_bus **ret_bus)
{
    trp_bus_options own;
    trp_bus *bus;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &own, publish) ||
        !options_are_valid(options) || ret_bus == NULL) {
        return TRP_EINVAL;
    }
    bus = trpi_alloc(sizeof *bus);
    if (bus == NULL) {
        return TRP_ENOMEM;
    }
    bus->present = table_new(0);
    if (bus->present == NULL) {
        trpi_free(bus);
        return TRP_ENOMEM;
    }
    bus->options = *options;
    if (bus->options.subscriptions_max == 0) {
        bus->options.subscriptions_max = TRP_BUS_SUBSCRIPTIONS_DEFAULT;
    }
    pthread_mutex_init(&bus->lock, NULL);
    bus->magic = BUS_MAGIC;
    *ret_bus = bus;
    return TRP_OK;
}

void
trp_bus_free(trp_bus *bus)
{
    if (bus != NULL) {
        trpi_assert(bus->magic == BUS_MAGIC);
        trpi_assert(bus->present->refs == 1); /* no thread publishes */
        trpi_free(bus->present);
        trpi_mutex_destroy(&bus->lock);
        bus->magic = 0;
        trpi_free(bus);
    }
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Try once. TRP_EAGAIN: another change came first. */
static trp_err
subscribe_once(trp_bus *bus, const subscription *what)
{
    table *old = table_get(bus), *fresh;
    uint32_t at = subscription_place(bus, old, what->classifier, &what->subscriber);
    trp_err err = TRP_OK;

    if (at < old->count &&
        classifiers_compare(bus, old->items[at].classifier, what->classifier) == 0 &&
        subscribers_compare(bus, old->items[at].subscriber, what->subscriber) == 0) {
        err = TRP_EEXIST;
    } else if (old->count >= bus->options.subscriptions_max) {
        err = TRP_ELIMIT;
    }
    fresh = err == TRP_OK ? table_new(old->count + 1) : NULL;
    if (fresh == NULL) {
        table_let_go(bus, old);
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    memcpy(fresh->items, old->items, at * sizeof fresh->items[0]);
    fresh->items[at] = *what;
    memcpy(fresh->items + at + 1, old->items + at, (old->count - at) * sizeof fresh->items[0]);
    fresh->count = old->count + 1;
    return table_change(bus, old, fresh) ? TRP_OK : TRP_EAGAIN;
}

/* Try once. classifier NULL: all subscriptions of the subscriber. TRP_EAGAIN: another change came
 * first. */
static trp_err
unsubscribe_once(trp_bus *bus, trp_bus_value subscriber, const trp_bus_value *classifier)
{
    table *old = table_get(bus), *fresh = table_new(old->count);

    for (uint32_t i = 0; fresh != NULL && i < old->count; i++) {
        const subscription *s = &old->items[i];

        if (subscribers_compare(bus, s->subscriber, subscriber) != 0 ||
            (classifier != NULL && classifiers_compare(bus, s->classifier, *classifier) != 0)) {
            fresh->items[fresh->count++] = *s;
        }
    }
    if (fresh == NULL || fresh->count == old->count) {
        trp_err err = fresh == NULL ? TRP_ENOMEM : TRP_ENOENT;

        trpi_free(fresh);
        table_let_go(bus, old);
        return err;
    }
    return table_change(bus, old, fresh) ? TRP_OK : TRP_EAGAIN;
}

static bool
is_bus(const trp_bus *bus)
{
    return bus != NULL && bus->magic == BUS_MAGIC;
}

trp_err
trp_bus_subscribe(trp_bus *bus, trp_bus_value subscriber, trp_bus_value classifier)
{
    const subscription what = { classifier, subscriber };
    trp_err err = TRP_EINVAL;

    while (is_bus(bus) && (err = subscribe_once(bus, &what)) == TRP_EAGAIN) {
    }
    return err;
}

trp_err
trp_bus_unsubscribe(trp_bus *bus, trp_bus_value subscriber, trp_bus_value classifier)
{
    trp_err err = TRP_EINVAL;

    while (is_bus(bus) && (err = unsubscribe_once(bus, subscriber, &classifier)) == TRP_EAGAIN) {
    }
    return err;
}

trp_err
trp_bus_unsubscribe_all(trp_bus *bus, trp_bus_value subscriber)
{
    trp_err err = TRP_EINVAL;

    while (is_bus(bus) && (err = unsubscribe_once(bus, subscriber, NULL)) == TRP_EAGAIN) {
    }
    return err;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static uint32_t
publish_exact(const trp_bus *bus, const table *t, const void *event)
{
    trp_bus_value classifier = bus->options.classify(bus->options.arg, event);
    uint32_t told = 0;

    for (uint32_t i = subscription_place(bus, t, classifier, NULL);
         i < t->count && classifiers_compare(bus, t->items[i].classifier, classifier) == 0; i++) {
        bus->options.publish(bus->options.arg, event, t->items[i].subscriber);
        told++;
    }
    return told;
}

/* Return whether the subscriber of item i is in an earlier channel of this event (bus-B3). */
static bool
is_told(const trp_bus *bus, const table *t, uint32_t i, trp_bus_value classifier)
{
    for (uint32_t k = 0; k < i; k++) {
        if (subscribers_compare(bus, t->items[k].subscriber, t->items[i].subscriber) == 0 &&
            bus->options.is_below(bus->options.arg, classifier, t->items[k].classifier) != 0) {
            return true;
        }
    }
    return false;
}

static uint32_t
publish_below(const trp_bus *bus, const table *t, const void *event)
{
    trp_bus_value classifier = bus->options.classify(bus->options.arg, event);
    uint32_t told = 0;

    for (uint32_t i = 0; i < t->count; i++) {
        if (bus->options.is_below(bus->options.arg, classifier, t->items[i].classifier) != 0 &&
            !is_told(bus, t, i, classifier)) {
            bus->options.publish(bus->options.arg, event, t->items[i].subscriber);
            told++;
        }
    }
    return told;
}

static uint32_t
publish_matching(const trp_bus *bus, const table *t, const void *event)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < t->count; i++) {
        if (bus->options.matches(bus->options.arg, t->items[i].classifier, event) != 0) {
            bus->options.publish(bus->options.arg, event, t->items[i].subscriber);
            told++;
        }
    }
    return told;
}

uint32_t
trp_bus_publish(trp_bus *bus, const void *event)
{
    uint32_t told = 0;
    table *t;

    if (!is_bus(bus)) {
        return 0;
    }
    t = table_get(bus);
    if (t->count > 0 && bus->options.kind == TRP_BUS_SUBCHANNEL) {
        told = publish_below(bus, t, event);
    } else if (t->count > 0 && bus->options.kind == TRP_BUS_SCANNING) {
        told = publish_matching(bus, t, event);
    } else if (t->count > 0) {
        told = publish_exact(bus, t, event);
    }
    table_let_go(bus, t);
    return told;
}
