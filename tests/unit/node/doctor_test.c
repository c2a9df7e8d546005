/* doctor_test.c - the doctor's checks: each is ok for a healthy cluster, and judges its figures at
 * their limits; each has its section in the handbook. */
#include <stdlib.h>

#include "cluster/node/doctor.h"
#include "tests/unit/unit.h"

static trpi_doctor_member members[2];

/* Three members that are well. */
static trpi_doctor_facts
healthy(void)
{
    trpi_doctor_facts f = { .joined = true,
                            .status = "Up",
                            .converged = true,
                            .converged_ms = 60000,
                            .view = 7,
                            .members = members,
                            .members_count = 2,
                            .up = 3,
                            .ways = 6,
                            .seeds = 1,
                            .strategy = "keep-majority",
                            .leave_timeout_ms = 45000,
                            .leave_need_ms = 40000,
                            .tls = true,
                            .subject = "10.0.0.1",
                            .certificate_days = 359,
                            .version = "0.1.0",
                            .descriptors = 30,
                            .descriptors_limit = 65536,
                            .memory_bytes = 10 << 20,
                            .memory_limit = 100 << 20,
                            .memory_free = 1 << 30,
                            .memory_all = INT64_C(4) << 30,
                            .cpu_pressure = 1,
                            .dead_letters_ms = 300000,
                            .has_journal = true,
                            .journal = "open" };
    memset(members, 0, sizeof members);
    for (size_t i = 0; i < 2; i++) {
        snprintf(members[i].address, sizeof members[i].address, "troupe.tcp://demo@10.0.0.%zu:2552",
                 i + 2);
        members[i].reachable = members[i].answered = true;
        snprintf(members[i].version, sizeof members[i].version, "0.1.0");
        members[i].view = 7;
        members[i].clock_sure_ms = 1;
    }
    f.disks[0] = (trpi_doctor_disk){ .path = "/var/log",
                                     .what = "log",
                                     .bytes = 1000,
                                     .bytes_free = 500,
                                     .inodes = 1000,
                                     .inodes_free = 500 };
    f.disks_count = 1;
    return f;
}

static const trpi_doctor_finding *
find(const trpi_doctor_finding *findings, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(findings[i].id, id) == 0) {
            return &findings[i];
        }
    }
    return NULL;
}

/* Judge: the check of that id has that level, with text in its evidence; all others are ok. */
static void
judged_at(int line, const trpi_doctor_facts *f, const char *id, trpi_doctor_level level,
          const char *text)
{
    trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX];
    size_t count = trpi_doctor_judge(f, findings);
    const trpi_doctor_finding *it = find(findings, count, id);
    UNIT_REQUIRE(it != NULL);
    bool is = it->level == level && strstr(it->evidence, text) != NULL;
    if (!is) {
        printf("    line %d: %s is %s: %s\n", line, id, trpi_doctor_level_name(it->level),
               it->evidence);
    }
    UNIT_TRUE(is);
    UNIT_EQUAL(it->advice[0] == '\0', level == TRPI_DOCTOR_OK);
    for (size_t i = 0; i < count; i++) {
        if (&findings[i] != it && findings[i].level != TRPI_DOCTOR_OK) {
            printf("    line %d: %s: %s\n", line, findings[i].id, findings[i].evidence);
            UNIT_EQUAL(findings[i].level, TRPI_DOCTOR_OK);
        }
    }
}
#define JUDGED(f, id, level, text) judged_at(__LINE__, (f), (id), TRPI_DOCTOR_##level, (text))

static void
a_healthy_cluster_has_no_finding_and_each_check_says_its_figures(void)
{
    trpi_doctor_facts f = healthy();
    trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX];
    size_t count = trpi_doctor_judge(&f, findings);
    UNIT_TRUE(count >= 25);
    for (size_t i = 0; i < count; i++) {
        UNIT_EQUAL(findings[i].level, TRPI_DOCTOR_OK);
        UNIT_TRUE(findings[i].evidence[0] != '\0');
        UNIT_TRUE(find(findings, i, findings[i].id) == NULL); /* each id once */
    }
    JUDGED(&f, "versions", OK, "0.1.0 here and on 2 of 2 other members");
    JUDGED(&f, "links", OK, "6 dials");
}

