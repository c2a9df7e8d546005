/* cmd_topics.c - `troupe topics [TOPIC]`: which topics have subscribers, and where.
 *
 * Tests.   tests/system/cli_fake.sh, tests/multinode/topics.sh
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

enum { COLUMNS = 6 };

typedef struct topic_row {
    const cJSON *topic;
    const char *mediator;
} topic_row;

/* By mediator, topic, group: the node has no order. */
static int
row_compare(const void *a_, const void *b_)
{
    const topic_row *a = a_, *b = b_;
    const char *a_group = trpi_json_get_text(a->topic, "group");
    const char *b_group = trpi_json_get_text(b->topic, "group");
    int order = strcmp(a->mediator, b->mediator);
    order = order != 0 ? order
                       : strcmp(trpi_cli_get(a->topic, "topic"), trpi_cli_get(b->topic, "topic"));
    return order != 0 ? order
                      : strcmp(a_group == NULL ? "" : a_group, b_group == NULL ? "" : b_group);
}

/* Gives *ret_rows, sorted (trpi_free). Returns how many. */
static size_t
rows_collect(const cJSON *reply, topic_row **ret_rows)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "mediators"), *mediator, *topic;
    size_t count = 0, at = 0;
    cJSON_ArrayForEach(mediator, list)
    {
        count += (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(mediator, "topics"));
    }
    topic_row *rows = trpi_alloc((count + 1) * sizeof *rows);
    *ret_rows = rows;
    cJSON_ArrayForEach(mediator, list)
    {
        cJSON_ArrayForEach(topic, cJSON_GetObjectItemCaseSensitive(mediator, "topics"))
        {
            if (rows != NULL) {
                rows[at++] = (topic_row){ topic, trpi_cli_get(mediator, "name") };
            }
        }
    }
    if (at > 1) {
        qsort(rows, at, sizeof *rows, row_compare);
    }
    return at;
}

static bool
row_add(trpi_cli_table *table, const topic_row *row)
{
    char subscribers[24], here[24], nodes[24];
    const char *group = trpi_json_get_text(row->topic, "group");
    (void)snprintf(subscribers, sizeof subscribers, "%.0f",
                   trpi_cli_get_number(row->topic, "subscribers", 0));
    (void)snprintf(here, sizeof here, "%.0f", trpi_cli_get_number(row->topic, "here", 0));
    (void)snprintf(nodes, sizeof nodes, "%.0f", trpi_cli_get_number(row->topic, "nodes", 0));
    const char *cells[COLUMNS] = { trpi_cli_get(row->topic, "topic"),
                                   group == NULL ? "-" : group,
                                   subscribers,
                                   nodes,
                                   here,
                                   row->mediator };
    return trpi_cli_table_row(table, COLUMNS, cells);
}

static int
table_print(const topic_row *rows, size_t count)
{
    static const char *const head[COLUMNS] = { "TOPIC", "GROUP", "SUBSCRIBERS",
                                               "NODES", "HERE",  "MEDIATOR" };
    trpi_cli_table table = { 0 };
    bool done = count == 0 || trpi_cli_table_row(&table, COLUMNS, head);
    for (size_t i = 0; done && i < count; i++) {
        done = row_add(&table, &rows[i]);
    }
    if (done) {
        trpi_cli_table_print(&table, "");
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
topics_once(trpi_cli *cli)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "topics");
    if (cli->args_count > 0 && !trpi_json_add_text(request, "path", cli->args[0])) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    topic_row *rows;
    size_t count = rows_collect(reply, &rows);
    trpi_cli_watch_begin(cli);
    if (rows == NULL) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    } else if (cli->args_count > 0 && count == 0) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "nobody subscribes to %s", cli->args[0]);
    } else if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_NAME) {
        for (size_t i = 0; i < count; i++) {
            const char *name = trpi_cli_get(rows[i].topic, "topic");
            if (i == 0 || strcmp(name, trpi_cli_get(rows[i - 1].topic, "topic")) != 0) {
                (void)puts(name);
            }
        }
    } else {
        code = table_print(rows, count);
    }
    trpi_free(rows);
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_topics(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, topics_once);
}
