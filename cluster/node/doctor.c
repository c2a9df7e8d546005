/* doctor.c - the checks of `troupe doctor`: they judge facts, wherever these come from.
 *
 * Why.     At night an operator reads one list: the state of each check, the evidence, and what to
 *          do. A check that is ok is listed, too, with its figures: a list without it leaves open
 *          whether anybody looked.
 * Shape.   A table of checks. Each looks at the facts and says ok, warn or fail with its evidence;
 *          the advice is the check's own.
 * Must hold.
 *   doctor-D1  Equal facts give equal findings; each check gives one, in the order of the table.
 *   doctor-D2  What is not known is never a warning: the evidence says that it is not known.
 *   doctor-D3  Each id has a section of that name in docs/doctor.md.
 * Not here. Facts: doctor_look.c, doctor_others.c. Checks of the cluster: doctor_cluster.c.
 * Tests.   tests/unit/node/doctor_test.c, tests/unit/node/doctor_node_test.c
 */
#include "cluster/node/doctor_checks.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

#define MIB (1024.0 * 1024.0)

void
trpi_doctor_case(trpi_doctor_cases *cases, const char *format, ...)
{
    va_list list;
    if (cases->count++ == 0) {
        va_start(list, format);
        (void)vsnprintf(cases->first, sizeof cases->first, format, list); /* cut is fine */
        va_end(list);
    }
}

void
trpi_doctor_found(trpi_doctor_finding *f, trpi_doctor_level level, const char *format, ...)
{
    va_list list;
    f->level = level;
    va_start(list, format);
    (void)vsnprintf(f->evidence, sizeof f->evidence, format, list); /* cut is fine */
    va_end(list);
}

void
trpi_doctor_found_cases(trpi_doctor_finding *f, trpi_doctor_level level,
                        const trpi_doctor_cases *cases, const char *ok)
{
    if (cases->count == 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "%s", ok);
    } else if (cases->count == 1) {
        trpi_doctor_found(f, level, "%s", cases->first);
    } else {
        trpi_doctor_found(f, level, "%s; and %" PRIu32 " more", cases->first, cases->count - 1);
    }
}

const char *
trpi_doctor_level_name(trpi_doctor_level level)
{
    static const char *const names[] = { "ok", "warn", "fail" };
    return names[level <= TRPI_DOCTOR_FAIL ? level : TRPI_DOCTOR_FAIL];
}

void
trpi_doctor_differ(trpi_doctor_member *member, const char *key, const char *here, const char *there)
{
    if (strcmp(here, there) != 0 && member->differs_count++ == 0) {
        (void)snprintf(member->differs, sizeof member->differs, "%s is %s here and %s there", key,
                       here, there);
    }
}

/* ---- the process and its host ---------------------------------------------------------------- */

static uint64_t
percent_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((double)part * 100.0 / (double)whole);
}

static trpi_doctor_level
used_level(uint64_t used)
{
    return used >= TRPI_DOCTOR_USED_FAIL   ? TRPI_DOCTOR_FAIL
           : used >= TRPI_DOCTOR_USED_WARN ? TRPI_DOCTOR_WARN
                                           : TRPI_DOCTOR_OK;
}

static void
check_descriptors(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->descriptors < 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "not known here (no /proc)");
    } else if (facts->descriptors_limit < 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "%" PRId64 " open, no limit", facts->descriptors);
    } else {
        uint64_t used =
            percent_of((uint64_t)facts->descriptors, (uint64_t)facts->descriptors_limit);
        trpi_doctor_level level = used_level(used);
        if (level == TRPI_DOCTOR_OK && facts->descriptors_limit < TRPI_DOCTOR_DESCRIPTORS_LEAST) {
            level = TRPI_DOCTOR_WARN;
        }
        level = facts->starved ? TRPI_DOCTOR_FAIL : level;
        trpi_doctor_found(f, level, "%" PRId64 " of %" PRId64 " open%s", facts->descriptors,
                          facts->descriptors_limit,
                          facts->starved ? "; none was free for a connection within the last minute"
                                         : "");
    }
}

