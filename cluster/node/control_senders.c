/* control_senders.c - senders: who has sent traced messages to an actor of this node.
 *
 * Why.     An actor keeps no list of its senders, which would cost each message. The hops of traces
 *          that are kept anyway name them, for what was sampled.
 * Shape.   Two walks over the hops: those of the actor, with the spans of the messages that told
 *          them, then the hops of these spans. Key order and names are CONTROL.md's.
 * Limits.  SENT_MAX hops of the actor, the latest; TRP_TRACE_HOPS_MAX in all.
 * Tests.   tests/system/dashboard.sh
 */
#include <string.h>

#include <troupe/trace.h>

#include "base/alloc.h"
#include "cluster/node/node_private.h"

#define SENT_MAX 256u

typedef struct sent {
    trp_trace trace;
    uint64_t parent;
    const char *type;
    trp_ref sender; /* none: not known */
    bool known;     /* told by a message to an actor of this node */
    uint32_t count; /* of equal ones; 0: counted with another */
} sent;

typedef struct searching {
    trp_node *node;
    const char *path;
    uint32_t traced; /* hops of the actor; those in list are the last ones */
    sent list[SENT_MAX];
} searching;

/* Return how many hops of the actor are in the list. */
static uint32_t
listed_count(const searching *s)
{
    return s->traced < SENT_MAX ? s->traced : SENT_MAX;
}

static trp_err
hop_take(void *arg, const trp_trace_hop *hop)
{
    searching *s = arg;
    char path[TRP_PATH_BYTES_MAX + 1] = "";
    if (!trp_ref_is_none(hop->actor)) {
        trp_path(s->node->system, hop->actor, path, sizeof path);
    }
    if (strcmp(path, s->path) == 0) {
        s->list[s->traced++ % SENT_MAX] =
            (sent){ .trace = hop->trace,
                    .parent = hop->parent,
                    .type = hop->type != NULL ? hop->type->name : NULL,
                    .count = 1 };
    }
    return TRP_OK;
}

static trp_err
sender_find(void *arg, const trp_trace_hop *hop)
{
    searching *s = arg;
    for (uint32_t i = 0; i < listed_count(s); i++) {
        sent *to = &s->list[i];
        if (to->parent != 0 && to->parent == hop->trace.span &&
            to->trace.id_high == hop->trace.id_high && to->trace.id_low == hop->trace.id_low) {
            to->sender = hop->actor;
            to->known = true;
        }
    }
    return TRP_OK;
}

static bool
is_equal(const sent *a, const sent *b)
{
    bool types =
        a->type == b->type || (a->type != NULL && b->type != NULL && strcmp(a->type, b->type) == 0);
    return types && a->known == b->known && trp_ref_equal(a->sender, b->sender) &&
           (a->parent == 0) == (b->parent == 0);
}

/* Count equal senders as one. */
static void
equals_join(searching *s)
{
    for (uint32_t i = 0; i < listed_count(s); i++) {
        for (uint32_t j = 0; j < i && s->list[i].count == 1; j++) {
            if (s->list[j].count > 0 && is_equal(&s->list[i], &s->list[j])) {
                s->list[j].count++;
                s->list[i].count = 0;
            }
        }
    }
}

static bool
rows_add(searching *s, cJSON *list)
{
    bool ok = list != NULL;
    for (uint32_t i = 0; ok && i < listed_count(s); i++) {
        const sent *one = &s->list[i];
        char path[TRP_PATH_BYTES_MAX + 1] = "";
        if (one->count == 0) {
            continue;
        }
        if (one->known) {
            trp_path(s->node->system, one->sender, path, sizeof path);
        }
        cJSON *row = cJSON_CreateObject();
        bool filled = trpi_json_add_text(row, "actor", path[0] != '\0' ? path : NULL) &&
                      trpi_json_add_text(row, "from",
                                         one->known         ? "here"
                                         : one->parent == 0 ? "untraced"
                                                            : "elsewhere") &&
                      trpi_json_add_text(row, "type", one->type) &&
                      trpi_json_add_i64(row, "count", one->count);
        ok = trpi_json_append(list, row, filled);
    }
    return ok;
}

void
trpi_node_serve_senders(trp_node *node, trpi_call *call)
{
    searching *s = trpi_alloc(sizeof *s);
    bool ok = s != NULL;
    if (ok) {
        s->node = node;
        s->path = call->request.path;
        ok = trp_trace_hops(node->system, 0, hop_take, s) == TRP_OK &&
             trp_trace_hops(node->system, 0, sender_find, s) == TRP_OK;
    }
    cJSON *reply = trpi_call_reply();
    if (ok) {
        equals_join(s);
        ok = trpi_json_add_text(reply, "selfNode", node->address) &&
             trpi_json_add_text(reply, "path", s->path) &&
             trpi_json_add_i64(reply, "traced", s->traced) &&
             rows_add(s, cJSON_AddArrayToObject(reply, "senders"));
    }
    trpi_free(s);
    trpi_call_answer_if(call, ok, reply);
}
