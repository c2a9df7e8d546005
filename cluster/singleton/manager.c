/* manager.c - the actor /system/singleton-NAME around the engine of singletons.
 *
 * Shape.   events of the cluster, notes of other managers, timers --> engine --> actions: frames,
 *          spawn, end message, lease, the task of the phase cluster-exiting
 * Must hold.
 *   manager-S3  A failure of the manager stops the singleton, its child, before the engine begins
 *       again. The engine outlives the manager: a restart forgets no removed member.
 *   manager-S4  The end message is told ahead of what waits in the singleton's mailbox.
 *   manager-S5  Nodes that asked where it is are told when it starts, and when it begins to stop.
 * Limits.  One entry for each node that asked; TRP_SINGLETON_DATA_BYTES_MAX.
 * Tests.   tests/unit/cluster/singleton_test.c, tests/sim/singleton_test.c
 * Sources. CONTRIB-01 to -08, -10; ROLES-03, -05
 */
#include <stdio.h>
#include <string.h>

#include <troupe/serialization.h>
#include <troupe/shutdown.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/shell/exclusive.h"
#include "cluster/singleton/manager.h"

#define TICK_KEY 1u

struct manager_state {
    manager *manager;
};

/* ---- actions --------------------------------------------------------------------------------- */

static void
manager_say(const manager *m, trp_log_level level, const char *text)
{
    trpi_log(m->entry->registry->system, level, "singleton", "singleton \"%s\": %s", m->entry->name,
             text);
}

/* Tell the nodes that asked. */
static void
askers_tell(manager *m, uint32_t word)
{
    singleton_frame frame = { .word = word };
    (void)snprintf(frame.name, sizeof frame.name, "%s", m->entry->name);
    frame.slot = m->child.slot;
    frame.generation = m->child.generation;
    for (uint32_t i = 0; i < m->askers_count; i++) {
        singleton_send_frame(m->entry->registry, &m->askers[i], &frame);
    }
}

static void
child_spawn(manager *m, const trpi_buffer *data)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_msg *args = NULL;
    char text[160];
    spawn.name = "singleton";
    spawn.dispatcher = m->options.dispatcher != NULL ? m->options.dispatcher : "default";
    spawn.mailbox = m->options.mailbox;
    spawn.node = TRP_NODE_HERE;
    spawn.args_type = m->options.args_type;
    spawn.args = m->options.args;
    spawn.args_bytes = m->options.args_bytes;
    if (data != NULL) {
        trp_err err = trp_deserialize(m->entry->registry->system, data->data, data->count, &args);
        if (err == TRP_OK) {
            spawn.args_type = trp_msg_type(args);
            spawn.args = trp_msg_payload(args);
            spawn.args_bytes = trp_msg_bytes(args);
        } else {
            (void)snprintf(text, sizeof text,
                           "the data that was handed over cannot be read (%s): it starts without",
                           trp_strerror(err));
            manager_say(m, TRP_LOG_ERROR, text);
        }
    }
    trp_err err = trpi_spawn_guarded(m->ctx, m->options.behaviour, &spawn, &m->child);
    err = err == TRP_OK ? trp_watch(m->ctx, m->child) : err;
    trp_msg_free(args);
    m->spawn_failed = err != TRP_OK;
    if (err != TRP_OK) {
        (void)snprintf(text, sizeof text, "it cannot be started: %s; it is tried again",
                       trp_strerror(err));
        manager_say(m, TRP_LOG_ERROR, text);
    } else {
        askers_tell(m, SINGLETON_HERE);
    }
}

static void
child_stop(manager *m, bool force)
{
    const trp_type *type = m->options.end_type;
    trp_err err = TRP_OK;
    askers_tell(m, SINGLETON_GONE);
    if (!force) { /* manager-S4 */
        trpi_restart_now(m->ctx, m->child);
        err = trpi_tell_ahead(m->ctx, m->child, trp_self(m->ctx),
                              type == NULL ? &trp_poison_pill_type : type, m->options.end,
                              m->options.end_bytes);
    }
    if (force || err != TRP_OK) {
        trp_stop(m->ctx, m->child);
    }
}

