/* control_health.c - ready, alive: the checks of a node's health as an answer. The answer is "ok"
 * whatever the verdict is; "status" has it.
 *
 * Tests. tests/unit/node/health_test.c, tests/system/management.sh
 */
#include "cluster/node/health.h"

static void
checks_answer(trpi_call *call, const trpi_health_check *checks, size_t count)
{
    bool up = true;
    for (size_t i = 0; i < count; i++) {
        up = up && checks[i].ok;
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "status", up ? "up" : "down");
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "checks") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        bool filled = trpi_json_add_text(row, "name", checks[i].name) &&
                      trpi_json_add_bool(row, "ok", checks[i].ok) &&
                      trpi_json_add_text(row, "detail", checks[i].detail);
        ok = trpi_json_append(list, row, filled);
    }
    trpi_call_answer_if(call, ok, reply);
}

void
trpi_node_serve_ready(trp_node *node, trpi_call *call)
{
    trpi_health_check checks[TRPI_HEALTH_READY_CHECKS] = { { .name = "" } };
    trpi_health_ready(node->health, checks);
    checks_answer(call, checks, TRPI_HEALTH_READY_CHECKS);
}

void
trpi_node_serve_alive(trp_node *node, trpi_call *call)
{
    trpi_health_check check;
    trpi_health_alive(node->health, &check);
    checks_answer(call, &check, 1);
}
