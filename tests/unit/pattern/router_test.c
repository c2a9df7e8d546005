/* router_test.c - the schemes of routing, envelopes, groups, senders. */
#include <troupe/mailbox.h>

#include "actor/kernel/run.h"
#include "tests/unit/pattern/crew.h"

typedef struct processed {
    const char *path;
    uint64_t count;
} processed;

static int
processed_visit(void *arg, const trp_tree_entry *entry)
{
    ((processed *)arg)->count = entry->processed;
    return 1;
}

/* ROUTE-1, ROUTE-2, ROUTE-5, ROUTE-7, HEADLINE-15, SYS-11: five children, strict rotation, from the
 * first tell on; the routee sees who asked, and the router's own mailbox sees nothing of it. */
static void
messages_rotate_over_children_and_pass_the_router_by(void)
{
    trp_system *system = crew_open();
    trp_ref router = crew_router(system, "pool", "round-robin", 5);
    trp_ref refs[CREW_MAX];
    char name[64], path[128];
    processed seen = { "/user/pool", 99 };

    for (int i = 0; i < 15; i++) {
        UNIT_EQUAL(stage_ask(system, router, "who", name, sizeof name), TRP_OK);
        UNIT_EQUAL(crew_of(system, router, refs), 5);
        UNIT_TEXT(name, stage_name(system, refs[i % 5], path, sizeof path));
    }
    trp_path(system, refs[0], path, sizeof path);
    UNIT_TRUE(strncmp(path, "/user/pool/$", 12) == 0);
    UNIT_EQUAL(trp_system_tree(system, seen.path, 0, 60000, processed_visit, &seen), TRP_OK);
    UNIT_EQUAL(seen.count, 0);
    UNIT_EQUAL(atomic_load(&crew_started), 5);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&crew_stopped), 5);
}

static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *router = state;
    char path[256];

    if (trp_msg_is(msg, &trp_i64_type)) {
        memcpy(router, trp_msg_payload(msg), 8);
        return TRP_OK;
    }
    if (stage_said(msg, "go")) {
        trp_router_options options = TRP_ROUTER_OPTIONS_INIT;

        UNIT_EQUAL(trp_router_spawn(ctx, &crew_behaviour, NULL, "r", &options, router), TRP_OK);
        trp_tell_text(ctx, *router, "first");
        trp_tell_text(ctx, *router, "second");
        trp_tell_text(ctx, *router, "as router");
        trp_tell_text(ctx, *router, "who");
        return TRP_OK;
    }
    stage_note("reply-from-%s", trp_ref_equal(trp_sender(ctx), *router)
                                    ? "router"
                                    : trp_path(trp_ctx_system(ctx), trp_sender(ctx), path, 13));
    return TRP_OK;
}

/* ROUTE-2, ROUTE-3: a child of an actor; order is kept from the very first message on, and a routee
 * may answer in the router's name. */
static void
replies_come_from_the_routee_or_in_the_routers_name(void)
{
    static const trp_behaviour asker = TRP_BEHAVIOUR_INIT("asker", trp_ref, asker_receive);
    trp_system *system = crew_open();
    trp_ref ref = stage_spawn(system, &asker, "asker"), refs[CREW_MAX], router;
    char name[64], script[256];

    stage_tell(system, ref, "go");
    UNIT_WAIT(stage_count("reply-from") == 2, 5000);
    UNIT_EQUAL(trp_system_resolve(system, "/user/asker/r", 60000, &router), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 1);
    stage_name(system, refs[0], name, sizeof name);
    snprintf(script, sizeof script, "%s:first %s:second ", stage_name(system, refs[0], name, 64),
             stage_name(system, refs[0], script + 200, 50));
    UNIT_TRUE(stage_has(":first "));
    UNIT_TRUE(strstr(stage_events.text, ":first ") < strstr(stage_events.text, ":second "));
    UNIT_TRUE(stage_has("reply-from-router reply-from-/user/asker/"));
    stage_close(system);
}

