/* The registry of publish and subscribe: registries of a few nodes that hear each other at once, or
 * lose what they say, in the time of the test. */
#include <string.h>

#include "base/alloc.h"
#include "cluster/pubsub/registry_inner.h"
#include "cluster/pubsub/route.h"
#include "tests/unit/unit.h"

enum { NODES = 4, NOBODY = NODES };

static struct {
    uint64_t now_ms;
    trpi_pubreg *of[NODES];
    trpi_node_id ids[NODES];
    trp_member_status status[NODES]; /* 0: no member */
    bool cut[NODES];                 /* what it sends and gets is lost */
    bool has_none[NODES];            /* answers that it has no mediator */
    uint64_t lives[NODES];
    uint64_t frames, bytes; /* sent */
    uint64_t most_bytes;    /* of one tick of one node */
    uint32_t met, lost, logs;
    bool met_at[NODES][NODES]; /* by index there: its mediator can be told */
    long memory;               /* above 0: the next frame fails at this allocation */
    uint32_t refused;          /* frames, for want of memory */
    trpi_pubreg_options options;
} w;

static trpi_node_id
node_id(uint32_t number, uint64_t uid)
{
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    (void)snprintf(id.address.protocol, sizeof id.address.protocol, "troupe.tcp");
    (void)snprintf(id.address.system, sizeof id.address.system, "demo");
    (void)snprintf(id.address.host, sizeof id.address.host, "10.0.0.1");
    id.address.port = (uint16_t)(2550 + number);
    id.uid = uid;
    return id;
}

static uint32_t
number_of(const trpi_node_id *id)
{
    uint32_t i = 0;
    while (i < NODES && !trpi_node_id_equal(&w.ids[i], id)) {
        i++;
    }
    return i;
}

static void
check_all(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        trpi_check check;
        const char *bad = w.of[i] == NULL ? NULL : trpi_pubreg_check(w.of[i], &check);
        if (!UNIT_TRUE(bad == NULL)) {
            printf("  node %u: %s\n", i, bad);
        }
    }
}

static void do_actions(uint32_t node);

static void
give(uint32_t from, uint32_t to, const uint8_t *bytes, size_t count)
{
    trpi_pubsub_frame frame, answer;
    if (to == NOBODY || w.cut[from] || w.cut[to]) {
        return;
    }
    UNIT_EQUAL(trpi_pubsub_frame_decode(bytes, count, &frame), TRP_OK);
    if (w.of[to] != NULL) {
        bool scarce = w.memory > 0;
        trpi_alloc_fail_here_after(scarce ? w.memory - 1 : -1);
        w.memory = 0;
        trp_err err = trpi_pubreg_frame(w.of[to], w.now_ms, &w.ids[from], &frame);
        trpi_alloc_fail_here_after(-1);
        UNIT_TRUE(err == TRP_OK || (scarce && err == TRP_ENOMEM));
        w.refused += err != TRP_OK;
        do_actions(to); /* also after an error: who was met was met */
    } else if (w.has_none[to] && trpi_pubsub_frame_absent(&frame, w.ids[from].uid, &answer)) {
        UNIT_EQUAL(trpi_pubreg_frame(w.of[from], w.now_ms, &w.ids[to], &answer), TRP_OK);
        do_actions(from);
    }
    trpi_pubsub_frame_fini(&frame);
}

/* Frames are copied first: what they cause at once are other actions. */
static void
do_actions(uint32_t node)
{
    uint32_t count = 0;
    uint64_t tick_bytes = 0;
    struct sent {
        uint32_t to;
        trpi_buffer bytes;
    } sent[2 * NODES];
    uint32_t sent_count = 0;
    const trpi_pubreg_action *actions = trpi_pubreg_actions(w.of[node], &count);
    for (uint32_t i = 0; i < count; i++) {
        const trpi_pubreg_action *a = &actions[i];
        w.met += a->kind == TRPI_PUBREG_MET;
        w.lost += a->kind == TRPI_PUBREG_LOST;
        if (a->kind == TRPI_PUBREG_MET || a->kind == TRPI_PUBREG_LOST) {
            UNIT_REQUIRE(a->index < NODES);
            w.met_at[node][a->index] = a->kind == TRPI_PUBREG_MET;
        }
        w.logs += a->kind == TRPI_PUBREG_LOG;
        if (a->kind != TRPI_PUBREG_SEND) {
            continue;
        }
        w.frames++;
        w.bytes += a->bytes.count;
        tick_bytes += a->bytes.count;
        UNIT_REQUIRE(sent_count < 2 * NODES);
        struct sent *s = &sent[sent_count++];
        memset(s, 0, sizeof *s);
        s->to = number_of(&a->node);
        UNIT_EQUAL(
            trpi_buffer_append(&s->bytes, a->bytes.data, a->bytes.count, TRPI_BUFFER_NO_LIMIT),
            TRP_OK);
    }
    w.most_bytes = tick_bytes > w.most_bytes ? tick_bytes : w.most_bytes;
    for (uint32_t i = 0; i < sent_count; i++) {
        give(node, sent[i].to, sent[i].bytes.data, sent[i].bytes.count);
        trpi_buffer_fini(&sent[i].bytes);
    }
}

