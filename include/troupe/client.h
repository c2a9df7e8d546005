/* troupe/client.h - talk to a cluster from a process that is no member of it.
 *
 *     const char *const contacts[] = { "shop-1.example:2552", "shop-2.example:2552" };
 *     trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
 *     options.contacts = contacts;
 *     options.contacts_count = 2;
 *     err = trp_client_open(system, &options, &client);
 *     err = trp_client_service(client, "orders", &orders); // tell it, ask it: as the service
 *     ...
 *     trp_client_close(client);
 *
 * On the nodes (cluster.client.receptionist.enabled = on) services are registered by name:
 *
 *     err = trp_receptionist_register(system, "orders", orders);
 *
 * and topics of the node's mediator (troupe/pubsub.h) are opened for clients:
 *
 *     err = trp_receptionist_subscribe(system, "weather", subscriber, NULL);
 *
 * A client has no port and no host: it makes all connections, so it works behind address
 * translation. It talks to the receptionist of one node, its contact, and is moved to another one
 * before that node leaves, or finds another one when it is lost. It reaches services and the topics
 * that were opened, and nothing else. A service or a subscriber gets a tunnel as the sender of a
 * client's message: what it tells the tunnel reaches the actor that has sent the message.
 */
#ifndef TROUPE_CLIENT_H
#define TROUPE_CLIENT_H

#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/pubsub.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_CLIENT_CONTACTS_MAX 32  /* contact points that a client is given */
#define TRP_CLIENT_SERVICES_MAX 256 /* services and topics that one client has asked for */
#define TRP_CLIENT_SERVICE_NAME_BYTES_MAX 255
#define TRP_CLIENT_BUFFER_MSGS_DEFAULT 1000 /* kept for each service while there is no contact */
#define TRP_CLIENT_BUFFER_MSGS_MAX 10000
#define TRP_CLIENT_PING_MS_DEFAULT 2000
#define TRP_CLIENT_SILENCE_MS_DEFAULT 7000
#define TRP_CLIENT_TRY_MS_DEFAULT 3000
#define TRP_CLIENT_REFRESH_MS_DEFAULT 60000
#define TRP_RECEPTIONIST_SERVICES_MAX 4096 /* services, and subscribers, of one node */

typedef struct trp_client trp_client;

typedef struct trp_client_options {
    size_t size;
    /* "host:port", or an address as "troupe.tcp://shop@host:port". A name is looked up again at
     * each attempt. */
    const char *const *contacts;
    size_t contacts_count;
    uint32_t buffer_msgs_max;      /* 0: the default; TRP_CLIENT_BUFFER_NONE: none is kept */
    uint32_t reconnect_timeout_ms; /* stop after so long without a contact; 0: never */
    uint32_t ping_ms;              /* to the contact; 0: the default */
    uint32_t silence_ms;           /* then the contact is lost; more than ping_ms; 0: the default */
    uint32_t try_ms;               /* for a contact to answer; 0: the default */
    uint32_t refresh_ms;           /* between two requests for contacts; 0: the default */
    /* As the nodes have them. With files of TLS the contacts are troupe.tls://. The name in the
     * certificate is what permissions of services go by; it needs no host. NULL: none */
    const char *cookie;
    const char *tls_ca, *tls_cert, *tls_key;
    /* In place of cookie: a file with it, which no other user may read, as
     * remote.secure-cookie-file of nodes. TRP_CLIENT_COOKIE_OF_USER: that of this user, which nodes
     * on loopback ask for; where there is none the client has no cookie. */
    const char *cookie_file;
} trp_client_options;
#define TRP_CLIENT_COOKIE_OF_USER "~"
#define TRP_CLIENT_BUFFER_NONE 0xffffffffu
#define TRP_CLIENT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_client_options), NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL        \
    }