static void
check_memory(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->memory_bytes < 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "not known here (no /proc)");
    } else if (facts->memory_limit > 0) {
        trpi_doctor_found(
            f, used_level(percent_of((uint64_t)facts->memory_bytes, (uint64_t)facts->memory_limit)),
            "%.0f MiB resident of %.0f MiB that its group may have",
            (double)facts->memory_bytes / MIB, (double)facts->memory_limit / MIB);
    } else if (facts->memory_all > 0) {
        uint64_t used = percent_of((uint64_t)(facts->memory_all - facts->memory_free),
                                   (uint64_t)facts->memory_all);
        trpi_doctor_found(f, used_level(used),
                          "%.0f MiB resident; the host has %.0f of %.0f MiB available",
                          (double)facts->memory_bytes / MIB, (double)facts->memory_free / MIB,
                          (double)facts->memory_all / MIB);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "%.0f MiB resident",
                          (double)facts->memory_bytes / MIB);
    }
}

static void
check_processor(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->cpu_pressure < 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "not known here (no /proc/pressure/cpu)");
    } else {
        trpi_doctor_found(
            f, facts->cpu_pressure >= TRPI_DOCTOR_PRESSURE_WARN ? TRPI_DOCTOR_WARN : TRPI_DOCTOR_OK,
            "processes of this host waited for a processor in %.0f %% of the last 10 s",
            facts->cpu_pressure);
    }
}

static void
check_disk(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_cases full = { 0, "" }, low = { 0, "" };
    for (uint32_t i = 0; i < facts->disks_count; i++) {
        const trpi_doctor_disk *d = &facts->disks[i];
        uint64_t bytes = percent_of(d->bytes_free, d->bytes);
        uint64_t inodes = d->inodes > 0 ? percent_of(d->inodes_free, d->inodes) : bytes;
        const char *unit = inodes < bytes ? "inodes" : "space";
        uint64_t free = inodes < bytes ? inodes : bytes;
        trpi_doctor_cases *cases = free < TRPI_DOCTOR_DISK_FAIL   ? &full
                                   : free < TRPI_DOCTOR_DISK_WARN ? &low
                                                                  : NULL;
        if (cases != NULL) {
            trpi_doctor_case(cases, "%s of the %s, %s: %" PRIu64 " %% free (%.0f MiB)", unit,
                             d->what, d->path, free, (double)d->bytes_free / MIB);
        }
    }
    char ok[64];
    (void)snprintf(ok, sizeof ok, "%" PRIu32 " file system%s room", facts->disks_count,
                   facts->disks_count == 1 ? " has" : "s have");
    trpi_doctor_found_cases(f, full.count > 0 ? TRPI_DOCTOR_FAIL : TRPI_DOCTOR_WARN,
                            full.count > 0 ? &full : &low,
                            facts->disks_count == 0 ? "this node writes to no file" : ok);
}

static void
check_log(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->log_trouble[0] != '\0') {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL, "%s", facts->log_trouble);
    } else if (facts->log_lost + facts->log_dropped > 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "%" PRIu64 " lines were lost since the start, %" PRIu64
                          " of them before they reached the log",
                          facts->log_lost + facts->log_dropped, facts->log_dropped);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "no line was lost since the start");
    }
}

static void
check_log_level(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->log_debug) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN, "log.level is debug");
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "log.level is not debug");
    }
}

static void
check_standstill(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->standing_still) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "this node stood still, and checks which members are reachable");
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "this node has not stood still lately");
    }
}

static void
check_handshakes(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->handshakes_max > 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "%" PRIu32 " connections wait for their handshake, and with more than "
                          "%" PRIu32 " the oldest is closed",
                          facts->handshakes, facts->handshakes_max);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "no connection was closed to make room for another");
    }
}

/* ---- protection ------------------------------------------------------------------------------ */

static void
check_certificate(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (!facts->tls) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "no TLS, so no certificate");
    } else if (facts->certificate_days < 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL, "the certificate of %s has ended", facts->subject);
    } else {
        trpi_doctor_found(f,
                          facts->certificate_days < TRPI_DOCTOR_CERTIFICATE_DAYS ? TRPI_DOCTOR_WARN
                                                                                 : TRPI_DOCTOR_OK,
                          "the certificate of %s is valid for %" PRId64 " days", facts->subject,
                          facts->certificate_days);
    }
}

static void
check_member_certificates(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->member_certificates,
                            facts->tls ? "no certificate that a member has shown ends soon"
                                       : "no TLS, so no certificates");
}

static void
check_files(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->troubles,
                            "certificates, cookies and the last reload are in order");
}

