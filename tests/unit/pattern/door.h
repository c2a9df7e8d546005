/* door.h - a machine that tells a probe all that happens to it, and does what texts order it. */
#ifndef TESTS_UNIT_PATTERN_DOOR_H
#define TESTS_UNIT_PATTERN_DOOR_H

#include <stdarg.h>
#include <stdlib.h>

#include <troupe/fsm.h>
#include <troupe/log.h>
#include <troupe/testkit.h>

#include "tests/unit/unit.h"

enum { CLOSED, OPEN, LOCKED, NOWHERE };
enum { DOOR_LIMIT_MS = 1000 };

struct door_data {
    uint32_t opened, zero;
};
struct door {
    trp_fsm fsm;
    trp_ref probe;
    trp_err result; /* of a call that is not for its place */
};

static inline void
door_say(trp_ctx *ctx, const struct door *d, const char *format, ...)
{
    char text[160];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    trp_tell_text(ctx, d->probe, text);
}

static inline bool
door_said(const trp_msg *msg, const char *text)
{
    return trp_msg_is(msg, &trp_string_type) && trp_msg_bytes(msg) == strlen(text) &&
           memcmp(trp_msg_payload(msg), text, strlen(text)) == 0;
}

/* "NAME 250": the number, or 0. */
static inline uint32_t
door_number(const trp_msg *msg, const char *name)
{
    char text[64] = "";
    size_t bytes = trp_msg_bytes(msg), length = strlen(name);
    if (!trp_msg_is(msg, &trp_string_type) || bytes <= length + 1 || bytes >= sizeof text ||
        memcmp(trp_msg_payload(msg), name, length) != 0) {
        return 0;
    }
    memcpy(text, trp_msg_payload(msg), bytes);
    return (uint32_t)strtoul(text + length + 1, NULL, 10);
}

static inline uint32_t
door_opened(const void *data)
{
    return ((const struct door_data *)data)->opened;
}

static inline int
door_is_text(void *arg, const trp_msg *msg)
{
    bool is = door_said(msg, arg);
    if (!is) {
        printf("  expected %s, got %s %.*s\n", (const char *)arg, trp_msg_type(msg)->name,
               trp_msg_is(msg, &trp_string_type) ? (int)trp_msg_bytes(msg) : 0,
               (const char *)trp_msg_payload(msg));
    }
    return is;
}

static inline trp_testkit *
door_kit(uint32_t clock)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    options.clock = clock;
    options.on_fail = TRP_FAIL_RETURN;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    return kit;
}

static inline void
door_kit_close(trp_testkit *kit)
{
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static inline trp_ref
door_spawn(trp_testkit *kit, const trp_behaviour *behaviour)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref probe = trp_probe_ref(trp_testkit_probe(kit)), ref = TRP_REF_NONE;
    options.name = "door";
    options.args_type = &trp_bytes_type;
    options.args = &probe;
    options.args_bytes = sizeof probe;
    UNIT_EQUAL(trp_system_spawn(trp_testkit_system(kit), behaviour, &options, &ref), TRP_OK);
    (void)trp_testkit_advance(kit, 0);
    return ref;
}

static inline void
door_tell(trp_testkit *kit, trp_ref ref, const char *text)
{
    trp_probe_tell(trp_testkit_probe(kit), ref, &trp_string_type, text, strlen(text));
    (void)trp_testkit_advance(kit, 0);
}

#define DOOR_SAYS(kit, text)                                                                       \
    UNIT_TRUE(trp_probe_expect_match(trp_testkit_probe(kit), TRP_TEST_TIME, door_is_text,          \
                                     (void *)(uintptr_t)(text)) != NULL)
#define DOOR_QUIET(kit) UNIT_TRUE(trp_probe_expect_none(trp_testkit_probe(kit), 0))

#endif
