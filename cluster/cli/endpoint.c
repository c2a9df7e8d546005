/* endpoint.c - --endpoint URL: a request of the control protocol through the management API of a
 * node, which may be on another host.
 *
 * Shape.   request --> GET /control/CMD?FIELDS, or POST with the fields as JSON --> the reply, as
 *          the socket has it. So the commands print and end as they do there.
 * Must hold.
 *   endpoint-E1  The token is sent over TLS, or to a loopback address, and follows no redirection
 *       and no proxy.                                                        (target_check)
 *   endpoint-E3  The token of the user's cookie is made when a node on loopback asks for a
 *       credential and the command line has none, and goes nowhere else.          (is_asked_for)
 *   endpoint-E2  An order without an answer is called "not confirmed by the node".
 *                                                                      (trpi_transfer_fail)
 * Limits.  Replies above TRPI_CTL_RESPONSE_BYTES_MAX are refused; of the token file one line
 *          counts.
 * Tests.   tests/system/endpoint.sh
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/cli/cli.h"

/* Is the endpoint meant? On the command line it is; from the environment, unless the command line
 * names a node of this host. */
bool
trpi_cli_is_remote(const trpi_cli *cli)
{
    bool from_env = (cli->from_env & TRPI_CLI_BIT(ENDPOINT)) != 0;
    bool local =
        (trpi_cli_has(cli, TRPI_CLI_SOCKET) && (cli->from_env & TRPI_CLI_BIT(SOCKET)) == 0) ||
        (trpi_cli_has(cli, TRPI_CLI_SYSTEM) && (cli->from_env & TRPI_CLI_BIT(SYSTEM)) == 0);
    return trpi_cli_has(cli, TRPI_CLI_ENDPOINT) && !(from_env && local);
}

#ifdef HAVE_LIBCURL

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "cluster/cli/endpoint.h"
#include "cluster/cli/loopback_token.h"

#define URL_BYTES_MAX 2048u
#define TOKEN_FILE_BYTES_MAX 8192u
#define HOST_BYTES 256u

/* ---- the target ------------------------------------------------------------------------------ */

static bool
host_is_loopback(const char *rest)
{
    char host[HOST_BYTES];
    bool bracket = rest[0] == '[';
    size_t bytes = bracket ? strcspn(rest + 1, "]") : strcspn(rest, ":/");
    (void)snprintf(host, sizeof host, "%.*s", (int)(bytes < sizeof host ? bytes : 0),
                   rest + bracket);
    return trpi_host_is_loopback(host);
}

/* endpoint-E1. 0, or the exit code. */
static int
target_check(trpi_transfer *t)
{
    const trpi_cli *cli = t->cli;
    const char *url = trpi_cli_text(cli, TRPI_CLI_ENDPOINT);
    const char *rest = strncasecmp(url, "https://", 8) == 0  ? url + 8
                       : strncasecmp(url, "http://", 7) == 0 ? url + 7
                                                             : NULL;
    t->base = url;
    t->base_bytes = strlen(url);
    t->is_tls = rest == url + 8;
    while (rest != NULL && t->base_bytes > 8 && url[t->base_bytes - 1] == '/') {
        t->base_bytes--;
    }
    if (rest == NULL || rest[0] == '\0' || rest[0] == '/' || strpbrk(rest, "?#@ ") != NULL ||
        t->base_bytes > URL_BYTES_MAX) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "--endpoint takes the URL of a management API, as "
                             "https://10.0.0.1:8558, not '%s'",
                             url);
    }
    t->is_loopback = host_is_loopback(rest);
    t->has_credential = trpi_cli_has(cli, TRPI_CLI_TOKEN_FILE) || trpi_cli_has(cli, TRPI_CLI_CERT);
    if (trpi_cli_has(cli, TRPI_CLI_TOKEN_FILE) && !t->is_tls && !t->is_loopback) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "--token-file: a token is not sent over http:// to another host; use "
                             "https://");
    }
    if (trpi_cli_has(cli, TRPI_CLI_CERT) != trpi_cli_has(cli, TRPI_CLI_KEY)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--cert and --key belong together");
    }
    return 0;
}

/* ---- the token ------------------------------------------------------------------------------- */

static int
token_refuse(const char *path, const char *why)
{
    return trpi_cli_fail(TRPI_CTL_EXIT_CONFIG, "--token-file %s: %s", path, why);
}

