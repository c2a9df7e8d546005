/* via.c - send, ask and publish for a program that is no node: `troupe --via`.
 *
 * Why.     On a host without a node there is no control socket. A client (troupe/client.h) of the
 *          cluster's receptionists does the same three commands there, for what they let it reach.
 * Shape.   request (JSON, as CONTROL.md) --> client of its own --> contact --> service or topic
 *          events of the client --> an inbox, on which this thread waits
 * Must hold.
 *   via-V1  There is one answer, in time.
 * Limits.  Types of plugins are not known here: string, json, bytes and those of the library.
 * Tests.   tests/system/via.sh
 * Sources. CONTRIB-24
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <troupe/client.h>
#include <troupe/inbox.h>
#include <troupe/node.h>

#include "actor/actor.h"
#include "base/address.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/payload.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/payload_json.h"

enum { TIMEOUT_MS_DEFAULT = 5000, GIVE_UP_EARLIER_MS = 100, WHY_BYTES = 1200, CONTACTS_MAX = 32 };

typedef struct via {
    const cJSON *request;
    const char *name; /* of the service or topic */
    bool asks, publishes;
    uint64_t until_ms;
    trp_system *system;
    trp_client *client;
    trp_inbox *inbox;
    trp_ref service;
    const trp_type *type;
    void *payload; /* trpi_free */
    size_t bytes;
    cJSON *reply; /* the answer; NULL: code and why are it */
    int code;
    char why[WHY_BYTES], hint[WHY_BYTES];
    pthread_mutex_t lock;   /* a leaf */
    char logged[WHY_BYTES]; /* by lock: the last error of the log */
    bool log_has_why;       /* the log says why, and has when the system has ended */
} via;

static uint64_t
now_ns(const via *v)
{
    return trpi_world_mono_ns(trpi_system_world(v->system));
}

static uint32_t
left_ms(const via *v)
{
    uint64_t now = now_ns(v) / 1000000u;
    return now < v->until_ms ? (uint32_t)(v->until_ms - now) : 0;
}

/* Refuse the request; false, for the caller to return. */
static bool via_refuse(via *v, int code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool
via_refuse(via *v, int code, const char *hint, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(v->why, sizeof v->why, format, list); /* cut is fine */
    va_end(list);
    (void)snprintf(v->hint, sizeof v->hint, "%s", hint);
    v->code = code;
    return false;
}

static const char *
text_of(const via *v, const char *key)
{
    return trpi_json_get_text(v->request, key);
}

/* ---- the message ----------------------------------------------------------------------------- */

static bool
message_make(via *v)
{
    const char *name = text_of(v, "type"), *text = text_of(v, "text");
    char what[256], why[TRPI_OUTSIDE_WHY_BYTES];
    name = name != NULL ? name : "string";
    text = text != NULL ? text : "";
    trp_err known = trpi_type_from_outside(name, &v->type, why);
    if (known == TRP_ENOTYPE) {
        return via_refuse(
            v, TRPI_CTL_EXIT_DATA,
            "string, json and bytes are known without a node; types of plugins are not",
            "no message type '%.128s' outside the cluster", name);
    }
    if (known != TRP_OK) {
        return via_refuse(v, TRPI_CTL_EXIT_DATA, "", "%s", why);
    }
    if (v->type == &trp_bytes_type) {
        v->bytes = strlen(text);
        v->payload = trpi_strdup(text);
        return v->payload != NULL || via_refuse(v, TRPI_CTL_EXIT_INTERNAL, "", "out of memory");
    }
    trp_err err = trpi_payload_from_json(v->type, text, &v->payload, &v->bytes, what, sizeof what);
    return err == TRP_OK ||
           via_refuse(v, err == TRP_ENOMEM ? TRPI_CTL_EXIT_INTERNAL : TRPI_CTL_EXIT_DATA, "", "%s",
                      what);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void
log_keep(void *arg, const trp_log_line *line)
{
    via *v = arg;
    if (line->level == TRP_LOG_ERROR) {
        pthread_mutex_lock(&v->lock);
        (void)snprintf(v->logged, sizeof v->logged, "%s", line->text);
        pthread_mutex_unlock(&v->lock);
    }
}

/* Are all contacts on loopback, where nodes ask for the cookie of the user? */
static bool
is_loopback(const char *const *contacts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[TRPI_ADDRESS_TEXT_BYTES + 64];
        trpi_address address;
        (void)snprintf(text, sizeof text, "troupe.tcp://a@%.320s", contacts[i]);
        if (trpi_address_parse(strstr(contacts[i], "://") != NULL ? contacts[i] : text, &address,
                               NULL, NULL) != TRP_OK ||
            !trpi_host_is_loopback(address.host)) {
            return false;
        }
    }
    return true;
}

/* "a:1,b:2" in a copy that is cut up. */
static size_t
contacts_split(char *list, const char **contacts)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *one = strtok_r(list, ",", &rest); one != NULL && count < CONTACTS_MAX;
         one = strtok_r(NULL, ",", &rest)) {
        contacts[count++] = one;
    }
    return count;
}

