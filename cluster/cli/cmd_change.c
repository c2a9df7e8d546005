/* cmd_change.c - the commands that change the cluster: join, leave, down, shutdown.
 *
 * Why.     Each waits for the effect, since "ordered" is not "done", and shows what it waits for. A
 *          command that cannot be undone asks first, or needs --yes where stdin is no terminal.
 * Tests.   tests/system/cli.sh, tests/multinode/three_nodes.sh
 */
#include <string.h>
#include <unistd.h>

#include "cluster/cli/cli.h"

static bool
is_json(const trpi_cli *cli)
{
    return cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL;
}

static cJSON *
change_request(const trpi_cli *cli, const char *cmd)
{
    cJSON *request = trpi_cli_request_new(cli, cmd);
    if (!trpi_json_add_bool(request, "wait", !trpi_cli_has(cli, TRPI_CLI_NO_WAIT))) {
        cJSON_Delete(request);
        return NULL;
    }
    return request;
}

/* Print what happens to the other members when one more crashes after this leave. A node of an
 * earlier version does not tell. */
static void
print_forecast(const cJSON *reply)
{
    const cJSON *cast = cJSON_GetObjectItemCaseSensitive(reply, "nextCrash");
    const char *strategy = trpi_cli_get(cast, "strategy");
    double votes = trpi_cli_get_number(cast, "votes", 0);
    double fatal = trpi_cli_get_number(cast, "stopsTheRest", 0);
    if (!cJSON_IsObject(cast)) {
        return;
    }
    if (votes < 2) {
        (void)puts(votes < 1 ? "it is the last member: the cluster ends with it"
                             : "once it has left, one member is left: the next crash ends the "
                               "cluster");
        return;
    }
    (void)printf("once it has left, %.0f members have a vote: ", votes);
    if (fatal < 1) {
        (void)printf("the rest survives the crash of any one of them (%s)\n", strategy);
    } else if (fatal >= votes) {
        (void)printf("the next crash of any of them would stop the rest (%s)\n", strategy);
    } else {
        char more[32] = "";
        if (fatal > 1) {
            (void)snprintf(more, sizeof more, ", or of %.0f more,", fatal - 1);
        }
        (void)printf("a crash of %s%s would stop the rest (%s)\n",
                     trpi_cli_short(trpi_cli_get(cast, "of")), more, strategy);
    }
}

/* "demo@h:1  Up (0.9 s, member 2)" */
static void
print_result(const trpi_cli *cli, const cJSON *reply)
{
    double up_number = trpi_cli_get_number(reply, "upNumber", -1);
    if (is_json(cli)) {
        trpi_cli_print_json(cli, reply);
        return;
    }
    if (cli->quiet) {
        return;
    }
    (void)printf("%s  %s", trpi_cli_short(trpi_cli_get(reply, "node")),
                 trpi_cli_get(reply, "status"));
    if (trpi_cli_has(cli, TRPI_CLI_NO_WAIT)) {
        (void)puts(" (ordered)");
        print_forecast(reply);
        return;
    }
    (void)printf(" (%.1f s", trpi_cli_get_number(reply, "elapsedMs", 0) / 1000);
    if (up_number >= 0) {
        (void)printf(", member %.0f", up_number);
    }
    (void)puts(")");
    print_forecast(reply);
}

/* Print the result of --dry-run of join and leave: the member and its present status. */
static int
dry_run(trpi_cli *cli, const char *member, const char *would, bool as_member)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "member-status");
    if (request != NULL && ((member != NULL && !trpi_json_add_text(request, "member", member)) ||
                            !trpi_json_add_bool(request, "dryRun", as_member))) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    const char *status = trpi_cli_get(reply, "status");
    bool is_member = strcmp(status, "Removed") != 0;
    if (is_member && !as_member) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NO, "already a member of the cluster, as %s (%s)",
                             trpi_cli_get(reply, "node"), status);
    } else if (is_json(cli)) {
        (void)trpi_json_add_bool(reply, "dryRun", true); /* best effort: the other fields suffice */
        trpi_cli_print_json(cli, reply);
    } else {
        (void)printf("would %s %s (%s)\n", would, trpi_cli_get(reply, "node"), status);
        print_forecast(reply);
    }
    cJSON_Delete(reply);
    return code;
}