static trp_err
choices_draw(uint64_t seed, int *hits, int draws, uint32_t *ret_trace)
{
    crew_world world;
    trp_system *system = crew_open_seeded(&world, seed);
    trp_ref router = crew_router(system, "pool", "random", 10), refs[CREW_MAX];
    int64_t number = 0;

    UNIT_EQUAL(crew_of(system, router, refs), 10);
    *ret_trace = 0;
    for (int i = 0; i < draws; i++) {
        int index = crew_index(refs, 10, crew_route(system, router, &trp_i64_type, &number, 8));

        if (index < 0) {
            UNIT_FAIL("not to exactly one routee");
            break;
        }
        hits[index]++;
        *ret_trace = *ret_trace * 31 + (uint32_t)index;
    }
    crew_close_seeded(system, &world);
    return TRP_OK;
}

/* ROUTE-8: uniform (chi-square of 10 bins, 9 degrees of freedom: 27.9 is p = 0.001), chosen anew
 * for each message, and the same for the same seed of the world. */
static void
random_choice_is_uniform_and_follows_from_the_seed(void)
{
    int hits[10] = { 0 }, again[10] = { 0 }, other[10] = { 0 };
    uint32_t trace, trace_again, trace_other;
    double chi = 0;

    choices_draw(2013, hits, 10000, &trace);
    choices_draw(2013, again, 10000, &trace_again);
    choices_draw(2014, other, 10000, &trace_other);
    for (int i = 0; i < 10; i++) {
        chi += (hits[i] - 1000.0) * (hits[i] - 1000.0) / 1000.0;
    }
    if (!UNIT_TRUE(chi > 0.1 && chi < 27.9)) {
        printf("  seed 2013, chi-square %f\n", chi);
    }
    UNIT_EQUAL(trace, trace_again);
    UNIT_TRUE(trace != trace_other);
}

/* Return whether the next message would go to an idle routee. */
static bool
goes_to_an_idle_one(trp_system *system, trp_ref router, const trp_ref *refs)
{
    int index = crew_index(refs, 3, crew_route(system, router, &trp_string_type, "x", 1));
    trp_mailbox_view view;

    return index >= 0 && trp_mailbox_look(system, refs[index], &view) == TRP_OK && view.idle;
}

/* ROUTE-9: idle routees first; then those with an empty mailbox; then by waiting messages. */
static void
the_smallest_mailbox_is_found(void)
{
    trp_system *system = crew_open();
    trp_ref router = crew_router(system, "pool", "smallest-mailbox", 3), refs[CREW_MAX];

    UNIT_EQUAL(crew_of(system, router, refs), 3);
    for (int i = 0; i < 2; i++) { /* two are busy, one is idle, perhaps after it has started */
        stage_tell(system, router, "hold");
        UNIT_WAIT(atomic_load(&crew_held) == i + 1, 5000);
    }
    UNIT_WAIT(goes_to_an_idle_one(system, router, refs), 5000);
    stage_tell(system, router, "hold");
    UNIT_WAIT(atomic_load(&crew_held) == 3, 5000);
    stage_tell(system, router, "a"); /* all are at a message: mailboxes are empty, then not */
    UNIT_EQUAL(crew_index(refs, 3, crew_route(system, router, &trp_string_type, "x", 1)), 1);
    stage_tell(system, router, "b");
    stage_tell(system, router, "c");
    stage_tell(system, router, "d"); /* 2 1 1 */
    UNIT_EQUAL(crew_index(refs, 3, crew_route(system, router, &trp_string_type, "x", 1)), 1);
    atomic_store(&crew_gate, 1);
    UNIT_WAIT(stage_count(":") == 4, 5000);
    stage_close(system);
}

/* ROUTE-9: one that has failed takes nothing, however empty its mailbox is; one on another node
 * comes last of those that do. */
