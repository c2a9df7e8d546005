/* payload_json_test.c - messages from and to the JSON of the shell. */
#include <troupe/troupe.h>

#include "actor/kernel/type.h"
#include "base/alloc.h"
#include "cluster/node/payload_json.h"
#include "tests/unit/unit.h"

#define T_ALL(F, S)                                                                                \
    F(S, bool, yes)                                                                                \
    F(S, i32, i32)                                                                                 \
    F(S, u32, u32) F(S, i64, i64) F(S, u64, u64) F(S, f64, f64) F(S, text32, text) F(S, ref, ref)
#define T_MESSAGES(M, P) M(P, all, T_ALL)
TRP_PROTOCOL_DECLARE(t, T_MESSAGES)
TRP_PROTOCOL_DEFINE(t, T_MESSAGES)

static void
refused(const char *json, trp_err want, const char *what)
{
    void *payload = NULL;
    size_t bytes = 0;
    char text[256] = "";
    UNIT_EQUAL(trpi_payload_from_json(&t_all_type, json, &payload, &bytes, text, sizeof text),
               want);
    UNIT_TEXT(text, what);
}

static void
every_kind_of_field_is_read(void)
{
    void *payload = NULL;
    size_t bytes = 0;
    char what[256];
    trp_err err = trpi_payload_from_json(
        &t_all_type,
        "{\"yes\":true,\"i32\":-5,\"u32\":4294967295,\"i64\":\"-9223372036854775808\","
        "\"u64\":\"18446744073709551615\",\"f64\":1.5,\"text\":\"hi\",\"ref\":null}",
        &payload, &bytes, what, sizeof what);
    UNIT_REQUIRE(err == TRP_OK);
    const t_all *all = payload;
    UNIT_EQUAL(bytes, sizeof *all);
    UNIT_EQUAL(all->yes, 1);
    UNIT_EQUAL(all->i32, -5);
    UNIT_EQUAL(all->u32, UINT32_MAX);
    UNIT_EQUAL(all->i64, INT64_MIN);
    UNIT_TRUE(all->u64 == UINT64_MAX);
    UNIT_TRUE(all->f64 > 1.4 && all->f64 < 1.6);
    UNIT_TEXT(all->text, "hi");
    UNIT_TRUE(trp_ref_is_none(all->ref));
    trpi_free(payload);
}

#define T_ITEM(F, S) F(S, text, name) F(S, u32, count)
#define T_ORDER(F, S)                                                                              \
    F(S, text, title) F(S, array(struct(t2_item)), items) F(S, bytes, blob) F(S, array(i64), n)
#define T2_MESSAGES(M, P) M(P, order, T_ORDER)
TRP_STRUCT(t2, item, T_ITEM)
TRP_PROTOCOL(t2, T2_MESSAGES)

static void
what_varies_is_read_and_shown(void)
{
    static const char *const bad[] = { "{\"items\":[{\"nope\":1}]}",
                                       "t2.item has no field 'nope'",
                                       "{\"items\":[{\"count\":-1}]}",
                                       "t2.item: the value does not fit field 'count'",
                                       "{\"items\":5}",
                                       "t2.order: the value does not fit field 'items'",
                                       "{\"blob\":\"a\"}",
                                       "t2.order: the value does not fit field 'blob'",
                                       "{\"title\":5}",
                                       "t2.order: the value does not fit field 'title'" };
    const char *json = "{\"title\":\"a title\",\"items\":[{\"name\":\"nail\",\"count\":3},"
                       "{\"name\":\"\",\"count\":0}],\"blob\":\"AAE=\",\"n\":[1,"
                       "\"-9223372036854775808\"]}";
    char what[256], whole[512];
    void *payload = NULL, *place;
    size_t bytes = 0;
    trp_msg *msg;
    UNIT_EQUAL(trp_protocol_register(&t2_protocol), TRP_OK);
    UNIT_REQUIRE(trpi_payload_from_json(&t2_order_type, json, &payload, &bytes, what,
                                        sizeof what) == TRP_OK);
    UNIT_REQUIRE(trp_msg_new(&t2_order_type, bytes, &msg, &place) == TRP_OK);
    memcpy(place, payload, bytes);
    trpi_free(payload);
    cJSON *object = trpi_payload_to_json(NULL, msg);
    char *text = trpi_json_print(object);
    (void)snprintf(whole, sizeof whole, "{\"type\":\"t2.order\",\"json\":%s}", json);
    UNIT_TEXT(text, whole);
    cJSON_free(text);
    cJSON_Delete(object);
    trp_msg_free(msg);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i += 2) {
        trp_err err =
            trpi_payload_from_json(&t2_order_type, bad[i], &payload, &bytes, what, sizeof what);
        UNIT_EQUAL(err, TRP_EDATA);
        UNIT_TEXT(what, bad[i + 1]);
    }
}

static void
what_does_not_fit_is_refused_by_field(void)
{
    refused("nope", TRP_EDATA, "invalid JSON at byte 0");
    refused("[]", TRP_EDATA, "t.all: expected a JSON object");
    refused("{\"nope\":1}", TRP_EDATA, "t.all has no field 'nope'");
    refused("{\"i32\":2147483648}", TRP_EDATA, "t.all: the value does not fit field 'i32'");
    refused("{\"u32\":-1}", TRP_EDATA, "t.all: the value does not fit field 'u32'");
    refused("{\"i64\":1.5}", TRP_EDATA, "t.all: the value does not fit field 'i64'");
    refused("{\"i64\":\"9223372036854775808\"}", TRP_EDATA,
            "t.all: the value does not fit field 'i64'");
    refused("{\"u64\":\"18446744073709551616\"}", TRP_EDATA,
            "t.all: the value does not fit field 'u64'");
    refused("{\"u64\":\"-1\"}", TRP_EDATA, "t.all: the value does not fit field 'u64'");
    refused("{\"yes\":1}", TRP_EDATA, "t.all: the value does not fit field 'yes'");
    void *payload = NULL;
    size_t bytes = 0;
    char what[64];
    UNIT_EQUAL(trpi_payload_from_json(&t_all_type, "{\"text\":\"0123456789012345678901234567890\"}",
                                      &payload, &bytes, what, sizeof what),
               TRP_OK); /* 31 bytes and the NUL */
    trpi_free(payload);
    refused("{\"text\":\"01234567890123456789012345678901\"}", TRP_EMSGSIZE,
            "t.all: the value does not fit field 'text'");
}

