/* Random clusters of engines of singletons, under lost messages, lagging views, crashes and leaves:
 * never two run at once, and one runs in the end. A longer run: TROUPE_TEST_ROUNDS=100000. */
#include "tests/unit/cluster/singletons.h"

#include <stdlib.h>

#include "tests/unit/draw.h"

enum { QUEUE = 256, VIEWS = 512, ROUNDS = 1500 };

static uint64_t
takeover(void *arg, const trpi_node_id *id)
{
    (void)arg;
    (void)id;
    return 0;
}

struct frame {
    uint32_t to;
    trpi_singleton_word word;
    uint64_t round;
    uint32_t data; /* 0: none */
};

struct node {
    trpi_singleton_core *core;
    uint32_t view; /* of world.views: what it has seen */
    bool alive, runs, stopping, over, stuck;
    uint64_t stops_ms;
    struct frame queue[QUEUE]; /* from this node */
    uint32_t queued;
};

static struct world {
    struct node nodes[NODES];
    char views[VIEWS][NODES + 1]; /* as view() */
    uint32_t views_count, started, graceful, given, received;
    uint64_t now_ms;
    unit_draw draw;
    uint32_t at; /* the node whose core is stepped */
    bool graceful_stop;
} world;

static void
carry_out(void *arg, const trpi_singleton_action *a)
{
    struct node *n = arg;
    switch (a->kind) {
    case TRPI_SINGLETON_SEND:
        if (n->queued < QUEUE) {
            n->queue[n->queued++] =
                (struct frame){ (uint32_t)(a->to->uid - 100), a->word, a->round,
                                a->data != NULL && a->data->count == 4
                                    ? *(const uint32_t *)(const void *)a->data->data
                                    : 0 };
        }
        break;
    case TRPI_SINGLETON_SPAWN:
        UNIT_TRUE(!n->runs);
        n->runs = true;
        n->stopping = false;
        world.started++;
        world.received += a->data != NULL;
        break;
    case TRPI_SINGLETON_STOP:
    case TRPI_SINGLETON_KILL:
        n->stopping = true;
        n->stops_ms = world.now_ms + unit_drawn(&world.draw, 3000);
        world.graceful_stop = a->kind == TRPI_SINGLETON_STOP;
        break;
    case TRPI_SINGLETON_STUCK:
        n->stuck = true;
        break;
    case TRPI_SINGLETON_OVER:
        n->over = true;
        break;
    default:
        break;
    }
}

static void
world_step(uint32_t at, trpi_singleton_event *event)
{
    struct node *n = &world.nodes[at];
    UNIT_EQUAL(trpi_singleton_step(n->core, world.now_ms, event), TRP_OK);
    if (n->stuck) {
        n->stuck = n->runs = n->stopping = false;
        trpi_singleton_restart(n->core, world.now_ms);
    }
}

static void
world_view(uint32_t at)
{
    trpi_aged members[NODES];
    uint32_t count = 0;
    const char *statuses = world.views[world.nodes[at].view];
    for (uint32_t i = 0; i < NODES; i++) {
        static const char letters[] = "?juled";
        const char *letter = strchr(letters, statuses[i]);
        if (statuses[i] != '-' && letter != NULL) {
            members[count++] = member(i, (uint32_t)(letter - letters));
        }
    }
    trpi_singleton_event event = {
        .kind = TRPI_SINGLETON_VIEW, .members = members, .count = count, .takeover_ms = takeover
    };
    if (statuses[at] == '-') {
        event = (trpi_singleton_event){ .kind = TRPI_SINGLETON_OUT };
    }
    world_step(at, &event);
}

static void
world_change(uint32_t node, char status)
{
    UNIT_REQUIRE(world.views_count < VIEWS);
    memcpy(world.views[world.views_count], world.views[world.views_count - 1], NODES + 1);
    world.views[world.views_count++][node] = status;
}

static void
world_deliver(uint32_t at, bool lossy)
{
    struct node *n = &world.nodes[at];
    if (n->queued == 0) {
        return;
    }
    struct frame f = n->queue[0];
    memmove(n->queue, n->queue + 1, --n->queued * sizeof f);
    if (lossy && unit_drawn(&world.draw, 4) == 0) {
        return;
    }
    struct node *to = &world.nodes[f.to];
    if (!to->alive) {
        return;
    }
    trpi_buffer data = { NULL, 0, 0 };
    if (f.data != 0) {
        UNIT_EQUAL(trpi_buffer_append(&data, &f.data, 4, 100), TRP_OK);
    }
    trpi_aged sender = member(at, TRP_MEMBER_UP);
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_FRAME,
                                   .from = sender.id,
                                   .up_number = sender.up_number,
                                   .word = f.word,
                                   .round = f.round,
                                   .data = &data };
    world_step(f.to, &event);
    trpi_buffer_fini(&data);
}

