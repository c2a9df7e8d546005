/* via.c - the requests of send, ask and publish through a receptionist, on a host without a node.
 *
 * Shape.   request --> trp_via_call() of the library, which is loaded for it --> the answer of a
 *          node. So the commands print as they do with a node.
 * Tests.   tests/system/via.sh
 */
#include <string.h>

#include <troupe/node.h>

#include "cluster/cli/cli.h"

static void
answer_take(void *arg, const char *answer)
{
    cJSON **final = arg;
    (void)trpi_json_parse(answer, strlen(answer), final, NULL); /* else it stays NULL */
}

static bool
flag_add(const trpi_cli *cli, cJSON *request, trpi_cli_flag flag, const char *key)
{
    const char *text = trpi_cli_text(cli, flag);
    return text == NULL || trpi_json_add_text(request, key, text);
}

static char *
request_text(const trpi_cli *cli, cJSON *request)
{
    bool is = request != NULL && flag_add(cli, request, TRPI_CLI_VIA, "via") &&
              flag_add(cli, request, TRPI_CLI_CACERT, "cacert") &&
              flag_add(cli, request, TRPI_CLI_CERT, "cert") &&
              flag_add(cli, request, TRPI_CLI_KEY, "key") &&
              flag_add(cli, request, TRPI_CLI_COOKIE_FILE, "cookieFile");
    char *text = is ? trpi_json_print(request) : NULL;
    cJSON_Delete(request);
    return text;
}

int
trpi_cli_via_run(trpi_cli *cli, cJSON *request, cJSON **ret_final)
{
    trp_err (*call)(const char *, trp_via_answer_fn, void *);
    char *text = request_text(cli, request);
    *ret_final = NULL;
    if (text == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    *(void **)&call = trpi_cli_library_function("trp_via_call");
    trp_err err = call == NULL ? TRP_OK : call(text, answer_take, ret_final);
    cJSON_free(text);
    if (call == NULL) {
        return TRPI_CTL_EXIT_UNREACHABLE;
    }
    (void)snprintf(cli->path, sizeof cli->path, "%s", trpi_cli_text(cli, TRPI_CLI_VIA));
    return err == TRP_OK && *ret_final != NULL
               ? 0
               : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "--via: %s", trp_strerror(err));
}
