/* graph.c - a graph in the memory of two nodes: each has a part of the vertices, and all work in
 * supersteps (as Pregel does). In a superstep a part takes the messages of the one before, and
 * sends along the edges of vertices that have changed; the master begins the next when all parts
 * have ended it. Here: the components of a graph, each vertex taking the least number it hears. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

enum { NODES = 2, PARTS = 4, VERTICES = 1000, STEPS_MAX = VERTICES };

#define GRAPH_STEP(F, S) F(S, u32, step)
#define GRAPH_HEAR(F, S) F(S, u32, step) F(S, u32, vertex) F(S, u32, least)
#define GRAPH_ENDED(F, S) F(S, u32, step) F(S, u32, part) F(S, u32, changed)
#define GRAPH_COUNT(F, S) F(S, u32, part) F(S, u32, components)
#define GRAPH_SENT(F, S) F(S, u32, step) F(S, u32, part)
#define GRAPH_MESSAGES(M, P)                                                                       \
    M(P, meet, TRP_NO_FIELDS)                                                                      \
    M(P, step, GRAPH_STEP)                                                                         \
    M(P, hear, GRAPH_HEAR) M(P, sent, GRAPH_SENT) M(P, ended, GRAPH_ENDED)                         \
        M(P, count, GRAPH_COUNT)
TRP_PROTOCOL(graph, GRAPH_MESSAGES)
#define GRAPH_CALLS(C, O, P) O(P, meet) O(P, step) O(P, hear) O(P, sent) O(P, ended) O(P, count)
TRP_TYPED(graph, GRAPH_CALLS)
TRP_REGISTRY(graph)

/* The edges of a vertex: three rings of every third vertex, and one that stands alone. */
static bool
neighbours(uint32_t vertex, uint32_t *ret_before, uint32_t *ret_behind)
{
    uint32_t ring = vertex % 3, length = (VERTICES - 1) / 3, at = vertex / 3;
    *ret_before = (at + length - 1) % length * 3 + ring;
    *ret_behind = (at + 1) % length * 3 + ring;
    return vertex < VERTICES - 1;
}

/* All find each other by the registry, on all nodes. */
static graph_registry_key
key_of(uint32_t part)
{
    static const graph_registry_key keys[PARTS + 1] = {
        { "part 0" }, { "part 1" }, { "part 2" }, { "part 3" }, { "master" }
    };
    return keys[part];
}

struct part {
    graph_ref all[PARTS + 1]; /* the parts, the master */
    uint32_t part, known, step, markers[2], least[VERTICES], heard[2][VERTICES];
};

/* Take a listing of any key; true when all are known now. */
static bool
listing_take(graph_ref *all, uint32_t *known, const trp_msg *msg)
{
    for (uint32_t i = 0; i <= PARTS; i++) {
        uint32_t count;
        const graph_ref *refs = graph_registry_listing_of(msg, key_of(i), &count);
        if (refs != NULL && count > 0 && trp_ref_is_none(all[i].ref)) {
            all[i] = refs[0];
            return ++*known == PARTS + 1;
        }
    }
    return false;
}

static trp_err
listen_and_register(trp_ctx *ctx, uint32_t as)
{
    trp_err err = graph_registry_add(trp_ctx_system(ctx), key_of(as), graph_ref_of(trp_self(ctx)));
    for (uint32_t i = 0; err == TRP_OK && i <= PARTS; i++) {
        err = graph_registry_subscribe(trp_ctx_system(ctx), key_of(i), trp_self(ctx));
    }
    return err;
}

/* ---- a part ---------------------------------------------------------------------------------- */

static uint32_t
fold(struct part *s, uint32_t vertex, uint32_t step)
{
    uint32_t heard = s->heard[(step - 1) & 1][vertex], before = s->least[vertex];
    s->heard[(step - 1) & 1][vertex] = VERTICES;
    s->least[vertex] = heard < before ? heard : before;
    return step == 1 || s->least[vertex] < before;
}

static trp_err
on_step(trp_ctx *ctx, void *state, const graph_step *m)
{
    struct part *s = state;
    uint32_t components = 0, to[2];
    s->step = m->step;
    for (uint32_t v = s->part; v < VERTICES; v += PARTS) {
        components += s->least[v] == v;
        if (m->step > 0 && fold(s, v, m->step) && neighbours(v, &to[0], &to[1])) {
            for (int k = 0; k < 2; k++) {
                graph_hear hear = { m->step, to[k], s->least[v] };
                graph_hear_tell(ctx, s->all[to[k] % PARTS], hear);
            }
        }
    }
    if (m->step == 0) { /* all is done */
        graph_count_tell(ctx, s->all[PARTS], (graph_count){ s->part, components });
    }
    for (uint32_t i = 0; i < PARTS && m->step > 0; i++) { /* behind all that was sent there */
        graph_sent_tell(ctx, s->all[i], (graph_sent){ m->step, s->part });
    }
    return TRP_OK;
}

static trp_err
on_hear(trp_ctx *ctx, void *state, const graph_hear *m)
{
    struct part *s = state;
    (void)ctx;
    if (m->vertex < VERTICES && m->least < s->heard[m->step & 1][m->vertex]) {
        s->heard[m->step & 1][m->vertex] = m->least;
    }
    return TRP_OK;
}

