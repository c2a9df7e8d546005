/* doctor.h - what is wrong with a node and its cluster: facts in, findings out. Pure.
 *
 * A finding has a stable id, which is also its section in docs/doctor.md. Facts that are not known
 * are marked so (negative, or 0 where the comment says it) and give no finding worse than ok. */
#ifndef TRPI_NODE_DOCTOR_H
#define TRPI_NODE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/node/doctor_asks.h"

#define TRPI_DOCTOR_EVIDENCE_BYTES 400u
#define TRPI_DOCTOR_TEXT_BYTES 200u
#define TRPI_DOCTOR_ADVICE_BYTES 600u
#define TRPI_DOCTOR_NAME_BYTES 288u
#define TRPI_DOCTOR_FINDINGS_MAX 48u

typedef enum trpi_doctor_level {
    TRPI_DOCTOR_OK = 0,
    TRPI_DOCTOR_WARN = 1,
    TRPI_DOCTOR_FAIL = 2
} trpi_doctor_level;

typedef struct trpi_doctor_finding {
    const char *id;
    trpi_doctor_level level;
    char evidence[TRPI_DOCTOR_EVIDENCE_BYTES];
    const char *advice; /* static; of a finding that is not ok */
} trpi_doctor_finding;

/* A number of cases, and the first of them as text. */
typedef struct trpi_doctor_cases {
    uint32_t count;
    char first[TRPI_DOCTOR_TEXT_BYTES];
} trpi_doctor_cases;

typedef struct trpi_doctor_member {
    char address[TRPI_DOCTOR_NAME_BYTES];
    bool reachable;
    bool answered; /* it has told its facts: the fields below */
    char version[24];
    char differs[TRPI_DOCTOR_TEXT_BYTES]; /* "key is a here and b there"; "": no key */
    uint32_t differs_count;
    int64_t clock_ms;       /* ahead of this node's */
    uint32_t clock_sure_ms; /* it may be off by so much: half of the round trip */
    uint64_t view;          /* digest of its view; 0: not told */
} trpi_doctor_member;

/* A file system that the node writes to. */
typedef struct trpi_doctor_disk {
    char path[TRPI_DOCTOR_NAME_BYTES];
    const char *what; /* "log", "journal" */
    uint64_t bytes, bytes_free;
    uint64_t inodes, inodes_free; /* 0: it has no such limit */
} trpi_doctor_disk;
#define TRPI_DOCTOR_DISKS_MAX 4u

/* A thread that one message holds, for the tool to take its stack. */
typedef struct trpi_doctor_held {
    char actor[TRPI_DOCTOR_NAME_BYTES];
    int thread; /* the kernel's id of it; 0: not known */
} trpi_doctor_held;
#define TRPI_DOCTOR_HELD_MAX 4u

struct trp_live;

