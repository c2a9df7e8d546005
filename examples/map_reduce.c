/* map_reduce.c - the sum of the squares of 1000 integers, by map and reduce (µJavaActors' example).
 *
 * What is mapped and reduced can be replaced (struct map_reducer). A set is split into partitions
 * of ten, which go to the least loaded of 5 to 25 workers. The master counts answers: the first
 * reduce is ordered when the last map has been answered, and the hundred results are folded when
 * the last reduce has. The article promises this barrier, but its code reduces each partition as
 * soon as that one is mapped; the pipeline saves time only where reducing does not need all of the
 * mapped values. Several sets run at once, each with counts of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <troupe/troupe.h>

enum { VALUES = 1000, PARTITION = 10, PARTS = VALUES / PARTITION, SETS = 2 };
enum { WORKERS_FIRST = 5, WORKERS_MAX = 25 };

typedef struct map_reducer { /* indices are inclusive, as in the article */
    void (*map)(int64_t *values, int start, int end);
    void (*reduce)(const int64_t *values, int start, int end, int64_t *target, int posn);
} map_reducer;
typedef struct set {
    const map_reducer *mr;
    int64_t values[VALUES], targets[PARTS];
    uint32_t mapped, reduced, reduced_early; /* counts of answers; the last must stay 0 */
} set;

/* A worker writes to its own partition only, and the master looks when it has been told. */
#define WORK(F, S) F(S, u64, set) F(S, i32, start) F(S, i32, end) F(S, i32, index)
#define DONE(F, S) F(S, u64, set) F(S, i64, result)
#define MAPREDUCE(M, P)                                                                            \
    M(P, init, DONE)                                                                               \
    M(P, create_partition, WORK) M(P, map_worker, WORK) M(P, map_response, WORK)                   \
        M(P, reduce_worker, WORK) M(P, reduce_response, WORK) M(P, done, DONE)
TRP_PROTOCOL(mr, MAPREDUCE)
static const trp_protocol *const accepted[] = { &mr_protocol, NULL };

static set *
set_of(uint64_t address)
{
    return (set *)(uintptr_t)address;
}

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const mr_map_worker *w = trp_msg_payload(msg);
    set *s = set_of(w->set);
    (void)state;
    if (trp_msg_tag(msg) == mr_map_worker_tag) {
        s->mr->map(s->values, w->start, w->end);
        trp_reply(ctx, &mr_map_response_type, w, sizeof *w);
    } else if (trp_msg_tag(msg) == mr_reduce_worker_tag) {
        s->mr->reduce(s->values, w->start, w->end, s->targets, w->index);
        trp_reply(ctx, &mr_reduce_response_type, w, sizeof *w);
    }
    return TRP_OK;
}
static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "mapReduceWorker",
                                      .version = 1,
                                      .receive = worker_receive,
                                      .accepts = accepted };

typedef struct master {
    uint32_t workers;
    trp_ref client;
} master;

static trp_err
worker_add(trp_ctx *ctx, master *m)
{
    trp_ref ref;
    if (m->workers >= WORKERS_MAX) {
        return TRP_OK;
    }
    m->workers++;
    trp_err err = trp_spawn(ctx, &worker, NULL, &ref);
    return err == TRP_OK ? trp_category_join(trp_ctx_system(ctx), "mapReduce", ref) : err;
}

static trp_err
start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_err err = TRP_OK;
    (void)args;
    for (int i = 0; i < WORKERS_FIRST && err == TRP_OK; i++) {
        err = worker_add(ctx, state);
    }
    return err;
}

/* Order `type` for each partition of s. */
static trp_err
order_all(trp_ctx *ctx, set *s, const trp_type *type)
{
    trp_err err = TRP_OK;
    for (int i = 0; i < PARTS && err == TRP_OK; i++) {
        mr_map_worker w = { (uintptr_t)s, i * PARTITION, (i + 1) * PARTITION - 1, i };
        if (type == &mr_create_partition_type) {
            trp_tell(ctx, trp_self(ctx), type, &w, sizeof w);
        } else {
            err = trp_category_send(ctx, "mapReduce", type, &w, sizeof w, NULL);
        }
    }
    return err;
}

