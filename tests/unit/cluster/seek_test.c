/* Joins that are refused, stuck, or by addresses that are looked up (SEED-05, -11;
 * membership-seed-J6..J8). */
#include "tests/unit/cluster/mesh.h"

/* ---- configurations that do not fit ---------------------------------------------------------- */

static const char strategy_key[] = "cluster.downing.active-strategy";

static trpi_compat
compat_of(const char *strategy)
{
    trpi_compat compat = { .count = 0 };
    UNIT_EQUAL(trpi_compat_add(&compat, strategy_key, strategy), TRP_OK);
    return compat;
}

/* Refused within 10 s, with the key named */
static void
a_node_with_another_configuration_is_refused_and_ends(void)
{
    trpi_compat ours = compat_of("keep-majority"), theirs = compat_of("static-quorum");
    trpi_member_options options = { .seed = 1, .compat = &ours };
    struct mesh *m = mesh_cluster(2, &options);
    options.compat = &theirs;
    uint32_t other = mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, other, 0), TRP_OK);
    mesh_run(m, 4000);
    UNIT_EQUAL(m->stopped[other], TRPI_STOP_INCOMPATIBLE);
    UNIT_TRUE(strstr(m->warning, strategy_key) != NULL);
    UNIT_TRUE(strstr(m->warning,
                     "static-quorum at the joining node, keep-majority in the cluster") != NULL);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

/* membership-seed-J6: what another seed is refused for, and since when, is not what this one
 * says */
static void
a_seed_that_is_found_otherwise_configured_is_named_after_its_own_grace(void)
{
    trpi_compat ours = compat_of("keep-majority"), theirs = compat_of("static-quorum");
    trpi_member_options options = { .seed = 1, .compat = &ours };
    struct mesh *m = mesh_cluster(2, &options);
    trpi_member_event refused = { .kind = TRPI_MEMBER_REFUSED, .text = "another cookie" };
    options.compat = &theirs;
    uint32_t other = mesh_add(m, &options);
    m->cut[0] = true;
    m->cut[1] = true;
    UNIT_EQUAL(mesh_join_seeds(m, other, 2), TRP_OK);
    refused.target.address = m->ids[0].address;
    UNIT_EQUAL(mesh_step(m, other, &refused), TRP_OK);
    mesh_run(m, 10000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[other]), TRPI_PHASE_SEEKING);
    m->cut[1] = false;
    mesh_run(m, 2500);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[other]), TRPI_PHASE_SEEKING);
    mesh_run(m, 2000);
    UNIT_EQUAL(m->stopped[other], TRPI_STOP_INCOMPATIBLE);
    UNIT_TRUE(strstr(m->warning, strategy_key) != NULL);
    mesh_free(m);
}

/* membership-seed-J1: living seeds refuse it, because another node has its address: that is no
 * silence */
static void
a_first_seed_that_has_a_rival_makes_no_cluster(void)
{
    trpi_member_options options = { .seed = 1 };
    struct mesh *m = mesh_cluster(2, &options);
    trpi_member_event rival = { .kind = TRPI_MEMBER_RIVAL };
    m->cut[0] = true; /* no association: remoting alone has an answer */
    m->cut[1] = true;
    uint32_t other = mesh_add_as(m, mesh_id(0, 5000), NULL, &options);
    UNIT_EQUAL(mesh_join_seeds(m, other, 2), TRP_OK);
    for (uint32_t i = 0; i < 40; i++) {
        rival.target.address = m->ids[1].address;
        UNIT_EQUAL(mesh_step(m, other, &rival), TRP_OK);
        mesh_run(m, 500);
        UNIT_EQUAL(trpi_member_phase_get(m->cores[other]), TRPI_PHASE_SEEKING);
    }
    UNIT_TRUE(strstr(trpi_member_seek_why(m->cores[other]), "another node has its address") !=
              NULL);
    mesh_run(m, 12000); /* no node says so any more: it is alone */
    UNIT_EQUAL(trpi_member_phase_get(m->cores[other]), TRPI_PHASE_MEMBER);
    mesh_free(m);
}

/* SEED-04, SEED-08: membership-seed-J1, membership-seed-J6: the first seed has heard of a cluster;
 * that this one refuses it makes it no second one */
