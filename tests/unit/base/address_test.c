/* Addresses: what is read, what is refused with which hint, limits, order, hash.
 * Proves REMOTE-05. */
#include <troupe/cluster.h>

#include "base/address.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

static trpi_address
parsed(const char *text)
{
    trpi_address address = { 0 };

    UNIT_EQUAL(trpi_address_parse(text, &address, NULL, NULL), TRP_OK);
    return address;
}

static void
a_remote_address_is_read_and_written(void)
{
    const char *const texts[] = {
        "troupe.tcp://demo@10.0.0.1:2552",    "troupe.tls://demo@host-1.example.com:1",
        "troupe.mem://A-b_9@n17:65535",       "troupe.tcp://demo@[::1]:2552",
        "troupe.tcp://demo@[fe80::1:2]:2552", "troupe://demo",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        trpi_address address = parsed(texts[i]);
        char text[TRPI_ADDRESS_TEXT_BYTES];

        UNIT_TEXT(trpi_address_format(&address, text, sizeof text), texts[i]);
    }
}

static void
parts_stand_where_they_belong(void)
{
    trpi_address address = parsed("troupe.tcp://demo@10.0.0.1:2552");

    UNIT_TEXT(address.protocol, "troupe.tcp");
    UNIT_TEXT(address.system, "demo");
    UNIT_TEXT(address.host, "10.0.0.1");
    UNIT_EQUAL(address.port, 2552);
}

static void
an_ipv6_host_has_one_text(void)
{
    trpi_address a = parsed("troupe.tcp://demo@[0:0:0:0:0:0:0:1]:2552");
    trpi_address b = parsed("troupe.tcp://demo@[::1]:2552");

    UNIT_TEXT(a.host, "::1");
    UNIT_TRUE(trpi_address_equal(&a, &b));
}

static void
the_path_behind_an_address_is_handed_back(void)
{
    trpi_address address;
    const char *rest = NULL;
    const char *hint = NULL;

    UNIT_EQUAL(trpi_address_parse("troupe.tcp://d@h:1/user/a", &address, &rest, NULL), TRP_OK);
    UNIT_TEXT(rest, "/user/a");
    UNIT_EQUAL(trpi_address_parse("troupe.tcp://d@h:1", &address, &rest, NULL), TRP_OK);
    UNIT_TEXT(rest, "");
    UNIT_EQUAL(trpi_address_parse("troupe://d/user", &address, &rest, NULL), TRP_OK);
    UNIT_TEXT(rest, "/user");
    UNIT_EQUAL(trpi_address_parse("troupe.tcp://d@h:1/user", &address, NULL, &hint), TRP_EINVAL);
    UNIT_TRUE(strstr(hint, "path") != NULL);
}

static void
refused(const char *text, const char *word)
{
    trpi_address address;
    trpi_address untouched;
    const char *hint = NULL;
    const char *rest = NULL;
    char complaint[512];

    memset(&address, 0xa5, sizeof address);
    untouched = address;
    if (trpi_address_parse(text, &address, &rest, &hint) != TRP_EINVAL) {
        snprintf(complaint, sizeof complaint, "accepted: %s", text);
        UNIT_FAIL(complaint);
        return;
    }
    UNIT_EQUAL(memcmp(&address, &untouched, sizeof address), 0);
    UNIT_TRUE(rest == NULL);
    if (hint == NULL || strstr(hint, word) == NULL) {
        snprintf(complaint, sizeof complaint, "%.200s: hint \"%s\" lacks \"%s\"", text,
                 hint == NULL ? "(none)" : hint, word);
        UNIT_FAIL(complaint);
    }
}