static void
tell_members(void)
{
    trpi_pubreg_member members[NODES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        if (w.status[i] != 0) {
            members[count++] = (trpi_pubreg_member){ w.ids[i], w.status[i] };
        }
    }
    for (uint32_t i = 0; i < NODES; i++) {
        if (w.of[i] != NULL) {
            UNIT_EQUAL(trpi_pubreg_members(w.of[i], w.now_ms, members, count), TRP_OK);
            do_actions(i);
        }
    }
    check_all();
}

static void
start_mediator(uint32_t node)
{
    trpi_pubreg_options options = w.options;
    options.life = ++w.lives[node];
    options.slot = 10 + node;
    options.generation = (uint32_t)options.life;
    UNIT_REQUIRE(trpi_pubreg_new(&w.ids[node], "news", &options, &w.of[node]) == TRP_OK);
}

static void
end_mediator(uint32_t node)
{
    trpi_pubreg_free(w.of[node]);
    w.of[node] = NULL;
}

/* So many nodes, Up. */
static void
begin(uint32_t nodes, const trpi_pubreg_options *options)
{
    memset(&w, 0, sizeof w);
    w.now_ms = 1000;
    if (options != NULL) {
        w.options = *options;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        w.ids[i] = node_id(i, 100 + i);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        w.status[i] = TRP_MEMBER_UP;
        start_mediator(i);
    }
    tell_members();
}

static void
end(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        end_mediator(i);
    }
}

static void
pass(uint64_t ms)
{
    for (uint64_t until_ms = w.now_ms + ms; w.now_ms < until_ms; w.now_ms += 10) {
        for (uint32_t i = 0; i < NODES; i++) {
            if (w.of[i] != NULL && trpi_pubreg_wake_ms(w.of[i]) <= w.now_ms) {
                trpi_pubreg_tick(w.of[i], w.now_ms);
                do_actions(i);
            }
        }
    }
    check_all();
}

static trpi_pubsub_key
topic(const char *name)
{
    return (trpi_pubsub_key){ .kind = TRPI_PUBSUB_TOPIC,
                              .name = name,
                              .name_bytes = (uint32_t)strlen(name) };
}

static trpi_pubsub_key
group(const char *name, const char *of)
{
    trpi_pubsub_key key = topic(name);
    key.kind = TRPI_PUBSUB_GROUP;
    key.group = of;
    key.group_bytes = (uint32_t)strlen(of);
    return key;
}

static void
put(uint32_t node, trpi_pubsub_key key, uint32_t count)
{
    UNIT_EQUAL(trpi_pubreg_put(w.of[node], w.now_ms, &key, count), TRP_OK);
    check_all();
}

static uint64_t
count_at(uint32_t node, trpi_pubsub_key key)
{
    const trpi_pubreg_entry *entry = trpi_pubreg_find(w.of[node], &key);
    return entry == NULL ? 0 : trpi_pubreg_count(entry);
}

/* ---- spreading ------------------------------------------------------------------------------- */

