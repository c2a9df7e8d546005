/* troupe/testkit.h - test actors from a thread that is not an actor.
 *
 * A kit is a system for the length of a test. Its probes are actors whose messages a test takes out
 * of a queue: a probe takes the place of the actors that the tested actor talks to.
 *
 *     trp_testkit *kit;
 *     if (trp_testkit_open(NULL, &kit) != TRP_OK) { ... }
 *     trp_probe *probe = trp_testkit_probe(kit);
 *     trp_probe_tell(probe, counter, &counter_add_type, &(counter_add){ 2 }, 0);
 *     trp_probe_expect(probe, TRP_TEST_TIME, &counter_total_type, &(counter_total){ 2 }, 0);
 *     trp_testkit_close(kit);
 *
 * Time limits are in milliseconds. TRP_TEST_TIME means what is left of the innermost
 * trp_probe_within() of this probe, else the kit's expect_ms. All limits are stretched by the kit's
 * timefactor. Where a limit passes, or something else came than was expected, the kit's on_fail
 * says what happens; an expectation that fails returns NULL (or 0), where it returns at all.
 *
 * A message that a probe has received stays valid until the next call that receives on this probe.
 * Payloads are compared byte by byte: set padding to zero.
 *
 * The clock of a kit is the machine's, or virtual: then there is one thread, the test's, which runs
 * the actors whenever it waits. With TRP_CLOCK_VIRTUAL time jumps to the next timer when no actor
 * has anything to do; with TRP_CLOCK_MANUAL it stands until trp_testkit_advance(), and a wait ends
 * as soon as nothing is left to do.
 */
#ifndef TROUPE_TESTKIT_H
#define TROUPE_TESTKIT_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trp_testkit trp_testkit;
typedef struct trp_probe trp_probe;

#define TRP_TEST_TIME UINT32_MAX         /* a limit: see above */
#define TRP_TEST_EXPECT_MS_DEFAULT 3000  /* akka.test.single-expect-default */
#define TRP_TEST_LEEWAY_MS_DEFAULT 3000  /* akka.test.filter-leeway */
#define TRP_TEST_TIMEOUT_MS_DEFAULT 5000 /* akka.test.default-timeout */
#define TRP_TEST_INTERVAL_MS 100         /* between two looks at a condition */
#define TRP_TEST_WITHIN_MAX 16           /* trp_probe_within() inside one another */

typedef enum trp_testkit_clock {
    TRP_CLOCK_REAL = 0,
    TRP_CLOCK_VIRTUAL = 1,
    TRP_CLOCK_MANUAL = 2
} trp_testkit_clock;

typedef enum trp_testkit_on_fail {
    TRP_FAIL_ABORT = 0,  /* print, then end the process as a failed assertion does */
    TRP_FAIL_RETURN = 1, /* print, count (trp_testkit_failures) and go on */
    TRP_FAIL_JUMP = 2    /* print, count and end trp_testkit_run(); outside of it: abort */
} trp_testkit_on_fail;

/* A failed expectation: where it stands, what was expected and what came. Instead of printing to
 * stderr. Called on the thread of the test, with no lock held; may longjmp away. */
typedef void (*trp_testkit_fail_fn)(void *arg, const char *file, int line, const char *text);

typedef struct trp_testkit_options {
    size_t size;
    trp_system *system; /* borrowed until close; NULL: the kit makes one and frees it */
    const char *name;   /* of the kit's own system; NULL: "test" */
    const trp_system_options *system_options; /* of the kit's own system; NULL: defaults */
    uint32_t clock;   /* trp_testkit_clock; with a system of your own: its own */
    uint32_t on_fail; /* trp_testkit_on_fail */
    trp_testkit_fail_fn fail;
    void *fail_arg;
    double timefactor;           /* all time limits are multiplied by it; 0: 1.0 */
    uint32_t expect_ms;          /* 0: TRP_TEST_EXPECT_MS_DEFAULT */
    uint32_t leeway_ms;          /* 0: TRP_TEST_LEEWAY_MS_DEFAULT */
    uint32_t timeout_ms;         /* of asks and stops; 0: TRP_TEST_TIMEOUT_MS_DEFAULT */
    uint32_t quiet_dead_letters; /* 1: no warning for each dead letter */
} trp_testkit_options;
#define TRP_TESTKIT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_testkit_options), NULL, NULL, NULL, 0, 0, NULL, NULL, 0.0, 0, 0, 0, 0           \
    }

