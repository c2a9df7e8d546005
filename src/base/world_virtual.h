/* world_virtual.h - a world of one seed: a clock that is set, random numbers that repeat, and
 * decisions that are recorded.
 */
#ifndef TRPI_BASE_WORLD_VIRTUAL_H
#define TRPI_BASE_WORLD_VIRTUAL_H

#include "base/world.h"

#define TRPI_CHOICES_MAX (16u * 1024u * 1024u) /* of one run; then it ends as if by its limit */

/* Before turn number `turn` the decision `what` was `value`; decisions that are not listed were 0.
 * Named by turn and kind, so that leaving one out does not change the meaning of the others.
 */
typedef struct trpi_deviation {
    uint32_t turn;
    uint16_t what; /* trpi_choice */
    uint16_t value;
} trpi_deviation;

typedef struct trpi_virtual_options {
    uint64_t seed;
    bool manual;                      /* the clock moves only by trpi_sched_pump(move) */
    bool calm;                        /* decide 0 always, but for the listed deviations */
    uint64_t turns_max;               /* 0: no limit; at the limit `ran` returns false */
    uint32_t stall_ms_max;            /* 0: time passes only when nothing is ready */
    const trpi_deviation *deviations; /* calm: in order of turn, stall before task before
                                          batch; borrowed while the world lives */
    uint32_t deviations_count;
    const struct trpi_net_ops *net; /* of its sockets; NULL: it has none */
} trpi_virtual_options;

typedef struct trpi_virtual trpi_virtual;

/* Errors: TRP_ENOMEM. Gives *ret_world: trpi_world_free(&...->world). */
trp_err trpi_virtual_new(const trpi_virtual_options *options, trpi_virtual **ret_virtual);
trpi_world *trpi_virtual_world(trpi_virtual *virt);
/* Return the decisions other than 0, in order. Borrowed until the next decision. */
const trpi_deviation *trpi_virtual_deviations(const trpi_virtual *virt, uint32_t *ret_count);
uint32_t trpi_virtual_choices(const trpi_virtual *virt); /* decisions so far, 0 or not */
uint64_t trpi_virtual_turns(const trpi_virtual *virt);
/* Return a hash of all decisions, turns and times so far, and of all values that were mixed in. */
uint64_t trpi_virtual_hash(const trpi_virtual *virt);
void trpi_virtual_mix(trpi_virtual *virt, uint64_t what);
/* turns_max was reached, or memory for the record ran out. */
bool trpi_virtual_is_over(const trpi_virtual *virt);
/* Decide 0 from here on, record nothing, and run without limit: for the clean-up after the run. */
void trpi_virtual_calm(trpi_virtual *virt);

#endif
