/* shrink.c - a list of faults cut down to what a failure needs.
 *
 * Tests. tests/unit/cluster/schedule_test.c
 */
#include <string.h>

#include "cluster/sim/schedule.h"

#define SHRINK_RUNS_MAX 3000u

/* Return whether both fail in one way: with one label, "t=1.234s: LABEL: ..." */
static bool
fails_alike(const trpi_sim_result *a, const trpi_sim_result *b)
{
    const char *x = strchr(a->failure, ' ');
    const char *y = strchr(b->failure, ' ');
    return a->failed && b->failed && x != NULL && y != NULL &&
           strncmp(x, y, strcspn(x + 1, ":") + 1) == 0;
}

trp_err
trpi_sim_shrink(const trpi_sim_options *options, trpi_sim_schedule **schedule,
                trpi_sim_result *ret_result)
{
    trpi_sim_options o = *options;
    o.trace = NULL;
    o.schedule = *schedule;
    trp_err err = trpi_sim_run(&o, ret_result);
    uint32_t runs = 0;
    uint32_t settings = 0; /* stay: without them it is another cluster */
    while (settings < (*schedule)->count &&
           (*schedule)->actions[settings].act <= TRPI_SIM_SUPERVISED) {
        settings++;
    }
    for (uint32_t chunk = (*schedule)->count; chunk > 0 && err == TRP_OK; chunk /= 2) {
        uint32_t from = settings;
        for (; from < (*schedule)->count && runs < SHRINK_RUNS_MAX; runs++) {
            trpi_sim_schedule *shorter = trpi_sim_schedule_without(*schedule, from, chunk);
            trpi_sim_result result;
            o.schedule = shorter;
            err = shorter == NULL ? TRP_ENOMEM : trpi_sim_run(&o, &result);
            if (err == TRP_OK && fails_alike(&result, ret_result)) {
                trpi_sim_schedule_free(*schedule);
                *schedule = shorter;
                *ret_result = result;
            } else {
                trpi_sim_schedule_free(shorter);
                from += chunk;
            }
            if (err != TRP_OK) {
                return err;
            }
        }
    }
    return err;
}
