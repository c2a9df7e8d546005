/* cmd_trace.c - `troupe trace start|stop|list|last|ID`: where messages went.
 *
 * Shape.   The node gathers the hops of all members; here they become a tree, by span and parent: a
 *          hop whose parent nobody has kept is a root. Or they are written for another program.
 * Limits.  DEPTH_MAX levels of the tree are drawn.
 * Tests.   tests/system/cli_fake.sh, tests/multinode/trace.sh
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/span_json.h"
#include "base/units.h"
#include "cluster/cli/cli.h"

#define DEPTH_MAX 100u
#define SAMPLE_MAX 1000000000u

typedef struct hop {
    const cJSON *json;
    const char *span, *parent; /* parent "": none */
    const char *actor, *type, *member;
    uint64_t time_ns;
    double net_ns, wait_ns, run_ns, attempt; /* attempt 0: not one of several */
    bool is_shown;
} hop;

typedef struct trace {
    hop *hops; /* by time */
    size_t count;
    const char *id;
} trace;

static int
hop_compare(const void *a_, const void *b_)
{
    const hop *a = a_, *b = b_;
    return a->time_ns != b->time_ns ? (a->time_ns < b->time_ns ? -1 : 1) : strcmp(a->span, b->span);
}

/* "10.0.0.1:2552" of an address. */
static const char *
host_of(const char *address)
{
    const char *at = strchr(address, '@');
    return at != NULL ? at + 1 : address;
}

static const char *
text_of(const cJSON *json, const char *key, const char *otherwise)
{
    const char *text = trpi_json_get_text(json, key);
    return text != NULL ? text : otherwise;
}

/* Gives ret_trace->hops (trpi_free); false: no memory. */
static bool
trace_read(const cJSON *reply, trace *ret_trace)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "hops"), *json;
    size_t room = (size_t)cJSON_GetArraySize(list) + 1;
    *ret_trace = (trace){ trpi_alloc(room * sizeof(hop)), 0, text_of(reply, "traceId", "?") };
    if (ret_trace->hops == NULL) {
        return false;
    }
    cJSON_ArrayForEach(json, list)
    {
        hop *h = &ret_trace->hops[ret_trace->count++];
        *h = (hop){ .json = json,
                    .span = text_of(json, "span", "?"),
                    .parent = text_of(json, "parent", ""),
                    .actor = text_of(json, "actor", "nobody"),
                    .type = text_of(json, "type", "?"),
                    .member = host_of(text_of(json, "member", "?")),
                    .net_ns = trpi_cli_get_number(json, "netNs", 0),
                    .wait_ns = trpi_cli_get_number(json, "waitNs", 0),
                    .run_ns = trpi_cli_get_number(json, "runNs", 0),
                    .attempt = trpi_cli_get_number(json, "attempt", 0) };
        (void)trpi_json_get_u64(json, "timeNs", &h->time_ns); /* absent: 0 */
    }
    qsort(ret_trace->hops, ret_trace->count, sizeof(hop), hop_compare);
    return true;
}

static bool
is_root(const trace *t, const hop *h)
{
    for (size_t i = 0; h->parent[0] != '\0' && i < t->count; i++) {
        if (strcmp(t->hops[i].span, h->parent) == 0) {
            return false;
        }
    }
    return true;
}

/* ---- for people ------------------------------------------------------------------------------ */

static const char *
time_text(double ns, char text[16])
{
    if (ns < 1e6) {
        (void)snprintf(text, 16, "%.0fµs", ns / 1e3);
    } else if (ns < 1e9) {
        (void)snprintf(text, 16, "%.2fms", ns / 1e6);
    } else {
        (void)snprintf(text, 16, "%.2fs", ns / 1e9);
    }
    return text;
}

