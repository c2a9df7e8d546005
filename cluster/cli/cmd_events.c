/* cmd_events.c - `events` streams changes of the cluster, `wait` returns when its conditions hold.
 *
 * Why.     `wait` looks at the members reply on one connection every POLL_MS: the reply costs
 *          microseconds, needs no state in the node, and each look is complete, so no event can be
 *          missed.
 * Tests.   tests/system/cli.sh, tests/system/cli_fake.sh
 */
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/units.h"

#include "cluster/cli/cli.h"

#define POLL_MS 50u

const char *const trpi_cli_event_types[] = {
    "MemberJoined",    "MemberWeaklyUp",     "MemberUp",          "MemberLeft",
    "MemberExited",    "MemberDowned",       "MemberRemoved",     "UnreachableMember",
    "ReachableMember", "LeaderChanged",      "RoleLeaderChanged", "SeenChanged",
    "DowningDecision", "ClusterShuttingDown"
};
const size_t trpi_cli_event_types_count =
    sizeof(trpi_cli_event_types) / sizeof(trpi_cli_event_types)[0];

typedef struct event_stream {
    uint32_t left;   /* events until the end; 0: no limit */
    uint64_t end_ms; /* 0: none */
} event_stream;

static void
line_append(char *line, size_t bytes, const char *key, const char *text)
{
    size_t used = strlen(line);
    if (text != NULL && text[0] != '\0') {
        (void)snprintf(line + used, bytes - used, "  %s%s", key, text);
    }
}

/* "12:04:10.113  UnreachableMember  demo@10.0.0.3:2552  Up  observed by demo@10.0.0.1:2552" */
static void
print_event(const cJSON *event)
{
    char line[2048];
    const char *time = trpi_cli_get(event, "time");
    const char *clock = strchr(time, 'T');
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(event, "member");
    const cJSON *item;
    (void)snprintf(line, sizeof line, "%.12s  %-17s", clock != NULL ? clock + 1 : time,
                   trpi_cli_get(event, "type"));
    if (cJSON_IsObject(member)) {
        line_append(line, sizeof line, "", trpi_cli_short(trpi_cli_get(member, "node")));
        line_append(line, sizeof line, "", trpi_cli_get(member, "status"));
    }
    if (cJSON_HasObjectItem(event, "leader")) {
        const char *leader = trpi_json_get_text(event, "leader");
        line_append(line, sizeof line, "role ", trpi_json_get_text(event, "role"));
        line_append(line, sizeof line, "", leader != NULL ? trpi_cli_short(leader) : "nobody");
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(event, "observedBy"))
    {
        const char *observer = cJSON_GetStringValue(item);
        line_append(line, sizeof line, "observed by ",
                    observer != NULL ? trpi_cli_short(observer) : NULL);
    }
    if (cJSON_HasObjectItem(event, "seenBy")) {
        char seen[64];
        (void)snprintf(seen, sizeof seen, "by %.0f of %.0f members",
                       cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(event, "seenBy")),
                       cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(event, "members")));
        line_append(line, sizeof line, "", seen);
    }
    line_append(line, sizeof line, "", trpi_json_get_text(event, "strategy"));
    line_append(line, sizeof line, "", trpi_json_get_text(event, "decision"));
    line_append(line, sizeof line, "", trpi_json_get_text(event, "reason"));
    (void)puts(line);
}

/* Print the subject of an event: the member, or the leader. */
static void
print_name(const cJSON *event)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(event, "member");
    const char *name =
        trpi_json_get_text(member != NULL ? member : event, member != NULL ? "node" : "leader");
    if (name != NULL) {
        (void)puts(name);
        trpi_cli_flush();
    }
}

static void
on_time_over(int signal_number)
{
    (void)signal_number;
    _exit(0); /* each event was flushed when it came */
}

/* --timeout of a stream that has begun is its wanted end, not an error. 0: none. */
static void
end_at(uint64_t end_ms)
{
    uint64_t now_ms = trpi_cli_now_ms(), ms = end_ms > now_ms ? end_ms - now_ms : 1;
    struct sigaction action = { .sa_handler = on_time_over };
    struct itimerval once = { .it_value = { .tv_sec = (time_t)(ms / 1000),
                                            .tv_usec = (suseconds_t)(ms % 1000) * 1000 } };
    if (end_ms != 0) {
        (void)sigaction(SIGALRM, &action, NULL); /* EINVAL only for a wrong number */
        (void)setitimer(ITIMER_REAL, &once, NULL);
    }
}

