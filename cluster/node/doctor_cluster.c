/* doctor_cluster.c - the doctor's checks of the cluster: members, links, clocks, versions, downing.
 *
 * Shape.   As doctor.c: each check judges facts. Differences between members are looked for among
 *          those that have told theirs; a member that has not is one case of `members`.
 * Tests.   tests/unit/node/doctor_test.c, tests/unit/node/doctor_node_test.c, doctor_hangs_test.c
 */
#include "cluster/node/doctor_checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_MS 10000u /* a change that is younger is under way */

static void
check_joined(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (!facts->joined) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL, "this node has not joined a cluster%s%s",
                          facts->seeking[0] != '\0' ? ": " : "", facts->seeking);
    } else if (strcmp(facts->status, "Up") != 0 && strcmp(facts->status, "WeaklyUp") != 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN, "this node is %s", facts->status);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "this node is %s, with %zu other members",
                          facts->status, facts->members_count);
    }
}

static void
check_two_clusters(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->removers.count > 0) {
        trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->removers, "");
    } else {
        trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->foreign,
                                "no node of another cluster was heard");
    }
}

static void
check_unreachable(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->unreachable, "every member is reachable");
}

static void
check_convergence(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    uint64_t ms = facts->converged_ms;
    trpi_doctor_level level = facts->converged || !facts->joined    ? TRPI_DOCTOR_OK
                              : ms >= TRPI_DOCTOR_CONVERGED_FAIL_MS ? TRPI_DOCTOR_FAIL
                              : ms >= TRPI_DOCTOR_CONVERGED_WARN_MS ? TRPI_DOCTOR_WARN
                                                                    : TRPI_DOCTOR_OK;
    trpi_doctor_found(f, level, "the members %s for %" PRIu64 " s",
                      facts->converged ? "have agreed" : "have not agreed", ms / 1000);
}

static void
check_views(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_cases others = { 0, "" };
    size_t told = 0;
    for (size_t i = 0; i < facts->members_count; i++) {
        const trpi_doctor_member *m = &facts->members[i];
        told += m->view != 0;
        if (m->view != 0 && m->view != facts->view) {
            trpi_doctor_case(&others, "%s has another view of the members", m->address);
        }
    }
    char ok[96];
    (void)snprintf(ok, sizeof ok, "the view is the same on %zu of %zu other members", told,
                   facts->members_count);
    /* while they have not agreed, or just have, views differ */
    bool settled = facts->converged && facts->converged_ms >= QUIET_MS;
    trpi_doctor_found_cases(f, settled ? TRPI_DOCTOR_WARN : TRPI_DOCTOR_OK, &others, ok);
}

static void
check_joining(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->lacking[0] != '\0') {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN, "joining members wait: %s", facts->lacking);
    } else {
        trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->joining_long,
                                "no member has been Joining for long");
    }
}

static void
check_down(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->down, "no member is Down");
}

static void
check_drained(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->drained, "no member is drained");
}

static void
check_members(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_cases silent = { 0, "" };
    for (size_t i = 0; i < facts->members_count; i++) {
        if (facts->members[i].reachable && !facts->members[i].answered) {
            trpi_doctor_case(&silent, "%s has not answered the doctor of this node",
                             facts->members[i].address);
        }
    }
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &silent, "each reachable member has answered");
}

static void
check_links(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    char ok[64];
    (void)snprintf(ok, sizeof ok, "%" PRIu32 " dials between members have succeeded", facts->ways);
    trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->ways_failed, ok);
}

static void
check_waiting(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->links_wait,
                            "messages to reachable members do not wait");
}

static void
check_quarantine(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->quarantined, "no member is quarantined");
}

static void
check_seeds(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    char ok[64];
    bool all = facts->seeds > 0 && facts->seeds_unresolved.count == facts->seeds;
    (void)snprintf(ok, sizeof ok, "%" PRIu32 " seed nodes, and each name has an address",
                   facts->seeds);
    trpi_doctor_found_cases(f, all ? TRPI_DOCTOR_FAIL : TRPI_DOCTOR_WARN, &facts->seeds_unresolved,
                            facts->seeds == 0 ? "no seed nodes are configured" : ok);
}

