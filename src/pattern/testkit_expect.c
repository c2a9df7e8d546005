/* testkit_expect.c - the expectations of a test about a probe, and their time limits.
 *
 * Must hold.
 *   testkit-expect-X1  A limit that is not given is that of the innermost block of this probe, else
 *       expect_ms.
 *   testkit-expect-X2  A failure is reported last: the handler may jump away.
 *   testkit-expect-X3  Received messages stay valid until the next call that receives.
 * Limits.  TRP_TEST_WITHIN_MAX blocks; TRPI_TEST_TEXT_BYTES of a failure's text.
 * Tests.   tests/unit/pattern/testkit_test.c
 * Sources. TEST-4, -5, -6.
 */
#include "pattern/testkit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/payload.h"

#define DESCRIPTION_BYTES 400u

/* ---- words ----------------------------------------------------------------------------------- */

static size_t text_append(char *text, size_t bytes, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static size_t
text_append(char *text, size_t bytes, size_t used, const char *format, ...)
{
    va_list arguments;
    int written;

    if (used + 1 >= bytes) {
        return used;
    }
    va_start(arguments, format);
    written = vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
    if (written < 0) {
        return used;
    }
    return used + (size_t)written < bytes ? used + (size_t)written : bytes - 1;
}

/* A value of fixed size. */
static size_t
describe_fixed(const trp_testkit *kit, uint32_t kind, const char *at, char *text, size_t bytes,
               size_t used)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    int64_t i = 0;
    uint64_t u = 0;
    double f;
    trp_ref ref;

    switch (kind) {
    case TRP_FIELD_bool:
        return text_append(text, bytes, used, "%s", *(const uint8_t *)at ? "true" : "false");
    case TRP_FIELD_i32: {
        int32_t small;

        memcpy(&small, at, sizeof small);
        return text_append(text, bytes, used, "%" PRId32, small);
    }
    case TRP_FIELD_u32: {
        uint32_t small;

        memcpy(&small, at, sizeof small);
        return text_append(text, bytes, used, "%" PRIu32, small);
    }
    case TRP_FIELD_i64:
        memcpy(&i, at, sizeof i);
        return text_append(text, bytes, used, "%" PRId64, i);
    case TRP_FIELD_u64:
        memcpy(&u, at, sizeof u);
        return text_append(text, bytes, used, "%" PRIu64, u);
    case TRP_FIELD_f64:
        memcpy(&f, at, sizeof f);
        return text_append(text, bytes, used, "%g", f);
    case TRP_FIELD_ref:
        memcpy(&ref, at, sizeof ref);
        return text_append(text, bytes, used, "%s", trp_path(kit->system, ref, path, sizeof path));
    case TRP_FIELD_text32:
        return text_append(text, bytes, used, "\"%.32s\"", at);
    default: /* text128, text512 */
        return text_append(text, bytes, used, "\"%.128s\"", at);
    }
}

static size_t describe_fields(const trp_testkit *kit, const trp_type *type, const char *payload,
                              size_t at, char *text, size_t bytes, size_t used);

/* The value at payload + at; what varies has been checked. */
static size_t
describe_value(const trp_testkit *kit, uint32_t kind, const trp_type *of, const char *payload,
               size_t at, char *text, size_t bytes, size_t used)
{
    trpi_slice slice;

    if (kind == TRP_FIELD_STRUCT) {
        used = text_append(text, bytes, used, "{ ");
        used = describe_fields(kit, of, payload, at, text, bytes, used);
        return text_append(text, bytes, used, " }");
    }
    if (kind != TRP_FIELD_text && kind != TRP_FIELD_bytes && !trpi_kind_is_array(kind)) {
        return describe_fixed(kit, kind, payload + at, text, bytes, used);
    }
    slice = trpi_slice_get((const uint8_t *)payload + at);
    if (kind == TRP_FIELD_text) {
        return text_append(text, bytes, used, "\"%.*s\"",
                           (int)(slice.count < 200 ? slice.count : 200), payload + slice.at);
    }
    if (kind == TRP_FIELD_bytes) {
        return text_append(text, bytes, used, "%" PRIu32 " bytes", slice.count);
    }
    used = text_append(text, bytes, used, "[");
    for (uint32_t i = 0; i < slice.count && used + 1 < bytes; i++) {
        uint32_t element = trpi_kind_element(kind);

        used = text_append(text, bytes, used, "%s", i == 0 ? "" : ", ");
        used = describe_value(kit, element, of, payload,
                              slice.at + i * trpi_kind_bytes(element, of), text, bytes, used);
    }
    return text_append(text, bytes, used, "]");
}