/* Read a file that nobody else may read. 0, or the exit code. */
static int
token_read(const char *path, char text[TOKEN_FILE_BYTES_MAX + 1])
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), code = 0;
    if (fd < 0) {
        return token_refuse(path, strerror(errno));
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        code = token_refuse(path, "it is no regular file");
    } else if (status.st_uid != geteuid() && status.st_uid != 0) {
        code = token_refuse(path, "it belongs to another user");
    } else if ((status.st_mode & 077) != 0) {
        code = token_refuse(path, "others may read it: chmod 600");
    }
    ssize_t got = code == 0 ? read(fd, text, TOKEN_FILE_BYTES_MAX) : 0;
    (void)close(fd);
    if (got < 0) {
        code = token_refuse(path, strerror(errno));
    }
    text[got > 0 ? got : 0] = '\0';
    return code;
}

static int
token_add(trpi_transfer *t, const char *token, size_t bytes)
{
    char header[512];
    (void)snprintf(header, sizeof header, "Authorization: Bearer %.*s", (int)bytes, token);
    return trpi_transfer_header(t, header) ? 0
                                           : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

/* Add the header with the first line of the file that is no comment. 0, or the exit code. */
static int
token_file_add(trpi_transfer *t)
{
    const char *path = trpi_cli_text(t->cli, TRPI_CLI_TOKEN_FILE);
    char text[TOKEN_FILE_BYTES_MAX + 1];
    int code = path != NULL ? token_read(path, text) : 0;
    if (path == NULL || code != 0) {
        return code;
    }
    char *line = text;
    size_t bytes = strcspn(line, "\r\n");
    while (line[0] != '\0' && (bytes == 0 || line[0] == '#')) {
        line += bytes + strspn(line + bytes, "\r\n");
        bytes = strcspn(line, "\r\n");
    }
    if (line[0] == '\0' || bytes > 256) {
        return token_refuse(path, "it holds no token");
    }
    return token_add(t, line, bytes);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Orders and no others are posted: a command that only reads must be one for a reader, as an action
 * that lists is. */
static bool
is_order(const cJSON *request)
{
    const char *cmd = trpi_cli_get(request, "cmd");
    return strcmp(cmd, "leave") == 0 || strcmp(cmd, "down") == 0 ||
           cJSON_HasObjectItem(request, "rebalance") ||
           (cJSON_HasObjectItem(request, "action") &&
            strcmp(trpi_cli_get(request, "action"), "list") != 0);
}

bool
trpi_transfer_query(trpi_transfer *t, const cJSON *item, bool first)
{
    char *text = cJSON_IsString(item) ? NULL : trpi_json_print(item);
    const char *value = cJSON_IsString(item) ? item->valuestring : text;
    char *escaped = value != NULL ? t->curl->curl_easy_escape(t->easy, value, 0) : NULL;
    bool ok =
        escaped != NULL && trpi_buffer_printf(&t->url, TRPI_CTL_REQUEST_BYTES_MAX, "%c%s=%s",
                                              first ? '?' : '&', item->string, escaped) == TRP_OK;
    t->curl->curl_free(escaped);
    cJSON_free(text);
    return ok;
}

/* Write the URL, and of an order the body. request is changed. false: out of memory. */
static bool
request_write(trpi_transfer *t, cJSON *request)
{
    bool ok = request != NULL && trpi_buffer_printf(&t->url, TRPI_CTL_REQUEST_BYTES_MAX,
                                                    "%.*s/control/%s", (int)t->base_bytes, t->base,
                                                    trpi_cli_get(request, "cmd")) == TRP_OK;
    bool order = ok && is_order(request);
    const cJSON *item = NULL;
    cJSON_DeleteItemFromObjectCaseSensitive(request, "v");
    cJSON_DeleteItemFromObjectCaseSensitive(request, "cmd");
    if (order) {
        t->body = trpi_json_print(request);
        return t->body != NULL;
    }
    cJSON_ArrayForEach(item, request)
    {
        ok = ok && trpi_transfer_query(t, item, item == request->child);
    }
    return ok;
}

static size_t
bytes_take(char *bytes, size_t one, size_t count, void *arg)
{
    trpi_transfer *t = arg;
    t->too_large =
        trpi_buffer_append(&t->in, bytes, one * count, TRPI_CTL_RESPONSE_BYTES_MAX) != TRP_OK;
    return t->too_large ? 0 : one * count;
}

/* client-C2. */
static int
on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    struct pollfd output = { .fd = STDOUT_FILENO };
    (void)arg, (void)down_all, (void)down, (void)up_all, (void)up;
    if (poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0) {
        _exit(0);
    }
    return 0;
}

static bool
files_set(trpi_transfer *t)
{
    const char *ca = trpi_cli_text(t->cli, TRPI_CLI_CACERT);
    const char *cert = trpi_cli_text(t->cli, TRPI_CLI_CERT);
    const char *key = trpi_cli_text(t->cli, TRPI_CLI_KEY);
    bool ok = t->curl->curl_easy_setopt(t->easy, CURLOPT_SSLVERSION,
                                        (long)CURL_SSLVERSION_TLSv1_3) == CURLE_OK;
    ok = ok &&
         (ca == NULL || (t->curl->curl_easy_setopt(t->easy, CURLOPT_CAINFO, ca) == CURLE_OK &&
                         t->curl->curl_easy_setopt(t->easy, CURLOPT_CAPATH, NULL) == CURLE_OK));
    return ok && (cert == NULL ||
                  (t->curl->curl_easy_setopt(t->easy, CURLOPT_SSLCERT, cert) == CURLE_OK &&
                   t->curl->curl_easy_setopt(t->easy, CURLOPT_SSLKEY, key) == CURLE_OK));
}

/* endpoint-E1. false: out of memory, or libcurl lacks something. */
bool
trpi_transfer_options(trpi_transfer *t)
{
    const trpi_curl *c = t->curl;
    CURL *easy = t->easy;
    long limit_ms = t->cli->timeout_ms == 0 ? 0 : (long)(t->cli->timeout_ms + TRPI_CLI_GRACE_MS);
    bool ok = trpi_buffer_append(&t->url, "", 1, TRPI_CTL_REQUEST_BYTES_MAX + 1) == TRP_OK &&
              c->curl_easy_setopt(easy, CURLOPT_URL, (const char *)t->url.data) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, limit_ms) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->reason) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, bytes_take) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_WRITEDATA, t) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
              c->curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
    ok = ok &&
         (t->body == NULL || c->curl_easy_setopt(easy, CURLOPT_POSTFIELDS, t->body) == CURLE_OK);
    return ok && (!t->is_tls || files_set(t));
}

