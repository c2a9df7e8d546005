/* alias_test.c - actors under names that are not their paths. */
#include <troupe/alias.h>

#include "tests/unit/actor/stage.h"

static trp_err
host_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const trp_behaviour host = {
        .size = sizeof(trp_behaviour), .name = "host", .version = 1, .receive = host_receive
    };
    char path[256];

    (void)state;
    if (stage_said(msg, "child")) {
        (void)stage_child(ctx, &host, "kid");
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    trp_reply_text(ctx, trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
    return TRP_OK;
}
static const trp_behaviour host = {
    .size = sizeof(trp_behaviour), .name = "host", .version = 1, .receive = host_receive
};

static void
count_alias(void *arg, const char *alias, trp_ref ref)
{
    uint32_t *count = arg;

    (void)ref;
    *count += alias[0] != 0;
}

static char *
ask_path(trp_system *system, const char *path)
{
    static char answer[256];
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask_path(system, path, &trp_string_type, "?", 1, 60000, &reply);

    snprintf(answer, sizeof answer, "%s", trp_err_name(err));
    if (err == TRP_OK) {
        snprintf(answer, sizeof answer, "%.*s", (int)trp_msg_bytes(reply),
                 (const char *)trp_msg_payload(reply));
        trp_msg_free(reply);
    }
    return answer;
}

/* A4J-08: several aliases of one actor; lookups, asks and tells by path, also of its children */
static void
an_alias_is_a_second_way_to_an_actor(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &host, "a"), b = stage_spawn(system, &host, "b"), found;
    trp_ref gone = a;
    uint32_t count = 0;
    char answer[256];

    UNIT_EQUAL(trp_alias_set(system, "printer", a), TRP_OK);
    UNIT_EQUAL(trp_alias_set(system, "printer", a), TRP_OK); /* its own */
    UNIT_EQUAL(trp_alias_set(system, "lp0", a), TRP_OK);
    UNIT_EQUAL(trp_alias_set(system, "printer", b), TRP_EEXIST);
    UNIT_EQUAL(trp_alias_find(system, "printer", &found), TRP_OK);
    UNIT_TRUE(trp_ref_equal(found, a));
    trp_alias_each(system, a, count_alias, &count);
    UNIT_EQUAL(count, 2);

    UNIT_TEXT(ask_path(system, "/alias/lp0"), "/user/a");
    UNIT_EQUAL(stage_ask(system, a, "child", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(ask_path(system, "/alias/lp0/kid"), "/user/a/kid");
    UNIT_TEXT(ask_path(system, "/alias/nobody"), "TRP_ENOENT");
    UNIT_EQUAL(trp_system_resolve(system, "/alias/printer", 60000, &found), TRP_OK);
    UNIT_TRUE(trp_ref_equal(found, a));

    stage_tell(system, a, "fail"); /* a restart keeps it */
    UNIT_TEXT(ask_path(system, "/alias/printer"), "/user/a");
    UNIT_EQUAL(trp_alias_clear(system, "lp0"), TRP_OK);
    UNIT_EQUAL(trp_alias_clear(system, "lp0"), TRP_ENOENT);
    UNIT_EQUAL(trp_alias_find(system, "lp0", &found), TRP_ENOENT);

    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK); /* its end frees the alias */
    UNIT_EQUAL(trp_alias_find(system, "printer", &found), TRP_ENOENT);
    UNIT_EQUAL(trp_alias_set(system, "printer", gone), TRP_ENOENT);
    UNIT_EQUAL(trp_alias_set(system, "printer", b), TRP_OK);
    UNIT_TEXT(ask_path(system, "/alias/printer"), "/user/b");
    stage_close(system);
}

static void
aliases_are_names_and_have_a_limit(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &host, "a"), b = stage_spawn(system, &host, "b");
    char name[32];
    int failed = 0;

    UNIT_EQUAL(trp_alias_set(system, "", a), TRP_EINVAL);
    UNIT_EQUAL(trp_alias_set(system, "a/b", a), TRP_EINVAL);
    UNIT_EQUAL(trp_alias_set(system, NULL, a), TRP_EINVAL);
    UNIT_EQUAL(trp_alias_set(system, "x", (trp_ref)TRP_REF_NONE), TRP_EINVAL);
    for (int i = 0; i < TRP_ALIASES_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        failed += trp_alias_set(system, name, i % 2 == 0 ? a : b) != TRP_OK;
    }
    UNIT_EQUAL(failed, 0);
    UNIT_EQUAL(trp_alias_set(system, "one-more", a), TRP_ELIMIT);
    UNIT_EQUAL(trp_alias_set(system, "n0", a), TRP_OK); /* there already */
    UNIT_EQUAL(trp_system_graceful_stop(system, b, 60000), TRP_OK);
    UNIT_EQUAL(trp_alias_set(system, "one-more", a), TRP_OK); /* the names of the dead are free */
    stage_close(system);
}

static trp_err
called_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref found;

    (void)state;
    (void)msg;
    UNIT_EQUAL(trp_alias_find(trp_ctx_system(ctx), "one", &found), TRP_OK);
    stage_note("called");
    return TRP_OK;
}
static const trp_behaviour called = {
    .size = sizeof(trp_behaviour), .name = "called", .version = 1, .receive = called_receive
};

typedef struct visitor {
    trp_system *system;
    trp_ref asked;
    uint32_t visited, again, cleared, answered;
} visitor;

static void
use_alias(void *arg, const char *alias, trp_ref ref)
{
    visitor *v = arg;
    char answer[256];
    trp_ref found;

    /* a calling-thread actor runs at once, and may look up aliases */
    stage_tell(v->system, ref, alias);
    v->visited++;
    v->again += trp_alias_find(v->system, alias, &found) == TRP_OK;
    v->answered += stage_ask(v->system, v->asked, "?", answer, sizeof answer) == TRP_OK;
    v->cleared += trp_alias_clear(v->system, alias) == TRP_OK;
    v->cleared += trp_alias_set(v->system, alias, v->asked) == TRP_OK;
}

/* A4J-08, TEST-12: the visitor is called without a lock: it may tell actors of the calling thread,
 * wait for another thread's answer, clear the alias and give it to another actor. */
static void
who_visits_aliases_may_use_and_change_them(void)
{
    enum { MANY = 300 }; /* several in a bucket */
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    visitor v = { .system = system, .asked = stage_spawn(system, &host, "asked") };
    uint32_t count = 0;
    char name[16];
    trp_ref ref;

    options.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_system_spawn(system, &called, &options, &ref), TRP_OK);
    UNIT_EQUAL(trp_alias_set(system, "one", ref), TRP_OK);
    for (int i = 1; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        UNIT_EQUAL(trp_alias_set(system, name, ref), TRP_OK);
    }
    trp_alias_each(system, ref, use_alias, &v);
    UNIT_EQUAL(v.visited, MANY);
    UNIT_EQUAL(v.again, MANY);
    UNIT_EQUAL(v.answered, MANY);
    UNIT_EQUAL(v.cleared, 2 * MANY);
    trp_alias_each(system, ref, count_alias, &count);
    UNIT_EQUAL(count, 0);
    trp_alias_each(system, (trp_ref)TRP_REF_NONE, count_alias, &count);
    UNIT_EQUAL(count, MANY);
    UNIT_TRUE(stage_has("called"));
    stage_close(system);
}

UNIT_BEGIN("alias")
UNIT(an_alias_is_a_second_way_to_an_actor)
UNIT(aliases_are_names_and_have_a_limit)
UNIT(who_visits_aliases_may_use_and_change_them)
UNIT_END
