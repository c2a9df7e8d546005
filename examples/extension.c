/* extension.c - one instance of something for each system, made when it is first asked for. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <troupe/troupe.h>

typedef struct counter {
    atomic_int count; /* actors on all threads share it */
} counter;

static trp_err
counter_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)arg;
    printf("made for %s\n", trp_system_name(system));
    *ret_instance = calloc(1, sizeof(counter));
    return *ret_instance ? TRP_OK : TRP_ENOMEM;
}
static void
counter_release(void *instance)
{
    printf("%d messages\n", atomic_load(&((counter *)instance)->count));
    free(instance);
}
static const trp_extension counting = { sizeof counting, "counting", counter_create, NULL,
                                        counter_release, NULL };

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    void *instance;
    trp_err err = trp_extension_get(trp_ctx_system(ctx), &counting, &instance);
    (void)state, (void)msg;
    if (err == TRP_OK) {
        atomic_fetch_add(&((counter *)instance)->count, 1);
        trp_reply_text(ctx, "done");
    }
    return err;
}
static const trp_behaviour worker = { sizeof worker, "worker", .receive = worker_receive };

int
main(void)
{
    trp_system *system;
    if (trp_system_new("office", NULL, &system) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        trp_ref ref;
        trp_msg *reply = NULL;
        if (trp_system_spawn(system, &worker, NULL, &ref) != TRP_OK ||
            trp_system_ask(system, ref, &trp_string_type, "work", 4, 5000, &reply) != TRP_OK) {
            return 1;
        }
        trp_msg_free(reply);
    }
    trp_system_free(system);
    return 0;
}
