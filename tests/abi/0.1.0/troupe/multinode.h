/* troupe/multinode.h - tests over several nodes: one program, a process for each role.
 *
 * `troupe multinode PROGRAM` starts the program once for each role, on one machine (each in a
 * network of its own where the kernel allows it) or on several, and puts the role in front of what
 * it prints. All processes run the same function and meet at barriers; the first role conducts: it
 * may cut and slow links, and end other nodes.
 *
 *     static const trp_multinode_role roles[] = { { "first", NULL }, { "second", NULL } };
 *
 *     static void
 *     pong_comes_back(trp_multinode *test, void *arg)
 *     {
 *         (void)arg;
 *         if (trp_multinode_is(test, "second")) {
 *             start_ponger(trp_multinode_system(test));
 *         }
 *         TRP_MULTINODE_MUST(test, trp_multinode_barrier(test, "deployed", 0));
 *         if (trp_multinode_is(test, "first")) {
 *             TRP_MULTINODE_CHECK(test, ponger_answers(test));
 *         }
 *         TRP_MULTINODE_MUST(test, trp_multinode_barrier(test, "finished", 0));
 *     }
 *
 *     int
 *     main(int argc, char **argv)
 *     {
 *         trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
 *         options.roles = roles;
 *         options.roles_count = 2;
 *         options.argc = argc;
 *         options.argv = argv;
 *         return trp_multinode_main(&options, pong_comes_back, NULL);
 *     }
 *
 * To keep in mind: never end the first node, it conducts. Faults need test_transport. Take the
 * address of a node before it is shut down. All functions are for the thread of the test, not for
 * actors, futures or scheduled functions. docs/multinode.md tells the rest.
 */
#ifndef TROUPE_MULTINODE_H
#define TROUPE_MULTINODE_H

#include <troupe/base.h>
#include <troupe/cluster.h>
#include <troupe/node.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_MULTINODE_ROLES_MAX 64
#define TRP_MULTINODE_ROLE_BYTES_MAX 31
#define TRP_MULTINODE_BARRIER_BYTES_MAX 127 /* of a name */
#define TRP_MULTINODE_BARRIER_TIMEOUT_DEFAULT_MS 30000
#define TRP_MULTINODE_QUERY_TIMEOUT_DEFAULT_MS 5000
#define TRP_MULTINODE_CONNECT_TIMEOUT_DEFAULT_MS 20000

typedef struct trp_multinode trp_multinode; /* the view that one process has of the test */

typedef struct trp_multinode_role {
    const char *name; /* unique; letters, digits, '-' and '_' */
    /* "key=value" for this role only, NULL-terminated, stronger than the common ones. NULL: none */
    const char *const *settings;
} trp_multinode_role;

typedef struct trp_multinode_options {
    size_t size;
    const char *system; /* name of the systems under test; NULL: "test" */
    /* In order: the first one conducts. Borrowed, as all texts here, until the test is closed. */
    const trp_multinode_role *roles;
    uint32_t roles_count;
    uint32_t participants; /* nodes that must be there before it begins; 0: all roles */
    /* "key=value" for all roles, NULL-terminated. @ROLE@ stands for the address of that role, which
     * is waited for; for the own role it stands for "self" (cluster.seed-nodes=@first@). */
    const char *const *settings;
    uint32_t test_transport; /* 1: faults are possible (remote.test-adapters) */
    uint32_t debug;          /* 1: log.level=debug, else warning, unless the settings say more */
    uint32_t barrier_timeout_ms; /* 0: TRP_MULTINODE_BARRIER_TIMEOUT_DEFAULT_MS; and so on */
    uint32_t query_timeout_ms;   /* of orders, and questions for addresses */
    uint32_t connect_timeout_ms; /* until the conductor answers for the first time */
    int argc;    /* of main: --set KEY=VALUE is strongest; the rest is the program's */
    char **argv; /* NULL: none */
} trp_multinode_options;
#define TRP_MULTINODE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_multinode_options), NULL, NULL, 0, 0, NULL, 0, 0, 0, 0, 0, 0, NULL              \
    }