static trp_directive
never_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    atomic_fetch_add(&crew_held, 1);
    while (atomic_load(&crew_gate) == 0) {
        unit_pause();
    }
    return TRP_RESUME;
}
/* ROUTE-9, REMOTE-70 */
static void
suspended_and_remote_routees_come_last(void)
{
    /* a watched routee on the other node does not end */
    static const trpi_remote_ops lossy = { stage_lost_connect, stage_lost_signal, NULL };
    static const trp_strategy strategy = { sizeof(trp_strategy), 0, 1, never_decide, 0, 0 };
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, refs[CREW_MAX], group[2];

    options.logic = "smallest-mailbox";
    options.instances = 2;
    options.strategy = &strategy;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "pool", &options, &router),
               TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 2);
    stage_tell(system, refs[0], "fail");
    UNIT_WAIT(atomic_load(&crew_held) == 1, 5000); /* its supervisor is still deciding */
    for (int i = 0; i < 5; i++) {
        UNIT_EQUAL(crew_index(refs, 2, crew_route(system, router, &trp_string_type, "x", 1)), 1);
    }
    UNIT_EQUAL(trpi_system_remote_set(system, &lossy, NULL), TRP_OK);
    group[0] = stage_far(system);
    group[1] = refs[1];
    options.routees = group;
    options.routees_count = 2;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "group", &options, &router), TRP_OK);
    UNIT_EQUAL(crew_index(group, 2, crew_route(system, router, &trp_string_type, "x", 1)), 1);
    group[1] = refs[0];
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "group2", &options, &router), TRP_OK);
    UNIT_EQUAL(crew_index(group, 2, crew_route(system, router, &trp_string_type, "x", 1)), 0);
    atomic_store(&crew_gate, 1);
    stage_close(system);
}

/* ROUTE-10, ROUTE-13: payloads in one line, in several lines, out of line. */
static void
a_broadcast_reaches_every_routee_of_any_router(void)
{
    static const char *const logics[] = { "broadcast", "round-robin", "scatter-gather",
                                          "consistent-hashing", "smallest-mailbox" };
    trp_system *system = crew_open();
    trp_ref none = TRP_REF_NONE, refs[CREW_MAX];
    char *big = malloc(100000);

    memset(big, 'b', 100000);
    for (size_t i = 0; i < sizeof logics / sizeof logics[0]; i++) {
        trp_ref router = crew_router(system, NULL, logics[i], 4);
        int64_t five = 5;

        UNIT_EQUAL(crew_of(system, router, refs), 4);
        trp_system_router_broadcast(system, router, none, &trp_i64_type, &five, 8);
        trp_system_router_broadcast(system, router, none, &trp_string_type, big, 300);
        trp_system_router_broadcast(system, router, none, &trp_string_type, big, 100000);
        for (int r = 0; r < 4; r++) {
            UNIT_EQUAL(crew_sum(system, refs[r]), 5 + 300 + 100000);
        }
    }
    stage_clear(&stage_events);
    stage_tell(system, crew_router(system, NULL, "broadcast", 3), "all");
    UNIT_WAIT(stage_count(":all") == 3, 5000);
    free(big);
    stage_close(system);
}

/* ROUTE-14, ROUTE-15: what stops a router stops its children, and nobody else; in an envelope it
 * reaches the routees. */
static void
pills_are_for_the_router_and_in_an_envelope_for_its_routees(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref none = TRP_REF_NONE, pool = crew_router(system, "pool", "round-robin", 3), group,
            one[2];
    char name[64];

    one[0] = stage_spawn(system, &crew_behaviour, "a");
    one[1] = stage_spawn(system, &crew_behaviour, "b");
    options.routees = one;
    options.routees_count = 2;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "group", &options, &group), TRP_OK);
    trp_system_tell(system, pool, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(atomic_load(&crew_stopped) == 3, 5000);
    trp_system_tell(system, group, &trp_kill_type, NULL, 0); /* the guardian stops the killed */
    UNIT_WAIT(crew_count(system, group) == UINT32_MAX, 5000);
    UNIT_EQUAL(stage_ask(system, one[0], "who", name, sizeof name), TRP_OK);
    UNIT_TEXT(name, "a");
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "group2", &options, &group), TRP_OK);
    for (int i = 0; i < 10; i++) {
        stage_tell(system, group, "last");
    }
    trp_system_router_broadcast(system, group, none, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(atomic_load(&crew_stopped) == 5, 5000);
    UNIT_EQUAL(stage_count(":last"), 10);                     /* each has drained its mailbox */
    UNIT_WAIT(crew_count(system, group) == UINT32_MAX, 5000); /* the router has ended with them */
    pool = crew_router(system, "pool2", "random", 2);
    trp_system_router_broadcast(system, pool, none, &trp_kill_type, NULL, 0);
    UNIT_WAIT(atomic_load(&crew_stopped) == 7, 5000);
    stage_close(system);
}

