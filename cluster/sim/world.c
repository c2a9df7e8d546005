/* world.c - virtual time, the network, the queue of what will happen.
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
#include "base/assert.h"
#include "base/hash.h"

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
    int at = snprintf(w->result.failure, sizeof(w->result.failure), "t=%.3fs: ",
                      (double)w->now_us / 1e6);
    va_list args;
    va_start(args, format);
    vsnprintf(w->result.failure + at, sizeof(w->result.failure) - (size_t)at, format, args);
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

/* ---- queue: a binary heap by (time, number) -------------------------------------------------- */

static bool
is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

static void
push(struct sim_world *w, struct sim_event event)
{
    if (w->heap_count == w->heap_room) {
        uint32_t room = w->heap_room * 2 + 1024;
        struct sim_event *bigger = trpi_realloc(w->heap, room * sizeof(*bigger));
        if (bigger == NULL) {
            sim_fail(w, "out of memory");
            trpi_free(event.bytes);
            return;
        }
        w->heap = bigger;
        w->heap_room = room;
    }
    event.seq = w->seq++;
    uint32_t at = w->heap_count++;
    while (at > 0 && is_before(&event, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = event;
}

static struct sim_event
pop(struct sim_world *w)
{
    struct sim_event top = w->heap[0];
    struct sim_event last = w->heap[--w->heap_count];
    uint32_t at = 0;
    while (true) {
        uint32_t child = at * 2 + 1;
        if (child >= w->heap_count) {
            break;
        }
        if (child + 1 < w->heap_count && is_before(&w->heap[child + 1], &w->heap[child])) {
            child++;
        }
        if (!is_before(&w->heap[child], &last)) {
            break;
        }
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return top;
}

void
sim_at(struct sim_world *w, uint64_t delay_ms, sim_script_fn fn, uint32_t node, uint64_t arg)
{
    push(w, (struct sim_event){ .at_us = w->now_us + delay_ms * 1000,
                                .kind = SIM_SCRIPT,
                                .node = node,
                                .fn = fn,
                                .arg = arg });
}

/* ---- network --------------------------------------------------------------------------------- */

static uint64_t
delay_us(struct sim_world *w)
{
    double uniform = ((double)(sim_random(w) >> 11) + 1.0) / 9007199254740993.0;
    return w->delay_min_us + (uint64_t)(-log(uniform) * (double)w->delay_mean_us);
}

static uint32_t
node_at(const struct sim_world *w, const trpi_address *address)
{
    /* "10.0.H.L", port 2552: the number stands in the host */
    unsigned high = 0;
    unsigned low = 0;
    if (sscanf(address->host, "10.0.%u.%u", &high, &low) != 2) {
        return UINT32_MAX;
    }
    uint32_t node = high * 250 + low - 1;
    return node < w->nodes_count ? node : UINT32_MAX;
}

/* What a peer may send that is broken, or of another make: cut short, or noise. Not single bits:
 * TCP and TLS do not let them through, and a view with another number in it is no garbage, but a
 * lie. */
static void
garble(struct sim_world *w, struct sim_event *event)
{
    if (event->count > 0 && sim_chance(w, 0.5)) {
        event->count = sim_below(w, event->count);
        return;
    }
    for (uint32_t i = 0; i < event->count; i++) {
        event->bytes[i] = (uint8_t)sim_random(w);
    }
}

void
sim_send(struct sim_world *w, uint32_t from, const trpi_node_id *to, enum sim_channel channel,
         const uint8_t *bytes, size_t count)
{
    uint32_t node = node_at(w, &to->address);
    if (node == UINT32_MAX) {
        sim_fail(w, "node %u sends to an address that does not exist", from);
        return;
    }
    w->result.frames++;
    w->result.bytes += count;
    uint32_t copies = 1 + (sim_chance(w, w->duplicate) ? 1u : 0u);
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t delay = delay_us(w);
        if (w->cut[from * w->nodes_count + node] != 0 || sim_chance(w, w->loss)) {
            continue;
        }
        struct sim_event event = { .at_us = w->now_us + delay,
                                   .kind = SIM_DELIVER,
                                   .node = node,
                                   .from = from,
                                   .from_incarnation = w->nodes[from].incarnation,
                                   .channel = channel,
                                   .count = (uint32_t)count };
        /* A frame is for one incarnation, if it names one: the transport of the next has another
         * uid. */
        event.incarnation = to->uid == 0 ? 0 : (uint32_t)(to->uid & 0xffff);
        event.bytes = trpi_alloc(count + 1);
        if (event.bytes == NULL) {
            sim_fail(w, "out of memory");
            return;
        }
        memcpy(event.bytes, bytes, count);
        if (w->corrupt > 0.0 && sim_chance(w, w->corrupt)) {
            garble(w, &event);
        }
        push(w, event);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void
mix(struct sim_world *w, const struct sim_event *e)
{
    uint64_t facts[4] = { e->at_us, (uint64_t)e->kind << 32 | e->node,
                          (uint64_t)e->from << 32 | e->count,
                          e->bytes != NULL ? trpi_hash(e->bytes, e->count, 0) : e->arg };
    w->result.hash = trpi_hash(facts, sizeof(facts), w->result.hash);
    w->result.events++;
}

/* What reaches a stopped process waits until it goes on. */
static bool
postpone(struct sim_world *w, const struct sim_event *e)
{
    const struct sim_node *n = &w->nodes[e->node];
    if (e->kind == SIM_SCRIPT || !n->running || n->paused_until_us <= w->now_us) {
        return false;
    }
    struct sim_event later = *e;
    later.at_us = n->paused_until_us;
    push(w, later);
    return true;
}

static void
handle(struct sim_world *w, const struct sim_event *e)
{
    struct sim_node *n = &w->nodes[e->node];
    switch (e->kind) {
    case SIM_SCRIPT:
        mix(w, e);
        e->fn(w, e->node, e->arg);
        break;
    case SIM_WAKE:
        if (n->running && n->incarnation == e->incarnation && n->wake_us == e->arg) {
            mix(w, e);
            sim_node_wake(w, e->node);
        }
        break;
    case SIM_DELIVER:
        if (n->running && (e->incarnation == 0 || e->incarnation == n->incarnation)) {
            mix(w, e);
            sim_node_deliver(w, e);
        }
        break;
    }
}

void
sim_run_until(struct sim_world *w, uint64_t at_us)
{
    while (w->heap_count > 0 && w->heap[0].at_us <= at_us && !w->result.failed) {
        struct sim_event e = pop(w);
        trpi_assert(e.at_us >= w->now_us);
        w->now_us = e.at_us;
        if (!postpone(w, &e)) {
            handle(w, &e);
            trpi_free(e.bytes);
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
        push(w, (struct sim_event){ .at_us = at_us,
                                    .kind = SIM_WAKE,
                                    .node = node,
                                    .incarnation = n->incarnation,
                                    .arg = at_us });
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
address_of(uint32_t node, trpi_address *ret)
{
    memset(ret, 0, sizeof(*ret));
    snprintf(ret->protocol, sizeof(ret->protocol), "troupe.tcp");
    snprintf(ret->system, sizeof(ret->system), "sim");
    snprintf(ret->host, sizeof(ret->host), "10.0.%u.%u", node / 250, node % 250 + 1);
    ret->port = 2552;
}

trp_err
sim_world_new(const trpi_sim_options *options, struct sim_world **ret_world)
{
    struct sim_world *w = trpi_alloc(sizeof(*w));
    if (w == NULL) {
        return TRP_ENOMEM;
    }
    w->options = *options;
    w->nodes_count = options->nodes;
    w->random = sim_stream(options->seed, w->nodes_count, "world");
    size_t pairs = (size_t)w->nodes_count * w->nodes_count;
    w->nodes = trpi_alloc(w->nodes_count * sizeof(*w->nodes));
    w->cut = trpi_alloc(pairs);
    w->heard = trpi_alloc(pairs * sizeof(*w->heard));
    w->cache = trpi_gossip_cache_new(512);
    if (w->nodes == NULL || w->cut == NULL || w->heard == NULL || w->cache == NULL) {
        sim_world_free(w);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        address_of(i, &w->nodes[i].id.address);
        w->nodes[i].id.uid = sim_random(w) & ~(uint64_t)0xffff;
        w->nodes[i].wake_us = UINT64_MAX;
    }
    w->seeds_count = w->nodes_count < SIM_SEEDS ? w->nodes_count : SIM_SEEDS;
    for (uint32_t i = 0; i < w->seeds_count; i++) {
        address_of(i, &w->addresses[i]);
    }
    w->delay_min_us = 200;
    w->delay_mean_us = 500;
    w->member.cache = w->cache;
    *ret_world = w;
    return TRP_OK;
}

void
sim_world_free(struct sim_world *w)
{
    if (w == NULL) {
        return;
    }
    for (uint32_t i = 0; i < w->heap_count; i++) {
        trpi_free(w->heap[i].bytes);
    }
    for (uint32_t i = 0; w->nodes != NULL && i < w->nodes_count; i++) {
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
