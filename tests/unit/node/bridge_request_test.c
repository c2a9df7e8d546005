/* bridge_request_test.c - lines of a program behind a bridge, and what becomes of them. */
#include <stdio.h>

#include <troupe/troupe.h>

#include "base/alloc.h"
#include "cluster/node/bridge_request.h"
#include "cluster/node/ctl_proto.h"
#include "tests/unit/unit.h"

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct taken {
    uint64_t number; /* of the last line */
    uint32_t count;
    trp_err err;
    size_t bytes;
    char text[64];
} taken;

static void
line_take(void *arg, uint64_t number, trp_err err, const char *text, size_t bytes)
{
    taken *t = arg;
    t->number = number;
    t->count++;
    t->err = err;
    t->bytes = bytes;
    (void)snprintf(t->text, sizeof t->text, "%.*s", (int)(bytes < 60 ? bytes : 60),
                   text == NULL ? "" : text);
}

static void
feed(trpi_bridge_lines *lines, const char *text, taken *t)
{
    trpi_bridge_lines_feed(lines, text, strlen(text), line_take, t);
}

static void
lines_come_in_any_pieces(void)
{
    trpi_bridge_lines lines = { 0 };
    taken t = { 0 };
    feed(&lines, "on", &t);
    UNIT_EQUAL(t.count, 0);
    feed(&lines, "e\ntwo\n \t\r\n\nfi", &t);
    UNIT_EQUAL(t.count, 2);
    UNIT_TEXT(t.text, "two");
    feed(&lines, "ve\n", &t);
    UNIT_EQUAL(t.count, 3);
    UNIT_EQUAL(t.number, 5); /* blank lines count */
    UNIT_TEXT(t.text, "five");
    trpi_bridge_lines_fini(&lines);
}