static void
a_first_seed_that_its_cluster_refuses_ends_and_makes_no_other(void)
{
    static const uint32_t timeout_ms[] = { 1000, 5000 }, late_ms[] = { 0, 2500 };
    trpi_compat ours = compat_of("keep-majority"), theirs = compat_of("static-quorum");
    for (size_t i = 0; i < sizeof late_ms / sizeof late_ms[0]; i++) {
        trpi_member_options options = { .seed = 1, .compat = &ours };
        struct mesh *m = mesh_cluster(2, &options);
        m->cut[0] = true;
        options.compat = &theirs;
        options.seed_node_timeout_ms = timeout_ms[i];
        uint32_t again = mesh_add_as(m, mesh_id(0, 5000), NULL, &options);
        m->cut[1] = late_ms[i] > 0;
        UNIT_EQUAL(mesh_join_seeds(m, again, 2), TRP_OK);
        mesh_run(m, late_ms[i]);
        m->cut[1] = false;
        mesh_run(m, 4000);
        UNIT_EQUAL(m->stopped[again], TRPI_STOP_INCOMPATIBLE);
        UNIT_EQUAL(mesh_members(m, again), 0);
        UNIT_TRUE(strstr(m->warning, strategy_key) != NULL);
        UNIT_TRUE(strstr(m->warning, "cluster.enforce-compatible = off joins") != NULL);
        mesh_free(m);
    }
}

/* cluster.enforce-compatible = off of the joining node */
static void
a_node_that_does_not_insist_joins_with_a_warning(void)
{
    trpi_compat ours = compat_of("keep-majority"), theirs = compat_of("static-quorum");
    trpi_member_options options = { .seed = 1, .compat = &ours };
    struct mesh *m = mesh_cluster(1, &options);
    options.compat = &theirs;
    options.incompatible_warns = true;
    uint32_t other = mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, other, 0), TRP_OK);
    mesh_run(m, 4000);
    UNIT_EQUAL(mesh_status(m, 0, other), TRP_MEMBER_UP);
    UNIT_TRUE(strstr(m->warning, strategy_key) != NULL);
    mesh_free(m);
}

/* A node of an earlier version says nothing of its configuration, and is told nothing new. */
static void
a_node_that_says_nothing_of_its_configuration_joins(void)
{
    trpi_compat ours = compat_of("keep-majority");
    trpi_member_options options = { .seed = 1, .compat = &ours };
    struct mesh *m = mesh_cluster(1, &options);
    uint32_t old = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, old, 0), TRP_OK);
    uint32_t late = mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, late, old), TRP_OK);
    mesh_run(m, 4000);
    UNIT_EQUAL(mesh_status(m, 0, old), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_status(m, 0, late), TRP_MEMBER_UP);
    mesh_free(m);
}

static void
refuse_node(struct mesh *m, uint32_t node, uint32_t seed)
{
    trpi_member_event event = { .kind = TRPI_MEMBER_REFUSED, .text = "system: a here, b there" };
    event.target.address = m->ids[seed].address;
    UNIT_EQUAL(mesh_step(m, node, &event), TRP_OK);
}

/* One foreign seed may be an address that was given to another system; all are a mistake. */
static void
a_node_ends_when_every_other_seed_is_of_another_system(void)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    m->cut[0] = m->cut[1] = true;
    UNIT_EQUAL(mesh_join_seeds(m, 2, 3), TRP_OK);
    refuse_node(m, 2, 0);
    mesh_run(m, 20000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_NONE);
    refuse_node(m, 2, 1);
    mesh_run(m, 1000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_INCOMPATIBLE);
    UNIT_TRUE(strstr(m->warning, "system: a here, b there") != NULL);
    mesh_free(m);
}

/* SEED-08: membership-seed-J1, membership-seed-J6: refused by all is no silence, whether it ends
 * for it or not; by one of two it is
 */
static void
a_first_seed_that_every_other_refuses_makes_no_cluster(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        bool warns = i == 1, one = i == 2;
        trpi_member_options options = { .seed = 1,
                                        .seed_node_timeout_ms = 1000,
                                        .incompatible_warns = warns };
        struct mesh *m = mesh_new();
        for (uint32_t node = 0; node < 3; node++) {
            mesh_add(m, &options);
        }
        m->cut[1] = m->cut[2] = true;
        UNIT_EQUAL(mesh_join_seeds(m, 0, 3), TRP_OK);
        refuse_node(m, 0, 1);
        if (!one) {
            refuse_node(m, 0, 2);
        }
        mesh_run(m, 4000);
        UNIT_EQUAL(m->stopped[0], warns || one ? TRPI_STOP_NONE : TRPI_STOP_INCOMPATIBLE);
        UNIT_EQUAL(mesh_members(m, 0), one ? 1 : 0);
        UNIT_TRUE(strstr(m->warning, "enforce-compatible") == NULL); /* it would not help */
        if (warns) {
            UNIT_TRUE(trpi_member_wake_ms(m->cores[0]) > m->now_ms); /* it does not spin */
            m->cut[1] = false;
            UNIT_EQUAL(mesh_join(m, 1, 1), TRP_OK);
            mesh_run(m, 3000);
            UNIT_EQUAL(mesh_status(m, 1, 0), TRP_MEMBER_UP); /* the seed is another one by now */
        }
        mesh_free(m);
    }
}

