/* upgrade.h - new code for living actors: from one version of a behaviour to the next one.
 *
 * A behaviour is static data, in the program or in a shared object that stays mapped. A newer
 * version of it is another descriptor with the same name, elsewhere in memory. After an upgrade
 * each start and restart of an actor uses the newer one, wherever the older one is remembered (a
 * region, a router, a parent); living actors are changed one by one, each between two messages.
 */
#ifndef TRPI_ACTOR_LIFE_UPGRADE_H
#define TRPI_ACTOR_LIFE_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/actor.h>

#define TRPI_UPGRADES_MAX 64u /* of a system, of all its plugins together */
#define TRPI_UPGRADE_WHY_BYTES (TRP_FAILURE_REASON_BYTES + 128u)

/* Addresses of one shared object. */
typedef struct trpi_code {
    uintptr_t low, high;
} trpi_code;

static inline bool
trpi_code_has(const trpi_code *code, const void *address)
{
    return (uintptr_t)address >= code->low && (uintptr_t)address < code->high;
}

/* The change that actors of one behaviour make. */
typedef struct trpi_upgrade_row {
    trp_code_change change; /* the newer version, and how it takes a state over */
    /* its state comes from a journal: it is restarted, and recovers with the newer code */
    bool recovers;
    bool (*is_busy)(const void *state); /* of those that recover: not now. NULL: never */
} trpi_upgrade_row;

/* An upgrade: behaviours in `codes` give way to the row of the same name. Borrowed. */
typedef struct trpi_upgrade {
    const trpi_upgrade_row *rows;
    size_t rows_count;
    const trpi_code *codes; /* of all older versions */
    size_t codes_count;
} trpi_upgrade;

typedef struct trpi_upgraded {
    uint64_t changed, kept;
} trpi_upgraded;

/* Called for each actor that keeps its old code. Thread: the caller's of trpi_upgrade_run(). */
struct trpi_cell;
typedef void (*trpi_upgrade_kept_fn)(void *arg, const char *path, const char *why);

/* Is the upgrade still wanted? Asked some times a second, with no lock held. Thread: as above. */
typedef bool (*trpi_upgrade_wanted_fn)(void *arg);

/* Return the newest version of a behaviour; itself if there is no newer one. Thread: any;
 * lock-free. */
const trp_behaviour *trpi_behaviour_newest(trp_system *system, const trp_behaviour *behaviour);
/* Give an actor that starts the newest version of its behaviour. Others may read which one it has:
 * nothing is written where it is the newest. Thread: that of the actor. */
void trpi_behaviour_renew(trp_system *system, struct trpi_cell *cell);

/* May all actors that live now be changed? why says what prevents it. Nothing is changed.
 * Errors: TRP_EUNSUPPORTED, TRP_ENOMEM. Thread: any. */
trp_err trpi_upgrade_check(trp_system *system, const trpi_upgrade *upgrade, char *why,
                           size_t why_bytes);
/* Change them, and let actors that start from now on use the newer code. Waits for those that are
 * in a turn, or busy, until deadline_ns of the world's clock: what has not changed by then keeps
 * its code, as one does whose change fails. One whose code_change has not returned by then is
 * counted as kept, and changes when it does. When it is no longer wanted (NULL: it always is), that
 * moment is the deadline.
 * Errors: TRP_ELIMIT (TRPI_UPGRADES_MAX), TRP_ENOMEM: nothing was changed.
 * Thread: any, one at a time; may block; never from a behaviour. */
trp_err trpi_upgrade_run(trp_system *system, const trpi_upgrade *upgrade, uint64_t deadline_ns,
                         trpi_upgrade_kept_fn kept, trpi_upgrade_wanted_fn wanted, void *arg,
                         trpi_upgraded *ret_upgraded);

/* ---- of the room ----------------------------------------------------------------------------- */
/* An order to change has come. runner; takes job. */
void trpi_upgrade_order(trp_ctx *ctx, struct trpi_cell *cell, void *job, uint64_t number);
void trpi_upgrade_gone(void *job, uint64_t number); /* its actor has ended. Takes job */
/* How many the system has had. Thread: that of trpi_upgrade_run(). */
uint32_t trpi_upgrades_count(const trp_system *system);
struct trpi_versions;
/* versions.c. Errors: TRP_ELIMIT, TRP_ENOMEM. Thread: any, one at a time. */
trp_err trpi_versions_add(trp_system *system, const trpi_upgrade *upgrade);
void trpi_versions_free(struct trpi_versions *versions); /* NULL is fine */
/* Is it of an older version? */
bool trpi_upgrade_is_older(const trpi_upgrade *upgrade, const trp_behaviour *behaviour);
/* NULL: there is none of that name. */
const trpi_upgrade_row *trpi_upgrade_row_of(const trpi_upgrade *upgrade, const char *name);

#endif
