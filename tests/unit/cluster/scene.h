/* scene.h - one view of a cluster, put together by hand, and what a downing strategy says of it. */
#ifndef TESTS_UNIT_CLUSTER_SCENE_H
#define TESTS_UNIT_CLUSTER_SCENE_H

#include "cluster/engine/downing.h"
#include "tests/unit/cluster/mesh.h"

#define SCENE_MEMBERS_MAX 10 /* more, and their order is not that of their numbers */

struct scene {
    trpi_ident *idents[SCENE_MEMBERS_MAX];
    trpi_gossip *view;
    trpi_seen seen;
    trpi_votes votes;
    uint32_t given[SCENE_MEMBERS_MAX]; /* the statuses, with what is beside them */
    uint64_t stable_ms, unstable_ms, unsure_ms, apart_ms, version_ms, made_ms, suspicion_ms;
    trpi_lease_state lease;
    uint64_t exiting_oldest;
    uint64_t unreachable_ms[SCENE_MEMBERS_MAX], reachable_ms[SCENE_MEMBERS_MAX];
    uint32_t indexes[SCENE_MEMBERS_MAX];
    trpi_downing_decision decision;
};

#define SCENE_NEVER_UP 0x100u /* beside a status: without an Up-number */
#define SCENE_REMOVED 0x200u  /* in place of one: not in this view any more */
#define SCENE_SURE 0x400u     /* beside EXITING: it is known that all have seen it */
#define SCENE_OPEN 0x800u     /* beside another: it is not known that all have seen it */

/* n members Up; status 0 leaves one Up. */
static inline void
scene_make(struct scene *s, uint32_t n, const uint32_t *status)
{
    memset(s, 0, sizeof *s);
    s->view = trpi_gossip_new();
    for (uint32_t i = 0; i < n; i++) {
        trpi_node_id id = mesh_id(i, 100 + i);
        const char *role = i % 2 == 0 ? "even" : "odd";
        UNIT_REQUIRE(trpi_ident_new(&id, &role, 1, "1", &s->idents[i]) == TRP_OK);
        uint32_t given = status == NULL ? 0 : status[i];
        uint32_t is = given % SCENE_NEVER_UP == 0 ? TRP_MEMBER_UP : given % SCENE_NEVER_UP;
        if (given == SCENE_REMOVED) {
            continue;
        }
        bool was_up = is != TRP_MEMBER_JOINING && (given & SCENE_NEVER_UP) == 0;
        s->given[i] = given;
        UNIT_EQUAL(trpi_gossip_add(s->view, s->idents[i], is, was_up ? i + 1 : 0), TRP_OK);
    }
    memset(s->reachable_ms, 0xff, sizeof s->reachable_ms); /* no member was missed */
    s->stable_ms = s->version_ms = 30000;
    s->suspicion_ms = UINT64_MAX;
}

static inline void
scene_row(struct scene *s, uint32_t observer, uint32_t subject)
{
    UNIT_EQUAL(trpi_gossip_add_row(s->view, s->idents[observer]->key, s->idents[subject]->key),
               TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_version(s->view, s->idents[observer]->key, 1), TRP_OK);
}

/* All is sure but what is said to be open, and Exiting members. */
static inline void
scene_votes(struct scene *s)
{
    trpi_votes_fini(&s->votes);
    UNIT_REQUIRE(trpi_votes_init(&s->votes, s->view) == TRP_OK);
    for (uint32_t i = 0; i < SCENE_MEMBERS_MAX; i++) {
        uint32_t at =
            s->idents[i] == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(s->view, s->idents[i]->key);
        bool open =
            (s->given[i] & SCENE_OPEN) != 0 ||
            (s->given[i] % SCENE_NEVER_UP == TRP_MEMBER_EXITING && (s->given[i] & SCENE_SURE) == 0);
        if (at != TRPI_GOSSIP_NONE && !open) {
            trpi_seen_set(&s->votes.sure, at);
        }
    }
}

