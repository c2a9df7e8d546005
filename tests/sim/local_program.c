/* local_program.c - actors that do what is drawn, and write down in the ledger what they did. */
#include "tests/sim/local_ledger.h"

#include <stdlib.h>
#include <string.h>

#include <troupe/router.h>

TRP_PROTOCOL_DEFINE(local, LOCAL_MESSAGES)

static void
report_broken(world *w, const char *format, uint32_t a, uint32_t b, uint64_t c)
{
    if (atomic_fetch_add(&w->broken, 1) == 0) {
        snprintf(w->words, sizeof w->words, format, a, b, (unsigned long long)c);
    }
}

static uint64_t
draw_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- the state of an actor ------------------------------------------------------------------- */

typedef struct self {
    world *w;
    entry *e;
    uint32_t id;
    bool closed; /* jobs are stashed until it is opened */
    uint32_t pushed;
} self;

static void
run_deferred(void *arg)
{
    atomic_fetch_add(&((world *)arg)->deferred, 1);
}

static trp_ref
ref_of(world *w, uint32_t id)
{
    trp_ref ref;

    pthread_mutex_lock(&w->entries[id].lock);
    ref = w->entries[id].ref;
    pthread_mutex_unlock(&w->entries[id].lock);
    return ref;
}

/* The actor with this ref; 0: none that is known. */
static uint32_t
id_of(world *w, trp_ref ref)
{
    uint32_t count = actors_of(w);

    for (uint32_t id = 1; id < count; id++) {
        if (trp_ref_equal(ref_of(w, id), ref)) {
            return id;
        }
    }
    return 0;
}

static trp_err
on_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const local_args *given = trp_msg_payload(args);
    self *s = state;

    s->w = (world *)(uintptr_t)given->world;
    s->id = given->id;
    s->e = &s->w->entries[s->id];
    if (draw_random(&s->e->random) % 24 == 0) {
        return TRP_EDATA; /* fails while starting */
    }
    pthread_mutex_lock(&s->e->lock);
    s->e->ref = trp_self(ctx);
    if (s->e->running) {
        report_broken(s->w, "ledger-L4: actor %u started twice (%u starts, %llu stops)", s->id,
                      s->e->starts, s->e->stops);
    }
    s->e->running = true;
    s->e->starts++;
    pthread_mutex_unlock(&s->e->lock);
    atomic_fetch_add(&s->w->defers, 1);
    memset(trp_alloc(ctx, 40), 1, 40);
    return trp_defer(ctx, run_deferred, s->w);
}

static void
on_stop(trp_ctx *ctx, void *state)
{
    self *s = state;

    (void)ctx;
    if (s->e == NULL || !s->e->running) {
        return; /* it never started */
    }
    pthread_mutex_lock(&s->e->lock);
    s->e->running = false;
    s->e->stops++;
    s->e->stashed = 0;
    s->e->asks_open = 0;
    pthread_mutex_unlock(&s->e->lock);
}

/* The defaults: children are unwatched and stopped, then post_stop. */
static trp_err
on_pre_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    self *s = state;
    uint32_t count;

    (void)why;
    (void)msg;
    if (s->e == NULL) {
        return TRP_OK;
    }
    count = actors_of(s->w);
    atomic_fetch_add(&s->w->restarts, 1);
    for (trp_ref child = trp_child_next(ctx, (trp_ref)TRP_REF_NONE); !trp_ref_is_none(child);
         child = trp_child_next(ctx, child)) {
        trp_unwatch(ctx, child);
        trp_stop(ctx, child);
    }
    for (uint32_t id = 1; id < count; id++) {
        bool mine;

        pthread_mutex_lock(&s->w->entries[id].lock);
        mine = s->w->entries[id].parent == s->id;
        pthread_mutex_unlock(&s->w->entries[id].lock);
        if (mine) {
            pthread_mutex_lock(&s->e->lock);
            s->e->watch[id] = WATCH_NONE;
            pthread_mutex_unlock(&s->e->lock);
            trp_unwatch(ctx, ref_of(s->w, id)); /* also one that has ended since */
        }
    }
    on_stop(ctx, state);
    return TRP_OK;
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void
send_job(trp_ctx *ctx, self *s, uint32_t to, uint32_t fuel)
{
    local_job job = { 0, s->id, to, fuel, 0 };

    pthread_mutex_lock(&s->e->lock);
    job.number = ++s->e->sent[to];
    pthread_mutex_unlock(&s->e->lock);
    atomic_fetch_add(&s->w->sent, 1);
    trp_tell(ctx, ref_of(s->w, to), &local_job_type, &job, 0);
}

