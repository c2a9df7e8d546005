/* heartbeat_check.c - the invariants of one node's heartbeats between two calls, as code.
 *
 * Must hold. Besides heartbeat-H6 and those of the detectors (phi-P4, phi-P5, phi-P6):
 *   heartbeat-H8  Peers are sorted by key and unique; this node is not among them. Only peers are
 *       asked, each once.
 *   heartbeat-H9  The keys reported as unreachable are those of the silent peers, all of them.
 *   heartbeat-H10 A peer that is late does not answer, and was asked; one that answers was heard.
 *   heartbeat-H11 While there are peers both rounds are due at some time; without any, none is.
 * Cost.    A walk over the peers and the samples of each.
 * Tests.   tests/unit/cluster/check_test.c
 */
#include "cluster/engine/heartbeat_inner.h"

static const char *
check_peer(const trpi_heartbeat *hb, uint32_t index, trpi_check *check)
{
    const struct peer *p = &hb->peers[index];
    if (p->ident->key == hb->self->key || (index > 0 && p[-1].ident->key >= p->ident->key)) {
        return trpi_check_broken(check, "heartbeat-H8: peer %u, %s, is this node or out of order",
                                 index, p->ident->address);
    }
    if ((p->late && (p->answers || p->first_asked_us == 0)) || (p->answers && p->heard_us == 0)) {
        return trpi_check_broken(
            check, "heartbeat-H10: %s is %s, first asked at %llu, heard at %llu", p->ident->address,
            p->late ? "late" : "not late", (unsigned long long)p->first_asked_us,
            (unsigned long long)p->heard_us);
    }
    if (p->unproved && hb->woke_us == 0) {
        return trpi_check_broken(check,
                                 "heartbeat-H6: %s has to prove itself to a node that is "
                                 "awake",
                                 p->ident->address);
    }
    return trpi_detector_check(&p->detector, check);
}

static const char *
check_lists(const trpi_heartbeat *hb, trpi_check *check)
{
    uint32_t silent = 0;
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        if (!hb->peers[i].silent) {
            continue;
        }
        if (silent >= hb->unreachable_count || hb->unreachable[silent] != hb->peers[i].ident->key) {
            return trpi_check_broken(check, "heartbeat-H9: %s is silent, and not reported",
                                     hb->peers[i].ident->address);
        }
        silent++;
    }
    if (silent != hb->unreachable_count) {
        return trpi_check_broken(check, "heartbeat-H9: %u peers are silent, %u are reported",
                                 silent, hb->unreachable_count);
    }
    if (hb->targets_count > hb->peers_count) {
        return trpi_check_broken(check, "heartbeat-H8: %u of %u peers are asked", hb->targets_count,
                                 hb->peers_count);
    }
    return NULL;
}

const char *
trpi_heartbeat_check(const trpi_heartbeat *hb, trpi_check *check)
{
    const char *broken = NULL;
    for (uint32_t i = 0; i < hb->peers_count && broken == NULL; i++) {
        broken = check_peer(hb, i, check);
    }
    broken = broken != NULL ? broken : check_lists(hb, check);
    bool asks = hb->ask_us != NEVER && hb->check_us != NEVER;
    if (broken == NULL && asks != (hb->peers_count > 0)) {
        broken = trpi_check_broken(
            check, "heartbeat-H11: %u peers, the next round at %llu and %llu", hb->peers_count,
            (unsigned long long)hb->ask_us, (unsigned long long)hb->check_us);
    }
    return broken;
}
