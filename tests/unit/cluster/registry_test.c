/* The registry by typed key, on one system and between the nodes of a cluster. */
#include <troupe/registry.h>

#include "tests/unit/cluster/host.h"
#include "tests/unit/cluster/mediators.h"

#define TILL_CENTS(F, S) F(S, i64, cents)
#define TILL_MESSAGES(M, P) M(P, pay, TILL_CENTS) M(P, sum, TILL_CENTS)
TRP_PROTOCOL(till, TILL_MESSAGES)
#define TILL_CALLS(C, O, P) C(P, pay, sum)
TRP_TYPED(till, TILL_CALLS)
TRP_REGISTRY(till)

#define LAMP_MESSAGES(M, P) M(P, flip, TRP_NO_FIELDS)
TRP_PROTOCOL(lamp, LAMP_MESSAGES)
#define LAMP_CALLS(C, O, P) O(P, flip)
TRP_TYPED(lamp, LAMP_CALLS)
TRP_REGISTRY(lamp)

enum { NODES = 3 };
static const till_registry_key front = { "front" }, back = { "back" };
static const lamp_registry_key front_lamps = { "front" };

static trp_err
on_pay(trp_ctx *ctx, void *state, const till_pay *m, till_sum *ret_reply)
{
    (void)ctx;
    (void)state;
    ret_reply->cents = m->cents + 1;
    return TRP_OK;
}

static trp_err
till_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const till_methods methods = { on_pay };
    return till_serve(ctx, state, msg, &methods);
}
static const trp_protocol *const accepts[] = { &till_protocol, NULL };
static const trp_behaviour till_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "till",
                                              .state_bytes = 1,
                                              .accepts = accepts,
                                              .receive = till_receive };

static trp_system *
system_open(void)
{
    trp_system *system = NULL;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 1;
    UNIT_REQUIRE(trp_system_new("keys", &options, &system) == TRP_OK);
    return system;
}

static void
system_end(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, TAKE_MS), TRP_OK);
    trp_system_free(system);
}

static till_ref
till_open(trp_system *system)
{
    till_ref till = till_ref_of(TRP_REF_NONE);
    UNIT_REQUIRE(till_system_spawn(system, &till_behaviour, NULL, &till) == TRP_OK);
    return till;
}

static void
till_end(trp_system *system, till_ref till)
{
    trp_system_tell(system, till.ref, &trp_poison_pill_type, NULL, 0);
}

/* It keeps the number of refs of its last listing. */
static _Atomic uint32_t heard;
static trp_err
listener_begin(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return till_registry_subscribe(trp_ctx_system(ctx), front, trp_self(ctx));
}
static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t count;
    (void)ctx;
    (void)state;
    if (till_registry_listing_of(msg, front, &count) != NULL) {
        atomic_store(&heard, count);
    }
    return TRP_OK;
}
static const trp_protocol *const listens[] = { &till_protocol, &trp_registry_protocol, NULL };
static const trp_behaviour listener = { .size = sizeof(trp_behaviour),
                                        .name = "listener",
                                        .state_bytes = 1,
                                        .accepts = listens,
                                        .pre_start = listener_begin,
                                        .receive = listener_receive };

static size_t
found(trp_system *system, till_registry_key key, till_ref *refs, size_t refs_max)
{
    size_t count = 0;
    UNIT_EQUAL(till_registry_find(system, key, refs, refs_max, &count), TRP_OK);
    return count;
}

/* Take listings of a key until one has so many refs; copy up to 8 of them. */
static void
take_listing(trp_inbox *inbox, till_registry_key key, uint32_t refs_count, till_ref *ret_refs)
{
    for (uint32_t count = UINT32_MAX; count != refs_count;) {
        trp_msg *msg = take(inbox, &trp_registry_listing_type, NULL);
        const till_ref *refs = till_registry_listing_of(msg, key, &count);
        UNIT_REQUIRE(refs != NULL);
        for (uint32_t i = 0; i < count && i < 8 && ret_refs != NULL; i++) {
            ret_refs[i] = refs[i];
        }
        trp_msg_free(msg);
    }
}

