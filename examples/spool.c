/* spool.c - files that appear in a folder are sorted by a program, and then acknowledged. */
#include <stdio.h>
#include <sys/stat.h>
#include <troupe/troupe.h>

struct spool { trp_ref files, sort; };

static trp_err
spool_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct spool *s = state;
    trp_endpoint_options options = TRP_ENDPOINT_OPTIONS_INIT;
    (void)args;
    trp_err err = trp_producer_open(ctx, "exec:/usr/bin/sort?arg=-r", NULL, &s->sort);
    options.acknowledges = 1;
    return err != TRP_OK
               ? err
               : trp_consumer_open(ctx, "file:incoming?match=*.txt&delay=20", &options, &s->files);
}

static trp_err
spool_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct spool *s = state;
    const trp_endpoint_message *m = trp_endpoint_message_of(msg);
    if (m != NULL && m->exchange != 0) { /* a file: its number goes to the program and back */
        printf("%s\n", trp_endpoint_header_get(m, "file.name"));
        return trp_endpoint_send(ctx, s->sort, m->body, NULL, 0, m->exchange);
    }
    if (m != NULL) { /* what the program says */
        printf("%.*s", (int)trp_bytes_length(m->body), (const char *)trp_bytes_flat(m->body));
        trp_endpoint_ack(ctx, s->files, m->ack);
        trp_system_shutdown(trp_ctx_system(ctx));
    } else if (trp_msg_is(msg, &trp_endpoint_error_type)) {
        const trp_endpoint_error *e = trp_msg_payload(msg);
        trp_endpoint_fail(ctx, s->files, e->ack, e->reason);
    }
    return TRP_OK;
}

int
main(void)
{
    trp_behaviour spool = TRP_BEHAVIOUR_INIT("spool", struct spool, spool_receive);
    trp_system *system;
    trp_ref ref;
    (void)mkdir("incoming", 0777);
    FILE *file = fopen("incoming/.words", "w"); /* a name with a dot is not looked at */
    if (file == NULL || fputs("actor\nbehaviour\ncell\n", file) < 0 || fclose(file) != 0 ||
        rename("incoming/.words", "incoming/words.txt") != 0 ||
        trp_system_new("spool", NULL, &system) != TRP_OK) {
        return 1;
    }
    spool.pre_start = spool_start;
    trp_err err = trp_system_spawn(system, &spool, NULL, &ref);
    err = err == TRP_OK ? trp_system_await(system, 20000) : err;
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
