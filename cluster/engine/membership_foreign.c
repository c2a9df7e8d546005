/* membership_foreign.c - two clusters of one name, side by side: a member asks the seeds that are
 * no members, from time to time, whether they live in a cluster of their own.
 *
 * Why.     After a `down` on the wrong side, or a first seed that was started while it could not
 *          reach the others, each of two clusters calls itself healthy. No member of one has a
 *          reason to talk to the other any more; but the other one must be at the seeds.
 * Shape.   a seed is no member --INIT_JOIN--> ACK, or NACK: removed, left, leaving --> noted
 *          the transport: an incarnation there is quarantined, or has quarantined us --> noted
 *          noted twice, an interval apart, and still no member: foreign (log, status, why)
 * Must hold.
 *   membership-foreign-G1  One answer proves nothing: a node that has just joined answers before
 *       its membership has reached all members.
 *   membership-foreign-G2  No node joins or is let in because of an answer.
 *   membership-foreign-G3  The leader asks each interval; other members less often, the more there
 *       are.
 *   membership-foreign-G4  The present node at the address of an unreachable member is asked, too:
 *       it may know that this node was removed (membership-removed-X5). LOST_ASKED each time, in
 *       turn.
 * Limits.  TRPI_FOREIGN_MAX are remembered; one that was not heard of for SILENT intervals is
 *          forgotten.
 * Tests.   tests/unit/cluster/foreign_test.c, tests/system/two_clusters.sh
 */
#include "cluster/engine/membership_core.h"

#include <string.h>

#include "base/assert.h"

#define MEMBERS_PER_ASKER 16u
#define TIMES_SURE 2u /* membership-foreign-G1 */
#define SILENT 3u
#define LOST_ASKED 8u

static bool
is_member(const trpi_member_core *core, const trpi_address *address)
{
    trpi_assert_slow(core->gossip->frozen);
    const trpi_gossip *g = core->gossip;
    uint32_t at = trpi_gossip_lower(g, address);
    return at < g->members_count &&
           trpi_address_is_same_place(&g->members[at].ident->id.address, address);
}

static bool
is_seed(const trpi_member_core *core, const trpi_address *address)
{
    trpi_assert_slow(core->seek.addresses_count <= TRPI_SEEDS_MAX);
    for (uint32_t i = 0; i < core->seek.addresses_count; i++) {
        if (trpi_address_equal(&core->seek.addresses[i], address)) {
            return true;
        }
    }
    return false;
}

/* membership-foreign-G3 */
static uint64_t
interval_ms(const trpi_member_core *core)
{
    trpi_assert_slow(core->options.seed_check_ms != TRPI_MEMBER_OFF);
    uint32_t leader = trpi_gossip_leader(core->gossip, core->self->key, NULL);
    uint32_t share = core->gossip->members_count / MEMBERS_PER_ASKER;
    bool leads =
        leader != TRPI_GOSSIP_NONE && core->gossip->members[leader].ident->key == core->self->key;
    return (uint64_t)core->options.seed_check_ms * (leads || share == 0 ? 1 : share);
}

const trpi_address *
trpi_member_absent_seed(const trpi_member_core *core, uint32_t *at)
{
    trpi_assert_slow(core->seek.addresses_count <= TRPI_SEEDS_MAX);
    while (core->phase == TRPI_PHASE_MEMBER && core->gossip != NULL &&
           *at < core->seek.addresses_count) {
        const trpi_address *seed = &core->seek.addresses[(*at)++];
        if (!trpi_seek_is_self(core, seed) && !is_member(core, seed)) {
            return seed;
        }
    }
    return NULL;
}

static void
ask_seeds(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER && !core->now.waking);
    trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN };
    const trpi_gossip *g = core->gossip;
    const trpi_address *seed;
    uint32_t asked = 0, n = 0;
    memcpy(frame.system, core->self->id.address.system, sizeof frame.system);
    for (uint32_t at = 0; (seed = trpi_member_absent_seed(core, &at)) != NULL;) {
        trpi_node_id to = { .address = *seed, .uid = 0 };
        trpi_core_send(core, &to, &frame, NULL);
    }
    /* membership-foreign-G4 */
    for (; n < g->members_count && asked < LOST_ASKED && g->unreachable_count > 0; n++) {
        const trpi_gossip_member *m =
            &g->members[(core->foreigners.lost_next + n) % g->members_count];
        if (trpi_core_misses(core, m) && m->ident->key != core->self->key) {
            trpi_node_id to = { .address = m->ident->id.address, .uid = 0 };
            trpi_core_send(core, &to, &frame, NULL);
            asked++;
        }
    }
    core->foreigners.lost_next = (core->foreigners.lost_next + n) % g->members_count;
    trpi_assert_slow(asked <= LOST_ASKED);
    trpi_assert_slow(core->foreigners.lost_next < g->members_count);
}

