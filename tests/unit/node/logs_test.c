/* logs_test.c - the last lines of a node's log, as `troupe logs` shows them. */
#include "tests/unit/node/inside.h"

static trp_node *
node_with_socket(void)
{
    char path[128];
    socket_setting(path, sizeof path);
    const char *extra[] = { "cluster.seed-nodes=self", "cluster.control-socket=on", path,
                            "log.level=debug", NULL };
    return up(extra);
}

/* The line whose body begins with text; NULL: none. */
static const cJSON *
line_find(const cJSON *reply, const char *text)
{
    const cJSON *line;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(reply, "lines"))
    {
        if (strncmp(trpi_json_get_text(line, "body"), text, strlen(text)) == 0) {
            return line;
        }
    }
    return NULL;
}

static cJSON *
ask(const trp_node *node, const char *request)
{
    cJSON *reply = control_ask(trp_node_control_path(node), request);
    UNIT_REQUIRE(reply != NULL);
    return reply;
}

static void
lines_log(trp_node *node)
{
    trp_system *system = trp_node_system(node);
    trp_system_log(system, TRP_LOG_WARNING, "vault", "the vault is open door=\"number 7\" by=ann");
    trp_system_log(system, TRP_LOG_INFO, "vault.door", "the door turns");
    trp_system_log(system, TRP_LOG_ERROR, "vaulted", "the roof leaks");
    trp_system_log(system, TRP_LOG_DEBUG, "vault", "the last line");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
}

/* Source: OpenTelemetry, Logs Data Model: severity numbers, names of fields */
static void
a_line_has_the_fields_of_opentelemetry(void)
{
    trp_node *node = node_with_socket();
    lines_log(node);
    cJSON *reply = ask(node, "{\"cmd\":\"logs\",\"count\":20}");
    const cJSON *line = line_find(reply, "the vault is open");
    UNIT_REQUIRE(line != NULL);
    const cJSON *attributes = cJSON_GetObjectItem(line, "attributes");
    UNIT_TEXT(trpi_json_get_text(line, "severityText"), "warning");
    UNIT_EQUAL(cJSON_GetObjectItem(line, "severityNumber")->valueint, 13);
    UNIT_TEXT(trpi_json_get_text(cJSON_GetObjectItem(line, "scope"), "name"), "vault");
    UNIT_TEXT(trpi_json_get_text(attributes, "door"), "number 7");
    UNIT_TEXT(trpi_json_get_text(attributes, "by"), "ann");
    UNIT_EQUAL(strlen(trpi_json_get_text(line, "timestamp")), strlen("2026-11-20T12:01:46.000Z"));
    static const struct {
        const char *body;
        int number;
    } others[] = { { "the door turns", 9 }, { "the roof leaks", 17 }, { "the last line", 5 } };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        line = line_find(reply, others[i].body);
        UNIT_REQUIRE(line != NULL);
        UNIT_EQUAL(cJSON_GetObjectItem(line, "severityNumber")->valueint, others[i].number);
    }
    cJSON_Delete(reply);
    trp_node_close(node);
}

static void
lines_are_chosen_by_level_and_component(void)
{
    trp_node *node = node_with_socket();
    lines_log(node);
    cJSON *reply = ask(node, "{\"cmd\":\"logs\",\"component\":\"vault\"}");
    UNIT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(reply, "lines")), 3);
    UNIT_TRUE(line_find(reply, "the roof leaks") == NULL); /* vaulted is another one */
    cJSON_Delete(reply);
    reply = ask(node, "{\"cmd\":\"logs\",\"component\":\"vault\",\"level\":\"info\"}");
    UNIT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(reply, "lines")), 2);
    UNIT_TRUE(line_find(reply, "the last line") == NULL);
    cJSON_Delete(reply);
    reply = ask(node, "{\"cmd\":\"logs\",\"component\":\"vault\",\"level\":\"info\",\"count\":1}");
    UNIT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(reply, "lines")), 1);
    UNIT_TRUE(line_find(reply, "the door turns") != NULL); /* the last one that is wanted */
    cJSON_Delete(reply);
    reply = ask(node, "{\"cmd\":\"logs\",\"level\":\"loud\"}");
    UNIT_TEXT(trpi_json_get_text(reply, "error"),
              "field 'level': expected error, warning, info or debug");
    cJSON_Delete(reply);
    /* lines that are not wanted do not end the wait */
    reply = ask(node, "{\"cmd\":\"logs\",\"component\":\"nobody\",\"follow\":true,"
                      "\"timeoutMs\":100}");
    UNIT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(reply, "lines")), 0);
    cJSON_Delete(reply);
    trp_node_close(node);
}

/* TRPI_LOG_RING_BYTES */
static void
a_slow_reader_is_told_how_many_lines_it_missed(void)
{
    enum { FLOOD = 4000 };
    trp_node *node = node_with_socket();
    uint64_t before = 0, next = 0;
    cJSON *reply = ask(node, "{\"cmd\":\"logs\",\"count\":1}");
    UNIT_TRUE(trpi_json_get_u64(reply, "next", &before));
    cJSON_Delete(reply);
    for (int i = 0; i < FLOOD; i++) {
        trp_system_log(
            trp_node_system(node), TRP_LOG_INFO, "flood",
            "a line of some length, so that the ring has no room for all of them, number "
            "%d",
            i);
    }
    UNIT_EQUAL(trp_log_flush(trp_node_system(node), 60000), TRP_OK);
    char request[160];
    snprintf(request, sizeof request,
             "{\"cmd\":\"logs\",\"after\":\"%llu\",\"component\":\"nobody\"}",
             (unsigned long long)before);
    reply = ask(node, request);
    int missed = cJSON_GetObjectItem(reply, "missed")->valueint;
    UNIT_TRUE(missed > 100 && missed < FLOOD + 1000);
    UNIT_TRUE(trpi_json_get_u64(reply, "next", &next) && next >= before + FLOOD);
    cJSON_Delete(reply);
    reply = ask(node, "{\"cmd\":\"logs\",\"component\":\"flood\",\"count\":5}");
    UNIT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(reply, "lines")), 5);
    cJSON_Delete(reply);
    trp_node_close(node);
}

UNIT_BEGIN("logs")
UNIT(a_line_has_the_fields_of_opentelemetry)
UNIT(lines_are_chosen_by_level_and_component)
UNIT(a_slow_reader_is_told_how_many_lines_it_missed)
UNIT_END
