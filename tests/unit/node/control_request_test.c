/* control_request_test.c - what a request may say, and how each mistake is answered. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/nearest.h"
#include "cluster/node/control_request.h"
#include "cluster/node/ctl_proto.h"
#include "tests/unit/unit.h"

static void
refused(const char *text, int exit_code, const char *error)
{
    trpi_control_request request;
    trpi_control_refusal refusal = { 0, "", "" };
    trp_err err =
        trpi_control_request_parse((const uint8_t *)text, strlen(text), &request, &refusal);
    UNIT_TRUE(err != TRP_OK);
    UNIT_EQUAL(refusal.exit, exit_code);
    UNIT_TEXT(refusal.error, error);
}

static trpi_control_request
accepted(const char *text)
{
    trpi_control_request request;
    trpi_control_refusal refusal = { 0, "", "" };
    memset(&request, 0, sizeof request);
    UNIT_EQUAL(trpi_control_request_parse((const uint8_t *)text, strlen(text), &request, &refusal),
               TRP_OK);
    UNIT_TEXT(refusal.error, "");
    return request;
}

/* HOW-09 */
static void
a_message_may_continue_a_trace(void)
{
    trpi_control_request r = accepted(
        "{\"cmd\":\"ask\",\"path\":\"/a\",\"type\":\"string\",\"text\":\"\",\"traceparent\":"
        "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}");
    UNIT_TRUE(r.has_trace);
    UNIT_EQUAL(r.trace.span, 0x00f067aa0ba902b7);
    trpi_control_request_fini(&r);
    r = accepted(
        "{\"cmd\":\"ask\",\"path\":\"/a\",\"type\":\"string\",\"text\":\"\",\"traceparent\":"
        "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\"}");
    UNIT_FALSE(r.has_trace); /* it is not recorded */
    trpi_control_request_fini(&r);
    refused("{\"cmd\":\"send\",\"path\":\"/a\",\"type\":\"string\",\"text\":\"\","
            "\"traceparent\":\"x\"}",
            64, "field 'traceparent': it is none of W3C Trace Context");
}

static void
fields_are_read_and_defaults_filled_in(void)
{
    trpi_control_request r =
        accepted("{\"v\":1,\"cmd\":\"leave\",\"member\":\"a:1\",\"wait\":false}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_LEAVE);
    UNIT_TEXT(r.member, "a:1");
    UNIT_FALSE(r.wait);
    UNIT_EQUAL(r.timeout_ms, TRPI_CTL_TIMEOUT_MS_LONG);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"ask\",\"path\":\"/user/a\",\"text\":\"x\",\"unknown\":[1]}");
    UNIT_TEXT(r.type, "string");
    UNIT_EQUAL(r.timeout_ms, TRPI_CTL_TIMEOUT_MS_DEFAULT);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"drain\",\"member\":\"a:1\",\"wait\":false}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_DRAIN);
    UNIT_TEXT(r.member, "a:1");
    UNIT_FALSE(r.wait);
    UNIT_EQUAL(r.timeout_ms, TRPI_CTL_TIMEOUT_MS_LONG);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"undrain\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_UNDRAIN);
    UNIT_TRUE(r.member == NULL && r.wait);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"why\",\"allMembers\":true}");
    UNIT_TRUE(r.all_members);
    trpi_control_request_fini(&r);
    refused("{\"cmd\":\"members\",\"allMembers\":true}", 64,
            "field 'allMembers': only status, why, peers and doctor are answered by all members");
    refused("{\"cmd\":\"doctor\",\"local\":true,\"allMembers\":true}", 64,
            "field 'allMembers': only status, why, peers and doctor are answered by all members");
    r = accepted("{\"cmd\":\"tree\",\"timeoutMs\":250}");
    UNIT_TEXT(r.path, "/");
    UNIT_EQUAL(r.depth, TRPI_CONTROL_DEPTH_DEFAULT);
    UNIT_EQUAL(r.timeout_ms, 250);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"send\",\"path\":\"/a\",\"type\":\"bytes\",\"base64\":\"AAH/\"}");
    UNIT_EQUAL(r.payload_bytes, 3);
    UNIT_EQUAL(r.payload[2], 0xff);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"fault\"}");
    UNIT_TEXT(r.action, "list");
    UNIT_TEXT(r.direction, "both");
    UNIT_TRUE(r.path == NULL && r.rule == NULL);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"fault\",\"action\":\"set\",\"peer\":\"a:1\",\"direction\":\"send\","
                 "\"rule\":\"blackhole\"}");
    UNIT_TEXT(r.path, "a:1");
    UNIT_TEXT(r.direction, "send");
    UNIT_TEXT(r.rule, "blackhole");
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"down\",\"uids\":[\"18446744073709551615\",7]}");
    UNIT_EQUAL(r.uids_count, 2);
    UNIT_TRUE(r.uids[0] == UINT64_MAX && r.uids[1] == 7);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"events\",\"types\":[\"MemberUp\",\"LeaderChanged\"]}");
    UNIT_EQUAL(r.event_bits, 1u << 2 | 1u << 9);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"deadletters\"}");
    UNIT_TRUE(r.after == 0 && r.count == 0 && !r.follow);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"logs\",\"after\":\"18446744073709551615\",\"count\":1000000,"
                 "\"follow\":true,\"level\":\"warning\",\"component\":\"cluster\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_LOGS);
    UNIT_TRUE(r.after == UINT64_MAX && r.count == TRPI_CONTROL_RECORDS_MAX && r.follow);
    UNIT_TEXT(r.level, "warning");
    UNIT_TEXT(r.component, "cluster");
    trpi_control_request_fini(&r);
}

