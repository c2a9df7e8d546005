/* serialization_test.c - a program's serializers, bindings in code and configuration, messages as
 * bytes; refs inside them, between three systems of this process. */
#include <troupe/path.h>
#include <troupe/serialization.h>

#include "base/wire.h"
#include "pattern/reliable.h"
#include "remote/wire/serializer.h"
#include "tests/unit/remote/pair.h"

#define SER_NUMBERS(F, S)                                                                          \
    F(S, bool, yes)                                                                                \
    F(S, i32, i32) F(S, u32, u32) F(S, i64, i64) F(S, u64, u64) F(S, f64, f64) F(S, text32, name)
#define SER_REFS(F, S) F(S, ref, here) F(S, ref, there) F(S, ref, nobody)
#define SER_MESSAGES(M, P) M(P, numbers, SER_NUMBERS) M(P, refs, SER_REFS)
TRP_PROTOCOL(ser, SER_MESSAGES)

static trp_type parent_type = { "ser-more.parent", 4, 1, 0, NULL, 0, 0 };
static trp_type child_type = { "ser-more.child", 4, 2, 0, NULL, 0, 0 };
static trp_type local_type = { .name = "ser-more.local",
                               .tag = 3,
                               .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const more_types[] = { &parent_type, &child_type, &local_type };
static const trp_protocol more_protocol = { "ser-more", more_types, 3 };

static trp_system *
open_with(const char *config_text, trp_err expected)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error;
    trp_system *system = NULL;
    trp_config *config = NULL;

    UNIT_REQUIRE(trp_protocol_register(&ser_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_protocol_register(&more_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_type_extend(&child_type, &parent_type) == TRP_OK);
    pair_log_clear();
    options.workers = 1;
    options.log = pair_log_line;
    if (config_text != NULL) {
        UNIT_REQUIRE(trp_config_parse_text("t.conf", config_text, &config, &error) == TRP_OK);
    }
    options.config = config;
    UNIT_REQUIRE(trp_system_new("ser", &options, &system) == TRP_OK);
    trp_config_unref(config);
    UNIT_EQUAL(trp_serializer_bind(system, "ser.unknown", "raw"), expected);
    return system;
}

static void
close_system(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* ---- a serializer of the program ------------------------------------------------------------- */

/* Writes bytes upside down. */
static trp_err
odd_encode(void *arg, trp_wire *wire, const trp_type *type, const void *payload, size_t bytes)
{
    trp_err err = TRP_OK;

    (void)type;
    atomic_fetch_add((_Atomic int *)arg, 1);
    for (size_t i = bytes; i-- > 0 && err == TRP_OK;) {
        err = trp_wire_put(wire, (const char *)payload + i, 1);
    }
    return err;
}

/* Of types that have nothing but refs: these as text, NUL behind each. */
static trp_err
refs_encode(void *arg, trp_wire *wire, const trp_type *type, const void *payload, size_t bytes)
{
    char text[TRP_REF_TEXT_BYTES];
    trp_err err = TRP_OK;

    atomic_fetch_add((_Atomic int *)arg, 1);
    (void)type;
    for (size_t i = 0; i < bytes / sizeof(trp_ref) && err == TRP_OK; i++) {
        err = trp_wire_ref_format(wire, ((const trp_ref *)payload)[i], text, sizeof text);
        err = err != TRP_OK ? err : trp_wire_put(wire, text, strlen(text) + 1);
    }
    return err;
}

static trp_err
refs_decode(void *arg, trp_wire *wire, const trp_type *type, const void *data, size_t bytes)
{
    const char *at = data, *end = at + bytes;
    trp_err err = TRP_OK;

    (void)type;
    atomic_fetch_add((_Atomic int *)arg, 1);
    while (at < end && err == TRP_OK) {
        size_t length = strnlen(at, (size_t)(end - at));
        trp_ref ref = TRP_REF_NONE;
        err = trp_wire_ref_parse(wire, at, length, &ref);
        err = err != TRP_OK ? err : trp_wire_put(wire, &ref, sizeof ref);
        at += length + 1;
    }
    return err;
}

static _Atomic int odd_calls; /* any thread encodes */
static const trp_serializer odd = {
    sizeof odd, TRP_SERIALIZER_ID_FIRST, { 0 }, "odd", &odd_calls, odd_encode, odd_encode
};
static const trp_serializer odd_refs = { sizeof odd_refs, TRP_SERIALIZER_ID_FIRST + 1,
                                         { 0 },           "odd-refs",
                                         &odd_calls,      refs_encode,
                                         refs_decode };

static ser_numbers
numbers_make(void)
{
    ser_numbers n;

    memset(&n, 0, sizeof n);
    n.yes = 1;
    n.i32 = INT32_MIN;
    n.u32 = UINT32_MAX;
    n.i64 = INT64_MIN;
    n.u64 = UINT64_MAX;
    n.f64 = -0.1;
    (void)strcpy(n.name, "hello");
    return n;
}

static void
there_and_back(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
               const char *serializer)
{
    trp_msg *data = NULL, *back = NULL;

    UNIT_EQUAL(trp_serializer_bind(system, type->name, serializer), TRP_OK);
    UNIT_TEXT(trp_serializer_of(system, type, NULL), serializer);
    UNIT_REQUIRE(trp_serialize(system, type, payload, bytes, &data) == TRP_OK);
    UNIT_TRUE(trp_msg_is(data, &trp_bytes_type));
    UNIT_REQUIRE(trp_deserialize(system, trp_msg_payload(data), trp_msg_bytes(data), &back) ==
                 TRP_OK);
    UNIT_TRUE(trp_msg_is(back, type));
    UNIT_EQUAL(trp_msg_bytes(back), bytes);
    UNIT_EQUAL(memcmp(trp_msg_payload(back), payload, bytes), 0);
    trp_msg_free(data);
    trp_msg_free(back);
}

/* SERIAL-01 SERIAL-02 SERIAL-07 SERIAL-10 SERIAL-18: each kind of field, by each serializer */
static void
every_serializer_brings_back_what_it_was_given(void)
{
    static const char *const names[] = { "raw", "json", "msgpack", "odd" };
    static const char *const ref_names[] = { "raw", "json", "msgpack", "odd-refs" };
    trp_system *system = open_with(NULL, TRP_OK);
    ser_numbers numbers = numbers_make();
    trpi_node_id far_id = { .uid = 77 };
    ser_refs refs = { .here = pair_spawn(system, &pair_echo, "here", NULL, NULL, 0) };

    UNIT_REQUIRE(trpi_address_parse("troupe.tcp://far@10.0.0.9:2552", &far_id.address, NULL,
                                    NULL) == TRP_OK);
    UNIT_REQUIRE(trpi_node_intern(system, &far_id, &refs.there.node) == TRP_OK);
    refs.there.slot = 5;
    refs.there.generation = 7;
    UNIT_EQUAL(trp_serializer_add(system, &odd), TRP_OK);
    UNIT_EQUAL(trp_serializer_add(system, &odd_refs), TRP_OK);
    atomic_store(&odd_calls, 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        there_and_back(system, &ser_numbers_type, &numbers, sizeof numbers, names[i]);
        there_and_back(system, &ser_refs_type, &refs, sizeof refs, ref_names[i]);
    }
    UNIT_EQUAL(atomic_load(&odd_calls), 4);
    there_and_back(system, &trp_bytes_type, "\0\1\2", 3, "raw");
    there_and_back(system, &trp_bytes_type, "\0\1\2", 3, "msgpack");
    there_and_back(system, &trp_string_type, "text", 4, "text");
    there_and_back(system, &trp_string_type, "text", 4, "msgpack");
    there_and_back(system, &trp_json_type, "{}", 2, "json");
    close_system(system);
}

/* SERIAL-07: ids of the library are refused, at both ends of the range and one past it */
static void
numbers_of_serializers_have_a_range(void)
{
    trp_system *system = open_with(NULL, TRP_OK);
    trp_serializer mine = odd, second = odd;
    char name[TRP_SERIALIZER_NAME_BYTES_MAX + 2] = { 0 };

    mine.id = TRP_SERIALIZER_ID_FIRST - 1;
    UNIT_EQUAL(trp_serializer_add(system, &mine), TRP_EINVAL);
    mine.id = TRP_SERIALIZER_ID_MAX + 1;
    UNIT_EQUAL(trp_serializer_add(system, &mine), TRP_ELIMIT);
    mine.id = TRP_SERIALIZER_ID_MAX;
    memset(name, 'n', sizeof name - 1);
    mine.name = name;
    UNIT_EQUAL(trp_serializer_add(system, &mine), TRP_EINVAL);
    name[TRP_SERIALIZER_NAME_BYTES_MAX] = '\0';
    UNIT_EQUAL(trp_serializer_add(system, &mine), TRP_OK);
    UNIT_EQUAL(trp_serializer_add(system, &mine), TRP_EEXIST);
    second.name = "raw";
    UNIT_EQUAL(trp_serializer_add(system, &second), TRP_EEXIST);
    second.name = "none";
    UNIT_EQUAL(trp_serializer_add(system, &second), TRP_EINVAL);
    second.name = "second";
    second.decode = NULL;
    UNIT_EQUAL(trp_serializer_add(system, &second), TRP_EINVAL);
    second.decode = odd_encode;
    UNIT_EQUAL(trp_serializer_add(system, &second), TRP_OK); /* the first id */
    close_system(system);
}

/* ---- bindings -------------------------------------------------------------------------------- */

/* SERIAL-05 SERIAL-06, CONF-10: its name, its parent's, the longest pattern, all; nothing: its own
 * form */
static void
the_most_specific_binding_wins(void)
{
    trp_system *system = open_with(NULL, TRP_OK);
    uint16_t id = 0;

    UNIT_TEXT(trp_serializer_of(system, &child_type, NULL), "raw");
    UNIT_EQUAL(trp_serializer_bind(system, "*", "json"), TRP_OK);
    UNIT_TEXT(trp_serializer_of(system, &child_type, &id), "json");
    UNIT_EQUAL(id, TRPI_SERIALIZER_JSON);
    UNIT_TEXT(trp_serializer_of(system, &trp_string_type, NULL), "json");
    UNIT_EQUAL(trp_serializer_bind(system, "ser-more.*", "msgpack"), TRP_OK);
    UNIT_TEXT(trp_serializer_of(system, &child_type, NULL), "msgpack");
    UNIT_TEXT(trp_serializer_of(system, &ser_refs_type, NULL), "json");
    UNIT_EQUAL(trp_serializer_bind(system, "ser-more.parent", "raw"), TRP_OK);
    UNIT_TEXT(trp_serializer_of(system, &child_type, NULL), "raw");
    UNIT_EQUAL(trp_serializer_bind(system, "ser-more.child", "none"), TRP_OK);
    UNIT_TRUE(trp_serializer_of(system, &child_type, NULL) == NULL);
    UNIT_TEXT(trp_serializer_of(system, &parent_type, NULL), "raw");
    UNIT_EQUAL(trp_serializer_bind(system, "ser-more.child", "text"), TRP_OK); /* replaces */
    UNIT_TEXT(trp_serializer_of(system, &child_type, NULL), "text");
    UNIT_EQUAL(trp_serializer_bind(system, "**", "raw"), TRP_EINVAL);
    UNIT_EQUAL(trp_serializer_bind(system, "ser-more.c*", "raw"), TRP_EINVAL);
    UNIT_EQUAL(trp_serializer_bind(system, "ser-more.child", "nobody"), TRP_ENOENT);
    close_system(system);
}

/* SERIAL-01 SERIAL-06, CONF-10, CONF: as keys; a serializer may come after its binding */
static void
the_configuration_binds(void)
{
    trp_system *system =
        open_with("actor { serialization-bindings = { \"ser.*=msgpack\", \"ser.refs=none\", "
                  "\"ser-more.*=odd\" } }\n",
                  TRP_OK);
    trp_msg *data = NULL;
    ser_refs refs = { 0 };

    UNIT_TEXT(trp_serializer_of(system, &ser_numbers_type, NULL), "msgpack");
    UNIT_TRUE(trp_serializer_of(system, &ser_refs_type, NULL) == NULL);
    UNIT_EQUAL(trp_serialize(system, &ser_refs_type, &refs, sizeof refs, &data), TRP_ENOTYPE);
    UNIT_TRUE(trp_serializer_of(system, &child_type, NULL) == NULL);
    trpi_remote_options remoting = { .bind_port = -1 };
    trpi_remote *remote = NULL;
    UNIT_REQUIRE(trpi_remote_start(system, &remoting, &remote) == TRP_OK);
    UNIT_WAIT(pair_logged("types=ser-more.* serializer=odd"), 60000);
    UNIT_EQUAL(trp_serializer_add(system, &odd), TRP_OK);
    UNIT_TEXT(trp_serializer_of(system, &child_type, NULL), "odd");
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(system);
}

/* CONF-10 */
static void
a_wrong_binding_is_told(void)
{
    static const char *const wrong[] = { "ser.numbers", "=raw", "ser.numbers=", "s*r.x=raw" };
    char text[200];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(text, sizeof text, "actor { serialization-bindings = { \"%s\" } }\n",
                       wrong[i]);
        trp_system *system = open_with(text, TRP_ECONFIG);
        UNIT_WAIT(pair_logged("wrong entry of actor.serialization-bindings"), 60000);
        trpi_remote_options remoting = { .bind_port = -1 };
        trpi_remote *remote = NULL;
        UNIT_EQUAL(i == 0 ? trpi_remote_start(system, &remoting, &remote) : TRP_ECONFIG,
                   TRP_ECONFIG);
        close_system(system);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* SERIAL-08 SERIAL-15: cut anywhere, or another byte anywhere: a message that fits, or an error */
static void
bytes_of_a_stranger_are_an_error_or_a_message(void)
{
    static const char *const names[] = { "raw", "json", "msgpack" };
    trp_system *system = open_with(NULL, TRP_OK);
    ser_refs refs = { .here = pair_spawn(system, &pair_echo, "here", NULL, NULL, 0) };
    trp_msg *data = NULL, *back = NULL;

    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_serializer_bind(system, "ser.refs", names[i]), TRP_OK);
        UNIT_REQUIRE(trp_serialize(system, &ser_refs_type, &refs, sizeof refs, &data) == TRP_OK);
        size_t bytes = trp_msg_bytes(data);
        for (size_t at = 0; at < 2 * bytes; at++) {
            size_t count = at < bytes ? at : bytes;
            uint8_t *exact = trpi_alloc(count + 1);
            memcpy(exact, trp_msg_payload(data), count);
            if (at >= bytes) {
                exact[at - bytes] ^= (uint8_t)(1u << (at % 8));
            }
            if (trp_deserialize(system, exact, count, &back) == TRP_OK) {
                UNIT_EQUAL(trp_msg_bytes(back), trp_msg_type(back)->bytes);
                trp_msg_free(back);
            }
            trpi_free(exact);
        }
        trp_msg_free(data);
    }
    uint8_t head[12] = { 1 };
    trpi_put_u16(head + 2, TRPI_SERIALIZER_RAW);
    trpi_put_u64(head + 4, 12345);
    UNIT_EQUAL(trp_deserialize(system, head, sizeof head, &back), TRP_ENOTYPE);
    trpi_put_u64(head + 4, trpi_type_wire_id(local_type.number)); /* for its own node only */
    UNIT_EQUAL(trp_deserialize(system, head, sizeof head, &back), TRP_ENOTYPE);
    UNIT_EQUAL(trp_protocol_register(&trp_reliable_proxy_protocol), TRP_OK);
    trpi_put_u64(head + 4, trpi_type_wire_id(trpi_parcel_type.number));
    UNIT_EQUAL(trp_deserialize(system, head, sizeof head, &back), TRP_ENOTYPE);
    trpi_put_u64(head + 4, trpi_type_wire_id(trp_bytes_type.number));
    trpi_put_u16(head + 2, 60);
    UNIT_EQUAL(trp_deserialize(system, head, sizeof head, &back), TRP_ENOENT);
    head[0] = 2;
    UNIT_EQUAL(trp_deserialize(system, head, sizeof head, &back), TRP_EDATA);
    UNIT_EQUAL(trp_deserialize(system, NULL, 0, &back), TRP_EINVAL);
    UNIT_EQUAL(trp_serialize(system, &ser_refs_type, &refs, 3, &data), TRP_EINVAL);
    close_system(system);
}

/* ---- refs between nodes ---------------------------------------------------------------------- */

#define TRIO_REFS(F, S) F(S, ref, left) F(S, ref, right) F(S, ref, third) F(S, ref, nobody)
#define TRIO_MESSAGES(M, P) M(P, refs, TRIO_REFS)
TRP_PROTOCOL(trio, TRIO_MESSAGES)

static _Atomic int64_t heard[3]; /* by left, right, third */
static _Atomic int mistakes;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    atomic_fetch_add(&heard[*(const int64_t *)state], trp_msg_is(msg, &trp_i64_type));
    return TRP_OK;
}
static trp_err
listener_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(int64_t));
    return TRP_OK;
}
static const trp_behaviour listener = { .size = sizeof(trp_behaviour),
                                        .name = "listener",
                                        .version = 1,
                                        .state_bytes = sizeof(int64_t),
                                        .receive = listener_receive,
                                        .pre_start = listener_start };

