/* services.c - the names that clients may ask a node for, and who may.
 *
 * Shape.   program --register--> reception (names) --change--> the receptionist's actor, which
 *                                      |                        watches it
 *                                      `--> a mediator of its own: a service is a subscriber of its
 *                                           name there, so that all of a name are reached
 *          A topic is open while a subscriber of it is registered.
 * Must hold.
 *   client-services-V1  A name leads to one actor of this node, until that ends; a topic to each
 *       actor that opens it.
 * Limits.  TRP_RECEPTIONIST_SERVICES_MAX.
 * Threads. lock guards the names; it is a leaf.
 * Tests.   tests/unit/client/client_test.c, tests/unit/client/topic_test.c
 * Sources. CONTRIB-27, -30, ROLES-03
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <troupe/extension.h>
#include <troupe/shutdown.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "cluster/client/reception.h"

#define LOCAL_TYPE(text, bytes, tag, flags)                                                        \
    {                                                                                              \
        "troupe-reception." text, bytes, tag, TRP_TYPE_LOCAL | (flags), NULL, 0, 0                 \
    }
trp_type reception_note_type = LOCAL_TYPE("note", sizeof(reception_note), 1, 0);
trp_type reception_tick_type = LOCAL_TYPE("tick", 0, 2, 0);
trp_type reception_change_type = LOCAL_TYPE("change", sizeof(reception_change), 3, 0);
trp_type reception_leave_type = LOCAL_TYPE("leave", sizeof(uint64_t), 4, 0);
static trp_type *const reception_types[] = { &reception_note_type, &reception_tick_type,
                                             &reception_change_type, &reception_leave_type };
static const trp_protocol reception_protocol = { "troupe-reception", reception_types,
                                                 sizeof reception_types / sizeof reception_types[0],
                                                 0 };

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
reception_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)arg;
    trp_err err = trp_protocol_register(&reception_protocol);
    err = err == TRP_OK ? trp_protocol_register(&client_door_protocol) : err;
    err = err == TRP_OK ? trpi_client_types_register() : err;
    reception *r = err == TRP_OK ? trpi_alloc(sizeof *r) : NULL;
    if (r == NULL) {
        return err == TRP_OK ? TRP_ENOMEM : err;
    }
    r->system = system;
    pthread_mutex_init(&r->lock, NULL);
    *ret_instance = r;
    return TRP_OK;
}

static void
reception_release(void *instance)
{
    reception *r = instance;
    while (r->services != NULL) {
        service *s = r->services;
        r->services = s->next;
        trpi_free(s);
    }
    for (size_t i = 0; r->permissions != NULL && i < r->options.permissions_count; i++) {
        trpi_free(r->permissions[i]);
    }
    trpi_free(r->permissions);
    trpi_mutex_destroy(&r->lock);
    trpi_free(r);
}

static const trp_extension reception_extension = { .size = sizeof(trp_extension),
                                                   .name = "troupe-receptionist",
                                                   .create = reception_create,
                                                   .release = reception_release };

reception *
reception_get(trp_system *system)
{
    return trp_extension_find(system, reception_extension.name);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The first place of a name, or where it belongs. By the lock. */
static service **
place_of(reception *r, uint32_t kind, const char *name)
{
    service **at = &r->services;
    while (*at != NULL &&
           ((*at)->kind < kind || ((*at)->kind == kind && strcmp((*at)->name, name) < 0))) {
        at = &(*at)->next;
    }
    return at;
}

static bool
is_at(service *const *at, uint32_t kind, const char *name)
{
    return *at != NULL && (*at)->kind == kind && strcmp((*at)->name, name) == 0;
}

/* The place of this actor under that name; NULL: it is not there. By the lock. */
static service **
place_of_actor(reception *r, uint32_t kind, const char *name, trp_ref ref)
{
    service **at = place_of(r, kind, name);
    while (is_at(at, kind, name) && !trp_ref_equal((*at)->ref, ref)) {
        at = &(*at)->next;
    }
    return is_at(at, kind, name) ? at : NULL;
}

bool
reception_find(reception *r, uint32_t kind, const char *name, trp_ref *ret_ref)
{
    pthread_mutex_lock(&r->lock);
    service *const *at = place_of(r, kind, name);
    bool is = is_at(at, kind, name);
    if (is) {
        *ret_ref = (*at)->ref;
    }
    pthread_mutex_unlock(&r->lock);
    return is;
}

/* By the lock. */
static void
service_drop(reception *r, service **at)
{
    service *s = *at;
    *at = s->next;
    r->services_count--;
    trpi_free(s);
}

