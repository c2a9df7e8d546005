/* untrusted.c - what peers may not do to a node that does not trust them.
 *
 * Why.    Akka's untrusted mode: a client may tell any actor whose ref it was given, and nothing
 *         that manages actors: system messages (watch, unwatch, terminated, stop), messages whose
 *         type says that it is possibly harmful, commands to the node, and paths of its choice,
 *         but for the trusted ones. What is refused is dropped, counted, and logged at DEBUG: a
 *         line at a louder level would itself be a way to harm.
 * Must hold.
 *   H1  What is refused is still acknowledged: a system message that is not would be sent again for
 *       hours and quarantine an honest peer in the end.                      (inbound.c, on_system)
 * Tests.  tests/unit/remote/untrusted_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "remote/internal.h"

bool
trpi_untrusted_drop(trpi_conn *conn, const char *what, const char *name)
{
    trpi_remote *remote = conn->remote;
    uint32_t suppressed = 0;
    trpi_count(&remote->untrusted_dropped, 1);
    if (trpi_log_gate_open(remote, TRPI_GATE_UNTRUSTED, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_DEBUG, "remote",
                 "dropped in untrusted mode peer=%s what=\"%s\" name=%s suppressed=%u",
                 conn->peer_text, what, name, suppressed);
    }
    return true;
}

bool
trpi_untrusted_refuses(trpi_conn *conn, uint8_t kind, const trp_type *type,
                       const char *path)
{
    const trpi_remote *remote = conn->remote;
    if (!remote->options.untrusted) {
        return false;
    }
    if (type != NULL && (type->flags & TRP_TYPE_POSSIBLY_HARMFUL) != 0) {
        return trpi_untrusted_drop(conn, "possibly harmful message", type->name);
    }
    if (kind != TRPI_FRAME_SELECT) {
        return false;
    }
    for (size_t i = 0; i < remote->trusted_count; i++) {
        if (strcmp(remote->trusted[i], path) == 0) {
            return false;
        }
    }
    return trpi_untrusted_drop(conn, "selection of a path that is not trusted", "");
}

trp_err
trpi_untrusted_begin(trpi_remote *remote)
{
    const trpi_remote_options *options = &remote->options;
    if (options->trusted_paths_count == 0) {
        return TRP_OK;
    }
    remote->trusted = trpi_alloc(options->trusted_paths_count * sizeof *remote->trusted);
    for (size_t i = 0; remote->trusted != NULL && i < options->trusted_paths_count; i++) {
        remote->trusted[i] = trpi_strdup(options->trusted_paths[i]);
        if (remote->trusted[i] == NULL) {
            return TRP_ENOMEM;
        }
        remote->trusted_count++;
    }
    remote->options.trusted_paths = NULL;
    return remote->trusted != NULL ? TRP_OK : TRP_ENOMEM;
}

void
trpi_untrusted_end(trpi_remote *remote)
{
    for (size_t i = 0; i < remote->trusted_count; i++) {
        trpi_free(remote->trusted[i]);
    }
    trpi_free(remote->trusted);
}
