/* cmd_actors.c - send, ask, ping and tree: talk to actors of any node through the local one.
 *
 * Tests.   tests/system/cli.sh, tests/multinode/three_nodes.sh
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cluster/cli/cli.h"

#define TREE_DEPTH_DEFAULT 16u
#define TREE_DEPTH_MAX 64u
#define PING_COUNT_DEFAULT 1u
#define PING_COUNT_MAX 10000u
#define PING_INTERVAL_MS 200u

static bool
is_json(const trpi_cli *cli)
{
    return cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL;
}

/* Give the full path: word, or the address of --on MEMBER with word behind it. `tree` also takes a
 * member. */
int
trpi_cli_path_resolve(trpi_cli *cli, const char *word, char **ret_path)
{
    const char *member = trpi_cli_text(cli, TRPI_CLI_ON);
    if (trpi_cli_has(cli, TRPI_CLI_VIA)) { /* the name of a service */
        *ret_path = member == NULL ? trpi_strdup(word) : NULL;
        return *ret_path != NULL ? 0
               : member == NULL  ? trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory")
                                 : trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                                                 "--on is for a path; with --via write the name "
                                                  "of a service");
    }
    if (member == NULL && cli->command->run == trpi_cli_run_tree && strchr(word, '/') == NULL) {
        member = word;
        word = "/";
    }
    if (word[0] != '/' && strstr(word, "://") == NULL &&
        (member != NULL || cli->command->completes != 'p' ||
         cli->command->run != trpi_cli_run_ping)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "'%s' is not a path; a path looks like /user/a or "
                             "troupe.tcp://demo@10.0.0.2:2552/user/a",
                             word);
    }
    if (member == NULL) {
        *ret_path = trpi_strdup(word);
        return *ret_path != NULL ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    if (strncmp(word, "/cluster/", strlen("/cluster/")) == 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "an entity lives where there is room: no --on with %s", word);
    }
    if (word[0] != '/') {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "with --on the path begins with /, not with an address");
    }
    cJSON *reply, *request = trpi_cli_request_new(cli, "member-status");
    if (!trpi_json_add_text(request, "member", member)) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_buffer path = { 0 };
    if (trpi_buffer_printf(&path, TRPI_BUFFER_NO_LIMIT, "%s%s", trpi_cli_get(reply, "node"),
                           word) != TRP_OK ||
        (*ret_path = trpi_buffer_take_text(&path)) == NULL) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    cJSON_Delete(reply);
    return code;
}

/* Read stdin whole, at most TRPI_CTL_PAYLOAD_BYTES_MAX. A newline at the end is dropped: it is the
 * shell's, not the message's. */
static int
payload_read(char **ret_text)
{
    trpi_buffer buffer = { 0 };
    for (;;) {
        if (trpi_buffer_reserve(&buffer, 65536, TRPI_BUFFER_NO_LIMIT) !=
            TRP_OK) { /* bounded below */
            trpi_buffer_fini(&buffer);
            return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
        }
        ssize_t got = read(STDIN_FILENO, buffer.data + buffer.count, 65536);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            trpi_buffer_fini(&buffer);
            return trpi_cli_fail(TRPI_CTL_EXIT_DATA, "cannot read stdin: %s", strerror(errno));
        }
        if (got == 0) {
            break;
        }
        buffer.count += (size_t)got;
        if (buffer.count > TRPI_CTL_PAYLOAD_BYTES_MAX + 1) {
            break;
        }
    }
    if (buffer.count > 0 && buffer.data[buffer.count - 1] == '\n') {
        buffer.count--;
    }
    if (buffer.count > 0 && memchr(buffer.data, 0, buffer.count) != NULL) {
        trpi_buffer_fini(&buffer);
        return trpi_cli_fail(TRPI_CTL_EXIT_DATA, "the message is not text: it has a byte 0");
    }
    *ret_text = trpi_buffer_take_text(&buffer);
    return *ret_text != NULL ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static bool
is_utf8(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != 0;) {
        unsigned more = *c < 0x80             ? 0
                        : (*c & 0xe0) == 0xc0 ? 1
                        : (*c & 0xf0) == 0xe0 ? 2
                        : (*c & 0xf8) == 0xf0 ? 3
                                              : 4;
        if (more == 4 || *c == 0xc0 || *c == 0xc1) {
            return false;
        }
        for (c++; more > 0; more--, c++) {
            if ((*c & 0xc0) != 0x80) {
                return false;
            }
        }
    }
    return true;
}

/* json: an object, array, number or literal; all other text is a string, "quoted" too. */
static const char *
payload_type(const char *text)
{
    cJSON *json = NULL;
    if (trpi_json_parse(text, strlen(text), &json, NULL) != TRP_OK) {
        return "string";
    }
    const char *type = cJSON_IsString(json) ? "string" : "json";
    cJSON_Delete(json);
    return type;
}