/* Begin to look for a contact. The system must not be a node: it gets remoting without a port.
 *
 * Ownership: borrows options; gives *ret_client (free with trp_client_close).
 * Errors:    TRP_EINVAL   no contacts or too many, one that does not parse, a time out of range;
 *                         the log says which
 *            TRP_EEXIST   the system has remoting already
 *            TRP_ECONFIG  the files of TLS or of the cookie cannot be used; the log says why
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    any; may block until the files are read.
 * Source:    CONTRIB-22, -23.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_client_open(trp_system *system,
                                               const trp_client_options *options,
                                               trp_client **ret_client);

/* Say goodbye to the contact and free the client. Messages that it still keeps are dead letters.
 * Before trp_system_free. NULL is fine.
 *
 * Ownership: takes client.
 * Errors:    none
 * Thread:    any; may block until what was told is sent; never from a behaviour.
 * Source:    CONTRIB-22.  Since: 0.2 */
TRP_API void trp_client_close(trp_client *client);

/* Give the actor of this system that stands for the service of that name: a tell to it is a tell to
 * the service, an ask is answered by it. The same name gives the same actor. While there is no
 * contact, or no such service is registered, messages wait; when more than buffer_msgs_max wait the
 * oldest one falls out and is a dead letter (mailbox-full). An ask whose service ends or whose
 * contact is lost is not repeated: it fails at its timeout.
 *
 * Ownership: borrows name.
 * Errors:    TRP_EINVAL   name is NULL, empty or too long
 *            TRP_ELIMIT   TRP_CLIENT_SERVICES_MAX reached
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the client has stopped, or the system is stopping
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-24, -25.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_client_service(trp_client *client, const char *name,
                                                  trp_ref *ret_service);

/* Give the actor of this system that stands for all services of that name, on all nodes: a tell to
 * it goes to each of them that the contact's node knows of, within a second of its registration. An
 * ask is answered with a trp_client_delivery, and their answers to it are dead letters. Messages
 * wait as for trp_client_service(), while there is no contact; where nobody is registered they are
 * dead letters at the contact (no-subscriber).
 *
 * Ownership: borrows name.
 * Errors:    as trp_client_service
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-24.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_client_service_all(trp_client *client, const char *name,
                                                      trp_ref *ret_services);

/* Give the actor of this system that stands for a topic of the cluster: a tell to it is published
 * there by the mediator of the contact's node, with a tunnel to the sender as the sender. An ask is
 * answered with a trp_client_delivery. Messages wait as for trp_client_service(), also while the
 * topic is not opened (trp_receptionist_subscribe()) on any node.
 *
 * Ownership: borrows topic.
 * Errors:    TRP_EINVAL   topic is NULL or empty
 *            TRP_ELIMIT   topic is above TRP_TOPIC_BYTES_MAX, TRP_CLIENT_SERVICES_MAX reached
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the client has stopped, or the system is stopping
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-24.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_client_topic(trp_client *client, const char *topic,
                                                trp_ref *ret_topic);

/* The answer to an ask of a topic, or of all services of a name: how many got it into their
 * mailbox. */
typedef struct trp_client_delivery {
    uint64_t delivered; /* subscribers, or services */
    uint32_t nodes;     /* that have answered, the contact's included */
    uint32_t silent;    /* nodes that were lost, could not be told, or were late */
} trp_client_delivery;
TRP_API extern trp_type trp_client_delivery_type;

