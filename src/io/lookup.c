/* lookup.c - see the header.
 *
 * Shape.   manager: command with a name -> resolver, on its threads -> the same command with
 *          addresses -> manager. In a driven world the resolver is asked in the manager's turn.
 * Must hold.
 *   io-lookup-L1  An answer that comes after the end of the system touches nothing of it: both it
 *       and the end hold the lock.
 * Threads. One lock, around a tell and around lists.
 * Tests.   tests/unit/io/lookup_test.c
 * Sources. TCP-01, TCP-05
 */
#include "io/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

struct trpi_io_lookups {
    pthread_mutex_t lock;
    uint32_t references; /* lock; the owner's, and of each question */
    bool ended;          /* lock */
    trp_system *system;
    trpi_world *world;
    trpi_resolve_fn resolve;
    trpi_resolver *resolver;
};

typedef struct question {
    trpi_io_lookups *lookups;
    trpi_io_target *target; /* in msg */
    trp_ref to, sender;
    trp_msg *msg;
} question;

trp_err
trpi_io_lookups_new(trp_system *system, trpi_world *world, trpi_resolve_fn resolve,
                    trpi_io_lookups **ret_lookups)
{
    trpi_io_lookups *lookups = trpi_alloc(sizeof *lookups);

    if (lookups == NULL) {
        return TRP_ENOMEM;
    }
    if (trpi_resolver_new(world, resolve, &lookups->resolver) != TRP_OK) {
        trpi_free(lookups);
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&lookups->lock, NULL);
    lookups->references = 1;
    lookups->system = system;
    lookups->world = world;
    lookups->resolve = resolve;
    *ret_lookups = lookups;
    return TRP_OK;
}

/* The lock is held; it is given back. */
static void
lookups_unref_unlock(trpi_io_lookups *lookups)
{
    bool last = --lookups->references == 0;

    pthread_mutex_unlock(&lookups->lock);
    if (last) {
        trpi_mutex_destroy(&lookups->lock);
        trpi_free(lookups);
    }
}

void
trpi_io_lookups_end(trpi_io_lookups *lookups)
{
    if (lookups == NULL) {
        return;
    }
    pthread_mutex_lock(&lookups->lock);
    lookups->ended = true; /* io-lookup-L1 */
    pthread_mutex_unlock(&lookups->lock);
    trpi_resolver_free(lookups->resolver);
    pthread_mutex_lock(&lookups->lock);
    lookups_unref_unlock(lookups);
}

/* Write what was found into a target. */
static void
target_fill(trpi_io_target *target, const trpi_resolved *resolved)
{
    const char *port = strrchr(target->text, ':'); /* trpi_io_target_set() saw to it */

    for (uint32_t i = 0; i < resolved->count && target->count < TRPI_IO_ADDRESSES_MAX; i++) {
        const char *host = resolved->hosts[i];
        bool v6 = strchr(host, ':') != NULL;
        char text[TRPI_NUMERIC_BYTES + 16];

        (void)snprintf(text, sizeof text, "%s%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
        if (trp_io_address_parse(text, &target->addresses[target->count]) == TRP_OK) {
            target->count++;
        }
    }
    target->error = target->count == 0 ? EADDRNOTAVAIL : 0;
}

static void
on_resolved(void *arg, const trpi_resolved *resolved)
{
    question *q = arg;
    trpi_io_lookups *lookups = q->lookups;

    pthread_mutex_lock(&lookups->lock);
    if (!lookups->ended) {
        trp_ctx *ctx = trpi_enter(lookups->system);

        target_fill(q->target, resolved);
        trpi_send_as(ctx, q->to, q->sender, q->msg);
        trpi_leave(ctx);
        q->msg = NULL;
    }
    lookups_unref_unlock(lookups);
    trp_msg_free(q->msg);
    trpi_free(q);
}

trp_err
trpi_io_lookup(trpi_io_lookups *lookups, trp_ctx *ctx, trpi_io_target *target, trp_ref to,
               trp_ref sender, trp_msg *msg)
{
    char host[TRP_IO_ADDRESS_BYTES_MAX];
    trpi_resolved resolved = { 0 };
    question *q;
    trp_err err;

    trpi_io_target_host(target, host);
    if (trpi_world_is_driven(lookups->world)) {
        lookups->resolve(host, &resolved);
        target_fill(target, &resolved);
        trpi_send_as(ctx, to, sender, msg);
        return TRP_OK;
    }
    if (trpi_resolver_now(lookups->resolver, host, &resolved)) {
        target_fill(target, &resolved);
        trpi_send_as(ctx, to, sender, msg);
        return TRP_OK;
    }
    q = trpi_alloc(sizeof *q);
    if (q == NULL) {
        return TRP_ENOMEM;
    }
    *q = (question){ lookups, target, to, sender, msg };
    pthread_mutex_lock(&lookups->lock);
    lookups->references++;
    pthread_mutex_unlock(&lookups->lock);
    err = trpi_resolver_start(lookups->resolver, host, on_resolved, q);
    if (err != TRP_OK) {
        pthread_mutex_lock(&lookups->lock);
        lookups_unref_unlock(lookups);
        trpi_free(q);
    }
    return err;
}

void
trpi_io_lookup_forget(trpi_io_lookups *lookups, const trpi_io_target *target)
{
    char host[TRP_IO_ADDRESS_BYTES_MAX];
    trp_io_address numeric;

    if (trp_io_address_parse(target->text, &numeric) != TRP_OK) {
        trpi_io_target_host(target, host);
        trpi_resolver_forget(lookups->resolver, host);
    }
}