static trp_err
master_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    master *m = state;
    const mr_map_worker *w = trp_msg_payload(msg);
    set *s = set_of(w->set);
    mr_done done = { w->set, 0 };
    trp_err err;
    switch (trp_msg_tag(msg)) {
    case mr_init_tag:
        m->client = trp_sender(ctx);
        return order_all(ctx, s, &mr_create_partition_type);
    case mr_create_partition_tag: /* each may bring one more worker */
        err = worker_add(ctx, m);
        return err != TRP_OK
                   ? err
                   : trp_category_send(ctx, "mapReduce", &mr_map_worker_type, w, sizeof *w, NULL);
    case mr_map_response_tag: /* the barrier */
        return ++s->mapped == PARTS ? order_all(ctx, s, &mr_reduce_worker_type) : TRP_OK;
    case mr_reduce_response_tag:
        s->reduced_early += s->mapped < PARTS;
        if (++s->reduced == PARTS) {
            s->mr->reduce(s->targets, 0, PARTS - 1, &done.result, 0);
            trp_tell(ctx, m->client, &mr_done_type, &done, sizeof done);
        }
        return TRP_OK;
    default:
        return TRP_EUNHANDLED;
    }
}
static const trp_behaviour master_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "mapReduce",
                                                .version = 1,
                                                .state_bytes = sizeof(master),
                                                .receive = master_receive,
                                                .pre_start = start,
                                                .accepts = accepted };

static void
square_map(int64_t *values, int start, int end)
{
    for (int i = start; i <= end; i++) {
        values[i] *= values[i];
    }
}
static void
sum_reduce(const int64_t *values, int start, int end, int64_t *target, int posn)
{
    int64_t sum = 0;
    for (int i = start; i <= end; i++) {
        sum += values[i];
    }
    target[posn] = sum;
}
static const map_reducer sum_of_squares = { square_map, sum_reduce };

int
main(void)
{
    static set sets[SETS];
    int64_t want[SETS] = { 0 };
    uint32_t dice = 2012;
    int right = 0;
    trp_inbox *inbox;
    trp_system *system;
    trp_ref ref, sender;
    trp_msg *msg;
    if (trp_protocol_register(&mr_protocol) != TRP_OK ||
        trp_system_new("mapReduce", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK ||
        trp_system_spawn(system, &master_behaviour, NULL, &ref) != TRP_OK) {
        return 1;
    }
    for (int k = 0; k < SETS; k++) { /* random in [0, 1000) */
        mr_init init = { (uintptr_t)&sets[k], 0 };
        sets[k].mr = &sum_of_squares;
        for (int i = 0; i < VALUES; i++) {
            dice = dice * 1664525u + 1013904223u;
            sets[k].values[i] = (dice >> 8) % VALUES;
            want[k] += sets[k].values[i] * sets[k].values[i];
        }
        trp_inbox_tell(inbox, ref, &mr_init_type, &init, sizeof init);
    }
    for (int k = 0; k < SETS && trp_inbox_receive(inbox, 10000, &msg, &sender) == TRP_OK; k++) {
        const mr_done *done = trp_msg_payload(msg);
        const set *s = set_of(done->set);
        printf("**** mapReduce done with result %lld (set mrSet_%d)\n", (long long)done->result,
               (int)(s - sets));
        right += done->result == want[s - sets] && s->mapped == PARTS && s->reduced == PARTS &&
                 s->reduced_early == 0;
        trp_msg_free(msg);
    }
    printf("workers: %u\n", trp_category_size(system, "mapReduce"));
    right += trp_category_size(system, "mapReduce") == WORKERS_MAX;
    trp_inbox_close(inbox);
    if (trp_system_stop(system, 5000) == TRP_OK) {
        trp_system_free(system);
    }
    return right != SETS + 1;
}
