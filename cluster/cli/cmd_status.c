/* cmd_status.c - `troupe status`: one screen, and an exit code for scripts.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/cli.sh
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cli/cli.h"

static void
print_heading(const trpi_cli *cli, const cJSON *reply)
{
    bool healthy = trpi_cli_get_true(reply, "healthy");
    char age[24];
    double converged_ms = trpi_cli_get_number(reply, "convergedForMs", -1);
    (void)printf("Cluster %s: %s%s%s (%.0f member%s, %.0f Up, %.0f unreachable, ",
                 trpi_cli_get(reply, "system"),
                 cli->color ? (healthy ? "\033[32m" : "\033[31m") : "",
                 healthy ? "healthy" : "NOT healthy", cli->color ? "\033[0m" : "",
                 trpi_cli_get_number(reply, "members", 0),
                 trpi_cli_get_number(reply, "members", 0) == 1 ? "" : "s",
                 trpi_cli_get_number(reply, "up", 0), trpi_cli_get_number(reply, "unreachable", 0));
    if (!trpi_cli_get_true(reply, "converged")) {
        (void)puts("not converged)");
    } else if (converged_ms < 0) {
        (void)puts("converged)");
    } else {
        (void)printf("converged %s ago)\n", trpi_cli_age(converged_ms, age));
    }
}

static void
print_nodes(const cJSON *reply)
{
    char age[24], uid[24];
    const char *leader = trpi_json_get_text(reply, "leader");
    const char *oldest = trpi_json_get_text(reply, "oldest");
    (void)printf("  this node   %s   %s   uid %s   up %s   pid %.0f\n",
                 trpi_cli_get(reply, "selfNode"), trpi_cli_get(reply, "selfStatus"),
                 trpi_cli_uid(reply, "selfUid", uid),
                 trpi_cli_age(trpi_cli_get_number(reply, "uptimeMs", -1), age),
                 trpi_cli_get_number(reply, "pid", 0));
    (void)printf("  leader      %s   oldest   %s\n", leader != NULL ? leader : "none",
                 oldest != NULL ? oldest : "none");
}

/* "TLS 1.3 mutual, certificate valid 359 days, cookie" and refused connections. */
static void
print_links(const cJSON *reply)
{
    const cJSON *certificate = cJSON_GetObjectItemCaseSensitive(reply, "certificate");
    const cJSON *refused = cJSON_GetObjectItemCaseSensitive(reply, "refused"), *reason;
    double days = trpi_cli_get_number(certificate, "daysLeft", 0);
    const char *cookie = trpi_cli_get_true(reply, "cookie") ? ", cookie" : "";
    if (!cJSON_IsObject(certificate)) {
        (void)printf("encryption %s%s\n", trpi_cli_get(reply, "encryption"), cookie);
    } else if (days < 0) {
        (void)printf("%s, certificate has ended%s\n", trpi_cli_get(reply, "encryption"), cookie);
    } else {
        (void)printf("%s, certificate valid %.0f day%s%s\n", trpi_cli_get(reply, "encryption"),
                     days, days == 1 ? "" : "s", cookie);
    }
    if (cJSON_GetArraySize(refused) > 0) {
        const char *before = "  refused     ";
        cJSON_ArrayForEach(reason, refused)
        {
            (void)printf("%s%s %.0f", before, reason->string, cJSON_GetNumberValue(reason));
            before = ", ";
        }
        (void)puts(" (connections since the start)");
    }
}

static void
print_numbers(const cJSON *reply)
{
    char actors[32], dead[32], rate[32], stable[24];
    const cJSON *downing = cJSON_GetObjectItemCaseSensitive(reply, "downing");
    double per_second = trpi_cli_get_number(reply, "messagesPerSecond", 0);
    if (per_second >= 10000) {
        (void)snprintf(rate, sizeof rate, "%.1fk", per_second / 1000);
    } else {
        (void)trpi_cli_grouped(per_second, rate);
    }
    (void)printf("  actors      %s local   %s msg/s",
                 trpi_cli_grouped(trpi_cli_get_number(reply, "actors", 0), actors), rate);
    (void)printf("   dead letters %s\n",
                 trpi_cli_grouped(trpi_cli_get_number(reply, "deadLetters", 0), dead));
    (void)printf("  downing     %s (stable-after %s)   ", trpi_cli_get(downing, "strategy"),
                 trpi_cli_age(trpi_cli_get_number(downing, "stableAfterMs", 0), stable));
    print_links(reply);
}

