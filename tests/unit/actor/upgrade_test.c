/* upgrade_test.c - new code for living actors, between two of their messages. */
#include <troupe/mailbox.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/system.h"
#include "tests/unit/actor/stage.h"

/* ---- two versions of a behaviour ------------------------------------------------------------- */

typedef struct v1 {
    int64_t sum;
} v1;
typedef struct v2 {
    uint32_t from;
    uint32_t changes;
    int64_t sum;
} v2;

static _Atomic bool let_go;
static _Atomic int fails;      /* code_change: 1 an error, 2 trp_fail(), 3 it hangs */
static _Atomic int changes;    /* calls of it */
static _Atomic int64_t closed; /* by a deferred call, from the old state */

static void
close_deferred(void *arg)
{
    atomic_store(&closed, ((const v1 *)arg)->sum);
}

static trp_err
say(trp_ctx *ctx, const trp_msg *msg)
{
    (void)ctx;
    stage_note("said:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}

static trp_err
polite_v1(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    stage_note("polite1");
    return say(ctx, msg);
}

static trp_err
polite_v2(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    stage_note("polite2:%lld", (long long)((const v2 *)state)->sum);
    return say(ctx, msg);
}

static trp_err
answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)arg;
    (void)reply;
    ((v1 *)state)->sum += 1000;
    stage_note("answered:%d", (int)err);
    return TRP_OK;
}

static trp_ref mute;

static trp_err
receive_v1(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    v1 *s = state;

    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else if (stage_said(msg, "polite")) {
        return trp_become(ctx, polite_v1, 0);
    } else if (stage_said(msg, "stash")) {
        return trp_stash(ctx, msg);
    } else if (stage_said(msg, "ask")) {
        return trp_ask(ctx, mute, &trp_string_type, "?", 1, 60000, answered, NULL);
    } else if (stage_said(msg, "defer")) {
        return trp_defer(ctx, close_deferred, s);
    } else {
        stage_note("v1:%lld", (long long)++s->sum);
    }
    return TRP_OK;
}

static trp_err
receive_v2(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    v2 *s = state;

    if (stage_said(msg, "unstash")) {
        trp_unstash_all(ctx);
    } else {
        stage_note("v2:%lld,%u", (long long)++s->sum, s->from);
    }
    return TRP_OK;
}

static trp_err
change_v2(trp_ctx *ctx, void *state, void *old_state, uint32_t old_version)
{
    v2 *s = state;

    atomic_fetch_add(&changes, 1);
    UNIT_EQUAL(s->sum, 0);
    UNIT_TRUE(trp_state(ctx) == state);
    if (atomic_load(&fails) == 1) {
        UNIT_EQUAL(trp_become(ctx, polite_v2, 0), TRP_OK);
        return TRP_EDATA;
    }
    if (atomic_load(&fails) == 2) {
        trp_fail(ctx, 9, "the cellar is %s", "wet");
    }
    if (atomic_load(&fails) == 3 && ((const v1 *)old_state)->sum == 2) {
        stage_hold("changing", &let_go);
    }
    s->sum = ((const v1 *)old_state)->sum;
    s->from = old_version;
    return TRP_OK;
}

/* As in a shared object: each version has its addresses. */
static struct {
    trp_behaviour clerk, other;
} old_code = { { .size = sizeof(trp_behaviour),
                 .name = "clerk",
                 .version = 1,
                 .state_bytes = sizeof(v1),
                 .receive = receive_v1 },
               { .size = sizeof(trp_behaviour),
                 .name = "other",
                 .version = 1,
                 .state_bytes = sizeof(v1),
                 .receive = receive_v1 } };
static const trp_behaviour clerk_v2 = { .size = sizeof(trp_behaviour),
                                        .name = "clerk",
                                        .version = 2,
                                        .state_bytes = sizeof(v2),
                                        .receive = receive_v2 };
static const trp_behaviour clerk_v1_again = { .size = sizeof(trp_behaviour),
                                              .name = "clerk",
                                              .version = 1,
                                              .state_bytes = sizeof(v1),
                                              .receive = polite_v1 };
