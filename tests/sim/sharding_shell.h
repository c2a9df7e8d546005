/* sharding_shell.h - the world of sharding_test.c, and the shell of its nodes: connections,
 * buffers, entities that count messages. One file includes it. */
#ifndef TESTS_SIM_SHARDING_SHELL_H
#define TESTS_SIM_SHARDING_SHELL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/coordinator.h"

#define PLACES 5u
#define SHARDS 8u
#define INCS 48u /* incarnations of one run */
#define VIEWS 400u
#define END_MS 10000u /* of the faults */
#define QUIET_MS 9000u
#define SUSPEND_MS 1500u /* of an isolated node */
#define DETECT_MS 1000u
#define STABLE_MS 2000u /* unreachable for so long: Down */
#define WAITING_MAX 400u

struct msg {
    struct msg *next;
    uint32_t sender, shard, seq;
};
struct queue {
    struct msg *first, *last;
    uint32_t count;
};
enum shell_state { UNKNOWN, AT_HOME, OWN, STOPPING };
struct shell { /* of one shard on one node */
    enum shell_state state;
    uint32_t home;
    uint64_t epoch;
    struct queue front, back, mailbox;
    bool handling, drops;
};
enum item_kind { MSG, RETURN, FENCE, FENCED, DROPPED };
struct item { /* on a connection */
    struct item *next;
    enum item_kind kind;
    uint32_t shard;
    uint64_t epoch, ready_ms;
    struct msg *msg;
};
struct link {
    struct item *first, *last;
    bool pumping;
};
struct inc {
    uint32_t place, view;
    trpi_node_id id;
    bool alive, suspended, isolated, leaves, left;
    uint64_t paused_ms, pause_began_ms, isolated_ms, dead_ms;
    trpi_region_core *region;
    trpi_coordinator *coordinator;
    struct shell shells[SHARDS];
    uint32_t seqs[SHARDS];
};
struct view {
    trpi_shard_member members[INCS];
    uint32_t count;
};
enum event_kind { FRAME, PUMP, HANDLE, ANSWER };
struct event {
    uint64_t at_ms, seq;
    enum event_kind kind;
    uint32_t to, from, shard;
    trpi_buffer bytes;
    trpi_allocation_question *question; /* ANSWER: owned */
};
static struct world {
    uint64_t now_ms, seq, random;
    struct event *heap;
    uint32_t heap_count, heap_room;
    struct inc incs[INCS];
    uint32_t incs_count, up_number;
    struct link links[INCS][INCS];
    bool cut[PLACES][PLACES];
    uint64_t cut_until_ms;
    struct view *views;
    uint32_t views_count;
    uint64_t until_ms[INCS]; /* removed: takeover */
    bool removed[INCS];
    uint32_t handled_seq[INCS][SHARDS];
    uint64_t sent, handled, told, dropped, destroyed, asked;
    bool manual, faulty;
    uint32_t loss, doubles; /* of a thousand frames */
    trpi_sharding_settings settings;
    char why[512];
} w;
static const char *broken = "";

#include "tests/sim/timeline.h"

static uint64_t total_handled, total_told, total_dropped, total_destroyed, total_asked, total_incs,
    total_drains;

static void
fail(const char *law, uint32_t node, uint32_t shard, const char *text)
{
    if (w.why[0] == '\0') {
        (void)snprintf(w.why, sizeof w.why, "%s at %llu ms: node %u, shard %u: %s", law,
                       (unsigned long long)w.now_ms, node, shard, text);
    }
}

/* ---- queues and connections ------------------------------------------------------------------ */

static void
push_msg(struct queue *queue, struct msg *msg)
{
    msg->next = NULL;
    if (queue->first == NULL) {
        queue->first = msg;
    } else {
        queue->last->next = msg;
    }
    queue->last = msg;
    queue->count++;
}

static struct msg *
take_msg(struct queue *queue)
{
    struct msg *msg = queue->first;
    if (msg != NULL) {
        queue->first = msg->next;
        queue->count--;
    }
    return msg;
}

static bool
is_paused(const struct inc *inc)
{
    return inc->paused_ms != 0; /* until end_pauses() looks, as a stall guard does */
}

static bool
is_cut(uint32_t from, uint32_t to)
{
    return from != to && w.cut[w.incs[from].place][w.incs[to].place];
}

