/* control_metrics_actors.c - figures of actors, as the last walk over them saw them.
 *
 * Must hold.
 *   control-metrics-A1  Before the first walk has ended its figures are absent, not zero.
 * Tests.   tests/system/metrics.sh
 */
#include "base/alloc.h"
#include "cluster/node/figures.h"

static double
actors_of(const trpi_observed_name *name)
{
    return (double)name->actors;
}

static double
active_of(const trpi_observed_name *name)
{
    return (double)name->active;
}

static double
count_of(const trpi_observed_name *name)
{
    return (double)name->count;
}

static void
restarts_add(trp_node *node, trpi_figures *f, trpi_observed_names *names, uint32_t max)
{
    trpi_system_restarts(node->system, names);
    trpi_figures_family(f, "troupe_actor_restarts_total",
                        "Restarts of actors by their supervisors, by the first two elements of "
                        "their paths.");
    trpi_figures_names(f, "path_group", names, max, count_of);
}

/* Of the dispatchers that are not shown by name the most saturated one counts. */
static void
saturation_add(trpi_figures *f, const trpi_observed_names *names, uint32_t max)
{
    double greatest = 0;
    bool others = false;
    trpi_figures_family(f, "troupe_dispatcher_saturation_ratio",
                        "Share of samples in which a dispatcher's threads ran something; of the "
                        "others the greatest.");
    for (uint32_t i = 0; i <= names->count; i++) {
        const trpi_observed_name *name = i < names->count ? &names->entries[i] : &names->others;
        if (i < max && i < names->count && name->sampled) {
            trpi_figures_sample(f, "dispatcher", name->name, NULL, NULL, name->busy);
        } else if (name->sampled) {
            others = true;
            greatest = name->busy > greatest ? name->busy : greatest;
        }
    }
    if (others) {
        trpi_figures_sample(f, "dispatcher", "other", NULL, NULL, greatest);
    }
}

static void
walk_add(trpi_figures *f, const trpi_observed *seen, uint32_t max)
{
    trpi_figures_single(f, "troupe_metrics_walk_age_seconds",
                        "Age of the figures that a walk over the actors made.",
                        (double)seen->age_ns / 1e9);
    trpi_figures_single(f, "troupe_metrics_walk_seconds", "How long that walk took, with pauses.",
                        (double)seen->walk_ns / 1e9);
    trpi_figures_single(f, "troupe_metrics_walk_slice_seconds", "The longest slice of that walk.",
                        (double)seen->slice_ns_max / 1e9);
    trpi_figures_single(f, "troupe_actors_active", "Actors that run, or for which messages wait.",
                        (double)seen->active);
    trpi_figures_single(f, "troupe_actors_suspended",
                        "Actors that wait for the decision of their supervisor.",
                        (double)seen->suspended);
    trpi_figures_single(f, "troupe_actors_overloaded",
                        "Actors whose mailboxes were not empty after a full turn.",
                        (double)seen->overloaded);
    trpi_figures_single(f, "troupe_mailbox_depth_max",
                        "Messages in the deepest mailbox that was looked into.",
                        (double)seen->depth_max);
    trpi_figures_single(f, "troupe_mailbox_age_seconds_max",
                        "For how long at least a message waits in the slowest mailbox.",
                        (double)seen->age_ns_max / 1e9);
    saturation_add(f, &seen->dispatchers, max);
    trpi_figures_family(f, "troupe_dispatcher_actors_active", "Active actors, by dispatcher.");
    trpi_figures_names(f, "dispatcher", &seen->dispatchers, max, active_of);
    trpi_figures_family(f, "troupe_behaviour_actors", "Actors, by behaviour.");
    trpi_figures_names(f, "behaviour", &seen->behaviours, max, actors_of);
}

void
trpi_figures_actors(trp_node *node, trpi_figures *figures, uint32_t names_max)
{
    trpi_observed *seen = trpi_alloc(sizeof *seen);
    if (seen == NULL) {
        figures->ok = false;
        return;
    }
    restarts_add(node, figures, &seen->behaviours, names_max);
    if (trpi_system_observe(node->system, seen) == TRP_OK) { /* else it stops */
        trpi_figures_times(figures, "troupe_message_wait_seconds",
                           "How long messages waited in mailboxes, sampled.", &seen->wait);
        trpi_figures_times(figures, "troupe_message_run_seconds",
                           "How long behaviours took for a message, sampled.", &seen->run);
        if (seen->complete) {
            walk_add(figures, seen, names_max);
        }
    }
    trpi_free(seen);
}
