/* routing_deploy.c - a deployment section as a part of a router's plan, and sections of which no
 * router can be made.
 *
 * Must hold.
 *   routing-deploy-Y1  A section that is invalid for routers is found before a router exists: it is
 *       checked by the functions that make the plan of a router at that path.
 * Tests.   tests/unit/pattern/router_config_test.c, tests/unit/node/config_test.c
 * Sources. ROUTE-3, -4, -21; CROUTE-05, -13.
 */
#include "pattern/routing_plan.h"

#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "base/config.h"
#include "pattern/pattern.h"
#include "pattern/routing.h"

#define ERROR_BYTES 256

static const char *const plan_keys[] = {
    "router",
    "nr-of-instances",
    "within",
    "tail-chopping-router.interval",
    "virtual-nodes-factor",
    "metrics-selector",
    "router-dispatcher",
    "resizer.lower-bound",
    "resizer.upper-bound",
    "resizer.pressure-threshold",
    "resizer.rampup-rate",
    "resizer.backoff-threshold",
    "resizer.backoff-rate",
    "resizer.stop-delay",
    "resizer.messages-per-resize",
};
static const char *const cluster_keys[] = {
    "cluster.enabled",
    "cluster.max-nr-of-instances-per-node",
    "cluster.max-total-nr-of-instances",
    "cluster.allow-local-routees",
    "cluster.routees-path",
    "cluster.use-role",
};

/* Set those of these keys that the section has. */
static trp_err
deploy_texts(trpi_router_plan *plan, const trpi_deployment *deployment, const char *const *keys,
             size_t count, char *error, size_t error_bytes)
{
    trp_err err = TRP_OK;

    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        const char *value = trpi_deployment_text(deployment, keys[i]);

        if (value != NULL && value[0] != 0) {
            err = trpi_router_plan_set(plan, keys[i], value, error, error_bytes);
        }
    }
    return err;
}

/* key+: the same with a plus, which adds. */
static trp_err
deploy_list(trpi_router_plan *plan, const trpi_deployment *deployment, const char *key_plus,
            char *error, size_t error_bytes)
{
    const char *const *values;
    char key[32];
    (void)snprintf(key, sizeof key, "%.*s", (int)strlen(key_plus) - 1, key_plus);
    size_t count = trpi_deployment_list(deployment, key, &values);
    trp_err err = TRP_OK;

    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        err = trpi_router_plan_set(plan, i == 0 ? key : key_plus, values[i], error, error_bytes);
    }
    return err;
}

/* ROUTE-21 */
static trp_err
deploy_settings(trpi_router_plan *plan, const trpi_deployment *deployment)
{
    const char *const *settings;
    size_t count = trpi_deployment_list(deployment, "logic-settings", &settings);
    trp_err err = TRP_OK;

    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        err = trpi_router_plan_setting_add(plan, settings[i]);
    }
    return err;
}

trp_err
trpi_router_plan_deploy(trpi_router_plan *plan, const trpi_deployment *deployment, char *error,
                        size_t error_bytes)
{
    trp_err err = deploy_texts(plan, deployment, cluster_keys,
                               sizeof cluster_keys / sizeof cluster_keys[0], error, error_bytes);
    /* from-code, which is also what a section without the key says: values of code count */
    bool decides = plan->from_config || (plan->clustered && plan->clustered_said) ||
                   (deployment->router != NULL && strcmp(deployment->router, "from-code") != 0);

    if (err == TRP_OK && decides) {
        err = deploy_texts(plan, deployment, plan_keys, sizeof plan_keys / sizeof plan_keys[0],
                           error, error_bytes);
    }
    if (err == TRP_OK && decides) {
        err = deploy_list(plan, deployment, "routees.paths+", error, error_bytes);
    }
    if (err == TRP_OK && deployment->remote != NULL) {
        err = trpi_router_plan_wrong(error, error_bytes,
                                     "remote: a router stays where it is made; target.nodes says "
                                     "where its routees live");
    }
    if (err == TRP_OK) { /* where, not how: like the dispatcher (REMOTE-21) */
        bool configured = plan->configured;

        err = deploy_list(plan, deployment, "target.nodes+", error, error_bytes);
        plan->configured = configured;
    }
    return err == TRP_OK && decides ? deploy_settings(plan, deployment) : err;
}

/* ---- before there is a router ---------------------------------------------------------------- */

/* Check a section of a router (routing-deploy-Y1); sections of plain actors pass. */
static trp_err
section_check(trpi_deployment *deployment, char *error)
{
    trpi_router_plan plan;
    const char *remote = deployment->remote;
    trp_err err = trpi_router_plan_init(&plan, NULL);

    if (err != TRP_OK) {
        return err;
    }
    deployment->remote = NULL;
    plan.any_logic = true;
    err = trpi_router_plan_deploy(&plan, deployment, error, ERROR_BYTES);
    if (err == TRP_OK && plan.configured) {
        deployment->remote = remote;
        err = trpi_router_plan_deploy(&plan, deployment, error, ERROR_BYTES);
    }
    if (err == TRP_OK) {
        err = trpi_router_plan_check(&plan, error, ERROR_BYTES);
    }
    if (err == TRP_OK) { /* the code may set whether it is cluster-aware, and makes routees */
        plan.clustered = plan.clustered || (plan.cluster_key_said && !plan.clustered_said);
        err = trpi_cluster_plan_check(&plan, true, false, error, ERROR_BYTES);
    }
    trpi_router_plan_fini(&plan);
    return err;
}

trp_err
trpi_router_config_check(const trp_config *config, trp_config_error *ret_error)
{
    char title[TRPI_CONFIG_KEY_BYTES_MAX + 1] = "", error[ERROR_BYTES] = "";
    trp_err err = TRP_OK;

    for (size_t i = 0; err == TRP_OK && i < trpi_config_count(config); i++) {
        trpi_config_entry entry;
        const char *start;
        size_t bytes;

        trpi_config_at(config, i, &entry);
        if (!trpi_setting_title(&entry, "deployment.", &start, &bytes) ||
            (strncmp(title, start, bytes) == 0 && title[bytes] == 0)) { /* seen */
            continue;
        }
        (void)snprintf(title, sizeof title, "%.*s", (int)bytes, start);
        trpi_deployment deployment;
        trpi_deployment_at(config, title, &deployment);
        err = section_check(&deployment, error);
        if (err != TRP_OK && err != TRP_ENOMEM) {
            (void)snprintf(ret_error->text, sizeof ret_error->text, "%.300s: deployment \"%s\": %s",
                           entry.origin, title, error);
            err = TRP_ECONFIG;
        }
    }
    return err;
}