static void
state_changed(manager *m, const char *why)
{
    trpi_log(m->entry->registry->system, TRP_LOG_INFO, "singleton", "singleton \"%s\": %s (%s)",
             m->entry->name, trpi_singleton_state_name(trpi_singleton_state_get(m->core)), why);
}

static void
exit_done(manager *m)
{
    m->over = true;
    if (m->task != 0) {
        trp_shutdown_done(m->entry->registry->system, m->task, TRP_OK);
        m->task = 0;
    }
}

static void
lease_call(manager *m, bool acquire)
{
    bool inside = trpi_world_is_driven(trpi_system_world(m->entry->registry->system));
    if (acquire) {
        trpi_lease_acquire(m->lease, inside);
    } else {
        trpi_lease_release(m->lease, inside);
    }
}

void
singleton_manager_act(void *arg, const trpi_singleton_action *action)
{
    manager *m = arg;
    switch (action->kind) {
    case TRPI_SINGLETON_SEND: {
        singleton_frame frame = { .word = action->word, .round = action->round };
        (void)snprintf(frame.name, sizeof frame.name, "%s", m->entry->name);
        if (action->data != NULL) {
            frame.data = action->data->data;
            frame.data_bytes = action->data->count;
        }
        singleton_send_frame(m->entry->registry, action->to, &frame);
        break;
    }
    case TRPI_SINGLETON_SPAWN:
        child_spawn(m, action->data);
        break;
    case TRPI_SINGLETON_STOP:
    case TRPI_SINGLETON_KILL:
        child_stop(m, action->kind == TRPI_SINGLETON_KILL);
        break;
    case TRPI_SINGLETON_LEASE_ACQUIRE:
    case TRPI_SINGLETON_LEASE_RELEASE:
        lease_call(m, action->kind == TRPI_SINGLETON_LEASE_ACQUIRE);
        break;
    case TRPI_SINGLETON_STATE:
        state_changed(m, action->text);
        break;
    case TRPI_SINGLETON_STUCK:
        (void)snprintf(m->stuck, sizeof m->stuck, "%s", action->text);
        break;
    case TRPI_SINGLETON_OVER:
        exit_done(m);
        break;
    case TRPI_SINGLETON_SAY:
        manager_say(m, TRP_LOG_WARNING, action->text);
        break;
    }
}

/* ---- what others see ------------------------------------------------------------------------- */

static void
waits_describe(const trpi_singleton_look *look, uint64_t now_ms, char *text, size_t bytes)
{
    char address[TRPI_ADDRESS_TEXT_BYTES] = "";
    text[0] = '\0';
    if (look->awaited != NULL) {
        (void)trpi_address_format(&look->awaited->address, address, sizeof address);
    }
    if (look->state == TRPI_SINGLETON_WAS_OLDEST) {
        (void)snprintf(text, bytes, "%s has not answered %u offers to take it over", address,
                       look->asked);
    } else if (look->awaited_free_ms > now_ms) {
        (void)snprintf(text, bytes,
                       "%s was removed and may still run it: it starts here in %llu s (if that "
                       "node is dead for sure: troupe down --dead %s)",
                       address, (unsigned long long)((look->awaited_free_ms - now_ms) / 1000 + 1),
                       address);
    } else if (look->awaited != NULL) {
        (void)snprintf(text, bytes, "%s has not handed it over yet (%u requests unanswered)",
                       address, look->asked);
    } else if (look->awaits_lease) {
        (void)snprintf(text, bytes, "its lease is not granted");
    } else if (look->state == TRPI_SINGLETON_BECOMING && look->cluster_ends) {
        (void)snprintf(text, bytes, "the whole cluster is being shut down");
    } else if (look->state == TRPI_SINGLETON_HANDING_OVER) {
        (void)snprintf(text, bytes, "it has not stopped since its end message");
    }
}