bool
trpi_transfer_header(trpi_transfer *t, const char *header)
{
    struct curl_slist *list = t->curl->curl_slist_append(t->headers, header);
    t->headers = list != NULL ? list : t->headers;
    return list != NULL;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool
is_file_fault(CURLcode code)
{
    return code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
}

/* Is it a refusal of TLS, of this side or the other one? The latter's alert comes when the
 * handshake is over here. */
static bool
is_tls_refusal(const trpi_transfer *t, CURLcode code)
{
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR ||
           (t->is_tls && strstr(t->reason, "alert") != NULL);
}

/* Has the node ended the connection when it had seen the certificate? In TLS 1.3 it does so when
 * the handshake is over here, and its alert is lost when the request is on its way. */
static bool
is_cut_by_node(const trpi_transfer *t, CURLcode code)
{
    curl_off_t shaken = 0;
    (void)t->curl->curl_easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &shaken);
    return t->is_tls && shaken > 0 && trpi_cli_has(t->cli, TRPI_CLI_CERT) &&
           (code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING);
}

/* No answer has come. Returns the exit code. */
int
trpi_transfer_fail(trpi_transfer *t, CURLcode code)
{
    const char *why = t->reason[0] != '\0' ? t->reason : t->curl->curl_easy_strerror(code);
    const char *url = trpi_cli_text(t->cli, TRPI_CLI_ENDPOINT);
    curl_off_t connected = 0;
    (void)t->curl->curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected);
    if (t->too_large) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "the answer of %s is above %u bytes", url,
                             TRPI_CTL_RESPONSE_BYTES_MAX);
    }
    if (is_file_fault(code)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_CONFIG, "--cacert, --cert, --key: %s", why);
    }
    if (is_tls_refusal(t, code)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_PERMISSION, "TLS with %s is refused: %s", url, why);
    }
    if (is_cut_by_node(t, code)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_PERMISSION,
                             "TLS with %s is refused: the node takes no certificate of this "
                             "authority, as --cert is: %s",
                             url, why);
    }
    if (connected == 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE,
                             "cannot reach %s: %s\n  try        management.enabled = on at that "
                             "node, its management.bind and port, the firewall",
                             url, why);
    }
    if (t->body != NULL && t->cli->order != NULL) { /* endpoint-E2 */
        return trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT,
                             "not confirmed by the node at %s: %s; `troupe members` shows what it "
                             "did",
                             url, why);
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        return trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT, "no answer from %s within %.1f s", url,
                             (double)t->cli->timeout_ms / 1000);
    }
    return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE, "no answer from %s: %s%s", url, why,
                         t->is_tls ? "" : " (is it https:// ?)");
}

