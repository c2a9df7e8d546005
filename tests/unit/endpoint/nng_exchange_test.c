/* nng_exchange_test.c - requests and surveys, whose peers are other programs. */
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
    peer *rep = peer_start("rep", "listen", talker_address("abstract://", "rep"), NULL);
    t->options.dial = rep->address;
    talker_start(system, t);
    talker_do(system, t, ask_one);
    UNIT_TRUE(peer_gets(rep, "one"));
    UNIT_TRUE(peer_puts(rep, "two"));
    STAGE_EXPECT("q:got(two,re1)");
    peer_end(rep);
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
    peer *req[PEERS];
    t->options.listen = "tcp://127.0.0.1:0";
    t->replies = true;
    t->quiet = true;
    talker_start(system, t);
    for (int i = 0; i < PEERS; i++) {
        req[i] = peer_start("req", "dial", t->address, NULL);
    }
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < PEERS; i++) {
            char text[32];
            snprintf(text, sizeof text, "%d.%d", round, i);
            UNIT_TRUE(peer_puts(req[i], text));
        }
        for (int i = 0; i < PEERS; i++) {
            char text[32];
            snprintf(text, sizeof text, "re:%d.%d", round, i);
            UNIT_TRUE(peer_gets(req[i], text));
        }
    }
    UNIT_WAIT(atomic_load(&t->got) == 50 * PEERS, 60000); /* the reply goes before it is counted */
    for (int i = 0; i < PEERS; i++) {
        peer_end(req[i]);
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
    q->options.listen = talker_address("abstract://", "nobody");
    q->options.timeout_ms = 20;
    q->options.exchanges_max = 1;
    talker_start(system, q);
    talker_do(system, q, ask_three);
    STAGE_EXPECT("q:failed(1,TRP_ETIMEDOUT) q:failed(2,TRP_ETIMEDOUT) q:failed(3,TRP_ETIMEDOUT)");
    peer *rep = peer_start("rep", "dial", q->options.listen, NULL);
    UNIT_WAIT(atomic_load(&q->connected) == 1, 60000);
    q->options.timeout_ms = 0;
    talker_do(system, q, ask_one);
    UNIT_TRUE(peer_gets(rep, "one"));
    peer_end(rep);
    stage_close(system);
    free(q);
}

/* ZMQ-06 */
static void
a_survey_has_the_replies_that_come_in_its_time(void)
{
    trp_system *system = stage_open();
    talker *s = talker_new("s", TRP_NNG_SURVEYOR), *a = talker_new("a", TRP_NNG_RESPONDENT);
    s->options.listen = a->options.dial = talker_address("abstract://", "survey");
    s->options.timeout_ms = 3000;
    talker_start(system, s);
    a->replies = true;
    talker_start(system, a);
    peer *plain = peer_start("respondent", "dial", s->options.listen, NULL);
    UNIT_WAIT(atomic_load(&s->connected) == 2, 60000);
    talker_do(system, s, ask_one);
    UNIT_TRUE(peer_gets(plain, "one"));
    UNIT_TRUE(peer_puts(plain, "plain"));
    UNIT_WAIT(stage_has("s:end(1,2)"), 60000);
    UNIT_TRUE(stage_has("s:got(re:one,re1)"));
    UNIT_TRUE(stage_has("s:got(plain,re1)"));
    peer_end(plain);
    stage_close(system);
    free(s);
    free(a);
}

/* nng-socket-K2: the second reply waits until the first one is freed. */
static void
replies_to_a_survey_have_a_bound(void)
{
    trp_system *system = stage_open();
    talker *s = talker_new("s", TRP_NNG_SURVEYOR);
    talker *a = talker_new("a", TRP_NNG_RESPONDENT), *b = talker_new("b", TRP_NNG_RESPONDENT);
    s->options.listen = a->options.dial = b->options.dial = talker_address("abstract://", "bound");
    s->options.timeout_ms = 20000;
    s->options.receive_max = 1;
    s->keeps = a->replies = b->replies = true;
    talker_start(system, s);
    talker_start(system, a);
    talker_start(system, b);
    UNIT_WAIT(atomic_load(&s->connected) == 2, 60000);
    talker_do(system, s, ask_one);
    UNIT_WAIT(atomic_load(&a->got) == 1 && atomic_load(&b->got) == 1, 60000);
    UNIT_WAIT(atomic_load(&s->got) == 1, 60000);
    for (int pause = 0; pause < 100 && atomic_load(&s->got) == 1; pause++) {
        unit_pause(); /* for one that does not wait */
    }
    UNIT_EQUAL(atomic_load(&s->got), 1);
    talker_let_go(s);
    UNIT_WAIT(atomic_load(&s->got) == 2, 60000);
    talker_let_go(s);
    stage_close(system);
    free(s);
    free(a);
    free(b);
}

/* ZMQ-06 */
static void
a_respondent_replies_to_a_plain_surveyor(void)
{
    trp_system *system = stage_open();
    talker *a = talker_new("a", TRP_NNG_RESPONDENT);
    peer *plain = peer_start("surveyor", "listen", talker_address("abstract://", "asks"), NULL);
    a->options.dial = plain->address;
    a->replies = true;
    talker_start(system, a);
    UNIT_TRUE(peer_does(plain, "ok", "peers 1"));
    UNIT_TRUE(peer_puts(plain, "who"));
    UNIT_TRUE(peer_gets(plain, "re:who"));
    peer_end(plain);
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
UNIT(replies_to_a_survey_have_a_bound)
UNIT(a_respondent_replies_to_a_plain_surveyor)
UNIT_END