/* Let clients of the cluster reach an actor of this node under a name, from now on until it ends or
 * is unregistered. The same name may be registered on several nodes: a client is given the one of
 * its contact's node, if there is one.
 *
 * Ownership: borrows name.
 * Errors:    TRP_EINVAL   name is empty or too long; service is no actor of this system
 *            TRP_EEXIST   another actor of this node has that name
 *            TRP_ELIMIT   TRP_RECEPTIONIST_SERVICES_MAX reached
 *            TRP_ESTATE   this node has no receptionist: cluster.client.receptionist.enabled
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-27.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_receptionist_register(trp_system *system, const char *name,
                                                         trp_ref service);

/* Take the name back: clients that use it are told, and their messages wait at their side.
 *
 * Ownership: borrows name.
 * Errors:    TRP_ENOENT   no actor of this node has that name
 *            TRP_ESTATE   this node has no receptionist
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-27.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_receptionist_unregister(trp_system *system, const char *name);

/* Subscribe an actor of this node to a topic of the default mediator, as trp_mediator_subscribe(),
 * and open the topic for clients of the cluster until it ends or is unsubscribed here: they may
 * publish to it while any node has such a subscriber. Their publications reach all its
 * subscribers. An actor that subscribes in several groups of a topic opens it once, and closes it
 * with the first unsubscribe.
 *
 * Ownership: borrows topic and options; options may be NULL.
 * Errors:    TRP_EINVAL   topic is empty, subscriber is no actor of this system, or an option is
 *                         wrong
 *            TRP_ELIMIT   topic is above TRP_TOPIC_BYTES_MAX, TRP_RECEPTIONIST_SERVICES_MAX reached
 *            TRP_ESTATE   this node has no receptionist: cluster.client.receptionist.enabled
 *            TRP_EROLE    this node has no mediator: cluster.pub-sub.role
 *            TRP_ENOMEM   out of memory
 *            others come as trp_subscribe_ack.err
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-27, -30.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_receptionist_subscribe(trp_system *system, const char *topic,
                                                          trp_ref subscriber,
                                                          const trp_subscribe_options *options);

/* Unsubscribe it, from the group of options, if any, and close the topic for clients, if no node
 * has another subscriber of that kind.
 *
 * Ownership: borrows topic and options; options may be NULL.
 * Errors:    TRP_ENOENT   it is not subscribed here
 *            others as trp_receptionist_subscribe
 * Thread:    any; takes a lock for a moment.
 * Source:    CONTRIB-27.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_receptionist_unsubscribe(trp_system *system, const char *topic,
                                                            trp_ref subscriber,
                                                            const trp_subscribe_options *options);

/* ---- events of the event stream (trp_subscribe) ---------------------------------------------- */

#define TRP_CLIENT_ADDRESS_BYTES 352
#define TRP_CLIENT_REASON_BYTES 160

/* At a client: its contact has changed. */
typedef struct trp_client_contact {
    char contact[TRP_CLIENT_ADDRESS_BYTES]; /* ""; it looks for one */
    char reason[TRP_CLIENT_REASON_BYTES];   /* why the contact was lost; "": it was not */
    uint32_t stopped;                       /* 1: it has given up (reconnect_timeout_ms) */
    /* above 0: nothing has changed; it has asked all contacts that it knows so many times, and none
     * has taken it; reason: of the last one */
    uint32_t rounds;
} trp_client_contact;

/* At a client: a service or a topic can be reached, or not; again when that changes. */
typedef struct trp_client_reach {
    trp_ref service;                      /* as trp_client_service() gives it */
    uint32_t reachable;                   /* 0: what it is told waits */
    int32_t err;                          /* why not: TRP_ENOENT (it is not registered), TRP_EPERM,
                                             TRP_ELIMIT, TRP_ECONN (no contact), others */
    char reason[TRP_CLIENT_REASON_BYTES]; /* in words */
} trp_client_reach;

/* At a receptionist: a client has come, or has gone. */
typedef struct trp_receptionist_client {
    char client[TRP_CLIENT_ADDRESS_BYTES]; /* its address, which cannot be dialled */
    uint64_t uid;                          /* of its process */
    char certificate[68];                  /* the name in its certificate; "": it has shown none */
    uint32_t here;                         /* 1: it has come; 0: it has gone */
    char reason[TRP_CLIENT_REASON_BYTES];  /* why it has gone */
} trp_receptionist_client;

enum {
    trp_client_contact_tag = 1,
    trp_receptionist_client_tag = 2,
    trp_client_delivery_tag = 8,
    trp_client_reach_tag = 9
};
TRP_API extern trp_type trp_client_contact_type;
TRP_API extern trp_type trp_client_reach_type;
TRP_API extern trp_type trp_receptionist_client_type;
/* The types above. trp_client_open() registers them, and so does a node with a receptionist; a
 * program that subscribes before registers them itself: trp_protocol_register(). */
TRP_API extern const trp_protocol trp_client_protocol;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_CLIENT_H */