/* Return the exit code of an answer that has none. */
static int
exit_of(long status, const char *error)
{
    if (strcmp(error, "no-such-member") == 0) {
        return TRPI_CTL_EXIT_NOT_FOUND;
    }
    if (status == 401 || status == 403 || strcmp(error, "read-only") == 0) {
        return TRPI_CTL_EXIT_PERMISSION;
    }
    return status == 503                    ? TRPI_CTL_EXIT_TIMEOUT
           : status == 413 || status == 414 ? TRPI_CTL_EXIT_DATA
           : status == 400                  ? TRPI_CTL_EXIT_USAGE
           : status == 404 || status == 405 ? TRPI_CTL_EXIT_UNREACHABLE
                                            : TRPI_CTL_EXIT_INTERNAL;
}

static const char *
hint_of(const trpi_transfer *t, long status, const char *error, char *text, size_t bytes)
{
    (void)snprintf(text, bytes, "--token-file, or --cert and --key%s%s",
                   t->no_token[0] != '\0' ? "; there is no token of this user: " : "", t->no_token);
    return status == 401                     ? text
           : strcmp(error, "read-only") == 0 ? "management.read-only = off at that node"
           : strcmp(error, "bad-host") == 0  ? "management.hosts at that node"
           : status == 404 || status == 405  ? "a node of this version"
                                             : NULL;
}

/* Turn a refusal of the management API into one of the control protocol. NULL: out of memory. */
cJSON *
trpi_transfer_refusal(const trpi_transfer *t, long status, const cJSON *answer)
{
    char text[1024], credential[1024];
    const char *error = trpi_json_get_text(answer, "error");
    const char *message = trpi_json_get_text(answer, "message");
    const char *hint = trpi_json_get_text(answer, "hint");
    const cJSON *code = cJSON_GetObjectItemCaseSensitive(answer, "exit");
    error = error != NULL ? error : "";
    if (cJSON_IsNumber(code) && message != NULL) {
        (void)snprintf(text, sizeof text, "%s", message);
    } else {
        (void)snprintf(text, sizeof text, "%s refuses it: %s%s%s (HTTP %ld)",
                       trpi_cli_text(t->cli, TRPI_CLI_ENDPOINT),
                       error[0] != '\0' ? error : "it is no management API of a node",
                       message != NULL ? ": " : "", message != NULL ? message : "", status);
    }
    if (hint == NULL && !cJSON_IsNumber(code)) {
        hint = hint_of(t, status, error, credential, sizeof credential);
    }
    cJSON *final = cJSON_CreateObject();
    bool ok = trpi_json_add_bool(final, "ok", false) &&
              trpi_json_add_i64(final, "exit",
                                cJSON_IsNumber(code) ? code->valueint : exit_of(status, error)) &&
              trpi_json_add_text(final, "error", text) &&
              (hint == NULL || trpi_json_add_text(final, "hint", hint));
    if (!ok) {
        cJSON_Delete(final);
        return NULL;
    }
    return final;
}

/* endpoint-E3. Did the node ask for a credential that this user has? */
static bool
is_asked_for(const trpi_transfer *t, CURLcode done)
{
    long status = 0;
    (void)t->curl->curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return done == CURLE_OK && status == 401 && t->is_loopback && !t->is_tls && !t->has_credential;
}

/* Send the request again with the token of this user's cookie, if there is one. Nothing was done by
 * the first one. Returns the exit code. */