static void
send_routed(trp_ctx *ctx, self *s, uint32_t fuel)
{
    local_job job = { 0, s->id, 0, fuel, 0 }; /* to nobody in particular: ledger-L3 says nothing */

    atomic_fetch_add(&s->w->sent, 1);
    trp_tell(ctx, s->w->router, &local_job_type, &job, 0);
}

static trp_err
on_answer(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    self *s = state;

    (void)ctx;
    (void)arg;
    (void)err;
    (void)reply;
    atomic_fetch_add(&s->w->answered, 1);
    pthread_mutex_lock(&s->e->lock);
    if (s->e->asks_open-- == 0) {
        report_broken(s->w, "ledger-L5: an ask of actor %u was answered twice (%u, %llu)", s->id, 0,
                      0);
    }
    pthread_mutex_unlock(&s->e->lock);
    return TRP_OK;
}

static void
ask_job(trp_ctx *ctx, self *s, uint32_t to, uint32_t fuel)
{
    local_job job = { 0, s->id, to, fuel, 1 };

    if (trp_ref_is_none(ref_of(s->w, to))) {
        return; /* an ask of no actor is answered without a message */
    }
    pthread_mutex_lock(&s->e->lock);
    job.number = ++s->e->sent[to];
    s->e->asks_open++;
    pthread_mutex_unlock(&s->e->lock);
    atomic_fetch_add(&s->w->sent, 1);
    atomic_fetch_add(&s->w->asks, 1);
    if (trp_ask(ctx, ref_of(s->w, to), &local_job_type, &job, 0, 50, on_answer, NULL) != TRP_OK) {
        report_broken(s->w, "actor %u cannot ask actor %u (%llu)", s->id, to, 0);
    }
}

static const trp_behaviour behaviours[];

static void
spawn_child(trp_ctx *ctx, self *s)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    uint32_t id = atomic_load(&s->w->actors);
    local_args args = { (uint64_t)(uintptr_t)s->w, 0 };
    char name[8];
    entry *e;
    trp_err err;

    while (id < s->w->options.actors && !atomic_compare_exchange_weak(&s->w->actors, &id, id + 1)) {
    }
    if (id >= s->w->options.actors) {
        return;
    }
    e = &s->w->entries[id];
    pthread_mutex_lock(&e->lock);
    e->parent = s->id;
    e->name = draw_random(&s->e->random) % 2 == 0 ? (int)(draw_random(&s->e->random) % NAMES) : -1;
    e->random = draw_random(&s->e->random);
    args.id = id;
    snprintf(name, sizeof name, "n%d", e->name);
    options.name = e->name >= 0 ? name : NULL;
    options.args_type = &local_args_type;
    options.args = &args;
    options.args_bytes = sizeof(args);
    err = trp_spawn(ctx, &behaviours[draw_random(&s->e->random) % 3], &options, &e->ref);
    if (err != TRP_OK) {
        trp_ref none = TRP_REF_NONE;

        e->ref = none;
        if (err != TRP_EEXIST || e->name < 0) {
            report_broken(s->w, "actor %u cannot spawn actor %u (%llu)", s->id, id, (uint64_t)err);
        }
        e->name = -1;
    }
    pthread_mutex_unlock(&e->lock);
}

