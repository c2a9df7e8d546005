/* observed_names.c - figures by name: the first names are kept apart, the others are one.
 *
 * Why.     A label for each actor would make as many series as there are actors. Restarts are
 *          counted by the first two elements of the path, which a program names itself.
 * Limits.  TRPI_OBSERVED_NAMES_MAX names; names that the library makes ("$a") count for the parent.
 * Tests.   tests/unit/actor/observe_test.c
 */
#include <stdio.h>
#include <string.h>

#include "actor/life/life.h"
#include "base/alloc.h"

trpi_observed_name *
trpi_observed_name_get(trpi_observed_names *names, const char *name)
{
    char cut[TRPI_OBSERVED_NAME_BYTES];
    trpi_observed_name *entry;

    (void)snprintf(cut, sizeof cut, "%s", name);
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->entries[i].name, cut) == 0) {
            return &names->entries[i];
        }
    }
    if (names->count == TRPI_OBSERVED_NAMES_MAX || strcmp(cut, "other") == 0) {
        names->has_others = true;
        return &names->others;
    }
    entry = &names->entries[names->count++];
    memset(entry, 0, sizeof *entry);
    (void)snprintf(entry->name, sizeof entry->name, "%s", cut);
    return entry;
}

void
trpi_restart_note(trp_ctx *ctx, const trpi_cell *cell)
{
    trpi_life *life = ctx->system->life;
    char path[TRP_PATH_BYTES_MAX + 1];
    char *second;

    trpi_path_local(ctx->system, trpi_cell_ref(cell), path, sizeof path);
    second = path[0] == '\0' ? NULL : strchr(path + 1, '/');
    if (second != NULL) {
        second[second[1] == '$' ? 0 : 1 + strcspn(second + 1, "/")] = '\0';
    }
    pthread_mutex_lock(&life->restarts_lock);
    if (life->restarts == NULL) {
        life->restarts = trpi_alloc(sizeof *life->restarts);
    }
    if (life->restarts != NULL) { /* else it is not counted by group */
        trpi_observed_name_get(life->restarts, path)->count++;
    }
    pthread_mutex_unlock(&life->restarts_lock);
}

void
trpi_system_restarts(trp_system *system, trpi_observed_names *ret_names)
{
    trpi_life *life = system->life;

    pthread_mutex_lock(&life->restarts_lock);
    if (life->restarts != NULL) {
        *ret_names = *life->restarts;
    } else {
        memset(ret_names, 0, sizeof *ret_names);
    }
    pthread_mutex_unlock(&life->restarts_lock);
}
