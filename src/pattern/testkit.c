/* testkit.c - a system for the length of a test, its clock, and its failures.
 *
 * Shape.   kit -> system (its own, or borrowed) -> probes: actors below /system
 *          own system: its log goes through the kit's filters; its world is the machine, or a
 *          virtual one without threads (sched/driven.c), which every wait of the kit runs.
 * Must hold.
 *   testkit-T1  A failure is reported on the thread of the test, with no lock held: the handler may
 *       jump away. Probes and filters that are open then belong to the kit and end with it.
 *   testkit-T2  A probe's memory is freed when its actor has ended: before that with its system.
 * Tests.   tests/unit/pattern/testkit_test.c
 * Sources. TEST-1, -3, -6, -7, -11.
 */
#include "pattern/testkit.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"

/* ---- failures -------------------------------------------------------------------------------- */

void
trp_testkit_fail_at(trp_testkit *kit, const char *file, int line, const char *format, ...)
{
    char text[TRPI_TEST_TEXT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    atomic_fetch_add_explicit(&kit->failures, 1, memory_order_relaxed); /* only counted */
    if (kit->options.fail != NULL) {
        kit->options.fail(kit->options.fail_arg, file, line, text);
    } else {
        (void)fprintf(stderr, "%s:%d: %s\n", file, line, text);
    }
    if (kit->options.on_fail == TRP_FAIL_JUMP && trpi_system_in_behaviour(kit->system)) {
        return; /* no jump out of an actor's frames; the test has failed all the same */
    }
    if (kit->options.on_fail == TRP_FAIL_JUMP && kit->jump != NULL) {
        longjmp(*kit->jump, 1); /* testkit-T1 */
    }
    if (kit->options.on_fail != TRP_FAIL_RETURN) {
        trpi_assert_failed(text, file, line);
    }
}

uint32_t
trp_testkit_failures(const trp_testkit *kit)
{
    return atomic_load_explicit(&kit->failures, memory_order_relaxed);
}

/* End the blocks that a jump has left. */
static void
blocks_end(trp_testkit *kit, uint32_t filters_count)
{
    for (trp_probe *p = kit->probes; p != NULL; p = p->next) {
        trpi_probe_within_end(p);
    }
    pthread_mutex_lock(&kit->filters_cond.lock);
    kit->filters_count = filters_count;
    pthread_mutex_unlock(&kit->filters_cond.lock);
}

uint32_t
trp_testkit_run(trp_testkit *kit, void (*test)(trp_testkit *kit, void *arg), void *arg)
{
    jmp_buf *const outer = kit->jump;
    const uint32_t failures = trp_testkit_failures(kit);
    const uint32_t filters_count = kit->filters_count;
    jmp_buf here;

    kit->jump = &here;
    if (setjmp(here) == 0) {
        test(kit, arg);
    } else {
        blocks_end(kit, filters_count);
    }
    kit->jump = outer;
    return trp_testkit_failures(kit) - failures;
}

/* ---- dead letters are warnings in tests ------------------------------------------------------ */

/* TEST-11 */
static trp_err
warn_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_dead_letter *dead = trp_msg_payload(msg);

    (void)state;
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        char sender[TRP_PATH_BYTES_MAX + 1];
        const trp_type *type = trpi_type_get(dead->type);

        trp_log(ctx, TRP_LOG_WARNING, "dead letter: %s from %s to %s (reason %u)",
                type == NULL ? "?" : type->name,
                trp_path(trp_ctx_system(ctx), dead->sender, sender, sizeof sender), dead->path,
                dead->reason);
    }
    return TRP_OK;
}

static const trp_behaviour warn_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "test dead letters",
                                              .version = 1,
                                              .receive = warn_receive };

/* ---- birth and end --------------------------------------------------------------------------- */

static bool
options_are_valid(const trp_testkit_options *options)
{
    return options->clock <= TRP_CLOCK_MANUAL && options->on_fail <= TRP_FAIL_JUMP &&
           options->timefactor >= 0.0 && options->timefactor <= 1e6;
}

/* False: refused. */
static bool
options_fill(trp_testkit *kit, const trp_testkit_options *given)
{
    static const trp_testkit_options none = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit_options *options = &kit->options;

    *options = none;
    if (!TRPI_SIZED_COPY(given, options, quiet_dead_letters) || !options_are_valid(options) ||
        !trpi_options_are_valid(options->system_options)) {
        return false;
    }
    trpi_options_copy(options->system_options, &kit->system_options);
    options->name = options->name != NULL ? options->name : "test";
    const trp_config *config =
        options->system != NULL ? trpi_system_config(options->system) : kit->system_options.config;
    options->timefactor = trpi_setting_pick_float(config, "test.timefactor", options->timefactor);
    options->expect_ms =
        trpi_setting_pick(config, "test.single-expect-default", options->expect_ms);
    options->leeway_ms = trpi_setting_pick(config, "test.filter-leeway", options->leeway_ms);
    options->timeout_ms = trpi_setting_pick(config, "test.default-timeout", options->timeout_ms);
    return true;
}

