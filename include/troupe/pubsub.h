/* troupe/pubsub.h - publish to topics and send to paths, without knowing where anybody lives.
 *
 *     trp_mediator *mediator;
 *     err = trp_mediator_of(system, NULL, &mediator); // this node's
 *
 *     trp_subscribe_options how = TRP_SUBSCRIBE_OPTIONS_INIT;
 *     err = trp_mediator_subscribe(mediator, "weather/vienna", trp_self(ctx), &how);
 *     // ... and when trp_subscribe_ack has come:
 *     trp_mediator_publish(mediator, trp_self(ctx), "weather/vienna", &sky_type, &sky, 0);
 *
 * A mediator is an actor on each node (or on each node with a role); together they know which node
 * has subscribers to what. A publication goes once to each of these nodes, and is given to all
 * subscribers there. A subscription reaches the other nodes within a second: until then their
 * publications do not come here. TRP_SUBSCRIBE_ACK_EVERYWHERE tells when they do, and a publication
 * with an answer to how many it was delivered. A node that leaves gets nothing more from Leaving
 * on.
 *
 * A publication is delivered at most once to each subscriber, those of one publisher in their
 * order, with the publisher as the sender. None is lost in silence: what nobody subscribes to is a
 * dead letter (no-subscriber), as is what a subscriber's mailbox refuses, what cannot be
 * serialised, and what is too large or cannot reach its node. The publications of a node to a topic
 * are numbered: a subscriber that asks is told how many the wire has lost (trp_missed_type).
 *
 * A topic is any text of up to TRP_TOPIC_BYTES_MAX bytes. Those who subscribe in a group share
 * its work: a publication goes to one of each group of the topic, in turn, and to all who have no
 * group.
 */
#ifndef TROUPE_PUBSUB_H
#define TROUPE_PUBSUB_H

#include <stddef.h>

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_TOPIC_BYTES_MAX 1024u /* also of a path that was put; without the NUL */
#define TRP_TOPIC_GROUP_BYTES_MAX 255u
#define TRP_MEDIATOR_NAME_BYTES_MAX 63u
#define TRP_MEDIATORS_MAX 16u              /* of one system */
#define TRP_MEDIATOR_ENTRIES_MAX 100000u   /* topics, groups and paths of one node */
#define TRP_TOPIC_SUBSCRIBERS_MAX 1000000u /* of a topic, or of a group of it, on one node */
#define TRP_MEDIATOR_ASKS_MAX 10000u       /* publications that await answers */
#define TRP_MEDIATOR_WAITS_MAX 1000u       /* publications that wait for subscribers */
#define TRP_MEDIATOR_ACKS_MAX 100000u      /* acknowledgements that wait for other nodes */
#define TRP_PUBLISH_TIMEOUT_MS_MAX 3600000u

typedef struct trp_mediator trp_mediator;

typedef struct trp_mediator_options {
    size_t size;
    const char *name; /* one path element; the same on all nodes */
    const char *role; /* only members with it take part; NULL: all */
} trp_mediator_options;
#define TRP_MEDIATOR_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(trp_mediator_options), NULL, NULL                                                   \
    }

/* Start a mediator of this node besides the default one, as /system/pubsub-NAME. Mediators of
 * different names know nothing of each other. On a system that is no cluster node it serves this
 * system alone.
 *
 * Ownership: borrows options; shares *ret_mediator (until the system is freed); ret_mediator may be
 *            NULL.
 * Errors:    TRP_EINVAL   the name or the role is no name, or too long
 *            TRP_EROLE    this node does not have the role
 *            TRP_EEXIST   it is started already
 *            TRP_ELIMIT   TRP_MEDIATORS_MAX reached
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-12, -20, ROLES-03, -05.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_start(trp_system *system,
                                                  const trp_mediator_options *options,
                                                  trp_mediator **ret_mediator);

/* Find a mediator. name NULL or "default": the default one, /system/pubsub, which starts with a
 * cluster node (cluster.pub-sub.*), elsewhere now.
 *
 * Ownership: borrows name; shares *ret_mediator (until the system is freed).
 * Errors:    TRP_ENOENT   there is none of that name
 *            TRP_EROLE    the default one: this node does not have cluster.pub-sub.role
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-12, -20.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_of(trp_system *system, const char *name,
                                               trp_mediator **ret_mediator);

/* ---- subscribers ----------------------------------------------------------------------------- */

/* Told when a subscribe or an unsubscribe has been done, or not. */
typedef struct trp_subscribe_ack {
    trp_ref subscriber;
    /* TRP_OK; of a subscribe TRP_ELIMIT (TRP_MEDIATOR_ENTRIES_MAX, TRP_TOPIC_SUBSCRIBERS_MAX,
     * TRP_MEDIATOR_ACKS_MAX), TRP_ENOMEM; of an unsubscribe TRP_ENOENT (it was not subscribed) */
    int32_t err;
    uint32_t everywhere; /* 1: every other node's mediator knows it, too */
    uint32_t topic_bytes, group_bytes;
    char text[8]; /* the topic, a NUL, the group, a NUL; longer than this */
} trp_subscribe_ack;
TRP_API extern trp_type trp_subscribe_ack_type;
TRP_API extern trp_type trp_unsubscribe_ack_type;