static void
status_set(manager *m)
{
    singleton_entry *entry = m->entry;
    trpi_singleton_look look;
    uint64_t now_ms = singleton_now_ms(entry->registry);
    char waits[TRPI_SINGLETON_WAITS_BYTES];
    trpi_singleton_look_at(m->core, &look);
    waits_describe(&look, now_ms, waits, sizeof waits);
    const trpi_node_id *host = look.hosts ? &entry->registry->self : look.oldest;
    pthread_mutex_lock(&entry->registry->lock);
    entry->status.state = trpi_singleton_state_name(look.state);
    entry->status.runs = look.hosts;
    entry->state_since_ms = look.state_since_ms;
    if (host == NULL) {
        entry->status.host[0] = '\0';
    } else {
        if (!trpi_node_id_equal(host, &m->oldest_seen)) {
            m->oldest_seen = *host;
            entry->host_since_ms = now_ms;
        }
        (void)trpi_address_format(&host->address, entry->status.host, sizeof entry->status.host);
    }
    if (look.hosts) {
        entry->host_since_ms = look.hosts_since_ms;
    }
    (void)snprintf(entry->status.waits, sizeof entry->status.waits, "%s", waits);
    pthread_mutex_unlock(&entry->registry->lock);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void
timer_set(manager *m, trp_ctx *ctx)
{
    trpi_singleton_look look;
    uint64_t wake_ms = trpi_singleton_wake_ms(m->core);
    uint64_t now_ms = singleton_now_ms(m->entry->registry);
    trpi_singleton_look_at(m->core, &look);
    if (look.awaited_free_ms > now_ms && wake_ms > now_ms + m->options.retry_ms) {
        wake_ms = now_ms + m->options.retry_ms; /* an operator may have made it shorter */
    }
    if (m->entry->registry->cluster_ends_ms > now_ms &&
        wake_ms > m->entry->registry->cluster_ends_ms) {
        wake_ms = m->entry->registry->cluster_ends_ms;
    }
    if (wake_ms == UINT64_MAX) {
        trp_timer_cancel(ctx, TICK_KEY);
        return;
    }
    uint64_t delay_ms = wake_ms <= now_ms ? 1 : wake_ms - now_ms;
    trp_err err = trp_timer_once(ctx, TICK_KEY, (uint32_t)delay_ms, &singleton_tick_type, NULL, 0);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "no timer: %s", trp_strerror(err));
    }
}

static void
manager_step(manager *m, trp_ctx *ctx, const trpi_singleton_event *event)
{
    const trpi_singleton_event failed = { .kind = TRPI_SINGLETON_STOPPED };
    m->ctx = ctx;
    m->stuck[0] = '\0';
    trp_err err = trpi_singleton_step(m->core, singleton_now_ms(m->entry->registry), event);
    if (err == TRP_OK && m->spawn_failed) {
        m->spawn_failed = false;
        err = trpi_singleton_step(m->core, singleton_now_ms(m->entry->registry), &failed);
    }
    m->ctx = NULL;
    status_set(m);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "singleton \"%s\": %s", m->entry->name, trp_strerror(err));
    }
    if (m->stuck[0] != '\0') { /* CONTRIB-07: the supervisor restarts it */
        trp_fail(ctx, 0, "singleton \"%s\" is %s", m->entry->name, m->stuck);
    }
    timer_set(m, ctx);
}

static uint64_t
takeover_ms(void *arg, const trpi_node_id *id)
{
    uint64_t wait_ms = 0;
    const manager *m = arg;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    /* without a cluster nothing is hosted at all */
    (void)trpi_exclusive_takeover_ms(m->entry->registry->system,
                                     trpi_address_format(&id->address, address, sizeof address),
                                     id->uid, &wait_ms);
    if (wait_ms == TRPI_EXCLUSIVE_NEVER) {
        wait_ms = TRPI_SINGLETON_NEVER;
    }
    return wait_ms;
}

static void
view_step(manager *m, trp_ctx *ctx)
{
    singleton_member *members = NULL;
    uint32_t count = 0;
    trp_err err = singleton_members_read(m->entry, &members, &count);
    m->aged_count = 0;
    err = err == TRP_OK ? TRPI_ARRAY_RESERVE(m, aged, count + 1, TRPI_ARRAY_NO_LIMIT) : err;
    for (uint32_t i = 0; err == TRP_OK && i < count; i++) {
        m->aged[m->aged_count++] = members[i].aged;
    }
    trpi_free(members);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "singleton \"%s\": the members cannot be read: %s", m->entry->name,
                 trp_strerror(err));
    }
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_VIEW,
                                   .members = m->aged,
                                   .count = count,
                                   .takeover_ms = takeover_ms,
                                   .takeover_arg = m };
    manager_step(m, ctx, &event);
}