/* doctor-D2 */
static void
figures_that_are_not_known_are_no_warnings(void)
{
    trpi_doctor_facts f = healthy();
    f.descriptors = f.memory_bytes = f.memory_limit = f.memory_all = f.memory_free = -1;
    f.cpu_pressure = -1;
    JUDGED(&f, "descriptors", OK, "not known");
    JUDGED(&f, "memory", OK, "not known");
    JUDGED(&f, "processor", OK, "not known");
    f.descriptors = 30;
    f.descriptors_limit = -1;
    JUDGED(&f, "descriptors", OK, "no limit");
    members[0].answered = members[1].answered = false;
    members[0].reachable = members[1].reachable = false;
    JUDGED(&f, "clock", OK, "no other clock");
}

/* doctor-D3 */
static void
each_finding_has_its_section_in_the_handbook(void)
{
    trpi_doctor_facts f = healthy();
    trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX];
    size_t count = trpi_doctor_judge(&f, findings);
    char path[512], heading[64];
    static char page[100000];
    snprintf(path, sizeof path, "%s/docs/doctor.md", unit_srcdir());
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(file != NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < count; i++) {
        snprintf(heading, sizeof heading, "\n### %s\n", findings[i].id);
        if (strstr(page, heading) == NULL) {
            printf("    no section %s\n", findings[i].id);
        }
        UNIT_TRUE(strstr(page, heading) != NULL);
    }
}

/* Each limit, at it and one short of it. */
static void
figures_are_judged_at_their_limits(void)
{
    trpi_doctor_facts f = healthy();
    f.certificate_days = 14;
    JUDGED(&f, "certificate", OK, "14 days");
    f.certificate_days = 13;
    JUDGED(&f, "certificate", WARN, "13 days");
    f.certificate_days = -1;
    JUDGED(&f, "certificate", FAIL, "has ended");
    f = healthy();
    JUDGED(&f, "clock", OK, "10.0.0.2:2552 is 0.0 s ahead of this node (known to 1 ms)");
    members[1].clock_ms = 1000;
    JUDGED(&f, "clock", OK, "1.0 s ahead"); /* known to 1 ms: 999 ms at least */
    members[1].clock_ms = -1001;
    JUDGED(&f, "clock", WARN, "10.0.0.3:2552 is 1.0 s behind");
    members[1].clock_ms = 60001;
    JUDGED(&f, "clock", FAIL, "60.0 s ahead");
    f = healthy();
    f.converged = false;
    f.converged_ms = 9999;
    JUDGED(&f, "convergence", OK, "9 s");
    f.converged_ms = 10000;
    JUDGED(&f, "convergence", WARN, "have not agreed for 10 s");
    f.converged_ms = 60000;
    JUDGED(&f, "convergence", FAIL, "60 s");
}