void
reception_forget(reception *r, trp_ref ref)
{
    pthread_mutex_lock(&r->lock);
    for (service **at = &r->services; *at != NULL;) {
        if (trp_ref_equal((*at)->ref, ref)) {
            service_drop(r, at);
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&r->lock);
}

/* By the lock. */
static trp_err
service_add(reception *r, uint32_t kind, const char *name, trp_ref ref)
{
    size_t bytes = strlen(name) + 1;
    service **at = place_of(r, kind, name);
    if (r->remote == NULL) {
        return TRP_ESTATE;
    }
    if (place_of_actor(r, kind, name, ref) != NULL) {
        return TRP_OK;
    }
    if (kind == TRPI_CLIENT_SERVICE && is_at(at, kind, name)) {
        return TRP_EEXIST; /* client-services-V1 */
    }
    if (r->services_count >= TRP_RECEPTIONIST_SERVICES_MAX) {
        return TRP_ELIMIT;
    }
    service *s = trpi_alloc(sizeof *s + bytes);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(s->name, name, bytes);
    s->kind = kind;
    s->ref = ref;
    s->next = *at;
    *at = s;
    r->services_count++;
    return TRP_OK;
}

/* Return false if no such service was there; ref TRP_REF_NONE: whichever actor has the name. Gives
 * the actor. */
static bool
service_remove(reception *r, uint32_t kind, const char *name, trp_ref *ref)
{
    pthread_mutex_lock(&r->lock);
    service **at = place_of(r, kind, name);
    if (!trp_ref_is_none(*ref)) {
        at = place_of_actor(r, kind, name, *ref);
    } else if (!is_at(at, kind, name)) {
        at = NULL;
    }
    bool is = at != NULL;
    if (is) {
        *ref = (*at)->ref;
        service_drop(r, at);
    }
    pthread_mutex_unlock(&r->lock);
    return is;
}

static void
change_tell(const reception *r, uint32_t kind, const char *name, trp_ref ref, bool gone)
{
    reception_change change;
    memset(&change, 0, sizeof change);
    change.ref = ref;
    change.gone = gone;
    change.kind = kind;
    (void)snprintf(change.name, sizeof change.name, "%s", name);
    trp_system_tell(r->system, r->actor, &reception_change_type, &change, sizeof change);
}

/* Say once for each system what is missing: a program may register at each message. */
static trp_err
no_receptionist(trp_system *system)
{
    static _Atomic uint64_t told; /* uid of the last one; only a hint against noise */
    uint64_t uid = trpi_system_self(system)->uid;
    if (atomic_exchange_explicit(&told, uid, memory_order_relaxed) != uid) {
        trpi_log(system, TRP_LOG_WARNING, "client",
                 "this node has no receptionist, so clients do not reach what it registers: set "
                 "cluster.client.receptionist.enabled = on (said once)");
    }
    return TRP_ESTATE;
}

static bool
name_is_good(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) <= TRP_CLIENT_SERVICE_NAME_BYTES_MAX;
}

static trp_subscribe_options
subscription_of(const reception *r)
{
    trp_subscribe_options how = TRP_SUBSCRIBE_OPTIONS_INIT;
    how.answer_to = r->actor; /* the service did not ask for it */
    return how;
}

static trp_err
service_register(reception *r, uint32_t kind, const char *name, trp_ref ref)
{
    pthread_mutex_lock(&r->lock);
    trp_err err = service_add(r, kind, name, ref);
    pthread_mutex_unlock(&r->lock);
    if (err == TRP_OK) {
        change_tell(r, kind, name, ref, false);
    }
    return err;
}

/* Undo it. Returns false if it was not registered. */
static bool
service_take_back(reception *r, uint32_t kind, const char *name, trp_ref *ref)
{
    bool is = service_remove(r, kind, name, ref);
    if (is) {
        change_tell(r, kind, name, *ref, true);
    }
    return is;
}

trp_err
trp_receptionist_register(trp_system *system, const char *name, trp_ref ref)
{
    if (system == NULL || !name_is_good(name) || ref.node != TRPI_NODE_SELF) {
        return TRP_EINVAL;
    }
    reception *r = reception_get(system);
    if (r == NULL) {
        return no_receptionist(system);
    }
    const trp_subscribe_options how = subscription_of(r);
    trp_err err = service_register(r, TRPI_CLIENT_SERVICE, name, ref);
    if (err == TRP_OK) {
        err = trp_mediator_subscribe(r->services_all, name, ref, &how);
        if (err != TRP_OK) {
            (void)service_take_back(r, TRPI_CLIENT_SERVICE, name, &ref);
        }
    }
    return err;
}

