/* upgraded.c - a plugin for upgrade.sh, compiled once for each version of it.
 *
 * UP_VERSION 1 is the first one, 2 the next one, with another layout of states and a newer message
 * and event beside the older ones. 3 has no code_change, 4 declares the message of version 1
 * otherwise, 5 does not begin, 6 does not say what it brings.
 *
 *     troupe send /user/counter --type up.add '{"amount":3}'
 *     troupe ask  /user/counter get               "v1 sum 3"
 *     troupe send /user/counter "hold FILE"       its turn ends when there is such a file; an
 *                                                 up.add of 100 waits in its mailbox
 *     troupe send /user/counter stash             what comes is stashed until "unstash"
 *     troupe ask  /user/account "add 3"           persistent; also "get"
 *     /user/stubborn                              a counter that cannot change while its sum is odd
 *     UP_HOLD=FILE                                the change of a counter with a sum of 666 lasts
 *                                                 until there is such a file; it makes FILE.runs
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

enum { STEP_MS = 5, LIMIT_MS = 300000, HANGS = 666 };

/* The layout of a type stays: version 2 declares another one beside it. */
#if UP_VERSION == 4
#define UP_ADD(F, S) F(S, i64, amount) F(S, i64, times)
#else
#define UP_ADD(F, S) F(S, i64, amount)
#endif
#define UP_ADDED(F, S) F(S, i64, amount)
#if UP_VERSION == 1
#define UP_MESSAGES(M, P) M(P, add, UP_ADD) M(P, added, UP_ADDED)
#else
#define UP_ADD_TIMES(F, S) F(S, i64, amount) F(S, i64, times)
#define UP_MESSAGES(M, P)                                                                          \
    M(P, add, UP_ADD)                                                                              \
    M(P, added, UP_ADDED) M(P, add_times, UP_ADD_TIMES) M(P, added_times, UP_ADD_TIMES)
#endif
TRP_PROTOCOL(up, UP_MESSAGES)

typedef struct counter {
#if UP_VERSION > 1
    uint32_t from; /* the version that it was changed from; 0: none */
    uint32_t zero;
#endif
    int64_t sum;
    int64_t stashes;
} counter;

static trp_err
hold(const char *path)
{
    const struct timespec step = { 0, STEP_MS * 1000000l };
    for (int waited = 0; waited < LIMIT_MS && access(path, F_OK) != 0; waited += STEP_MS) {
        (void)nanosleep(&step, NULL);
    }
    return TRP_OK;
}

static trp_err
text_take(trp_ctx *ctx, counter *c, const char *text)
{
    char reply[128];
    if (strncmp(text, "hold ", 5) == 0) {
        up_add add = { 100 };
        trp_tell(ctx, trp_self(ctx), &up_add_type, &add, sizeof add);
        trp_flush(ctx);
        return hold(text + 5);
    }
    if (strcmp(text, "stash") == 0) {
        c->stashes = 1;
        return TRP_OK;
    }
    if (strcmp(text, "unstash") == 0) {
        c->stashes = 0;
        trp_unstash_all(ctx);
        return TRP_OK;
    }
#if UP_VERSION == 1
    (void)snprintf(reply, sizeof reply, "v1 sum %lld", (long long)c->sum);
#else
    (void)snprintf(reply, sizeof reply, "v%d sum %lld from v%u", UP_VERSION, (long long)c->sum,
                   c->from);
#endif
    trp_reply_text(ctx, reply);
    return TRP_OK;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    counter *c = state;
    char text[256];
    if (trp_msg_is(msg, &trp_string_type)) {
        size_t bytes = trp_msg_bytes(msg) < sizeof text ? trp_msg_bytes(msg) : sizeof text - 1;
        memcpy(text, trp_msg_payload(msg), bytes);
        text[bytes] = 0;
        return text_take(ctx, c, text);
    }
    if (c->stashes != 0) {
        return trp_stash(ctx, msg);
    }
    if (trp_msg_is(msg, &up_add_type)) {
        c->sum += up_add_as(msg)->amount;
        return TRP_OK;
    }
#if UP_VERSION > 1
    if (trp_msg_is(msg, &up_add_times_type)) {
        c->sum += up_add_times_as(msg)->amount * up_add_times_as(msg)->times;
        return TRP_OK;
    }
#endif
    return TRP_EUNHANDLED;
}

#if UP_VERSION == 3
#define COUNTER_VERSION 3
#else
#define COUNTER_VERSION (UP_VERSION > 1 ? 2 : 1)
#endif
static const trp_behaviour counter_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "up.counter",
                                                 .version = COUNTER_VERSION,
                                                 .state_bytes = sizeof(counter),
                                                 .receive = counter_receive };
static const trp_behaviour stubborn_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "up.stubborn",
                                                  .version = COUNTER_VERSION,
                                                  .state_bytes = sizeof(counter),
                                                  .receive = counter_receive };
/* Has no actors: what it accepts is registered when the plugin is upgraded. */
static const trp_protocol *const accepts[] = { &up_protocol, NULL };
static const trp_behaviour typed_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "up.typed",
                                               .version = 1,
                                               .receive = counter_receive,
                                               .accepts = accepts };

