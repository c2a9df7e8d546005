/* registry.c - the singletons and proxies of one node, and the frames between nodes.
 *
 * Why.     Frames name a singleton. A node on which it was not started has to answer, too: a new
 *          host waits for each older member (singleton-O2).
 * Shape.   transport thread --frame--> registry (by name) --note--> manager, proxies of the name
 *                                           `-- no manager: ABSENT, at once
 * Must hold.
 *   registry-S1  A frame to a name without a manager is answered ABSENT, if it asks for anything.
 *   registry-S2  An entry lives until all threads of the system have ended.
 * Limits.  TRP_SINGLETONS_MAX; TRP_SINGLETON_DATA_BYTES_MAX.
 * Threads. lock guards the list and what others may see of an entry. Actors own the rest.
 * Tests.   tests/unit/cluster/singleton_test.c
 */
#include "cluster/singleton/registry.h"

#include <stdio.h>
#include <string.h>

#include <troupe/extension.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/pack.h"

#define LOCAL_TYPE(text, bytes, tag, flags)                                                        \
    {                                                                                              \
        "singleton." text, bytes, tag, TRP_TYPE_LOCAL | (flags), NULL, 0, 0                        \
    }
trp_type singleton_note_type = LOCAL_TYPE("note", 0, 1, TRP_TYPE_VARIABLE);
trp_type singleton_tick_type = LOCAL_TYPE("tick", 0, 2, 0);
trp_type singleton_lease_type = LOCAL_TYPE("lease", sizeof(uint64_t), 3, 0);
trp_type singleton_exit_type = LOCAL_TYPE("exit", sizeof(uint64_t), 4, 0);
trp_type singleton_ends_type = LOCAL_TYPE("ends", 0, 5, 0);
static trp_type *const singleton_types[] = { &singleton_note_type, &singleton_tick_type,
                                             &singleton_lease_type, &singleton_exit_type,
                                             &singleton_ends_type };
const trp_protocol singleton_protocol = { "singleton", singleton_types,
                                          sizeof singleton_types / sizeof singleton_types[0], 0 };

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
registry_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)arg;
    trp_err err = trp_protocol_register(&singleton_protocol);
    singleton_registry *registry = err == TRP_OK ? trpi_alloc(sizeof *registry) : NULL;
    if (registry == NULL) {
        return err == TRP_OK ? TRP_ENOMEM : err;
    }
    registry->system = system;
    pthread_mutex_init(&registry->lock, NULL);
    *ret_instance = registry;
    return TRP_OK;
}

static void
registry_release(void *instance)
{
    singleton_registry *registry = instance;
    while (registry->entries != NULL) {
        singleton_entry *entry = registry->entries;
        registry->entries = entry->next;
        entry->free(entry);
    }
    trpi_mutex_destroy(&registry->lock);
    trpi_free(registry);
}

static const trp_extension registry_extension = { .size = sizeof(trp_extension),
                                                  .name = "troupe-singletons",
                                                  .create = registry_create,
                                                  .release = registry_release };

singleton_registry *
singleton_registry_get(trp_system *system)
{
    return trp_extension_find(system, registry_extension.name);
}

