/* name_test.c - names, automatic names, wildcards, selections as text. */
#include "tests/unit/unit.h"

#include "actor/naming/name.h"

/* SYS-22 */
static void
names_are_what_a_path_can_have(void)
{
    static const char *const good[] = { "a", "A-1_.~!'()+,;:@&=", "%20", "a%2Fb", "...", "1" };
    static const char *const bad[] = { "",  "$a", "a/b", " ",   ".",   "..",  "*",
                                       "?", "%",  "%2",  "%2g", "a\n", "\x80" };
    char longest[TRP_NAME_BYTES_MAX + 1];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        UNIT_TRUE(trpi_name_is_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_FALSE(trpi_name_is_valid(bad[i], strlen(bad[i])));
    }
    memset(longest, 'x', sizeof longest);
    UNIT_TRUE(trpi_name_is_valid(longest, TRP_NAME_BYTES_MAX));
    UNIT_FALSE(trpi_name_is_valid(longest, TRP_NAME_BYTES_MAX + 1));
}

/* SYS-22: "$letter" */
static void
automatic_names_say_the_slot_and_nothing_else_does(void)
{
    static const uint32_t slots[] = { 1, 25, 26, 61, 62, 63, 3843, 3844, 100000000, UINT32_MAX };
    char name[TRPI_NAME_AUTO_BYTES];
    uint32_t slot;

    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        size_t bytes = trpi_name_auto_format(slots[i], name);

        UNIT_EQUAL(bytes, strlen(name));
        UNIT_TRUE(trpi_name_auto_parse(name, bytes, &slot));
        UNIT_EQUAL(slot, slots[i]);
    }
    UNIT_EQUAL(trpi_name_auto_format(1, name), 2);
    UNIT_TEXT(name, "$b");
    UNIT_FALSE(trpi_name_auto_parse("$", 1, &slot));
    UNIT_FALSE(trpi_name_auto_parse("b", 1, &slot));
    UNIT_FALSE(trpi_name_auto_parse("$a", 2, &slot));      /* slot 0 is no actor */
    UNIT_FALSE(trpi_name_auto_parse("$ab", 3, &slot));     /* a second text for 1 */
    UNIT_FALSE(trpi_name_auto_parse("$999999", 7, &slot)); /* beyond 32 bits */
    UNIT_FALSE(trpi_name_auto_parse("$b-", 3, &slot));
}

static bool
matches(const char *pattern, const char *name)
{
    return trpi_name_matches(pattern, strlen(pattern), name, strlen(name));
}

/* SYS-24 */
static void
wildcards_match_as_in_a_shell(void)
{
    UNIT_TRUE(matches("*", "anything"));
    UNIT_TRUE(matches("*", ""));
    UNIT_TRUE(matches("worker*", "worker"));
    UNIT_TRUE(matches("worker*", "worker12"));
    UNIT_FALSE(matches("worker*", "worke"));
    UNIT_TRUE(matches("w?", "w1"));
    UNIT_FALSE(matches("w?", "w"));
    UNIT_FALSE(matches("w?", "w12"));
    UNIT_TRUE(matches("*a*b*", "xxaxxbxx"));
    UNIT_FALSE(matches("*a*b*", "xxbxxaxx"));
    UNIT_TRUE(matches("a*b", "aab"));
    UNIT_TRUE(matches("a**b", "ab"));
    UNIT_TRUE(matches("*aab", "aaaaab"));
    UNIT_FALSE(matches("*a?b", "aaaaab0"));
    UNIT_FALSE(matches("", "a"));
    UNIT_TRUE(matches("", ""));
}

static void
selections_are_parsed(void)
{
    trpi_selection_path path;
    size_t at = 0;

    UNIT_EQUAL(trpi_selection_parse("/", &path, NULL), TRP_OK);
    UNIT_TRUE(path.absolute && path.count == 0);
    UNIT_EQUAL(trpi_selection_parse("/user/a*/../b/", &path, &at), TRP_EINVAL);
    UNIT_EQUAL(at, 9);
    UNIT_EQUAL(trpi_selection_parse("../a/$b/?/", &path, NULL), TRP_OK);
    UNIT_FALSE(path.absolute);
    UNIT_TRUE(path.has_pattern);
    UNIT_EQUAL(path.count, 4);
    UNIT_EQUAL(path.elements[0].kind, TRPI_ELEMENT_UP);
    UNIT_EQUAL(path.elements[1].kind, TRPI_ELEMENT_NAME);
    UNIT_EQUAL(path.elements[2].kind, TRPI_ELEMENT_NAME);
    UNIT_EQUAL(path.elements[3].kind, TRPI_ELEMENT_PATTERN);
    UNIT_EQUAL(trpi_selection_parse("", &path, &at), TRP_EINVAL);
    UNIT_EQUAL(trpi_selection_parse("/a//b", &path, &at), TRP_EINVAL);
    UNIT_EQUAL(at, 3);
    UNIT_EQUAL(trpi_selection_parse("/a/b c", &path, &at), TRP_EINVAL);
    UNIT_EQUAL(at, 4);
    UNIT_EQUAL(trpi_selection_parse("/$-", &path, &at), TRP_EINVAL);
    UNIT_EQUAL(trpi_selection_parse("/.", &path, &at), TRP_EINVAL);
    UNIT_EQUAL(trpi_selection_parse("/$*", &path, &at), TRP_OK);
}

/* TRP_PATH_BYTES_MAX: at it and one past it */
static void
selections_have_a_length_limit(void)
{
    char text[TRP_PATH_BYTES_MAX + 2];
    trpi_selection_path path;

    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 200 == 0 ? '/' : 'x';
    }
    text[TRP_PATH_BYTES_MAX] = 0;
    UNIT_EQUAL(trpi_selection_parse(text, &path, NULL), TRP_OK);
    text[TRP_PATH_BYTES_MAX] = 'x';
    text[TRP_PATH_BYTES_MAX + 1] = 0;
    UNIT_EQUAL(trpi_selection_parse(text, &path, NULL), TRP_EINVAL);
}

UNIT_BEGIN("name")
UNIT(names_are_what_a_path_can_have)
UNIT(automatic_names_say_the_slot_and_nothing_else_does)
UNIT(wildcards_match_as_in_a_shell)
UNIT(selections_are_parsed)
UNIT(selections_have_a_length_limit)
UNIT_END
