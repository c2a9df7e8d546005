/* How nodes get into a cluster: seeds, manual join, restart on the same address (SEED, MEMB). */
#include "tests/unit/cluster/mesh.h"

/* SEED-10, SEED-07 */
static void
a_node_that_joins_itself_is_up_at_once(void)
{
    struct mesh *m = mesh_new();
    mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, 0, 0), TRP_OK);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_events(m, 0, TRP_CLUSTER_MEMBER_JOINED, 0), 1);
    UNIT_EQUAL(mesh_events(m, 0, TRP_CLUSTER_MEMBER_UP, 0), 1);
    mesh_free(m);
}

/* SEED-01: without seeds nothing happens */
static void
a_node_that_is_not_told_to_join_stays_alone(void)
{
    struct mesh *m = mesh_new();
    mesh_add(m, NULL);
    mesh_run(m, 20000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_IDLE);
    UNIT_EQUAL(m->frames, 0);
    mesh_free(m);
}

/* SEED-03, MEMB-09, MEMB-10, MEMB-08, GOSSIP-04, GOSSIP-16: joined through a member, Up on all,
 * each event once */
static void
a_joiner_becomes_up_on_every_node(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    for (uint32_t at = 0; at < 3; at++) {
        for (uint32_t of = 0; of < 3; of++) {
            UNIT_EQUAL(mesh_events(m, at, TRP_CLUSTER_MEMBER_JOINED, of), 1);
            UNIT_EQUAL(mesh_events(m, at, TRP_CLUSTER_MEMBER_UP, of), 1);
        }
        UNIT_TRUE(trpi_member_is_converged(m->cores[at]));
        UNIT_EQUAL(trpi_member_version(m->cores[at]), trpi_member_version(m->cores[0]));
    }
    mesh_free(m);
}

/* MEMB-04, SEED-05: heartbeats of a node that cannot be dialled would flow on its own connection,
 * and every message to it would wait */
static void
a_joiner_that_cannot_be_dialled_is_not_let_in(void)
{
    trpi_member_options options = { .seed = 7, .dial_back = true };
    struct mesh *m = mesh_cluster(2, &options);
    mesh_add(m, &options);
    m->deaf[2] = true;
    m->reaches = 0;
    UNIT_EQUAL(mesh_join(m, 2, 0), TRP_OK);
    mesh_run(m, 60000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[2]), TRPI_PHASE_SEEKING);
    /* it is told why, and asks after 1, 2, 4, 8, 10, 10 ... s */
    UNIT_TEXT(trpi_member_seek_why(m->cores[2]),
              "host0:2552 refuses this node: it cannot be dialled back at host2:2554: "
              "connection refused");
    UNIT_TRUE(strstr(m->warning, "cannot be dialled back at host2:2554") != NULL);
    UNIT_TRUE(m->reaches >= 7 && m->reaches <= 9);
    m->deaf[2] = false;
    mesh_run(m, 13000);
    UNIT_EQUAL(mesh_members(m, 0), 3);
    UNIT_EQUAL(mesh_status(m, 1, 2), TRP_MEMBER_UP);
    UNIT_TEXT(trpi_member_seek_why(m->cores[2]), "");
    mesh_free(m);
}

/* the dial has no answer at all: the contact says so after 5 s, and does not keep it waiting */
static void
a_joiner_whose_dial_has_no_answer_is_told_so(void)
{
    trpi_member_options options = { .seed = 7, .dial_back = true };
    struct mesh *m = mesh_cluster(1, &options);
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 1, 0), TRP_OK);
    while (m->head != m->tail) { /* without what mesh_drain() says of dials */
        mesh_deliver(m);
    }
    UNIT_EQUAL(m->reach_count, 1);
    m->reach_count = 0;
    mesh_run(m, 4900);
    UNIT_TEXT(trpi_member_seek_why(m->cores[1]), "");
    mesh_run(m, 200);
    UNIT_TEXT(trpi_member_seek_why(m->cores[1]),
              "host0:2552 refuses this node: it cannot be dialled back at host1:2553: no answer "
              "in 5 s");
    mesh_run(m, 2000); /* it has asked again */
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

/* membership-seed-J1: a member that refuses the first seed has answered it */
static void
a_first_seed_that_members_refuse_makes_no_cluster(void)
{
    trpi_member_options options = { .seed = 7, .dial_back = true };
    struct mesh *m = mesh_new();
    mesh_add(m, &options);
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 1, 1), TRP_OK);
    m->deaf[0] = true;
    UNIT_EQUAL(mesh_join_seeds(m, 0, 2), TRP_OK);
    mesh_run(m, 120000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_SEEKING);
    m->deaf[0] = false;
    mesh_run(m, 13000);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