static size_t
describe_fields(const trp_testkit *kit, const trp_type *type, const char *payload, size_t at,
                char *text, size_t bytes, size_t used)
{
    for (uint32_t i = 0; i < type->fields_count; i++) {
        const trp_field *field = &type->fields[i];

        used = text_append(text, bytes, used, "%s%s = ", i == 0 ? "" : ", ", field->name);
        used = describe_value(kit, field->kind, field->of, payload, at + field->offset, text, bytes,
                              used);
    }
    return used;
}

static void
describe_payload(const trp_testkit *kit, const trp_type *type, const char *payload,
                 size_t payload_bytes, char *text, size_t bytes)
{
    size_t used = text_append(text, bytes, 0, "%s", type == NULL ? "any message" : type->name);

    if (type == NULL || payload == NULL) {
        return;
    }
    if ((type->flags & (TRP_TYPE_TEXT | TRP_TYPE_JSON)) != 0) {
        (void)text_append(text, bytes, used, " \"%.*s\"",
                          (int)(payload_bytes < 200 ? payload_bytes : 200), payload);
        return;
    }
    if (type == &trp_i64_type && payload_bytes == sizeof(int64_t)) {
        int64_t number;

        memcpy(&number, payload, sizeof number);
        (void)text_append(text, bytes, used, " %" PRId64, number);
        return;
    }
    if (type == &trp_terminated_type) {
        char path[TRP_PATH_BYTES_MAX + 1];

        (void)text_append(text, bytes, used, " of %s",
                          trp_path(kit->system,
                                   ((const trp_terminated *)(const void *)payload)->ref, path,
                                   sizeof path));
        return;
    }
    used = text_append(text, bytes, used, " {");
    if (type->fields != NULL && trpi_payload_check(type, payload, payload_bytes) == TRP_OK) {
        used = text_append(text, bytes, used, " ");
        used = describe_fields(kit, type, payload, 0, text, bytes, used);
    } else {
        for (size_t i = 0; i < payload_bytes && i < 32; i++) {
            used = text_append(text, bytes, used, " %02x", (unsigned)(unsigned char)payload[i]);
        }
    }
    (void)text_append(text, bytes, used, " }");
}

char *
trpi_testkit_describe(const trp_testkit *kit, const trp_msg *msg, char *text, size_t bytes)
{
    if (msg == NULL) {
        (void)snprintf(text, bytes, "nothing");
    } else {
        describe_payload(kit, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg), text,
                         bytes);
    }
    return text;
}