static void
send_item(uint32_t from, uint32_t to, enum item_kind kind, uint32_t shard, uint64_t epoch,
          struct msg *msg)
{
    struct link *link = &w.links[from][to];
    struct item *item;
    if (!w.incs[to].alive) {
        w.destroyed += msg != NULL;
        trpi_free(msg);
        return;
    }
    item = trpi_alloc(sizeof *item);
    trpi_assert(item != NULL);
    *item = (struct item){ NULL, kind, shard, epoch, w.now_ms + 1 + draw(15), msg };
    if (link->first == NULL) {
        link->first = item;
    } else {
        link->last->next = item;
    }
    link->last = item;
    if (!link->pumping) {
        link->pumping = true;
        post_event((struct event){ .kind = PUMP, .from = from, .to = to }, w.now_ms + 1 + draw(15));
    }
}

/* ---- the shell ------------------------------------------------------------------------------- */

static void act_region(uint32_t node);

static void
step_region(uint32_t node, trpi_region_event event)
{
    struct inc *inc = &w.incs[node];
    trpi_check check;
    (void)trpi_region_core_step(inc->region, w.now_ms, &event);
    const char *bad = trpi_region_core_check(inc->region, &check);
    if (bad != NULL) {
        fail("sharding-sim-L5", node, event.shard, bad);
    }
    act_region(node);
}

static void
send_frame(uint32_t from, const trpi_node_id *to, const trpi_buffer *bytes)
{
    for (uint32_t i = 0; i < w.incs_count; i++) {
        uint32_t copies = draw(1000) < w.doubles ? 2 : 1;
        if (!trpi_node_id_equal(&w.incs[i].id, to) || !w.incs[i].alive) {
            continue;
        }
        for (; copies > 0; copies--) {
            if (i != from && (is_cut(from, i) || draw(1000) < w.loss)) {
                continue;
            }
            struct event event = { .kind = FRAME, .from = from, .to = i };
            trpi_assert(trpi_buffer_append(&event.bytes, bytes->data, bytes->count,
                                           TRPI_BUFFER_NO_LIMIT) == TRP_OK);
            post_event(event, w.now_ms + (i == from ? 0 : 1 + draw(draw(20) == 0 ? 300 : 20)));
        }
    }
}

static void
pump_mailbox(uint32_t node, uint32_t shard)
{
    struct shell *shell = &w.incs[node].shells[shard];
    if (!shell->handling && (shell->mailbox.count > 0 || shell->state == STOPPING)) {
        shell->handling = true;
        post_event((struct event){ .kind = HANDLE, .to = node, .shard = shard },
                   w.now_ms + draw(5));
    }
}

/* Pass a message on as its shard is: to the mailbox, to the home, or into the buffer. */
static void
pass_msg(uint32_t node, struct msg *msg, struct queue *waiting)
{
    struct shell *shell = &w.incs[node].shells[msg->shard];
    if (shell->state == OWN) {
        push_msg(&shell->mailbox, msg);
        pump_mailbox(node, msg->shard);
    } else if (shell->state == AT_HOME) {
        send_item(node, shell->home, MSG, msg->shard, shell->epoch, msg);
    } else if (shell->drops) { /* region-shard-S5 */
        w.dropped++;
        trpi_free(msg);
    } else if (waiting == &shell->back && shell->back.count >= WAITING_MAX) {
        w.told++;
        trpi_free(msg);
    } else {
        push_msg(waiting, msg);
    }
}

static void
flush_shell(uint32_t node, uint32_t shard)
{
    struct shell *shell = &w.incs[node].shells[shard];
    struct queue front = shell->front, back = shell->back;
    struct msg *msg;
    memset(&shell->front, 0, sizeof shell->front);
    memset(&shell->back, 0, sizeof shell->back);
    while ((msg = take_msg(&front)) != NULL || (msg = take_msg(&back)) != NULL) {
        pass_msg(node, msg, &shell->back);
    }
}

static uint32_t
inc_of(const trpi_node_id *id)
{
    uint32_t i = 0;
    while (!trpi_node_id_equal(&w.incs[i].id, id)) {
        i++;
    }
    return i;
}

