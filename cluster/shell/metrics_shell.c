/* metrics_shell.c - the actor /system/cluster-metrics around the pure core, and the public API of
 * troupe/metrics.h.
 *
 * Why.     An actor of its own, on a dispatcher of threads of their own: a slow collector stops
 *          neither membership nor workers, and a node whose workers are all busy still reports its
 *          load.
 * Shape.   transport threads --frames--> mailbox --> actor --> core --> published table
 *          membership --poke--> mailbox: the members have changed
 *          published table --> subscribers, routers
 * Must hold.
 *   metrics-shell-S1  Only the actor touches the core and the collector.
 *   metrics-shell-S2  The published table is replaced as a whole, and the old one retired: readers
 *       take no lock.
 *   metrics-shell-S3  One poke at most waits in the mailbox: the actor clears `poked` before it
 *       reads the view, so a later change pokes again.
 * Limits.  METRICS_FRAMES_MAX frames and METRICS_FRAME_BYTES_MAX bytes of them wait in the mailbox
 *          (shell-messages-Q1); more are dropped and counted: the next round brings newer ones.
 * Tests.   tests/unit/cluster/adaptive_test.c
 * Sources. CMETRIC-01, -02, -13 to -15.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/shell/shell.h"

#define IDLE_MS 10000u /* between two looks while this node is no member */

struct trpi_metrics {
    trpi_cluster *cluster;
    trp_ref actor;
    _Atomic(trpi_metrics_table *) published; /* by the actor, release; read in a run or bracket */

    /* the actor */
    trpi_metrics_core *core;
    const trp_metrics_collector *collector;
    char collector_name[64]; /* looked for when this node is a member; "": none */
    void *collecting;        /* state of the open collector */
    bool open;
    uint64_t view_digest; /* of the view that the core knows */

    uint64_t timer_ms; /* when the timer fires; 0: it is not set */

    struct shell_mailbox mailbox; /* any thread, as the next */
    _Atomic bool poked;           /* metrics-shell-S3 */
};

struct metrics_state {
    struct trpi_metrics *metrics;
};

trp_type trp_metrics_changed_type = { "cluster-metrics.changed",
                                      0,
                                      trp_metrics_changed_tag,
                                      TRP_TYPE_LOCAL | TRP_TYPE_VARIABLE,
                                      NULL,
                                      0,
                                      0 };
