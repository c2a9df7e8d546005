/* settings.c - the configuration of a node under test: the kit's, the common one, the role's, and
 * the command line, the later the stronger; in each @role@ becomes an address.
 *
 * Tests.   tests/multinode/kit.sh
 * Sources. MNT-05, MNT-14
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cluster/multinode/kit.h"

enum { SETTING_BYTES_MAX = 65536 };

typedef struct gathered {
    char **texts; /* NULL-terminated */
    size_t count;
} gathered;

static uint32_t
role_find(const trp_multinode *test, const char *name, size_t bytes)
{
    uint32_t i = 0;
    while (i < test->plan.roles_count &&
           (strlen(test->roles[i]) != bytes || memcmp(test->roles[i], name, bytes) != 0)) {
        i++;
    }
    return i;
}

/* Append the address that replaces @role@; "self" for this node's own, which is not known yet. Text
 * between two @ that is no role is kept. */
static trp_err
role_append(trp_multinode *test, uint32_t role, trpi_buffer *out)
{
    char address[TRP_ADDRESS_BYTES];
    if (role == test->place.index) {
        return trpi_buffer_append_text(out, "self", SETTING_BYTES_MAX);
    }
    trp_err err = trp_multinode_address(test, test->roles[role], address);
    return err != TRP_OK ? err : trpi_buffer_append_text(out, address, SETTING_BYTES_MAX);
}

/* Gives *ret_text (trpi_free). */
static trp_err
roles_expand(trp_multinode *test, const char *text, char **ret_text)
{
    trpi_buffer out = { 0 };
    trp_err err = TRP_OK;
    while (err == TRP_OK && *text != '\0') {
        const char *end = *text == '@' ? strchr(text + 1, '@') : NULL;
        uint32_t role = test->plan.roles_count;
        if (end != NULL) {
            role = role_find(test, text + 1, (size_t)(end - text - 1));
        }
        if (role < test->plan.roles_count) {
            err = role_append(test, role, &out);
            text = end + 1;
        } else {
            err = trpi_buffer_append(&out, text++, 1, SETTING_BYTES_MAX);
        }
    }
    err = err != TRP_OK ? err : trpi_buffer_append(&out, "", 1, SETTING_BYTES_MAX);
    if (err == TRP_OK) {
        *ret_text = (char *)out.data;
    } else {
        trpi_buffer_fini(&out);
    }
    return err;
}

static trp_err
setting_add(trp_multinode *test, gathered *g, const char *text)
{
    if (g->count == TRPI_MULTINODE_SETTINGS_MAX) {
        (void)snprintf(test->why, sizeof test->why, "more than %d settings",
                       TRPI_MULTINODE_SETTINGS_MAX);
        return TRP_ELIMIT;
    }
    trp_err err = roles_expand(test, text, &g->texts[g->count]);
    g->count += err == TRP_OK;
    return err;
}

static trp_err
add_all(trp_multinode *test, gathered *g, const char *const *texts)
{
    trp_err err = TRP_OK;
    for (; err == TRP_OK && texts != NULL && *texts != NULL; texts++) {
        err = setting_add(test, g, *texts);
    }
    return err;
}

/* --set KEY=VALUE, and --set=KEY=VALUE, of the command line; the other arguments are the
 * program's. */
static trp_err
add_arguments(trp_multinode *test, gathered *g)
{
    trp_err err = TRP_OK;
    char *const *argv = test->options.argv;
    for (int i = 1; err == TRP_OK && argv != NULL && i < test->options.argc; i++) {
        if (strncmp(argv[i], "--set=", 6) == 0) {
            err = setting_add(test, g, argv[i] + 6);
        } else if (strcmp(argv[i], "--set") == 0 && i + 1 < test->options.argc) {
            err = setting_add(test, g, argv[++i]);
        }
    }
    return err;
}

trp_err
trpi_multinode_settings_make(trp_multinode *test, char ***ret_settings)
{
    const trp_multinode_role *role = &test->options.roles[test->place.index];
    char own[4][320];
    gathered g = { trpi_alloc((TRPI_MULTINODE_SETTINGS_MAX + 1) * sizeof(char *)), 0 };
    if (g.texts == NULL) {
        return TRP_ENOMEM;
    }
    (void)snprintf(own[0], sizeof own[0], "system=%s",
                   test->options.system != NULL ? test->options.system : "test");
    (void)snprintf(own[1], sizeof own[1], "remote.hostname=%s", test->place.host);
    (void)snprintf(own[2], sizeof own[2], "remote.port=%u", test->place.port);
    (void)snprintf(own[3], sizeof own[3], "test.timefactor=%g", test->place.timefactor);
    const char *const base[] = { own[0],
                                 own[1],
                                 own[2],
                                 own[3],
                                 test->options.debug ? "log.level=debug" : "log.level=warning",
                                 test->options.test_transport ? "remote.test-adapters=on"
                                                              : "remote.test-adapters=off",
                                 NULL };
    trp_err err = add_all(test, &g, base);
    err = err != TRP_OK ? err : add_all(test, &g, test->options.settings);
    err = err != TRP_OK ? err : add_all(test, &g, role->settings);
    err = err != TRP_OK ? err : add_arguments(test, &g);
    if (err != TRP_OK) {
        trpi_multinode_settings_free(g.texts);
        return err;
    }
    *ret_settings = g.texts;
    return TRP_OK;
}

void
trpi_multinode_settings_free(char **settings)
{
    for (char **at = settings; at != NULL && *at != NULL; at++) {
        trpi_free(*at);
    }
    trpi_free(settings);
}
