/* deadletters_test.c - messages that reached no actor, as `troupe deadletters` shows them. */
#include <pthread.h>

#include "tests/unit/node/inside.h"

static trp_err
actor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour actor = {
    .size = sizeof(trp_behaviour), .name = "counter", .version = 1, .receive = actor_receive
};

static trp_ref
spawn(trp_node *node, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = name;
    UNIT_EQUAL(trp_system_spawn(trp_node_system(node), &actor, &options, &ref), TRP_OK);
    return ref;
}

static trp_node *
node_with_socket(void)
{
    char path[128];
    socket_setting(path, sizeof path);
    const char *extra[] = { "cluster.seed-nodes=self", "cluster.control-socket=on", path,
                            "log.dead-letters=off", NULL };
    return up(extra);
}

static void
lose(trp_node *node, const char *path)
{
    UNIT_EQUAL(
        trp_system_select_tell(trp_node_system(node), path, &trp_string_type, "secret word", 11),
        TRP_OK);
}

static cJSON *
ask(const trp_node *node, const char *request)
{
    cJSON *reply = control_ask(trp_node_control_path(node), request);
    UNIT_REQUIRE(reply != NULL);
    return reply;
}

static int
letters(const cJSON *reply)
{
    return cJSON_GetArraySize(cJSON_GetObjectItem(reply, "deadLetters"));
}

/* The reply once it has at least so many. */
static cJSON *
ask_until(const trp_node *node, int count)
{
    cJSON *reply = NULL;
    UNIT_WAIT((cJSON_Delete(reply), reply = ask(node, "{\"cmd\":\"deadletters\"}"),
               letters(reply) >= count),
              60000);
    return reply;
}

/* LIFE-15 */
static void
a_dead_letter_is_shown_with_the_nearest_path_and_without_payload(void)
{
    trp_node *node = node_with_socket();
    trp_ref from = spawn(node, "client");
    trp_ref gone = spawn(node, "brief");
    (void)spawn(node, "counter");
    cJSON *reply = ask(node, "{\"cmd\":\"deadletters\"}");
    UNIT_EQUAL(letters(reply), 0);
    cJSON_Delete(reply);
    lose(node, "/user/countr");
    lose(node, "/user/countr/below");
    lose(node, "/user/xyzzyxyzzy");
    reply = ask_until(node, 3);
    static const struct {
        const char *recipient, *nearest;
    } rows[] = { { "/user/countr", "/user/counter" },
                 { "/user/countr/below", "/user/counter" },
                 { "/user/xyzzyxyzzy", NULL } };
    for (int i = 0; i < 3; i++) {
        const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(reply, "deadLetters"), i);
        const char *nearest = trpi_json_get_text(row, "nearest");
        UNIT_TEXT(trpi_json_get_text(row, "recipient"), rows[i].recipient);
        UNIT_TEXT(nearest != NULL ? nearest : "-", rows[i].nearest != NULL ? rows[i].nearest : "-");
        UNIT_TEXT(trpi_json_get_text(row, "reason"), "no-such-actor");
        UNIT_TEXT(trpi_json_get_text(row, "type"), "troupe.string");
        UNIT_TRUE(cJSON_IsNull(cJSON_GetObjectItem(row, "sender")));
        UNIT_EQUAL(cJSON_GetObjectItem(row, "bytes")->valueint, 11);
    }
    char *text = trpi_json_print(reply);
    UNIT_TRUE(strstr(text, "secret") == NULL);
    cJSON_free(text);
    cJSON_Delete(reply);
    trp_system_stop_actor(trp_node_system(node), gone);
    reply = NULL;
    UNIT_WAIT(
        (trp_system_tell_as(trp_node_system(node), gone, from, &trp_string_type, "x", 1),
         cJSON_Delete(reply), reply = ask(node, "{\"cmd\":\"deadletters\",\"count\":1}"),
         strcmp(trpi_json_get_text(cJSON_GetObjectItem(reply, "deadLetters")->child, "reason"),
                "actor-has-ended") == 0),
        60000);
    UNIT_TEXT(trpi_json_get_text(cJSON_GetObjectItem(reply, "deadLetters")->child, "sender"),
              "/user/client");
    cJSON_Delete(reply);
    trp_node_close(node);
}

typedef struct follower {
    char path[256]; /* the node's own ends with it */
    char request[128];
    cJSON *reply;
} follower;

