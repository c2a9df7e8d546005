/* fault_text_test.c - fault rules, formatted and parsed. */
#include "remote/faults/fault_text.h"

#include "tests/unit/unit.h"

static void
reads_as(const char *text, trpi_fault_rule want)
{
    trpi_fault_rule rule = { -2, 0, 0, 0, 0, 0 };
    char why[TRPI_FAULT_TEXT_BYTES] = "";
    UNIT_EQUAL(trpi_fault_rule_parse(text, &rule, why), TRP_OK);
    UNIT_TEXT(why, "");
    UNIT_TRUE(trpi_fault_rule_is_valid(&rule));
    UNIT_EQUAL(rule.bytes_per_s, want.bytes_per_s);
    UNIT_TRUE(rule.lose == want.lose && rule.repeat == want.repeat && rule.reorder == want.reorder);
    UNIT_EQUAL(rule.delay_ms, want.delay_ms);
    UNIT_EQUAL(rule.jitter_ms, want.jitter_ms);
}

/* MNT-07: a rate, its two ends, and what gremlin does */
static void
each_word_sets_its_own_field(void)
{
    reads_as("pass", (trpi_fault_rule)TRPI_FAULT_RULE_NONE);
    reads_as("blackhole", (trpi_fault_rule){ TRPI_FAULT_RATE_BLACKHOLE, 0, 0, 0, 0, 0 });
    reads_as("rate=0", (trpi_fault_rule){ TRPI_FAULT_RATE_BLACKHOLE, 0, 0, 0, 0, 0 });
    reads_as("rate=125000", (trpi_fault_rule){ 125000, 0, 0, 0, 0, 0 });
    reads_as(" rate=1MiB  lose=1 ", (trpi_fault_rule){ 1048576, 1, 0, 0, 0, 0 });
    reads_as("lose=0.5 repeat=25% reorder=100% delay=60s jitter=15ms",
             (trpi_fault_rule){ -1, 0.5, 0.25, 1, 60000, 15 });
    reads_as("delay=1s delay=0ms", (trpi_fault_rule)TRPI_FAULT_RULE_NONE);
}

static void
what_is_written_is_read_as_the_same(void)
{
    static const trpi_fault_rule rules[] = { TRPI_FAULT_RULE_NONE,
                                             { 0, 0, 0, 0, 0, 0 },
                                             { 1, 1, 1, 1, 60000, 60000 },
                                             { 9007199254740991, 0.125, 0.1, 0.01, 1, 2 },
                                             { -1, 0.00001, 0, 0, 0, 0 } };
    static const char *const texts[] = {
        "pass", "blackhole", "rate=1 lose=1 repeat=1 reorder=1 delay=60000ms jitter=60000ms",
        "rate=9007199254740991 lose=0.125 repeat=0.1 reorder=0.01 delay=1ms jitter=2ms",
        "lose=0.00001"
    };
    char text[TRPI_FAULT_TEXT_BYTES];
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        UNIT_TEXT(trpi_fault_rule_format(&rules[i], text), texts[i]);
        reads_as(text, rules[i]);
    }
}

static void
text_is_refused(const char *text, const char *reason)
{
    trpi_fault_rule rule = { -2, 0, 0, 0, 0, 0 };
    char why[TRPI_FAULT_TEXT_BYTES] = "";
    UNIT_EQUAL(trpi_fault_rule_parse(text, &rule, why), TRP_EINVAL);
    UNIT_TRUE(strstr(why, reason) != NULL);
    UNIT_EQUAL(rule.bytes_per_s, -2); /* untouched */
}

static void
what_is_no_rule_is_refused_with_the_word(void)
{
    text_is_refused("", "write at least one fault");
    text_is_refused("   ", "write at least one fault");
    text_is_refused("lose", "'lose': write pass");
    text_is_refused("delay=5ms explode=1", "'explode=1'");
    text_is_refused("lose=1.01", "'lose=1.01': a probability");
    text_is_refused("lose=101%", "a probability");
    text_is_refused("lose=0x1", "a probability");
    text_is_refused("lose=-1", "a probability");
    text_is_refused("repeat=nan", "a probability");
    text_is_refused("reorder=", "a probability");
    text_is_refused("lose=5%%", "a probability");
    text_is_refused("delay=60001ms", "0ms to 60s");
    text_is_refused("jitter=5", "0ms to 60s");
    text_is_refused("delay=-5ms", "0ms to 60s");
    text_is_refused("rate=-1", "rate=125000");
    text_is_refused("rate=9007199254740992", "rate=125000");
    text_is_refused("rate=fast", "rate=125000");
    text_is_refused("lose=0.00000000000000000000000000000000000000000000000000000000001",
                    "is too long");
    text_is_refused("lose=0.0000000000000000000000000000000000000000000000000000000001x",
                    "is too long");
}

UNIT_BEGIN("fault_text")
UNIT(each_word_sets_its_own_field)
UNIT(what_is_written_is_read_as_the_same)
UNIT(what_is_no_rule_is_refused_with_the_word)
UNIT_END
