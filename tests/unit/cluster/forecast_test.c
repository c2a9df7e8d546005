/* forecast_test.c - what `why` foretells is what the strategy does: each forecast made while a side
 * waits is compared with what that side does then, and when. */
#include "cluster/engine/downing_forecast.h"
#include "tests/unit/cluster/scene.h"

#define NODES 5u
#define SETTLED_MS 2500u /* all of the side know the unreachable members */
#define STEP_MS 500u
#define SLACK_MS 2000u /* leaders act once a second; marks have to come round */

struct outcome {
    trpi_forecast_kind kind;
    uint64_t at_ms; /* since the cut */
};

/* Return what the side has done by now; NONE: it still waits. */
static trpi_forecast_kind
fate_of_side(const struct mesh *m, uint32_t witness, uint32_t lost)
{
    uint32_t missed = (uint32_t)__builtin_ctz(lost), is = mesh_status(m, witness, missed);
    for (uint32_t i = 0; i < NODES; i++) {
        if ((lost >> i & 1) == 0 && m->stopped[i] != TRPI_STOP_NONE) {
            return TRPI_FORECAST_STOPS;
        }
        if ((lost >> i & 1) == 0 && m->asks_lease[i]) {
            return TRPI_FORECAST_LEASE;
        }
    }
    return is == TRP_MEMBER_UP ? TRPI_FORECAST_NONE : TRPI_FORECAST_GOES_ON;
}

/* Members of `lost` fall silent. Every member of the rest foretells until it happens. */
static void
check_forecast(const char *strategy, uint32_t lost, trpi_forecast_kind want, bool may_down)
{
    trpi_member_options options = { .downing_strategy = strategy };
    options.downing.quorum_size = 3;
    options.downing.lease_minority_delay_ms = 2000;
    options.downing.referee = mesh_id(4, 1004).address;
    options.downing.least_nodes = 1;
    struct mesh *m = mesh_cluster(NODES, &options);
    struct outcome said[NODES][64];
    uint32_t said_count[NODES] = { 0 };
    uint64_t cut_ms = m->now_ms;
    uint32_t witness = (uint32_t)__builtin_ctz(~lost);
    for (uint32_t i = 0; i < NODES; i++) {
        m->cut[i] = (lost >> i & 1) != 0;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        if (!m->cut[i]) {
            mesh_observe(m, i, lost);
        }
    }
    uint64_t settled_ms = strcmp(strategy, "auto-down-after") == 0 ? STEP_MS : SETTLED_MS;
    mesh_run(m, settled_ms);
    struct outcome is = { TRPI_FORECAST_NONE, 0 };
    for (uint32_t step = 0; step < 60 && is.kind == TRPI_FORECAST_NONE; step++) {
        for (uint32_t i = 0; i < NODES; i++) {
            trpi_downing_forecast f;
            if (m->cut[i] || m->stopped[i] != TRPI_STOP_NONE ||
                !trpi_member_forecast(m->cores[i], &f)) {
                continue;
            }
            if (f.may_down != may_down) {
                UNIT_TRUE(f.may_down == may_down);
                printf("  %s without %x, node %u: may_down %d\n", strategy, lost, i, f.may_down);
            }
            said[i][said_count[i]++] = (struct outcome){ f.kind, m->now_ms - cut_ms + f.in_ms };
        }
        mesh_run(m, STEP_MS);
        is = (struct outcome){ fate_of_side(m, witness, lost), m->now_ms - cut_ms };
    }
    if (!UNIT_EQUAL(is.kind, want)) {
        printf("  %s without %x\n", strategy, lost);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        UNIT_TRUE(m->cut[i] || said_count[i] > 0);
        for (uint32_t k = 0; k < said_count[i]; k++) {
            struct outcome s = said[i][k];
            bool in_time = s.at_ms + SLACK_MS >= is.at_ms && s.at_ms <= is.at_ms + SLACK_MS;
            if (s.kind != want || (want != TRPI_FORECAST_NONE && !in_time)) {
                UNIT_EQUAL(s.kind, want);
                UNIT_TRUE(in_time);
                printf("  %s without %x, node %u: said %d at %llu, was %d at %llu\n", strategy,
                       lost, i, (int)s.kind, (unsigned long long)s.at_ms, (int)is.kind,
                       (unsigned long long)is.at_ms);
            }
        }
    }
    mesh_free(m);
}

#define GOES_ON TRPI_FORECAST_GOES_ON, true
#define STOPS TRPI_FORECAST_STOPS, false

static void
each_strategy_does_what_was_foretold(void)
{
    check_forecast("keep-majority", 0x18, GOES_ON); /* 3 and 4 are lost */
    check_forecast("keep-majority", 0x07, STOPS);
    check_forecast("static-quorum", 0x10, GOES_ON);
    check_forecast("static-quorum", 0x0e, STOPS);
    check_forecast("keep-oldest", 0x1c, GOES_ON); /* 0 is the oldest */
    check_forecast("keep-oldest", 0x03, STOPS);
    check_forecast("keep-referee", 0x0f, GOES_ON); /* 4 is the referee */
    check_forecast("keep-referee", 0x10, STOPS);
    check_forecast("down-all", 0x10, STOPS);
    check_forecast("lease", 0x18, TRPI_FORECAST_LEASE, false);
    check_forecast("lease", 0x07, TRPI_FORECAST_LEASE, false);
}

/* They count nothing; an operator counts as keep-majority does. */
static void
without_sides_the_larger_half_may_down(void)
{
    check_forecast("manual", 0x18, TRPI_FORECAST_NONE, true);
    check_forecast("manual", 0x07, TRPI_FORECAST_NONE, false);
    check_forecast("auto-down-after", 0x18, TRPI_FORECAST_GOES_ON, true);
    check_forecast("auto-down-after", 0x07, TRPI_FORECAST_GOES_ON,
                   false); /* it goes on all the same */
}

