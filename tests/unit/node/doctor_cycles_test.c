/* doctor_cycles_test.c - actors that wait for one another's answers, on one node and over two and
 * three: the doctor of each names them all, and none when one of them answers. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "actor/actor.h"
#include "tests/unit/node/doctor_ask.h"

enum { LINKS = 3 };

static trp_ref next_of[LINKS]; /* that each one asks; none: none. Written before the questions */

typedef struct link_state {
    uint32_t place;
    bool waits, answers; /* answers: without asking */
    trp_ref asker;       /* none: the test */
} link_state;

static trp_err
link_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    link_state *s = state;
    (void)arg, (void)err, (void)reply;
    s->waits = false;
    if (!trp_ref_is_none(s->asker)) {
        trp_tell_text(ctx, s->asker, "done");
    }
    trp_unstash_all(ctx);
    return TRP_OK;
}

static trp_err
nothing(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx, (void)state, (void)arg, (void)err, (void)reply;
    return TRP_OK;
}

static bool
said(const trp_msg *msg, const char *text)
{
    return trp_msg_bytes(msg) == strlen(text) &&
           memcmp(trp_msg_payload(msg), text, strlen(text)) == 0;
}

/* To answer it asks the next one, and stashes other questions until then: the usual mistake. */
static trp_err
link_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    link_state *s = state;
    if (said(msg, "answer")) {
        s->answers = true;
        trp_unstash_all(ctx);
    } else if (said(msg, "answer no more")) {
        s->answers = false;
    } else if (said(msg, "many")) { /* asks at a time, each only once */
        trp_err err = TRP_OK;
        for (uint32_t i = 0; err == TRP_OK && i < TRPI_DOCTOR_ASKS_MAX; i++) {
            err = trp_ask(ctx, next_of[0], &trp_string_type, "none", 4, 600000, nothing, NULL);
        }
        return err;
    } else if (said(msg, "one more")) {
        return trp_ask(ctx, next_of[0], &trp_string_type, "none", 4, 600000, nothing, NULL);
    } else if (said(msg, "none")) {
        return TRP_OK;
    } else if (s->answers) {
        trp_reply_text(ctx, "done");
    } else if (s->waits || trp_ref_is_none(next_of[s->place])) {
        return trp_stash(ctx, msg);
    } else {
        s->waits = true;
        s->asker = trp_sender(ctx);
        return trp_ask(ctx, next_of[s->place], &trp_string_type, "question", 8, 600000,
                       link_answered, NULL);
    }
    return TRP_OK;
}

static trp_err
link_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    ((link_state *)state)->place = (uint32_t)(*(const char *)trp_msg_payload(args) - '0');
    return TRP_OK;
}
static const trp_behaviour chain_link = { .size = sizeof(trp_behaviour),
                                          .name = "link",
                                          .version = 1,
                                          .state_bytes = sizeof(link_state),
                                          .pre_start = link_start,
                                          .receive = link_receive };