/* REMOTE-04, GAP-01 */
static void
a_mistake_is_named_and_the_right_form_shown(void)
{
    refused(NULL, "empty");
    refused("", "empty");
    refused("demo@host:2552", "://");
    refused("akka.tcp://demo@host:2552", "did you mean troupe.tcp");
    refused("akka://demo", "did you mean troupe");
    refused("http://demo@host:2552", "unknown protocol");
    refused("troupes.tcp://demo@host:2552", "unknown protocol");
    refused("troupe.://demo@host:2552", "transport is missing");
    refused("troupe.TCP://demo@host:2552", "characters");
    refused("troupe.tcp://host:2552", "system name is missing");
    refused("troupe.tcp://@host:2552", "system name is empty");
    refused("troupe.tcp://-a@host:2552", "system name");
    refused("troupe.tcp://a.b@host:2552", "system name has other characters");
    refused("troupe.tcp://a b@host:2552", "system name has other characters");
    refused("troupe://", "system name is empty");
    refused("troupe://demo@host:1", "no host");
    refused("troupe://de.mo", "characters");
    refused("troupe.tcp://demo@:2552", "host is missing");
    refused("troupe.tcp://demo@", "host is missing");
    refused("troupe.tcp://demo@a@b:1", "two '@'");
    refused("troupe.tcp://demo@ho st:1", "host has other characters");
    refused("troupe.tcp://demo@::1:2552", "brackets");
    refused("troupe.tcp://demo@fe80::1:2552", "brackets");
    refused("troupe.tcp://demo@[::1:2552", "']'");
    refused("troupe.tcp://demo@[host]:2552", "no IPv6");
    refused("troupe.tcp://demo@[]:2552", "no IPv6");
    refused("troupe.tcp://demo@[::1]", "port is missing");
    refused("troupe.tcp://demo@host", "port is missing");
    refused("troupe.tcp://demo@host/user/a", "port is missing");
    refused("troupe.tcp://demo@host:", "port is missing");
    refused("troupe.tcp://demo@host:/user", "port is missing");
    refused("troupe.tcp://demo@host:x", "no number");
    refused("troupe.tcp://demo@host:25x", "no number");
    refused("troupe.tcp://demo@host:-1", "no number");
    refused("troupe.tcp://demo@host:+1", "no number");
    refused("troupe.tcp://demo@host:0", "range");
    refused("troupe.tcp://demo@host:65536", "range");
    refused("troupe.tcp://demo@host:99999999999999999999", "range");
    refused("troupe.tcp://demo@host:02552", "starts with 0");
}

/* "<protocol>://<system>@<host>:1" with parts of the given lengths. */
static trp_err
parse_lengths(size_t protocol, size_t system, size_t host, const char **ret_hint)
{
    char text[TRPI_ADDRESS_TEXT_BYTES + 16];
    char name[TRPI_HOST_BYTES_MAX + 2];
    trpi_address address;
    size_t used;

    memset(name, 'a', sizeof name);
    used = (size_t)snprintf(text, sizeof text, "troupe.%.*s://%.*s@%.*s:1", (int)(protocol - 7),
                            name, (int)system, name, (int)host, name);
    UNIT_REQUIRE(used < sizeof text);
    return trpi_address_parse(text, &address, NULL, ret_hint);
}

static void
each_part_may_be_as_long_as_its_limit_and_no_longer(void)
{
    const char *hint = NULL;

    UNIT_EQUAL(
        parse_lengths(TRPI_PROTOCOL_BYTES_MAX, TRPI_SYSTEM_BYTES_MAX, TRPI_HOST_BYTES_MAX, &hint),
        TRP_OK);
    UNIT_EQUAL(parse_lengths(TRPI_PROTOCOL_BYTES_MAX + 1, 1, 1, &hint), TRP_EINVAL);
    UNIT_TRUE(strstr(hint, "24 bytes") != NULL);
    UNIT_EQUAL(parse_lengths(10, TRPI_SYSTEM_BYTES_MAX + 1, 1, &hint), TRP_EINVAL);
    UNIT_TRUE(strstr(hint, "63 bytes") != NULL);
    UNIT_EQUAL(parse_lengths(10, 1, TRPI_HOST_BYTES_MAX + 1, &hint), TRP_EINVAL);
    UNIT_TRUE(strstr(hint, "253 bytes") != NULL);
}

static void
the_longest_address_fits_its_text_buffer(void)
{
    trpi_address address = { 0 };
    char text[TRPI_ADDRESS_TEXT_BYTES];
    char small[8];

    memset(address.protocol, 'p', TRPI_PROTOCOL_BYTES_MAX);
    memset(address.system, 's', TRPI_SYSTEM_BYTES_MAX);
    memset(address.host, 'h', TRPI_HOST_BYTES_MAX);
    address.port = 65535;
    trpi_address_format(&address, text, sizeof text);
    UNIT_EQUAL(strlen(text), TRPI_ADDRESS_TEXT_BYTES - 1);
    UNIT_TRUE(TRPI_ADDRESS_TEXT_BYTES <= TRP_ADDRESS_BYTES); /* what programs make room for */
    UNIT_TEXT(trpi_address_format(&address, small, sizeof small), "ppppppp");
}

