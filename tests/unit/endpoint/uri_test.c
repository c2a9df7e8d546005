/* uri_test.c - URIs of endpoints, and what their schemes accept. */
#include <troupe/endpoint.h>

#include "endpoint/uri.h"
#include "tests/unit/unit.h"

/* CAM-01 */
static void
a_uri_has_scheme_path_and_decoded_options(void)
{
    char reason[TRP_ENDPOINT_REASON_BYTES];
    trpi_uri uri;
    uint32_t number = 9;
    UNIT_EQUAL(trpi_uri_parse("file:/a%20b?x=1&y=%3d%26&x=2", &uri, reason), TRP_OK);
    UNIT_TEXT(uri.scheme, "file");
    UNIT_TEXT(uri.path, "/a b");
    UNIT_EQUAL(uri.options_count, 3);
    UNIT_TEXT(trpi_uri_option(&uri, "y", 0), "=&");
    UNIT_TEXT(trpi_uri_option(&uri, "x", 1), "2");
    UNIT_TRUE(trpi_uri_option(&uri, "x", 2) == NULL);
    UNIT_EQUAL(trpi_uri_number(&uri, "x", 1, 1, &number, reason), TRP_OK);
    UNIT_EQUAL(number, 1);
    UNIT_EQUAL(trpi_uri_number(&uri, "x", 2, 3, &number, reason), TRP_EINVAL);
    UNIT_EQUAL(trpi_uri_number(&uri, "y", 0, 9, &number, reason), TRP_EINVAL);
    UNIT_EQUAL(trpi_uri_number(&uri, "z", 0, 9, &number, reason), TRP_OK);
    UNIT_EQUAL(number, 1);
}

/* CAM-01: each has a sentence. */
static void
texts_that_are_no_uris_are_refused(void)
{
    static const char *const bad[] = { "",       ":",      "file",   "/file:a", "f:%",
                                       "f:%0",   "f:%00",  "f:%zz",  "f:?x",    "f:?=1",
                                       "f:?x=%", "f:?%0a", "File:a", "f:?x=1&&" };
    char reason[TRP_ENDPOINT_REASON_BYTES], text[TRP_ENDPOINT_URI_BYTES_MAX + 2];
    trpi_uri uri;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        reason[0] = '\0';
        UNIT_EQUAL(trpi_uri_parse(bad[i], &uri, reason), TRP_EINVAL);
        UNIT_TRUE(reason[0] != '\0');
    }
    memset(text, 'a', sizeof text);
    text[1] = ':';
    text[TRP_ENDPOINT_URI_BYTES_MAX] = '\0';
    UNIT_EQUAL(trpi_uri_parse(text, &uri, reason), TRP_OK);
    text[TRP_ENDPOINT_URI_BYTES_MAX] = 'a';
    text[TRP_ENDPOINT_URI_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trpi_uri_parse(text, &uri, reason), TRP_EINVAL);
    size_t at = (size_t)snprintf(text, sizeof text, "a:?");
    for (int i = 0; i < TRPI_URI_OPTIONS_MAX; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "x=1&");
    }
    UNIT_EQUAL(trpi_uri_parse(text, &uri, reason), TRP_OK);
    snprintf(text + at, sizeof text - at, "x=1");
    UNIT_EQUAL(trpi_uri_parse(text, &uri, reason), TRP_EINVAL);
}

/* CAM-01 */
static void
schemes_say_what_they_accept(void)
{
    static const struct {
        const char *uri;
        int produces;
        trp_err err;
    } rows[] = { { "timer:a", 0, TRP_OK },
                 { "timer:a?period=1&delay=0&count=4294967295", 0, TRP_OK },
                 { "timer:", 0, TRP_EINVAL },
                 { "timer:a?period=0", 0, TRP_EINVAL },
                 { "timer:a?perod=1", 0, TRP_EINVAL },
                 { "timer:a", 1, TRP_EUNSUPPORTED },
                 { "file:/tmp", 0, TRP_OK },
                 { "file:/tmp", 1, TRP_OK },
                 { "file:/tmp?delete=1", 1, TRP_EINVAL },
                 { "file:/tmp?delete=2", 0, TRP_EINVAL },
                 { "file:/tmp?done=../x", 0, TRP_EINVAL },
                 { "file:/tmp?failed=..", 0, TRP_EINVAL },
                 { "file:", 0, TRP_EINVAL },
                 { "exec:/bin/cat?arg=a&arg=b&parallel=64", 1, TRP_OK },
                 { "exec:cat", 1, TRP_EINVAL },
                 { "exec:/bin/cat?parallel=65", 1, TRP_EINVAL },
                 { "exec:/bin/cat", 0, TRP_EUNSUPPORTED },
                 { "jms:queue", 0, TRP_EUNSUPPORTED } };
    char reason[TRP_ENDPOINT_REASON_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        UNIT_EQUAL(trp_endpoint_check(rows[i].uri, rows[i].produces, reason), rows[i].err);
        UNIT_EQUAL(reason[0] != '\0', rows[i].err != TRP_OK);
    }
}

UNIT_BEGIN("uri")
UNIT(a_uri_has_scheme_path_and_decoded_options)
UNIT(texts_that_are_no_uris_are_refused)
UNIT(schemes_say_what_they_accept)
UNIT_END
