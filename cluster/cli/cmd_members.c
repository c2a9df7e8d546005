/* cmd_members.c - questions about the cluster that the node answers from its own state.
 *
 * Why.     members, unreachable, leader, is-singleton and cluster-status are views of one reply, so
 *          they can never contradict each other. No request leaves the machine: a dead member costs
 *          nothing.
 * Tests.   tests/system/cli_fake.sh, tests/system/cli.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

static int
members_fetch(trpi_cli *cli, const char *cmd, cJSON **ret_reply)
{
    return trpi_cli_call(cli, trpi_cli_request_new(cli, cmd), NULL, NULL, ret_reply);
}

static int
fetch_member(trpi_cli *cli, cJSON **ret_reply)
{
    cJSON *request = trpi_cli_request_new(cli, "member-status");
    if (request != NULL && cli->args_count > 0 &&
        !trpi_json_add_text(request, "member", cli->args[0])) {
        cJSON_Delete(request);
        request = NULL;
    }
    return trpi_cli_call(cli, request, NULL, NULL, ret_reply);
}

static bool
is_json(const trpi_cli *cli)
{
    return cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL;
}

static bool
text_equal(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static bool
has_role(const cJSON *member, const char *role)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(member, "roles"))
    {
        if (text_equal(cJSON_GetStringValue(item), role)) {
            return true;
        }
    }
    return false;
}

static bool
is_wanted(const trpi_cli *cli, const cJSON *member)
{
    const char *role = trpi_cli_text(cli, TRPI_CLI_ROLE);
    const char *status = trpi_cli_text(cli, TRPI_CLI_STATUS);
    return (role == NULL || has_role(member, role)) &&
           (status == NULL || text_equal(trpi_cli_get(member, "status"), status)) &&
           (!trpi_cli_has(cli, TRPI_CLI_UNREACHABLE) || !trpi_cli_get_true(member, "reachable"));
}

/* Remove the members from reply that the flags exclude. */
static void
members_filter(const trpi_cli *cli, cJSON *reply)
{
    cJSON *member = cJSON_GetObjectItemCaseSensitive(reply, "members");
    member = member != NULL ? member->child : NULL;
    while (member != NULL) {
        cJSON *next = member->next;
        if (!is_wanted(cli, member)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(
                cJSON_GetObjectItemCaseSensitive(reply, "members"), member));
        }
        member = next;
    }
}

static const cJSON *
unreachable_find(const cJSON *reply, const char *address)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(reply, "unreachable"))
    {
        if (text_equal(trpi_json_get_text(entry, "node"), address)) {
            return entry;
        }
    }
    return NULL;
}

