/* cmd_observe.c - `deadletters` and `logs`: the last records of a node, and those that come.
 *
 * Shape.   One request gives what the node has kept; with -f another one waits in the node for what
 *          comes next, as often as needed. The place is kept here, so that a slow terminal costs
 *          the node nothing; how many records were overwritten meanwhile is said.
 * Tests.   tests/system/cli_fake.sh, tests/system/observe.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

#define LAST_COUNT 10u   /* shown by -f before it follows */
#define FOLLOW_MS 20000u /* of one request that waits */
#define REASONS_MAX 8u   /* named in the summary */

typedef struct record_kind {
    const char *command, *list;
    const char *one, *many; /* for people */
    void (*print)(const trpi_cli *cli, const cJSON *record);
    void (*summary)(const trpi_cli *cli, const cJSON *reply); /* NULL: none */
} record_kind;

/* "12:04:10.113" of a time; the whole text when it is none. */
static const char *
clock_of(const char *time, char clock[16])
{
    const char *at = strchr(time, 'T');
    (void)snprintf(clock, 16, "%.12s", at != NULL ? at + 1 : time);
    return clock;
}

/* "12:04:10.113  no-such-actor  /user/client -> /user/countr  Add, 24 B  (did you mean ...?)" */
static void
letter_print(const trpi_cli *cli, const cJSON *letter)
{
    char clock[16], number[32];
    const char *sender = trpi_json_get_text(letter, "sender");
    const char *recipient = trpi_json_get_text(letter, "recipient");
    const char *nearest = trpi_json_get_text(letter, "nearest");
    if (cli->output == TRPI_CLI_NAME) {
        (void)puts(recipient != NULL ? recipient : "-");
        return;
    }
    (void)printf("%s  %-16s  %s -> %s  %s, %s B", clock_of(trpi_cli_get(letter, "time"), clock),
                 trpi_cli_get(letter, "reason"), sender != NULL ? sender : "nobody",
                 recipient != NULL ? recipient : "nobody", trpi_cli_get(letter, "type"),
                 trpi_cli_grouped(trpi_cli_get_number(letter, "bytes", 0), number));
    if (nearest != NULL && recipient != NULL && strcmp(nearest, recipient) == 0) {
        (void)fputs("  (an actor of this path lives again)", stdout);
    } else if (nearest != NULL) {
        (void)printf("  (did you mean %s?)", nearest);
    }
    (void)putchar('\n');
}

static void
letters_summary(const trpi_cli *cli, const cJSON *reply)
{
    char text[512] = "", number[32], total[32];
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(reply, "byReason"), *reason;
    unsigned named = 0;
    cJSON_ArrayForEach(reason, reasons)
    {
        size_t used = strlen(text);
        if (reason->string == NULL || !cJSON_IsNumber(reason) || named++ == REASONS_MAX) {
            break;
        }
        (void)snprintf(text + used, sizeof text - used, "%s %s %s", used > 0 ? "," : ":",
                       reason->string, trpi_cli_grouped(reason->valuedouble, number));
    }
    trpi_cli_note(cli, "%s dead letters since the start%s%s",
                  trpi_cli_grouped(trpi_cli_get_number(reply, "total", 0), total), text,
                  named > REASONS_MAX ? ", ..." : "");
}

/* "12:04:10.113  warning  cluster  10.0.0.3:2552 is unreachable {user=ann}" */
static void
line_print(const trpi_cli *cli, const cJSON *line)
{
    char clock[16];
    (void)cli;
    (void)printf("%s  %-7s  %s  %s\n", clock_of(trpi_cli_get(line, "timestamp"), clock),
                 trpi_cli_get(line, "severityText"),
                 trpi_cli_get(cJSON_GetObjectItemCaseSensitive(line, "scope"), "name"),
                 trpi_cli_get(line, "body"));
}

static const record_kind letters = { "deadletters",  "deadLetters", "dead letter",
                                     "dead letters", letter_print,  letters_summary };
static const record_kind lines = { "logs", "lines", "line", "lines", line_print, NULL };

/* A reader that is too slow must know that it does not see all. */
static void
missed_tell(const trpi_cli *cli, const record_kind *kind, const cJSON *reply)
{
    double missed = trpi_cli_get_number(reply, "missed", 0);
    char number[32];
    if (missed > 0 && cli->output == TRPI_CLI_JSONL) {
        (void)printf("{\"missed\":%.0f}\n", missed);
    } else if (missed > 0) {
        trpi_cli_note(cli, "%s %s missed: they came faster than they were read",
                      trpi_cli_grouped(missed, number), missed == 1 ? kind->one : kind->many);
    }
}

