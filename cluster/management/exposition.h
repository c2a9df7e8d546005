/* exposition.h - figures of a node as Prometheus and OpenMetrics read them. Thread: any. */
#ifndef TRPI_MANAGEMENT_EXPOSITION_H
#define TRPI_MANAGEMENT_EXPOSITION_H

#include <stdbool.h>

#include "base/json.h"

/* Series of one node that name no peer; the rest is left out, and counted in
 * troupe_metrics_left_out. */
#define TRPI_MANAGEMENT_SERIES_MAX 300u
#define TRPI_MANAGEMENT_PEER_SERIES_MAX 8u   /* of one peer: families with the label "peer" */
#define TRPI_MANAGEMENT_LABEL_BYTES_MAX 128u /* of a value; a longer one is cut */

#define TRPI_MANAGEMENT_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define TRPI_MANAGEMENT_OPENMETRICS_TYPE                                                           \
    "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Does a client that sends this Accept header read OpenMetrics? NULL: it does not. */
bool trpi_management_accepts_openmetrics(const char *accept);

/* Write families ([{"name","type","help","samples":[{"labels":{},"value":1}]}], of a
 * histogram "buckets":[{"le":1,"count":1}],"sum":1,"count":1) as text. A family
 * or sample that is malformed is left out. NULL: no memory; else cJSON_free(). */
char *trpi_management_exposition(const cJSON *families, bool openmetrics);

#endif