/* TYPED-4: what is found has the type that it is called by. */
static void
an_actor_is_found_by_its_key_and_type(void)
{
    trp_system *system = system_open();
    till_ref a = till_open(system), b = till_open(system), refs[8];
    till_sum sum = { 0 };
    UNIT_EQUAL(found(system, front, NULL, 0), 0);
    UNIT_EQUAL(till_registry_add(system, front, a), TRP_OK);
    UNIT_EQUAL(till_registry_add(system, front, a), TRP_OK); /* once */
    UNIT_WAIT(found(system, front, refs, 8) == 1, TAKE_MS);
    UNIT_TRUE(trp_ref_equal(refs[0].ref, a.ref));
    UNIT_EQUAL(till_pay_call(system, refs[0], (till_pay){ 4 }, TAKE_MS, &sum), TRP_OK);
    UNIT_EQUAL(sum.cents, 5);
    UNIT_EQUAL(till_registry_add(system, front, b), TRP_OK);
    UNIT_EQUAL(till_registry_add(system, back, b), TRP_OK);
    UNIT_WAIT(found(system, back, refs, 8) == 1, TAKE_MS); /* in their order */
    UNIT_EQUAL(found(system, front, refs, 1), 2);          /* more than fit */
    size_t lamps = 9;
    UNIT_EQUAL(lamp_registry_find(system, front_lamps, NULL, 0, &lamps), TRP_OK);
    UNIT_EQUAL(lamps, 0); /* a key of another protocol */
    UNIT_EQUAL(till_registry_remove(system, front, a), TRP_OK);
    UNIT_WAIT(found(system, front, refs, 8) == 1, TAKE_MS);
    UNIT_TRUE(trp_ref_equal(refs[0].ref, b.ref));
    till_end(system, b);
    UNIT_WAIT(found(system, front, refs, 8) == 0 && found(system, back, refs, 8) == 0, TAKE_MS);
    UNIT_EQUAL(till_registry_add(system, front, b), TRP_OK); /* that has ended */
    UNIT_EQUAL(till_registry_add(system, back, a), TRP_OK);
    UNIT_WAIT(found(system, back, refs, 8) == 1 && found(system, front, refs, 8) == 0, TAKE_MS);
    system_end(system);
}

/* TYPED-4 */
static void
a_subscriber_is_told_each_change(void)
{
    trp_system *system = system_open();
    trp_inbox *inbox = inbox_of(system), *late = inbox_of(system);
    till_ref a = till_open(system), refs[8];
    UNIT_EQUAL(till_registry_subscribe(system, front, trp_inbox_ref(inbox)), TRP_OK);
    take_listing(inbox, front, 0, NULL);
    UNIT_EQUAL(till_registry_add(system, front, a), TRP_OK);
    take_listing(inbox, front, 1, refs);
    UNIT_TRUE(trp_ref_equal(refs[0].ref, a.ref));
    UNIT_EQUAL(till_registry_add(system, back, a), TRP_OK); /* is none of its business */
    UNIT_EQUAL(till_registry_subscribe(system, back, trp_inbox_ref(late)), TRP_OK);
    take_listing(late, back, 1, NULL);
    is_empty(inbox);
    till_end(system, a);
    take_listing(inbox, front, 0, NULL);
    take_listing(late, back, 0, NULL);
    UNIT_EQUAL(till_registry_unsubscribe(system, front, trp_inbox_ref(inbox)), TRP_OK);
    till_ref b = till_open(system);
    UNIT_EQUAL(till_registry_add(system, front, b), TRP_OK);
    UNIT_EQUAL(till_registry_add(system, back, b), TRP_OK);
    take_listing(late, back, 1, NULL);
    is_empty(inbox);
    trp_inbox_close(late);
    trp_inbox_close(inbox);
    system_end(system);
}

/* An inbox that is registered and listens ends: the one does not make the registry forget the
 * other. */