static void
watch_or_not(trp_ctx *ctx, self *s, uint32_t id, bool on)
{
    trp_ref ref = ref_of(s->w, id);

    if (trp_ref_is_none(ref) || id == s->id) {
        return;
    }
    pthread_mutex_lock(&s->e->lock);
    if (!on) {
        s->e->watch[id] = WATCH_NONE;
    } else if (s->e->watch[id] != WATCH_ON) {
        s->e->watch[id] = WATCH_ON;
        atomic_fetch_add(&s->w->watches, 1);
    }
    pthread_mutex_unlock(&s->e->lock);
    if (!on) {
        trp_unwatch(ctx, ref);
    } else if (trp_watch(ctx, ref) != TRP_OK) {
        report_broken(s->w, "actor %u cannot watch actor %u (%llu)", s->id, id, 0);
    }
}

static void
end_somebody(trp_ctx *ctx, self *s, uint32_t id)
{
    trp_ref ref = ref_of(s->w, id);

    switch (draw_random(&s->e->random) % 4) {
    case 0:
        trp_stop(ctx, ref);
        break;
    case 1:
        trp_tell(ctx, ref, &trp_poison_pill_type, NULL, 0);
        break;
    case 2:
        trp_tell(ctx, ref, &trp_kill_type, NULL, 0);
        break;
    default:
        trp_stop(ctx, trp_self(ctx));
        break;
    }
}

static trp_err other_receive(trp_ctx *ctx, void *state, const trp_msg *msg);

static void
set_timer(trp_ctx *ctx, self *s, const trp_type *type, const void *payload)
{
    if (trp_timer_once(ctx, 1 + draw_random(&s->e->random) % 3,
                       (uint32_t)(draw_random(&s->e->random) % 20), type, payload, 0) != TRP_OK) {
        report_broken(s->w, "actor %u cannot set a timer (%u, %llu)", s->id, 0, 0);
    }
}

static void
close_for_a_while(trp_ctx *ctx, self *s)
{
    local_open open = { 0 };

    s->closed = true;
    if (draw_random(&s->e->random) % 4 == 0) {
        return; /* until an open from elsewhere, a restart or the end */
    }
    if (trp_timer_once(ctx, 100, (uint32_t)(draw_random(&s->e->random) % 10), &local_open_type,
                       &open, 0) != TRP_OK) {
        report_broken(s->w, "actor %u cannot set a timer (%u, %llu)", s->id, 0, 0);
    }
}

/* One thing, drawn. */
static void
do_random_act(trp_ctx *ctx, self *s, uint32_t fuel)
{
    uint32_t other = 1 + (uint32_t)(draw_random(&s->e->random) % (actors_of(s->w) - 1));
    local_open open = { 0 };

    switch (draw_random(&s->e->random) % 20) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        send_job(ctx, s, other, fuel);
        break;
    case 5:
    case 6:
    case 7:
        spawn_child(ctx, s);
        break;
    case 8:
    case 9:
    case 10:
        watch_or_not(ctx, s, other, true);
        break;
    case 11:
        watch_or_not(ctx, s, other, false);
        break;
    case 12:
    case 13:
        send_routed(ctx, s, fuel);
        break;
    case 14:
        close_for_a_while(ctx, s);
        break;
    case 15:
        ask_job(ctx, s, other, fuel);
        break;
    case 16:
        if (s->pushed < 3 && trp_become(ctx, other_receive, 1) == TRP_OK) {
            s->pushed++;
        }
        break;
    case 17:
        set_timer(ctx, s, &local_open_type, &open);
        break;
    case 18:
        end_somebody(ctx, s, other);
        break;
    default:
        if (draw_random(&s->e->random) % 2 == 0) {
            trp_fail(ctx, (int32_t)(draw_random(&s->e->random) % 4), "drawn");
        }
        break;
    }
}

static void
check_order(self *s, const local_job *job)
{
    if (job->to == 0) {
        return;
    }
    pthread_mutex_lock(&s->e->lock);
    if (job->to != s->id) {
        report_broken(s->w, "actor %u got a job of actor %u (%llu)", s->id, job->to, job->number);
    }
    if (job->number <= s->e->seen[job->from]) {
        report_broken(s->w, "ledger-L3: actor %u got job %llu of actor %u too late", s->id,
                      (uint32_t)job->number, job->from);
    }
    s->e->seen[job->from] = job->number;
    s->e->handled++;
    pthread_mutex_unlock(&s->e->lock);
}

