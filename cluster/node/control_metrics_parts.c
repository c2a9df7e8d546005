/* control_metrics_parts.c - figures of the journal, of shards and of topics.
 *
 * Tests.   tests/system/metrics.sh
 */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cluster/node/figures.h"
#include "persistence/persistence.h"

static double
first_of(const trpi_observed_name *name)
{
    return (double)name->actors;
}

static double
second_of(const trpi_observed_name *name)
{
    return (double)name->active;
}

static double
third_of(const trpi_observed_name *name)
{
    return (double)name->count;
}

/* ---- the journal ----------------------------------------------------------------------------- */

static void
journal_add(trp_node *node, trpi_figures *f)
{
    const trp_journal_driver *driver = trpi_persistence_journal(node->system);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    if (driver == NULL) {
        return;
    }
    driver->health(driver->arg, &health);
    trpi_figures_single(f, "troupe_journal_open", "1: the journal takes operations.",
                        health.state == TRP_JOURNAL_OPEN ? 1 : 0);
    bool is_full = health.state == TRP_JOURNAL_OPEN && health.why[0] != '\0';
    trpi_figures_single(f, "troupe_journal_full", "1: the last change found no room.",
                        is_full ? 1 : 0);
    trpi_figures_single(f, "troupe_journal_waiting", "Operations that have no answer yet.",
                        (double)health.waiting);
    trpi_figures_single(f, "troupe_journal_events_total", "Events that were stored.",
                        (double)health.events);
    trpi_figures_single(f, "troupe_journal_commits_total", "Flushes or transactions of them.",
                        (double)health.commits);
    trpi_figures_single(f, "troupe_journal_refused_total", "Operations that were refused.",
                        (double)health.refused);
    trpi_figures_single(f, "troupe_journal_failed_total", "Operations that failed.",
                        (double)health.failed);
    if (health.bytes != 0) {
        trpi_figures_single(f, "troupe_journal_size_bytes", "Bytes of the store.",
                            (double)health.bytes);
    }
}

/* ---- shards ---------------------------------------------------------------------------------- */

struct shards {
    trpi_observed_names names; /* actors: shards; active: entities; count: messages that wait */
    double waits_s;
    uint32_t refused;
};

static void
type_add(void *arg, const trpi_sharding_status *status)
{
    struct shards *shards = arg;
    trpi_observed_name *name = trpi_observed_name_get(&shards->names, status->type);
    double waits_s = status->waits_count > 0 ? (double)status->waits_ms / 1e3 : 0;
    name->actors += status->here;
    name->active += status->entities;
    name->count += status->kept;
    shards->waits_s = waits_s > shards->waits_s ? waits_s : shards->waits_s;
    shards->refused += status->why[0] != '\0' ? 1 : 0;
}

static void
shards_add(trp_node *node, trpi_figures *f, struct shards *shards, uint32_t max)
{
    memset(shards, 0, sizeof *shards);
    trpi_sharding_each(node->system, type_add, shards);
    if (shards->names.count == 0) {
        return;
    }
    trpi_figures_family(f, "troupe_shards", "Shards of this node, by type of entity.");
    trpi_figures_names(f, "type", &shards->names, max, first_of);
    trpi_figures_family(f, "troupe_entities", "Live entities of this node, by type.");
    trpi_figures_names(f, "type", &shards->names, max, second_of);
    trpi_figures_family(f, "troupe_shard_messages_waiting",
                        "Messages that wait for a shard's home, by type.");
    trpi_figures_names(f, "type", &shards->names, max, third_of);
    trpi_figures_single(f, "troupe_shards_wait_seconds_max",
                        "For how long this node's coordinators wait for a member.",
                        shards->waits_s);
    trpi_figures_single(f, "troupe_shard_types_refused",
                        "Types of entities that are refused on this node.",
                        (double)shards->refused);
    trpi_figures_single(f, "troupe_shards_unopened", "Shards here that wait for the journal.",
                        (double)trpi_sharding_unopened(node->system));
}

/* ---- topics ---------------------------------------------------------------------------------- */

/* A search by hash: there may be thousands of topics. */
struct topics {
    trpi_observed_names names; /* actors: subscribers here */
    uint64_t hashes[TRPI_OBSERVED_NAMES_MAX];
    uint64_t topics, frames, bytes;
};

static void
topic_add(void *arg, const trp_topic_info *info)
{
    struct topics *t = arg;
    trpi_observed_name *name = NULL;
    uint64_t hash = trpi_hash(info->topic, strlen(info->topic), 0);
    for (uint32_t i = 0; i < t->names.count && name == NULL; i++) {
        name = t->hashes[i] == hash ? &t->names.entries[i] : NULL;
    }
    if (name == NULL && t->names.count < TRPI_OBSERVED_NAMES_MAX) {
        name = trpi_observed_name_get(&t->names, info->topic);
        if (name != &t->names.others) {
            t->hashes[name - t->names.entries] = hash;
        }
    } else if (name == NULL) {
        t->names.has_others = true;
        name = &t->names.others;
    }
    name->actors += info->subscribers_here;
}

static void
mediator_add(void *arg, trp_mediator *mediator, const trpi_pubsub_status *status)
{
    struct topics *t = arg;
    t->topics += status->topics;
    t->frames += status->frames_sent;
    t->bytes += status->bytes_sent;
    trp_mediator_topics(mediator, topic_add, t);
}

static void
topics_add(trp_node *node, trpi_figures *f, struct topics *topics, uint32_t max)
{
    memset(topics, 0, sizeof *topics);
    trpi_pubsub_each(node->system, mediator_add, topics);
    if (topics->frames == 0 && topics->topics == 0) {
        return; /* no mediator, or one that nobody uses */
    }
    trpi_figures_single(f, "troupe_topics", "Topics that the mediators of this node know.",
                        (double)topics->topics);
    trpi_figures_family(f, "troupe_topic_subscribers", "Subscribers of this node, by topic.");
    trpi_figures_names(f, "topic", &topics->names, max, first_of);
    trpi_figures_single(f, "troupe_topic_registry_frames_total",
                        "Frames of the registry of topics to other nodes.", (double)topics->frames);
    trpi_figures_single(f, "troupe_topic_registry_bytes_total", "Their bytes.",
                        (double)topics->bytes);
}

void
trpi_figures_parts(trp_node *node, trpi_figures *figures, uint32_t names_max)
{
    union {
        struct shards shards;
        struct topics topics;
    } *room = trpi_alloc(sizeof *room);
    if (room == NULL) {
        figures->ok = false;
        return;
    }
    journal_add(node, figures);
    shards_add(node, figures, &room->shards, names_max);
    topics_add(node, figures, &room->topics, names_max);
    trpi_free(room);
}