/* ROUTE-5: routees by path, here: found at once, or when they come. */
static void
routees_are_found_by_their_paths(void)
{
    static const char *const paths[] = { "/user/early", "/user/late", NULL };
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, refs[CREW_MAX], early = stage_spawn(system, &crew_behaviour, "early"), late;
    static const char *const bad[] = { "no path", NULL };

    options.routee_paths = paths;
    options.instances = 9; /* not used: routees are given */
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "group", &options, &router), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 1);
    UNIT_TRUE(trp_ref_equal(refs[0], early));
    late = stage_spawn(system, &crew_behaviour, "late");
    UNIT_WAIT(crew_of(system, router, refs) == 2, 5000);
    UNIT_TRUE(trp_ref_equal(refs[1], late));
    options.routee_paths = bad;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "bad", &options, &router), TRP_EINVAL);
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "bad", NULL, &router), TRP_EINVAL);
    stage_close(system);
}

/* ROUTE-3: what is wrong is refused, and leaves neither name nor children behind. */
static void
a_router_that_cannot_be_leaves_nothing_behind(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_system_stats before = { .size = sizeof before }, after = { .size = sizeof after };
    trp_ref router;

    trp_system_stats_get(system, &before);
    options.logic = "no-such";
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "r", &options, &router),
               TRP_EINVAL);
    options.logic = NULL;
    options.instances = TRP_ROUTEES_MAX + 1;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "r", &options, &router),
               TRP_ELIMIT);
    options.instances = 3;
    routee.dispatcher = "no-such";
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router),
               TRP_ENOENT);
    routee.dispatcher = NULL;
    options.dispatcher = "no-such";
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router),
               TRP_ENOENT);
    options.dispatcher = NULL;
    options.virtual_nodes = TRP_ROUTER_VIRTUAL_NODES_MAX + 1;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router),
               TRP_EINVAL);
    options.virtual_nodes = TRP_ROUTER_VIRTUAL_NODES_MAX;
    routee.name = "one";
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router),
               TRP_EINVAL);
    routee.name = NULL;
    trp_system_stats_get(system, &after);
    UNIT_EQUAL(after.spawned - before.spawned, 0);
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router),
               TRP_OK);
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router),
               TRP_EEXIST);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&crew_started), 3);
}

/* ROUTE-3: whichever allocation fails, the name is free again and no child has started. */
static void
a_router_without_memory_leaves_nothing_behind(void)
{
    static const char *const paths[] = { "/user/one", "/user/nobody", NULL };
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
    trp_ref router = TRP_REF_NONE;
    trp_err err = TRP_ENOMEM;
    int refused = 0;

    stage_spawn(system, &crew_behaviour, "one");
    UNIT_WAIT(atomic_load(&crew_started) == 1, 5000);
    resizer.lower_bound = 3;
    options.logic = "consistent-hashing";
    options.routee_paths = paths;
    options.resizer = &resizer;
    routee.dispatcher = "default";
    for (long n = 0; n < 200 && err != TRP_OK; n++) {
        trpi_alloc_fail_here_after(n);
        err = trp_system_router_spawn(system, &crew_behaviour, &routee, "r", &options, &router);
        trpi_alloc_fail_after(-1);
        if (err != TRP_OK) {
            UNIT_EQUAL(err, TRP_ENOMEM);
            UNIT_EQUAL(atomic_load(&crew_started), 1);
            refused++;
        }
    }
    UNIT_EQUAL(err, TRP_OK);
    UNIT_TRUE(refused > 10);
    /* that one may have met the last failure in its own turn; a fresh one has all it needs */
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "s", &options, &router),
               TRP_OK);
    UNIT_EQUAL(crew_count(system, router), 3); /* the one that is there, and two children */
    stage_close(system);
}

/* ROUTE-1: routers may lead to routers; a circle of them ends in a dead letter. */
static void
routers_nest_and_a_circle_ends(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_ref inner = crew_router(system, "inner", NULL, 2), outer, other;
    trp_add_routee add;
    char name[64];

    options.routees = &inner;
    options.routees_count = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "outer", &options, &outer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, outer, "who", name, sizeof name), TRP_OK);
    options.routees = &outer;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "other", &options, &other), TRP_OK);
    add.routee = other;
    trp_system_tell(system, outer, &trp_add_routee_type, &add, sizeof add);
    UNIT_WAIT(crew_count(system, outer) == 2, 5000);
    add.routee = inner;
    trp_system_tell(system, outer, &trp_remove_routee_type, &add, sizeof add);
    UNIT_WAIT(crew_count(system, outer) == 1, 5000);
    stage_tell(system, outer, "round and round");
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_NO_SUCH_ACTOR], 1);
    UNIT_FALSE(stage_has("round"));
    stage_close(system);
}

