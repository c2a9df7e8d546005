/* forward.h - the routes of `troupe --endpoint`: a request of the control protocol as it is, for
 * the commands listed here, and the node's reply as it is. Thread: any; nothing is changed. */
#ifndef TRPI_MANAGEMENT_FORWARD_H
#define TRPI_MANAGEMENT_FORWARD_H

#include "cluster/management/routes.h"

#define TRPI_MANAGEMENT_FORWARD_PREFIX "/control/"
#define TRPI_MANAGEMENT_WAIT_MS_MAX (24u * 3600u * 1000u)
#define TRPI_MANAGEMENT_WAIT_MS_DEFAULT 5000u
#define TRPI_MANAGEMENT_WAIT_MS_LONG 60000u /* of doctor and of orders */
/* of a question that follows: its client asks again. One that has vanished with its host keeps its
 * place for no longer */
#define TRPI_MANAGEMENT_FOLLOW_MS_MAX 30000u

/* Rows of the table in routes.c: the last segment is the command, `query` its fields. A command
 * that tells of actors, dead letters, log lines or the host needs a reader on loopback, too. */
#define FORWARD(method, name, class, summary, fields)                                              \
    {                                                                                              \
        TRPI_MANAGEMENT_FORWARD, method, TRPI_MANAGEMENT_FORWARD_PREFIX name,                      \
            TRPI_MANAGEMENT_##class, summary, NULL, fields                                         \
    }
#define TRPI_MANAGEMENT_FORWARD_ROUTES                                                             \
    FORWARD("GET", "version", OPEN, "The node: its version, system, address.", "timeoutMs"),       \
        FORWARD("GET", "members", OPEN, "The members, as `troupe members` has them.",              \
                "timeoutMs"),                                                                      \
        FORWARD("GET", "member-status", OPEN, "The status of one member.",                         \
                "member dryRun timeoutMs"),                                                        \
        FORWARD("GET", "status", OPEN, "The health of this node and its cluster.",                 \
                "allMembers timeoutMs"),                                                           \
        FORWARD("GET", "ready", OPEN, "Does this node take work? As `troupe check ready`.",        \
                "timeoutMs"),                                                                      \
        FORWARD("GET", "alive", OPEN, "Does this node do any work? As `troupe check alive`.",      \
                "timeoutMs"),                                                                      \
        FORWARD("GET", "why", OPEN, "The causes that keep the members from agreeing.",             \
                "allMembers timeoutMs"),                                                           \
        FORWARD("GET", "peers", OPEN, "The associations of this node.", "allMembers timeoutMs"),   \
        FORWARD("GET", "singleton", OPEN, "The singletons and proxies of this node.",              \
                "timeoutMs"),                                                                      \
        FORWARD("GET", "topics", OPEN, "Topics that have subscribers.", "path timeoutMs"),         \
        FORWARD("GET", "shards", OPEN, "The types of entities, and where their shards live.",      \
                "member timeoutMs"),                                                               \
        FORWARD("POST", "shards", WRITE, "The coordinator looks now which shards should move.",    \
                "member type rebalance timeoutMs"),                                                \
        FORWARD("GET", "tree", PROTECTED, "The actors below a path.", "path depth timeoutMs"),     \
        FORWARD("GET", "deadletters", PROTECTED, "The last messages that reached no actor.",       \
                "after count follow timeoutMs"),                                                   \
        FORWARD("GET", "logs", PROTECTED, "The last lines of the log of this node.",               \
                "after count follow level component timeoutMs"),                                   \
        FORWARD("GET", "top", PROTECTED,                                                           \
                "The actors that want attention; figures come a moment after the first "           \
                "request.",                                                                        \
                "timeoutMs"),                                                                      \
        FORWARD("GET", "senders", PROTECTED, "The senders of an actor, of traced messages.",       \
                "path timeoutMs"),                                                                 \
        FORWARD("GET", "doctor", PROTECTED,                                                        \
                "Findings about this node and its cluster; takes a second or a few.",              \
                "allMembers timeoutMs"),                                                           \
        FORWARD("GET", "trace", PROTECTED,                                                         \
                "The hops of a trace on all members; the latest one where `text` is not given. "   \
                "With action=list, the paths of this node that are sampled.",                      \
                "action text timeoutMs"),                                                          \
        FORWARD("POST", "trace", WRITE, "Actors of this node are sampled, or no longer.",          \
                "action path oneIn timeoutMs"),                                                    \
        FORWARD("POST", "leave", WRITE,                                                            \
                "A member leaves; answered when it is gone, or `wait` is "                         \
                "false.",                                                                          \
                "member wait timeoutMs"),                                                          \
        FORWARD("POST", "down", WRITE,                                                             \
                "Members are marked Down; answered when they are gone, or `wait` is false.",       \
                "member unreachable uids dryRun cautious dead wait timeoutMs")

/* Write the question to the node into plan->command, and what it may take into plan->wait_ms; or
 * refuse the request. request_ms: what a request without a credential may take. */
void trpi_management_forward_make(trpi_management_plan *plan,
                                  const trpi_management_request *request, uint32_t request_ms);
/* Turn the node's reply, an object, into the answer: the reply itself, or {"error", "message",
 * "exit", "hint"} with a status that says the kind. Thread: any. */
void trpi_management_forward_answer(const cJSON *reply, trpi_management_answer *ret_answer);

/* The kind of a field in JSON. */
typedef enum trpi_management_field {
    TRPI_MANAGEMENT_NO_FIELD = 0,
    TRPI_MANAGEMENT_TEXT,
    TRPI_MANAGEMENT_FLAG,
    TRPI_MANAGEMENT_NUMBER,
    TRPI_MANAGEMENT_LIST /* of texts */
} trpi_management_field;
/* Return the kind of the field of these bytes. */
trpi_management_field trpi_management_field_of(const char *name, size_t bytes);

#endif
