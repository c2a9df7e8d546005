/* untrusted.c - untrusted mode: which messages of peers are refused.
 *
 * Why.    Akka's untrusted mode: a client may tell any actor whose ref it was given, and nothing
 *         that manages actors: system messages (watch, unwatch, terminated, stop), messages whose
 *         type says that it is possibly harmful, commands to the node, and paths of its choice,
 *         but for the trusted ones. A refused message is dropped, counted, and logged at DEBUG: a
 *         line at a higher level would itself be a way to harm.
 *         In both modes: which behaviours peers may have made here.
 * Must hold.
 *   untrusted-H1  A refused system message is still acknowledged: else it would be sent again for
 *       hours and quarantine an honest peer in the end. (inbound.c, on_system)
 *   untrusted-H2  A node that joins a cluster may say that others are down. So membership is a path
 *       like others: without TRPI_TRUSTED_CLUSTER among the trusted ones no node joins through this
 *       one.
 * Tests.  tests/unit/remote/untrusted_test.c
 */
#include "remote/association/inbound.h"

#include <string.h>

#include "base/alloc.h"
#include "remote/association/conn.h"
#include "remote/wire/deployment.h"

bool
trpi_untrusted_drop(trpi_conn *conn, const char *what, const char *name)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    uint32_t suppressed = 0;
    trpi_count(&remote->stats.untrusted_dropped, 1);
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_UNTRUSTED, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_DEBUG, "remote",
                 "dropped in untrusted mode peer=%s what=\"%s\" name=%s suppressed=%u",
                 trpi_conn_peer_text(conn), what, name, suppressed);
    }
    return true;
}

static bool
is_trusted(const trpi_remote *remote, const char *path)
{
    for (size_t i = 0; i < remote->policy.trusted_count; i++) {
        if (strcmp(remote->policy.trusted[i], path) == 0) {
            return true;
        }
    }
    return false;
}

bool
trpi_untrusted_refuses(trpi_conn *conn, uint8_t kind, const trp_type *type, const char *path)
{
    const trpi_remote *remote = trpi_conn_remote(conn);
    if (!remote->options.untrusted) {
        return false;
    }
    if (type != NULL && (type->flags & TRP_TYPE_POSSIBLY_HARMFUL) != 0) {
        return trpi_untrusted_drop(conn, "possibly harmful message", type->name);
    }
    if (kind != TRPI_FRAME_SELECT) {
        return false;
    }
    /* a sender that asks for /remote wants an actor made here (child_proxy.c) */
    return !is_trusted(remote, path) &&
           trpi_untrusted_drop(conn,
                               strcmp(path, "/remote") == 0
                                   ? "remote deployment"
                                   : "selection of a path that is not trusted",
                               "");
}

bool
trpi_untrusted_refuses_sender(trpi_conn *conn, bool third)
{
    return third && (trpi_conn_remote(conn)->options.untrusted || trpi_conn_is_client(conn)) &&
           trpi_untrusted_drop(conn, "message in the name of a third node", "");
}

bool
trpi_untrusted_takes_clusters(const trpi_remote *remote)
{
    return !remote->options.untrusted || is_trusted(remote, TRPI_TRUSTED_CLUSTER);
}

bool
trpi_untrusted_refuses_channel(trpi_conn *conn, enum trpi_control_channel channel)
{
    if (trpi_conn_remote(conn)->options.untrusted && channel == TRPI_CHANNEL_NODE) {
        return trpi_untrusted_drop(conn, "command to this node", "");
    }
    return !trpi_untrusted_takes_clusters(trpi_conn_remote(conn)) && /* untrusted-H2 */
           trpi_untrusted_drop(conn, "message to the cluster", "");
}

bool
trpi_deploy_refuses(trpi_conn *conn, const char *behaviour, const char *path)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    uint32_t suppressed = 0;
    if (remote->options.deployable == NULL ||
        trpi_deploy_is_allowed((const char *const *)remote->policy.deployable,
                               remote->policy.deployable_count, behaviour)) {
        return false;
    }
    trpi_count(&remote->stats.deployments_refused, 1);
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_DEPLOY, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "deployment refused peer=%s behaviour=%.100s path=%.200s "
                 "reason=\"not in remote.deployment-allowed\" suppressed=%u",
                 trpi_conn_peer_text(conn), behaviour, path, suppressed);
    }
    return true;
}

/* Copies the texts of a list. */
static trp_err
list_keep(const char *const *texts, size_t count, char ***ret_kept, size_t *ret_count)
{
    *ret_kept = count == 0 ? NULL : trpi_alloc(count * sizeof **ret_kept);
    for (size_t i = 0; *ret_kept != NULL && i < count; i++) {
        (*ret_kept)[i] = trpi_strdup(texts[i]);
        if ((*ret_kept)[i] == NULL) {
            return TRP_ENOMEM;
        }
        *ret_count = i + 1;
    }
    return count == 0 || *ret_kept != NULL ? TRP_OK : TRP_ENOMEM;
}

static void
list_free(char **kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        trpi_free(kept[i]);
    }
    trpi_free(kept);
}

trp_err
trpi_untrusted_begin(trpi_remote *remote)
{
    const trpi_remote_options *options = &remote->options;
    trp_err err = list_keep(options->trusted_paths, options->trusted_paths_count,
                            &remote->policy.trusted, &remote->policy.trusted_count);
    if (err == TRP_OK) {
        err = list_keep(options->deployable, options->deployable_count, &remote->policy.deployable,
                        &remote->policy.deployable_count);
    }
    return err;
}

void
trpi_untrusted_end(trpi_remote *remote)
{
    list_free(remote->policy.trusted, remote->policy.trusted_count);
    list_free(remote->policy.deployable, remote->policy.deployable_count);
}