/* On the right: tells each that the message names. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trio_refs *refs = trp_msg_payload(msg);
    int64_t number = 1;

    (void)state;
    if (!trp_msg_is(msg, &trio_refs_type) || refs->right.node != TRPI_NODE_SELF ||
        !trp_ref_is_none(refs->nobody)) {
        atomic_fetch_add(&mistakes, 1);
        return TRP_OK;
    }
    trp_tell(ctx, refs->left, &trp_i64_type, &number, sizeof number);
    trp_tell(ctx, refs->right, &trp_i64_type, &number, sizeof number);
    trp_tell(ctx, refs->third, &trp_i64_type, &number, sizeof number);
    return TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", char, teller_receive);

static trp_ref
resolve_at(trp_system *system, const char *address, const char *path)
{
    char whole[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;

    (void)snprintf(whole, sizeof whole, "%s%s", address, path);
    UNIT_REQUIRE(trp_system_resolve(system, whole, 60000, &ref) == TRP_OK);
    return ref;
}

/* SERIAL-11 SERIAL-12 SERIAL-14 REMOTE-11, SERIAL-15: bound to one address, advertised under
 * another; a ref of the sender, of the receiver and of a third system; by each serializer, told and
 * selected */
static void
refs_in_payloads_lead_to_their_actors_from_any_node(void)
{
    static const char *const names[] = { "raw", "json", "msgpack", "odd-refs" };
    trpi_remote_options options = { .host = "localhost", .bind_host = "127.0.0.1" };
    pair p, more; /* the third system is a side of a pair of its own */
    char path[TRP_PATH_BYTES_MAX];
    trio_refs refs;

    UNIT_REQUIRE(trp_protocol_register(&trio_protocol) == TRP_OK);
    memset(&more, 0, sizeof more);
    memset(&refs, 0, sizeof refs);
    pair_start(&p, false, &options);
    UNIT_TRUE(strstr(p.address[1], "@localhost:") != NULL);
    more.system[0] = pair_system("third");
    pair_remote(&more, 0, &options, 0);
    for (int64_t i = 0; i < 3; i++) {
        pair_spawn(i < 2 ? p.system[i] : more.system[0], &listener, "listener", &trp_i64_type, &i,
                   sizeof i);
        atomic_store(&heard[i], 0);
    }
    atomic_store(&mistakes, 0);
    pair_spawn(p.system[1], &teller, "teller", NULL, NULL, 0);
    refs.left = resolve_at(p.system[0], p.address[0], "/user/listener");
    refs.right = resolve_at(p.system[0], p.address[1], "/user/listener");
    refs.third = resolve_at(p.system[0], more.address[0], "/user/listener");
    trp_ref to = resolve_at(p.system[0], p.address[1], "/user/teller");
    for (int side = 0; side < 2; side++) {
        UNIT_EQUAL(trp_serializer_add(p.system[side], &odd_refs), TRP_OK);
    }
    for (int64_t i = 0; i < 4; i++) {
        UNIT_EQUAL(trp_serializer_bind(p.system[0], "trio.*", names[i]), TRP_OK);
        trp_system_tell(p.system[0], to, &trio_refs_type, &refs, sizeof refs);
        UNIT_EQUAL(trp_system_select_tell(p.system[0],
                                          pair_path(&p, 1, "/user/teller", path, sizeof path),
                                          &trio_refs_type, &refs, sizeof refs),
                   TRP_OK);
        for (int who = 0; who < 3; who++) {
            UNIT_WAIT(atomic_load(&heard[who]) == 2 * (i + 1), 60000);
        }
    }
    UNIT_EQUAL(atomic_load(&mistakes), 0);
    pair_end_side(&more, 0);
    pair_end(&p);
}

