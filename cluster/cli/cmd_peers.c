/* cmd_peers.c - peers: the links of the node, each with its state, the reason, and the next step.
 *
 * Tests.   tests/system/cli_fake.sh, tests/unit/node/node_test.c
 */
#include <string.h>

#include "cluster/cli/cli.h"

enum { COLUMNS = 10 }; /* the last one only where a fault is set */

/* "3/4 +12345B": lanes open, lanes ever used, and the bytes that wait for a lane or a slow
 * receiver. */
static void
lanes_text(const cJSON *peer, char *buffer, size_t bytes)
{
    unsigned all = 0, open = 0;
    double waiting = trpi_cli_get_number(peer, "heldBytes", 0);
    const cJSON *lane;
    cJSON_ArrayForEach(lane, cJSON_GetObjectItemCaseSensitive(peer, "lanes"))
    {
        all++;
        open += strcmp(trpi_cli_get(lane, "state"), "open") == 0;
        waiting += trpi_cli_get_number(lane, "waitingBytes", 0);
    }
    if (waiting > 0) {
        (void)snprintf(buffer, bytes, "%u/%u +%.0fB", open, all, waiting);
    } else {
        (void)snprintf(buffer, bytes, "%u/%u", open, all);
    }
}

static bool
row_add(trpi_cli_table *table, unsigned columns, const cJSON *peer)
{
    char rtt[24], in[24], out[24], dropped[24], lanes[48];
    double rtt_ms = trpi_cli_get_number(peer, "rttMs", -1);
    (void)snprintf(rtt, sizeof rtt, rtt_ms < 0 ? "-" : "%.2fms", rtt_ms);
    (void)snprintf(in, sizeof in, "%.0f", trpi_cli_get_number(peer, "messagesIn", 0));
    (void)snprintf(out, sizeof out, "%.0f", trpi_cli_get_number(peer, "messagesOut", 0));
    (void)snprintf(dropped, sizeof dropped, "%.0f", trpi_cli_get_number(peer, "dropped", 0));
    lanes_text(peer, lanes, sizeof lanes);
    const char *cells[COLUMNS] = { trpi_cli_get(peer, "node"),
                                   trpi_cli_get(peer, "state"),
                                   rtt,
                                   lanes,
                                   in,
                                   out,
                                   dropped,
                                   trpi_cli_get(peer, "reason"),
                                   trpi_cli_get(peer, "next"),
                                   trpi_cli_get(peer, "faults") };
    return trpi_cli_table_row(table, columns, cells);
}

static int
table_print(const trpi_cli *cli, const cJSON *list)
{
    static const char *const head[COLUMNS] = { "ADDRESS", "STATE",   "RTT",    "LANES", "IN",
                                               "OUT",     "DROPPED", "REASON", "NEXT",  "FAULTS" };
    trpi_cli_table table = { 0 };
    unsigned active = 0, columns = COLUMNS - 1;
    const cJSON *peer;
    cJSON_ArrayForEach(peer, list)
    {
        columns = strcmp(trpi_cli_get(peer, "faults"), "-") != 0 ? COLUMNS : columns;
    }
    bool done = cJSON_GetArraySize(list) == 0 || trpi_cli_table_row(&table, columns, head);
    cJSON_ArrayForEach(peer, list)
    {
        done = done && row_add(&table, columns, peer);
        active += strcmp(trpi_cli_get(peer, "state"), "active") == 0;
    }
    if (done) {
        trpi_cli_table_print(&table, "");
        trpi_cli_flush();
        trpi_cli_note(cli, "%d peer%s, %u active", cJSON_GetArraySize(list),
                      cJSON_GetArraySize(list) == 1 ? "" : "s", active);
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
peers_print(trpi_cli *cli, const cJSON *reply)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "peers"), *peer;
    if (cli->output != TRPI_CLI_NAME) {
        return table_print(cli, list);
    }
    cJSON_ArrayForEach(peer, list)
    {
        (void)puts(trpi_cli_get(peer, "node"));
    }
    return 0;
}

static int
peers_once(trpi_cli *cli)
{
    cJSON *reply;
    if (trpi_cli_has(cli, TRPI_CLI_ALL_MEMBERS)) {
        return trpi_cli_all_once(cli, "peers", peers_print);
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "peers"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        code = peers_print(cli, reply);
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_peers(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, peers_once);
}
