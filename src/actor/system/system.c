/* system.c - make and free a system; tell from threads that are no actors.
 *
 * Shape.   new: world -> cells -> nodes -> scheduler -> threads -> guardians (LIFE).
 *          free: tree stopped -> threads ended -> waiting asks and futures, extensions ->
 *          mailboxes -> scheduler, guardians' memory, cells, nodes, world.
 * Must hold.
 *   system-Z1  Nothing is freed while a thread of the system may run: after a stop that timed out
 *       the system is leaked.
 *   system-Z2  The last callbacks of futures run on the thread that frees, and may use the system
 *       as one that has stopped: a message of theirs is a dead letter. So everything that a tell
 *       reads is freed last.
 * Tests.   tests/unit/actor/system_test.c
 */
#include "actor/kernel/system.h"

#include <stdio.h>
#include <string.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/system/observe.h"
#include "actor/system/stall.h"
#include "actor/kernel/cells.h"
#include "actor/naming/directory.h"
#include "actor/kernel/dispatcher.h"
#include "actor/system/extension.h"
#include "actor/kernel/fault.h"
#include "actor/kernel/guard.h"
#include "actor/kernel/trace.h"
#include "actor/distribution/distribution.h"
#include "actor/life/life.h"
#include "actor/life/upgrade.h"
#include "actor/log/log.h"
#include "actor/nodes/nodes.h"
#include "actor/kernel/run.h"
#include "actor/system/tables.h"
#include "actor/settings/options.h"
#include "actor/system/open.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/config.h"
#include "base/sized.h"

#define FREE_STOP_MS 10000u        /* for a tree that nobody stopped */
#define FREE_THREADS_MS 2000u      /* for stuck actors to return, then for threads to end */
#define FREE_THREADS_LEAST_MS 500u /* for idle threads to wake up and end on a busy machine */

static bool
name_is_valid(const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;

    return length > 0 && length <= TRP_SYSTEM_NAME_BYTES_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               length;
}

/* Take the options of the program; the reference configuration fills those that neither it nor the
 * configuration sets. */
static trp_err
options_fill(trp_system *system, const trp_system_options *given)
{
    trpi_options_copy(given, &system->options);
    trpi_settings_options(system->options.config, &system->options);
    system->stash_max = trpi_settings_stash_max(system->options.config);
    trpi_options_parts(system);
    system->fast_path_node =
        system->options.serialize_messages != 0 || (system->logging.debug & TRP_DEBUG_MISUSE) != 0
            ? 0
            : TRPI_NODE_SELF;
    if ((system->options.serialize_messages | system->options.serialize_creators) != 0 &&
        !trpi_round_trip_can()) {
        return TRP_EUNSUPPORTED;
    }
    return system->options.config != NULL
               ? trpi_settings_new(system->options.config, &system->settings)
               : TRP_OK;
}

/* Make everything that has no thread. */
static trp_err
tables_make(trp_system *system)
{
    static const trpi_sched_ops ops = { .run = trpi_run,
                                        .thread = trpi_run_thread,
                                        .sleep = trpi_run_sleep,
                                        .batch = trpi_run_batch,
                                        .work = trpi_run_work,
                                        .here = trpi_nested,
                                        .urgent = trpi_run_urgent,
                                        .awake = trpi_stall_awake };
    trp_dispatcher_options standard = TRP_DISPATCHER_OPTIONS_INIT;
    trpi_sched_options sched_options;
    trp_err err;

    memset(&sched_options, 0, sizeof sched_options);
    sched_options.workers = system->options.workers;
    sched_options.worker_bytes = sizeof(trp_ctx);
    sched_options.world = system->world;
    sched_options.name = system->name;
    sched_options.tick_ns = (uint64_t)system->scheduling.tick_ms * 1000000u;
    sched_options.wheel_slots = system->scheduling.ticks_per_wheel;
    sched_options.timers_max = system->scheduling.schedules_max;
    sched_options.ops = &ops;
    sched_options.arg = system;
    err = trpi_extensions_new(&system->extensions);
    if (err == TRP_OK) {
        err = trpi_cells_new(system->options.actors_max, trpi_world_random(system->world),
                             &system->cells);
    }
    if (err == TRP_OK) {
        err = trpi_nodes_new(system, &system->nodes);
    }
    if (err == TRP_OK) {
        err = trpi_directory_new(&system->directory);
    }
    if (err == TRP_OK) {
        err = trpi_behaviours_new(&system->behaviours);
    }
    if (err == TRP_OK) {
        err = trpi_sched_new(&sched_options, &system->sched);
    }
    if (err == TRP_OK) {
        err = trpi_mailbox_types_new(system);
    }
    if (err == TRP_OK) {
        err = trpi_stall_new(system);
    }
    if (err == TRP_OK) {
        err = trpi_trace_system_new(system);
    }
    if (err == TRP_OK) {
        err = trpi_guard_new(system, system->world, &system->guard);
    }
    trpi_settings_standard_dispatcher(system->options.config, &standard);
    return err == TRP_OK ? trpi_dispatchers_new(system, &standard) : err;
}