typedef enum trp_multinode_direction {
    TRP_MULTINODE_SEND = 1,    /* what the node sends to the target */
    TRP_MULTINODE_RECEIVE = 2, /* what it receives from there */
    TRP_MULTINODE_BOTH = 3
} trp_multinode_direction;

/* The test of one process. It returns when it has passed. */
typedef void (*trp_multinode_fn)(trp_multinode *test, void *arg);

/* ---- life ------------------------------------------------------------------------------------ */

/* Run a test as the process that the environment says (MULTINODE_*, see docs/multinode.md): open,
 * fn, close. Returns the exit code: 0, or 1 with the reason on stderr; 64 when the program was not
 * started by `troupe multinode`. With MULTINODE_INDEX=roles it prints the names of the roles.
 *
 * Ownership: borrows options.
 * Errors:    none; the exit code says.
 * Thread:    the main thread; may block until the test has ended; never from a behaviour.
 * Source:    MNT-01, -12, -13.  Since: 0.1 */
TRP_API int trp_multinode_main(const trp_multinode_options *options, trp_multinode_fn fn,
                               void *arg);

/* Start the node of this process, find the conductor, and wait until all participants are there.
 * For programs with a main function of another framework.
 *
 * Ownership: gives *ret_test (trp_multinode_close); borrows options and their texts until then.
 * Errors:    TRP_EINVAL     no roles, a role twice or misnamed, a variable MULTINODE_* that is none
 *            TRP_ELIMIT     more than TRP_MULTINODE_ROLES_MAX roles, or MULTINODE_MAX_NODES
 *            TRP_ENOENT     MULTINODE_INDEX is not set
 *            TRP_ETIMEDOUT  no conductor, or not enough participants, in time
 *            TRP_EEXIST     two nodes call themselves the same
 *            TRP_ECANCELED  the test has failed already, on another node
 *            and those of trp_node_open(). The sentence goes to stderr.
 * Thread:    any, which is the thread of the test from then on; may block until all are there.
 * Source:    MNT-05, -06, -16.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_open(const trp_multinode_options *options,
                                                  trp_multinode **ret_test);

/* Leave the test and stop the node; the first node waits until all others have left. NULL is fine.
 *
 * Ownership: takes test, always.
 * Errors:    TRP_ETIMEDOUT  the first node: others have not left within the barrier timeout
 *            TRP_ECONN      the conductor did not answer
 * Thread:    owner; may block until all have left.
 * Source:    MNT-16.  Since: 0.1 */
TRP_API trp_err trp_multinode_close(trp_multinode *test);

/* End this process as failed, and with it the test: the others' barriers fail. Use the macros.
 *
 * Ownership: borrows file and format.
 * Errors:    none; it does not return
 * Thread:    owner (the thread of the test).
 * Source:    MNT-08.  Since: 0.1 */
TRP_API TRP_NORETURN void trp_multinode_fail(trp_multinode *test, const char *file, int line,
                                             const char *format, ...) TRP_PRINTF(4, 5);
#define TRP_MULTINODE_CHECK(test, condition)                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            trp_multinode_fail((test), __FILE__, __LINE__, "%s", #condition);                      \
        }                                                                                          \
    } while (0)
/* A call that returns a trp_err. */
#define TRP_MULTINODE_MUST(test, call)                                                             \
    do {                                                                                           \
        trp_err multinode_err_ = (call);                                                           \
        if (multinode_err_ != TRP_OK) {                                                            \
            trp_multinode_fail((test), __FILE__, __LINE__, "%s: %s; %s", #call,                    \
                               trp_strerror(multinode_err_), trp_multinode_reason(test));          \
        }                                                                                          \
    } while (0)
