/* Libraries that are opened when they are used: what is missing is named, with what to install. */
#include "base/loaded_library.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

typedef struct functions {
    long (*labs)(long number);
    size_t (*strlen)(const char *text);
} functions;

static void
the_functions_of_a_library_are_found(void)
{
    static const char *const names[] = { "labs", "strlen" };
    functions f = { NULL, NULL };
    trpi_loaded_library libc = { .file = "libc.so.6",
                                 .package = "libc6",
                                 .names = names,
                                 .count = sizeof names / sizeof names[0],
                                 .functions = &f };
    char why[640] = "";

    for (int i = 0; i < 2; i++) { /* it is opened once */
        UNIT_TRUE(trpi_library_open(&libc, why, sizeof why));
        UNIT_TRUE(f.labs == labs);
        UNIT_EQUAL(f.strlen("four"), 4);
    }
    UNIT_TEXT(why, "");
}

static void
a_library_that_is_not_there_is_named_with_its_package(void)
{
    static const char *const names[] = { "labs" };
    functions f = { NULL, NULL };
    trpi_loaded_library none = { .file = "libnone-of-this-name.so.9",
                                 .package = "libnone9",
                                 .names = names,
                                 .count = 1,
                                 .functions = &f };
    char why[640];

    for (int i = 0; i < 2; i++) { /* the second time without the linker */
        memset(why, 0, sizeof why);
        UNIT_FALSE(trpi_library_open(&none, why, sizeof why));
        UNIT_TRUE(strstr(why, "libnone-of-this-name.so.9 cannot be loaded") == why);
        UNIT_TRUE(strstr(why, "apt-get install libnone9") != NULL);
    }
    UNIT_TRUE(f.labs == NULL);
}

static void
a_function_that_it_lacks_is_named(void)
{
    static const char *const names[] = { "labs", "labs_of_another_version" };
    functions f = { NULL, NULL };
    trpi_loaded_library libc = { .file = "libc.so.6",
                                 .package = "libc6",
                                 .names = names,
                                 .count = sizeof names / sizeof names[0],
                                 .functions = &f };
    char why[640] = "";

    UNIT_FALSE(trpi_library_open(&libc, why, sizeof why));
    UNIT_TRUE(strstr(why, "libc.so.6 has no labs_of_another_version") == why);
}

UNIT_BEGIN("loaded_library")
UNIT(the_functions_of_a_library_are_found)
UNIT(a_library_that_is_not_there_is_named_with_its_package)
UNIT(a_function_that_it_lacks_is_named)
UNIT_END