static void
on_terminated(self *s, trp_ref ref)
{
    uint32_t id = id_of(s->w, ref);

    atomic_fetch_add(&s->w->terminated, 1);
    pthread_mutex_lock(&s->e->lock);
    if (s->e->watch[id] != WATCH_ON) {
        report_broken(
            s->w, "ledger-L2: actor %u is told the end of actor %u without a watch (state %llu)",
            s->id, id, s->e->watch[id]);
    }
    s->e->watch[id] = WATCH_OVER;
    pthread_mutex_unlock(&s->e->lock);
}

static trp_err
on_job(trp_ctx *ctx, self *s, const trp_msg *msg)
{
    local_job job = *(const local_job *)trp_msg_payload(msg);
    uint32_t times;

    if (s->closed) {
        trp_err err = trp_stash(ctx, msg);

        if (err != TRP_OK) {
            report_broken(s->w, "actor %u cannot stash (%u, %llu)", s->id, 0, (uint64_t)err);
        }
        pthread_mutex_lock(&s->e->lock);
        s->e->stashed++;
        pthread_mutex_unlock(&s->e->lock);
        return TRP_OK;
    }
    if (draw_random(&s->e->random) % 16 ==
        0) { /* aside and back, perhaps before others that came back */
        if (trp_stash(ctx, msg) != TRP_OK) {
            report_broken(s->w, "actor %u cannot stash for a moment (%u, %llu)", s->id, 0, 0);
        }
        trp_unstash_all(ctx);
        return TRP_OK;
    }
    check_order(s, &job);
    atomic_fetch_add(&s->w->received, 1);
    if (job.wants_answer && draw_random(&s->e->random) % 8 != 0) {
        trp_reply(ctx, &local_answer_type, &(local_answer){ 0 }, 0);
    }
    if (job.fuel == 0) {
        return TRP_OK;
    }
    times = 1 + (uint32_t)(draw_random(&s->e->random) % 3);
    for (uint32_t i = 0; i < times; i++) {
        do_random_act(ctx, s, job.fuel - 1);
    }
    return draw_random(&s->e->random) % 40 == 0 ? TRP_EDATA : TRP_OK;
}

static trp_err
on_message(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    self *s = state;

    if (trp_msg_is(msg, &local_job_type)) {
        return on_job(ctx, s, msg);
    }
    if (trp_msg_is(msg, &local_open_type)) {
        s->closed = false;
        pthread_mutex_lock(&s->e->lock);
        s->e->stashed = 0;
        pthread_mutex_unlock(&s->e->lock);
        trp_unstash_all(ctx);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        on_terminated(s, ((const trp_terminated *)trp_msg_payload(msg))->ref);
    }
    return TRP_OK;
}

static trp_err
other_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    self *s = state;
    trp_err err = on_message(ctx, state, msg);

    if (draw_random(&s->e->random) % 4 == 0 && s->pushed > 0) {
        s->pushed--;
        trp_unbecome(ctx);
    }
    return err;
}

static trp_directive
decide_directive(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    if (failure->err == TRP_EINIT || failure->err == TRP_EKILLED) {
        return failure->line % 2 == 0 ? TRP_STOP : TRP_RESTART;
    }
    return (trp_directive)(TRP_RESUME + (uint32_t)failure->code % 4);
}

static const trp_strategy strategies[] = {
    { sizeof(trp_strategy), 0, 1, decide_directive, 0, 0 },
    { sizeof(trp_strategy), 1, 1, decide_directive, 0, 0 },
    { sizeof(trp_strategy), 0, 1, decide_directive, 2, 1000 },
};
#define LOCAL_BEHAVIOUR(i)                                                                         \
    {                                                                                              \
        sizeof(trp_behaviour), "local", 1, sizeof(self), on_message, on_start, on_stop,            \
            on_pre_restart, NULL, &strategies[i], NULL                                             \
    }
