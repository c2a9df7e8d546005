/* serialize_test.c - serialize-messages and serialize-creators: what is told at home goes through
 * its serializer, too. Padding shows it: the wire has none, so it comes out as zeros. */
#include <troupe/inbox.h>
#include <troupe/interaction.h>
#include <troupe/mailbox.h>

#include "remote/wire/serializer.h"
#include "tests/unit/remote/pair.h"

#define TRIP_PADDED(F, S) F(S, u32, a) F(S, u64, b) /* 4 bytes between them */
#define TRIP_NAMED(F, S) F(S, ref, who) F(S, ref, far_one) F(S, text32, text)
#define TRIP_HOMELY(F, S) F(S, u32, a)
#define TRIP_BROKEN(F, S) F(S, u32, a)
#define TRIP_SHORT(F, S) F(S, u32, a)
#define TRIP_MESSAGES(M, P)                                                                        \
    M(P, padded, TRIP_PADDED)                                                                      \
    M(P, named, TRIP_NAMED)                                                                        \
    M(P, homely, TRIP_HOMELY) M(P, broken, TRIP_BROKEN) M(P, cropped, TRIP_SHORT)
TRP_PROTOCOL(trip, TRIP_MESSAGES)

static trp_type stay_type = { "tripl.stay", 4, 1, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type *const stay_types[] = { &stay_type };
static const trp_protocol stay_protocol = { "tripl", stay_types, 1 };

static _Atomic int got, clean, in_interaction, letters, unencodable;
static trip_named last_named; /* written before got is counted */
static size_t last_bytes;
static trp_ref other;

static unsigned char
padding_of(const void *payload)
{
    return ((const unsigned char *)payload)[offsetof(trip_padded, a) + sizeof(uint32_t)];
}

static void
padded_fill(trip_padded *p)
{
    memset(p, 0xee, sizeof *p);
    p->a = 1;
    p->b = 2;
}

static trp_err
taker_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    if (args != NULL) {
        atomic_fetch_add(&clean, padding_of(trp_msg_payload(args)) == 0);
        atomic_fetch_add(&got, 1);
    }
    return trp_subscribe(ctx, &trp_dead_letter_type);
}

static trp_err
taker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_dead_letter *what = trp_msg_payload(msg);

        atomic_fetch_add(&unencodable, what->reason == TRP_DEAD_NOT_ENCODABLE);
        atomic_fetch_add(&letters, 1);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trip_padded_type)) {
        const trip_padded *p = trp_msg_payload(msg);

        UNIT_TRUE(p->a == 1 && p->b == 2);
        atomic_fetch_add(&clean, padding_of(p) == 0);
        atomic_fetch_add(&in_interaction, trp_msg_interaction(msg) != NULL);
    } else if (trp_msg_is(msg, &trip_named_type)) {
        memcpy(&last_named, trp_msg_payload(msg), sizeof last_named);
    } else if (trp_msg_is(msg, &trp_string_type)) {
        last_bytes = trp_msg_bytes(msg);
        if (trp_msg_bytes(msg) == 1) { /* "!": tell the other in every way that an actor has */
            trip_padded p;
            trp_msg *moved;
            void *place;

            padded_fill(&p);
            trp_tell(ctx, other, &trip_padded_type, &p, sizeof p);
            trp_tell(ctx, other, &trip_padded_type, &p, sizeof p); /* the second of a chain */
            UNIT_EQUAL(trp_try_tell(ctx, other, &trip_padded_type, &p, sizeof p), TRP_OK);
            UNIT_REQUIRE(trp_msg_new(&trip_padded_type, sizeof p, &moved, &place) == TRP_OK);
            memcpy(place, &p, sizeof p);
            trp_send(ctx, other, moved);
            trp_reply(ctx, &trip_padded_type, &p, sizeof p);
        }
    }
    atomic_fetch_add(&got, 1);
    return TRP_OK;
}
static const trp_behaviour taker = { .size = sizeof(trp_behaviour),
                                     .name = "taker",
                                     .version = 1,
                                     .receive = taker_receive,
                                     .pre_start = taker_start };

/* A serializer that writes and cannot read. */
static trp_err
broken_encode(void *arg, trp_wire *wire, const trp_type *type, const void *payload, size_t bytes)
{
    (void)arg;
    (void)type;
    return trp_wire_put(wire, payload, bytes);
}
static trp_err
broken_decode(void *arg, trp_wire *wire, const trp_type *type, const void *data, size_t bytes)
{
    (void)arg;
    return type == &trip_broken_type ? TRP_EDATA /* or one byte too few */
                                     : trp_wire_put(wire, data, bytes - 1);
}
static const trp_serializer broken = { sizeof broken, 40,           { 0 }, "broken", NULL,
                                       broken_encode, broken_decode };