static trp_node *
up_with(const char *seed)
{
    static int number;
    char path[128], seeds[512];
    const char *extra[] = { "cluster.control-socket=on", path, seeds, NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    snprintf(path, sizeof path, "control.socket=/tmp/troupe-cycles-%d-%d.sock", ++number,
             (int)getpid());
    snprintf(seeds, sizeof seeds, "cluster.seed-nodes=%s", seed);
    UNIT_EQUAL(node_open(extra, &node, &error), TRP_OK);
    UNIT_REQUIRE(node != NULL);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

/* Start actor `place` as /user/link-PLACE. */
static trp_ref
link_spawn(trp_node *node, int place)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char name[16], text[16];
    trp_ref ref = TRP_REF_NONE;
    snprintf(name, sizeof name, "link-%d", place);
    snprintf(text, sizeof text, "%d", place);
    options.name = name;
    options.args_type = &trp_string_type;
    options.args = text;
    options.args_bytes = 1;
    UNIT_EQUAL(trp_system_spawn(trp_node_system(node), &chain_link, &options, &ref), TRP_OK);
    return ref;
}

static void
tell(trp_node *node, trp_ref to, const char *text)
{
    trp_system_tell(trp_node_system(node), to, &trp_string_type, text, strlen(text));
}

/* How many asks of an actor wait? */
static uint32_t
waits_of(trp_node *node, trp_ref asker)
{
    static trpi_waiting_ask list[TRPI_DOCTOR_ASKS_MAX + 2];
    uint32_t count =
        trpi_system_waiting_asks(trp_node_system(node), list, TRPI_DOCTOR_ASKS_MAX + 2);
    uint32_t its = 0;
    for (uint32_t i = 0; i < count; i++) {
        its += trp_ref_equal(list[i].asker, asker) ? 1u : 0u;
    }
    return its;
}

static trp_ref
resolve(trp_node *at, const trp_node *of, const char *name)
{
    char path[512];
    trp_ref ref = TRP_REF_NONE;
    snprintf(path, sizeof path, "%s/user/%s", trp_node_address(of), name);
    UNIT_WAIT(trp_system_resolve(trp_node_system(at), path, 5000, &ref) == TRP_OK, 60000);
    return ref;
}

/* Examine until a cycle is named, and return the evidence. */
static char *
named(const trp_node *node)
{
    for (uint64_t until_ms = unit_now_ms() + 60000;;) {
        char *text = examine(node, "ask-cycles");
        if (strncmp(text, "warn: ", 6) == 0 || unit_now_ms() > until_ms) {
            return text;
        }
        free(text);
    }
}

/* Is the order in a cycle this one, wherever it begins? */
static bool
waits_for(const char *text, const char *from_node, const char *from, const char *to_node,
          const char *to)
{
    char name[600];
    snprintf(name, sizeof name, "%s/user/%s has waited ", from_node, from);
    const char *link = strstr(text, name);
    snprintf(name, sizeof name, "%s/user/%s, which", from_node, from); /* as the second of them */
    link = link != NULL ? link : strstr(text, name);
    snprintf(name, sizeof name, " s for %s/user/%s", to_node, to);
    const char *seconds = link != NULL ? strstr(link, " s for ") : NULL;
    return seconds != NULL && strncmp(seconds, name, strlen(name)) == 0;
}

/* ---- one node -------------------------------------------------------------------------------- */

static void
actors_that_wait_for_one_another_are_named_until_one_answers(void)
{
    trp_node *node = up_with("self");
    trp_ref links[LINKS];
    for (int i = 0; i < LINKS; i++) {
        links[i] = link_spawn(node, i);
    }
    for (int i = 0; i < LINKS; i++) {
        next_of[i] = links[(i + 1) % LINKS];
    }
    tell(node, links[0], "question");
    UNIT_WAIT(waits_of(node, links[LINKS - 1]) == 1, 60000);
    char *text = named(node);
    UNIT_TRUE(waits_for(text, "", "link-0", "", "link-1"));
    UNIT_TRUE(waits_for(text, "", "link-1", "", "link-2"));
    UNIT_TRUE(waits_for(text, "", "link-2", "", "link-0"));
    UNIT_TRUE(strstr(text, "troupe.tcp") == NULL); /* all of this node */
    free(text);
    tell(node, links[0], "answer");
    UNIT_WAIT(says(node, "ask-cycles", "ok", "no actors wait"), 60000);
    trp_node_close(node);
}

/* An ask of an actor that nobody waits for is in no cycle, also when it leads to one. */
static void
an_actor_that_waits_for_itself_is_named_alone(void)
{
    trp_node *node = up_with("self");
    trp_ref links[2] = { link_spawn(node, 0), link_spawn(node, 1) };
    next_of[0] = links[1];
    next_of[1] = links[1];
    tell(node, links[0], "question");
    UNIT_WAIT(waits_of(node, links[1]) == 1, 60000);
    char *text = named(node);
    UNIT_TRUE(strstr(text, "/user/link-1 has waited ") != NULL);
    UNIT_TRUE(strstr(text, " s for itself") != NULL && strstr(text, "link-0") == NULL);
    free(text);
    trp_node_close(node);
}

static void
asks_that_end_between_the_two_looks_are_not_taken(void)
{
    trp_node *node = up_with("self");
    trp_ref links[2] = { link_spawn(node, 0), link_spawn(node, 1) };
    trpi_doctor_asks asks = { NULL, 0, 0 };
    bool cut = false;
    next_of[0] = links[1];
    next_of[1] = links[0];
    tell(node, links[0], "question");
    UNIT_WAIT(waits_of(node, links[0]) == 1 && waits_of(node, links[1]) == 1, 60000);
    trpi_doctor_waits_end(trpi_doctor_waits_begin(node), node, &asks, &cut);
    UNIT_EQUAL(asks.count, 2); /* they wait on */
    trpi_doctor_asks_fini(&asks);

    struct trpi_doctor_waits *begun = trpi_doctor_waits_begin(node);
    tell(node, links[0], "answer");
    UNIT_WAIT(waits_of(node, links[0]) == 0 && waits_of(node, links[1]) == 0, 60000);
    tell(node, links[0], "answer no more");
    tell(node, links[0], "question"); /* the same actors, other asks */
    UNIT_WAIT(waits_of(node, links[0]) == 1 && waits_of(node, links[1]) == 1, 60000);
    trpi_doctor_waits_end(begun, node, &asks, &cut);
    UNIT_EQUAL(asks.count, 0);
    UNIT_FALSE(cut);
    trpi_doctor_asks_fini(&asks);
    trp_node_close(node);
}

static void
as_many_asks_are_looked_at_as_the_limit_says(void)
{
    trp_node *node = up_with("self");
    trp_ref asker = link_spawn(node, 1);
    trpi_doctor_asks asks = { NULL, 0, 0 };
    bool cut = false;
    next_of[0] = link_spawn(node, 0);
    tell(node, asker, "many");
    UNIT_WAIT(waits_of(node, asker) == TRPI_DOCTOR_ASKS_MAX, 60000);
    trpi_doctor_waits_end(trpi_doctor_waits_begin(node), node, &asks, &cut);
    UNIT_EQUAL(asks.count, TRPI_DOCTOR_ASKS_MAX);
    UNIT_FALSE(cut);
    trpi_doctor_asks_fini(&asks);
    tell(node, asker, "one more");
    UNIT_WAIT(waits_of(node, asker) == TRPI_DOCTOR_ASKS_MAX + 1, 60000);
    trpi_doctor_waits_end(trpi_doctor_waits_begin(node), node, &asks, &cut);
    UNIT_EQUAL(asks.count, TRPI_DOCTOR_ASKS_MAX);
    UNIT_TRUE(cut);
    trpi_doctor_asks_fini(&asks);
    UNIT_TRUE(says(node, "ask-cycles", "ok", "more asks wait than were looked at"));
    trp_node_close(node);
}

static trp_err
passer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, next_of[LINKS - 1], msg);
    return TRP_OK;
}
static const trp_behaviour passer = {
    .size = sizeof(trp_behaviour), .name = "passer", .version = 1, .receive = passer_receive
};

