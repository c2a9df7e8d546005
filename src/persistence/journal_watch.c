/* journal_watch.c - wakes live queries at commits of this node.
 *
 * Why.  A live query that only polled would be late or costly. Writers of this node say what they
 *       have stored; what other nodes store is found by polling.
 * Must hold.
 *   journal-watch-W1  A query that is armed before it reads misses no commit: what is stored after
 *       its read has begun wakes it.
 * Cost. A commit reads one word while no query is armed, else takes a lock and compares names.
 * Tests. tests/unit/persistence/journal_query_test.c
 */
#include "persistence/journal_watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <troupe/extension.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"
#include "persistence/persistence.h"

typedef struct watches {
    _Atomic uint32_t armed; /* changed under lock; seq_cst: arm before read, commit before look */
    pthread_mutex_t lock;   /* of the list and of what is in it */
    trpi_journal_watch *first;
} watches;

trp_type trpi_journal_wake_type = { .name = "journal-query.priv-wake",
                                    .tag = 100,
                                    .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };

static trp_err
watches_create(trp_system *system, void *arg, void **ret_instance)
{
    watches *all = trpi_alloc(sizeof *all);

    (void)system;
    (void)arg;
    if (all == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&all->lock, NULL);
    *ret_instance = all;
    return TRP_OK;
}

static void
watches_release(void *instance)
{
    watches *all = instance;

    trpi_mutex_destroy(&all->lock);
    trpi_free(all);
}

static const trp_extension extension = { .size = sizeof(trp_extension),
                                         .name = "journal-watches",
                                         .create = watches_create,
                                         .release = watches_release };

trp_err
trpi_journal_watch_arm(trp_system *system, trpi_journal_watch *watch)
{
    void *instance = NULL;
    trp_err err = trp_extension_get(system, &extension, &instance);

    if (err != TRP_OK) {
        return err;
    }
    watches *all = instance;
    pthread_mutex_lock(&all->lock);
    if (watch->back == NULL) {
        watch->next = all->first;
        watch->back = &all->first;
        if (watch->next != NULL) {
            watch->next->back = &watch->next;
        }
        all->first = watch;
    }
    if (!watch->armed) {
        watch->armed = true;
        atomic_fetch_add_explicit(&all->armed, 1, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&all->lock);
    return TRP_OK;
}

void
trpi_journal_watch_end(trp_system *system, trpi_journal_watch *watch)
{
    void *instance = NULL;

    if (watch->back == NULL || trp_extension_get(system, &extension, &instance) != TRP_OK) {
        return;
    }
    watches *all = instance;
    pthread_mutex_lock(&all->lock);
    *watch->back = watch->next;
    if (watch->next != NULL) {
        watch->next->back = watch->back;
    }
    watch->back = NULL;
    if (watch->armed) {
        watch->armed = false;
        atomic_fetch_sub_explicit(&all->armed, 1, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&all->lock);
}

static bool
has_tag(const trp_journal_op *op, const char *tag)
{
    for (uint32_t i = 0; i < op->events_count; i++) {
        for (uint32_t k = 0; k < op->events[i].tags_count; k++) {
            if (strcmp(op->events[i].tags[k], tag) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool
is_wanted(const trpi_journal_watch *watch, const trp_journal_op *op)
{
    return watch->id != NULL    ? strcmp(watch->id, op->id) == 0
           : watch->tag != NULL ? has_tag(op, watch->tag)
                                : true;
}

/* Take up to max watchers that want op; what is taken is armed no more. */
static uint32_t
watchers_take(watches *all, const trp_journal_op *op, trp_ref *ret_refs, uint32_t max)
{
    uint32_t count = 0;

    pthread_mutex_lock(&all->lock);
    for (trpi_journal_watch *w = all->first; w != NULL && count < max; w = w->next) {
        if (w->armed && is_wanted(w, op)) {
            w->armed = false;
            atomic_fetch_sub_explicit(&all->armed, 1, memory_order_seq_cst);
            ret_refs[count++] = w->watcher;
        }
    }
    pthread_mutex_unlock(&all->lock);
    return count;
}

void
trpi_journal_committed(trp_system *system, const trp_journal_op *op)
{
    enum { AT_ONCE = 16 };
    void *instance = NULL;
    trp_ref refs[AT_ONCE];
    uint32_t count = AT_ONCE;

    if (trp_extension_get(system, &extension, &instance) != TRP_OK ||
        atomic_load_explicit(&((watches *)instance)->armed, memory_order_seq_cst) == 0) {
        return;
    }
    trp_ctx *ctx = trpi_enter(system);
    while (count == AT_ONCE) {
        count = watchers_take(instance, op, refs, AT_ONCE);
        for (uint32_t i = 0; i < count; i++) {
            trpi_tell(ctx, refs[i], (trp_ref)TRP_REF_NONE, &trpi_journal_wake_type, NULL, 0);
        }
    }
    trpi_leave(ctx);
}