static bool
on_event(trpi_cli *cli, const cJSON *object, void *arg)
{
    event_stream *stream = arg;
    const cJSON *event = cJSON_GetObjectItemCaseSensitive(object, "event");
    if (event == NULL) { /* progress: subscribed. From here on the limit is the wanted end */
        end_at(stream->end_ms);
        if (cli->verbose) {
            trpi_cli_note(cli, "%s", trpi_cli_get(object, "progress"));
        }
        return true;
    }
    if (cli->output == TRPI_CLI_TABLE) {
        print_event(event);
        trpi_cli_flush();
    } else if (cli->output == TRPI_CLI_NAME) {
        print_name(event);
    } else {
        trpi_cli_print_json(cli, event);
    }
    return stream->left == 0 || --stream->left > 0;
}

/* Add the names in text ("A,B") to list. 0, or the exit code. */
static int
add_types(cJSON *list, const char *text)
{
    while (*text != '\0') {
        char name[64];
        size_t bytes = strcspn(text, ",");
        (void)snprintf(name, sizeof name, "%.*s",
                       (int)(bytes < sizeof name ? bytes : sizeof name - 1), text);
        size_t index = 0;
        while (index < trpi_cli_event_types_count &&
               strcmp(trpi_cli_event_types[index], name) != 0) {
            index++;
        }
        if (index == trpi_cli_event_types_count) {
            const char *meant =
                trpi_cli_suggest(name, trpi_cli_event_types, trpi_cli_event_types_count);
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "no event type '%s'%s%s%s", name,
                                 meant != NULL ? "; did you mean '" : "",
                                 meant != NULL ? meant : "", meant != NULL ? "'?" : "");
        }
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(name))) {
            return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
        }
        text += bytes + (text[bytes] == ',');
    }
    return 0;
}

int
trpi_cli_run_events(trpi_cli *cli)
{
    event_stream stream = { 0 };
    uint32_t limit_ms = cli->timeout_ms;
    cli->timeout_ms = 0; /* for the request: it has no end of its own */
    if (!trpi_cli_number(cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &stream.left)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    if (cli->output == TRPI_CLI_JSON) {
        cli->output =
            TRPI_CLI_JSONL; /* one object a line: a stream has no end to close a bracket at */
    }
    cJSON *request = trpi_cli_request_new(cli, "events");
    /* All events from now on: the snapshot comes first, so that the stream gives the state. */
    bool whole = !trpi_cli_has(cli, TRPI_CLI_TYPE) && !trpi_cli_has(cli, TRPI_CLI_COUNT);
    bool done =
        trpi_json_add_bool(request, "snapshot", whole || trpi_cli_has(cli, TRPI_CLI_SNAPSHOT));
    cJSON *types = NULL; /* without the field: all */
    if (done && trpi_cli_has(cli, TRPI_CLI_TYPE)) {
        types = cJSON_AddArrayToObject(request, "types");
        done = types != NULL;
    }
    int code = done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    for (unsigned index = 0; index < cli->flags[TRPI_CLI_TYPE].count && code == 0; index++) {
        code = add_types(types, cli->flags[TRPI_CLI_TYPE].values[index]);
    }
    if (code == 0 && !trpi_cli_is_remote(cli)) {
        cli->timeout_ms = limit_ms; /* a node that does not accept is an error, no end */
        code = trpi_cli_connect(cli);
        cli->timeout_ms = 0;
    }
    if (code != 0) {
        cJSON_Delete(request);
        return code;
    }
    cJSON *final;
    cli->first_is_note = limit_ms == 0;
    cli->first_ms = limit_ms > 0 ? limit_ms : TRPI_CTL_TIMEOUT_MS_DEFAULT;
    cli->first_due_ms = trpi_cli_now_ms() + cli->first_ms;
    stream.end_ms = limit_ms > 0 ? cli->first_due_ms : 0;
    code = trpi_cli_call(cli, request, on_event, &stream, &final);
    cJSON_Delete(final);
    return code;
}

typedef struct wanted_role {
    char name[64];
    uint32_t count;
} wanted_role;

typedef struct condition {
    bool up, converged;
    uint32_t members; /* 0: any */
    const char *gone;
    bool gone_seen; /* it has been a member while this command waited */
    unsigned roles_count;
    wanted_role roles[TRPI_CLI_REPEAT_MAX];
    char pending[512]; /* the conditions that do not hold yet */
} condition;

static int
condition_parse(const trpi_cli *cli, condition *c)
{
    c->gone = trpi_cli_text(cli, TRPI_CLI_GONE);
    c->converged = trpi_cli_has(cli, TRPI_CLI_CONVERGED);
    if (c->gone != NULL && strstr(c->gone, "://") != NULL) {
        int code = trpi_cli_address_check(c->gone);
        if (code != 0) {
            return code;
        }
    }
    if (!trpi_cli_number(cli, TRPI_CLI_MEMBERS, 1, TRPI_CLI_COUNT_MAX, 0, &c->members)) {
        return TRPI_CTL_EXIT_USAGE;
    }
    for (unsigned index = 0; index < cli->flags[TRPI_CLI_ROLE].count; index++) {
        const char *text = cli->flags[TRPI_CLI_ROLE].values[index];
        wanted_role *role = &c->roles[c->roles_count++];
        size_t bytes = strcspn(text, "=");
        (void)snprintf(role->name, sizeof role->name, "%.*s", (int)bytes, text);
        if (bytes == 0 || bytes >= sizeof role->name || text[bytes] == '\0' ||
            !trpi_whole32_parse(text + bytes + 1, 0, TRPI_CLI_COUNT_MAX, &role->count)) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--role of wait takes ROLE=N, not '%s'",
                                 text);
        }
    }
    bool any = c->members != 0 || c->gone != NULL || c->converged || c->roles_count > 0;
    c->up = trpi_cli_has(cli, TRPI_CLI_UP) || !any;
    return 0;
}

