/* otlp.h - the export of traces: what this node has kept of them goes to a collector, as
 * OpenTelemetry's OTLP over HTTP, in JSON. */
#ifndef TRPI_NODE_OTLP_H
#define TRPI_NODE_OTLP_H

#include "cluster/node/node_private.h"

#define TRPI_OTLP_SPANS_MAX 512u       /* in one request */
#define TRPI_OTLP_TIMEOUT_MS 10000u    /* of one request */
#define TRPI_OTLP_END_MS 2000u         /* of all of them, when the node ends */
#define TRPI_OTLP_INTERVAL_S_DEFAULT 5 /* trace.otlp-interval */

typedef struct trpi_otlp trpi_otlp;
typedef struct trpi_otlp_counts {
    uint64_t sent, dropped; /* spans; dropped: overwritten before the collector took them */
    uint64_t failures;      /* requests that the collector did not take */
} trpi_otlp_counts;

/* Check trace.otlp-endpoint. Errors: TRP_ECONFIG. */
trp_err trpi_otlp_check(const trpi_config *config, trpi_config_error *ret_error);
/* Start the thread, where trace.otlp-endpoint is set; else *ret_otlp is NULL. Errors: TRP_ECONFIG
 * (no libcurl), TRP_ENOMEM. */
trp_err trpi_otlp_start(trp_node *node, trpi_otlp **ret_otlp, trp_node_error *ret_error);
/* Send what there is, unless the collector does not answer: at most TRP_TRACE_HOPS_MAX messages and
 * for TRPI_OTLP_END_MS, whatever goes on meanwhile; end the thread. The system still runs. NULL
 * is fine. */
void trpi_otlp_stop(trpi_otlp *otlp);
/* Behind trpi_otlp_stop(), when nobody counts any more. NULL is fine. */
void trpi_otlp_free(trpi_otlp *otlp);
/* Thread: any. NULL: all 0. */
trpi_otlp_counts trpi_otlp_count(trpi_otlp *otlp);

#endif
