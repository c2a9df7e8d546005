/* singletons.h - what the tests of singletons' engine share: settings, and members by number. */
#ifndef TESTS_UNIT_CLUSTER_SINGLETONS_H
#define TESTS_UNIT_CLUSTER_SINGLETONS_H

#include "cluster/singleton/manager_engine.h"
#include "tests/unit/unit.h"

enum { NODES = 6, RETRY_MS = 1000 };

static const trpi_singleton_settings settings = {
    .retry_ms = RETRY_MS,
    .hand_over_retries = 20,
    .take_over_retries = 15,
    .stop_timeout_ms = 8000,
    .lease_retry_ms = 5000,
};

/* Node `number` as a member: the lower, the older. */
static inline trpi_aged
member(uint32_t number, uint32_t status)
{
    trpi_aged m = { .up_number = number + 1, .status = status };
    m.id.uid = 100 + number;
    m.id.address.port = (uint16_t)(1 + number);
    (void)snprintf(m.id.address.protocol, sizeof m.id.address.protocol, "troupe.tcp");
    (void)snprintf(m.id.address.system, sizeof m.id.address.system, "demo");
    (void)snprintf(m.id.address.host, sizeof m.id.address.host, "10.0.0.1");
    return m;
}

#endif
