/* control_view.c - the membership's snapshot in the form that commands use.
 *
 * Tests. tests/unit/node/control_member_test.c, tests/system
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/control_member.h"

static void
member_fill(const trpi_cluster_member *from, trpi_view_member *to)
{
    to->m = from->member;
    to->round_trip_ms = from->round_trip_us ? (double)from->round_trip_us / 1000.0 : -1;
    to->phi = from->phi;
    to->heartbeats = from->heartbeats;
    to->up_since_wall_ms = from->up_since_wall_ms;
    memcpy(to->build, from->build, sizeof to->build);
    to->age_ms = from->age_ms;
    to->unreachable_ms = from->unreachable_ms;
    to->seen = from->seen;
    to->awaited = from->awaited;
    to->remover = from->remover;
    to->link[0] = '\0';
    to->cert_until_ms = 0;
}

/* Does this observation count? Those of reachable observers do, where there is one
 * (gossip_reachability.c); of two members that observe each other as unreachable both do. */
static bool
is_witness(const trpi_cluster_snapshot *snapshot, const trpi_cluster_observation *o, uint32_t index)
{
    const trpi_cluster_member *members = snapshot->members;
    bool says = o->subject == index && o->observer < snapshot->members_count &&
                !members[index].member.reachable;
    if (!says || members[o->observer].member.reachable) {
        return says;
    }
    bool better = false;
    for (uint32_t j = 0; j < snapshot->observations_count && !better; j++) {
        const trpi_cluster_observation *other = &snapshot->observations[j];
        better = other->subject == index && other->observer < snapshot->members_count &&
                 members[other->observer].member.reachable;
    }
    return !better;
}

/* Give each member its part of `names`, which has room for one pointer an observation. */
static void
observers_fill(const trpi_cluster_snapshot *snapshot, trpi_view *view, const char **names)
{
    for (size_t i = 0; i < view->count; i++) {
        trpi_view_member *v = &view->members[i];
        v->observers = names;
        for (uint32_t j = 0; j < snapshot->observations_count; j++) {
            const trpi_cluster_observation *o = &snapshot->observations[j];
            if (is_witness(snapshot, o, (uint32_t)i)) {
                names[v->observers_count++] = view->members[o->observer].m.address;
            }
        }
        names += v->observers_count;
    }
}

static const trp_member *
member_at(const trpi_view *view, uint32_t index)
{
    return index < view->count ? &view->members[index].m : NULL;
}

/* No seed node has answered: remoting may know why none could be asked. */
static void
seeking_look(trp_node *node, trpi_view *view)
{
    trpi_address address;
    char why[TRPI_VIEW_LINK_BYTES];
    if (trpi_address_parse(view->seeking, &address, NULL, NULL) == TRP_OK &&
        trpi_remote_problem(node->remote, &address, why, sizeof why)) {
        (void)snprintf(view->seeking_why, sizeof view->seeking_why, "%s", why);
    }
}

void
trpi_view_look_at_links(trp_node *node, trpi_view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        trpi_view_member *v = &view->members[i];
        trpi_address address;
        if (v != view->self && v->m.reachable && v->m.status != TRP_MEMBER_DOWN &&
            trpi_address_parse(v->m.address, &address, NULL, NULL) == TRP_OK) {
            (void)trpi_remote_problem(node->remote, &address, v->link, sizeof v->link);
        }
    }
}

void
trpi_view_look_at_certificates(trp_node *node, trpi_view *view)
{
    trpi_tls_state own;
    if (!trpi_remote_tls_state(node->remote, &own)) {
        return;
    }
    for (size_t i = 0; i < view->count; i++) {
        trpi_view_member *v = &view->members[i];
        trpi_address address;
        if (v == view->self) {
            v->cert_until_ms = own.not_after_ms;
        } else if (trpi_address_parse(v->m.address, &address, NULL, NULL) == TRP_OK) {
            v->cert_until_ms = trpi_remote_certificate_until(node->remote, &address);
        }
    }
}

void
trpi_view_look_at_files(trp_node *node, trpi_view *view)
{
    view->troubles_count = 0;
    for (int kind = 0; kind < TRPI_TROUBLE_COUNT; kind++) {
        view->troubles_count += trpi_remote_trouble(node->remote, (trpi_trouble)kind,
                                                    &view->troubles[view->troubles_count]);
    }
    trpi_trouble_text *own = &view->troubles[view->troubles_count];
    pthread_mutex_lock(&node->lock);
    if (node->reload_refused[0] != '\0') {
        (void)snprintf(own->what, sizeof own->what, "the last reload was refused: %s",
                       node->reload_refused);
        (void)snprintf(own->help, sizeof own->help,
                       "nothing of it was taken; mend the configuration (troupe config check), "
                       "then SIGHUP");
        view->troubles_count++;
    }
    pthread_mutex_unlock(&node->lock);
}

