/* nng_exchange_test.c - requests and surveys, whose peers are plain sockets of nng. */
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/protocol/survey0/respond.h>
#include <nng/protocol/survey0/survey.h>

#include "tests/unit/endpoint/talker.h"

static void
ask_one(trp_ctx *ctx, talker *t)
{
    talker_send(ctx, t, "one", NULL, 1);
}

static void
ask_three(trp_ctx *ctx, talker *t)
{
    talker_send(ctx, t, "a", NULL, 1);
    talker_send(ctx, t, "b", NULL, 2);
    talker_send(ctx, t, "c", NULL, 3);
}

/* ZMQ-06 */
static void
a_request_is_replied_to_by_a_plain_socket(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("q", TRP_NNG_REQ);
    nng_socket rep = plain_open(nng_rep0_open);
    UNIT_EQUAL(nng_listen(rep, "inproc://rep", NULL, 0), 0);
    t->options.dial = "inproc://rep";
    talker_start(system, t);
    talker_do(system, t, ask_one);
    UNIT_TRUE(plain_gets(rep, "one"));
    UNIT_EQUAL(plain_puts(rep, "two"), 0);
    STAGE_EXPECT("q:got(two,re1)");
    plain_close(rep);
    stage_close(system);
    free(t);
}

/* ZMQ-05, ZMQ-06: two at a time, the third waits. */
static void
many_requests_are_on_their_way_at_once(void)
{
    trp_system *system = stage_open();
    talker *q = talker_new("q", TRP_NNG_REQ), *r = talker_new("r", TRP_NNG_REP);
    r->options.listen = q->options.dial = "inproc://many";
    q->options.exchanges_max = 2;
    r->keeps = true;
    talker_start(system, r);
    talker_start(system, q);
    talker_do(system, q, ask_three);
    UNIT_WAIT(atomic_load(&r->got) == 2, 60000);
    UNIT_FALSE(stage_has("r:got(c)"));
    talker_do(system, q, ask_one);
    talker_let_go(r);
    stage_close(system);
    free(q);
    free(r);
}

/* ZMQ-06 */
static void
a_replier_serves_many_plain_requesters(void)
{
    enum { PEERS = 8 };
    trp_system *system = stage_open();
    talker *t = talker_new("r", TRP_NNG_REP);
    nng_socket req[PEERS];
    t->options.listen = "tcp://127.0.0.1:0";
    t->replies = true;
    t->quiet = true;
    talker_start(system, t);
    for (int i = 0; i < PEERS; i++) {
        req[i] = plain_open(nng_req0_open);
        UNIT_EQUAL(nng_dial(req[i], t->address, NULL, 0), 0);
    }
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < PEERS; i++) {
            char text[32];
            snprintf(text, sizeof text, "%d.%d", round, i);
            UNIT_EQUAL(plain_puts(req[i], text), 0);
        }
        for (int i = 0; i < PEERS; i++) {
            char text[32];
            snprintf(text, sizeof text, "re:%d.%d", round, i);
            UNIT_TRUE(plain_gets(req[i], text));
        }
    }
    UNIT_WAIT(atomic_load(&t->got) == 50 * PEERS, 60000); /* the reply goes before it is counted */
    for (int i = 0; i < PEERS; i++) {
        plain_close(req[i]);
    }
    stage_close(system);
    free(t);
}

static void
reply_late(trp_ctx *ctx, talker *t)
{
    trp_bytes part = TRP_BYTES_LITERAL("late");
    UNIT_EQUAL(trp_nng_reply(ctx, t->socket, atomic_load(&t->last_exchange), &part, 1), TRP_OK);
    UNIT_EQUAL(trp_nng_reply(ctx, t->socket, 12345, &part, 1), TRP_OK);
}

