/* clients_test.c - peers without a host: accepted where a receptionist is, refused elsewhere, and
 * taken at their word only at doors. */
#include <inttypes.h>

#include "base/address.h"
#include "remote/wire/codec.h"
#include "tests/unit/remote/pair.h"

static pair p; /* left: the client */
static _Atomic uint64_t told, heard;

static trp_err
count_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&told, 1);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", char, count_receive);

static void
start(uint32_t clients_max, bool untrusted, const char *cookie)
{
    trpi_remote_options node = { .untrusted = untrusted, .cookie = "same" };
    trpi_remote_options client = { .nameless = true, .cookie = cookie };
    atomic_store(&told, 0);
    atomic_store(&heard, 0);
    memset(&p, 0, sizeof p);
    pair_log_clear();
    p.system[0] = pair_system("left");
    p.system[1] = pair_system("right");
    pair_remote(&p, 1, &node, 0);
    pair_remote(&p, 0, &client, 0);
    trpi_remote_clients_accept(p.remote[1], clients_max);
}

static trpi_remote_stats
stats_of_node(void)
{
    trpi_remote_stats stats;
    trpi_remote_stats_get(p.remote[1], &stats);
    return stats;
}

/* Call the node on that channel. */
static void
call(enum trpi_control_channel channel)
{
    trpi_node_id to = { *trpi_remote_address(p.remote[1]), 0 };
    UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, channel, "x", 1), TRP_OK);
}

static void
frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
              uint64_t arrived_ns)
{
    (void)arrived_ns;
    (void)arg;
    (void)bytes;
    (void)count;
    UNIT_TRUE(trpi_address_is_nameless(&from->address));
    atomic_fetch_add(&heard, 1);
}

/* CONTRIB-23 */
static void
its_address_is_made_of_its_uid(void)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    start(0, false, "same");
    (void)snprintf(text, sizeof text, "troupe.tcp://left@~%016" PRIx64, pair_uid(&p, 0));
    UNIT_TEXT(p.address[0], text);
    pair_end(&p);
}

/* clients-C1 */
static void
without_a_receptionist_it_is_refused(void)
{
    start(0, false, "same");
    call(TRPI_CHANNEL_CLIENT);
    UNIT_WAIT(stats_of_node().handshakes_failed >= 1, 60000);
    UNIT_WAIT(pair_logged("you advertise no host and port"), 60000);
    UNIT_TEXT(pair_state(&p, 1), "none");
    pair_end(&p);
}

static void
one_more_than_the_limit_is_refused_by_its_name(void)
{
    trpi_remote_options second = { .nameless = true, .cookie = "same" };
    pair q = { 0 };
    start(1, false, "same");
    call(TRPI_CHANNEL_CLIENT);
    UNIT_WAIT(trpi_remote_clients_count(p.remote[1]) == 1, 60000);
    q.system[0] = pair_system("second");
    pair_remote(&q, 0, &second, 0);
    trpi_node_id to = { *trpi_remote_address(p.remote[1]), 0 };
    UNIT_EQUAL(trpi_remote_control_send(q.remote[0], &to, TRPI_CHANNEL_CLIENT, "x", 1), TRP_OK);
    UNIT_WAIT(pair_logged("cluster.client.receptionist.clients-max clients are connected"), 60000);
    trpi_remote_clients_accept(p.remote[1], 2);
    /* The refusal is logged before it has come to the peer: then there is nothing to hurry yet. */
    UNIT_WAIT((trpi_remote_hurry(q.remote[0], &to.address),
               (void)trpi_remote_control_send(q.remote[0], &to, TRPI_CHANNEL_CLIENT, "x", 1),
               trpi_remote_clients_count(p.remote[1]) == 2),
              60000);
    pair_end_side(&q, 0);
    UNIT_WAIT(trpi_remote_clients_count(p.remote[1]) == 1, 60000);
    pair_end(&p);
}

static void
another_cookie_is_refused(void)
{
    start(8, false, "other");
    call(TRPI_CHANNEL_CLIENT);
    UNIT_WAIT(stats_of_node().refused[TRPI_REFUSED_COOKIE] >= 1, 60000);
    UNIT_EQUAL(trpi_remote_clients_count(p.remote[1]), 0);
    pair_end(&p);
}

/* Frames of its channel arrive, those of other channels do not. */
static void
only_its_own_channel_is_taken(void)
{
    start(8, false, "same");
    for (int channel = 0; channel < TRPI_CHANNEL_COUNT; channel++) {
        trpi_remote_control_bind(p.remote[1], (enum trpi_control_channel)channel, frame_arrived,
                                 NULL);
        call((enum trpi_control_channel)channel);
    }
    UNIT_WAIT(stats_of_node().untrusted_dropped == TRPI_CHANNEL_COUNT - 1, 60000);
    UNIT_WAIT(atomic_load(&heard) == 1, 60000);
    for (int channel = 0; channel < TRPI_CHANNEL_COUNT; channel++) {
        trpi_remote_control_bind(p.remote[1], (enum trpi_control_channel)channel, NULL, NULL);
    }
    pair_end(&p);
}

