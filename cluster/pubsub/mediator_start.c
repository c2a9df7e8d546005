/* mediator_start.c - the mediators of a system: how they start, and the door for the node.
 *
 * Life.    An extension of the system has them; they are freed when all threads have ended.
 * Tests.   tests/unit/cluster/pubsub_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/extension.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "cluster/pubsub/mediator.h"
#include "pattern/pattern.h"

#define LOCAL_TYPE(text, bytes, tag, flags)                                                        \
    {                                                                                              \
        "pubsub." text, bytes, tag, TRP_TYPE_LOCAL | (flags), NULL, 0, 0                           \
    }
trp_type mediator_request_type =
    LOCAL_TYPE("request", sizeof(mediator_request), 2, TRP_TYPE_VARIABLE);
trp_type mediator_frame_type = LOCAL_TYPE("frame", 0, 3, TRP_TYPE_VARIABLE);
trp_type mediator_tick_type = LOCAL_TYPE("tick", 0, 4, 0);
trp_type trp_subscribe_ack_type =
    LOCAL_TYPE("subscribe-ack", sizeof(trp_subscribe_ack), 5, TRP_TYPE_VARIABLE);
trp_type trp_unsubscribe_ack_type =
    LOCAL_TYPE("unsubscribe-ack", sizeof(trp_subscribe_ack), 6, TRP_TYPE_VARIABLE);
trp_type trp_missed_type = LOCAL_TYPE("missed", sizeof(trp_missed), 7, TRP_TYPE_VARIABLE);
trp_type trp_publish_report_type = LOCAL_TYPE("report", sizeof(trp_publish_report), 8, 0);
trp_type trp_registry_listing_type = { "registry.listing",
                                       sizeof(trp_registry_listing),
                                       1,
                                       TRP_TYPE_LOCAL | TRP_TYPE_VARIABLE,
                                       NULL,
                                       0,
                                       0 };
static trp_type *const registry_types[] = { &trp_registry_listing_type };
const trp_protocol trp_registry_protocol = { "registry", registry_types, 1, 0 };
static trp_type *const types[] = { &trpi_topic_envelope_type, &mediator_request_type,
                                   &mediator_frame_type,      &mediator_tick_type,
                                   &trp_subscribe_ack_type,   &trp_unsubscribe_ack_type,
                                   &trp_missed_type,          &trp_publish_report_type };
static const trp_protocol protocol = { "pubsub", types, sizeof types / sizeof types[0], 0 };

/* ---- life ------------------------------------------------------------------------------------ */

static void
mediator_free(trp_mediator *m)
{
    trpi_wait_end wait;
    trpi_tally_end tally;
    while (m->acks != NULL) {
        mediator_late_ack *ack = m->acks;
        m->acks = ack->next;
        trpi_free(ack);
    }
    while (m->waits != NULL && trpi_waits_take(m->waits, &wait)) {
        trpi_msg_drop(wait.arg);
    }
    while (m->tallies != NULL && trpi_tallies_take(m->tallies, &tally)) {
        trpi_free(tally.arg);
    }
    trpi_waits_free(m->waits);
    trpi_tallies_free(m->tallies);
    trpi_route_fini(&m->route);
    trpi_audience_fini(&m->audience);
    trpi_audience_fini(&m->listeners);
    trpi_pubreg_free(m->registry);
    trpi_buffer_fini(&m->envelope);
    trpi_free(m->peers);
    trpi_mutex_destroy(&m->lock);
    trpi_free(m);
}

static void
mediators_release(void *instance)
{
    mediators *all = instance;
    while (all->list != NULL) {
        trp_mediator *m = all->list;
        all->list = m->next;
        mediator_free(m);
    }
    trpi_mutex_destroy(&all->lock);
    trpi_free(all);
}

static trp_err
mediators_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)arg;
    trp_err err = trp_protocol_register(&protocol);
    err = err != TRP_OK ? err : trp_protocol_register(&trp_registry_protocol);
    mediators *all = err == TRP_OK ? trpi_alloc(sizeof *all) : NULL;
    if (all == NULL) {
        return err == TRP_OK ? TRP_ENOMEM : err;
    }
    all->system = system;
    pthread_mutex_init(&all->lock, NULL);
    trpi_dead_letters_show(system, mediator_loss_show);
    *ret_instance = all;
    return TRP_OK;
}

static const trp_extension extension = { sizeof extension,  "troupe-pubsub",
                                         mediators_create,  NULL,
                                         mediators_release, NULL };

trp_err
mediators_of(trp_system *system, mediators **ret_all)
{
    void *instance;
    trp_err err = trp_extension_get(system, &extension, &instance);
    if (err == TRP_OK) {
        *ret_all = instance;
    }
    return err;
}