static trp_ref heralded, ringed; /* routers */

/* Tells routers from inside an actor. */
static trp_err
herald_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t five = 5, seven = 7;
    trp_msg *envelope;
    void *payload;

    (void)state;
    if (stage_said(msg, "broadcast")) {
        trp_router_broadcast(ctx, heralded, &trp_i64_type, &five, sizeof five);
        trp_router_broadcast(ctx, heralded, &trp_string_type, "who", 3);
    } else if (stage_said(msg, "broadcast envelope")) {
        UNIT_EQUAL(trp_broadcast_new(&trp_i64_type, 3, &envelope, &payload), TRP_EINVAL);
        UNIT_EQUAL(trp_broadcast_new(&trp_i64_type, sizeof seven, &envelope, &payload), TRP_OK);
        memcpy(payload, &seven, sizeof seven);
        trp_send(ctx, heralded, envelope);
    } else if (stage_said(msg, "key")) {
        trp_router_tell_keyed(ctx, ringed, "k", 1, &trp_i64_type, &five, sizeof five);
        trp_router_tell_keyed(ctx, ringed, "k", 1, &trp_string_type, "who", 3);
    } else if (stage_said(msg, "key envelope")) {
        UNIT_EQUAL(trp_keyed_new("k", 1, &trp_i64_type, sizeof seven, &envelope, &payload), TRP_OK);
        memcpy(payload, &seven, sizeof seven);
        trp_send(ctx, ringed, envelope);
    } else {
        stage_note("reply:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
        return TRP_OK;
    }
    trp_tell_text(ctx, trp_self(ctx), "done");
    return TRP_OK;
}
static const trp_behaviour herald = {
    .size = sizeof(trp_behaviour), .name = "herald", .version = 1, .receive = herald_receive
};

/* ROUTE-2, -12, -13: envelopes from inside an actor, in its name, by a call or as a message */
static void
actors_broadcast_and_tell_by_key_in_their_own_name(void)
{
    trp_system *system = crew_open();
    trp_ref refs[CREW_MAX], actor = stage_spawn(system, &herald, "herald");
    int64_t sum = 0;
    int with = 0;

    heralded = crew_router(system, "heralded", "round-robin", 3);
    ringed = crew_router(system, "ringed", "consistent-hashing", 3);
    stage_clear(&stage_events);
    stage_tell(system, actor, "broadcast");
    UNIT_WAIT(stage_count("reply:") == 4, 60000); /* three routees, and it is done */
    stage_tell(system, actor, "broadcast envelope");
    UNIT_WAIT(stage_count("reply:done") == 2, 60000);
    UNIT_EQUAL(crew_of(system, heralded, refs), 3);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(crew_sum(system, refs[i]), 12);
    }
    stage_clear(&stage_events);
    stage_tell(system, actor, "key");
    UNIT_WAIT(stage_count("reply:") == 2, 60000);
    stage_tell(system, actor, "key envelope");
    UNIT_WAIT(stage_count("reply:done") == 2, 60000);
    UNIT_EQUAL(crew_of(system, ringed, refs), 3);
    for (int i = 0; i < 3; i++) { /* one key, one routee */
        int64_t here = crew_sum(system, refs[i]);

        sum += here;
        with += here != 0;
    }
    UNIT_EQUAL(sum, 12);
    UNIT_EQUAL(with, 1);
    stage_close(system);
}

/* ROUTE-1: TRPI_ROUTE_DEPTH_MAX routers behind one another, and one more */
static void
so_many_routers_lead_to_each_other_and_not_one_more(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_ref at = crew_router(system, "inner", NULL, 1), next;
    char name[64];

    options.routees = &at;
    options.routees_count = 1;
    for (uint32_t depth = 1; depth < TRPI_ROUTE_DEPTH_MAX; depth++, at = next) {
        UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, NULL, &options, &next), TRP_OK);
    }
    UNIT_EQUAL(stage_ask(system, at, "who", name, sizeof name), TRP_OK);
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, NULL, &options, &next), TRP_OK);
    stage_tell(system, next, "too deep");
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_NO_SUCH_ACTOR], 1);
    stage_close(system);
    UNIT_FALSE(stage_has("too deep"));
}

