/* map_reduce.h - the workers of map_reduce.c, and their functions, which can be replaced. */
enum { VALUES = 1000, PART = 10, PARTS = VALUES / PART, WORKERS_MAX = 25, INIT = 0, MAP, REDUCE };
typedef struct work { /* on one partition; told as bytes, values and all */
    int step, set, part;
    int64_t values[PART];
} work;
typedef struct map_reducer { /* indices are inclusive, as in the article */
    void (*map)(int64_t *values, int start, int end);
    void (*reduce)(const int64_t *values, int start, int end, int64_t *target, int posn);
} map_reducer;
static void
square(int64_t *values, int start, int end)
{
    for (int i = start; i <= end; i++) {
        values[i] *= values[i];
    }
}
static void
sum(const int64_t *values, int start, int end, int64_t *target, int posn)
{
    int64_t total = 0;
    for (int i = start; i <= end; i++) {
        total += values[i];
    }
    target[posn] = total;
}
static const map_reducer sum_of_squares = { square, sum };

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    work w = *(const work *)trp_msg_payload(msg);
    (void)state;
    w.step == MAP ? sum_of_squares.map(w.values, 0, PART - 1)
                  : sum_of_squares.reduce(w.values, 0, PART - 1, w.values, 0);
    trp_reply(ctx, &trp_bytes_type, &w, sizeof w);
    return TRP_OK;
}
static const trp_behaviour worker = { sizeof worker, "worker", .receive = worker_receive };

/* Give a step of all partitions to the workers; in the first step each may bring one more. */
static trp_err
order(trp_ctx *ctx, const int64_t *values, work w, int step)
{
    trp_err err = TRP_OK;
    trp_ref ref;
    w.step = step;
    for (w.part = 0; w.part < PARTS && err == TRP_OK; w.part++) {
        memcpy(w.values, values + w.part * PART, sizeof w.values);
        if (step == MAP && trp_children_count(ctx) < WORKERS_MAX) {
            err = trp_spawn(ctx, &worker, NULL, &ref);
            err = err ? err : trp_category_join(trp_ctx_system(ctx), "mapReduce", ref);
        }
        err = err ? err : trp_category_send(ctx, "mapReduce", &trp_bytes_type, &w, sizeof w, NULL);
    }
    return err;
}
