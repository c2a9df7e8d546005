/* control_lane.c - what the thread for control lanes does with a connection. See control_lane.h.
 *
 * Limits.  OUTBOX_BYTES that a worker leaves without waiting; ANSWERS_BYTES of answers that wait
 *          for the network: further requests are dropped. control_reserve.h bounds what
 *          waits for a worker.
 * Tests.   tests/unit/remote/control_lane_test.c
 */
#include "remote/association/control_lane.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/poller.h"
#include "remote/association/control_reserve.h"
#include "remote/association/control_scan.h"
#include "remote/association/inbound.h"
#include "remote/association/peer_state.h"

enum {
    OUTBOX_BYTES = 512,
    ANSWERS_BYTES = 512,
    SLICE_BYTES = 4096 /* of one write: so much TLS has reserved */
};

enum { NEWS_WRITTEN = 1, NEWS_CLOSED = 2 };

typedef enum writing { WRITING_NOTHING, WRITING_ANSWERS, WRITING_OUTBOX, WRITING_LANE } writing;

struct trpi_control {
    trpi_control_of of; /* conn NULL: it was not handed over */
    const trpi_control_events *events;
    trpi_control_reserve *reserve;
    trpi_watch *call;
    bool takes_beats; /* heartbeats are not refused (untrusted.c) */
    bool carries;     /* the lane to the peer; the thread's after the hand-over */
    /* the thread's */
    trpi_control_scan in, out; /* places in the streams */
    trpi_control_block *open;  /* being filled */
    writing writing;
    size_t slice_bytes;
    struct {
        size_t bytes;
        uint8_t data[ANSWERS_BYTES];
    } answers[2]; /* those that gather, those that are written */
    size_t at;    /* of outbox or lane */
    uint32_t part;
    /* for the thread; release */
    struct {
        atomic_bool full;
        size_t bytes;
        uint8_t data[OUTBOX_BYTES];
    } outbox;
    struct {
        atomic_bool asked;
        uint32_t count;
        trpi_iov iov[TRPI_TRANSPORT_IOV_MAX];
    } lane; /* a write of the lane's own buffers */
    /* for the call; release */
    _Atomic(trpi_control_block *) given; /* the newest first */
    atomic_uint waiting;                 /* blocks of them; seq_cst: control-lane-C4 */
    atomic_bool paused;                  /* likewise */
    atomic_uint news;
    char reason[160];
};

/* ---- the thread: writing --------------------------------------------------------------------- */

static void
news_tell(trpi_control *handed, uint32_t news)
{
    atomic_fetch_or_explicit(&handed->news, news, memory_order_release);
    trpi_watch_again(handed->call, TRPI_NET_IN);
}

/* The connection that answers to this peer go out on; NULL: the thread has none. control-lane-C5 */
static trpi_control *
carrier_of(const trpi_control *handed)
{
    trpi_control *carrier = trpi_peer_carrier(handed->of.peer);
    return carrier != NULL && carrier->of.uid == handed->of.uid ? carrier : NULL;
}

static void
carrier_be(trpi_control *handed)
{
    trpi_peer_carrier_put(handed->of.peer, handed, handed->of.remote->ops->waker(handed->of.link));
}

/* Put the heartbeat that waits, if there is one, behind the answers. */
static void
beat_take(trpi_control *handed)
{
    trpi_peer *peer = handed->of.peer;
    size_t at = handed->answers[0].bytes;
    if (trpi_peer_carrier(peer) == handed) {
        size_t count = trpi_beat_take(trpi_peer_beat_box(peer), handed->of.uid,
                                      handed->answers[0].data + at, ANSWERS_BYTES - at);
        handed->answers[0].bytes = at + count;
        trpi_traffic_bytes_out_add(&peer->traffic, count);
    }
}

/* So many of these bytes are written next: whole frames if an answer waits. */
static size_t
slice_of(trpi_control *handed, const uint8_t *bytes, size_t count)
{
    size_t most = count < SLICE_BYTES ? count : (size_t)SLICE_BYTES, slice = 0;
    do {
        slice += trpi_control_follow(&handed->out, bytes + slice, most - slice);
    } while (slice < most &&
             !(handed->answers[0].bytes > 0 && trpi_control_is_between(&handed->out)));
    if (handed->out.opens && !handed->carries) {
        handed->carries = true;
        carrier_be(handed);
    }
    return slice;
}

