/* multinode.c - the requests of a process of a test over several nodes to the conductor.
 *
 * Must hold.
 *   multinode-M2  each failure has a text in test->why, of the conductor or of this file
 *       (trpi_multinode_ask)
 * Tests.   tests/multinode/kit.sh
 * Sources. MNT-02, -03, -06 to -09
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/troupe.h>

#include "cluster/multinode/kit.h"

enum { PAUSE_MS = 20, RESOLVE_MS = 500, ANSWER_MARGIN_MS = 5000 };

trp_err
trpi_multinode_refuse(trp_multinode *test, trp_err err, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(test->why, sizeof test->why, format, list); /* cut is fine */
    va_end(list);
    return err;
}

static uint64_t
now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint32_t
trpi_multinode_stretched(const trp_multinode *test, uint32_t ms)
{
    double long_ms = (double)ms * test->place.timefactor;
    return long_ms < 1 ? 1 : long_ms > INT32_MAX ? INT32_MAX : (uint32_t)long_ms;
}

uint64_t
trp_multinode_until(const trp_multinode *test, uint32_t ms)
{
    return now_ms() + trpi_multinode_stretched(test, ms);
}

int
trp_multinode_pause(const trp_multinode *test, uint64_t until)
{
    struct timespec pause = { 0, PAUSE_MS * 1000000l };
    (void)test;
    if (now_ms() >= until) {
        return 0;
    }
    (void)nanosleep(&pause, NULL); /* an early end is a shorter pause */
    return 1;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* multinode-M2 */
trp_err
trpi_multinode_ask(trp_multinode *test, trp_ref to, trpi_multinode_call *call, uint32_t timeout_ms,
                   char *ret_text)
{
    trp_msg *reply = NULL;
    call->index = test->place.index;
    test->why[0] = '\0';
    trp_err err = trp_system_ask(trp_node_system(test->control), to, &trpi_multinode_call_type,
                                 call, sizeof *call, timeout_ms, &reply);
    if (err != TRP_OK) {
        return trpi_multinode_refuse(test, err,
                                     "the conductor at %s:%u has not answered within %u ms",
                                     test->place.server_host, test->place.server_port, timeout_ms);
    }
    const trpi_multinode_answer *a = trp_msg_payload(reply);
    if (!trp_msg_is(reply, &trpi_multinode_answer_type)) {
        err = trpi_multinode_refuse(
            test, TRP_EPROTO,
            "the answer of the first node cannot be read; do both run the same program?");
    } else if ((err = (trp_err)a->err) != TRP_OK) {
        (void)trpi_multinode_refuse(test, err, "%.511s", a->text);
    } else if (ret_text) {
        memcpy(ret_text, a->text, sizeof a->text);
    }
    trp_msg_free(reply);
    return err;
}

trpi_multinode_call
trpi_multinode_call_of(enum trpi_multinode_verb verb)
{
    trpi_multinode_call call;
    memset(&call, 0, sizeof(call));
    call.verb = verb;
    return call;
}

static trp_err
role_index(trp_multinode *test, const char *role, uint32_t *ret_index)
{
    for (uint32_t i = 0; role && i < test->plan.roles_count; i++) {
        if (strcmp(test->roles[i], role) == 0) {
            *ret_index = i;
            return TRP_OK;
        }
    }
    return trpi_multinode_refuse(test, TRP_EINVAL, "the test has no role '%s'",
                                 role ? role : "(null)");
}

trp_err
trp_multinode_address(trp_multinode *test, const char *role, char ret_address[TRP_ADDRESS_BYTES])
{
    char text[512];
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_ADDRESS);
    trp_err err = role_index(test, role, &call.target);
    err = err != TRP_OK
              ? err
              : trpi_multinode_ask(test, test->conductor, &call,
                                   trpi_multinode_stretched(test, test->options.query_timeout_ms),
                                   text);
    if (err == TRP_OK) {
        (void)snprintf(ret_address, TRP_ADDRESS_BYTES, "%.*s", TRP_ADDRESS_BYTES - 1, text);
    }
    return err;
}

trp_err
trp_multinode_resolve(trp_multinode *test, const char *role, const char *path, uint32_t timeout_ms,
                      trp_ref *ret_ref)
{
    char address[TRP_ADDRESS_BYTES], full[TRP_ADDRESS_BYTES + 512];
    uint64_t until = trp_multinode_until(test, timeout_ms);
    trp_err err = trp_multinode_address(test, role, address);
    if (err != TRP_OK) {
        return err;
    }
    (void)snprintf(full, sizeof full, "%s%s", address, path);
    do {
        err = trp_system_resolve(trp_multinode_system(test), full, RESOLVE_MS, ret_ref);
    } while ((err == TRP_ENOENT || err == TRP_ETIMEDOUT) && trp_multinode_pause(test, until));
    return err == TRP_OK ? err : trpi_multinode_refuse(test, err, "no actor was found at %s", full);
}

