/* endpoint_events.c - `events` through the management API of a node: its server-sent events become
 * the objects of the control protocol.
 *
 * Shape.   GET /cluster/domain-events --> sse.c --> {"event":{...}} --> the command
 *          A stream that breaks is asked for again with the id of its last event.
 * Must hold.
 *   endpoint-events-V1  The command is given each event of its types once, in the order of the
 *       node, or it is told that some are lost.                              (event_take)
 *   endpoint-events-V2  "subscribed" is told when the state has been passed, with which the first
 *       id comes: what happens from then on comes as events.                    (bytes_take)
 * Limits.  GIVE_UP_MS from the end of a stream until it has to be there again.
 * Tests.   tests/system/endpoint.sh
 */
#include "cluster/cli/endpoint.h"

#ifdef HAVE_LIBCURL

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cli/sse.h"

#define PATH "/cluster/domain-events"
#define GIVE_UP_MS 30000u
#define RETRY_MS 1000u
#define SILENT_S 30L /* the node sends something every 10 s */

typedef struct reading {
    trpi_cli *cli;
    trpi_transfer *t; /* the present one */
    trpi_sse sse;
    trpi_cli_stream_fn stream;
    void *arg;
    bool snapshot;  /* the state is wanted, too */
    bool begun;     /* "subscribed" was told */
    bool enough;    /* the command wants no more */
    bool late;      /* nothing has begun in time */
    bool is_stream; /* of this transfer: 200 */
    trp_err err;    /* of the stream's text */
    unsigned resets;
} reading;

/* ---- events ---------------------------------------------------------------------------------- */

/* Take away what the management API adds for clients of Akka's. */
static void
event_narrow(cJSON *event)
{
    cJSON *member = cJSON_GetObjectItemCaseSensitive(event, "member");
    cJSON_DeleteItemFromObjectCaseSensitive(member, "dataCenter");
    cJSON_DeleteItemFromObjectCaseSensitive(member, "uniqueAddress");
    cJSON_DeleteItemFromObjectCaseSensitive(event, "address");
}

static bool
object_pass(reading *r, const char *key, cJSON *value)
{
    cJSON *object = cJSON_CreateObject();
    bool ok = cJSON_AddItemToObject(object, key, value);
    if (!ok) {
        cJSON_Delete(value);
        r->err = TRP_ENOMEM;
    }
    trpi_cli_object_clean(r->cli, object);
    r->enough = ok && !r->stream(r->cli, object, r->arg);
    cJSON_Delete(object);
    return ok && !r->enough;
}

/* A trpi_sse_fn. */
static bool
event_take(void *arg, const char *type, const char *data)
{
    reading *r = arg;
    cJSON *event = NULL;
    if (strcmp(type, "Reset") == 0) {
        r->resets++;
        if (r->resets > 1) { /* endpoint-events-V1 */
            trpi_cli_note(r->cli,
                          "events were lost: the node has restarted, or has none so old any "
                          "more%s",
                          r->snapshot ? "; its present state follows" : "");
        }
        return true;
    }
    if (trpi_json_parse(data, strlen(data), &event, NULL) != TRP_OK || !cJSON_IsObject(event)) {
        cJSON_Delete(event);
        r->err = TRP_EDATA;
        return false;
    }
    if (trpi_cli_get_true(event, "snapshot") && !r->snapshot) {
        cJSON_Delete(event);
        return true;
    }
    event_narrow(event);
    return object_pass(r, "event", event);
}

/* ---- the transfer ---------------------------------------------------------------------------- */

static size_t
bytes_take(char *bytes, size_t one, size_t count, void *arg)
{
    reading *r = arg;
    long status = 0;
    (void)r->t->curl->curl_easy_getinfo(r->t->easy, CURLINFO_RESPONSE_CODE, &status);
    r->is_stream = status == 200;
    if (!r->is_stream) { /* a refusal */
        r->t->too_large = trpi_buffer_append(&r->t->in, bytes, one * count,
                                             TRPI_CTL_RESPONSE_BYTES_MAX) != TRP_OK;
        return r->t->too_large ? 0 : one * count;
    }
    trp_err err = trpi_sse_take(&r->sse, bytes, one * count, event_take, r);
    r->err = r->err == TRP_OK && err != TRP_ECANCELED ? err : r->err;
    if (r->sse.id[0] != '\0' && !r->begun && r->err == TRP_OK &&
        !r->enough) { /* endpoint-events-V2 */
        r->begun = true;
        r->cli->first_due_ms = 0;
        (void)object_pass(r, "progress", cJSON_CreateString("subscribed"));
    }
    return r->err == TRP_OK && !r->enough ? one * count : 0;
}

/* client-C1, client-C2. */
static int
on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    reading *r = arg;
    struct pollfd output = { .fd = STDOUT_FILENO };
    (void)down_all, (void)down, (void)up_all, (void)up;
    if (poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0) {
        _exit(0);
    }
    if (r->cli->first_due_ms == 0 || trpi_cli_now_ms() < r->cli->first_due_ms) {
        return 0;
    }
    if (r->cli->first_is_note) {
        r->cli->first_due_ms = 0;
        trpi_cli_note(r->cli, "no answer of %s within %.1f s; still waiting", r->cli->path,
                      (double)r->cli->first_ms / 1000);
        return 0;
    }
    r->late = true;
    return 1;
}

