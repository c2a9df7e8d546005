/* embedded_test.c - actors inside an actor, and actors for blocking calls. */
#include <troupe/embedded.h>
#include <troupe/resource.h>

#include "tests/unit/actor/stage.h"

static _Atomic int at_once, most_at_once;

static trp_err
part_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *calls = state;

    ++*calls;
    if (stage_said(msg, "refuse")) {
        return TRP_EUNHANDLED;
    }
    if (stage_said(msg, "fail")) {
        trp_fail(ctx, 1, "inside");
    }
    stage_note("part:%.*s:%d", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg), *calls);
    if (!trp_ref_equal(trp_sender(ctx), trp_self(ctx))) {
        trp_reply_text(ctx, "from inside");
    }
    return TRP_OK;
}
static trp_err
part_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    stage_note("part-start");
    return TRP_OK;
}
static void
part_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    stage_note("part-stop:%d", *(int *)state);
}
static const trp_behaviour part = { .size = sizeof(trp_behaviour),
                                    .name = "part",
                                    .version = 1,
                                    .state_bytes = sizeof(int),
                                    .receive = part_receive,
                                    .pre_start = part_start,
                                    .post_stop = part_stop };

typedef struct host {
    trp_embedded_host inner;
    trp_embedded *part;
    trp_ref address;
} host;

static trp_err
host_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    host *h = state;

    (void)args;
    return trp_embedded_new(ctx, &h->inner, &part, NULL, &h->part);
}

static trp_err
host_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    host *h = state;
    trp_err err = trp_embedded_dispatch(ctx, &h->inner, msg);

    if (err != TRP_EUNHANDLED) {
        return err;
    }
    if (stage_said(msg, "address")) {
        trp_ref again;

        UNIT_EQUAL(trp_embedded_address(ctx, h->part, &h->address), TRP_OK);
        UNIT_EQUAL(trp_embedded_address(ctx, h->part, &again), TRP_OK);
        UNIT_TRUE(trp_ref_equal(again, h->address));
        trp_reply(ctx, &trp_bytes_type, &h->address, sizeof h->address);
    } else if (stage_said(msg, "end")) {
        trp_embedded_end(ctx, &h->inner, h->part);
        trp_reply_text(ctx, "ended");
    } else if (stage_said(msg, "fail")) {
        (void)trp_embedded_call(ctx, h->part, &trp_string_type, "fail", 4);
    } else {
        stage_note("before");
        UNIT_EQUAL(trp_embedded_call(ctx, h->part, &trp_string_type, trp_msg_payload(msg),
                                     trp_msg_bytes(msg)),
                   TRP_OK);
        UNIT_EQUAL(trp_embedded_call(ctx, h->part, &trp_string_type, "refuse", 6), TRP_EUNHANDLED);
        stage_note("after:%d", *(int *)trp_embedded_state(h->part));
        trp_reply_text(ctx, "ok");
    }
    return TRP_OK;
}
static const trp_behaviour host_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "host",
                                              .version = 1,
                                              .state_bytes = sizeof(host),
                                              .receive = host_receive,
                                              .pre_start = host_start };

/* A4J-15, A4J-35: called synchronously in its host, with a queue only when it is addressed; it ends
 * with the host's state */