uint64_t
singleton_now_ms(const singleton_registry *registry)
{
    return trpi_world_mono_ns(trpi_system_world(registry->system)) / 1000000u;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Does the word go to managers, or to proxies? ABSENT goes to both. */
static bool
is_for(const singleton_entry *entry, uint32_t word)
{
    bool managers = word <= TRPI_SINGLETON_WORD_LAST || word == SINGLETON_WHERE;
    bool proxies =
        word == TRPI_SINGLETON_ABSENT || word == SINGLETON_HERE || word == SINGLETON_GONE;
    return !entry->closed && (entry->is_proxy ? proxies : managers);
}

/* Give the frame to the actors of its name; true: one took it. Under the lock. */
static bool
frame_give(singleton_registry *registry, const trpi_node_id *from, const singleton_frame *frame)
{
    bool taken = false;
    for (singleton_entry *entry = registry->entries; entry != NULL; entry = entry->next) {
        if (strcmp(entry->name, frame->name) != 0 || !is_for(entry, frame->word)) {
            continue;
        }
        const trp_ref nobody = TRP_REF_NONE;
        size_t bytes = sizeof(singleton_note) + frame->data_bytes;
        singleton_note *note = trpi_alloc(bytes);
        taken = true;
        if (note == NULL) {
            continue; /* as a lost frame: it is sent again */
        }
        note->from = *from;
        note->word = frame->word;
        note->slot = frame->slot;
        note->generation = frame->generation;
        note->data_bytes = (uint32_t)frame->data_bytes;
        note->round = frame->round;
        if (frame->data_bytes > 0) {
            memcpy(note->data, frame->data, frame->data_bytes);
        }
        trp_ctx *ctx = trpi_enter(registry->system);
        trpi_tell(ctx, entry->actor, nobody, &singleton_note_type, note, bytes);
        trpi_free(note);
        trpi_leave(ctx);
    }
    return taken;
}

static bool
wants_answer(uint32_t word)
{
    return word == TRPI_SINGLETON_HAND_OVER_TO_ME || word == TRPI_SINGLETON_TAKE_OVER_FROM_ME ||
           word == SINGLETON_WHERE;
}

/* Under the lock. */
static void
frame_send(singleton_registry *registry, const trpi_node_id *to, const singleton_frame *frame)
{
    trpi_buffer bytes = { NULL, 0, 0 };
    if (registry->remote == NULL) {
        return;
    }
    if (singleton_frame_encode(frame, &bytes) == TRP_OK) {
        (void)trpi_remote_control_send(registry->remote, to, TRPI_CHANNEL_SINGLETON, bytes.data,
                                       bytes.count); /* lost: it is sent again */
    }
    trpi_buffer_fini(&bytes);
}

static void
frame_answer(singleton_registry *registry, const trpi_node_id *from, const singleton_frame *frame,
             bool self)
{
    if (frame_give(registry, from, frame) || !wants_answer(frame->word)) {
        return;
    }
    singleton_frame absent = { .word = TRPI_SINGLETON_ABSENT, .round = frame->round };
    (void)snprintf(absent.name, sizeof absent.name, "%s", frame->name);
    if (self) {
        (void)frame_give(registry, from, &absent);
    } else {
        frame_send(registry, from, &absent); /* registry-S1 */
    }
}

static void
frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
              uint64_t arrived_ns)
{
    singleton_registry *registry = arg;
    singleton_frame frame;
    trpi_pack_doc *doc;
    (void)arrived_ns;
    if (singleton_frame_decode(bytes, count, &frame, &doc) != TRP_OK) {
        return; /* of a newer version, or nonsense */
    }
    pthread_mutex_lock(&registry->lock);
    frame_answer(registry, from, &frame, false);
    pthread_mutex_unlock(&registry->lock);
    trpi_pack_doc_free(doc);
}

void
singleton_send_frame(singleton_registry *registry, const trpi_node_id *to,
                     const singleton_frame *frame)
{
    pthread_mutex_lock(&registry->lock);
    if (trpi_node_id_equal(to, &registry->self)) {
        frame_answer(registry, to, frame, true);
    } else {
        frame_send(registry, to, frame);
    }
    pthread_mutex_unlock(&registry->lock);
}

/* ---- entries --------------------------------------------------------------------------------- */

trp_err
singleton_entry_add(singleton_registry *registry, singleton_entry *entry)
{
    trp_err err = TRP_OK;
    pthread_mutex_lock(&registry->lock);
    singleton_entry **at = &registry->entries;
    uint32_t open = 0;
    for (singleton_entry *e = registry->entries; e != NULL; e = e->next) {
        open += !e->closed;
        if (strcmp(e->name, entry->name) <= 0) {
            at = &e->next;
        }
        if (!entry->is_proxy && !e->is_proxy && !e->closed && strcmp(e->name, entry->name) == 0) {
            err = TRP_EEXIST;
        }
    }
    if (err == TRP_OK && registry->remote == NULL) {
        err = TRP_ESTATE;
    }
    if (err == TRP_OK && open >= TRP_SINGLETONS_MAX) {
        err = TRP_ELIMIT;
    }
    if (err == TRP_OK) {
        entry->registry = registry;
        entry->next = *at;
        *at = entry;
        entry->status.name = entry->name;
        entry->status.role = entry->role;
        entry->status.state = entry->is_proxy ? "Proxy" : "Start";
        entry->host_since_ms = entry->state_since_ms = singleton_now_ms(registry);
    }
    pthread_mutex_unlock(&registry->lock);
    return err;
}

void
singleton_entry_drop(singleton_entry *entry)
{
    singleton_registry *registry = entry->registry;
    pthread_mutex_lock(&registry->lock);
    singleton_entry **at = &registry->entries;
    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    pthread_mutex_unlock(&registry->lock);
    entry->free(entry);
}

