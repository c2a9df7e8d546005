/* player.c - the actor of each node that carries out the orders of the conductor.
 *
 * Must hold.
 *   player-P1  the node under test is used with the lock held: the test's thread may replace it
 *   player-P2  without its conductor a test cannot go on: the process ends, unless it is closing
 *       anyway, or was released by order: then the first node does not wait for it
 * Tests.   tests/multinode/kit.sh
 * Sources. MNT-03, -07
 */
#include <stdio.h>
#include <string.h>

#include <troupe/actor.h>

#include "cluster/multinode/kit.h"
#include "cluster/node/node.h"

/* so that the answer is sent before the process ends */
enum { EXIT_TIMER = 1, EXIT_AFTER_MS = 20 };

typedef struct player {
    trp_multinode *test;
    trp_ref asker; /* of the hello that is not answered yet */
} player;

static void
conductor_answer(trp_ctx *ctx, trp_err err, const char *text)
{
    trpi_multinode_answer a;
    memset(&a, 0, sizeof a);
    a.err = (int32_t)err;
    (void)snprintf(a.text, sizeof a.text, "%s", text);
    trp_reply(ctx, &trpi_multinode_answer_type, &a, sizeof a);
}

static void
fault_apply(trp_ctx *ctx, trp_multinode *test, const trpi_multinode_call *c)
{
    char peer[TRPI_FAULT_PEER_BYTES], why[TRPI_FAULT_TEXT_BYTES] = "";
    trpi_fault_rule rule;
    trpi_address address;
    trp_err err = trpi_address_parse(c->name, &address, NULL, NULL);
    if (err != TRP_OK) {
        conductor_answer(ctx, TRP_ENOENT, "that node has no address yet");
        return;
    }
    trpi_fault_peer_format(peer, address.host, address.port);
    pthread_mutex_lock(&test->lock); /* player-P1 */
    trpi_faults *faults = test->node ? trpi_node_faults(test->node) : NULL;
    if (!faults) {
        err = TRP_ESTATE;
        (void)snprintf(why, sizeof why, "test_transport of trp_multinode_options is off");
    } else if (c->verb == TRPI_MULTINODE_DISCONNECT) {
        (void)trpi_faults_disconnect(faults, peer);
    } else {
        err = trpi_fault_rule_parse(c->text, &rule, why);
        err = err != TRP_OK ? err : trpi_faults_set(faults, peer, c->number, &rule);
    }
    pthread_mutex_unlock(&test->lock);
    conductor_answer(ctx, err, why);
}

static void
end_later(trp_ctx *ctx, const trpi_multinode_call *c)
{
    trpi_multinode_call end = *c;
    end.verb = TRPI_MULTINODE_TICK;
    conductor_answer(ctx, TRP_OK, "");
    if (trp_timer_once(ctx, EXIT_TIMER, EXIT_AFTER_MS, &trpi_multinode_call_type, &end,
                       sizeof(end)) != TRP_OK) {
        trpi_multinode_end((int)c->number);
    }
}

static void
released_set(trp_multinode *test)
{
    pthread_mutex_lock(&test->lock);
    test->released = true;
    pthread_mutex_unlock(&test->lock);
}

static void
order_receive(trp_ctx *ctx, player *self, const trpi_multinode_call *c)
{
    trp_multinode *test = self->test;
    switch (c->verb) {
    /* from the test's thread: pass it on with this actor as the sender */
    case TRPI_MULTINODE_HELLO:
        self->asker = trp_sender(ctx);
        trp_tell(ctx, test->conductor, &trpi_multinode_call_type, c, sizeof *c);
        break;
    case TRPI_MULTINODE_FAULT:
    case TRPI_MULTINODE_DISCONNECT:
        fault_apply(ctx, test, c);
        break;
    case TRPI_MULTINODE_EXIT:
        released_set(test);
        end_later(ctx, c);
        break;
    case TRPI_MULTINODE_REMOVE:
        released_set(test);
        conductor_answer(ctx, TRP_OK, "");
        break;
    case TRPI_MULTINODE_TICK:
        trpi_multinode_end((int)c->number);
    case TRPI_MULTINODE_SHUTDOWN:
        released_set(test);
        pthread_mutex_lock(&test->lock); /* player-P1 */
        if (test->node) {
            trp_system_shutdown(trp_node_system(test->node));
        }
        pthread_mutex_unlock(&test->lock);
        conductor_answer(ctx, TRP_OK, "");
        break;
    default:
        break; /* a later version's */
    }
}

static void
conductor_lost(player *self)
{
    trp_multinode *test = self->test;
    pthread_mutex_lock(&test->lock);
    bool is_free = test->closing || test->released;
    pthread_mutex_unlock(&test->lock);
    if (!is_free) { /* player-P2 */
        (void)fprintf(stderr, "FAIL %s: the first node, which conducts the test, is lost\n",
                      test->roles[test->place.index]);
        trpi_multinode_end(1);
    }
}

static trp_err
player_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    player *self = state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        conductor_lost(self);
    } else if (trp_msg_is(msg, &trpi_multinode_answer_type)) {
        const trpi_multinode_answer *a = trp_msg_payload(msg);
        trp_err err = a->err == TRP_OK ? trp_watch(ctx, self->test->conductor) : TRP_OK;
        trp_tell(ctx, self->asker, &trpi_multinode_answer_type, a, sizeof *a);
        return err;
    } else if (trp_msg_is(msg, &trpi_multinode_call_type)) {
        order_receive(ctx, self, trp_msg_payload(msg));
    }
    return TRP_OK;
}

static trp_err
player_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((player *)state)->test, trp_msg_payload(args), sizeof(trp_multinode *));
    return TRP_OK;
}

const trp_behaviour trpi_player_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "multinode-player",
                                              .version = 1,
                                              .state_bytes = sizeof(player),
                                              .receive = player_receive,
                                              .pre_start = player_start };
