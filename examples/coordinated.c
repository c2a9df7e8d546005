/* coordinated.c - two counters count together or not at all: each joins with a function. */
#include <stdbool.h>
#include <stdio.h>
#include <troupe/troupe.h>

#define COUNT_UP(F, S) F(S, ref, coordination) F(S, ref, other)
#define COUNT_MESSAGES(M, P) M(P, up, COUNT_UP) /* to a counter that has another one with it */
TRP_PROTOCOL(count, COUNT_MESSAGES)

enum { MOST = 2 };
static trp_stm_cell *cells[2];
struct counter {
    trp_stm_cell *cell;
    trp_ref asker;
};

static trp_err
count_one(trp_txn *txn, void *arg) /* may run several times, and on another thread */
{
    trp_stm_cell *cell = *(trp_stm_cell **)arg;
    int64_t value = 0;
    trp_err err = trp_stm_read(txn, cell, &value);
    if (err != TRP_OK || ++value > MOST) {
        return err != TRP_OK ? err : TRP_ELIMIT; /* then nobody has counted */
    }
    return trp_stm_write(txn, cell, &value);
}

static trp_err
on_outcome(trp_ctx *ctx, void *state, void *asker, trp_err err, const trp_msg *reply)
{
    (void)state;
    (void)reply;
    if (asker != NULL) {
        trp_tell_text(ctx, *(trp_ref *)asker, trp_err_name(err));
    }
    return TRP_OK;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct counter *c = state;
    const count_up *m = count_up_as(msg);
    count_up next = { m->coordination, TRP_REF_NONE };
    bool is_first = !trp_ref_is_none(m->other);
    c->cell = cells[!is_first];
    c->asker = trp_sender(ctx);
    if (is_first) {
        trp_coordination_include(ctx, m->coordination, m->other);
        trp_tell(ctx, m->other, &count_up_type, &next, 0);
    }
    return trp_coordination_join(ctx, m->coordination, count_one, &c->cell, sizeof c->cell, 6000,
                                 on_outcome, is_first ? &c->asker : NULL);
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", struct counter, counter_receive);

int
main(void)
{
    trp_system *system;
    trp_stm *stm;
    trp_ref one, two, c;
    trp_msg *reply;
    int64_t values[2] = { 0, 1 };
    if (trp_protocol_register(&count_protocol) != TRP_OK || trp_stm_new(&stm) != TRP_OK ||
        trp_stm_cell_new(stm, &values[0], 8, &cells[0]) != TRP_OK ||
        trp_stm_cell_new(stm, &values[1], 8, &cells[1]) != TRP_OK ||
        trp_system_new("counters", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &counter, NULL, &one) != TRP_OK ||
        trp_system_spawn(system, &counter, NULL, &two) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if (trp_system_coordination_start(system, stm, &one, 1, 5000, &c) != TRP_OK ||
            trp_system_ask(system, one, &count_up_type, &(count_up){ c, two }, 0, 6000, &reply) !=
                TRP_OK) {
            return 1;
        }
        trp_stm_get(cells[0], &values[0]);
        trp_stm_get(cells[1], &values[1]);
        printf("%.*s: %d, %d\n", (int)trp_msg_bytes(reply), (const char *)trp_msg_payload(reply),
               (int)values[0], (int)values[1]);
        trp_msg_free(reply);
    }
    trp_system_free(system);
    trp_stm_cell_free(cells[0]);
    trp_stm_cell_free(cells[1]);
    trp_stm_free(stm);
    return 0;
}