/* A listener that does not reply holds no exchange for ever. */
static void
a_request_that_nobody_replies_to_times_out_on_both_ends(void)
{
    trp_system *system = stage_open();
    talker *q = talker_new("q", TRP_NNG_REQ), *r = talker_new("r", TRP_NNG_REP);
    r->options.listen = q->options.dial = "inproc://silent";
    r->options.exchanges_max = q->options.exchanges_max = 1;
    r->options.timeout_ms = 20;
    q->options.timeout_ms = 200;
    talker_start(system, r);
    talker_start(system, q);
    talker_do(system, q, ask_one);
    UNIT_WAIT(stage_has("r:failed(0,TRP_ETIMEDOUT)"), 60000);
    UNIT_WAIT(stage_has("q:failed(1,TRP_ETIMEDOUT)"), 60000);
    talker_do(system, r, reply_late);
    UNIT_WAIT(stage_count("r:failed(0,TRP_ESTATE)") == 2, 60000);
    r->replies = true; /* the order above was the last that the actor has had */
    talker_do(system, q, ask_one);
    UNIT_WAIT(stage_has("q:got(re:one,re1)"), 60000);
    stage_close(system);
    free(q);
    free(r);
}

/* No peer: the request was never sent. */
static void
a_request_without_a_peer_times_out(void)
{
    trp_system *system = stage_open();
    talker *q = talker_new("q", TRP_NNG_REQ);
    q->options.listen = "inproc://nobody";
    q->options.timeout_ms = 20;
    q->options.exchanges_max = 1;
    talker_start(system, q);
    talker_do(system, q, ask_three);
    STAGE_EXPECT("q:failed(1,TRP_ETIMEDOUT) q:failed(2,TRP_ETIMEDOUT) q:failed(3,TRP_ETIMEDOUT)");
    nng_socket rep = plain_open(nng_rep0_open);
    UNIT_EQUAL(nng_dial(rep, "inproc://nobody", NULL, 0), 0);
    UNIT_WAIT(atomic_load(&q->connected) == 1, 60000);
    q->options.timeout_ms = 0;
    talker_do(system, q, ask_one);
    UNIT_TRUE(plain_gets(rep, "one"));
    plain_close(rep);
    stage_close(system);
    free(q);
}

/* ZMQ-06 */
static void
a_survey_has_the_replies_that_come_in_its_time(void)
{
    trp_system *system = stage_open();
    talker *s = talker_new("s", TRP_NNG_SURVEYOR), *a = talker_new("a", TRP_NNG_RESPONDENT);
    nng_socket plain = plain_open(nng_respondent0_open);
    s->options.listen = "inproc://survey";
    s->options.timeout_ms = 3000;
    talker_start(system, s);
    a->options.dial = "inproc://survey";
    a->replies = true;
    talker_start(system, a);
    UNIT_EQUAL(nng_dial(plain, "inproc://survey", NULL, 0), 0);
    UNIT_WAIT(atomic_load(&s->connected) == 2, 60000);
    talker_do(system, s, ask_one);
    UNIT_TRUE(plain_gets(plain, "one"));
    UNIT_EQUAL(plain_puts(plain, "plain"), 0);
    UNIT_WAIT(stage_has("s:end(1,2)"), 60000);
    UNIT_TRUE(stage_has("s:got(re:one,re1)"));
    UNIT_TRUE(stage_has("s:got(plain,re1)"));
    plain_close(plain);
    stage_close(system);
    free(s);
    free(a);
}

/* ZMQ-06 */
static void
a_respondent_replies_to_a_plain_surveyor(void)
{
    trp_system *system = stage_open();
    talker *a = talker_new("a", TRP_NNG_RESPONDENT);
    nng_socket plain = plain_open(nng_surveyor0_open);
    UNIT_EQUAL(nng_socket_set_ms(plain, NNG_OPT_SURVEYOR_SURVEYTIME, 60000), 0);
    UNIT_EQUAL(nng_listen(plain, "inproc://plain-survey", NULL, 0), 0);
    a->options.dial = "inproc://plain-survey";
    a->replies = true;
    talker_start(system, a);
    UNIT_WAIT(atomic_load(&a->connected) == 1, 60000);
    UNIT_EQUAL(plain_puts(plain, "who"), 0);
    UNIT_TRUE(plain_gets(plain, "re:who"));
    plain_close(plain);
    stage_close(system);
    free(a);
}

UNIT_BEGIN("nng-exchange")
UNIT(a_request_is_replied_to_by_a_plain_socket)
UNIT(many_requests_are_on_their_way_at_once)
UNIT(a_replier_serves_many_plain_requesters)
UNIT(a_request_that_nobody_replies_to_times_out_on_both_ends)
UNIT(a_request_without_a_peer_times_out)
UNIT(a_survey_has_the_replies_that_come_in_its_time)
UNIT(a_respondent_replies_to_a_plain_surveyor)
UNIT_END