static bool
client_open(via *v)
{
    const char *contacts[CONTACTS_MAX];
    char *list TRPI_AUTO_FREE = trpi_strdup(text_of(v, "via"));
    trp_client_options o = TRP_CLIENT_OPTIONS_INIT;
    uint32_t left = left_ms(v);
    if (list == NULL) {
        return via_refuse(v, TRPI_CTL_EXIT_INTERNAL, "", "out of memory");
    }
    o.contacts = contacts;
    o.contacts_count = contacts_split(list, contacts);
    o.reconnect_timeout_ms = left > 2 * GIVE_UP_EARLIER_MS ? left - GIVE_UP_EARLIER_MS : left;
    o.tls_ca = text_of(v, "cacert");
    o.tls_cert = text_of(v, "cert");
    o.tls_key = text_of(v, "key");
    o.cookie_file = text_of(v, "cookieFile");
    if ((o.tls_ca != NULL) != (o.tls_cert != NULL) || (o.tls_ca != NULL) != (o.tls_key != NULL)) {
        return via_refuse(
            v, TRPI_CTL_EXIT_USAGE, "",
            "TLS needs all of --cacert, --cert and --key: the cluster checks who comes");
    }
    if (o.cookie_file == NULL && o.tls_ca == NULL && is_loopback(contacts, o.contacts_count)) {
        o.cookie_file = TRP_CLIENT_COOKIE_OF_USER;
    }
    trp_err err = trp_client_open(v->system, &o, &v->client);
    v->log_has_why = err != TRP_OK;
    return err == TRP_OK ||
           via_refuse(v, err == TRP_EINVAL ? TRPI_CTL_EXIT_USAGE : trpi_ctl_exit_of(err),
                      err != TRP_ECONFIG || o.cookie_file == NULL
                          ? ""
                          : "the file has the cookie of the cluster: copy that of a node, for its "
                            "user alone (chmod 400)",
                      "--via %.200s: %s", text_of(v, "via"), trp_strerror(err));
}

static bool
system_start(via *v)
{
    trp_system_options o = TRP_SYSTEM_OPTIONS_INIT;
    o.workers = 2;
    o.log = log_keep;
    o.log_arg = v;
    o.log_dead_letters = TRP_OFF;
    trp_err err = trp_system_new("via", &o, &v->system);
    err = err == TRP_OK ? trp_inbox_open(v->system, NULL, &v->inbox) : err;
    return err == TRP_OK ||
           via_refuse(v, trpi_ctl_exit_of(err), "", "no actors here: %s", trp_strerror(err));
}