/* membership-seed-J14: an answer of a node that was not asked does not count */
static void
a_joiner_takes_answers_only_from_those_it_has_asked(void)
{
    static const uint32_t codes[] = { TRPI_NACK_REFUSED, TRPI_NACK_REMOVED, TRPI_NACK_LEFT,
                                      TRPI_NACK_INCOMPATIBLE, TRPI_NACK_NOT_READY };
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    m->cut[0] = true;
    UNIT_EQUAL(mesh_join_seeds(m, 1, 1), TRP_OK);
    mesh_run(m, 100);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        trpi_frame nack = { .kind = TRPI_FRAME_INIT_JOIN_NACK,
                            .to_uid = m->ids[1].uid,
                            .code = codes[i],
                            .reason = "away with you" };
        mesh_hand(m, 1, m->ids[2], &nack, NULL);
    }
    trpi_frame ack = { .kind = TRPI_FRAME_INIT_JOIN_ACK, .to_uid = m->ids[1].uid, .ticket = 5 };
    mesh_hand(m, 1, m->ids[2], &ack, NULL);
    mesh_run(m, 15000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[1]), TRPI_PHASE_SEEKING);
    UNIT_TEXT(trpi_member_seek_why(m->cores[1]), "");
    m->cut[0] = false;
    UNIT_EQUAL(mesh_join(m, 0, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

static uint32_t
add_at(struct mesh *m, const char *host)
{
    static const trpi_compat compat = { .count = 0 };
    trpi_member_options options = { .seed = 7, .compat = &compat };
    trpi_node_id id = mesh_id(m->count, 1000 + m->count);
    (void)snprintf(id.address.host, sizeof id.address.host, "%s", host);
    return mesh_add_as(m, id, NULL, &options);
}

/* membership-seed-J15: a forgotten --host */
static void
a_node_on_loopback_joins_only_others_on_loopback(void)
{
    static const char *const hosts[] = { "127.0.0.1", "127.1.2.3", "localhost", "::1" };
    struct mesh *m = mesh_new();
    uint32_t far = add_at(m, "10.0.0.1");
    uint32_t near = add_at(m, "127.0.0.1");
    UNIT_EQUAL(mesh_join(m, near, far), TRP_ECONFIG); /* itself */
    UNIT_TRUE(strstr(m->warning, "remote.hostname: 127.0.0.1 and the seed node's 10.0.0.1: ") !=
              NULL);
    UNIT_EQUAL(mesh_join(m, far, near), TRP_ECONFIG);
    trpi_member_event found = { .kind = TRPI_MEMBER_SEEDS,
                                .addresses = &m->ids[far].address,
                                .addresses_count = 1 };
    UNIT_EQUAL(mesh_step(m, near, &found), TRP_ECONFIG); /* nor what the name service says */
    UNIT_EQUAL(m->stopped[near], TRPI_STOP_INCOMPATIBLE);
    UNIT_EQUAL(mesh_join(m, far, far), TRP_OK);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) { /* and the seed that it asks */
        uint32_t node = add_at(m, hosts[i]);
        trpi_compat nothing = { .count = 0 };
        trpi_frame ask = { .kind = TRPI_FRAME_INIT_JOIN, .compat = &nothing };
        m->tail = m->head;
        mesh_hand(m, far, m->ids[node], &ask, NULL);
        trpi_frame answer;
        UNIT_REQUIRE(m->tail == m->head + 1);
        struct mesh_frame *f = &m->queue[m->head++ % 4096];
        UNIT_REQUIRE(trpi_frame_decode(f->bytes.data, f->bytes.count, &m->ids[far], NULL, NULL,
                                       &answer) == TRP_OK);
        UNIT_EQUAL(answer.kind, TRPI_FRAME_INIT_JOIN_NACK);
        UNIT_EQUAL(answer.code, TRPI_NACK_INCOMPATIBLE);
        UNIT_TRUE(strncmp(answer.reason, "remote.hostname: ", 17) == 0);
        trpi_frame_fini(&answer);
        trpi_buffer_fini(&f->bytes);
    }
    mesh_free(m);
    m = mesh_new(); /* all of them on loopback: as ever */
    near = add_at(m, "127.0.0.1");
    uint32_t other = add_at(m, "localhost");
    UNIT_EQUAL(mesh_join(m, near, near), TRP_OK);
    UNIT_EQUAL(mesh_join(m, other, near), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, near), 2);
    mesh_free(m);
}