static void
describe_expected(const trp_testkit *kit, const trp_expected *expected, uint32_t count, char *text,
                  size_t bytes)
{
    size_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        char one[DESCRIPTION_BYTES];
        const trp_type *type = expected[i].type;
        size_t payload_bytes = type != NULL && (type->flags & TRP_TYPE_VARIABLE) == 0
                                   ? type->bytes
                                   : expected[i].bytes;

        describe_payload(kit, type, expected[i].payload, payload_bytes, one, sizeof one);
        used = text_append(text, bytes, used, "%s%s%s", i == 0 ? "" : " or ", one,
                           expected[i].match != NULL ? " that matches" : "");
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

void
trpi_probe_within_end(trp_probe *probe)
{
    probe->within.depth = 0;
}

uint64_t
trpi_probe_deadline(trp_probe *probe, uint32_t ms)
{
    uint64_t now = trpi_testkit_now_ns(probe->kit);

    if (ms != TRP_TEST_TIME) {
        return now + trpi_testkit_ns(probe->kit, ms);
    }
    if (probe->within.depth > 0) { /* testkit-expect-X1 */
        return probe->within.blocks[probe->within.depth - 1].end_ns;
    }
    return now + trpi_testkit_ns(probe->kit, probe->kit->options.expect_ms);
}

uint32_t
trp_probe_remaining_ms(trp_probe *probe)
{
    uint64_t now = trpi_testkit_now_ns(probe->kit);
    uint64_t end = trpi_probe_deadline(probe, TRP_TEST_TIME);

    return end > now ? (uint32_t)((end - now + 999999u) / 1000000u) : 0;
}

int
trp_probe_within_begin(const char *file, int line, trp_probe *probe, uint32_t min_ms,
                       uint32_t max_ms)
{
    trp_testkit *kit = probe->kit;
    uint64_t now = trpi_testkit_now_ns(kit);
    trpi_within *within;

    if (probe->within.depth == TRP_TEST_WITHIN_MAX) {
        trp_testkit_fail_at(kit, file, line, "more than %d blocks inside one another",
                            TRP_TEST_WITHIN_MAX);
        return 0;
    }
    within = &probe->within.blocks[probe->within.depth++];
    within->file = file;
    within->line = line;
    within->start_ns = now;
    within->min_ns = (uint64_t)min_ms * 1000000u;
    within->end_ns = now + trpi_testkit_ns(kit, max_ms);
    probe->waited_out = false;
    return 1;
}

int
trp_probe_within_end(trp_probe *probe)
{
    const trpi_within *within;
    uint64_t now = trpi_testkit_now_ns(probe->kit);

    if (probe->within.depth == 0) {
        return 0; /* a failure inside has cleared it */
    }
    within = &probe->within.blocks[--probe->within.depth];
    if (now - within->start_ns < within->min_ns) {
        trp_testkit_fail_at(probe->kit, within->file, within->line,
                            "the block took %" PRIu64 " ms, should take at least %" PRIu64,
                            (now - within->start_ns) / 1000000u, within->min_ns / 1000000u);
    } else if (now > within->end_ns && !probe->waited_out) {
        trp_testkit_fail_at(probe->kit, within->file, within->line,
                            "the block took %" PRIu64 " ms, should take at most %" PRIu64,
                            (now - within->start_ns) / 1000000u,
                            (within->end_ns - within->start_ns) / 1000000u);
    }
    return 0;
}

/* ---- expectations ---------------------------------------------------------------------------- */

static bool
is_like(const trp_msg *msg, const trp_expected *expected)
{
    if (expected->type != NULL) {
        size_t bytes = (expected->type->flags & TRP_TYPE_VARIABLE) == 0 ? expected->type->bytes
                                                                        : expected->bytes;

        if (!trp_msg_is(msg, expected->type)) {
            return false;
        }
        if (expected->payload != NULL &&
            (trp_msg_bytes(msg) != bytes ||
             memcmp(trp_msg_payload(msg), expected->payload, bytes) != 0)) {
            return false;
        }
    }
    return expected->match == NULL || expected->match(expected->arg, msg) != 0;
}

/* testkit-expect-X2 */
static void
fail_expected(const char *file, int line, trp_probe *probe, const trp_expected *expected,
              uint32_t count, const trp_msg *got)
{
    char want[DESCRIPTION_BYTES], came[DESCRIPTION_BYTES], from[TRP_PATH_BYTES_MAX + 1] = "";

    describe_expected(probe->kit, expected, count, want, sizeof want);
    (void)trpi_testkit_describe(probe->kit, got, came, sizeof came);
    if (got != NULL) {
        (void)trp_path(probe->kit->system, trpi_msg_sender_get(got), from, sizeof from);
    }
    trp_testkit_fail_at(probe->kit, file, line, "expected %s, got %s%s%.200s%s", want, came,
                        got == NULL ? " in time" : " from ", got == NULL ? "" : from, "");
}

const trp_msg *
trp_probe_receive(trp_probe *probe, uint32_t ms)
{
    probe->waited_out = false;
    return trpi_probe_take(probe, trpi_probe_deadline(probe, ms), true);
}

const trp_msg *
trp_probe_received(const trp_probe *probe, uint32_t index)
{
    return index < probe->received_count ? probe->received[index] : NULL;
}

const trp_msg *
trp_probe_expect_any_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                        const trp_expected *expected, uint32_t count)
{
    const trp_msg *msg = trp_probe_receive(probe, ms);

    for (uint32_t i = 0; msg != NULL && i < count; i++) {
        if (is_like(msg, &expected[i])) {
            return msg;
        }
    }
    fail_expected(file, line, probe, expected, count, msg);
    return NULL;
}

