/* cmd_member.c - `member`: everything that a node knows about one member; `actor`: about one actor;
 * `stop` and `kill` end one.
 *
 * Shape.   The node finds the member that is meant; its rows of `members` and `peers` are one
 *          answer. An actor is the first entry of its tree.
 * Tests.   tests/system/cli_fake.sh
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

/* The row of list whose "node" is address; NULL: none. */
static const cJSON *
row_of(const cJSON *reply, const char *list, const char *address)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, list))
    {
        if (strcmp(trpi_cli_get(row, "node"), address) == 0) {
            return row;
        }
    }
    return NULL;
}

/* "  key       value" of each member of row but the first, texts and numbers as they are. */
static void
row_print(const cJSON *row)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, row)
    {
        char *text = cJSON_IsString(item) ? NULL : trpi_json_print(item);
        const char *value = cJSON_IsString(item) ? item->valuestring : text;
        if (item != row->child && !cJSON_IsNull(item) && value != NULL) {
            (void)printf("  %-22s %s\n", item->string != NULL ? item->string : "-", value);
        }
        cJSON_free(text);
    }
}

/* Ask without a field. */
static int
reply_fetch(trpi_cli *cli, const char *cmd, cJSON **ret_reply)
{
    return trpi_cli_call(cli, trpi_cli_request_new(cli, cmd), NULL, NULL, ret_reply);
}

/* Put a copy of row at key; null where there is none. */
static bool
row_add(cJSON *whole, const char *key, const cJSON *row)
{
    cJSON *copy = row != NULL ? cJSON_Duplicate(row, true) : cJSON_CreateNull();
    if (copy == NULL || !cJSON_AddItemToObject(whole, key, copy)) {
        cJSON_Delete(copy);
        return false;
    }
    return true;
}

static int
member_print(const trpi_cli *cli, const char *address, const cJSON *members, const cJSON *peers)
{
    const cJSON *member = row_of(members, "members", address);
    const cJSON *missed = row_of(members, "unreachable", address);
    const cJSON *peer = row_of(peers, "peers", address);
    if (cli->output != TRPI_CLI_TABLE) {
        cJSON *whole = cJSON_CreateObject();
        bool ok = row_add(whole, "member", member) && row_add(whole, "unreachable", missed) &&
                  row_add(whole, "peer", peer);
        if (ok) {
            trpi_cli_print_json(cli, whole);
        }
        cJSON_Delete(whole);
        return ok ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    (void)printf("%s\n", address);
    row_print(member);
    if (missed != NULL) {
        (void)puts("unreachable");
        row_print(missed);
    }
    if (peer != NULL) {
        (void)puts("association");
        row_print(peer);
    }
    return 0;
}

int
trpi_cli_run_member(trpi_cli *cli)
{
    cJSON *found = NULL, *members = NULL, *peers = NULL;
    cJSON *request = trpi_cli_request_new(cli, "member-status");
    if (!trpi_json_add_text(request, "member", cli->args[0])) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &found);
    code = code == 0 ? reply_fetch(cli, "members", &members) : code;
    code = code == 0 ? reply_fetch(cli, "peers", &peers) : code;
    code = code == 0 ? member_print(cli, trpi_cli_get(found, "node"), members, peers) : code;
    cJSON_Delete(found);
    cJSON_Delete(members);
    cJSON_Delete(peers);
    return code;
}

int
trpi_cli_run_actor(trpi_cli *cli)
{
    char *path TRPI_AUTO_FREE = NULL;
    cJSON *reply = NULL;
    int code = trpi_cli_path_resolve(cli, cli->args[0], &path);
    if (code != 0) {
        return code;
    }
    cJSON *request = trpi_cli_request_new(cli, "tree");
    if (!trpi_json_add_text(request, "path", path) || !trpi_json_add_i64(request, "depth", 0)) {
        cJSON_Delete(request);
        request = NULL;
    }
    code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    const cJSON *entries = cJSON_GetObjectItemCaseSensitive(reply, "entries");
    const cJSON *entry = cJSON_IsArray(entries) ? entries->child : NULL;
    if (entry == NULL) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "no actor at %s", cli->args[0]);
    } else if (cli->output != TRPI_CLI_TABLE) {
        trpi_cli_print_json(cli, entry);
    } else {
        (void)puts(trpi_cli_get(reply, "path"));
        row_print(entry);
    }
    cJSON_Delete(reply);
    return code;
}

/* `stop` and `kill`, by the word of the command. */
int
trpi_cli_run_stop(trpi_cli *cli)
{
    char *path TRPI_AUTO_FREE = NULL;
    cJSON *reply = NULL;
    bool dry = trpi_cli_has(cli, TRPI_CLI_DRY_RUN);
    if (!dry && !trpi_cli_has(cli, TRPI_CLI_YES)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "%s needs --yes, or --dry-run to look only",
                             cli->command->name);
    }
    int code = trpi_cli_path_resolve(cli, cli->args[0], &path);
    if (code != 0) {
        return code;
    }
    cJSON *request = trpi_cli_request_new(cli, "stop");
    if (!trpi_json_add_text(request, "path", path) ||
        !trpi_json_add_text(request, "action", cli->command->name) ||
        !trpi_json_add_bool(request, "dryRun", dry)) {
        cJSON_Delete(request);
        request = NULL;
    }
    code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code == 0 && cli->output != TRPI_CLI_TABLE) {
        trpi_cli_print_json(cli, reply);
    } else if (code == 0) {
        (void)printf("%s%s: %s\n", dry ? "would " : "", cli->command->name,
                     trpi_cli_get(reply, "path"));
    }
    cJSON_Delete(reply);
    return code;
}
