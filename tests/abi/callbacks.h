/* callbacks.h - for sizes.c: functions that a program gives to the library. They do nothing. */
#ifndef TESTS_ABI_CALLBACKS_H
#define TESTS_ABI_CALLBACKS_H

#include "program.h"

static trp_err
plain_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}

static void
bus_publish(void *arg, const void *event, trp_bus_value subscriber)
{
    (void)arg, (void)event, (void)subscriber;
}

static trp_bus_value
bus_classify(void *arg, const void *event)
{
    (void)arg;
    return trp_bus_of_pointer(event);
}

static trp_err
box_create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    (void)arg, (void)system, (void)owner, (void)ret_mailbox;
    return TRP_ENOMEM;
}

static trp_err
box_enqueue(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    (void)mailbox, (void)receiver, (void)msg;
    return TRP_ENOMEM;
}

static trp_msg *
box_dequeue(void *mailbox)
{
    (void)mailbox;
    return NULL;
}

static uint32_t
box_count(void *mailbox)
{
    (void)mailbox;
    return 0;
}

static int
box_has(void *mailbox)
{
    (void)mailbox;
    return 0;
}

static void
box_clean_up(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    (void)mailbox, (void)dead, (void)arg;
}

static void
nothing(void *arg)
{
    (void)arg;
}

static trp_err
extension_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)system, (void)arg;
    *ret_instance = &stage;
    return TRP_OK;
}

static void
detector_init(void *state, const trp_failure_detector_options *options)
{
    (void)state, (void)options;
}

static void
detector_heartbeat(void *state, uint64_t now_ms)
{
    (void)state, (void)now_ms;
}

static int
detector_is_available(void *state, uint64_t now_ms)
{
    (void)state, (void)now_ms;
    return 1;
}

static double
detector_suspicion(const void *state, uint64_t now_ms)
{
    (void)state, (void)now_ms;
    return 0;
}

static void
detector_own_pause(void *state, uint64_t now_ms, uint64_t pause_ms)
{
    (void)state, (void)now_ms, (void)pause_ms;
}

static trp_err
lease_acquire(void *arg, const char *name, const char *owner, uint32_t timeout_ms, char *why,
              size_t why_bytes)
{
    (void)arg, (void)name, (void)owner, (void)timeout_ms, (void)why, (void)why_bytes;
    return TRP_OK;
}

static void
lease_release(void *arg, const char *name, const char *owner)
{
    (void)arg, (void)name, (void)owner;
}

static uint32_t
metrics_collect(void *state, trp_metric *metrics, uint32_t max)
{
    (void)state, (void)metrics, (void)max;
    return 0;
}

static int
metrics_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    (void)arg, (void)node, (void)ret_capacity;
    return 0;
}

static int
resizer_is_time(void *arg, uint64_t number)
{
    (void)arg, (void)number;
    return 0;
}

static int32_t
resizer_capacity(void *arg, const trp_routee_load *routees, uint32_t n)
{
    (void)arg, (void)routees, (void)n;
    return 0;
}

static void
logic_route(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state, (void)route, (void)sender, (void)msg;
}

static trp_err
serializer_encode(void *arg, trp_wire *wire, const trp_type *type, const void *payload,
                  size_t bytes)
{
    (void)arg, (void)wire, (void)type, (void)payload, (void)bytes;
    return TRP_ENOMEM;
}

static void
seeded_program(trp_testkit *kit, void *arg)
{
    (void)kit, (void)arg;
}

static void
sim_program(trp_sim *sim, void *arg)
{
    (void)sim, (void)arg;
}

static void
on_fail(void *arg, const char *file, int line, const char *text)
{
    (void)arg, (void)file, (void)line, (void)text;
}

#endif
