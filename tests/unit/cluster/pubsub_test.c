/* Publish and subscribe on one system: who gets what, acknowledgements, answers, limits. */
#include "tests/unit/cluster/mediators.h"

#include <pthread.h>
#include <stdatomic.h>

static const trp_ref nobody = TRP_REF_NONE;

static trp_system *
system_new(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;
    options.workers = 2;
    UNIT_REQUIRE(trp_system_new("topics", &options, &system) == TRP_OK);
    return system;
}

static void
system_end(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* CONTRIB-15 CONTRIB-16 CONTRIB-17 */
static void
all_subscribers_get_it_with_its_sender_until_they_unsubscribe(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *a = inbox_of(system), *b = inbox_of(system), *from = inbox_of(system);
    subscribe(m, "news", NULL, a, 0);
    subscribe(m, "news", NULL, b, 0);
    subscribe(m, "news", NULL, b, 0); /* again: once */
    publish(m, trp_inbox_ref(from), "news", "one");
    take_text(a, "one", trp_inbox_ref(from));
    take_text(b, "one", trp_inbox_ref(from));
    is_empty(b);
    UNIT_EQUAL(trp_mediator_unsubscribe(m, "news", trp_inbox_ref(a), NULL), TRP_OK);
    take_ack(a, false, "news", TRP_OK);
    UNIT_EQUAL(trp_mediator_unsubscribe(m, "news", trp_inbox_ref(a), NULL), TRP_OK);
    take_ack(a, false, "news", TRP_ENOENT);
    publish(m, nobody, "news", "two");
    take_text(b, "two", nobody);
    is_empty(a);
    trp_inbox_close(a);
    trp_inbox_close(b);
    trp_inbox_close(from);
    system_end(system);
}

static void
an_acknowledgement_goes_to_who_is_named(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *a = inbox_of(system), *asker = inbox_of(system);
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    options.answer_to = trp_inbox_ref(asker);
    options.group = "g";
    options.flags = TRP_SUBSCRIBE_ACK_EVERYWHERE;
    UNIT_EQUAL(trp_mediator_subscribe(m, "a longer name of a topic", trp_inbox_ref(a), &options),
               TRP_OK);
    trp_ref sender;
    trp_msg *msg = take(asker, &trp_subscribe_ack_type, &sender);
    const trp_subscribe_ack *ack = trp_msg_payload(msg);
    UNIT_EQUAL(ack->err, TRP_OK);
    UNIT_EQUAL(ack->everywhere, 1); /* there is no other node */
    UNIT_TRUE(trp_ref_equal(ack->subscriber, trp_inbox_ref(a)));
    const char *text = (const char *)ack + offsetof(trp_subscribe_ack, text);
    UNIT_TEXT(text, "a longer name of a topic");
    UNIT_TEXT(text + ack->topic_bytes + 1, "g");
    trp_msg_free(msg);
    is_empty(a);
    trp_inbox_close(a);
    trp_inbox_close(asker);
    system_end(system);
}

static void
one_of_each_group_gets_it_in_turn(void)
{
    enum { ROUNDS = 12 };
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in[5], *plain = inbox_of(system);
    uint32_t got[5] = { 0 };
    for (int i = 0; i < 5; i++) {
        in[i] = inbox_of(system);
        subscribe(m, "work", i < 3 ? "left" : "right", in[i], 0);
    }
    subscribe(m, "work", NULL, plain, 0);
    for (int round = 0; round < ROUNDS; round++) {
        trp_publish_report report;
        UNIT_EQUAL(publish_counted(m, "work", "do", 0, 0, &report), 3);
        UNIT_EQUAL(report.nodes, 1);
        take_text(plain, "do", nobody);
    }
    for (int i = 0; i < 5; i++) {
        trp_msg *msg;
        while (trp_inbox_receive(in[i], 0, &msg, NULL) == TRP_OK) {
            got[i]++;
            trp_msg_free(msg);
        }
        UNIT_EQUAL(got[i], i < 3 ? ROUNDS / 3 : ROUNDS / 2);
        trp_inbox_close(in[i]);
    }
    trp_inbox_close(plain);
    system_end(system);
}

static void
what_nobody_subscribes_to_is_a_dead_letter(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_publish_report report;
    publish(m, nobody, "void", "hello");
    UNIT_WAIT(dead_letters(system, TRP_DEAD_NO_SUBSCRIBER) == 1, TAKE_MS);
    UNIT_EQUAL(publish_counted(m, "void", "hello", 0, 0, &report), 0);
    UNIT_EQUAL(report.nodes, 0);
    UNIT_EQUAL(report.silent, 0);
    UNIT_EQUAL(dead_letters(system, TRP_DEAD_NO_SUBSCRIBER), 2);
    UNIT_EQUAL(trp_mediator_send(m, nobody, "/user/x", 0, &trp_string_type, "a", 1), TRP_OK);
    UNIT_EQUAL(trp_mediator_send_to_all(m, nobody, "/user/x", 0, &trp_string_type, "a", 1), TRP_OK);
    UNIT_WAIT(dead_letters(system, TRP_DEAD_NO_SUBSCRIBER) == 4, TAKE_MS);
    system_end(system);
}

/* CONTRIB-17 CONTRIB-16 */
static void
who_ends_is_unsubscribed_and_removed(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *a = inbox_of(system), *b = inbox_of(system);
    trp_publish_report report;
    subscribe(m, "x", NULL, a, 0);
    subscribe(m, "y", "g", a, 0);
    subscribe(m, "x", NULL, b, 0);
    UNIT_EQUAL(trp_mediator_put(m, trp_inbox_ref(a)), TRP_OK);
    UNIT_EQUAL(trp_mediator_topics_count(m), 2);
    trp_inbox_close(a);
    UNIT_WAIT(trp_mediator_topics_count(m) == 1, TAKE_MS);
    UNIT_EQUAL(publish_counted(m, "x", "1", 0, 0, &report), 1);
    take_text(b, "1", nobody);
    trp_inbox_close(b);
    UNIT_WAIT(trp_mediator_topics_count(m) == 0, TAKE_MS);
    UNIT_EQUAL(publish_counted(m, "x", "2", 0, 0, &report), 0);
    system_end(system);
}

/* ---- put and send ---------------------------------------------------------------------------- */

static trp_err
forward_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg);
    return TRP_OK;
}

