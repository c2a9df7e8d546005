/* figures.h - figures as families of series, which the management API writes as text. */
#ifndef TRPI_NODE_FIGURES_H
#define TRPI_NODE_FIGURES_H

#include "actor/actor.h"
#include "base/json.h"
#include "cluster/node/node_private.h"

/* A list of families that is being filled; ok false: there was no memory. */
typedef struct trpi_figures {
    cJSON *families;
    cJSON *samples; /* of the last family */
    bool ok;
} trpi_figures;

/* Begin a family: a counter if its name ends in _total, else a gauge. */
void trpi_figures_family(trpi_figures *figures, const char *name, const char *help);
/* Add a series with two labels; NULL: it has only one, or none. */
void trpi_figures_sample(trpi_figures *figures, const char *label, const char *value,
                         const char *label_2, const char *value_2, double number);
/* A family with one series without labels. */
void trpi_figures_single(trpi_figures *figures, const char *name, const char *help, double number);
/* A histogram of times in seconds. */
void trpi_figures_times(trpi_figures *figures, const char *name, const char *help,
                        const trpi_observed_times *times);

typedef double (*trpi_figures_value)(const trpi_observed_name *name);
/* Add a series for each of the first `max` names, and one "other" with the sum of all others; no
 * "other" where there are none. */
void trpi_figures_names(trpi_figures *figures, const char *label, const trpi_observed_names *names,
                        uint32_t max, trpi_figures_value value);

/* control_metrics_parts.c: journal, shards, topics; control_metrics_actors.c: actors as they were
 * seen by the last walk. names_max: management.metrics-names. */
void trpi_figures_parts(trp_node *node, trpi_figures *figures, uint32_t names_max);
void trpi_figures_actors(trp_node *node, trpi_figures *figures, uint32_t names_max);

#endif
