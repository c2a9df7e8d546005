/* schedule.h - a schedule of actions on a simulated cluster, drawn from a seed or read from a file.
 * Both are the same list, so that the schedule of a seed can be printed, shrunk and kept.
 *
 * A line of a file is `TIME ACTION ARGUMENTS`; sim/README.md lists them. Times count from the
 * moment when all nodes have been Up and seen for the first time.
 */
#ifndef TRPI_CLUSTER_SIM_SCHEDULE_H
#define TRPI_CLUSTER_SIM_SCHEDULE_H

#include <stdio.h>

#include "cluster/sim/sim.h"

#define TRPI_SIM_ACTIONS_MAX 10000u
#define TRPI_SIM_LINE_BYTES_MAX 10200u /* a cut of TRPI_SIM_NODES_MAX nodes fits */
#define TRPI_SIM_TIME_MS_MAX 86400000u

typedef enum trpi_sim_act {
    /* settings: at 0s, before any node starts */
    TRPI_SIM_STABLE_AFTER = 0,
    TRPI_SIM_UNSTABLE_AFTER,
    TRPI_SIM_DOWNING,
    TRPI_SIM_QUORUM,
    TRPI_SIM_MONITORED_BY,
    TRPI_SIM_MIN_MEMBERS,
    TRPI_SIM_DELAY,
    TRPI_SIM_BUGGIFY,
    TRPI_SIM_EXITING_TAKES, /* a leaving node hands over for so long, before it confirms */
    TRPI_SIM_COMPLETE,      /* complete nodes, their operator, and what the nodes say */
    TRPI_SIM_CAREFUL,       /* nothing that makes two clusters by itself, whatever the strategy */
    TRPI_SIM_SUPERVISED,    /* a node that has ended is started again, as systemd would */
    /* faults */
    TRPI_SIM_KILL,
    TRPI_SIM_START,
    TRPI_SIM_PAUSE,
    TRPI_SIM_LEAVE,
    TRPI_SIM_DOWN,
    TRPI_SIM_CUT,
    TRPI_SIM_LINK,
    TRPI_SIM_HEAL,
    TRPI_SIM_LOSS,
    TRPI_SIM_DUPLICATE,
    TRPI_SIM_CORRUPT,
    TRPI_SIM_SKEW,
    /* of complete nodes only */
    TRPI_SIM_JOIN,       /* a is ordered to join b */
    TRPI_SIM_SHUTDOWN,   /* a is ordered to end the whole cluster */
    TRPI_SIM_LEAVE_BACK, /* as LEAVE and DOWN; the order is taken back after ms */
    TRPI_SIM_DOWN_BACK,
    TRPI_SIM_PORT,          /* a cannot be dialled; its connections go on */
    TRPI_SIM_DIAL,          /* a cannot dial b */
    TRPI_SIM_RESET,         /* connections of a break */
    TRPI_SIM_ROTATE,        /* a takes the next step of the cookie's rotation */
    TRPI_SIM_STRANGERS,     /* b connections to a that say nothing */
    TRPI_SIM_SLOW,          /* an actor of a is slow, and all others tell it much */
    TRPI_SIM_START_ALONE,   /* without seeds: it waits for a join */
    TRPI_SIM_START_WRONG,   /* with an address where no node listens */
    TRPI_SIM_START_DOUBLED, /* with the address of b */
    TRPI_SIM_END,           /* all faults end */
    TRPI_SIM_ACTS
} trpi_sim_act;

typedef struct trpi_sim_action {
    uint64_t at_ms;
    trpi_sim_act act;
    uint32_t a, b;   /* nodes; a count; per mille; on is 1 */
    int64_t ms, ms2; /* durations */
    bool one_way;
    char *text; /* a side for each node, '0' or '1'; the name of a strategy */
} trpi_sim_action;

typedef struct trpi_sim_schedule {
    trpi_sim_action *actions; /* in order of time */
    uint32_t count, room;
} trpi_sim_schedule;

void trpi_sim_schedule_free(trpi_sim_schedule *schedule); /* NULL is fine */
/* Takes action.text, also when it fails. Errors: TRP_ENOMEM, TRP_ELIMIT. */
trp_err trpi_sim_schedule_add(trpi_sim_schedule *schedule, trpi_sim_action action);
/* A copy without actions[from .. from + count). NULL: no memory. */
trpi_sim_schedule *trpi_sim_schedule_without(const trpi_sim_schedule *schedule, uint32_t from,
                                             uint32_t count);

/* Read a file for so many nodes. Errors: TRP_ECONFIG (error has "line 3: ..."), TRP_ENOMEM. */
trp_err trpi_sim_schedule_read(FILE *file, uint32_t nodes, trpi_sim_schedule **ret_schedule,
                               char *error, size_t error_bytes);
/* Draw the schedule of a swarm with this seed. NULL: no memory. */
trpi_sim_schedule *trpi_sim_schedule_draw(uint32_t nodes, uint64_t seed, uint64_t until_ms);
/* The same of complete nodes: schedule_complete.c. */
trpi_sim_schedule *trpi_sim_schedule_draw_complete(uint32_t nodes, uint64_t seed,
                                                   uint64_t until_ms);
bool trpi_sim_schedule_is_complete(const trpi_sim_schedule *schedule);
void trpi_sim_schedule_write(const trpi_sim_schedule *schedule, FILE *file);
/* One action as a line without its end; returns text. */
const char *trpi_sim_action_text(const trpi_sim_action *action, char *text, size_t bytes);

/* "500ms", "5s", "2m", at most a day. */
bool trpi_sim_duration(const char *word, int64_t *ret_ms);

/* Take away whatever the failure does not need. *schedule, which fails, is replaced by a shorter
 * one that fails in the same way; ret_result is that one's. Errors: TRP_ENOMEM, TRP_EINVAL. */
trp_err trpi_sim_shrink(const trpi_sim_options *options, trpi_sim_schedule **schedule,
                        trpi_sim_result *ret_result);

#endif
