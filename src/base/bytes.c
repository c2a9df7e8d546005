/* bytes.c - counted slices of bytes: cut, joined and looked through without copying.
 *
 * Why.     Bytes of a socket pass stages that cut frames out and put headers in front, and actors
 *          that keep parts. A copy at each of these would cost more than the system call.
 * Shape.   A handle is {owner, data, bytes, at}. In one piece: data points into memory that owner
 *          counts (NULL: static data). In several: data is NULL, owner is a chain, and the handle
 *          shows `bytes` of it from its byte `at`.
 *
 *              handle -> chain: [piece | piece | piece]      count of the chain
 *                                  |       |       |
 *                                buffer  buffer  wrapped     count of each
 *
 *          Pieces are never chains themselves. piece.priv_at is where it begins in its chain.
 * Must hold.
 *   bytes-B1  Bytes never change once a second handle exists; a chain with one count belongs to
 *       its only handle, which alone may add pieces or give some back.
 *   bytes-B2  Pieces before chain->first are given back; no handle shows bytes of them.
 *   bytes-B3  A handle with a chain shows bytes of two pieces at least; else it is in one piece.
 *   bytes-B4  An empty handle has no owner.
 * Limits.  TRP_BYTES_MAX a handle; a chain's places stay below twice that, so 32 bits hold them.
 * Cost.    A cut in one piece: an addition to the count. In a chain: a search by halves as well.
 * Tests.   tests/unit/base/bytes_test.c
 * Sources. IO-07, IO-10.
 */
#include "base/bytes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/assert.h"

typedef enum owner_kind { BUFFER = 1, WRAPPED = 2, CHAIN = 3 } owner_kind;

/* The head of what is counted. */
typedef struct owner {
    _Atomic uint32_t count;
    uint32_t kind; /* owner_kind */
} owner;

typedef struct buffer {
    owner head;
    uint64_t room;
    uint8_t data[];
} buffer;

typedef struct wrapped {
    owner head;
    void *data;
    size_t bytes;
    void (*release)(void *data, void *arg);
    void *arg;
} wrapped;

typedef struct chain {
    owner head;
    uint32_t first, count, room; /* pieces: given back, in use with these, allocated */
    uint32_t zero;
    trp_bytes pieces[];
} chain;

_Static_assert(sizeof(trp_bytes_part) == sizeof(struct iovec) &&
                   offsetof(trp_bytes_part, data) == offsetof(struct iovec, iov_base) &&
                   offsetof(trp_bytes_part, bytes) == offsetof(struct iovec, iov_len),
               "parts are cast for writev()");

#define PIECES_ROOM 4u
#define PLACES_MAX TRP_BYTES_MAX /* a chain's dead bytes in front stay below: bytes-B2 */

/* ---- counts ---------------------------------------------------------------------------------- */

static void
piece_ref(void *counted)
{
    if (counted != NULL) {
        /* relaxed: the caller has a count already */
        (void)atomic_fetch_add_explicit(&((owner *)counted)->count, 1, memory_order_relaxed);
    }
}

static void
memory_free(owner *of)
{
    if (of->kind == WRAPPED) {
        wrapped *w = (wrapped *)of;

        w->release(w->data, w->arg);
    }
    trpi_free(of);
}

static bool
count_down(owner *of)
{
    /* release: what we did with the bytes happens before the last owner frees them; acquire: its
     * pair */
    uint32_t before = atomic_fetch_sub_explicit(&of->count, 1, memory_order_acq_rel);

    trpi_assert(before > 0);
    return before == 1;
}

static void
piece_unref(void *counted)
{
    if (counted != NULL && count_down(counted)) {
        memory_free(counted);
    }
}

static bool
is_alone(const void *counted)
{
    /* acquire: pairs with count_down(); what the others did is over */
    return atomic_load_explicit(&((const owner *)counted)->count, memory_order_acquire) == 1;
}

static bool
is_chain(trp_bytes bytes)
{
    return bytes.priv_owner != NULL && bytes.priv_data == NULL;
}

