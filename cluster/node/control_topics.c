/* control_topics.c - topics: what the mediators of this node know of all nodes.
 *
 * Key order and names are CONTROL.md's.
 * Limits.  ROWS_MAX rows of a mediator; "topicsCount" tells how many topics there are.
 * Tests.   tests/system/cli_fake.sh
 */
#include "cluster/node/node_private.h"

enum { ROWS_MAX = 10000 };

struct listing {
    cJSON *list;
    const char *wanted; /* NULL: all */
    uint32_t rows;
    bool ok;
};

static void
row_add(void *arg, const trp_topic_info *info)
{
    struct listing *listing = arg;
    if (!listing->ok || listing->rows >= ROWS_MAX ||
        (listing->wanted != NULL && strcmp(listing->wanted, info->topic) != 0)) {
        return;
    }
    cJSON *row = cJSON_CreateObject();
    bool ok = row != NULL && trpi_json_add_text(row, "topic", info->topic) &&
              trpi_json_add_text(row, "group", info->group) &&
              trpi_json_add_i64(row, "subscribers", (int64_t)info->subscribers) &&
              trpi_json_add_i64(row, "here", (int64_t)info->subscribers_here) &&
              trpi_json_add_i64(row, "nodes", info->nodes);
    listing->rows++;
    listing->ok = trpi_json_append(listing->list, row, ok);
}

static void
mediator_add(void *arg, trp_mediator *mediator, const trpi_pubsub_status *status)
{
    struct listing *listing = arg;
    cJSON *row = listing->ok ? cJSON_CreateObject() : NULL;
    bool ok = row != NULL && trpi_json_add_text(row, "name", status->name) &&
              trpi_json_add_text(row, "role", status->role[0] == '\0' ? NULL : status->role) &&
              trpi_json_add_bool(row, "settled", status->settled) &&
              trpi_json_add_i64(row, "topicsCount", status->topics);
    struct listing topics = { ok ? cJSON_AddArrayToObject(row, "topics") : NULL, listing->wanted, 0,
                              false };
    topics.ok = topics.list != NULL;
    if (topics.ok) {
        trp_mediator_topics(mediator, row_add, &topics);
    }
    listing->ok = trpi_json_append(listing->list, row, topics.ok);
}

void
trpi_node_serve_topics(trp_node *node, trpi_call *call)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address);
    struct listing listing = { ok ? cJSON_AddArrayToObject(reply, "mediators") : NULL,
                               call->request.path, 0, false };
    listing.ok = listing.list != NULL;
    if (listing.ok) {
        trpi_pubsub_each(node->system, mediator_add, &listing);
    }
    trpi_call_answer_if(call, listing.ok, reply);
}
