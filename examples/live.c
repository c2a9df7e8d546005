/* live.c - what a system is doing: messages that wait for each actor, work done by each thread. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
work(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour worker = { sizeof worker, "worker", .receive = work };

/* All messages have been handled. */
static int
is_done(const trp_live *live, uint64_t messages)
{
    trp_live_actor actors[8];
    uint64_t completed = 0;
    uint32_t count = trp_live_actors(live, actors, 8);
    for (uint32_t i = 0; i < count && i < 8; i++) {
        completed += actors[i].completed;
    }
    return completed == messages;
}

int
main(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_live_actor actors[8];
    trp_system *system;
    trp_live *live;
    trp_ref ref;
    options.name = "worker";
    if (trp_system_new("shop", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &worker, &options, &ref) != TRP_OK ||
        trp_live_open(system, &live) != TRP_OK) {
        return 1;
    }
    for (int64_t i = 0; i < 1000; i++) {
        trp_system_tell(system, ref, &trp_i64_type, &i, 0);
    }
    trp_err err = trp_live_sample(live, 5000);
    for (int i = 0; i < 1000 && err == TRP_OK && !is_done(live, 1000); i++) {
        err = trp_live_sample(live, 5000); /* a monitor would rest for a second here */
    }
    uint32_t count = trp_live_actors(live, actors, 8);
    for (uint32_t i = 0; i < count && i < 8; i++) {
        char path[256];
        printf("%s: completed %u, pending %u, restarts %u, %s\n",
               trp_path(system, actors[i].ref, path, sizeof path), (unsigned)actors[i].completed,
               (unsigned)actors[i].pending, (unsigned)actors[i].restarts,
               actors[i].active ? "active" : "inactive");
    }
    printf("%s\n", trp_live_threads(live, NULL, 0) > 0 ? "there are threads" : "nobody works");
    trp_live_close(live);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