static void
who_is_registered_may_listen_too(void)
{
    trp_system *system = system_open();
    trp_inbox *inbox = inbox_of(system), *other = inbox_of(system);
    till_ref self = till_ref_of(trp_inbox_ref(inbox));
    UNIT_EQUAL(till_registry_subscribe(system, front, trp_inbox_ref(other)), TRP_OK);
    take_listing(other, front, 0, NULL);
    UNIT_EQUAL(till_registry_add(system, front, self), TRP_OK);
    UNIT_EQUAL(till_registry_subscribe(system, front, self.ref), TRP_OK);
    take_listing(inbox, front, 1, NULL);
    UNIT_EQUAL(till_registry_unsubscribe(system, front, self.ref), TRP_OK);
    take_listing(other, front, 1, NULL);
    trp_inbox_close(inbox);
    take_listing(other, front, 0, NULL); /* it is watched still */
    trp_inbox_close(other);
    system_end(system);
}

/* TYPED-5: also an actor that says which messages it accepts. */
static void
a_subscriber_accepts_the_protocol_of_the_registry(void)
{
    trp_system *system = system_open();
    trp_ref ref;
    UNIT_EQUAL(till_registry_add(system, front, till_open(system)), TRP_OK);
    UNIT_EQUAL(trp_system_spawn(system, &listener, NULL, &ref), TRP_OK);
    UNIT_WAIT(atomic_load(&heard) == 1, TAKE_MS);
    system_end(system);
}