/* A block between two calls; each has a variable of its own, so that they may be nested. */
#define TRP_PRIV_NAME_(line) trp_priv_block_##line
#define TRP_PRIV_NAME(line) TRP_PRIV_NAME_(line)
#define TRP_PRIV_BLOCK(begin, end, line)                                                           \
    for (int TRP_PRIV_NAME(line) = (begin); TRP_PRIV_NAME(line) != 0; TRP_PRIV_NAME(line) = (end))

/* ---- the kit -------------------------------------------------------------------------------- */

/* Start a kit: a system of its own (or the given one) and the first probe.
 *
 * Ownership: gives *ret_kit (trp_testkit_close); borrows options.
 * Errors:    TRP_EINVAL   an option is out of range, or the system's name is invalid
 *            TRP_ENOMEM   out of memory
 *            TRP_EIO      a thread cannot be made
 * Thread:    any; may block until its threads are made; with a virtual clock the kit is this
 *            thread's from here on.
 * Source:    TEST-1, TEST-3, TEST-7.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_testkit_open(const trp_testkit_options *options,
                                                trp_testkit **ret_kit);

/* End all probes and filters, stop the kit's own system and free it. NULL is fine. Return TRP_OK,
 * or what the stop of the system said.
 *
 * Ownership: takes kit.
 * Errors:    TRP_ETIMEDOUT  an actor is stuck (its path is logged)
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-3.  Since: 0.1 */
TRP_API trp_err trp_testkit_close(trp_testkit *kit);

/* Borrow the system, until the kit is closed.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TEST-3.  Since: 0.1 */
TRP_API trp_system *trp_testkit_system(trp_testkit *kit);

/* Borrow the first probe (Akka's testActor), until the kit is closed.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TEST-3.  Since: 0.1 */
TRP_API trp_probe *trp_testkit_probe(trp_testkit *kit);

/* Return how many expectations have failed.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-4.  Since: 0.1 */
TRP_API uint32_t trp_testkit_failures(const trp_testkit *kit);

/* Report a failure of the test's own, as an expectation does; use it through trp_testkit_fail(kit,
 * "want %d", ...), or TRP_TESTKIT_CHECK(kit, condition).
 * From a behaviour it neither jumps nor returns anything: the test has failed, the actor goes on.
 *
 * Ownership: borrows file, format and its arguments.
 * Errors:    none
 * Thread:    any; takes a lock for a moment (of stdio); a jump needs the thread of the test.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API void trp_testkit_fail_at(trp_testkit *kit, const char *file, int line, const char *format,
                                 ...) TRP_PRINTF(4, 5);
#define trp_testkit_fail(kit, ...) trp_testkit_fail_at((kit), __FILE__, __LINE__, __VA_ARGS__)
#define TRP_TESTKIT_CHECK(kit, condition)                                                          \
    ((condition) ? (void)0 : trp_testkit_fail_at((kit), __FILE__, __LINE__, "%s", #condition))

/* Run test(kit, arg); with TRP_FAIL_JUMP the first failure ends it, by a jump over its frames.
 * Return how many expectations failed in it.
 *
 * Ownership: arg is passed through; what the test's frames own is lost when it is ended.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-4.  Since: 0.1 */
TRP_API uint32_t trp_testkit_run(trp_testkit *kit, void (*test)(trp_testkit *kit, void *arg),
                                 void *arg);

/* Multiply a time limit by the kit's timefactor.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TEST-7.  Since: 0.1 */
TRP_API uint32_t trp_testkit_dilated(const trp_testkit *kit, uint32_t ms);

/* Return the kit's timeout_ms, dilated: for asks and stops.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TEST-1.  Since: 0.1 */
TRP_API uint32_t trp_testkit_timeout_ms(const trp_testkit *kit);

/* Return the time of the kit's clock since it was opened, in milliseconds.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#principles.  Since: 0.1 */
TRP_API uint64_t trp_testkit_now_ms(trp_testkit *kit);