/* "journal     lmdb, open   1,204 events in 37 commits   0 wait" */
static void
print_journal(const cJSON *reply)
{
    const cJSON *journal = cJSON_GetObjectItemCaseSensitive(reply, "journal");
    char events[32], commits[32];
    if (!cJSON_IsObject(journal)) {
        return;
    }
    (void)printf("  journal     %s (%s), %s   %s events in %s commits   %.0f wait\n",
                 trpi_cli_get(journal, "name"),
                 trpi_cli_get_true(journal, "shared") ? "shared" : "this node only",
                 trpi_cli_get(journal, "state"),
                 trpi_cli_grouped(trpi_cli_get_number(journal, "events", 0), events),
                 trpi_cli_grouped(trpi_cli_get_number(journal, "commits", 0), commits),
                 trpi_cli_get_number(journal, "waiting", 0));
    if (trpi_cli_get_true(journal, "localStoreIsEnough")) {
        (void)puts("  warning     what moves to another host starts there without its state: "
                   "persistence.local-store-is-enough is on");
    }
}

/* One sample of a gauge; label NULL: none. */
static void
gauge_print(const char *name, const char *help, const char *label, const char *value_of_label,
            double value)
{
    (void)printf("# HELP %s %s\n# TYPE %s gauge\n%s", name, help, name, name);
    if (label != NULL) {
        (void)printf("{%s=\"%s\"}", label, value_of_label);
    }
    (void)printf(" %.17g\n", value);
}

/* For a collector of text files: the exit code is the same as without. */
static void
print_prom(const cJSON *reply)
{
    static const struct {
        const char *name, *key, *help;
    } numbers[] = {
        { "troupe_cluster_members", "members", "Members of the cluster as this node sees it." },
        { "troupe_cluster_members_up", "up", "Members that are Up." },
        { "troupe_cluster_unreachable_members", "unreachable",
          "Members that are observed as "
          "unreachable." },
        { "troupe_actors", "actors", "Actors of this node." },
        { "troupe_messages_per_second", "messagesPerSecond",
          "Messages that actors of this node "
          "handled a second, lately." },
    };
    const cJSON *certificate = cJSON_GetObjectItemCaseSensitive(reply, "certificate");
    gauge_print("troupe_build_info", "1; the version is a label.", "version",
                trpi_cli_get(reply, "version"), 1);
    gauge_print("troupe_healthy", "1: `troupe status` finds no problem.", NULL, NULL,
                trpi_cli_get_true(reply, "healthy"));
    gauge_print("troupe_problems", "Problems that `troupe status` names.", NULL, NULL,
                cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(reply, "problems")));
    gauge_print("troupe_cluster_converged", "1: all members have seen the present view.", NULL,
                NULL, trpi_cli_get_true(reply, "converged"));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        gauge_print(numbers[i].name, numbers[i].help, NULL, NULL,
                    trpi_cli_get_number(reply, numbers[i].key, 0));
    }
    gauge_print("troupe_uptime_seconds", "Seconds since this node was started.", NULL, NULL,
                trpi_cli_get_number(reply, "uptimeMs", 0) / 1000);
    (void)printf("# HELP troupe_dead_letters_total Messages that reached no actor.\n# TYPE "
                 "troupe_dead_letters_total counter\ntroupe_dead_letters_total %.17g\n",
                 trpi_cli_get_number(reply, "deadLetters", 0));
    if (cJSON_IsObject(certificate)) {
        gauge_print("troupe_certificate_days_left", "Of this node's certificate.", NULL, NULL,
                    trpi_cli_get_number(certificate, "daysLeft", 0));
    }
}

static int
status_print(trpi_cli *cli, const cJSON *reply)
{
    const cJSON *problem;
    if (cli->output == TRPI_CLI_NAME) {
        (void)puts(trpi_cli_get(reply, "selfNode"));
        return 0;
    }
    print_heading(cli, reply);
    print_nodes(reply);
    print_numbers(reply);
    print_journal(reply);
    cJSON_ArrayForEach(problem, cJSON_GetObjectItemCaseSensitive(reply, "problems"))
    {
        const char *text = cJSON_GetStringValue(problem);
        (void)printf("  problem     %s\n", text != NULL ? text : "?");
    }
    trpi_cli_print_reasons(reply);
    trpi_cli_print_drained(reply);
    return 0;
}

static int
status_once(trpi_cli *cli)
{
    cJSON *reply;
    if (trpi_cli_has(cli, TRPI_CLI_ALL_MEMBERS)) {
        return trpi_cli_all_once(cli, "status", status_print);
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "status"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_PROM) {
        print_prom(reply);
    } else {
        (void)status_print(cli, reply); /* it cannot fail */
    }
    code = trpi_cli_get_true(reply, "healthy") ? TRPI_CTL_EXIT_OK : TRPI_CTL_EXIT_NO;
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_status(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, status_once);
}