/* clients-C2 */
static void
it_reaches_doors_and_nothing_else(bool untrusted)
{
    char path[TRP_PATH_BYTES_MAX];
    start(8, untrusted, "same");
    trp_ref door = pair_spawn(p.system[1], &counter, "door", NULL, NULL, 0);
    trp_ref closed = pair_spawn(p.system[1], &counter, "closed", NULL, NULL, 0);
    UNIT_EQUAL(trpi_remote_door_open(p.remote[1], door, pair_uid(&p, 0)), TRP_OK);
    UNIT_EQUAL(trpi_remote_door_open(p.remote[1], closed, pair_uid(&p, 0) + 1), TRP_OK);
    trp_ref to = pair_abroad(&p, door), not_to = pair_abroad(&p, closed);
    trp_system_tell(p.system[0], not_to, &trp_string_type, "no", 2);
    trp_system_tell(p.system[0], to, &trp_poison_pill_type, NULL, 0);
    trp_system_tell(p.system[0], to, &trp_kill_type, NULL, 0);
    UNIT_EQUAL(trp_system_select_tell(p.system[0],
                                      pair_path(&p, 1, "/user/door", path, sizeof path),
                                      &trp_string_type, "no", 2),
               TRP_OK);
    trp_system_tell(p.system[0], to, &trp_string_type, "hello", 5);
    UNIT_WAIT(atomic_load(&told) == 1, 60000);
    UNIT_WAIT(stats_of_node().untrusted_dropped == 4, 60000);
    UNIT_WAIT(pair_logged("dropped in untrusted mode"), 60000);
    trpi_remote_door_close(p.remote[1], door);
    trp_system_tell(p.system[0], to, &trp_string_type, "late", 4);
    UNIT_WAIT(stats_of_node().untrusted_dropped == 5, 60000);
    UNIT_EQUAL(atomic_load(&told), 1);
    pair_end(&p);
}
static void
it_reaches_doors_alone(void)
{
    it_reaches_doors_and_nothing_else(false);
}
static void
it_reaches_doors_alone_in_untrusted_mode(void)
{
    it_reaches_doors_and_nothing_else(true);
}

/* CONTRIB-23:
 * an answer goes back over the connections that the client made: also a large one, and after a
 * pause. */
static void
answers_come_over_its_own_connections(void)
{
    enum { LARGE = 200000 };
    static char large[LARGE];
    trp_msg *reply = NULL;
    start(8, false, "same");
    trp_ref door = pair_spawn(p.system[1], &pair_echo, "door", NULL, NULL, 0);
    UNIT_EQUAL(trpi_remote_door_open(p.remote[1], door, pair_uid(&p, 0)), TRP_OK);
    trp_ref to = pair_abroad(&p, door);
    for (size_t bytes = 1; bytes <= LARGE; bytes = bytes == 1 ? LARGE : bytes + 1) {
        UNIT_EQUAL(trp_system_ask(p.system[0], to, &trp_bytes_type, large, bytes, 60000, &reply),
                   TRP_OK);
        UNIT_EQUAL(trp_msg_bytes(reply), bytes);
        trp_msg_free(reply);
    }
    UNIT_EQUAL(trpi_remote_clients_count(p.remote[1]), 1);
    pair_end(&p);
}
static void
it_reaches_doors_and_nothing_else_on_the_other_driver(void)
{
    pair_other = true;
    it_reaches_doors_and_nothing_else(false);
    answers_come_over_its_own_connections();
    pair_other = false;
}

/* clients-C3 */
static void
it_is_never_dialled(void)
{
    start(8, false, "same");
    call(TRPI_CHANNEL_CLIENT);
    UNIT_WAIT(trpi_remote_clients_count(p.remote[1]) == 1, 60000);
    trpi_node_id gone = { *trpi_remote_address(p.remote[0]), pair_uid(&p, 0) };
    pair_end_side(&p, 0);
    UNIT_WAIT(trpi_remote_clients_count(p.remote[1]) == 0, 60000);
    gone.uid++;
    trpi_address_nameless(gone.uid, &gone.address);
    UNIT_EQUAL(trpi_remote_control_send(p.remote[1], &gone, TRPI_CHANNEL_RECEPTIONIST, "x", 1),
               TRP_ENOENT); /* one that was never here: no peer is made for it */
    UNIT_FALSE(pair_logged("connect"));
    pair_end_side(&p, 1);
}

UNIT_BEGIN("clients")
UNIT(its_address_is_made_of_its_uid)
UNIT(without_a_receptionist_it_is_refused)
UNIT(one_more_than_the_limit_is_refused_by_its_name)
UNIT(another_cookie_is_refused)
UNIT(only_its_own_channel_is_taken)
UNIT(it_reaches_doors_alone)
UNIT(it_reaches_doors_alone_in_untrusted_mode)
UNIT(answers_come_over_its_own_connections)
UNIT(it_reaches_doors_and_nothing_else_on_the_other_driver)
UNIT(it_is_never_dialled)
UNIT_END