/* Move a virtual or manual clock by ms and run what that makes ready: timers fire in the order of
 * their times, each at its own time. ms 0: run what is ready now.
 *
 * Errors:    TRP_ESTATE     the clock is the machine's, or this is a behaviour
 *            TRP_ETIMEDOUT  actors talk without end
 * Thread:    owner (the creator; no lock inside).
 * Source:    SCH-1.  Since: 0.1 */
TRP_API trp_err trp_testkit_advance(trp_testkit *kit, uint32_t ms);

typedef int (*trp_condition_fn)(void *arg);
/* NULL: all is well; else what is not. The text is read before fn is called again. */
typedef const char *(*trp_assert_fn)(void *arg);

/* Wait until fn(arg) is non-zero: it is looked at every interval_ms (0: TRP_TEST_INTERVAL_MS; with
 * a virtual clock after each turn of an actor). Return non-zero if it was.
 *
 * Ownership: borrows file; arg is passed through.
 * Errors:    none; a failed wait is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-5.  Since: 0.1 */
TRP_API int trp_probe_await_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                               uint32_t interval_ms, trp_condition_fn fn, void *arg);
#define trp_probe_await(...) trp_probe_await_at(__FILE__, __LINE__, __VA_ARGS__)

/* Do as trp_probe_await, until fn(arg) returns NULL; if it does not in time, the last text that it
 * returned is the failure's.
 *
 * Ownership: borrows file; arg is passed through.
 * Errors:    none; a failed wait is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-5.  Since: 0.1 */
TRP_API int trp_probe_await_assert_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                                      uint32_t interval_ms, trp_assert_fn fn, void *arg);
#define trp_probe_await_assert(...) trp_probe_await_assert_at(__FILE__, __LINE__, __VA_ARGS__)

/* ---- probes --------------------------------------------------------------------------------- */

/* Start one more probe: /system/testProbe-N.
 *
 * Ownership: gives *ret_probe (trp_probe_close, or the end of the kit).
 * Errors:    TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system is stopping
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_probe_open(trp_testkit *kit, trp_probe **ret_probe);

/* End a probe before its kit; NULL is fine. Messages that were not taken are dropped.
 *
 * Ownership: takes probe.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8.  Since: 0.1 */
TRP_API void trp_probe_close(trp_probe *probe);

/* Return the probe's name among actors.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TEST-8.  Since: 0.1 */
TRP_API trp_ref trp_probe_ref(const trp_probe *probe);

/* Tell `to` with the probe as sender: replies come to the probe.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    TEST-3.  Since: 0.1 */
TRP_API void trp_probe_tell(trp_probe *probe, trp_ref to, const trp_type *type, const void *payload,
                            size_t bytes);

/* Return the sender of the message that was received last; TRP_REF_NONE when it had none, or there
 * was no message.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8, TEST-16.  Since: 0.1 */
TRP_API trp_ref trp_probe_sender(const trp_probe *probe);

/* Borrow the message that was received last, until the next call that receives; NULL: none yet.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-16.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_last(const trp_probe *probe);

/* Tell the sender of the message that was received last, with the probe as sender.
 *
 * Ownership: borrows payload.
 * Errors:    none; without a sender the reply is a dead letter.
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8.  Since: 0.1 */
TRP_API void trp_probe_reply(trp_probe *probe, const trp_type *type, const void *payload,
                             size_t bytes);

/* Pass the message that was received last on to `to`, as if no probe had intervened: its sender
 * stays.
 *
 * Errors:    TRP_ESTATE   nothing was received yet
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8.  Since: 0.1 */
TRP_API trp_err trp_probe_forward(trp_probe *probe, trp_ref to);

/* Make the probe watch ref: trp_terminated comes to its queue. When this returns the watch stands.
 *
 * Errors:    TRP_EINVAL     ref is TRP_REF_NONE
 *            TRP_ENOMEM     out of memory
 *            TRP_ETIMEDOUT  the probe's actor did not come to it
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8.  Since: 0.1 */
TRP_API trp_err trp_probe_watch(trp_probe *probe, trp_ref ref);

/* End the watch; when this returns no trp_terminated of ref will come, but for one that is in the
 * queue already.
 *
 * Errors:    TRP_EINVAL, TRP_ENOMEM, TRP_ETIMEDOUT as trp_probe_watch
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-8.  Since: 0.1 */
TRP_API trp_err trp_probe_unwatch(trp_probe *probe, trp_ref ref);