static trp_type poke_type = { "cluster-metrics.poke", 0, 0xff51, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type tick_type = { "cluster-metrics.tick", 0, 0xff52, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type frame_type = {
    "cluster-metrics.frame", 0, 0xff53, TRP_TYPE_LOCAL | TRP_TYPE_VARIABLE, NULL, 0, 0
};
static trp_type *const metrics_types[] = { &trp_metrics_changed_type, &poke_type, &tick_type,
                                           &frame_type };
static const trp_protocol metrics_protocol = { "cluster-metrics", metrics_types, 4 };

/* ---- any thread ------------------------------------------------------------------------------ */

static bool
is_closed(const struct trpi_metrics *metrics)
{
    return atomic_load_explicit(&metrics->mailbox.closed,
                                memory_order_acquire); /* pair: trpi_metrics_stop() */
}

void
trpi_metrics_members_changed(struct trpi_metrics *metrics)
{
    if (metrics == NULL || is_closed(metrics) ||
        atomic_exchange_explicit(&metrics->poked, true,
                                 memory_order_acq_rel)) { /* pair: metrics_receive() */
        return;
    }
    trp_system_tell(metrics->cluster->system, metrics->actor, &poke_type, NULL, 0);
}

void
trpi_metrics_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                           uint64_t arrived_ns)
{
    (void)arrived_ns;
    static const struct shell_bound bound = { &frame_type, METRICS_FRAMES_MAX,
                                              METRICS_FRAME_BYTES_MAX };
    struct trpi_metrics *metrics = arg;
    shell_frame_put(metrics->cluster, metrics->actor, &metrics->mailbox, &bound, from, bytes,
                    count);
}

const struct shell_mailbox *
trpi_metrics_mailbox(const struct trpi_metrics *metrics)
{
    return &metrics->mailbox;
}

trpi_metrics_table *
trpi_metrics_present(const trpi_cluster *cluster)
{
    return cluster == NULL || cluster->metrics == NULL
               ? NULL
               : atomic_load_explicit(&cluster->metrics->published,
                                      memory_order_acquire); /* pairs with publish */
}

trp_err
trp_cluster_metrics(trp_system *system, trp_node_metrics *nodes, size_t max, size_t *ret_count)
{
    const trpi_cluster *cluster = trpi_cluster_of(system);
    if (ret_count == NULL || (nodes == NULL && max > 0)) {
        return TRP_EINVAL;
    }
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    trp_ctx *ctx = trpi_enter(system);
    const trpi_metrics_table *table = trpi_metrics_present(cluster);
    size_t count = table == NULL ? 0 : table->count;
    for (size_t i = 0; i < count && i < max; i++) {
        nodes[i] = table->entries[i]->node;
    }
    trpi_leave(ctx);
    *ret_count = count;
    return TRP_OK;
}

/* ---- the actor ------------------------------------------------------------------------------- */

/* metrics-shell-S2 */
static void
table_publish(struct trpi_metrics *metrics)
{
    trpi_metrics_table *table = trpi_metrics_core_table(metrics->core);
    trpi_metrics_table *before =
        atomic_load_explicit(&metrics->published, memory_order_relaxed); /* own */
    if (table == before) {
        return;
    }
    atomic_store_explicit(&metrics->published, trpi_metrics_table_ref(table),
                          memory_order_release); /* pairs with present */
    if (before != NULL) {
        trpi_system_retire(metrics->cluster->system, trpi_metrics_table_unref, before);
    }
    /* without memory the next change is told */
    (void)shell_put(metrics->cluster, &shell_metrics_type, NULL, 0);
}

static void
members_read(struct trpi_metrics *metrics)
{
    trpi_cluster *cluster = metrics->cluster;
    trpi_metrics_peer *peers = NULL;
    uint32_t count = 0;
    uint64_t digest = 0;
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    uint64_t self = trpi_member_self(cluster->engine.core)->key;
    if (view != NULL && view->digest != metrics->view_digest) {
        peers = trpi_alloc((view->members_count + 1) * sizeof *peers);
        digest = view->digest;
    }
    for (uint32_t i = 0; peers != NULL && i < view->members_count; i++) {
        const trpi_gossip_member *m = &view->members[i];
        bool is_self = m->ident->key == self;
        if (m->status != TRP_MEMBER_EXITING && m->status != TRP_MEMBER_DOWN &&
            (is_self || !trpi_gossip_is_unreachable(view, i))) {
            peers[count++] =
                (trpi_metrics_peer){ m->ident->key, m->ident->id, m->status != TRP_MEMBER_JOINING };
        }
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    if (peers != NULL && trpi_metrics_core_members(metrics->core, peers, count) == TRP_OK) {
        metrics->view_digest = digest;
    } else {
        trpi_free(peers); /* nothing new; or no memory: tried again at the next tick */
    }
}

static void
collector_open(struct trpi_metrics *metrics)
{
    trp_system *system = metrics->cluster->system;
    trp_err err = TRP_OK;
    if (metrics->collector == NULL && metrics->collector_name[0] != '\0') {
        metrics->collector = trpi_metrics_collector_find(metrics->collector_name);
        if (metrics->collector == NULL) {
            trpi_log(system, TRP_LOG_ERROR, "cluster",
                     "cluster.metrics.collector-class: no collector is called \"%s\"; register it "
                     "before the node joins (trp_metrics_collector_register), or say \"proc\"; "
                     "this node measures nothing",
                     metrics->collector_name);
            metrics->collector_name[0] = '\0';
        }
    }
    if (metrics->collector == NULL) {
        return;
    }
    metrics->collecting = metrics->collector->arg;
    if (metrics->collector->open != NULL) {
        err = metrics->collector->open(metrics->collector->arg, system, &metrics->collecting);
    }
    metrics->open = err == TRP_OK;
    if (err != TRP_OK) {
        trpi_log(system, TRP_LOG_ERROR, "cluster",
                 "the metrics collector \"%s\" does not start: %s; this node measures nothing",
                 metrics->collector->name, trp_strerror(err));
        metrics->collector = NULL;
        metrics->collector_name[0] = '\0';
    }
}

static void
figures_collect(struct trpi_metrics *metrics)
{
    trp_metric samples[TRP_METRICS_MAX];
    if (!metrics->open) {
        collector_open(metrics);
    }
    if (metrics->open) {
        memset(samples, 0, sizeof samples);
        uint32_t count = metrics->collector->collect(metrics->collecting, samples, TRP_METRICS_MAX);
        trpi_member_now now = shell_now(metrics->cluster);
        (void)trpi_metrics_core_sample(metrics->core, now.mono_ms, now.wall_ms, samples,
                                       count < TRP_METRICS_MAX ? count : TRP_METRICS_MAX);
        /* without memory the next sample is a newer one */
    }
}

static void
send_frame(struct trpi_metrics *metrics, const trpi_node_id *to, trpi_buffer *bytes)
{
    /* the next round makes up for a lost one */
    (void)trpi_remote_control_send(metrics->cluster->remote, to, TRPI_CHANNEL_METRICS, bytes->data,
                                   bytes->count);
    trpi_buffer_fini(bytes);
}

static void
due_tasks_run(struct trpi_metrics *metrics)
{
    uint64_t now_ms = shell_now_us(metrics->cluster) / 1000;
    uint32_t due = trpi_metrics_core_due(metrics->core, now_ms);
    trpi_buffer bytes = { NULL, 0, 0 };
    trpi_node_id to;
    if ((due & TRPI_METRICS_COLLECT) != 0) {
        figures_collect(metrics);
    }
    if ((due & TRPI_METRICS_GOSSIP) != 0 &&
        trpi_metrics_core_gossip(metrics->core, &to, &bytes) == TRP_OK) {
        send_frame(metrics, &to, &bytes);
    }
}

/* Handle a frame. false: others wait behind it. */
static bool
frame_take(struct trpi_metrics *metrics, const trp_msg *msg)
{
    const struct shell_frame *frame = trp_msg_payload(msg);
    size_t count = trp_msg_bytes(msg) - sizeof *frame;
    trpi_buffer answer = { NULL, 0, 0 };
    bool is_last = shell_frame_taken(&metrics->mailbox, count);
    if (!is_closed(metrics)) {
        /* a frame that cannot be read is dropped, like gossip */
        (void)trpi_metrics_core_frame(metrics->core, frame->bytes, count, &answer);
        if (answer.count > 0) {
            send_frame(metrics, &frame->from, &answer);
        }
    }
    return is_last;
}

/* Set the timer, if the one that is set fires too late. */
static void
set_timer(struct trpi_metrics *metrics, trp_ctx *ctx)
{
    uint64_t wake_ms = trpi_metrics_core_wake_ms(metrics->core);
    uint64_t now_ms = shell_now_us(metrics->cluster) / 1000;
    if (wake_ms == UINT64_MAX) {
        wake_ms = now_ms + IDLE_MS; /* membership pokes, with memory for it */
    } else if (wake_ms <= now_ms) {
        wake_ms = now_ms + 1;
    }
    if (metrics->timer_ms != 0 && metrics->timer_ms <= wake_ms) {
        return;
    }
    trp_err err = trp_timer_once(ctx, 1, (uint32_t)(wake_ms - now_ms), &tick_type, NULL, 0);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "no timer: %s", trp_strerror(err));
    }
    metrics->timer_ms = wake_ms;
}