/* Print the records of a reply, at most *left of them where that is not 0. false: these were all
 * that were wanted. */
static bool
records_print(const trpi_cli *cli, const record_kind *kind, const cJSON *reply, uint32_t *left)
{
    const cJSON *record;
    missed_tell(cli, kind, reply);
    cJSON_ArrayForEach(record, cJSON_GetObjectItemCaseSensitive(reply, kind->list))
    {
        if (cli->output == TRPI_CLI_JSONL) {
            trpi_cli_print_json(cli, record);
        } else {
            kind->print(cli, record);
        }
        if (*left > 0 && --*left == 0) {
            trpi_cli_flush();
            return false;
        }
    }
    trpi_cli_flush();
    return true;
}

/* after NULL: what is kept. Takes no memory. */
static cJSON *
records_request(const trpi_cli *cli, const record_kind *kind, const char *after, uint32_t count)
{
    cJSON *request = trpi_cli_request_new(cli, kind->command);
    const char *level = trpi_cli_text(cli, TRPI_CLI_LEVEL);
    const char *component = trpi_cli_text(cli, TRPI_CLI_COMPONENT);
    bool ok = request != NULL &&
              (after == NULL || (trpi_json_add_text(request, "after", after) &&
                                 trpi_json_add_bool(request, "follow", true))) &&
              (count == 0 || trpi_json_add_i64(request, "count", count)) &&
              (level == NULL || trpi_json_add_text(request, "level", level)) &&
              (component == NULL || trpi_json_add_text(request, "component", component));
    if (!ok) {
        cJSON_Delete(request);
        return NULL;
    }
    return request;
}

/* Ask for what comes behind `after` until the end. end_ms 0: none. */
static int
records_follow(trpi_cli *cli, const record_kind *kind, const char *after, uint32_t left,
               uint64_t end_ms)
{
    char place[32];
    int code = 0;
    bool wanted = true;
    (void)snprintf(place, sizeof place, "%s", after);
    while (code == 0 && wanted) {
        uint64_t now_ms = trpi_cli_now_ms();
        cJSON *reply = NULL;
        if (end_ms != 0 && now_ms >= end_ms) {
            break; /* --timeout of a stream is its wanted end */
        }
        cli->timeout_ms =
            end_ms != 0 && end_ms - now_ms < FOLLOW_MS ? (uint32_t)(end_ms - now_ms) : FOLLOW_MS;
        code = trpi_cli_call(cli, records_request(cli, kind, place, 0), NULL, NULL, &reply);
        if (code == 0) {
            (void)snprintf(place, sizeof place, "%s", trpi_cli_get(reply, "next"));
            wanted = records_print(cli, kind, reply, &left);
        }
        cJSON_Delete(reply);
    }
    return code;
}

static int
records_run(trpi_cli *cli, const record_kind *kind)
{
    bool follows = trpi_cli_has(cli, TRPI_CLI_FOLLOW);
    uint32_t count = 0, all = 0;
    uint64_t end_ms =
        follows && trpi_cli_has(cli, TRPI_CLI_TIMEOUT) ? trpi_cli_now_ms() + cli->timeout_ms : 0;
    cJSON *reply = NULL;
    if (!trpi_cli_number(cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &count)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    if (follows && cli->output == TRPI_CLI_JSON) {
        cli->output = TRPI_CLI_JSONL; /* a stream has no end to close a bracket at */
    }
    int code = trpi_cli_call(cli, records_request(cli, kind, NULL, follows ? LAST_COUNT : count),
                             NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON) {
        trpi_cli_print_json(cli, reply);
    } else {
        (void)records_print(cli, kind, reply, &all);
    }
    if (kind->summary != NULL && cli->output == TRPI_CLI_TABLE) {
        kind->summary(cli, reply);
    }
    if (follows) {
        code = records_follow(cli, kind, trpi_cli_get(reply, "next"), count, end_ms);
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_deadletters(trpi_cli *cli)
{
    return records_run(cli, &letters);
}

int
trpi_cli_run_logs(trpi_cli *cli)
{
    return records_run(cli, &lines);
}