static void
check_clock(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    const trpi_doctor_member *worst = NULL;
    int64_t most_ms = INT64_MIN; /* less than 0: within what is not known */
    for (size_t i = 0; i < facts->members_count; i++) {
        const trpi_doctor_member *m = &facts->members[i];
        /* at least so much: a slow answer is no wrong clock */
        int64_t apart_ms = llabs(m->clock_ms) - (int64_t)m->clock_sure_ms;
        if (m->answered && apart_ms > most_ms) {
            most_ms = apart_ms;
            worst = m;
        }
    }
    if (worst == NULL) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "no other clock to compare with");
        return;
    }
    trpi_doctor_level level = most_ms >= TRPI_DOCTOR_CLOCK_FAIL_MS   ? TRPI_DOCTOR_FAIL
                              : most_ms >= TRPI_DOCTOR_CLOCK_WARN_MS ? TRPI_DOCTOR_WARN
                                                                     : TRPI_DOCTOR_OK;
    trpi_doctor_found(f, level, "%s is %.1f s %s this node (known to %" PRIu32 " ms)",
                      worst->address, (double)llabs(worst->clock_ms) / 1000.0,
                      worst->clock_ms >= 0 ? "ahead of" : "behind", worst->clock_sure_ms);
}

static void
check_versions(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_cases others = { 0, "" };
    size_t same = 0;
    for (size_t i = 0; i < facts->members_count; i++) {
        const trpi_doctor_member *m = &facts->members[i];
        if (m->version[0] != '\0' && strcmp(m->version, facts->version) != 0) {
            trpi_doctor_case(&others, "%s runs %s, this node %s", m->address, m->version,
                             facts->version);
        }
        same += strcmp(m->version, facts->version) == 0;
    }
    char ok[96];
    (void)snprintf(ok, sizeof ok, "%s here and on %zu of %zu other members", facts->version, same,
                   facts->members_count);
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &others, ok);
}

static void
check_configuration(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_cases others = { 0, "" };
    for (size_t i = 0; i < facts->members_count; i++) {
        const trpi_doctor_member *m = &facts->members[i];
        if (m->differs_count > 0) {
            trpi_doctor_case(&others, "%s: %s%s", m->address, m->differs,
                             m->differs_count > 1 ? ", and other keys" : "");
        }
    }
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &others,
                            "the keys that decide together are equal on the members that answered");
}

/* ---- downing --------------------------------------------------------------------------------- */

static void
quorum_look(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    uint32_t size = facts->quorum_size;
    if (size == 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL,
                          "static-quorum has no quorum-size: it decides nothing");
    } else if (facts->up > 0 && facts->up < size) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL,
                          "static-quorum needs %" PRIu32 " members, and %" PRIu32
                          " are Up: the next loss stops all of them",
                          size, facts->up);
    } else if (facts->up > 2 * size - 1) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL,
                          "%" PRIu32 " members are Up, and static-quorum with %" PRIu32
                          " allows %" PRIu32 ": at the next loss all of them stop",
                          facts->up, size, 2 * size - 1);
    } else if (facts->up == size) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "static-quorum needs all %" PRIu32 " members that are Up: the next loss "
                          "stops all of them",
                          size);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "static-quorum: %" PRIu32 " of %" PRIu32 " must stay",
                          size, facts->up);
    }
}

static void
check_downing(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (strcmp(facts->strategy, "static-quorum") == 0) {
        quorum_look(facts, f);
    } else if (strcmp(facts->strategy, "manual") == 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "manual: a member that crashes stays unreachable until somebody marks it "
                          "Down");
    } else if (strcmp(facts->strategy, "auto-down-after") == 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "auto-down-after: when the network is cut, both sides go on as clusters");
    } else if (strcmp(facts->strategy, "keep-majority") == 0 && facts->up == 2) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "keep-majority with 2 members: a crash of the one with the lower address "
                          "stops the other one, too");
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "%s, %" PRIu32 " members are Up", facts->strategy,
                          facts->up);
    }
}

