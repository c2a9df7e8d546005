/* services.c - the names that clients may ask a node for, and who may.
 *
 * Shape.   program --register--> reception (names) --change--> the receptionist's actor, which
 *          watches it
 * Must hold.
 *   client-services-V1  A name leads to one actor of this node, until that ends.
 * Limits.  TRP_RECEPTIONIST_SERVICES_MAX.
 * Threads. lock guards the names; it is a leaf.
 * Tests.   tests/unit/client/client_test.c
 * Sources. CONTRIB-27, ROLES-03
 */
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

/* The place of a name, or where it belongs. By the lock. */
static service **
place_of(reception *r, const char *name)
{
    service **at = &r->services;
    while (*at != NULL && strcmp((*at)->name, name) < 0) {
        at = &(*at)->next;
    }
    return at;
}

static bool
is_at(service *const *at, const char *name)
{
    return *at != NULL && strcmp((*at)->name, name) == 0;
}

bool
reception_find(reception *r, const char *name, trp_ref *ret_ref)
{
    pthread_mutex_lock(&r->lock);
    service *const *at = place_of(r, name);
    bool is = is_at(at, name);
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

static trp_err
service_add(reception *r, const char *name, trp_ref ref)
{
    service **at = place_of(r, name);
    if (r->remote == NULL) {
        return TRP_ESTATE;
    }
    if (is_at(at, name)) {
        return trp_ref_equal((*at)->ref, ref) ? TRP_OK : TRP_EEXIST; /* client-services-V1 */
    }
    if (r->services_count >= TRP_RECEPTIONIST_SERVICES_MAX) {
        return TRP_ELIMIT;
    }
    service *s = trpi_alloc(sizeof *s);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    s->ref = ref;
    s->next = *at;
    *at = s;
    r->services_count++;
    return TRP_OK;
}

static trp_err
no_receptionist(trp_system *system)
{
    trpi_log(system, TRP_LOG_ERROR, "client",
             "this node has no receptionist: set cluster.client.receptionist.enabled = on");
    return TRP_ESTATE;
}

static bool
name_is_good(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) <= TRP_CLIENT_SERVICE_NAME_BYTES_MAX;
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
    pthread_mutex_lock(&r->lock);
    trp_err err = service_add(r, name, ref);
    pthread_mutex_unlock(&r->lock);
    if (err == TRP_OK) {
        const reception_change change = { ref, 0 };
        trp_system_tell(system, r->actor, &reception_change_type, &change, sizeof change);
    }
    return err;
}

trp_err
trp_receptionist_unregister(trp_system *system, const char *name)
{
    reception *r = system == NULL ? NULL : reception_get(system);
    reception_change change = { TRP_REF_NONE, 1 };
    if (r == NULL) {
        return system == NULL ? TRP_EINVAL : no_receptionist(system);
    }
    if (!name_is_good(name)) {
        return TRP_ENOENT;
    }
    pthread_mutex_lock(&r->lock);
    service **at = place_of(r, name);
    bool is = is_at(at, name);
    if (is) {
        change.ref = (*at)->ref;
        service_drop(r, at);
    }
    pthread_mutex_unlock(&r->lock);
    if (is) {
        trp_system_tell(system, r->actor, &reception_change_type, &change, sizeof change);
    }
    return is ? TRP_OK : TRP_ENOENT;
}

/* ---- permissions ----------------------------------------------------------------------------- */

bool
reception_permits(const reception *r, const char *name, const char *certificate)
{
    bool has_line = false, is = false;
    for (size_t i = 0; i < r->options.permissions_count; i++) {
        const char *line = r->permissions[i], *equals = strchr(line, '=');
        size_t bytes = (size_t)(equals - line);
        bool is_meant = (bytes == 1 && line[0] == '*') ||
                        (strlen(name) == bytes && memcmp(line, name, bytes) == 0);
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
        const char *equals = strchr(o->permissions[i], '=');
        if (equals == NULL || equals == o->permissions[i] || equals[1] == '\0') {
            trpi_log(r->system, TRP_LOG_ERROR, "client",
                     "cluster.client.receptionist.permissions '%.100s': write SERVICE=NAME, the "
                     "name in the certificate of clients that reach the service",
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