static void *
follower_main(void *arg)
{
    follower *f = arg;
    f->reply = control_ask(f->path, f->request);
    return NULL;
}

static void
who_follows_gets_the_next_one_and_no_other(void)
{
    trp_node *node = node_with_socket();
    follower f = { .reply = NULL };
    pthread_t thread;
    uint64_t next = 0;
    lose(node, "/user/first");
    cJSON *reply = ask_until(node, 1);
    UNIT_TRUE(trpi_json_get_u64(reply, "next", &next) && next == 1);
    cJSON_Delete(reply);
    reply = ask(node, "{\"cmd\":\"deadletters\",\"after\":\"1\",\"follow\":true,\"timeoutMs\":50}");
    UNIT_EQUAL(letters(reply), 0); /* nothing came in time, which is no error */
    UNIT_TRUE(trpi_json_get_u64(reply, "next", &next) && next == 1);
    cJSON_Delete(reply);
    snprintf(f.path, sizeof f.path, "%s", trp_node_control_path(node));
    snprintf(f.request, sizeof f.request,
             "{\"cmd\":\"deadletters\",\"after\":\"1\",\"follow\":true,\"timeoutMs\":600000}");
    UNIT_EQUAL(pthread_create(&thread, NULL, follower_main, &f), 0);
    lose(node, "/user/second");
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    UNIT_REQUIRE(f.reply != NULL);
    UNIT_EQUAL(letters(f.reply), 1);
    UNIT_TEXT(trpi_json_get_text(cJSON_GetObjectItem(f.reply, "deadLetters")->child, "recipient"),
              "/user/second");
    UNIT_EQUAL(cJSON_GetObjectItem(f.reply, "missed")->valueint, 0);
    cJSON_Delete(f.reply);
    trp_node_close(node);
}

static void
a_node_that_ends_does_not_wait_for_who_follows(void)
{
    trp_node *node = node_with_socket();
    follower f = { .reply = NULL };
    pthread_t thread;
    snprintf(f.path, sizeof f.path, "%s", trp_node_control_path(node));
    snprintf(f.request, sizeof f.request,
             "{\"cmd\":\"deadletters\",\"follow\":true,\"timeoutMs\":600000}");
    UNIT_EQUAL(pthread_create(&thread, NULL, follower_main, &f), 0);
    cJSON *reply = ask(node, "{\"cmd\":\"version\"}");
    cJSON_Delete(reply);
    trp_node_close(node);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    if (f.reply != NULL) { /* else the node was gone before it could ask */
        UNIT_EQUAL(cJSON_GetObjectItem(f.reply, "exit")->valueint, TRPI_CTL_EXIT_UNREACHABLE);
        cJSON_Delete(f.reply);
    }
}

/* TRPI_DEAD_RING_BYTES: the oldest make room, and a reader learns how many it missed */
static void
a_storm_keeps_the_last_ones_and_counts_all(void)
{
    enum { STORM = 3000 };
    trp_node *node = node_with_socket();
    trp_ref gone = spawn(node, "brief");
    cJSON *reply = NULL;
    int total = 0;
    trp_system_stop_actor(trp_node_system(node), gone);
    for (int i = 0; i < STORM; i++) {
        trp_system_tell(trp_node_system(node), gone, &trp_string_type, "x", 1);
    }
    UNIT_WAIT((cJSON_Delete(reply),
               reply = ask(node, "{\"cmd\":\"deadletters\",\"after\":1,\"timeoutMs\":60000}"),
               total = cJSON_GetObjectItem(reply, "total")->valueint, total >= STORM),
              60000);
    uint64_t next = 0;
    UNIT_TRUE(trpi_json_get_u64(reply, "next", &next) && next == (uint64_t)total);
    int missed = cJSON_GetObjectItem(reply, "missed")->valueint;
    UNIT_TRUE(letters(reply) > 100);
    UNIT_TRUE(missed > 100);
    UNIT_EQUAL(missed + letters(reply), total - 1);
    cJSON_Delete(reply);
    trp_node_close(node);
}

UNIT_BEGIN("deadletters")
UNIT(a_dead_letter_is_shown_with_the_nearest_path_and_without_payload)
UNIT(who_follows_gets_the_next_one_and_no_other)
UNIT(a_node_that_ends_does_not_wait_for_who_follows)
UNIT(a_storm_keeps_the_last_ones_and_counts_all)
UNIT_END