static void
a_seed_that_answers_after_all_is_forgiven(void)
{
    struct mesh *m = mesh_cluster(1, NULL);
    uint32_t node = mesh_add(m, NULL);
    m->cut[0] = true;
    UNIT_EQUAL(mesh_join(m, node, 0), TRP_OK);
    refuse_node(m, node, 0);
    mesh_run(m, 2000);
    m->cut[0] = false;
    mesh_run(m, 8000);
    UNIT_EQUAL(mesh_status(m, 0, node), TRP_MEMBER_UP);
    mesh_free(m);
}

/* membership-seed-J6: a contact lets the node in and falls silent before its welcome. Refusals
 * before that count no more: of another member (settings differ while one is being changed), or of
 * this node's address. */
static void
who_was_let_in_is_not_ended_by_an_earlier_refusal(void)
{
    trpi_compat before = compat_of("keep-majority"), after = compat_of("static-quorum");
    for (uint32_t alone = 0; alone < 2; alone++) {
        trpi_member_options options = { .seed = 1,
                                        .compat = &before,
                                        .retry_unsuccessful_join_after_ms = 4000 };
        struct mesh *m = mesh_cluster(1, &options);
        options.compat = &after;
        options.incompatible_warns = true;
        uint32_t changed = mesh_add(m, &options);
        UNIT_EQUAL(mesh_join(m, changed, 0), TRP_OK);
        mesh_run(m, 4000);
        UNIT_EQUAL(mesh_status(m, 0, changed), TRP_MEMBER_UP);
        options.incompatible_warns = false;
        uint32_t node = mesh_add(m, &options);
        UNIT_EQUAL(alone ? mesh_join(m, node, changed) : mesh_join_seeds(m, node, 2), TRP_OK);
        if (alone) {
            refuse_node(m, node, changed);
        }
        for (uint32_t hop = 0; hop < (alone ? 2 : 4); hop++) { /* INIT_JOINs and their answers */
            mesh_deliver(m);
        }
        m->cut[changed] = true;
        mesh_run(m, 5000);
        UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_SEEKING);
        m->cut[changed] = false;
        mesh_run(m, 4000);
        UNIT_EQUAL(mesh_status(m, changed, node), TRP_MEMBER_UP);
        mesh_free(m);
    }
}

/* ---- retries --------------------------------------------------------------------------------- */

/* node has asked both seeds and has the answer of the first, which falls silent then. */
static void
lose_the_contact(struct mesh *m, uint32_t node)
{
    m->cut[1] = true;
    UNIT_EQUAL(mesh_join_seeds(m, node, 2), TRP_OK);
    for (uint32_t hop = 0; hop < 2;
         hop++) { /* INIT_JOIN, its answer; the JOIN stays in the queue */
        struct mesh_frame f = m->queue[m->head++ % 4096];
        trpi_member_event event = { .kind = TRPI_MEMBER_FRAME,
                                    .from = m->ids[f.from],
                                    .bytes = f.bytes.data,
                                    .count = f.bytes.count };
        UNIT_EQUAL(mesh_step(m, f.to, &event), TRP_OK);
        trpi_buffer_fini(&f.bytes);
    }
    m->cut[0] = true;
    m->cut[1] = false;
}

/* SEED-05: the contact dies before it can say welcome; another one is asked after
 * retry-unsuccessful-join-after */
static void
a_join_that_found_no_welcome_is_tried_through_another_member(void)
{
    trpi_member_options options = { .seed = 3, .retry_unsuccessful_join_after_ms = 2000 };
    struct mesh *m = mesh_cluster(2, &options);
    uint32_t node = mesh_add(m, &options);
    lose_the_contact(m, node);
    mesh_run(m, 1900);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_members(m, 1), 3);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_MEMBER);
    mesh_free(m);
}

