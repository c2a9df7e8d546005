/* span_json.c - see span_json.h.
 *
 * Tests.   tests/system/otlp.sh, tests/unit/node/otlp_test.c
 * Sources. OpenTelemetry protocol 1.x, OTLP/HTTP in JSON: ids are hexadecimal, times are texts.
 */
#include "base/span_json.h"

#include <stdio.h>

enum { KIND_CONSUMER = 5, STATUS_UNSET = 0, STATUS_ERROR = 2 };

static bool
attribute_add(cJSON *list, const char *key, const char *kind, const char *value)
{
    cJSON *row = cJSON_CreateObject(), *of = NULL;
    bool ok = trpi_json_add_text(row, "key", key) &&
              (of = cJSON_AddObjectToObject(row, "value")) != NULL &&
              trpi_json_add_text(of, kind, value);
    return trpi_json_append(list, row, ok);
}

static bool
attempt_add(cJSON *attributes, uint32_t attempt)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", attempt);
    return attempt == 0 || attribute_add(attributes, "troupe.attempt", "intValue", text);
}

bool
trpi_span_add(cJSON *list, const trpi_span *s)
{
    cJSON *span = cJSON_CreateObject(), *attributes = NULL, *status = NULL;
    bool ok = trpi_json_add_text(span, "traceId", s->trace_id) &&
              trpi_json_add_text(span, "spanId", s->span_id) &&
              (s->parent_id[0] == '\0' || trpi_json_add_text(span, "parentSpanId", s->parent_id)) &&
              trpi_json_add_text(span, "name", s->name) &&
              trpi_json_add_i64(span, "kind", KIND_CONSUMER) &&
              trpi_json_add_u64_string(span, "startTimeUnixNano", s->begun_ns) &&
              trpi_json_add_u64_string(span, "endTimeUnixNano", s->begun_ns + s->run_ns) &&
              (attributes = cJSON_AddArrayToObject(span, "attributes")) != NULL &&
              attribute_add(attributes, "troupe.actor", "stringValue", s->actor) &&
              attempt_add(attributes, s->attempt) &&
              (status = cJSON_AddObjectToObject(span, "status")) != NULL &&
              trpi_json_add_i64(status, "code", s->failure == NULL ? STATUS_UNSET : STATUS_ERROR) &&
              (s->failure == NULL || trpi_json_add_text(status, "message", s->failure));
    return trpi_json_append(list, span, ok);
}

bool
trpi_span_resource_add(cJSON *list, const char *member, cJSON **ret_spans)
{
    cJSON *row = cJSON_CreateObject(), *scope = cJSON_CreateObject();
    cJSON *attributes =
        cJSON_AddArrayToObject(cJSON_AddObjectToObject(row, "resource"), "attributes");
    cJSON *scopes = cJSON_AddArrayToObject(row, "scopeSpans");
    *ret_spans = cJSON_AddArrayToObject(scope, "spans");
    bool ok = attributes != NULL && scopes != NULL && *ret_spans != NULL &&
              attribute_add(attributes, "service.name", "stringValue", "troupe") &&
              attribute_add(attributes, "service.instance.id", "stringValue", member);
    ok = trpi_json_append(scopes, scope, ok);
    return trpi_json_append(list, row, ok);
}