const trp_msg *
trp_probe_expect_at(const char *file, int line, trp_probe *probe, uint32_t ms, const trp_type *type,
                    const void *payload, size_t bytes)
{
    trp_expected expected = { type, payload, bytes, NULL, NULL };

    return trp_probe_expect_any_at(file, line, probe, ms, &expected, 1);
}

const trp_msg *
trp_probe_expect_match_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                          trp_match_fn fn, void *arg)
{
    trp_expected expected = TRP_EXPECT_MATCH(fn, arg);

    return trp_probe_expect_any_at(file, line, probe, ms, &expected, 1);
}

static int
is_terminated_of(void *arg, const trp_msg *msg)
{
    const trp_ref *ref = arg;

    return trp_msg_is(msg, &trp_terminated_type) &&
           trp_ref_equal(((const trp_terminated *)trp_msg_payload(msg))->ref, *ref);
}

const trp_msg *
trp_probe_expect_terminated_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                               trp_ref ref)
{
    const trp_msg *msg = trp_probe_receive(probe, ms);

    if (msg == NULL || !is_terminated_of(&ref, msg)) {
        trp_terminated wanted = { ref, 1, 0, { 0 } };
        trp_expected expected = TRP_EXPECT_MSG(&trp_terminated_type, &wanted);

        fail_expected(file, line, probe, &expected, 1, msg);
        return NULL;
    }
    return msg;
}

uint32_t
trp_probe_receive_n_at(const char *file, int line, trp_probe *probe, uint32_t ms, uint32_t n)
{
    uint64_t deadline = trpi_probe_deadline(probe, ms);

    probe->waited_out = false;
    trpi_probe_forget(probe);
    while (probe->received_count < n) {
        if (trpi_probe_take(probe, deadline, false) == NULL) {
            trp_testkit_fail_at(probe->kit, file, line, "expected %u messages, got %u in time", n,
                                probe->received_count);
            return 0;
        }
    }
    return n;
}

uint32_t
trp_probe_expect_all_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                        const trp_expected *expected, uint32_t count)
{
    uint64_t deadline = trpi_probe_deadline(probe, ms);

    probe->waited_out = false;
    trpi_probe_forget(probe);
    while (probe->received_count < count && trpi_probe_take(probe, deadline, false) != NULL) {
    }
    for (uint32_t i = 0; i < count; i++) {
        char want[DESCRIPTION_BYTES];
        uint32_t k = 0;

        while (k < probe->received_count && !is_like(probe->received[k], &expected[i])) {
            k++;
        }
        if (k == probe->received_count) {
            describe_expected(probe->kit, &expected[i], 1, want, sizeof want);
            trp_testkit_fail_at(probe->kit, file, line,
                                "expected %s among %u messages, got %u without it", want, count,
                                probe->received_count);
            return 0;
        }
    }
    if (probe->received_count < count) {
        trp_testkit_fail_at(probe->kit, file, line, "expected %u messages, got %u in time", count,
                            probe->received_count);
        return 0;
    }
    return count;
}