static int
again_with_token(trpi_transfer *t, CURLcode *done)
{
    char token[TRPI_CLI_TOKEN_BYTES];
    long status = 0;
    if (!trpi_cli_loopback_token(t, token)) {
        return 0; /* the first answer stays */
    }
    int code = token_add(t, token, sizeof token - 1);
    if (code != 0 ||
        t->curl->curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK) {
        return code != 0 ? code : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    t->in.count = 0;
    *done = t->curl->curl_easy_perform(t->easy);
    (void)t->curl->curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (*done == CURLE_OK && status == 401) {
        (void)snprintf(t->no_token, sizeof t->no_token,
                       "the node does not know the one made of %s: it runs as another user, or has "
                       "a cookie of its own (remote.require-cookie)",
                       t->cookie_file);
    }
    return 0;
}

static int
answer_take(trpi_transfer *t, cJSON **ret_final)
{
    long status = 0;
    cJSON *answer = NULL;
    bool ok = false;
    (void)t->curl->curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    bool parsed = trpi_json_parse((const char *)t->in.data, t->in.count, &answer, NULL) == TRP_OK &&
                  cJSON_IsObject(answer);
    if (status == 200 && parsed && trpi_json_get_bool(answer, "ok", &ok) && ok) {
        *ret_final = answer;
        return 0;
    }
    if (status == 200) {
        cJSON_Delete(answer);
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL,
                             "the program at %s is not a troupe node of this version",
                             trpi_cli_text(t->cli, TRPI_CLI_ENDPOINT));
    }
    *ret_final = trpi_transfer_refusal(t, status, parsed ? answer : NULL);
    cJSON_Delete(answer);
    return *ret_final != NULL ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

int
trpi_transfer_begin(trpi_transfer *t, trpi_cli *cli)
{
    char why[640];
    *t = (trpi_transfer){ .cli = cli };
    int code = target_check(t);
    const trpi_curl *curl = code == 0 ? trpi_curl_get(why, sizeof why) : NULL;
    t->curl = curl;
    if (code != 0) {
        return code;
    }
    if (curl == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE, "--endpoint needs libcurl: %s", why);
    }
    (void)snprintf(cli->path, sizeof cli->path, "%s", trpi_cli_text(cli, TRPI_CLI_ENDPOINT));
    t->easy = curl->curl_easy_init();
    return t->easy == NULL ? trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory")
                           : token_file_add(t);
}

void
trpi_transfer_end(trpi_transfer *t)
{
    if (t->curl != NULL) {
        t->curl->curl_easy_cleanup(t->easy);
        t->curl->curl_slist_free_all(t->headers);
    }
    trpi_buffer_fini(&t->url);
    trpi_buffer_fini(&t->in);
    cJSON_free(t->body);
}

int
trpi_cli_endpoint_run(trpi_cli *cli, cJSON *request, cJSON **ret_final)
{
    trpi_transfer t;
    *ret_final = NULL;
    int code = trpi_transfer_begin(&t, cli);
    if (code == 0 &&
        (!request_write(&t, request) ||
         (t.body != NULL && !trpi_transfer_header(&t, "Content-Type: application/json")) ||
         !trpi_transfer_options(&t))) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    cJSON_Delete(request);
    if (code == 0 && t.body != NULL && cli->order != NULL) {
        trpi_cli_order_watch(cli);
    }
    if (code == 0) {
        CURLcode done = t.curl->curl_easy_perform(t.easy);
        code = is_asked_for(&t, done) ? again_with_token(&t, &done) : 0;
        code = code != 0          ? code
               : done == CURLE_OK ? answer_take(&t, ret_final)
                                  : trpi_transfer_fail(&t, done);
    }
    trpi_transfer_end(&t);
    return code;
}

#else

int
trpi_cli_endpoint_events(trpi_cli *cli, cJSON *request, trpi_cli_stream_fn stream, void *arg,
                         cJSON **ret_final)
{
    (void)stream, (void)arg;
    return trpi_cli_endpoint_run(cli, request, ret_final);
}

int
trpi_cli_endpoint_run(trpi_cli *cli, cJSON *request, cJSON **ret_final)
{
    (void)cli;
    cJSON_Delete(request);
    *ret_final = NULL;
    return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE,
                         "this build has no --endpoint (configure found no libcurl: apt-get "
                         "install libcurl4-openssl-dev)");
}

#endif