static void
figures_of_the_process_are_judged_at_their_limits(void)
{
    trpi_doctor_facts f = healthy();
    f.descriptors_limit = 1024;
    JUDGED(&f, "descriptors", OK, "30 of 1024");
    f.descriptors_limit = 1023;
    JUDGED(&f, "descriptors", WARN, "30 of 1023");
    f.descriptors_limit = 2000;
    f.descriptors = 1599;
    JUDGED(&f, "descriptors", OK, "1599");
    f.descriptors = 1600;
    JUDGED(&f, "descriptors", WARN, "1600");
    f.descriptors = 1900;
    JUDGED(&f, "descriptors", FAIL, "1900");
    f = healthy();
    f.memory_bytes = 80 << 20;
    JUDGED(&f, "memory", WARN, "80 MiB resident of 100 MiB");
    f.memory_bytes = 95 << 20;
    JUDGED(&f, "memory", FAIL, "95 MiB");
    f = healthy();
    f.memory_limit = -1;
    JUDGED(&f, "memory", OK, "1024 of 4096 MiB available");
    f.memory_free = 100 << 20;
    JUDGED(&f, "memory", FAIL, "100 of 4096");
    f = healthy();
    f.cpu_pressure = 40;
    JUDGED(&f, "processor", WARN, "40 %");
    f = healthy();
    f.disks[0].bytes_free = 100;
    JUDGED(&f, "disk", OK, "1 file system has room");
    f.disks[0].bytes_free = 99;
    JUDGED(&f, "disk", WARN, "space of the log, /var/log: 9 % free");
    f.disks[0].bytes_free = 19;
    JUDGED(&f, "disk", FAIL, "1 % free");
    f.disks[0].bytes_free = 500;
    f.disks[0].inodes_free = 0;
    JUDGED(&f, "disk", FAIL, "inodes of the log");
    f.disks[0].inodes = 0; /* a file system without that limit */
    JUDGED(&f, "disk", OK, "1 file system has room");
    f = healthy();
    f.dead_letters = 299;
    JUDGED(&f, "dead-letters", OK, "299");
    f.dead_letters = 300;
    JUDGED(&f, "dead-letters", WARN, "300 dead letters within the last 300 s");
    f.dead_letters_ms = 1000;
    JUDGED(&f, "dead-letters", FAIL, "300 dead letters within the last 1 s");
    f = healthy();
    f.leave_need_ms = 45000;
    JUDGED(&f, "leave-timeout", OK, "45 s are needed");
    f.leave_need_ms = 45001;
    JUDGED(&f, "leave-timeout", WARN, "a decision takes up to 45 s");
    f.lease_hold_ms = 122000;
    JUDGED(&f, "leave-timeout", WARN, "the owner of the lease takes up to 122 s");
}

