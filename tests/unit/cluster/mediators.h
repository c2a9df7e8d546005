/* mediators.h - what the tests of mediators share: inboxes that subscribe, and what they got. */
#ifndef TESTS_UNIT_CLUSTER_MEDIATORS_H
#define TESTS_UNIT_CLUSTER_MEDIATORS_H

#include <stdlib.h>

#include <troupe/inbox.h>
#include <troupe/pubsub.h>
#include <troupe/system.h>

#include "tests/unit/unit.h"

#define TAKE_MS 60000u

static inline trp_inbox *
inbox_of(trp_system *system)
{
    trp_inbox *inbox = NULL;
    UNIT_REQUIRE(trp_inbox_open(system, NULL, &inbox) == TRP_OK);
    return inbox;
}

static inline trp_inbox *
large_inbox_of(trp_system *system, uint32_t msgs_max)
{
    trp_inbox_options options = TRP_INBOX_OPTIONS_INIT;
    trp_inbox *inbox = NULL;
    options.msgs_max = msgs_max;
    UNIT_REQUIRE(trp_inbox_open(system, &options, &inbox) == TRP_OK);
    return inbox;
}

static inline trp_mediator *
mediator_of(trp_system *system)
{
    trp_mediator *m = NULL;
    UNIT_REQUIRE(trp_mediator_of(system, NULL, &m) == TRP_OK);
    return m;
}

/* The next message is of this type. The caller frees it. */
static inline trp_msg *
take(trp_inbox *inbox, const trp_type *type, trp_ref *ret_sender)
{
    trp_msg *msg = NULL;
    UNIT_REQUIRE(trp_inbox_receive(inbox, TAKE_MS, &msg, ret_sender) == TRP_OK);
    UNIT_TEXT(trp_msg_type(msg)->name, type->name);
    UNIT_REQUIRE(trp_msg_is(msg, type));
    return msg;
}

static inline void
take_text(trp_inbox *inbox, const char *text, trp_ref from)
{
    trp_ref sender;
    trp_msg *msg = take(inbox, &trp_string_type, &sender);
    UNIT_EQUAL(trp_msg_bytes(msg), strlen(text));
    UNIT_EQUAL(memcmp(trp_msg_payload(msg), text, strlen(text)), 0);
    UNIT_TRUE(trp_ref_equal(sender, from));
    trp_msg_free(msg);
}

static inline void
take_ack(trp_inbox *inbox, bool subscribes, const char *topic, trp_err err)
{
    trp_ref sender;
    trp_msg *msg =
        take(inbox, subscribes ? &trp_subscribe_ack_type : &trp_unsubscribe_ack_type, &sender);
    const trp_subscribe_ack *ack = trp_msg_payload(msg);
    UNIT_EQUAL(ack->err, err);
    UNIT_EQUAL(ack->topic_bytes, strlen(topic));
    UNIT_TEXT(trp_subscribe_ack_topic(ack), topic);
    trp_msg_free(msg);
}

static inline void
is_empty(trp_inbox *inbox)
{
    trp_msg *msg = NULL;
    UNIT_EQUAL(trp_inbox_receive(inbox, 0, &msg, NULL), TRP_ETIMEDOUT);
}

static inline void
subscribe(trp_mediator *m, const char *topic, const char *group, trp_inbox *inbox, uint32_t flags)
{
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    options.group = group;
    options.flags = flags;
    UNIT_EQUAL(trp_mediator_subscribe(m, topic, trp_inbox_ref(inbox), &options), TRP_OK);
    take_ack(inbox, true, topic, TRP_OK);
}

static inline void
publish(trp_mediator *m, trp_ref sender, const char *topic, const char *text)
{
    UNIT_EQUAL(trp_mediator_publish(m, sender, topic, &trp_string_type, text, strlen(text)),
               TRP_OK);
}

/* Publish, and return to how many it was delivered. */
static inline uint64_t
publish_counted(trp_mediator *m, const char *topic, const char *text, uint32_t subscribers_min,
                uint32_t wait_ms, trp_publish_report *ret_report)
{
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    options.subscribers_min = subscribers_min;
    options.wait_ms = wait_ms;
    options.timeout_ms = TAKE_MS;
    memset(ret_report, 0xff, sizeof *ret_report);
    UNIT_EQUAL(trp_mediator_publish_wait(m, topic, &options, &trp_string_type, text, strlen(text),
                                         ret_report),
               TRP_OK);
    return ret_report->delivered;
}

static inline uint64_t
dead_letters(trp_system *system, trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(system, &stats);
    return stats.dead_letters[reason];
}

#endif
