/* node_limits_test.c - descriptors and address space for a node: enough, and one less. */
#include "cluster/node/node_limits.h"

#include <string.h>

#include "tests/unit/unit.h"

static void
a_limit_that_is_too_low_is_named_with_the_need_and_what_to_set(void)
{
    trpi_node_limits limits = { UINT64_MAX, UINT64_MAX, 8u << 20, 2 };
    char why[400] = "";
    UNIT_TRUE(trpi_node_limits_suffice(&limits, why, sizeof why));
    UNIT_TEXT(why, "");
    limits.descriptors = TRPI_NODE_DESCRIPTORS_LEAST;
    limits.address_bytes = trpi_node_address_need(&limits);
    UNIT_TRUE(trpi_node_limits_suffice(&limits, why, sizeof why));
    limits.address_bytes--;
    UNIT_FALSE(trpi_node_limits_suffice(&limits, why, sizeof why));
    UNIT_TRUE(strstr(why, "807 MiB of address space (RLIMIT_AS)") != NULL);
    UNIT_TRUE(strstr(why, "on 2 processors needs 808 MiB") != NULL);
    UNIT_TRUE(strstr(why, "LimitAS=infinity") != NULL && strstr(why, "ulimit -v") != NULL);
    limits.address_bytes++;
    limits.descriptors--;
    UNIT_FALSE(trpi_node_limits_suffice(&limits, why, sizeof why));
    UNIT_TRUE(strstr(why, "may have 15 descriptors (RLIMIT_NOFILE)") != NULL);
    UNIT_TRUE(strstr(why, "needs 16") != NULL && strstr(why, "LimitNOFILE=") != NULL);
}

/* More processors are more threads, and so are larger stacks; an unlimited stack is libc's. */
static void
the_need_follows_processors_and_stacks(void)
{
    trpi_node_limits limits = { UINT64_MAX, UINT64_MAX, 8u << 20, 2 };
    uint64_t two = trpi_node_address_need(&limits);
    limits.processors = 64;
    uint64_t many = trpi_node_address_need(&limits);
    UNIT_EQUAL((many - two) >> 20, (62 + 12) * 24); /* workers, and callbacks up to 16 */
    limits.stack_bytes = UINT64_MAX;
    UNIT_TRUE(trpi_node_address_need(&limits) < many);
}

static void
this_process_has_what_a_node_needs(void)
{
    trpi_node_limits limits;
    char why[400];
    trpi_node_limits_look(&limits);
    UNIT_TRUE(limits.processors >= 1);
    UNIT_TRUE(trpi_node_limits_suffice(&limits, why, sizeof why));
}

UNIT_BEGIN("node-limits")
UNIT(a_limit_that_is_too_low_is_named_with_the_need_and_what_to_set)
UNIT(the_need_follows_processors_and_stacks)
UNIT(this_process_has_what_a_node_needs)
UNIT_END