static trpi_code code;
static trpi_upgrade_row row;
static const trpi_upgrade upgrade = { &row, 1, &code, 1 };
static trpi_upgraded sum;

static trp_err
mute_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static trp_ref asker;

    (void)state;
    if (stage_said(msg, "speak")) {
        trp_tell_text(ctx, asker, "!");
    } else {
        asker = trp_sender(ctx);
        stage_note("asked");
    }
    return TRP_OK;
}
static const trp_behaviour mute_behaviour = {
    .size = sizeof(trp_behaviour), .name = "mute", .version = 1, .receive = mute_receive
};

static atomic_bool ends_when_it_hangs; /* is_wanted() */

static trp_system *
open_with(const trp_behaviour *newer, trp_code_change_fn change)
{
    code = (trpi_code){ (uintptr_t)&old_code, (uintptr_t)(&old_code + 1) };
    row = (trpi_upgrade_row){ .change = { newer, change } };
    atomic_store(&fails, 0);
    atomic_store(&changes, 0);
    atomic_store(&let_go, false);
    atomic_store(&closed, 0);
    atomic_store(&ends_when_it_hangs, false);
    return stage_open();
}

static void
kept(void *arg, const char *path, const char *why)
{
    (void)arg;
    stage_note("[%s: %s]", path, why);
}

/* Until the change of an actor hangs, where that is to end it. */
static bool
is_wanted(void *arg)
{
    (void)arg;
    return !atomic_load(&ends_when_it_hangs) || !stage_has("changing");
}

static trp_err
run(trp_system *system, uint32_t timeout_ms)
{
    sum = (trpi_upgraded){ 77, 77 };
    return trpi_upgrade_run(system, &upgrade,
                            trpi_world_mono_ns(trpi_system_world(system)) +
                                (uint64_t)timeout_ms * 1000000u,
                            kept, is_wanted, NULL, &sum);
}

/* ---- a change -------------------------------------------------------------------------------- */

static void
an_actor_changes_between_two_messages(void)
{
    char why[512] = "";
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");
    trp_ref b = stage_spawn(system, &mute_behaviour, "b"); /* is of another plugin */

    stage_tell(system, a, "x");
    stage_tell(system, b, "x");
    UNIT_WAIT(stage_has("v1:1") && stage_has("asked"), 60000);
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_OK);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    UNIT_EQUAL(sum.kept, 0);
    UNIT_EQUAL(atomic_load(&changes), 1);
    stage_clear(&stage_events);
    stage_tell(system, a, "x");
    STAGE_EXPECT("v2:2,1"); /* the ref, and the sum */
    stage_close(system);
}

/* Messages that wait in the mailbox are handled by the newer code, those of the stash, too. */
static void
mailbox_and_stash_are_kept(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    stage_tell(system, a, "stash");
    stage_tell(system, a, "x");
    STAGE_EXPECT("v1:1");
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    stage_tell(system, a, "x");
    stage_tell(system, a, "unstash");
    STAGE_EXPECT("v1:1 v2:2,1 v2:3,1");
    stage_close(system);
}

/* upgrade-W3: the deadline counts and the actor is named; it changes when its code_change returns
 * at last. */
static void
a_code_change_that_hangs_is_named_at_the_deadline(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");
    trp_ref b = stage_spawn(system, &old_code.clerk, "b");

    stage_tell(system, a, "x");
    stage_tell(system, b, "x");
    UNIT_WAIT(stage_count("v1:1") == 2, 60000);
    stage_tell(system, a, "x");
    UNIT_WAIT(stage_has("v1:2"), 60000);
    atomic_store(&fails, 3);
    stage_clear(&stage_events);
    UNIT_EQUAL(run(system, 2000), TRP_OK);
    UNIT_TRUE(stage_has("changing"));
    UNIT_TRUE(stage_has("[/user/a: its code_change has not returned in time"));
    UNIT_EQUAL(sum.changed + sum.kept, 2); /* b has changed, if a worker had time for it */
    stage_tell(system, a, "x");            /* waits */
    atomic_store(&let_go, true);
    UNIT_WAIT(stage_has("v2:3,1"), 60000);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.kept, 0);
    stage_tell(system, b, "x");
    UNIT_WAIT(stage_has("v2:2,1"), 60000);
    stage_close(system);
}

