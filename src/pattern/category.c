/* category.c - tell the least loaded of many, or all of them.
 *
 * Why.     The next piece of work goes to one of a group of equals, without a router in front.
 * Shape.   directory (actor room) -> members --load--> the least loaded -> tell
 * Must hold.
 *   category-G1  No tell is made with the directory's lock held: it may run an actor at once
 *       (calling-thread dispatcher), which may come back here.
 *   category-G2  A target that refuses takes nothing from the others, and is reported in the
 *       result.
 * Cost.    A lock, and a load of each member. For a million messages a second use a router.
 * Tests.   tests/unit/pattern/category_test.c
 * Sources. UJ-03, -16, -17, -18, TRP-03
 */
#include <troupe/category.h>

#include <stdlib.h>
#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"

/* ---- one target ------------------------------------------------------------------------------ */

typedef struct parcel {
    trp_ref sender;
    const trp_type *type;
    const void *payload;
    size_t bytes;
} parcel;

static trp_err
parcel_deliver(trp_ctx *ctx, const parcel *p, trp_ref to)
{
    return trpi_offer(ctx, to, p->sender, p->type, p->payload, p->bytes);
}

/* category-G2 */
static bool
delivery_count(trp_delivery *delivery, trp_ref target, trp_err err)
{
    delivery->targets++;
    if (err == TRP_OK) {
        delivery->accepted++;
        return true;
    }
    if (delivery->errors != NULL && delivery->errors_count < delivery->errors_max) {
        delivery->errors[delivery->errors_count] = (trp_delivery_error){ target, err };
    }
    delivery->errors_count++;
    return false;
}

static trp_err
sum_up(const trp_delivery *delivery, trp_delivery *ret_delivery)
{
    if (ret_delivery != NULL) {
        (void)TRPI_SIZED_FILL(ret_delivery, delivery,
                              accepted); /* delivery_begin() has checked its size */
    }
    return delivery->accepted > 0 ? TRP_OK : delivery->targets == 0 ? TRP_ENOENT : TRP_EAGAIN;
}

/* Begin a delivery with zero counts and the caller's array of errors. False: given is refused. */
static bool
delivery_begin(trp_delivery *delivery, const trp_delivery *given)
{
    static const trp_delivery none = TRP_DELIVERY_INIT;

    *delivery = none;
    if (!TRPI_SIZED_COPY(given, delivery, accepted)) {
        return false;
    }
    delivery->errors_count = delivery->targets = delivery->accepted = 0;
    return true;
}

/* ---- members --------------------------------------------------------------------------------- */

#define CHOICES_HERE 64u /* members that need no heap */

typedef struct choice {
    trp_ref ref;
    uint64_t load;
    bool tried;
} choice;

typedef struct choices {
    trp_ctx *ctx;
    choice *all;
    uint32_t count, size;
    choice here[CHOICES_HERE];
} choices;

/* Return an estimate of the messages that wait for a member. An empty mailbox corrects it. */
static uint64_t
load_of(trp_ctx *ctx, trpi_member *member)
{
    trpi_look look;
    int64_t pending;

    trpi_actor_look(ctx, member->ref, &look);
    if (!look.local) {
        return 0;
    }
    if (look.counted) {
        return look.pending;
    }
    pending = (int64_t)(member->sent - (look.handled - member->base));
    if (look.empty || pending < 0) {
        member->base = look.handled - member->sent;
        pending = 0;
    }
    return pending == 0 && look.busy ? 1 : (uint64_t)pending;
}

/* Add a member, under the directory's lock. Members beyond the room (new ones) are left out. */
static void
member_collect(void *arg, const char *name, trpi_member *member)
{
    choices *c = arg;

    (void)name;
    if (c->count < c->size) {
        c->all[c->count++] = (choice){ member->ref, load_of(c->ctx, member), false };
    }
}

static trp_err
choices_make(choices *c, trp_ctx *ctx, const char *category)
{
    c->ctx = ctx;
    c->count = 0;
    c->all = c->here;
    c->size = trpi_directory_each(ctx, TRPI_DIRECTORY_CATEGORY, category, NULL, NULL);
    if (c->size > CHOICES_HERE) {
        c->all = trpi_alloc(c->size * sizeof *c->all);
        if (c->all == NULL) {
            return TRP_ENOMEM;
        }
    }
    return TRP_OK;
}

static void
choices_free(choices *c)
{
    if (c->all != c->here) {
        trpi_free(c->all);
    }
}

/* Count one more message on its way to ref, or to all. */
static void
member_count_sent(void *arg, const char *name, trpi_member *member)
{
    const trp_ref *ref = arg;

    (void)name;
    if (ref == NULL || trp_ref_equal(*ref, member->ref)) {
        member->sent++;
    }
}

/* ---- one of them ----------------------------------------------------------------------------- */

/* Return the least loaded member that was not tried, of equals the first; NULL: none is left. */
static choice *
least_loaded(choices *c)
{
    choice *best = NULL;

    for (uint32_t i = 0; i < c->count; i++) {
        if (!c->all[i].tried && (best == NULL || c->all[i].load < best->load)) {
            best = &c->all[i];
        }
    }
    return best;
}