/* Give the text of the message: the second argument, or stdin. */
static int
payload_get(trpi_cli *cli, char **ret_text)
{
    const char *argument = cli->args_count > 1 ? cli->args[1] : "-";
    int code = 0;
    if (strcmp(argument, "-") == 0) {
        trpi_cli_disconnect(cli); /* stdin may be a terminal: close the connection meanwhile */
        code = payload_read(ret_text);
    } else {
        *ret_text = trpi_strdup(argument);
        code = *ret_text != NULL ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    if (code == 0 && strlen(*ret_text) > TRPI_CTL_PAYLOAD_BYTES_MAX) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_DATA, "the message is larger than %u bytes",
                             TRPI_CTL_PAYLOAD_BYTES_MAX);
    } else if (code == 0 && !is_utf8(*ret_text)) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_DATA, "the message is not UTF-8 text");
    }
    return code;
}

static int
message_request(trpi_cli *cli, const char *path, const char *text, cJSON **ret_request)
{
    const char *type = trpi_cli_text(cli, TRPI_CLI_TYPE);
    bool is_plain = type == NULL || strcmp(type, "string") == 0;
    cJSON *json = NULL;
    size_t offset = 0;
    if (!is_plain && trpi_json_parse(text, strlen(text), &json, &offset) != TRP_OK) {
        return trpi_cli_fail(TRPI_CTL_EXIT_DATA,
                             "--type %s takes JSON; the text is wrong at byte %zu", type, offset);
    }
    cJSON_Delete(json);
    cJSON *request = trpi_cli_request_new(cli, cli->command->name);
    bool done = trpi_json_add_text(request, "path", path) &&
                trpi_json_add_text(request, "type", type != NULL ? type : payload_type(text)) &&
                trpi_json_add_text(request, "text", text);
    if (!done) {
        cJSON_Delete(request);
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    *ret_request = request;
    return 0;
}

static int
reply_print(const trpi_cli *cli, const cJSON *final)
{
    const cJSON *reply = cJSON_GetObjectItemCaseSensitive(final, "reply");
    const cJSON *json = cJSON_GetObjectItemCaseSensitive(reply, "json");
    const char *text = trpi_json_get_text(reply, "text");
    if (reply == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL,
                             "the program at %s is not a troupe node of this version: no reply in "
                             "its answer",
                             cli->path);
    }
    if (is_json(cli)) {
        trpi_cli_print_json(cli, final);
    } else if (cli->output == TRPI_CLI_NAME) {
        (void)puts(trpi_cli_get(final, "from"));
    } else if (text != NULL) {
        (void)puts(text);
    } else { /* JSON, or {"type":..., "base64":...} */
        char *line = trpi_json_print(json != NULL ? json : reply);
        (void)puts(line != NULL ? line : "null");
        cJSON_free(line);
    }
    trpi_cli_flush();
    if (cli->verbose) {
        trpi_cli_note(cli, "from %s, %.2f ms", trpi_cli_get(final, "from"),
                      trpi_cli_get_number(final, "elapsedMs", 0));
    }
    return 0;
}

/* Run send or ask, which differ in their replies. */
static int
message_run(trpi_cli *cli, uint32_t count)
{
    char *path TRPI_AUTO_FREE = NULL;
    char *text TRPI_AUTO_FREE = NULL;
    int code = trpi_cli_path_resolve(cli, cli->args[0], &path);
    code = code != 0 ? code : payload_get(cli, &text);
    for (uint32_t round = 0; round < count && code == 0; round++) {
        cJSON *request = NULL, *final = NULL;
        code = message_request(cli, path, text, &request);
        code = code != 0 ? code : trpi_cli_call(cli, request, NULL, NULL, &final);
        if (code != 0) {
            break;
        }
        if (cli->command->run == trpi_cli_run_ask) {
            code = reply_print(cli, final);
        } else if (is_json(cli)) {
            trpi_cli_print_json(cli, final);
        } else if (cli->verbose) {
            trpi_cli_note(cli, "sent to %s", trpi_cli_get(final, "path"));
        }
        cJSON_Delete(final);
    }
    return code;
}

int
trpi_cli_run_send(trpi_cli *cli)
{
    cli->order = "the message is on its way";
    return message_run(cli, 1);
}