typedef struct trpi_doctor_facts {
    /* the cluster, as this node sees it */
    bool joined;
    char status[16]; /* of this node */
    char
        seeking[TRPI_DOCTOR_TEXT_BYTES]; /* the seed that it asks, and why it is not admitted; "" */
    bool converged;
    uint64_t converged_ms;             /* for how long it has been so, or not */
    uint64_t view;                     /* digest */
    const trpi_doctor_member *members; /* all but this node */
    size_t members_count;
    uint32_t up; /* members that are Up, this node among them */
    trpi_doctor_cases unreachable, joining_long, down, drained;
    trpi_doctor_cases ways_failed; /* "A cannot dial B: why" */
    uint32_t ways;                 /* that were tried */
    trpi_doctor_cases links_wait;  /* messages to reachable members wait */
    trpi_doctor_cases quarantined;
    trpi_doctor_cases foreign, removers; /* two clusters */
    trpi_doctor_cases seeds_unresolved;
    uint32_t seeds;
    trpi_doctor_cases hand_overs, shards; /* that hang */
    char lacking[TRPI_DOCTOR_TEXT_BYTES]; /* why joiners are not Up; "" */
    bool standing_still;
    /* downing */
    char strategy[32];
    uint32_t quorum_size; /* static-quorum; 0: not set */
    bool stops;           /* this node will stop */
    char outlook[TRPI_DOCTOR_TEXT_BYTES];
    uint64_t leave_timeout_ms, leave_need_ms,
        lease_hold_ms; /* need 0: any does; hold 0: no lease */
    /* how it is protected */
    bool loopback, tls, cookie;
    char subject[72];
    int64_t certificate_days;              /* of tls */
    trpi_doctor_cases member_certificates; /* of others that end soon or have ended */
    trpi_doctor_cases troubles;            /* of this node's own files */
    uint64_t refused;                      /* connections, since the start */
    char refused_text[TRPI_DOCTOR_TEXT_BYTES];
    /* the process and its host */
    char version[24];
    int64_t descriptors, descriptors_limit; /* negative: not known, no limit */
    bool starved;                           /* no descriptor was free, lately */
    uint32_t handshakes, handshakes_max;    /* that wait; max 0: none was displaced lately */
    int64_t memory_bytes, memory_limit;     /* of the process, its group's limit; negative */
    int64_t memory_free, memory_all;        /* of the host; negative: not known */
    double cpu_pressure;                    /* share of time that tasks waited, 0..100; negative */
    trpi_doctor_disk disks[TRPI_DOCTOR_DISKS_MAX];
    uint32_t disks_count;
    uint64_t log_lost, log_dropped;
    char log_trouble[TRPI_DOCTOR_TEXT_BYTES];
    bool log_debug;
    bool test_adapters;
    trpi_doctor_cases idle_keys;
    /* actors */
    trpi_doctor_cases stuck;                     /* threads that one message holds */
    trpi_doctor_held held[TRPI_DOCTOR_HELD_MAX]; /* the first of them */
    uint32_t held_count;
    trpi_doctor_asks asks; /* that wait, of all members; empty once they are counted: */
    bool asks_cut;         /* there are more than were looked at */
    bool asks_unseen;      /* this node may not look at its own */
    uint32_t ask_cycles;
    char ask_cycle[TRPI_DOCTOR_EVIDENCE_BYTES - 64]; /* the actors of the first */
    trpi_doctor_cases mailboxes;                     /* long, and growing */
    trpi_doctor_cases suspended;                     /* actors that wait for their supervisor */
    uint64_t dead_letters;                           /* in dead_letters_ms */
    uint64_t dead_letters_ms;                        /* 0: none was looked at */
    char dead_letter[TRPI_DOCTOR_TEXT_BYTES];        /* the last one */
    /* persistence */
    bool has_journal, journal_local; /* of this node only, and used for what moves */
    char journal[16];                /* state: "open", "away", "read-only", "closed" */
    char journal_why[TRPI_DOCTOR_TEXT_BYTES];
    uint32_t journal_waiting, shards_unopened;
} trpi_doctor_facts;

/* Judge the facts: one finding for each check, in a fixed order. Returns their number. */
size_t trpi_doctor_judge(const trpi_doctor_facts *facts,
                         trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX]);
/* Write what to do, as it is typed: the member that the evidence begins with is in place of MEMBER.
 */
void trpi_doctor_advice(const trpi_doctor_finding *finding, char *text, size_t bytes);
const char *trpi_doctor_level_name(trpi_doctor_level level); /* "ok", "warn", "fail" */
/* Write how a value of a key differs between here and there into member, and count it. */
void trpi_doctor_differ(trpi_doctor_member *member, const char *key, const char *here,
                        const char *there);
/* Count a case; the first one is kept. */
void trpi_doctor_case(trpi_doctor_cases *cases, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Limits of the checks. */
#define TRPI_DOCTOR_CERTIFICATE_DAYS 14
#define TRPI_DOCTOR_CLOCK_WARN_MS 1000
#define TRPI_DOCTOR_CLOCK_FAIL_MS 60000
#define TRPI_DOCTOR_CONVERGED_WARN_MS 10000u
#define TRPI_DOCTOR_CONVERGED_FAIL_MS 60000u
#define TRPI_DOCTOR_DESCRIPTORS_LEAST 1024
#define TRPI_DOCTOR_USED_WARN 80u /* per cent, of descriptors and memory */
#define TRPI_DOCTOR_USED_FAIL 95u
#define TRPI_DOCTOR_DISK_WARN 10u /* per cent that are free */
#define TRPI_DOCTOR_DISK_FAIL 2u
#define TRPI_DOCTOR_PRESSURE_WARN 40.0
#define TRPI_DOCTOR_STORM_WARN 60u /* dead letters a minute */
#define TRPI_DOCTOR_STORM_FAIL 6000u

#endif
