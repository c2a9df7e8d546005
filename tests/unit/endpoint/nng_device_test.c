/* nng_device_test.c - devices between other programs. */
#include "tests/unit/endpoint/talker.h"

/* A device, and the peers at its two ends. */
typedef struct relay {
    trp_system *system;
    talker *device;
    peer *front, *back;
} relay;

static relay
relay_open(uint32_t front_kind, uint32_t back_kind)
{
    relay r = { .system = stage_open(), .device = talker_new("d", front_kind) };
    r.device->options.listen = talker_address("abstract://", "front");
    r.device->back = r.device->options;
    r.device->back.kind = back_kind;
    r.device->back.listen = talker_address("abstract://", "back");
    talker_start(r.system, r.device);
    return r;
}

static peer *
dial(const char *kind, const trp_nng_options *side)
{
    return peer_start(kind, "dial", side->listen, NULL);
}

static void
relay_close(relay *r)
{
    peer_end(r->front);
    peer_end(r->back);
    stage_close(r->system);
    free(r->device);
}

/* ZMQ-05: replies find their way back to who asked. */
static void
requests_pass_a_device_and_replies_come_back(void)
{
    relay r = relay_open(TRP_NNG_REP, TRP_NNG_REQ);
    r.front = dial("req", &r.device->options);
    r.back = dial("rep", &r.device->back);
    peer *other = dial("req", &r.device->options);
    for (int i = 0; i < 20; i++) {
        UNIT_TRUE(peer_puts(r.front, "a"));
        UNIT_TRUE(peer_gets(r.back, "a"));
        UNIT_TRUE(peer_puts(r.back, "re:a"));
        UNIT_TRUE(peer_puts(other, "b"));
        UNIT_TRUE(peer_gets(r.back, "b"));
        UNIT_TRUE(peer_puts(r.back, "re:b"));
        UNIT_TRUE(peer_gets(other, "re:b"));
        UNIT_TRUE(peer_gets(r.front, "re:a"));
    }
    peer_end(other);
    relay_close(&r);
}

/* ZMQ-05 */
static void
tasks_pass_in_one_direction(void)
{
    relay r = relay_open(TRP_NNG_PULL, TRP_NNG_PUSH);
    r.front = dial("push", &r.device->options);
    r.back = dial("pull", &r.device->back);
    UNIT_TRUE(peer_puts(r.front, "task"));
    UNIT_TRUE(peer_gets(r.back, "task"));
    relay_close(&r);
}

/* ZMQ-05 */
static void
topics_pass_in_one_direction(void)
{
    relay r = relay_open(TRP_NNG_SUB, TRP_NNG_PUB);
    r.front = dial("pub", &r.device->options);
    r.back = peer_start("sub", "dial", r.device->back.listen, "a");
    do { /* until both connections stand */
        UNIT_TRUE(peer_puts(r.front, "b"));
        UNIT_TRUE(peer_puts(r.front, "a"));
        UNIT_TRUE(peer_does(r.back, NULL, "get 20"));
    } while (strcmp(r.back->answer, "Timed out") == 0);
    UNIT_TEXT(r.back->answer, "got a");
    relay_close(&r);
}

/* ZMQ-05 */
static void
pairs_speak_through_a_device(void)
{
    relay r = relay_open(TRP_NNG_PAIR, TRP_NNG_PAIR);
    r.front = dial("pair", &r.device->options);
    r.back = dial("pair", &r.device->back);
    UNIT_TRUE(peer_puts(r.front, "there"));
    UNIT_TRUE(peer_gets(r.back, "there"));
    UNIT_TRUE(peer_puts(r.back, "back"));
    UNIT_TRUE(peer_gets(r.front, "back"));
    relay_close(&r);
}

static void
open_badly(trp_ctx *ctx, talker *t)
{
    trp_ref ref;
    UNIT_EQUAL(trp_nng_open_device(ctx, &t->back, &t->options, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_open_device(ctx, &t->options, &t->options, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_open_device(ctx, &t->options, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_open_device(ctx, &t->options, &t->back, &ref), TRP_OK); /* in use */
}

static void
kinds_that_do_not_fit_are_refused(void)
{
    relay r = relay_open(TRP_NNG_REP, TRP_NNG_REQ);
    talker_do(r.system, r.device, open_badly);
    UNIT_WAIT(stage_has("d:closed(TRP_EADDRINUSE)"), 60000);
    relay_close(&r);
}

UNIT_BEGIN("nng-device")
UNIT(requests_pass_a_device_and_replies_come_back)
UNIT(tasks_pass_in_one_direction)
UNIT(topics_pass_in_one_direction)
UNIT(pairs_speak_through_a_device)
UNIT(kinds_that_do_not_fit_are_refused)
UNIT_END
