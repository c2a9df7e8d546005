/* openapi.c - openapi.json, written from the table of routes, so that it tells what is served.
 *
 * Tests.   tests/unit/management/answers_test.c
 * Sources. OpenAPI Specification 3.0.3.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cluster/management/forward.h"
#include "cluster/management/routes.h"

static bool
parameter_add(cJSON *list, const char *name, size_t bytes, const char *in)
{
    char text[32];
    cJSON *row = cJSON_CreateObject(), *schema = NULL;
    (void)snprintf(text, sizeof text, "%.*s", (int)bytes, name);
    bool ok = trpi_json_add_text(row, "name", text) && trpi_json_add_text(row, "in", in) &&
              trpi_json_add_bool(row, "required", strcmp(in, "path") == 0);
    schema = ok ? cJSON_AddObjectToObject(row, "schema") : NULL;
    return trpi_json_append(list, row,
                            schema != NULL && trpi_json_add_text(schema, "type", "string"));
}

static bool
parameters_add(cJSON *operation, const trpi_management_route *route)
{
    const char *brace = strchr(route->path, '{');
    cJSON *list = cJSON_AddArrayToObject(operation, "parameters");
    bool ok = list != NULL &&
              (brace == NULL || parameter_add(list, brace + 1, strcspn(brace + 1, "}"), "path"));
    /* else in the body */
    bool in_query = strcmp(route->method, "GET") == 0 || route->operation == TRPI_MANAGEMENT_TELL;
    for (const char *at = route->query; ok && in_query && *at != '\0';) {
        size_t bytes = strcspn(at, " ");
        ok = parameter_add(list, at, bytes, "query");
        at += bytes + (at[bytes] == ' ');
    }
    return ok;
}

static bool
form_add(cJSON *operation, const char *field)
{
    cJSON *body = cJSON_AddObjectToObject(operation, "requestBody");
    bool ok = trpi_json_add_bool(body, "required", true);
    cJSON *content = ok ? cJSON_AddObjectToObject(body, "content") : NULL;
    cJSON *media = content != NULL
                       ? cJSON_AddObjectToObject(content, "application/x-www-form-urlencoded")
                       : NULL;
    cJSON *schema = media != NULL ? cJSON_AddObjectToObject(media, "schema") : NULL;
    ok = trpi_json_add_text(schema, "type", "object");
    cJSON *required = ok ? cJSON_AddArrayToObject(schema, "required") : NULL;
    ok = required != NULL && cJSON_AddItemToArray(required, cJSON_CreateString(field));
    cJSON *properties = ok ? cJSON_AddObjectToObject(schema, "properties") : NULL;
    cJSON *property = properties != NULL ? cJSON_AddObjectToObject(properties, field) : NULL;
    return trpi_json_add_text(property, "type", "string");
}

static bool
response_add(cJSON *responses, const char *status, const char *what)
{
    cJSON *response = cJSON_AddObjectToObject(responses, status);
    return trpi_json_add_text(response, "description", what);
}

/* Describe the JSON of a forwarded write. */
static bool
json_add(cJSON *operation, const trpi_management_route *route)
{
    static const char *const types[] = { [TRPI_MANAGEMENT_NO_FIELD] = "string",
                                         [TRPI_MANAGEMENT_TEXT] = "string",
                                         [TRPI_MANAGEMENT_FLAG] = "boolean",
                                         [TRPI_MANAGEMENT_NUMBER] = "integer",
                                         [TRPI_MANAGEMENT_LIST] = "array" };
    cJSON *body = cJSON_AddObjectToObject(operation, "requestBody");
    cJSON *content = body != NULL ? cJSON_AddObjectToObject(body, "content") : NULL;
    cJSON *media = content != NULL ? cJSON_AddObjectToObject(content, "application/json") : NULL;
    cJSON *schema = media != NULL ? cJSON_AddObjectToObject(media, "schema") : NULL;
    cJSON *properties = trpi_json_add_text(schema, "type", "object")
                            ? cJSON_AddObjectToObject(schema, "properties")
                            : NULL;
    bool ok = properties != NULL;
    for (const char *at = route->query; ok && *at != '\0';) {
        char name[32];
        size_t bytes = strcspn(at, " ");
        trpi_management_field kind = trpi_management_field_of(at, bytes);
        (void)snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        cJSON *property = cJSON_AddObjectToObject(properties, name);
        ok = trpi_json_add_text(property, "type", types[kind]);
        cJSON *items =
            ok && kind == TRPI_MANAGEMENT_LIST ? cJSON_AddObjectToObject(property, "items") : NULL;
        ok = ok && (kind != TRPI_MANAGEMENT_LIST || trpi_json_add_text(items, "type", "string"));
        at += bytes + (at[bytes] == ' ');
    }
    return ok;
}

