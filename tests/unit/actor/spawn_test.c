/* spawn_test.c - options that a spawn accepts and refuses, and the dispatchers. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/troupe.h>

#define SPAWNED_CALL(F, S) F(S, u32, number)
#define SPAWNED_MESSAGES(M, P) M(P, call, SPAWNED_CALL)
TRP_PROTOCOL(spawned, SPAWNED_MESSAGES)

static trp_system *system_;

static void
start(uint32_t actors_max)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.workers = 2;
    options.actors_max = actors_max;
    options.log_level = TRP_LOG_ERROR;
    UNIT_REQUIRE(trp_system_new("spawn", &options, &system_) == TRP_OK);
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static _Atomic uintptr_t thread_seen[3];
static _Atomic int received;

static trp_err
note_thread(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    atomic_store(&thread_seen[*(const int64_t *)trp_msg_payload(msg) % 3],
                 (uintptr_t)pthread_self());
    atomic_fetch_add(&received, 1);
    return TRP_OK;
}

static const trp_behaviour noter = {
    .size = sizeof(trp_behaviour), .name = "noter", .version = 1, .receive = note_thread
};

static trp_err
spawn_on(const char *dispatcher, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    options.dispatcher = dispatcher;
    return trp_system_spawn(system_, &noter, &options, ret_ref);
}

static void
wrong_behaviours_and_options_are_refused(void)
{
    trp_behaviour wrong = noter;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    start(0);
    UNIT_EQUAL(trp_system_spawn(system_, NULL, NULL, &ref), TRP_EINVAL);
    wrong.receive = NULL;
    UNIT_EQUAL(trp_system_spawn(system_, &wrong, NULL, &ref), TRP_EINVAL);
    wrong = noter;
    wrong.size = 0;
    UNIT_EQUAL(trp_system_spawn(system_, &wrong, NULL, &ref), TRP_EINVAL);
    options.size = 3;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_EINVAL);
    options.size = sizeof options;
    options.args_bytes = 5; /* without a type */
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_EINVAL);
    options.args_type = &trp_i64_type; /* of another size */
    options.args = &options;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_EINVAL);
    UNIT_EQUAL(spawn_on("nowhere", &ref), TRP_ENOENT);
    UNIT_EQUAL(trp_system_spawn(system_, &noter, NULL, NULL), TRP_EINVAL);
    UNIT_TRUE(trp_ref_is_none(ref));
    end();
}

static void
an_option_of_a_newer_caller_must_be_zero(void)
{
    struct {
        trp_spawn_options known;
        uint64_t newer;
    } options = { TRP_SPAWN_OPTIONS_INIT, 0 };
    trp_ref ref;

    start(0);
    options.known.size = sizeof options;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options.known, &ref), TRP_OK);
    options.newer = 1;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options.known, &ref), TRP_EINVAL);
    end();
}

static void
actors_end_at_their_limit(void)
{
    enum { MAX = 20 }; /* the guardians take some */
    trp_ref refs[MAX];
    int made = 0;
    trp_ref ref;

    start(MAX);
    while (made < MAX && trp_system_spawn(system_, &noter, NULL, &refs[made]) == TRP_OK) {
        made++;
    }
    UNIT_TRUE(made > 0 && made < MAX);
    UNIT_EQUAL(trp_system_spawn(system_, &noter, NULL, &ref), TRP_ELIMIT);
    UNIT_EQUAL(trp_system_graceful_stop(system_, refs[0], 60000),
               TRP_ELIMIT); /* its promise is a cell too */
    trp_system_stop_actor(system_, refs[0]);
    UNIT_WAIT(trp_system_spawn(system_, &noter, NULL, &ref) == TRP_OK, 5000);
    UNIT_FALSE(trp_ref_equal(ref, refs[0]));
    end();
}

static void
a_pinned_actor_has_its_own_thread_and_gives_it_back(void)
{
    start(0);
    for (int round = 0; round < 3; round++) {
        trp_ref pinned, other, usual;
        int64_t which = 0;

        atomic_store(&received, 0);
        UNIT_EQUAL(spawn_on("pinned", &pinned), TRP_OK);
        UNIT_EQUAL(spawn_on("pinned", &other), TRP_OK);
        UNIT_EQUAL(spawn_on("default", &usual), TRP_OK);
        trp_system_tell(system_, pinned, &trp_i64_type, &which, sizeof which);
        which = 1;
        trp_system_tell(system_, other, &trp_i64_type, &which, sizeof which);
        which = 2;
        trp_system_tell(system_, usual, &trp_i64_type, &which, sizeof which);
        UNIT_WAIT(atomic_load(&received) == 3, 5000);
        UNIT_TRUE(atomic_load(&thread_seen[0]) != atomic_load(&thread_seen[1]));
        UNIT_TRUE(atomic_load(&thread_seen[0]) != atomic_load(&thread_seen[2]));
        UNIT_EQUAL(trp_system_graceful_stop(system_, pinned, 60000), TRP_OK);
        UNIT_EQUAL(trp_system_graceful_stop(system_, other, 60000), TRP_OK);
    }
    end();
}

static void
actors_of_the_system_dispatcher_share_one_thread(void)
{
    trp_ref one, two;
    int64_t which = 0;

    atomic_store(&received, 0);
    start(0);
    UNIT_EQUAL(spawn_on("system", &one), TRP_OK);
    UNIT_EQUAL(spawn_on("system", &two), TRP_OK);
    trp_system_tell(system_, one, &trp_i64_type, &which, sizeof which);
    which = 1;
    trp_system_tell(system_, two, &trp_i64_type, &which, sizeof which);
    UNIT_WAIT(atomic_load(&received) == 2, 5000);
    UNIT_TRUE(atomic_load(&thread_seen[0]) == atomic_load(&thread_seen[1]));
    end();
}

