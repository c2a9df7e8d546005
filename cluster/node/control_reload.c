/* control_reload.c - `troupe config reload`: what SIGHUP does, with an answer.
 *
 * Shape.   The call's thread asks the thread that takes the signals, which alone reads the
 *          configuration (node_main.c), by an eventfd; that one leaves a report, and the call waits
 *          for it.
 * Must hold.
 *   control-reload-R1  A report is that of a reload which began after the request.  (reload.wanted)
 *   control-reload-R2  A report has no value of a secret.              (trpi_reload_changed)
 *   control-reload-R3  It is answered when the files of TLS have been read, too, and refused when
 *       they could not be: scripts that change certificates go by the exit code.  (files_await)
 * Tests.   tests/system/reload.sh
 */
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "cluster/node/node_private.h"

#define LOOK_MS 5u

/* ---- the thread that takes the signals ------------------------------------------------------- */

trp_err
trpi_reload_open(trp_node *node)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_lock(&node->lock);
    node->reload.fd = fd > 0 ? fd : 0;
    pthread_mutex_unlock(&node->lock);
    return fd > 0 ? TRP_OK : TRP_EIO;
}

void
trpi_reload_close(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    int fd = node->reload.fd;
    node->reload.fd = 0;
    cJSON_Delete(node->reload.report);
    node->reload.report = NULL;
    pthread_mutex_unlock(&node->lock);
    if (fd > 0) {
        (void)close(fd); /* nothing was written that counts */
    }
}

uint32_t
trpi_reload_wanted(trp_node *node)
{
    uint64_t count = 0;
    pthread_mutex_lock(&node->lock);
    (void)!read(node->reload.fd, &count, sizeof count); /* 0: it was woken before */
    uint32_t wanted = node->reload.wanted;
    pthread_mutex_unlock(&node->lock);
    return wanted;
}

/* Add {"key":key,"from":from,"to":to} to the list; values of a secret are not shown. */
void
trpi_reload_changed(cJSON *report, const trpi_config_entry *then, const trpi_config_entry *now)
{
    cJSON *row = cJSON_CreateObject();
    bool ok =
        trpi_json_add_text(row, "key", now->key) &&
        trpi_json_add_text(row, "from", then->count > 0 ? trpi_config_shown(then, 0) : NULL) &&
        trpi_json_add_text(row, "to", now->count > 0 ? trpi_config_shown(now, 0) : NULL);
    (void)trpi_json_append(cJSON_GetObjectItemCaseSensitive(report, "changed"), row, ok);
}

void
trpi_reload_restart(cJSON *report, const char *key)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(report, "needRestart");
    cJSON *text = list != NULL ? cJSON_CreateString(key) : NULL;
    (void)trpi_json_append(list, text, text != NULL);
}

cJSON *
trpi_reload_report(void)
{
    cJSON *report = cJSON_CreateObject();
    if (!trpi_json_add_bool(report, "ok", true) ||
        cJSON_AddArrayToObject(report, "changed") == NULL ||
        cJSON_AddArrayToObject(report, "needRestart") == NULL) {
        cJSON_Delete(report);
        return NULL;
    }
    return report;
}

void
trpi_reload_done(trp_node *node, uint32_t wanted, cJSON *report)
{
    pthread_mutex_lock(&node->lock);
    cJSON_Delete(node->reload.report);
    node->reload.report = report;
    node->reload.done = wanted;
    pthread_mutex_unlock(&node->lock);
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Order a reload. Gives its number; 0: nobody takes it. */
static uint32_t
reload_order(trp_node *node)
{
    const uint64_t one = 1;
    uint32_t number = 0;
    pthread_mutex_lock(&node->lock);
    if (node->reload.fd > 0) {
        number = ++node->reload.wanted;
        (void)!write(node->reload.fd, &one, sizeof one); /* full: it is readable then */
    }
    pthread_mutex_unlock(&node->lock);
    return number;
}

/* Take a copy of the report of reload `number`, or of a later one. false: it is not over. */
static bool
report_take(trp_node *node, uint32_t number, cJSON **ret_report,
            char refused[TRPI_NODE_RELOAD_BYTES])
{
    pthread_mutex_lock(&node->lock);
    bool done = (int32_t)(node->reload.done - number) >= 0;
    if (done) {
        *ret_report =
            node->reload.report != NULL ? cJSON_Duplicate(node->reload.report, true) : NULL;
        memcpy(refused, node->reload_refused, TRPI_NODE_RELOAD_BYTES);
    }
    pthread_mutex_unlock(&node->lock);
    return done;
}

/* control-reload-R3. false: refused. */
static bool
files_await(trp_node *node, trpi_call *call, char refused[TRPI_NODE_RELOAD_BYTES])
{
    trpi_trouble_text text;
    while (!trpi_remote_secrets_are_reloaded(node->remote)) {
        if (trpi_call_left_ms(call) == 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, "troupe status",
                                  "the files of TLS are still being read");
            return false;
        }
        if (!trpi_call_pause(call, LOOK_MS)) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
            return false;
        }
    }
    if (refused[0] == '\0' && trpi_remote_trouble(node->remote, TRPI_TROUBLE_RELOAD, &text)) {
        (void)snprintf(refused, TRPI_NODE_RELOAD_BYTES, "%.*s", TRPI_NODE_RELOAD_BYTES - 1,
                       text.what);
    }
    return true;
}

void
trpi_node_serve_reload(trp_node *node, trpi_call *call)
{
    char refused[TRPI_NODE_RELOAD_BYTES];
    cJSON *report = NULL;
    uint32_t number = reload_order(node);
    if (number == 0) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, NULL,
                              "the program that runs this node has no way to read its "
                              "configuration again");
        return;
    }
    while (!report_take(node, number, &report, refused)) {
        if (trpi_call_left_ms(call) == 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, "troupe status",
                                  "the reload was ordered, and is not over");
            return;
        }
        if (!trpi_call_pause(call, LOOK_MS)) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
            return;
        }
    }
    if (!files_await(node, call, refused)) {
        cJSON_Delete(report);
        return;
    }
    if (refused[0] != '\0') {
        cJSON_Delete(report);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_CONFIG, "troupe config check", "%s", refused);
        return;
    }
    trpi_call_answer_if(call, report != NULL, report);
}
