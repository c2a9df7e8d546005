/* nodes.c - see nodes.h. */
#include "tests/bench/nodes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS_MAX 8
#define LOOKS 6000 /* of 10 ms */

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (getenv("BENCH_LOG") != NULL) {
        (void)fprintf(stderr, "%d %s: %s\n", (int)getpid(), line->source, line->text);
    }
}

trp_node *
bench_node_open(const char *seed)
{
    char seeds[512];
    const char *settings[] = { "remote.port=0", seeds, NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error = { "" };
    trp_node *node = NULL;

    (void)snprintf(seeds, sizeof seeds, "cluster.seed-nodes=%s", seed);
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = log_line;
    bench_check(trp_node_open(&options, &node, &error), error.text);
    return node;
}

static uint32_t
members_up(trp_node *node)
{
    trp_member members[MEMBERS_MAX];
    size_t count = 0;
    uint32_t up = 0;

    if (trp_cluster_members(trp_node_system(node), members, MEMBERS_MAX, &count) == TRP_OK) {
        for (size_t i = 0; i < count && i < MEMBERS_MAX; i++) {
            up += members[i].status == TRP_MEMBER_UP;
        }
    }
    return up;
}

void
bench_members_wait(trp_node *node, uint32_t least)
{
    for (uint32_t i = 0; i < LOOKS && members_up(node) < least; i++) {
        (void)usleep(10000);
    }
    bench_check(members_up(node) < least ? TRP_ETIMEDOUT : TRP_OK, "nodes do not come up");
}

void
bench_child_say(bench_child *child, const char *command, const char *argument, char *answer,
                size_t bytes)
{
    (void)fprintf(child->in, "%s%s\n", command, argument);
    (void)fflush(child->in);
    if (fgets(answer, (int)bytes, child->out) == NULL) {
        bench_check(TRP_EIO, "a child ended");
    }
    answer[strcspn(answer, "\n")] = '\0';
}