void
singleton_entry_close(singleton_entry *entry)
{
    pthread_mutex_lock(&entry->registry->lock);
    entry->closed = true;
    pthread_mutex_unlock(&entry->registry->lock);
}

bool
singleton_is_event(const trp_msg *msg)
{
    for (uint32_t i = 0; i < trp_cluster_protocol.types_count; i++) {
        if (trp_msg_is(msg, trp_cluster_protocol.types[i])) {
            return true;
        }
    }
    return false;
}

trp_err
singleton_members_read(const singleton_entry *entry, singleton_member **ret_members,
                       uint32_t *ret_count)
{
    trp_system *system = entry->registry->system;
    size_t count = 0, room = 0;
    trp_member *all = NULL;
    trp_err err = trp_cluster_members(system, NULL, 0, &count);
    while (err == TRP_OK && count > room) { /* a member may come between the two calls */
        trpi_free(all);
        room = count;
        all = trpi_alloc(room * sizeof *all);
        err = all == NULL ? TRP_ENOMEM : trp_cluster_members(system, all, room, &count);
    }
    singleton_member *members = err == TRP_OK ? trpi_alloc((count + 1) * sizeof *members) : NULL;
    uint32_t kept = 0;
    for (size_t i = 0; members != NULL && i < count; i++) {
        if ((entry->role[0] == '\0' || trp_member_has_role(&all[i], entry->role) != 0) &&
            trpi_aged_of(&all[i], &members[kept].aged)) {
            members[kept++].reachable = all[i].reachable != 0 || all[i].self != 0;
        }
    }
    trpi_free(all);
    if (err == TRP_OK && members == NULL) {
        err = TRP_ENOMEM;
    }
    if (err == TRP_OK) {
        *ret_members = members;
        *ret_count = kept;
    }
    return err;
}

/* ---- the door -------------------------------------------------------------------------------- */

trp_err
trpi_singletons_open(trp_system *system, trpi_remote *remote)
{
    void *instance;
    trp_err err = trp_extension_get(system, &registry_extension, &instance);
    if (err != TRP_OK) {
        return err;
    }
    singleton_registry *registry = instance;
    pthread_mutex_lock(&registry->lock);
    registry->remote = remote;
    registry->self = *trpi_system_self(system);
    registry->self.address = *trpi_remote_address(remote);
    pthread_mutex_unlock(&registry->lock);
    trpi_remote_control_bind(remote, TRPI_CHANNEL_SINGLETON, frame_arrived, registry);
    return TRP_OK;
}

void
trpi_singletons_close(trp_system *system)
{
    singleton_registry *registry = singleton_registry_get(system);
    trpi_remote *remote = registry == NULL ? NULL : registry->remote;
    if (remote == NULL) {
        return;
    }
    trpi_remote_control_bind(remote, TRPI_CHANNEL_SINGLETON, NULL, NULL);
    pthread_mutex_lock(&registry->lock);
    registry->remote = NULL;
    pthread_mutex_unlock(&registry->lock);
}

void
trpi_singletons_cluster_ends(trp_system *system, uint64_t ms)
{
    singleton_registry *registry = singleton_registry_get(system);
    if (registry == NULL) {
        return;
    }
    pthread_mutex_lock(&registry->lock);
    registry->cluster_ends_ms = singleton_now_ms(registry) + ms;
    for (singleton_entry *entry = registry->entries; entry != NULL; entry = entry->next) {
        if (!entry->is_proxy && !entry->closed) {
            trp_system_tell(system, entry->actor, &singleton_ends_type, NULL, 0);
        }
    }
    pthread_mutex_unlock(&registry->lock);
}

void
trpi_singletons_each(trp_system *system, void (*fn)(void *arg, const trpi_singleton_status *status),
                     void *arg)
{
    singleton_registry *registry = singleton_registry_get(system);
    if (registry == NULL) {
        return;
    }
    uint64_t now_ms = singleton_now_ms(registry);
    pthread_mutex_lock(&registry->lock);
    for (singleton_entry *entry = registry->entries; entry != NULL; entry = entry->next) {
        if (!entry->closed) {
            entry->status.host_ms = now_ms - entry->host_since_ms;
            entry->status.state_ms = now_ms - entry->state_since_ms;
            fn(arg, &entry->status);
        }
    }
    pthread_mutex_unlock(&registry->lock);
}
