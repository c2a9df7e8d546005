/* cache.c - a cache that spares a slow source: while it is asked, those who want the value wait for
 * the same answer (single flight); a timer refreshes it, so nobody waits again. */
#include <stdio.h>
#include <troupe/troupe.h>

enum { WAITING_MAX = 64 };
static const int64_t refresh = -1;
static trp_ref source_ref;

/* The source counts how often it is asked, and takes its time. */
static trp_err
source_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *asked = state;
    trp_ref self = trp_self(ctx);
    (void)msg;
    ++*asked;
    return trp_schedule_once(trp_ctx_system(ctx), 50, trp_sender(ctx), self, &trp_i64_type, asked,
                             sizeof *asked, NULL);
}
static const trp_behaviour source = { sizeof source, "source", .state_bytes = sizeof(int64_t),
                                      .receive = source_receive };

struct cache {
    int64_t value; /* 0: none yet */
    int asking, waiting;
    trp_ref who[WAITING_MAX];
};

static trp_err
cache_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct cache *c = state;
    if (trp_ref_equal(trp_sender(ctx), source_ref)) { /* the answer, for all that wait */
        c->value = *(const int64_t *)trp_msg_payload(msg);
        for (c->asking = 0; c->waiting > 0;) {
            trp_tell(ctx, c->who[--c->waiting], &trp_i64_type, &c->value, sizeof c->value);
        }
        return TRP_OK;
    }
    int is_refresh = trp_msg_is(msg, &trp_i64_type);
    if (is_refresh && *(const int64_t *)trp_msg_payload(msg) > 0) { /* how often, in ms */
        uint32_t every = (uint32_t) * (const int64_t *)trp_msg_payload(msg);
        return trp_timer_repeat(ctx, 1, every, every, &trp_i64_type, &refresh, sizeof refresh);
    }
    if (!is_refresh && c->value != 0) {
        trp_reply(ctx, &trp_i64_type, &c->value, sizeof c->value);
        return TRP_OK;
    }
    if (!is_refresh && c->waiting == WAITING_MAX) {
        return TRP_OK; /* more than may wait: their asks time out */
    }
    if (!is_refresh) {
        c->who[c->waiting++] = trp_sender(ctx);
    }
    if (!c->asking) { /* one question at a time */
        c->asking = 1;
        trp_tell(ctx, source_ref, &trp_string_type, "?", 1);
    }
    return TRP_OK;
}
static const trp_behaviour cache = { sizeof cache, "cache", .state_bytes = sizeof(struct cache),
                                     .receive = cache_receive };

int
main(void)
{
    int64_t first = 0, later = 0, every_ms = 20;
    trp_system *system;
    trp_future *answers[10];
    const trp_msg *value;
    trp_ref c;
    if (trp_system_new("cache", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &source, NULL, &source_ref) != TRP_OK ||
        trp_system_spawn(system, &cache, NULL, &c) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        if (trp_future_ask(system, c, &trp_string_type, "get", 3, 10000, &answers[i]) != TRP_OK) {
            return 1;
        }
    }
    for (int i = 0; i < 10; i++) {
        if (trp_future_result(answers[i], 10000, &value) != TRP_OK) {
            return 1;
        }
        first += *(const int64_t *)trp_msg_payload(value);
        trp_future_unref(answers[i]);
    }
    printf("10 waited for %s\n", first == 10 ? "one answer" : "several answers");
    trp_system_tell(system, c, &trp_i64_type, &every_ms, sizeof every_ms);
    while (later < 3) { /* refreshed twice, while it answers at once */
        trp_msg *reply;
        if (trp_system_ask(system, c, &trp_string_type, "get", 3, 10000, &reply) != TRP_OK) {
            return 1;
        }
        later = *(const int64_t *)trp_msg_payload(reply);
        trp_msg_free(reply);
    }
    printf("it was refreshed\n");
    trp_system_free(system);
    return 0;
}