/* Describe the body of a message. */
static bool
message_add(cJSON *operation)
{
    static const char *const media[] = { "text/plain", "application/json",
                                         "application/octet-stream" };
    cJSON *body = cJSON_AddObjectToObject(operation, "requestBody");
    cJSON *content = body != NULL ? cJSON_AddObjectToObject(body, "content") : NULL;
    bool ok = content != NULL;
    for (size_t i = 0; ok && i < sizeof media / sizeof media[0]; i++) {
        ok = cJSON_AddObjectToObject(content, media[i]) != NULL;
    }
    return ok;
}

/* Return the status of an answer that says no; NULL: there is none of its own. */
static const char *
no_of(trpi_management_operation operation)
{
    switch (operation) {
    case TRPI_MANAGEMENT_READY:
    case TRPI_MANAGEMENT_ALIVE:
    case TRPI_MANAGEMENT_EVENTS:
        return "503";
    case TRPI_MANAGEMENT_AKKA_READY:
    case TRPI_MANAGEMENT_AKKA_ALIVE:
        return "500";
    case TRPI_MANAGEMENT_TELL:
        return "504";
    default:
        return NULL;
    }
}

static bool
operation_fill(cJSON *operation, const trpi_management_route *route)
{
    bool is_write = route->class == TRPI_MANAGEMENT_WRITE;
    bool ok =
        trpi_json_add_text(operation, "summary", route->summary) &&
        parameters_add(operation, route) &&
        (route->field == NULL || form_add(operation, route->field)) &&
        (!is_write || route->operation != TRPI_MANAGEMENT_FORWARD || json_add(operation, route)) &&
        (route->operation != TRPI_MANAGEMENT_TELL || message_add(operation));
    cJSON *responses = ok ? cJSON_AddObjectToObject(operation, "responses") : NULL;
    ok = responses != NULL && response_add(responses, "200", "Done.") &&
         response_add(responses, "401", "No credential that is known.") &&
         response_add(responses, "403", "Another Host or Origin, or a reader's credential.");
    if (ok && (is_write || strchr(route->path, '{') != NULL)) {
        ok = response_add(responses, "404",
                          is_write ? "No such member or actor, or management.read-only is on."
                                   : "No such member or type.");
    }
    const char *status = no_of(route->operation);
    ok = ok && (status == NULL || response_add(responses, status,
                                               "A check has failed, or try "
                                               "again."));
    bool needs = route->class == TRPI_MANAGEMENT_PROTECTED || route->class == TRPI_MANAGEMENT_WRITE;
    cJSON *security = ok && needs ? cJSON_AddArrayToObject(operation, "security") : NULL;
    if (security != NULL) {
        cJSON *entry = cJSON_CreateObject();
        ok = trpi_json_append(security, entry,
                              entry != NULL && cJSON_AddArrayToObject(entry, "token") != NULL);
    }
    return ok && (!needs || security != NULL);
}

static const char *
method_key(const char *method)
{
    return strcmp(method, "GET") == 0    ? "get"
           : strcmp(method, "POST") == 0 ? "post"
           : strcmp(method, "PUT") == 0  ? "put"
                                         : "delete";
}

static bool
paths_fill(cJSON *paths)
{
    bool ok = paths != NULL;
    for (const trpi_management_route *r = trpi_management_routes(); ok && r->method != NULL; r++) {
        cJSON *path = cJSON_GetObjectItemCaseSensitive(paths, r->path);
        path = path != NULL ? path : cJSON_AddObjectToObject(paths, r->path);
        cJSON *operation =
            path != NULL ? cJSON_AddObjectToObject(path, method_key(r->method)) : NULL;
        ok = operation != NULL && operation_fill(operation, r);
    }
    return ok;
}

char *
trpi_management_openapi(void)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = trpi_json_add_text(json, "openapi", "3.0.3");
    cJSON *info = ok ? cJSON_AddObjectToObject(json, "info") : NULL;
    ok = trpi_json_add_text(info, "title", "Troupe management") &&
         trpi_json_add_text(info, "version", trp_version()) &&
         paths_fill(cJSON_AddObjectToObject(json, "paths"));
    cJSON *components = ok ? cJSON_AddObjectToObject(json, "components") : NULL;
    cJSON *schemes =
        components != NULL ? cJSON_AddObjectToObject(components, "securitySchemes") : NULL;
    cJSON *token = schemes != NULL ? cJSON_AddObjectToObject(schemes, "token") : NULL;
    ok = trpi_json_add_text(token, "type", "http") && trpi_json_add_text(token, "scheme", "bearer");
    char *text = ok ? trpi_json_print(json) : NULL;
    cJSON_Delete(json);
    return text;
}
