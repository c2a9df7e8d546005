/* node_run_program.c - a node by trp_node_run() for node_run.sh: settings of its own, and a start
 * that fails when it is told to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

/* Lines of the program's own. */
static void
line_print(void *arg, const trp_log_line *line)
{
    (void)arg;
    printf("own log: %s\n", line->text);
    (void)fflush(stdout);
}

static trp_err
start(trp_node *node, void *arg)
{
    const char *how = trp_node_config_get(node, "app.start", 0);

    printf("%s %s\n", (const char *)arg, trp_node_config_get(node, "app.greeting", 0));
    (void)fflush(stdout);
    return how == NULL                     ? TRP_OK
           : strcmp(how, "config") == 0    ? TRP_ECONFIG
           : strcmp(how, "no-memory") == 0 ? TRP_ENOMEM
                                           : TRP_OK;
}

int
main(int argc, char **argv)
{
    const char *settings[] = { "app.greeting=from the program", "remote.port=0", NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    char hello[] = "hello";

    options.settings = settings;
    options.environment_ignored = 1;
    options.log = getenv("OWN_LOG") != NULL ? line_print : NULL;
    return trp_node_run(argc, argv, &options, start, hello);
}