static void
check_protection(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    const char *how = facts->tls      ? "TLS 1.3 mutual"
                      : facts->cookie ? "a cookie, without encryption"
                                      : "nothing";
    bool open = !facts->loopback && !facts->tls;
    trpi_doctor_found(f,
                      open && !facts->cookie ? TRPI_DOCTOR_FAIL
                      : open                 ? TRPI_DOCTOR_WARN
                                             : TRPI_DOCTOR_OK,
                      "links are protected by %s%s", how,
                      facts->loopback ? "; the node is on loopback" : "");
}

static void
check_refusals(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->refused > 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "%" PRIu64 " connections were refused since the start: %s",
                          facts->refused, facts->refused_text);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "no connection was refused");
    }
}

static void
check_test_adapters(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->test_adapters) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "remote.test-adapters is on: whoever may use the control socket can "
                          "disturb this node's network");
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "remote.test-adapters is off");
    }
}

static void
check_idle_keys(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->idle_keys,
                            "each key that is given has an effect");
}

/* ---- actors and persistence ------------------------------------------------------------------ */

static void
check_stuck(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_FAIL, &facts->stuck,
                            "no thread was held by one message while it was looked at");
}

static void
check_ask_cycles(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (facts->ask_cycles > 1) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN, "%s; and %" PRIu32 " more", facts->ask_cycle,
                          facts->ask_cycles - 1);
    } else if (facts->ask_cycles > 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN, "%s", facts->ask_cycle);
    } else if (facts->asks_unseen) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "not known here: the kernel refuses process_vm_readv");
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "no actors wait for one another's answers%s",
                          facts->asks_cut ? "; more asks wait than were looked at" : "");
    }
}

static void
check_mailboxes(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->mailboxes, "no long mailbox grows");
}

static void
check_suspended(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    trpi_doctor_found_cases(f, TRPI_DOCTOR_WARN, &facts->suspended,
                            "no actor waits for its supervisor");
}

static void
check_dead_letters(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    double minutes = (double)facts->dead_letters_ms / 60000.0;
    double rate = minutes > 0 ? (double)facts->dead_letters / minutes : 0;
    trpi_doctor_level level = rate >= TRPI_DOCTOR_STORM_FAIL   ? TRPI_DOCTOR_FAIL
                              : rate >= TRPI_DOCTOR_STORM_WARN ? TRPI_DOCTOR_WARN
                                                               : TRPI_DOCTOR_OK;
    trpi_doctor_found(f, level, "%" PRIu64 " dead letters within the last %.0f s%s%s",
                      facts->dead_letters, (double)facts->dead_letters_ms / 1000.0,
                      facts->dead_letters > 0 ? ", the last: " : "",
                      facts->dead_letters > 0 ? facts->dead_letter : "");
}

static void
check_journal(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    if (!facts->has_journal) {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "this node has no journal");
    } else if (strcmp(facts->journal, "open") != 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL, "the journal is %s%s%s", facts->journal,
                          facts->journal_why[0] != '\0' ? ": " : "", facts->journal_why);
    } else if (facts->journal_why[0] != '\0') {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL, "the journal refuses changes: %s",
                          facts->journal_why);
    } else if (facts->shards_unopened > 0) {
        trpi_doctor_found(f, TRPI_DOCTOR_FAIL,
                          "%" PRIu32 " shards of entities wait for the journal",
                          facts->shards_unopened);
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "the journal is open, %" PRIu32 " operations wait",
                          facts->journal_waiting);
    }
}

static void
check_journal_place(const trpi_doctor_facts *facts, trpi_doctor_finding *f)
{
    bool moves = facts->has_journal && facts->journal_local && facts->members_count > 0;
    if (moves && !facts->loopback) {
        trpi_doctor_found(f, TRPI_DOCTOR_WARN,
                          "the journal is this node's alone, and persistence.local-store-is-enough "
                          "lets entities move away from it");
    } else {
        trpi_doctor_found(f, TRPI_DOCTOR_OK, "%s",
                          facts->has_journal ? "what moves between hosts finds its journal"
                                             : "this node has no journal");
    }
}