static trp_err
forward_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(trp_ref));
    return TRP_OK;
}

static const trp_behaviour forwarder = { .size = sizeof(trp_behaviour),
                                         .name = "forwarder",
                                         .version = 1,
                                         .state_bytes = sizeof(trp_ref),
                                         .receive = forward_receive,
                                         .pre_start = forward_start };

static trp_ref
forwarder_spawn(trp_system *system, const char *name, trp_ref to)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    spawn.name = name;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &to;
    spawn.args_bytes = sizeof to;
    UNIT_REQUIRE(trp_system_spawn(system, &forwarder, &spawn, &ref) == TRP_OK);
    return ref;
}

/* CONTRIB-13 CONTRIB-14 CONTRIB-16 */
static void
what_was_put_is_reached_by_its_path_until_it_is_removed(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in = inbox_of(system);
    trp_ref ref = forwarder_spawn(system, "service", trp_inbox_ref(in));
    UNIT_EQUAL(trp_mediator_put(m, ref), TRP_OK);
    UNIT_EQUAL(trp_mediator_send(m, trp_inbox_ref(in), "/user/service", TRP_SEND_LOCAL_AFFINITY,
                                 &trp_string_type, "one", 3),
               TRP_OK);
    take_text(in, "one", trp_inbox_ref(in));
    UNIT_EQUAL(trp_mediator_send_to_all(m, nobody, "/user/service", 0, &trp_string_type, "two", 3),
               TRP_OK);
    take_text(in, "two", nobody);
    UNIT_EQUAL(trp_mediator_send_to_all(m, nobody, "/user/service", TRP_SEND_ALL_BUT_SELF,
                                        &trp_string_type, "three", 5),
               TRP_OK);
    UNIT_WAIT(dead_letters(system, TRP_DEAD_NO_SUBSCRIBER) == 1, TAKE_MS);
    UNIT_EQUAL(trp_mediator_remove(m, "/user/service"), TRP_OK);
    UNIT_EQUAL(trp_mediator_send(m, nobody, "/user/service", 0, &trp_string_type, "four", 4),
               TRP_OK);
    UNIT_WAIT(dead_letters(system, TRP_DEAD_NO_SUBSCRIBER) == 2, TAKE_MS);
    is_empty(in);
    trp_inbox_close(in);
    system_end(system);
}