int
trp_probe_expect_none_at(const char *file, int line, trp_probe *probe, uint32_t ms)
{
    const trp_msg *msg = trp_probe_receive(probe, ms);

    if (msg != NULL) {
        char came[DESCRIPTION_BYTES];

        trp_testkit_fail_at(probe->kit, file, line, "expected no message, got %s",
                            trpi_testkit_describe(probe->kit, msg, came, sizeof came));
        return 0;
    }
    probe->waited_out = true;
    return 1;
}

const trp_msg *
trp_probe_fish_at(const char *file, int line, trp_probe *probe, uint32_t ms, const char *hint,
                  trp_match_fn fn, void *arg)
{
    uint64_t deadline = trpi_probe_deadline(probe, ms);
    const trp_msg *msg;
    uint32_t others = 0;

    probe->waited_out = false;
    while ((msg = trpi_probe_take(probe, deadline, true)) != NULL) {
        if (fn(arg, msg) != 0) {
            return msg;
        }
        others++;
    }
    trp_testkit_fail_at(probe->kit, file, line, "fished for %s, got %u other messages in time",
                        hint != NULL ? hint : "a message", others);
    return NULL;
}

uint32_t
trp_probe_receive_while(trp_probe *probe, uint32_t max_ms, uint32_t idle_ms, uint32_t n,
                        trp_match_fn fn, void *arg)
{
    uint64_t end = trpi_probe_deadline(probe, max_ms);

    trpi_probe_forget(probe);
    while (n == 0 || probe->received_count < n) {
        uint64_t deadline = end;
        const trp_msg *msg;

        if (idle_ms != 0) {
            uint64_t idle = trpi_testkit_now_ns(probe->kit) + trpi_testkit_ns(probe->kit, idle_ms);

            deadline = idle < end ? idle : end;
        }
        msg = trpi_probe_take(probe, deadline, false);
        if (msg == NULL) {
            break;
        }
        if (fn != NULL && fn(arg, msg) == 0) {
            trpi_probe_give_back(probe);
            break;
        }
    }
    probe->waited_out = true;
    return probe->received_count;
}

/* ---- conditions ------------------------------------------------------------------------------ */

int
trp_probe_await_at(const char *file, int line, trp_probe *probe, uint32_t ms, uint32_t interval_ms,
                   trp_condition_fn fn, void *arg)
{
    uint64_t deadline = trpi_probe_deadline(probe, ms);

    if (!trpi_testkit_poll(probe->kit, deadline,
                           interval_ms != 0 ? interval_ms : TRP_TEST_INTERVAL_MS, fn, arg)) {
        trp_testkit_fail_at(probe->kit, file, line, "a condition was not met in time");
        return 0;
    }
    return 1;
}

typedef struct asserted {
    trp_assert_fn fn;
    void *arg;
    char words[TRPI_TEST_TEXT_BYTES];
} asserted;

static int
assertion_holds(void *arg)
{
    asserted *a = arg;
    const char *words = a->fn(a->arg);

    if (words != NULL) {
        (void)snprintf(a->words, sizeof a->words, "%s", words);
    }
    return words == NULL;
}

int
trp_probe_await_assert_at(const char *file, int line, trp_probe *probe, uint32_t ms,
                          uint32_t interval_ms, trp_assert_fn fn, void *arg)
{
    uint64_t deadline = trpi_probe_deadline(probe, ms);
    asserted a = { fn, arg, "" };

    if (!trpi_testkit_poll(probe->kit, deadline,
                           interval_ms != 0 ? interval_ms : TRP_TEST_INTERVAL_MS, assertion_holds,
                           &a)) {
        trp_testkit_fail_at(probe->kit, file, line, "%s", a.words);
        return 0;
    }
    return 1;
}