/* CONTRIB-12 CONTRIB-16 */
static void
what_one_node_registers_is_seen_everywhere(void)
{
    begin(3, NULL);
    put(0, topic("a"), 2);
    put(1, topic("a"), 1);
    put(2, group("a", "left"), 3);
    pass(500);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(count_at(i, topic("a")), 6);
        UNIT_EQUAL(count_at(i, group("a", "left")), 3);
        UNIT_EQUAL(trpi_pubreg_topics(w.of[i]), 1);
        UNIT_TRUE(trpi_pubreg_is_settled(w.of[i]));
    }
    UNIT_EQUAL(trpi_pubreg_own(w.of[0], &(trpi_pubsub_key){ TRPI_PUBSUB_TOPIC, 1, 0, "a", NULL }),
               2);
    put(0, topic("a"), 0);
    put(2, group("a", "left"), 0);
    pass(500);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(count_at(i, topic("a")), 1);
        UNIT_TRUE(trpi_pubreg_find(
                      w.of[i], &(trpi_pubsub_key){ TRPI_PUBSUB_GROUP, 1, 4, "a", "left" }) == NULL);
    }
    end();
}

/* Any bytes are a name: a path of a file system, a NUL, what no actor may be called. */
static void
any_bytes_name_a_topic(void)
{
    begin(2, NULL);
    char name[256];
    for (uint32_t i = 0; i < sizeof name; i++) {
        name[i] = (char)i;
    }
    trpi_pubsub_key all = { TRPI_PUBSUB_TOPIC, sizeof name, 0, name, NULL };
    trpi_pubsub_key one = { TRPI_PUBSUB_TOPIC, 1, 0, name, NULL };
    trpi_pubsub_key path = { TRPI_PUBSUB_PATH, 1, 0, name, NULL };
    put(0, all, 1);
    put(0, one, 2);
    put(0, path, 3);
    pass(200);
    UNIT_EQUAL(count_at(1, all), 1);
    UNIT_EQUAL(count_at(1, one), 2);
    UNIT_EQUAL(count_at(1, path), 3);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[1]), 2);
    end();
}

/* CONTRIB-18: many registrations go together, and then nothing is said. */
static void
nothing_is_said_when_nothing_changes(void)
{
    begin(3, NULL);
    pass(2000);
    uint64_t frames = w.frames;
    pass(60000);
    UNIT_EQUAL(w.frames, frames);
    for (uint32_t i = 0; i < 100; i++) {
        put(0, topic("a"), i + 1);
        put(0, topic("b"), 100 - i);
    }
    pass(1000);
    UNIT_EQUAL(count_at(2, topic("a")), 100);
    UNIT_EQUAL(w.frames, frames + 4); /* a delta for each of two, and their answers */
    pass(60000);
    UNIT_EQUAL(w.frames, frames + 4);
    UNIT_EQUAL(trpi_pubreg_wake_ms(w.of[0]), UINT64_MAX);
    end();
}

/* 10,000 topics on one node are known everywhere within three seconds, and a tick has its bound. */
static void
ten_thousand_topics_are_known_within_three_seconds(void)
{
    char name[16];
    begin(4, NULL);
    pass(1000);
    for (uint32_t i = 0; i < 10000; i++) {
        trpi_pubsub_key key;
        (void)snprintf(name, sizeof name, "topic-%05u", i);
        key = topic(name);
        UNIT_REQUIRE(trpi_pubreg_put(w.of[0], w.now_ms, &key, 1) == TRP_OK);
    }
    w.most_bytes = 0;
    pass(3000);
    for (uint32_t i = 1; i < 4; i++) {
        UNIT_EQUAL(trpi_pubreg_topics(w.of[i]), 10000);
    }
    UNIT_TRUE(trpi_pubreg_is_settled(w.of[0]));
    UNIT_TRUE(w.most_bytes > TRPI_PUBREG_PEER_BYTES_MAX / 2);
    UNIT_TRUE(w.most_bytes <= 3 * TRPI_PUBREG_PEER_BYTES_MAX);
    uint64_t bytes = w.bytes;
    pass(60000);
    UNIT_EQUAL(w.bytes, bytes);
    end();
}

/* The peers share the bytes of a tick, each in its turn. */
static void
a_tick_has_a_bound_for_all_peers_together(void)
{
    trpi_pubreg_options options = { .peer_bytes_max = TRPI_PUBREG_PEER_BYTES_MIN,
                                    .tick_bytes_max = TRPI_PUBREG_PEER_BYTES_MIN };
    char name[16];
    begin(4, &options);
    pass(1000);
    w.most_bytes = 0;
    for (uint32_t i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "topic-%05u", i);
        put(0, topic(name), 1);
    }
    pass(20000);
    UNIT_TRUE(w.most_bytes <= TRPI_PUBREG_PEER_BYTES_MIN);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[1]), 200);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[3]), 200);
    end();
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Lost frames are sent again, later and later, and small ones; changes that came meanwhile go
 * with them. */