/* Return the topic of an acknowledgement. Use it in place of text[], beyond whose 8 bytes it goes.
 *
 * Ownership: borrows ack; what is returned lives as long as it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONTRIB-16.  Since: 0.2 */
static inline const char *
trp_subscribe_ack_topic(const trp_subscribe_ack *ack)
{
    return (const char *)ack + offsetof(trp_subscribe_ack, text);
}

/* Return the group of an acknowledgement; "": none.
 *
 * Ownership: borrows ack; what is returned lives as long as it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONTRIB-16.  Since: 0.2 */
static inline const char *
trp_subscribe_ack_group(const trp_subscribe_ack *ack)
{
    return trp_subscribe_ack_topic(ack) + ack->topic_bytes + 1;
}

/* Told, before the next publication, to a subscriber with TRP_SUBSCRIBE_TELLS_MISSED: so many
 * publications to the topic by actors of another node did not arrive at this node, or, with
 * refused, so many did not fit into the subscriber's mailbox. In a group only those that were
 * refused are known: which member would have got a lost one is not. */
typedef struct trp_missed {
    uint64_t count;
    uint32_t refused; /* 1: by its own mailbox */
    uint32_t topic_bytes;
    char topic[8]; /* and its NUL; longer than this */
} trp_missed;
TRP_API extern trp_type trp_missed_type;

/* Return the topic of which some were missed. Use it in place of topic[].
 *
 * Ownership: borrows missed; what is returned lives as long as it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONTRIB-16.  Since: 0.2 */
static inline const char *
trp_missed_topic(const trp_missed *missed)
{
    return (const char *)missed + offsetof(trp_missed, topic);
}

enum trp_subscribe_flags {
    TRP_SUBSCRIBE_TELLS_MISSED = 1,
    /* The acknowledgement comes when all other nodes know of it, too: from then on their
     * publications come here. A node that cannot be reached holds it up until it is removed. */
    TRP_SUBSCRIBE_ACK_EVERYWHERE = 2
};

typedef struct trp_subscribe_options {
    size_t size;
    const char *group; /* NULL: none */
    trp_ref answer_to; /* who is told trp_subscribe_ack; none: the subscriber */
    uint32_t flags;    /* of trp_subscribe_flags */
    uint32_t zero;
} trp_subscribe_options;
#define TRP_SUBSCRIBE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_subscribe_options), NULL, TRP_REF_NONE, 0, 0                                    \
    }

/* Subscribe an actor of this system to a topic; again has no effect but its acknowledgement and its
 * flags. An actor that ends is unsubscribed by itself.
 *
 * Ownership: borrows topic and options; options may be NULL.
 * Errors:    TRP_EINVAL   topic or group is empty, or an option is wrong
 *            TRP_ELIMIT   topic or group is longer than its limit
 *            TRP_EUNSUPPORTED  the actor is another node's: it subscribes there
 *            TRP_ECLOSED  the mediator's actor has stopped; find it or start it again
 *            TRP_ENOMEM   out of memory
 *            others come as trp_subscribe_ack.err
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-16, -21.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_subscribe(trp_mediator *mediator, const char *topic,
                                                      trp_ref subscriber,
                                                      const trp_subscribe_options *options);

/* Unsubscribe it, from the group of options, if any; trp_unsubscribe_ack says whether it was.
 *
 * Ownership: borrows topic and options; options may be NULL.
 * Errors:    as trp_mediator_subscribe
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-16.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_unsubscribe(trp_mediator *mediator, const char *topic,
                                                        trp_ref subscriber,
                                                        const trp_subscribe_options *options);

/* Register an actor of this system under its path, "/user/a": for send and send to all. It is
 * removed by itself when it ends.
 *
 * Errors:    TRP_EINVAL   ref is none
 *            TRP_EUNSUPPORTED  the actor is another node's: it is registered there
 *            TRP_ENOENT   it has ended
 *            TRP_ELIMIT   its path is above TRP_TOPIC_BYTES_MAX
 *            TRP_ECLOSED  the mediator's actor has stopped
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-16.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_put(trp_mediator *mediator, trp_ref ref);

/* Remove what was put under a path on this node.
 *
 * Ownership: borrows path.
 * Errors:    TRP_EINVAL   path is empty
 *            TRP_ELIMIT   path is above TRP_TOPIC_BYTES_MAX
 *            TRP_ECLOSED  the mediator's actor has stopped
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-16.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_remove(trp_mediator *mediator, const char *path);

/* ---- publishers ------------------------------------------------------------------------------ */

enum trp_send_flags {
    TRP_SEND_LOCAL_AFFINITY = 1, /* send: to the one on this node, if there is one */
    TRP_SEND_ALL_BUT_SELF = 2    /* send to all: not to the one on this node */
};