trp_mediator *
mediator_find(const mediators *all, const char *name)
{
    trp_mediator *m = all->list;
    while (m != NULL && (strcmp(m->name, name) != 0 || atomic_load(&m->ended))) {
        m = m->next;
    }
    return m;
}

bool
mediators_address(mediators *all, trpi_address *ret_address)
{
    pthread_mutex_lock(&all->lock);
    bool clustered = all->remote != NULL;
    if (clustered) {
        *ret_address = *trpi_remote_address(all->remote);
    }
    pthread_mutex_unlock(&all->lock);
    return clustered;
}

/* ---- start ----------------------------------------------------------------------------------- */

static trp_err
mediator_spawn(trp_mediator *m)
{
    char name[sizeof "pubsub-" + TRP_MEDIATOR_NAME_BYTES_MAX];
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    bool is_default = strcmp(m->name, MEDIATOR_DEFAULT) == 0;
    (void)snprintf(name, sizeof name, "pubsub%s%s", is_default ? "" : "-",
                   is_default ? "" : m->name);
    spawn.name = m->is_registry ? "registry" : name;
    spawn.dispatcher = "default";
    spawn.mailbox = "unbounded";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &m;
    spawn.args_bytes = sizeof m;
    return trpi_system_spawn_internal(m->system, &mediator_behaviour, &spawn, &m->actor);
}

/* Under all->lock. */
static trp_err
mediator_new(mediators *all, const char *name, const char *role, trp_mediator **ret_mediator)
{
    trp_mediator *m = trpi_alloc(sizeof *m);
    if (m == NULL) {
        return TRP_ENOMEM;
    }
    m->all = all;
    m->system = all->system;
    m->life = 1;
    for (const trp_mediator *before = all->list; before != NULL; before = before->next) {
        m->life += strcmp(before->name, name) == 0;
    }
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    m->is_registry = strcmp(name, MEDIATOR_REGISTRY) == 0;
    (void)snprintf(m->role, sizeof m->role, "%s", role);
    m->acks_end = &m->acks;
    m->random = trpi_world_random(trpi_system_world(all->system));
    pthread_mutex_init(&m->lock, NULL);
    trp_err err = trpi_waits_new(&m->waits);
    err = err != TRP_OK ? err : trpi_tallies_new(&m->tallies);
    if (err != TRP_OK) {
        mediator_free(m);
        return err;
    }
    *ret_mediator = m;
    return TRP_OK;
}

/* Under all->lock. */
static trp_err
mediator_add(mediators *all, const char *name, const char *role, trp_mediator **ret_mediator)
{
    trp_mediator *m;
    if (mediator_find(all, name) != NULL) {
        return TRP_EEXIST;
    }
    if (all->count >= TRP_MEDIATORS_MAX && strcmp(name, MEDIATOR_REGISTRY) != 0) {
        return TRP_ELIMIT;
    }
    trp_err err = mediator_new(all, name, role, &m);
    if (err != TRP_OK) {
        return err;
    }
    err = mediator_spawn(m);
    if (err != TRP_OK) {
        mediator_free(m);
        return err;
    }
    m->next = all->list;
    all->list = m;
    all->count += !m->is_registry;
    *ret_mediator = m;
    return TRP_OK;
}

static bool
name_is_valid(const char *name)
{
    size_t bytes = name == NULL ? 0 : strnlen(name, TRP_MEDIATOR_NAME_BYTES_MAX + 1);
    return bytes > 0 && bytes <= TRP_MEDIATOR_NAME_BYTES_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               bytes;
}

/* Does this node have the role? Without a cluster it has all. */
static trp_err
role_check(mediators *all, const char *role)
{
    trpi_address here;
    return role == NULL || role[0] == '\0' || !mediators_address(all, &here)
               ? TRP_OK
               : trp_cluster_require_role(all->system, role);
}

trp_err
trp_mediator_start(trp_system *system, const trp_mediator_options *options,
                   trp_mediator **ret_mediator)
{
    trp_mediator_options own;
    trp_mediator *m = NULL;
    mediators *all;
    if (system == NULL || options == NULL || !TRPI_SIZED_COPY(options, &own, role) ||
        !name_is_valid(own.name) ||
        (own.role != NULL &&
         (own.role[0] == '\0' || strnlen(own.role, TRP_ROLE_BYTES) >= TRP_ROLE_BYTES))) {
        return TRP_EINVAL;
    }
    trp_err err = mediators_of(system, &all);
    err = err != TRP_OK ? err : role_check(all, own.role);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&all->lock);
    err = mediator_add(all, own.name, own.role == NULL ? "" : own.role, &m);
    pthread_mutex_unlock(&all->lock);
    if (err == TRP_OK && ret_mediator != NULL) {
        *ret_mediator = m;
    }
    return err;
}