/* Free a system without threads, complete or not. */
static void
system_destroy(trp_system *system)
{
    trpi_msg_cache *cache = trpi_msg_cache_get();

    if (system->cells != NULL) { /* system-Z2 */
        trpi_cells_drop(system->cells);
    }
    trpi_extensions_free(system->extensions);
    system->extensions = NULL;
    if (system->cells != NULL && cache != NULL) {
        trpi_cells_drain(system, cache);
    }
    trpi_fault_close(system);
    trpi_nodes_close(system->nodes);
    trpi_sched_free(system->sched); /* frees retired objects: before the tables */
    trpi_life_system_free(system);
    trpi_dispatchers_free(system);
    trpi_mailbox_types_free(system);
    trpi_stall_free(system);
    trpi_observe_free(system);
    trpi_guard_free(system->guard);
    trpi_trace_system_free(system);
    trpi_behaviours_free(system->behaviours);
    trpi_versions_free(atomic_load_explicit(&system->versions, memory_order_acquire));
    trpi_directory_free(system->directory);
    trpi_nodes_free(system->nodes);
    trpi_cells_free(system->cells);
    if (system->world_owned) {
        trpi_world_free(system->world);
    }
    trpi_settings_free(system->settings);
    system->magic = 0;
    trpi_free(system);
}

static trp_err
threads_start(trp_system *system)
{
    trp_err err = trpi_sched_start(system->sched);

    if (err != TRP_OK) {
        return err;
    }
    err = trpi_dispatchers_start(system);
    if (err == TRP_OK) {
        err = trpi_life_system_new(system);
    }
    if (err != TRP_OK) {
        (void)trpi_sched_stop(system->sched, UINT32_MAX); /* no actor has run */
    }
    return err;
}

trp_err
trpi_system_new_in(trpi_world *world, const char *name, const trp_system_options *options,
                   trp_system **ret_system)
{
    trp_system *system;
    trp_err err = TRP_OK;

    if (!name_is_valid(name) || !trpi_options_are_valid(options) || ret_system == NULL) {
        return TRP_EINVAL;
    }
    system = trpi_alloc_aligned(64, sizeof *system);
    if (system == NULL) {
        return TRP_ENOMEM;
    }
    system->hooks = &trpi_tables_kernel;
    system->life_hooks = &trpi_tables_life;
    (void)snprintf(system->name, sizeof system->name, "%s", name);
    err = options_fill(system, options);
    system->world = world;
    if (err == TRP_OK && world == NULL) {
        err = trpi_world_real_new(&system->world);
        system->world_owned = err == TRP_OK;
    }
    if (err == TRP_OK) {
        err = tables_make(system);
    }
    if (err == TRP_OK) {
        system->magic = TRPI_SYSTEM_MAGIC;
        err = trpi_settings_mailboxes(system);
    }
    if (err == TRP_OK) {
        err = trpi_settings_dispatchers(system);
    }
    if (err == TRP_OK) {
        err = trpi_fault_open(system);
    }
    if (err == TRP_OK) {
        err = threads_start(system);
    }
    if (err != TRP_OK) {
        system_destroy(system);
        return err;
    }
    err = trpi_loggers_start(system);
    if (err != TRP_OK) {
        trp_system_free(system); /* actors run already */
        return err;
    }
    if (trpi_config_bool(system->options.config, "log-config-on-start")) {
        trpi_settings_log(system);
    }
    err = trpi_extensions_start(system);
    if (err != TRP_OK) {
        trp_system_free(system); /* actors may run already */
        return err;
    }
    *ret_system = system;
    return TRP_OK;
}

trp_err
trp_system_new(const char *name, const trp_system_options *options, trp_system **ret_system)
{
    return trpi_system_new_in(NULL, name, options, ret_system);
}

/* Wait once more for stuck actors: those that end now give their memory back. Returns the grace
 * time for threads. A driven world has no threads, and its time must not pass here. */
static uint32_t
last_grace(trp_system *system)
{
    uint64_t from_ns = trpi_world_mono_ns(system->world);
    uint64_t spent_ms;

    if (trp_system_is_terminated(system) || trpi_sched_is_driven(system->sched)) {
        return FREE_THREADS_MS;
    }
    if (trp_system_await(system, FREE_THREADS_MS) == TRP_OK) {
        return FREE_THREADS_MS;
    }
    spent_ms = (trpi_world_mono_ns(system->world) - from_ns) / 1000000;
    return spent_ms < FREE_THREADS_MS - FREE_THREADS_LEAST_MS ? FREE_THREADS_MS - (uint32_t)spent_ms
                                                              : FREE_THREADS_LEAST_MS;
}