/* MEMB-05 */
static void
a_member_that_is_told_to_join_again_refuses(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    UNIT_EQUAL(mesh_join(m, 1, 0), TRP_ESTATE);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

/* SEED-06, SEED-07, GOSSIP-13: any order; only the first makes a cluster */
static void
seeds_started_in_any_order_form_one_cluster(void)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    UNIT_EQUAL(mesh_join_seeds(m, 2, 3), TRP_OK);
    UNIT_EQUAL(mesh_join_seeds(m, 1, 3), TRP_OK);
    mesh_run(m, 20000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[1]), TRPI_PHASE_SEEKING);
    UNIT_EQUAL(mesh_join_seeds(m, 0, 3), TRP_OK);
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_members(m, i), 3);
        UNIT_EQUAL(mesh_status(m, i, i), TRP_MEMBER_UP);
    }
    mesh_free(m);
}

/* SEED-04: no seed answers the first one for seed-node-timeout */
static void
a_first_seed_that_nobody_answers_makes_a_cluster_after_the_timeout(void)
{
    struct mesh *m = mesh_new();
    mesh_add(m, NULL);
    mesh_add(m, NULL);
    m->cut[1] = true;
    UNIT_EQUAL(mesh_join_seeds(m, 0, 2), TRP_OK);
    mesh_run(m, 4900);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_SEEKING);
    mesh_run(m, 200);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_UP);
    mesh_free(m);
}

/* SEED-08, MEMB-03, MEMB-04: a restarted first seed joins the others and takes its predecessor's
 * place */
static void
a_first_seed_that_restarts_comes_back_to_the_others(void)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_join_seeds(m, i, 3), TRP_OK);
    }
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 2), 3);
    m->cut[0] = true;
    uint32_t again = mesh_add_as(m, mesh_id(0, 5000), NULL, NULL);
    UNIT_EQUAL(mesh_join_seeds(m, again, 3), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, again), 3);
    UNIT_EQUAL(mesh_status(m, 1, again), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_status(m, 1, 0), 0);
    UNIT_EQUAL(mesh_events(m, 1, TRP_CLUSTER_MEMBER_DOWNED, 0), 1);
    UNIT_EQUAL(mesh_events(m, 1, TRP_CLUSTER_MEMBER_REMOVED, 0), 1);
    UNIT_TRUE(strstr(m->infos, "host0:2552 has restarted: its predecessor is Down\n") != NULL);
    mesh_free(m);
}

/* SEED-08: the only seed that could answer did, and fell silent before it could say welcome: its
 * cluster may be back in a moment, so this one waits two times stable-after longer */
static void
a_first_seed_that_has_met_a_cluster_waits_for_it(void)
{
    trpi_member_options options = { .seed = 7, .downing.stable_after_ms = 4000 };
    struct mesh *m = mesh_new();
    mesh_add(m, &options);
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join_seeds(m, 0, 2), TRP_OK);
    UNIT_EQUAL(mesh_join_seeds(m, 1, 2), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    m->cut[0] = true;
    uint32_t again = mesh_add_as(m, mesh_id(0, 5000), NULL, &options);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_LEAVE, 1), TRP_OK);
    mesh_observe(m, 1, 1u << 0); /* so that it stays Leaving */
    UNIT_EQUAL(mesh_join_seeds(m, again, 2), TRP_OK);
    mesh_drain(m); /* "leaving", it says */
    m->cut[1] = true;
    mesh_run(m, 12900);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[again]), TRPI_PHASE_SEEKING);
    mesh_run(m, 300);
    UNIT_EQUAL(mesh_status(m, again, again), TRP_MEMBER_UP);
    mesh_free(m);
}

/* SEED-08: what a seed said before somebody answered from a cluster counts no more: it may have
 * joined that cluster since */