static void
chain_free(chain *c)
{
    for (uint32_t i = c->first; i < c->count; i++) {
        piece_unref(c->pieces[i].priv_owner);
    }
    trpi_free(c);
}

static void
owner_unref(trp_bytes bytes)
{
    if (!is_chain(bytes)) {
        piece_unref(bytes.priv_owner);
    } else if (count_down(bytes.priv_owner)) {
        chain_free(bytes.priv_owner);
    }
}

trp_bytes
trp_bytes_ref(trp_bytes bytes)
{
    piece_ref(bytes.priv_owner);
    return bytes;
}

void
trp_bytes_unref(trp_bytes *bytes)
{
    if (bytes != NULL) {
        trp_bytes was = *bytes;

        *bytes = TRP_BYTES_EMPTY;
        owner_unref(was);
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

trp_err
trp_bytes_new(size_t bytes, uint8_t **ret_data, trp_bytes *ret_bytes)
{
    static uint8_t none;
    buffer *b;

    if (ret_data == NULL || ret_bytes == NULL) {
        return TRP_EINVAL;
    }
    if (bytes > TRP_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    if (bytes == 0) {
        *ret_bytes = TRP_BYTES_EMPTY;
        *ret_data = &none;
        return TRP_OK;
    }
    b = trpi_realloc(NULL, sizeof *b + bytes); /* not zeroed: the caller fills it */
    if (b == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&b->head.count, 1);
    b->head.kind = BUFFER;
    b->room = bytes;
    *ret_data = b->data;
    *ret_bytes = (trp_bytes){ b, b->data, (uint32_t)bytes, 0 };
    return TRP_OK;
}

trp_err
trp_bytes_copy(const void *data, size_t bytes, trp_bytes *ret_bytes)
{
    uint8_t *place;
    trp_err err;

    if (data == NULL && bytes > 0) {
        return TRP_EINVAL;
    }
    err = trp_bytes_new(bytes, &place, ret_bytes);
    if (err == TRP_OK && bytes > 0) {
        memcpy(place, data, bytes);
    }
    return err;
}

trp_err
trp_bytes_wrap(const void *data, size_t bytes, void (*release)(void *data, void *arg), void *arg,
               trp_bytes *ret_bytes)
{
    wrapped *w = NULL;

    if (ret_bytes == NULL || data == NULL) {
        return TRP_EINVAL;
    }
    if (bytes > TRP_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    if (release != NULL && bytes > 0) {
        w = trpi_alloc(sizeof *w);
        if (w == NULL) {
            return TRP_ENOMEM;
        }
        atomic_init(&w->head.count, 1);
        w->head.kind = WRAPPED;
        w->data = (void *)(uintptr_t)data;
        w->bytes = bytes;
        w->release = release;
        w->arg = arg;
    } else if (release != NULL) {
        release((void *)(uintptr_t)data, arg); /* bytes-B4 */
    }
    *ret_bytes = bytes > 0 ? (trp_bytes){ w, data, (uint32_t)bytes, 0 } : TRP_BYTES_EMPTY;
    return TRP_OK;
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Return the piece that has this place of the chain. */
static uint32_t
piece_at(const chain *c, uint32_t at)
{
    uint32_t low = c->first, high = c->count - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (c->pieces[middle].priv_at <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Return the piece that begins with this byte, not counted. *piece is which one of the chain:
 * UINT32_MAX to have it searched, one more to go on behind it. */
static trp_bytes
piece_of(trp_bytes bytes, size_t from, uint32_t *piece)
{
    uint32_t at = bytes.priv_at + (uint32_t)from, skipped;
    const chain *c = bytes.priv_owner;
    trp_bytes found;
    size_t left = bytes.priv_bytes - from;

    if (!is_chain(bytes)) {
        return (trp_bytes){ bytes.priv_owner, bytes.priv_data + from, (uint32_t)left, 0 };
    }
    if (*piece == UINT32_MAX) {
        *piece = piece_at(c, at);
    }
    found = c->pieces[*piece];
    skipped = at - found.priv_at;
    trpi_assert(at >= found.priv_at && skipped < found.priv_bytes);
    found.priv_data += skipped;
    found.priv_bytes -= skipped;
    if (found.priv_bytes > left) {
        found.priv_bytes = (uint32_t)left;
    }
    found.priv_at = 0;
    return found;
}

trp_bytes
trpi_bytes_piece(trp_bytes bytes, size_t from)
{
    uint32_t piece = UINT32_MAX;

    return from < bytes.priv_bytes ? piece_of(bytes, from, &piece) : TRP_BYTES_EMPTY;
}

/* A chain of one's own, with room; NULL: no memory. */
static chain *
chain_new(uint32_t room)
{
    chain *c = trpi_realloc(NULL, sizeof *c + room * sizeof c->pieces[0]);

    if (c != NULL) {
        atomic_init(&c->head.count, 1);
        c->head.kind = CHAIN;
        c->first = c->count = c->zero = 0;
        c->room = room;
    }
    return c;
}

/* Does b begin where a ends, in the same memory? */
static bool
is_next(trp_bytes a, trp_bytes b)
{
    return a.priv_owner != NULL && a.priv_owner == b.priv_owner && a.priv_data != NULL &&
           a.priv_data + a.priv_bytes == b.priv_data;
}

/* Add a piece, and count it; what was cut apart becomes one piece again. */
static void
chain_add(chain *c, trp_bytes piece)
{
    trp_bytes *last = c->count > c->first ? &c->pieces[c->count - 1] : NULL;

    if (last != NULL && is_next(*last, piece)) {
        last->priv_bytes += piece.priv_bytes;
        return;
    }
    trpi_assert(c->count < c->room);
    piece_ref(piece.priv_owner);
    piece.priv_at = last == NULL ? 0 : last->priv_at + last->priv_bytes;
    c->pieces[c->count++] = piece;
}

/* How many pieces do the bytes have? */
static uint32_t
pieces_count(trp_bytes bytes)
{
    const chain *c = bytes.priv_owner;

    if (!is_chain(bytes)) {
        return bytes.priv_bytes > 0 ? 1 : 0;
    }
    return piece_at(c, bytes.priv_at + bytes.priv_bytes - 1) - piece_at(c, bytes.priv_at) + 1;
}

/* Add the pieces of bytes. */
static void
chain_add_all(chain *c, trp_bytes bytes)
{
    uint32_t index = UINT32_MAX;

    for (size_t at = 0; at < bytes.priv_bytes; index++) {
        trp_bytes piece = piece_of(bytes, at, &index);

        chain_add(c, piece);
        at += piece.priv_bytes;
    }
}

/* Give back the pieces in front that the only handle does not show: bytes-B2. */
static void
chain_shed(const trp_bytes *bytes)
{
    chain *c = bytes->priv_owner;

    while (c->pieces[c->first].priv_at + c->pieces[c->first].priv_bytes <= bytes->priv_at) {
        piece_unref(c->pieces[c->first++].priv_owner);
    }
}

/* After a cut: bytes-B3, -B4. */
static void
handle_settle(trp_bytes *bytes)
{
    trp_bytes was = *bytes;

    if (bytes->priv_bytes == 0) {
        *bytes = TRP_BYTES_EMPTY;
        owner_unref(was);
        return;
    }
    if (is_chain(*bytes)) {
        uint32_t index = UINT32_MAX;
        trp_bytes piece = piece_of(*bytes, 0, &index);

        if (piece.priv_bytes == bytes->priv_bytes) {
            piece_ref(piece.priv_owner);
            *bytes = piece;
            owner_unref(was);
        } else if (is_alone(bytes->priv_owner)) {
            chain_shed(bytes);
        }
    }
}

/* ---- cutting --------------------------------------------------------------------------------- */

trp_bytes
trp_bytes_slice(trp_bytes bytes, size_t from, size_t to)
{
    trp_bytes cut = bytes;

    to = to < bytes.priv_bytes ? to : bytes.priv_bytes;
    if (from >= to) {
        return TRP_BYTES_EMPTY;
    }
    if (is_chain(bytes)) {
        uint32_t index = UINT32_MAX;
        trp_bytes piece = piece_of(bytes, from, &index);

        cut.priv_at += (uint32_t)from;
        if (piece.priv_bytes >= to - from) {
            cut = piece; /* bytes-B3 */
        }
    } else {
        cut.priv_data += from;
    }
    cut.priv_bytes = (uint32_t)(to - from);
    piece_ref(cut.priv_owner);
    return cut;
}

void
trp_bytes_skip(trp_bytes *bytes, size_t count)
{
    uint32_t skipped = count < bytes->priv_bytes ? (uint32_t)count : bytes->priv_bytes;

    if (is_chain(*bytes)) {
        bytes->priv_at += skipped;
    } else if (bytes->priv_data != NULL) {
        bytes->priv_data += skipped;
    }
    bytes->priv_bytes -= skipped;
    handle_settle(bytes);
}

trp_bytes
trp_bytes_split(trp_bytes *bytes, size_t count)
{
    trp_bytes front = trp_bytes_slice(*bytes, 0, count);

    trp_bytes_skip(bytes, count);
    return front;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* May pieces be added to the chain of this handle in place? bytes-B1 */
static bool
can_grow(trp_bytes bytes, uint32_t more)
{
    const chain *c = bytes.priv_owner;
    const trp_bytes *last;

    if (!is_chain(bytes) || !is_alone(c) || c->count + more > c->room ||
        bytes.priv_at >= PLACES_MAX) {
        return false;
    }
    last = &c->pieces[c->count - 1];
    return bytes.priv_at + bytes.priv_bytes == last->priv_at + last->priv_bytes;
}

trp_err
trp_bytes_append(trp_bytes *bytes, trp_bytes more)
{
    uint32_t count = pieces_count(*bytes), added = pieces_count(more);
    trp_bytes was = *bytes;
    uint32_t room;
    chain *c;

    if (more.priv_bytes > TRP_BYTES_MAX - bytes->priv_bytes) {
        return TRP_EMSGSIZE;
    }
    if (bytes->priv_bytes == 0 || more.priv_bytes == 0) {
        *bytes = bytes->priv_bytes == 0 ? trp_bytes_ref(more) : *bytes;
        return TRP_OK;
    }
    if (is_next(*bytes, more)) {
        bytes->priv_bytes += more.priv_bytes;
        return TRP_OK;
    }
    if (can_grow(*bytes, added)) {
        trp_bytes held =
            trp_bytes_ref(more); /* it may be the same chain, which is not alone then */

        chain_add_all(bytes->priv_owner, held);
        bytes->priv_bytes += more.priv_bytes;
        trp_bytes_unref(&held);
        return TRP_OK;
    }
    room = 2 * (count + added);
    c = chain_new(room < PIECES_ROOM ? PIECES_ROOM : room);
    if (c == NULL) {
        return TRP_ENOMEM;
    }
    chain_add_all(c, *bytes);
    chain_add_all(c, more);
    *bytes = (trp_bytes){ c, NULL, was.priv_bytes + more.priv_bytes, 0 };
    owner_unref(was);
    return TRP_OK;
}

trp_err
trp_bytes_join(trp_bytes a, trp_bytes b, trp_bytes *ret_bytes)
{
    trp_bytes joined = trp_bytes_ref(a);
    trp_err err = trp_bytes_append(&joined, b);

    if (err != TRP_OK) {
        trp_bytes_unref(&joined);
        return err;
    }
    *ret_bytes = joined;
    return TRP_OK;
}

/* Has the handle memory for nothing but its bytes? */
static bool
is_compact(trp_bytes bytes)
{
    const owner *of = bytes.priv_owner;

    if (of == NULL || bytes.priv_data == NULL) {
        return of == NULL;
    }
    return of->kind == BUFFER ? ((const buffer *)of)->room == bytes.priv_bytes
                              : ((const wrapped *)of)->bytes == bytes.priv_bytes;
}

trp_err
trp_bytes_compact(trp_bytes *bytes)
{
    trp_bytes compact;
    uint8_t *data;
    trp_err err;

    if (is_compact(*bytes)) {
        return TRP_OK;
    }
    err = trp_bytes_new(bytes->priv_bytes, &data, &compact);
    if (err != TRP_OK) {
        return err;
    }
    (void)trp_bytes_copy_out(*bytes, 0, data, bytes->priv_bytes);
    trp_bytes_unref(bytes);
    *bytes = compact;
    return TRP_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

size_t
trp_bytes_parts(trp_bytes bytes, trp_bytes_part *ret_parts, size_t parts_max)
{
    uint32_t index = UINT32_MAX;
    size_t count = 0;

    for (size_t at = 0; at < bytes.priv_bytes && count < parts_max; count++) {
        trp_bytes piece = piece_of(bytes, at, &index);

        ret_parts[count] = (trp_bytes_part){ piece.priv_data, piece.priv_bytes };
        at += piece.priv_bytes;
        index++;
    }
    return count;
}

size_t
trp_bytes_copy_out(trp_bytes bytes, size_t from, void *ret_data, size_t count)
{
    uint32_t index = UINT32_MAX;
    size_t done = 0;

    if (from >= bytes.priv_bytes) {
        return 0;
    }
    count = count < bytes.priv_bytes - from ? count : bytes.priv_bytes - from;
    while (done < count) {
        trp_bytes piece = piece_of(bytes, from + done, &index);
        size_t some = piece.priv_bytes < count - done ? piece.priv_bytes : count - done;

        memcpy((uint8_t *)ret_data + done, piece.priv_data, some);
        done += some;
        index++;
    }
    return done;
}

int
trp_bytes_compare(trp_bytes a, trp_bytes b)
{
    size_t least = a.priv_bytes < b.priv_bytes ? a.priv_bytes : b.priv_bytes;
    size_t at = 0;

    while (at < least) {
        trp_bytes x = trpi_bytes_piece(a, at), y = trpi_bytes_piece(b, at);
        size_t some = x.priv_bytes < y.priv_bytes ? x.priv_bytes : y.priv_bytes;
        int order;

        some = some < least - at ? some : least - at;
        order = memcmp(x.priv_data, y.priv_data, some);
        if (order != 0) {
            return order;
        }
        at += some;
    }
    return a.priv_bytes == b.priv_bytes ? 0 : (a.priv_bytes < b.priv_bytes ? -1 : 1);
}

/* Do these bytes stand at this place? There are so many. */
static bool
stands_at(trp_bytes bytes, size_t from, const uint8_t *what, size_t count)
{
    while (count > 0) {
        trp_bytes piece = trpi_bytes_piece(bytes, from);
        size_t some = piece.priv_bytes < count ? piece.priv_bytes : count;

        if (memcmp(piece.priv_data, what, some) != 0) {
            return false;
        }
        from += some;
        what += some;
        count -= some;
    }
    return true;
}

size_t
trp_bytes_find(trp_bytes bytes, size_t from, const void *what, size_t what_bytes)
{
    const uint8_t *text = what;
    uint32_t index = UINT32_MAX;
    size_t last;

    if (from > bytes.priv_bytes || what_bytes > bytes.priv_bytes - from) {
        return TRP_BYTES_NOT_FOUND;
    }
    if (what_bytes == 0) {
        return from;
    }
    last = bytes.priv_bytes - what_bytes; /* where it can begin */
    for (size_t at = from; at <= last;) {
        trp_bytes piece = piece_of(bytes, at, &index);
        size_t some = piece.priv_bytes < last - at + 1 ? piece.priv_bytes : last - at + 1;
        const uint8_t *hit = memchr(piece.priv_data, text[0], some);

        if (hit == NULL) {
            at += piece.priv_bytes;
            index++;
            continue;
        }
        at += (size_t)(hit - piece.priv_data);
        if (what_bytes == 1 || stands_at(bytes, at + 1, text + 1, what_bytes - 1)) {
            return at;
        }
        at++;
        index = hit + 1 == piece.priv_data + piece.priv_bytes ? index + 1 : index;
    }
    return TRP_BYTES_NOT_FOUND;
}
