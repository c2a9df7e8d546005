/* described_test.c - the text of a failed expectation for messages of variable length. */
#include <stdio.h>
#include <string.h>

#include <troupe/payload.h>
#include <troupe/testkit.h>

#include "tests/unit/unit.h"

static char failures[1024];

static void
write_failure(void *arg, const char *file, int line, const char *text)
{
    (void)arg;
    (void)file;
    (void)line;
    (void)snprintf(failures, sizeof failures, "%s", text);
}

#define TALK_LINE(F, S) F(S, text, body) F(S, i32, n)
#define TALK_PAGE(F, S) F(S, text, title) F(S, array(struct(talk_line)), lines) F(S, bytes, blob)
#define TALK_MESSAGES(M, P) M(P, page, TALK_PAGE)
TRP_STRUCT(talk, line, TALK_LINE)
TRP_PROTOCOL(talk, TALK_MESSAGES)

/* Fields that vary are compared as bytes, which the same calls of a builder make the same. */
static void
a_message_of_variable_length_is_compared_and_shown(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_probe *probe;
    trp_builder b;
    talk_page *page;
    talk_line *each;
    int64_t four = 4;

    options.clock = TRP_CLOCK_MANUAL;
    options.on_fail = TRP_FAIL_RETURN;
    options.fail = write_failure;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    probe = trp_testkit_probe(kit);
    UNIT_EQUAL(trp_protocol_register(&talk_protocol), TRP_OK);
    page = TRP_BUILD(&b, talk_page);
    trp_build_text(&b, &page->title, "a title");
    each = TRP_BUILD_ARRAY(&b, &page->lines, 2);
    trp_build_text(&b, &each[0].body, "hello");
    each[1].n = -2;
    trp_build_bytes(&b, &page->blob, "ab", 2);
    trp_system_tell(trp_testkit_system(kit), trp_probe_ref(probe), TRP_BUILT(&b));
    UNIT_TRUE(trp_probe_expect(probe, TRP_TEST_TIME, &talk_page_type, trp_built(&b),
                               trp_built_bytes(&b)) != NULL);
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    trp_system_tell(trp_testkit_system(kit), trp_probe_ref(probe), TRP_BUILT(&b));
    UNIT_TRUE(trp_probe_expect(probe, TRP_TEST_TIME, &trp_i64_type, &four, 0) == NULL);
    UNIT_TRUE(strstr(failures, "got talk.page { title = \"a title\", lines = [{ body = \"hello\", "
                               "n = 0 }, { body = \"\", n = -2 }], blob = 2 bytes }") != NULL);
    trp_build_free(&b);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

UNIT_BEGIN("described")
UNIT(a_message_of_variable_length_is_compared_and_shown)
UNIT_END