static void
a_new_actor_takes_the_path_of_one_that_ended(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in = inbox_of(system);
    trp_ref ref = forwarder_spawn(system, "service", trp_inbox_ref(in));
    UNIT_EQUAL(trp_mediator_put(m, ref), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, ref, TAKE_MS), TRP_OK);
    UNIT_EQUAL(trp_mediator_put(m, ref), TRP_ENOENT);
    trp_ref again = TRP_REF_NONE;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref to = trp_inbox_ref(in);
    spawn.name = "service";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &to;
    spawn.args_bytes = sizeof to;
    UNIT_WAIT(trp_system_spawn(system, &forwarder, &spawn, &again) == TRP_OK, TAKE_MS);
    UNIT_EQUAL(trp_mediator_put(m, again), TRP_OK);
    UNIT_EQUAL(trp_mediator_send(m, nobody, "/user/service", 0, &trp_string_type, "hi", 2), TRP_OK);
    take_text(in, "hi", nobody);
    trp_inbox_close(in);
    system_end(system);
}

/* ---- nothing is lost in silence -------------------------------------------------------------- */

static _Atomic int gate_open;
static _Atomic uint64_t gate_got, gate_missed;

static trp_err
gate_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_missed *missed = trp_msg_as(msg, &trp_missed_type);
    (void)ctx;
    (void)state;
    while (atomic_load(&gate_open) == 0) {
        unit_pause();
    }
    if (missed != NULL) {
        UNIT_EQUAL(missed->refused, 1);
        UNIT_TEXT(trp_missed_topic(missed), "busy");
        atomic_fetch_add(&gate_missed, missed->count);
    } else if (trp_msg_is(msg, &trp_string_type)) {
        atomic_fetch_add(&gate_got, 1);
    }
    return TRP_OK;
}

/* In a group, or in none. */
static void
check_refused(const char *group)
{
    const uint64_t published = 1500; /* more than a bounded mailbox has room for */
    static const trp_behaviour behaviour = {
        .size = sizeof behaviour, .name = "gate", .version = 1, .receive = gate_receive
    };
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    trp_publish_report report;
    trp_ref ref;
    uint64_t delivered = 0;
    atomic_store(&gate_open, 0);
    atomic_store(&gate_got, 0);
    atomic_store(&gate_missed, 0);
    spawn.mailbox = "bounded";
    UNIT_REQUIRE(trp_system_spawn(system, &behaviour, &spawn, &ref) == TRP_OK);
    options.flags = TRP_SUBSCRIBE_TELLS_MISSED;
    options.group = group;
    UNIT_EQUAL(trp_mediator_subscribe(m, "busy", ref, &options), TRP_OK);
    for (uint64_t i = 0; i < published; i++) {
        delivered += publish_counted(m, "busy", "x", 0, 0, &report);
    }
    UNIT_TRUE(delivered >= 1000 && delivered < published);
    UNIT_EQUAL(dead_letters(system, TRP_DEAD_MAILBOX_FULL), published - delivered);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&gate_got) == delivered, TAKE_MS);
    UNIT_EQUAL(publish_counted(m, "busy", "y", 0, 0, &report), 1);
    UNIT_WAIT(atomic_load(&gate_missed) == published - delivered, TAKE_MS);
    UNIT_WAIT(atomic_load(&gate_got) == delivered + 1, TAKE_MS);
    system_end(system);
}

static void
what_a_full_mailbox_refuses_is_a_dead_letter_and_told_as_missed(void)
{
    check_refused(NULL);
    check_refused("workers");
}

