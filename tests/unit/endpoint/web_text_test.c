/* web_text_test.c - URIs of endpoints over HTTP and WebSocket, and heads of responses. */
#include <string.h>

#include "base/buffer.h"
#include "endpoint/web_text.h"
#include "tests/unit/unit.h"

static char reason[TRP_ENDPOINT_REASON_BYTES];
static trpi_uri uri;

static bool
reads(const char *text, bool produces, trpi_web_settings *s)
{
    reason[0] = '\0';
    UNIT_EQUAL(trpi_uri_parse(text, &uri, reason), TRP_OK);
    trp_err err = trpi_web_settings_read(&uri, produces, s, reason);
    UNIT_EQUAL(err == TRP_OK, reason[0] == '\0');
    return err == TRP_OK;
}

static void
addresses_and_options_are_read(void)
{
    trpi_web_settings s;
    UNIT_REQUIRE(
        reads("http://a.b:81/c%20d?prefix=1&connections=5&headers=2000&idle=9", false, &s));
    UNIT_TEXT(s.host, "a.b");
    UNIT_TEXT(s.path, "/c d");
    UNIT_TRUE(s.port == 81 && s.prefix == 1 && s.connections == 5 && s.idle_ms == 9 && !s.tls);
    UNIT_REQUIRE(reads("wss://[::1]?ca=/x", true, &s));
    UNIT_TEXT(s.host, "::1");
    UNIT_TEXT(s.path, "/");
    UNIT_TRUE(s.port == 443 && s.tls && s.connections == 1);
    UNIT_TRUE(reads("ws://h:65535/", false, &s) && !s.tls && s.port == 65535);
    UNIT_TRUE(reads("https://h?cert=a&key=b", false, &s));
    UNIT_TRUE(reads("http://h?connections=4096&headers=65000", false, &s));
    static const char *const wrong[] = { "http:h",
                                         "http://",
                                         "http://h:65536/",
                                         "http://h:/",
                                         "http://u@h/",
                                         "http://h:1x/",
                                         "http://[::1/",
                                         "http://[g]/",
                                         "http://h/?cert=a",
                                         "https://h/",
                                         "https://h?cert=a",
                                         "http://h?connections=0",
                                         "http://h?connections=4097",
                                         "http://h?headers=1023",
                                         "http://h?headers=65001",
                                         "http://h?idle=0",
                                         "http://h?prefix=2" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_FALSE(reads(wrong[i], false, &s));
    }
}

static void
paths_fit_whole_or_below(void)
{
    trpi_web_settings s;
    UNIT_REQUIRE(reads("http://h/a", false, &s));
    UNIT_TRUE(trpi_web_path_fits(&s, "/a"));
    UNIT_FALSE(trpi_web_path_fits(&s, "/a/b") || trpi_web_path_fits(&s, "/") ||
               trpi_web_path_fits(&s, ""));
    s.prefix = 1;
    UNIT_TRUE(trpi_web_path_fits(&s, "/a/b") && trpi_web_path_fits(&s, "/a"));
    UNIT_FALSE(trpi_web_path_fits(&s, "/ab"));
}

/* web-text-T2 */
static void
what_a_client_asks_for_is_one_word(void)
{
    char text[TRPI_WEB_TARGET_BYTES];
    trpi_web_settings s;
    UNIT_REQUIRE(reads("ws://h/a%0d%0ab%3fc%20%23?query=x%3D1%26y%3D%0a", true, &s));
    trpi_web_target_write(&s, text);
    UNIT_TEXT(text, "/a%0D%0Ab%3Fc%20%23?x=1&y=%0A");
}

static bool
head_is(const trp_endpoint_header *headers, uint32_t count, size_t bytes, const char *want)
{
    trpi_buffer out = { 0 };
    bool bodiless;
    reason[0] = '\0';
    trp_err err = trpi_web_head_write(headers, count, bytes, &out, &bodiless, reason);
    UNIT_EQUAL(err == TRP_OK, reason[0] == '\0');
    bool is = err != TRP_OK ? want == NULL
                            : want != NULL && strlen(want) == out.count &&
                                  memcmp(out.data, want, out.count) == 0;
    trpi_buffer_fini(&out);
    return is;
}

/* web-text-T1 */
static void
heads_hold_what_is_of_http(void)
{
    const trp_endpoint_header good[] = {
        { "http.status", "404" },           { "http.path", "/x" },
        { "Content-Type", "a\tb" },         { "Content-Length", "99" },
        { "Transfer-Encoding", "chunked" }, { "ws.kind", "text" },
    };
    UNIT_TRUE(head_is(good, 6, 3,
                      "HTTP/1.1 404 Not Found\r\nContent-Type: a\tb\r\ncontent-length: 3\r\n"));
    const trp_endpoint_header none = { "http.status", "204" };
    UNIT_TRUE(head_is(&none, 1, 0, "HTTP/1.1 204 No Content\r\n"));
    UNIT_TRUE(head_is(NULL, 0, 0, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n"));
    static const trp_endpoint_header wrong[] = {
        { "http.status", "100" },
        { "http.status", "600" },
        { "http.status", "20" },
        { "http.status", "2000" },
        { "http.status", "2x0" },
        { "a b", "c" },
        { "", "c" },
        { "a:", "c" },
        { "a\r\nb", "c" },
        { "a", "b\r\nc: d" },
        { "a", "b\nc" },
        { "a", "\x7f" },
        { "a", "\x01" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_TRUE(head_is(&wrong[i], 1, 0, NULL));
    }
}

UNIT_BEGIN("web_text")
UNIT(addresses_and_options_are_read)
UNIT(paths_fit_whole_or_below)
UNIT(what_a_client_asks_for_is_one_word)
UNIT(heads_hold_what_is_of_http)
UNIT_END
