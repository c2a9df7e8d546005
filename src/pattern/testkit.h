/* testkit.h - private to the files of the test kit. */
#ifndef TRPI_PATTERN_TESTKIT_H
#define TRPI_PATTERN_TESTKIT_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <troupe/testkit.h>

#include "actor/actor.h"
#include "base/world_virtual.h"
#include "sched/sched.h"

#define TRPI_TESTKIT_MAGIC 0x7472705f746b6974ull
#define TRPI_TEST_TEXT_BYTES 1024u /* of a failure */
#define TRPI_TEST_FILTERS_MAX 16u  /* inside one another */

typedef struct trpi_filtering {
    const trp_filter *filter;
    const char *file;
    int line;
    uint32_t seen;
} trpi_filtering;

struct trp_testkit {
    uint64_t magic;
    trp_testkit_options options; /* defaults filled in */
    trp_system_options system_options;
    trp_system *system;
    bool owns;          /* the system is the kit's */
    trpi_virtual *virt; /* of an own system with a virtual clock; else NULL */
    uint64_t opened_ns;
    trp_probe *probes; /* newest first */
    trp_probe *main;
    uint32_t probes_made;
    _Atomic uint32_t failures; /* an actor may fail a test, too */
    jmp_buf *jump;             /* of the present trp_testkit_run() */
    trpi_cond filters_cond;    /* guards filters */
    trpi_filtering filters[TRPI_TEST_FILTERS_MAX];
    uint32_t filters_count;
};

typedef struct trpi_within {
    const char *file;
    int line;
    uint64_t start_ns, end_ns;
    uint64_t min_ns;
} trpi_within;

typedef struct trpi_within_blocks { /* inside one another */
    trpi_within blocks[TRP_TEST_WITHIN_MAX];
    uint32_t depth;
} trpi_within_blocks;

struct trp_probe {
    trp_testkit *kit;
    trp_probe *next; /* of the kit */
    trp_ref ref;
    /* the owner's */
    trp_msg **received; /* of the last call that received */
    uint32_t received_count, received_room;
    trpi_within_blocks within; /* testkit_expect.c's */
    bool waited_out;           /* the last receive was expect_none or receive_while */
    /* shared with the actor */
    trpi_cond cond; /* guards all below */
    trp_msg *first, *last;
    uint32_t lost;     /* without memory for the copy */
    uint32_t orders;   /* watch and unwatch that were carried out */
    trp_err order_err; /* of the last one */
    trp_match_fn ignore;
    void *ignore_arg;
    trp_pilot pilot;
};

/* Open a kit in a given world (takes it, on success only); NULL: the world of its options. */
trp_err trpi_testkit_open_in(const trp_testkit_options *options, trpi_virtual *virt,
                             trp_testkit **ret_kit);
trpi_sched *trpi_testkit_sched(const trp_testkit *kit);
uint64_t trpi_testkit_now_ns(const trp_testkit *kit);
/* Return a limit in nanoseconds of the kit's clock. */
uint64_t trpi_testkit_ns(const trp_testkit *kit, uint32_t ms);
/* Return the end of a limit that begins now; TRP_TEST_TIME: that of the innermost block. */
uint64_t trpi_probe_deadline(trp_probe *probe, uint32_t ms);
/* End all blocks of the probe: a jump has left them. */
void trpi_probe_within_end(trp_probe *probe);
/* Wait until the deadline, or until fn(arg) is true, which is checked every interval_ms. */
bool trpi_testkit_poll(trp_testkit *kit, uint64_t deadline_ns, uint32_t interval_ms,
                       trp_condition_fn fn, void *arg);
/* Describe msg for people; cut to bytes. Returns text. */
char *trpi_testkit_describe(const trp_testkit *kit, const trp_msg *msg, char *text, size_t bytes);
/* Take the next message in place of those that were received before (fresh), or behind them. */
const trp_msg *trpi_probe_take(trp_probe *probe, uint64_t deadline_ns, bool fresh);
/* Put the message that was taken last back to the head of the queue. */
void trpi_probe_give_back(trp_probe *probe);
void trpi_probe_forget(trp_probe *probe); /* frees the received messages */
void trpi_probe_free(trp_probe *probe);   /* its actor has ended */
void trpi_testkit_log(void *kit, const trp_log_line *line);

#endif