static void
ends_step(manager *m, trp_ctx *ctx)
{
    singleton_registry *registry = m->entry->registry;
    pthread_mutex_lock(&registry->lock);
    bool ends = registry->cluster_ends_ms > singleton_now_ms(registry) ||
                trp_shutdown_reason_get(registry->system) == TRP_SHUTDOWN_CLUSTER;
    pthread_mutex_unlock(&registry->lock);
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_CLUSTER_ENDS, .count = ends };
    if (ends != m->cluster_ends) {
        m->cluster_ends = ends;
        manager_step(m, ctx, &event);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A node asks where it runs. manager-S5 */
static void
asker_add(manager *m, const trpi_node_id *id)
{
    trpi_singleton_look look;
    bool known = false;
    for (uint32_t i = 0; i < m->askers_count; i++) {
        known = known || trpi_node_id_equal(&m->askers[i], id);
    }
    if (!known && TRPI_ARRAY_RESERVE(m, askers, 1, TRP_CLUSTER_MEMBERS_MAX) == TRP_OK) {
        m->askers[m->askers_count++] = *id;
    }
    trpi_singleton_look_at(m->core, &look);
    if (look.hosts && look.state != TRPI_SINGLETON_HANDING_OVER) {
        singleton_frame frame = { .word = SINGLETON_HERE,
                                  .slot = m->child.slot,
                                  .generation = m->child.generation };
        (void)snprintf(frame.name, sizeof frame.name, "%s", m->entry->name);
        singleton_send_frame(m->entry->registry, id, &frame);
    }
}

/* Nodes that are no members any more ask no more. */
static void
askers_forget(manager *m, const trp_member_event *removed)
{
    trpi_aged aged;
    if (!trpi_aged_of(&removed->member, &aged)) {
        return;
    }
    for (uint32_t i = 0; i < m->askers_count; i++) {
        if (trpi_node_id_equal(&m->askers[i], &aged.id)) {
            m->askers[i] = m->askers[--m->askers_count];
            return;
        }
    }
}

static void
note_step(manager *m, trp_ctx *ctx, const singleton_note *note)
{
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_FRAME,
                                   .from = note->from,
                                   .word = (trpi_singleton_word)note->word,
                                   .round = note->round };
    trpi_buffer data = { NULL, 0, 0 };
    if (note->word == SINGLETON_WHERE) {
        asker_add(m, &note->from);
        return;
    }
    for (uint32_t i = 0; i < m->aged_count; i++) {
        if (trpi_node_id_equal(&m->aged[i].id, &note->from)) {
            event.up_number = m->aged[i].up_number;
            if (trpi_buffer_append(&data, note->data, note->data_bytes,
                                   TRP_SINGLETON_DATA_BYTES_MAX) != TRP_OK) {
                return; /* as a lost frame */
            }
            event.data = &data;
            manager_step(m, ctx, &event);
            trpi_buffer_fini(&data);
            return;
        }
    }
    view_step(m, ctx); /* of a member that this node does not know yet: it asks again */
}

/* Keep the message that the singleton tells its parent for the next one. */
static void
data_step(manager *m, trp_ctx *ctx, const trp_msg *msg)
{
    trp_msg *form = NULL;
    trpi_buffer data = { NULL, 0, 0 };
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_DATA, .data = &data };
    char text[200];
    if (trpi_singleton_state_get(m->core) != TRPI_SINGLETON_HANDING_OVER) {
        trp_unhandled_msg(ctx, msg);
        return;
    }
    trp_err err = trp_serialize(m->entry->registry->system, trp_msg_type(msg), trp_msg_payload(msg),
                                trp_msg_bytes(msg), &form);
    if (err == TRP_OK) {
        err = trpi_buffer_append(&data, trp_msg_payload(form), trp_msg_bytes(form),
                                 TRP_SINGLETON_DATA_BYTES_MAX);
    }
    trp_msg_free(form);
    if (err != TRP_OK) {
        (void)snprintf(text, sizeof text,
                       "its hand-over data (%zu bytes of %s) cannot be handed over: %s; the next "
                       "one starts without",
                       trp_msg_bytes(msg), trp_msg_type(msg)->name, trp_strerror(err));
        manager_say(m, TRP_LOG_ERROR, text);
        trpi_dead_letter_msg(m->entry->registry->system, trp_self(ctx), msg,
                             TRP_DEAD_NOT_ENCODABLE);
        return;
    }
    manager_step(m, ctx, &event);
    trpi_buffer_fini(&data);
}