void
trp_system_free(trp_system *system)
{
    uint32_t grace_ms;

    if (system == NULL) {
        return;
    }
    trpi_assert(system->magic == TRPI_SYSTEM_MAGIC);
    if (!trp_system_is_terminated(system) && !atomic_load(&system->stuck)) {
        if (trp_system_stop(system, FREE_STOP_MS) != TRP_OK) { /* it logs which actors are stuck */
            atomic_store(&system->stuck, true);
        }
    }
    grace_ms = last_grace(system);
    trpi_life_system_stop(system);
    trpi_extensions_stop(system->extensions);
    if (!trpi_sched_stop(system->sched, grace_ms)) { /* system-Z1 */
        trpi_log_direct(
            system, TRP_LOG_ERROR, "actor",
            "a thread did not end: the system is leaked, its memory is not given back system=%s",
            system->name);
        trpi_sched_abandon(system->sched);
        return;
    }
    system_destroy(system);
}

const char *
trp_system_name(const trp_system *system)
{
    return trpi_system_is_valid(system) ? system->name : "";
}

trpi_world *
trpi_system_world(trp_system *system)
{
    return system->world;
}

trpi_sched *
trpi_system_sched(trp_system *system)
{
    return system->sched;
}

trp_ref
trpi_msg_sender_get(const trp_msg *msg)
{
    return trpi_msg_sender(msg);
}

bool
trpi_system_in_behaviour(const trp_system *system)
{
    return trpi_in_behaviour(system);
}

void
trpi_system_cluster_set(trp_system *system, void *cluster)
{
    atomic_store_explicit(&system->cluster, cluster, memory_order_release); /* pair: cluster_get */
}

void *
trpi_system_cluster_get(trp_system *system)
{
    return trpi_system_is_valid(system)
               ? atomic_load_explicit(&system->cluster, memory_order_acquire)
               : NULL; /* pair: cluster_set */
}

/* ---- telling from outside -------------------------------------------------------------------- */

void
trp_system_tell_as(trp_system *system, trp_ref to, trp_ref sender, const trp_type *type,
                   const void *payload, size_t bytes)
{
    trp_ctx *ctx;

    if (!trpi_system_is_valid(system) || type == NULL) {
        return;
    }
    ctx = trpi_enter(system);
    trpi_tell(ctx, to, sender, type, payload, bytes);
    trpi_leave(ctx);
}

void
trp_system_tell(trp_system *system, trp_ref to, const trp_type *type, const void *payload,
                size_t bytes)
{
    trp_ref nobody = TRP_REF_NONE;

    trp_system_tell_as(system, to, nobody, type, payload, bytes);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void
stats_add(trpi_stats *sum, const trpi_stats *part)
{
    _Atomic uint64_t *to = (_Atomic uint64_t *)(void *)sum;
    const _Atomic uint64_t *from = (const _Atomic uint64_t *)(const void *)part;

    _Static_assert(sizeof *sum % sizeof *to == 0, "all members are counters");
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) {
        uint64_t n = atomic_load_explicit(&from[i], memory_order_relaxed);

        (void)atomic_fetch_add_explicit(&to[i], n, memory_order_relaxed);
    }
}

static void
stats_add_worker(void *sum, trpi_worker *worker)
{
    const trp_ctx *ctx = trpi_worker_data(worker);

    stats_add(sum, &ctx->own_stats);
}

void
trpi_system_stats_sum(trp_system *system, trpi_stats *ret_stats)
{
    memset(ret_stats, 0, sizeof *ret_stats);
    stats_add(ret_stats, &system->foreign_stats);
    trpi_sched_workers_each(system->sched, stats_add_worker, ret_stats);
}

void
trp_system_stats_get(trp_system *system, trp_system_stats *ret_stats)
{
    trp_system_stats stats;
    trpi_stats sum;

    if (!trpi_system_is_valid(system) || ret_stats == NULL) {
        return;
    }
    trpi_system_stats_sum(system, &sum);
    memset(&stats, 0, sizeof stats);
    stats.messages_processed = sum.processed;
    stats.spawned = sum.spawned;
    stats.stopped = sum.stopped;
    stats.actors = sum.spawned > sum.stopped ? sum.spawned - sum.stopped : 0;
    stats.restarts = sum.restarts;
    for (size_t i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        stats.dead_letters[i] = sum.dead[i];
    }
    (void)TRPI_SIZED_FILL(ret_stats, &stats, stopped);
}