/* An address must at least look like one: PROTOCOL://SYSTEM@HOST:PORT. The node checks the rest. */
int
trpi_cli_address_check(const char *text)
{
    if (strncmp(text, "akka.", 5) == 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "'%s' is not an address of troupe; did you mean 'troupe.%s'?", text,
                             text + 5);
    }
    const char *behind = strstr(text, "://");
    const char *at = behind != NULL ? strchr(behind, '@') : NULL;
    if (at == NULL || strchr(at, ':') == NULL) {
        return trpi_cli_fail(
            TRPI_CTL_EXIT_USAGE,
            "'%s' is not an address; an address looks like troupe.tcp://demo@10.0.0.1:2552", text);
    }
    return 0;
}

int
trpi_cli_run_join(trpi_cli *cli)
{
    for (unsigned index = 0; index < cli->args_count; index++) {
        int code = trpi_cli_address_check(cli->args[index]);
        if (code != 0) {
            return code;
        }
    }
    if (trpi_cli_has(cli, TRPI_CLI_DRY_RUN)) {
        return dry_run(cli, NULL, "ask to join with", false);
    }
    cJSON *request = change_request(cli, "join");
    cJSON *addresses =
        cJSON_CreateStringArray((const char *const *)cli->args, (int)cli->args_count);
    if (request == NULL || !cJSON_AddItemToObject(request, "addresses", addresses)) {
        cJSON_Delete(request);
        cJSON_Delete(addresses);
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    cli->order = "the node keeps joining (troupe members shows it)";
    cJSON *reply;
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code == 0) {
        print_result(cli, reply);
        cJSON_Delete(reply);
    }
    return code;
}

int
trpi_cli_run_leave(trpi_cli *cli)
{
    const char *member = cli->args_count > 0 ? cli->args[0] : NULL;
    if (trpi_cli_has(cli, TRPI_CLI_DRY_RUN)) {
        return dry_run(cli, member, "take out", true);
    }
    cJSON *request = change_request(cli, "leave");
    if (request != NULL && member != NULL && !trpi_json_add_text(request, "member", member)) {
        cJSON_Delete(request);
        request = NULL;
    }
    cli->order = "the node keeps leaving (troupe members shows it)";
    cJSON *reply;
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code == 0) {
        print_result(cli, reply);
        cJSON_Delete(reply);
    }
    return code;
}

static int
nodes_count(const cJSON *reply)
{
    return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(reply, "nodes"));
}

/* Order the incarnations that the plan named: by now a name may mean another one, and more members
 * may have become unreachable. plan NULL: the members that the words mean. */
static bool
down_whom_add(const trpi_cli *cli, cJSON *request, const cJSON *plan)
{
    char uid[24];
    const cJSON *node, *nodes = cJSON_GetObjectItemCaseSensitive(plan, "nodes");
    if (cli->args_count > 0) {
        const char *member =
            plan == NULL ? cli->args[0] : trpi_cli_uid(nodes->child, "nodeUid", uid);
        return trpi_json_add_text(request, "member", member);
    }
    if (plan == NULL) {
        return trpi_json_add_bool(request, "unreachable", true);
    }
    cJSON *uids = cJSON_AddArrayToObject(request, "uids");
    bool done = uids != NULL;
    cJSON_ArrayForEach(node, nodes)
    {
        cJSON *text = done ? cJSON_CreateString(trpi_cli_get(node, "nodeUid")) : NULL;
        done = text != NULL && cJSON_AddItemToArray(uids, text);
    }
    return done;
}

