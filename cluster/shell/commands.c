/* commands.c - commands to the cluster of this node, with and without waiting. See commands.h. */
#include "cluster/shell/commands.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "cluster/shell/shell.h"

#define COMMAND_TIMEOUT_MS 5000u

trpi_cluster *
trpi_cluster_of(trp_system *system)
{
    return system == NULL ? NULL : trpi_system_cluster_get(system);
}

/* ---- commands -------------------------------------------------------------------------------- */

static trp_err
put_command(trpi_cluster *cluster, struct shell_command *command, trpi_cluster_done_fn fn,
            void *arg)
{
    command->done = fn;
    command->begins = fn == shell_waiter_answer ? shell_waiter_begins : NULL;
    command->arg = arg;
    trp_err err = shell_command_put(cluster, command);
    if (err != TRP_OK) {
        shell_command_free(command);
    }
    return err;
}

trp_err
trpi_cluster_join(trpi_cluster *cluster, const char *const *addresses, size_t count,
                  trpi_cluster_done_fn fn, void *arg)
{
    if (count == 0 || count > TRPI_SEEDS_MAX) {
        return TRP_EINVAL;
    }
    struct shell_command *command = shell_command_new(TRPI_MEMBER_JOIN, 0);
    if (command == NULL) {
        return TRP_ENOMEM;
    }
    command->addresses = trpi_alloc(count * sizeof *command->addresses);
    trp_err err = command->addresses == NULL ? TRP_ENOMEM : TRP_OK;
    for (size_t i = 0; i < count && err == TRP_OK; i++) {
        const char *hint = NULL;
        err = trpi_address_parse(addresses[i], &command->addresses[i], NULL, &hint);
        if (err != TRP_OK) {
            trpi_log(cluster->system, TRP_LOG_ERROR, "cluster", "seed %s: %s", addresses[i],
                     hint == NULL ? "not an address" : hint);
        }
    }
    if (err != TRP_OK) {
        shell_command_free(command);
        return err;
    }
    command->addresses_count = (uint32_t)count;
    return put_command(cluster, command, fn, arg);
}

trp_err
trpi_cluster_seeds_found(trpi_cluster *cluster, const trpi_address *addresses, size_t count,
                         trpi_cluster_done_fn fn, void *arg)
{
    if (count == 0 || count > TRPI_SEEDS_MAX) {
        return TRP_EINVAL;
    }
    struct shell_command *command = shell_command_new(TRPI_MEMBER_SEEDS, 0);
    trpi_address *copy = trpi_alloc(count * sizeof *copy);
    if (command == NULL || copy == NULL) {
        trpi_free(copy);
        shell_command_free(command);
        return TRP_ENOMEM;
    }
    memcpy(copy, addresses, count * sizeof *copy);
    command->addresses = copy;
    command->addresses_count = (uint32_t)count;
    return put_command(cluster, command, fn, arg);
}

static trp_err
order_put(trpi_cluster *cluster, trpi_member_event_kind kind, const char *address, uint64_t uid,
          trpi_cluster_done_fn fn, void *arg)
{
    struct shell_command *command = shell_command_new(kind, 0);
    if (command == NULL) {
        return TRP_ENOMEM;
    }
    command->target.uid = uid;
    if (address != NULL) { /* NULL: this node, which the engine knows by the empty host */
        trp_err err = trpi_address_parse(address, &command->target.address, NULL, NULL);
        if (err != TRP_OK) {
            shell_command_free(command);
            return err;
        }
    }
    return put_command(cluster, command, fn, arg);
}

trp_err
trpi_cluster_leave(trpi_cluster *cluster, const char *address, uint64_t uid,
                   trpi_cluster_done_fn fn, void *arg)
{
    return order_put(cluster, TRPI_MEMBER_LEAVE, address, uid, fn, arg);
}

trp_err
trpi_cluster_down(trpi_cluster *cluster, const char *address, uint64_t uid, trpi_cluster_done_fn fn,
                  void *arg)
{
    return address == NULL ? TRP_EINVAL
                           : order_put(cluster, TRPI_MEMBER_DOWN_CMD, address, uid, fn, arg);
}

trp_err
trpi_cluster_release(trpi_cluster *cluster)
{
    return order_put(cluster, TRPI_MEMBER_RELEASE, NULL, 0, NULL, NULL);
}