static void
a_first_seed_forgets_who_was_in_no_cluster_when_it_asks_again(void)
{
    enum { FIRST, CONTACT, THIRD, MEMBER };
    struct mesh *m = mesh_new();
    trpi_member_event tick = { .kind = TRPI_MEMBER_TICK };
    for (uint32_t i = 0; i < 4; i++) {
        mesh_add(m, NULL);
    }
    UNIT_EQUAL(mesh_join(m, CONTACT, CONTACT), TRP_OK);
    UNIT_EQUAL(mesh_join(m, MEMBER, CONTACT), TRP_OK);
    mesh_run(m, 3000);
    m->cut[CONTACT] = true;
    UNIT_EQUAL(mesh_join_seeds(m, FIRST, 3), TRP_OK);
    UNIT_EQUAL(mesh_join_seeds(m, THIRD, 3), TRP_OK);
    mesh_run(m, 500); /* the third is in no cluster, it says */
    m->cut[CONTACT] = false;
    m->cut[FIRST] = true;
    mesh_run(m, 1200);
    UNIT_TRUE(mesh_status(m, MEMBER, THIRD) != 0);
    m->cut[FIRST] = false;
    m->cut[THIRD] = true;
    m->now_ms += 1200;
    UNIT_EQUAL(mesh_step(m, FIRST, &tick), TRP_OK);
    mesh_deliver(m); /* asked */
    mesh_deliver(m); /* answered from a cluster, and gone before the JOIN */
    m->cut[CONTACT] = true;
    mesh_drain(m);
    uint32_t again = mesh_add_as(m, mesh_id(CONTACT, 5000), NULL, NULL);
    UNIT_EQUAL(mesh_join_seeds(m, again, 3), TRP_OK);
    mesh_run(m, 12000); /* "in no cluster" says the contact's successor now */
    UNIT_EQUAL(trpi_member_phase_get(m->cores[FIRST]), TRPI_PHASE_SEEKING);
    m->cut[THIRD] = false;
    mesh_run(m, 4000);
    UNIT_TRUE(mesh_status(m, THIRD, FIRST) != 0);
    UNIT_TRUE(mesh_status(m, FIRST, MEMBER) != 0);
    mesh_free(m);
}

/* sim-S4: restarted twice within seconds, through two contacts: while both may live neither is Up,
 * also when the one that was Down before stands between them in the order of members. That one is
 * not removed before those that vote in its place have seen it. */
static void
of_two_incarnations_that_join_beside_a_down_one_neither_is_up(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    uint32_t before = mesh_add_as(m, mesh_id(2, 2000), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, before, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 1, before), TRP_MEMBER_UP);
    m->cut[before] = true;
    uint32_t joining[2];
    for (uint32_t i = 0; i < 2; i++) {
        m->cut[1 - i] = true;
        joining[i] = mesh_add_as(m, mesh_id(2, 1500 + i * 1000), NULL, NULL);
        UNIT_EQUAL(mesh_join(m, joining[i], i), TRP_OK);
        mesh_run(m, 20);
        UNIT_EQUAL(mesh_status(m, i, joining[i]), TRP_MEMBER_JOINING);
        m->cut[joining[i]] = true;
        m->cut[1 - i] = false;
    }
    mesh_run(m, 5000);
    for (uint32_t at = 0; at < 2; at++) {
        UNIT_EQUAL(mesh_status(m, at, before), TRP_MEMBER_DOWN);
        UNIT_EQUAL(mesh_status(m, at, joining[0]), TRP_MEMBER_JOINING);
        UNIT_EQUAL(mesh_status(m, at, joining[1]), TRP_MEMBER_JOINING);
    }
    mesh_free(m);
}

/* MEMB-03: the removed incarnation never comes back */
static void
a_removed_incarnation_is_refused_and_ends(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->cut[2] = true;
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    m->cut[2] = false; /* it still believes that it is a member, and gossips */
    mesh_run(m, 5000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_DOWNED);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

/* MEMB-29 */
static void
a_node_of_another_system_is_refused(void)
{
    static const char *const others[][3] = {
        { "troupe.tcp", "other", "system: it is troupe.tcp://other, this is troupe.tcp://test" },
        { "troupe.tls", "test", "system: it is troupe.tls://test, this is troupe.tcp://test" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct mesh *m = mesh_cluster(1, NULL);
        trpi_node_id id = mesh_id(1, 77);
        snprintf(id.address.protocol, sizeof id.address.protocol, "%s", others[i][0]);
        snprintf(id.address.system, sizeof id.address.system, "%s", others[i][1]);
        uint32_t other = mesh_add_as(m, id, NULL, NULL);
        m->warning[0] = '\0';
        UNIT_EQUAL(mesh_join(m, other, 0), TRP_OK);
        mesh_deliver(m); /* the question: in the log of the one that refuses */
        UNIT_TRUE(strstr(m->warning, others[i][2]) != NULL);
        m->warning[0] = '\0';
        mesh_run(m, 5000); /* the answer: in that of the one that is refused */
        UNIT_TRUE(strstr(m->warning, others[i][2]) != NULL);
        UNIT_EQUAL(trpi_member_phase_get(m->cores[other]), TRPI_PHASE_SEEKING);
        UNIT_EQUAL(mesh_members(m, 0), 1);
        mesh_free(m);
    }
}

/* MEMB-19, MEMB-10 */
static void
nobody_is_up_before_the_minimum_number_is_there(void)
{
    trpi_member_options options = { .seed = 1, .min_nr_of_members = 3 };
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 2; i++) {
        mesh_add(m, &options);
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
    }
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_JOINING);
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 2, 1), TRP_OK);
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_status(m, i, i), TRP_MEMBER_UP);
    }
    mesh_free(m);
}