static trp_err
metrics_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct trpi_metrics *metrics = ((struct metrics_state *)state)->metrics;
    bool is_frame = trp_msg_is(msg, &frame_type);
    bool is_tick = trp_msg_is(msg, &tick_type);
    bool is_last = true;
    if (!is_frame && !is_tick && !trp_msg_is(msg, &poke_type)) {
        trp_unhandled_msg(ctx, msg);
        return TRP_OK;
    }
    metrics->timer_ms = is_tick ? 0 : metrics->timer_ms;
    /* metrics-shell-S3; at a tick, too: a poke that found no memory was lost */
    bool poked = atomic_exchange_explicit(&metrics->poked, false, memory_order_acq_rel);
    if (poked || is_tick) {
        members_read(metrics);
    }
    if (is_frame) {
        is_last = frame_take(metrics, msg);
    }
    due_tasks_run(metrics);
    if (is_last || is_tick) { /* a burst of frames publishes the table once */
        table_publish(metrics);
    }
    set_timer(metrics, ctx);
    return TRP_OK;
}

static trp_err
metrics_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct trpi_metrics *metrics;
    if (args == NULL || trp_msg_bytes(args) != sizeof metrics) {
        return TRP_EINVAL;
    }
    memcpy(&metrics, trp_msg_payload(args), sizeof metrics);
    ((struct metrics_state *)state)->metrics = metrics;
    metrics->timer_ms = 0;
    set_timer(metrics, ctx);
    return TRP_OK;
}