static void
a_silent_peer_is_asked_at_growing_intervals_and_told_all_later(void)
{
    begin(2, NULL);
    pass(1000);
    w.cut[1] = true;
    put(0, topic("a"), 1);
    put(0, topic("gone"), 1);
    pass(1000);
    put(0, topic("gone"), 0);
    uint64_t bytes = w.bytes;
    pass(600000);
    UNIT_TRUE(w.bytes - bytes < 600 * 50); /* 50 bytes a second */
    UNIT_FALSE(trpi_pubreg_is_settled(w.of[0]));
    UNIT_TRUE(trpi_pubreg_known_version(w.of[0]) < trpi_pubreg_version(w.of[0]));
    w.cut[1] = false;
    pass(10000);
    UNIT_EQUAL(count_at(1, topic("a")), 1);
    UNIT_EQUAL(count_at(1, topic("gone")), 0);
    UNIT_TRUE(trpi_pubreg_is_settled(w.of[0]));
    end();
}

/* CONTRIB-18: what was removed while a peer did not hear is removed there, too, however long that
 * was: no clock forgets it. */
static void
what_was_removed_in_a_partition_does_not_come_back(void)
{
    begin(3, NULL);
    put(0, topic("a"), 1);
    put(0, topic("b"), 1);
    pass(1000);
    UNIT_EQUAL(count_at(2, topic("a")), 1);
    w.cut[2] = true;
    put(0, topic("a"), 0);
    pass(3600000);
    UNIT_EQUAL(count_at(1, topic("a")), 0);
    UNIT_EQUAL(count_at(2, topic("a")), 1); /* as far as it knows */
    w.cut[2] = false;
    pass(20000);
    UNIT_EQUAL(count_at(2, topic("a")), 0);
    UNIT_EQUAL(count_at(2, topic("b")), 1);
    end();
}

/* Which telling of its bucket a node takes of another one. */
static uint64_t
era_at(uint32_t node, uint32_t of)
{
    return w.of[node]->nodes[trpi_pubreg_node_of(w.of[node], &w.ids[of])].its_era;
}

/* removed_max removed entries are kept for one that does not hear; with one more it is told all
 * again, by a mediator that is the same: nothing that was sent to it is lost. */
static void
removed_entries_are_kept_up_to_a_limit(void)
{
    trpi_pubreg_options options = { .removed_max = 10 };
    char name[16];
    begin(3, &options);
    put(0, topic("stays"), 1);
    for (uint32_t i = 0; i < 11; i++) {
        (void)snprintf(name, sizeof name, "topic-%u", i);
        put(0, topic(name), 1);
    }
    pass(1000);
    w.cut[2] = true;
    for (uint32_t i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "topic-%u", i);
        put(0, topic(name), 0);
        pass(200);
    }
    uint32_t lost = w.lost, met = w.met;
    uint64_t era = era_at(2, 0);
    w.cut[2] = false;
    pass(20000);
    UNIT_EQUAL(era_at(2, 0), era); /* it was told what went */
    UNIT_EQUAL(trpi_pubreg_topics(w.of[2]), 2);
    w.cut[2] = true;
    for (uint32_t i = 0; i < 11; i++) {
        (void)snprintf(name, sizeof name, "other-%u", i);
        put(0, topic(name), 1);
        pass(200);
        put(0, topic(name), 0);
        pass(200);
    }
    w.cut[2] = false;
    pass(20000);
    UNIT_TRUE(era_at(2, 0) > era); /* it began again */
    UNIT_EQUAL(w.lost, lost);
    UNIT_EQUAL(w.met, met);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[2]), 2);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[1]), 2);
    end();
}

/* ---- members --------------------------------------------------------------------------------- */

