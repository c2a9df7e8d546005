/* counter.c - a plugin with messages of its own: an actor that adds up.
 *
 *     troupe node --load ./counter.so
 *     troupe ask /user/counter '{"add":5}'                                  -> {"total":5}
 *     troupe ask /user/counter --type counter.add '{"amount":37}'           -> counter.total
 * {"total":42}
 *
 * An add of more than a million is refused: the ask fails. {"fail":true} makes the actor fail; its
 * supervisor restarts it, and it counts from 0 again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define COUNTER_ADD(F, S) F(S, i64, amount)
#define COUNTER_TOTAL(F, S) F(S, i64, total)
#define COUNTER_MESSAGES(M, P) M(P, add, COUNTER_ADD) M(P, total, COUNTER_TOTAL)
TRP_PROTOCOL(counter, COUNTER_MESSAGES)

#define AMOUNT_MAX 1000000

typedef struct counter {
    int64_t total;
} counter;

/* The number behind "name" in a small JSON object, or the whole text as a number. */
static int
number_find(const trp_msg *msg, const char *name, int64_t *ret_number)
{
    char text[256];
    size_t bytes = trp_msg_bytes(msg);
    if (bytes >= sizeof text) {
        return 0;
    }
    memcpy(text, trp_msg_payload(msg), bytes);
    text[bytes] = '\0';
    const char *at = strstr(text, name), *start = text;
    if (at) {
        start = strchr(at, ':');
        start = start ? start + 1 : "";
    }
    char *end = NULL;
    *ret_number = strtoll(start, &end, 10);
    return end != start;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    counter *c = state;
    int64_t amount = 0;
    int is_json = trp_msg_is(msg, &trp_json_type);
    if (trp_msg_is(msg, &counter_add_type)) {
        amount = ((const counter_add *)trp_msg_payload(msg))->amount;
    } else if (is_json && trp_msg_bytes(msg) >= 13 &&
               memcmp(trp_msg_payload(msg), "{\"fail\":true}", 13) == 0) {
        trp_fail(ctx, 1, "told to fail");
    } else if (!is_json || !number_find(msg, "\"add\"", &amount)) {
        trp_reply_failure(ctx, TRP_EDATA, "expected {\"add\":NUMBER}");
        return TRP_OK;
    }
    if (amount > AMOUNT_MAX || amount < -AMOUNT_MAX) {
        trp_reply_failure(ctx, TRP_EINVAL, "that is too much");
        return TRP_OK;
    }
    c->total += amount;
    if (is_json) {
        char text[64];
        snprintf(text, sizeof text, "{\"total\":%lld}", (long long)c->total);
        trp_reply_json(ctx, text);
    } else {
        counter_total reply = { c->total };
        trp_reply(ctx, &counter_total_type, &reply, sizeof reply);
    }
    return TRP_OK;
}

static const trp_behaviour counter_behaviour =
    TRP_BEHAVIOUR_INIT("counter", counter, counter_receive);

static trp_err
counter_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    (void)arguments;
    (void)ret_state;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = "counter";
    trp_err err = trp_protocol_register(&counter_protocol);
    if (err != TRP_OK) {
        snprintf(ret_error->text, sizeof ret_error->text, "protocol counter: %s",
                 trp_strerror(err));
        return err;
    }
    return trp_system_spawn(trp_node_system(node), &counter_behaviour, &options, &ref);
}

TRP_PLUGIN("counter", counter_init, NULL)