static unsigned
list_count(const cJSON *object, const char *key)
{
    return (unsigned)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* "a,b" of a list of strings, "-" of an empty one. */
static void
list_join(const cJSON *list, char *buffer, size_t bytes)
{
    size_t used = 0;
    const cJSON *item;
    (void)snprintf(buffer, bytes, "-");
    cJSON_ArrayForEach(item, list)
    {
        const char *text = cJSON_GetStringValue(item);
        int length = snprintf(buffer + used, bytes - used, "%s%s", used > 0 ? "," : "",
                              text != NULL ? text : "?");
        used += (size_t)length < bytes - used ? (size_t)length : bytes - used - 1;
    }
}

/* Write the last column: "leader oldest", "drained", "seen by 2 of 2, 6s". */
static void
remark_write(const cJSON *reply, const char *address, bool drained, char *buffer, size_t bytes)
{
    const cJSON *entry = unreachable_find(reply, address);
    bool leader = text_equal(trpi_json_get_text(reply, "leader"), address);
    bool oldest = text_equal(trpi_json_get_text(reply, "oldest"), address);
    char age[24];
    if (entry != NULL) {
        (void)snprintf(buffer, bytes, "seen by %u of %u, %s%s%s", list_count(entry, "observedBy"),
                       list_count(reply, "members") - 1,
                       trpi_cli_age(trpi_cli_get_number(entry, "sinceMs", 0), age),
                       leader ? "  leader" : "", oldest ? "  oldest" : "");
    } else {
        (void)snprintf(buffer, bytes, "%s%s%s", leader ? "leader" : "", leader && oldest ? " " : "",
                       oldest ? "oldest" : "");
    }
    if (drained) {
        size_t used = strlen(buffer);
        (void)snprintf(buffer + used, bytes - used, "%sdrained", used > 0 ? " " : "");
    }
}

static bool
member_row(const trpi_cli *cli, const cJSON *reply, const cJSON *member, trpi_cli_table *table)
{
    char roles[256], age[24], rtt[24], phi[24], up[24], uid[24], last[128], reach[32], cert[24];
    const char *address = trpi_cli_get(member, "node");
    bool reachable = trpi_cli_get_true(member, "reachable");
    double rtt_ms =
        /* the last round trip of an unreachable member is out of date */
        reachable ? trpi_cli_get_number(member, "rttMs", -1) : -1;
    double phi_now = trpi_cli_get_number(member, "phi", -1);
    double up_number = trpi_cli_get_number(member, "upNumber", -1);
    list_join(cJSON_GetObjectItemCaseSensitive(member, "roles"), roles, sizeof roles);
    (void)trpi_cli_age(trpi_cli_get_number(member, "ageMs", -1), age);
    (void)snprintf(rtt, sizeof rtt, rtt_ms < 0 ? "-" : "%.2fms", rtt_ms);
    (void)snprintf(phi, sizeof phi, phi_now < 0 ? "-" : "%.1f", phi_now);
    (void)snprintf(up, sizeof up, up_number < 0 ? "-" : "%.0f", up_number);
    (void)snprintf(reach, sizeof reach, "%s%s%s", cli->color ? (reachable ? GREEN : RED) : "",
                   reachable ? "ok" : "unreachable", cli->color ? PLAIN : "");
    remark_write(reply, address, trpi_cli_get_true(member, "drained"), last, sizeof last);
    const char *star = text_equal(trpi_json_get_text(reply, "selfNode"), address) ? "*" : "";
    const char *version = trpi_cli_get(member, "appVersion"); /* 0.0.0: cluster.app-version unset */
    double days = trpi_cli_get_number(member, "certificateDaysLeft", 0);
    bool has_cert = cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(member, "certificateDaysLeft"));
    (void)snprintf(cert, sizeof cert, !has_cert ? "-" : days < 0 ? "ended" : "%.0fd", days);
    const char *troupe = trpi_json_get_text(member, "troupeVersion");
    const char *cells[] = { star,
                            address,
                            trpi_cli_get(member, "status"),
                            reach,
                            roles,
                            age,
                            rtt,
                            text_equal(version, "0.0.0") ? "-" : version,
                            last,
                            trpi_cli_uid(member, "nodeUid", uid),
                            up,
                            phi,
                            cert };
    if (cli->output == TRPI_CLI_WIDE) {
        const char *wide[] = { cells[0],  cells[1],  cells[2],
                               cells[3],  cells[4],  cells[5],
                               cells[6],  cells[7],  troupe == NULL ? "-" : troupe,
                               cells[9],  cells[10], cells[11],
                               cells[12], cells[8] };
        return trpi_cli_table_row(table, 14, wide);
    }
    return trpi_cli_table_row(table, 9, cells);
}

static int
members_table(const trpi_cli *cli, const cJSON *reply)
{
    static const char *const narrow[] = { "",    "ADDRESS", "STATUS",  "REACH", "ROLES",
                                          "AGE", "RTT",     "VERSION", "" };
    static const char *const wide[] = { "",    "ADDRESS", "STATUS",  "REACH",  "ROLES",
                                        "AGE", "RTT",     "VERSION", "TROUPE", "UID",
                                        "UP",  "PHI",     "CERT",    "" };
    trpi_cli_table table = { 0 };
    bool is_wide = cli->output == TRPI_CLI_WIDE;
    bool done = trpi_cli_table_row(&table, is_wide ? 14 : 9, is_wide ? wide : narrow);
    unsigned shown = 0, unreachable = 0;
    const cJSON *member;
    cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(reply, "members"))
    {
        if (is_wanted(cli, member)) {
            done = done && member_row(cli, reply, member, &table);
            shown++;
            unreachable += !trpi_cli_get_true(member, "reachable");
        }
    }
    if (done) {
        if (shown > 0) { /* a header over nothing says nothing */
            trpi_cli_table_print(&table, "");
        }
        trpi_cli_flush();
        trpi_cli_note(
            cli, "%u member%s, %u unreachable%s", shown, shown == 1 ? "" : "s", unreachable,
            list_count(reply, "members") == 0 ? "; this node has not joined: troupe join ADDRESS "
                                                "(its own address starts a cluster)"
                                              : "");
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static void
names_print(const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        (void)puts(trpi_cli_get(item, "node"));
    }
}

