/* path_test.c - references to paths and back; obituaries; selections by name and by wildcard. */
#include "tests/unit/actor/stage.h"

#include "actor/life/life.h"

static const trp_behaviour folder;

static trp_err
folder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[256], path[300];

    (void)state;
    if (!trp_msg_is(msg, &trp_string_type)) {
        return TRP_OK;
    }
    snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
             (const char *)trp_msg_payload(msg));
    if (strncmp(text, "make ", 5) == 0) {
        stage_child(ctx, &folder, text + 5);
        trp_reply_text(ctx, "ok");
    } else if (strcmp(text, "too deep") == 0) {
        trp_ref kid;

        stage_note("%s", trp_err_name(trp_spawn(ctx, &folder, NULL, &kid)));
    } else if (strcmp(text, "auto") == 0) {
        trp_ref kid = stage_child(ctx, &folder, NULL);

        trp_reply_text(ctx, trp_path(trp_ctx_system(ctx), kid, path, sizeof path));
    } else if (strncmp(text, "select ", 7) == 0) {
        trp_err err = trp_select_tell(ctx, text + 7, &trp_string_type, "hit", 3);

        if (err != TRP_OK) {
            stage_note("%s", trp_err_name(err));
        }
    } else if (strncmp(text, "child ", 6) == 0) {
        stage_note("%s", trp_ref_is_none(trp_child(ctx, text + 6)) ? "no" : "yes");
    } else if (strcmp(text, "stop") == 0) {
        trp_stop(ctx, trp_self(ctx));
    } else if (strcmp(text, "hit") == 0) {
        stage_note("%s", trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
    }
    return TRP_OK;
}
static const trp_behaviour folder = {
    .size = sizeof(trp_behaviour), .name = "folder", .version = 1, .receive = folder_receive
};

static char answer[512];

static void
make(trp_system *system, trp_ref parent, const char *name)
{
    char text[300];

    snprintf(text, sizeof text, "make %s", name);
    UNIT_EQUAL(stage_ask(system, parent, text, answer, sizeof answer), TRP_OK);
}

static trp_ref
at(trp_system *system, const char *path)
{
    trp_ref ref = TRP_REF_NONE;

    UNIT_EQUAL(trp_system_resolve(system, path, 60000, &ref), TRP_OK);
    return ref;
}

/* /user/a/{w1,w2/x,other}, /user/b */
static trp_system *
open_tree(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &folder, "a");

    stage_spawn(system, &folder, "b");
    make(system, a, "w1");
    make(system, a, "w2");
    make(system, a, "other");
    make(system, at(system, "/user/a/w2"), "x");
    return system;
}

static void
select_from(trp_system *system, const char *from, const char *selection)
{
    char text[300];

    snprintf(text, sizeof text, "select %s", selection);
    stage_clear(&stage_events);
    stage_tell(system, at(system, from), text);
}