/* ---- a serializer that fails ----------------------------------------------------------------- */

enum { NOT_WRITTEN = 13, NOT_READ = 14 };

static trp_err
picky_encode(void *arg, trp_wire *wire, const trp_type *type, const void *payload, size_t bytes)
{
    int64_t number;
    (void)arg;
    (void)type;
    memcpy(&number, payload, sizeof number);
    return number == NOT_WRITTEN ? TRP_EDATA : trp_wire_put(wire, payload, bytes);
}

static trp_err
picky_decode(void *arg, trp_wire *wire, const trp_type *type, const void *data, size_t bytes)
{
    int64_t number = 0;
    (void)arg;
    (void)type;
    memcpy(&number, data, bytes < sizeof number ? bytes : sizeof number);
    return number == NOT_READ ? TRP_EDATA : trp_wire_put(wire, data, bytes);
}
static const trp_serializer picky = {
    sizeof picky, TRP_SERIALIZER_ID_FIRST + 2, { 0 }, "picky", NULL, picky_encode, picky_decode
};

static uint64_t
dead_letters(trp_system *system, trp_dead_reason reason)
{
    trp_system_stats stats;
    stats.size = sizeof stats;
    trp_system_stats_get(system, &stats);
    return stats.dead_letters[reason];
}

/* REMOTE-44: a message that cannot be encoded or decoded is lost alone, and both ends log it; what
 * was told before and after it arrives by the same connection. */