static bool
service_get(via *v)
{
    trp_err err = trp_protocol_register(&trp_client_protocol);
    if (err == TRP_OK) {
        err = trp_system_subscribe(v->system, trp_inbox_ref(v->inbox), &trp_client_contact_type);
    }
    if (err == TRP_OK) {
        err = trp_system_subscribe(v->system, trp_inbox_ref(v->inbox), &trp_client_reach_type);
    }
    if (err == TRP_OK && !client_open(v)) {
        return false;
    }
    if (err == TRP_OK) {
        err = v->publishes ? trp_client_topic(v->client, v->name, &v->service)
                           : trp_client_service(v->client, v->name, &v->service);
    }
    if (err == TRP_EINVAL || err == TRP_ELIMIT) {
        return via_refuse(v, TRPI_CTL_EXIT_USAGE, "",
                          "the name of a service has 1 to %d bytes, that of a topic 1 to %u",
                          TRP_CLIENT_SERVICE_NAME_BYTES_MAX, TRP_TOPIC_BYTES_MAX);
    }
    return err == TRP_OK || via_refuse(v, trpi_ctl_exit_of(err), "", "%s", trp_strerror(err));
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool
no_contact(via *v, const char *reason)
{
    return via_refuse(
        v, TRPI_CTL_EXIT_UNREACHABLE,
        "a node takes clients with cluster.client.receptionist.enabled = on; the port is "
        "that of remoting",
        "no receptionist at %.200s: %s", text_of(v, "via"), reason);
}

static bool
not_reachable(via *v, const trp_client_reach *event)
{
    trp_err err = (trp_err)event->err;
    if (err == TRP_ENOENT && v->publishes) {
        return via_refuse(v, TRPI_CTL_EXIT_NOT_FOUND,
                          "trp_receptionist_subscribe() opens a topic to clients",
                          "nobody subscribes to %.300s: %s", v->name, event->reason);
    }
    if (err == TRP_ENOENT) {
        return via_refuse(v, TRPI_CTL_EXIT_NOT_FOUND,
                          "trp_receptionist_register() opens a service to clients",
                          "no service '%.300s': %s", v->name, event->reason);
    }
    return via_refuse(v, err == TRP_EROLE ? TRPI_CTL_EXIT_NO : trpi_ctl_exit_of(err), "",
                      "'%.300s' is not reached: %s", v->name, event->reason);
}

/* Look at an event. Returns true when the outcome is known: v->code 0: it can be reached. */
static bool
event_take(via *v, const trp_msg *msg, bool *has_contact)
{
    const trp_client_contact *contact = trp_msg_as(msg, &trp_client_contact_type);
    const trp_client_reach *reach = trp_msg_as(msg, &trp_client_reach_type);
    if (contact != NULL && (contact->stopped != 0 || contact->rounds > 0)) {
        return !no_contact(v, contact->reason);
    }
    if (contact != NULL) {
        *has_contact = contact->contact[0] != '\0';
        return false;
    }
    if (reach == NULL) {
        return false;
    }
    return reach->reachable != 0 || (reach->err != TRP_ECONN && !not_reachable(v, reach));
}

/* Wait until the service can be reached. */
static bool
service_await(via *v)
{
    bool has_contact = false, is_known = false;
    while (!is_known) {
        trp_msg *msg = NULL;
        if (trp_inbox_receive(v->inbox, left_ms(v), &msg, NULL) != TRP_OK) {
            return has_contact ? via_refuse(v, TRPI_CTL_EXIT_TIMEOUT, "",
                                            "no answer about '%.300s' from %.200s in time", v->name,
                                            text_of(v, "via"))
                               : no_contact(v, "no answer in time");
        }
        is_known = event_take(v, msg, &has_contact);
        trp_msg_free(msg);
    }
    return v->code == 0;
}

/* ---- the three commands ---------------------------------------------------------------------- */

static void
reply_set(via *v, bool ok, cJSON *reply)
{
    if (ok && trpi_json_add_bool(reply, "ok", true)) {
        v->reply = reply;
        return;
    }
    cJSON_Delete(reply);
    (void)via_refuse(v, TRPI_CTL_EXIT_INTERNAL, "", "out of memory");
}

static bool
delivery_give(via *v, const trp_msg *answer)
{
    const trp_client_delivery *delivery = trp_msg_as(answer, &trp_client_delivery_type);
    if (delivery == NULL) {
        return via_refuse(v, TRPI_CTL_EXIT_INTERNAL, "", "the receptionist is of another version");
    }
    cJSON *reply = cJSON_CreateObject();
    bool ok = trpi_json_add_text(reply, "topic", v->name) &&
              trpi_json_add_i64(reply, "delivered", (int64_t)delivery->delivered) &&
              trpi_json_add_i64(reply, "nodes", delivery->nodes) &&
              trpi_json_add_i64(reply, "silent", delivery->silent);
    reply_set(v, ok, reply);
    return true;
}

static void
answer_give(via *v, const trp_msg *answer, double elapsed_ms)
{
    cJSON *reply = cJSON_CreateObject(), *value = trpi_payload_to_json(v->system, answer);
    bool ok = trpi_json_add_text(reply, "from", v->name) &&
              cJSON_AddNumberToObject(reply, "elapsedMs", elapsed_ms) != NULL && value != NULL;
    if (ok) {
        ok = cJSON_AddItemToObject(reply, "reply", value);
    } else {
        cJSON_Delete(value);
    }
    reply_set(v, ok, reply);
}

static bool
refuse_failure(via *v, trp_err err, const trp_msg *answer)
{
    const trp_status_failure *failure =
        answer == NULL ? NULL : trp_msg_as(answer, &trp_status_failure_type);
    char reason[sizeof failure->reason + 1] = "";
    if (failure == NULL || err == TRP_ETIMEDOUT) {
        return via_refuse(v, trpi_ctl_exit_of(err), "", "no answer from %.300s: %s", v->name,
                          trp_strerror(err));
    }
    memcpy(reason, failure->reason, sizeof failure->reason);
    return via_refuse(v, err == TRP_EDATA ? TRPI_CTL_EXIT_DATA : TRPI_CTL_EXIT_NO, "",
                      "%.300s refused: %s%s%s", v->name, reason, reason[0] != '\0' ? ": " : "",
                      trp_strerror(err));
}

static void
service_ask(via *v)
{
    trp_msg *answer = NULL;
    uint64_t before_ns = now_ns(v);
    uint32_t left = left_ms(v);
    const trpi_patience patience = { .timeout_ms = left };
    trp_err err = left == 0 ? TRP_ETIMEDOUT
                            : trpi_system_ask_whole(v->system, v->service, v->type, v->payload,
                                                    v->bytes, NULL, &patience, &answer);
    double elapsed_ms = (double)(now_ns(v) - before_ns) / 1e6;
    if (err != TRP_OK) {
        (void)refuse_failure(v, err, answer);
    } else if (v->publishes) {
        (void)delivery_give(v, answer);
    } else {
        answer_give(v, answer, elapsed_ms);
    }
    trp_msg_free(answer);
}

static void
send_it(via *v)
{
    cJSON *reply = cJSON_CreateObject();
    trp_system_tell(v->system, v->service, v->type, v->payload, v->bytes);
    reply_set(v, trpi_json_add_text(reply, "path", v->name), reply);
}

static void
request_run(via *v)
{
    const char *command = text_of(v, "cmd");
    double timeout = 0;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(v->request, "timeoutMs");
    timeout = cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble <= 86400000
                  ? item->valuedouble
                  : TIMEOUT_MS_DEFAULT;
    v->name = text_of(v, "path");
    v->publishes = command != NULL && strcmp(command, "publish") == 0;
    v->asks = command != NULL && strcmp(command, "ask") == 0;
    if (v->name == NULL || text_of(v, "via") == NULL ||
        (!v->publishes && !v->asks && (command == NULL || strcmp(command, "send") != 0))) {
        (void)via_refuse(v, TRPI_CTL_EXIT_USAGE, "", "--via is for send, ask and publish");
        return;
    }
    if (!message_make(v) || !system_start(v)) {
        return;
    }
    v->until_ms = now_ns(v) / 1000000u + (uint64_t)timeout;
    if (!service_get(v) || !service_await(v)) {
        return;
    }
    if (v->asks || v->publishes) {
        service_ask(v);
    } else {
        send_it(v);
    }
}

static void
via_end(via *v)
{
    trp_client_close(v->client); /* what was told is sent */
    trp_inbox_close(v->inbox);
    trp_system_free(v->system);
    if (v->log_has_why && v->logged[0] != '\0') {
        (void)snprintf(v->why, sizeof v->why, "--via %.200s: %.900s", text_of(v, "via"), v->logged);
    }
    trpi_free(v->payload);
    trpi_mutex_destroy(&v->lock);
}

trp_err
trp_via_call(const char *request, trp_via_answer_fn answer, void *arg)
{
    via v;
    cJSON *json = NULL;
    if (request == NULL || answer == NULL ||
        trpi_json_parse(request, strlen(request), &json, NULL) != TRP_OK) {
        return TRP_EINVAL;
    }
    memset(&v, 0, sizeof v);
    v.request = json;
    pthread_mutex_init(&v.lock, NULL);
    request_run(&v);
    via_end(&v);
    cJSON *reply = v.reply;
    if (reply == NULL) { /* via-V1 */
        reply = cJSON_CreateObject();
        bool ok = trpi_json_add_bool(reply, "ok", false) &&
                  cJSON_AddNumberToObject(reply, "exit", v.code) != NULL &&
                  trpi_json_add_text(reply, "error", v.why) &&
                  (v.hint[0] == '\0' || trpi_json_add_text(reply, "hint", v.hint));
        (void)ok; /* what is missing was no memory */
    }
    char *text = trpi_json_print(reply);
    cJSON_Delete(reply);
    cJSON_Delete(json);
    if (text == NULL) {
        return TRP_ENOMEM;
    }
    answer(arg, text);
    cJSON_free(text);
    return TRP_OK;
}