static void
downing_that_cannot_decide_for_this_size_is_found(void)
{
    static const struct {
        const char *strategy;
        uint32_t quorum, up;
        trpi_doctor_level level;
        const char *text;
    } rows[] = {
        { "keep-majority", 0, 2, TRPI_DOCTOR_WARN, "the lower address stops the other one" },
        { "keep-majority", 0, 3, TRPI_DOCTOR_OK, "3 members" },
        { "keep-majority", 0, 1, TRPI_DOCTOR_OK, "1 members" },
        { "manual", 0, 3, TRPI_DOCTOR_WARN, "stays unreachable until" },
        { "auto-down-after", 0, 3, TRPI_DOCTOR_WARN, "both sides" },
        { "static-quorum", 0, 3, TRPI_DOCTOR_FAIL, "no quorum-size" },
        { "static-quorum", 3, 2, TRPI_DOCTOR_FAIL, "needs 3 members, and 2 are Up" },
        { "static-quorum", 3, 3, TRPI_DOCTOR_WARN, "needs all 3" },
        { "static-quorum", 3, 4, TRPI_DOCTOR_OK, "3 of 4" },
        { "static-quorum", 3, 5, TRPI_DOCTOR_OK, "3 of 5" },
        { "static-quorum", 3, 6, TRPI_DOCTOR_FAIL, "allows 5" },
        { "keep-oldest", 0, 3, TRPI_DOCTOR_OK, "keep-oldest" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trpi_doctor_facts f = healthy();
        snprintf(f.strategy, sizeof f.strategy, "%s", rows[i].strategy);
        f.quorum_size = rows[i].quorum;
        f.up = rows[i].up;
        judged_at(__LINE__, &f, "downing", rows[i].level, rows[i].text);
    }
}

static void
members_that_differ_are_found(void)
{
    trpi_doctor_facts f = healthy();
    snprintf(members[0].version, sizeof members[0].version, "0.2.0");
    JUDGED(&f, "versions", WARN, "10.0.0.2:2552 runs 0.2.0, this node 0.1.0");
    f = healthy();
    trpi_doctor_differ(&members[1], "cluster.gossip-interval", "1s", "1s");
    JUDGED(&f, "configuration", OK, "equal");
    trpi_doctor_differ(&members[1], "cluster.gossip-interval", "1s", "100ms");
    trpi_doctor_differ(&members[1], "cluster.leave-timeout", "45s", "60s");
    JUDGED(&f, "configuration", WARN,
           "10.0.0.3:2552: cluster.gossip-interval is 1s here and 100ms there, and other keys");
    f = healthy();
    members[0].view = 8;
    JUDGED(&f, "views", WARN, "10.0.0.2:2552 has another view");
    f.converged_ms = 9999; /* a change is under way */
    JUDGED(&f, "views", OK, "another view");
    f = healthy();
    members[0].answered = false;
    members[0].version[0] = '\0';
    members[0].view = 0;
    JUDGED(&f, "members", WARN, "10.0.0.2:2552 has not answered");
}

/* Facts that come as cases: none, one, several. */
static void
cases_are_counted_and_the_first_is_told(void)
{
    static const struct {
        const char *id;
        size_t offset;
        trpi_doctor_level level;
    } rows[] = {
#define ROW(id, field, level) { id, offsetof(trpi_doctor_facts, field), TRPI_DOCTOR_##level }
        ROW("unreachable", unreachable, FAIL),
        ROW("joining", joining_long, WARN),
        ROW("down", down, WARN),
        ROW("drained", drained, WARN),
        ROW("links", ways_failed, FAIL),
        ROW("waiting", links_wait, WARN),
        ROW("quarantine", quarantined, WARN),
        ROW("two-clusters", foreign, FAIL),
        ROW("two-clusters", removers, FAIL),
        ROW("hand-overs", hand_overs, FAIL),
        ROW("shards", shards, FAIL),
        ROW("files", troubles, FAIL),
        ROW("idle-keys", idle_keys, WARN),
        ROW("stuck", stuck, FAIL),
        ROW("mailboxes", mailboxes, WARN),
        ROW("suspended", suspended, WARN),
        ROW("seeds", seeds_unresolved, FAIL),
        ROW("member-certificates", member_certificates, WARN),
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trpi_doctor_facts f = healthy();
        trpi_doctor_cases *cases = (trpi_doctor_cases *)(void *)((char *)&f + rows[i].offset);
        trpi_doctor_case(cases, "the %s case", "first");
        judged_at(__LINE__, &f, rows[i].id, rows[i].level, "the first case");
        f.seeds = 9; /* not all of them */
        trpi_doctor_case(cases, "the second case");
        judged_at(__LINE__, &f, rows[i].id,
                  strcmp(rows[i].id, "seeds") == 0 ? TRPI_DOCTOR_WARN : rows[i].level,
                  "the first case; and 1 more");
    }
}

static void
switches_and_states_are_judged(void)
{
    trpi_doctor_facts f = healthy();
    f.joined = false;
    f.members_count = 0;
    snprintf(f.seeking, sizeof f.seeking, "troupe.tcp://demo@seed:1: refused");
    JUDGED(&f, "joined", FAIL, "has not joined a cluster: troupe.tcp://demo@seed:1: refused");
    f = healthy();
    snprintf(f.status, sizeof f.status, "Leaving");
    JUDGED(&f, "joined", WARN, "this node is Leaving");
    f = healthy();
    f.stops = true;
    snprintf(f.outlook, sizeof f.outlook, "its side stops in 4 s");
    JUDGED(&f, "outlook", FAIL, "if nothing changes: its side stops in 4 s");
    f = healthy();
    f.tls = false;
    JUDGED(&f, "protection", FAIL, "nothing");
    f.cookie = true;
    JUDGED(&f, "protection", WARN, "a cookie, without encryption");
    f.loopback = true;
    JUDGED(&f, "protection", OK, "on loopback");
    f = healthy();
    snprintf(f.journal, sizeof f.journal, "read-only");
    snprintf(f.journal_why, sizeof f.journal_why, "fsync: EIO");
    JUDGED(&f, "journal", FAIL, "read-only: fsync: EIO");
    f = healthy();
    snprintf(f.journal_why, sizeof f.journal_why, "it is full");
    JUDGED(&f, "journal", FAIL, "the journal refuses changes: it is full");
    f = healthy();
    f.shards_unopened = 2;
    JUDGED(&f, "journal", FAIL, "2 shards");
    f = healthy();
    f.journal_local = true;
    JUDGED(&f, "journal-place", WARN, "this node's alone");
    f = healthy();
    f.log_lost = 3;
    JUDGED(&f, "log", WARN, "3 lines were lost");
    snprintf(f.log_trouble, sizeof f.log_trouble, "the log cannot be written (ENOSPC)");
    JUDGED(&f, "log", FAIL, "ENOSPC");
    f = healthy();
    f.log_debug = true;
    JUDGED(&f, "log-level", WARN, "debug");
    f = healthy();
    f.test_adapters = true;
    JUDGED(&f, "test-adapters", WARN, "is on");
    f = healthy();
    f.standing_still = true;
    JUDGED(&f, "standstill", WARN, "stood still");
    f = healthy();
    f.handshakes = f.handshakes_max = 64;
    JUDGED(&f, "handshakes", WARN, "64 connections");
    f = healthy();
    f.starved = true;
    JUDGED(&f, "descriptors", FAIL, "none was free");
    f = healthy();
    f.refused = 2;
    snprintf(f.refused_text, sizeof f.refused_text, "cookie 2");
    JUDGED(&f, "refusals", WARN, "2 connections were refused since the start: cookie 2");
    f = healthy();
    snprintf(f.lacking, sizeof f.lacking, "2 of 3 members are there");
    JUDGED(&f, "joining", WARN, "2 of 3 members are there");
}

static void
cycles_of_asks_are_judged(void)
{
    trpi_doctor_facts f = healthy();
    f.ask_cycles = 1;
    snprintf(f.ask_cycle, sizeof f.ask_cycle, "/user/a has waited 1.0 s for itself");
    JUDGED(&f, "ask-cycles", WARN, "/user/a has waited 1.0 s for itself");
    f.ask_cycles = 3;
    JUDGED(&f, "ask-cycles", WARN, "/user/a has waited 1.0 s for itself; and 2 more");
    f.asks_unseen = true; /* others have told them */
    JUDGED(&f, "ask-cycles", WARN, "/user/a has waited 1.0 s for itself; and 2 more");
    f.ask_cycles = 0;
    JUDGED(&f, "ask-cycles", OK, "not known here");
    f.asks_unseen = false;
    f.asks_cut = true;
    JUDGED(&f, "ask-cycles", OK, "more asks wait than were looked at");
}

static const trpi_doctor_finding *
judged(const trpi_doctor_facts *f, const char *id)
{
    static trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX];
    const trpi_doctor_finding *it = find(findings, trpi_doctor_judge(f, findings), id);
    UNIT_REQUIRE(it != NULL);
    return it;
}