static void
forget_foreign(trpi_member_core *core, uint32_t at)
{
    trpi_assert_slow(at < core->foreigners.foreign_count);
    core->foreigners.foreign[at] = core->foreigners.foreign[--core->foreigners.foreign_count];
    trpi_assert_slow(core->foreigners.foreign_count < TRPI_FOREIGN_MAX);
}

void
trpi_foreign_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t self = trpi_core_self_index(core);
    if (core->options.seed_check_ms == TRPI_MEMBER_OFF || self == TRPI_GOSSIP_NONE) {
        return;
    }
    uint64_t every_ms = interval_ms(core);
    for (uint32_t i = core->foreigners.foreign_count; i-- > 0;) {
        if (is_member(core, &core->foreigners.foreign[i].id.address) ||
            core->now.mono_ms > core->foreigners.foreign[i].last_ms + SILENT * every_ms) {
            forget_foreign(core, i);
        }
    }
    if (core->now.mono_ms < core->foreigners.seeds_look_ms || core->now.waking ||
        core->gossip->members[self].status >= TRP_MEMBER_EXITING) {
        return;
    }
    if (core->foreigners.seeds_look_ms != 0) { /* not before the first views have arrived */
        ask_seeds(core);
    }
    core->foreigners.seeds_look_ms = core->now.mono_ms + every_ms;
    trpi_assert_slow(core->foreigners.seeds_look_ms > core->now.mono_ms);
}

static void
log_two_clusters(trpi_member_core *core, const trpi_foreign *f)
{
    trpi_assert_slow(f->times >= TIMES_SURE);
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_core_log(
        core, TRP_LOG_WARNING,
        "two clusters: the seed node %s (uid %016llx) is alive and no member of this one; "
        "docs/operating.md, Two clusters at once",
        trpi_address_format(&f->id.address, text, sizeof text), (unsigned long long)f->id.uid);
}

void
trpi_foreign_heard(trpi_member_core *core, const trpi_node_id *id)
{
    trpi_assert_slow(core->foreigners.foreign_count <= TRPI_FOREIGN_MAX);
    if (core->phase != TRPI_PHASE_MEMBER || core->gossip == NULL || id->uid == 0 ||
        core->options.seed_check_ms == TRPI_MEMBER_OFF || !is_seed(core, &id->address) ||
        is_member(core, &id->address)) {
        return;
    }
    uint64_t now_ms = core->now.mono_ms;
    uint32_t at = 0;
    while (at < core->foreigners.foreign_count &&
           !trpi_address_equal(&core->foreigners.foreign[at].id.address, &id->address)) {
        at++;
    }
    if (at == TRPI_FOREIGN_MAX) {
        return;
    }
    trpi_foreign *f = &core->foreigners.foreign[at];
    if (at == core->foreigners.foreign_count || f->id.uid != id->uid) {
        core->foreigners.foreign_count += at == core->foreigners.foreign_count ? 1 : 0;
        *f = (trpi_foreign){ *id, now_ms, now_ms, now_ms, 1 };
        return;
    }
    f->last_ms = now_ms;
    if (now_ms >= f->counted_ms + interval_ms(core) / 2) { /* membership-foreign-G1 */
        f->counted_ms = now_ms;
        f->times++;
        if (f->times == TIMES_SURE) {
            log_two_clusters(core, f);
        }
    }
}

bool
trpi_member_foreign(const trpi_member_core *core, uint32_t index, trpi_node_id *ret_id,
                    uint64_t *ret_since_ms)
{
    trpi_assert_slow(core->foreigners.foreign_count <= TRPI_FOREIGN_MAX);
    uint32_t sure = 0;
    for (uint32_t i = 0; core->phase == TRPI_PHASE_MEMBER && i < core->foreigners.foreign_count;
         i++) {
        const trpi_foreign *f = &core->foreigners.foreign[i];
        if (f->times >= TIMES_SURE && sure++ == index) {
            *ret_id = f->id;
            *ret_since_ms = f->since_ms;
            return true;
        }
    }
    return false;
}