typedef int (*trp_match_fn)(void *arg, const trp_msg *msg);

/* From now on queue only messages for which fn(arg, msg) is zero; NULL: queue all. It replaces what
 * was set before. fn runs on the probe's thread.
 *
 * Ownership: arg is passed through, borrowed until it is replaced or the probe ends.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    TEST-5.  Since: 0.1 */
TRP_API void trp_probe_ignore(trp_probe *probe, trp_match_fn fn, void *arg);

/* An auto-pilot: how the probe itself answers the next message. */
typedef struct trp_pilot trp_pilot;
typedef trp_pilot (*trp_pilot_fn)(trp_ctx *ctx, void *arg, const trp_msg *msg);
struct trp_pilot {
    trp_pilot_fn fn; /* NULL: no pilot */
    void *arg;
    int keep; /* 1: as before, whatever fn is */
    uint32_t zero;
};
#define TRP_PILOT_NONE                                                                             \
    {                                                                                              \
        NULL, NULL, 0                                                                              \
    }
#define TRP_PILOT_KEEP                                                                             \
    {                                                                                              \
        NULL, NULL, 1                                                                              \
    }

/* Let the probe answer by itself: pilot.fn runs as the probe's behaviour, before a message is
 * queued, with trp_sender(ctx) its sender, and returns the pilot for the next one.
 *
 * Ownership: pilot.arg is passed through, borrowed until the pilot is replaced or the probe ends.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    TEST-9.  Since: 0.1 */
TRP_API void trp_probe_pilot(trp_probe *probe, trp_pilot pilot);

/* ---- receiving ------------------------------------------------------------------------------ */

/* Take the next message; NULL: none came in time, which is no failure. ms 0: do not wait.
 *
 * Ownership: the message is borrowed until the next call that receives.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-5.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_receive(trp_probe *probe, uint32_t ms);

/* Take n messages within the limit. Return n, or 0: fewer came, which is a failure. They are
 * trp_probe_received(probe, 0 .. n - 1).
 *
 * Ownership: borrows file; the messages are borrowed until the next call that receives.
 * Errors:    none; too few is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API uint32_t trp_probe_receive_n_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                                        uint32_t n);
#define trp_probe_receive_n(...) trp_probe_receive_n_at(__FILE__, __LINE__, __VA_ARGS__)

/* Take messages as long as fn(arg, msg) is non-zero (fn NULL: always), the limit max_ms has not
 * passed, each comes within idle_ms (0: no such limit) of the one before, and there are fewer than
 * n (0: no such limit). The first that fn refuses stays in the queue. Return how many; they are
 * trp_probe_received().
 *
 * Ownership: the messages are borrowed until the next call that receives; arg is passed through.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-5.  Since: 0.1 */
TRP_API uint32_t trp_probe_receive_while(trp_probe *probe, uint32_t max_ms, uint32_t idle_ms,
                                         uint32_t n, trp_match_fn fn, void *arg);

/* Borrow one of the messages of the last call that received, until the next one; NULL: there is no
 * such message.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-4.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_received(const trp_probe *probe, uint32_t index);

/* A message that is expected. */
typedef struct trp_expected {
    const trp_type *type; /* NULL: any */
    const void *payload;  /* NULL: any */
    size_t bytes;         /* ignored for types of fixed size */
    trp_match_fn match;   /* NULL: no further condition */
    void *arg;
} trp_expected;
#define TRP_EXPECT_TYPE(type_)                                                                     \
    {                                                                                              \
        (type_), NULL, 0, NULL, NULL                                                               \
    }
#define TRP_EXPECT_MSG(type_, payload_)                                                            \
    {                                                                                              \
        (type_), (payload_), 0, NULL, NULL                                                         \
    }
#define TRP_EXPECT_MATCH(fn_, arg_)                                                                \
    {                                                                                              \
        NULL, NULL, 0, (fn_), (arg_)                                                               \
    }