/* ---- the persistent one ---------------------------------------------------------------------- */

typedef struct account {
    trp_persistent_state persistent;
    int64_t sum;
#if UP_VERSION > 1
    int64_t events;
#endif
} account;

static trp_err
account_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    account *a = state;
    (void)ctx;
    if (trp_msg_is(event, &up_added_type)) {
        a->sum += up_added_as(event)->amount;
    }
#if UP_VERSION > 1
    else {
        a->sum += up_added_times_as(event)->amount * up_added_times_as(event)->times;
    }
    a->events++;
#endif
    return TRP_OK;
}

static trp_err
account_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    char text[64];
    const account *a = state;
    (void)event;
    (void)arg;
#if UP_VERSION == 1
    (void)snprintf(text, sizeof text, "v1 %lld", (long long)a->sum);
#else
    (void)snprintf(text, sizeof text, "v%d %lld of %lld", UP_VERSION, (long long)a->sum,
                   (long long)a->events);
#endif
    trp_reply_text(ctx, text);
    return TRP_OK;
}

static trp_err
account_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[64] = "";
    size_t bytes = trp_msg_bytes(msg) < sizeof text ? trp_msg_bytes(msg) : sizeof text - 1;
    memcpy(text, trp_msg_payload(msg), bytes);
    if (strncmp(text, "add ", 4) != 0) {
        return account_stored(ctx, state, NULL, NULL);
    }
#if UP_VERSION == 1
    up_added added = { strtoll(text + 4, NULL, 10) };
    return trp_persist(ctx, &up_added_type, &added, 0, account_stored, NULL);
#else
    up_added_times added = { strtoll(text + 4, NULL, 10), 1 };
    return trp_persist(ctx, &up_added_times_type, &added, 0, account_stored, NULL);
#endif
}

static trp_err
account_start(trp_ctx *ctx, void *state, const trp_msg *args, trp_persistent_start *how)
{
    (void)ctx;
    (void)state;
    (void)args;
    (void)snprintf(how->id, sizeof how->id, "account");
    return TRP_OK;
}

static const trp_protocol *const events[] = { &up_protocol, NULL };
static trp_persistent account_behaviour =
    TRP_PERSISTENT_INIT("up.account", account, account_command, account_event);

/* ---- the plugin ------------------------------------------------------------------------------ */

static trp_err
up_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    const struct {
        const char *name;
        const trp_behaviour *behaviour;
    } actors[] = { { "counter", &counter_behaviour },
                   { "stubborn", &stubborn_behaviour },
                   { "account", &account_behaviour.behaviour } };
    (void)arguments;
    (void)ret_state;
    (void)ret_error;
    account_behaviour.start = account_start;
    account_behaviour.events = events;
    trp_err err = trp_protocol_register(typed_behaviour.accepts[0]);
    for (size_t i = 0; err == TRP_OK && i < sizeof actors / sizeof actors[0]; i++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_ref ref;
        options.name = actors[i].name;
        err = trp_system_spawn(trp_node_system(node), actors[i].behaviour, &options, &ref);
    }
    return err;
}

TRP_PLUGIN("up", up_init, NULL)

#if UP_VERSION > 1 && UP_VERSION != 6
typedef struct counter_v1 {
    int64_t sum;
    int64_t stashes;
} counter_v1;

static trp_err
counter_change(trp_ctx *ctx, void *state, void *old_state, uint32_t old_version)
{
    counter *c = state;
    const counter_v1 *old = old_state;
    (void)ctx;
    if (old_version != 1) {
        return TRP_EUNSUPPORTED;
    }
    if (old->sum == HANGS && getenv("UP_HOLD") != NULL) {
        char made[256];
        (void)snprintf(made, sizeof made, "%s.runs", getenv("UP_HOLD"));
        (void)close(open(made, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        (void)hold(getenv("UP_HOLD"));
    }
    *c = (counter){ .from = 1, .sum = old->sum, .stashes = old->stashes };
    return TRP_OK;
}

static trp_err
stubborn_change(trp_ctx *ctx, void *state, void *old_state, uint32_t old_version)
{
    if (((const counter_v1 *)old_state)->sum % 2 != 0) {
        trp_fail(ctx, 7, "its sum is odd");
    }
    return counter_change(ctx, state, old_state, old_version);
}

static trp_err
up_begin(trp_node *node, void **state, trp_plugin_error *ret_error)
{
    (void)node;
    (void)state;
    account_behaviour.start = account_start;
    account_behaviour.events = events;
    if (UP_VERSION == 5) {
        (void)snprintf(ret_error->text, sizeof ret_error->text, "the moon is full");
        return TRP_ESTATE;
    }
    return TRP_OK;
}

static const trp_code_change changes[] = {
    { &counter_behaviour, UP_VERSION == 3 ? NULL : counter_change },
    { &stubborn_behaviour, stubborn_change },
    { &account_behaviour.behaviour, NULL },
    { &typed_behaviour, NULL },
};
TRP_PLUGIN_UPGRADE(changes, 4, up_begin)
#endif