trp_err
trp_receptionist_unregister(trp_system *system, const char *name)
{
    reception *r = system == NULL ? NULL : reception_get(system);
    trp_ref ref = TRP_REF_NONE;
    if (r == NULL) {
        return system == NULL ? TRP_EINVAL : no_receptionist(system);
    }
    if (!name_is_good(name) || !service_take_back(r, TRPI_CLIENT_SERVICE, name, &ref)) {
        return TRP_ENOENT;
    }
    const trp_subscribe_options how = subscription_of(r);
    return trp_mediator_unsubscribe(r->services_all, name, ref, &how);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static trp_err
topic_check(trp_system *system, const char *topic, reception **ret_reception,
            trp_mediator **ret_mediator)
{
    if (system == NULL || topic == NULL || topic[0] == '\0') {
        return TRP_EINVAL;
    }
    if (strnlen(topic, TRP_TOPIC_BYTES_MAX + 1) > TRP_TOPIC_BYTES_MAX) {
        return TRP_ELIMIT;
    }
    *ret_reception = reception_get(system);
    return *ret_reception == NULL ? no_receptionist(system)
                                  : trp_mediator_of(system, NULL, ret_mediator);
}

trp_err
trp_receptionist_subscribe(trp_system *system, const char *topic, trp_ref subscriber,
                           const trp_subscribe_options *options)
{
    reception *r;
    trp_mediator *mediator;
    trp_err err = topic_check(system, topic, &r, &mediator);
    if (err != TRP_OK || trp_ref_is_none(subscriber) || subscriber.node != TRPI_NODE_SELF) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    err = service_register(r, TRPI_CLIENT_TOPIC, topic, subscriber);
    if (err == TRP_OK) {
        err = trp_mediator_subscribe(mediator, topic, subscriber, options);
        if (err != TRP_OK) {
            (void)service_take_back(r, TRPI_CLIENT_TOPIC, topic, &subscriber);
        }
    }
    return err;
}

trp_err
trp_receptionist_unsubscribe(trp_system *system, const char *topic, trp_ref subscriber,
                             const trp_subscribe_options *options)
{
    reception *r;
    trp_mediator *mediator;
    trp_err err = topic_check(system, topic, &r, &mediator);
    if (err != TRP_OK || trp_ref_is_none(subscriber)) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    return service_take_back(r, TRPI_CLIENT_TOPIC, topic, &subscriber)
               ? trp_mediator_unsubscribe(mediator, topic, subscriber, options)
               : TRP_ENOENT;
}

/* ---- permissions ----------------------------------------------------------------------------- */

/* Is the text before '=' of a permission, of so many bytes, about this service or topic? */
static bool
is_about(const char *text, size_t bytes, uint32_t kind, const char *name)
{
    static const char topic[] = "topic:";
    const size_t begin = kind == TRPI_CLIENT_TOPIC ? sizeof topic - 1 : 0;
    if (bytes == 1 && text[0] == '*') {
        return true;
    }
    if (bytes < begin || memcmp(text, topic, begin) != 0) {
        return false;
    }
    text += begin;
    bytes -= begin;
    return (begin > 0 && bytes == 1 && text[0] == '*') ||
           (strlen(name) == bytes && memcmp(text, name, bytes) == 0);
}

bool
reception_permits(const reception *r, uint32_t kind, const char *name, const char *certificate)
{
    bool has_line = false, is = false;
    for (size_t i = 0; i < r->options.permissions_count; i++) {
        const char *line = r->permissions[i], *equals = strrchr(line, '=');
        bool is_meant = is_about(line, (size_t)(equals - line), kind, name);
        has_line = has_line || is_meant;
        is = is || (is_meant && certificate[0] != '\0' && strcmp(equals + 1, certificate) == 0);
    }
    return !has_line || is;
}

static trp_err
permissions_keep(reception *r, const trpi_receptionist_options *o)
{
    r->permissions = o->permissions_count == 0
                         ? NULL
                         : trpi_alloc(o->permissions_count * sizeof *r->permissions);
    r->options.permissions_count = r->permissions == NULL ? 0 : o->permissions_count;
    if (o->permissions_count > 0 && r->permissions == NULL) {
        return TRP_ENOMEM;
    }
    for (size_t i = 0; i < o->permissions_count; i++) {
        const char *equals = strrchr(o->permissions[i], '=');
        if (equals == NULL || equals == o->permissions[i] || equals[1] == '\0') {
            trpi_log(r->system, TRP_LOG_ERROR, "client",
                     "cluster.client.receptionist.permissions '%.100s': write SERVICE=NAME or "
                     "topic:TOPIC=NAME, the name in the certificate of clients that reach it",
                     o->permissions[i]);
            return TRP_EINVAL;
        }
        r->permissions[i] = trpi_strdup(o->permissions[i]);
        if (r->permissions[i] == NULL) {
            return TRP_ENOMEM;
        }
    }
    return TRP_OK;
}

/* ---- the door -------------------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t given, uint32_t value)
{
    return given != 0 ? given : value;
}

static void
frame_give(reception *r, const trpi_node_id *from, const uint8_t *bytes, size_t count,
           uint32_t is_client)
{
    reception_note note;
    memset(&note, 0, sizeof note);
    if (trpi_client_frame_decode(bytes, count, &note.frame) == TRP_OK) {
        note.from = *from;
        note.is_client = is_client;
        trp_ctx *ctx = trpi_enter(r->system);
        trpi_tell(ctx, r->actor, (trp_ref)TRP_REF_NONE, &reception_note_type, &note, sizeof note);
        trpi_leave(ctx);
    }
}

static void
client_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                     uint64_t arrived_ns)
{
    (void)arrived_ns;
    frame_give(arg, from, bytes, count, 1);
}

static void
other_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                    uint64_t arrived_ns)
{
    (void)arrived_ns;
    frame_give(arg, from, bytes, count, 0);
}

static void
leave_task(void *arg, uint64_t task)
{
    const reception *r = arg;
    trp_system_tell(r->system, r->actor, &reception_leave_type, &task, sizeof task);
}

/* The mediator through which all services of a name are reached. */
static trp_err
mediator_begin(reception *r)
{
    trp_mediator_options options = TRP_MEDIATOR_OPTIONS_INIT;
    options.name = RECEPTION_MEDIATOR;
    options.role = r->role[0] == '\0' ? NULL : r->role;
    return trp_mediator_start(r->system, &options, &r->services_all);
}

trp_err
trpi_receptionist_open(trp_system *system, trpi_remote *remote,
                       const trpi_receptionist_options *options)
{
    void *instance;
    uint64_t task;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    if (reception_get(system) != NULL) {
        return TRP_EEXIST;
    }
    trp_err err = trp_extension_get(system, &reception_extension, &instance);
    if (err != TRP_OK) {
        return err;
    }
    reception *r = instance;
    r->self = *trpi_system_self(system);
    r->self.address = *trpi_remote_address(remote);
    (void)snprintf(r->role, sizeof r->role, "%s", options->role == NULL ? "" : options->role);
    r->options.contacts = or_default(options->contacts, TRPI_RECEPTIONIST_CONTACTS_DEFAULT);
    r->options.tunnel_ms = or_default(options->tunnel_ms, TRPI_RECEPTIONIST_TUNNEL_MS_DEFAULT);
    r->options.silence_ms = or_default(options->silence_ms, TRPI_RECEPTIONIST_SILENCE_MS_DEFAULT);
    r->options.clients_max = or_default(options->clients_max, TRPI_RECEPTIONIST_CLIENTS_DEFAULT);
    err = permissions_keep(r, options);
    if (err != TRP_OK) {
        return err;
    }
    err = mediator_begin(r);
    if (err != TRP_OK) {
        return err;
    }
    r->remote = remote;
    spawn.name = "receptionist";
    spawn.mailbox = "unbounded";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &r;
    spawn.args_bytes = sizeof r;
    err = trpi_system_spawn_internal(system, &receptionist_behaviour, &spawn, &r->actor);
    if (err != TRP_OK) {
        return err;
    }
    err =
        trp_shutdown_add(system, TRP_SHUTDOWN_SERVICE_UNBIND, "receptionist", leave_task, r, &task);
    if (err == TRP_OK) {
        trpi_remote_control_bind(remote, TRPI_CHANNEL_CLIENT, client_frame_arrived, r);
        trpi_remote_control_bind(remote, TRPI_CHANNEL_RECEPTIONIST, other_frame_arrived, r);
        trpi_remote_clients_accept(remote, r->options.clients_max);
    }
    return err;
}

void
trpi_receptionist_close(trp_system *system)
{
    reception *r = reception_get(system);
    trpi_remote *remote = r == NULL ? NULL : r->remote;
    if (remote == NULL) {
        return;
    }
    trpi_remote_clients_accept(remote, 0);
    trpi_remote_control_bind(remote, TRPI_CHANNEL_CLIENT, NULL, NULL);
    trpi_remote_control_bind(remote, TRPI_CHANNEL_RECEPTIONIST, NULL, NULL);
    if (trp_system_graceful_stop(system, r->actor, 5000) == TRP_ETIMEDOUT) {
        trp_system_stop_actor(system, r->actor);
    }
    pthread_mutex_lock(&r->lock);
    r->remote = NULL;
    pthread_mutex_unlock(&r->lock);
}
