/* proxy.c - the actor that passes messages on to a singleton, wherever it runs.
 *
 * Shape.   message --> proxy --the singleton is known and its host reachable--> singleton
 *                        `-- else: stash, up to its limit --unstashed when it is found--^
 *          WHERE to the oldest member --> HERE when it runs, GONE when it begins to stop
 * Must hold.
 *   proxy-S6  Messages of one sender keep their order: those that waited go before later ones.
 *   proxy-S7  A message is passed on, or waits, or is a dead letter.
 * Limits.  msgs_max of the options.
 * Tests.   tests/unit/cluster/singleton_test.c, tests/sim/singleton_test.c
 * Sources. CONTRIB-09
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "cluster/singleton/registry.h"

#define TICK_KEY 1u

typedef struct proxy { /* entry->own */
    singleton_entry *entry;
    uint32_t retry_ms, msgs_max;
} proxy;

struct proxy_state {
    proxy *own;
    bool has_oldest, reachable, known;
    trpi_node_id oldest; /* the member that should host it */
    trpi_node_id host;   /* known: where it runs, */
    trp_ref target;      /* and what */
    uint32_t kept;
};

static void
status_set(const struct proxy_state *p)
{
    singleton_entry *entry = p->own->entry;
    pthread_mutex_lock(&entry->registry->lock);
    entry->status.kept = p->kept;
    entry->status.runs = false;
    entry->status.host[0] = '\0';
    entry->status.waits[0] = '\0';
    if (p->known || p->has_oldest) {
        (void)trpi_address_format(p->known ? &p->host.address : &p->oldest.address,
                                  entry->status.host, sizeof entry->status.host);
    }
    if (!p->known || !p->reachable) {
        (void)snprintf(entry->status.waits, sizeof entry->status.waits, "%s",
                       !p->has_oldest ? "no member may host it"
                       : p->known     ? "its host is unreachable"
                                      : "its host has not told that it runs");
    }
    pthread_mutex_unlock(&entry->registry->lock);
}

static void
ask_where(const struct proxy_state *p)
{
    singleton_frame frame = { .word = SINGLETON_WHERE };
    (void)snprintf(frame.name, sizeof frame.name, "%s", p->own->entry->name);
    if (p->has_oldest) {
        singleton_send_frame(p->own->entry->registry, &p->oldest, &frame);
    }
}

/* Ask again while it is not known; a known one is watched. */
static void
timer_set(const struct proxy_state *p, trp_ctx *ctx)
{
    if (p->known || !p->has_oldest) {
        trp_timer_cancel(ctx, TICK_KEY);
        return;
    }
    trp_err err = trp_timer_once(ctx, TICK_KEY, p->own->retry_ms, &singleton_tick_type, NULL, 0);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "no timer: %s", trp_strerror(err));
    }
}

static void
target_forget(struct proxy_state *p, trp_ctx *ctx)
{
    if (p->known) {
        trp_unwatch(ctx, p->target);
        p->known = false;
    }
}

/* Those that wait go to the front of the mailbox (proxy-S6). */
static void
kept_release(struct proxy_state *p, trp_ctx *ctx)
{
    if (p->known && p->reachable && p->kept > 0) {
        p->kept = 0;
        trp_unstash_all(ctx);
    }
}

static void
members_look(struct proxy_state *p, trp_ctx *ctx)
{
    singleton_member *members = NULL;
    uint32_t count = 0, oldest = TRPI_AGE_NONE;
    trp_err err = singleton_members_read(p->own->entry, &members, &count);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "the members cannot be read: %s", trp_strerror(err));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (trpi_age_counts(&members[i].aged) &&
            (oldest == TRPI_AGE_NONE ||
             trpi_age_compare(&members[i].aged, &members[oldest].aged) < 0)) {
            oldest = i;
        }
    }
    bool has = oldest != TRPI_AGE_NONE, is_there = false;
    bool same =
        has == p->has_oldest && (!has || trpi_node_id_equal(&members[oldest].aged.id, &p->oldest));
    for (uint32_t i = 0; p->known && i < count; i++) {
        if (trpi_node_id_equal(&members[i].aged.id, &p->host)) {
            is_there = members[i].aged.status != TRP_MEMBER_DOWN;
            p->reachable = is_there && members[i].reachable;
        }
    }
    if (p->known && !is_there) {
        target_forget(p, ctx);
        same = false;
    }
    p->has_oldest = has;
    if (has) {
        p->oldest = members[oldest].aged.id;
    }
    trpi_free(members);
    if (!same) { /* the one before may run for a while: until it says GONE, or ends */
        if (!p->known) {
            ask_where(p);
        }
        timer_set(p, ctx);
    }
    kept_release(p, ctx);
}

/* Return the ref that a host has told. */
static bool
target_make(struct proxy_state *p, const singleton_note *note, trp_ref *ret_ref)
{
    trp_system *system = p->own->entry->registry->system;
    *ret_ref = (trp_ref){ TRPI_NODE_SELF, note->slot, note->generation, 0 };
    if (trpi_node_id_equal(&note->from, &p->own->entry->registry->self)) {
        return true;
    }
    return trpi_node_meet(system, &note->from, &ret_ref->node) == TRP_OK;
}