/* Take the next message, which must be like at least one of `count` expected ones, within the
 * limit. Return it, or NULL.
 *
 * Ownership: borrows file and expected; the message is borrowed until the next call that receives.
 * Errors:    none; another message or none is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_expect_any_at(const char *file, int line, trp_probe *probe,
                                               uint32_t ms, const trp_expected *expected,
                                               uint32_t count);
#define trp_probe_expect_any(...) trp_probe_expect_any_at(__FILE__, __LINE__, __VA_ARGS__)

/* Take the next message, which must be of this type (NULL: any) and have this payload (NULL: any).
 * Return it, or NULL.
 *
 * Ownership: borrows file and payload; the message is borrowed until the next call that receives.
 * Errors:    none; another message or none is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_expect_at(const char *file, int line, trp_probe *probe,
                                           uint32_t ms, const trp_type *type, const void *payload,
                                           size_t bytes);
#define trp_probe_expect(...) trp_probe_expect_at(__FILE__, __LINE__, __VA_ARGS__)
#define trp_probe_expect_type(probe, ms, type)                                                     \
    trp_probe_expect_at(__FILE__, __LINE__, (probe), (ms), (type), NULL, 0)

/* Take the next message, for which fn(arg, msg) must be non-zero. Return it, or NULL.
 *
 * Ownership: borrows file; the message is borrowed until the next call that receives.
 * Errors:    none; another message or none is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_expect_match_at(const char *file, int line, trp_probe *probe,
                                                 uint32_t ms, trp_match_fn fn, void *arg);
#define trp_probe_expect_match(...) trp_probe_expect_match_at(__FILE__, __LINE__, __VA_ARGS__)

/* Take `count` messages, in any order, so that each expected one is like at least one of them.
 * Return count, or 0. They are trp_probe_received(), in the order of their coming.
 *
 * Ownership: borrows file and expected; the messages are borrowed until the next that receives.
 * Errors:    none; fewer or others are a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API uint32_t trp_probe_expect_all_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                                         const trp_expected *expected, uint32_t count);
#define trp_probe_expect_all(...) trp_probe_expect_all_at(__FILE__, __LINE__, __VA_ARGS__)

/* Expect that no message comes within the limit, nor is one in the queue. Return non-zero if so; a
 * message that came was taken.
 *
 * Ownership: borrows file.
 * Errors:    none; a message is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API int trp_probe_expect_none_at(const char *file, int line, trp_probe *probe, uint32_t ms);
#define trp_probe_expect_none(probe, ms) trp_probe_expect_none_at(__FILE__, __LINE__, (probe), (ms))

/* Take messages until fn(arg, msg) is non-zero; all others are dropped. Return that one, or NULL:
 * it did not come in time. hint says in the failure what was fished for.
 *
 * Ownership: borrows file and hint; the message is borrowed until the next call that receives.
 * Errors:    none; no such message is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-4.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_fish_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                                         const char *hint, trp_match_fn fn, void *arg);
#define trp_probe_fish(...) trp_probe_fish_at(__FILE__, __LINE__, __VA_ARGS__)

/* Take the next message, which must say that ref has ended. Return it, or NULL.
 *
 * Ownership: borrows file; the message is borrowed until the next call that receives.
 * Errors:    none; another message or none is a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the limit.
 * Source:    TEST-8.  Since: 0.1 */
TRP_API const trp_msg *trp_probe_expect_terminated_at(const char *file, int line, trp_probe *probe,
                                                      uint32_t ms, trp_ref ref);
#define trp_probe_expect_terminated(...)                                                           \
    trp_probe_expect_terminated_at(__FILE__, __LINE__, __VA_ARGS__)

/* ---- time limits for a block ---------------------------------------------------------------- */

/* Begin a block that must take between min_ms and max_ms; its end is the limit of the expectations
 * of this probe inside (of no other probe). Use it as TRP_WITHIN(probe, min, max) { ... }, which
 * must be left at its end.
 *
 * Ownership: borrows file until the block ends.
 * Errors:    none; more than TRP_TEST_WITHIN_MAX inside one another is a failure.
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-6.  Since: 0.1 */
TRP_API int trp_probe_within_begin(const char *file, int line, trp_probe *probe, uint32_t min_ms,
                                   uint32_t max_ms);

