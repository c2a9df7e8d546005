/* log_format.c - the text of a log line.
 *
 *     2026-11-20T12:03:01.204Z info    /user/bank opened the vault {user=ann}
 *     {"time":"2026-11-20T12:03:01.204Z","level":"info","source":"/user/bank","kind":"bank",
 *      "thread":"demo-0","message":"opened the vault amount=5","fields":{"amount":"5"},
 *      "cause":"TRP_EDATA","mdc":{"user":"ann"}}                                     (one line)
 *     <6>/user/bank opened the vault {user=ann}             for journald, which adds time and
 * host
 *
 * Fields.  The words key=value, key="some words" at the end of a text: programs find them by name,
 *          people read them in place. They stay in the text.
 *
 * Must hold.
 *   log-format-F1  A line is one line: control characters are written as \xNN or \u00NN.
 *   log-format-F2  JSON is valid whatever the strings hold: bytes that are no UTF-8 become U+FFFD,
 *       and a line that is too long is cut inside a string, not inside the object.
 * Tests.   tests/unit/actor/log_test.c, tests/unit/node/node_options_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "actor/kernel/run.h"
#include "actor/log/log.h"
#include "base/assert.h"

#define TAIL_BYTES 16u /* for the end of the line, and for the character that crosses the limit */

static const char *const level_names[] = { "?", "error", "warning", "info", "debug" };

typedef struct line_buffer {
    char *text;
    size_t at, bytes;
    bool json;
} line_buffer;

static void
plain_put(line_buffer *b, const char *text)
{
    for (; *text != 0 && b->at + TAIL_BYTES / 2 < b->bytes; text++) {
        b->text[b->at++] = *text;
    }
}

/* Bytes of the UTF-8 character at p; 0: there is none. */
static size_t
utf8_bytes(const unsigned char *p)
{
    size_t bytes = *p < 0x80                 ? 1
                   : *p >= 0xc2 && *p < 0xe0 ? 2
                   : (*p & 0xf0) == 0xe0     ? 3
                   : *p >= 0xf0 && *p < 0xf5 ? 4
                                             : 0;

    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80) { /* also the end of the string */
            return 0;
        }
    }
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
        (*p == 0xf4 && p[1] > 0x8f)) {
        return 0; /* an overlong form, a surrogate, beyond the last plane */
    }
    return bytes;
}

/* Append text; characters that would break the line or the JSON string are escaped. */
static void
escaped_put(line_buffer *b, const char *text)
{
    const unsigned char *p = (const unsigned char *)(text == NULL ? "" : text);

    while (*p != 0 && b->at + TAIL_BYTES < b->bytes) {
        size_t bytes = utf8_bytes(p);

        if (*p < 0x20 || *p == 0x7f || (bytes == 0 && b->json)) {
            b->at += (size_t)snprintf(b->text + b->at, TAIL_BYTES, b->json ? "\\u%04x" : "\\x%02x",
                                      bytes == 0 ? 0xfffd : *p);
            p++;
            continue;
        }
        if (b->json && (*p == '"' || *p == '\\')) {
            b->text[b->at++] = '\\';
        }
        for (size_t i = 0; i == 0 || i < bytes; i++) {
            b->text[b->at++] = (char)*p++;
        }
    }
}

static void
context_put(line_buffer *b, const char *mdc)
{
    const char *key, *value;
    bool first = true;

    plain_put(b, b->json ? ",\"mdc\":{" : " {");
    while ((mdc = trp_log_mdc_next(mdc, &key, &value)) != NULL) {
        if (b->at + strlen(key) + 4u * TAIL_BYTES > b->bytes) {
            break; /* log-format-F2: a pair is whole or cut inside its value */
        }
        plain_put(b, first ? "" : b->json ? "," : " ");
        plain_put(b, b->json ? "\"" : "");
        escaped_put(b, key);
        plain_put(b, b->json ? "\":\"" : "=");
        b->bytes -= 4; /* for the quote and the brace */
        escaped_put(b, value);
        b->bytes += 4;
        plain_put(b, b->json ? "\"" : "");
        first = false;
    }
    plain_put(b, "}");
}

