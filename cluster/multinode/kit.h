/* kit.h - declarations that the files of the kit share: a node of a test, from the inside. */
#ifndef TRPI_MULTINODE_KIT_H
#define TRPI_MULTINODE_KIT_H

#include <pthread.h>
#include <stdbool.h>

#include <troupe/cluster.h>
#include <troupe/multinode.h>

#include "cluster/multinode/barrier.h"
#include "cluster/multinode/protocol.h"

#define TRPI_MULTINODE_SETTINGS_MAX 200
#define TRPI_MULTINODE_WHY_BYTES 768

/* The place of this process in the test: the variables MULTINODE_*. */
typedef struct trpi_multinode_place {
    uint32_t index, nodes_max;
    char host[256], server_host[256];
    uint16_t port, server_port;
    double timefactor; /* all limits are multiplied by it */
    bool listing;      /* only print the names of the roles */
} trpi_multinode_place;

/* place.c. Errors: TRP_ENOENT (no MULTINODE_INDEX), TRP_EINVAL; why says what to do. */
trp_err trpi_multinode_place_read(uint32_t roles_count, trpi_multinode_place *ret_place,
                                  char why[TRPI_MULTINODE_WHY_BYTES]);

struct trp_multinode {
    uint64_t magic;
    trp_multinode_options options; /* borrowed texts */
    trpi_multinode_place place;
    trpi_multinode_plan plan;
    const char *roles[TRPI_BARRIER_NODES_MAX];
    trp_node *control; /* the system that is not under test */
    trp_ref player, conductor;
    uint16_t port_before;               /* of the first node under test here */
    char why[TRPI_MULTINODE_WHY_BYTES]; /* of the last call that failed */

    pthread_mutex_t lock;
    trp_node *node; /* with lock: the test's thread replaces it, the player uses it */
    bool closing;   /* with lock */
    bool released;  /* with lock: released by order, no node waits for this one any more */
};

/* multinode.c. Put a sentence into test->why; returns err. */
trp_err trpi_multinode_refuse(trp_multinode *test, trp_err err, const char *format, ...)
    TRP_PRINTF(3, 4);
uint32_t trpi_multinode_stretched(const trp_multinode *test, uint32_t ms); /* by the time factor */
trpi_multinode_call trpi_multinode_call_of(enum trpi_multinode_verb verb);
/* ret_text: 512 bytes for the text of the answer; NULL: not wanted. Errors: the answer's, and those
 * of trp_system_ask(). */
trp_err trpi_multinode_ask(trp_multinode *test, trp_ref to, trpi_multinode_call *call,
                           uint32_t timeout_ms, char *ret_text);

/* life.c. End this process at once, as a crash would, but flush its output. */
TRP_NORETURN void trpi_multinode_end(int code);

/* settings.c. Gives the settings of the node under test as one list, @role@ replaced by the address
 * of that role (trpi_multinode_settings_free). Errors: TRP_ENOMEM, TRP_ELIMIT, TRP_EINVAL, and
 * those of the question for an address. */
trp_err trpi_multinode_settings_make(trp_multinode *test, char ***ret_settings);
void trpi_multinode_settings_free(char **settings); /* NULL is fine */

/* player.c. Its argument (trp_bytes_type) is a pointer to the trp_multinode. */
extern const trp_behaviour trpi_player_behaviour;

#endif
