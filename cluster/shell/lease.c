/* lease.c - calls the lease on a thread of its own, since a call may hang without a limit.
 *
 * Shape.   engine --acquire--> job (counted: the lease's, the thread's) --> thread --> ops.acquire
 *                                                                             `--> answer
 * Must hold.
 *   lease-L1  After close no answer comes, and nothing waits for a thread that hangs: it holds its
 *       job, and the object kept with it (trpi_lease_keep).
 *   lease-L2  One call of the ops at a time (busy); a request that comes meanwhile is done after
 *       it.
 *   lease-L3  Close releases a lease that may be released: itself, or by the busy thread when its
 *       call ends. A lease that must be kept expires as the lease defines, with its owner.
 * Tests.   tests/unit/cluster/lease_test.c
 */
#include "cluster/shell/lease.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"

enum wish { WISH_NONE, WISH_ACQUIRE, WISH_RELEASE };

struct trpi_lease {
    pthread_mutex_t lock; /* a leaf; not held while ops or answer run */
    uint32_t refs;        /* its owner, its thread */
    pthread_cond_t answered;
    bool answering;    /* the thread is in answer */
    bool busy, closed; /* with lock, as all that follows */
    enum wish next;    /* requests for the thread after the present call */
    trp_lease_ops ops; /* acquire NULL: none is set */
    void *ops_arg;
    trpi_lease_answer_fn answer;
    void *arg;
    uint32_t timeout_ms;
    void (*end)(void *arg); /* frees the kept object; NULL: none is kept */
    void *kept;
    char name[TRP_LEASE_NAME_BYTES_MAX + 1];
    char owner[TRPI_LEASE_OWNER_BYTES];
};

_Static_assert(TRP_LEASE_OWNER_BYTES_MAX + TRP_LEASE_NAME_BYTES_MAX + sizeof(" (lease ) has it") <=
                   TRP_LEASE_WHY_BYTES,
               "a refusal has room for the longest owner and the longest name");

trp_err
trpi_lease_new(const char *name, const char *owner, uint32_t timeout_ms,
               trpi_lease_answer_fn answer, void *arg, trpi_lease **ret_lease)
{
    trpi_lease *lease = trpi_alloc(sizeof *lease);
    if (lease == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&lease->lock, NULL);
    pthread_cond_init(&lease->answered, NULL);
    lease->refs = 1;
    lease->answer = answer;
    lease->arg = arg;
    lease->timeout_ms = timeout_ms;
    (void)snprintf(lease->name, sizeof lease->name, "%s", name);
    (void)snprintf(lease->owner, sizeof lease->owner, "%s", owner);
    *ret_lease = lease;
    return TRP_OK;
}

static void
lease_unref(trpi_lease *lease)
{
    pthread_mutex_lock(&lease->lock);
    bool last = --lease->refs == 0;
    pthread_mutex_unlock(&lease->lock);
    if (last) {
        if (lease->end != NULL) {
            lease->end(lease->kept);
        }
        pthread_cond_destroy(&lease->answered);
        trpi_mutex_destroy(&lease->lock);
        trpi_free(lease);
    }
}

void
trpi_lease_set(trpi_lease *lease, const trp_lease_ops *ops, void *arg)
{
    pthread_mutex_lock(&lease->lock);
    lease->ops = *ops;
    lease->ops_arg = arg;
    pthread_mutex_unlock(&lease->lock);
}

void
trpi_lease_keep(trpi_lease *lease, void (*end)(void *arg), void *arg)
{
    pthread_mutex_lock(&lease->lock);
    lease->end = end;
    lease->kept = arg;
    pthread_mutex_unlock(&lease->lock);
}

bool
trpi_lease_is_set(trpi_lease *lease)
{
    pthread_mutex_lock(&lease->lock);
    bool set = lease->ops.acquire != NULL;
    pthread_mutex_unlock(&lease->lock);
    return set;
}

/* Carry out requests until none is left. Holds a reference. */
static void *
lease_work(void *arg)
{
    trpi_lease *lease = arg;
    pthread_mutex_lock(&lease->lock);
    while (lease->next != WISH_NONE) {
        enum wish wish = lease->next;
        trp_lease_ops ops = lease->ops;
        void *ops_arg = lease->ops_arg;
        char why[TRP_LEASE_WHY_BYTES] = "no lease is set";
        trp_err err = TRP_ENOENT;
        lease->next = WISH_NONE;
        pthread_mutex_unlock(&lease->lock);
        if (ops.acquire != NULL && wish == WISH_ACQUIRE) {
            why[0] = '\0';
            err =
                ops.acquire(ops_arg, lease->name, lease->owner, lease->timeout_ms, why, sizeof why);
        } else if (ops.acquire != NULL) {
            ops.release(ops_arg, lease->name, lease->owner);
        }
        pthread_mutex_lock(&lease->lock);
        bool silent = lease->closed || wish != WISH_ACQUIRE;
        lease->answering = !silent;
        pthread_mutex_unlock(&lease->lock);
        if (!silent) {
            lease->answer(lease->arg, err == TRP_OK,
                          why[0] != '\0'  ? why
                          : err == TRP_OK ? NULL
                                          : trp_strerror(err));
        }
        pthread_mutex_lock(&lease->lock);
        lease->answering = false;
        pthread_cond_broadcast(&lease->answered);
    }
    lease->busy = false;
    pthread_mutex_unlock(&lease->lock);
    lease_unref(lease);
    return NULL;
}

static void
wish_for(trpi_lease *lease, enum wish wish, bool inside)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_mutex_lock(&lease->lock);
    if (lease->closed) { /* lease-L3: the request of close is the last one */
        pthread_mutex_unlock(&lease->lock);
        return;
    }
    lease->next = wish;
    bool start = !lease->busy; /* lease-L2 */
    lease->busy = true;
    lease->refs += start ? 1 : 0;
    pthread_mutex_unlock(&lease->lock);
    if (!start) {
        return;
    }
    if (inside) {
        (void)lease_work(lease);
        return;
    }
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, lease_work, lease);
    (void)pthread_attr_destroy(&attributes);
    if (failed != 0) { /* a request without an answer counts as refused after operation-timeout */
        pthread_mutex_lock(&lease->lock);
        lease->busy = false;
        lease->next = WISH_NONE;
        pthread_mutex_unlock(&lease->lock);
        lease_unref(lease);
    }
}

void
trpi_lease_acquire(trpi_lease *lease, bool inside)
{
    wish_for(lease, WISH_ACQUIRE, inside);
}

void
trpi_lease_release(trpi_lease *lease, bool inside)
{
    wish_for(lease, WISH_RELEASE, inside);
}

void
trpi_lease_close(trpi_lease *lease, bool give_back)
{
    if (lease == NULL) {
        return;
    }
    pthread_mutex_lock(&lease->lock);
    lease->closed = true;
    lease->next = WISH_NONE;
    while (lease->answering) { /* a moment: lease-L1 */
        pthread_cond_wait(&lease->answered, &lease->lock);
    }
    /* lease-L3; only now: the thread that was in answer has nothing more to do, and has ended */
    bool now = give_back && !lease->busy && lease->ops.acquire != NULL;
    lease->next = give_back && lease->busy ? WISH_RELEASE : WISH_NONE;
    trp_lease_ops ops = lease->ops;
    pthread_mutex_unlock(&lease->lock);
    if (now) {
        ops.release(lease->ops_arg, lease->name, lease->owner);
    }
    lease_unref(lease);
}