/* It need not wait for its deadline, which is an hour away, and lists what it has not changed. */
static void
an_upgrade_that_is_no_longer_wanted_ends_as_at_its_deadline(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");
    trp_ref b = stage_spawn(system, &old_code.clerk, "b");

    stage_tell(system, a, "x");
    stage_tell(system, a, "x");
    stage_tell(system, b, "hold");
    UNIT_WAIT(stage_has("v1:2") && stage_has("held"), 60000);
    atomic_store(&fails, 3);
    atomic_store(&ends_when_it_hangs, true);
    UNIT_EQUAL(run(system, 3600000), TRP_OK);
    UNIT_TRUE(stage_has("[/user/a: its code_change has not returned in time"));
    UNIT_TRUE(stage_has("[/user/b: its turn has not ended in time"));
    UNIT_EQUAL(sum.kept, 2);
    atomic_store(&let_go, true);
    stage_close(system);
}

/* Let it go when the order has come: while it is in its turn. */
static void *
let_go_later(void *arg)
{
    const trpi_cell *cell = arg;

    UNIT_WAIT(atomic_load(&cell->attention) != 0, 60000);
    atomic_store(&let_go, true);
    return NULL;
}

static void
an_actor_in_a_turn_changes_when_the_turn_ends(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");
    pthread_t thread;

    stage_tell(system, a, "hold");
    UNIT_WAIT(stage_has("held"), 60000);
    stage_tell(system, a, "x");
    stage_tell(system, a, "x");
    UNIT_EQUAL(pthread_create(&thread, NULL, let_go_later, trpi_cells_find(system->cells, a.slot)),
               0);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    STAGE_EXPECT("held v2:1,1 v2:2,1");
    stage_close(system);
}

/* upgrade-W3: the order that it did not come to is void. */
static void
a_turn_that_does_not_end_in_time_keeps_the_old_code(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    stage_tell(system, a, "hold");
    UNIT_WAIT(stage_has("held"), 60000);
    stage_tell(system, a, "x");
    UNIT_EQUAL(run(system, 40), TRP_OK);
    UNIT_EQUAL(sum.changed, 0);
    UNIT_EQUAL(sum.kept, 1);
    atomic_store(&let_go, true);
    STAGE_EXPECT("held [/user/a: its turn has not ended in time] v1:1");
    UNIT_EQUAL(atomic_load(&changes), 0);
    stage_close(system);
}

static void
functions_of_become_are_dropped(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    stage_tell(system, a, "polite");
    stage_tell(system, a, "x");
    STAGE_EXPECT("polite1 said:x");
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    stage_clear(&stage_events);
    stage_tell(system, a, "x");
    STAGE_EXPECT("v2:1,1");
    stage_close(system);
}

/* trp_defer() may have been given an address in the state. */
static void
the_old_state_outlives_deferred_calls(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    stage_tell(system, a, "defer");
    stage_tell(system, a, "x");
    STAGE_EXPECT("v1:1");
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    trp_system_stop_actor(system, a);
    UNIT_WAIT(atomic_load(&closed) == 1, 60000);
    stage_close(system);
}

static void
the_same_layout_keeps_its_state(void)
{
    char why[512] = "";
    trp_system *system = open_with(&clerk_v1_again, NULL);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    mute = stage_spawn(system, &mute_behaviour, "mute");
    stage_tell(system, a, "ask"); /* its continuation can run: it knows this state */
    UNIT_WAIT(stage_has("asked"), 60000);
    row.change.change = change_v2;
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_OK);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    UNIT_EQUAL(atomic_load(&changes), 0); /* code_change is not called */
    stage_tell(system, a, "x");
    UNIT_WAIT(stage_has("polite1 said:x"), 60000);
    stage_close(system);
}