static void
files_and_ends_of_actors_are_named(void)
{
    trpi_control_request r = accepted("{\"cmd\":\"upgrade\",\"plugin\":\"counter.so\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_UPGRADE);
    UNIT_TEXT(r.path, "counter.so");
    UNIT_EQUAL(r.timeout_ms, TRPI_CTL_TIMEOUT_MS_LONG);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"spawn\",\"path\":\"a\",\"plugin\":\"x.so:y\",\"text\":\"[1]\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_SPAWN);
    UNIT_TEXT(r.path, "a");
    UNIT_TEXT(r.plugin, "x.so:y");
    UNIT_TEXT(r.text, "[1]");
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"watch\",\"path\":\"/user/a\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_WATCH);
    UNIT_TEXT(r.path, "/user/a");
    trpi_control_request_fini(&r);
    refused("{\"cmd\":\"upgrade\"}", 64, "field 'plugin': missing");
    refused("{\"cmd\":\"upgrade\",\"plugin\":7}", 64, "field 'plugin': expected a text");
    refused("{\"cmd\":\"spawn\",\"plugin\":\"x.so\"}", 64, "field 'path': missing");
    refused("{\"cmd\":\"spawn\",\"path\":\"a\"}", 64, "field 'plugin': missing");
    refused("{\"cmd\":\"watch\"}", 64, "field 'path': missing");
}

static void
traces_are_shown_and_sampled(void)
{
    trpi_control_request r = accepted("{\"cmd\":\"trace\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_TRACE);
    UNIT_TEXT(r.action, "show");
    trpi_control_request_fini(&r);
    r = accepted(
        "{\"cmd\":\"trace\",\"action\":\"start\",\"path\":\"/user/a\",\"oneIn\":1000000000}");
    UNIT_EQUAL(r.count, 1000000000);
    trpi_control_request_fini(&r);
    refused("{\"cmd\":\"trace\",\"action\":\"start\",\"path\":\"/user/a\",\"oneIn\":1000000001}",
            64, "field 'oneIn': expected a number from 0 to 1000000000");
    refused("{\"cmd\":\"trace\",\"action\":\"start\"}", 64, "field 'path': missing");
    refused("{\"cmd\":\"trace\",\"action\":\"stop\"}", 64, "field 'path': missing");
    refused("{\"cmd\":\"trace\",\"action\":\"last\"}", 64,
            "field 'action': expected show, list, start or stop");
}

static void
topics_are_listed_and_published_to(void)
{
    trpi_control_request r = accepted("{\"cmd\":\"topics\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_TOPICS);
    UNIT_TRUE(r.path == NULL);
    UNIT_EQUAL(r.timeout_ms, TRPI_CTL_TIMEOUT_MS_DEFAULT);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"top\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_TOP);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"dashboard\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_DASHBOARD);
    trpi_control_request_fini(&r);
    refused("{\"cmd\":\"senders\"}", 64, "field 'path': missing");
    r = accepted("{\"cmd\":\"senders\",\"path\":\"/user/a\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_SENDERS);
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"topics\",\"path\":\"weather/*\"}");
    UNIT_TEXT(r.path, "weather/*");
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"publish\",\"path\":\"\\u00e9/ /#\",\"text\":\"snow\"}");
    UNIT_EQUAL(r.command, TRPI_CONTROL_PUBLISH);
    UNIT_TEXT(r.path, "\xc3\xa9/ /#"); /* no path of an actor */
    UNIT_TEXT(r.type, "string");
    UNIT_TEXT(r.text, "snow");
    trpi_control_request_fini(&r);
    r = accepted("{\"cmd\":\"publish\",\"path\":\"t\",\"type\":\"bytes\",\"base64\":\"AAH/\","
                 "\"timeoutMs\":250}");
    UNIT_EQUAL(r.payload_bytes, 3);
    UNIT_EQUAL(r.timeout_ms, 250);
    trpi_control_request_fini(&r);
    refused("{\"cmd\":\"publish\",\"text\":\"snow\"}", 64, "field 'path': missing");
    refused("{\"cmd\":\"publish\",\"path\":7,\"text\":\"snow\"}", 64,
            "field 'path': expected a text");
    refused("{\"cmd\":\"publish\",\"path\":\"t\"}", 64, "field 'text': missing");
    refused("{\"cmd\":\"publish\",\"path\":\"t\",\"base64\":\"AB\"}", 65,
            "field 'base64' cannot be decoded");
    refused("{\"cmd\":\"topics\",\"path\":[]}", 64, "field 'path': expected a text");
    refused("{\"cmd\":\"topic\"}", 64, "no such command 'topic'; did you mean 'topics'?");
}

static void
mistakes_are_answered_by_name(void)
{
    refused("", 65, "the request is no JSON: error at byte 0");
    refused("[]", 65, "the request is no JSON object");
    refused("{}", 64, "field 'cmd': missing");
    refused("{\"v\":2,\"cmd\":\"members\"}", 64,
            "the client speaks control protocol 2, this node 1");
    refused("{\"cmd\":\"membres\"}", 64, "no such command 'membres'; did you mean 'members'?");
    refused("{\"cmd\":\"xyzzyxyzzy\"}", 64, "no such command 'xyzzyxyzzy'");
    refused("{\"cmd\":7}", 64, "field 'cmd': expected a text");
    refused("{\"cmd\":\"down\"}", 64, "field 'member': missing");
    refused("{\"cmd\":\"fault\",\"action\":\"explode\"}", 64,
            "field 'action': expected list, set, clear or disconnect");
    refused("{\"cmd\":\"fault\",\"direction\":\"up\"}", 64,
            "field 'direction': expected send, receive or both");
    refused("{\"cmd\":\"fault\",\"action\":\"set\",\"rule\":\"pass\"}", 64,
            "field 'peer': missing");
    refused("{\"cmd\":\"fault\",\"action\":\"disconnect\"}", 64, "field 'peer': missing");
    refused("{\"cmd\":\"fault\",\"action\":\"set\",\"peer\":\"a:1\"}", 64, "field 'rule': missing");
    refused("{\"cmd\":\"ping\"}", 64, "field 'target': missing");
    refused("{\"cmd\":\"ask\",\"path\":\"/a\"}", 64, "field 'text': missing");
    refused("{\"cmd\":\"ask\",\"path\":\"/a\",\"base64\":\"AB\"}", 65,
            "field 'base64' cannot be decoded");
    refused("{\"cmd\":\"drain\",\"wait\":1}", 64, "field 'wait': expected true or false");
    refused("{\"cmd\":\"leave\",\"wait\":1}", 64, "field 'wait': expected true or false");
    refused("{\"cmd\":\"tree\",\"depth\":-1}", 64,
            "field 'depth': expected a number from 0 to 1000");
    refused("{\"cmd\":\"tree\",\"depth\":1001}", 64,
            "field 'depth': expected a number from 0 to 1000");
    refused("{\"cmd\":\"down\",\"member\":\"a:1\",\"uids\":[\"7\"]}", 64,
            "field 'uids': it stands without 'member' and 'unreachable'");
    refused("{\"cmd\":\"down\",\"uids\":[]}", 64,
            "field 'uids': expected a list of at least one uid");
    refused("{\"cmd\":\"down\",\"uids\":[\"7x\"]}", 64, "field 'uids': expected decimal uids");
    refused("{\"cmd\":\"join\",\"addresses\":[]}", 64,
            "field 'addresses': expected a list of at least one address");
    refused("{\"cmd\":\"join\",\"addresses\":[1]}", 64, "field 'addresses': expected texts");
    refused("{\"cmd\":\"stop\"}", 64, "field 'path': missing");
    refused("{\"cmd\":\"stop\",\"path\":\"/user/a\",\"action\":\"burn\"}", 64,
            "field 'action': expected stop, kill or restart");
    refused("{\"cmd\":\"deadletters\",\"after\":\"x\"}", 64,
            "field 'after': expected the number of a record, as decimal text");
    refused("{\"cmd\":\"deadletters\",\"count\":1000001}", 64,
            "field 'count': expected a number from 0 to 1000000");
    refused("{\"cmd\":\"logs\",\"level\":\"loud\"}", 64,
            "field 'level': expected error, warning, info or debug");
    refused("{\"cmd\":\"events\",\"types\":[\"MemberUpp\"]}", 64,
            "no such event type 'MemberUpp'; did you mean 'MemberUp'?");
}

static void
lists_are_limited(void)
{
    static const struct {
        const char *head, *item, *refusal;
        int max;
        size_t offset; /* of the count */
    } lists[] = { { "{\"cmd\":\"join\",\"addresses\":[", "\"a\"", "field 'addresses': more than 32",
                    TRPI_CONTROL_ADDRESSES_MAX, offsetof(trpi_control_request, addresses_count) },
                  { "{\"cmd\":\"down\",\"uids\":[", "\"7\"", "field 'uids': more than 256",
                    TRPI_CONTROL_DOWNS_MAX, offsetof(trpi_control_request, uids_count) } };
    char text[2048];
    for (size_t which = 0; which < 4; which++) {
        size_t list = which / 2, used = (size_t)snprintf(text, sizeof text, "%s", lists[list].head);
        int extra = (int)which % 2;
        for (int i = 0; i < lists[list].max + extra; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "," : "",
                                     lists[list].item);
        }
        snprintf(text + used, sizeof text - used, "]}");
        if (extra) {
            refused(text, 64, lists[list].refusal);
        } else {
            trpi_control_request r = accepted(text);
            size_t taken;
            memcpy(&taken, (const char *)&r + lists[list].offset, sizeof taken);
            UNIT_EQUAL(taken, (size_t)lists[list].max);
            trpi_control_request_fini(&r);
        }
    }
}

