/* control_dashboard.c - dashboard: the address of this node's page, with a code that is good once.
 *
 * Why.     A user of the control socket may read all that the page shows; the code carries that
 *          to a browser. It stands behind '#', so the browser sends it to nobody and keeps it out
 *          of every log; the page exchanges it.
 * Tests.   tests/system/dashboard.sh
 */
#include <stdio.h>
#include <string.h>

#include "cluster/node/node_management.h"
#include "cluster/management/management.h"
#include "cluster/node/node_management.h"

#define URL_BYTES 512

/* Return the host by which a browser names this node; NULL: the API takes none that it knows. */
static const char *
host_of(const trp_node *node)
{
    const char *bind = trpi_config_text(node->config, "management.bind");
    if (strcmp(bind, "0.0.0.0") != 0 && strcmp(bind, "::") != 0) {
        return bind;
    }
    return trpi_config_list_count(node->config, "management.hosts") > 0
               ? trpi_config_list_at(node->config, "management.hosts", 0)
               : NULL;
}

void
trpi_node_serve_dashboard(trp_node *node, trpi_call *call)
{
    char code[TRPI_MANAGEMENT_SECRET_TEXT], url[URL_BYTES];
    const char *host = host_of(node);
    if (node->management == NULL) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_CONFIG,
                              "management.enabled = on (docs/operating.md, The management API)",
                              "this node has no management API, which serves the dashboard");
        return;
    }
    if (host == NULL) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_CONFIG,
                              "management.hosts = { \"HOST\" }, the name that browsers use",
                              "management.bind is any address, and no host is known by which a "
                              "browser may name this node");
        return;
    }
    if (trpi_management_code(node->management, code) != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_INTERNAL, NULL, "OpenSSL makes no code");
        return;
    }
    bool is_v6 = strchr(host, ':') != NULL;
    int length = snprintf(url, sizeof url, "%s://%s%s%s:%u/dashboard#code=%s",
                          trpi_node_management_has_tls(node) ? "https" : "http", is_v6 ? "[" : "",
                          host, is_v6 ? "]" : "", trpi_management_port(node->management), code);
    cJSON *reply = trpi_call_reply();
    bool ok = length > 0 && length < URL_BYTES && trpi_json_add_text(reply, "url", url) &&
              trpi_json_add_i64(reply, "expiresMs", TRPI_MANAGEMENT_CODE_MS);
    trpi_call_answer_if(call, ok, reply);
}