/* ---- no change ------------------------------------------------------------------------------- */

/* upgrade-W1 */
static void
a_change_that_fails_changes_nothing(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    stage_tell(system, a, "x");
    stage_tell(system, a, "stash");
    stage_tell(system, a, "polite");
    stage_tell(system, a, "x");
    STAGE_EXPECT("v1:1 polite1 said:x");
    stage_clear(&stage_events);
    atomic_store(&fails, 1);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 0);
    UNIT_EQUAL(sum.kept, 1);
    UNIT_EQUAL(atomic_load(&changes), 1); /* it is not asked again */
    UNIT_TRUE(stage_has("[/user/a: code_change from version 1 to 2 failed: "));
    stage_clear(&stage_events);
    stage_tell(system, a, "y");
    STAGE_EXPECT("polite1 said:y");
    atomic_store(&fails, 2);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_TRUE(stage_has("[/user/a: code_change from version 1 to 2 failed: the cellar is wet]"));
    atomic_store(&fails, 0); /* the next attempt */
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    stage_clear(&stage_events);
    stage_tell(system, a, "x");
    stage_tell(system, a, "unstash");
    STAGE_EXPECT("v2:2,1 v2:3,1");
    stage_close(system);
}

/* An actor that could not change gets the newer code with a fresh state. */
static void
a_restart_takes_the_newer_code(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    stage_tell(system, a, "x");
    STAGE_EXPECT("v1:1");
    atomic_store(&fails, 1);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.kept, 1);
    trpi_system_restart_actor(system, a);
    stage_tell(system, a, "x");
    UNIT_WAIT(stage_has("v2:1,0"), 60000);
    stage_close(system);
}

/* upgrade-W2 */
static void
an_actor_that_waits_for_an_answer_changes_behind_it(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");

    mute = stage_spawn(system, &mute_behaviour, "mute");
    stage_tell(system, a, "ask");
    UNIT_WAIT(stage_has("asked"), 60000);
    for (uint32_t ms = 30;
         !stage_has("[/user/a: it waits for the answers to 1 asks]") && ms < 60000;
         ms *= 4) { /* on a busy machine it has not even looked when the first time limit ends */
        UNIT_EQUAL(run(system, ms), TRP_OK);
        UNIT_EQUAL(sum.kept, 1);
    }
    UNIT_TRUE(stage_has("[/user/a: it waits for the answers to 1 asks]"));
    stage_tell(system, mute, "speak");
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    stage_clear(&stage_events);
    stage_tell(system, a, "x");
    STAGE_EXPECT("v2:1001,1"); /* the continuation had the old state */
    stage_close(system);
}

static void
what_the_newer_version_lacks_is_refused_or_listed(void)
{
    char why[512] = "";
    trp_behaviour larger = old_code.clerk;
    trp_system *system = open_with(&clerk_v2, NULL);
    trp_ref a = stage_spawn(system, &old_code.clerk, "a");
    trp_ref b = stage_spawn(system, &old_code.other, "b");

    stage_tell(system, a, "x");
    stage_tell(system, b, "x");
    STAGE_EXPECT("v1:1 v1:1");
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_EUNSUPPORTED);
    UNIT_TRUE(strstr(why, "behaviour clerk: version 1 with a state of 8 bytes cannot become "
                          "version 2 with 16 bytes") != NULL);
    larger.state_bytes++; /* of the same version */
    row.change.behaviour = &larger;
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_EUNSUPPORTED);
    larger.state_bytes--;
    larger.version++;
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_EUNSUPPORTED);
    larger.version--;
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_OK);
    larger.mailbox_requirement = TRP_MAILBOX_BOUNDED;
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_EUNSUPPORTED);
    UNIT_TRUE(strstr(why, "needs another mailbox") != NULL);
    row = (trpi_upgrade_row){ .change = { &clerk_v2, change_v2 } };
    stage_clear(&stage_events);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 1);
    STAGE_EXPECT("[/user/b: the new file has no behaviour other]");
    stage_close(system);
}

/* ---- many, and later ones -------------------------------------------------------------------- */

