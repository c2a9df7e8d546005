/* place.c - the place of a process in a test over several nodes: the variables MULTINODE_*.
 *
 * Tests.   tests/unit/multinode/place_test.c
 * Sources. MNT-04
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/units.h"
#include "cluster/multinode/kit.h"

enum { SERVER_PORT_DEFAULT = 4711 };

/* Read a variable into *number, which is unchanged when the variable is not set. */
static trp_err
number_read(const char *name, uint32_t max, uint32_t *number, char why[TRPI_MULTINODE_WHY_BYTES])
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return TRP_OK;
    }
    if (!trpi_whole32_parse(text, 0, max, number)) {
        (void)snprintf(why, TRPI_MULTINODE_WHY_BYTES, "%s=%s: expected a number from 0 to %u", name,
                       text, max);
        return TRP_EINVAL;
    }
    return TRP_OK;
}

static trp_err
host_read(const char *name, const char *fallback, char *out, size_t bytes,
          char why[TRPI_MULTINODE_WHY_BYTES])
{
    const char *text = getenv(name);
    text = text != NULL && *text != '\0' ? text : fallback;
    if (strlen(text) >= bytes) {
        (void)snprintf(why, TRPI_MULTINODE_WHY_BYTES, "%s is longer than %zu bytes", name,
                       bytes - 1);
        return TRP_EINVAL;
    }
    (void)snprintf(out, bytes, "%s", text);
    return TRP_OK;
}

trp_err
trpi_multinode_place_read(uint32_t roles_count, trpi_multinode_place *ret_place,
                          char why[TRPI_MULTINODE_WHY_BYTES])
{
    trpi_multinode_place place;
    uint32_t port = 0, server_port = SERVER_PORT_DEFAULT;
    const char *index = getenv("MULTINODE_INDEX");
    memset(&place, 0, sizeof place);
    place.nodes_max = roles_count;
    if (index == NULL || *index == '\0') {
        (void)snprintf(why, TRPI_MULTINODE_WHY_BYTES,
                       "MULTINODE_INDEX is not set: start it with `troupe multinode PROGRAM`");
        return TRP_ENOENT;
    }
    if (strcmp(index, "roles") == 0) {
        place.listing = true;
        *ret_place = place;
        return TRP_OK;
    }
    trp_err err = number_read("MULTINODE_INDEX", roles_count - 1, &place.index, why);
    err = err != TRP_OK
              ? err
              : number_read("MULTINODE_MAX_NODES", TRPI_BARRIER_NODES_MAX, &place.nodes_max, why);
    err = err != TRP_OK ? err : number_read("MULTINODE_PORT", UINT16_MAX, &port, why);
    err = err != TRP_OK ? err : number_read("MULTINODE_SERVER_PORT", UINT16_MAX, &server_port, why);
    err = err != TRP_OK
              ? err
              : host_read("MULTINODE_HOST", "127.0.0.1", place.host, sizeof place.host, why);
    err = err != TRP_OK ? err
                        : host_read("MULTINODE_SERVER_HOST", "127.0.0.1", place.server_host,
                                    sizeof place.server_host, why);
    const char *factor = getenv("MULTINODE_TIMEFACTOR"), *what;
    place.timefactor = 1;
    if (err == TRP_OK && factor != NULL && *factor != '\0' &&
        (trpi_config_parse_number(TRPI_CONFIG_FLOAT, factor, &place.timefactor, &what) != TRP_OK ||
         !(place.timefactor >= 0.001 && place.timefactor <= 1000))) {
        (void)snprintf(why, TRPI_MULTINODE_WHY_BYTES,
                       "MULTINODE_TIMEFACTOR=%s: expected a number from 0.001 to 1000", factor);
        err = TRP_EINVAL;
    }
    if (err == TRP_OK && place.nodes_max < roles_count) {
        (void)snprintf(why, TRPI_MULTINODE_WHY_BYTES,
                       "the test has %u roles, and MULTINODE_MAX_NODES is %u", roles_count,
                       place.nodes_max);
        err = TRP_ELIMIT;
    }
    if (err == TRP_OK && server_port == 0) {
        (void)snprintf(why, TRPI_MULTINODE_WHY_BYTES,
                       "MULTINODE_SERVER_PORT=0: all nodes must know the port");
        err = TRP_EINVAL;
    }
    if (err == TRP_OK) {
        place.port = (uint16_t)port;
        place.server_port = (uint16_t)server_port;
        *ret_place = place;
    }
    return err;
}