/* Choose what is written next. false: nothing. */
static bool
write_choose(trpi_control *handed, trpi_iov *ret_iov)
{
    beat_take(handed);
    if (handed->answers[0].bytes > 0 && trpi_control_is_between(&handed->out)) {
        memcpy(&handed->answers[1], &handed->answers[0], sizeof handed->answers[0]);
        handed->answers[0].bytes = 0;
        handed->writing = WRITING_ANSWERS;
        *ret_iov = (trpi_iov){ handed->answers[1].data, handed->answers[1].bytes };
        return true;
    }
    if (atomic_load_explicit(&handed->outbox.full, memory_order_acquire)) {
        const uint8_t *data = handed->outbox.data + handed->at;
        handed->writing = WRITING_OUTBOX;
        *ret_iov = (trpi_iov){ data, slice_of(handed, data, handed->outbox.bytes - handed->at) };
    } else if (atomic_load_explicit(&handed->lane.asked, memory_order_acquire)) {
        const trpi_iov *part = &handed->lane.iov[handed->part];
        const uint8_t *data = (const uint8_t *)part->data + handed->at;
        handed->writing = WRITING_LANE;
        *ret_iov = (trpi_iov){ data, slice_of(handed, data, part->bytes - handed->at) };
    } else {
        return false;
    }
    handed->slice_bytes = ret_iov->bytes;
    return true;
}

/* The write that was chosen is done. */
static void
write_over(trpi_control *handed)
{
    writing was = handed->writing;
    handed->writing = WRITING_NOTHING;
    if (was == WRITING_OUTBOX) {
        handed->at += handed->slice_bytes;
        if (handed->at == handed->outbox.bytes) {
            handed->at = 0;
            atomic_store_explicit(&handed->outbox.full, false, memory_order_release);
        }
    } else if (was == WRITING_LANE) {
        handed->at += handed->slice_bytes;
        if (handed->at == handed->lane.iov[handed->part].bytes) {
            handed->at = 0;
            handed->part++;
        }
        if (handed->part == handed->lane.count) {
            handed->part = 0;
            atomic_store_explicit(&handed->lane.asked, false, memory_order_release);
            news_tell(handed, NEWS_WRITTEN);
        }
    }
}

/* Write until the network is full, or nothing is left. */
static void
write_all(trpi_control *handed)
{
    trpi_iov iov;
    while (handed->writing == WRITING_NOTHING && write_choose(handed, &iov)) {
        bool done = false;
        /* an error: closed() comes or came; nothing is written any more */
        (void)handed->of.remote->ops->write(handed->of.link, &iov, 1, &done);
        if (done) {
            write_over(handed);
        }
    }
}

void
trpi_control_written(trpi_control *handed)
{
    write_over(handed);
    write_all(handed);
}

void
trpi_control_nudged(trpi_control *handed)
{
    if (handed->carries && carrier_of(handed) == NULL) {
        carrier_be(handed);
    }
    write_all(handed);
}

/* ---- the thread: reading --------------------------------------------------------------------- */

static void
answer_put(trpi_control *carrier, const trpi_control_step *step)
{
    trpi_remote *remote = carrier->of.remote;
    trpi_peer *peer = carrier->of.peer;
    size_t at = carrier->answers[0].bytes;
    memcpy(carrier->answers[0].data + at, step->bytes, step->count);
    carrier->answers[0].bytes = at + step->count;
    trpi_count(&remote->stats.frames_in, 1);
    trpi_count(&remote->stats.frames_out, step->answers_beat); /* no PONG counts, as elsewhere */
    trpi_traffic_bytes_in_add(&peer->traffic, step->count);
    trpi_traffic_bytes_out_add(&peer->traffic, step->count);
}

