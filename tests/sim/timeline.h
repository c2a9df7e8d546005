/* timeline.h - what the worlds of simulated nodes share: chance from one seed, events in the order
 * of their time, the latest view of the cluster, who is silent. The header of a world includes it
 * behind its `w` (random, heap, heap_count, heap_room, seq, incs, incs_count, views, views_count)
 * and its INCS and VIEWS; it says itself what a pause is. */
#ifndef TESTS_SIM_TIMELINE_H
#define TESTS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/assert.h"

static bool is_paused(const struct inc *inc);

static uint64_t
draw(uint64_t bound)
{
    uint64_t z = (w.random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % bound;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool
is_before(const struct event *a, const struct event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

static void
post_event(struct event event, uint64_t at_ms)
{
    if (w.heap_count == w.heap_room) {
        w.heap_room = w.heap_room == 0 ? 256 : w.heap_room * 2;
        w.heap = trpi_realloc(w.heap, w.heap_room * sizeof *w.heap);
        trpi_assert(w.heap != NULL);
    }
    event.at_ms = at_ms;
    event.seq = ++w.seq;
    uint32_t at = w.heap_count++;
    while (at > 0 && is_before(&event, &w.heap[(at - 1) / 2])) {
        w.heap[at] = w.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w.heap[at] = event;
}

static struct event
take_event(void)
{
    struct event first = w.heap[0], last = w.heap[--w.heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < w.heap_count && is_before(&w.heap[child + 1], &w.heap[child])) {
            child++;
        }
        if (child >= w.heap_count || !is_before(&w.heap[child], &last)) {
            break;
        }
        w.heap[at] = w.heap[child];
        at = child;
    }
    w.heap[at] = last;
    return first;
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static struct view *
next_view(void)
{
    trpi_assert(w.views_count < VIEWS);
    w.views[w.views_count] = w.views[w.views_count - 1];
    return &w.views[w.views_count++];
}

static uint32_t
alive_at(uint32_t place)
{
    uint32_t found = INCS;
    for (uint32_t i = 0; i < w.incs_count; i++) {
        found = w.incs[i].alive && w.incs[i].place == place ? i : found;
    }
    return found;
}

/* Return since when the node does not answer; 0: it does. */
static uint64_t
silent_since(const struct inc *inc)
{
    return !inc->alive      ? inc->dead_ms
           : inc->isolated  ? inc->isolated_ms
           : is_paused(inc) ? inc->pause_began_ms
                            : 0;
}

#endif