static void
member_put(line_buffer *b, const char *name, const char *value)
{
    if (b->at + strlen(name) + 2u * TAIL_BYTES < b->bytes) {
        plain_put(b, name);
        escaped_put(b, value);
        plain_put(b, "\"");
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool
is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* Parse one key=value at text. Returns its end; NULL: there is none. */
static const char *
field_end(const char *text, const char **ret_value, size_t *ret_value_bytes)
{
    const char *p = text;

    while (is_key_char(*p)) {
        p++;
    }
    if (p == text || *p++ != '=') {
        return NULL;
    }
    if (*p == '"') {
        *ret_value = ++p;
        *ret_value_bytes = strcspn(p, "\"");
        p += *ret_value_bytes;
        return *p == '"' && (p[1] == ' ' || p[1] == 0) ? p + 1 : NULL;
    }
    *ret_value = p;
    *ret_value_bytes = strcspn(p, " ");
    return p + *ret_value_bytes;
}

/* Where the fields at the end of the text begin; NULL: it has none. */
static const char *
fields_of(const char *text)
{
    const char *first = NULL;

    while (*text != 0) {
        const char *value;
        size_t bytes;
        const char *end = field_end(text, &value, &bytes);

        first = end == NULL ? NULL : first == NULL ? text : first;
        text = end != NULL ? end : text + strcspn(text, " ");
        text += strspn(text, " ");
    }
    return first;
}

static void
fields_put(line_buffer *b, const char *at)
{
    char key[64], text[TRP_LOG_TEXT_BYTES_MAX];
    const char *value, *end;
    size_t bytes;

    plain_put(b, ",\"fields\":{");
    for (const char *before = ""; *at != 0; before = ",") {
        end = field_end(at, &value, &bytes);
        if (end == NULL || b->at + sizeof key + bytes * 6u + 6u * TAIL_BYTES > b->bytes) {
            break; /* log-format-F2: a pair is whole or absent */
        }
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(at, "="), at);
        (void)snprintf(text, sizeof text, "%.*s", (int)bytes, value);
        plain_put(b, before);
        plain_put(b, "\"");
        escaped_put(b, key);
        plain_put(b, "\":\"");
        escaped_put(b, text);
        plain_put(b, "\"");
        at = end + strspn(end, " ");
    }
    plain_put(b, "}");
}

static void
json_put(line_buffer *b, const trp_log_line *line, const char *time, const char *level)
{
    member_put(b, "{\"time\":\"", time);
    member_put(b, ",\"level\":\"", level);
    b->bytes -= 64; /* a long source must leave room for the member "message" */
    member_put(b, ",\"source\":\"", line->source);
    if (line->kind != NULL && line->kind[0] != 0) {
        member_put(b, ",\"kind\":\"", line->kind);
    }
    if (line->thread != NULL && line->thread[0] != 0) {
        member_put(b, ",\"thread\":\"", line->thread);
    }
    b->bytes += 64;
    member_put(b, ",\"message\":\"", line->text);
    const char *fields = line->text == NULL ? NULL : fields_of(line->text);
    if (fields != NULL && b->at + 6u * TAIL_BYTES < b->bytes) {
        fields_put(b, fields);
    }
    if (line->cause != TRP_OK) {
        member_put(b, ",\"cause\":\"", trp_err_name(line->cause));
    }
    if (line->mdc != NULL && line->mdc[0] != 0 && b->at + 6u * TAIL_BYTES < b->bytes) {
        context_put(b, line->mdc);
    }
    plain_put(b, "}");
}

size_t
trp_log_format(const trp_log_line *line, int json, char *buffer, size_t bytes)
{
    static const int priorities[] = { 5, 3, 4, 6, 7 }; /* syslog's, by level */
    line_buffer b = { buffer, 0, bytes, json == 1 };
    time_t seconds = (time_t)(line->wall_ms / 1000);
    const char *level =
        level_names[(unsigned)line->level <= TRP_LOG_DEBUG ? (unsigned)line->level : 0u];
    struct tm utc;
    char day[32], time[48];

    trpi_assert(bytes >= 256);
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        (void)snprintf(day, sizeof day, "1970-01-01T00:00:00");
    }
    (void)snprintf(time, sizeof time, "%s.%03dZ", day, (int)(line->wall_ms % 1000));
    if (json == 1) {
        json_put(&b, line, time, level);
    } else {
        unsigned known = (unsigned)line->level <= TRP_LOG_DEBUG ? (unsigned)line->level : 0u;
        b.at = (size_t)(json == 2 ? snprintf(buffer, bytes, "<%d>", priorities[known])
                                  : snprintf(buffer, bytes, "%s %-7s ", time, level));
        escaped_put(&b, line->source);
        plain_put(&b, " ");
        escaped_put(&b, line->text);
        if (line->mdc != NULL && line->mdc[0] != 0 && b.at + 6u * TAIL_BYTES < bytes) {
            context_put(&b, line->mdc);
        }
    }
    b.text[b.at++] = '\n';
    b.text[b.at] = 0;
    trpi_assert(b.at < bytes);
    return b.at;
}