/* SYS-12, SYS-13, SYS-22, A4J-05 */
static void
a_ref_has_a_path_while_it_lives(void)
{
    trp_system *system = open_tree();
    char path[256];
    trp_ref kid;

    UNIT_TEXT(trp_path(system, at(system, "/user/a/w2/x"), path, sizeof path), "/user/a/w2/x");
    UNIT_TEXT(trp_path(system, at(system, "/"), path, sizeof path), "/");
    UNIT_EQUAL(stage_ask(system, at(system, "/user/a"), "auto", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(strncmp(answer, "/user/a/$", 9), 0);
    kid = at(system, answer);
    UNIT_TEXT(trp_path(system, kid, path, sizeof path), answer);
    UNIT_EQUAL(trp_system_resolve(system, "/user/b/$b", 60000, &kid),
               TRP_ENOENT); /* of another node, or unknown */
    UNIT_TEXT(trp_path(system, (trp_ref)TRP_REF_NONE, path, sizeof path), "");
    UNIT_TEXT(trp_path(system, at(system, "/user/a/w2/x"), path, 7), "/user/"); /* cut */
    stage_close(system);
}

/* Obituaries */
static void
a_ref_has_a_path_for_a_while_after_its_end(void)
{
    trp_system *system = open_tree();
    trp_ref a = at(system, "/user/a"), x = at(system, "/user/a/w2/x");
    char path[256];

    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_TEXT(trp_path(system, x, path, sizeof path), "/user/a/w2/x");
    UNIT_TEXT(trp_path(system, a, path, sizeof path), "/user/a");
    /* TRP_REF_NONE has no obituary, though most places of the ring were never written */
    UNIT_EQUAL(trpi_path_local(system, (trp_ref)TRP_REF_NONE, path, sizeof path), strlen("/#0"));
    UNIT_TRUE(strcmp(path, "/#0") == 0);
    stage_close(system);
}

/* The ring holds TRPI_OBITUARIES: the first is known when that many died, and not after one
 * more. */
static void
obituaries_are_bounded(void)
{
    trp_system *system = stage_open();
    trp_ref first = stage_spawn(system, &folder, "first"), ref = TRP_REF_NONE;
    trp_system_stats stats = { .size = sizeof stats };
    char path[256];

    UNIT_EQUAL(trp_system_graceful_stop(system, first, 60000), TRP_OK);
    for (uint32_t i = 1; i < TRPI_OBITUARIES; i++) {
        UNIT_EQUAL(trp_system_spawn(system, &folder, NULL, &ref), TRP_OK);
        trp_system_stop_actor(system, ref);
    }
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.stopped == TRPI_OBITUARIES), 10000);
    UNIT_TEXT(trp_path(system, first, path, sizeof path), "/user/first");
    UNIT_EQUAL(trp_system_spawn(system, &folder, NULL, &ref), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, ref, 60000), TRP_OK);
    UNIT_EQUAL(strncmp(trp_path(system, first, path, sizeof path), "/#", 2), 0);
    stage_close(system);
}

/* SYS-13: remote */
static void
a_remote_ref_has_the_path_that_came_with_it(void)
{
    trp_system *system = stage_open();
    trpi_node_id id;
    uint32_t node;
    char path[256];

    memset(&id, 0, sizeof id);
    UNIT_EQUAL(trpi_address_parse("troupe.tcp://far@10.0.0.1:2552", &id.address, NULL, NULL),
               TRP_OK);
    id.uid = 7;
    UNIT_EQUAL(trpi_node_intern(system, &id, &node), TRP_OK);
    UNIT_TEXT(trp_path(system, (trp_ref){ node, 3, 1, 0 }, path, sizeof path),
              "troupe.tcp://far@10.0.0.1:2552/#4294967299");
    trpi_path_remember(system, (trp_ref){ node, 3, 1, 0 }, "/user/x");
    UNIT_TEXT(trp_path(system, (trp_ref){ node, 3, 1, 0 }, path, sizeof path),
              "troupe.tcp://far@10.0.0.1:2552/user/x");
    for (uint32_t i = 0; i < 3 * TRPI_REMOTE_PATHS; i++) { /* bounded: new ones displace old ones */
        trpi_path_remember(system, (trp_ref){ node, i + 10, 1, 0 }, "/user/y");
    }
    UNIT_TEXT(
        trp_path(system, (trp_ref){ node, 3 * TRPI_REMOTE_PATHS + 9, 1, 0 }, path, sizeof path),
        "troupe.tcp://far@10.0.0.1:2552/user/y");
    stage_close(system);
}

/* SYS-24 */
static void
a_selection_follows_names_and_dots(void)
{
    trp_system *system = open_tree();

    select_from(system, "/user/b", "/user/a/w1");
    STAGE_EXPECT("/user/a/w1");
    select_from(system, "/user/b", "../a/w2/x");
    STAGE_EXPECT("/user/a/w2/x");
    select_from(system, "/user/a", "w2/x/../../w1");
    STAGE_EXPECT("/user/a/w1");
    select_from(system, "/user/a", "troupe://stage/user/b");
    STAGE_EXPECT("/user/b");
    UNIT_EQUAL(trp_system_select_tell(system, "/user/b", &trp_string_type, "hit", 3), TRP_OK);
    STAGE_EXPECT("/user/b /user/b");
    stage_close(system);
}

