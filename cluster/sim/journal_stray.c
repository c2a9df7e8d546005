/* journal_stray.c - a change of the simulated journal that goes on without its maker: a copy in one
 * block, since its maker frees what it had once it has an answer.
 *
 * Tests. tests/sim/journal_test.c
 */
#include "cluster/sim/journal.h"

#include <string.h>

#include "base/alloc.h"

/* A change in one block, with all that it leads to. */
typedef struct stray {
    sim_flight flight;
    trp_journal_op op;
    char *at; /* in what follows the struct */
} stray;

static size_t
text_bytes(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Bytes in the block, in steps that suit pointers. */
static size_t
bytes_pad(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static void *
stray_keep(stray *s, const void *from, size_t bytes)
{
    void *to = s->at;

    if (from == NULL) {
        return NULL;
    }
    if (bytes != 0) {
        memcpy(to, from, bytes);
    }
    s->at += bytes_pad(bytes);
    return to;
}

static size_t
stray_bytes(const trp_journal_op *op)
{
    size_t bytes = bytes_pad(sizeof(stray)) + bytes_pad(text_bytes(op->id)) +
                   bytes_pad(text_bytes(op->scope)) + bytes_pad(text_bytes(op->writer)) +
                   bytes_pad(op->events_count * sizeof *op->events);

    for (uint32_t i = 0; i < op->events_count; i++) {
        const trp_journal_event *event = &op->events[i];

        bytes += bytes_pad(event->bytes) + bytes_pad(text_bytes(event->type)) +
                 bytes_pad(event->tags_count * sizeof *event->tags);
        for (uint32_t k = 0; k < event->tags_count; k++) {
            bytes += bytes_pad(text_bytes(event->tags[k]));
        }
    }
    return bytes;
}

static void
stray_keep_event(stray *s, trp_journal_event *event)
{
    const char **tags = stray_keep(s, event->tags, event->tags_count * sizeof *tags);

    event->type = stray_keep(s, event->type, text_bytes(event->type));
    event->data = stray_keep(s, event->data, event->bytes);
    for (uint32_t k = 0; k < event->tags_count; k++) {
        tags[k] = stray_keep(s, tags[k], text_bytes(tags[k]));
    }
    event->tags = tags;
}

static void
stray_done(trp_journal_op *op)
{
    (void)op; /* nobody waits for it */
}

sim_flight *
sim_stray_new(const trp_journal_op *op)
{
    stray *s = trpi_alloc(stray_bytes(op));

    if (s == NULL) {
        return NULL;
    }
    s->at = (char *)s + bytes_pad(sizeof *s);
    s->op = *op;
    s->op.id = stray_keep(s, op->id, text_bytes(op->id));
    s->op.scope = stray_keep(s, op->scope, text_bytes(op->scope));
    s->op.writer = stray_keep(s, op->writer, text_bytes(op->writer));
    trp_journal_event *events = stray_keep(s, op->events, op->events_count * sizeof *op->events);
    for (uint32_t i = 0; i < op->events_count; i++) {
        stray_keep_event(s, &events[i]);
    }
    s->op.events = events;
    s->op.done = stray_done;
    s->flight = (sim_flight){ .op = &s->op, .done = stray_done, .is_change = true };
    return &s->flight;
}