static trp_err
system_make(trp_testkit *kit)
{
    trp_system_options options = kit->system_options;
    trpi_virtual_options world = { .seed = 1, .calm = true };
    trp_err err = TRP_OK;

    kit->owns = true;
    options.log = trpi_testkit_log;
    options.log_arg = kit;
    if (kit->virt == NULL && kit->options.clock != TRP_CLOCK_REAL) {
        world.manual = kit->options.clock == TRP_CLOCK_MANUAL;
        err = trpi_virtual_new(&world, &kit->virt);
    }
    if (err == TRP_OK) {
        err = trpi_system_new_in(kit->virt == NULL ? NULL : trpi_virtual_world(kit->virt),
                                 kit->options.name, &options, &kit->system);
    }
    return err;
}

/* Free a kit whose probes have ended. */
static void
kit_free(trp_testkit *kit, bool with_world)
{
    while (kit->probes != NULL) {
        trp_probe *probe = kit->probes;

        kit->probes = probe->next;
        trpi_probe_free(probe);
    }
    if (kit->owns) {
        trp_system_free(kit->system);
        if (kit->virt != NULL && with_world) {
            trpi_world_free(trpi_virtual_world(kit->virt));
        }
    }
    trpi_cond_fini(&kit->filters_cond);
    kit->magic = 0;
    trpi_free(kit);
}

trp_err
trpi_testkit_open_in(const trp_testkit_options *options, trpi_virtual *virt, trp_testkit **ret_kit)
{
    trp_testkit *kit;
    trp_err err = TRP_OK;
    trp_ref warner;

    if (ret_kit == NULL) {
        return TRP_EINVAL;
    }
    kit = trpi_alloc(sizeof *kit);
    if (kit == NULL) {
        return TRP_ENOMEM;
    }
    if (!options_fill(kit, options)) {
        trpi_free(kit);
        return TRP_EINVAL;
    }
    kit->magic = TRPI_TESTKIT_MAGIC;
    trpi_cond_init(&kit->filters_cond);
    kit->virt = virt;
    kit->system = kit->options.system;
    if (kit->system == NULL) {
        err = system_make(kit);
    }
    if (err == TRP_OK) {
        kit->opened_ns = trpi_testkit_now_ns(kit);
        err = trp_probe_open(kit, &kit->main);
    }
    if (err == TRP_OK && kit->owns && kit->options.quiet_dead_letters == 0) {
        err = trpi_system_spawn_internal(kit->system, &warn_behaviour, NULL, &warner);
        if (err == TRP_OK) { /* before the first dead letter */
            err = trp_system_subscribe(kit->system, warner, &trp_dead_letter_type);
        }
    }
    if (err != TRP_OK) {
        if (kit->main != NULL) {
            trp_probe_close(kit->main);
        }
        kit_free(kit, virt == NULL);
        return err;
    }
    *ret_kit = kit;
    return TRP_OK;
}

trp_err
trp_testkit_open(const trp_testkit_options *options, trp_testkit **ret_kit)
{
    return trpi_testkit_open_in(options, NULL, ret_kit);
}

trp_err
trp_testkit_close(trp_testkit *kit)
{
    trp_err err = TRP_OK;

    if (kit == NULL) {
        return TRP_OK;
    }
    trpi_assert(kit->magic == TRPI_TESTKIT_MAGIC);
    blocks_end(kit, 0);
    if (kit->owns) {
        err = trp_system_stop(kit->system, trp_testkit_timeout_ms(kit));
        if (err != TRP_OK) {
            /* testkit-T2: stuck actors may still use probes and log: everything is leaked */
            return err;
        }
    } else {
        while (kit->probes != NULL) {
            trp_probe_close(kit->probes);
        }
    }
    kit_free(kit, true);
    return err;
}

trp_system *
trp_testkit_system(trp_testkit *kit)
{
    return kit->system;
}

trp_probe *
trp_testkit_probe(trp_testkit *kit)
{
    return kit->main;
}

/* ---- time ------------------------------------------------------------------------------------ */

trpi_sched *
trpi_testkit_sched(const trp_testkit *kit)
{
    return trpi_system_sched(kit->system);
}

uint64_t
trpi_testkit_now_ns(const trp_testkit *kit)
{
    return trpi_world_mono_ns(trpi_system_world(kit->system));
}