static void
misuse_is_an_error(void)
{
    trp_system *system = system_open();
    char text[TRP_REGISTRY_KEY_BYTES_MAX + 2];
    till_registry_key key = { text };
    till_ref a = till_open(system), refs[2];
    trp_ref elsewhere = { TRPI_NODE_SELF + 1, 1, 1, 0 };
    trp_mediator *m;
    size_t count = 0;
    memset(text, 'k', sizeof text);
    text[TRP_REGISTRY_KEY_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(till_registry_add(system, key, a), TRP_ELIMIT);
    UNIT_EQUAL(till_registry_find(system, key, refs, 2, &count), TRP_ELIMIT);
    text[TRP_REGISTRY_KEY_BYTES_MAX] = '\0'; /* the longest */
    UNIT_EQUAL(till_registry_add(system, key, a), TRP_OK);
    UNIT_WAIT(found(system, key, refs, 2) == 1, TAKE_MS);
    text[0] = '\0';
    UNIT_EQUAL(till_registry_add(system, key, a), TRP_EINVAL);
    UNIT_EQUAL(trp_registry_add(system, NULL, "key", a.ref), TRP_EINVAL);
    UNIT_EQUAL(trp_registry_add(NULL, &till_protocol, "key", a.ref), TRP_EINVAL);
    UNIT_EQUAL(trp_registry_add(system, &till_protocol, NULL, a.ref), TRP_EINVAL);
    UNIT_EQUAL(trp_registry_add(system, &till_protocol, "key", TRP_REF_NONE), TRP_EINVAL);
    UNIT_EQUAL(trp_registry_add(system, &till_protocol, "key", elsewhere), TRP_EUNSUPPORTED);
    UNIT_EQUAL(trp_registry_subscribe(system, &till_protocol, "key", elsewhere), TRP_EUNSUPPORTED);
    UNIT_EQUAL(trp_registry_find(system, &till_protocol, "key", NULL, 1, &count), TRP_EINVAL);
    UNIT_EQUAL(trp_registry_find(system, &till_protocol, "key", NULL, 0, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_mediator_of(system, "~registry", &m), TRP_ENOENT); /* it is not a mediator */
    system_end(system);
}

/* TRP_REGISTRY_KEYS_WATCHED_MAX */
static void
keys_that_are_subscribed_to_have_a_limit(void)
{
    trp_system *system = system_open();
    trp_inbox *inbox = large_inbox_of(system, TRP_REGISTRY_KEYS_WATCHED_MAX + 10);
    char text[16];
    till_registry_key key = { text };
    for (uint32_t i = 0; i <= TRP_REGISTRY_KEYS_WATCHED_MAX; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        UNIT_EQUAL(till_registry_subscribe(system, key, trp_inbox_ref(inbox)), TRP_OK);
    }
    UNIT_EQUAL(till_registry_subscribe(system, (till_registry_key){ "0" }, trp_inbox_ref(inbox)),
               TRP_OK); /* again: it has its place */
    for (uint32_t i = 0; i < TRP_REGISTRY_KEYS_WATCHED_MAX; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        take_listing(inbox, key, 0, NULL);
    }
    take_listing(inbox, (till_registry_key){ "0" }, 0, NULL); /* the one past it was not told */
    trp_inbox_close(inbox);
    system_end(system);
}

/* TRP_REGISTRY_ENTRIES_MAX */
static void
registrations_have_a_limit(void)
{
    trp_system *system = system_open();
    till_ref a = till_open(system), refs[1];
    char text[16];
    till_registry_key key = { text };
    for (uint32_t i = 0; i <= TRP_REGISTRY_ENTRIES_MAX; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        UNIT_REQUIRE(till_registry_add(system, key, a) == TRP_OK);
    }
    (void)snprintf(text, sizeof text, "%u", TRP_REGISTRY_ENTRIES_MAX - 1);
    UNIT_WAIT(found(system, key, refs, 1) == 1, TAKE_MS);
    UNIT_EQUAL(till_registry_remove(system, key, a), TRP_OK);
    UNIT_EQUAL(till_registry_add(system, back, a), TRP_OK); /* there is room again */
    UNIT_WAIT(found(system, back, refs, 1) == 1, TAKE_MS);
    (void)snprintf(text, sizeof text, "%u", TRP_REGISTRY_ENTRIES_MAX);
    UNIT_EQUAL(found(system, key, refs, 1), 0); /* was refused */
    system_end(system);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* TYPED-4: any node finds all, and calls what it has found, until that ends or its node leaves. */
static void
actors_of_all_nodes_are_found_from_each(void)
{
    static struct host hosts[NODES];
    trp_inbox *inboxes[NODES];
    till_ref tills[NODES], refs[8];
    for (uint32_t i = 0; i < NODES; i++) {
        host_start(&hosts[i], i == 0 ? "self" : hosts[0].address);
        tills[i] = till_open(hosts[i].system);
        inboxes[i] = inbox_of(hosts[i].system);
        UNIT_EQUAL(till_registry_subscribe(hosts[i].system, front, trp_inbox_ref(inboxes[i])),
                   TRP_OK);
        UNIT_EQUAL(till_registry_add(hosts[i].system, front, tills[i]), TRP_OK);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        take_listing(inboxes[i], front, NODES, refs);
        UNIT_EQUAL(found(hosts[i].system, front, NULL, 0), NODES);
        for (uint32_t k = 0; k < NODES; k++) {
            till_sum sum = { 0 };
            UNIT_EQUAL(till_pay_call(hosts[i].system, refs[k], (till_pay){ i }, TAKE_MS, &sum),
                       TRP_OK);
            UNIT_EQUAL(sum.cents, i + 1);
        }
    }
    till_end(hosts[2].system, tills[2]);
    for (uint32_t i = 0; i < NODES; i++) {
        take_listing(inboxes[i], front, NODES - 1, NULL);
    }
    trp_inbox_close(inboxes[1]);
    UNIT_EQUAL(trp_cluster_leave(hosts[1].system, hosts[1].address), TRP_OK);
    take_listing(inboxes[0], front, 1, refs);
    UNIT_TRUE(trp_ref_equal(refs[0].ref, tills[0].ref));
    take_listing(inboxes[2], front, 1, refs);
    trp_inbox_close(inboxes[0]);
    trp_inbox_close(inboxes[2]);
    for (uint32_t i = NODES; i-- > 0;) {
        host_end(&hosts[i]);
    }
}

UNIT_BEGIN("registry")
UNIT(an_actor_is_found_by_its_key_and_type)
UNIT(a_subscriber_is_told_each_change)
UNIT(who_is_registered_may_listen_too)
UNIT(a_subscriber_accepts_the_protocol_of_the_registry)
UNIT(misuse_is_an_error)
UNIT(keys_that_are_subscribed_to_have_a_limit)
UNIT(registrations_have_a_limit)
UNIT(actors_of_all_nodes_are_found_from_each)
UNIT_END