static const trp_behaviour behaviours[] = { LOCAL_BEHAVIOUR(0), LOCAL_BEHAVIOUR(1),
                                            LOCAL_BEHAVIOUR(2) };

/* ---- the actor that counts dead letters ------------------------------------------------------ */

typedef struct counter {
    world *w;
} counter;

static trp_err
counter_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    ((counter *)state)->w = (world *)(uintptr_t)((const local_args *)trp_msg_payload(args))->world;
    return TRP_OK;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    world *w = ((counter *)state)->w;

    (void)ctx;
    if (trp_msg_is(msg, &trp_dead_letter_type) &&
        ((const trp_dead_letter *)trp_msg_payload(msg))->type == local_job_type.number) {
        uint32_t id = id_of(w, ((const trp_dead_letter *)trp_msg_payload(msg))->recipient);

        pthread_mutex_lock(&w->entries[id].lock);
        w->entries[id].dead++;
        pthread_mutex_unlock(&w->entries[id].lock);
        atomic_fetch_add(&w->dead, 1);
    }
    return TRP_OK;
}

static const trp_behaviour counter_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "counter",
                                                 .version = 1,
                                                 .state_bytes = sizeof(counter),
                                                 .receive = counter_receive,
                                                 .pre_start = counter_start };

/* ---- routees: they only handle --------------------------------------------------------------- */

static trp_err
routee_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    world *w = ((counter *)state)->w;

    if (trp_msg_is(msg, &local_job_type)) {
        local_job job = *(const local_job *)trp_msg_payload(msg);

        atomic_fetch_add(&w->received, 1);
        if (job.fuel > 0 && !trp_ref_is_none(trp_sender(ctx))) {
            local_job back = { 0, 0, 0, job.fuel - 1, 0 };

            atomic_fetch_add(&w->sent, 1);
            trp_reply(ctx, &local_job_type, &back, 0);
        }
        if (job.fuel % 5 == 4) {
            trp_fail(ctx, 2, "a routee fails");
        }
    }
    return TRP_OK;
}

static const trp_behaviour routee_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "routee",
                                                .version = 1,
                                                .state_bytes = sizeof(counter),
                                                .receive = routee_receive,
                                                .pre_start = counter_start };

/* ---- names --------------------------------------------------------------------------------- */

static bool
name_is_held(world *w, int name)
{
    for (uint32_t id = 1; id < actors_of(w); id++) {
        const entry *e = &w->entries[id];

        if (e->parent == 0 && e->name == name && e->running) {
            return true;
        }
    }
    return false;
}

/* ledger-L6, at the top, where a test can spawn. Real clocks: an ending may be under way. */
static void
check_names(world *w)
{
    for (int name = 0; name < NAMES; name++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        local_args args = { (uint64_t)(uintptr_t)w, 0 };
        char text[8];
        trp_ref ref;
        trp_err err;

        snprintf(text, sizeof text, "n%d", name);
        options.name = text;
        options.args_type = &local_args_type;
        options.args = &args;
        options.args_bytes = sizeof(args);
        err = trp_system_spawn(w->system, &counter_behaviour, &options, &ref);
        if (w->options.settle_ms == 0 && (err == TRP_EEXIST) != name_is_held(w, name)) {
            trp_testkit_fail(w->kit, "ledger-L6: spawning the name %s again: %s", text,
                             trp_strerror(err));
        }
    }
}

/* ---- a program ------------------------------------------------------------------------------- */

static void
open_top(world *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        uint32_t id = atomic_fetch_add(&w->actors, 1);
        local_args args = { (uint64_t)(uintptr_t)w, id };
        entry *e = &w->entries[id];
        char name[8];

        e->name = i < NAMES ? (int)i : -1;
        e->random = draw_random(&w->entries[0].random);
        snprintf(name, sizeof name, "n%d", e->name);
        options.name = e->name >= 0 ? name : NULL;
        options.args_type = &local_args_type;
        options.args = &args;
        options.args_bytes = sizeof(args);
        pthread_mutex_lock(&e->lock);
        TRP_TESTKIT_CHECK(
            w->kit, trp_system_spawn(w->system, &behaviours[draw_random(&w->entries[0].random) % 3],
                                     &options, &e->ref) == TRP_OK);
        pthread_mutex_unlock(&e->lock);
    }
}

