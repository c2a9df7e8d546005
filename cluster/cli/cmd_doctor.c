/* cmd_doctor.c - `doctor`: the faults of this node and its cluster, with evidence and advice.
 *
 * Shape.   The node judges; this tool adds the stacks of threads that it names as stuck, since they
 *          are taken from outside (stack.c), on the node's host.
 * Tests.   tests/system/cli_fake.sh, tests/system/observe.sh, tests/system/stack.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"
#include "cluster/cli/stack.h"

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool
frames_add(cJSON *thread, const trpi_stack *stack)
{
    cJSON *frames = cJSON_AddArrayToObject(thread, "frames");
    bool ok = frames != NULL;
    for (uint32_t i = 0; ok && i < stack->count; i++) {
        cJSON *frame = cJSON_CreateString(stack->frames[i]);
        ok = trpi_json_append(frames, frame, frame != NULL);
    }
    return ok && trpi_json_add_bool(thread, "cut", stack->is_cut) &&
           cJSON_AddNumberToObject(thread, "stoppedMs", stack->stopped_ms) != NULL;
}

/* Add "frames" and "stoppedMs" to a thread, or "noStack" with the reason. */
static void
stack_add(const trpi_cli *cli, cJSON *thread)
{
    trpi_stack stack = { .count = 0 };
    char why[512] = "";
    int id = (int)trpi_cli_get_number(thread, "thread", 0);
    pid_t pid = cli->fd >= 0 ? trpi_ctl_peer_pid(cli->fd) : 0;
    if (trpi_cli_is_remote(cli)) {
        (void)snprintf(why, sizeof why, "run troupe doctor as root on the host of the node");
    } else if (pid <= 0) {
        (void)snprintf(why, sizeof why,
                       "the node's process cannot be seen from here (a container): run troupe "
                       "doctor beside it");
    } else if (id <= 0) {
        (void)snprintf(why, sizeof why, "the actor runs on a thread of the program, not of Troupe");
    }
    bool ok = why[0] == '\0' && trpi_stack_take(pid, id, &stack, why, sizeof why);
    (void)(ok ? frames_add(thread, &stack) : trpi_json_add_text(thread, "noStack", why));
}

void
trpi_cli_doctor_stacks(const trpi_cli *cli, cJSON *reply)
{
    cJSON *finding, *thread;
    cJSON_ArrayForEach(finding, cJSON_GetObjectItemCaseSensitive(reply, "findings"))
    {
        cJSON_ArrayForEach(thread, cJSON_GetObjectItemCaseSensitive(finding, "threads"))
        {
            stack_add(cli, thread);
        }
    }
    trpi_cli_object_clean(cli, reply); /* names of files and symbols are whatever they are */
}

static void
stack_print(const cJSON *thread)
{
    const cJSON *frames = cJSON_GetObjectItemCaseSensitive(thread, "frames"), *frame;
    const char *none = trpi_json_get_text(thread, "noStack");
    unsigned number = 0;
    if (none == NULL && !cJSON_IsArray(frames)) { /* --all-members */
        none = "run troupe doctor as root on the host of this member";
    }
    if (none != NULL) {
        (void)printf("       %-20s no stack of %s: %s\n", "", trpi_cli_get(thread, "actor"), none);
        return;
    }
    (void)printf("       %-20s stack of %s (thread %.0f, which stood still for %.1f ms):\n", "",
                 trpi_cli_get(thread, "actor"), trpi_cli_get_number(thread, "thread", 0),
                 trpi_cli_get_number(thread, "stoppedMs", 0));
    cJSON_ArrayForEach(frame, frames)
    {
        (void)printf("       %-20s   #%-2u %s\n", "", number++,
                     cJSON_IsString(frame) ? frame->valuestring : "-");
    }
    if (trpi_cli_get_true(thread, "cut")) {
        (void)printf("       %-20s   and more\n", "");
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

static void
finding_print(const trpi_cli *cli, const cJSON *finding)
{
    const char *level = trpi_cli_get(finding, "level");
    const char *advice = trpi_json_get_text(finding, "advice");
    bool is_ok = strcmp(level, "ok") == 0;
    const cJSON *thread;
    (void)printf(" %-5s %-20s %s\n", strcmp(level, "fail") == 0 ? "FAIL" : level,
                 trpi_cli_get(finding, "id"), trpi_cli_get(finding, "evidence"));
    cJSON_ArrayForEach(thread, cJSON_GetObjectItemCaseSensitive(finding, "threads"))
    {
        stack_print(thread);
    }
    if (!is_ok && advice != NULL && trpi_cli_has(cli, TRPI_CLI_FIX_HINTS)) {
        (void)printf("       %-20s do: %s\n       %-20s see: %s\n", "", advice, "",
                     trpi_cli_get(finding, "page"));
    }
}

static void
summary_print(const trpi_cli *cli, const cJSON *reply)
{
    double failures = trpi_cli_get_number(reply, "failures", 0);
    double warnings = trpi_cli_get_number(reply, "warnings", 0);
    bool hints = failures + warnings == 0 || trpi_cli_has(cli, TRPI_CLI_FIX_HINTS);
    trpi_cli_note(cli, "%.0f failure%s, %.0f warning%s%s", failures, failures == 1 ? "" : "s",
                  warnings, warnings == 1 ? "" : "s",
                  hints ? "" : "; troupe doctor --fix-hints says what to do");
}

static int
doctor_print(trpi_cli *cli, const cJSON *reply)
{
    const cJSON *finding;
    cJSON_ArrayForEach(finding, cJSON_GetObjectItemCaseSensitive(reply, "findings"))
    {
        if (cli->output == TRPI_CLI_TABLE) {
            finding_print(cli, finding);
        } else if (strcmp(trpi_cli_get(finding, "level"), "ok") != 0) {
            (void)puts(trpi_cli_get(finding, "id"));
        }
    }
    if (cli->output == TRPI_CLI_TABLE) {
        trpi_cli_flush();
        summary_print(cli, reply);
    }
    return 0;
}

int
trpi_cli_run_doctor(trpi_cli *cli)
{
    cJSON *reply = NULL;
    if (trpi_cli_has(cli, TRPI_CLI_ALL_MEMBERS)) {
        return trpi_cli_all_once(cli, "doctor", doctor_print);
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "doctor"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output != TRPI_CLI_NAME) {
        trpi_cli_doctor_stacks(cli, reply);
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        (void)doctor_print(cli, reply); /* it cannot fail */
    }
    code = trpi_cli_get_true(reply, "healthy") ? 0 : TRPI_CTL_EXIT_NO;
    cJSON_Delete(reply);
    return code;
}