static const trp_behaviour metrics_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "cluster-metrics",
    .version = 1,
    .state_bytes = sizeof(struct metrics_state),
    .receive = metrics_receive,
    .pre_start = metrics_pre_start,
};

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
make_actor(struct trpi_metrics *metrics)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    spawn.name = "cluster-metrics";
    spawn.dispatcher = "blocking";
    spawn.mailbox =
        "unbounded"; /* shell-messages-Q1 is its bound, whatever the default mailbox is */
    spawn.args_type = &trp_bytes_type;
    spawn.args = &metrics;
    spawn.args_bytes = sizeof metrics;
    trp_err err = trp_protocol_register(&metrics_protocol);
    return err != TRP_OK ? err
                         : trpi_system_spawn_internal(metrics->cluster->system, &metrics_behaviour,
                                                      &spawn, &metrics->actor);
}

trp_err
trpi_metrics_new(trpi_cluster *cluster, const trpi_metrics_options *options)
{
    if (options->disabled) {
        return TRP_OK;
    }
    struct trpi_metrics *metrics = trpi_alloc(sizeof *metrics);
    if (metrics == NULL) {
        return TRP_ENOMEM;
    }
    const char *name = options->collector_name == NULL ? "" : options->collector_name;
    if (options->collector_name == NULL && !trpi_world_is_driven(cluster->world)) {
        name = trpi_metrics_proc.name; /* a driven world is not this machine */
    }
    metrics->cluster = cluster;
    metrics->collector = options->collector;
    (void)snprintf(metrics->collector_name, sizeof metrics->collector_name, "%s", name);
    cluster->metrics = metrics;
    return trpi_metrics_core_new(&trpi_member_self(cluster->engine.core)->id, options,
                                 trpi_world_random(cluster->world), &metrics->core);
}

trp_err
trpi_metrics_start(trpi_cluster *cluster)
{
    struct trpi_metrics *metrics = cluster->metrics;
    trp_err err = metrics == NULL ? TRP_OK : make_actor(metrics);
    if (metrics != NULL && err == TRP_OK) {
        trpi_remote_control_bind(cluster->remote, TRPI_CHANNEL_METRICS, trpi_metrics_frame_arrived,
                                 metrics);
    }
    return err;
}

void
trpi_metrics_stop(trpi_cluster *cluster)
{
    struct trpi_metrics *metrics = cluster->metrics;
    if (metrics == NULL) {
        return;
    }
    trpi_remote_control_bind(cluster->remote, TRPI_CHANNEL_METRICS, NULL, NULL);
    atomic_store_explicit(&metrics->mailbox.closed, true,
                          memory_order_release); /* pair: is_closed() */
    if (trp_system_graceful_stop(cluster->system, metrics->actor, 5000) != TRP_OK) {
        trp_system_stop_actor(cluster->system, metrics->actor);
    }
}

void
trpi_metrics_free(struct trpi_metrics *metrics)
{
    if (metrics == NULL) {
        return;
    }
    if (metrics->open && metrics->collector->close != NULL) {
        metrics->collector->close(metrics->collecting);
    }
    trpi_metrics_table_unref(atomic_load_explicit(&metrics->published, memory_order_relaxed));
    trpi_metrics_core_free(metrics->core);
    trpi_free(metrics);
}