int
trpi_cli_run_publish(trpi_cli *cli)
{
    char *text TRPI_AUTO_FREE = NULL;
    cJSON *request = NULL, *final = NULL;
    int code = payload_get(cli, &text);
    code = code != 0 ? code : message_request(cli, cli->args[0], text, &request);
    code = code != 0 ? code : trpi_cli_call(cli, request, NULL, NULL, &final);
    if (code != 0) {
        return code;
    }
    double delivered = trpi_cli_get_number(final, "delivered", 0);
    double nodes = trpi_cli_get_number(final, "nodes", 0);
    double silent = trpi_cli_get_number(final, "silent", 0);
    if (is_json(cli)) {
        trpi_cli_print_json(cli, final);
    } else if (delivered > 0 || silent > 0) {
        (void)printf("delivered to %.0f subscriber%s on %.0f node%s\n", delivered,
                     delivered == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
    }
    trpi_cli_flush();
    if (silent > 0) {
        code = trpi_cli_fail(delivered > 0 ? 0 : TRPI_CTL_EXIT_TIMEOUT,
                             "no answer of %.0f node%s with subscribers", silent,
                             silent == 1 ? "" : "s");
    } else if (delivered == 0) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "nobody subscribes to %s", cli->args[0]);
    }
    cJSON_Delete(final);
    return code;
}