/* Write the URL: all types are named, since the node gives some to those alone that name them. */
static bool
url_write(trpi_transfer *t, const cJSON *request)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(request, "types"), *type;
    size_t count = types != NULL ? (size_t)cJSON_GetArraySize(types) : trpi_cli_event_types_count;
    bool ok = trpi_buffer_printf(&t->url, TRPI_CTL_REQUEST_BYTES_MAX, "%.*s" PATH,
                                 (int)t->base_bytes, t->base) == TRP_OK;
    for (size_t i = 0; ok && i < count; i++) {
        type = types != NULL ? cJSON_GetArrayItem(types, (int)i) : NULL;
        const char *name = types != NULL ? cJSON_GetStringValue(type) : trpi_cli_event_types[i];
        ok = name != NULL && trpi_buffer_printf(&t->url, TRPI_CTL_REQUEST_BYTES_MAX, "%ctype=%s",
                                                i == 0 ? '?' : '&', name) == TRP_OK;
    }
    return ok;
}

static bool
transfer_prepare(reading *r, const cJSON *request)
{
    char header[TRPI_SSE_NAME_BYTES + 32];
    trpi_transfer *t = r->t;
    const trpi_curl *c = t->curl;
    (void)snprintf(header, sizeof header, "Last-Event-ID: %s", r->sse.id);
    return url_write(t, request) && trpi_transfer_header(t, "Accept: text/event-stream") &&
           (r->sse.id[0] == '\0' || trpi_transfer_header(t, header)) && trpi_transfer_options(t) &&
           c->curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, bytes_take) == CURLE_OK &&
           c->curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, r) == CURLE_OK &&
           c->curl_easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           c->curl_easy_setopt(t->easy, CURLOPT_XFERINFODATA, r) == CURLE_OK &&
           c->curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
           c->curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, SILENT_S) == CURLE_OK &&
           c->curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)GIVE_UP_MS) == CURLE_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* What has ended the transfer? *ret_again: the stream is asked for again. Returns the exit code. */
static int
transfer_judge(reading *r, CURLcode done, cJSON **ret_final, bool *ret_again)
{
    long status = 0;
    cJSON *answer = NULL;
    *ret_again = false;
    (void)r->t->curl->curl_easy_getinfo(r->t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (r->enough) {
        return 0;
    }
    if (r->late) {
        return trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT, "no answer from %s within %.1f s", r->cli->path,
                             (double)r->cli->first_ms / 1000);
    }
    if (r->err != TRP_OK) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "the events of %s cannot be read: %s",
                             r->cli->path, trp_strerror(r->err));
    }
    if (r->begun) {
        *ret_again = done != CURLE_OK || status == 200 || status == 503;
    }
    if (*ret_again) {
        return 0;
    }
    if (done != CURLE_OK || status == 200) {
        return trpi_transfer_fail(r->t, done != CURLE_OK ? done : CURLE_GOT_NOTHING);
    }
    bool parsed =
        trpi_json_parse((const char *)r->t->in.data, r->t->in.count, &answer, NULL) == TRP_OK &&
        cJSON_IsObject(answer);
    *ret_final = trpi_transfer_refusal(r->t, status, parsed ? answer : NULL);
    cJSON_Delete(answer);
    return *ret_final != NULL ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

/* One transfer, from the request to its end. */
static int
transfer_run(reading *r, const cJSON *request, cJSON **ret_final, bool *ret_again)
{
    trpi_transfer t;
    r->t = &t;
    r->is_stream = false;
    trpi_sse_again(&r->sse);
    *ret_again = false;
    int code = trpi_transfer_begin(&t, r->cli);
    if (code == 0 && !transfer_prepare(r, request)) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    if (code == 0) {
        CURLcode done = t.curl->curl_easy_perform(t.easy);
        code = transfer_judge(r, done, ret_final, ret_again);
    }
    trpi_transfer_end(&t);
    return code;
}

int
trpi_cli_endpoint_events(trpi_cli *cli, cJSON *request, trpi_cli_stream_fn stream, void *arg,
                         cJSON **ret_final)
{
    reading r = { .cli = cli, .stream = stream, .arg = arg, .err = TRP_OK };
    uint64_t broken_ms = 0;
    bool again = true;
    int code = 0;
    *ret_final = NULL;
    r.snapshot = trpi_cli_get_true(request, "snapshot");
    while (code == 0 && again) {
        code = transfer_run(&r, request, ret_final, &again);
        broken_ms = r.is_stream || broken_ms == 0 ? trpi_cli_now_ms() : broken_ms;
        if (code == 0 && again && trpi_cli_now_ms() - broken_ms > GIVE_UP_MS) {
            code = trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE,
                                 "the stream of %s has ended, and has not come back within %u s",
                                 cli->path, GIVE_UP_MS / 1000);
        } else if (code == 0 && again) {
            if (r.is_stream) {
                trpi_cli_note(cli, "the stream of %s has ended; it is asked for again", cli->path);
            }
            trpi_cli_sleep_ms(r.sse.retry_ms > 0 ? r.sse.retry_ms : RETRY_MS);
        }
    }
    trpi_sse_fini(&r.sse);
    cJSON_Delete(request);
    return code;
}

#endif
