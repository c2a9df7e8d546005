/* cmd_metrics.c - `metrics`: the figures of the node, those of one name or all.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/observe.sh
 */
#include <fnmatch.h>
#include <string.h>

#include "cluster/cli/cli.h"

/* Does the name belong to PATTERN: with * and ? as wildcards, else as a part of it? */
static bool
is_wanted(const char *pattern, const char *name)
{
    return pattern == NULL || (strpbrk(pattern, "*?[") != NULL ? fnmatch(pattern, name, 0) == 0
                                                               : strstr(name, pattern) != NULL);
}

/* NAME{a="b"} VALUE. suffix, le: of a histogram; else "" and NULL. */
static void
sample_print(const char *name, const char *suffix, const cJSON *labels, const char *le,
             double value)
{
    const cJSON *label;
    const char *before = "{";
    (void)printf("%s%s", name, suffix);
    cJSON_ArrayForEach(label, labels)
    {
        const char *text = cJSON_GetStringValue(label);
        (void)printf("%s%s=\"%s\"", before, label->string, text != NULL ? text : "");
        before = ",";
    }
    if (le != NULL) {
        (void)printf("%sle=\"%s\"", before, le);
        before = ",";
    }
    (void)printf("%s %.17g\n", before[0] == ',' ? "}" : "", value);
}

static void
histogram_print(const cJSON *family, const char *name)
{
    const cJSON *bucket;
    char le[32];
    cJSON_ArrayForEach(bucket, cJSON_GetObjectItemCaseSensitive(family, "buckets"))
    {
        (void)snprintf(le, sizeof le, "%g", trpi_cli_get_number(bucket, "le", 0));
        sample_print(name, "_bucket", NULL, le, trpi_cli_get_number(bucket, "count", 0));
    }
    sample_print(name, "_bucket", NULL, "+Inf", trpi_cli_get_number(family, "count", 0));
    sample_print(name, "_sum", NULL, NULL, trpi_cli_get_number(family, "sum", 0));
    sample_print(name, "_count", NULL, NULL, trpi_cli_get_number(family, "count", 0));
}

static void
family_print(const trpi_cli *cli, const cJSON *family)
{
    const char *name = trpi_cli_get(family, "name");
    const cJSON *sample;
    if (cli->output == TRPI_CLI_PROM) {
        (void)printf("# HELP %s %s\n# TYPE %s %s\n", name, trpi_cli_get(family, "help"), name,
                     trpi_cli_get(family, "type"));
    }
    if (cJSON_HasObjectItem(family, "buckets")) {
        histogram_print(family, name);
    }
    cJSON_ArrayForEach(sample, cJSON_GetObjectItemCaseSensitive(family, "samples"))
    {
        sample_print(name, "", cJSON_GetObjectItemCaseSensitive(sample, "labels"), NULL,
                     trpi_cli_get_number(sample, "value", 0));
    }
}

static int
metrics_once(trpi_cli *cli)
{
    cJSON *reply;
    const char *pattern = cli->args_count > 0 ? cli->args[0] : NULL;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "metrics"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "families"), *family, *next;
    for (family = list != NULL ? list->child : NULL; family != NULL; family = next) {
        next = family->next;
        if (!is_wanted(pattern, trpi_cli_get(family, "name"))) {
            cJSON_Delete(cJSON_DetachItemViaPointer(list, family));
        }
    }
    trpi_cli_watch_begin(cli);
    if (cJSON_GetArraySize(list) == 0) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "no metric is called like %s",
                             pattern != NULL ? pattern : "any");
    } else if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        cJSON_ArrayForEach(family, list)
        {
            family_print(cli, family);
        }
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_metrics(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, metrics_once);
}