/* CONTRIB-18: not at Removed. */
static void
the_bucket_of_a_leaving_node_is_dropped_at_leaving(void)
{
    begin(3, NULL);
    put(1, topic("a"), 1);
    put(0, topic("b"), 1);
    pass(1000);
    w.status[1] = TRP_MEMBER_LEAVING;
    tell_members();
    UNIT_EQUAL(count_at(0, topic("a")), 0);
    UNIT_EQUAL(count_at(2, topic("a")), 0);
    UNIT_EQUAL(count_at(1, topic("a")), 1); /* for its own */
    UNIT_EQUAL(w.lost, 2);
    put(1, topic("late"), 1);
    put(0, topic("b"), 5);
    pass(1000);
    UNIT_EQUAL(count_at(0, topic("late")), 0);
    UNIT_EQUAL(count_at(1, topic("b")), 5); /* it may still publish */
    UNIT_EQUAL(w.lost, 2);
    w.status[1] = TRP_MEMBER_EXITING;
    tell_members();
    put(0, topic("b"), 6);
    pass(1000);
    UNIT_EQUAL(count_at(1, topic("b")), 5);
    UNIT_TRUE(trpi_pubreg_is_settled(w.of[0]));
    w.status[1] = 0;
    tell_members();
    UNIT_EQUAL(trpi_pubreg_node_of(w.of[0], &w.ids[1]), TRPI_PUBREG_NOWHERE);
    end();
}

/* DistributedPubSubRestartSpec: nothing of the old incarnation is seen, nothing of the new one
 * lost; and the new one knows the others. */
static void
a_node_that_restarts_on_its_address_begins_anew(void)
{
    begin(2, NULL);
    put(0, topic("kept"), 1);
    put(1, topic("old"), 1);
    put(1, topic("both"), 1);
    pass(1000);
    end_mediator(1);
    w.status[1] = TRP_MEMBER_DOWN;
    tell_members();
    UNIT_EQUAL(count_at(0, topic("old")), 0);
    w.status[1] = 0;
    tell_members();
    w.ids[1] = node_id(1, 555);
    w.status[1] = TRP_MEMBER_JOINING;
    w.lives[1] = 0;
    start_mediator(1);
    put(1, topic("both"), 1);
    tell_members();
    pass(2000);
    UNIT_EQUAL(count_at(0, topic("both")), 0); /* it is not Up */
    w.status[1] = TRP_MEMBER_WEAKLY_UP;
    tell_members();
    pass(2000);
    UNIT_EQUAL(count_at(0, topic("both")), 1);
    UNIT_EQUAL(count_at(0, topic("old")), 0);
    UNIT_EQUAL(count_at(1, topic("kept")), 1);
    end();
}

/* Once both have heard of each other a joiner knows all within half a second, however often the
 * other has asked before. */
static void
a_joiner_knows_all_at_once(void)
{
    begin(2, NULL);
    put(0, topic("a"), 1);
    w.status[2] = TRP_MEMBER_UP;
    w.cut[2] = true;
    tell_members();
    pass(100000);
    start_mediator(2);
    w.cut[2] = false;
    put(2, topic("b"), 1);
    tell_members();
    pass(500);
    UNIT_EQUAL(count_at(2, topic("a")), 1);
    UNIT_EQUAL(count_at(0, topic("b")), 1);
    UNIT_EQUAL(count_at(1, topic("b")), 1);
    end();
}

/* A mediator that starts again on its node has a later life. */
static void
a_mediator_that_starts_again_begins_anew(void)
{
    begin(2, NULL);
    put(0, topic("kept"), 1);
    put(1, topic("old"), 1);
    pass(1000);
    end_mediator(1);
    start_mediator(1);
    tell_members();
    pass(2000);
    UNIT_EQUAL(count_at(0, topic("old")), 0);
    UNIT_EQUAL(count_at(1, topic("kept")), 1);
    uint32_t there = trpi_pubreg_node_of(w.of[0], &w.ids[1]);
    UNIT_EQUAL(trpi_pubreg_node_at(w.of[0], there)->slot, 11);
    UNIT_EQUAL(trpi_pubreg_node_at(w.of[0], there)->generation, 2);
    put(1, topic("new"), 1);
    put(0, topic("kept"), 0);
    pass(1000);
    UNIT_EQUAL(count_at(0, topic("new")), 1);
    UNIT_EQUAL(count_at(1, topic("kept")), 0);
    end();
}

/* CONTRIB-20: it is asked no more once it has said so, and is told all when it starts one. */
static void
a_node_without_a_mediator_costs_nothing(void)
{
    begin(1, NULL);
    w.status[1] = TRP_MEMBER_UP;
    w.has_none[1] = true;
    put(0, topic("a"), 1);
    tell_members();
    pass(1000);
    uint64_t frames = w.frames;
    pass(60000);
    UNIT_EQUAL(w.frames, frames);
    UNIT_TRUE(trpi_pubreg_is_settled(w.of[0]));
    start_mediator(1);
    tell_members();
    pass(1000);
    UNIT_EQUAL(count_at(1, topic("a")), 1);
    end_mediator(1); /* and it ends its mediator, which is found when there is something to say */
    put(0, topic("b"), 1);
    pass(5000);
    UNIT_TRUE(trpi_pubreg_is_settled(w.of[0]));
    end();
}

