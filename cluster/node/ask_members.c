/* ask_members.c - one question for all other members, answered by each for itself.
 *
 * Why.     An operator asks one node, and wants to hear all. The questions are on their way at the
 *          same time, so one member that is silent costs its time once.
 * Limits.  TRPI_ASKED_MAX at a time, of the questions that a node carries (carry.c).
 * Tests.   tests/multinode/trace.sh, tests/multinode/all_members.sh
 */
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

typedef struct asking {
    const trpi_view_member *v;
    uint64_t id; /* of the question; 0: it was not asked */
    trp_err err;
} asking;

static void
member_ask(trp_node *node, const trpi_view_member *v, const char *request, asking *a)
{
    trpi_address address;
    *a = (asking){ v, 0, TRP_ECONN };
    if (v->m.reachable && trpi_address_parse(v->m.address, &address, NULL, NULL) == TRP_OK) {
        a->err = trpi_carry_begin(node->carry, &address, request, &a->id);
    }
}

static void
reply_take(trp_node *node, trpi_call *call, const asking *a, uint64_t until_ns,
           trpi_member_reply_fn fn, void *arg)
{
    cJSON *reply = NULL;
    trp_err err = a->id != 0 ? trpi_carry_end(node->carry, a->id, until_ns, call, &reply) : a->err;
    fn(arg, a->v, err, reply);
    cJSON_Delete(reply);
}

void
trpi_node_ask_members(trp_node *node, trpi_call *call, const trpi_view *view, const char *request,
                      uint32_t at_a_time, uint32_t ask_ms, trpi_member_reply_fn fn, void *arg)
{
    asking asked[TRPI_ASKED_MAX];
    for (size_t i = 0; i < view->count;) {
        uint64_t until_ns = trpi_world_mono_ns(call->world) + ask_ms * UINT64_C(1000000);
        size_t count = 0;
        for (; i < view->count && count < at_a_time; i++) {
            if (&view->members[i] != view->self) {
                member_ask(node, &view->members[i], request, &asked[count++]);
            }
        }
        for (size_t n = 0; n < count; n++) { /* all of them, so that each releases its place */
            reply_take(node, call, &asked[n], until_ns, fn, arg);
        }
    }
}
