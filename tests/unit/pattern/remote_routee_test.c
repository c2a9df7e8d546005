/* remote_routee_test.c - routees and routers on another node. */
#include <troupe/router.h>

#include "tests/unit/remote/pair.h"

static trp_err
name_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char path[256];

    (void)state;
    (void)msg;
    trp_reply_text(
        ctx, strrchr(trp_path(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path), '/') + 1);
    return TRP_OK;
}
static const trp_behaviour name_behaviour = TRP_BEHAVIOUR_INIT("name", char, name_receive);

static bool
reply_is(trp_system *system, trp_ref to, const char *want)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(system, to, &trp_string_type, "who", 3, 60000, &reply);
    bool same = err == TRP_OK && trp_msg_bytes(reply) == strlen(want) &&
                memcmp(trp_msg_payload(reply), want, strlen(want)) == 0;

    if (!same && reply != NULL) {
        printf("  \"%.*s\", not \"%s\"\n", (int)trp_msg_bytes(reply),
               (const char *)trp_msg_payload(reply), want);
    }
    trp_msg_free(reply);
    return same;
}

/* ROUTE-5, ROUTE-18: routees by remote ref and by remote path; one that ends over there leaves. */
static void
routees_may_live_on_another_node(void)
{
    pair p;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, there, list[2], refs[4];
    char path[512], far[512];
    const char *paths[2] = { path, NULL };
    uint32_t count = 0;

    pair_start(&p, true, NULL);
    there = pair_spawn(p.system[1], &name_behaviour, "there", NULL, NULL, 0);
    (void)pair_spawn(p.system[1], &name_behaviour, "far", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/there", far, sizeof far),
                                  60000, &list[0]),
               TRP_OK);
    list[1] = pair_spawn(p.system[0], &name_behaviour, "here", NULL, NULL, 0);
    options.routees = list;
    options.routees_count = 2;
    UNIT_EQUAL(trp_system_router_spawn(p.system[0], NULL, NULL, "group", &options, &router),
               TRP_OK);
    UNIT_TRUE(reply_is(p.system[0], router, "there"));
    UNIT_TRUE(reply_is(p.system[0], router, "here"));
    UNIT_TRUE(reply_is(p.system[0], router, "there"));
    trp_system_stop_actor(p.system[1], there);
    UNIT_WAIT(trp_router_routees(p.system[0], router, refs, 4, &count) == TRP_OK && count == 1,
              60000);
    UNIT_TRUE(reply_is(p.system[0], router, "here") && reply_is(p.system[0], router, "here"));
    (void)pair_path(&p, 1, "/user/far", path, sizeof path);
    options.routees_count = 0;
    options.routee_paths = paths;
    UNIT_EQUAL(trp_system_router_spawn(p.system[0], NULL, NULL, "by path", &options, &router),
               TRP_EINVAL); /* no such name */
    UNIT_EQUAL(trp_system_router_spawn(p.system[0], NULL, NULL, "by-path", &options, &router),
               TRP_OK);
    UNIT_WAIT(trp_router_routees(p.system[0], router, refs, 4, &count) == TRP_OK && count == 1,
              60000);
    UNIT_TRUE(reply_is(p.system[0], router, "far"));
    pair_end(&p);
}

/* ROUTE-1: a message from another node is routed where the router lives. */
static void
a_router_is_told_from_another_node(void)
{
    pair p;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, remote, refs[2];
    trp_add_routee add;
    trp_msg *reply = NULL;
    char path[512], names[2][64];
    uint32_t count = 0;

    pair_start(&p, true, NULL);
    options.instances = 2;
    UNIT_EQUAL(
        trp_system_router_spawn(p.system[1], &name_behaviour, NULL, "pool", &options, &router),
        TRP_OK);
    UNIT_EQUAL(trp_router_routees(p.system[1], router, refs, 2, &count), TRP_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%s",
                 strrchr(trp_path(p.system[1], refs[i], path, sizeof path), '/') + 1);
    }
    UNIT_EQUAL(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/pool", path, sizeof path),
                                  60000, &remote),
               TRP_OK);
    for (int i = 0; i < 6; i++) {
        UNIT_TRUE(reply_is(p.system[0], remote, names[i % 2]));
    }
    add.routee = pair_spawn(p.system[0], &name_behaviour, "guest", NULL, NULL, 0);
    trp_system_tell(p.system[0], remote, &trp_add_routee_type, &add, sizeof add);
    UNIT_WAIT(trp_router_routees(p.system[1], router, refs, 2, &count) == TRP_OK && count == 3,
              60000);
    UNIT_TRUE(reply_is(p.system[0], remote, names[0]) && reply_is(p.system[0], remote, names[1]) &&
              reply_is(p.system[0], remote, "guest"));
    /* a list of refs is of this node only: the answer does not leave it (decision 29) */
    UNIT_EQUAL(trp_system_ask(p.system[0], remote, &trp_get_routees_type, NULL, 0, 100, &reply),
               TRP_ETIMEDOUT);
    pair_end(&p);
}

UNIT_BEGIN("remote_routee")
UNIT(routees_may_live_on_another_node)
UNIT(a_router_is_told_from_another_node)
UNIT_END