/* SYS-24: zero or more; "../..*" includes the sender itself */
static void
a_selection_matches_with_wildcards(void)
{
    trp_system *system = open_tree();

    select_from(system, "/user/b", "/user/a/w*");
    UNIT_WAIT(stage_has("/user/a/w1") && stage_has("/user/a/w2"), 5000);
    UNIT_FALSE(stage_has("other"));
    select_from(system, "/user/a", "w?");
    UNIT_WAIT(stage_has("/user/a/w1") && stage_has("/user/a/w2"), 5000);
    select_from(system, "/user/b", "../*");
    UNIT_WAIT(stage_has("/user/a") && stage_has("/user/b"), 5000);
    select_from(system, "/user/b", "/user/*/*/x");
    UNIT_WAIT(stage_has("/user/a/w2/x"), 5000);
    select_from(system, "/user/b", "/us*/a/*");
    UNIT_WAIT(stage_has("w1") && stage_has("w2") && stage_has("other"), 5000);
    stage_close(system);
}

/* SYS-24, SYS-19: looked up at delivery; a miss is a dead letter */
static void
a_selection_that_names_nobody_is_a_dead_letter(void)
{
    trp_system *system = open_tree();
    trp_system_stats stats = { .size = sizeof stats };

    select_from(system, "/user/b", "/user/none");
    UNIT_WAIT(
        (trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_NO_SUCH_ACTOR] == 1),
        5000);
    UNIT_WAIT(stage_book_has(&stage_lines, "to /user/none: no such actor"), 5000);
    select_from(system, "/user/b", "/user/a/z*");
    UNIT_WAIT(
        (trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_NO_SUCH_ACTOR] == 2),
        5000);
    stage_close(system);
}

static void
a_selection_that_does_not_parse_is_refused(void)
{
    static const char *const bad[] = { "/user//a", "a b", "/user/%", "/a/*/..",
                                       "akka.tcp://x@y:1/user" };
    trp_system *system = open_tree();

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        select_from(system, "/user/b", bad[i]);
        STAGE_EXPECT("TRP_EINVAL");
    }
    STAGE_LOGGED("\"/user//a\" is no selection: wrong at byte 6");
    select_from(system, "/user/b", "troupe.tcp://far@127.0.0.1:1/user");
    STAGE_EXPECT("TRP_ESTATE"); /* no remoting */
    stage_close(system);
}

/* ---- Identify -------------------------------------------------------------------------------- */

static trp_err
finder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_identify question = { 42 };
    char text[256];

    (void)state;
    if (trp_msg_is(msg, &trp_actor_identity_type)) {
        const trp_actor_identity *identity = trp_msg_payload(msg);

        if (!trp_ref_is_none(identity->ref) && stage_has("watch them")) {
            UNIT_EQUAL(trp_watch(ctx, identity->ref), TRP_OK);
        }
        stage_note("%llu:%s", (unsigned long long)identity->id,
                   trp_ref_is_none(identity->ref)
                       ? "none"
                       : trp_path(trp_ctx_system(ctx), identity->ref, text, sizeof text));
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);

        stage_note("T:%s", trp_path(trp_ctx_system(ctx), what->ref, text, sizeof text));
    } else if (trp_msg_is(msg, &trp_string_type)) {
        snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
                 (const char *)trp_msg_payload(msg));
        UNIT_EQUAL(trp_select_tell(ctx, text, &trp_identify_type, &question, sizeof question),
                   TRP_OK);
    }
    return TRP_OK;
}
static const trp_behaviour finder = {
    .size = sizeof(trp_behaviour), .name = "finder", .version = 1, .receive = finder_receive
};

/* SYS-25, SYS-9, SYS-5, MSG-17, MSC-04: all actors answer, the guardians too; a concrete path
 * without an actor is answered with none */