static bool
is_up(const cJSON *member)
{
    const char *status = trpi_cli_get(member, "status");
    return strcmp(status, "Up") == 0 || strcmp(status, "WeaklyUp") == 0;
}

static uint32_t
count_up(const cJSON *reply, const char *role)
{
    uint32_t count = 0;
    const cJSON *member, *item;
    cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(reply, "members"))
    {
        bool match = role == NULL;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(member, "roles"))
        {
            match = match ||
                    strcmp(cJSON_GetStringValue(item) != NULL ? item->valuestring : "", role) == 0;
        }
        count += match && is_up(member);
    }
    return count;
}

static bool
is_same_member(const cJSON *member, const char *name)
{
    const char *address = trpi_cli_get(member, "node");
    const char *short_address = trpi_cli_short(address);
    const char *at = strchr(short_address, '@');
    const char *host = at != NULL ? at + 1 : short_address, *port = strrchr(host, ':');
    size_t host_bytes = port != NULL ? (size_t)(port - host) : strlen(host);
    char uid[24];
    return strcmp(address, name) == 0 || strcmp(short_address, name) == 0 ||
           strcmp(host, name) == 0 ||
           (strlen(name) == host_bytes && memcmp(host, name, host_bytes) == 0) ||
           strcmp(trpi_cli_get(member, "nodeUid"), name) == 0 ||
           strcasecmp(trpi_cli_uid(member, "nodeUid", uid), name) == 0;
}

static bool
is_present(const cJSON *reply, const char *name)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(reply, "members"))
    {
        if (is_same_member(member, name)) {
            return true;
        }
    }
    return false;
}

static void pending_add(condition *c, bool holds, const char *format, ...) TRP_PRINTF(3, 4);
static void
pending_add(condition *c, bool holds, const char *format, ...)
{
    size_t used = strlen(c->pending);
    if (holds || used + 3 >= sizeof c->pending) {
        return;
    }
    va_list list;
    va_start(list, format);
    if (used > 0) {
        memcpy(c->pending + used, ", ", 3);
        used += 2;
    }
    (void)vsnprintf(c->pending + used, sizeof c->pending - used, format, list);
    va_end(list);
}

/* Fill c->pending; empty means that all holds. */
static void
condition_look(condition *c, const cJSON *reply)
{
    const char *self_status = trpi_cli_get(reply, "selfStatus");
    c->pending[0] = '\0';
    pending_add(c, !c->up || strcmp(self_status, "Up") == 0 || strcmp(self_status, "WeaklyUp") == 0,
                "this node is %s", strcmp(self_status, "Removed") == 0 ? "no member" : self_status);
    uint32_t up = count_up(reply, NULL);
    pending_add(c, up >= c->members, "%u/%u Up", up, c->members);
    for (unsigned index = 0; index < c->roles_count; index++) {
        uint32_t with_role = count_up(reply, c->roles[index].name);
        pending_add(c, with_role >= c->roles[index].count, "%u/%u Up with role %s", with_role,
                    c->roles[index].count, c->roles[index].name);
    }
    bool present = c->gone != NULL && is_present(reply, c->gone);
    c->gone_seen = c->gone_seen || present;
    pending_add(c, !present, "%s is still a member", c->gone);
    pending_add(c, !c->converged || trpi_cli_get_true(reply, "converged"), "not converged");
    const char *why = trpi_json_get_text(reply, "notJoined");
    pending_add(c, why == NULL || c->pending[0] == '\0', "the cluster refuses this node: %s", why);
}

/* A leaving node does not come back: a condition on it can no longer become true. */
static bool
is_impossible(const condition *c, const char *self_status)
{
    bool leaving = strcmp(self_status, "Leaving") == 0 || strcmp(self_status, "Exiting") == 0 ||
                   strcmp(self_status, "Down") == 0;
    return leaving && (c->up || c->members > 0 || c->roles_count > 0);
}