static void
note_take(struct proxy_state *p, trp_ctx *ctx, const singleton_note *note)
{
    bool from_oldest = p->has_oldest && trpi_node_id_equal(&note->from, &p->oldest);
    trp_ref ref;
    if (note->word == SINGLETON_HERE && from_oldest && target_make(p, note, &ref)) {
        if (p->known && trp_ref_equal(ref, p->target)) {
            return;
        }
        target_forget(p, ctx);
        p->target = ref;
        p->host = note->from;
        p->known = trp_watch(ctx, ref) == TRP_OK;
        p->reachable = true;
        pthread_mutex_lock(&p->own->entry->registry->lock);
        p->own->entry->host_since_ms = singleton_now_ms(p->own->entry->registry);
        pthread_mutex_unlock(&p->own->entry->registry->lock);
    } else if (note->word == SINGLETON_GONE && p->known) {
        trp_ref gone;
        if (target_make(p, note, &gone) && gone.node == p->target.node) {
            target_forget(p, ctx);
            if (!from_oldest) {
                ask_where(p);
            }
        }
    }
    timer_set(p, ctx);
    members_look(p, ctx);
}

static void
pass_on(struct proxy_state *p, trp_ctx *ctx, const trp_msg *msg)
{
    if (p->known && p->reachable) {
        trp_forward(ctx, p->target, msg);
        return;
    }
    if (p->kept < p->own->msgs_max && trp_stash(ctx, msg) == TRP_OK) {
        p->kept++;
    } else { /* proxy-S7 */
        trpi_dead_letter_msg(p->own->entry->registry->system, trp_self(ctx), msg,
                             TRP_DEAD_MAILBOX_FULL);
    }
}

static trp_err
proxy_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct proxy_state *p = state;
    if (trp_msg_is(msg, &singleton_note_type)) {
        note_take(p, ctx, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &singleton_tick_type)) {
        ask_where(p);
        timer_set(p, ctx);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *ended = trp_msg_payload(msg);
        if (p->known && trp_ref_equal(ended->ref, p->target)) {
            p->known = false;
            ask_where(p);
            timer_set(p, ctx);
        }
    } else if (singleton_is_event(msg)) {
        members_look(p, ctx);
    } else {
        bool kept_before = p->kept > 0;
        pass_on(p, ctx, msg);
        if (kept_before == (p->kept > 0)) {
            return TRP_OK; /* no change that anybody looks at */
        }
    }
    status_set(p);
    return TRP_OK;
}

static trp_err
proxy_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct proxy_state *p = state;
    if (args == NULL || trp_msg_bytes(args) != sizeof p->own) {
        return TRP_EINVAL;
    }
    memcpy(&p->own, trp_msg_payload(args), sizeof p->own);
    return trp_cluster_subscribe(p->own->entry->registry->system, trp_self(ctx),
                                 TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS);
}

const trp_behaviour singleton_proxy_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "singleton-proxy",
    .version = 1,
    .state_bytes = sizeof(struct proxy_state),
    .receive = proxy_receive,
    .pre_start = proxy_start,
};

/* ---- start ----------------------------------------------------------------------------------- */

static void
proxy_free(singleton_entry *entry)
{
    trpi_free(entry->own);
    trpi_free(entry);
}

static bool
options_take(const trp_singleton_proxy_options *given, trp_singleton_proxy_options *own)
{
    if (given == NULL || !TRPI_SIZED_COPY(given, own, retry_ms) || own->name == NULL ||
        own->name[0] == '\0' || strlen(own->name) > TRP_SINGLETON_NAME_BYTES_MAX ||
        (own->role != NULL && strlen(own->role) >= TRP_ROLE_BYTES) ||
        own->msgs_max > TRP_SINGLETON_PROXY_MSGS_MAX ||
        own->retry_ms > TRP_SINGLETON_DELAY_MS_MAX) {
        return false;
    }
    own->msgs_max = own->msgs_max == 0 ? TRP_SINGLETON_PROXY_MSGS_DEFAULT : own->msgs_max;
    own->retry_ms = own->retry_ms == 0 ? TRP_SINGLETON_RETRY_MS_DEFAULT : own->retry_ms;
    return true;
}

trp_err
trp_singleton_proxy(trp_system *system, const trp_singleton_proxy_options *options,
                    trp_ref *ret_proxy)
{
    trp_singleton_proxy_options own = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    if (system == NULL || ret_proxy == NULL || !options_take(options, &own)) {
        return TRP_EINVAL;
    }
    singleton_registry *registry = singleton_registry_get(system);
    if (registry == NULL) {
        return TRP_ESTATE;
    }
    singleton_entry *entry = trpi_alloc(sizeof *entry);
    proxy *p = trpi_alloc(sizeof *p);
    if (entry == NULL || p == NULL) {
        trpi_free(entry);
        trpi_free(p);
        return TRP_ENOMEM;
    }
    *p = (proxy){ .entry = entry, .retry_ms = own.retry_ms, .msgs_max = own.msgs_max };
    entry->own = p;
    entry->free = proxy_free;
    entry->is_proxy = true;
    (void)snprintf(entry->name, sizeof entry->name, "%s", own.name);
    (void)snprintf(entry->role, sizeof entry->role, "%s", own.role == NULL ? "" : own.role);
    trp_err err = singleton_entry_add(registry, entry);
    if (err != TRP_OK) {
        proxy_free(entry);
        return err;
    }
    spawn.mailbox = "unbounded";
    spawn.dispatcher = "default";
    spawn.stash_msgs_max = own.msgs_max;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &p;
    spawn.args_bytes = sizeof p;
    err = trpi_system_spawn_internal(system, &singleton_proxy_behaviour, &spawn, &entry->actor);
    if (err != TRP_OK) {
        singleton_entry_drop(entry);
        return err;
    }
    *ret_proxy = entry->actor;
    return TRP_OK;
}
