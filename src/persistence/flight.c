/* flight.c - an operation of an actor, whose answer is a message to it.
 *
 * Why.   A driver answers on its own thread, when the actor may have ended, or begun anew.
 * Shape. The operation belongs to the message, which is made with it: an answer takes no memory.
 *        The actor reads the operation out of the message; if it has ended, the message is a dead
 *        letter that nobody misses, and frees the operation.
 * Must hold.
 *   flight-F1  What op points to lives in the flight: the actor may end before the answer.
 * Tests. tests/unit/persistence/persistent_test.c
 */
#include "persistence/persistent.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/built_in_types.h"

#define PERSISTENT_TYPE_NUMBER 60
#define BEHIND_TYPE_NUMBER 61

BUILT_IN(trpi_persistent_type, "troupe.priv-persistent", 0, 0xfff0,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL | TRPI_TYPE_FLAG_SILENT, PERSISTENT_TYPE_NUMBER);
BUILT_IN(trpi_behind_type, "troupe.priv-behind", 0, 0xfff1, TRP_TYPE_LOCAL | TRPI_TYPE_FLAG_SILENT,
         BEHIND_TYPE_NUMBER);

static const trpi_built_in_type rows[] = { { &trpi_persistent_type, 0 }, { &trpi_behind_type, 0 } };

const trpi_type_part trpi_persistence_types = TYPES_OF(rows);

static void
flight_release(void *data, void *arg)
{
    trpi_flight *flight = data;

    (void)arg;
    trpi_groups_drop(&flight->groups);
    trpi_buffer_fini(&flight->bytes);
    trpi_free(flight->events);
    trpi_free(flight->tags);
    trpi_free(flight);
}

static void
flight_done(trp_journal_op *op)
{
    trpi_flight *flight = op->user;
    trp_ctx *ctx = trpi_enter(flight->system);

    trpi_send(ctx, flight->to, flight->msg);
    trpi_leave(ctx);
}

/* Copy an item of a read into the records. */
static trp_err
flight_give(trp_journal_op *op, const trp_journal_event *item)
{
    trpi_flight *flight = op->user;
    trpi_flight_record record = { .number = item->number,
                                  .time_ms = item->time_ms,
                                  .data_bytes = item->bytes,
                                  .type_bytes = (uint32_t)strlen(item->type) + 1,
                                  .version = item->version };
    size_t before = flight->bytes.count;
    trp_err err = trpi_buffer_append(&flight->bytes, &record, sizeof record, TRPI_BUFFER_NO_LIMIT);

    err = err != TRP_OK ? err
                        : trpi_buffer_append(&flight->bytes, item->type, record.type_bytes,
                                             TRPI_BUFFER_NO_LIMIT);
    err = err != TRP_OK
              ? err
              : trpi_buffer_append(&flight->bytes, item->data, item->bytes, TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        flight->bytes.count = before;
    }
    return err;
}

bool
trpi_flight_next(const trpi_flight *flight, size_t *at, trp_journal_event *ret_event)
{
    trpi_flight_record record;

    if (*at == flight->bytes.count) {
        return false;
    }
    const char *from = (const char *)flight->bytes.data + *at;
    memcpy(&record, from, sizeof record);
    *ret_event = (trp_journal_event){ .id = flight->op.id,
                                      .number = record.number,
                                      .time_ms = record.time_ms,
                                      .type = from + sizeof record,
                                      .version = record.version,
                                      .data = from + sizeof record + record.type_bytes,
                                      .bytes = record.data_bytes };
    *at += sizeof record + record.type_bytes + record.data_bytes;
    return true;
}

trpi_flight *
trpi_flight_new(trp_ctx *ctx, const trpi_persistent *p, trp_journal_kind kind)
{
    size_t id_bytes = strlen(p->names) + 1, scope_bytes = strlen(trpi_persistent_scope(p)) + 1;
    trpi_flight *flight = trpi_alloc(sizeof *flight + id_bytes + scope_bytes);

    if (flight == NULL ||
        trpi_msg_new_owner(&trpi_persistent_type, flight, flight_release, &flight->msg) != TRP_OK) {
        trpi_free(flight);
        return NULL;
    }
    memcpy(flight->names, p->names, id_bytes); /* flight-F1 */
    memcpy(flight->names + id_bytes, trpi_persistent_scope(p), scope_bytes);
    flight->system = p->system;
    flight->to = trp_self(ctx);
    flight->instance = p->instance;
    flight->op.size = sizeof flight->op;
    flight->op.kind = kind;
    flight->op.id = flight->names;
    flight->op.scope = flight->names + id_bytes;
    flight->op.epoch = p->epoch;
    flight->op.done = flight_done;
    flight->op.give = flight_give;
    flight->op.user = flight;
    return flight;
}

void
trpi_flight_drop(trpi_flight *flight)
{
    trpi_msg_drop(flight->msg);
}

void
trpi_flight_submit(const trpi_persistent *p, trpi_flight *flight)
{
    p->journal->submit(p->journal->arg, &flight->op);
}
