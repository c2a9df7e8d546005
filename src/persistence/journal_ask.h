/* journal_ask.h - an operation of an actor on the journal, answered by a message to it.
 *
 * Why.    A driver answers on threads of its own, maybe when the actor has ended or was restarted.
 *         Only a message may come back, and nothing that it leads to may be gone.
 * Use.    trpi_journal_ask_new(), set ask->op, texts by trpi_journal_ask_texts(), what events point
 *         to in ask->keep, trpi_journal_ask_submit(). A message of trpi_journal_answer_type with
 *         the ask's serial says that ask->op has its answer. trpi_journal_ask_drop() gives up the
 *         actor's part, before or after that.
 */
#ifndef TRPI_PERSISTENCE_JOURNAL_ASK_H
#define TRPI_PERSISTENCE_JOURNAL_ASK_H

#include <stdatomic.h>
#include <stdbool.h>

#include <troupe/actor.h>
#include <troupe/journal.h>

/* Told to the asker: the ask of this serial is answered. A serial is used once in a process. */
typedef struct trpi_journal_answer {
    uint64_t serial;
} trpi_journal_answer;
extern trp_type trpi_journal_answer_type;

/* A copy of an item that a read gave; one block (trpi_free). */
typedef struct trpi_journal_item {
    struct trpi_journal_item *next;
    trp_journal_event event;
} trpi_journal_item;

typedef struct trpi_journal_ask {
    trp_journal_op op; /* give and done are set by submit */
    uint64_t serial;
    trpi_journal_item *items; /* of a read, in order; the asker may take them */
    void *keep;               /* freed with the ask, by trpi_free */
    /* Private. */
    trpi_journal_item **last;
    trp_system *system;
    trp_ref asker;
    trp_msg *answer;       /* made at first, so that an answer needs no memory */
    _Atomic bool is_quiet; /* no answer is told any more. Relaxed: a hint */
    _Atomic uint32_t refs; /* the actor's and the driver's. acq_rel; pair: itself */
    char id[TRP_JOURNAL_ID_BYTES_MAX + 2];
    char scope[TRP_JOURNAL_SCOPE_BYTES_MAX + 2];
    char writer[TRP_JOURNAL_WRITER_BYTES_MAX + 2];
    char tag[TRP_JOURNAL_TAG_BYTES_MAX + 2];
} trpi_journal_ask;

/* Make one for the running actor. Gives *ret_ask (trpi_journal_ask_drop). Errors: TRP_ENOMEM,
 * TRP_ELIMIT (types). */
trp_err trpi_journal_ask_new(trp_ctx *ctx, trp_journal_kind kind, trpi_journal_ask **ret_ask);
/* Copy texts of the operation into it; NULL: it has none. One that is too long is refused by the
 * journal. */
void trpi_journal_ask_texts(trpi_journal_ask *ask, const char *id, const char *scope,
                            const char *writer, const char *tag);
/* Submit it, once. */
void trpi_journal_ask_submit(const trp_journal_driver *journal, trpi_journal_ask *ask);
/* Tell no answer: for the last operations of an actor that ends. */
void trpi_journal_ask_quiet(trpi_journal_ask *ask);
/* Give up the actor's part, and do not tell the answer; NULL is fine. */
void trpi_journal_ask_drop(trpi_journal_ask *ask);
/* Is msg the answer of ask (NULL: none is waited for)? */
bool trpi_journal_ask_is(const trpi_journal_ask *ask, const trp_msg *msg);
/* Copy an event into one block. NULL: no memory. */
trpi_journal_item *trpi_journal_item_new(const trp_journal_event *event);
void trpi_journal_items_free(trpi_journal_item *first);

#endif