/* MEMB-20, MEMB-10, GAP-11 */
static void
nobody_is_up_before_the_minimum_of_a_role_is_there(void)
{
    trpi_member_options options = { .seed = 1, .role_minima_count = 1 };
    snprintf(options.role_minima[0].role, sizeof options.role_minima[0].role, "backend");
    options.role_minima[0].members = 1;
    struct mesh *m = mesh_new();
    mesh_add_as(m, mesh_id(0, 11), "frontend", &options);
    UNIT_EQUAL(mesh_join(m, 0, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_JOINING);
    mesh_add_as(m, mesh_id(1, 12), "backend", &options);
    UNIT_EQUAL(mesh_join(m, 1, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 1, 0), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_status(m, 0, 1), TRP_MEMBER_UP);
    mesh_free(m);
}

/* ROLES-02, ROLES-04, MEMB-25: roles travel with the join and stand in every event */
static void
roles_are_known_on_every_node(void)
{
    struct mesh *m = mesh_new();
    mesh_add_as(m, mesh_id(0, 11), "frontend", NULL);
    mesh_add_as(m, mesh_id(1, 12), "backend", NULL);
    UNIT_EQUAL(mesh_join(m, 0, 0), TRP_OK);
    UNIT_EQUAL(mesh_join(m, 1, 0), TRP_OK);
    mesh_run(m, 2000);
    uint32_t told[2] = { 0 };
    for (uint32_t i = 0; i < m->events_count; i++) {
        const trp_member *member = &m->members[i].member;
        bool back = member->uid == 12;
        UNIT_EQUAL(trp_member_has_role(member, "backend"), back);
        UNIT_EQUAL(trp_member_has_role(member, "frontend"), !back);
        UNIT_FALSE(trp_member_has_role(member, "back"));
        told[m->event_node[i]] += m->events[i] == TRP_CLUSTER_MEMBER_UP ? 1 : 0;
    }
    for (uint32_t node = 0; node < 2; node++) {
        const trpi_gossip *g = trpi_member_view(m->cores[node]);
        UNIT_EQUAL(told[node], 2);
        for (uint32_t i = 0; i < 2; i++) {
            trp_member member;
            trpi_member_fill(m->cores[node], &g->members[i], &member);
            UNIT_TEXT(member.roles, member.uid == 12 ? "backend" : "frontend");
        }
    }
    mesh_free(m);
}

/* ---- as many as there can be ----------------------------------------------------------------- */

/* Of member `number` the next 32 of as many roles as there are, "r0", "r1" and so on. */
static trpi_ident *
ident_with_roles(uint32_t number, uint32_t roles)
{
    char texts[TRPI_ROLES_MAX][12];
    const char *mine[TRPI_ROLES_MAX];
    trpi_node_id id = mesh_id(100 + number, 100000 + number);
    trpi_ident *ident;
    uint32_t count = 0;
    for (uint32_t r = number * TRPI_ROLES_MAX; count < TRPI_ROLES_MAX && r < roles; r++) {
        (void)snprintf(texts[count], sizeof texts[count], "r%u", r);
        mine[count] = texts[count];
        count++;
    }
    UNIT_REQUIRE(trpi_ident_new(&id, mine, count, "1.0.0", &ident) == TRP_OK);
    return ident;
}

/* Node 1 tells node 0 of other members, from `first` to before `end`, as its change number
 * `version`. */
static void
tell_of(struct mesh *m, uint32_t first, uint32_t end, uint32_t roles, uint32_t version)
{
    trpi_gossip *g = trpi_gossip_copy(trpi_member_view(m->cores[1]));
    trpi_frame envelope = { .kind = TRPI_FRAME_ENVELOPE, .to_uid = m->ids[0].uid, .gossip = g };
    for (uint32_t i = first; i < end; i++) {
        trpi_ident *ident = ident_with_roles(i, roles);
        UNIT_REQUIRE(trpi_gossip_add(g, ident, TRP_MEMBER_JOINING, 0) == TRP_OK);
        trpi_ident_unref(ident);
    }
    for (uint32_t i = 0; i < version; i++) {
        UNIT_EQUAL(trpi_gossip_count_up(g, trpi_ident_key(&m->ids[1])), TRP_OK);
    }
    UNIT_REQUIRE(trpi_gossip_freeze(g) == TRP_OK);
    mesh_hand(m, 0, m->ids[1], &envelope, NULL);
    trpi_gossip_unref(g);
}

static void
grow_cluster(struct mesh *m, uint32_t more, uint32_t version)
{
    tell_of(m, 0, more, 0, version);
}

/* membership-contact-J9: at the limit and one past it. A joiner that finds the cluster full creates
 * none of its own, and a member that restarts is let in again. */
static void
a_cluster_that_is_full_says_so_and_still_merges(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    m->cut[1] = true;
    grow_cluster(m, TRPI_JOIN_MEMBERS_MAX - 3, 1);
    uint32_t last = mesh_add(m, NULL), late = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, last, 0), TRP_OK);
    mesh_drain(m);
    UNIT_EQUAL(mesh_members(m, 0), TRPI_JOIN_MEMBERS_MAX);
    m->now_ms += 100; /* membership-contact-J10 */
    trpi_address seeds[2] = { m->ids[late].address, m->ids[0].address };
    trpi_member_event join = { .kind = TRPI_MEMBER_JOIN, .addresses = seeds, .addresses_count = 2 };
    UNIT_EQUAL(mesh_step(m, late, &join), TRP_OK);
    mesh_run(m, 20000);
    UNIT_EQUAL(mesh_members(m, 0), TRPI_JOIN_MEMBERS_MAX);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[late]), TRPI_PHASE_SEEKING);
    UNIT_TRUE(strstr(m->warning, "as many members as it can have, 10000") != NULL);
    m->cut[last] = true;
    m->cut[late] = true;
    uint32_t again = mesh_add_as(m, mesh_id(last, 9000), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, again, 0), TRP_OK);
    mesh_drain(m);
    UNIT_EQUAL(mesh_members(m, 0), TRPI_JOIN_MEMBERS_MAX + 1);
    UNIT_EQUAL(mesh_status(m, 0, last), TRP_MEMBER_DOWN);

    m->warning[0] = '\0';
    m->now_ms += 20000;
    grow_cluster(m, TRPI_GOSSIP_MEMBERS_MAX - 4,
                 2); /* other contacts have let in as many at once */
    UNIT_EQUAL(mesh_members(m, 0), TRPI_GOSSIP_MEMBERS_MAX);
    UNIT_TEXT(m->warning, "");
    grow_cluster(m, TRPI_GOSSIP_MEMBERS_MAX - 3, 3);
    UNIT_EQUAL(mesh_members(m, 0), TRPI_GOSSIP_MEMBERS_MAX);
    UNIT_TRUE(strstr(m->warning, "cannot be merged") != NULL);
    m->warning[0] = '\0';
    grow_cluster(m, TRPI_GOSSIP_MEMBERS_MAX - 3, 3); /* said once in a while */
    UNIT_TEXT(m->warning, "");
    mesh_free(m);
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* A JOIN to node 0 from a process of which there is nothing but this frame. */
static void
stranger_joins(struct mesh *m, uint32_t number)
{
    trpi_node_id id = mesh_id(100 + number, 5000 + number);
    trpi_frame join = { .kind = TRPI_FRAME_JOIN, .to_uid = m->ids[0].uid, .ticket = m->now_ms + 1 };
    UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1.0", &join.ident) == TRP_OK);
    mesh_hand(m, 0, id, &join, NULL);
    trpi_ident_unref(join.ident);
}