static int
members_once(trpi_cli *cli)
{
    cJSON *reply;
    int code = members_fetch(cli, "members", &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    if (is_json(cli) || cli->output == TRPI_CLI_NAME) {
        members_filter(cli, reply);
    }
    if (is_json(cli)) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_NAME) {
        names_print(cJSON_GetObjectItemCaseSensitive(reply, "members"));
    } else {
        code = members_table(cli, reply);
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_members(trpi_cli *cli)
{
    static const char *const statuses[] = { "Joining", "WeaklyUp", "Up",     "Leaving",
                                            "Exiting", "Down",     "Removed" };
    const size_t count = sizeof statuses / sizeof statuses[0];
    const char *status = trpi_cli_text(cli, TRPI_CLI_STATUS);
    bool known = status == NULL;
    for (size_t index = 0; index < count && !known; index++) {
        known = strcmp(statuses[index], status) == 0;
    }
    if (!known) {
        const char *meant = trpi_cli_suggest(status, statuses, count);
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "no status '%s'%s%s%s", status,
                             meant != NULL ? "; did you mean '" : "", meant != NULL ? meant : "",
                             meant != NULL ? "'?" : "");
    }
    return trpi_cli_repeat(cli, members_once);
}

static int
unreachable_table(const trpi_cli *cli, const cJSON *list)
{
    static const char *const head[] = { "ADDRESS", "SINCE", "OBSERVED BY" };
    trpi_cli_table table = { 0 };
    bool done = cJSON_GetArraySize(list) == 0 || trpi_cli_table_row(&table, 3, head);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, list)
    {
        char since[24], observers[1024];
        list_join(cJSON_GetObjectItemCaseSensitive(entry, "observedBy"), observers,
                  sizeof observers);
        const char *cells[] = { trpi_cli_get(entry, "node"),
                                trpi_cli_age(trpi_cli_get_number(entry, "sinceMs", -1), since),
                                observers };
        done = done && trpi_cli_table_row(&table, 3, cells);
    }
    if (done) {
        trpi_cli_table_print(&table, "");
        trpi_cli_flush();
        trpi_cli_note(cli, "%d unreachable", cJSON_GetArraySize(list));
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
unreachable_once(trpi_cli *cli)
{
    cJSON *reply;
    int code = members_fetch(cli, "members", &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "unreachable");
    if (is_json(cli)) {
        cJSON *object = cJSON_CreateObject();
        bool done = cJSON_AddItemReferenceToObject(object, "unreachable", (cJSON *)(uintptr_t)list);
        if (done) {
            trpi_cli_print_json(cli, object);
        }
        cJSON_Delete(object);
        code = done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    } else if (cli->output == TRPI_CLI_NAME) {
        names_print(list);
    } else {
        code = unreachable_table(cli, list);
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_unreachable(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, unreachable_once);
}

/* Print one value as a word, or as {"key": value} for JSON. value NULL: null, and nothing as a
 * word. */
static int
answer_text(const trpi_cli *cli, const char *key, const char *value)
{
    if (!is_json(cli)) {
        if (value != NULL) {
            (void)puts(value);
        }
        return 0;
    }
    cJSON *object = cJSON_CreateObject();
    bool done = trpi_json_add_text(object, key, value);
    if (done) {
        trpi_cli_print_json(cli, object);
    }
    cJSON_Delete(object);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
answer_bool(const trpi_cli *cli, const char *key, bool value)
{
    if (is_json(cli)) {
        cJSON *object = cJSON_CreateObject();
        if (trpi_json_add_bool(object, key, value)) {
            trpi_cli_print_json(cli, object);
        }
        cJSON_Delete(object);
    } else if (!cli->quiet) {
        (void)puts(value ? "true" : "false");
    }
    return value ? TRPI_CTL_EXIT_OK : TRPI_CTL_EXIT_NO;
}

static int
leader_once(trpi_cli *cli)
{
    cJSON *reply;
    int code = members_fetch(cli, "members", &reply);
    if (code != 0) {
        return code;
    }
    const char *role = trpi_cli_text(cli, TRPI_CLI_ROLE);
    const cJSON *where =
        role != NULL ? cJSON_GetObjectItemCaseSensitive(reply, "leaderPerRole") : reply;
    const char *leader = trpi_json_get_text(where, role != NULL ? role : "leader");
    code = answer_text(cli, "leader", leader);
    if (code == 0 && leader == NULL) {
        trpi_cli_note(cli, "no leader%s%s", role != NULL ? " among members with role " : "",
                      role != NULL ? role : "");
        code = TRPI_CTL_EXIT_NO;
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_leader(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, leader_once);
}

static int
member_status_once(trpi_cli *cli)
{
    cJSON *reply;
    int code = fetch_member(cli, &reply);
    if (code != 0) {
        return code;
    }
    if (is_json(cli)) {
        trpi_cli_print_json(cli, reply);
    } else {
        (void)puts(trpi_cli_get(reply, cli->output == TRPI_CLI_NAME ? "node" : "status"));
    }
    cJSON_Delete(reply);
    return 0;
}

int
trpi_cli_run_member_status(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, member_status_once);
}

int
trpi_cli_run_is_available(trpi_cli *cli)
{
    cJSON *reply;
    int code = fetch_member(cli, &reply);
    if (code != 0) {
        return code;
    }
    const char *status = trpi_cli_get(reply, "status");
    bool gone = text_equal(status, "Down") || text_equal(status, "Removed");
    code = answer_bool(cli, "available", trpi_cli_get_true(reply, "reachable") && !gone);
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_is_singleton(trpi_cli *cli)
{
    cJSON *reply;
    int code = members_fetch(cli, "members", &reply);
    if (code != 0) {
        return code;
    }
    const cJSON *members = cJSON_GetObjectItemCaseSensitive(reply, "members");
    bool alone =
        cJSON_GetArraySize(members) == 1 && text_equal(trpi_json_get_text(members->child, "node"),
                                                       trpi_json_get_text(reply, "selfNode"));
    code = answer_bool(cli, "singleton", alone);
    cJSON_Delete(reply);
    return code;
}

/* The text of Akka 2.2's script (CLI-08). */
static int
cluster_status_text(trpi_cli *cli)
{
    cJSON *reply;
    int code = members_fetch(cli, "members", &reply);
    if (code != 0) {
        return code;
    }
    const cJSON *item;
    (void)puts("Members:");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(reply, "members"))
    {
        (void)printf("\tMember(address = %s, status = %s)\n", trpi_cli_get(item, "node"),
                     trpi_cli_get(item, "status"));
    }
    const cJSON *unreachable = cJSON_GetObjectItemCaseSensitive(reply, "unreachable");
    if (cJSON_GetArraySize(unreachable) > 0) {
        (void)puts("Unreachable:");
    }
    cJSON_ArrayForEach(item, unreachable)
    {
        (void)printf("\tMember(address = %s)\n", trpi_cli_get(item, "node"));
    }
    cJSON_Delete(reply);
    return 0;
}

int
trpi_cli_run_cluster_status(trpi_cli *cli)
{
    if (trpi_cli_has(cli, TRPI_CLI_OUTPUT) && cli->output == TRPI_CLI_TABLE) {
        return trpi_cli_repeat(cli, cluster_status_text);
    }
    if (cli->output == TRPI_CLI_TABLE) {
        cli->output = TRPI_CLI_JSON;
    }
    return trpi_cli_run_status(cli);
}