/* Fill the knowledge of `self` when the nodes of mask have seen the version. */
static inline trpi_downing_input
scene_input(struct scene *s, uint32_t self, uint32_t mask)
{
    if (!s->view->frozen) {
        UNIT_EQUAL(trpi_gossip_freeze(s->view), TRP_OK);
    }
    trpi_seen_fini(&s->seen);
    UNIT_REQUIRE(trpi_seen_init(&s->seen, s->view->members_count) == TRP_OK);
    for (uint32_t i = 0; i < SCENE_MEMBERS_MAX; i++) {
        if ((mask >> i & 1) != 0) {
            trpi_seen_set(&s->seen, trpi_gossip_find(s->view, s->idents[i]->key));
        }
    }
    scene_votes(s);
    return (trpi_downing_input){ .gossip = s->view,
                                 .seen = &s->seen,
                                 .votes = &s->votes,
                                 .self = s->idents[self]->key,
                                 .stable_ms = s->stable_ms,
                                 .unstable_ms = s->unstable_ms,
                                 .unsure_ms = s->unsure_ms,
                                 .unreachable_ms = s->unreachable_ms,
                                 .reachable_ms = s->reachable_ms,
                                 .apart_ms = s->apart_ms,
                                 .version_ms = s->version_ms,
                                 .made_ms = s->made_ms,
                                 .suspicion_ms = s->suspicion_ms,
                                 .exiting_oldest = s->exiting_oldest,
                                 .lease = s->lease };
}

/* Decide as `self`, when the nodes of mask have seen the version. */
static inline trpi_downing_verdict
scene_decide(struct scene *s, const char *strategy, const trpi_downing_options *options,
             uint32_t self, uint32_t mask)
{
    trpi_downing_input input = scene_input(s, self, mask);
    uint32_t n = s->view->members_count;
    uint32_t *indexes = malloc(n * sizeof *indexes); /* exactly: the address sanitizer looks */
    UNIT_REQUIRE(indexes != NULL);
    for (uint32_t i = 0; i < n; i++) {
        indexes[i] = TRPI_MARK_AWAY; /* a mark that is read was written before */
    }
    s->decision = (trpi_downing_decision){ .indexes = indexes };
    trpi_downing_decide(trpi_downing_find(strategy), options, &input, &s->decision);
    memcpy(s->indexes, indexes, n * sizeof *indexes);
    s->decision.indexes = s->indexes;
    free(indexes);
    return s->decision.verdict;
}

static inline void
scene_end(struct scene *s)
{
    for (uint32_t i = 0; i < SCENE_MEMBERS_MAX; i++) {
        trpi_ident_unref(s->idents[i]);
    }
    trpi_gossip_unref(s->view);
    trpi_seen_fini(&s->seen);
    trpi_votes_fini(&s->votes);
}

/* Return the fate of the side `mask` of a cluster of n that fell apart, as all its members see it.
 */
enum fate {
    FATE_STAYS, /* one downs all others, if any, the rest wait */
    FATE_STOPS, /* each stops itself */
    FATE_MIXED  /* never right */
};

/* `leaving`: a member that is Exiting, as all of them remember that it knew; n: none. */
static inline enum fate
fate_beside(const char *strategy, const trpi_downing_options *options, uint32_t n, uint32_t mask,
            const uint32_t *status, uint32_t leaving)
{
    uint32_t stop = 0;
    uint32_t others = 0;
    uint32_t act = 0;
    uint32_t downed = 0;
    uint32_t mine = (uint32_t)__builtin_popcount(mask);
    for (uint32_t self = 0; self < n; self++) {
        if ((mask >> self & 1) == 0) {
            continue;
        }
        struct scene s;
        scene_make(&s, n, status);
        s.exiting_oldest = leaving < n ? s.idents[leaving]->key : 0;
        uint32_t first = (uint32_t)__builtin_ctz(mask);
        others = 0;
        for (uint32_t other = 0; other < n; other++) {
            uint32_t is = status == NULL ? 0 : status[other];
            if ((mask >> other & 1) == 0 && is != SCENE_REMOVED) {
                scene_row(&s, first, other);
                uint32_t now = is % SCENE_NEVER_UP;
                others += now == TRP_MEMBER_EXITING || now == TRP_MEMBER_DOWN ? 0 : 1;
            }
        }
        trpi_downing_verdict verdict = scene_decide(&s, strategy, options, self, mask);
        stop += verdict == TRPI_DOWNING_DOWN_SELF ? 1 : 0;
        act += verdict == TRPI_DOWNING_DOWN_MEMBERS ? 1 : 0;
        downed += s.decision.verdict == TRPI_DOWNING_DOWN_MEMBERS ? s.decision.indexes_count : 0;
        scene_end(&s);
    }
    return stop == mine                                                   ? FATE_STOPS
           : stop == 0 && act == (others > 0 ? 1 : 0) && downed == others ? FATE_STAYS
                                                                          : FATE_MIXED;
}

static inline enum fate
fate_of(const char *strategy, const trpi_downing_options *options, uint32_t n, uint32_t mask,
        const uint32_t *status)
{
    return fate_beside(strategy, options, n, mask, status, n);
}

#endif