static void
payload_is_limited(void)
{
    size_t room = TRPI_CTL_PAYLOAD_BYTES_MAX + 128;
    char *text = malloc(room);
    UNIT_REQUIRE(text != NULL);
    for (size_t extra = 0; extra < 2; extra++) {
        size_t bytes = TRPI_CTL_PAYLOAD_BYTES_MAX + extra;
        int head = snprintf(text, room, "{\"cmd\":\"send\",\"path\":\"/a\",\"text\":\"");
        memset(text + head, 'x', bytes);
        snprintf(text + (size_t)head + bytes, room - (size_t)head - bytes, "\"}");
        if (extra) {
            refused(text, 65, "the message is larger than 393216 bytes");
        } else {
            trpi_control_request r = accepted(text);
            trpi_control_request_fini(&r);
        }
    }
    free(text);
}

static void
base64_goes_there_and_back(void)
{
    const uint8_t bytes[] = { 0, 1, 0xfe, 0xff, 'a', 'b' };
    for (size_t count = 0; count <= sizeof bytes; count++) {
        char *text = trpi_base64_encode(bytes, count);
        uint8_t *back = NULL;
        size_t back_count = 99;
        UNIT_REQUIRE(text != NULL);
        UNIT_EQUAL(trpi_base64_decode(text, strlen(text), &back, &back_count), TRP_OK);
        UNIT_EQUAL(back_count, count);
        UNIT_TRUE(back && memcmp(back, bytes, count) == 0);
        trpi_free(back);
        trpi_free(text);
    }
}

