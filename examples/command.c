/* command.c - the command pattern: an actor that runs functions by their names (µJavaActors).
 *
 * A request carries an id, because replies come in the order in which things get done, not in the
 * order in which they were asked for. "execute" makes an instance first, "execute-static" does not;
 * a name of the other kind has no result.
 */
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

#define RUN(F, S) F(S, u32, id) F(S, text32, name) F(S, i64, argument)
#define COMPLETE(F, S) F(S, u32, id) F(S, bool, has_result) F(S, i64, result)
#define COMMANDS(M, P) M(P, execute, RUN) M(P, execute_static, RUN) M(P, execute_complete, COMPLETE)
TRP_PROTOCOL(command, COMMANDS)

typedef struct counter {
    int64_t count;
} counter; /* what "count" makes an instance of */
static int64_t
count(counter *self, int64_t n)
{
    return self->count += n;
}
static int64_t
square(counter *self, int64_t n)
{
    (void)self;
    return n * n;
}
static const struct {
    const char *name;
    int is_static;
    int64_t (*run)(counter *, int64_t);
} functions[] = { { "count", 0, count }, { "square", 1, square } };

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const command_execute *what = trp_msg_payload(msg);
    command_execute_complete done = { what->id, 0, 0 };
    int is_static = trp_msg_tag(msg) == command_execute_static_tag;
    counter fresh = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, what->name) == 0 && functions[i].is_static == is_static) {
            done.has_result = 1;
            done.result = functions[i].run(is_static ? NULL : &fresh, what->argument);
        }
    }
    trp_reply(ctx, &command_execute_complete_type, &done, sizeof done);
    return TRP_OK;
}
static const trp_protocol *const accepted[] = { &command_protocol, NULL };
static const trp_behaviour commander = { .size = sizeof(trp_behaviour),
                                         .name = "commander",
                                         .version = 1,
                                         .receive = receive,
                                         .accepts = accepted };

int
main(void)
{
    static const struct {
        const trp_type *type;
        command_execute what;
        int has;
        int64_t want;
    } asked[] = {
        { &command_execute_type, { 1, "count", 5 }, 1, 5 },
        { &command_execute_static_type, { 2, "square", 12 }, 1, 144 },
        { &command_execute_type, { 3, "count", 2 }, 1, 2 }, /* an instance of its own: not 7 */
        { &command_execute_static_type, { 4, "count", 1 }, 0, 0 }, /* is not static */
        { &command_execute_static_type, { 5, "nonsense", 1 }, 0, 0 },
    };
    trp_system *system;
    trp_ref ref;
    trp_msg *reply;
    int wrong = 0;
    if (trp_system_new("command", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &commander, NULL, &ref) != TRP_OK) {
        return 1;
    }
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        if (trp_system_ask(system, ref, asked[i].type, &asked[i].what, sizeof asked[i].what, 5000,
                           &reply) != TRP_OK) {
            return 1;
        }
        const command_execute_complete *done = trp_msg_payload(reply);
        printf("executeComplete [%u, %lld%s]\n", done->id, (long long)done->result,
               done->has_result ? "" : " (no result)");
        wrong += done->id != asked[i].what.id || done->has_result != asked[i].has ||
                 done->result != asked[i].want;
        trp_msg_free(reply);
    }
    if (trp_system_stop(system, 5000) == TRP_OK) {
        trp_system_free(system);
    }
    return wrong != 0;
}