static void
every_actor_answers_identify(void)
{
    static const char *const guardians[] = { "/",     "/user",  "/system", "/deadLetters",
                                             "/temp", "/remote" };
    trp_system *system = open_tree();
    trp_ref f = stage_spawn(system, &finder, "f");
    char script[64];

    for (size_t i = 0; i < sizeof guardians / sizeof guardians[0]; i++) {
        stage_clear(&stage_events);
        stage_tell(system, f, guardians[i]);
        snprintf(script, sizeof script, "42:%s", guardians[i]);
        STAGE_EXPECT(script);
    }
    stage_clear(&stage_events);
    stage_tell(system, f, "/user/none/x");
    STAGE_EXPECT("42:none");
    stage_clear(&stage_events);
    stage_tell(system, f, "/user/a/w*");
    UNIT_WAIT(stage_has("42:/user/a/w1") && stage_has("42:/user/a/w2"), 5000);
    stage_tell(system, f, "/user/a/z*"); /* a wildcard that matches no actor is not answered */
    stage_tell(system, f, "/user/b");
    UNIT_WAIT(stage_has("42:/user/b"), 5000);
    UNIT_FALSE(stage_has("none"));
    stage_close(system);
}

/* SYS-27 */
static void
actors_found_by_a_wildcard_are_watched_by_their_refs(void)
{
    trp_system *system = open_tree();
    trp_ref f = stage_spawn(system, &finder, "f");

    stage_note("watch them");
    stage_tell(system, f, "/user/a/w*");
    UNIT_WAIT(stage_has("42:/user/a/w1") && stage_has("42:/user/a/w2"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, at(system, "/user/a/w1"), 60000), TRP_OK);
    UNIT_WAIT(stage_has("T:/user/a/w1"), 5000);
    UNIT_FALSE(stage_has("T:/user/a/w2"));
    stage_close(system);
}

/* SYS-25: a dead ref answers with none */
static void
identify_of_a_dead_ref_is_answered_with_none(void)
{
    trp_system *system = open_tree();
    trp_ref a = at(system, "/user/a");
    trp_identify question = { 5 };
    trp_msg *reply = NULL;

    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_EQUAL(
        trp_system_ask(system, a, &trp_identify_type, &question, sizeof question, 60000, &reply),
        TRP_OK);
    UNIT_TRUE(trp_ref_is_none(((const trp_actor_identity *)trp_msg_payload(reply))->ref));
    trp_msg_free(reply);
    stage_close(system);
}

/* SYS-18: the name of an actor that has ended is not found while it is still taken */
static void
children_are_found_by_name(void)
{
    trp_system *system = open_tree();

    stage_tell(system, at(system, "/user/a"), "child w1");
    stage_tell(system, at(system, "/user/a"), "child x");
    STAGE_EXPECT("yes no");
    stage_close(system);
}

/* TRP_PATH_DEPTH_MAX: at it and one past it */
static void
paths_have_a_depth_limit(void)
{
    trp_system *system = stage_open();
    trp_ref deep = stage_spawn(system, &folder, "d");
    char path[TRP_PATH_BYTES_MAX + 1] = "/user/d";
    trpi_selection_path parsed;

    for (int depth = 3; depth <= TRP_PATH_DEPTH_MAX; depth++) {
        make(system, deep, "d");
        strcat(path, "/d");
        deep = at(system, path);
    }
    {
        trp_ctx *ctx = trpi_enter(system);

        UNIT_EQUAL(trpi_cells_find(ctx->cells, deep.slot)->depth, TRP_PATH_DEPTH_MAX);
        trpi_leave(ctx);
    }
    stage_tell(system, deep, "too deep");
    STAGE_EXPECT("TRP_ELIMIT");
    UNIT_EQUAL(trpi_selection_parse(path, &parsed, NULL), TRP_OK);
    strcat(path, "/d");
    UNIT_EQUAL(trpi_selection_parse(path, &parsed, NULL), TRP_EINVAL);
    stage_close(system);
}

UNIT_BEGIN("path")
UNIT(a_ref_has_a_path_while_it_lives)
UNIT(a_ref_has_a_path_for_a_while_after_its_end)
UNIT(obituaries_are_bounded)
UNIT(a_remote_ref_has_the_path_that_came_with_it)
UNIT(a_selection_follows_names_and_dots)
UNIT(a_selection_matches_with_wildcards)
UNIT(a_selection_that_names_nobody_is_a_dead_letter)
UNIT(a_selection_that_does_not_parse_is_refused)
UNIT(every_actor_answers_identify)
UNIT(actors_found_by_a_wildcard_are_watched_by_their_refs)
UNIT(identify_of_a_dead_ref_is_answered_with_none)
UNIT(children_are_found_by_name)
UNIT(paths_have_a_depth_limit)
UNIT_END
