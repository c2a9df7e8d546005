/* persistence.c - the journal of a system.
 *
 * Shape. An extension of the system holds it: made when it is first asked for, closed when the tree
 *        of actors has ended and its threads have not, since answers are messages to actors.
 * Must hold.
 *   persistence-P1  A system gets one journal, once; readers need no lock. (journal)
 * Tests. tests/unit/persistence/persistence_test.c
 */
#include "persistence/persistent.h"

#include <stdio.h>

#include <troupe/extension.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"

static trp_err
persistence_create(trp_system *system, void *arg, void **ret_instance)
{
    trpi_persistence *own = trpi_alloc(sizeof *own);

    (void)system;
    (void)arg;
    if (own == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&own->lock, NULL);
    *ret_instance = own;
    return TRP_OK;
}

static void
persistence_stop(void *instance)
{
    trpi_persistence *own = instance;
    const trp_journal_driver *driver =
        atomic_exchange_explicit(&own->journal, NULL, memory_order_acq_rel);

    if (driver != NULL && driver->close != NULL) {
        driver->close(driver->arg);
    }
}

static void
persistence_release(void *instance)
{
    trpi_persistence *own = instance;

    trpi_mutex_destroy(&own->lock);
    trpi_free(own);
}

bool
trpi_behaviour_is_persistent(const trp_behaviour *behaviour)
{
    return behaviour->receive == trp_persistent_receive;
}

static const trp_extension extension = { .size = sizeof(trp_extension),
                                         .name = "persistence",
                                         .create = persistence_create,
                                         .stop = persistence_stop,
                                         .release = persistence_release };

trp_err
trp_persistence_start(trp_system *system, const trp_journal_driver *driver,
                      const trp_persistence_options *options)
{
    trp_persistence_options given = TRP_PERSISTENCE_OPTIONS_INIT;
    void *instance = NULL;

    if (system == NULL || driver == NULL || !TRPI_SIZED_FITS(driver, close) ||
        driver->submit == NULL || driver->health == NULL || driver->name == NULL ||
        !TRPI_SIZED_COPY(options, &given, recoveries_max)) {
        return TRP_EINVAL;
    }
    trp_err err = trp_extension_get(system, &extension, &instance);
    if (err != TRP_OK) {
        return err;
    }
    trpi_persistence *own = instance;
    const trp_config *config = trpi_system_config(system);
    pthread_mutex_lock(&own->lock);
    if (atomic_load_explicit(&own->journal, memory_order_relaxed) != NULL) {
        err = TRP_EEXIST;
    } else {
        own->is_local_enough = given.local_store_is_enough != 0 ||
                               trpi_config_bool(config, "persistence.local-store-is-enough");
        own->recoveries_max =
            given.recoveries_max != 0
                ? given.recoveries_max
                : (uint32_t)trpi_config_int(config, "persistence.max-concurrent-recoveries");
        atomic_store_explicit(&own->journal, driver, memory_order_release);
    }
    pthread_mutex_unlock(&own->lock);
    if (err == TRP_OK && trpi_persistence_is_local_enough(system)) {
        trpi_log(system, TRP_LOG_WARNING, "persistence",
                 "what moves to another host starts there without its state: the journal is this "
                 "node's alone, and persistence.local-store-is-enough is on journal=%s",
                 driver->name);
    }
    return err;
}

trpi_persistence *
trpi_persistence_of(trp_system *system, const trp_journal_driver **ret_driver)
{
    void *instance = NULL;

    *ret_driver = NULL;
    if (trp_extension_get(system, &extension, &instance) != TRP_OK) {
        return NULL;
    }
    trpi_persistence *own = instance;
    *ret_driver = atomic_load_explicit(&own->journal, memory_order_acquire);
    return *ret_driver == NULL ? NULL : own;
}

const trp_journal_driver *
trpi_persistence_journal(trp_system *system)
{
    const trp_journal_driver *driver;

    (void)trpi_persistence_of(system, &driver);
    return driver;
}

bool
trpi_persistence_is_local_enough(trp_system *system)
{
    const trp_journal_driver *driver;
    const trpi_persistence *own = trpi_persistence_of(system, &driver);

    return own != NULL && driver->shared == 0 && own->is_local_enough;
}

trp_err
trpi_persistence_require_shared(trp_system *system, const char *what, char *why, size_t why_bytes)
{
    const trp_journal_driver *driver;
    const trpi_persistence *own = trpi_persistence_of(system, &driver);

    if (own == NULL) {
        (void)snprintf(why, why_bytes,
                       "%s needs a journal, and this node has none: set persistence.journal (a "
                       "database that all nodes share, where it may move between hosts)",
                       what);
        return TRP_ESTATE;
    }
    if (driver->shared == 0 && !own->is_local_enough) {
        (void)snprintf(why, why_bytes,
                       "%s may move between hosts, and the journal (%s) is this node's alone: the "
                       "next host would start it without its state. Set persistence.journal to a "
                       "database that all nodes share, or, to take that loss, "
                       "persistence.local-store-is-enough = on",
                       what, driver->name);
        return TRP_ECONFIG;
    }
    return TRP_OK;
}

trp_err
trpi_persistent_scope_set(trp_system *system, trpi_persistent_scope_fn fn, void *arg)
{
    void *instance = NULL;
    trp_err err = trp_extension_get(system, &extension, &instance);

    if (err != TRP_OK) {
        return err;
    }
    trpi_persistence *own = instance;
    pthread_mutex_lock(&own->lock);
    if (own->scope_fn != NULL) {
        err = TRP_EEXIST;
    } else {
        own->scope_fn = fn;
        own->scope_arg = arg;
    }
    pthread_mutex_unlock(&own->lock);
    return err;
}
