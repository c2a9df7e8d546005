/* journal_ask.c - operations of actors on the journal.
 *
 * Shape. actor --submit--> driver --done, on any thread--> answer message --> actor
 *        The ask is counted: the actor has one part until it drops it, the driver one until done.
 * Must hold.
 *   journal-ask-A1  done touches no state of the actor: a restarted or ended one is not disturbed.
 *       An answer to an earlier life has a serial that the present life does not know.
 *   journal-ask-A2  An answer needs no memory on the driver's thread; an item that finds none ends
 *       the read, which is refused with TRP_ENOMEM.
 * Tests. tests/unit/persistence/journal_query_test.c
 */
#include "persistence/journal_ask.h"

#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"

static const trp_field answer_fields[] = {
    { .name = "serial", .kind = TRP_FIELD_u64, .offset = offsetof(trpi_journal_answer, serial) }
};
trp_type trpi_journal_answer_type = { .name = "journal.priv-answer",
                                      .bytes = sizeof(trpi_journal_answer),
                                      .flags = TRP_TYPE_LOCAL,
                                      .fields = answer_fields,
                                      .fields_count = 1 };
static trp_type *const types[] = { &trpi_journal_answer_type };
static const trp_protocol protocol = { "journal", types, 1, 0 };

/* ---- items ----------------------------------------------------------------------------------- */

static char *
text_put(char **at, const char *text)
{
    char *begin = *at;
    size_t bytes = strlen(text) + 1;

    memcpy(begin, text, bytes);
    *at += bytes;
    return begin;
}

trpi_journal_item *
trpi_journal_item_new(const trp_journal_event *event)
{
    const char *id = event->id != NULL ? event->id : "";
    const char *type = event->type != NULL ? event->type : "";
    size_t texts = strlen(id) + strlen(type) + 2;

    for (uint32_t i = 0; i < event->tags_count; i++) {
        texts += strlen(event->tags[i]) + 1;
    }
    size_t head = sizeof(trpi_journal_item) + event->tags_count * sizeof(char *);
    size_t data_at = (head + texts + 15) & ~(size_t)15;
    trpi_journal_item *item = trpi_alloc(data_at + event->bytes + 1);
    if (item == NULL) {
        return NULL;
    }
    const char **tags = (const char **)(void *)(item + 1);
    char *at = (char *)item + head;
    item->event = *event;
    item->event.id = text_put(&at, id);
    item->event.type = text_put(&at, type);
    item->event.tags = event->tags_count != 0 ? tags : NULL;
    for (uint32_t i = 0; i < event->tags_count; i++) {
        tags[i] = text_put(&at, event->tags[i]);
    }
    item->event.data = (char *)item + data_at;
    if (event->bytes != 0) {
        memcpy((char *)item + data_at, event->data, event->bytes);
    }
    return item;
}

void
trpi_journal_items_free(trpi_journal_item *first)
{
    while (first != NULL) {
        trpi_journal_item *next = first->next;

        trpi_free(first);
        first = next;
    }
}

/* ---- asks ------------------------------------------------------------------------------------ */

static void
ask_unref(trpi_journal_ask *ask)
{
    if (atomic_fetch_sub_explicit(&ask->refs, 1, memory_order_acq_rel) == 1) {
        trpi_msg_drop(ask->answer);
        trpi_journal_items_free(ask->items);
        trpi_free(ask->keep);
        trpi_free(ask);
    }
}

/* Copy an item of a read (journal-ask-A2). */
static trp_err
ask_give(trp_journal_op *op, const trp_journal_event *event)
{
    trpi_journal_ask *ask = op->user;
    trpi_journal_item *item = trpi_journal_item_new(event);

    if (item == NULL) {
        return TRP_ENOMEM;
    }
    *ask->last = item;
    ask->last = &item->next;
    return TRP_OK;
}

/* Tell the asker (journal-ask-A1). One that has ended is no dead letter: nobody lost anything. */
static void
ask_done(trp_journal_op *op)
{
    trpi_journal_ask *ask = op->user;
    trp_msg *answer = ask->answer;
    trp_ctx *ctx = trpi_enter(ask->system);
    trpi_look look;

    ask->answer = NULL;
    trpi_actor_look(ctx, ask->asker, &look);
    if (look.alive && !atomic_load_explicit(&ask->is_quiet, memory_order_relaxed)) {
        trpi_send_as(ctx, ask->asker, (trp_ref)TRP_REF_NONE, answer);
    } else {
        trpi_msg_drop(answer);
    }
    trpi_leave(ctx);
    ask_unref(ask);
}

trp_err
trpi_journal_ask_new(trp_ctx *ctx, trp_journal_kind kind, trpi_journal_ask **ret_ask)
{
    static _Atomic uint64_t serials; /* relaxed: only its uniqueness counts */
    trpi_journal_ask *ask;
    void *payload;
    trp_err err = trp_protocol_register(&protocol);

    if (err != TRP_OK) {
        return err;
    }
    ask = trpi_alloc(sizeof *ask);
    if (ask == NULL) {
        return TRP_ENOMEM;
    }
    err =
        trp_msg_new(&trpi_journal_answer_type, sizeof(trpi_journal_answer), &ask->answer, &payload);
    if (err != TRP_OK) {
        trpi_free(ask);
        return err;
    }
    ask->op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    ask->op.kind = kind;
    ask->serial = 1 + atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
    ((trpi_journal_answer *)payload)->serial = ask->serial;
    ask->last = &ask->items;
    ask->system = trp_ctx_system(ctx);
    ask->asker = trp_self(ctx);
    atomic_init(&ask->refs, 1);
    *ret_ask = ask;
    return TRP_OK;
}

/* Copy at most bytes - 1 of text: one more than the journal takes, so that it refuses the rest. */
static const char *
text_keep(char *room, size_t bytes, const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    size_t length = strnlen(text, bytes - 1);
    memcpy(room, text, length);
    room[length] = '\0';
    return room;
}

void
trpi_journal_ask_texts(trpi_journal_ask *ask, const char *id, const char *scope, const char *writer,
                       const char *tag)
{
    ask->op.id = text_keep(ask->id, sizeof ask->id, id);
    ask->op.scope = text_keep(ask->scope, sizeof ask->scope, scope);
    ask->op.writer = text_keep(ask->writer, sizeof ask->writer, writer);
    ask->op.tag = text_keep(ask->tag, sizeof ask->tag, tag);
}

void
trpi_journal_ask_submit(const trp_journal_driver *journal, trpi_journal_ask *ask)
{
    trpi_assert(ask->answer != NULL);
    ask->op.user = ask;
    ask->op.give = ask_give;
    ask->op.done = ask_done;
    atomic_fetch_add_explicit(&ask->refs, 1, memory_order_relaxed);
    journal->submit(journal->arg, &ask->op);
}

void
trpi_journal_ask_quiet(trpi_journal_ask *ask)
{
    atomic_store_explicit(&ask->is_quiet, true, memory_order_relaxed);
}

void
trpi_journal_ask_drop(trpi_journal_ask *ask)
{
    if (ask != NULL) {
        trpi_journal_ask_quiet(ask);
        ask_unref(ask);
    }
}

bool
trpi_journal_ask_is(const trpi_journal_ask *ask, const trp_msg *msg)
{
    const trpi_journal_answer *answer = trp_msg_as(msg, &trpi_journal_answer_type);

    return ask != NULL && answer != NULL && answer->serial == ask->serial;
}