/* Start the default one, if this node has its role. Under all->lock. */
static trp_err
default_add(mediators *all, trp_mediator **ret_mediator)
{
    trp_member self;
    bool has_role = all->remote == NULL || all->role[0] == '\0' ||
                    (trp_cluster_self(all->system, &self) == TRP_OK &&
                     trp_member_has_role(&self, all->role) != 0);
    return has_role ? mediator_add(all, MEDIATOR_DEFAULT, all->role, ret_mediator) : TRP_EROLE;
}

trp_err
trp_mediator_of(trp_system *system, const char *name, trp_mediator **ret_mediator)
{
    mediators *all;
    if (system == NULL || ret_mediator == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = mediators_of(system, &all);
    if (err != TRP_OK) {
        return err;
    }
    bool is_default = name == NULL || strcmp(name, MEDIATOR_DEFAULT) == 0;
    pthread_mutex_lock(&all->lock);
    trp_mediator *m = mediator_find(all, name == NULL ? MEDIATOR_DEFAULT : name);
    m = m != NULL && m->is_registry ? NULL : m;
    if (m == NULL) {
        err = is_default ? default_add(all, &m) : TRP_ENOENT;
    }
    pthread_mutex_unlock(&all->lock);
    if (err == TRP_OK) {
        *ret_mediator = m;
    }
    return err;
}

trp_err
mediators_registry(trp_system *system, trp_mediator **ret_mediator)
{
    mediators *all;
    trp_err err = mediators_of(system, &all);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&all->lock);
    trp_mediator *m = mediator_find(all, MEDIATOR_REGISTRY);
    err = m == NULL ? mediator_add(all, MEDIATOR_REGISTRY, "", &m) : TRP_OK;
    pthread_mutex_unlock(&all->lock);
    if (err == TRP_OK) {
        *ret_mediator = m;
    }
    return err;
}

/* ---- the door -------------------------------------------------------------------------------- */

trp_err
trpi_pubsub_open(trp_system *system, trpi_remote *remote, const trpi_pubsub_options *options)
{
    mediators *all;
    trp_mediator *m;
    trp_err err = mediators_of(system, &all);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&all->lock);
    all->remote = remote;
    all->options.tick_ms = options->interval_ms;
    all->options.tick_bytes_max = options->bytes_max;
    (void)snprintf(all->role, sizeof all->role, "%s", options->role == NULL ? "" : options->role);
    err = default_add(all, &m);
    err = err == TRP_EROLE ? TRP_OK : err;
    pthread_mutex_unlock(&all->lock);
    trpi_remote_control_bind(remote, TRPI_CHANNEL_PUBSUB, mediators_frame_arrived, all);
    return err;
}

void
trpi_pubsub_close(trp_system *system)
{
    mediators *all = trp_extension_find(system, extension.name);
    if (all == NULL || all->remote == NULL) {
        return;
    }
    trpi_remote_control_bind(all->remote, TRPI_CHANNEL_PUBSUB, NULL, NULL);
    pthread_mutex_lock(&all->lock);
    all->remote = NULL;
    pthread_mutex_unlock(&all->lock);
}

void
trpi_pubsub_each(trp_system *system,
                 void (*fn)(void *arg, trp_mediator *mediator, const trpi_pubsub_status *status),
                 void *arg)
{
    mediators *all = trp_extension_find(system, extension.name);
    trp_mediator *list[TRP_MEDIATORS_MAX + 1]; /* and the registry's */
    uint32_t count = 0;
    if (all == NULL) {
        return;
    }
    pthread_mutex_lock(&all->lock);
    for (trp_mediator *m = all->list; m != NULL; m = m->next) {
        if (!atomic_load(&m->ended)) {
            list[count++] = m; /* it stays until the system is freed */
        }
    }
    pthread_mutex_unlock(&all->lock);
    while (count-- > 0) { /* as they were started */
        trp_mediator *m = list[count];
        trpi_pubsub_status status = { .name = m->is_registry ? "registry" : m->name,
                                      .role = m->role };
        pthread_mutex_lock(&m->lock);
        if (m->registry != NULL) {
            status.topics = trpi_pubreg_topics(m->registry);
            status.settled = trpi_pubreg_is_settled(m->registry);
        }
        pthread_mutex_unlock(&m->lock);
        status.frames_sent = atomic_load_explicit(&m->frames_sent, memory_order_relaxed);
        status.bytes_sent = atomic_load_explicit(&m->bytes_sent, memory_order_relaxed);
        fn(arg, m, &status);
    }
}