/* REMOTE-64 */
static void
adapters_stand_before_the_transport(void)
{
    trpi_address shown = parsed("troupe.trttl.gremlin.tcp://demo@10.0.0.1:2552");
    trpi_address plain = parsed("troupe.tcp://demo@10.0.0.1:2552");
    char text[TRPI_ADDRESS_TEXT_BYTES];

    UNIT_TEXT(shown.protocol, "troupe.trttl.gremlin.tcp");
    UNIT_EQUAL(strlen(shown.protocol), TRPI_PROTOCOL_BYTES_MAX);
    UNIT_TEXT(trpi_address_format(&shown, text, sizeof text),
              "troupe.trttl.gremlin.tcp://demo@10.0.0.1:2552");
    UNIT_FALSE(trpi_address_equal(&shown, &plain));
    refused("troupe..tcp://demo@host:2552", "empty part");
    refused("troupe.trttl..tcp://demo@host:2552", "empty part");
    refused("troupe.trttl.://demo@host:2552", "transport is missing");
}

/* MEMB-16, MEMB-37: Host bytes, then port as a number (999 before 2552), then uid. */
static void
order_is_host_then_port_as_a_number_then_uid(void)
{
    const char *const texts[] = {
        "troupe.tcp://z@10.0.0.1:999",  "troupe.tcp://a@10.0.0.1:2552",
        "troupe.tls://a@10.0.0.1:2552", "troupe.tcp://b@10.0.0.1:2552",
        "troupe.tcp://a@10.0.0.10:1",   "troupe.tcp://a@10.0.0.2:1",
    };
    trpi_node_id a = { parsed("troupe.tcp://z@h:1"), 1 };
    trpi_node_id b = { parsed("troupe.tcp://a@h:1"), 2 };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t j = 0; j < sizeof texts / sizeof texts[0]; j++) {
            trpi_address left = parsed(texts[i]);
            trpi_address right = parsed(texts[j]);

            UNIT_EQUAL(trpi_address_compare(&left, &right), (i > j) - (i < j));
            UNIT_EQUAL(trpi_address_equal(&left, &right), i == j);
        }
    }
    UNIT_EQUAL(trpi_node_id_compare(&a, &b), -1); /* uid before system */
    UNIT_EQUAL(trpi_node_id_compare(&b, &a), 1);
    b.uid = 1;
    UNIT_EQUAL(trpi_node_id_compare(&a, &b), 1);
    UNIT_FALSE(trpi_node_id_equal(&a, &b));
    b = a;
    UNIT_TRUE(trpi_node_id_equal(&a, &b));
    b.uid = UINT64_MAX; /* no wrap-around in the comparison */
    UNIT_EQUAL(trpi_node_id_compare(&a, &b), -1);
}

static void
equal_addresses_hash_equal_on_every_machine(void)
{
    trpi_address a = parsed("troupe.tcp://demo@10.0.0.1:2552");
    trpi_address b = parsed("troupe.tcp://demo@10.0.0.1:2552");
    trpi_address c = parsed("troupe.tcp://demo@10.0.0.1:2553");

    UNIT_TRUE(trpi_address_hash(&a) == trpi_address_hash(&b));
    UNIT_TRUE(trpi_address_hash(&a) != trpi_address_hash(&c));
    UNIT_TRUE(trpi_address_hash(&a) == 0x31596101e0af9c0au);
}

UNIT_BEGIN("address")
UNIT(a_remote_address_is_read_and_written)
UNIT(parts_stand_where_they_belong)
UNIT(an_ipv6_host_has_one_text)
UNIT(the_path_behind_an_address_is_handed_back)
UNIT(a_mistake_is_named_and_the_right_form_shown)
UNIT(each_part_may_be_as_long_as_its_limit_and_no_longer)
UNIT(the_longest_address_fits_its_text_buffer)
UNIT(adapters_stand_before_the_transport)
UNIT(order_is_host_then_port_as_a_number_then_uid)
UNIT(equal_addresses_hash_equal_on_every_machine)
UNIT_END