/* Look again and again until the condition holds, for at most ms (times the time factor). */
#define TRP_MULTINODE_AWAIT(test, condition, ms)                                                   \
    do {                                                                                           \
        uint64_t multinode_end_ = trp_multinode_until((test), (ms));                               \
        while (!(condition)) {                                                                     \
            if (!trp_multinode_pause((test), multinode_end_)) {                                    \
                trp_multinode_fail((test), __FILE__, __LINE__, "not in time: %s", #condition);     \
            }                                                                                      \
        }                                                                                          \
    } while (0)
/* When ms (times the time factor) will be over, for trp_multinode_pause().
 * Errors: none. Thread: owner. Source: MNT-15, -17.  Since: 0.1 */
TRP_API uint64_t trp_multinode_until(const trp_multinode *test, uint32_t ms);
/* Sleep a moment; 0: the time is over.
 * Errors: none. Thread: owner. Source: MNT-15.  Since: 0.1 */
TRP_API int trp_multinode_pause(const trp_multinode *test, uint64_t until);

/* ---- where am I ------------------------------------------------------------------------------ */

/* The role of this process. Errors: none. Thread: any; lock-free. Source: MNT-06.  Since: 0.1 */
TRP_API const char *trp_multinode_role_name(const trp_multinode *test);
/* Return 1 when this process has one of these roles, blanks between them: the blocks that only some
 * nodes run. Errors: none. Thread: any; lock-free. Source: MNT-06 (runOn).  Since: 0.1 */
TRP_API int trp_multinode_is(const trp_multinode *test, const char *roles);
/* Borrow the node under test until it is shut down or the test is closed; NULL in between.
 * Errors: none. Thread: owner. Source: MNT-06.  Since: 0.1 */
TRP_API trp_node *trp_multinode_node(trp_multinode *test);
/* Borrow its system; NULL without a node.
 * Errors: none. Thread: owner. Source: MNT-06.  Since: 0.1 */
TRP_API trp_system *trp_multinode_system(trp_multinode *test);
/* Borrow the reason of the last call that failed until the next call; "" when there was none.
 * Errors: none. Thread: owner. Source: MNT-08.  Since: 0.1 */
TRP_API const char *trp_multinode_reason(const trp_multinode *test);

/* Ask for the address of a role, which may be the own one; waits until that node has one.
 *
 * Ownership: borrows role.
 * Errors:    TRP_EINVAL     no such role
 *            TRP_ENOENT     that node is gone: take its address before
 *            TRP_ETIMEDOUT  not within the query timeout
 *            TRP_ECANCELED  the test has failed on another node
 * Thread:    owner; may block until the answer.
 * Source:    MNT-02, -06.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_address(trp_multinode *test, const char *role,
                                                     char ret_address[TRP_ADDRESS_BYTES]);
/* Find the actor at a path ("/user/ponger") of a role, again and again until it is there.
 *
 * Ownership: borrows role and path.
 * Errors:    those of trp_multinode_address() and trp_system_resolve()
 * Thread:    owner; may block until it is there or timeout_ms (times the time factor) have passed.
 * Source:    MNT-06, -15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_resolve(trp_multinode *test, const char *role,
                                                     const char *path, uint32_t timeout_ms,
                                                     trp_ref *ret_ref);

/* Wait until all nodes have come here, under the same name. A barrier fails at another name, when a
 * node is lost or has failed, and at its timeout; all later ones fail too then. A node whose end
 * was ordered is not waited for.
 *
 * Ownership: borrows name.
 * Errors:    TRP_ECANCELED  it failed; trp_multinode_reason() says why
 *            TRP_EINVAL     the name is empty or longer than TRP_MULTINODE_BARRIER_BYTES_MAX
 *            TRP_ETIMEDOUT  the conductor did not answer
 * Thread:    owner; may block until all are there or timeout_ms have passed (0: the barrier
 *            timeout; the shortest of all nodes counts).
 * Source:    MNT-06, -08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_barrier(trp_multinode *test, const char *name,
                                                     uint32_t timeout_ms);

/* ---- the conductor's: on the first node ------------------------------------------------------ */

/* Make the link of `role` to `target` bad, as seen by `role`, from now on. rule is what `troupe
 * fault` takes: "lose=10% delay=20ms"; "pass" ends it.
 *
 * Ownership: borrows all texts.
 * Errors:    TRP_EPERM      this is not the first node
 *            TRP_EINVAL     no such role or rule
 *            TRP_ESTATE     test_transport is off
 *            TRP_ENOENT     one of the two nodes is gone, or was never there
 *            TRP_ETIMEDOUT  not within the query timeout
 * Thread:    owner; may block until it is done.
 * Source:    MNT-02, -07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_fault(trp_multinode *test, const char *role,
                                                   const char *target,
                                                   trp_multinode_direction direction,
                                                   const char *rule);
/* Limit the rate of a link, in Mbit/s (of 125,000 bytes/s); 0 is a blackhole, less than 0 no limit.
 * Errors: as trp_multinode_fault(). Thread: owner; may block until it is done. Source: MNT-07, -09.
 * Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_throttle(trp_multinode *test, const char *role,
                                                      const char *target,
                                                      trp_multinode_direction direction,
                                                      double rate_mbit);
/* Let nothing pass.
 * Errors: as trp_multinode_fault(). Thread: owner; may block until it is done. Source: MNT-07.
 * Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_blackhole(trp_multinode *test, const char *role,
                                                       const char *target,
                                                       trp_multinode_direction direction);
/* Let everything pass again.
 * Errors: as trp_multinode_fault(). Thread: owner; may block until it is done. Source: MNT-07.
 * Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_pass_through(trp_multinode *test, const char *role,
                                                          const char *target,
                                                          trp_multinode_direction direction);
/* End the connections between role and target; they are made again when there is something to say.
 * Errors: as trp_multinode_fault(). Thread: owner; may block until it is done. Source: MNT-07.
 * Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_disconnect(trp_multinode *test, const char *role,
                                                        const char *target);
/* End the process of a role at once with this exit code, as a crash would. Nobody waits for it at
 * barriers from now on. It is gone within a tenth of a second.
 * Errors: as trp_multinode_fault(); TRP_EPERM for the first role. Thread: owner; may block
 * until it is ordered. Source: MNT-07, -10.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_exit(trp_multinode *test, const char *role, int code);
/* Stop the system of a role in good order; its process lives on, and finds out by
 * trp_multinode_await_end(). Nobody waits for it at barriers from now on.
 * Errors: as trp_multinode_exit(). Thread: owner; may block until it is ordered. Source: MNT-07.
 * Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_shutdown(trp_multinode *test, const char *role);
/* Wait for a role at barriers no longer.
 * Errors: as trp_multinode_exit(). Thread: owner; may block until it is done. Source: MNT-07.
 * Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_remove(trp_multinode *test, const char *role);
/* Write the roles that barriers wait for into names, a blank behind each.
 * Errors: as trp_multinode_fault(). Thread: owner; may block until the answer. Source: MNT-07
 * (getNodes).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_nodes(trp_multinode *test, char *ret_names,
                                                   size_t bytes);

/* ---- on a node whose shutdown is ordered ----------------------------------------------------- */

/* Wait until the system under test has ended, by order or by itself, then close the node.
 *
 * Errors:    TRP_ETIMEDOUT, TRP_ESTATE (there is no node)
 * Thread:    owner; may block until it has ended or timeout_ms (times the time factor) have passed.
 * Source:    MNT-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_await_end(trp_multinode *test, uint32_t timeout_ms);
/* Start a new node of this role, with a new uid, at the address of the one before (same_address) or
 * at any; barriers wait for it again.
 *
 * Errors:    TRP_ESTATE  there is a node; and those of trp_multinode_open()
 * Thread:    owner; may block until it is known to the conductor.
 * Source:    MNT-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_multinode_restart(trp_multinode *test, int same_address);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_MULTINODE_H */