/* ---- accepted protocols ---------------------------------------------------------------------- */

static const trp_protocol *const accepts[] = { &spawned_protocol, NULL };
static _Atomic int calls, others;

static trp_err
only_calls(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_tag(msg) == spawned_call_tag) {
        atomic_fetch_add(&calls, 1);
    } else {
        atomic_fetch_add(&others, 1);
    }
    return TRP_OK;
}

static const trp_behaviour caller = { .size = sizeof(trp_behaviour),
                                      .name = "caller",
                                      .version = 1,
                                      .receive = only_calls,
                                      .accepts = accepts };

static void
a_behaviour_registers_and_sees_only_what_it_accepts(void)
{
    spawned_call call = { 1 };
    int64_t value = 1;
    trp_ref ref;

    start(0);
    UNIT_EQUAL(trp_system_spawn(system_, &caller, NULL, &ref), TRP_OK);
    UNIT_TRUE(spawned_call_type.number != 0);
    trp_system_tell(system_, ref, &trp_i64_type, &value, sizeof value);
    trp_system_tell(system_, ref, &spawned_call_type, &call, sizeof(call));
    UNIT_WAIT(atomic_load(&calls) == 1, 5000);
    UNIT_EQUAL(atomic_load(&others), 0);
    end();
}

/* ---- reasons in the log ---------------------------------------------------------------------- */

#define BORN_WITH(F, S) F(S, u32, number)
#define BORN_MESSAGES(M, P) M(P, with, BORN_WITH)
TRP_PROTOCOL(born, BORN_MESSAGES)
#define LOST_MESSAGES(M, P) M(P, with, BORN_WITH)
TRP_PROTOCOL(nowhere, LOST_MESSAGES)

static _Atomic uint32_t born_with_number;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[8192];

static void
note_line(void *arg, const trp_log_line *line)
{
    size_t used;

    (void)arg;
    pthread_mutex_lock(&said_lock);
    used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s: %s\n", line->source, line->text);
    pthread_mutex_unlock(&said_lock);
}

static bool
was_said(const char *text)
{
    bool found;

    UNIT_EQUAL(trp_log_flush(system_, 60000), TRP_OK);
    pthread_mutex_lock(&said_lock);
    found = strstr(said, text) != NULL;
    pthread_mutex_unlock(&said_lock);
    return found;
}

static trp_err
born_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    atomic_store(&born_with_number, born_with_as(args)->number);
    return TRP_OK;
}
static const trp_protocol *const born_accepts[] = { &born_protocol, NULL };
static const trp_behaviour born = { .size = sizeof(trp_behaviour),
                                    .name = "born",
                                    .version = 1,
                                    .receive = note_thread,
                                    .pre_start = born_start,
                                    .accepts = born_accepts };

/* The arguments may have a type that the behaviour itself registers, and a fixed type needs no
 * size. A refused actor is named in the log. */
static void
a_spawn_registers_first_and_says_what_it_refuses(void)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    born_with with = { 7 };
    trp_ref ref = { 1, 2, 3, 0 };
    trp_msg *msg = NULL;
    void *payload;

    system_options.log = note_line;
    UNIT_REQUIRE(trp_system_new("spawn", &system_options, &system_) == TRP_OK);
    UNIT_EQUAL(born_with_type.number, 0);
    options.args_type = &born_with_type;
    options.args = &with;
    UNIT_EQUAL(trp_system_spawn(system_, &born, &options, &ref), TRP_OK);
    UNIT_WAIT(atomic_load(&born_with_number) == 7, 5000);
    ref = TRP_REF_NONE; /* an expression, in C++ too */
    UNIT_TRUE(trp_ref_is_none(ref));
    UNIT_EQUAL(trp_msg_new(&born_with_type, 0, &msg, &payload), TRP_OK);
    UNIT_EQUAL(trp_msg_bytes(msg), sizeof(born_with));
    trp_msg_free(msg);

    options.args_type = &nowhere_with_type;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_ENOTYPE);
    UNIT_TRUE(was_said("spawn: cannot start an actor of behaviour noter: the type nowhere.with of "
                       "its arguments is not registered\n"));
    options.args_type = NULL;
    options.args = NULL;
    options.dispatcher = "blcking";
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_ENOENT);
    UNIT_TRUE(was_said("behaviour noter: no dispatcher has the id \"blcking\"\n"));
    options.dispatcher = NULL;
    options.mailbox = "biig";
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_ENOENT);
    UNIT_TRUE(was_said("no mailbox has the id \"biig\"\n"));
    options.mailbox = NULL;
    options.name = "a/b";
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_EINVAL);
    UNIT_TRUE(was_said("\"a/b\" is no name of an actor\n"));
    UNIT_EQUAL(spawn_on(NULL, &ref), TRP_OK);
    trp_system_tell(system_, ref, &nowhere_with_type, &with, 0);
    UNIT_TRUE(was_said("dead letter of type nowhere.with from nobody to "));
    UNIT_TRUE(was_said("its type is not registered (trp_protocol_register, or accepts)"));
    end();
}

UNIT_BEGIN("spawn")
UNIT(wrong_behaviours_and_options_are_refused)
UNIT(a_spawn_registers_first_and_says_what_it_refuses)
UNIT(an_option_of_a_newer_caller_must_be_zero)
UNIT(actors_end_at_their_limit)
UNIT(a_pinned_actor_has_its_own_thread_and_gives_it_back)
UNIT(actors_of_the_system_dispatcher_share_one_thread)
UNIT(a_behaviour_registers_and_sees_only_what_it_accepts)
UNIT_END