static void
a_serializer_that_fails_costs_one_message(void)
{
    pair p;
    int64_t who = 1;
    trpi_peer_info before, after;
    size_t count = 0;

    pair_start(&p, true, NULL);
    for (int side = 0; side < 2; side++) {
        UNIT_EQUAL(trp_serializer_add(p.system[side], &picky), TRP_OK);
        UNIT_EQUAL(trp_serializer_bind(p.system[side], trp_i64_type.name, "picky"), TRP_OK);
    }
    atomic_store(&heard[1], 0);
    pair_spawn(p.system[1], &listener, "listener", &trp_i64_type, &who, sizeof who);
    trp_ref to = resolve_at(p.system[0], p.address[1], "/user/listener");
    trpi_remote_peers(p.remote[0], &before, 1, &count);
    for (int64_t number = NOT_WRITTEN - 1; number <= NOT_READ + 1; number++) {
        trp_system_tell(p.system[0], to, &trp_i64_type, &number, sizeof number);
    }
    UNIT_WAIT(atomic_load(&heard[1]) == 2, 60000);
    UNIT_WAIT(dead_letters(p.system[0], TRP_DEAD_NOT_ENCODABLE) == 1, 60000);
    UNIT_WAIT(pair_logged("i64"), 60000);
    trpi_remote_peers(p.remote[0], &after, 1, &count);
    UNIT_TEXT(after.state, before.state);
    UNIT_FALSE(pair_logged("disassociated"));
    pair_end(&p);
}