/* SEED-05: off; it keeps to the contact */
static void
a_join_that_is_not_to_be_tried_anew_waits_for_its_contact(void)
{
    trpi_member_options options = { .seed = 3,
                                    .retry_unsuccessful_join_after_ms = TRPI_MEMBER_OFF };
    struct mesh *m = mesh_cluster(2, &options);
    uint32_t node = mesh_add(m, &options);
    lose_the_contact(m, node);
    mesh_run(m, 60000);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_SEEKING);
    mesh_free(m);
}

/* SEED-11 */
static void
a_manual_join_replaces_one_that_is_stuck(void)
{
    struct mesh *m = mesh_cluster(1, NULL);
    uint32_t nobody = mesh_add(m, NULL), node = mesh_add(m, NULL);
    m->cut[nobody] = true;
    UNIT_EQUAL(mesh_join(m, node, nobody), TRP_OK);
    mesh_run(m, 15000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_SEEKING);
    UNIT_EQUAL(mesh_join(m, node, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, node), TRP_MEMBER_UP);
    m->cut[nobody] = false; /* the first join is over: it takes nobody there, nor here */
    UNIT_EQUAL(mesh_join(m, nobody, nobody), TRP_OK);
    mesh_run(m, 15000);
    UNIT_EQUAL(mesh_members(m, nobody), 1);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_EQUAL(mesh_status(m, 0, node), TRP_MEMBER_UP);
    mesh_free(m);
}

/* membership-seed-J7: the first seed is stopped (SIGSTOP) while it asks; the others may have
 * answered meanwhile */
static void
an_own_pause_is_no_silence_of_the_seeds(void)
{
    struct mesh *m = mesh_cluster(3, NULL); /* two that go on without its predecessor */
    m->cut[0] = true;
    uint32_t first = mesh_add_as(m, mesh_id(0, 5000), NULL, NULL);
    m->cut[1] = true;
    UNIT_EQUAL(mesh_join_seeds(m, first, 2), TRP_OK);
    mesh_run(m, 2000);
    m->now_ms += 20000;
    mesh_run(m, 100);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[first]), TRPI_PHASE_SEEKING);
    m->cut[1] = false;
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, first), 3);
    UNIT_EQUAL(mesh_status(m, 1, first), TRP_MEMBER_UP);
    mesh_free(m);
}

/* Known only when it is reachable again, and Up then: not before the cluster has converged. */
static void
a_node_joins_while_a_member_is_unreachable(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->cut[2] = true;
    mesh_observe(m, 0, 1u << 2);
    uint32_t node = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, node, 1), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, node), TRP_MEMBER_JOINING);
    m->cut[2] = false;
    mesh_observe(m, 0, 0);
    mesh_run(m, 4000);
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(mesh_status(m, i, node), TRP_MEMBER_UP);
    }
    mesh_free(m);
}

/* ---- contact points that are looked up ------------------------------------------------------- */

static trp_err
found_seeds(struct mesh *m, uint32_t node, uint32_t first, uint32_t count)
{
    trpi_address addresses[MESH_NODES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        addresses[i] = m->ids[first + i].address;
    }
    trpi_member_event event = { .kind = TRPI_MEMBER_SEEDS,
                                .addresses = addresses,
                                .addresses_count = count };
    return mesh_step(m, node, &event);
}

/* membership-seed-J8 */
static void
a_cluster_is_made_of_found_seeds_only_when_they_are_enough_and_settled(void)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    UNIT_EQUAL(found_seeds(m, 0, 0, 1), TRP_OK); /* itself alone: not enough, for ever */
    mesh_run(m, 60000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_SEEKING);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(found_seeds(m, i, 0, 2), TRP_OK);
    }
    mesh_run(m, 4000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(found_seeds(m, i, 0, 3), TRP_OK); /* another list: the time begins anew */
    }
    mesh_run(m, 4500);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_SEEKING);
    char asked[TRPI_ADDRESS_TEXT_BYTES], other[TRPI_ADDRESS_TEXT_BYTES];
    UNIT_TEXT(trpi_member_seek_text(m->cores[0], asked, sizeof asked), /* not itself */
              trpi_address_format(&m->ids[1].address, other, sizeof other));
    UNIT_EQUAL(found_seeds(m, 0, 0, 3),
               TRP_OK); /* the same list: it does not, but it is not the last */
    mesh_run(m, 60000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_SEEKING);
    UNIT_EQUAL(found_seeds(m, 0, 0, 3), TRP_OK);
    mesh_run(m, 5000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_members(m, i), 3);
        UNIT_EQUAL(mesh_status(m, 0, i), TRP_MEMBER_UP);
    }
    UNIT_EQUAL(found_seeds(m, 0, 0, 3), TRP_ESTATE);
    mesh_free(m);
}