void
trpi_cluster_compat_set(trpi_cluster *cluster, const char *key, const char *value)
{
    pthread_mutex_lock(&cluster->engine.lock);
    (void)trpi_member_compat_set(cluster->engine.core, key,
                                 value); /* it has that key from the start */
    pthread_mutex_unlock(&cluster->engine.lock);
}

bool
trpi_cluster_is_member(trpi_cluster *cluster, const trpi_node_id *id)
{
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    uint32_t at = view == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(view, trpi_ident_key(id));
    bool is = at != TRPI_GOSSIP_NONE && view->members[at].status != TRP_MEMBER_DOWN;
    pthread_mutex_unlock(&cluster->engine.lock);
    return is;
}

/* ---- commands that a thread waits for ------------------------------------------------------ */

struct trpi_cluster_order { /* reference-counted: the caller may give up before the actor answers */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    uint32_t refs;
    bool begun, done, given_up;
    trp_err err;
    void (*fn)(void *arg); /* NULL, or run before the answer, unless it was given up */
    void *fn_arg;
    trpi_cluster_patience patience; /* of an order */
};

static struct trpi_cluster_order *
waiter_new(void)
{
    struct trpi_cluster_order *w = trpi_alloc(sizeof *w);
    if (w != NULL) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->answered, &monotonic);
        pthread_condattr_destroy(&monotonic);
        w->refs = 2;
    }
    return w;
}

static void
waiter_drop(struct trpi_cluster_order *w)
{
    pthread_mutex_lock(&w->lock);
    uint32_t left = --w->refs;
    pthread_mutex_unlock(&w->lock);
    if (left == 0) {
        trpi_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->answered);
        trpi_free(w);
    }
}

void
shell_waiter_answer(void *waiter, trp_err err)
{
    struct trpi_cluster_order *w = waiter;
    pthread_mutex_lock(&w->lock);
    if (w->fn != NULL && err == TRP_OK && !w->given_up) {
        w->fn(w->fn_arg); /* under this lock: the waiter cannot give up meanwhile */
    }
    w->done = true;
    w->err = err;
    pthread_cond_signal(&w->answered);
    pthread_mutex_unlock(&w->lock);
    waiter_drop(w);
}

/* The waiter cannot give up while this lock is held: is_wanted's argument is valid. */
bool
shell_waiter_begins(void *waiter)
{
    struct trpi_cluster_order *w = waiter;
    pthread_mutex_lock(&w->lock);
    const trpi_cluster_patience *p = &w->patience;
    w->begun = !w->given_up && (p->is_wanted == NULL || p->is_wanted(p->arg));
    bool begun = w->begun;
    pthread_mutex_unlock(&w->lock);
    return begun;
}

/* With the lock. false: no answer in that time. */
static bool
waiter_wait_for(struct trpi_cluster_order *w, uint32_t ms)
{
    struct timespec until;
    /* of the condition variable, not of the system's world */
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!w->done && pthread_cond_timedwait(&w->answered, &w->lock, &until) != ETIMEDOUT) {
    }
    return w->done;
}

/* Called with the lock, which it releases: return the answer so far, and stop waiting. */
static trp_err
waiter_give_up(struct trpi_cluster_order *w)
{
    /* begun, and no answer: a refusal would have come; the change takes its time to spread */
    trp_err err = w->done ? w->err : w->begun ? TRP_OK : TRP_ETIMEDOUT;
    w->given_up = !w->done;
    pthread_mutex_unlock(&w->lock);
    waiter_drop(w);
    return err;
}

static trp_err
waiter_wait(struct trpi_cluster_order *w)
{
    uint32_t begin_ms = w->patience.begin_ms;
    pthread_mutex_lock(&w->lock);
    bool done = waiter_wait_for(w, begin_ms == 0 ? COMMAND_TIMEOUT_MS : begin_ms);
    if (!done && w->begun) { /* it is being carried out, and cannot be taken back */
        (void)waiter_wait_for(w, COMMAND_TIMEOUT_MS);
    }
    return waiter_give_up(w);
}

trp_err
trpi_cluster_between(trpi_cluster *cluster, void (*fn)(void *arg), void *arg)
{
    struct trpi_cluster_order *w = waiter_new();
    struct shell_command *command = w == NULL ? NULL : shell_command_new(0, 0);
    trp_err err = command == NULL ? TRP_ENOMEM : TRP_OK;
    if (err == TRP_OK) {
        w->fn = fn;
        w->fn_arg = arg;
        command->done = shell_waiter_answer;
        command->arg = w;
        err = shell_command_put(cluster, command);
    }
    if (err != TRP_OK) {
        shell_command_free(command);
        if (w != NULL) {
            waiter_drop(w);
            waiter_drop(w);
        }
        return err;
    }
    return waiter_wait(w);
}