/* Frames of one kind among what node 0 sent in its last step. */
static uint32_t
sent_count(const struct mesh *m, uint32_t kind)
{
    uint32_t count, found = 0;
    const trpi_member_action *actions = trpi_member_actions(m->cores[0], &count);
    trpi_gossip_cache *cache = trpi_gossip_cache_new(64); /* many bring one view */
    UNIT_REQUIRE(cache != NULL);
    for (uint32_t i = 0; i < count; i++) {
        trpi_frame frame = { .kind = 0 };
        if (actions[i].kind == TRPI_ACTION_SEND) {
            UNIT_EQUAL(trpi_frame_decode(actions[i].bytes.data, actions[i].bytes.count, &m->ids[0],
                                         NULL, cache, &frame),
                       TRP_OK);
        }
        found += frame.kind == kind ? 1 : 0;
        trpi_frame_fini(&frame);
    }
    trpi_gossip_cache_free(cache);
    return found;
}

static uint64_t
versions_count(const struct mesh *m)
{
    const trpi_gossip *g = trpi_member_view(m->cores[0]);
    return trpi_vclock_get(g->clock, g->clock_count, trpi_ident_key(&m->ids[0]));
}

/* Of a cluster of 20 members at least; the smaller, the sooner. */
static struct mesh *
a_contact_of_20(void)
{
    struct mesh *m = mesh_new();
    mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, 0, 0), TRP_OK);
    for (uint32_t i = 0; i < 19; i++) {
        stranger_joins(m, i);
        UNIT_EQUAL(sent_count(m, TRPI_FRAME_WELCOME), 1);
        UNIT_EQUAL(mesh_members(m, 0), i + 2);
    }
    return m;
}