static void
check_outlook(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->stops) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL, "this node will stop, if nothing changes: %s",
                          facts->outlook);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "%s",
                          facts->outlook[0] != '\0' ? facts->outlook
                                                    : "no decision about members is due");
    }
}

static void
check_leave_timeout(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    uint64_t need_ms =
        facts->leave_need_ms > facts->lease_hold_ms ? facts->leave_need_ms : facts->lease_hold_ms;
    if (facts->leave_timeout_ms < need_ms) {
        trpi_doctor_found(
            f, TRPI_DOCTOR_WARN,
            "cluster.leave-timeout is %.0f s, and %s takes up to %.0f s after a crash",
            (double)facts->leave_timeout_ms / 1000.0,
            need_ms == facts->lease_hold_ms ? "the owner of the lease" : "a decision",
            (double)need_ms / 1000.0);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "cluster.leave-timeout is %.0f s, %.0f s are needed",
                          (double)facts->leave_timeout_ms / 1000.0, (double)need_ms / 1000.0);
    }
}

static void
check_hand_overs(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->hand_overs,
                            "no hand-over of a singleton hangs");
}

static void
check_shards(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->shards, "no shard waits for long");
}

const trpi_doctor_check trpi_doctor_cluster_checks[] = {
    { "joined", check_joined, "troupe why says what keeps it from joining; troupe join ADDRESS" },
    { "two-clusters", check_two_clusters,
      "end the nodes of the smaller cluster and start them again: docs/operating.md, Two clusters "
      "at once" },
    { "unreachable", check_unreachable,
      "look whether that host lives; if it is dead: troupe down MEMBER; troupe why says what the "
      "downing strategy will do" },
    { "convergence", check_convergence,
      "troupe why names the members that have not seen the view" },
    { "views", check_views,
      "troupe why there and here: one of them receives no gossip, or is stuck; if it lasts, start "
      "that one again" },
    { "joining", check_joining, "start the members that are missing, or lower min-nr-of-members" },
    { "down", check_down, "it is removed once all others agree: troupe why" },
    { "drained", check_drained, "when the work on it is done: troupe undrain MEMBER" },
    { "members", check_members,
      "troupe ping MEMBER, and look at its log; an older version does not know the question" },
    { "links", check_links,
      "if both nodes live: open the port between their hosts, and check remote.hostname and "
      "remote.port of the one that cannot be dialled" },
    { "waiting", check_waiting,
      "troupe peers says why; the connection is dialled again by itself" },
    { "quarantine", check_quarantine, "start that node again: only a new incarnation is accepted" },
    { "seeds", check_seeds, "mend the name in cluster.seed-nodes, or in DNS" },
    { "clock", check_clock,
      "start a time service (chrony, systemd-timesyncd): certificates and the order of logs "
      "suffer" },
    { "versions", check_versions, "finish the rolling restart, one member after the other" },
    { "configuration", check_configuration,
      "give all members the same value, then restart them one after the other" },
    { "downing", check_downing,
      "use three members or more and keep-majority, or a quorum-size that fits: docs/operating.md, "
      "Which side goes on after a loss" },
    { "outlook", check_outlook, "troupe why; bring the unreachable members back before that time" },
    { "leave-timeout", check_leave_timeout,
      "raise cluster.leave-timeout, and TimeoutStopSec= of the unit with it" },
    { "hand-overs", check_hand_overs,
      "troupe singleton says which member it waits for; troupe doctor there says what is stuck" },
    { "shards", check_shards,
      "troupe shards says what they wait for; if nothing, troupe doctor on the coordinator's "
      "host" },
};
const size_t trpi_doctor_cluster_checks_count =
    sizeof trpi_doctor_cluster_checks / sizeof trpi_doctor_cluster_checks[0];