static void
act_region(uint32_t node)
{
    uint32_t count = 0;
    struct inc *inc = &w.incs[node];
    const trpi_region_action *actions = trpi_region_core_actions(inc->region, &count);
    for (uint32_t i = 0; i < count; i++) {
        const trpi_region_action *a = &actions[i];
        struct shell *shell = &inc->shells[a->shard];
        switch (a->kind) {
        case TRPI_REGION_SEND:
            send_frame(node, &a->node, &a->bytes);
            break;
        case TRPI_REGION_OWN:
            shell->state = OWN;
            shell->epoch = a->epoch;
            shell->drops = false;
            flush_shell(node, a->shard);
            break;
        case TRPI_REGION_HOME:
            shell->state = AT_HOME;
            shell->epoch = a->epoch;
            shell->home = inc_of(&a->node);
            shell->drops = false;
            flush_shell(node, a->shard);
            break;
        case TRPI_REGION_BUFFER:
            shell->state = UNKNOWN;
            shell->drops = w.settings.drops && a->moves;
            break;
        case TRPI_REGION_STOP:
            shell->state = STOPPING;
            shell->drops = w.settings.drops;
            pump_mailbox(node, a->shard);
            break;
        case TRPI_REGION_FENCE:
            send_item(node, inc_of(&a->node), FENCE, a->shard, 0, NULL);
            break;
        case TRPI_REGION_MAY_LEAVE:
            inc->left = true;
            break;
        default:
            break;
        }
    }
}

/* The program answers: well or badly, late or never. */
static void
ask_program(uint32_t node, trpi_allocation_question *question)
{
    trp_allocation_round *ask = &question->ask;
    uint64_t mood = draw(10);
    for (uint32_t i = 0; i < ask->wanted_count; i++) { /* one more than there are, and NONE */
        uint64_t index = draw(ask->regions_count + 2ull);
        ask->wanted_homes[i] = index > ask->regions_count ? TRP_ALLOCATION_NONE : (uint32_t)index;
    }
    uint32_t moves_max = w.now_ms < END_MS ? ask->moves_max : 0; /* then all come to rest */
    for (; ask->moves_count < moves_max && draw(3) != 0; ask->moves_count++) {
        ask->moves[ask->moves_count] = (uint32_t)draw(ask->shards + 1ull);
    }
    ask->moves_count += mood == 1 && w.now_ms < END_MS ? 1 : 0; /* maybe one too many */
    w.asked++;
    if (mood == 0) { /* it got lost */
        trpi_free(question);
        return;
    }
    post_event((struct event){ .kind = ANSWER, .to = node, .question = question },
               w.now_ms + draw(mood == 2 ? 3000 : 100));
}

static void
step_coordinator(uint32_t node, trpi_coordinator_event event)
{
    struct inc *inc = &w.incs[node];
    uint32_t count = 0;
    trpi_check check;
    (void)trpi_coordinator_step(inc->coordinator, w.now_ms, &event);
    const char *bad = trpi_coordinator_check(inc->coordinator, &check);
    if (bad != NULL) {
        fail("sharding-sim-L5", node, 0, bad);
    }
    const trpi_coordinator_action *actions = trpi_coordinator_actions(inc->coordinator, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (actions[i].kind == TRPI_COORDINATOR_SEND) {
            send_frame(node, &actions[i].node, &actions[i].bytes);
        } else if (actions[i].kind == TRPI_COORDINATOR_ROUND) {
            ask_program(node, trpi_coordinator_take_question(inc->coordinator, i));
        }
    }
}

static void
want_shard(uint32_t node, uint32_t shard)
{
    struct shell *shell = &w.incs[node].shells[shard];
    if (shell->front.count + shell->back.count > 0) {
        step_region(node, (trpi_region_event){ .kind = TRPI_REGION_WANTED, .shard = shard });
    }
}

static void
tell_shard(uint32_t node, uint32_t shard)
{
    struct inc *inc = &w.incs[node];
    struct msg *msg = trpi_alloc(sizeof *msg);
    trpi_assert(msg != NULL);
    *msg = (struct msg){ NULL, node, shard, ++inc->seqs[shard] };
    w.sent++;
    pass_msg(node, msg, &inc->shells[shard].back);
    want_shard(node, shard);
}

static bool
is_dropped(const struct shell *shell, uint64_t epoch)
{
    return shell->state == STOPPING && shell->epoch == epoch ? shell->drops : w.settings.late_drops;
}