const trpi_doctor_check trpi_doctor_node_checks[] = {
    { "descriptors", check_descriptors,
      "raise LimitNOFILE= of the unit (ulimit -n): two for each peer and a hundred more" },
    { "memory", check_memory,
      "look for growing mailboxes (troupe top), raise MemoryMax= of the unit, or give the host "
      "more" },
    { "processor", check_processor,
      "move work away from this host: a node that waits for a processor answers heartbeats late" },
    { "disk", check_disk, "make room, or move the files to a larger file system" },
    { "log", check_log,
      "make room for log.file, or let its reader keep up; lower log.level when it is debug" },
    { "log-level", check_log_level, "set log.level to info, then: troupe config reload" },
    { "standstill", check_standstill,
      "find what suspended the process or the machine: SIGSTOP, a debugger, a snapshot, no "
      "memory" },
    { "handshakes", check_handshakes,
      "see who connects to this node's port (ss -tn), and let the firewall refuse strangers" },
    { "certificate", check_certificate,
      "troupe cert renew FILE, the one of remote.tls.cert, then: troupe config reload; connections "
      "go on" },
    { "member-certificates", check_member_certificates,
      "on that member: troupe cert renew FILE, the one of remote.tls.cert, then: troupe config "
      "reload" },
    { "files", check_files, "mend the file that is named, then: troupe config reload" },
    { "protection", check_protection,
      "use remote.transport = tls (troupe cert ca NAME, troupe cert node HOST), or at least a "
      "cookie (troupe cookie gen)" },
    { "refusals", check_refusals,
      "compare certificates and cookies of the nodes: troupe cert show FILE, troupe cookie hash < "
      "FILE" },
    { "test-adapters", check_test_adapters, "set remote.test-adapters = off where it is no test" },
    { "idle-keys", check_idle_keys, "take the key out of the file or option that is named" },
    { "stuck", check_stuck,
      "an actor must not block: give it a dispatcher of its own (blocking); if its turn never "
      "ends, start the node again" },
    { "ask-cycles", check_ask_cycles,
      "these asks end only by their timeouts: let one of these actors answer without asking, or "
      "pass the question on (trp_forward)" },
    { "mailboxes", check_mailboxes,
      "make the actor faster, let several share its work (a router), or bound its mailbox" },
    { "suspended", check_suspended,
      "its supervisor does not decide: it is stuck itself, or far behind" },
    { "dead-letters", check_dead_letters,
      "troupe deadletters shows which messages are lost, and the nearest path that has an actor" },
    { "journal", check_journal,
      "no room: free some of the disk, or raise persistence.lmdb.size-max; away: look at its "
      "server; "
      "read-only: mend the disk, then start the node again" },
    { "journal-place", check_journal_place,
      "use a journal that all hosts share (persistence.journal = postgres)" },
};
const size_t trpi_doctor_node_checks_count =
    sizeof trpi_doctor_node_checks / sizeof trpi_doctor_node_checks[0];

/* ---- all of them ----------------------------------------------------------------------------- */

void
trpi_doctor_advice(const trpi_doctor_finding *finding, char *text, size_t bytes)
{
    const char *place = strstr(finding->advice, "MEMBER");
    size_t member =
        strncmp(finding->evidence, "troupe.", 7) == 0 ? strcspn(finding->evidence, " ") : 0;
    if (place == NULL || member == 0) {
        (void)snprintf(text, bytes, "%s", finding->advice);
    } else {
        (void)snprintf(text, bytes, "%.*s%.*s%s", (int)(place - finding->advice), finding->advice,
                       (int)member, finding->evidence, place + strlen("MEMBER"));
    }
}

static size_t
checks_run(const trpi_doctor_check *checks, size_t count, const trpi_doctor_facts *facts,
           trpi_doctor_finding *findings)
{
    for (size_t i = 0; i < count; i++) {
        trpi_doctor_finding *f = &findings[i];
        memset(f, 0, sizeof *f);
        f->id = checks[i].id;
        checks[i].look(facts, f);
        f->advice = f->level == TRPI_DOCTOR_OK ? "" : checks[i].advice;
        trpi_assert(f->evidence[0] != '\0');
    }
    return count;
}

size_t
trpi_doctor_judge(const trpi_doctor_facts *facts,
                  trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX])
{
    trpi_assert(trpi_doctor_cluster_checks_count + trpi_doctor_node_checks_count <=
                TRPI_DOCTOR_FINDINGS_MAX);
    size_t count =
        checks_run(trpi_doctor_cluster_checks, trpi_doctor_cluster_checks_count, facts, findings);
    return count + checks_run(trpi_doctor_node_checks, trpi_doctor_node_checks_count, facts,
                              findings + count);
}
