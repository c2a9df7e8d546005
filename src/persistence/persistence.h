/* persistence.h - the door of the persistence room: functions for the rooms above it. */
#ifndef TRPI_PERSISTENCE_PERSISTENCE_H
#define TRPI_PERSISTENCE_PERSISTENCE_H

#include <stdbool.h>

#include <troupe/journal.h>
#include <troupe/persistence.h>

#include "base/config.h"

/* Return the journal of a system, borrowed until its actors have ended; NULL: it has none. Thread:
 * any; lock-free. */
const trp_journal_driver *trpi_persistence_journal(trp_system *system);

/* May what moves between hosts be kept in the system's journal? what: "singleton 'billing'", the
 * subject of the sentence in why that says what to configure. Errors: TRP_ESTATE (there is no
 * journal), TRP_ECONFIG (it is this node's alone, and persistence.local-store-is-enough is off).
 * Thread: any. */
#define TRPI_PERSISTENCE_WHY_BYTES 512
trp_err trpi_persistence_require_shared(trp_system *system, const char *what, char *why,
                                        size_t why_bytes);
/* Is the journal this node's alone, and allowed to be? Then what moves between hosts does not find
 * its state there. Thread: any. */
bool trpi_persistence_is_local_enough(trp_system *system);

/* Wake the live queries of this node that want an event of op, an APPEND that is done: each writer
 * calls it. One load while no query waits. Thread: any. */
void trpi_journal_committed(trp_system *system, const trp_journal_op *op);

/* ---- who writes, of an actor that another one owns ----------------------------------------------
 * Say, on the thread of a persistent actor that starts (ctx: its own), how it is called and whose
 * epoch it writes with: id and scope have room for the longest ones and their NUL. false: it is
 * not this function's; it keeps its own id, and claims an epoch. */
typedef bool (*trpi_persistent_scope_fn)(void *arg, trp_ctx *ctx, char *id, char *scope,
                                         uint64_t *epoch);
/* Set it for a system, once. Errors: TRP_EEXIST, TRP_ENOMEM, TRP_ECLOSED. Thread: any. */
trp_err trpi_persistent_scope_set(trp_system *system, trpi_persistent_scope_fn fn, void *arg);
/* Is it the behaviour of a persistent actor? */
bool trpi_behaviour_is_persistent(const trp_behaviour *behaviour);
/* Does one with this state recover, write or keep commands back? Else it can be recovered anew and
 * nothing is lost. Thread: its runner. */
bool trpi_persistent_is_busy(const void *state);

/* ---- behind the commands of a persistent actor --------------------------------------------------
 * A message that stands in the order of its commands and is none: when those before it have been
 * handled, and what they persisted by trp_persist() is stored, reached() is called as the actor.
 * Without memory, or when the actor ends before, it may never be: gone() is called instead. */
typedef struct trpi_behind {
    void (*reached)(trp_ctx *ctx, void *arg);
    void (*gone)(void *arg); /* NULL: nothing. Thread: any */
    void *arg;
    bool was_reached;
} trpi_behind;
/* Make one, to be sent. Gives *ret_msg. Errors: TRP_ENOMEM, and nothing is called. Thread: any. */
trp_err trpi_behind_new(void (*reached)(trp_ctx *ctx, void *arg), void (*gone)(void *arg),
                        void *arg, trp_msg **ret_msg);

extern const struct trpi_type_part trpi_persistence_types;

/* Keys of the configuration (keys.c). */
extern const trpi_config_part trpi_persistence_keys;

#endif
