/* world.c - virtual time, the network, the queue of events.
 *
 * Why.     Nothing in here may depend on anything but the seed: one generator, one queue ordered by
 *          (time, number), no address, no hash order, no real clock.
 * Tests.   tests/sim/sim_test.c runs the same seed twice and compares the hashes.
 */
#include "cluster/sim/world.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

#define MIXED_BYTES 512u

uint64_t
sim_random(struct sim_world *w)
{
    w->random += 0x9e3779b97f4a7c15u;
    uint64_t z = w->random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t
sim_stream(uint64_t seed, uint32_t nodes, const char *purpose)
{
    return trpi_hash(purpose, strlen(purpose), trpi_hash_u64(seed + 0x5eed) ^ nodes);
}

uint32_t
sim_below(struct sim_world *w, uint32_t bound)
{
    trpi_assert(bound > 0);
    return (uint32_t)((sim_random(w) >> 32) * bound >> 32);
}

bool
sim_chance(struct sim_world *w, double probability)
{
    return (double)(sim_random(w) >> 11) < probability * 9007199254740992.0;
}

void
sim_fail(struct sim_world *w, const char *format, ...)
{
    if (w->result.failed) {
        return; /* the first one is the cause */
    }
    w->result.failed = true;
    int at =
        snprintf(w->result.failure, sizeof w->result.failure, "t=%.3fs: ", (double)w->now_us / 1e6);
    va_list args;
    va_start(args, format);
    vsnprintf(w->result.failure + at, sizeof w->result.failure - (size_t)at, format, args);
    va_end(args);
}

void
sim_note(struct sim_world *w, const char *format, ...)
{
    if (w->options.trace != NULL) {
        fprintf(w->options.trace, "%10.4f ", (double)w->now_us / 1e6);
        va_list args;
        va_start(args, format);
        vfprintf(w->options.trace, format, args);
        va_end(args);
        fputc('\n', w->options.trace);
    }
}

/* ---- queue: a heap of four children by (time, number); the events lie still ------------------ */

static bool
is_before(const struct sim_place *a, const struct sim_place *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

static void
queue_push(struct sim_world *w, const struct sim_event *event)
{
    if (!TRPI_ARRAY_HAS_ROOM(w, heap) || (w->events_free == 0 && !TRPI_ARRAY_HAS_ROOM(w, events))) {
        sim_fail(w, "out of memory");
        trpi_free(event->bytes);
        return;
    }
    struct sim_place place = { event->at_us, w->seq++, w->events_count };
    if (w->events_free != 0) {
        place.event = w->events_free - 1;
        w->events_free = w->events[place.event].node;
    } else {
        w->events_count++;
    }
    w->events[place.event] = *event;
    uint32_t at = w->heap_count++;
    while (at > 0 && is_before(&place, &w->heap[(at - 1) / 4])) {
        w->heap[at] = w->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    w->heap[at] = place;
}

static struct sim_event
queue_pop(struct sim_world *w)
{
    uint32_t top = w->heap[0].event;
    struct sim_place last = w->heap[--w->heap_count];
    uint32_t at = 0;
    while (at * 4 + 1 < w->heap_count) {
        uint32_t least = at * 4 + 1;
        for (uint32_t child = least + 1; child < at * 4 + 5 && child < w->heap_count; child++) {
            least = is_before(&w->heap[child], &w->heap[least]) ? child : least;
        }
        if (!is_before(&w->heap[least], &last)) {
            break;
        }
        w->heap[at] = w->heap[least];
        at = least;
    }
    w->heap[at] = last;
    struct sim_event event = w->events[top];
    w->events[top].bytes = NULL;
    w->events[top].node = w->events_free;
    w->events_free = top + 1; /* 0: none */
    return event;
}

void
sim_at(struct sim_world *w, uint64_t delay_ms, sim_script_fn fn, uint32_t node, uint64_t arg)
{
    struct sim_event event = {
        .at_us = w->now_us + delay_ms * 1000, .kind = SIM_SCRIPT, .node = node, .fn = fn, .arg = arg
    };
    queue_push(w, &event);
}

/* ---- network --------------------------------------------------------------------------------- */

static uint64_t
delay_us(struct sim_world *w)
{
    double uniform = ((double)(sim_random(w) >> 11) + 1.0) / 9007199254740993.0;
    return w->delay_min_us + (uint64_t)(-log(uniform) * (double)w->delay_mean_us);
}

/* In a uid: 32 random bits, the number of the node, its incarnation. */
static uint32_t
node_number(uint64_t uid)
{
    return (uint32_t)(uid >> 16) & 0xffff;
}

struct sim_node *
sim_node_of(struct sim_world *w, uint64_t uid)
{
    uint32_t node = node_number(uid);
    return node < w->nodes_count && w->nodes[node].id.uid == uid ? &w->nodes[node] : NULL;
}

static uint32_t
node_at(const struct sim_world *w, const trpi_node_id *id)
{
    unsigned high = 0;
    unsigned low = 0;
    uint32_t node = node_number(id->uid);
    /* any incarnation there: "10.0.H.L", port 2552, the number stands in the host */
    if (id->uid == 0) {
        node = sscanf(id->address.host, "10.0.%u.%u", &high, &low) == 2 ? high * 250 + low - 1
                                                                        : UINT32_MAX;
    }
    return node < w->nodes_count ? node : UINT32_MAX;
}

static uint8_t *
bytes_of(struct sim_event *event)
{
    return event->bytes != NULL ? event->bytes : event->small;
}

/* Corrupt a frame as a broken or foreign peer may: cut it short, or fill it with noise. Not single
 * bits: TCP and TLS do not let them through, and a view with one number changed is valid. */
static void
corrupt_frame(struct sim_world *w, struct sim_event *event)
{
    if (event->count > 0 && sim_chance(w, 0.5)) {
        event->count = sim_below(w, event->count);
        return;
    }
    for (uint32_t i = 0; i < event->count; i++) {
        bytes_of(event)[i] = (uint8_t)sim_random(w);
    }
}

/* One copy of a frame; large NULL: count bytes of small. Takes *large when this is the last. */
static void
send_copy(struct sim_world *w, struct sim_event event, trpi_buffer *large, bool last)
{
    uint64_t delay = delay_us(w);
    if (w->cut[event.from * w->nodes_count + event.node] != 0 || sim_chance(w, w->loss)) {
        return;
    }
    event.at_us = w->now_us + delay;
    if (large != NULL && last) {
        event.bytes = large->data;
        memset(large, 0, sizeof *large);
    } else if (large != NULL) {
        event.bytes = trpi_alloc(event.count + 1);
        if (event.bytes == NULL) {
            sim_fail(w, "out of memory");
            return;
        }
        memcpy(event.bytes, large->data, event.count);
    }
    if (w->corrupt > 0.0 && sim_chance(w, w->corrupt)) {
        corrupt_frame(w, &event);
    }
    queue_push(w, &event);
}

static void
send_frame(struct sim_world *w, struct sim_event event, const trpi_node_id *to, trpi_buffer *large)
{
    event.kind = SIM_DELIVER;
    event.node = node_at(w, to);
    if (event.node == UINT32_MAX) {
        sim_fail(w, "node %u sends to an address that does not exist", event.from);
        return;
    }
    event.from_incarnation = w->nodes[event.from].incarnation;
    /* A frame is for one incarnation, if it names one: the transport of the next has another uid.
     */
    event.incarnation = (uint32_t)(to->uid & 0xffff);
    w->result.frames++;
    w->result.bytes += event.count;
    uint32_t copies = 1 + (sim_chance(w, w->duplicate) ? 1u : 0u);
    for (uint32_t i = 1; i <= copies; i++) {
        send_copy(w, event, large, i == copies);
    }
}

void
sim_send(struct sim_world *w, uint32_t from, const trpi_node_id *to, enum sim_channel channel,
         trpi_buffer *bytes)
{
    struct sim_event event = { .from = from, .channel = channel, .count = (uint32_t)bytes->count };
    send_frame(w, event, to, bytes);
}

void
sim_send_small(struct sim_world *w, uint32_t from, const trpi_node_id *to, enum sim_channel channel,
               const uint8_t *bytes, size_t count)
{
    struct sim_event event = { .from = from, .channel = channel, .count = (uint32_t)count };
    trpi_assert(count <= sizeof event.small);
    if (count > 0) {
        memcpy(event.small, bytes, count);
    }
    send_frame(w, event, to, NULL);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Hash a frame; of a large one both ends: a change between them changes a digest that follows. */
static uint64_t
hash_of(struct sim_event *e)
{
    const uint8_t *bytes = bytes_of(e);
    if (e->count <= 2 * MIXED_BYTES) {
        return trpi_hash(bytes, e->count, 0);
    }
    return trpi_hash(bytes + e->count - MIXED_BYTES, MIXED_BYTES, trpi_hash(bytes, MIXED_BYTES, 0));
}

static void
mix_event(struct sim_world *w, struct sim_event *e)
{
    uint64_t facts[4] = { e->at_us, (uint64_t)e->kind << 32 | e->node,
                          (uint64_t)e->from << 32 | e->count,
                          e->kind == SIM_DELIVER ? hash_of(e) : e->arg };
    w->result.hash = trpi_hash(facts, sizeof facts, w->result.hash);
    w->result.events++;
}

/* Postpone an event of a stopped process until it goes on; false: the process is not stopped. */
static bool
postpone_event(struct sim_world *w, struct sim_event *e)
{
    const struct sim_node *n = &w->nodes[e->node];
    if (e->kind == SIM_SCRIPT || !n->running || n->paused_until_us <= w->now_us) {
        return false;
    }
    e->at_us = n->paused_until_us;
    queue_push(w, e);
    return true;
}

/* The transport keeps from a process what is for its predecessor; the engine does not rely on it
 * (sim-S11), so with buggify it is wrong now and then. */
static bool
is_misdelivered(struct sim_world *w, const struct sim_event *e)
{
    return w->member.buggify && e->channel == SIM_GOSSIP && sim_chance(w, 0.25);
}

static void
handle_event(struct sim_world *w, struct sim_event *e)
{
    struct sim_node *n = &w->nodes[e->node];
    switch (e->kind) {
    case SIM_SCRIPT:
        mix_event(w, e);
        e->fn(w, e->node, e->arg);
        break;
    case SIM_WAKE:
        if (n->running && n->incarnation == e->incarnation && n->wake_us == e->arg) {
            mix_event(w, e);
            sim_node_wake(w, e->node);
        }
        break;
    case SIM_DELIVER:
        if (n->running &&
            (e->incarnation == 0 || e->incarnation == n->incarnation || is_misdelivered(w, e))) {
            mix_event(w, e);
            sim_node_deliver(w, e, bytes_of(e));
        }
        break;
    }
}

void
sim_run_until(struct sim_world *w, uint64_t at_us)
{
    while (w->heap_count > 0 && w->heap[0].at_us <= at_us && !w->result.failed) {
        struct sim_event e = queue_pop(w);
        trpi_assert(e.at_us >= w->now_us);
        w->now_us = e.at_us;
        if (!postpone_event(w, &e)) {
            handle_event(w, &e);
            trpi_free(e.bytes);
            sim_tenant_check(w);
        }
    }
    if (!w->result.failed && w->now_us < at_us) {
        w->now_us = at_us;
    }
    w->result.virtual_ms = w->now_us / 1000;
}

void
sim_schedule_wake(struct sim_world *w, uint32_t node, uint64_t at_us)
{
    struct sim_node *n = &w->nodes[node];
    if (at_us < w->now_us) {
        at_us = w->now_us;
    }
    if (n->wake_us == at_us) {
        return;
    }
    n->wake_us = at_us;
    if (at_us != UINT64_MAX) {
        struct sim_event event = { .at_us = at_us,
                                   .kind = SIM_WAKE,
                                   .node = node,
                                   .incarnation = n->incarnation,
                                   .arg = at_us };
        queue_push(w, &event);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
address_of(uint32_t node, trpi_address *ret)
{
    memset(ret, 0, sizeof *ret);
    snprintf(ret->protocol, sizeof ret->protocol, "troupe.tcp");
    snprintf(ret->system, sizeof ret->system, "sim");
    snprintf(ret->host, sizeof ret->host, "10.0.%u.%u", node / 250, node % 250 + 1);
    ret->port = 2552;
}

trp_err
sim_world_new(const trpi_sim_options *options, struct sim_world **ret_world)
{
    struct sim_world *w = trpi_alloc(sizeof *w);
    if (w == NULL) {
        return TRP_ENOMEM;
    }
    w->options = *options;
    w->nodes_count = options->nodes;
    w->random = sim_stream(options->seed, w->nodes_count, "world");
    size_t pairs = (size_t)w->nodes_count * w->nodes_count;
    w->nodes = trpi_alloc(w->nodes_count * sizeof *w->nodes);
    w->cut = trpi_alloc(pairs);
    w->heard = trpi_alloc(pairs * sizeof *w->heard);
    w->cache = trpi_gossip_cache_new(512);
    w->checked = trpi_alloc(SIM_CHECKED * sizeof *w->checked);
    if (w->nodes == NULL || w->cut == NULL || w->heard == NULL || w->cache == NULL ||
        w->checked == NULL) {
        sim_world_free(w);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        address_of(i, &w->nodes[i].id.address);
        w->nodes[i].id.uid = (sim_random(w) & ~(uint64_t)UINT32_MAX) | i << 16;
        w->nodes[i].wake_us = UINT64_MAX;
    }
    w->seeds_count = w->nodes_count <= SIM_SEEDS ? w->nodes_count : SIM_SEEDS_LARGE;
    for (uint32_t i = 0; i < w->seeds_count; i++) {
        address_of(i, &w->addresses[i]);
    }
    w->delay_min_us = 200;
    w->delay_mean_us = 500;
    w->member.cache = w->cache;
    w->member.quiet = options->trace == NULL;
    *ret_world = w;
    return TRP_OK;
}

void
sim_world_free(struct sim_world *w)
{
    if (w == NULL) {
        return;
    }
    for (uint32_t i = 0; i < w->events_count; i++) {
        trpi_free(w->events[i].bytes);
    }
    for (uint32_t i = 0; w->checked != NULL && i < SIM_CHECKED; i++) {
        trpi_gossip_unref(w->checked[i].from);
        trpi_gossip_unref(w->checked[i].to);
    }
    trpi_free(w->checked);
    trpi_free(w->removed_keys);
    trpi_free(w->events);
    for (uint32_t i = 0; w->nodes != NULL && i < w->nodes_count; i++) {
        sim_tenant_end(&w->nodes[i]);
        trpi_member_free(w->nodes[i].core);
        trpi_heartbeat_free(w->nodes[i].heartbeat);
        trpi_gossip_unref(w->nodes[i].checked);
        trpi_free(w->nodes[i].mirror);
    }
    trpi_gossip_cache_free(w->cache);
    trpi_free(w->heap);
    trpi_free(w->nodes);
    trpi_free(w->cut);
    trpi_free(w->heard);
    trpi_free(w);
}
