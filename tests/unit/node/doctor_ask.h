/* doctor_ask.h - what the doctor of a node inside the test program says. */
#ifndef TESTS_UNIT_NODE_DOCTOR_ASK_H
#define TESTS_UNIT_NODE_DOCTOR_ASK_H

#include "cluster/node/doctor_look.h"
#include "tests/unit/node/inside.h"

/* The finding `id` of a new examination, as "level: evidence"; to be freed. */
static inline char *
examine(const trp_node *node, const char *id)
{
    cJSON *reply = control_ask(trp_node_control_path(node), "{\"cmd\":\"doctor\"}");
    const cJSON *f;
    char *text = NULL;
    UNIT_REQUIRE(reply != NULL);
    cJSON_ArrayForEach(f, cJSON_GetObjectItem(reply, "findings"))
    {
        if (strcmp(trpi_json_get_text(f, "id"), id) == 0) {
            size_t bytes = 600;
            text = malloc(bytes);
            snprintf(text, bytes, "%s: %s", trpi_json_get_text(f, "level"),
                     trpi_json_get_text(f, "evidence"));
        }
    }
    cJSON_Delete(reply);
    UNIT_REQUIRE(text != NULL);
    return text;
}

/* Does an examination say so now? Both texts are looked for. */
static inline bool
says(const trp_node *node, const char *id, const char *level, const char *evidence)
{
    char *text = examine(node, id);
    bool is = strncmp(text, level, strlen(level)) == 0 && strstr(text, evidence) != NULL;
    if (!is) {
        printf("    %s: %s\n", id, text);
    }
    free(text);
    return is;
}

#endif