static void
hop_print(const hop *h, const char *stem, const char *branch)
{
    char net[16], wait[16], run[16];
    const char *end = text_of(h->json, "end", "?");
    (void)printf("%s%s%s@%s  %s", stem, branch, h->actor, h->member, h->type);
    if (h->attempt > 1) {
        (void)printf("  attempt %.0f", h->attempt);
    }
    if (h->net_ns > 0) {
        (void)printf("  net %s", time_text(h->net_ns, net));
    }
    (void)printf("  wait %s", time_text(h->wait_ns, wait));
    if (strcmp(end, "dead") == 0) {
        (void)printf("  -> dead letter (%s)\n", text_of(h->json, "reason", "?"));
    } else {
        (void)printf("  run %s%s%s", time_text(h->run_ns, run),
                     strcmp(end, "handled") != 0 ? "  -> " : "",
                     strcmp(end, "handled") != 0 ? end : "");
        const char *reason = trpi_json_get_text(h->json, "reason");
        (void)printf(reason != NULL ? " (%s)\n" : "%s\n", reason != NULL ? reason : "");
    }
}

static hop *
child_next(const trace *t, const char *span, size_t from, size_t *ret_at)
{
    for (size_t i = from; i < t->count; i++) {
        if (!t->hops[i].is_shown && strcmp(t->hops[i].parent, span) == 0) {
            *ret_at = i;
            return &t->hops[i];
        }
    }
    return NULL;
}

/* Print what was told below a span. Each hop is shown once, whatever the members say. */
static void
children_print(const trace *t, const char *span, const char *stem, unsigned depth)
{
    char below[4 * DEPTH_MAX + 8];
    size_t at = 0, next_at = 0;
    hop *child = child_next(t, span, 0, &at), *next;
    if (child != NULL && depth == DEPTH_MAX) {
        (void)printf("%s...\n", stem);
        return;
    }
    for (; child != NULL; child = next, at = next_at) {
        child->is_shown = true;
        next = child_next(t, span, at + 1, &next_at);
        hop_print(child, stem, next != NULL ? "├─ " : "└─ ");
        (void)snprintf(below, sizeof below, "%s%s", stem, next != NULL ? "│ " : "  ");
        children_print(t, child->span, below, depth + 1);
    }
}

static size_t
members_count(const trace *t)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        size_t k = 0;
        while (k < i && strcmp(t->hops[k].member, t->hops[i].member) != 0) {
            k++;
        }
        count += k == i;
    }
    return count;
}

/* Print those hops, that are not shown yet, whose parents are not there; or all of them: parents
 * that a client has made up may form a circle. */
static void
roots_print(const trace *t, bool all)
{
    for (size_t i = 0; i < t->count; i++) {
        hop *h = &t->hops[i];
        if (!h->is_shown && (all || is_root(t, h))) {
            h->is_shown = true;
            hop_print(h, "", "");
            children_print(t, h->span, "", 0);
        }
    }
}

static void
tree_print(const trace *t)
{
    char all[16];
    uint64_t end_ns = 0;
    for (size_t i = 0; i < t->count; i++) {
        uint64_t hop_end = t->hops[i].time_ns + (uint64_t)t->hops[i].run_ns;
        end_ns = hop_end > end_ns ? hop_end : end_ns;
    }
    size_t members = members_count(t);
    double all_ns = t->count > 0 ? (double)(end_ns - t->hops[0].time_ns) : 0;
    (void)printf("trace %s   %zu hop%s, %zu node%s, %s\n", t->id, t->count,
                 t->count == 1 ? "" : "s", members, members == 1 ? "" : "s",
                 time_text(all_ns, all));
    roots_print(t, false);
    roots_print(t, true);
}

/* ---- for other programs ---------------------------------------------------------------------- */

/* A label of dot, without what would end it. */
static void
dot_text(const char *text)
{
    for (; *text != '\0'; text++) {
        (void)putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text);
    }
}