/* The asker waits for the passer, as far as is known: a router, a proxy, a region pass on too. */
static void
an_ask_that_is_passed_on_is_not_followed(void)
{
    trp_node *node = up_with("self");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref links[2] = { link_spawn(node, 0), link_spawn(node, 1) };
    trpi_doctor_asks asks = { NULL, 0, 0 };
    char text[400];
    bool cut = false;
    UNIT_EQUAL(trp_system_spawn(trp_node_system(node), &passer, &options, &next_of[0]), TRP_OK);
    next_of[1] = links[0];
    next_of[LINKS - 1] = links[1]; /* behind the passer */
    tell(node, links[0], "question");
    UNIT_WAIT(waits_of(node, links[0]) == 1 && waits_of(node, links[1]) == 1, 60000);
    trpi_doctor_waits_end(trpi_doctor_waits_begin(node), node, &asks, &cut);
    UNIT_EQUAL(asks.count, 2);
    UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, trp_node_address(node), text, sizeof text), 0);
    trp_node_close(node);
}

/* ---- several members ------------------------------------------------------------------------- */

/* Make a ring of actors 0 to count - 1, each on its node, and wait until all ask. */
static void
ring_make(trp_node *const *nodes, trp_ref *links, int count)
{
    char name[16];
    for (int i = 0; i < count; i++) {
        links[i] = link_spawn(nodes[i], i);
    }
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "link-%d", (i + 1) % count);
        next_of[i] = resolve(nodes[i], nodes[(i + 1) % count], name);
    }
    tell(nodes[0], links[0], "question");
    for (int i = 0; i < count; i++) {
        UNIT_WAIT(waits_of(nodes[i], links[i]) == 1, 60000);
    }
}