/* Does the plan warn of two clusters? Then the question was asked with that warning. */
static bool
is_split(const cJSON *plan)
{
    return cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(plan, "mayGoOn"));
}

static cJSON *
down_request(trpi_cli *cli, bool dry, const cJSON *plan)
{
    cJSON *request = change_request(cli, "down");
    bool sure = is_split(plan) || trpi_cli_has(cli, TRPI_CLI_DEAD);
    if (!sure && !dry && !trpi_json_add_bool(request, "cautious", true)) {
        cJSON_Delete(request);
        return NULL;
    }
    if (!dry && trpi_cli_has(cli, TRPI_CLI_DEAD) && !trpi_json_add_bool(request, "dead", true)) {
        cJSON_Delete(request);
        return NULL;
    }
    cli->order = dry ? NULL : "the order stands (troupe members shows it)";
    if (!trpi_json_add_bool(request, "dryRun", dry) || !down_whom_add(cli, request, plan)) {
        cJSON_Delete(request);
        return NULL;
    }
    return request;
}

/* Print one line for each node: its change, planned or done. */
static void
print_down(const trpi_cli *cli, const cJSON *reply, bool would, FILE *stream)
{
    const cJSON *node;
    const char *done = trpi_cli_has(cli, TRPI_CLI_NO_WAIT) ? " (ordered)" : ": gone";
    cJSON_ArrayForEach(node, cJSON_GetObjectItemCaseSensitive(reply, "nodes"))
    {
        char since[24], uid[24], reach[48] = "reachable";
        if (!trpi_cli_get_true(node, "reachable")) {
            (void)snprintf(reach, sizeof reach, "unreachable %s",
                           trpi_cli_age(trpi_cli_get_number(node, "unreachableForMs", 0), since));
        }
        (void)fprintf(stream, "%s %s (uid %s, %s, %s) Down%s\n", would ? "would mark" : "marked",
                      trpi_cli_get(node, "node"), trpi_cli_uid(node, "nodeUid", uid),
                      trpi_cli_get(node, "status"), reach, would ? "" : done);
    }
    if (nodes_count(reply) == 0) {
        (void)fputs("no member is unreachable; nothing to do\n", stream);
        return;
    }
    const char *majority =
        trpi_cli_get_true(reply, "majorityKept") ? "majority kept" : "NO majority";
    (void)fprintf(stream, "%.0f of %.0f members remain (%s)\n",
                  trpi_cli_get_number(reply, "remaining", 0),
                  trpi_cli_get_number(reply, "members", 0), majority);
    if (would && is_split(reply)) {
        (void)fputs("by the downing strategy this side does not survive (troupe why): members that "
                    "are still alive would go on\nas a second cluster; make sure that they are "
                    "stopped, on every host\n",
                    stream);
    }
    double left = trpi_cli_get_number(reply, "left", 0);
    if (left > 0) {
        (void)fprintf(stream,
                      "%.0f more members are unreachable than one order can name: repeat the "
                      "command for them\n",
                      left);
    }
}

/* true: go on. */
static bool
user_confirms(trpi_cli *cli, const char *question)
{
    char line[16] = "";
    (void)fprintf(stderr, "%s [y/N] ", question);
    trpi_cli_disconnect(cli); /* the answer may take long */
    if (fgets(line, sizeof line, stdin) == NULL || (line[0] != 'y' && line[0] != 'Y')) {
        (void)fputs("nothing was changed\n", stderr);
        return false;
    }
    return true;
}

