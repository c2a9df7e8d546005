/* mediator_keys.c - the registry of troupe/registry.h, for which a mediator of its own spreads who
 * is registered: a registration is a group of a topic.
 *
 * Shape.   topic: the protocol's name, a NUL, the key. Group: slot and generation of the actor, in
 *          which it alone sits; with the node that has the group they are its ref.
 *          registry changes --> which topics have another `changed` --> listings to their listeners
 * Must hold.
 *   mediator-keys-K1  A listener's latest listing is the set that this node knows, LISTINGS_MS
 *       after the last change at the latest, or when there is memory again.
 *   mediator-keys-K2  An actor is watched exactly while it is in the audience or listens.
 * Limits.  TRP_REGISTRY_ENTRIES_MAX, TRP_REGISTRY_KEYS_WATCHED_MAX.
 * Cost.    Each key that is listened to is looked up at most once in LISTINGS_MS.
 * Tests.   tests/unit/cluster/registry_test.c, tests/sim/registry_test.c, tests/sim/pubsub_test.c
 *          (pubsub-sim-L8)
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/pubsub/index.h"
#include "cluster/pubsub/mediator.h"

enum { LISTINGS_MS = 50 };

/* ---- the set --------------------------------------------------------------------------------- */

void
mediator_keys_group(trp_ref ref, uint8_t *ret_bytes)
{
    uint64_t name = (uint64_t)ref.generation << 32 | ref.slot;
    for (uint32_t i = 0; i < MEDIATOR_KEYS_GROUP_BYTES; i++) {
        ret_bytes[i] = (uint8_t)(name >> (8 * i));
    }
}

/* The actor of a group at a node; false: it cannot be named. */
static bool
ref_of(trp_mediator *m, const trpi_pubreg_entry *group, uint32_t node, trp_ref *ret_ref)
{
    const uint8_t *bytes = group->key.group;
    uint64_t name = 0;
    uint32_t number = TRPI_NODE_SELF;
    if (group->key.group_bytes != MEDIATOR_KEYS_GROUP_BYTES ||
        (node != TRPI_PUBREG_SELF &&
         trpi_node_meet(m->system, &trpi_pubreg_node_at(m->registry, node)->id, &number) !=
             TRP_OK)) {
        return false; /* a peer's nonsense; it has ended, or there are too many */
    }
    for (uint32_t i = 0; i < MEDIATOR_KEYS_GROUP_BYTES; i++) {
        name |= (uint64_t)bytes[i] << (8 * i);
    }
    *ret_ref = (trp_ref){ number, (uint32_t)name, (uint32_t)(name >> 32), 0 };
    return true;
}

size_t
mediator_keys_read(trp_mediator *m, const trpi_pubsub_key *topic, trp_ref *refs, size_t refs_max)
{
    const trpi_pubreg_entry *entry = trpi_pubreg_find(m->registry, topic);
    size_t count = 0;
    for (uint32_t i = 0; entry != NULL && i < entry->groups_count; i++) {
        const trpi_pubreg_entry *group = entry->groups[i];
        for (uint32_t k = 0; k < group->places_count; k++) {
            trp_ref ref;
            if (ref_of(m, group, group->places[k].node, &ref)) {
                if (count < refs_max) {
                    refs[count] = ref;
                }
                count++;
            }
        }
    }
    return count;
}

/* Count the nodes that have actors under a topic; 0: no memory. */
static uint32_t
nodes_count(const trpi_pubreg_entry *entry)
{
    uint32_t highest = 0, count = 0;
    for (uint32_t i = 0; i < entry->groups_count; i++) {
        const trpi_pubreg_entry *group = entry->groups[i];
        for (uint32_t k = 0; k < group->places_count; k++) {
            highest = group->places[k].node > highest ? group->places[k].node : highest;
        }
    }
    uint8_t *seen = trpi_alloc((size_t)highest + 1);
    for (uint32_t i = 0; seen != NULL && i < entry->groups_count; i++) {
        const trpi_pubreg_entry *group = entry->groups[i];
        for (uint32_t k = 0; k < group->places_count; k++) {
            count += seen[group->places[k].node] == 0;
            seen[group->places[k].node] = 1;
        }
    }
    trpi_free(seen);
    return count;
}

