/* agent.c - a value that any thread reads at once: changes are queued, those that take long run on
 * threads of their own, and those of a transaction wait for its commit. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
add(void *arg, void *value)
{
    *(int64_t *)value += *(const int64_t *)arg;
    return TRP_OK;
}

static trp_err
half(void *arg, const void *value, void *ret_value)
{
    (void)arg;
    *(int64_t *)ret_value = *(const int64_t *)value / 2;
    return TRP_OK;
}

struct order {
    trp_agent *from, *to;
    int64_t amount, minus;
};

static trp_err
transfer(trp_txn *txn, void *arg)
{
    struct order *o = arg;
    int64_t left;
    trp_agent_get(o->from, &left);
    if (left < o->amount) {
        return TRP_ESTATE; /* nothing is sent */
    }
    trp_err err = trp_agent_send_in(txn, o->from, add, &o->minus, NULL);
    return err != TRP_OK ? err : trp_agent_send_in(txn, o->to, add, &o->amount, NULL);
}

int
main(void)
{
    struct order o = { NULL, NULL, 50, -50 };
    int64_t from = 100, to = 20, value;
    trp_agent *halved;
    trp_system *system;
    trp_stm *stm;
    if (trp_system_new("agents", NULL, &system) != TRP_OK || trp_stm_new(&stm) != TRP_OK ||
        trp_agent_new(system, &from, sizeof from, NULL, &o.from) != TRP_OK ||
        trp_agent_new(system, &to, sizeof to, NULL, &o.to) != TRP_OK) {
        return 1;
    }
    if (trp_stm_run(stm, transfer, &o, NULL) != TRP_OK ||
        trp_agent_send_off(o.to, add, &(int64_t){ 7 }, NULL) != TRP_OK || /* may block */
        trp_agent_await(o.from, 5000, &from) != TRP_OK ||
        trp_agent_await(o.to, 5000, &to) != TRP_OK) {
        return 1;
    }
    printf("%d and %d\n", (int)from, (int)to);
    o.amount = 51;
    printf("%s\n", trp_err_name(trp_stm_run(stm, transfer, &o, NULL)));
    if (trp_agent_map(o.from, half, NULL, sizeof value, &halved) != TRP_OK) {
        return 1;
    }
    trp_agent_get(halved, &value);
    printf("half of it is %d\n", (int)value);
    trp_agent_unref(halved);
    trp_agent_unref(o.from);
    trp_agent_unref(o.to);
    trp_stm_free(stm);
    trp_system_free(system);
    return 0;
}
