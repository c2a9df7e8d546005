/* cmd_top.c - `troupe top`: which actors want attention now, the most urgent first.
 *
 * Shape.   The first request has the node look at its actors; its figures are there a moment later,
 *          so requests are repeated until they are. Rates are those between two requests.
 * Tests.   tests/system/cli_fake.sh, tests/system/top.sh
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cli/cli.h"

enum { COLUMNS = 8, AGAIN_MS = 100, WATCH_MS = 2000 };

/* Counters of the request before. The program has one thread. */
static struct {
    uint64_t at_ms;
    double handled;
} before;
static uint32_t shown, shown_max;

static double
counter_of(const cJSON *reply, const char *key)
{
    return strtod(trpi_cli_get(reply, key), NULL);
}

/* Write milliseconds as a person reads them; "-": not known. */
static const char *
time_write(const cJSON *row, const char *key, char text[24])
{
    double ms = trpi_cli_get_number(row, key, 0);
    if (ms <= 0) {
        return "-";
    }
    if (ms < 1000) {
        (void)snprintf(text, 24,
                       ms < 1    ? "%.0fus"
                       : ms < 10 ? "%.1fms"
                                 : "%.0fms",
                       ms < 1 ? ms * 1000 : ms);
        return text;
    }
    return trpi_cli_age(ms, text);
}

static bool
row_add(trpi_cli_table *table, const cJSON *row)
{
    char rate[32], depth[32], age[24], wait[24], run[24], held[24], now[48] = "-";
    const cJSON *mailbox = cJSON_GetObjectItemCaseSensitive(row, "mailbox");
    (void)trpi_cli_grouped(trpi_cli_get_number(row, "messagesPerS", 0), rate);
    (void)snprintf(depth, sizeof depth, "?");
    if (cJSON_IsNumber(mailbox)) {
        (void)trpi_cli_grouped(mailbox->valuedouble, depth);
    }
    if (trpi_cli_get_number(row, "heldMs", 0) > 0) {
        (void)snprintf(now, sizeof now, "one message for %s", time_write(row, "heldMs", held));
    } else if (trpi_cli_get_true(row, "suspended")) {
        (void)snprintf(now, sizeof now, "waits for its supervisor");
    }
    const char *cells[COLUMNS] = { trpi_cli_get(row, "path"),
                                   rate,
                                   depth,
                                   time_write(row, "ageMs", age),
                                   time_write(row, "waitMs", wait),
                                   time_write(row, "runMs", run),
                                   trpi_cli_get(row, "behaviour"),
                                   now };
    return trpi_cli_table_row(table, COLUMNS, cells);
}

static void
head_print(const cJSON *reply)
{
    char actors[32], active[32], rate[32], dead[32];
    uint64_t now_ms = trpi_cli_now_ms();
    double handled = counter_of(reply, "handled");
    double seconds = before.at_ms == 0 ? 0 : (double)(now_ms - before.at_ms) / 1e3;
    double per_s =
        seconds > 0 && handled > before.handled ? (handled - before.handled) / seconds : 0;
    (void)printf("%s  %s actors  %s active  %s msg/s  dead letters %s\n",
                 trpi_cli_short(trpi_cli_get(reply, "selfNode")),
                 trpi_cli_grouped(trpi_cli_get_number(reply, "actors", 0), actors),
                 trpi_cli_grouped(trpi_cli_get_number(reply, "active", 0), active),
                 trpi_cli_grouped(per_s, rate),
                 trpi_cli_grouped(counter_of(reply, "deadLetters"), dead));
    before.at_ms = now_ms;
    before.handled = handled;
}

static int
table_print(const cJSON *reply)
{
    static const char *const head[COLUMNS] = { "PATH", "MSG/S", "MBOX",      "AGE",
                                               "WAIT", "RUN",   "BEHAVIOUR", "NOW" };
    const cJSON *row = NULL;
    trpi_cli_table table = { 0 };
    bool done = trpi_cli_table_row(&table, COLUMNS, head);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "rows"))
    {
        done = done && row_add(&table, row);
    }
    if (done) {
        head_print(reply);
        trpi_cli_table_print(&table, "");
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static bool
is_complete(const cJSON *reply)
{
    return cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(reply, "walkAgeMs"));
}

/* Ask until the node has looked at its actors. */
static int
reply_take(trpi_cli *cli, cJSON **ret_reply)
{
    uint64_t until_ms = trpi_cli_now_ms() + cli->timeout_ms;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "top"), NULL, NULL, ret_reply);
    while (code == 0 && !is_complete(*ret_reply) && trpi_cli_now_ms() < until_ms) {
        if (before.at_ms == 0) {
            before.at_ms = trpi_cli_now_ms();
            before.handled = counter_of(*ret_reply, "handled");
        }
        cJSON_Delete(*ret_reply);
        trpi_cli_sleep_ms(AGAIN_MS);
        code = trpi_cli_call(cli, trpi_cli_request_new(cli, "top"), NULL, NULL, ret_reply);
    }
    if (code == 0 && !is_complete(*ret_reply)) {
        cJSON_Delete(*ret_reply);
        code = trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT,
                             "the node has not looked at its actors in time; a longer -t may help");
    }
    return code;
}

static int
top_once(trpi_cli *cli)
{
    cJSON *reply = NULL;
    int code = reply_take(cli, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_NAME) {
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "rows"))
        {
            (void)puts(trpi_cli_get(row, "path"));
        }
    } else {
        code = table_print(reply);
    }
    cJSON_Delete(reply);
    trpi_cli_flush();
    if (code == 0 && ++shown == shown_max) {
        cli->watch_ms = 0; /* the last one */
    }
    return code;
}

int
trpi_cli_run_top(trpi_cli *cli)
{
    if (!trpi_cli_number(cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &shown_max)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    bool screen = cli->output == TRPI_CLI_TABLE && isatty(STDOUT_FILENO);
    if (cli->watch_ms == 0 && shown_max != 1 && (screen || shown_max > 1)) {
        cli->watch_ms = WATCH_MS;
    }
    return trpi_cli_repeat(cli, top_once);
}