void
mediator_keys_show(const trpi_pubreg_entry *entry,
                   void (*fn)(void *arg, const trp_topic_info *info), void *arg)
{
    char text[TRPI_TOPIC_BYTES_MAX + 1];
    trp_topic_info info = { .topic = text,
                            .topic_bytes = entry->key.name_bytes,
                            .nodes = nodes_count(entry),
                            .subscribers = trpi_pubreg_count(entry) };
    for (uint32_t i = 0; i < entry->groups_count; i++) {
        const trpi_pubreg_place *here = trpi_index_place(entry->groups[i], TRPI_PUBREG_SELF);
        info.subscribers_here += here == NULL ? 0 : here->count;
    }
    memcpy(text, entry->key.name, entry->key.name_bytes);
    text[entry->key.name_bytes] = '\0';
    text[strnlen(text, entry->key.name_bytes)] = ' '; /* "till main" */
    text[entry->key.name_bytes] = '\0';
    fn(arg, &info);
}

/* ---- listings -------------------------------------------------------------------------------- */

/* Gives *ret_bytes (trpi_free). */
static trp_err
listing_make(trp_mediator *m, const trpi_pubsub_key *topic, void **ret_bytes, size_t *ret_count)
{
    size_t refs = mediator_keys_read(m, topic, NULL, 0);
    uint32_t protocol_bytes = (uint32_t)strnlen(topic->name, topic->name_bytes);
    size_t head = sizeof(trp_registry_listing) + refs * sizeof(trp_ref);
    char *bytes = trpi_alloc(head + topic->name_bytes + 1);
    if (bytes == NULL) {
        return TRP_ENOMEM;
    }
    trp_registry_listing listing = { .protocol_bytes = protocol_bytes,
                                     .key_bytes = topic->name_bytes - protocol_bytes - 1 };
    trp_ref *to = (trp_ref *)(void *)(bytes + sizeof listing);
    size_t again = mediator_keys_read(m, topic, to, refs);
    refs = again < refs ? again : refs; /* a node may have ended meanwhile */
    listing.refs_count = (uint32_t)refs;
    head = sizeof listing + refs * sizeof(trp_ref);
    memcpy(bytes, &listing, sizeof listing);
    memcpy(bytes + head, topic->name, topic->name_bytes);
    bytes[head + topic->name_bytes] = '\0';
    *ret_bytes = bytes;
    *ret_count = head + topic->name_bytes + 1;
    return TRP_OK;
}

static uint64_t
changed_of(const trp_mediator *m, const trpi_pubsub_key *topic)
{
    const trpi_pubreg_entry *entry = trpi_pubreg_find(m->registry, topic);
    return entry == NULL ? 0 : entry->changed;
}

/* Tell all that listen to a topic. */
static trp_err
listing_tell(trp_mediator *m, trp_ctx *ctx, trpi_seats *listeners)
{
    mediator_parcel parcel = { .sender = m->actor, .type = &trp_registry_listing_type };
    void *bytes = NULL;
    trp_err err = listing_make(m, &listeners->key, &bytes, &parcel.bytes);
    if (err == TRP_OK) {
        parcel.payload = bytes;
        listeners->told = changed_of(m, &listeners->key);
        (void)mediator_tell_seats(m, ctx, listeners, &parcel);
        trpi_free(bytes);
    }
    return err;
}

uint64_t
mediator_keys_wake_ms(const trp_mediator *m)
{
    return m->listeners.by_key.count == 0 || m->listings_changes == trpi_pubreg_changes(m->registry)
               ? UINT64_MAX
               : m->listings_ms;
}

