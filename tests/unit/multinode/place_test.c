/* place_test.c - the variables that give a process its place in a test. */
#include <stdlib.h>

#include "cluster/multinode/kit.h"
#include "tests/unit/unit.h"

static const char *const names[] = { "MULTINODE_INDEX",       "MULTINODE_MAX_NODES",
                                     "MULTINODE_HOST",        "MULTINODE_PORT",
                                     "MULTINODE_SERVER_HOST", "MULTINODE_SERVER_PORT",
                                     "MULTINODE_TIMEFACTOR" };

static trp_err
read_with(const char *name, const char *value, trpi_multinode_place *ret_place, char *why)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unsetenv(names[i]);
    }
    (void)setenv("MULTINODE_INDEX", "1", 1);
    (void)setenv(name, value, 1);
    return trpi_multinode_place_read(3, ret_place, why);
}

static void
refused(const char *name, const char *value, trp_err want, const char *reason)
{
    trpi_multinode_place place;
    char why[TRPI_MULTINODE_WHY_BYTES] = "";
    UNIT_EQUAL(read_with(name, value, &place, why), want);
    UNIT_TRUE(strstr(why, reason) != NULL);
}

static trpi_multinode_place
accepted(const char *name, const char *value)
{
    trpi_multinode_place place;
    char why[TRPI_MULTINODE_WHY_BYTES] = "";
    memset(&place, 0, sizeof place);
    UNIT_EQUAL(read_with(name, value, &place, why), TRP_OK);
    UNIT_TEXT(why, "");
    return place;
}

/* MNT-04, MNT-09 */
static void
what_is_not_set_has_its_default(void)
{
    trpi_multinode_place place = accepted("MULTINODE_HOST", "");
    UNIT_EQUAL(place.index, 1);
    UNIT_EQUAL(place.nodes_max, 3);
    UNIT_TEXT(place.host, "127.0.0.1");
    UNIT_TEXT(place.server_host, "127.0.0.1");
    UNIT_EQUAL(place.port, 0);
    UNIT_EQUAL(place.server_port, 4711);
    UNIT_TRUE(place.timefactor == 1.0);
    UNIT_FALSE(place.listing);
}

/* MNT-04, MNT-17 */
static void
each_variable_is_read(void)
{
    UNIT_EQUAL(accepted("MULTINODE_INDEX", "2").index, 2);
    UNIT_TRUE(accepted("MULTINODE_INDEX", "roles").listing);
    UNIT_EQUAL(accepted("MULTINODE_MAX_NODES", "64").nodes_max, 64);
    UNIT_EQUAL(accepted("MULTINODE_PORT", "65535").port, 65535);
    UNIT_EQUAL(accepted("MULTINODE_SERVER_PORT", "1").server_port, 1);
    UNIT_TEXT(accepted("MULTINODE_HOST", "10.0.0.2").host, "10.0.0.2");
    UNIT_TEXT(accepted("MULTINODE_SERVER_HOST", "10.0.0.1").server_host, "10.0.0.1");
    UNIT_TRUE(accepted("MULTINODE_TIMEFACTOR", "2.5").timefactor > 2.4);
}

static void
what_cannot_be_is_refused_by_name(void)
{
    char host[300];
    memset(host, 'h', sizeof host);
    host[256] = '\0';
    refused("MULTINODE_INDEX", "", TRP_ENOENT, "troupe multinode PROGRAM");
    refused("MULTINODE_INDEX", "3", TRP_EINVAL, "MULTINODE_INDEX=3: expected a number from 0 to 2");
    refused("MULTINODE_INDEX", "first", TRP_EINVAL, "MULTINODE_INDEX=first");
    refused("MULTINODE_INDEX", "-1", TRP_EINVAL, "MULTINODE_INDEX=-1");
    refused("MULTINODE_MAX_NODES", "65", TRP_EINVAL, "from 0 to 64");
    refused("MULTINODE_MAX_NODES", "2", TRP_ELIMIT, "the test has 3 roles");
    refused("MULTINODE_PORT", "65536", TRP_EINVAL, "MULTINODE_PORT=65536");
    refused("MULTINODE_SERVER_PORT", "0", TRP_EINVAL, "all nodes must know the port");
    refused("MULTINODE_TIMEFACTOR", "0", TRP_EINVAL, "from 0.001 to 1000");
    refused("MULTINODE_HOST", host, TRP_EINVAL, "MULTINODE_HOST is longer than 255 bytes");
    host[255] = '\0';
    UNIT_TEXT(accepted("MULTINODE_HOST", host).host, host);
}

