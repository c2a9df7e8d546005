/* persistence_test.c - the journal of a system, and what may use one that only this node sees. */
#include "tests/unit/unit.h"

#include <string.h>

#include <troupe/persistence.h>
#include <troupe/system.h>

#include "persistence/persistence.h"

static trp_system *
system_start(void)
{
    trp_system *system = NULL;

    UNIT_EQUAL(trp_system_new("demo", NULL, &system), TRP_OK);
    return system;
}

static void
system_end(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 10000), TRP_OK);
    trp_system_free(system);
}

static void
a_system_has_the_journal_that_it_was_given_and_no_second_one(void)
{
    trp_system *system = system_start();
    trp_journal_memory *memory = NULL;

    UNIT_EQUAL(trp_journal_memory_new(&memory), TRP_OK);
    const trp_journal_driver *driver = trp_journal_memory_driver(memory);
    UNIT_TRUE(trpi_persistence_journal(system) == NULL);
    UNIT_EQUAL(trp_persistence_start(system, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_persistence_start(NULL, driver, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_persistence_start(system, driver, NULL), TRP_OK);
    UNIT_TRUE(trpi_persistence_journal(system) == driver);
    UNIT_EQUAL(trp_persistence_start(system, driver, NULL), TRP_EEXIST);
    system_end(system);
    trp_journal_memory_free(memory);
}

static int closes;

static void
count_close(void *arg)
{
    (void)arg;
    closes++;
}

static void
the_journal_is_closed_once_when_the_actors_have_ended(void)
{
    trp_system *system = system_start();
    trp_journal_memory *memory = NULL;

    UNIT_EQUAL(trp_journal_memory_new(&memory), TRP_OK);
    trp_journal_driver driver = *trp_journal_memory_driver(memory);
    driver.close = count_close;
    closes = 0;
    UNIT_EQUAL(trp_persistence_start(system, &driver, NULL), TRP_OK);
    UNIT_EQUAL(closes, 0);
    system_end(system);
    UNIT_EQUAL(closes, 1);
    trp_journal_memory_free(memory);
}

static void
what_moves_is_refused_without_a_journal_and_over_one_of_this_node(void)
{
    char why[TRPI_PERSISTENCE_WHY_BYTES] = "";
    trp_system *system = system_start();
    trp_journal_memory *memory = NULL;

    UNIT_EQUAL(trpi_persistence_require_shared(system, "singleton 'bill'", why, sizeof why),
               TRP_ESTATE);
    UNIT_TRUE(strncmp(why, "singleton 'bill' needs a journal", 32) == 0);
    UNIT_EQUAL(trp_journal_memory_new(&memory), TRP_OK);
    trp_journal_memory_shared(memory, 0);
    UNIT_EQUAL(trp_persistence_start(system, trp_journal_memory_driver(memory), NULL), TRP_OK);
    UNIT_EQUAL(trpi_persistence_require_shared(system, "singleton 'bill'", why, sizeof why),
               TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "persistence.local-store-is-enough = on") != NULL);
    UNIT_FALSE(trpi_persistence_is_local_enough(system));
    system_end(system);
    trp_journal_memory_free(memory);
}

static void
what_moves_may_use_a_shared_journal_and_a_local_one_that_is_enough(void)
{
    char why[TRPI_PERSISTENCE_WHY_BYTES] = "";

    for (int shared = 0; shared <= 1; shared++) {
        trp_persistence_options options = TRP_PERSISTENCE_OPTIONS_INIT;
        trp_system *system = system_start();
        trp_journal_memory *memory = NULL;

        options.local_store_is_enough = 1;
        UNIT_EQUAL(trp_journal_memory_new(&memory), TRP_OK);
        trp_journal_memory_shared(memory, shared);
        UNIT_EQUAL(trp_persistence_start(system, trp_journal_memory_driver(memory), &options),
                   TRP_OK);
        UNIT_EQUAL(trpi_persistence_require_shared(system, "x", why, sizeof why), TRP_OK);
        UNIT_EQUAL(trpi_persistence_is_local_enough(system), !shared);
        system_end(system);
        trp_journal_memory_free(memory);
    }
}

UNIT_BEGIN("persistence")
UNIT(a_system_has_the_journal_that_it_was_given_and_no_second_one)
UNIT(the_journal_is_closed_once_when_the_actors_have_ended)
UNIT(what_moves_is_refused_without_a_journal_and_over_one_of_this_node)
UNIT(what_moves_may_use_a_shared_journal_and_a_local_one_that_is_enough)
UNIT_END