enum { TOO_MANY = TRPI_MAP_NODES_MAX + 1 };

/* A selection that cannot be written is as dead as a tell: the limit of nodes, and one past it. */
static void
a_selection_may_name_no_more_nodes_than_a_tell(void)
{
    static trp_field fields[TOO_MANY];
    static trp_type many_type = { .name = "ser-many.many",
                                  .bytes = TOO_MANY * sizeof(trp_ref),
                                  .tag = 1,
                                  .fields = fields,
                                  .fields_count = TOO_MANY };
    static trp_type *const many_types[] = { &many_type };
    static const trp_protocol many = { "ser-many", many_types, 1 };
    static char names[TOO_MANY][8];
    trp_ref refs[TOO_MANY] = { 0 };
    trpi_node_id id;
    char path[TRP_PATH_BYTES_MAX];
    pair p;

    for (uint32_t i = 0; i < TOO_MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%u", i);
        fields[i] = (trp_field){ names[i], TRP_FIELD_ref, i * (uint32_t)sizeof(trp_ref) };
    }
    UNIT_REQUIRE(trp_protocol_register(&many) == TRP_OK);
    pair_start(&p, false, NULL);
    memset(&id, 0, sizeof id);
    UNIT_EQUAL(trpi_address_parse("troupe.tcp://x@127.0.0.1:9", &id.address, NULL, NULL), TRP_OK);
    pair_path(&p, 1, "/user/nobody", path, sizeof path);
    for (uint32_t i = 0; i < TOO_MANY; i++) {
        id.uid = i + 1;
        refs[i] = (trp_ref){ 0, 1, 1, 0 };
        UNIT_EQUAL(trpi_node_intern(p.system[0], &id, &refs[i].node), TRP_OK);
        UNIT_EQUAL(trp_system_select_tell(p.system[0], path, &many_type, refs, sizeof refs),
                   TRP_OK);
        UNIT_EQUAL(dead_letters(p.system[0], TRP_DEAD_NOT_ENCODABLE), i == TRPI_MAP_NODES_MAX);
    }
    UNIT_WAIT(pair_logged("names too many other nodes"), 60000);
    UNIT_EQUAL(dead_letters(p.system[0], TRP_DEAD_NOT_CONNECTED), 0);
    pair_end(&p);
}

UNIT_BEGIN("serialization")
UNIT(every_serializer_brings_back_what_it_was_given)
UNIT(numbers_of_serializers_have_a_range)
UNIT(the_most_specific_binding_wins)
UNIT(the_configuration_binds)
UNIT(a_wrong_binding_is_told)
UNIT(bytes_of_a_stranger_are_an_error_or_a_message)
UNIT(refs_in_payloads_lead_to_their_actors_from_any_node)
UNIT(a_selection_may_name_no_more_nodes_than_a_tell)
UNIT(a_serializer_that_fails_costs_one_message)
UNIT_END
