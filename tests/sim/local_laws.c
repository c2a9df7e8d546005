/* local_laws.c - do the laws of local_ledger.h hold? */
#include "tests/sim/local_ledger.h"

#include <stddef.h>
#include <string.h>

uint64_t
stashed_now(world *w)
{
    uint64_t stashed = 0;

    for (uint32_t id = 1; id < actors_of(w); id++) {
        pthread_mutex_lock(&w->entries[id].lock);
        stashed += w->entries[id].stashed;
        pthread_mutex_unlock(&w->entries[id].lock);
    }
    return stashed;
}

/* A copy of an entry, so that it can be looked at without its lock. */
static void
entry_copy(world *w, uint32_t id, entry *ret_entry)
{
    entry *e = &w->entries[id];

    pthread_mutex_lock(&e->lock);
    memcpy(ret_entry, e, offsetof(entry, random));
    pthread_mutex_unlock(&e->lock);
}

static uint64_t
sent_to(world *w, uint32_t id)
{
    uint64_t sent = 0;

    for (uint32_t from = 0; from < actors_of(w); from++) {
        pthread_mutex_lock(&w->entries[from].lock);
        sent += w->entries[from].sent[id];
        pthread_mutex_unlock(&w->entries[from].lock);
    }
    return sent;
}

/* Whose jobs are missing? Names the first; words has room for it. */
static void
say_who(world *w, char *words, size_t bytes)
{
    for (uint32_t id = 1; id < actors_of(w); id++) {
        uint64_t sent = sent_to(w, id);
        char path[256];
        entry e;

        entry_copy(w, id, &e);
        if (sent != (uint64_t)e.handled + e.dead + e.stashed) {
            size_t used = strlen(words);

            snprintf(words + used, bytes - used,
                     "; actor %u (%.80s, %u starts, %u stops): sent %u, handled %u, dead %u, "
                     "stashed %u",
                     id, trp_path(w->system, e.ref, path, sizeof path), e.starts, e.stops,
                     (unsigned)sent, e.handled, e.dead, e.stashed);
            return;
        }
    }
}

static const char *
watches_are_answered(world *w)
{
    static _Thread_local char words[160];

    for (uint32_t id = 1; id < actors_of(w); id++) {
        entry e;

        entry_copy(w, id, &e);
        for (uint32_t other = 1; e.running && other < actors_of(w); other++) {
            bool gone;

            pthread_mutex_lock(&w->entries[other].lock);
            gone = w->entries[other].starts > 0 && !w->entries[other].running;
            pthread_mutex_unlock(&w->entries[other].lock);
            if (e.watch[other] == WATCH_ON && gone) {
                snprintf(words, sizeof words,
                         "ledger-L2: actor %u was not told the end of actor %u", id, other);
                return words;
            }
        }
        if (e.running && e.asks_open != 0) {
            snprintf(words, sizeof words, "ledger-L5: %u asks of actor %u are open", e.asks_open,
                     id);
            return words;
        }
    }
    return NULL;
}

const char *
laws_at_rest(void *arg)
{
    static _Thread_local char words[400];
    world *w = arg;
    uint64_t received = atomic_load(&w->received), dead = atomic_load(&w->dead);
    uint64_t stashed = stashed_now(w), sent = atomic_load(&w->sent);

    if (atomic_load(&w->broken) != 0) {
        return w->words;
    }
    if (sent != received + dead + stashed) {
        snprintf(words, sizeof words, "ledger-L1: sent %llu, handled %llu, dead %llu, stashed %llu",
                 (unsigned long long)sent, (unsigned long long)received, (unsigned long long)dead,
                 (unsigned long long)stashed);
        say_who(w, words, sizeof words);
        return words;
    }
    return watches_are_answered(w);
}

const char *
laws_at_the_end(world *w)
{
    static char words[200];

    for (uint32_t id = 1; id < actors_of(w); id++) {
        const entry *e = &w->entries[id];

        if (e->running || e->starts != e->stops) {
            snprintf(words, sizeof words,
                     "ledger-L4: actor %u started %u times and stopped %u times", id, e->starts,
                     e->stops);
            return words;
        }
    }
    if (atomic_load(&w->defers) != atomic_load(&w->deferred)) {
        snprintf(words, sizeof words, "ledger-L5: %llu of %llu deferred functions ran",
                 (unsigned long long)w->deferred, (unsigned long long)w->defers);
        return words;
    }
    return atomic_load(&w->broken) != 0 ? w->words : NULL;
}
