/* control_audit.c - a log line for each change that a client has ordered: the order, its target,
 * its origin.
 *
 * Why.     "Who took this node out?" is asked weeks later, when the tool's history is gone. The
 *          kernel knows the user and process behind the control socket, and the sender of a signal.
 * Must hold.
 *   control-audit-A1  The line is written before the order is begun, whatever log.level is; it has
 *       the order, not its outcome: the membership's own lines have that.
 *   control-audit-A2  A client's text reaches the log only as printable characters.
 * Tests.   tests/system/audit.sh
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define WHOM_BYTES 1024

static void __attribute__((format(printf, 2, 3)))
whom_add(char whom[WHOM_BYTES], const char *format, ...)
{
    size_t used = strlen(whom);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(whom + used, WHOM_BYTES - used, format, list); /* cut is fine */
    va_end(list);
}

static void /* control-audit-A2 */
printable_make(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        *c = *c > ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
}

/* Write a member, given by any of its names, as address and incarnation; an unknown name is written
 * as it is. */
static void
member_add(trp_node *node, const char *name, char whom[WHOM_BYTES])
{
    trpi_control_refusal refusal;
    trp_member member;
    if (trpi_member_find(node, name, &member, &refusal)) {
        whom_add(whom, "%s#%016" PRIx64, member.address, member.uid);
    } else {
        char given[256];
        (void)snprintf(given, sizeof given, "%s", name);
        printable_make(given);
        whom_add(whom, "%s", given);
    }
}

static void
incarnation_add(const trpi_view *view, uint64_t uid, char whom[WHOM_BYTES])
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->members[i].m.uid == uid) {
            whom_add(whom, "%s", view->members[i].m.address);
        }
    }
    whom_add(whom, "#%016" PRIx64, uid);
}

static void
downed_add(trp_node *node, const trpi_control_request *request, char whom[WHOM_BYTES])
{
    trpi_view view;
    if (request->member != NULL) {
        member_add(node, request->member, whom);
    } else if (request->uids_count == 0 || trpi_view_take(node, &view) != TRP_OK) {
        whom_add(whom, "all-unreachable");
    } else {
        for (size_t i = 0; i < request->uids_count; i++) {
            whom_add(whom, "%s", i > 0 ? "," : "");
            incarnation_add(&view, request->uids[i], whom);
        }
        trpi_view_fini(&view);
    }
}

/* Add a text of the client, which may be NULL. */
static void
printable_add(char whom[WHOM_BYTES], const char *before, const char *value)
{
    char text[WHOM_BYTES];
    (void)snprintf(text, sizeof text, "%s", value != NULL ? value : "");
    printable_make(text);
    whom_add(whom, "%s%s", before, text);
}

/* The same for commands that mostly read. */
static const char *
order_of_some(const trpi_control_request *request, char whom[WHOM_BYTES])
{
    if (request->command == TRPI_CONTROL_SHARDS) {
        printable_add(whom, "", request->type);
        return request->rebalance ? "rebalance" : NULL;
    }
    printable_add(whom, "", request->path != NULL ? request->path : "all");
    return strcmp(request->action, "start") == 0  ? "trace-start"
           : strcmp(request->action, "stop") == 0 ? "trace-stop"
                                                  : NULL;
}

/* Return the word for the order, and give its target. NULL: the request changes nothing. */
static const char *
order_of(trp_node *node, const trpi_control_request *request, char whom[WHOM_BYTES])
{
    char text[WHOM_BYTES];
    whom[0] = '\0';
    if (request->dry_run) {
        return NULL;
    }
    switch (request->command) {
    case TRPI_CONTROL_JOIN:
        whom_add(whom, "%s through=", node->address);
        for (size_t i = 0; i < request->addresses_count; i++) {
            (void)snprintf(text, sizeof text, "%s", request->addresses[i]);
            printable_make(text);
            whom_add(whom, "%s%s", i > 0 ? "," : "", text);
        }
        return "join";
    case TRPI_CONTROL_LEAVE:
    case TRPI_CONTROL_DRAIN:
    case TRPI_CONTROL_UNDRAIN:
        if (request->member != NULL) {
            member_add(node, request->member, whom);
        } else {
            whom_add(whom, "%s", node->address);
        }
        return request->command == TRPI_CONTROL_LEAVE   ? "leave"
               : request->command == TRPI_CONTROL_DRAIN ? "drain"
                                                        : "undrain";
    case TRPI_CONTROL_DOWN:
        downed_add(node, request, whom);
        return "down";
    case TRPI_CONTROL_SHUTDOWN:
        whom_add(whom, "all-members");
        return request->prepare ? "prepare-shutdown" : "shutdown";
    case TRPI_CONTROL_FAULT:
        if (strcmp(request->action, "list") == 0) {
            return NULL;
        }
        (void)snprintf(text, sizeof text, "%s", request->path != NULL ? request->path : "all");
        printable_make(text);
        whom_add(whom, "%s", text);
        (void)snprintf(text, sizeof text, "%s", request->rule != NULL ? request->rule : "");
        printable_make(text);
        whom_add(whom, " action=%s rule=%s", request->action, text);
        return "fault";
    case TRPI_CONTROL_STOP:
        printable_add(whom, "", request->path);
        return strcmp(request->action, "kill") == 0      ? "kill-actor"
               : strcmp(request->action, "restart") == 0 ? "restart-actor"
                                                         : "stop-actor";
    case TRPI_CONTROL_BRIDGE:
        printable_add(whom, "/user/", request->path);
        return "bridge";
    case TRPI_CONTROL_UPGRADE:
        printable_add(whom, "", request->path);
        return "upgrade-plugin";
    case TRPI_CONTROL_SPAWN:
        printable_add(whom, "/user/", request->path);
        printable_add(whom, " plugin=", request->plugin);
        return "spawn-actor";
    case TRPI_CONTROL_RELOAD:
        whom_add(whom, "%s", node->address);
        return "reload";
    case TRPI_CONTROL_TRACE:
    case TRPI_CONTROL_SHARDS:
        return order_of_some(request, whom);
    default:
        return NULL; /* it only reads, or sends to actors */
    }
}

void
trpi_audit_call(trp_node *node, const trpi_call *call)
{
    char whom[WHOM_BYTES];
    const char *order = order_of(node, &call->request, whom);
    if (order == NULL) {
        return;
    }
    if (call->by_known) {
        trpi_node_say(node, "audit", "order=%s on=%s by-uid=%" PRIu32 " by-pid=%ld", order, whom,
                      call->by_uid, call->by_pid);
    } else {
        trpi_node_say(node, "audit", "order=%s on=%s by=%s", order, whom,
                      call->by_text[0] != '\0' ? call->by_text : "another-node");
    }
}

void
trpi_audit_signal(trp_node *node, const char *order, const char *name, uint32_t uid, uint32_t pid)
{
    trpi_node_say(node, "audit", "order=%s on=%s by-uid=%" PRIu32 " by-pid=%" PRIu32 " signal=%s",
                  order, node->address, uid, pid, name);
}
