/* The settings that all nodes of a cluster must share, and how a difference is named. */
#include <stdio.h>
#include <string.h>

#include "cluster/engine/compat.h"
#include "tests/unit/unit.h"

static trpi_compat
list_of(const char *key, const char *value)
{
    trpi_compat list = { .count = 0 };
    UNIT_EQUAL(trpi_compat_add(&list, key, value), TRP_OK);
    return list;
}

static void
equal_lists_fit_and_a_key_of_one_side_is_not_compared(void)
{
    char why[160] = "untouched";
    trpi_compat own = list_of("a", "1"), joining = list_of("a", "1");
    UNIT_EQUAL(trpi_compat_add(&own, "b", "2"), TRP_OK);
    UNIT_EQUAL(trpi_compat_add(&joining, "c", "3"), TRP_OK);
    UNIT_TRUE(trpi_compat_check(&joining, &own, why, sizeof why));
    UNIT_TRUE(trpi_compat_check(NULL, &own, why, sizeof why));
    UNIT_TRUE(trpi_compat_check(&joining, NULL, why, sizeof why));
    UNIT_TEXT(why, "untouched");
}

static void
a_difference_is_named_with_its_key_and_both_values(void)
{
    char why[160];
    trpi_compat own = list_of("strategy", "keep-majority"), joining = list_of("strategy", "");
    UNIT_FALSE(trpi_compat_check(&joining, &own, why, sizeof why));
    UNIT_TEXT(why, "strategy: nothing at the joining node, keep-majority in the cluster");
}

static void
lists_fit_when_they_share_a_word(void)
{
    char why[160];
    trpi_compat own = list_of("k", "old,new"), joining = list_of("k", "new");
    UNIT_TRUE(trpi_compat_check(&joining, &own, why, sizeof why));
    UNIT_TRUE(trpi_compat_check(&own, &joining, why, sizeof why));
    joining = list_of("k", "ne");
    UNIT_FALSE(trpi_compat_check(&joining, &own, why, sizeof why));
    joining = list_of("k", "newer,elder");
    UNIT_FALSE(trpi_compat_check(&joining, &own, why, sizeof why));
}

static void
a_secret_is_never_shown(void)
{
    char why[160];
    trpi_compat own = list_of("remote.secure-cookie", "#0011"),
                joining = list_of("remote.secure-cookie", "#2233");
    UNIT_FALSE(trpi_compat_check(&joining, &own, why, sizeof why));
    UNIT_TEXT(why, "remote.secure-cookie: not the secret of the cluster");
}

static void
a_list_takes_so_many_and_so_long_and_not_one_more(void)
{
    trpi_compat list = { .count = 0 };
    char key[TRPI_COMPAT_KEY_BYTES + 1], value[TRPI_COMPAT_VALUE_BYTES + 1];
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    key[TRPI_COMPAT_KEY_BYTES] = '\0';
    value[TRPI_COMPAT_VALUE_BYTES] = '\0';
    UNIT_EQUAL(trpi_compat_add(&list, key, "v"), TRP_ELIMIT);
    UNIT_EQUAL(trpi_compat_add(&list, "k", value), TRP_ELIMIT);
    for (uint32_t i = 0; i < TRPI_COMPAT_MAX; i++) {
        UNIT_EQUAL(trpi_compat_add(&list, key + 1, value + 1), TRP_OK);
    }
    UNIT_EQUAL(trpi_compat_add(&list, "k", "v"), TRP_ELIMIT);
    UNIT_EQUAL(list.count, TRPI_COMPAT_MAX);
}

UNIT_BEGIN("compat")
UNIT(equal_lists_fit_and_a_key_of_one_side_is_not_compared)
UNIT(a_difference_is_named_with_its_key_and_both_values)
UNIT(lists_fit_when_they_share_a_word)
UNIT(a_secret_is_never_shown)
UNIT(a_list_takes_so_many_and_so_long_and_not_one_more)
UNIT_END