static void
messages_are_shown_by_their_type(void)
{
    trp_system *system = NULL;
    UNIT_REQUIRE(trp_system_new("t", NULL, &system) == TRP_OK);
    UNIT_REQUIRE(trp_protocol_register(&t_protocol) == TRP_OK);
    static const struct {
        trp_type *type;
        const char *bytes;
        size_t count;
        const char *want;
    } cases[] = {
        { &trp_string_type, "h\"i", 3, "{\"type\":\"string\",\"text\":\"h\\\"i\"}" },
        { &trp_string_type, "\xff", 1, "{\"type\":\"string\",\"base64\":\"/w==\"}" },
        { &trp_json_type, "[1,2]", 5, "{\"type\":\"json\",\"json\":[1,2]}" },
        { &trp_json_type, "[1,", 3, "{\"type\":\"json\",\"base64\":\"WzEs\"}" },
        { &trp_bytes_type, "\0\1", 2, "{\"type\":\"bytes\",\"base64\":\"AAE=\"}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trp_msg *msg = NULL;
        void *payload = NULL;
        UNIT_REQUIRE(trp_msg_new(cases[i].type, cases[i].count, &msg, &payload) == TRP_OK);
        memcpy(payload, cases[i].bytes, cases[i].count);
        cJSON *json = trpi_payload_to_json(system, msg);
        char *text = trpi_json_print(json);
        UNIT_TEXT(text, cases[i].want);
        cJSON_free(text);
        cJSON_Delete(json);
        trp_msg_free(msg);
    }
    t_all all = { 1, -5, 7, -8, UINT64_MAX, 1.5, "hi", TRP_REF_NONE };
    trp_msg *msg = NULL;
    void *payload = NULL;
    UNIT_REQUIRE(trp_msg_new(&t_all_type, sizeof all, &msg, &payload) == TRP_OK);
    memcpy(payload, &all, sizeof all);
    cJSON *json = trpi_payload_to_json(system, msg);
    char *text = trpi_json_print(json);
    UNIT_TEXT(text, "{\"type\":\"t.all\",\"json\":{\"yes\":true,\"i32\":-5,\"u32\":7,\"i64\":-8,"
                    "\"u64\":\"18446744073709551615\",\"f64\":1.5,\"text\":\"hi\",\"ref\":null}}");
    cJSON_free(text);
    cJSON_Delete(json);
    trp_msg_free(msg);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* payload-json-I2: of all types of the library, whoever registered them, these and no other */
static void
orders_to_the_runtime_are_not_messages_from_outside(void)
{
    static const char *const open[] = {
        "troupe.string", "troupe.json",     "troupe.bytes",
        "troupe.i64",    "troupe.identify", "troupe.get-routees",
    };
    const trp_type *found = NULL;
    uint32_t allowed = 0, refused = 0;
    char why[TRPI_OUTSIDE_WHY_BYTES] = "";
    for (uint32_t number = 1; number < TRPI_TYPE_USER_FIRST; number++) {
        const trp_type *type = trpi_type_get(number);
        bool is_open = false;
        for (size_t i = 0; type != NULL && i < sizeof open / sizeof open[0]; i++) {
            is_open = is_open || strcmp(type->name, open[i]) == 0;
        }
        if (is_open) {
            UNIT_EQUAL(trpi_type_from_outside(type->name, &found, why), TRP_OK);
            UNIT_TRUE(found == type);
            allowed++;
        } else if (type != NULL) {
            UNIT_EQUAL(trpi_type_from_outside(type->name, &found, why), TRP_EUNSUPPORTED);
            refused++;
        }
    }
    UNIT_EQUAL(allowed, 6);
    UNIT_TRUE(refused > 20);
    UNIT_EQUAL(trpi_type_from_outside("troupe.kill", &found, why), TRP_EUNSUPPORTED);
    UNIT_TEXT(why, "messages of type troupe.kill are not taken from outside the node");
    UNIT_EQUAL(trpi_type_from_outside("t.nothing", &found, why), TRP_ENOTYPE);
    UNIT_TEXT(why, "no message type 't.nothing' on this node");
    UNIT_REQUIRE(trp_protocol_register(&t_protocol) == TRP_OK);
    UNIT_EQUAL(trpi_type_from_outside("t.all", &found, why), TRP_OK);
    UNIT_TRUE(found == &t_all_type);
    t_all_type.flags |= TRP_TYPE_LOCAL;
    UNIT_EQUAL(trpi_type_from_outside("t.all", &found, why), TRP_EUNSUPPORTED);
    t_all_type.flags &= (uint16_t)~TRP_TYPE_LOCAL;
}

UNIT_BEGIN("payload_json")
UNIT(orders_to_the_runtime_are_not_messages_from_outside)
UNIT(every_kind_of_field_is_read)
UNIT(what_varies_is_read_and_shown)
UNIT(what_does_not_fit_is_refused_by_field)
UNIT(messages_are_shown_by_their_type)
UNIT_END
