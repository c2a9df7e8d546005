/* versions.c - which behaviour is the newest version of an older one.
 *
 * Why.     Regions, routers, singletons and parents remember the behaviour that they start. They
 *          are not told of an upgrade: it is looked up when an actor starts or restarts.
 * Shape.   system->versions -> last upgrade {addresses of older code, newest behaviours} -> the one
 *          before -> ...
 * Must hold.
 *   versions-V1  An entry is written before it is published and never afterwards. It is freed with
 *       the system, since any thread may be reading it.
 *   versions-V2  The first entry that has the address decides: an upgrade names the code of all
 *       versions of its plugin that came before.
 * Limits.  TRPI_UPGRADES_MAX.
 * Cost.    Until the first upgrade a load and a test for each start of an actor.
 * Tests.   tests/unit/actor/upgrade_test.c
 */
#include <string.h>

#include "actor/life/life.h"
#include "actor/life/upgrade.h"
#include "base/alloc.h"

struct trpi_versions {
    struct trpi_versions *before;
    uint32_t number; /* 1 for the first upgrade of the system */
    size_t codes_count, newest_count;
    const trp_behaviour **newest;
    trpi_code codes[];
};

static bool
any_has(const trpi_code *codes, size_t count, const void *address)
{
    bool found = false;

    for (size_t i = 0; i < count && !found; i++) {
        found = trpi_code_has(&codes[i], address);
    }
    return found;
}

bool
trpi_upgrade_is_older(const trpi_upgrade *upgrade, const trp_behaviour *behaviour)
{
    return any_has(upgrade->codes, upgrade->codes_count, behaviour);
}

const trpi_upgrade_row *
trpi_upgrade_row_of(const trpi_upgrade *upgrade, const char *name)
{
    for (size_t i = 0; i < upgrade->rows_count; i++) {
        if (strcmp(upgrade->rows[i].change.behaviour->name, name) == 0) {
            return &upgrade->rows[i];
        }
    }
    return NULL;
}

const trp_behaviour *
trpi_behaviour_newest(trp_system *system, const trp_behaviour *behaviour)
{
    /* acquire: pairs with the release of trpi_versions_add() */
    const struct trpi_versions *versions =
        atomic_load_explicit(&system->versions, memory_order_acquire);

    while (versions != NULL && !any_has(versions->codes, versions->codes_count, behaviour)) {
        versions = versions->before;
    }
    for (size_t i = 0; versions != NULL && i < versions->newest_count; i++) { /* versions-V2 */
        if (strcmp(versions->newest[i]->name, behaviour->name) == 0) {
            return versions->newest[i];
        }
    }
    return behaviour;
}

uint32_t
trpi_upgrades_count(const trp_system *system)
{
    const struct trpi_versions *newest =
        atomic_load_explicit(&system->versions, memory_order_acquire);

    return newest == NULL ? 0 : newest->number;
}

trp_err
trpi_versions_add(trp_system *system, const trpi_upgrade *upgrade)
{
    struct trpi_versions *before = atomic_load_explicit(&system->versions, memory_order_acquire);
    uint32_t number = trpi_upgrades_count(system) + 1;
    struct trpi_versions *next;

    if (number > TRPI_UPGRADES_MAX) {
        return TRP_ELIMIT;
    }
    next = trpi_alloc(sizeof *next + upgrade->codes_count * sizeof next->codes[0]);
    if (next != NULL) {
        next->newest = trpi_alloc((upgrade->rows_count + 1) * sizeof next->newest[0]);
    }
    if (next == NULL || next->newest == NULL) {
        trpi_free(next);
        return TRP_ENOMEM;
    }
    next->before = before;
    next->number = number;
    next->codes_count = upgrade->codes_count;
    next->newest_count = upgrade->rows_count;
    memcpy(next->codes, upgrade->codes, upgrade->codes_count * sizeof next->codes[0]);
    for (size_t i = 0; i < upgrade->rows_count; i++) {
        next->newest[i] = upgrade->rows[i].change.behaviour;
    }
    /* release: versions-V1 */
    atomic_store_explicit(&system->versions, next, memory_order_release);
    return TRP_OK;
}

void
trpi_versions_free(struct trpi_versions *versions)
{
    struct trpi_versions *before;

    for (; versions != NULL; versions = before) {
        before = versions->before;
        trpi_free(versions->newest);
        trpi_free(versions);
    }
}
