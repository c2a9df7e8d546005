/* span_json.h - a hop of a trace as a span of OTLP in JSON: one form for the export of a node and
 * for `troupe trace --format otlp`. */
#ifndef TRPI_BASE_SPAN_JSON_H
#define TRPI_BASE_SPAN_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

typedef struct trpi_span {
    const char *trace_id, *span_id; /* hexadecimal */
    const char *parent_id;          /* "": it has none */
    const char *name;               /* the type of the message */
    const char *actor;
    const char *failure; /* NULL: it was handled */
    uint64_t begun_ns, run_ns;
    uint32_t attempt; /* 0: not one of a delivery that is repeated */
} trpi_span;

/* Append the span to the list. false: out of memory. */
bool trpi_span_add(cJSON *list, const trpi_span *span);
/* Append what a member is, by its full address, to the list resourceSpans; *ret_spans is the list
 * of its spans, borrowed. false: out of memory. */
bool trpi_span_resource_add(cJSON *list, const char *member, cJSON **ret_spans);

#endif
