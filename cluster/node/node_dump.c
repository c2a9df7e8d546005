/* node_dump.c - SIGUSR2: the state of a node, as log lines. For a node whose control socket cannot
 * be reached, and for a log that must be read alone.
 *
 * Tests.   tests/system/node.sh
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <troupe/shutdown.h>

#include "base/alloc.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define DUMP_ROWS_MAX 200u /* members, and peers; the rest is counted */

void
trpi_node_say(trp_node *node, const char *source, const char *format, ...)
{
    char text[TRP_LOG_TEXT_BYTES_MAX];
    trp_log_line line = { .level = TRP_LOG_INFO, .source = source, .text = text };
    trpi_world *world = trpi_system_world(node->system);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list); /* cut is fine */
    va_end(list);
    line.wall_ms = trpi_world_wall_ms(world);
    line.mono_ns = trpi_world_mono_ns(world);
    if (node->log_own) {
        trpi_node_log_always(&node->log, &line);
    } else {
        trpi_node_log_keep(&node->log_ring, &line);
        node->program_log(node->program_log_arg, &line);
    }
}

#define say(node, ...) trpi_node_say(node, "dump", __VA_ARGS__)

static void
members_say(trp_node *node)
{
    trpi_view view;
    if (trpi_view_take(node, &view) != TRP_OK) {
        say(node, "members: out of memory");
        return;
    }
    const trpi_view_member *self = view.self;
    say(node,
        "cluster of %zu, %s for %" PRIu64 " ms status=%s leader=%s oldest=%s strategy=%s "
        "version=%016" PRIx64,
        view.count, view.converged ? "agreed" : "not agreed", view.converged_ms,
        trp_member_status_name(self != NULL ? self->m.status : TRP_MEMBER_REMOVED),
        view.leader != NULL ? view.leader->address : "none",
        view.oldest != NULL ? view.oldest->address : "none", view.strategy, view.version);
    for (size_t i = 0; i < view.count && i < DUMP_ROWS_MAX; i++) {
        const trpi_view_member *v = &view.members[i];
        say(node,
            "member %s uid=%016" PRIx64 " status=%s reachable=%s seen=%s phi=%.1f "
            "unreachable-ms=%" PRIu64,
            v->m.address, v->m.uid, trp_member_status_name(v->m.status),
            v->m.reachable ? "yes" : "no", v->seen ? "yes" : "no", v->phi, v->unreachable_ms);
    }
    if (view.count > DUMP_ROWS_MAX) {
        say(node, "%zu more members", view.count - DUMP_ROWS_MAX);
    }
    trpi_view_fini(&view);
}

static void
peers_say(trp_node *node)
{
    trpi_peer_info *peers = trpi_alloc(DUMP_ROWS_MAX * sizeof *peers);
    size_t count = 0;
    if (peers == NULL) {
        say(node, "peers: out of memory");
        return;
    }
    trpi_remote_peers(node->remote, peers, DUMP_ROWS_MAX, &count);
    for (size_t i = 0; i < count && i < DUMP_ROWS_MAX; i++) {
        char address[TRPI_ADDRESS_TEXT_BYTES];
        say(node,
            "peer %s uid=%016" PRIx64 " state=%s reason=\"%s\" in=%" PRIu64 " out=%" PRIu64
            " dropped=%" PRIu64,
            trpi_address_format(&peers[i].id.address, address, sizeof address), peers[i].id.uid,
            peers[i].state, peers[i].reason, peers[i].messages_in, peers[i].messages_out,
            peers[i].dropped);
    }
    if (count > DUMP_ROWS_MAX) {
        say(node, "%zu more peers", count - DUMP_ROWS_MAX);
    }
    trpi_free(peers);
}

uint64_t
trpi_node_stats(trp_node *node, trp_system_stats *ret)
{
    uint64_t dead = 0;
    memset(ret, 0, sizeof *ret);
    ret->size = sizeof *ret;
    trp_system_stats_get(node->system, ret);
    for (size_t i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        dead += ret->dead_letters[i];
    }
    return dead;
}

void
trpi_node_dump(trp_node *node)
{
    trp_system_stats stats;
    uint64_t dead = trpi_node_stats(node, &stats);
    say(node,
        "actors %" PRIu64 " messages=%" PRIu64 " dead-letters=%" PRIu64 " log-dropped=%" PRIu64
        " log-lost=%" PRIu64 " shutdown=%d",
        (uint64_t)stats.actors, (uint64_t)stats.messages_processed, dead,
        trp_log_dropped(node->system), trpi_node_log_lost(&node->log),
        (int)trp_shutdown_reason_get(node->system));
    members_say(node);
    peers_say(node);
    say(node, "end of the dump");
}