/* versions-V2: whoever remembers an older version starts the newest one. */
static void
actors_that_start_later_have_the_newest_code(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);

    UNIT_TRUE(trpi_behaviour_newest(system, &old_code.clerk) == &old_code.clerk);
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.changed, 0);
    UNIT_TRUE(trpi_behaviour_newest(system, &old_code.clerk) == &clerk_v2);
    UNIT_TRUE(trpi_behaviour_newest(system, &old_code.other) == &old_code.other);
    UNIT_TRUE(trpi_behaviour_newest(system, &mute_behaviour) == &mute_behaviour);
    stage_tell(system, stage_spawn(system, &old_code.clerk, "a"), "x");
    STAGE_EXPECT("v2:1,0");
    row.change.behaviour = &clerk_v1_again; /* a third version */
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_TRUE(trpi_behaviour_newest(system, &old_code.clerk) == &clerk_v1_again);
    stage_close(system);
}

static void
many_actors_change_under_load(void)
{
    enum { ACTORS = 500 };
    static trp_ref refs[ACTORS];
    char why[512] = "";
    trp_system *system = open_with(&clerk_v2, change_v2);

    for (int i = 0; i < ACTORS; i++) {
        refs[i] = stage_spawn(system, &old_code.clerk, NULL);
        stage_tell(system, refs[i], "x");
    }
    UNIT_WAIT(stage_count("v1:1") == ACTORS, 60000);
    UNIT_EQUAL(trpi_upgrade_check(system, &upgrade, why, sizeof why), TRP_OK);
    for (int i = 0; i < ACTORS; i += 2) {
        trp_system_stop_actor(system, refs[i]); /* ends before, between or behind */
    }
    UNIT_EQUAL(run(system, 60000), TRP_OK);
    UNIT_EQUAL(sum.kept, 0);
    UNIT_TRUE(sum.changed >= ACTORS / 2 && sum.changed <= ACTORS);
    stage_clear(&stage_events);
    for (int i = 1; i < ACTORS; i += 2) {
        stage_tell(system, refs[i], "x");
    }
    UNIT_WAIT(stage_count("v2:2,1") == ACTORS / 2, 60000);
    stage_close(system);
}

/* TRPI_UPGRADES_MAX, and one more */
static void
a_system_has_a_limit_of_upgrades(void)
{
    trp_system *system = open_with(&clerk_v2, change_v2);

    for (uint32_t i = 0; i < TRPI_UPGRADES_MAX; i++) {
        UNIT_EQUAL(trpi_upgrades_count(system), i); /* for who must know it before */
        UNIT_EQUAL(run(system, 60000), TRP_OK);
    }
    UNIT_EQUAL(trpi_upgrades_count(system), TRPI_UPGRADES_MAX);
    UNIT_EQUAL(run(system, 60000), TRP_ELIMIT);
    UNIT_EQUAL(trpi_upgrades_count(system), TRPI_UPGRADES_MAX);
    stage_close(system);
}

UNIT_BEGIN("upgrade")
UNIT(an_actor_changes_between_two_messages)
UNIT(mailbox_and_stash_are_kept)
UNIT(a_code_change_that_hangs_is_named_at_the_deadline)
UNIT(an_upgrade_that_is_no_longer_wanted_ends_as_at_its_deadline)
UNIT(an_actor_in_a_turn_changes_when_the_turn_ends)
UNIT(a_turn_that_does_not_end_in_time_keeps_the_old_code)
UNIT(functions_of_become_are_dropped)
UNIT(the_old_state_outlives_deferred_calls)
UNIT(the_same_layout_keeps_its_state)
UNIT(a_change_that_fails_changes_nothing)
UNIT(a_restart_takes_the_newer_code)
UNIT(an_actor_that_waits_for_an_answer_changes_behind_it)
UNIT(what_the_newer_version_lacks_is_refused_or_listed)
UNIT(actors_that_start_later_have_the_newest_code)
UNIT(many_actors_change_under_load)
UNIT(a_system_has_a_limit_of_upgrades)
UNIT_END