trp_err
trpi_cluster_order_begin(trpi_cluster *cluster, trpi_member_event_kind kind,
                         const char *const *addresses, size_t count, uint64_t uid,
                         const trpi_cluster_patience *patience, trpi_cluster_order **ret_order)
{
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    struct trpi_cluster_order *w = waiter_new();
    if (w == NULL) {
        return TRP_ENOMEM;
    }
    if (patience != NULL) {
        w->patience = *patience;
    }
    const char *first = count > 0 ? addresses[0] : NULL;
    trpi_cluster_done_fn fn = shell_waiter_answer;
    trp_err err = kind == TRPI_MEMBER_JOIN ? trpi_cluster_join(cluster, addresses, count, fn, w)
                                           : order_put(cluster, kind, first, uid, fn, w);
    if (err != TRP_OK) {
        waiter_drop(w);
        waiter_drop(w);
        return err == TRP_ECLOSED ? TRP_ESTATE : err;
    }
    *ret_order = w;
    return TRP_OK;
}

trp_err
trpi_cluster_order_end(trpi_cluster_order *order)
{
    pthread_mutex_lock(&order->lock);
    return waiter_give_up(order);
}

/* Run an order and wait for the engine's answer. cluster NULL: there is none. */
static trp_err
order_and_wait(trpi_cluster *cluster, trpi_member_event_kind kind, const char *const *addresses,
               size_t count, uint64_t uid, const trpi_cluster_patience *patience)
{
    trpi_cluster_order *order = NULL;
    trp_err err = trpi_cluster_order_begin(cluster, kind, addresses, count, uid, patience, &order);
    return err != TRP_OK ? err : waiter_wait(order);
}

trp_err
trpi_cluster_join_and_wait(trpi_cluster *cluster, const char *const *addresses, size_t count,
                           const trpi_cluster_patience *patience)
{
    if (addresses == NULL || count == 0) {
        return TRP_EINVAL;
    }
    return order_and_wait(cluster, TRPI_MEMBER_JOIN, addresses, count, 0, patience);
}

trp_err
trpi_cluster_leave_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                            const trpi_cluster_patience *patience)
{
    return order_and_wait(cluster, TRPI_MEMBER_LEAVE, &address, address == NULL ? 0 : 1, uid,
                          patience);
}

trp_err
trpi_cluster_down_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid, bool dead,
                           const trpi_cluster_patience *patience)
{
    return address == NULL
               ? TRP_EINVAL
               : order_and_wait(cluster, dead ? TRPI_MEMBER_DEAD_CMD : TRPI_MEMBER_DOWN_CMD,
                                &address, 1, uid, patience);
}

trp_err
trpi_cluster_drain_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid, bool drain,
                            const trpi_cluster_patience *patience)
{
    return order_and_wait(cluster, drain ? TRPI_MEMBER_DRAIN : TRPI_MEMBER_UNDRAIN, &address,
                          address == NULL ? 0 : 1, uid, patience);
}

trp_err
trp_cluster_join(trp_system *system, const char *const *addresses, size_t count)
{
    return trpi_cluster_join_and_wait(trpi_cluster_of(system), addresses, count, NULL);
}

trp_err
trp_cluster_leave(trp_system *system, const char *address)
{
    return trpi_cluster_leave_and_wait(trpi_cluster_of(system), address, 0, NULL);
}

trp_err
trp_cluster_down(trp_system *system, const char *address)
{
    return trpi_cluster_down_and_wait(trpi_cluster_of(system), address, 0, false, NULL);
}

/* ---- the lease ------------------------------------------------------------------------------- */

bool
trpi_cluster_has_lease(trpi_cluster *cluster)
{
    return trpi_lease_is_set(cluster->lease);
}

void
trpi_cluster_lease_keep(trpi_cluster *cluster, void (*end)(void *arg), void *arg)
{
    trpi_lease_keep(cluster->lease, end, arg);
}

trp_err
trp_cluster_lease_set(trp_system *system, const trp_lease_ops *ops, void *arg)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    trp_lease_ops own;
    if (ops == NULL || !TRPI_SIZED_TAKE(ops, &own, release) || ops->acquire == NULL ||
        ops->release == NULL) {
        return TRP_EINVAL;
    }
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    trpi_lease_set(cluster->lease, ops, arg);
    return TRP_OK;
}
