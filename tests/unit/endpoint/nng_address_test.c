/* nng_address_test.c - addresses, and the lengths of parts. */
#include "endpoint/nng_address.h"
#include "tests/unit/unit.h"

#include <string.h>

/* ZMQ-03 */
static void
addresses_of_four_transports_pass(void)
{
    static const char *const good[] = { "tcp://127.0.0.1:1", "tcp://*:65535",  "tcp://[::1]:0",
                                        "tcp://:80",         "tcp://host:80",  "ipc:///tmp/a",
                                        "abstract://a",      "inproc://a name" };
    static const char *const bad[] = { "",           "tcp://",        "tcp://host",
                                       "tcp://h:",   "tcp://h:65536", "tcp://h:8a",
                                       "tcp://h:1/", "tcp://a@b:1",   "tcp://::1:80",
                                       "ipc://",     "127.0.0.1:1",   "inproc://" };
    static const char *const others[] = { "tls+tcp://h:1", "ws://h:1/", "wss://h:1/", "http://h" };
    char longest[400];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        UNIT_EQUAL(trpi_nng_address_check(good[i]), TRP_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_EQUAL(trpi_nng_address_check(bad[i]), TRP_EINVAL);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        UNIT_EQUAL(trpi_nng_address_check(others[i]), TRP_EUNSUPPORTED);
    }
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "ipc://", 6);
    longest[6 + 107] = '\0';
    UNIT_EQUAL(trpi_nng_address_check(longest), TRP_OK);
    longest[6 + 107] = 'a';
    longest[6 + 108] = '\0';
    UNIT_EQUAL(trpi_nng_address_check(longest), TRP_EINVAL);
}

static void
a_list_is_taken_one_by_one(void)
{
    const char *list = "  tcp://a:1 ipc:///b  ";
    char url[TRPI_NNG_URL_BYTES];
    UNIT_TRUE(trpi_nng_address_next(&list, url));
    UNIT_TEXT(url, "tcp://a:1");
    UNIT_TRUE(trpi_nng_address_next(&list, url));
    UNIT_TEXT(url, "ipc:///b");
    UNIT_FALSE(trpi_nng_address_next(&list, url));
    list = NULL;
    UNIT_FALSE(trpi_nng_address_next(&list, url));
}

static void
names_become_numbers(void)
{
    char url[TRPI_NNG_URL_BYTES];
    UNIT_EQUAL(trpi_nng_address_resolve("tcp://localhost:5", url), TRP_OK);
    UNIT_TRUE(strcmp(url, "tcp://127.0.0.1:5") == 0 || strcmp(url, "tcp://[::1]:5") == 0);
    UNIT_EQUAL(trpi_nng_address_resolve("tcp://*:5", url), TRP_OK);
    UNIT_TEXT(url, "tcp://*:5");
    UNIT_EQUAL(trpi_nng_address_resolve("tcp://[::1]:5", url), TRP_OK);
    UNIT_TEXT(url, "tcp://[::1]:5");
    UNIT_EQUAL(trpi_nng_address_resolve("ipc:///localhost", url), TRP_OK);
    UNIT_TEXT(url, "ipc:///localhost");
}

/* ZMQ-08 */
static void
lengths_are_read_as_they_were_written(void)
{
    uint8_t body[1000];
    trp_bytes parts[TRP_NNG_PARTS_MAX];
    uint32_t count, lengths[TRP_NNG_PARTS_MAX];
    for (uint32_t n = 1; n <= TRP_NNG_PARTS_MAX; n++) {
        size_t at = 0;
        for (uint32_t i = 0; i < n; i++) {
            parts[i] = TRP_BYTES_LITERAL("abcdef");
            parts[i] = trp_bytes_slice(parts[i], 0, i % 7);
            at += i % 7;
        }
        memset(body, 'x', sizeof body);
        trpi_nng_lengths_write(parts, n, body + at);
        UNIT_TRUE(trpi_nng_lengths_read(body, at + trpi_nng_lengths_bytes(n), &count, lengths));
        UNIT_EQUAL(count, n);
        UNIT_EQUAL(lengths[n - 1], (n - 1) % 7);
    }
}

/* nng-parts-F1 */
static void
lengths_that_do_not_fit_are_refused(void)
{
    uint32_t count, lengths[TRP_NNG_PARTS_MAX];
    uint8_t body[12 + 4 * 66] = "abcd";
    body[7] = 4;
    body[11] = 1;
    UNIT_TRUE(trpi_nng_lengths_read(body, 12, &count, lengths));
    for (size_t bytes = 0; bytes < 12; bytes++) {
        UNIT_FALSE(trpi_nng_lengths_read(body, bytes, &count, lengths));
    }
    body[7] = 3; /* a byte is of no part */
    UNIT_FALSE(trpi_nng_lengths_read(body, 12, &count, lengths));
    body[7] = 5;
    UNIT_FALSE(trpi_nng_lengths_read(body, 12, &count, lengths));
    body[4] = 0xff;
    UNIT_FALSE(trpi_nng_lengths_read(body, 12, &count, lengths));
    body[4] = 0;
    body[7] = 4;
    body[11] = 0;
    UNIT_FALSE(trpi_nng_lengths_read(body, 12, &count, lengths));
    memset(body, 0, sizeof body);
    body[4 * 64 + 3] = TRP_NNG_PARTS_MAX;
    UNIT_TRUE(trpi_nng_lengths_read(body, 4 * 65, &count, lengths));
    body[4 * 64 + 3] = 0;
    body[4 * 65 + 3] = TRP_NNG_PARTS_MAX + 1;
    UNIT_FALSE(trpi_nng_lengths_read(body, 4 * 66, &count, lengths));
}

UNIT_BEGIN("nng-address")
UNIT(addresses_of_four_transports_pass)
UNIT(a_list_is_taken_one_by_one)
UNIT(names_become_numbers)
UNIT(lengths_are_read_as_they_were_written)
UNIT(lengths_that_do_not_fit_are_refused)
UNIT_END
