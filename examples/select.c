/* select.c - actors by their paths: patterns that lead to several, a path that becomes a ref. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
lamp(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *told = state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        trp_reply(ctx, &trp_i64_type, told, 0);
    } else {
        ++*told;
    }
    return TRP_OK;
}
static const trp_behaviour lamp_behaviour = TRP_BEHAVIOUR_INIT("lamp", int64_t, lamp);
static trp_err
room_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    static const char *const names[] = { "lamp-1", "lamp-2", "door" };
    trp_err err = TRP_OK;
    trp_ref ref;
    (void)state, (void)args;
    for (int i = 0; i < 3 && err == TRP_OK; i++) {
        const trp_spawn_options options = { sizeof options, .name = names[i] };
        err = trp_spawn(ctx, &lamp_behaviour, &options, &ref);
    }
    return err;
}
static const trp_behaviour room = { sizeof room, "room", .receive = lamp, .state_bytes = 8,
                                    .pre_start = room_start };

int
main(void)
{
    static const char *const paths[] = { "/user/hall/lamp-1", "/user/hall/door", "/user/hall/x" };
    const trp_spawn_options options = { sizeof options, .name = "hall" };
    trp_system *system;
    trp_ref ref;
    if (trp_system_new("house", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &room, &options, &ref) != TRP_OK ||
        trp_system_resolve(system, "/user/hall", 5000, &ref) != TRP_OK || /* it has started */
        trp_system_select_tell(system, "/user/hall/lamp-?", &trp_string_type, "on", 2) != TRP_OK ||
        trp_system_select_tell(system, "/user/*/*", &trp_string_type, "off", 3) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 3; i++) { /* the last one is not there */
        trp_err err = trp_system_resolve(system, paths[i], 5000, &ref);
        int64_t told = -1;
        while (err == TRP_OK && told < 2 - i) { /* patterns take longer than refs: they walk */
            trp_msg *reply = NULL;
            err = trp_system_ask(system, ref, &trp_i64_type, &told, 0, 5000, &reply);
            told = err ? -1 : *(const int64_t *)trp_msg_payload(reply);
            trp_msg_free(reply);
        }
        printf("%s: %lld\n", paths[i], (long long)told);
    }
    trp_system_free(system);
    return 0;
}