/* Stops end, timers fire. */
static void
world_time(uint32_t at)
{
    struct node *n = &world.nodes[at];
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_TICK };
    if (n->runs && n->stopping && world.now_ms >= n->stops_ms) {
        static uint32_t number;
        if (world.graceful_stop && unit_drawn(&world.draw, 2) == 0) {
            trpi_buffer data = { NULL, 0, 0 };
            number++;
            UNIT_EQUAL(trpi_buffer_append(&data, &number, 4, 100), TRP_OK);
            trpi_singleton_event gives_data = { .kind = TRPI_SINGLETON_DATA, .data = &data };
            world_step(at, &gives_data);
            trpi_buffer_fini(&data);
        }
        n->runs = n->stopping = false;
        event.kind = TRPI_SINGLETON_STOPPED;
        world_step(at, &event);
    } else if (trpi_singleton_wake_ms(n->core) <= world.now_ms) {
        world_step(at, &event);
    }
}

static uint32_t
running(uint32_t *ret_where)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        if (world.nodes[i].alive && world.nodes[i].runs) {
            count++;
            *ret_where = i;
        }
    }
    return count;
}

/* One change of the membership, which all will see in the end. */
static void
world_fate(uint32_t at, bool calm)
{
    struct node *n = &world.nodes[at];
    const char *now = world.views[world.views_count - 1];
    uint32_t up = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        up += now[i] == 'u';
    }
    if (!calm && now[at] == 'u' && up > 1 && unit_drawn(&world.draw, 2) == 0) {
        world_change(at, 'e');
    } else if (!calm && now[at] == 'u' && up > 1 && unit_drawn(&world.draw, 3) == 0) {
        n->alive = n->runs = false; /* a crash; a downed node that is alive is suspended before */
        world_change(at, 'd');
    } else if (now[at] == 'e' && (n->over || !n->alive)) {
        world_change(at, '-');
    } else if (now[at] == 'd') {
        world_change(at, '-');
    }
}

static bool
play(uint32_t broken)
{
    trpi_singleton_settings with = settings;
    uint32_t where = 0;
    bool two = false;
    with.broken = broken;
    unit_draw draw = world.draw;
    memset(&world, 0, sizeof world);
    world.draw = draw;
    world.views_count = 1;
    memset(world.views[0], 'u', NODES);
    for (uint32_t i = 0; i < NODES; i++) {
        trpi_aged own = member(i, TRP_MEMBER_UP);
        world.nodes[i].alive = true;
        UNIT_REQUIRE(trpi_singleton_new(&own.id, &with, carry_out, &world.nodes[i],
                                        &world.nodes[i].core) == TRP_OK);
        world_view(i);
    }
    uint32_t busy = 400 + unit_drawn(&world.draw, 400);
    for (uint32_t step = 0; step < busy + 4000 && !two; step++) {
        uint32_t at = unit_drawn(&world.draw, NODES);
        struct node *n = &world.nodes[at];
        bool calm = step >= busy;
        world.now_ms += unit_drawn(&world.draw, 200);
        if (unit_drawn(&world.draw, 12) == 0) {
            world_fate(at, calm);
        }
        if (!n->alive) {
            continue;
        }
        if (n->view + 1 < world.views_count && (calm || unit_drawn(&world.draw, 3) == 0)) {
            n->view++;
            world_view(at);
        }
        world_deliver(at, !calm);
        world_time(at);
        two = running(&where) > 1;
    }
    if (!two) {
        const char *now = world.views[world.views_count - 1];
        uint32_t oldest = (uint32_t)(strchr(now, 'u') - now);
        uint32_t count = running(&where);
        if (!UNIT_EQUAL(count, 1) || !UNIT_EQUAL(where, oldest)) {
            printf("  views %s, running %u on %u, oldest in %s\n", now, count, where,
                   trpi_singleton_state_name(trpi_singleton_state_get(world.nodes[oldest].core)));
        }
    }
    for (uint32_t i = 0; i < NODES; i++) {
        trpi_singleton_free(world.nodes[i].core);
    }
    return two;
}

/* CONTRIB-01 */
static void
never_two_run_at_once_and_one_runs_in_the_end(void)
{
    world.draw = unit_draw_begin("cluster_tests", "singleton_clusters_test");
    const char *given = getenv("TROUPE_TEST_ROUNDS");
    uint32_t rounds = given == NULL ? ROUNDS : (uint32_t)strtoul(given, NULL, 10);
    uint32_t received = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        bool two = play(0);
        received += world.received;
        if (!UNIT_TRUE(!two) || unit_failures() > 0) {
            printf("  round %u\n", round);
            break;
        }
    }
    UNIT_TRUE(received > rounds / 5); /* data was handed over */
}

static void
a_host_that_does_not_wait_is_caught(void)
{
    uint32_t caught = 0;
    world.draw = unit_draw_begin("cluster_tests", "singleton_clusters_test");
    for (uint32_t round = 0; round < 100; round++) {
        caught += play(TRPI_SINGLETON_BROKEN_HASTY);
    }
    UNIT_TRUE(caught > 10);
}

UNIT_BEGIN("singleton_clusters")
UNIT(never_two_run_at_once_and_one_runs_in_the_end)
UNIT(a_host_that_does_not_wait_is_caught)
UNIT_END
