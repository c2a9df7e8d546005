/* program.h - what programs of tests over several nodes share. */
#ifndef TESTS_MULTINODE_PROGRAM_H
#define TESTS_MULTINODE_PROGRAM_H

#include <troupe/troupe.h>

#define MUST(call) TRP_MULTINODE_MUST(test, call)
#define CHECK(condition) TRP_MULTINODE_CHECK(test, condition)

#define FIND_MS 60000u

/* The actor at a path of the node that plays a role. */
static inline trp_ref
found(trp_multinode *test, const char *role, const char *path)
{
    trp_ref ref;
    MUST(trp_multinode_resolve(test, role, path, FIND_MS, &ref));
    return ref;
}

static inline trp_inbox *
watching(trp_multinode *test, trp_ref ref)
{
    trp_inbox *inbox;
    MUST(trp_inbox_open(trp_multinode_system(test), NULL, &inbox));
    MUST(trp_inbox_watch(inbox, ref));
    return inbox;
}

#endif