static trp_system *
open_system(trp_system_options options)
{
    trp_system *system = NULL;

    options.workers = 2;
    options.log = pair_log_line;
    pair_log_clear();
    atomic_store(&got, 0);
    atomic_store(&clean, 0);
    atomic_store(&in_interaction, 0);
    atomic_store(&letters, 0);
    atomic_store(&unencodable, 0);
    UNIT_REQUIRE(trp_protocol_register(&trip_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_protocol_register(&stay_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_system_new("trips", &options, &system) == TRP_OK);
    return system;
}

static void
close_system(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* Every way to tell: how many arrived, how many of them had been through a serializer. */
static void
tell_in_every_way(trp_system *system, int want_clean)
{
    trp_interaction talk = { 1, 1, "p", "d" };
    trp_msg *reply = NULL;
    trip_padded p;
    trp_ref one = pair_spawn(system, &taker, "one", NULL, NULL, 0);

    other = pair_spawn(system, &taker, "two", NULL, NULL, 0);
    padded_fill(&p);
    trp_system_tell(system, one, &trip_padded_type, &p, sizeof p);
    trp_system_tell_as(system, one, other, &trip_padded_type, &p, sizeof p);
    trp_system_tell_in(system, one, other, &talk, &trip_padded_type, &p, sizeof p);
    UNIT_EQUAL(trp_system_try_tell(system, one, &trip_padded_type, &p, sizeof p), TRP_OK);
    UNIT_EQUAL(trp_system_select_tell(system, "/user/one", &trip_padded_type, &p, sizeof p),
               TRP_OK);
    UNIT_EQUAL(trp_system_ask(system, one, &trp_string_type, "!", 1, 60000, &reply), TRP_OK);
    if (reply != NULL) {
        UNIT_EQUAL(padding_of(trp_msg_payload(reply)) == 0, want_clean != 0);
    }
    trp_msg_free(reply);
    UNIT_WAIT(atomic_load(&got) == 10, 60000); /* nine padded ones, and the text */
    UNIT_EQUAL(atomic_load(&clean), want_clean);
    UNIT_EQUAL(atomic_load(&in_interaction), 1);
    UNIT_EQUAL(atomic_load(&letters), 0);
}

/* SYS-34, SERIAL-09 */
static void
every_message_goes_through_its_serializer_and_by_default_none(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = open_system(options);

    tell_in_every_way(system, 0);
    close_system(system);

    options.serialize_messages = 1;
    system = open_system(options);
    tell_in_every_way(system, 9);
    close_system(system);
}

/* SYS-34, CONF-9: as a key, stronger than the code */
static void
the_configuration_switches_it(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error;
    trp_config *config = NULL;
    trp_system *system;
    trip_padded p;
    trp_ref ref;

    UNIT_REQUIRE(trp_config_parse_text("t.conf",
                                       "actor { serialize-messages = on\n"
                                       "serialize-creators = on }\n",
                                       &config, &error) == TRP_OK);
    options.config = config;
    system = open_system(options);
    tell_in_every_way(system, 9);
    padded_fill(&p);
    ref = pair_spawn(system, &taker, "three", &trip_padded_type, &p, sizeof p);
    UNIT_FALSE(trp_ref_is_none(ref));
    UNIT_WAIT(atomic_load(&got) == 11, 60000);
    UNIT_EQUAL(atomic_load(&clean), 10);
    close_system(system);
    trp_config_unref(config);

    UNIT_REQUIRE(trp_config_parse_text("t.conf", "actor { serialize-messages = off }\n", &config,
                                       &error) == TRP_OK);
    options.config = config;
    options.serialize_messages = 1;
    system = open_system(options);
    tell_in_every_way(system, 0);
    close_system(system);
    trp_config_unref(config);
}

/* SYS-34, SERIAL-11, SERIAL-09: the decoded message is the one that was told */
static void
refs_texts_and_large_payloads_come_out_as_they_went_in(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trpi_node_id far_id;
    trip_named named;
    trp_ref one;
    uint32_t node = 0;
    char *large = trpi_alloc(200000);

    UNIT_REQUIRE(large != NULL);
    memset(large, 'l', 200000);
    options.serialize_messages = 1;
    system = open_system(options);
    memset(&far_id, 0, sizeof far_id);
    UNIT_REQUIRE(trpi_address_parse("troupe.tcp://far@127.0.0.1:9", &far_id.address, NULL, NULL) ==
                 TRP_OK);
    far_id.uid = 77;
    UNIT_REQUIRE(trpi_node_intern(system, &far_id, &node) == TRP_OK);
    one = pair_spawn(system, &taker, "one", NULL, NULL, 0);
    memset(&named, 0, sizeof named);
    named.who = one;
    named.far_one = (trp_ref){ node, 5, 7, 0 };
    snprintf(named.text, sizeof named.text, "hello");
    memset(named.text + 6, 0x55, sizeof named.text - 6); /* behind its end */
    trp_system_tell(system, one, &trip_named_type, &named, sizeof named);
    UNIT_WAIT(atomic_load(&got) == 1, 60000);
    UNIT_TRUE(trp_ref_equal(last_named.who, one));
    UNIT_TRUE(trp_ref_equal(last_named.far_one, named.far_one));
    UNIT_TEXT(last_named.text, "hello");
    UNIT_EQUAL(last_named.text[sizeof named.text - 1], 0);
    trp_system_tell(system, one, &trp_string_type, large, 200000);
    UNIT_WAIT(atomic_load(&got) == 2, 60000);
    UNIT_EQUAL(last_bytes, 200000);
    trp_system_tell(system, one, &stay_type, "home", 4); /* never leaves a node: not looked at */
    UNIT_WAIT(atomic_load(&got) == 3, 60000);
    UNIT_EQUAL(atomic_load(&letters), 0);
    trpi_free(large);
    close_system(system);
}

/* SYS-34, SERIAL-06, SERIAL-09: with the bindings and serializers of the system's remoting */
static void
what_cannot_travel_is_a_dead_letter_and_an_error_in_the_log(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trpi_remote_options remoting = { 0 };
    trpi_remote *remote = NULL;
    trp_system *system;
    trp_ref one, none = TRP_REF_NONE;
    uint32_t number = 1;

    options.serialize_messages = 1;
    options.serialize_creators = 1;
    system = open_system(options);
    remoting.bind_port = -1;
    remoting.driver = pair_drives();
    UNIT_REQUIRE(trpi_remote_start(system, &remoting, &remote) == TRP_OK);
    UNIT_REQUIRE(trp_serializer_add(system, &broken) == TRP_OK);
    UNIT_REQUIRE(trp_serializer_bind(system, "trip.homely", "none") == TRP_OK);
    UNIT_REQUIRE(trp_serializer_bind(system, "trip.broken", "broken") == TRP_OK);
    UNIT_REQUIRE(trp_serializer_bind(system, "trip.cropped", "broken") == TRP_OK);
    UNIT_REQUIRE(trp_serializer_bind(system, "trip.named", "json") == TRP_OK);
    one = pair_spawn(system, &taker, "one", NULL, NULL, 0);
    trp_system_tell(system, one, &trp_string_type, "up?", 3); /* it has subscribed when it is */
    UNIT_WAIT(atomic_load(&got) == 1, 60000);

    trp_system_tell(system, one, &trip_homely_type, &number, sizeof number);
    UNIT_WAIT(atomic_load(&unencodable) == 1, 60000);
    UNIT_WAIT(pair_logged("type=trip.homely error=TRP_ENOTYPE"), 60000);
    trp_system_tell(system, one, &trip_broken_type, &number, sizeof number);
    UNIT_WAIT(atomic_load(&unencodable) == 2, 60000);
    UNIT_WAIT(pair_logged("type=trip.broken error=TRP_EDATA"), 60000);
    trp_system_tell(system, one, &trip_cropped_type, &number, sizeof number);
    UNIT_WAIT(atomic_load(&unencodable) == 3, 60000);
    UNIT_EQUAL(atomic_load(&got), 1);

    trip_named named; /* the node's own address, written out and read again */
    memset(&named, 0, sizeof named);
    named.who = one;
    trp_system_tell(system, one, &trip_named_type, &named, sizeof named);
    UNIT_WAIT(atomic_load(&got) == 2, 60000);
    UNIT_TRUE(trp_ref_equal(last_named.who, one));

    spawn.args_type = &trip_homely_type;
    spawn.args = &number;
    spawn.args_bytes = sizeof number;
    UNIT_EQUAL(trp_system_spawn(system, &taker, &spawn, &none), TRP_ENOTYPE);
    UNIT_EQUAL(atomic_load(&letters), 3);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(system);
}

/* SYS-34: what a message holds stays in it, since it never leaves the node */
static void
what_a_message_holds_arrives_without_a_serializer(void)
{
    static trp_type holds = TRP_HELD_TYPE("holds.number", 1);
    static trp_type *const types[] = { &holds };
    static const trp_protocol protocol = { "holds", types, 1, 0 };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_inbox *inbox = NULL;
    trp_msg *msg = NULL;
    void *place = NULL;
    trp_ref sender;
    trp_ctx *ctx;

    UNIT_REQUIRE(trp_protocol_register(&protocol) == TRP_OK);
    options.serialize_messages = 1;
    system = open_system(options);
    UNIT_REQUIRE(trp_inbox_open(system, NULL, &inbox) == TRP_OK);
    UNIT_REQUIRE(trp_msg_new_held(&holds, sizeof(uint64_t), NULL, &msg, &place) == TRP_OK);
    *(uint64_t *)place = 11;
    ctx = trpi_enter(system);
    trpi_send(ctx, trp_inbox_ref(inbox), msg);
    trpi_leave(ctx);
    UNIT_REQUIRE(trp_inbox_receive(inbox, 60000, &msg, &sender) == TRP_OK);
    UNIT_TRUE(trp_msg_held(msg, &holds) == place);
    trp_msg_free(msg);
    trp_inbox_close(inbox);
    close_system(system);
}

UNIT_BEGIN("serialize")
UNIT(every_message_goes_through_its_serializer_and_by_default_none)
UNIT(the_configuration_switches_it)
UNIT(refs_texts_and_large_payloads_come_out_as_they_went_in)
UNIT(what_cannot_travel_is_a_dead_letter_and_an_error_in_the_log)
UNIT(what_a_message_holds_arrives_without_a_serializer)
UNIT_END