/* GOSSIP-16: membership-contact-J10 */
static void
who_joins_a_large_cluster_together_comes_in_with_one_version(void)
{
    struct mesh *m = a_contact_of_20();
    uint64_t before = versions_count(m);
    for (uint32_t i = 0; i < 30; i++) {
        stranger_joins(m, 19 + i);
        stranger_joins(m, 19 + i / 2); /* asks again */
    }
    UNIT_EQUAL(mesh_members(m, 0), 20);
    UNIT_EQUAL(trpi_member_wake_ms(m->cores[0]), m->now_ms + 1);
    trpi_member_event tick = { .kind = TRPI_MEMBER_TICK };
    m->now_ms++;
    UNIT_EQUAL(mesh_step(m, 0, &tick), TRP_OK);
    UNIT_EQUAL(mesh_members(m, 0), 50);
    UNIT_EQUAL(versions_count(m), before + 1);
    UNIT_EQUAL(sent_count(m, TRPI_FRAME_WELCOME), 30);

    stranger_joins(m, 100); /* a contact that leaves meanwhile lets no node in */
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    m->now_ms += 2;
    UNIT_EQUAL(mesh_step(m, 0, &tick), TRP_OK);
    UNIT_EQUAL(mesh_members(m, 0), 50);
    mesh_free(m);
}

/* A joiner that comes when 2,048 wait is not queued, and asks again. */
static void
many_joiners_come_in_512_at_a_time(void)
{
    struct mesh *m = a_contact_of_20();
    trpi_member_event tick = { .kind = TRPI_MEMBER_TICK };
    for (uint32_t i = 0; i < 2049; i++) {
        stranger_joins(m, 19 + i);
    }
    for (uint32_t members = 20; members < 2068; members += 512) {
        UNIT_EQUAL(mesh_members(m, 0), members);
        m->now_ms += 100;
        UNIT_EQUAL(mesh_step(m, 0, &tick), TRP_OK);
        UNIT_EQUAL(sent_count(m, TRPI_FRAME_WELCOME), 512);
    }
    m->now_ms += 100;
    UNIT_EQUAL(mesh_step(m, 0, &tick), TRP_OK);
    UNIT_EQUAL(mesh_members(m, 0), 2068);
    stranger_joins(m, 19 + 2048);
    UNIT_EQUAL(mesh_members(m, 0), 2069);
    mesh_free(m);
}

/* ---- as many roles as there can be ----------------------------------------------------------- */

/* Joins through node 0. Its status there; 0: it is refused, or waits. */
static uint32_t
joins_with_role(struct mesh *m, const char *role)
{
    uint32_t node = mesh_add_as(m, mesh_id(m->count, 1000 + m->count), role, NULL);
    m->now_ms += 10; /* membership-contact-J10 */
    m->warning[0] = '\0';
    UNIT_EQUAL(mesh_join(m, node, 0), TRP_OK);
    mesh_drain(m);
    return mesh_status(m, 0, node);
}

