/* print.c - the output of the program: data on stdout, all else on stderr.
 *
 * Why.     Scripts read stdout, people read both. JSON is printed by one function so that it looks
 *          the same everywhere; numbers and ages are human in tables and raw in JSON.
 * Must hold.
 *   print-W1  No escape code leaves when stdout is no terminal, unless --color=always asked for it.
 *   print-W2  A closed pipe ends the program with 0 (main.c), any other write error with 74: also
 *       one that stdio met before the last flush.
 * Tests.   tests/unit/cli/options_test.c, tests/system/cli.sh
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

#define INLINE_COLUMNS 110u /* a value that fits such a line is not broken */

int
trpi_cli_fail(int code, const char *format, ...)
{
    va_list list;
    (void)fflush(stdout); /* keep the order on a terminal; errors are met at the end */
    (void)fputs("troupe: ", stderr);
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
    (void)fputc('\n', stderr);
    return code;
}

void
trpi_cli_note(const trpi_cli *cli, const char *format, ...)
{
    if (cli->quiet) {
        return;
    }
    va_list list;
    (void)fflush(stdout); /* as above */
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
    (void)fputc('\n', stderr);
}

void
trpi_cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return;
    }
    if (errno == 0) { /* of an earlier write, which is forgotten */
        (void)fputs("troupe: cannot write all of it\n", stderr);
    } else {
        (void)fprintf(stderr, "troupe: cannot write: %s\n", strerror(errno));
    }
    _exit(TRPI_CTL_EXIT_OUTPUT);
}

static bool
is_compound(const cJSON *json)
{
    return cJSON_IsObject(json) || cJSON_IsArray(json);
}

/* Write json on one line, with a space behind ',' and ':'. Depth is bounded by the parser. */
static void
print_inline(const cJSON *json)
{
    if (!is_compound(json)) {
        char *text = cJSON_PrintUnformatted(json);
        (void)fputs(text != NULL ? text : "null", stdout);
        cJSON_free(text);
        return;
    }
    bool object = cJSON_IsObject(json);
    (void)putchar(object ? '{' : '[');
    for (const cJSON *item = json->child; item != NULL; item = item->next) {
        if (object) {
            cJSON key = { .type = cJSON_String, .valuestring = item->string };
            print_inline(&key);
            (void)fputs(": ", stdout);
        }
        print_inline(item);
        (void)fputs(item->next != NULL ? ", " : "", stdout);
    }
    (void)putchar(object ? '}' : ']');
}

static void
print_pretty(const cJSON *json, unsigned indent, unsigned level)
{
    char *text = cJSON_PrintUnformatted(json);
    bool fits = text != NULL && strlen(text) + indent <= INLINE_COLUMNS;
    cJSON_free(text);
    if (!is_compound(json) || json->child == NULL || (fits && level > 0)) {
        print_inline(json);
        return;
    }
    bool object = cJSON_IsObject(json);
    (void)puts(object ? "{" : "[");
    for (const cJSON *item = json->child; item != NULL; item = item->next) {
        (void)printf("%*s", (int)indent + 2, "");
        if (object) {
            cJSON key = { .type = cJSON_String, .valuestring = item->string };
            print_inline(&key);
            (void)fputs(": ", stdout);
        }
        print_pretty(item, indent + 2, level + 1);
        (void)puts(item->next != NULL ? "," : "");
    }
    (void)printf("%*s%c", (int)indent, "", object ? '}' : ']');
}

void
trpi_cli_print_json(const trpi_cli *cli, const cJSON *json)
{
    cJSON copy =
        *json; /* a head of its own, so that "ok" can be passed over without changing json */
    if (copy.child != NULL && copy.child->string != NULL && strcmp(copy.child->string, "ok") == 0) {
        copy.child = copy.child->next;
    }
    if (cli->output == TRPI_CLI_JSONL || cli->watch_ms != 0) {
        char *text = cJSON_PrintUnformatted(&copy);
        (void)puts(text != NULL ? text : "null");
        cJSON_free(text);
    } else {
        print_pretty(&copy, 0, 0);
        (void)putchar('\n');
    }
    trpi_cli_flush();
}

char *
trpi_cli_age(double ms, char buffer[24])
{
    ms = ms < 1e15 ? ms : 1e15; /* whatever a node says: some 30,000 years */
    uint64_t seconds = ms > 0 ? (uint64_t)(ms / 1000) : 0;
    if (ms < 0) {
        (void)snprintf(buffer, 24, "-");
    } else if (ms < 1000) {
        (void)snprintf(buffer, 24, "%.0fms", ms);
    } else if (seconds < 60) {
        (void)snprintf(buffer, 24, "%us", (unsigned)seconds);
    } else if (seconds < 3600) {
        (void)snprintf(buffer, 24, "%um%02us", (unsigned)(seconds / 60), (unsigned)(seconds % 60));
    } else if (seconds < 86400) {
        (void)snprintf(buffer, 24, "%uh%02um", (unsigned)(seconds / 3600),
                       (unsigned)(seconds / 60 % 60));
    } else {
        (void)snprintf(buffer, 24, "%ud%02uh", (unsigned)(seconds / 86400),
                       (unsigned)(seconds / 3600 % 24));
    }
    return buffer;
}

char *
trpi_cli_uid(const cJSON *object, const char *key, char buffer[24])
{
    const char *text = trpi_json_get_text(object, key);
    (void)snprintf(buffer, 24, "-");
    if (text != NULL) {
        (void)snprintf(buffer, 24, "%016" PRIx64, (uint64_t)strtoull(text, NULL, 10));
    }
    return buffer;
}

char *
trpi_cli_grouped(double number, char buffer[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%.0f", number < 0 || number > 1e15 ? 0 : number);
    size_t used = 0;
    for (int index = 0; index < length; index++) {
        if (index > 0 && (length - index) % 3 == 0) {
            buffer[used++] = ',';
        }
        buffer[used++] = digits[index];
    }
    buffer[used] = '\0';
    return buffer;
}

const char *
trpi_cli_get(const cJSON *object, const char *key)
{
    const char *text = trpi_json_get_text(object, key);
    return text != NULL ? text : "-";
}

double
trpi_cli_get_number(const cJSON *object, const char *key, double fallback)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

bool
trpi_cli_get_true(const cJSON *object, const char *key)
{
    bool value = false;
    return trpi_json_get_bool(object, key, &value) && value;
}

const char *
trpi_cli_short(const char *address)
{
    const char *behind = strstr(address, "://");
    return behind != NULL ? behind + 3 : address;
}

uint64_t
trpi_cli_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void
trpi_cli_sleep_ms(uint32_t ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

void
trpi_cli_watch_begin(const trpi_cli *cli)
{
    bool picture = cli->output == TRPI_CLI_TABLE || cli->output == TRPI_CLI_WIDE;
    if (cli->watch_ms != 0 && picture && isatty(STDOUT_FILENO)) {
        (void)fputs("\033[H\033[J", stdout);
    }
}

int
trpi_cli_repeat(trpi_cli *cli, int (*once)(trpi_cli *cli))
{
    int code = once(cli);
    trpi_cli_flush();
    while (cli->watch_ms != 0 && code <= TRPI_CTL_EXIT_NO) {
        trpi_cli_disconnect(cli);
        trpi_cli_sleep_ms(cli->watch_ms);
        code = once(cli);
        trpi_cli_flush();
    }
    return code;
}