/* A command is told as it is typed, with the member that the finding is about. */
static void
what_to_do_names_the_member(void)
{
    char text[TRPI_DOCTOR_ADVICE_BYTES], cut[8];
    trpi_doctor_facts f = healthy();
    trpi_doctor_advice(judged(&f, "drained"), text, sizeof text);
    UNIT_TEXT(text, "");
    trpi_doctor_case(&f.drained, "troupe.tcp://demo@10.0.0.2:2552 is drained");
    trpi_doctor_advice(judged(&f, "drained"), text, sizeof text);
    UNIT_TEXT(text, "when the work on it is done: troupe undrain troupe.tcp://demo@10.0.0.2:2552");
    trpi_doctor_advice(judged(&f, "drained"), cut, sizeof cut);
    UNIT_TEXT(cut, "when th");
    f = healthy();
    trpi_doctor_case(&f.drained, "somebody is drained");
    trpi_doctor_advice(judged(&f, "drained"), text, sizeof text);
    UNIT_TEXT(text, "when the work on it is done: troupe undrain MEMBER");
}

UNIT_BEGIN("doctor")
UNIT(a_healthy_cluster_has_no_finding_and_each_check_says_its_figures)
UNIT(figures_that_are_not_known_are_no_warnings)
UNIT(each_finding_has_its_section_in_the_handbook)
UNIT(figures_are_judged_at_their_limits)
UNIT(figures_of_the_process_are_judged_at_their_limits)
UNIT(cycles_of_asks_are_judged)
UNIT(downing_that_cannot_decide_for_this_size_is_found)
UNIT(members_that_differ_are_found)
UNIT(cases_are_counted_and_the_first_is_told)
UNIT(switches_and_states_are_judged)
UNIT(what_to_do_names_the_member)
UNIT_END