/* membership-contact-J11: at the limit and one past it */
static void
who_brings_one_role_too_many_is_refused(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    m->cut[1] = true;
    tell_of(m, 0, 30, TRPI_JOIN_ROLES_MAX - 1, 1);
    UNIT_EQUAL(mesh_members(m, 0), 32);
    UNIT_EQUAL(joins_with_role(m, "last"), TRP_MEMBER_JOINING);
    UNIT_TEXT(m->warning, "");
    UNIT_EQUAL(joins_with_role(m, "r7"), TRP_MEMBER_JOINING); /* others have it */
    uint32_t both[2]; /* at once: the role of one that is refused is no role of the cluster */
    for (uint32_t i = 0; i < 2; i++) {
        both[i] = mesh_add_as(m, mesh_id(m->count, 1000 + m->count), "late", NULL);
        UNIT_EQUAL(mesh_join(m, both[i], 0), TRP_OK);
    }
    mesh_drain(m);
    /* membership-contact-J10: both wait, as a version was made just now */
    UNIT_TEXT(m->warning, "");
    mesh_run(m, 20);
    UNIT_EQUAL(mesh_status(m, 0, both[0]), 0);
    UNIT_EQUAL(mesh_status(m, 0, both[1]), 0);
    UNIT_TRUE(strstr(m->warning, "as many different roles as it can have, 960") != NULL);
    UNIT_EQUAL(joins_with_role(m, NULL), TRP_MEMBER_JOINING);
    UNIT_EQUAL(mesh_members(m, 0), 35);

    tell_of(m, 30, 31, TRPI_GOSSIP_ROLES_MAX, 2); /* other contacts have let in as many at once */
    UNIT_EQUAL(mesh_members(m, 0), 36);
    UNIT_EQUAL(joins_with_role(m, "r959"), 0);
    mesh_free(m);
}

/* Several contacts have let in too many at once: at the limit and one past it */
static void
a_view_that_cannot_be_sent_is_an_error_in_the_log(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    m->cut[1] = true;
    tell_of(m, 0, 31, TRPI_GOSSIP_ROLES_MAX, 1);
    tell_of(m, 31, 32, TRPI_GOSSIP_ROLES_MAX, 2);
    m->now_ms += 10;
    stranger_joins(m, 500);
    UNIT_EQUAL(sent_count(m, TRPI_FRAME_WELCOME), 1);
    UNIT_TEXT(m->warning, "");
    tell_of(m, 32, 33, TRPI_GOSSIP_ROLES_MAX + 1, 3);
    UNIT_EQUAL(mesh_members(m, 0), 36);
    m->now_ms += 10;
    stranger_joins(m, 501);
    UNIT_EQUAL(mesh_members(m, 0), 37);
    UNIT_EQUAL(sent_count(m, TRPI_FRAME_WELCOME), 0);
    UNIT_TRUE(strstr(m->warning, "more than 1024 different roles: stop nodes") != NULL);
    m->warning[0] = '\0';
    m->now_ms += 10;
    stranger_joins(m, 502); /* said once in a while */
    UNIT_TEXT(m->warning, "");
    m->now_ms += 10000;
    stranger_joins(m, 503);
    UNIT_TRUE(strstr(m->warning, "cannot be sent") != NULL);
    mesh_free(m);
}

UNIT_BEGIN("join")
UNIT(a_node_that_joins_itself_is_up_at_once)
UNIT(a_node_that_is_not_told_to_join_stays_alone)
UNIT(a_joiner_becomes_up_on_every_node)
UNIT(a_joiner_that_cannot_be_dialled_is_not_let_in)
UNIT(a_joiner_whose_dial_has_no_answer_is_told_so)
UNIT(a_first_seed_that_members_refuse_makes_no_cluster)
UNIT(a_joiner_takes_answers_only_from_those_it_has_asked)
UNIT(a_node_on_loopback_joins_only_others_on_loopback)
UNIT(a_member_that_is_told_to_join_again_refuses)
UNIT(seeds_started_in_any_order_form_one_cluster)
UNIT(a_first_seed_that_nobody_answers_makes_a_cluster_after_the_timeout)
UNIT(a_first_seed_that_restarts_comes_back_to_the_others)
UNIT(a_first_seed_that_has_met_a_cluster_waits_for_it)
UNIT(a_first_seed_forgets_who_was_in_no_cluster_when_it_asks_again)
UNIT(of_two_incarnations_that_join_beside_a_down_one_neither_is_up)
UNIT(a_removed_incarnation_is_refused_and_ends)
UNIT(a_node_of_another_system_is_refused)
UNIT(nobody_is_up_before_the_minimum_number_is_there)
UNIT(nobody_is_up_before_the_minimum_of_a_role_is_there)
UNIT(roles_are_known_on_every_node)
UNIT(a_cluster_that_is_full_says_so_and_still_merges)
UNIT(who_joins_a_large_cluster_together_comes_in_with_one_version)
UNIT(many_joiners_come_in_512_at_a_time)
UNIT(who_brings_one_role_too_many_is_refused)
UNIT(a_view_that_cannot_be_sent_is_an_error_in_the_log)
UNIT_END