/* MNT-09 */
static void
limits_that_are_not_given_are_these(void)
{
    UNIT_EQUAL(TRP_MULTINODE_BARRIER_TIMEOUT_DEFAULT_MS, 30000);
    UNIT_EQUAL(TRP_MULTINODE_QUERY_TIMEOUT_DEFAULT_MS, 5000);
    UNIT_EQUAL(TRP_MULTINODE_CONNECT_TIMEOUT_DEFAULT_MS, 20000);
}

/* Open with these roles: refused for them, or for the place of this process, which is not set */
static trp_err
open_with(uint32_t roles_count, size_t name_bytes)
{
    static trp_multinode_role roles[TRP_MULTINODE_ROLES_MAX + 1];
    static char role_names[TRP_MULTINODE_ROLES_MAX + 1][TRP_MULTINODE_ROLE_BYTES_MAX + 2];
    trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
    trp_multinode *test = NULL;
    (void)unsetenv("MULTINODE_INDEX");
    for (uint32_t i = 0; i < roles_count; i++) {
        snprintf(role_names[i], sizeof role_names[i], "%0*u", (int)name_bytes, i);
        roles[i].name = role_names[i];
    }
    options.roles = roles;
    options.roles_count = roles_count;
    return trp_multinode_open(&options, &test);
}

static void
roles_are_limited_in_number_and_name(void)
{
    UNIT_EQUAL(open_with(TRP_MULTINODE_ROLES_MAX, 2), TRP_ENOENT);
    UNIT_EQUAL(open_with(TRP_MULTINODE_ROLES_MAX + 1, 2), TRP_ELIMIT);
    UNIT_EQUAL(open_with(2, TRP_MULTINODE_ROLE_BYTES_MAX), TRP_ENOENT);
    UNIT_EQUAL(open_with(2, TRP_MULTINODE_ROLE_BYTES_MAX + 1), TRP_EINVAL);
}

/* TRPI_MULTINODE_SETTINGS_MAX with the kit's own, and one past it */
static void
settings_are_limited_in_number(void)
{
    enum { KIT = 6 }; /* what the kit itself sets */
    static trp_multinode test;
    static const char *settings[TRPI_MULTINODE_SETTINGS_MAX + 1];
    const char *const *const all = settings;
    trp_multinode_role role = { .name = "one" };
    char **made = NULL;
    test.options.roles = &role;
    for (int i = 0; i < TRPI_MULTINODE_SETTINGS_MAX - KIT; i++) {
        settings[i] = "log.level=info";
    }
    test.options.settings = all;
    UNIT_EQUAL(trpi_multinode_settings_make(&test, &made), TRP_OK);
    UNIT_TRUE(made[TRPI_MULTINODE_SETTINGS_MAX - 1] != NULL);
    UNIT_TRUE(made[TRPI_MULTINODE_SETTINGS_MAX] == NULL);
    trpi_multinode_settings_free(made);
    settings[TRPI_MULTINODE_SETTINGS_MAX - KIT] = "log.level=info";
    UNIT_EQUAL(trpi_multinode_settings_make(&test, &made), TRP_ELIMIT);
    UNIT_TEXT(test.why, "more than 200 settings");
}

UNIT_BEGIN("place")
UNIT(what_is_not_set_has_its_default)
UNIT(each_variable_is_read)
UNIT(what_cannot_be_is_refused_by_name)
UNIT(roles_are_limited_in_number_and_name)
UNIT(settings_are_limited_in_number)
UNIT(limits_that_are_not_given_are_these)
UNIT_END
