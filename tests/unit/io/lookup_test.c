/* lookup_test.c - names of commands, with a resolver of the test's own. */
#include "io/lookup.h"

#include "tests/unit/io/tcp_pair.h"

static const char *fake[4]; /* what the resolver finds; NULL: no more */
static _Atomic uint32_t asked;
static _Atomic bool fake_waits, fake_may_go;

static void
fake_resolve(const char *host, trpi_resolved *ret_resolved)
{
    (void)host;
    asked++;
    while (fake_waits && !fake_may_go) {
        unit_pause();
    }
    for (uint32_t i = 0; i < 4 && fake[i] != NULL; i++) {
        snprintf(ret_resolved->hosts[i], TRPI_NUMERIC_BYTES, "%s", fake[i]);
        ret_resolved->count = i + 1;
    }
}

static void
fake_set(const char *a, const char *b, const char *c)
{
    fake[0] = a;
    fake[1] = b;
    fake[2] = c;
}

static void
bind_name(trp_ctx *ctx, user *u)
{
    (void)u;
    UNIT_EQUAL(trp_tcp_bind(ctx, "some.name:0", NULL), TRP_OK);
}

static void
connect_name(trp_ctx *ctx, user *u)
{
    (void)u;
    connect_to(ctx, "some.name");
}

static void
connect_long(trp_ctx *ctx, user *u)
{
    char to[300];

    (void)u;
    memset(to, 'a', sizeof to);
    snprintf(to + 253, sizeof to - 253, ":80");
    UNIT_EQUAL(trp_tcp_connect(ctx, to, NULL), TRP_OK);
    to[253] = 'a';
    snprintf(to + 254, sizeof to - 254, ":80");
    UNIT_EQUAL(trp_tcp_connect(ctx, to, NULL), TRP_EINVAL);
    stage_note("tried");
}

static trp_system *
open_server(void)
{
    trp_system *system = stage_open();
    trpi_io *io;

    asked = 0;
    fake_waits = fake_may_go = false;
    UNIT_REQUIRE(trpi_io_get(system, &io) == TRP_OK);
    trpi_io_lookups_end(io->lookups);
    UNIT_REQUIRE(trpi_io_lookups_new(system, io->world, fake_resolve, &io->lookups) == TRP_OK);
    users_start(system);
    server_bind(system);
    return system;
}

/* TCP-01: the listener is at the third address only */
static void
the_addresses_of_a_name_are_tried_in_order(void)
{
    trp_system *system = open_server();

    fake_set("127.0.0.2", "::1", "127.0.0.1");
    user_do(system, &client, connect_name);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    UNIT_EQUAL(asked, 1);
    stage_clear(&stage_events);
    fake_set("127.0.0.2", NULL, NULL);
    user_do(system, &client, connect_name); /* known still */
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    UNIT_EQUAL(asked, 1);
    shut(system);
}

/* TCP-01 */
static void
a_name_whose_addresses_all_fail_is_asked_for_again(void)
{
    trp_system *system = open_server();

    fake_set("127.0.0.2", "127.0.0.3", NULL);
    user_do(system, &client, connect_name);
    STAGE_EXPECT("c:failed(1,ECONNREFUSED,0,0)");
    stage_clear(&stage_events);
    fake_set("127.0.0.1", NULL, NULL);
    user_do(system, &client, connect_name);
    UNIT_WAIT(stage_has("s:connected") && stage_has("c:connected"), 60000);
    UNIT_EQUAL(asked, 2);
    shut(system);
}

/* TCP-01 */
static void
a_name_without_addresses_and_one_that_is_too_long_are_refused(void)
{
    trp_system *system = open_server();

    fake_set(NULL, NULL, NULL);
    user_do(system, &client, connect_name);
    STAGE_EXPECT("c:failed(1,EADDRNOTAVAIL,0,0)");
    stage_clear(&stage_events);
    user_do(system, &client, connect_long);
    UNIT_WAIT(stage_has("tried") && stage_has("c:failed(1,EADDRNOTAVAIL,0,0)"), 60000);
    shut(system);
}

/* TCP-05: the first address is not one of this machine */
static void
a_name_is_bound_at_its_first_address_that_can_be(void)
{
    trp_system *system = open_server();

    fake_set("203.0.113.1", "127.0.0.1", NULL);
    user_do(system, &client, bind_name);
    STAGE_EXPECT("c:bound");
    int peer = plain_connect(client.port);
    UNIT_WAIT(stage_has("c:connected"), 60000);
    close(peer);
    shut(system);
}

/* io-lookup-L1: a name server that is away holds up nobody, and its answer comes too late */
static void
a_system_ends_while_a_name_server_does_not_answer(void)
{
    trp_system *system = open_server();

    fake_set("127.0.0.1", NULL, NULL);
    fake_waits = true;
    user_do(system, &client, connect_name);
    UNIT_WAIT(asked == 1, 60000);
    int peer = plain_connect(server.port); /* others are served meanwhile */
    UNIT_WAIT(stage_has("s:connected"), 60000);
    shut(system);
    fake_may_go = true;
    close(peer);
}

UNIT_BEGIN("lookup")
UNIT(the_addresses_of_a_name_are_tried_in_order)
UNIT(a_name_whose_addresses_all_fail_is_asked_for_again)
UNIT(a_name_without_addresses_and_one_that_is_too_long_are_refused)
UNIT(a_name_is_bound_at_its_first_address_that_can_be)
UNIT(a_system_ends_while_a_name_server_does_not_answer)
UNIT_END