trp_err
trp_multinode_barrier(trp_multinode *test, const char *name, uint32_t timeout_ms)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_ENTER);
    if (!name || !*name || strlen(name) > TRP_MULTINODE_BARRIER_BYTES_MAX) {
        return trpi_multinode_refuse(test, TRP_EINVAL, "a barrier has a name of 1 to %d bytes",
                                     TRP_MULTINODE_BARRIER_BYTES_MAX);
    }
    pthread_mutex_lock(&test->lock);
    bool released = test->released;
    pthread_mutex_unlock(&test->lock);
    if (released) {
        return trpi_multinode_refuse(test, TRP_ECANCELED, "this node was released by order");
    }
    (void)snprintf(call.name, sizeof call.name, "%s", name);
    call.number =
        trpi_multinode_stretched(test, timeout_ms ? timeout_ms : test->options.barrier_timeout_ms);
    return trpi_multinode_ask(
        test, test->conductor, &call,
        call.number > UINT32_MAX - ANSWER_MARGIN_MS ? UINT32_MAX : call.number + ANSWER_MARGIN_MS,
        NULL);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static trp_err
order_send(trp_multinode *test, trpi_multinode_call *call, const char *role, const char *target,
           char *ret_text)
{
    if (test->place.index != 0) {
        return trpi_multinode_refuse(test, TRP_EPERM, "only the first node, %s, can do that",
                                     test->roles[0]);
    }
    trp_err err = role_index(test, role, &call->target);
    err = err != TRP_OK || !target ? err : role_index(test, target, &call->peer);
    return err != TRP_OK
               ? err
               : trpi_multinode_ask(test, test->conductor, call,
                                    trpi_multinode_stretched(test, test->options.query_timeout_ms),
                                    ret_text);
}

trp_err
trp_multinode_fault(trp_multinode *test, const char *role, const char *target,
                    trp_multinode_direction direction, const char *rule)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_FAULT);
    call.number = (uint32_t)direction;
    if (!rule || strlen(rule) >= sizeof call.text || call.number < TRP_MULTINODE_SEND ||
        call.number > TRP_MULTINODE_BOTH || !target) {
        return trpi_multinode_refuse(test, TRP_EINVAL,
                                     "a fault needs a target, a direction and a rule");
    }
    (void)snprintf(call.text, sizeof call.text, "%s", rule);
    return order_send(test, &call, role, target, NULL);
}

trp_err
trp_multinode_throttle(trp_multinode *test, const char *role, const char *target,
                       trp_multinode_direction direction, double rate_mbit)
{
    char rule[64] = "pass";
    if (rate_mbit >= 0) {
        double bytes_per_s = rate_mbit * 125000;
        (void)snprintf(rule, sizeof rule, "rate=%.0f",
                       rate_mbit > 0 && bytes_per_s < 1 ? 1 : bytes_per_s);
    }
    return trp_multinode_fault(test, role, target, direction, rule);
}

trp_err
trp_multinode_blackhole(trp_multinode *test, const char *role, const char *target,
                        trp_multinode_direction direction)
{
    return trp_multinode_fault(test, role, target, direction, "blackhole");
}

trp_err
trp_multinode_pass_through(trp_multinode *test, const char *role, const char *target,
                           trp_multinode_direction direction)
{
    return trp_multinode_fault(test, role, target, direction, "pass");
}

trp_err
trp_multinode_disconnect(trp_multinode *test, const char *role, const char *target)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_DISCONNECT);
    return target ? order_send(test, &call, role, target, NULL)
                  : trpi_multinode_refuse(test, TRP_EINVAL, "disconnect needs a target");
}

trp_err
trp_multinode_exit(trp_multinode *test, const char *role, int code)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_EXIT);
    call.number = (uint32_t)code;
    return order_send(test, &call, role, NULL, NULL);
}

trp_err
trp_multinode_shutdown(trp_multinode *test, const char *role)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_SHUTDOWN);
    return order_send(test, &call, role, NULL, NULL);
}

trp_err
trp_multinode_remove(trp_multinode *test, const char *role)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_REMOVE);
    return order_send(test, &call, role, NULL, NULL);
}

trp_err
trp_multinode_nodes(trp_multinode *test, char *ret_names, size_t bytes)
{
    char text[512] = "";
    size_t at = 0;
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_NODES);
    trp_err err = order_send(test, &call, test->roles[0], NULL, text);
    uint64_t known = err == TRP_OK ? strtoull(text, NULL, 16) : 0;
    if (err == TRP_OK && bytes > 0) {
        ret_names[0] = '\0';
    }
    for (uint32_t i = 0; i < test->plan.roles_count; i++) {
        if ((known >> i & 1) != 0 && at < bytes) {
            at += (size_t)snprintf(ret_names + at, bytes - at, "%s ", test->roles[i]);
        }
    }
    return at < bytes || err != TRP_OK
               ? err
               : trpi_multinode_refuse(test, TRP_EMSGSIZE, "the names need more than %zu bytes",
                                       bytes);
}