typedef struct examination {
    const trp_node *node;
    pthread_t thread;
    char *text;
} examination;

static void *
examination_main(void *arg)
{
    examination *e = arg;
    e->text = named(e->node);
    return NULL;
}

/* Each member names all of the ring, also one that has no part in it. They examine at one time,
 * since that takes a second. */
static void
ring_is_named_by_each(trp_node *const *nodes, int count)
{
    examination all[LINKS];
    char from[16], to[16];
    for (int n = 0; n < LINKS; n++) {
        all[n] = (examination){ .node = nodes[n] };
        UNIT_REQUIRE(pthread_create(&all[n].thread, NULL, examination_main, &all[n]) == 0);
    }
    for (int n = 0; n < LINKS; n++) {
        UNIT_EQUAL(pthread_join(all[n].thread, NULL), 0);
        printf("    %s\n", all[n].text);
        for (int i = 0; i < count; i++) {
            int next = (i + 1) % count;
            snprintf(from, sizeof from, "link-%d", i);
            snprintf(to, sizeof to, "link-%d", next);
            UNIT_TRUE(waits_for(all[n].text, trp_node_address(nodes[i]), from,
                                trp_node_address(nodes[next]), to));
        }
        free(all[n].text);
    }
}

static void
ring_end(trp_node *const *nodes, const trp_ref *links, int count)
{
    tell(nodes[0], links[0], "answer"); /* it has the question of the last one */
    for (int i = 0; i < count; i++) {
        UNIT_WAIT(waits_of(nodes[i], links[i]) == 0, 60000);
        UNIT_EQUAL(trp_system_graceful_stop(trp_node_system(nodes[i]), links[i], 60000), TRP_OK);
    }
    UNIT_TRUE(says(nodes[0], "ask-cycles", "ok", "no actors wait"));
}

static void
a_cycle_over_members_is_named_by_each(void)
{
    trp_node *one = up_with("self");
    trp_node *nodes[LINKS] = { one, up_with(trp_node_address(one)),
                               up_with(trp_node_address(one)) };
    trp_ref links[LINKS];
    for (int count = 2; count <= LINKS; count++) {
        ring_make(nodes, links, count);
        ring_is_named_by_each(nodes, count);
        ring_end(nodes, links, count);
    }
    /* a chain over members, whose last actor does not answer, is none */
    for (int i = 0; i < LINKS; i++) {
        links[i] = link_spawn(nodes[i % 2], i);
    }
    next_of[0] = resolve(nodes[0], nodes[1], "link-1");
    next_of[1] = resolve(nodes[1], nodes[0], "link-2");
    next_of[2] = (trp_ref)TRP_REF_NONE;
    tell(one, links[0], "question");
    UNIT_WAIT(waits_of(one, links[0]) == 1 && waits_of(nodes[1], links[1]) == 1, 60000);
    UNIT_TRUE(says(one, "ask-cycles", "ok", "no actors wait"));
    for (int i = LINKS; i > 0; i--) {
        trp_node_close(nodes[i - 1]);
    }
}

/* ---- what members tell ----------------------------------------------------------------------- */

#define SELF "troupe.tcp://demo@10.0.0.1:2552"
#define OTHER "troupe.tcp://demo@10.0.0.2:2552"

