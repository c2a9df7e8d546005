/* web_text_fuzz.c - texts of endpoints over HTTP and WebSocket: the first line of an input is a
 * URI, the others are headers NAME=VALUE of a response (';' stands for a line's end in them).
 *
 * Corpus: tests/fuzz/corpus/web_text.
 */
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "endpoint/web_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
uri_try(const char *text)
{
    char reason[TRP_ENDPOINT_REASON_BYTES] = "", target[TRPI_WEB_TARGET_BYTES];
    trpi_uri uri;
    trpi_web_settings s;
    if (trpi_uri_parse(text, &uri, reason) != TRP_OK) {
        return;
    }
    for (int produces = 0; produces < 2; produces++) {
        reason[0] = '\0';
        trp_err err = trpi_web_settings_read(&uri, produces != 0, &s, reason);
        trpi_assert((err == TRP_OK) == (reason[0] == '\0'));
        if (err == TRP_OK) {
            trpi_assert(s.path[0] == '/' && s.host[0] != '\0' && trpi_web_path_fits(&s, s.path));
            trpi_web_target_write(&s, target);
            trpi_assert(target[0] == '/' && strlen(target) < sizeof target);
            for (const char *at = target; *at != '\0'; at++) { /* web-text-T2 */
                trpi_assert(*at > ' ' && *at < 0x7f && *at != '#');
            }
        }
    }
}

/* web-text-T1: as many lines as fields, each with one end. */
static void
head_try(const trp_endpoint_header *headers, uint32_t count)
{
    char reason[TRP_ENDPOINT_REASON_BYTES] = "";
    trpi_buffer out = { 0 };
    bool bodiless;
    uint32_t lines = 0;
    trp_err err = trpi_web_head_write(headers, count, 7, &out, &bodiless, reason);
    trpi_assert((err == TRP_OK) == (reason[0] == '\0'));
    for (size_t i = 0; err == TRP_OK && i < out.count; i++) {
        uint8_t c = out.data[i];
        trpi_assert(c != '\0' && c != 0x7f);
        trpi_assert(c != '\r' || (i + 1 < out.count && out.data[i + 1] == '\n'));
        trpi_assert(c != '\n' || (i > 1 && out.data[i - 1] == '\r' && out.data[i - 2] != '\n'));
        lines += c == '\n' ? 1 : 0;
    }
    trpi_assert(lines <= count + 2);
    trpi_buffer_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    trp_endpoint_header headers[TRP_ENDPOINT_HEADERS_MAX];
    uint32_t count = 0;
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    char *at = strchr(text, '\n');
    if (at != NULL) {
        *at++ = '\0';
    }
    uri_try(text);
    while (at != NULL && count < TRP_ENDPOINT_HEADERS_MAX) {
        char *next = strchr(at, '\n'), *value;
        if (next != NULL) {
            *next++ = '\0';
        }
        for (char *c = at; *c != '\0'; c++) {
            *c = *c == ';' ? '\n' : *c;
        }
        if ((value = strchr(at, '=')) != NULL) {
            *value++ = '\0';
            headers[count++] = (trp_endpoint_header){ at, value };
        }
        at = next;
    }
    head_try(headers, count);
    return 0;
}