/* Publish a message to all that subscribe to the topic, and to one of each group, in the name of
 * sender.
 *
 * Ownership: borrows topic and payload.
 * Errors:    TRP_EINVAL   topic is empty, or bytes do not fit the type
 *            TRP_ELIMIT   topic is above TRP_TOPIC_BYTES_MAX
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ECLOSED  the mediator's actor has stopped
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-15, -17, -21.  Since: 0.2 */
TRP_API trp_err trp_mediator_publish(trp_mediator *mediator, trp_ref sender, const char *topic,
                                     const trp_type *type, const void *payload, size_t bytes);

/* Send a message to one of the actors registered under path, on any node: a random one, or, with
 * TRP_SEND_LOCAL_AFFINITY, that of this node if there is one.
 *
 * Ownership: borrows path and payload.
 * Errors:    as trp_mediator_publish; TRP_EINVAL also: a flag is wrong
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-13, -17.  Since: 0.2 */
TRP_API trp_err trp_mediator_send(trp_mediator *mediator, trp_ref sender, const char *path,
                                  uint32_t flags, const trp_type *type, const void *payload,
                                  size_t bytes);

/* Send a message to all actors registered under path; TRP_SEND_ALL_BUT_SELF: on other nodes.
 *
 * Ownership: borrows path and payload.
 * Errors:    as trp_mediator_publish; TRP_EINVAL also: a flag is wrong
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-14, -17.  Since: 0.2 */
TRP_API trp_err trp_mediator_send_to_all(trp_mediator *mediator, trp_ref sender, const char *path,
                                         uint32_t flags, const trp_type *type, const void *payload,
                                         size_t bytes);

/* ---- with an answer -------------------------------------------------------------------------- */

typedef struct trp_publish_options {
    size_t size;
    /* Wait until so many subscribe, at most wait_ms; then it is published to those there are. A
     * publication that is made meanwhile overtakes it. 0: publish now. */
    uint32_t subscribers_min;
    uint32_t wait_ms;
    uint32_t timeout_ms; /* for the answers of the nodes, after that; above 0 */
    uint32_t zero;
} trp_publish_options;
#define TRP_PUBLISH_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_publish_options), 0, 0, 5000, 0                                                 \
    }

/* The outcome of a publication. Delivered means: put into the subscriber's mailbox. */
typedef struct trp_publish_report {
    uint64_t delivered; /* subscribers */
    uint32_t nodes;     /* that have answered, this one included */
    uint32_t silent;    /* nodes that were lost, could not be told, or were late */
    uint32_t late;      /* 1: fewer than subscribers_min were there at the end of wait_ms */
    uint32_t zero;
} trp_publish_report;
TRP_API extern trp_type trp_publish_report_type;

/* Publish, and run fn with a trp_publish_report as the reply. The sender of the publication is the
 * running actor.
 *
 * Ownership: borrows all; arg is passed through.
 * Errors:    as trp_mediator_publish, and
 *            TRP_EINVAL   an option is out of range
 *            TRP_ELIMIT   as the err of fn: TRP_MEDIATOR_ASKS_MAX, TRP_MEDIATOR_WAITS_MAX reached;
 *                         it is not published
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-15.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_publish_ask(trp_ctx *ctx, trp_mediator *mediator,
                                                        const char *topic,
                                                        const trp_publish_options *options,
                                                        const trp_type *type, const void *payload,
                                                        size_t bytes, trp_reply_fn fn, void *arg);

/* Publish without a sender, and wait for the report.
 *
 * Ownership: borrows all.
 * Errors:    as trp_mediator_publish, and
 *            TRP_EINVAL   an option is out of range
 *            TRP_ELIMIT   TRP_MEDIATOR_ASKS_MAX, TRP_MEDIATOR_WAITS_MAX; it is not published
 *            TRP_ESTATE   called inside a behaviour
 * Thread:    outside of actors; blocks for at most wait_ms and timeout_ms.
 * Source:    CONTRIB-15.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_mediator_publish_wait(trp_mediator *mediator, const char *topic,
                                                         const trp_publish_options *options,
                                                         const trp_type *type, const void *payload,
                                                         size_t bytes,
                                                         trp_publish_report *ret_report);

/* ---- looking --------------------------------------------------------------------------------- */

typedef struct trp_topic_info { /* of one topic, or of a group of it; borrowed */
    const char *topic, *group;  /* group NULL: those without a group */
    uint32_t topic_bytes, group_bytes;
    uint32_t nodes; /* that have subscribers */
    uint32_t zero;
    uint64_t subscribers, subscribers_here; /* of all nodes, as far as known here */
} trp_topic_info;

/* Call fn for each topic that has subscribers anywhere, and each group, in no order.
 *
 * Ownership: arg is passed through; the info is valid until fn returns.
 * Errors:    none
 * Thread:    any; takes a lock while fn runs.
 * Source:    CONTRIB-16.  Since: 0.2 */
TRP_API void trp_mediator_topics(trp_mediator *mediator,
                                 void (*fn)(void *arg, const trp_topic_info *info), void *arg);

/* Count the topics that have subscribers anywhere.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-16.  Since: 0.2 */
TRP_API uint32_t trp_mediator_topics_count(trp_mediator *mediator);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PUBSUB_H */