/* mediator-deliver-D3 */
static void
a_large_publication_reaches_all_as_it_was(void)
{
    enum { BYTES = 100000, ALL = 5 };
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in[ALL];
    char *text = malloc(BYTES);
    UNIT_REQUIRE(text != NULL);
    for (uint32_t i = 0; i < BYTES; i++) {
        text[i] = (char)('a' + i % 23);
    }
    for (int i = 0; i < ALL; i++) {
        in[i] = inbox_of(system);
        subscribe(m, "large", NULL, in[i], 0);
    }
    UNIT_EQUAL(trp_mediator_publish(m, nobody, "large", &trp_bytes_type, text, BYTES), TRP_OK);
    for (int i = 0; i < ALL; i++) {
        trp_msg *msg = take(in[i], &trp_bytes_type, NULL);
        UNIT_EQUAL(trp_msg_bytes(msg), BYTES);
        UNIT_EQUAL(memcmp(trp_msg_payload(msg), text, BYTES), 0);
        trp_msg_free(msg);
        trp_inbox_close(in[i]);
    }
    free(text);
    system_end(system);
}

/* ---- answers --------------------------------------------------------------------------------- */

static _Atomic int64_t told;

static trp_err
report_take(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    const trp_publish_report *report =
        err == TRP_OK ? trp_msg_as(reply, &trp_publish_report_type) : NULL;
    (void)ctx;
    (void)state;
    (void)arg;
    atomic_store(&told, report == NULL ? -(int64_t)err : (int64_t)report->delivered);
    return TRP_OK;
}

static trp_err
publisher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_mediator *m = mediator_of(trp_ctx_system(ctx));
    (void)state;
    return trp_mediator_publish_ask(ctx, m, "news", NULL, trp_msg_type(msg), trp_msg_payload(msg),
                                    trp_msg_bytes(msg), report_take, NULL);
}

static void
an_actor_learns_to_how_many_it_was_delivered(void)
{
    static const trp_behaviour behaviour = {
        .size = sizeof behaviour, .name = "publisher", .version = 1, .receive = publisher_receive
    };
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *a = inbox_of(system), *b = inbox_of(system);
    trp_ref publisher;
    UNIT_REQUIRE(trp_system_spawn(system, &behaviour, NULL, &publisher) == TRP_OK);
    subscribe(m, "news", NULL, a, 0);
    subscribe(m, "news", NULL, b, 0);
    atomic_store(&told, -1000);
    trp_system_tell(system, publisher, &trp_string_type, "hi", 2);
    UNIT_WAIT(atomic_load(&told) == 2, TAKE_MS);
    take_text(a, "hi", publisher); /* not the question's */
    take_text(b, "hi", publisher);
    trp_inbox_close(a);
    trp_inbox_close(b);
    system_end(system);
}

static void *
subscribe_later(void *arg)
{
    trp_mediator *m = ((void **)arg)[0];
    trp_inbox *a = ((void **)arg)[1], *b = ((void **)arg)[2];
    subscribe(m, "late", NULL, a, 0);
    subscribe(m, "late", "g", b, 0);
    return NULL;
}