static trp_err
category_send(trp_ctx *ctx, const char *category, const parcel *p, trp_delivery *ret_delivery)
{
    trp_delivery delivery;
    choices c;
    choice *next;
    trp_err err;

    if (category == NULL || p->type == NULL || !delivery_begin(&delivery, ret_delivery)) {
        return TRP_EINVAL;
    }
    err = choices_make(&c, ctx, category);
    if (err != TRP_OK) {
        return err;
    }
    (void)trpi_directory_each(ctx, TRPI_DIRECTORY_CATEGORY, category, member_collect, &c);
    while ((next = least_loaded(&c)) != NULL) {
        next->tried = true;
        if (delivery_count(&delivery, next->ref,
                           parcel_deliver(ctx, p, next->ref))) { /* category-G1 */
            (void)trpi_directory_each(ctx, TRPI_DIRECTORY_CATEGORY, category, member_count_sent,
                                      &next->ref);
            break;
        }
    }
    choices_free(&c);
    return sum_up(&delivery, ret_delivery);
}

trp_err
trp_category_send(trp_ctx *ctx, const char *category, const trp_type *type, const void *payload,
                  size_t bytes, trp_delivery *ret_delivery)
{
    parcel p = { trp_self(ctx), type, payload, bytes };

    return category_send(ctx, category, &p, ret_delivery);
}

/* Tell by either function from a thread that is no actor. */
static trp_err
from_outside(trp_system *system,
             trp_err (*tell)(trp_ctx *, const char *, const parcel *, trp_delivery *),
             const char *category, const parcel *p, trp_delivery *ret_delivery)
{
    trp_ctx *ctx;
    trp_err err;

    if (system == NULL) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = tell(ctx, category, p, ret_delivery);
    trpi_leave(ctx);
    return err;
}

trp_err
trp_system_category_send(trp_system *system, const char *category, const trp_type *type,
                         const void *payload, size_t bytes, trp_delivery *ret_delivery)
{
    parcel p = { TRP_REF_NONE, type, payload, bytes };

    return from_outside(system, category_send, category, &p, ret_delivery);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int
by_ref(const void *a, const void *b)
{
    return memcmp(&((const choice *)a)->ref, &((const choice *)b)->ref, sizeof(trp_ref));
}

static trp_err
category_broadcast(trp_ctx *ctx, const char *category, const parcel *p, trp_delivery *ret_delivery)
{
    trp_delivery delivery;
    choices c;
    trp_err err;

    if (p->type == NULL || !delivery_begin(&delivery, ret_delivery)) {
        return TRP_EINVAL;
    }
    err = choices_make(&c, ctx, category);
    if (err != TRP_OK) {
        return err;
    }
    (void)trpi_directory_each(ctx, TRPI_DIRECTORY_CATEGORY, category, member_collect, &c);
    (void)trpi_directory_each(ctx, TRPI_DIRECTORY_CATEGORY, category, member_count_sent, NULL);
    if (category == NULL) { /* a member of several categories is told once */
        qsort(c.all, c.count, sizeof *c.all, by_ref);
    }
    for (uint32_t i = 0; i < c.count; i++) {
        if (category != NULL || i == 0 || by_ref(&c.all[i - 1], &c.all[i]) != 0) {
            (void)delivery_count(&delivery, c.all[i].ref,
                                 parcel_deliver(ctx, p, c.all[i].ref)); /* category-G1 */
        }
    }
    choices_free(&c);
    return sum_up(&delivery, ret_delivery);
}

trp_err
trp_category_broadcast(trp_ctx *ctx, const char *category, const trp_type *type,
                       const void *payload, size_t bytes, trp_delivery *ret_delivery)
{
    parcel p = { trp_self(ctx), type, payload, bytes };

    return category_broadcast(ctx, category, &p, ret_delivery);
}

trp_err
trp_system_category_broadcast(trp_system *system, const char *category, const trp_type *type,
                              const void *payload, size_t bytes, trp_delivery *ret_delivery)
{
    parcel p = { TRP_REF_NONE, type, payload, bytes };

    return from_outside(system, category_broadcast, category, &p, ret_delivery);
}

trp_err
trp_tell_each(trp_ctx *ctx, const trp_ref *refs, size_t refs_count, const trp_type *type,
              const void *payload, size_t bytes, trp_delivery *ret_delivery)
{
    parcel p = { trp_self(ctx), type, payload, bytes };
    trp_delivery delivery;

    if (type == NULL || (refs == NULL && refs_count > 0) ||
        !delivery_begin(&delivery, ret_delivery)) {
        return TRP_EINVAL;
    }
    for (size_t i = 0; i < refs_count; i++) {
        (void)delivery_count(&delivery, refs[i], parcel_deliver(ctx, &p, refs[i]));
    }
    return sum_up(&delivery, ret_delivery);
}

/* ---- membership ------------------------------------------------------------------------------ */

trp_err
trp_category_join(trp_system *system, const char *category, trp_ref ref)
{
    trp_ctx *ctx;
    trp_err err;

    if (system == NULL) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = trpi_directory_add(ctx, TRPI_DIRECTORY_CATEGORY, category, ref);
    trpi_leave(ctx);
    return err;
}

trp_err
trp_category_leave(trp_system *system, const char *category, trp_ref ref)
{
    trp_ctx *ctx;
    trp_err err;

    if (system == NULL || trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = trpi_directory_remove(ctx, TRPI_DIRECTORY_CATEGORY, category, ref);
    trpi_leave(ctx);
    return err;
}

uint32_t
trp_category_size(trp_system *system, const char *category)
{
    trp_ctx *ctx;
    uint32_t count;

    if (system == NULL || category == NULL) {
        return 0;
    }
    ctx = trpi_enter(system);
    count = trpi_directory_each(ctx, TRPI_DIRECTORY_CATEGORY, category, NULL, NULL);
    trpi_leave(ctx);
    return count;
}