static void
an_embedded_actor_is_called_and_has_a_queue_only_when_addressed(void)
{
    trp_system *system = stage_open();
    trp_ref h = stage_spawn(system, &host_behaviour, "h"), address;
    trp_system_stats stats = { .size = sizeof stats };
    trp_msg *reply;
    uint64_t actors;
    char answer[32];

    UNIT_EQUAL(stage_ask(system, h, "x", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("part-start before part:x:1 after:2");
    trp_system_stats_get(system, &stats);
    actors = stats.actors; /* it is none of them */
    UNIT_EQUAL(trp_system_ask(system, h, &trp_string_type, "address", 7, 60000, &reply), TRP_OK);
    memcpy(&address, trp_msg_payload(reply), sizeof address);
    trp_msg_free(reply);
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.actors, actors + 1);
    UNIT_EQUAL(stage_ask(system, address, "told", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "from inside");
    UNIT_TRUE(stage_has("part:told:3"));
    stage_clear(&stage_events);
    stage_tell(system, h, "fail"); /* its failure is the host's: both begin anew */
    UNIT_EQUAL(stage_ask(system, h, "y", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("part-stop:4 part-start before part:y:1 after:2");
    UNIT_EQUAL(stage_ask(system, address, "old", answer, sizeof answer), TRP_ENOENT);
    stage_clear(&stage_events);
    UNIT_EQUAL(stage_ask(system, h, "end", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, h, 60000), TRP_OK);
    STAGE_EXPECT("part-stop:2"); /* once */
    stage_close(system);
}

static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int now = atomic_fetch_add(&at_once, 1) + 1, before = atomic_load(&most_at_once);

    (void)state;
    (void)msg;
    while (now > before && !atomic_compare_exchange_weak(&most_at_once, &before, now)) {
    }
    for (uint64_t until = unit_now_ms() + 60000;
         atomic_load(&most_at_once) < 3 && unit_now_ms() < until && now > 0;) {
        unit_pause(); /* blocks until others are here, too */
        if (stage_said(msg, "alone")) {
            break;
        }
    }
    atomic_fetch_sub(&at_once, 1);
    trp_reply_text(ctx, "read");
    stage_note("read");
    return TRP_OK;
}
static const trp_behaviour reader = {
    .size = sizeof(trp_behaviour), .name = "reader", .version = 1, .receive = reader_receive
};
static const trp_behaviour keeper = { .size = sizeof(trp_behaviour),
                                      .name = "keeper",
                                      .version = 1,
                                      .state_bytes = 8,
                                      .receive = reader_receive };

/* Makes a resource actor of its own and has it read. */
static trp_err
owner_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_resource_options options = TRP_RESOURCE_OPTIONS_INIT;
    trp_ref child;

    (void)state;
    if (stage_said(msg, "read")) {
        return TRP_OK; /* the answer */
    }
    options.name = "files";
    UNIT_EQUAL(trp_resource_spawn(ctx, &keeper, &options, &child), TRP_OK);
    UNIT_TRUE(trp_ref_equal(trp_child(ctx, "files"), child));
    trp_tell_text(ctx, child, "alone");
    return TRP_OK;
}
static const trp_behaviour owner = {
    .size = sizeof(trp_behaviour), .name = "owner", .version = 1, .receive = owner_receive
};

/* A4J-12, A4J-33: off the workers; one without state in parallel, one with a state never */
static void
resource_actors_run_apart_and_in_parallel_without_state(void)
{
    trp_resource_options options = TRP_RESOURCE_OPTIONS_INIT;
    trp_system_options one = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref parallel, serial;

    one.workers = 1;
    system = stage_open_with(one);
    atomic_store(&most_at_once, 0);
    options.name = "readers";
    options.parallel = 3;
    UNIT_EQUAL(trp_system_resource_spawn(system, &keeper, &options, &parallel), TRP_EINVAL);
    UNIT_EQUAL(trp_system_resource_spawn(system, &reader, &options, &parallel), TRP_OK);
    for (int i = 0; i < 3; i++) {
        stage_tell(system, parallel, "file");
    }
    UNIT_WAIT(stage_count("read") == 3, 20000);
    UNIT_EQUAL(atomic_load(&most_at_once), 3);
    atomic_store(&most_at_once, 0);
    UNIT_EQUAL(trp_system_resource_spawn(system, &keeper, NULL, &serial), TRP_OK);
    for (int i = 0; i < 3; i++) {
        stage_tell(system, serial, "alone");
    }
    UNIT_WAIT(stage_count("read") == 6, 20000);
    UNIT_EQUAL(atomic_load(&most_at_once), 1);
    stage_tell(system, stage_spawn(system, &owner, "owner"), "go");
    UNIT_WAIT(stage_count("read") == 7, 20000);
    stage_close(system);
}

UNIT_BEGIN("embedded")
UNIT(an_embedded_actor_is_called_and_has_a_queue_only_when_addressed)
UNIT(resource_actors_run_apart_and_in_parallel_without_state)
UNIT_END