trp_err
trpi_view_take(trp_node *node, trpi_view *ret_view)
{
    trpi_cluster_snapshot *snapshot = NULL;
    trp_err err = trpi_cluster_snapshot_get(node->cluster, &snapshot);
    if (err != TRP_OK) {
        return err;
    }
    memset(ret_view, 0, sizeof *ret_view);
    size_t members_bytes = snapshot->members_count * sizeof(trpi_view_member);
    ret_view->memory =
        trpi_alloc(members_bytes + (snapshot->observations_count + 1) * sizeof(char *));
    if (!ret_view->memory) {
        trpi_cluster_snapshot_free(snapshot);
        return TRP_ENOMEM;
    }
    ret_view->members = ret_view->memory;
    ret_view->count = snapshot->members_count;
    for (size_t i = 0; i < ret_view->count; i++) {
        member_fill(&snapshot->members[i], &ret_view->members[i]);
    }
    observers_fill(snapshot, ret_view,
                   (const char **)(void *)((char *)ret_view->memory + members_bytes));
    ret_view->self = snapshot->self < ret_view->count ? &ret_view->members[snapshot->self] : NULL;
    ret_view->leader = member_at(ret_view, snapshot->leader);
    ret_view->oldest = member_at(ret_view, snapshot->oldest);
    ret_view->converged = snapshot->converged;
    ret_view->clock_count = snapshot->clock_count;
    ret_view->tombstones_count = snapshot->tombstones_count;
    ret_view->converged_ms = snapshot->converged_ms;
    ret_view->version = snapshot->version;
    memcpy(ret_view->seeking, snapshot->seeking, sizeof ret_view->seeking);
    memcpy(ret_view->seeking_why, snapshot->seeking_why, sizeof ret_view->seeking_why);
    memcpy(ret_view->lacking, snapshot->lacking, sizeof ret_view->lacking);
    if (ret_view->seeking[0] != '\0' && ret_view->seeking_why[0] == '\0') {
        seeking_look(node, ret_view);
    }
    ret_view->strategy = snapshot->strategy;
    ret_view->stable_after_ms = snapshot->stable_after_ms;
    ret_view->auto_down_after_ms = snapshot->auto_down_after_ms;
    ret_view->removed_ms = snapshot->removed_ms;
    ret_view->waking = snapshot->waking;
    trpi_exclusive_look(node->cluster, &ret_view->exclusive);
    ret_view->foreign_count = snapshot->foreign_count;
    for (size_t i = 0; i < snapshot->foreign_count; i++) {
        trpi_view_member *f = &ret_view->foreign[i];
        memcpy(f->m.address, snapshot->foreign[i].address, sizeof f->m.address);
        f->m.uid = snapshot->foreign[i].uid;
        f->m.status = TRP_MEMBER_UP;
        f->age_ms = snapshot->foreign[i].since_ms;
    }
    ret_view->stats = snapshot->stats;
    trpi_cluster_snapshot_free(snapshot);
    return TRP_OK;
}

bool
trpi_view_take_for(trp_node *node, trpi_call *call, trpi_view *ret_view)
{
    if (trpi_view_take(node, ret_view) == TRP_OK) {
        return true;
    }
    trpi_call_answer(call, NULL);
    return false;
}

static void
causes_fill(trpi_view *view, const trpi_peer_info *peers, size_t count)
{
    for (size_t i = 0; i < view->count; i++) {
        trpi_view_member *v = &view->members[i];
        trpi_address address;
        if (v->m.reachable || trpi_address_parse(v->m.address, &address, NULL, NULL) != TRP_OK) {
            continue;
        }
        for (size_t j = 0; j < count; j++) {
            if (trpi_address_equal(&peers[j].id.address, &address) && peers[j].reason[0] != '\0' &&
                strcmp(peers[j].state, "active") != 0) {
                (void)snprintf(v->cause, sizeof v->cause, "%s", peers[j].reason);
            }
        }
    }
}

void
trpi_view_foresee(trp_node *node, trpi_view *view)
{
    trpi_peer_info first;
    size_t count = 0, missed = 0;
    for (size_t i = 0; i < view->count; i++) {
        missed += !view->members[i].m.reachable;
    }
    if (missed == 0) {
        return;
    }
    view->foresees = trpi_cluster_forecast(node->cluster, &view->forecast);
    trpi_remote_peers(node->remote, &first, 1, &count);
    trpi_peer_info *peers = trpi_alloc((count + 1) * sizeof *peers);
    if (peers != NULL) { /* without memory the causes are left out */
        size_t room = count + 1;
        trpi_remote_peers(node->remote, peers, room, &count);
        causes_fill(view, peers, count < room ? count : room);
        trpi_free(peers);
    }
}

void
trpi_view_fini(trpi_view *view)
{
    trpi_free(view->memory);
    memset(view, 0, sizeof *view);
}
