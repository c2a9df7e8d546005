/* routes.h - the paths of the management API: from a request to an answer, or to a question to the
 * node whose reply becomes the answer. Thread: any; nothing is changed. */
#ifndef TRPI_MANAGEMENT_ROUTES_H
#define TRPI_MANAGEMENT_ROUTES_H

#include "base/json.h"
#include "cluster/management/request.h"

typedef enum trpi_management_operation {
    TRPI_MANAGEMENT_MEMBERS = 1,
    TRPI_MANAGEMENT_JOIN,
    TRPI_MANAGEMENT_MEMBER,
    TRPI_MANAGEMENT_MEMBER_LEAVE,
    TRPI_MANAGEMENT_MEMBER_CHANGE,
    TRPI_MANAGEMENT_CLUSTER_CHANGE,
    TRPI_MANAGEMENT_ACTORS,
    TRPI_MANAGEMENT_CONFIG,
    TRPI_MANAGEMENT_OPENAPI,
    TRPI_MANAGEMENT_METRICS,
    TRPI_MANAGEMENT_READY, /* not: 503 */
    TRPI_MANAGEMENT_ALIVE,
    TRPI_MANAGEMENT_AKKA_READY, /* not: 500, as Akka Management */
    TRPI_MANAGEMENT_AKKA_ALIVE,
    TRPI_MANAGEMENT_EVENTS, /* a stream */
    TRPI_MANAGEMENT_DEADLETTERS,
    TRPI_MANAGEMENT_SHARDS,
    TRPI_MANAGEMENT_TRACE,
    TRPI_MANAGEMENT_TELL,      /* tell.c */
    TRPI_MANAGEMENT_PAGE,      /* page.h */
    TRPI_MANAGEMENT_SESSION,   /* the server opens it: `subject` is the code */
    TRPI_MANAGEMENT_EVENT_LOG, /* the server has them: event_bits, count */
    TRPI_MANAGEMENT_FORWARD    /* forward.h */
} trpi_management_operation;

typedef enum trpi_management_class {
    TRPI_MANAGEMENT_OPEN,      /* on loopback open, else for readers */
    TRPI_MANAGEMENT_PUBLIC,    /* for anybody: it tells nothing of this node */
    TRPI_MANAGEMENT_PROTECTED, /* for readers, on loopback too */
    TRPI_MANAGEMENT_WRITE      /* for writers, unless management.read-only */
} trpi_management_class;

typedef struct trpi_management_route {
    trpi_management_operation operation;
    const char *method;
    const char *path; /* a last segment in braces takes the rest of the path */
    trpi_management_class class;
    const char *summary; /* one sentence for openapi.json */
    const char *field;   /* of the form in the body; NULL: there is no body */
    const char *query;   /* names of query parameters, separated by spaces; "" none. Of a write of
                          * forward.h: of fields in the body, JSON */
} trpi_management_route;

/* Return the routes; the last one has no method. */
const trpi_management_route *trpi_management_routes(void);

/* A request that was judged: its answer, or a question to the node. */
typedef struct trpi_management_plan {
    trpi_management_operation operation; /* 0: the answer is there */
    bool is_write, openmetrics;
    char command
        [TRPI_MANAGEMENT_COMMAND_BYTES_MAX];       /* a request of the control protocol, "": none */
    char subject[TRPI_MANAGEMENT_FIELD_BYTES_MAX]; /* member, as asked for */
    char verb[16];                                 /* "Leaving" */
    uint32_t event_bits;                           /* of a stream, of the event log */
    uint32_t count;                                /* of the event log: the last so many */
    uint32_t wait_ms; /* the node may take so long, and the connection with it; 0: as others */
    char who[TRPI_MANAGEMENT_WHO_BYTES]; /* the credential; "": none was needed */
    trpi_management_answer answer;       /* if operation is 0 */
} trpi_management_plan;

/* Judge a request. The rules are applied in this order, and the first that refuses answers: Host,
 * path, method, Origin, read-only, credentials, body. */
void trpi_management_plan_make(const trpi_management_policy *policy,
                               const trpi_management_request *request,
                               trpi_management_plan *ret_plan);

/* Would the request be carried out whatever its body is? For a server that has not read it. false:
 * ret_plan->answer refuses it. */
bool trpi_management_plan_admits(const trpi_management_policy *policy,
                                 const trpi_management_request *request,
                                 trpi_management_plan *ret_plan);

/* A refusal of the node as it is told over HTTP; text is borrowed from the reply. */
typedef struct trpi_management_refusal {
    int exit; /* of the tool, as the node says it */
    int status;
    const char *error;
    const char *text;
} trpi_management_refusal;
trpi_management_refusal trpi_management_refusal_of(trpi_management_operation operation,
                                                   const cJSON *reply);

/* Turn the node's reply (JSON of the control protocol) into the answer; reply NULL: it had no
 * memory. */
void trpi_management_plan_answer(const trpi_management_plan *plan, const char *reply,
                                 trpi_management_answer *ret_answer);

/* Write openapi.json: all routes. NULL: no memory; else cJSON_free(). */
char *trpi_management_openapi(void);

/* ---- HTTP ------------------------------------------------------------------------------------ */
/* Write the status line and all headers of an answer: never cached, never framed, readable by no
 * page of another origin, and the last one on its connection. Returns their length; 0: they do not
 * fit. */
#define TRPI_MANAGEMENT_HEAD_BYTES 1280
size_t trpi_management_head_write(const trpi_management_answer *answer,
                                  char ret_head[TRPI_MANAGEMENT_HEAD_BYTES]);

#endif