void
mediator_keys_step(trp_mediator *m, trp_ctx *ctx)
{
    uint64_t now_ms = mediator_now_ms(m), changes = trpi_pubreg_changes(m->registry);
    uint32_t position = 0;
    trpi_seats *listeners;
    bool told = true;
    if (m->listeners.by_key.count == 0 || m->listings_changes == changes ||
        now_ms < m->listings_ms) {
        return;
    }
    while ((listeners = trpi_audience_next_key(&m->listeners, &position)) != NULL) {
        if (listeners->told != changed_of(m, &listeners->key)) {
            told &= listing_tell(m, ctx, listeners) == TRP_OK;
        }
    }
    m->listings_ms = now_ms + LISTINGS_MS;
    m->listings_changes = told ? changes : m->listings_changes;
}

/* ---- who listens ----------------------------------------------------------------------------- */

static void
watch_end(trp_mediator *m, trp_ctx *ctx, trp_ref ref) /* mediator-keys-K2 */
{
    if (trpi_audience_any(&m->audience, ref) == NULL &&
        trpi_audience_any(&m->listeners, ref) == NULL) {
        trp_unwatch(ctx, ref);
    }
}

static void
listener_leave(trp_mediator *m, trp_ctx *ctx, trpi_seat *seat, trp_ref ref)
{
    trpi_seats *seats = seat->seats;
    if (trpi_audience_leave(&m->listeners, seat, ref)) {
        watch_end(m, ctx, ref);
    }
    trpi_audience_tidy(&m->listeners, seats);
}

static trp_err
listener_take(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *topic, trp_ref ref)
{
    trpi_seats *seats;
    bool first;
    if (m->listeners.by_key.count >= TRP_REGISTRY_KEYS_WATCHED_MAX &&
        trpi_audience_find(&m->listeners, topic, trpi_pubsub_key_hash(topic)) == NULL) {
        return TRP_ELIMIT;
    }
    trp_err err = trpi_audience_add(&m->listeners, topic, ref, 0, &seats, &first);
    if (err != TRP_OK && err != TRP_EEXIST) {
        return err;
    }
    err = first ? trp_watch(ctx, ref) : TRP_OK;
    if (err == TRP_OK) { /* those that were there before are told the same again */
        err = listing_tell(m, ctx, seats);
    }
    if (err != TRP_OK) {
        listener_leave(m, ctx, trpi_audience_seat(&m->listeners, seats, ref), ref);
    }
    return err;
}

static void
log_failed(trp_mediator *m, const char *what, const mediator_request *request, const char *name,
           trp_err err)
{
    uint32_t protocol_bytes = (uint32_t)strnlen(name, request->name_bytes);
    trpi_log(m->system, TRP_LOG_ERROR, "registry", "%s key %.*s of protocol %.*s: %s%s", what,
             (int)(request->name_bytes - protocol_bytes - 1), name + protocol_bytes + 1,
             (int)protocol_bytes, name, trp_strerror(err),
             err == TRP_ELIMIT ? "; remove what nobody needs" : "");
}

void
mediator_keys_listen(trp_mediator *m, trp_ctx *ctx, const mediator_request *request,
                     const char *name)
{
    trpi_pubsub_key topic = mediator_key(TRPI_PUBSUB_TOPIC, name, request->name_bytes, NULL, 0);
    trpi_seats *seats = trpi_audience_find(&m->listeners, &topic, trpi_pubsub_key_hash(&topic));
    trpi_seat *seat = seats == NULL ? NULL : trpi_audience_seat(&m->listeners, seats, request->ref);
    if (request->kind == MEDIATOR_LISTEN) {
        trp_err err = listener_take(m, ctx, &topic, request->ref);
        if (err != TRP_OK) {
            log_failed(m, "an actor is not told who is registered under", request, name, err);
        }
    } else if (seat != NULL) {
        listener_leave(m, ctx, seat, request->ref);
    }
}

void
mediator_keys_register_failed(trp_mediator *m, const mediator_request *request, const char *name,
                              trp_err err)
{
    log_failed(m, "an actor is not registered under", request, name, err);
}

void
mediator_keys_ended(trp_mediator *m, trp_ctx *ctx, trp_ref ref)
{
    trpi_seat *seat;
    while ((seat = trpi_audience_any(&m->listeners, ref)) != NULL) {
        listener_leave(m, ctx, seat, ref);
    }
}
