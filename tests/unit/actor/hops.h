/* hops.h - what tests of traces read from the ring of a system. */
#ifndef TESTS_UNIT_ACTOR_HOPS_H
#define TESTS_UNIT_ACTOR_HOPS_H

#include <troupe/path.h>
#include <troupe/trace.h>

#include "tests/unit/actor/stage.h"

/* The trace that the tests begin. */
static const trp_trace outside
    __attribute__((unused)) = { 0x0102030405060708, 0x1112131415161718, 99, 0, 0 };

typedef struct hops {
    trp_system *system;
    uint32_t count;
    trp_trace_hop all[64];
} hops;

static inline trp_err
hop_take(void *arg, const trp_trace_hop *hop)
{
    hops *h = arg;

    if (h->count < 64) {
        h->all[h->count++] = *hop;
    }
    return TRP_OK;
}

/* Take the hops that are kept. */
static inline void
hops_take(trp_system *system, hops *ret_hops)
{
    ret_hops->system = system;
    ret_hops->count = 0;
    UNIT_EQUAL(trp_trace_hops(system, 0, hop_take, ret_hops), TRP_OK);
}

static inline uint32_t
hops_count(trp_system *system)
{
    static hops h;

    hops_take(system, &h);
    return h.count;
}

static inline const char *
name_of(trp_system *system, trp_ref ref, char *room, size_t bytes)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    if (trp_ref_is_none(ref)) {
        return "nobody";
    }
    trp_path(system, ref, path, sizeof path);
    (void)snprintf(room, bytes, "%s", strrchr(path, '/') + 1);
    return room;
}

/* trailer-I2: no two handlings have one span. */
static inline void
spans_differ(const hops *h)
{
    for (uint32_t i = 0; i < h->count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            UNIT_TRUE(h->all[k].trace.span != h->all[i].trace.span);
        }
    }
}

/* The actor that handled the span; "-": none of the hops has it. */
static inline const char *
parent_of(const hops *h, uint64_t span, char *room, size_t bytes)
{
    for (uint32_t i = 0; i < h->count; i++) {
        if (h->all[i].trace.span == span) {
            return name_of(h->system, h->all[i].actor, room, bytes);
        }
    }
    return "-";
}

/* Write "PARENT>ACTOR" of each hop, with what became of it where it was not handled, sorted. */
static inline const char *
hops_text(const hops *h)
{
    static char lines[64][96], text[4096];

    for (uint32_t i = 0; i < h->count; i++) {
        const trp_trace_hop *hop = &h->all[i];
        char a[64], b[64];

        (void)snprintf(lines[i], sizeof lines[i], "%s>%s%s", parent_of(h, hop->parent, a, sizeof a),
                       name_of(h->system, hop->actor, b, sizeof b),
                       hop->end == TRP_HOP_FAILED      ? "!"
                       : hop->end == TRP_HOP_UNHANDLED ? "?"
                       : hop->end == TRP_HOP_DEAD      ? "x"
                                                       : "");
    }
    qsort(lines, h->count, sizeof lines[0], (int (*)(const void *, const void *))strcmp);
    text[0] = '\0';
    for (uint32_t i = 0; i < h->count; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "",
                       lines[i]);
    }
    return text;
}

/* Wait for so many hops, and compare them. */
static inline void
hops_expect(trp_system *system, uint32_t count, const char *text)
{
    static hops h;

    UNIT_WAIT(hops_count(system) >= count, 60000);
    hops_take(system, &h);
    UNIT_TEXT(hops_text(&h), text);
}

#endif
