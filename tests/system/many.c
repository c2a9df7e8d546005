/* many.c - a plugin with many idle actors, and one that does what metrics show.
 *
 *     troupe node --load tests/system/.libs/many.so:100000
 *     troupe send /user/mule 'hold FILE'    it holds its thread while there is such a file
 *     troupe send /user/mule 'spin FILE'    likewise, and computes meanwhile
 *     troupe send /user/mule 'lose 1000'    that many messages to an actor that has ended
 *     troupe send /user/mule fail           it is restarted
 *
 * Or, with the path of a file, whose end hangs while there is that file: it makes FILE.fini first.
 *
 *     troupe node --load tests/system/.libs/many.so:/tmp/file
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

static trp_err
many_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour many = TRP_BEHAVIOUR_INIT("many", char, many_receive);

/* Tell an actor that is stopped first: messages behind the stop are lost. */
static trp_err
lose(trp_ctx *ctx, int count)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ended;
    trp_err err = trp_spawn(ctx, &many, &options, &ended);
    if (err == TRP_OK) {
        trp_stop(ctx, ended);
        for (int i = 0; i < count; i++) {
            trp_tell(ctx, ended, &trp_string_type, "lost", 4);
        }
    }
    return err;
}

/* Compute for some milliseconds, without a call. */
static __attribute__((noinline)) unsigned
mule_spin(unsigned seed)
{
    volatile unsigned number = seed;
    for (int i = 0; i < 10000000; i++) {
        number = number * 1664525u + 1013904223u;
    }
    return number;
}

static trp_err
mule_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[256] = "";
    size_t bytes = trp_msg_bytes(msg);
    (void)state;
    if (!trp_msg_is(msg, &trp_string_type) || bytes >= sizeof text) {
        return TRP_EUNHANDLED;
    }
    memcpy(text, trp_msg_payload(msg), bytes);
    if (strncmp(text, "hold ", 5) == 0) {
        while (access(text + 5, F_OK) == 0) {
            (void)usleep(20000);
        }
    } else if (strncmp(text, "spin ", 5) == 0) {
        for (unsigned seed = 1; access(text + 5, F_OK) == 0;) {
            seed = mule_spin(seed);
        }
    } else if (strncmp(text, "lose ", 5) == 0) {
        return lose(ctx, atoi(text + 5));
    } else if (strcmp(text, "fail") == 0) {
        return TRP_EIO;
    }
    return TRP_OK;
}
static const trp_behaviour mule = TRP_BEHAVIOUR_INIT("mule", char, mule_receive);

static trp_err
many_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_system *system = trp_node_system(node);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)ret_error;
    *ret_state = arguments[0] == '/' ? strdup(arguments) : NULL;
    options.name = "mule";
    trp_err err = trp_system_spawn(system, &mule, &options, &ref);
    options.name = NULL;
    for (int i = atoi(arguments); i > 0 && err == TRP_OK; i--) {
        err = trp_system_spawn(system, &many, &options, &ref);
    }
    return err;
}

static void
many_fini(void *state)
{
    char made[256];
    if (state != NULL) {
        (void)snprintf(made, sizeof made, "%s.fini", (const char *)state);
        (void)close(open(made, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        while (access(state, F_OK) == 0) {
            (void)usleep(20000);
        }
    }
    free(state);
}

TRP_PLUGIN("many", many_init, many_fini)