static void
a_publication_waits_for_so_many_subscribers(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *a = inbox_of(system), *b = inbox_of(system);
    trp_publish_report report;
    pthread_t thread;
    void *args[3] = { m, a, b };
    UNIT_REQUIRE(pthread_create(&thread, NULL, subscribe_later, args) == 0);
    UNIT_EQUAL(publish_counted(m, "late", "now", 2, TAKE_MS, &report), 2);
    UNIT_EQUAL(report.late, 0);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    take_text(a, "now", nobody);
    take_text(b, "now", nobody);
    UNIT_EQUAL(publish_counted(m, "late", "less", 3, 20, &report), 2); /* at the deadline */
    UNIT_EQUAL(report.late, 1);
    trp_inbox_close(a);
    trp_inbox_close(b);
    system_end(system);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* CONTRIB-16 CONTRIB-17 */
static void
names_have_any_bytes_up_to_their_limit(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in = inbox_of(system);
    trp_ref ref = trp_inbox_ref(in);
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    char topic[TRP_TOPIC_BYTES_MAX + 2], group[TRP_TOPIC_GROUP_BYTES_MAX + 2];
    memset(topic, 0xfe, sizeof topic);
    memset(group, '/', sizeof group);
    topic[0] = '\n';
    topic[sizeof topic - 1] = '\0';
    group[sizeof group - 1] = '\0';
    UNIT_EQUAL(trp_mediator_subscribe(m, topic, ref, NULL), TRP_ELIMIT);
    UNIT_EQUAL(trp_mediator_publish(m, nobody, topic, &trp_string_type, "a", 1), TRP_ELIMIT);
    topic[sizeof topic - 2] = '\0';
    options.group = group;
    UNIT_EQUAL(trp_mediator_subscribe(m, topic, ref, &options), TRP_ELIMIT);
    group[sizeof group - 2] = '\0';
    UNIT_EQUAL(trp_mediator_subscribe(m, topic, ref, &options), TRP_OK);
    take_ack(in, true, topic, TRP_OK);
    publish(m, nobody, topic, "a");
    take_text(in, "a", nobody);
    UNIT_EQUAL(trp_mediator_subscribe(m, "", ref, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_subscribe(m, NULL, ref, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_subscribe(NULL, "a", ref, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_subscribe(m, "a", nobody, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_subscribe(m, "a", (trp_ref){ 5, 1, 1, 0 }, NULL), TRP_EUNSUPPORTED);
    options.group = "";
    UNIT_EQUAL(trp_mediator_subscribe(m, "a", ref, &options), TRP_EINVAL);
    options.group = NULL;
    options.flags = 4;
    UNIT_EQUAL(trp_mediator_subscribe(m, "a", ref, &options), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_publish(m, nobody, "a", NULL, "a", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_send(m, nobody, "/a", TRP_SEND_ALL_BUT_SELF, &trp_string_type, "a", 1),
               TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_remove(m, ""), TRP_EINVAL);
    trp_inbox_close(in);
    system_end(system);
}

/* CONTRIB-19 CONTRIB-20 */
static void
mediators_of_other_names_know_nothing_of_each_other(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system), *other = NULL, *found = NULL;
    trp_mediator_options options = TRP_MEDIATOR_OPTIONS_INIT;
    trp_inbox *a = inbox_of(system), *b = inbox_of(system);
    char name[TRP_MEDIATOR_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    options.name = name;
    UNIT_EQUAL(trp_mediator_start(system, &options, &other), TRP_EINVAL);
    name[sizeof name - 2] = '\0';
    UNIT_EQUAL(trp_mediator_of(system, name, &found), TRP_ENOENT);
    UNIT_REQUIRE(trp_mediator_start(system, &options, &other) == TRP_OK);
    UNIT_EQUAL(trp_mediator_start(system, &options, NULL), TRP_EEXIST);
    UNIT_EQUAL(trp_mediator_of(system, name, &found), TRP_OK);
    UNIT_TRUE(found == other);
    UNIT_EQUAL(trp_mediator_of(system, "default", &found), TRP_OK);
    UNIT_TRUE(found == m);
    options.name = "a/b";
    UNIT_EQUAL(trp_mediator_start(system, &options, NULL), TRP_EINVAL);
    subscribe(m, "t", NULL, a, 0);
    subscribe(other, "t", NULL, b, 0);
    publish(other, nobody, "t", "x");
    take_text(b, "x", nobody);
    is_empty(a);
    for (uint32_t i = 2; i <= TRP_MEDIATORS_MAX; i++) {
        char numbered[8];
        (void)snprintf(numbered, sizeof numbered, "m%u", i);
        options.name = numbered;
        UNIT_EQUAL(trp_mediator_start(system, &options, NULL),
                   i < TRP_MEDIATORS_MAX ? TRP_OK : TRP_ELIMIT);
    }
    trp_inbox_close(a);
    trp_inbox_close(b);
    system_end(system);
}

static _Atomic uint32_t asks_delivered, asks_refused;

static trp_err
ask_ended(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    const trp_publish_report *report =
        err == TRP_OK ? trp_msg_as(reply, &trp_publish_report_type) : NULL;
    (void)ctx;
    (void)state;
    (void)arg;
    if (report != NULL && report->delivered == 1) {
        atomic_fetch_add(&asks_delivered, 1);
    } else if (err == TRP_ELIMIT) {
        atomic_fetch_add(&asks_refused, 1);
    }
    return TRP_OK;
}

static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_mediator *m = mediator_of(trp_ctx_system(ctx));
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    (void)state;
    options.subscribers_min = 1;
    options.wait_ms = TAKE_MS;
    for (uint32_t i = 0; i <= TRP_MEDIATOR_WAITS_MAX; i++) {
        UNIT_EQUAL(trp_mediator_publish_ask(ctx, m, "soon", &options, trp_msg_type(msg),
                                            trp_msg_payload(msg), trp_msg_bytes(msg), ask_ended,
                                            NULL),
                   TRP_OK);
    }
    return TRP_OK;
}

/* CONTRIB-15: TRP_MEDIATOR_WAITS_MAX; what is above is not published, and its asker is told. */
static void
so_many_publications_wait_and_one_more_is_refused(void)
{
    static const trp_behaviour behaviour = {
        .size = sizeof behaviour, .name = "asker", .version = 1, .receive = asker_receive
    };
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in = large_inbox_of(system, TRP_MEDIATOR_WAITS_MAX + 1);
    trp_ref asker;
    UNIT_REQUIRE(trp_system_spawn(system, &behaviour, NULL, &asker) == TRP_OK);
    trp_system_tell(system, asker, &trp_string_type, "hi", 2);
    UNIT_WAIT(atomic_load(&asks_refused) == 1, TAKE_MS);
    UNIT_EQUAL(atomic_load(&asks_delivered), 0);
    UNIT_EQUAL(dead_letters(system, TRP_DEAD_NO_MEMORY), 1);
    UNIT_EQUAL(trp_mediator_subscribe(m, "soon", trp_inbox_ref(in), NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&asks_delivered) == TRP_MEDIATOR_WAITS_MAX, TAKE_MS);
    take_ack(in, true, "soon", TRP_OK);
    for (uint32_t i = 0; i < TRP_MEDIATOR_WAITS_MAX; i++) {
        take_text(in, "hi", asker);
    }
    is_empty(in);
    trp_inbox_close(in);
    system_end(system);
}

/* CONTRIB-16: TRP_MEDIATOR_ENTRIES_MAX, topics, groups and paths together. */
static void
a_node_has_so_many_topics_and_no_more(void)
{
    enum { AT_ONCE = 500 };
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *in = inbox_of(system);
    trp_publish_report report;
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    uint32_t refused = 0;
    char topic[16];
    options.group = "g";
    for (uint32_t i = 0; i < TRP_MEDIATOR_ENTRIES_MAX; i += AT_ONCE) {
        for (uint32_t j = i; j < i + AT_ONCE; j++) { /* one at a time is slow on a busy machine */
            (void)snprintf(topic, sizeof topic, "t%u", j / 2); /* each with a group */
            refused += trp_mediator_subscribe(m, topic, trp_inbox_ref(in),
                                              j % 2 == 0 ? NULL : &options) != TRP_OK;
        }
        for (uint32_t j = 0; j < AT_ONCE; j++) {
            trp_msg *msg = take(in, &trp_subscribe_ack_type, NULL);
            refused += ((const trp_subscribe_ack *)trp_msg_payload(msg))->err != TRP_OK;
            trp_msg_free(msg);
        }
    }
    UNIT_EQUAL(refused, 0);
    UNIT_EQUAL(trp_mediator_subscribe(m, "more", trp_inbox_ref(in), NULL), TRP_OK);
    take_ack(in, true, "more", TRP_ELIMIT);
    UNIT_EQUAL(publish_counted(m, "more", "x", 0, 0, &report), 0);
    UNIT_EQUAL(trp_mediator_unsubscribe(m, "t7", trp_inbox_ref(in), NULL), TRP_OK);
    take_ack(in, false, "t7", TRP_OK);
    subscribe(m, "more", NULL, in, 0);
    UNIT_EQUAL(publish_counted(m, "more", "x", 0, 0, &report), 1);
    take_text(in, "x", nobody);
    trp_inbox_close(in);
    system_end(system);
}

/* mediator-M4: it can be started again, with nothing of before. */
static void
a_mediator_that_was_stopped_refuses_and_another_one_starts(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system), *again = NULL;
    trp_inbox *in = inbox_of(system);
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    trp_publish_report report;
    trp_ref actor;
    subscribe(m, "t", NULL, in, 0);
    UNIT_REQUIRE(trp_system_resolve(system, "/system/pubsub", TAKE_MS, &actor) == TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, actor, TAKE_MS), TRP_OK);
    UNIT_EQUAL(trp_mediator_publish(m, nobody, "t", &trp_string_type, "a", 1), TRP_ECLOSED);
    UNIT_EQUAL(trp_mediator_subscribe(m, "t", trp_inbox_ref(in), NULL), TRP_ECLOSED);
    UNIT_EQUAL(trp_mediator_put(m, trp_inbox_ref(in)), TRP_ECLOSED);
    UNIT_EQUAL(trp_mediator_remove(m, "/user/a"), TRP_ECLOSED);
    UNIT_EQUAL(trp_mediator_publish_wait(m, "t", &options, &trp_string_type, "a", 1, &report),
               TRP_ECLOSED);
    UNIT_WAIT(trp_mediator_of(system, NULL, &again) == TRP_OK, TAKE_MS); /* its name is free */
    UNIT_TRUE(again != m);
    UNIT_EQUAL(trp_mediator_topics_count(again), 0);
    subscribe(again, "t", NULL, in, 0);
    publish(again, nobody, "t", "b");
    take_text(in, "b", nobody);
    trp_inbox_close(in);
    system_end(system);
}

static void
info_take(void *arg, const trp_topic_info *info)
{
    char *text = arg;
    size_t at = strlen(text);
    (void)snprintf(text + at, 200 - at, "[%s %s %llu/%llu %u]", info->topic,
                   info->group == NULL ? "-" : info->group, (unsigned long long)info->subscribers,
                   (unsigned long long)info->subscribers_here, info->nodes);
}

static void
topics_are_listed_and_counted(void)
{
    trp_system *system = system_new();
    trp_mediator *m = mediator_of(system);
    trp_inbox *a = inbox_of(system), *b = inbox_of(system);
    char text[200] = "";
    UNIT_EQUAL(trp_mediator_topics_count(m), 0);
    subscribe(m, "one", NULL, a, 0);
    subscribe(m, "one", NULL, b, 0);
    subscribe(m, "one", "g", b, 0);
    UNIT_EQUAL(trp_mediator_put(m, trp_inbox_ref(a)), TRP_OK); /* no topic */
    UNIT_EQUAL(trp_mediator_topics_count(m), 1);
    trp_mediator_topics(m, info_take, text);
    UNIT_TRUE(strstr(text, "[one - 2/2 1]") != NULL);
    UNIT_TRUE(strstr(text, "[one g 1/1 1]") != NULL);
    UNIT_EQUAL(strlen(text), 26);
    trp_inbox_close(a);
    trp_inbox_close(b);
    system_end(system);
}

UNIT_BEGIN("pubsub")
UNIT(all_subscribers_get_it_with_its_sender_until_they_unsubscribe)
UNIT(an_acknowledgement_goes_to_who_is_named)
UNIT(one_of_each_group_gets_it_in_turn)
UNIT(what_nobody_subscribes_to_is_a_dead_letter)
UNIT(who_ends_is_unsubscribed_and_removed)
UNIT(what_was_put_is_reached_by_its_path_until_it_is_removed)
UNIT(a_new_actor_takes_the_path_of_one_that_ended)
UNIT(what_a_full_mailbox_refuses_is_a_dead_letter_and_told_as_missed)
UNIT(a_large_publication_reaches_all_as_it_was)
UNIT(an_actor_learns_to_how_many_it_was_delivered)
UNIT(a_publication_waits_for_so_many_subscribers)
UNIT(names_have_any_bytes_up_to_their_limit)
UNIT(mediators_of_other_names_know_nothing_of_each_other)
UNIT(topics_are_listed_and_counted)
UNIT(so_many_publications_wait_and_one_more_is_refused)
UNIT(a_node_has_so_many_topics_and_no_more)
UNIT(a_mediator_that_was_stopped_refuses_and_another_one_starts)
UNIT_END
