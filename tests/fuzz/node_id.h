/* node_id.h - nodes for targets that read frames between members. */
#ifndef TESTS_FUZZ_NODE_ID_H
#define TESTS_FUZZ_NODE_ID_H

#include <string.h>

#include "base/address.h"

/* troupe.tcp://SYSTEM@10.0.0.1:(2550 + number), uid number, as in the corpus. */
static inline trpi_node_id
node_id(const char *system, uint32_t number)
{
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    memcpy(id.address.protocol, "troupe.tcp", sizeof("troupe.tcp"));
    memcpy(id.address.system, system, strlen(system));
    memcpy(id.address.host, "10.0.0.1", sizeof("10.0.0.1"));
    id.address.port = (uint16_t)(2550 + number);
    id.uid = number;
    return id;
}

#endif