static void
dot_print(const trace *t)
{
    (void)printf("digraph trace {\n  node [shape=box];\n");
    for (size_t i = 0; i < t->count; i++) {
        const hop *h = &t->hops[i];
        char run[16];
        (void)printf("  h%zu [label=\"", i);
        dot_text(h->actor);
        (void)printf("\\n%s\\n", h->member);
        dot_text(h->type);
        (void)printf(" %s\"%s];\n", time_text(h->run_ns, run),
                     strcmp(text_of(h->json, "end", ""), "handled") != 0 ? ", color=red" : "");
        for (size_t k = 0; k < t->count; k++) {
            if (strcmp(t->hops[k].span, h->parent) == 0) {
                (void)printf("  h%zu -> h%zu;\n", k, i);
                break;
            }
        }
    }
    (void)printf("}\n");
}

/* The trace-event format of Chromium and Perfetto: one process a member, one thread an actor. */
static cJSON *
chrome_make(const trace *t)
{
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "traceEvents");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < t->count; i++) {
        const hop *h = &t->hops[i];
        cJSON *event = cJSON_CreateObject(), *args = cJSON_AddObjectToObject(event, "args");
        ok = args != NULL && trpi_json_add_text(event, "name", h->type) &&
             trpi_json_add_text(event, "ph", "X") && trpi_json_add_text(event, "pid", h->member) &&
             trpi_json_add_text(event, "tid", h->actor) &&
             trpi_json_add_f64(event, "ts", (double)(h->time_ns - t->hops[0].time_ns) / 1e3) &&
             trpi_json_add_f64(event, "dur", h->run_ns / 1e3) &&
             trpi_json_add_text(args, "span", h->span) &&
             trpi_json_add_text(args, "parent", h->parent) &&
             trpi_json_add_f64(args, "waitUs", h->wait_ns / 1e3) &&
             trpi_json_add_f64(args, "netUs", h->net_ns / 1e3);
        ok = trpi_json_append(list, event, ok);
    }
    if (!ok) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

static bool
span_add(cJSON *list, const trace *t, const hop *h)
{
    bool handled = strcmp(text_of(h->json, "end", ""), "handled") == 0;
    trpi_span span = { .trace_id = t->id,
                       .span_id = h->span,
                       .parent_id = h->parent,
                       .name = h->type,
                       .actor = h->actor,
                       .failure = handled ? NULL : text_of(h->json, "reason", "unhandled"),
                       .begun_ns = h->time_ns,
                       .run_ns = (uint64_t)h->run_ns,
                       .attempt = (uint32_t)h->attempt };
    return trpi_span_add(list, &span);
}

/* One resource of OTLP: the member of a hop, by its full address, and the spans of its hops. */
static bool
resource_add(cJSON *list, const trace *t, const hop *of)
{
    cJSON *spans;
    bool ok = trpi_span_resource_add(list, text_of(of->json, "member", "?"), &spans);
    for (size_t i = 0; ok && i < t->count; i++) {
        ok = strcmp(t->hops[i].member, of->member) != 0 || span_add(spans, t, &t->hops[i]);
    }
    return ok;
}

/* The body of OTLP over HTTP, which a collector takes at /v1/traces. */
static cJSON *
otlp_make(const trace *t)
{
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "resourceSpans");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < t->count; i++) {
        size_t k = 0;
        while (k < i && strcmp(t->hops[k].member, t->hops[i].member) != 0) {
            k++;
        }
        ok = k < i || resource_add(list, t, &t->hops[i]);
    }
    if (!ok) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int
json_print(const trpi_cli *cli, cJSON *made)
{
    if (made == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    trpi_cli_print_json(cli, made);
    cJSON_Delete(made);
    return 0;
}

static int
trace_print(trpi_cli *cli, const cJSON *reply, const char *format)
{
    trace t;
    int code = 0;
    if (!trace_read(reply, &t)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    if (t.count == 0) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "no member has kept hops of %s", t.id);
    } else if (format != NULL && strcmp(format, "dot") == 0) {
        dot_print(&t);
    } else if (format != NULL && strcmp(format, "chrome") == 0) {
        code = json_print(cli, chrome_make(&t));
    } else if (format != NULL && strcmp(format, "otlp") == 0) {
        code = json_print(cli, otlp_make(&t));
    } else {
        tree_print(&t);
    }
    trpi_free(t.hops);
    return code;
}

