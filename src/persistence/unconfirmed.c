/* unconfirmed.c - unconfirmed.h has the shape and what must hold.
 *
 * Cost.   A binary search for a confirmation; all else constant, slots amortised.
 * Tests.  tests/unit/persistence/unconfirmed_test.c
 */
#include "persistence/unconfirmed.h"

#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"

#define SLOTS_MIN 16u

static void
list_put(trpi_unconfirmed_list *list, trpi_unconfirmed_entry *e)
{
    e->next = NULL;
    e->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = e;
    list->last = e;
}

static void
list_take(trpi_unconfirmed_list *list, trpi_unconfirmed_entry *e)
{
    *(e->previous != NULL ? &e->previous->next : &list->first) = e->next;
    *(e->next != NULL ? &e->next->previous : &list->last) = e->previous;
}

static void
entry_free(trpi_unconfirmed_entry *e)
{
    trpi_msg_drop(e->msg);
    trpi_free(e);
}

void
trpi_unconfirmed_fini(trpi_unconfirmed *r)
{
    for (uint32_t i = 0; i < r->slots_count; i++) {
        if (r->slots[i].entry != NULL) {
            entry_free(r->slots[i].entry);
        }
    }
    trpi_free(r->slots);
    memset(r, 0, sizeof *r);
}

/* Leave confirmed slots out if half of them are; else have more room. */
static trp_err
slots_make_room(trpi_unconfirmed *r)
{
    if (r->slots_count < r->slots_room) {
        return TRP_OK;
    }
    if (r->count <= r->slots_count / 2 && r->slots_count > 0) {
        uint32_t kept = 0;

        for (uint32_t i = 0; i < r->slots_count; i++) {
            if (r->slots[i].entry != NULL) {
                r->slots[kept++] = r->slots[i];
            }
        }
        r->slots_count = kept;
        return TRP_OK;
    }
    uint32_t room = r->slots_room == 0 ? SLOTS_MIN : r->slots_room * 2;
    trpi_unconfirmed_slot *slots = trpi_alloc(room * sizeof *slots);

    if (slots == NULL) {
        return TRP_ENOMEM;
    }
    if (r->slots_count != 0) {
        memcpy(slots, r->slots, r->slots_count * sizeof *slots);
    }
    trpi_free(r->slots);
    r->slots = slots;
    r->slots_room = room;
    return TRP_OK;
}

trp_err
trpi_unconfirmed_put(trpi_unconfirmed *r, uint64_t number, trp_msg *msg, const trp_trace *trace)
{
    trpi_assert(number > r->number_last); /* unconfirmed-Y2 */
    trpi_assert(msg != NULL);
    trp_err err = slots_make_room(r);
    trpi_unconfirmed_entry *e = err == TRP_OK ? trpi_alloc(sizeof *e) : NULL;

    if (e == NULL) {
        return TRP_ENOMEM;
    }
    *e = (trpi_unconfirmed_entry){ .number = number, .msg = msg };
    if (trace != NULL) {
        e->trace = *trace;
    }
    list_put(&r->fresh, e);
    r->slots[r->slots_count++] = (trpi_unconfirmed_slot){ number, e };
    r->number_last = number;
    r->count++;
    return TRP_OK;
}

/* Return the index of the first slot with a number of at least `number`. */
static uint32_t
slot_find(const trpi_unconfirmed *r, uint64_t number)
{
    uint32_t low = 0, high = r->slots_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (r->slots[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool
trpi_unconfirmed_confirm(trpi_unconfirmed *r, uint64_t number)
{
    uint32_t at = slot_find(r, number);

    if (at == r->slots_count || r->slots[at].number != number || r->slots[at].entry == NULL) {
        return false;
    }
    trpi_unconfirmed_entry *e = r->slots[at].entry;
    list_take(e->attempts == 0 ? &r->fresh : &r->told, e); /* unconfirmed-Y1 */
    entry_free(e);
    r->slots[at].entry = NULL;
    trpi_assert(r->count > 0);
    r->count--;
    return true;
}

const trpi_unconfirmed_entry *
trpi_unconfirmed_due(trpi_unconfirmed *r, uint64_t now_ms, uint32_t interval_ms)
{
    trpi_unconfirmed_entry *e = r->fresh.first;

    if (e != NULL) {
        list_take(&r->fresh, e);
    } else if (r->told.first != NULL && r->told.first->due_ms <= now_ms) {
        e = r->told.first;
        list_take(&r->told, e);
    } else {
        return NULL;
    }
    e->attempts += e->attempts != UINT32_MAX;
    e->due_ms = now_ms + interval_ms;
    list_put(&r->told, e); /* unconfirmed-Y3 */
    return e;
}

uint32_t
trpi_unconfirmed_wait_ms(const trpi_unconfirmed *r, uint64_t now_ms)
{
    if (r->fresh.first != NULL) {
        return 0;
    }
    if (r->told.first == NULL) {
        return UINT32_MAX;
    }
    uint64_t due_ms = r->told.first->due_ms;
    uint64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    return wait_ms < UINT32_MAX ? (uint32_t)wait_ms : UINT32_MAX - 1;
}

const trpi_unconfirmed_entry *
trpi_unconfirmed_from(const trpi_unconfirmed *r, uint64_t number)
{
    for (uint32_t at = slot_find(r, number); at < r->slots_count; at++) {
        if (r->slots[at].entry != NULL) {
            return r->slots[at].entry;
        }
    }
    return NULL;
}

void
trpi_unconfirmed_check(const trpi_unconfirmed *r)
{
    uint32_t live = 0, listed = 0;
    uint64_t before = 0;

    for (uint32_t i = 0; i < r->slots_count; i++) {
        trpi_assert(r->slots[i].number > before); /* unconfirmed-Y2 */
        before = r->slots[i].number;
        live += r->slots[i].entry != NULL;
    }
    for (const trpi_unconfirmed_entry *e = r->fresh.first; e != NULL; e = e->next) {
        trpi_assert(e->attempts == 0);
        listed++;
    }
    before = 0;
    for (const trpi_unconfirmed_entry *e = r->told.first; e != NULL; e = e->next) {
        trpi_assert(e->attempts > 0);
        trpi_assert(e->due_ms >= before); /* unconfirmed-Y3 */
        before = e->due_ms;
        listed++;
    }
    trpi_assert(live == r->count);
    trpi_assert(listed == r->count); /* unconfirmed-Y1 */
}