/* End the block. The check of the maximum is left out when the last that was received is the result
 * of trp_probe_expect_none() or trp_probe_receive_while(): those wait to the end. Return 0.
 *
 * Errors:    none; a block that was too fast or too slow is a failed expectation.
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-6.  Since: 0.1 */
TRP_API int trp_probe_within_end(trp_probe *probe);
#define TRP_WITHIN(probe, min_ms, max_ms)                                                          \
    TRP_PRIV_BLOCK(trp_probe_within_begin(__FILE__, __LINE__, (probe), (min_ms), (max_ms)),        \
                   trp_probe_within_end(probe), __LINE__)

/* Return what is left of the innermost block, in milliseconds; without one, the kit's expect_ms.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-6.  Since: 0.1 */
TRP_API uint32_t trp_probe_remaining_ms(trp_probe *probe);

/* ---- log lines that are expected ------------------------------------------------------------- */

/* Which lines. * stands for any characters, ? for one. Lines that a filter takes are not passed on
 * to the log. */
typedef struct trp_filter {
    size_t size;
    uint32_t level;       /* trp_log_level; 0: any */
    uint32_t occurrences; /* 0: any number, none too */
    const char *source;   /* pattern; NULL: any */
    const char *text;     /* pattern of the whole text; NULL: any */
} trp_filter;
#define TRP_FILTER_INIT                                                                            \
    {                                                                                              \
        sizeof(trp_filter), 0, 0, NULL, NULL                                                       \
    }

/* Begin to count the lines that filter takes. Use it as TRP_INTERCEPT(kit, filter) { ... }, which
 * must be left at its end.
 *
 * Ownership: borrows file and filter until the block ends.
 * Errors:    none; a kit around a system of your own has no log, which is a failure.
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-10.  Since: 0.1 */
TRP_API int trp_filter_begin(const char *file, int line, trp_testkit *kit,
                             const trp_filter *filter);

/* End the filter that began last: wait until it has taken as many lines as it should, at most the
 * kit's leeway_ms. Return 0.
 *
 * Errors:    none; fewer or more lines are a failed expectation.
 * Thread:    owner (the creator; no lock inside); may block until the leeway has passed.
 * Source:    TEST-10.  Since: 0.1 */
TRP_API int trp_filter_end(trp_testkit *kit);
#define TRP_INTERCEPT(kit, filter)                                                                 \
    TRP_PRIV_BLOCK(trp_filter_begin(__FILE__, __LINE__, (kit), (filter)), trp_filter_end(kit),     \
                   __LINE__)

/* ---- test actors: run on the thread of the test, and can be looked into ---------------------- */

/* Start an actor on the calling-thread dispatcher: what it is told by this thread is handled before
 * the tell returns. When this returns it has started. Its timers and its receive timeout are those
 * of the kit's clock: with TRP_CLOCK_MANUAL none disturbs the test. A behaviour that waits for what
 * its teller does next waits for ever: the tell returns only after it (latches, joins, asks).
 *
 * Ownership: borrows behaviour until the system ends; borrows options (dispatcher is ignored).
 * Errors:    as trp_system_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    TEST-2, TEST-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_testkit_spawn(trp_testkit *kit, const trp_behaviour *behaviour,
                                                 const trp_spawn_options *options,
                                                 trp_ref *ret_ref);

/* Borrow the state of a test actor (with a virtual clock: of any), until it is restarted or
 * stopped; NULL: it is none, or has ended.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside); not while another thread tells the actor.
 * Source:    TEST-2.  Since: 0.1 */
TRP_API void *trp_testkit_state(trp_testkit *kit, trp_ref ref);

/* Hand a message to the present behaviour of a test actor and give its failure to the caller, not
 * to the supervisor: TRP_OK, or what it returned or failed with, and *ret_failure (NULL: not
 * wanted). sender may be TRP_REF_NONE. In a kit with a virtual clock any actor will do. Orders to
 * itself, such as its end, and messages that it takes out of its stash come after the call.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_ENOENT   ref is no test actor, or it has ended
 *            TRP_EINVAL   the runtime handles this type itself (poison pill, ...)
 *            TRP_ESTATE   it is running, suspended or stopping
 *            TRP_ENOMEM   out of memory
 * Thread:    owner (the creator; no lock inside).
 * Source:    TEST-2.  Since: 0.1 */
TRP_API trp_err trp_testkit_receive(trp_testkit *kit, trp_ref ref, trp_ref sender,
                                    const trp_type *type, const void *payload, size_t bytes,
                                    trp_failure *ret_failure);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_TESTKIT_H */
