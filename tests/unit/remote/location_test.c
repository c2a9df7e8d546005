/* location_test.c - a program does not see where an actor is: the same lines, run twice.
 */
#include "tests/unit/remote/pair.h"

#include <troupe/inbox.h>

static pair p;

typedef struct counter {
    int64_t sum;
} counter;

static trp_err
sum_add(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    counter *c = state;

    c->sum += *(const int64_t *)trp_msg_payload(msg);
    trp_reply(ctx, &trp_i64_type, &c->sum, sizeof c->sum);
    return TRP_OK;
}
static const trp_behaviour counter_behaviour = TRP_BEHAVIOUR_INIT("counter", counter, sum_add);

static char seen[512];
static size_t seen_bytes;

static void
fact_note(const char *what, int64_t value)
{
    int n =
        snprintf(seen + seen_bytes, sizeof seen - seen_bytes, "%s(%lld) ", what, (long long)value);

    UNIT_REQUIRE(n > 0 && (size_t)n < sizeof seen - seen_bytes);
    seen_bytes += (size_t)n;
}

/* Receive the next message, which must come from `from`. */
static void
inbox_receive(trp_inbox *inbox, trp_ref from)
{
    trp_msg *msg = NULL;
    trp_ref sender = TRP_REF_NONE;

    UNIT_REQUIRE(trp_inbox_receive(inbox, 20000, &msg, &sender) == TRP_OK);
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *end = trp_msg_payload(msg);

        fact_note("ended", trp_ref_equal(end->ref, from));
    } else {
        fact_note(trp_ref_equal(sender, from) ? "reply" : "stranger",
                  *(const int64_t *)trp_msg_payload(msg));
    }
    trp_msg_free(msg);
}

/* Look it up, watch it, tell it, ask it, and have it end: nothing here knows where it is. */
static void
story_run(trp_system *system, const char *path)
{
    trp_ref ref = TRP_REF_NONE, nobody = TRP_REF_NONE;
    trp_inbox *inbox = NULL;
    trp_msg *answer = NULL;
    char other[TRP_PATH_BYTES_MAX + 1];
    int64_t number = 5;

    seen_bytes = 0;
    (void)snprintf(other, sizeof other, "%s-not", path);
    UNIT_REQUIRE(trp_inbox_open(system, NULL, &inbox) == TRP_OK);
    fact_note("found", trp_system_resolve(system, path, 20000, &ref));
    fact_note("missing", trp_system_resolve(system, other, 20000, &nobody) == TRP_ENOENT);
    fact_note("watched", trp_inbox_watch(inbox, ref));
    for (int64_t i = 1; i <= 3; i++) {
        trp_inbox_tell(inbox, ref, &trp_i64_type, &i, sizeof i);
    }
    for (int i = 0; i < 3; i++) {
        inbox_receive(inbox, ref);
    }
    fact_note("asked",
              trp_system_ask(system, ref, &trp_i64_type, &number, sizeof number, 20000, &answer));
    fact_note("answer", answer == NULL ? -1 : *(const int64_t *)trp_msg_payload(answer));
    trp_msg_free(answer);
    trp_inbox_tell(inbox, ref, &trp_i64_type, &number, sizeof number);
    inbox_receive(inbox, ref);
    trp_inbox_tell(inbox, ref, &trp_poison_pill_type, NULL, 0);
    inbox_receive(inbox, ref);
    fact_note("missing", trp_system_resolve(system, path, 20000, &nobody) == TRP_ENOENT);
    trp_inbox_close(inbox);
}

/* HEADLINE-5, REMOTE-25: the same code, the same that happens, here and on another node. (Across
 * nodes watches and notices of an end travel on a lane of their own: they may overtake messages, or
 * be overtaken, so that existence_confirmed and what comes first, last words or the end, may
 * differ.) */
static void
the_same_code_serves_here_and_there(void)
{
    static const char want[] = "found(0) missing(1) watched(0) reply(1) reply(3) reply(6) asked(0) "
                               "answer(11) reply(16) ended(1) missing(1) ";
    char path[TRP_PATH_BYTES_MAX + 1];

    pair_start(&p, false, NULL);
    pair_spawn(p.system[0], &counter_behaviour, "counter", NULL, NULL, 0);
    pair_spawn(p.system[1], &counter_behaviour, "counter", NULL, NULL, 0);
    story_run(p.system[0], "/user/counter");
    UNIT_TEXT(seen, want);
    story_run(p.system[0], pair_path(&p, 1, "/user/counter", path, sizeof path));
    UNIT_TEXT(seen, want);
    pair_end(&p);
}

UNIT_BEGIN("location")
UNIT(the_same_code_serves_here_and_there)
UNIT_END