/* Take rows, and return how many count. */
static size_t
told(const char *reply_text, uint64_t since_ms, bool *ret_cut)
{
    cJSON *reply = cJSON_Parse(reply_text);
    trpi_doctor_asks asks = { NULL, 0, 0 };
    UNIT_REQUIRE(reply != NULL);
    *ret_cut = false;
    trpi_doctor_asks_told(reply, OTHER, since_ms, &asks, ret_cut);
    size_t count = asks.count;
    trpi_doctor_asks_fini(&asks);
    cJSON_Delete(reply);
    return count;
}

#define ROW(from, to, waited) "{\"from\":" from ",\"to\":" to ",\"waitedMs\":" waited "}"

static void
what_a_member_tells_is_checked(void)
{
    static const char from[] = "\"" OTHER "/user/a#4294967297@7\"";
    static const char *const broken[] = {
        "{}", /* an older member */
        "{\"asks\":null}",
        "{\"asks\":\"x\"}",
        "{\"asks\":[1,null,\"x\",[],{}]}",
        "{\"asks\":{\"from\":1}}",
        "{\"asks\":[" ROW("1", "2", "3") "]}",
        "{\"asks\":[" ROW("\"\"", "\"\"", "\"\"") "]}",
        /* an actor of another node, or of one whose address begins alike */
        "{\"asks\":[" ROW("\"" SELF "/user/a#4294967297@7\"", "\"" SELF "/#4294967298@7\"",
                          "\"9000\"") "]}",
        "{\"asks\":[" ROW("\"" OTHER "1/user/a#4294967297@7\"", "\"" SELF "/#4294967298@7\"",
                          "\"9000\"") "]}",
        /* no incarnation; none of the node; no number; what no path may have */
        "{\"asks\":[" ROW("\"" OTHER "/user/a\"", "\"" SELF "/#4294967298@7\"", "\"9000\"") "]}",
        "{\"asks\":[" ROW("\"" OTHER "/user/a#4294967297\"", "\"" SELF "/#4294967298@7\"",
                          "\"9000\"") "]}",
        "{\"asks\":[" ROW("\"" OTHER "/user/a#4294967297@7\"", "\"/user/b#4294967298@7\"",
                          "\"9000\"") "]}",
        "{\"asks\":[" ROW("\"" OTHER "/user/a#4294967297@7\"", "\"" SELF "/#4294967298@x\"",
                          "\"9000\"") "]}",
        "{\"asks\":[" ROW("\"" OTHER "/user/a\\u001b[2J#4294967297@7\"",
                          "\"" SELF "/#4294967298@7\"", "\"9000\"") "]}",
        /* since when is not known, or not long enough */
        "{\"asks\":[" ROW("\"" OTHER "/user/a#4294967297@7\"", "\"" SELF "/#4294967298@7\"",
                          "\"-1\"") "]}",
        "{\"asks\":[" ROW("\"" OTHER "/user/a#4294967297@7\"", "\"" SELF "/#4294967298@7\"",
                          "\"999\"") "]}",
    };
    char text[8192];
    bool cut;
    snprintf(
        text, sizeof text,
        "{\"asks\":[" ROW("%s", "\"" SELF "/#4294967298@7\"", "\"1000\"") "],\"asksCut\":true}",
        from);
    UNIT_EQUAL(told(text, 1000, &cut), 1); /* so it is taken */
    UNIT_TRUE(cut);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        size_t count = told(broken[i], 1000, &cut);
        if (count != 0) {
            printf("    %s\n", broken[i]);
        }
        UNIT_EQUAL(count, 0);
        UNIT_FALSE(cut);
    }
    memset(text, 'x', sizeof text);
    snprintf(text, sizeof text, "{\"asks\":[{\"from\":\"" OTHER "/user/");
    memset(text + strlen(text), 'x', 5000);
    snprintf(text + 5060, sizeof text - 5060,
             "#4294967297@7\",\"to\":\"" SELF "/#4294967298@7\",\"waitedMs\":\"9000\"}]}");
    UNIT_EQUAL(told(text, 1000, &cut), 0);
}