static void
broken_base64_is_refused(void)
{
    static const char *const broken[] = {
        "A", "AB", "ABC", "AB C", "A===", "AB=C", "====", "AAA\n"
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        uint8_t *bytes = NULL;
        size_t count = 0;
        UNIT_EQUAL(trpi_base64_decode(broken[i], strlen(broken[i]), &bytes, &count), TRP_EDATA);
    }
}

static void
nearest_finds_one_slip_and_no_stranger(void)
{
    static const char *const names[] = { "members", "member-status", "leave" };
    UNIT_TEXT(trpi_nearest("memebrs", names, 3), "members");
    UNIT_TEXT(trpi_nearest("leaf", names, 3), "leave");
    UNIT_TRUE(trpi_nearest("quit", names, 3) == NULL);
    UNIT_TRUE(trpi_nearest("", names, 3) == NULL);
    char shorter[TRPI_NEAREST_BYTES_MAX + 1], longer[TRPI_NEAREST_BYTES_MAX + 2];
    memset(shorter, 'n', sizeof shorter);
    memset(longer, 'n', sizeof longer);
    shorter[TRPI_NEAREST_BYTES_MAX] = longer[TRPI_NEAREST_BYTES_MAX + 1] = '\0';
    const char *const one[] = { shorter };
    UNIT_TRUE(trpi_nearest(&shorter[1], one, 1) == shorter);
    UNIT_TRUE(trpi_nearest(longer, one, 1) == NULL);
    UNIT_EQUAL(trpi_edit_distance("ab", "ba"), 1);
    UNIT_EQUAL(trpi_edit_distance("", "abc"), 3);
}

UNIT_BEGIN("control_request")
UNIT(a_message_may_continue_a_trace)
UNIT(fields_are_read_and_defaults_filled_in)
UNIT(files_and_ends_of_actors_are_named)
UNIT(traces_are_shown_and_sampled)
UNIT(topics_are_listed_and_published_to)
UNIT(mistakes_are_answered_by_name)
UNIT(lists_are_limited)
UNIT(payload_is_limited)
UNIT(base64_goes_there_and_back)
UNIT(broken_base64_is_refused)
UNIT(nearest_finds_one_slip_and_no_stranger)
UNIT_END