/* A node of an earlier version answers nothing: it is asked, in small frames. */
static void
a_node_that_never_answers_gets_no_bucket(void)
{
    begin(1, NULL);
    w.status[1] = TRP_MEMBER_UP;
    tell_members();
    for (uint32_t i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "topic-%u", i);
        put(0, topic(name), 1);
    }
    pass(600000);
    UNIT_TRUE(w.bytes < 600 * 50);
    UNIT_FALSE(trpi_pubreg_is_settled(w.of[0]));
    put(0, topic("topic-1"), 0);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[0]), 99);
    end();
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void
a_bucket_has_a_limit(void)
{
    trpi_pubreg_options options = { .entries_max = 3 };
    trpi_pubsub_key more = topic("more");
    begin(2, &options);
    put(0, topic("a"), 1);
    put(0, topic("b"), 1);
    put(0, topic("c"), 1);
    UNIT_EQUAL(trpi_pubreg_put(w.of[0], w.now_ms, &more, 1), TRP_ELIMIT);
    put(0, topic("a"), 2);
    put(0, topic("a"), 0);
    put(0, more, 1);
    pass(1000);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[1]), 3);
    UNIT_EQUAL(w.logs, 0);
    end();
    begin(1, NULL); /* takes more than its peer */
    w.options.entries_max = 3;
    w.status[1] = TRP_MEMBER_UP;
    start_mediator(1);
    tell_members();
    put(0, topic("a"), 1);
    put(0, topic("b"), 1);
    put(0, topic("c"), 1);
    pass(1000);
    UNIT_EQUAL(w.logs, 0);
    for (uint32_t i = 0; i < 3; i++) { /* as while changes of a full bucket arrive */
        put(0, topic(i == 0 ? "d" : i == 1 ? "e" : "f"), 1);
    }
    pass(1000);
    UNIT_EQUAL(w.logs, 0);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[1]), 6);
    put(0, topic("g"), 1);
    put(0, topic("h"), 1);
    pass(1000);
    UNIT_EQUAL(w.logs, 1);
    UNIT_EQUAL(trpi_pubreg_topics(w.of[1]), 6);
    end();
}

/* pubsub-P1: what came in its place is told before it is told again itself. */
static void
changes_of_a_full_bucket_are_all_taken(void)
{
    trpi_pubreg_options options = { .entries_max = 3 };
    begin(2, &options);
    put(0, topic("a"), 1);
    put(0, topic("b"), 1);
    put(0, topic("c"), 1);
    pass(1000);
    put(0, topic("a"), 0);
    put(0, topic("d"), 1);
    put(0, topic("c"), 0);
    put(0, topic("a"), 1); /* its place in the delta is now behind d */
    pass(1000);
    UNIT_EQUAL(w.logs, 0);
    UNIT_EQUAL(count_at(1, topic("a")), 1);
    UNIT_EQUAL(count_at(1, topic("b")), 1);
    UNIT_EQUAL(count_at(1, topic("c")), 0);
    UNIT_EQUAL(count_at(1, topic("d")), 1);
    end();
}

/* An actor that subscribes before its node is Up is told when the others know. */
static void
nothing_is_known_anywhere_before_the_node_is_up(void)
{
    begin(2, NULL);
    start_mediator(2);
    put(2, topic("a"), 1);
    UNIT_FALSE(trpi_pubreg_is_settled(w.of[2])); /* it has not heard of any member */
    w.status[2] = TRP_MEMBER_JOINING;
    tell_members();
    pass(1000);
    UNIT_FALSE(trpi_pubreg_is_settled(w.of[2]));
    w.status[2] = TRP_MEMBER_UP;
    tell_members();
    pass(1000);
    UNIT_TRUE(trpi_pubreg_is_settled(w.of[2]));
    UNIT_EQUAL(count_at(0, topic("a")), 1);
    end();
}