/* membership-seed-J8, required-contact-point-nr = 1: no other node is there, so none refuses it
 * either */
static void
a_node_that_was_found_alone_makes_a_cluster_where_one_is_enough(void)
{
    trpi_member_options options = { .seed = 1, .required_contact_points = 1 };
    struct mesh *m = mesh_new();
    mesh_add(m, &options);
    UNIT_EQUAL(found_seeds(m, 0, 0, 1), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(found_seeds(m, 0, 0, 1), TRP_OK);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_UP);
    mesh_free(m);
}

/* membership-seed-J8: no seed answers, and the name service does not either when it counts */
static void
a_first_seed_that_was_found_needs_an_answer_that_says_so_still(void)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 2; i++) {
        mesh_add(m, NULL);
    }
    m->cut[1] = true;
    UNIT_EQUAL(found_seeds(m, 0, 0, 2), TRP_OK);
    mesh_run(m, 4990);
    UNIT_EQUAL(found_seeds(m, 0, 0, 2), TRP_OK); /* too early by 10 ms */
    mesh_run(m, 30000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[0]), TRPI_PHASE_SEEKING);
    UNIT_TRUE(trpi_member_wake_ms(m->cores[0]) > m->now_ms); /* it waits, and does not spin */
    UNIT_EQUAL(found_seeds(m, 0, 0, 2), TRP_OK);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_UP);
    mesh_free(m);
}

/* Names move to other addresses: those that are found now are asked. */
static void
a_node_joins_by_addresses_that_were_found_later(void)
{
    struct mesh *m = mesh_cluster(1, NULL);
    uint32_t gone = mesh_add(m, NULL), node = mesh_add(m, NULL);
    m->cut[gone] = true;
    UNIT_EQUAL(found_seeds(m, node, gone, 1), TRP_OK);
    mesh_run(m, 20000);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_SEEKING);
    UNIT_EQUAL(found_seeds(m, node, 0, 1), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, node), TRP_MEMBER_UP);
    mesh_free(m);
}

/* The kind of the frame that is delivered next. */
static uint32_t
next_kind(const struct mesh *m)
{
    const struct mesh_frame *f = &m->queue[m->head % 4096];
    trpi_frame frame = { .kind = 0 };
    UNIT_EQUAL(
        trpi_frame_decode(f->bytes.data, f->bytes.count, &m->ids[f->from], NULL, NULL, &frame),
        TRP_OK);
    uint32_t kind = frame.kind;
    trpi_frame_fini(&frame);
    return kind;
}

/* GOSSIP-16: a joiner takes its welcome from its contact, and from no other node */
static void
a_welcome_of_somebody_else_is_not_taken(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    uint32_t node = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, node, 0), TRP_OK);
    const struct mesh_frame *f = NULL;
    for (uint32_t steps = 0; steps < 10000 && f == NULL; steps++) {
        if (m->head == m->tail) {
            m->now_ms++;
            for (uint32_t i = 0; i < m->count; i++) {
                trpi_member_event tick = { .kind = TRPI_MEMBER_TICK };
                if (trpi_member_wake_ms(m->cores[i]) <= m->now_ms) {
                    (void)mesh_step(m, i, &tick);
                }
            }
        } else if (m->queue[m->head % 4096].to == node && next_kind(m) == TRPI_FRAME_WELCOME) {
            f = &m->queue[m->head % 4096];
        } else {
            mesh_deliver(m);
        }
    }
    UNIT_REQUIRE(f != NULL);
    UNIT_EQUAL(f->from, 0);
    trpi_member_event event = { .kind = TRPI_MEMBER_FRAME,
                                .from = m->ids[1],
                                .bytes = f->bytes.data,
                                .count = f->bytes.count };
    UNIT_EQUAL(mesh_step(m, node, &event), TRP_OK);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_SEEKING);
    UNIT_EQUAL(mesh_members(m, node), 0);
    mesh_deliver(m); /* the same one, from its contact: the whole state */
    UNIT_EQUAL(trpi_member_phase_get(m->cores[node]), TRPI_PHASE_MEMBER);
    UNIT_EQUAL(mesh_members(m, node), 3);
    mesh_free(m);
}

