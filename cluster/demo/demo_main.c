/* demo_main.c - `troupe demo`: options, the page, and the loop in which both are served.
 *
 * Shape.   a thread: tick (run.c) and page (http.c) by turns, until a signal; the actors have the
 *          threads of their own system.
 * Must hold.
 *   demo-D1  State and orders are given to requests alone that have the key, which stands in the
 *       printed address behind '#', so that no log of a browser or proxy has it; and whose Host is
 *       this server's, so that no name of another leads here.                    (request_judge)
 * Limits.  Those of http.h and stage.h.
 * Tests.   tests/system/demo.sh
 * Sources. UJ-32, UJ-44 to -47.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cluster/demo/demo.h"
#include "cluster/demo/http.h"
#include "cluster/demo/page.h"
#include "cluster/node/ctl_proto.h"

#define KEY_BYTES 33u /* as hexadecimal text, with its NUL */

static const char help[] =
    "usage: troupe demo [NAME] [OPTION]...\n"
    "       troupe demo NAME --once [OPTION]...\n"
    "       troupe demo --list\n"
    "\n"
    "Shows how actors work: their threads, messages, backlog and trace, on a page in the browser. "
    "The actors live in\n"
    "this process, in a system of their own; no node is asked or needed. Prints the address of the "
    "page, begins NAME if\n"
    "it is given, and serves the page until Ctrl-C.\n"
    "\n"
    "  --list         names of the demonstrations\n"
    "  --once         no page: prints the trace, and ends when all messages were handled\n"
    "  --threads N    for the actors, 1 to 64 (default 10)\n"
    "  --actors N     of the count-down, 2 to 200, 150 of `all` (default 34)\n"
    "  --steps N      seconds until it is stopped, 1 to 512 (default 256)\n"
    "  --pace DUR     what the actors take for a second of work, 1ms to 10s (default 250ms)\n"
    "  --directory D  the tree that virus-scan reads (default: a tree of its own)\n"
    "  --port N       of the page, on 127.0.0.1 (default: any free one)\n"
    "  --help\n"
    "\n"
    "Exit 64: no such demonstration, or a bad option; 69: the port is taken; 75: --once, and the "
    "steps were over first.\n";

typedef struct program {
    trpi_demo demo;
    trpi_demo_http *http;
    char key[KEY_BYTES];
    char host[32];
    uint32_t threads, steps;
    uint16_t port;
    bool once, lists;
    trpi_demo_name name; /* TRPI_DEMO_NAMES: none */
} program;

static volatile sig_atomic_t ended;

static void
end_noted(int signal_number)
{
    (void)signal_number;
    ended = 1;
}