static void
misuse_is_an_error(void)
{
    char name[TRPI_MEDIATOR_NAME_BYTES_MAX + 2];
    trpi_pubreg *registry = NULL;
    trpi_node_id id = node_id(0, 1);
    trpi_pubreg_options options = { .peer_bytes_max = TRPI_PUBREG_PEER_BYTES_MIN - 1 };
    memset(name, 'n', sizeof name);
    name[TRPI_MEDIATOR_NAME_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trpi_pubreg_new(&id, name, NULL, &registry), TRP_EINVAL);
    UNIT_EQUAL(trpi_pubreg_new(&id, "", NULL, &registry), TRP_EINVAL);
    UNIT_EQUAL(trpi_pubreg_new(&id, "m", &options, &registry), TRP_EINVAL);
    name[TRPI_MEDIATOR_NAME_BYTES_MAX] = '\0';
    UNIT_REQUIRE(trpi_pubreg_new(&id, name, NULL, &registry) == TRP_OK);
    trpi_pubsub_key key = { TRPI_PUBSUB_TOPIC, TRPI_TOPIC_BYTES_MAX + 1, 0, name, NULL };
    UNIT_EQUAL(trpi_pubreg_put(registry, 1, &key, 1), TRP_EINVAL);
    trpi_pubreg_free(registry);
    trpi_pubreg_free(NULL);
}

/* Out of memory at each place: the operation fails or is as lost, the laws hold, and it works when
 * there is memory again. */
static void
without_memory_nothing_is_half_done(void)
{
    for (long n = 0; n < 40; n++) {
        trpi_pubsub_key key = group("a", "left");
        begin(2, NULL);
        pass(1000);
        trpi_alloc_fail_here_after(n);
        trp_err err = trpi_pubreg_put(w.of[0], w.now_ms, &key, 1);
        trpi_pubreg_tick(w.of[0], w.now_ms + 200);
        trpi_alloc_fail_here_after(-1);
        UNIT_TRUE(err == TRP_OK || err == TRP_ENOMEM);
        check_all();
        put(0, key, 1);
        w.now_ms += 200;
        do_actions(0);
        pass(5000);
        UNIT_EQUAL(count_at(1, key), 1);
        end();
    }
}

/* A frame fails in the middle: its mediator is met all the same, and what it said comes again. */
static void
a_frame_without_memory_is_as_lost(void)
{
    uint32_t refused = 0;
    for (long n = 1; n < 20; n++) {
        for (uint32_t frames = 0; frames < 6; frames++) {
            begin(2, NULL);
            put(0, group("a", "left"), 1);
            put(1, topic("b"), 1);
            for (uint32_t i = 0; i < 200 && w.frames < frames; i++) {
                pass(10);
            }
            w.memory = n;
            pass(20000);
            UNIT_EQUAL(count_at(1, topic("a")), 1);
            UNIT_EQUAL(count_at(0, topic("b")), 1);
            UNIT_TRUE(w.met_at[0][trpi_pubreg_node_of(w.of[0], &w.ids[1])]);
            UNIT_TRUE(w.met_at[1][trpi_pubreg_node_of(w.of[1], &w.ids[0])]);
            refused += w.refused;
            end();
        }
    }
    UNIT_TRUE(refused > 0);
}

UNIT_BEGIN("pubsub_registry")
UNIT(what_one_node_registers_is_seen_everywhere)
UNIT(any_bytes_name_a_topic)
UNIT(nothing_is_said_when_nothing_changes)
UNIT(ten_thousand_topics_are_known_within_three_seconds)
UNIT(a_tick_has_a_bound_for_all_peers_together)
UNIT(a_silent_peer_is_asked_at_growing_intervals_and_told_all_later)
UNIT(what_was_removed_in_a_partition_does_not_come_back)
UNIT(removed_entries_are_kept_up_to_a_limit)
UNIT(the_bucket_of_a_leaving_node_is_dropped_at_leaving)
UNIT(a_node_that_restarts_on_its_address_begins_anew)
UNIT(a_joiner_knows_all_at_once)
UNIT(a_mediator_that_starts_again_begins_anew)
UNIT(a_node_without_a_mediator_costs_nothing)
UNIT(a_node_that_never_answers_gets_no_bucket)
UNIT(a_bucket_has_a_limit)
UNIT(changes_of_a_full_bucket_are_all_taken)
UNIT(nothing_is_known_anywhere_before_the_node_is_up)
UNIT(misuse_is_an_error)
UNIT(without_memory_nothing_is_half_done)
UNIT(a_frame_without_memory_is_as_lost)
UNIT_END