/* Tell `count` asks and take them again; ask i waits for 10000 + i ms. */
static size_t
tell_and_take(uint32_t count, bool *ret_told_cut, bool *ret_taken_cut, uint64_t *ret_shortest_ms)
{
    trpi_doctor_asks asks = { NULL, 0, 0 };
    cJSON *reply = cJSON_CreateObject();
    *ret_shortest_ms = UINT64_MAX;
    *ret_taken_cut = false;
    for (uint32_t i = 0; i < count; i++) {
        char name[96], key[96];
        snprintf(name, sizeof name, OTHER "/user/%u", i);
        snprintf(key, sizeof key, OTHER "/#%" PRIu64 "@7", UINT64_C(4294967297) + i);
        UNIT_REQUIRE(trpi_doctor_asks_add(&asks, name, key, SELF "/#4294967298@8", 10000 + i));
    }
    UNIT_TRUE(trpi_doctor_asks_tell(OTHER, &asks, false, reply));
    UNIT_TRUE(asks.list == NULL);
    *ret_told_cut = cJSON_IsTrue(cJSON_GetObjectItem(reply, "asksCut"));
    trpi_doctor_asks_told(reply, OTHER, 0, &asks, ret_taken_cut);
    for (size_t i = 0; i < asks.count; i++) {
        if (asks.list[i].waited_ms < *ret_shortest_ms) {
            *ret_shortest_ms = asks.list[i].waited_ms;
        }
    }
    size_t taken = asks.count;
    trpi_doctor_asks_fini(&asks);
    cJSON_Delete(reply);
    return taken;
}

static void
a_member_tells_those_that_waited_longest(void)
{
    bool told_cut, taken_cut;
    uint64_t shortest_ms;
    const uint32_t max = TRPI_DOCTOR_ASKS_TOLD_MAX;
    UNIT_EQUAL(tell_and_take(max, &told_cut, &taken_cut, &shortest_ms), max);
    UNIT_FALSE(told_cut || taken_cut);
    UNIT_EQUAL(shortest_ms, 10000);
    UNIT_EQUAL(tell_and_take(max + 1, &told_cut, &taken_cut, &shortest_ms), max);
    UNIT_TRUE(told_cut && taken_cut);
    UNIT_EQUAL(shortest_ms, 10001);
}

/* One that tells more than members do is not believed beyond that. */
static void
no_more_is_taken_than_a_member_tells(void)
{
    for (uint32_t more = 0; more < 2; more++) {
        trpi_doctor_asks asks = { NULL, 0, 0 };
        bool cut = false;
        cJSON *reply = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(reply, "asks");
        for (uint32_t i = 0; i < TRPI_DOCTOR_ASKS_TOLD_MAX + more; i++) {
            cJSON *row = cJSON_CreateObject();
            UNIT_TRUE(trpi_json_add_text(row, "from", OTHER "/user/a#4294967297@7") &&
                      trpi_json_add_text(row, "to", SELF "/#4294967298@8") &&
                      trpi_json_add_u64_string(row, "waitedMs", 9000));
            UNIT_TRUE(cJSON_AddItemToArray(list, row));
        }
        trpi_doctor_asks_told(reply, OTHER, 0, &asks, &cut);
        UNIT_EQUAL(asks.count, TRPI_DOCTOR_ASKS_TOLD_MAX);
        UNIT_EQUAL(cut, more == 1);
        trpi_doctor_asks_fini(&asks);
        cJSON_Delete(reply);
    }
}

UNIT_BEGIN("doctor_cycles")
UNIT(actors_that_wait_for_one_another_are_named_until_one_answers)
UNIT(an_actor_that_waits_for_itself_is_named_alone)
UNIT(asks_that_end_between_the_two_looks_are_not_taken)
UNIT(as_many_asks_are_looked_at_as_the_limit_says)
UNIT(an_ask_that_is_passed_on_is_not_followed)
UNIT(a_cycle_over_members_is_named_by_each)
UNIT(what_a_member_tells_is_checked)
UNIT(a_member_tells_those_that_waited_longest)
UNIT(no_more_is_taken_than_a_member_tells)
UNIT_END