/* Show the plan, ask, and order it. Gives *ret_reply, which is the plan when it names no member. */
static int
down_asked(trpi_cli *cli, cJSON **ret_reply)
{
    cJSON *plan, *reply = NULL;
    int code = trpi_cli_call(cli, down_request(cli, true, NULL), NULL, NULL, &plan);
    if (code != 0) {
        return code;
    }
    int planned = nodes_count(plan);
    if (planned == 0) {
        *ret_reply = plan;
        return 0;
    }
    print_down(cli, plan, true, stderr);
    const char *question = is_split(plan) ? "Are you sure that all of them are stopped?" : "Do it?";
    code = user_confirms(cli, question)
               ? trpi_cli_call(cli, down_request(cli, false, plan), NULL, NULL, &reply)
               : TRPI_CTL_EXIT_NO;
    cJSON_Delete(plan);
    if (code == TRPI_CTL_EXIT_NOT_FOUND) {
        (void)fputs("the member that was confirmed is gone; nothing was changed\n", stderr);
    } else if (code == 0 && nodes_count(reply) < planned) {
        (void)fprintf(stderr, "%d of the %d confirmed members are reachable again, or gone\n",
                      planned - nodes_count(reply), planned);
    }
    *ret_reply = reply;
    return code;
}

int
trpi_cli_run_down(trpi_cli *cli)
{
    bool dry = trpi_cli_has(cli, TRPI_CLI_DRY_RUN);
    bool all = trpi_cli_has(cli, TRPI_CLI_UNREACHABLE);
    bool asks = !dry && !trpi_cli_has(cli, TRPI_CLI_YES);
    if ((cli->args_count > 0) == all) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "'down' takes one MEMBER, or --unreachable");
    }
    if (asks && !isatty(STDIN_FILENO)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "'down' cannot be undone and stdin is no terminal: add --yes, or "
                             "look first with --dry-run");
    }
    cJSON *reply;
    int code = asks ? down_asked(cli, &reply)
                    : trpi_cli_call(cli, down_request(cli, dry, NULL), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (is_json(cli)) {
        trpi_cli_print_json(cli, reply);
    } else if (!cli->quiet || dry) {
        print_down(cli, reply, dry, stdout);
    }
    cJSON_Delete(reply);
    return 0;
}

static int
shutdown_call(trpi_cli *cli, bool dry, cJSON **ret_reply)
{
    cJSON *request = change_request(cli, "shutdown");
    cli->order = dry ? NULL : "the nodes go on leaving (troupe members shows it)";
    if (request != NULL && !trpi_json_add_bool(request, "dryRun", dry)) {
        cJSON_Delete(request);
        request = NULL;
    }
    return trpi_cli_call(cli, request, NULL, NULL, ret_reply);
}

int
trpi_cli_run_shutdown(trpi_cli *cli)
{
    cJSON *reply;
    const cJSON *node;
    bool dry = trpi_cli_has(cli, TRPI_CLI_DRY_RUN);
    if (!dry && !trpi_cli_has(cli, TRPI_CLI_YES)) {
        if (!isatty(STDIN_FILENO)) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                                 "'shutdown' ends all nodes and stdin is no terminal: add --yes, "
                                 "or look first with --dry-run");
        }
        int code = shutdown_call(cli, true, &reply);
        if (code != 0) {
            return code;
        }
        (void)fprintf(stderr, "would end all %d nodes of the cluster\n", nodes_count(reply));
        cJSON_Delete(reply);
        if (!user_confirms(cli, "Do it?")) {
            return TRPI_CTL_EXIT_NO;
        }
    }
    int code = shutdown_call(cli, dry, &reply);
    if (code != 0) {
        return code;
    }
    if (is_json(cli)) {
        trpi_cli_print_json(cli, reply);
    } else if (!cli->quiet || dry) {
        bool ordered = trpi_cli_has(cli, TRPI_CLI_NO_WAIT);
        cJSON_ArrayForEach(node, cJSON_GetObjectItemCaseSensitive(reply, "nodes"))
        {
            (void)printf("%s %s%s\n",
                         dry       ? "would end"
                         : ordered ? "ending"
                                   : "ended",
                         node->valuestring, ordered && !dry ? " (ordered)" : "");
        }
    }
    cJSON_Delete(reply);
    return 0;
}