/* From every part: then all messages of this superstep are here. */
static trp_err
on_sent(trp_ctx *ctx, void *state, const graph_sent *m)
{
    struct part *s = state;
    uint32_t changed = 0;
    if (++s->markers[m->step & 1] == PARTS) {
        s->markers[m->step & 1] = 0;
        for (uint32_t v = s->part; v < VERTICES; v += PARTS) {
            changed += s->heard[m->step & 1][v] < s->least[v];
        }
        graph_ended_tell(ctx, s->all[PARTS], (graph_ended){ m->step, s->part, changed });
    }
    return TRP_OK;
}

static trp_err
part_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const graph_methods methods = { NULL, on_step, on_hear, on_sent, NULL, NULL };
    struct part *s = state;
    if (trp_msg_is(msg, &trp_registry_listing_type)) {
        if (listing_take(s->all, &s->known, msg)) {
            graph_meet_tell(ctx, s->all[PARTS], (graph_meet){ 0 });
        }
        return TRP_OK;
    }
    return graph_serve(ctx, state, msg, &methods);
}

static trp_err
part_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct part *s = state;
    s->part = *(const uint32_t *)trp_msg_payload(args);
    for (uint32_t v = 0; v < VERTICES; v++) {
        s->least[v] = v;
        s->heard[0][v] = s->heard[1][v] = VERTICES;
    }
    return listen_and_register(ctx, s->part);
}
static const trp_behaviour part = { sizeof part, "graph-part", .state_bytes = sizeof(struct part),
                                    .receive = part_receive, .pre_start = part_start };

/* ---- the master ------------------------------------------------------------------------------ */

struct master {
    graph_ref all[PARTS + 1];
    uint32_t known, waits, step, changed, components;
};

static void
step_begin(trp_ctx *ctx, struct master *s, uint32_t step)
{
    s->waits = PARTS;
    s->changed = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
        graph_step_tell(ctx, s->all[i], (graph_step){ step });
    }
}

static trp_err
on_meet(trp_ctx *ctx, void *state, const graph_meet *m)
{
    struct master *s = state;
    (void)m;
    if (--s->waits == 0) {
        step_begin(ctx, s, ++s->step);
    }
    return TRP_OK;
}

static trp_err
on_ended(trp_ctx *ctx, void *state, const graph_ended *m)
{
    struct master *s = state;
    s->changed += m->changed;
    if (--s->waits == 0) {
        step_begin(ctx, s, s->changed > 0 && s->step < STEPS_MAX ? ++s->step : 0);
    }
    return TRP_OK;
}

static trp_err
on_count(trp_ctx *ctx, void *state, const graph_count *m)
{
    struct master *s = state;
    s->components += m->components;
    if (--s->waits == 0) {
        printf("%u components of %d vertices, after %u supersteps of %d parts on %d nodes\n",
               s->components, VERTICES, s->step, PARTS, NODES);
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}

static trp_err
master_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const graph_methods methods = { on_meet, NULL, NULL, NULL, on_ended, on_count };
    struct master *s = state;
    if (trp_msg_is(msg, &trp_registry_listing_type)) {
        return listing_take(s->all, &s->known, msg) ? on_meet(ctx, state, NULL) : TRP_OK;
    }
    return graph_serve(ctx, state, msg, &methods);
}

static trp_err
master_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    ((struct master *)state)->waits = PARTS + 1; /* and that it knows all itself */
    return listen_and_register(ctx, PARTS);
}
static const trp_behaviour master = { sizeof master, "graph-master",
                                      .state_bytes = sizeof(struct master),
                                      .receive = master_receive, .pre_start = master_start };

int
main(void)
{
    char seed[128] = "cluster.seed-nodes=self";
    trp_node *nodes[NODES];
    trp_ref ref;
    trp_err err = trp_protocol_register(&graph_protocol);
    for (uint32_t i = 0; err == TRP_OK && i < NODES; i++) {
        const char *const settings[] = { "remote.port=0", "log.level=error", "system=graph", seed,
                                         NULL };
        trp_node_options options = { sizeof options, .settings = settings,
                                     .environment_ignored = 1 };
        err = trp_node_open(&options, &nodes[i], NULL);
        if (err == TRP_OK) {
            snprintf(seed, sizeof seed, "cluster.seed-nodes=%s", trp_node_address(nodes[0]));
        }
    }
    if (err != TRP_OK ||
        trp_system_spawn(trp_node_system(nodes[0]), &master, NULL, &ref) != TRP_OK) {
        return 1;
    }
    for (uint32_t i = 0; err == TRP_OK && i < PARTS; i++) {
        trp_spawn_options options = { sizeof options, .args_type = &trp_bytes_type, .args = &i,
                                      .args_bytes = sizeof i };
        err = trp_system_spawn(trp_node_system(nodes[i % NODES]), &part, &options, &ref);
    }
    err = err != TRP_OK ? err : trp_system_await(trp_node_system(nodes[0]), 60000);
    for (uint32_t i = NODES; i-- > 0;) {
        trp_node_close(nodes[i]);
    }
    return err == TRP_OK ? 0 : 1;
}
