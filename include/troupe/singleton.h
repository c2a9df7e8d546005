/* troupe/singleton.h - an actor that lives once in a cluster, and the proxy that finds it.
 *
 *     trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
 *     options.name = "consumer";
 *     options.behaviour = &consumer;
 *     options.role = "worker";
 *     options.end_type = &shop_end_type;
 *     err = trp_singleton_start(system, &options, &manager);
 *
 *     trp_singleton_proxy_options to = TRP_SINGLETON_PROXY_OPTIONS_INIT;
 *     to.name = "consumer";
 *     to.role = "worker";
 *     err = trp_singleton_proxy(system, &to, &proxy); // tell it, ask it: as the actor itself
 *
 * Every node (or every node with the role) starts the same singleton. A manager on each of them
 * runs the actor on the oldest member alone. When that member leaves, the actor gets the end
 * message; what it then tells its parent, trp_parent(), before it stops, is handed over: the next
 * one is spawned with that message as its arguments, and with options.args where there is none.
 * While a hand-over goes on no singleton runs, which takes some milliseconds and the time that the
 * actor takes to stop. When the host crashes, the next one starts when the downing strategy has
 * decided and the member is removed; a crash hands nothing over.
 *
 * It is a bottleneck, and for that short time a single point of failure (CONTRIB-11): one actor
 * does all its work, however many nodes there are. Use it for what must be decided once; spread the
 * work itself.
 */
#ifndef TROUPE_SINGLETON_H
#define TROUPE_SINGLETON_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/lease.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SINGLETON_NAME_BYTES_MAX 63
#define TRP_SINGLETONS_MAX 256              /* of one node, proxies included */
#define TRP_SINGLETON_DATA_BYTES_MAX 65536  /* of hand-over data, encoded */
#define TRP_SINGLETON_RETRY_MS_DEFAULT 1000 /* also how often a proxy looks for it */
#define TRP_SINGLETON_HAND_OVER_RETRIES_DEFAULT 20
#define TRP_SINGLETON_TAKE_OVER_RETRIES_DEFAULT 15
#define TRP_SINGLETON_RETRIES_MAX 10000
#define TRP_SINGLETON_STOP_TIMEOUT_MS_DEFAULT 8000 /* less than that of the phase cluster-exiting */
#define TRP_SINGLETON_LEASE_RETRY_MS_DEFAULT 5000
#define TRP_SINGLETON_BACKOFF_MIN_MS_DEFAULT 200
#define TRP_SINGLETON_BACKOFF_MAX_MS_DEFAULT 10000
#define TRP_SINGLETON_DELAY_MS_MAX 86400000 /* a day */
#define TRP_SINGLETON_PROXY_MSGS_DEFAULT 1000
#define TRP_SINGLETON_PROXY_MSGS_MAX 1000000

typedef struct trp_singleton_options {
    size_t size;
    const char *name;               /* one path element; the same on all nodes */
    const trp_behaviour *behaviour; /* what it is */
    const char *role;               /* only members with it are hosts; NULL: all */
    const trp_type *args_type;      /* of the first one: without hand-over data. NULL: none */
    const void *args;
    size_t args_bytes;
    const trp_type *end_type; /* the end message; NULL: trp_poison_pill_type */
    const void *end;
    size_t end_bytes;
    const char *dispatcher; /* as trp_spawn_options.dispatcher */
    const char *mailbox;    /* as trp_spawn_options.mailbox */
    uint32_t retry_ms;      /* between unanswered messages of managers; 0: the default */
    /* Unanswered requests to hand over, after which the manager restarts with that cause. It must
     * be more than take_over_retries; 0: the default. */
    uint32_t hand_over_retries;
    /* Unanswered offers to take over, after which a leaving node stops it; 0: the default. */
    uint32_t take_over_retries;
    /* From the end message on; then it is stopped after its present message. 0: the default */
    uint32_t stop_timeout_ms;
    uint32_t lease_retry_ms; /* also how often a held lease is confirmed; 0: the default */
    uint32_t persistent; /* 1: it keeps its state in the system's journal, which must be shared */
    /* Held while it runs, under the name "SYSTEM-singleton-NAME". NULL: none */
    const trp_lease_ops *lease;
    void *lease_arg;
    /* Pauses between restarts, as in trp_strategy; 0: TRP_SINGLETON_BACKOFF_..._DEFAULT */
    uint32_t backoff_min_ms, backoff_max_ms;
} trp_singleton_options;
#define TRP_SINGLETON_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_singleton_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, \
            0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0                                                     \
    }

/* Start this node's manager of a singleton, as /system/singleton-NAME; the singleton itself is its
 * child, "singleton". A node that leaves hands it over in the phase cluster-exiting of its
 * shutdown; when the whole cluster is shut down it is not handed over. A singleton that ends by
 * itself is started again after retry_ms. One that fails is restarted where it is, with its
 * mailbox, after a pause that grows; a hand-over does not wait for the end of that pause. The end
 * message is handled before all that waits in its mailbox; that becomes dead letters.
 *
 * Ownership: borrows behaviour, the types, lease and lease_arg until the system ends; copies the
 *            rest.
 * Errors:    TRP_EINVAL   an option is missing or out of range
 *            TRP_EROLE    this node does not have the role; the log says what to do
 *            TRP_EEXIST   it is started already
 *            TRP_ELIMIT   TRP_SINGLETONS_MAX reached
 *            TRP_ESTATE   this system is no cluster node, or cannot promise that never two run; or
 *                         persistent is set and there is no journal. The log says what to do
 *            TRP_ECONFIG  persistent is set, and the journal is this node's alone; likewise
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-01 to -08, -10, -11; ROLES-03, -05.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_singleton_start(trp_system *system,
                                                   const trp_singleton_options *options,
                                                   trp_ref *ret_manager);

typedef struct trp_singleton_proxy_options {
    size_t size;
    const char *name;  /* of the singleton */
    const char *role;  /* that it was started with; this node need not have it */
    uint32_t msgs_max; /* kept while there is none; 0: the default */
    uint32_t retry_ms; /* between questions where it is; 0: the default */
} trp_singleton_proxy_options;
#define TRP_SINGLETON_PROXY_OPTIONS_INIT                                                           \
    {                                                                                              \
        sizeof(trp_singleton_proxy_options), NULL, NULL, 0, 0                                      \
    }

/* Start an actor that passes messages on to a singleton, wherever it is, with their sender: a tell
 * to it is a tell to the singleton, an ask is answered by it. While there is none, or its host is
 * unreachable, messages wait in their order; one beyond msgs_max is a dead letter (mailbox-full).
 * A message on its way when the singleton stops is a dead letter at its node.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL   an option is missing or out of range
 *            TRP_ELIMIT   TRP_SINGLETONS_MAX reached
 *            TRP_ESTATE   this system is no cluster node
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-09.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_singleton_proxy(trp_system *system,
                                                   const trp_singleton_proxy_options *options,
                                                   trp_ref *ret_proxy);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SINGLETON_H */