int
trpi_cli_run_ask(trpi_cli *cli)
{
    uint32_t count;
    if (!trpi_cli_number(cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 1, &count)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    return message_run(cli, count);
}

typedef struct ping_result {
    const char *target;
    uint32_t sent, received;
    double times[PING_COUNT_MAX];
} ping_result;

static int
compare_times(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int
ping_once(trpi_cli *cli, ping_result *result)
{
    cJSON *final = NULL, *request = trpi_cli_request_new(cli, "ping");
    bool done = trpi_json_add_text(request, "target", result->target) &&
                trpi_json_add_i64(request, "seq", result->sent + 1);
    if (!done) {
        cJSON_Delete(request);
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    result->sent++;
    int code = trpi_cli_call_quiet(cli, request, &final);
    if (code == 0) {
        double ms = trpi_cli_get_number(final, "elapsedMs", 0);
        result->times[result->received++] = ms;
        if (cli->output == TRPI_CLI_JSONL) {
            trpi_cli_print_json(cli, final);
        } else if (cli->output == TRPI_CLI_NAME) {
            (void)puts(trpi_cli_get(final, "from"));
            trpi_cli_flush();
        } else if (!is_json(cli)) {
            (void)printf("reply from %s: seq=%u time=%.2f ms\n",
                         trpi_cli_short(trpi_cli_get(final, "from")), result->sent, ms);
            trpi_cli_flush();
        }
    } else if (final != NULL) {
        (void)trpi_cli_fail(0, "%s", trpi_cli_get(final, "error")); /* code is the error */
    }
    cJSON_Delete(final);
    return code;
}

static cJSON *
ms_or_null(double ms, uint32_t received)
{
    return received > 0 ? cJSON_CreateNumber(ms) : cJSON_CreateNull();
}

static int
ping_summary(const trpi_cli *cli, ping_result *result)
{
    double sum = 0;
    uint32_t n = result->received;
    qsort(result->times, n, sizeof result->times[0], compare_times);
    for (uint32_t index = 0; index < n; index++) {
        sum += result->times[index];
    }
    double low = n > 0 ? result->times[0] : 0, average = n > 0 ? sum / n : 0;
    double p99 = n > 0 ? result->times[((size_t)n * 99 + 99) / 100 - 1] : 0; /* nearest rank */
    if (cli->output != TRPI_CLI_JSON && n == 0) {
        trpi_cli_note(cli, "%u sent, 0 received, %u lost", result->sent, result->sent);
        return 0;
    }
    if (cli->output != TRPI_CLI_JSON) {
        trpi_cli_note(cli, "%u sent, %u received, %u lost, min/avg/p99 %.2f/%.2f/%.2f ms",
                      result->sent, n, result->sent - n, low, average, p99);
        return 0;
    }
    cJSON *json = cJSON_CreateObject();
    bool done = trpi_json_add_text(json, "target", result->target) &&
                trpi_json_add_i64(json, "sent", result->sent) &&
                trpi_json_add_i64(json, "received", n) &&
                cJSON_AddItemToObject(json, "minMs", ms_or_null(low, n)) &&
                cJSON_AddItemToObject(json, "avgMs", ms_or_null(average, n)) &&
                cJSON_AddItemToObject(json, "p99Ms", ms_or_null(p99, n));
    if (done) {
        trpi_cli_print_json(cli, json);
    }
    cJSON_Delete(json);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

int
trpi_cli_run_ping(trpi_cli *cli)
{
    static ping_result result; /* zeroed; its times are large */
    char *target TRPI_AUTO_FREE = NULL;
    uint32_t count, interval_ms = PING_INTERVAL_MS;
    const char *interval = trpi_cli_text(cli, TRPI_CLI_INTERVAL);
    if (!trpi_cli_number(cli, TRPI_CLI_COUNT, 1, PING_COUNT_MAX, PING_COUNT_DEFAULT, &count)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    if (interval != NULL && !trpi_cli_duration_parse(interval, &interval_ms)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "--interval takes a duration as 200ms or 1s, not '%s'", interval);
    }
    int code = trpi_cli_path_resolve(cli, cli->args[0], &target);
    if (code != 0) {
        return code;
    }
    int worst = 0;
    result.target = target;
    for (uint32_t round = 0; round < count; round++) {
        if (round > 0) {
            trpi_cli_disconnect(cli);
            trpi_cli_sleep_ms(interval_ms);
        }
        code = ping_once(cli, &result);
        if (code != 0) {
            worst = code;
        }
        if (code != 0 && code != TRPI_CTL_EXIT_TIMEOUT) { /* repeating the request does not help */
            break;
        }
    }
    if (result.received > 0 || worst == TRPI_CTL_EXIT_TIMEOUT) {
        code = ping_summary(cli, &result);
        worst = worst != 0 ? worst : code;
    }
    return worst;
}

static const char *
last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Is entry the last child of its parent? In preorder: no later entry of its depth comes before one
 * that is less deep. */
static bool
is_last_child(const cJSON *entry)
{
    double depth = trpi_cli_get_number(entry, "depth", 0);
    for (const cJSON *next = entry->next; next != NULL; next = next->next) {
        double next_depth = trpi_cli_get_number(next, "depth", 0);
        if (next_depth <= depth) {
            return next_depth < depth;
        }
    }
    return true;
}

static bool
tree_row(const cJSON *entry, bool *open, trpi_cli_table *table)
{
    char drawing[1024], processed[32], restarts[48] = "";
    double deep = trpi_cli_get_number(entry, "depth", 0);
    unsigned depth = deep > 0 && deep <= TREE_DEPTH_MAX ? (unsigned)deep : 0;
    size_t used = 0;
    drawing[0] = '\0';
    if (depth > 0) {
        open[depth] = !is_last_child(entry);
    }
    for (unsigned level = 1; level <= depth; level++) {
        const char *piece =
            level < depth ? (open[level] ? "│  " : "   ") : (open[level] ? "├─ " : "└─ ");
        used += (size_t)snprintf(drawing + used, sizeof drawing - used, "%s", piece);
    }
    const char *path = trpi_cli_get(entry, "path");
    (void)snprintf(drawing + used, sizeof drawing - used, "%s",
                   depth == 0 ? path : last_name(path));
    if (trpi_cli_get_number(entry, "restarts", 0) > 0) {
        (void)snprintf(restarts, sizeof restarts, "restarts %.0f",
                       trpi_cli_get_number(entry, "restarts", 0));
    }
    char handled[48];
    (void)snprintf(handled, sizeof handled, "%s msg",
                   trpi_cli_grouped(trpi_cli_get_number(entry, "processed", 0), processed));
    const char *cells[] = { drawing, trpi_cli_get(entry, "behaviour"), handled, restarts };
    return trpi_cli_table_row(table, 4, cells);
}

static int
tree_print(const trpi_cli *cli, const cJSON *final)
{
    bool open[TREE_DEPTH_MAX + 1] = { false };
    trpi_cli_table table = { 0 };
    bool done = true;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(final, "entries"))
    {
        if (cli->output == TRPI_CLI_NAME) {
            (void)puts(trpi_cli_get(entry, "path"));
        } else {
            done = done && tree_row(entry, open, &table);
        }
    }
    trpi_cli_table_print(&table, "");
    trpi_cli_table_fini(&table);
    if (trpi_cli_get_true(final, "truncated")) {
        trpi_cli_flush();
        trpi_cli_note(cli, "the tree is larger than what is shown; give a PATH or --depth");
    }
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
tree_once(trpi_cli *cli)
{
    char *path TRPI_AUTO_FREE = NULL;
    uint32_t depth;
    uint32_t usual = strcmp(cli->command->name, "ls") == 0 ? 1 : TREE_DEPTH_DEFAULT;
    if (!trpi_cli_number(cli, TRPI_CLI_DEPTH, 0, TREE_DEPTH_MAX, usual, &depth)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    int code = trpi_cli_path_resolve(cli, cli->args_count > 0 ? cli->args[0] : "/", &path);
    if (code != 0) {
        return code;
    }
    cJSON *final, *request = trpi_cli_request_new(cli, "tree");
    if (!trpi_json_add_text(request, "path", path) || !trpi_json_add_i64(request, "depth", depth)) {
        cJSON_Delete(request);
        request = NULL;
    }
    code = trpi_cli_call(cli, request, NULL, NULL, &final);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    if (is_json(cli)) {
        trpi_cli_print_json(cli, final);
    } else {
        code = tree_print(cli, final);
    }
    cJSON_Delete(final);
    return code;
}

int
trpi_cli_run_tree(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, tree_once);
}