/* Say what is missing, so that nobody takes a part for the whole. */
static void
missing_tell(const trpi_cli *cli, const cJSON *reply)
{
    const cJSON *silent;
    cJSON_ArrayForEach(silent, cJSON_GetObjectItemCaseSensitive(reply, "silent"))
    {
        if (cJSON_IsString(silent)) {
            trpi_cli_note(cli, "%s did not say what it has", silent->valuestring);
        }
    }
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "cut"))) {
        trpi_cli_note(cli, "a member has more hops than it can tell: the first ones are shown");
    }
}

static int
trace_show(trpi_cli *cli, const char *id)
{
    const char *format = trpi_cli_text(cli, TRPI_CLI_FORMAT);
    cJSON *reply, *request = trpi_cli_request_new(cli, "trace");
    if (format != NULL && strcmp(format, "tree") != 0 && strcmp(format, "dot") != 0 &&
        strcmp(format, "chrome") != 0 && strcmp(format, "otlp") != 0) {
        cJSON_Delete(request);
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "--format takes tree, dot, chrome or otlp, not '%s'", format);
    }
    if (id != NULL && !trpi_json_add_text(request, "text", id)) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (format == NULL && (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL)) {
        trpi_cli_print_json(cli, reply);
    } else {
        code = trace_print(cli, reply, format);
        missing_tell(cli, reply);
    }
    cJSON_Delete(reply);
    return code;
}

/* "1/100" or "100". */
static bool
sample_parse(const char *text, uint32_t *ret_one_in)
{
    text = strncmp(text, "1/", 2) == 0 ? text + 2 : text;
    return trpi_whole32_parse(text, 1, SAMPLE_MAX, ret_one_in);
}

static void
sampled_print(const trpi_cli *cli, const cJSON *reply)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "sampled"), *row;
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
        return;
    }
    cJSON_ArrayForEach(row, list)
    {
        (void)printf("%s  1/%.0f\n", text_of(row, "path", "?"),
                     trpi_cli_get_number(row, "oneIn", 0));
    }
    if (cJSON_GetArraySize(list) == 0) {
        trpi_cli_note(cli, "no actor of this node is sampled");
    }
}

static int
trace_sample(trpi_cli *cli, const char *action)
{
    const char *path = trpi_cli_text(cli, TRPI_CLI_PATH);
    const char *sample = trpi_cli_text(cli, TRPI_CLI_SAMPLE);
    bool lists = strcmp(action, "list") == 0;
    uint32_t one_in = 1;
    if (path == NULL && !lists) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "trace %s needs --path: which actors", action);
    }
    if (sample != NULL && !sample_parse(sample, &one_in)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--sample takes 1/N, N from 1 to %u, not '%s'",
                             SAMPLE_MAX, sample);
    }
    cJSON *reply, *request = trpi_cli_request_new(cli, "trace");
    if (!trpi_json_add_text(request, "action", action) ||
        (path != NULL && !trpi_json_add_text(request, "path", path)) ||
        !trpi_json_add_i64(request, "oneIn", one_in)) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code == 0) {
        sampled_print(cli, reply);
        cJSON_Delete(reply);
    }
    return code;
}

int
trpi_cli_run_trace(trpi_cli *cli)
{
    const char *what = cli->args[0];
    if (strcmp(what, "start") == 0 || strcmp(what, "stop") == 0 || strcmp(what, "list") == 0) {
        return trace_sample(cli, what);
    }
    return trace_show(cli, strcmp(what, "last") == 0 ? NULL : what);
}