static void
open_services(world *w)
{
    trp_router_options routed = TRP_ROUTER_OPTIONS_INIT;
    static const char *const logics[] = { "round-robin", "random", "smallest-mailbox" };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    local_args args = { (uint64_t)(uintptr_t)w, 0 };
    trp_ref ref;

    options.args_type = &local_args_type;
    options.args = &args;
    options.args_bytes = sizeof(args);
    TRP_TESTKIT_CHECK(w->kit,
                      trp_system_spawn(w->system, &counter_behaviour, &options, &ref) == TRP_OK);
    TRP_TESTKIT_CHECK(w->kit,
                      trp_system_subscribe(w->system, ref, &trp_dead_letter_type) == TRP_OK);
    routed.logic = logics[draw_random(&w->entries[0].random) % 3];
    routed.instances = 3;
    TRP_TESTKIT_CHECK(w->kit, trp_system_router_spawn(w->system, &routee_behaviour, &options, NULL,
                                                      &routed, &w->router) == TRP_OK);
}

static void
tell_jobs(world *w)
{
    entry *outside = &w->entries[0];
    trp_probe *probe = trp_testkit_probe(w->kit);

    for (uint32_t i = 0; i < w->options.jobs; i++) {
        uint32_t to = 1 + (uint32_t)(draw_random(&outside->random) % (actors_of(w) - 1));
        local_job job = { ++outside->sent[to], 0, to, w->options.fuel, 0 };

        atomic_fetch_add(&w->sent, 1);
        trp_system_tell(w->system, ref_of(w, to), &local_job_type, &job, 0);
        if (w->options.settle_ms == 0 && i % 4 == 3) {
            (void)trp_probe_receive(probe, 1); /* let some of it happen */
        }
    }
}

static void
come_to_rest(world *w)
{
    if (w->options.settle_ms != 0) {
        trp_probe_await_assert(trp_testkit_probe(w->kit), w->options.settle_ms, 5, laws_at_rest, w);
        return;
    }
    TRP_TESTKIT_CHECK(w->kit, trp_testkit_advance(w->kit, 10000) == TRP_OK);
    if (laws_at_rest(w) != NULL) {
        trp_testkit_fail(w->kit, "%s", laws_at_rest(w));
    }
}

static void
totals_add(world *w, local_totals *totals)
{
    totals->sent += w->sent;
    totals->received += w->received;
    totals->dead += w->dead;
    totals->stashed += stashed_now(w);
    totals->spawned += w->actors - 1;
    totals->watches += w->watches;
    totals->terminated += w->terminated;
    totals->restarts += w->restarts;
    totals->asks += w->asks;
}

void
local_program(trp_testkit *kit, const local_options *options, local_totals *totals)
{
    static world *w; /* kept when a failure jumps away */

    free(w);
    w = calloc(1, sizeof *w);
    w->kit = kit;
    w->system = trp_testkit_system(kit);
    w->options = *options;
    w->options.actors = options->actors < ACTORS_MAX ? options->actors : ACTORS_MAX;
    w->actors = 1;
    w->entries[0].random = options->seed;
    for (uint32_t i = 0; i < ACTORS_MAX; i++) {
        pthread_mutex_init(&w->entries[i].lock, NULL);
    }
    TRP_TESTKIT_CHECK(kit, trp_protocol_register(&local_protocol) == TRP_OK);
    open_services(w);
    open_top(w, 6);
    tell_jobs(w);
    come_to_rest(w);
    totals_add(w, totals); /* at rest: what is stashed dies with the system */
    check_names(w);
    TRP_TESTKIT_CHECK(kit, trp_system_stop(w->system, 20000) == TRP_OK);
    if (laws_at_the_end(w) != NULL) {
        trp_testkit_fail(kit, "%s", laws_at_the_end(w));
    }
}
