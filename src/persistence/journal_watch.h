/* journal_watch.h - who waits for events that this node's actors store. */
#ifndef TRPI_PERSISTENCE_JOURNAL_WATCH_H
#define TRPI_PERSISTENCE_JOURNAL_WATCH_H

#include <stdbool.h>

#include <troupe/actor.h>
#include <troupe/journal.h>

/* One live query, linked in its actor's state. */
typedef struct trpi_journal_watch {
    struct trpi_journal_watch *next, **back; /* back NULL: not listed */
    trp_ref watcher;
    const char *id;  /* of the events; NULL: by tag */
    const char *tag; /* NULL, too: all events */
    bool armed;
} trpi_journal_watch;

/* Tell watcher trpi_journal_wake_type at the next commit of such an event, once. Call it again to
 * be told again. Errors: those of trp_extension_get. */
trp_err trpi_journal_watch_arm(trp_system *system, trpi_journal_watch *watch);
/* Forget it; one that was never armed is fine. */
void trpi_journal_watch_end(trp_system *system, trpi_journal_watch *watch);

extern trp_type trpi_journal_wake_type; /* no payload; registered with the protocol of queries */

#endif