/* Look for the node once. TRP_ECONN: no process listens, since a node was killed before. */
static trp_err
wait_connect(trpi_cli *cli)
{
    const char *path = trpi_cli_socket_of(cli);
    char dirs[TRPI_CTL_DIRS_MAX][TRPI_CTL_PATH_BYTES];
    trpi_ctl_found found = { 0 };
    size_t count = trpi_ctl_dirs(dirs);
    trp_err err = path != NULL ? trpi_ctl_open(path, POLL_MS, &cli->fd)
                               : trpi_ctl_find(dirs, count, trpi_cli_text(cli, TRPI_CLI_SYSTEM),
                                               POLL_MS, &found, &cli->fd);
    if (err == TRP_OK) {
        (void)snprintf(cli->path, sizeof cli->path, "%s", path != NULL ? path : found.path);
    }
    return err;
}

/* A look gets the time that is left of the limit, and at most the default timeout of a request, so
 * that one look at a hung node does not take the whole limit. */
static void
look_limit(trpi_cli *cli, uint64_t left_ms)
{
    uint64_t ms = left_ms < TRPI_CTL_TIMEOUT_MS_DEFAULT ? left_ms : TRPI_CTL_TIMEOUT_MS_DEFAULT;
    cli->timeout_ms =
        (uint32_t)(ms > TRPI_CLI_GRACE_MS + POLL_MS ? ms - TRPI_CLI_GRACE_MS : POLL_MS);
}

/* Look once. TRPI_CTL_EXIT_TIMEOUT: not yet. */
static int
wait_look(trpi_cli *cli, condition *c, bool last)
{
    cJSON *reply = NULL;
    cli->late[0] = '\0';
    if (cli->fd < 0) { /* a node that is starting: be silent until the time is over */
        trp_err err = wait_connect(cli);
        if (err == TRP_ETIMEDOUT || (!last && (err == TRP_ENOENT || err == TRP_ECONN))) {
            (void)snprintf(c->pending, sizeof c->pending, "%s",
                           err == TRP_ETIMEDOUT ? "the node does not accept" : "");
            return TRPI_CTL_EXIT_TIMEOUT;
        }
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "members"), NULL, NULL, &reply);
    if (code != 0) {
        if (cli->late[0] != '\0') {
            (void)snprintf(c->pending, sizeof c->pending, "%s", cli->late);
        }
        return code;
    }
    condition_look(c, reply);
    if (c->pending[0] == '\0') {
        code = 0;
    } else if (is_impossible(c, trpi_cli_get(reply, "selfStatus"))) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NO,
                             "this node is %s: the condition can no longer become "
                             "true (%s)",
                             trpi_cli_get(reply, "selfStatus"), c->pending);
    } else {
        code = TRPI_CTL_EXIT_TIMEOUT;
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_wait(trpi_cli *cli)
{
    static condition c; /* zeroed; its texts are large */
    char shown[sizeof c.pending] = "";
    int code = condition_parse(cli, &c);
    if (code != 0) {
        return code;
    }
    uint64_t begin = trpi_cli_now_ms(), limit_ms = cli->timeout_ms;
    cli->holds_late = true;
    for (;;) {
        uint64_t elapsed = trpi_cli_now_ms() - begin;
        bool last = elapsed >= limit_ms;
        look_limit(cli, last ? 0 : limit_ms - elapsed);
        code = wait_look(cli, &c, last);
        if (code != TRPI_CTL_EXIT_TIMEOUT) {
            break;
        }
        elapsed = trpi_cli_now_ms() - begin;
        if (last || (cli->late[0] != '\0' && elapsed >= limit_ms)) { /* no other look: it hangs */
            return trpi_cli_fail(code, "still waiting after %.1f s: %s", (double)elapsed / 1000,
                                 c.pending);
        }
        if (strcmp(shown, c.pending) != 0 && !cli->quiet &&
            (cli->verbose || isatty(STDERR_FILENO))) {
            (void)fprintf(stderr, "%s ...\n", c.pending);
        }
        memcpy(shown, c.pending, sizeof shown);
        trpi_cli_sleep_ms(POLL_MS);
    }
    /* gone already, or misspelt: the user must see which */
    if (code == 0 && c.gone != NULL && !c.gone_seen) {
        trpi_cli_note(cli, "%s was not a member when the wait began", c.gone);
    }
    if (code == 0 && cli->verbose) {
        trpi_cli_note(cli, "done after %.1f s", (double)(trpi_cli_now_ms() - begin) / 1000);
    }
    return code;
}