uint32_t
trp_testkit_dilated(const trp_testkit *kit, uint32_t ms)
{
    double dilated = (double)ms * kit->options.timefactor;

    return dilated < (double)(TRP_TEST_TIME - 1) ? (uint32_t)dilated : TRP_TEST_TIME - 1;
}

uint64_t
trpi_testkit_ns(const trp_testkit *kit, uint32_t ms)
{
    return (uint64_t)trp_testkit_dilated(kit, ms) * 1000000u;
}

uint32_t
trp_testkit_timeout_ms(const trp_testkit *kit)
{
    return trp_testkit_dilated(kit, kit->options.timeout_ms);
}

uint64_t
trp_testkit_now_ms(trp_testkit *kit)
{
    return (trpi_testkit_now_ns(kit) - kit->opened_ns) / 1000000u;
}

trp_err
trp_testkit_advance(trp_testkit *kit, uint32_t ms)
{
    trpi_sched *sched = trpi_testkit_sched(kit);
    trpi_pumped pumped = TRPI_PUMPED_TIME;

    if (!trpi_sched_is_driven(sched) || trpi_system_in_behaviour(kit->system)) {
        return TRP_ESTATE;
    }
    if (ms != 0) {
        pumped = trpi_sched_pump(sched, NULL, NULL, trpi_testkit_now_ns(kit) + ms * 1000000ull,
                                 TRPI_MOVE_ALWAYS);
    }
    if (pumped != TRPI_PUMPED_ENOUGH) { /* run all that is due now */
        pumped = trpi_sched_pump(sched, NULL, NULL, UINT64_MAX, TRPI_MOVE_NEVER);
    }
    return pumped == TRPI_PUMPED_ENOUGH ? TRP_ETIMEDOUT : TRP_OK;
}

/* ---- conditions ------------------------------------------------------------------------------ */

typedef struct polling {
    trp_condition_fn fn;
    void *arg;
} polling;

static bool
condition_poll(void *arg)
{
    const polling *poll = arg;

    return poll->fn(poll->arg) != 0;
}

static bool
cond_never(void *arg)
{
    (void)arg;
    return false;
}

bool
trpi_testkit_poll(trp_testkit *kit, uint64_t deadline_ns, uint32_t interval_ms, trp_condition_fn fn,
                  void *arg)
{
    trpi_sched *sched = trpi_testkit_sched(kit);
    polling poll = { fn, arg };
    trpi_cond cond;
    bool holds;

    if (trpi_sched_is_driven(sched)) {
        return trpi_sched_pump(sched, condition_poll, &poll, deadline_ns, TRPI_MOVE_OF_WORLD) ==
               TRPI_PUMPED_DONE;
    }
    trpi_cond_init(&cond); /* without a signal: a pause that the clock ends */
    while (!(holds = condition_poll(&poll)) && trpi_testkit_now_ns(kit) < deadline_ns) {
        uint64_t next = trpi_testkit_now_ns(kit) + trpi_testkit_ns(kit, interval_ms);

        pthread_mutex_lock(&cond.lock);
        (void)trpi_cond_wait(&cond, sched, cond_never, NULL,
                             next < deadline_ns ? next : deadline_ns);
        pthread_mutex_unlock(&cond.lock);
    }
    trpi_cond_fini(&cond);
    return holds;
}

/* ---- test actors ----------------------------------------------------------------------------- */

trp_err
trp_testkit_spawn(trp_testkit *kit, const trp_behaviour *behaviour,
                  const trp_spawn_options *options, trp_ref *ret_ref)
{
    trp_spawn_options own = TRP_SPAWN_OPTIONS_INIT;
    trp_err err;

    if (!TRPI_SIZED_COPY(options, &own, node)) {
        return TRP_EINVAL;
    }
    own.dispatcher = "calling-thread";
    err = trp_system_spawn(kit->system, behaviour, &own, ret_ref);
    if (err == TRP_OK && trpi_sched_is_driven(trpi_testkit_sched(kit))) {
        (void)trpi_sched_pump(trpi_testkit_sched(kit), NULL, NULL, UINT64_MAX, TRPI_MOVE_NEVER);
    }
    return err;
}

void *
trp_testkit_state(trp_testkit *kit, trp_ref ref)
{
    return trpi_actor_state(kit->system, ref);
}

trp_err
trp_testkit_receive(trp_testkit *kit, trp_ref ref, trp_ref sender, const trp_type *type,
                    const void *payload, size_t bytes, trp_failure *ret_failure)
{
    return trpi_actor_receive(kit->system, ref, sender, type, payload, bytes, ret_failure);
}