/* bridge-request-I2: at the limit, and one past it; in one piece and in many. */
static void
a_line_is_taken_up_to_the_limit(void)
{
    char *text = trpi_alloc(TRPI_BRIDGE_LINE_BYTES_MAX + 3);
    UNIT_REQUIRE(text != NULL);
    for (int pieces = 0; pieces < 2; pieces++) {
        for (size_t more = 0; more < 2; more++) {
            trpi_bridge_lines lines = { 0 };
            taken t = { 0 };
            size_t bytes = TRPI_BRIDGE_LINE_BYTES_MAX + more;
            memset(text, 'x', bytes);
            text[bytes] = '\n';
            size_t step = pieces ? 4096 : bytes + 1;
            for (size_t at = 0; at < bytes + 1; at += step) {
                size_t left = bytes + 1 - at;
                trpi_bridge_lines_feed(&lines, text + at, left < step ? left : step, line_take, &t);
                UNIT_TRUE(lines.held.count <= TRPI_BRIDGE_LINE_BYTES_MAX);
            }
            UNIT_EQUAL(t.count, 1);
            UNIT_EQUAL(t.err, more == 0 ? TRP_OK : TRP_EMSGSIZE);
            UNIT_EQUAL(t.bytes, more == 0 ? bytes : 0);
            feed(&lines, "next\n", &t); /* bridge-request-I1 */
            UNIT_EQUAL(t.number, 2);
            UNIT_TEXT(t.text, "next");
            trpi_bridge_lines_fini(&lines);
        }
    }
    trpi_free(text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
good(const char *line, trpi_bridge_request *ret_request)
{
    trpi_control_refusal refusal = { 0 };
    trp_err err = trpi_bridge_request_parse(line, strlen(line), ret_request, &refusal);
    if (err != TRP_OK) {
        (void)printf("  %s: %s\n", line, refusal.error);
    }
    UNIT_REQUIRE(err == TRP_OK);
}

static void
every_op_is_read(void)
{
    static const char *const lines[] = {
        "{\"op\":\"host\",\"actor\":\"a\"}",
        "{\"op\":\"stop\",\"actor\":\"a\"}",
        "{\"op\":\"tell\",\"to\":\"/user/x\",\"json\":1}",
        "{\"op\":\"ask\",\"id\":1,\"to\":\"/user/x\",\"text\":\"\"}",
        "{\"op\":\"reply\",\"reply\":1,\"base64\":\"\"}",
        "{\"op\":\"fail\",\"reply\":1,\"error\":\"no\"}",
        "{\"op\":\"watch\",\"id\":1,\"to\":\"/user/x\"}",
        "{\"op\":\"unwatch\",\"to\":\"/user/x\"}",
        "{\"op\":\"subscribe\",\"topic\":\"t\"}",
        "{\"op\":\"unsubscribe\",\"topic\":\"t\",\"group\":\"g\"}",
        "{\"op\":\"publish\",\"topic\":\"t\",\"json\":null}",
        "{\"op\":\"events\"}",
        "{\"op\":\"ping\"}",
    };
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        trpi_bridge_request request;
        good(lines[i], &request);
        UNIT_EQUAL(request.op, i + 1);
        UNIT_TRUE(strstr(lines[i], trpi_bridge_op_name(request.op)) != NULL);
        trpi_bridge_request_fini(&request);
    }
}

static void
all_keys_are_read(void)
{
    trpi_bridge_request request;
    good("{\"op\":\"ask\",\"id\":9007199254740991,\"actor\":\"a\",\"to\":\"/user/"
         "x\",\"timeoutMs\":7,"
         "\"type\":\"json\",\"json\":{\"k\":1},\"traceparent\":"
         "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}",
         &request);
    UNIT_TRUE(request.has_id && request.id == TRPI_BRIDGE_NUMBER_MAX);
    UNIT_TEXT(request.actor, "a");
    UNIT_TEXT(request.to, "/user/x");
    UNIT_EQUAL(request.timeout_ms, 7);
    UNIT_TRUE(request.has_trace && request.trace.span == 0x00f067aa0ba902b7u);
    trpi_bridge_request_fini(&request);
    good("{\"op\":\"tell\",\"to\":\"/x\",\"json\":1,\"traceparent\":"
         "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\"}",
         &request);
    UNIT_TRUE(!request.has_trace); /* it is not sampled */
    UNIT_EQUAL(request.timeout_ms, TRPI_BRIDGE_TIMEOUT_MS_DEFAULT);
    trpi_bridge_request_fini(&request);
    good("{\"op\":\"events\",\"types\":[\"MemberJoined\",\"MemberUp\"]}", &request);
    UNIT_EQUAL(request.event_bits, 5);
    trpi_bridge_request_fini(&request);
}

static void
bad(const char *line, int exit_code, const char *error)
{
    trpi_bridge_request request;
    trpi_control_refusal refusal = { 0 };
    UNIT_TRUE(trpi_bridge_request_parse(line, strlen(line), &request, &refusal) != TRP_OK);
    UNIT_EQUAL(refusal.exit, exit_code);
    UNIT_TEXT(refusal.error, error);
    UNIT_TRUE(request.json == NULL);
}

static void
what_is_wrong_is_said(void)
{
    bad("nonsense", 65, "invalid JSON at byte 0");
    bad("[1]", 65, "the line is no JSON object");
    bad("{}", 64, "key 'op' is missing, or no text");
    bad("{\"op\":\"tel\"}", 64, "no such op 'tel'; did you mean 'tell'?");
    bad("{\"op\":\"tell\",\"to\":\"/x\"}", 64, "op 'tell' needs key 'json', 'text' or 'base64'");
    bad("{\"op\":\"tell\",\"to\":\"/x\",\"jsn\":1}", 64, "op 'tell' has no key 'jsn'");
    bad("{\"op\":\"ping\",\"to\":\"/x\"}", 64, "op 'ping' has no key 'to'");
    bad("{\"op\":\"ask\",\"to\":\"/x\",\"json\":1}", 64, "op 'ask' needs key 'id'");
    bad("{\"op\":\"tell\",\"to\":\"/x\",\"json\":1,\"text\":\"\"}", 64,
        "a message has one of the keys 'json', 'text' and 'base64'");
    bad("{\"op\":\"tell\",\"to\":\"/x\",\"to\":\"/y\",\"json\":1}", 64, "key 'to' is given twice");
    bad("{\"op\":\"tell\",\"to\":5,\"json\":1}", 64,
        "key 'to': expected a text of 1 to 2048 bytes");
    bad("{\"op\":\"ping\",\"id\":1.5}", 64,
        "key 'id': expected a whole number from 0 to 9007199254740991");
    bad("{\"op\":\"ping\",\"id\":-1}", 64,
        "key 'id': expected a whole number from 0 to 9007199254740991");
    bad("{\"op\":\"reply\",\"reply\":0,\"json\":1}", 64,
        "key 'reply': expected a whole number from 1 to 9007199254740991");
    bad("{\"op\":\"host\",\"actor\":\"\"}", 64, "key 'actor': expected a text of 1 to 255 bytes");
    bad("{\"op\":\"tell\",\"to\":\"/x\",\"json\":1,\"traceparent\":\"x\"}", 64,
        "key 'traceparent': it is none of W3C Trace Context");
    bad("{\"op\":\"events\",\"types\":[\"Nope\"]}", 64,
        "key 'types': expected a list of event types");
}

static void
a_refusal_has_the_id_of_its_request(void)
{
    trpi_bridge_request request;
    trpi_control_refusal refusal = { 0 };
    const char *line = "{\"id\":7,\"op\":\"tell\"}";
    UNIT_TRUE(trpi_bridge_request_parse(line, strlen(line), &request, &refusal) != TRP_OK);
    char *answer = trpi_bridge_refuse(&request, 3, &refusal);
    UNIT_TEXT(answer,
              "{\"id\":7,\"ok\":false,\"exit\":64,\"error\":\"op 'tell' needs key 'to'\"}\n");
    cJSON_free(answer);
    answer = trpi_bridge_refuse(NULL, 3, &refusal);
    UNIT_TEXT(answer, "{\"event\":\"error\",\"line\":3,\"exit\":64,\"error\":\"op 'tell' needs key "
                      "'to'\"}\n");
    cJSON_free(answer);
}

/* ---- messages -------------------------------------------------------------------------------- */

#define B_ITEM(F, S) F(S, u32, count) F(S, text32, name)
#define B_MESSAGES(M, P) M(P, item, B_ITEM)
TRP_PROTOCOL(bridged, B_MESSAGES)

static trp_err
message_of(const char *keys, trpi_bridge_message *ret_message, trpi_control_refusal *ret_refusal)
{
    char line[512];
    trpi_bridge_request request;
    (void)snprintf(line, sizeof line, "{\"op\":\"tell\",\"to\":\"/x\",%s}", keys);
    good(line, &request);
    trp_err err = trpi_bridge_message_make(&request, ret_message, ret_refusal);
    if (err == TRP_OK && ret_message->owned == NULL) { /* borrowed from the request */
        UNIT_EQUAL(ret_message->bytes, strlen(request.text));
        ret_message->payload = NULL;
    }
    trpi_bridge_request_fini(&request);
    return err;
}

static void
messages_have_their_types(void)
{
    trpi_bridge_message m;
    trpi_control_refusal refusal = { 0 };
    UNIT_REQUIRE(trp_protocol_register(&bridged_protocol) == TRP_OK);
    UNIT_EQUAL(message_of("\"json\":{\"a\":[1]}", &m, &refusal), TRP_OK);
    UNIT_TRUE(m.type == &trp_json_type && m.bytes == 9 && memcmp(m.payload, "{\"a\":[1]}", 9) == 0);
    trpi_free(m.owned);
    UNIT_EQUAL(message_of("\"text\":\"hi\"", &m, &refusal), TRP_OK);
    UNIT_TRUE(m.type == &trp_string_type && m.bytes == 2);
    UNIT_EQUAL(message_of("\"base64\":\"AAE=\"", &m, &refusal), TRP_OK);
    UNIT_TRUE(m.type == &trp_bytes_type && m.bytes == 2 && memcmp(m.payload, "\0\1", 2) == 0);
    trpi_free(m.owned);
    UNIT_EQUAL(
        message_of("\"type\":\"bridged.item\",\"json\":{\"count\":3,\"name\":\"n\"}", &m, &refusal),
        TRP_OK);
    UNIT_TRUE(m.type == &bridged_item_type && ((const bridged_item *)m.payload)->count == 3);
    trpi_free(m.owned);
}

static void
messages_that_do_not_fit_are_refused(void)
{
    trpi_bridge_message m;
    trpi_control_refusal refusal = { 0 };
    UNIT_REQUIRE(trp_protocol_register(&bridged_protocol) == TRP_OK);
    UNIT_EQUAL(message_of("\"type\":\"no.such\",\"json\":{}", &m, &refusal), TRP_ENOTYPE);
    UNIT_TEXT(refusal.error, "no message type 'no.such' on this node");
    UNIT_EQUAL(message_of("\"type\":\"troupe.priv-mark\",\"json\":{}", &m, &refusal),
               TRP_EUNSUPPORTED);
    UNIT_TEXT(refusal.error,
              "messages of type troupe.priv-mark are not taken from outside the node");
    UNIT_EQUAL(message_of("\"type\":\"bridged.item\",\"json\":{\"count\":-3}", &m, &refusal),
               TRP_EDATA);
    UNIT_TEXT(refusal.error, "bridged.item: the value does not fit field 'count'");
    UNIT_EQUAL(message_of("\"type\":\"bridged.item\",\"base64\":\"AAE=\"", &m, &refusal),
               TRP_EDATA);
    UNIT_EQUAL(message_of("\"base64\":\"A\"", &m, &refusal), TRP_EDATA);
    UNIT_TEXT(refusal.error, "key 'base64' cannot be decoded");
    UNIT_EQUAL(message_of("\"type\":\"string\",\"json\":1", &m, &refusal), TRP_EDATA);
    UNIT_EQUAL(message_of("\"type\":\"bytes\",\"json\":1", &m, &refusal), TRP_EDATA);
    UNIT_EQUAL(message_of("\"type\":\"json\",\"text\":\"1\"", &m, &refusal), TRP_EDATA);
    UNIT_EQUAL(refusal.exit, TRPI_CTL_EXIT_DATA);
}

UNIT_BEGIN("bridge_request")
UNIT(lines_come_in_any_pieces)
UNIT(a_line_is_taken_up_to_the_limit)
UNIT(every_op_is_read)
UNIT(all_keys_are_read)
UNIT(what_is_wrong_is_said)
UNIT(a_refusal_has_the_id_of_its_request)
UNIT(messages_have_their_types)
UNIT(messages_that_do_not_fit_are_refused)
UNIT_END