/* A node that waits in silence looks as if it hung: it names one that it waits for, not itself. */
static void
a_node_that_waits_for_its_seeds_says_so(void)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    m->cut[0] = m->cut[2] = true;
    UNIT_EQUAL(mesh_join_seeds(m, 1, 3), TRP_OK);
    mesh_run(m, 60000);
    UNIT_TRUE(strstr(m->infos, "waiting for a cluster at seed node troupe.tcp://test@host0:2552 "
                               "(and 1 more)\n") != NULL);
    m->infos[0] = '\0';
    UNIT_EQUAL(mesh_join_seeds(m, 1, 2), TRP_OK);
    mesh_run(m, 60000);
    UNIT_TRUE(strstr(m->infos, "at seed node troupe.tcp://test@host0:2552\n") != NULL);
    mesh_free(m);
}

/* By the contact, at most once in 10 s, of all joiners together: at it, and one ms before */
static void
that_a_joiner_cannot_be_dialled_is_logged_once_in_a_while(void)
{
    static const uint32_t pauses_ms[] = { 0, 9999, 1 };
    trpi_member_options options = { .seed = 7, .dial_back = true };
    struct mesh *m = mesh_cluster(1, &options);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t node = mesh_add(m, &options);
        m->now_ms += pauses_ms[i];
        UNIT_EQUAL(mesh_join(m, node, 0), TRP_OK);
        while (m->head != m->tail) { /* without what mesh_drain() says of dials */
            mesh_deliver(m);
        }
        UNIT_EQUAL(m->reach_count, 1);
        m->reach_count = 0;
        m->warning[0] = '\0';
        trpi_member_event event = { .kind = TRPI_MEMBER_REACHED,
                                    .target = m->ids[node],
                                    .text = "connection refused" };
        UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
        UNIT_EQUAL(strstr(m->warning, "is not let in: it cannot be dialled back") != NULL, i != 1);
        mesh_drain(m);
    }
    mesh_free(m);
}

/* membership-seed-J16 */
static void
a_joiner_that_was_removed_before_it_knew_that_it_was_in_ends(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    trpi_member_event removed = { .kind = TRPI_MEMBER_REMOVED_BY };
    m->cut[0] = m->cut[1] = true;
    uint32_t joiner = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join_seeds(m, joiner, 2), TRP_OK);
    removed.target.address = mesh_id(7, 5000).address; /* membership-seed-J14: it was not asked */
    UNIT_EQUAL(mesh_step(m, joiner, &removed), TRP_OK);
    UNIT_EQUAL(m->stopped[joiner], 0);
    removed.target.address = m->ids[1].address;
    UNIT_EQUAL(mesh_step(m, joiner, &removed), TRP_OK);
    UNIT_EQUAL(m->stopped[joiner], TRPI_STOP_DOWNED);
    mesh_free(m);
}

UNIT_BEGIN("seek")
UNIT(a_node_with_another_configuration_is_refused_and_ends)
UNIT(a_seed_that_is_found_otherwise_configured_is_named_after_its_own_grace)
UNIT(a_first_seed_that_has_a_rival_makes_no_cluster)
UNIT(a_first_seed_that_its_cluster_refuses_ends_and_makes_no_other)
UNIT(a_node_that_does_not_insist_joins_with_a_warning)
UNIT(a_node_that_says_nothing_of_its_configuration_joins)
UNIT(a_node_ends_when_every_other_seed_is_of_another_system)
UNIT(a_first_seed_that_every_other_refuses_makes_no_cluster)
UNIT(a_seed_that_answers_after_all_is_forgiven)
UNIT(who_was_let_in_is_not_ended_by_an_earlier_refusal)
UNIT(a_join_that_found_no_welcome_is_tried_through_another_member)
UNIT(a_join_that_is_not_to_be_tried_anew_waits_for_its_contact)
UNIT(a_manual_join_replaces_one_that_is_stuck)
UNIT(an_own_pause_is_no_silence_of_the_seeds)
UNIT(a_node_joins_while_a_member_is_unreachable)
UNIT(a_cluster_is_made_of_found_seeds_only_when_they_are_enough_and_settled)
UNIT(a_node_that_was_found_alone_makes_a_cluster_where_one_is_enough)
UNIT(a_first_seed_that_was_found_needs_an_answer_that_says_so_still)
UNIT(a_node_joins_by_addresses_that_were_found_later)
UNIT(a_welcome_of_somebody_else_is_not_taken)
UNIT(a_node_that_waits_for_its_seeds_says_so)
UNIT(that_a_joiner_cannot_be_dialled_is_logged_once_in_a_while)
UNIT(a_joiner_that_was_removed_before_it_knew_that_it_was_in_ends)
UNIT_END