/* ... and it names them. */
static void
without_sides_it_is_said_who_may_be_downed(void)
{
    static const char *const strategies[] = { "manual", "auto-down-after", "keep-majority" };
    for (uint32_t i = 0; i < 3; i++) {
        trpi_member_options options = { .seed = 7, .downing_strategy = strategies[i] };
        trpi_downing_forecast f;
        struct mesh *m = mesh_cluster(3, &options);
        m->cut[2] = true;
        mesh_observe(m, 0, 1u << 2);
        mesh_observe(m, 1, 1u << 2);
        mesh_run(m, SETTLED_MS);
        UNIT_TRUE(trpi_member_forecast(m->cores[1], &f));
        UNIT_TRUE(f.may_down);
        UNIT_TEXT(f.who, "host2:2554");
        mesh_free(m);
    }
}

static void
nothing_is_foretold_where_nobody_is_missed(void)
{
    trpi_downing_forecast f;
    struct mesh *m = mesh_cluster(3, NULL);
    UNIT_FALSE(trpi_member_forecast(m->cores[0], &f));
    m->cut[2] = true;
    mesh_observe(m, 0, 1u << 2);
    mesh_observe(m, 1, 1u << 2);
    mesh_run(m, SETTLED_MS);
    UNIT_TRUE(trpi_member_forecast(m->cores[1], &f));
    char names[64];
    snprintf(names, sizeof names, "%s:%u", m->ids[2].address.host, m->ids[2].address.port);
    UNIT_TEXT(f.who, names);
    UNIT_TRUE(strstr(f.reason, "majority: 2 of 3 members on this side") != NULL);
    m->cut[2] = false;
    mesh_observe(m, 0, 0);
    mesh_observe(m, 1, 0);
    mesh_run(m, SETTLED_MS);
    UNIT_FALSE(trpi_member_forecast(m->cores[1], &f));
    mesh_free(m);
}

static trpi_downing_forecast
forecast_of(struct scene *s, const char *strategy, uint32_t self, uint32_t mask)
{
    trpi_downing_options options = { .stable_after_ms = 20000, .quorum_size = 2 };
    uint64_t later_ms[SCENE_MEMBERS_MAX];
    trpi_downing_forecast f;
    trpi_downing_input input = scene_input(s, self, mask);
    trpi_downing_forecast_make(trpi_downing_find(strategy), &options, &input, s->indexes, later_ms,
                               &f);
    return f;
}

/* ... of any strategy, whatever was asked before. */
static void
where_all_are_there_nothing_is_foreseen_at_any_moment(void)
{
    static const char *const strategies[] = { "manual", "keep-majority", "keep-oldest",
                                              "static-quorum" };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        struct scene s;
        scene_make(&s, 3, NULL);
        trpi_downing_forecast f = forecast_of(&s, strategies[i], 1, 0x7);
        UNIT_EQUAL(f.kind, TRPI_FORECAST_NONE);
        UNIT_TEXT(f.who, "");
        scene_end(&s);
    }
}

/* downing-forecast-F2: 4 has seen the version, and 1 misses it. It is taken for silent, and nobody
 * else is. */
static void
who_is_under_suspicion_is_foreseen_to_be_silent(void)
{
    for (uint32_t self = 0; self < 4; self++) {
        struct scene s;
        scene_make(&s, 5, NULL);
        scene_row(&s, 1, 4);
        s.made_ms = s.stable_ms;
        trpi_downing_forecast f = forecast_of(&s, "keep-majority", self, 0x1f);
        UNIT_EQUAL(f.kind, TRPI_FORECAST_GOES_ON);
        UNIT_EQUAL(f.in_ms, 0);
        UNIT_TEXT(f.reason, "majority: 4 of 5 members on this side, 1 unreachable, "
                            "0 indirectly connected");
        UNIT_TEXT(f.who, "host4:2556");
        scene_end(&s);
    }
}

/* As many names as there is room for, then how many more. */
static void
of_many_that_will_be_downed_some_are_named(void)
{
    char host[101], want[256];
    struct scene s;
    scene_make(&s, 5, NULL);
    memset(host, 'x', sizeof host - 1);
    host[sizeof host - 1] = '\0'; /* behind "host" in order */
    for (uint32_t i = 5; i < 9; i++) {
        trpi_node_id id = mesh_id(i, 100 + i);
        memcpy(id.address.host, host, sizeof host);
        UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &s.idents[i]) == TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(s.view, s.idents[i], TRP_MEMBER_UP, i + 1), TRP_OK);
        scene_row(&s, 0, i);
    }
    trpi_downing_forecast f = forecast_of(&s, "keep-majority", 0, 0x1f);
    UNIT_EQUAL(f.kind, TRPI_FORECAST_GOES_ON);
    (void)snprintf(want, sizeof want, "%s:2557, %s:2558 and 2 more", host, host);
    UNIT_TEXT(f.who, want);
    scene_end(&s);
}

UNIT_BEGIN("forecast")
UNIT(each_strategy_does_what_was_foretold)
UNIT(without_sides_the_larger_half_may_down)
UNIT(without_sides_it_is_said_who_may_be_downed)
UNIT(nothing_is_foretold_where_nobody_is_missed)
UNIT(where_all_are_there_nothing_is_foreseen_at_any_moment)
UNIT(who_is_under_suspicion_is_foreseen_to_be_silent)
UNIT(of_many_that_will_be_downed_some_are_named)
UNIT_END