static void
take_item(uint32_t from, uint32_t to, struct item *item)
{
    struct shell *shell = &w.incs[to].shells[item->shard];
    trpi_region_event event = { .shard = item->shard,
                                .epoch = item->epoch,
                                .from = w.incs[from].id };
    switch (item->kind) {
    case MSG:
        if ((shell->state == OWN && shell->epoch == item->epoch) || strcmp(broken, "epoch") == 0) {
            push_msg(&shell->mailbox, item->msg);
            pump_mailbox(to, item->shard);
        } else if (is_dropped(shell, item->epoch)) {
            w.dropped++;
            trpi_free(item->msg);
            send_item(to, from, DROPPED, item->shard, item->epoch, NULL);
        } else {
            send_item(to, from, RETURN, item->shard, item->epoch, item->msg);
        }
        break;
    case RETURN:
        if (strcmp(broken, "buffers") == 0) {
            trpi_free(item->msg);
            break;
        }
        push_msg(&shell->front, item->msg);
        event.kind = TRPI_REGION_RETURNED;
        step_region(to, event);
        if (shell->state == OWN || shell->state == AT_HOME) {
            flush_shell(to, item->shard);
        }
        want_shard(to, item->shard);
        break;
    case FENCE:
        send_item(to, from, FENCED, item->shard, 0, NULL);
        break;
    case DROPPED:
        event.kind = TRPI_REGION_RETURNED;
        if (shell->state == AT_HOME && shell->epoch == item->epoch) {
            step_region(to, event);
        }
        break;
    case FENCED:
        event.kind = TRPI_REGION_FENCED;
        step_region(to, event);
        break;
    }
}

static void
pump_link(uint32_t from, uint32_t to)
{
    struct link *link = &w.links[from][to];
    struct item *item = link->first;
    link->pumping = false;
    if (item == NULL) {
        return;
    }
    bool blocked = is_cut(from, to) || is_paused(&w.incs[to]);
    if (!blocked && item->ready_ms <= w.now_ms) {
        link->first = item->next;
        take_item(from, to, item);
        trpi_free(item);
    }
    if (link->first != NULL && !link->pumping) {
        uint64_t ready_ms = link->first->ready_ms;
        link->pumping = true;
        uint64_t at_ms = blocked ? w.now_ms + 20 : ready_ms > w.now_ms ? ready_ms : w.now_ms;
        post_event((struct event){ .kind = PUMP, .from = from, .to = to }, at_ms);
    }
}

/* ---- entities -------------------------------------------------------------------------------- */

static bool
runs_shard(uint32_t node, uint32_t shard)
{
    const struct inc *inc = &w.incs[node];
    return inc->alive && !inc->suspended && !is_paused(inc) && inc->shells[shard].state >= OWN;
}

static void
handle_msg(uint32_t node, struct msg *msg)
{
    for (uint32_t i = 0; i < w.incs_count; i++) {
        if (i != node && runs_shard(i, msg->shard)) {
            fail("sharding-sim-L1", node, msg->shard, "it is running on another node, too");
        }
    }
    if (msg->seq <= w.handled_seq[msg->sender][msg->shard]) {
        fail("sharding-sim-L2", node, msg->shard, "a message came after a later one");
    }
    w.handled_seq[msg->sender][msg->shard] = msg->seq;
    w.handled++;
    trpi_free(msg);
}

static void
handle_one(uint32_t node, uint32_t shard)
{
    struct inc *inc = &w.incs[node];
    struct shell *shell = &inc->shells[shard];
    shell->handling = false;
    if (!inc->alive) {
        return;
    }
    if (inc->suspended || is_paused(inc)) { /* what comes is kept */
        shell->handling = true;
        post_event((struct event){ .kind = HANDLE, .to = node, .shard = shard }, w.now_ms + 20);
        return;
    }
    struct msg *msg = take_msg(&shell->mailbox);
    if (msg != NULL) {
        handle_msg(node, msg);
    }
    if (shell->mailbox.count == 0 && shell->state == STOPPING) {
        shell->state = UNKNOWN;
        step_region(node, (trpi_region_event){ .kind = TRPI_REGION_STOPPED, .shard = shard });
        want_shard(node, shard);
    }
    pump_mailbox(node, shard);
}

#endif
