/* command.c - the command pattern: an actor runs functions by their names (µJavaActors). An id in
 * the request tells replies apart. "execute" makes an instance first, "execute-static" does not. */
#include <string.h>
#include "article.h"
#define RUN(F, S) F(S, u32, id) F(S, text32, name) F(S, i64, argument)
#define COMPLETE(F, S) F(S, u32, id) F(S, bool, has_result) F(S, i64, result)
#define COMMANDS(M, P) M(P, execute, RUN) M(P, execute_static, RUN) M(P, complete, COMPLETE)
TRP_PROTOCOL(command, COMMANDS)

typedef struct counter {
    int64_t count;
} counter; /* an instance, made by "count" */

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const command_execute *what = trp_msg_payload(msg);
    int is_static = trp_msg_is(msg, &command_execute_static_type);
    command_complete done = { what->id, 1, 0 };
    counter instance = { 0 };
    (void)state;
    if (!is_static && strcmp(what->name, "count") == 0) {
        done.result = instance.count += what->argument;
    } else if (is_static && strcmp(what->name, "square") == 0) {
        done.result = what->argument * what->argument;
    } else { /* unknown, or of the other kind */
        done.has_result = 0;
    }
    trp_reply(ctx, &command_complete_type, &done, 0);
    return TRP_OK;
}

int
main(void)
{
    static const trp_protocol *const accepts[] = { &command_protocol, NULL };
    static const trp_behaviour it = { sizeof it, "it", .receive = receive, .accepts = accepts };
    static const trp_type *const kinds[] = { &command_execute_type, &command_execute_static_type };
    static const command_execute asked[] = { /* of the one kind and the other by turns */
        { 0, "count", 5 }, { 1, "square", 12 }, { 2, "count", 2 }, { 3, "count", 1 } };
    static const int64_t want[] = { 5, 144, 2 /* of another instance: not 7 */, -1 };
    article a = article_begin("command", &it);
    int wrong = 0;
    for (int i = 0; i < 4; i++) {
        trp_inbox_tell(a.inbox, a.first, kinds[i % 2], &asked[i], 0);
    }
    for (int i = 0; i < 4; i++) {
        trp_msg *reply = article_next(&a);
        const command_complete *done = trp_msg_payload(reply);
        printf("executeComplete [%u, %lld%s]\n", done->id, (long long)done->result,
               done->has_result ? "" : " (no result)");
        wrong += (done->has_result ? done->result : -1) != want[done->id];
        trp_msg_free(reply);
    }
    return article_end(&a, wrong);
}
