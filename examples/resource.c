/* resource.c - work that blocks stands apart: four files are read at once behind one reference. */
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

static trp_err
read_file(trp_ctx *ctx, void *state, const trp_msg *msg) /* a path; the answer: lines */
{
    FILE *file = fopen(trp_msg_payload(msg), "r");
    int64_t lines = 0;
    (void)state;
    if (file == NULL) {
        trp_reply_failure(ctx, TRP_ENOENT, trp_msg_payload(msg));
        return TRP_OK;
    }
    for (int c; (c = fgetc(file)) != EOF;) { /* may be slow: other actors do not wait */
        lines += c == '\n';
    }
    fclose(file);
    trp_reply(ctx, &trp_i64_type, &lines, 0);
    return TRP_OK;
}
static const trp_behaviour reader = { sizeof reader, "reader", .receive = read_file };

int
main(void)
{
    static const char *const paths[] = { "/proc/self/status", "/proc/cpuinfo", "/nowhere" };
    trp_resource_options options = TRP_RESOURCE_OPTIONS_INIT;
    trp_inbox *inbox;
    trp_system *system;
    trp_ref ref, sender;
    options.parallel = 4; /* which needs a behaviour without a state */
    if (trp_system_new("files", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK ||
        trp_system_resource_spawn(system, &reader, &options, &ref) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        trp_inbox_tell(inbox, ref, &trp_string_type, paths[i], strlen(paths[i]) + 1);
    }
    int read = 0, failed = 0;
    for (int i = 0; i < 3; i++) {
        trp_msg *msg = NULL;
        if (trp_inbox_receive(inbox, 10000, &msg, &sender) == TRP_OK) {
            read += trp_msg_is(msg, &trp_i64_type);
            failed += trp_msg_is(msg, &trp_status_failure_type);
        }
        trp_msg_free(msg);
    }
    printf("%d read, %d not there\n", read, failed);
    trp_inbox_close(inbox);
    trp_system_free(system);
    return 0;
}
