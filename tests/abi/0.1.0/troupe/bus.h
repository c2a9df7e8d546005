/* troupe/bus.h - event buses: give each event to its subscribers, synchronously, on the thread that
 * publishes.
 *
 * A bus is generic: events are pointers of the program's own, classifiers and subscribers are small
 * values, and a few functions say what they mean. Four ways to find the subscribers of an event:
 *
 *     lookup       those of exactly the event's classifier
 *     sub-channel  those of the classifier and of all above it in a hierarchy, each once
 *     scanning     every subscription whose classifier matches the event
 *     actor        lookup, where classifiers and subscribers are refs of actors
 *
 * The event stream of a system (trp_subscribe) is another thing: it tells messages, by type. A bus
 * does not know the publisher; put it into the event.
 */
#ifndef TROUPE_BUS_H
#define TROUPE_BUS_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_BUS_SUBSCRIPTIONS_DEFAULT (1024u * 1024u)

typedef struct trp_bus trp_bus;

/* A classifier or a subscriber, made by one of the three functions below. Members that the one in
 * use does not cover are zero. */
typedef struct trp_bus_value {
    trp_ref ref;
    const void *pointer;
    uint64_t number;
} trp_bus_value;

static inline trp_bus_value
trp_bus_of_ref(trp_ref ref)
{
    trp_bus_value value = { TRP_REF_NONE, NULL, 0 };
    value.ref = ref;
    return value;
}
static inline trp_bus_value
trp_bus_of_pointer(const void *pointer)
{
    trp_bus_value value = { TRP_REF_NONE, NULL, 0 };
    value.pointer = pointer;
    return value;
}
static inline trp_bus_value
trp_bus_of_number(uint64_t number)
{
    trp_bus_value value = { TRP_REF_NONE, NULL, 0 };
    value.number = number;
    return value;
}

typedef enum trp_bus_kind {
    TRP_BUS_LOOKUP = 1,
    TRP_BUS_SUBCHANNEL = 2,
    TRP_BUS_SCANNING = 3,
    TRP_BUS_ACTOR = 4
} trp_bus_kind;

/* The functions are called without a lock, by any thread that publishes or subscribes, and may use
 * the bus themselves. Comparing must be an order (as strcmp's): NULL compares the values. */
typedef struct trp_bus_options {
    size_t size;
    uint32_t kind;              /* trp_bus_kind */
    uint32_t subscriptions_max; /* 0: TRP_BUS_SUBSCRIPTIONS_DEFAULT */
    void *arg;                  /* passed to each function */
    /* Return the classifier of an event; not for scanning. */
    trp_bus_value (*classify)(void *arg, const void *event);
    /* Sub-channel: is classifier equal to channel, or below it? */
    int (*is_below)(void *arg, trp_bus_value classifier, trp_bus_value channel);
    /* Scanning: does the classifier of a subscription fit the event? */
    int (*matches)(void *arg, trp_bus_value classifier, const void *event);
    int (*compare_classifiers)(void *arg, trp_bus_value a, trp_bus_value b);
    int (*compare_subscribers)(void *arg, trp_bus_value a, trp_bus_value b);
    /* Give the event to one subscriber, for instance by a tell. Must not block. */
    void (*publish)(void *arg, const void *event, trp_bus_value subscriber);
} trp_bus_options;
#define TRP_BUS_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_bus_options), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL                    \
    }

/* Make a bus.
 *
 * Ownership: gives *ret_bus (trp_bus_free); borrows options; arg is passed through.
 * Errors:    TRP_EINVAL  kind is none, or a function that it needs is NULL
 *            TRP_ENOMEM  out of memory
 * Thread:    any; lock-free.
 * Source:    EB-01, -03 to -06.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bus_new(const trp_bus_options *options, trp_bus **ret_bus);

/* Free a bus that is not used any more; NULL is fine.
 *
 * Ownership: takes bus.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    EB-01.  Since: 0.1 */
TRP_API void trp_bus_free(trp_bus *bus);

/* Subscribe: events of this classifier are given to the subscriber from now on. O(subscriptions).
 *
 * Errors:    TRP_EEXIST  it is subscribed already
 *            TRP_ELIMIT  subscriptions_max reached
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment; the bus's own functions run in it.
 * Source:    EB-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bus_subscribe(trp_bus *bus, trp_bus_value subscriber,
                                                 trp_bus_value classifier);

/* Undo one subscription. A publish that has begun may still reach it.
 *
 * Errors:    TRP_ENOENT  there is none
 *            TRP_ENOMEM  out of memory; it is still subscribed
 * Thread:    any; takes a lock for a moment; the bus's own functions run in it.
 * Source:    EB-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bus_unsubscribe(trp_bus *bus, trp_bus_value subscriber,
                                                   trp_bus_value classifier);

/* Undo all subscriptions of a subscriber, as the post_stop of an actor that subscribed does.
 *
 * Errors:    TRP_ENOENT  there is none
 *            TRP_ENOMEM  out of memory; it is still subscribed
 * Thread:    any; takes a lock for a moment; the bus's own functions run in it.
 * Source:    EB-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_bus_unsubscribe_all(trp_bus *bus, trp_bus_value subscriber);

/* Give an event to all subscribers that are concerned, in this thread; returns to how many.
 *
 * Ownership: borrows event until return; what publish() does with it is its own affair.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; the bus's own functions run in it.
 * Source:    EB-01, -02.  Since: 0.1 */
TRP_API uint32_t trp_bus_publish(trp_bus *bus, const void *event);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_BUS_H */