static int
demo_fail(int code, const char *text, const char *detail)
{
    (void)fprintf(stderr, "troupe demo: %s%s\n", text, detail);
    return code;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Find a demonstration. TRPI_DEMO_NAMES: there is none. */
static trpi_demo_name
name_find(const char *text)
{
    trpi_demo_name name = 0;
    while (name < TRPI_DEMO_NAMES && strcmp(trpi_demo_list[name].name, text) != 0) {
        name++;
    }
    return name;
}

static int
name_take(program *p, const char *text)
{
    const char *names[TRPI_DEMO_NAMES];
    char why[256];
    if (p->name != TRPI_DEMO_NAMES) {
        return demo_fail(TRPI_CTL_EXIT_USAGE,
                         "one demonstration at a time; there is 'all': ", text);
    }
    p->name = name_find(text);
    if (p->name != TRPI_DEMO_NAMES) {
        return 0;
    }
    for (uint32_t i = 0; i < TRPI_DEMO_NAMES; i++) {
        names[i] = trpi_demo_list[i].name;
    }
    const char *nearest = trpi_nearest(text, names, TRPI_DEMO_NAMES);
    (void)snprintf(why, sizeof why, "'%.64s'; %s%s%s", text,
                   nearest != NULL ? "did you mean '" : "`troupe demo --list` has their names",
                   nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    return demo_fail(TRPI_CTL_EXIT_USAGE, "there is no demonstration ", why);
}

static int
number_take(const char *flag, const char *text, uint32_t low, uint32_t high, uint32_t *ret_number)
{
    uint64_t number = 0;
    char why[96];
    if (text != NULL && trpi_whole_parse(text, low, high, &number)) {
        *ret_number = (uint32_t)number;
        return 0;
    }
    (void)snprintf(why, sizeof why, "%s is a number from %u to %u", flag, low, high);
    return demo_fail(TRPI_CTL_EXIT_USAGE, why, "");
}

/* Take the option at words[0], whose value is words[1] or NULL. */
static int
option_take(program *p, char **words)
{
    const char *flag = words[0], *value = words[1];
    uint32_t port = 0;
    uint64_t ms = 0;
    int code = 0;
    if (strcmp(flag, "--threads") == 0) {
        return number_take(flag, value, 1, TRPI_STAGE_THREADS_MAX, &p->threads);
    }
    if (strcmp(flag, "--actors") == 0) {
        return number_take(flag, value, TRPI_DEMO_ACTORS_MIN, TRPI_STAGE_ACTORS_MAX,
                           &p->demo.actors);
    }
    if (strcmp(flag, "--steps") == 0) {
        return number_take(flag, value, 1, TRPI_STAGE_STEPS_MAX, &p->steps);
    }
    if (strcmp(flag, "--port") == 0) {
        code = number_take(flag, value, 0, UINT16_MAX, &port);
        p->port = (uint16_t)port;
        return code;
    }
    if (strcmp(flag, "--pace") == 0) {
        if (value == NULL || !trpi_duration_parse(value, 0, 1, TRPI_DEMO_PACE_MS_MAX, &ms)) {
            return demo_fail(TRPI_CTL_EXIT_USAGE, "--pace is a time from 1ms to 10s", "");
        }
        p->demo.pace_ms = (uint32_t)ms;
        return 0;
    }
    if (strcmp(flag, "--directory") == 0) {
        p->demo.directory = value;
        return value != NULL && access(value, R_OK | X_OK) == 0
                   ? 0
                   : demo_fail(TRPI_CTL_EXIT_USAGE, "--directory cannot be read: ",
                               value != NULL ? value : "it needs a name");
    }
    return demo_fail(TRPI_CTL_EXIT_USAGE, "unknown option; see --help: ", flag);
}

/* Read the line. 0, or the exit code with the reason printed. */
static int
line_read(program *p, int argc, char **argv)
{
    int code = 0;
    for (int i = 1; i < argc && code == 0; i++) {
        if (strcmp(argv[i], "--once") == 0) {
            p->once = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            p->lists = true;
        } else if (argv[i][0] != '-') {
            code = name_take(p, argv[i]);
        } else {
            code = option_take(p, argv + i);
            i++;
        }
    }
    if (code == 0 && p->name == TRPI_DEMO_ALL && p->demo.actors > TRPI_DEMO_ACTORS_OF_ALL_MAX) {
        char why[96];
        (void)snprintf(why, sizeof why, "--actors of 'all' is a number from %u to %u",
                       TRPI_DEMO_ACTORS_MIN, TRPI_DEMO_ACTORS_OF_ALL_MAX);
        code = demo_fail(TRPI_CTL_EXIT_USAGE, why, "");
    }
    if (code == 0 && p->once && p->name == TRPI_DEMO_NAMES) {
        code = demo_fail(TRPI_CTL_EXIT_USAGE, "--once needs the name of a demonstration", "");
    }
    return code;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void
text_answer(trpi_demo_answer *answer, int status, const char *text)
{
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    (void)trpi_buffer_printf(&answer->body, 4096, "%s\n", text); /* no memory: no text */
}

/* demo-D1. 0, or the status that refuses it. */
static int
request_judge(const program *p, const trpi_demo_request *request)
{
    static const char bearer[] = "Bearer ";
    char local[sizeof p->host], origin[sizeof p->host + 8];
    unsigned differ = 0;
    (void)snprintf(local, sizeof local, "localhost:%u", p->port);
    if (strcmp(request->host, p->host) != 0 && strcmp(request->host, local) != 0) {
        return 403;
    }
    (void)snprintf(origin, sizeof origin, "http://%s", request->host);
    if (request->origin[0] != '\0' && strcmp(request->origin, origin) != 0) {
        return 403;
    }
    if (strncmp(request->authorization, bearer, sizeof bearer - 1) != 0 ||
        strlen(request->authorization) != sizeof bearer - 1 + KEY_BYTES - 1) {
        return 401;
    }
    for (size_t i = 0; i < KEY_BYTES - 1; i++) { /* in constant time */
        differ |= (unsigned)(request->authorization[sizeof bearer - 1 + i] ^ p->key[i]);
    }
    return differ == 0 ? 0 : 401;
}

static void
state_answer(program *p, const char *query, trpi_demo_answer *answer)
{
    const trpi_demo *demo = &p->demo;
    char text[24];
    uint64_t line = 0, fresh = 0;
    trp_err err = TRP_OK;
    if (trpi_demo_http_field(query, "trace", text, sizeof text)) {
        (void)trpi_whole_parse(text, 0, UINT64_MAX / 2, &line);
    }
    if (trpi_demo_http_field(query, "fresh", text, sizeof text)) {
        (void)trpi_whole_parse(text, 0, UINT64_MAX / 2, &fresh);
    }
    bool has_run = demo->system != NULL;
    err = trpi_buffer_printf(&answer->body, TRPI_STAGE_JSON_MAX,
                             "{\"state\":\"%s\",\"demo\":\"%s\",\"run\":%" PRIu64
                             ",\"steps\":%u,\"threadsNext\":%u,\"added\":%u,"
                             "\"demos\":[",
                             trpi_demo_state(demo), has_run ? trpi_demo_list[demo->name].name : "",
                             demo->run, has_run ? demo->steps : p->steps, p->threads, demo->added);
    for (uint32_t i = 0; i < TRPI_DEMO_NAMES && err == TRP_OK; i++) {
        err = trpi_buffer_printf(&answer->body, TRPI_STAGE_JSON_MAX, "%s[\"%s\",\"%s\"]",
                                 i > 0 ? "," : "", trpi_demo_list[i].name, trpi_demo_list[i].text);
    }
    err = err == TRP_OK ? trpi_buffer_append_text(&answer->body, "],", TRPI_STAGE_JSON_MAX) : err;
    err = err == TRP_OK ? trpi_stage_write(demo->stage, line, fresh, &answer->body) : err;
    err = err == TRP_OK ? trpi_buffer_append_text(&answer->body, "}", TRPI_STAGE_JSON_MAX) : err;
    answer->status = err == TRP_OK ? 200 : 500;
    answer->type = "application/json";
}

static void
start_answer(program *p, const char *form, trpi_demo_answer *answer)
{
    char text[32] = "";
    uint64_t threads = 0, steps = 0;
    const char *state = trpi_demo_state(&p->demo);
    trpi_demo_name name =
        trpi_demo_http_field(form, "demo", text, sizeof text) ? name_find(text) : TRPI_DEMO_NAMES;
    if (name == TRPI_DEMO_NAMES) {
        text_answer(answer, 400, "demo is the name of a demonstration");
    } else if (!trpi_demo_http_field(form, "threads", text, sizeof text) ||
               !trpi_whole_parse(text, 1, TRPI_STAGE_THREADS_MAX, &threads)) {
        text_answer(answer, 400, "threads is a number from 1 to 64");
    } else if (!trpi_demo_http_field(form, "steps", text, sizeof text) ||
               !trpi_whole_parse(text, 1, TRPI_STAGE_STEPS_MAX, &steps)) {
        text_answer(answer, 400, "steps is a number from 1 to 512");
    } else if (strcmp(state, "running") == 0 || strcmp(state, "stopping") == 0) {
        text_answer(answer, 409, "a demonstration runs; stop it, and wait until it has");
    } else if (trpi_demo_start(&p->demo, name, (uint32_t)threads, (uint32_t)steps) != TRP_OK) {
        text_answer(answer, 500, "it cannot begin; the trace says why");
    } else {
        text_answer(answer, 200, "started");
    }
}

static void
stop_answer(program *p, const char *form, trpi_demo_answer *answer)
{
    (void)form;
    trpi_demo_stop(&p->demo);
    text_answer(answer, 200, "stopping");
}

static void
task_answer(trp_err err, const char *limit, trpi_demo_answer *answer)
{
    text_answer(answer,
                err == TRP_OK                            ? 200
                : err == TRP_ESTATE || err == TRP_ELIMIT ? 409
                                                         : 500,
                err == TRP_OK       ? "done"
                : err == TRP_ESTATE ? "none runs; the next one begins with the number of threads "
                                      "that is set"
                : err == TRP_ELIMIT ? limit
                                    : trp_strerror(err));
}

static void
add_answer(program *p, const char *form, trpi_demo_answer *answer)
{
    (void)form;
    task_answer(trpi_demo_task_add(&p->demo), "there are 64 threads: no more can be added", answer);
}

static void
remove_answer(program *p, const char *form, trpi_demo_answer *answer)
{
    (void)form;
    task_answer(trpi_demo_task_remove(&p->demo),
                "none was added; those that it began with stay to its end", answer);
}

static const struct {
    const char *path, *method;
    void (*answer)(program *p, const char *form, trpi_demo_answer *answer);
} orders[] = {
    { "/state", "GET", state_answer },         { "/start", "POST", start_answer },
    { "/stop", "POST", stop_answer },          { "/add-task", "POST", add_answer },
    { "/remove-task", "POST", remove_answer },
};
#define ORDERS_COUNT (sizeof orders / sizeof orders[0])

static void
request_answer(void *arg, const trpi_demo_request *request, trpi_demo_answer *ret_answer)
{
    program *p = arg;
    char path[sizeof request->target];
    const char *query = strchr(request->target, '?');
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(request->target, "?"), request->target);
    bool is_get = strcmp(request->method, "GET") == 0;
    size_t i = 0;
    while (i < ORDERS_COUNT && strcmp(orders[i].path, path) != 0) {
        i++;
    }
    if (i == ORDERS_COUNT) {
        if (!is_get || !trpi_demo_page_get(path, ret_answer)) {
            text_answer(ret_answer, is_get ? 404 : 405,
                        "there are /, /state, /start, /stop, /add-task and /remove-task");
        }
        return;
    }
    int refused = request_judge(p, request);
    if (refused != 0) {
        text_answer(ret_answer, refused,
                    "open the address that `troupe demo` has printed, with all behind the #");
    } else if (strcmp(request->method, orders[i].method) != 0) {
        text_answer(ret_answer, 405, "GET /state; POST for the others");
    } else {
        orders[i].answer(p, is_get ? (query == NULL ? "" : query + 1) : request->body, ret_answer);
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Print the lines of the trace from number *line on. */
static void
lines_print(program *p, uint64_t *line)
{
    char text[TRPI_STAGE_LINE_BYTES];
    while (trpi_stage_line(p->demo.stage, *line, text)) {
        if (text[0] != '\0') {
            (void)puts(text);
        }
        (*line)++;
    }
    (void)fflush(stdout);
}

static int
once_run(program *p, const sigset_t *mask)
{
    const struct timespec tick = { 0, TRPI_DEMO_TICK_MS * 1000000 };
    uint64_t line = 0;
    if (trpi_demo_start(&p->demo, p->name, p->threads, p->steps) != TRP_OK) {
        lines_print(p, &line);
        return demo_fail(TRPI_CTL_EXIT_INTERNAL, "it cannot begin", "");
    }
    const char *state = "running";
    while (!ended && strcmp(state, "done") != 0 && strcmp(state, "stopped") != 0) {
        (void)ppoll(NULL, 0, &tick, mask);
        trpi_demo_tick(&p->demo);
        lines_print(p, &line);
        state = trpi_demo_state(&p->demo);
    }
    if (ferror(stdout)) {
        return demo_fail(TRPI_CTL_EXIT_OUTPUT, "cannot write to standard output", "");
    }
    return ended                        ? 130
           : strcmp(state, "done") == 0 ? 0
                                        : demo_fail(TRPI_CTL_EXIT_TIMEOUT,
                                                    "stopped, since its steps were over; "
                                                    "give it more by --steps",
                                                    "");
}

static int
page_serve(program *p, const sigset_t *mask)
{
    trp_err err = trpi_demo_http_open(p->port, request_answer, p, &p->http);
    if (err != TRP_OK) {
        return demo_fail(
            TRPI_CTL_EXIT_UNREACHABLE,
            "cannot listen on 127.0.0.1; another --port may be free: ", trp_strerror(err));
    }
    p->port = trpi_demo_http_port(p->http);
    (void)snprintf(p->host, sizeof p->host, "127.0.0.1:%u", p->port);
    (void)snprintf(p->key, sizeof p->key, "%016" PRIx64 "%016" PRIx64,
                   trpi_world_random(p->demo.world), trpi_world_random(p->demo.world));
    (void)printf("http://%s/#key=%s\n", p->host, p->key);
    if (fflush(stdout) != 0) {
        return demo_fail(TRPI_CTL_EXIT_OUTPUT, "cannot write to standard output", "");
    }
    (void)fputs("troupe demo: open this address in a browser; Ctrl-C ends it\n", stderr);
    if (p->name != TRPI_DEMO_NAMES) { /* an error is on the page, in the trace */
        (void)trpi_demo_start(&p->demo, p->name, p->threads, p->steps);
    }
    for (bool starved = false; !ended;) {
        trpi_demo_http_serve(p->http, TRPI_DEMO_TICK_MS,
                             trpi_world_mono_ns(p->demo.world) / 1000000, mask);
        if (trpi_demo_http_is_starved(p->http) && !starved) { /* once, until it is over */
            (void)fputs("troupe demo: no descriptor is free for another connection of the page "
                        "(ulimit -n); it is taken when one is\n",
                        stderr);
        }
        starved = trpi_demo_http_is_starved(p->http);
        trpi_demo_tick(&p->demo);
    }
    return 0;
}

/* Run with INT, TERM and HUP blocked but for while the loop waits; threads inherit that. HUP stays
 * ignored if it is (nohup). */
static int
program_run(program *p)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    struct sigaction action = { 0 }, before_of[NUMBERS];
    sigset_t blocked, before;
    action.sa_handler = end_noted;
    (void)sigemptyset(&blocked);
    for (int i = 0; i < NUMBERS; i++) {
        (void)sigaddset(&blocked, numbers[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
    for (int i = 0; i < NUMBERS; i++) {
        (void)sigaction(numbers[i], &action, &before_of[i]);
        if (numbers[i] == SIGHUP && before_of[i].sa_handler == SIG_IGN) {
            (void)sigaction(SIGHUP, &before_of[i], NULL);
        }
    }
    int code = p->once ? once_run(p, &before) : page_serve(p, &before);
    trpi_demo_end(&p->demo);
    trpi_demo_http_close(p->http);
    for (int i = 0; i < NUMBERS; i++) {
        (void)sigaction(numbers[i], &before_of[i], NULL);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static int
list_print(void)
{
    for (uint32_t i = 0; i < TRPI_DEMO_NAMES; i++) {
        (void)printf("%-18s %s\n", trpi_demo_list[i].name, trpi_demo_list[i].text);
    }
    return fflush(stdout) == 0 ? 0 : TRPI_CTL_EXIT_OUTPUT;
}

int
trp_demo_main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return fputs(help, stdout) >= 0 && fflush(stdout) == 0 ? 0 : TRPI_CTL_EXIT_OUTPUT;
    }
    program *p = trpi_alloc(sizeof *p);
    if (p == NULL) {
        return demo_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory", "");
    }
    p->name = TRPI_DEMO_NAMES;
    p->threads = TRPI_DEMO_THREADS_DEFAULT;
    p->steps = TRPI_DEMO_STEPS_DEFAULT;
    p->demo.actors = TRPI_DEMO_ACTORS_DEFAULT;
    p->demo.pace_ms = TRPI_DEMO_PACE_MS_DEFAULT;
    int code = line_read(p, argc, argv);
    if (code == 0 && p->lists) {
        code = list_print();
    } else if (code == 0) {
        trp_err err = trpi_world_real_new(&p->demo.world);
        err = err == TRP_OK ? trpi_stage_new(&p->demo.stage) : err;
        code =
            err == TRP_OK ? program_run(p) : demo_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory", "");
        trpi_stage_free(p->demo.stage);
        trpi_world_free(p->demo.world);
    }
    trpi_free(p);
    return code;
}