/* Give the open block to the call. */
static void
block_push(trpi_control *handed)
{
    trpi_control_block *block = handed->open;
    handed->open = NULL;
    if (block == NULL) {
        return;
    }
    atomic_fetch_add_explicit(&handed->waiting, 1, memory_order_seq_cst);
    block->next = atomic_load_explicit(&handed->given, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&handed->given, &block->next, block,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

/* false: there is no block, against control-reserve-R2. */
static bool
hand_on(trpi_control *handed, const uint8_t *bytes, size_t count, uint64_t now_ns)
{
    while (count > 0) {
        if (handed->open != NULL && handed->open->count == TRPI_CONTROL_BLOCK_BYTES) {
            block_push(handed);
        }
        if (handed->open == NULL) {
            handed->open = trpi_control_block_take(handed->reserve);
            if (handed->open == NULL) {
                return false;
            }
            handed->open->arrived_ns = now_ns;
        }
        size_t room = TRPI_CONTROL_BLOCK_BYTES - handed->open->count;
        size_t some = count < room ? count : room;
        memcpy(handed->open->bytes + handed->open->count, bytes, some);
        handed->open->count += (uint32_t)some;
        bytes += some;
        count -= some;
    }
    return true;
}

static bool
may_read(const trpi_control *handed)
{
    return trpi_control_may_read(handed->reserve,
                                 atomic_load_explicit(&handed->waiting, memory_order_seq_cst));
}

bool
trpi_control_paused(trpi_control *handed)
{
    atomic_store_explicit(&handed->paused, true, memory_order_seq_cst);
    if (!may_read(handed)) {
        return true; /* control-lane-C4: whoever gives the last block back sees `paused` */
    }
    atomic_store_explicit(&handed->paused, false, memory_order_relaxed);
    return false;
}

/* control-lane-C2 */
static trpi_control_view
view_of(const trpi_control *handed, const trpi_control *carrier)
{
    return (trpi_control_view){
        .proved = carrier != NULL && trpi_peer_proved_uid(handed->of.peer) == handed->of.uid,
        .room = carrier != NULL &&
                carrier->answers[0].bytes + TRPI_CONTROL_ANSWER_BYTES <= ANSWERS_BYTES,
        .beat = handed->takes_beats
                    ? atomic_load_explicit(&handed->of.remote->beat_reply, memory_order_acquire)
                    : NULL
    };
}

void
trpi_control_bytes(trpi_control *handed, const uint8_t *bytes, size_t count)
{
    trpi_remote *remote = handed->of.remote;
    uint64_t now_ns = trpi_world_mono_ns(remote->world);
    trpi_control *carrier = carrier_of(handed);
    trpi_control_view view = view_of(handed, carrier);
    trpi_control_step step;
    bool good = true;
    while (good && trpi_control_next(&handed->in, &view, &bytes, &count, &step)) {
        if (step.verdict == TRPI_CONTROL_ANSWER) {
            answer_put(carrier, &step);
            write_all(carrier);
            view = view_of(handed, carrier);
        } else if (step.verdict == TRPI_CONTROL_HAND_ON) {
            good = hand_on(handed, step.bytes, step.count, now_ns);
        }
    }
    if (handed->open != NULL) {
        block_push(handed);
        trpi_watch_again(handed->call, TRPI_NET_IN);
    }
    if (!good) {
        remote->ops->close(handed->of.link);
    } else if (!may_read(handed) && trpi_control_paused(handed)) {
        remote->ops->pause(handed->of.link);
    }
}

void
trpi_control_closed(trpi_control *handed, const char *reason)
{
    trpi_peer_carrier_end(handed->of.peer, handed);
    (void)snprintf(handed->reason, sizeof handed->reason, "%s", reason);
    news_tell(handed, NEWS_CLOSED);
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Return the blocks that wait, the oldest first. */
static trpi_control_block *
blocks_take(trpi_control *handed)
{
    /* acquire: what is in them */
    trpi_control_block *newest =
        atomic_exchange_explicit(&handed->given, NULL, memory_order_acquire);
    trpi_control_block *oldest = NULL;
    while (newest != NULL) {
        trpi_control_block *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static uint32_t
on_call(void *user, uint32_t events)
{
    trpi_control *handed = user;
    trpi_conn *conn = handed->of.conn;
    (void)events;
    /* before the blocks: those that came before the end are among them. acquire: the reason */
    uint32_t news = atomic_exchange_explicit(&handed->news, 0, memory_order_acquire);
    trpi_control_block *block = blocks_take(handed);
    while (block != NULL) {
        trpi_control_block *next = block->next;
        handed->events->bytes(conn, block->bytes, block->count, block->arrived_ns);
        trpi_control_block_give(handed->reserve, block);
        atomic_fetch_sub_explicit(&handed->waiting, 1, memory_order_seq_cst);
        block = next;
    }
    if (atomic_load_explicit(&handed->paused, memory_order_seq_cst) &&
        atomic_exchange_explicit(&handed->paused, false, memory_order_seq_cst)) {
        handed->of.remote->ops->nudge(handed->of.link); /* control-lane-C4 */
    }
    if ((news & NEWS_WRITTEN) != 0) {
        handed->events->written(conn);
    }
    if ((news & NEWS_CLOSED) != 0) {
        trpi_watch_remove(handed->call); /* control-lane-C3 */
    }
    return 0;
}

static void
on_call_removed(void *user)
{
    trpi_control *handed = user;
    if (handed->of.conn != NULL) {
        handed->events->closed(handed->of.conn, handed->reason);
    } else {
        trpi_free(handed);
    }
}

static const trpi_watch_events call_events = { on_call, on_call_removed };

/* ---- a worker -------------------------------------------------------------------------------- */

trp_err
trpi_control_write(trpi_control *handed, const trpi_iov *iov, size_t count, bool *ret_done)
{
    size_t bytes = 0;
    trpi_assert(!atomic_load_explicit(&handed->lane.asked, memory_order_relaxed));
    for (size_t i = 0; i < count; i++) {
        bytes += iov[i].bytes;
    }
    /* acquire: the thread has read the last ones */
    if (ret_done != NULL && bytes <= OUTBOX_BYTES &&
        !atomic_load_explicit(&handed->outbox.full, memory_order_acquire)) {
        handed->outbox.bytes = 0;
        for (size_t i = 0; i < count; i++) {
            memcpy(handed->outbox.data + handed->outbox.bytes, iov[i].data, iov[i].bytes);
            handed->outbox.bytes += iov[i].bytes;
        }
        atomic_store_explicit(&handed->outbox.full, true, memory_order_release);
        *ret_done = true;
    } else {
        memcpy(handed->lane.iov, iov, count * sizeof *iov);
        handed->lane.count = (uint32_t)count;
        atomic_store_explicit(&handed->lane.asked, true, memory_order_release);
    }
    handed->of.remote->ops->nudge(handed->of.link);
    return TRP_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Return remote's reserve, made at the first use; NULL: no memory. */
static trpi_control_reserve *
reserve_of(trpi_remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    if (remote->control == NULL) {
        remote->control = trpi_control_reserve_new();
    }
    trpi_control_reserve *reserve = remote->control;
    pthread_mutex_unlock(&remote->lock);
    return reserve;
}

trpi_control *
trpi_control_new(const trpi_control_of *of, const trpi_control_events *events)
{
    trpi_poller *poller = NULL;
    trpi_control_reserve *reserve = reserve_of(of->remote);
    trpi_control *handed = reserve != NULL ? trpi_alloc(sizeof *handed) : NULL;
    if (handed == NULL || trpi_control_reserve_join(reserve) != TRP_OK) {
        trpi_free(handed);
        return NULL;
    }
    handed->of = *of;
    handed->events = events;
    handed->reserve = reserve;
    handed->takes_beats =
        !of->remote->options.untrusted || trpi_untrusted_takes_clusters(of->remote);
    if (trpi_system_poller(of->remote->system, &poller) != TRP_OK ||
        trpi_watch_new(poller, -1, &call_events, handed, &handed->call) != TRP_OK) {
        trpi_control_free(handed);
        return NULL;
    }
    return handed;
}

void
trpi_control_carry(trpi_control *handed)
{
    handed->carries = true;
}

void
trpi_control_drop(trpi_control *handed)
{
    trpi_control_reserve_leave(handed->reserve);
    handed->of.conn = NULL;
    trpi_watch_remove(handed->call);
}

void
trpi_control_free(trpi_control *handed)
{
    if (handed != NULL) {
        trpi_control_reserve_leave(handed->reserve);
        trpi_free(handed);
    }
}
