/* nng_device_test.c - devices between plain sockets of nng. */
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

#include "tests/unit/endpoint/talker.h"

static talker *
device_start(trp_system *system, uint32_t front, uint32_t back)
{
    talker *t = talker_new("d", front);
    t->options.listen = "inproc://front";
    t->back = t->options;
    t->back.kind = back;
    t->back.listen = "inproc://back";
    talker_start(system, t);
    return t;
}

static nng_socket
plain_at(int (*open)(nng_socket *), const char *url)
{
    nng_socket s = plain_open(open);
    UNIT_EQUAL(nng_dial(s, url, NULL, 0), 0);
    return s;
}

/* ZMQ-05: replies find their way back to who asked. */
static void
requests_pass_a_device_and_replies_come_back(void)
{
    trp_system *system = stage_open();
    talker *t = device_start(system, TRP_NNG_REP, TRP_NNG_REQ);
    nng_socket a = plain_at(nng_req0_open, "inproc://front"),
               b = plain_at(nng_req0_open, "inproc://front"),
               rep = plain_at(nng_rep0_open, "inproc://back");
    for (int i = 0; i < 20; i++) {
        UNIT_EQUAL(plain_puts(a, "a"), 0);
        UNIT_TRUE(plain_gets(rep, "a"));
        UNIT_EQUAL(plain_puts(rep, "re:a"), 0);
        UNIT_EQUAL(plain_puts(b, "b"), 0);
        UNIT_TRUE(plain_gets(rep, "b"));
        UNIT_EQUAL(plain_puts(rep, "re:b"), 0);
        UNIT_TRUE(plain_gets(b, "re:b"));
        UNIT_TRUE(plain_gets(a, "re:a"));
    }
    plain_close(a);
    plain_close(b);
    plain_close(rep);
    stage_close(system);
    free(t);
}

/* ZMQ-05 */
static void
tasks_and_topics_pass_in_one_direction(void)
{
    trp_system *system = stage_open();
    talker *t = device_start(system, TRP_NNG_PULL, TRP_NNG_PUSH);
    nng_socket push = plain_at(nng_push0_open, "inproc://front"),
               pull = plain_at(nng_pull0_open, "inproc://back");
    UNIT_EQUAL(plain_puts(push, "task"), 0);
    UNIT_TRUE(plain_gets(pull, "task"));
    plain_close(push);
    plain_close(pull);
    stage_close(system);
    free(t);

    system = stage_open();
    t = talker_new("d", TRP_NNG_SUB);
    nng_socket pub = plain_open(nng_pub0_open);
    UNIT_EQUAL(nng_listen(pub, "inproc://pub", NULL, 0), 0);
    t->options.dial = "inproc://pub";
    t->back = t->options;
    t->back.kind = TRP_NNG_PUB;
    t->back.dial = NULL;
    t->back.listen = "inproc://back";
    talker_start(system, t);
    nng_socket sub = plain_at(nng_sub0_open, "inproc://back");
    UNIT_EQUAL(nng_socket_set(sub, NNG_OPT_SUB_SUBSCRIBE, "a", 1), 0);
    UNIT_EQUAL(nng_socket_set_ms(sub, NNG_OPT_RECVTIMEO, 20), 0);
    bool heard = false;
    for (int i = 0; i < 3000 && !heard; i++) { /* until both connections stand */
        char text[8];
        size_t bytes = sizeof text;
        UNIT_EQUAL(plain_puts(pub, "b"), 0);
        UNIT_EQUAL(plain_puts(pub, "a"), 0);
        heard = nng_recv(sub, text, &bytes, 0) == 0 && bytes == 1 && text[0] == 'a';
    }
    UNIT_TRUE(heard);
    plain_close(pub);
    plain_close(sub);
    stage_close(system);
    free(t);
}

/* ZMQ-05 */
static void
pairs_speak_through_a_device(void)
{
    trp_system *system = stage_open();
    talker *t = device_start(system, TRP_NNG_PAIR, TRP_NNG_PAIR);
    nng_socket a = plain_at(nng_pair0_open, "inproc://front"),
               b = plain_at(nng_pair0_open, "inproc://back");
    UNIT_EQUAL(plain_puts(a, "there"), 0);
    UNIT_TRUE(plain_gets(b, "there"));
    UNIT_EQUAL(plain_puts(b, "back"), 0);
    UNIT_TRUE(plain_gets(a, "back"));
    plain_close(a);
    plain_close(b);
    stage_close(system);
    free(t);
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
    trp_system *system = stage_open();
    talker *t = device_start(system, TRP_NNG_REP, TRP_NNG_REQ);
    talker_do(system, t, open_badly);
    UNIT_WAIT(stage_has("d:closed(TRP_EADDRINUSE)"), 60000);
    stage_close(system);
    free(t);
}

UNIT_BEGIN("nng-device")
UNIT(requests_pass_a_device_and_replies_come_back)
UNIT(tasks_and_topics_pass_in_one_direction)
UNIT(pairs_speak_through_a_device)
UNIT(kinds_that_do_not_fit_are_refused)
UNIT_END