static void
event_step(manager *m, trp_ctx *ctx, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_member_removed_type)) {
        const trp_member_event *removed = trp_msg_payload(msg);
        askers_forget(m, removed);
        if (removed->member.self != 0) {
            const trpi_singleton_event out = { .kind = TRPI_SINGLETON_OUT };
            m->out = true;
            manager_step(m, ctx, &out);
        }
    }
    if (!m->out) {
        ends_step(m, ctx);
        view_step(m, ctx);
    }
}

static void
ended_step(manager *m, trp_ctx *ctx, const trp_terminated *ended)
{
    const trpi_singleton_event stopped = { .kind = TRPI_SINGLETON_STOPPED };
    if (!trp_ref_equal(ended->ref, m->child)) {
        return;
    }
    if (trpi_singleton_state_get(m->core) != TRPI_SINGLETON_HANDING_OVER) {
        manager_say(m, TRP_LOG_WARNING, "it has ended by itself, and is started again");
        askers_tell(m, SINGLETON_GONE);
    }
    m->child = (trp_ref)TRP_REF_NONE;
    manager_step(m, ctx, &stopped);
}

static trp_err
manager_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    manager *m = ((struct manager_state *)state)->manager;
    if (trp_msg_is(msg, &singleton_note_type)) {
        note_step(m, ctx, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &singleton_tick_type)) {
        const trpi_singleton_event tick = { .kind = TRPI_SINGLETON_TICK };
        ends_step(m, ctx);
        if (!m->out && trpi_singleton_state_get(m->core) == TRPI_SINGLETON_BECOMING) {
            view_step(m, ctx);
        }
        manager_step(m, ctx, &tick);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        ended_step(m, ctx, trp_msg_payload(msg));
    } else if (singleton_is_event(msg)) {
        event_step(m, ctx, msg);
    } else if (trp_msg_is(msg, &singleton_ends_type)) {
        ends_step(m, ctx);
    } else if (trp_msg_is(msg, &singleton_lease_type)) {
        const uint64_t *granted = trp_msg_payload(msg);
        trpi_singleton_event event = { .kind = *granted != 0 ? TRPI_SINGLETON_LEASE_GRANTED
                                                             : TRPI_SINGLETON_LEASE_REFUSED };
        manager_step(m, ctx, &event);
    } else if (trp_msg_is(msg, &singleton_exit_type)) {
        m->task = *(const uint64_t *)trp_msg_payload(msg);
        ends_step(m, ctx);
        if (m->over) {
            exit_done(m);
        }
    } else if (!trp_ref_is_none(m->child) && trp_ref_equal(trp_sender(ctx), m->child)) {
        data_step(m, ctx, msg);
    } else {
        trp_unhandled_msg(ctx, msg);
    }
    return TRP_OK;
}

static trp_err
manager_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    manager *m;
    if (args == NULL || trp_msg_bytes(args) != sizeof m) {
        return TRP_EINVAL;
    }
    memcpy(&m, trp_msg_payload(args), sizeof m);
    ((struct manager_state *)state)->manager = m;
    m->child = (trp_ref)TRP_REF_NONE;
    if (m->started) { /* manager-S3 */
        trpi_singleton_restart(m->core, singleton_now_ms(m->entry->registry));
    }
    m->started = true;
    return trp_cluster_subscribe(m->entry->registry->system, trp_self(ctx),
                                 TRP_CLUSTER_MEMBER_EVENTS);
}

static void
manager_stop(trp_ctx *ctx, void *state)
{
    manager *m = ((struct manager_state *)state)->manager;
    (void)ctx;
    if (m != NULL && trpi_system_is_ending(m->entry->registry->system)) {
        exit_done(m);
    }
}

const trp_behaviour singleton_manager_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "singleton-manager",
    .version = 1,
    .state_bytes = sizeof(struct manager_state),
    .receive = manager_receive,
    .pre_start = manager_start,
    .post_stop = manager_stop,
};