/* The depth is the teller's, whatever becomes of a routee that runs on its thread. */
static void
a_routee_that_fails_on_the_tellers_thread_leaves_the_depth(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref routee, router;
    trp_ctx *ctx;

    spawn.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_system_spawn(system, &crew_behaviour, &spawn, &routee), TRP_OK);
    options.routees = &routee;
    options.routees_count = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "r", &options, &router), TRP_OK);
    stage_tell(system, router, "fail");
    ctx = trpi_enter(system);
    UNIT_EQUAL(ctx->turn.route_depth, 0);
    trpi_leave(ctx);
    UNIT_WAIT(atomic_load(&crew_restarted) == 1, 5000);
    stage_close(system);
}

static trp_err
sponsor_started(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_ref ref;

    (void)state;
    (void)args;
    UNIT_EQUAL(trp_system_spawn(trp_ctx_system(ctx), &crew_behaviour, NULL, &ref), TRP_OK);
    return TRP_OK;
}
static trp_err
sponsor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour sponsor = { .size = sizeof(trp_behaviour),
                                       .name = "sponsor",
                                       .version = 1,
                                       .receive = sponsor_receive,
                                       .pre_start = sponsor_started };

/* DISP-6, ROUTE-1: routees that start on the thread that makes their router may do there what they
 * may elsewhere. */
static void
routees_of_the_calling_thread_start_without_a_lock(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_ref router;

    options.instances = 2;
    options.dispatcher = "calling-thread";
    routee.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_system_router_spawn(system, &sponsor, &routee, "r", &options, &router), TRP_OK);
    UNIT_WAIT(atomic_load(&crew_started) == 2, 60000);
    UNIT_EQUAL(crew_count(system, router), 2);
    stage_close(system);
}

static trp_err
greeter_started(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    trp_tell_text(ctx, trp_parent(ctx), "hi");
    return TRP_OK;
}
static const trp_behaviour greeter = { .size = sizeof(trp_behaviour),
                                       .name = "greeter",
                                       .version = 1,
                                       .state_bytes = sizeof(int64_t),
                                       .receive = crew_receive,
                                       .pre_start = greeter_started };
static trp_err
founder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_ref router;

    (void)state;
    (void)msg;
    options.logic = "broadcast";
    options.instances = 3;
    routee.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_router_spawn(ctx, &greeter, &routee, "r", &options, &router), TRP_OK);
    return TRP_OK;
}
static const trp_behaviour founder = {
    .size = sizeof(trp_behaviour), .name = "founder", .version = 1, .receive = founder_receive
};

/* ROUTE-1: the first routee to start may tell its router; all others are there. */
static void
routees_may_tell_their_router_when_they_start(void)
{
    trp_system *system = crew_open();

    stage_tell(system, stage_spawn(system, &founder, "f"), "go");
    UNIT_WAIT(stage_count(":hi") == 9, 60000);
    UNIT_EQUAL(stage_dead_sum(system), 0);
    stage_close(system);
}

UNIT_BEGIN("router")
UNIT(messages_rotate_over_children_and_pass_the_router_by)
UNIT(replies_come_from_the_routee_or_in_the_routers_name)
UNIT(random_choice_is_uniform_and_follows_from_the_seed)
UNIT(the_smallest_mailbox_is_found)
UNIT(suspended_and_remote_routees_come_last)
UNIT(a_broadcast_reaches_every_routee_of_any_router)
UNIT(pills_are_for_the_router_and_in_an_envelope_for_its_routees)
UNIT(routees_are_found_by_their_paths)
UNIT(a_router_that_cannot_be_leaves_nothing_behind)
UNIT(a_router_without_memory_leaves_nothing_behind)
UNIT(actors_broadcast_and_tell_by_key_in_their_own_name)
UNIT(routers_nest_and_a_circle_ends)
UNIT(a_routee_that_fails_on_the_tellers_thread_leaves_the_depth)
UNIT(so_many_routers_lead_to_each_other_and_not_one_more)
UNIT(routees_of_the_calling_thread_start_without_a_lock)
UNIT(routees_may_tell_their_router_when_they_start)
UNIT_END
