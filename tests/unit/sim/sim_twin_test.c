/* The simulated streams answer as the machine's do: written scripts, and drawn ones. */
#include "tests/unit/sim/twin.h"

#define TALKS 50 /* TROUPE_SIM_SEEDS: more; they wait for the machine, 12 ms each */
#define TALK_STEPS 24

static void
fresh_script(void)
{
    trpi_net_address from, to = some_address(script_family);
    int s = net->socket(world, script_family, SOCK_STREAM);

    UNIT_REQUIRE(s >= 0);
    SAME(mask(s));
    SAME(get(s, 10));
    SAME(put(s, 10));
    SAME(put(s, 0));
    SAME(net->accept(world, s, &from));
    SAME(peer(s));
    SAME(error_of(s));
    SAME(net->local_address(world, s, &from));
    SAME(from.bytes);
    SAME(net->shutdown(world, s, 9));
    SAME(net->shutdown(world, s, SHUT_RDWR));
    SAME(mask(s));
    SAME(net->close(world, s));
    s = net->socket(world, script_family, SOCK_STREAM);
    to.bytes = 1;
    SAME(net->bind(world, s, &to));
    SAME(net->connect(world, s, &to));
    to.bytes = sizeof to.of;
    to.of.any.sa_family = script_family == AF_INET ? AF_INET6 : AF_INET;
    SAME(net->bind(world, s, &to));
    SAME(net->connect(world, s, &to));
    SAME(net->close(world, s));
    SAME(net->socket(world, AF_INET, 77) < 0);
}

static void
listen_script(void)
{
    trpi_net_address address, from, again;
    int server = listener(script_family, &address), second, third, client, made;
    int client_two;

    SAME(mask(server));
    SAME(net->accept(world, server, &from));
    SAME(get(server, 10));
    SAME(put(server, 10));
    SAME(net->bind(world, server, &address));
    SAME(net->listen(world, server, 2));
    SAME(net->connect(world, server, &address));
    SAME(opt_get(server, SOL_SOCKET, SO_ACCEPTCONN));
    second = net->socket(world, script_family, SOCK_STREAM);
    SAME(net->bind(world, second, &address));
    SAME(opt(second, SOL_SOCKET, SO_REUSEADDR, 1));
    SAME(net->bind(world, second, &address));
    client = net->socket(world, script_family, SOCK_STREAM);
    client_two = net->socket(world, script_family, SOCK_STREAM);
    SAME(net->connect(world, client, &address));
    SAME(net->connect(world, client_two, &address));
    SAME(mask(server));
    SAME((made = net->accept(world, server, &from)) >= 0);
    SAME(net->local_address(world, client, &again));
    SAME(from.bytes == again.bytes && memcmp(&from.of, &again.of, from.bytes) == 0);
    SAME(from.bytes);
    SAME(net->local_address(world, made, &again));
    SAME(memcmp(&again.of, &address.of, address.bytes));
    SAME(net->peer_address(world, client, &again));
    SAME(memcmp(&again.of, &address.of, address.bytes));
    SAME(mask(client_two));
    SAME(net->close(world, server)); /* with a connection that nobody has accepted */
    SAME(mask(client_two));
    SAME(put(client_two, 5));
    SAME(get(client_two, 5));
    SAME(get(client_two, 5));
    SAME(mask(client));
    SAME(put(made, 5));
    SAME(get(client, 10));
    third = net->socket(world, script_family, SOCK_STREAM);
    SAME(net->bind(world, third, &address)); /* a connection holds the port */
    SAME(net->close(world, third));
    SAME(net->close(world, second));
    SAME(net->close(world, client_two));
    SAME(net->close(world, made));
    SAME(get(client, 10));
    SAME(net->close(world, client));
}

static void
refused_script(void)
{
    trpi_net_address address;
    int server = listener(script_family, &address);
    int s = net->socket(world, script_family, SOCK_STREAM);

    SAME(net->close(world, server));
    SAME(net->connect(world, s, &address));
    SAME(mask(s));
    SAME(error_of(s));
    SAME(error_of(s));
    SAME(mask(s));
    SAME(put(s, 3));
    SAME(get(s, 3));
    SAME(peer(s));
    SAME(net->connect(world, s, &address));
    SAME(net->connect(world, s, &address));
    SAME(mask(s));
    SAME(net->connect(world, s, &address)); /* tells the error */
    SAME(net->connect(world, s, &address));
    SAME(mask(s));
    SAME(get(s, 3)); /* tells the error */
    SAME(get(s, 3));
    SAME(net->close(world, s));
}

static void
ends_script(void)
{
    int ends[2];

    connection(script_family, ends);
    SAME(put(ends[0], 10)); /* end of stream after the data */
    SAME(net->shutdown(world, ends[0], SHUT_WR));
    SAME(put(ends[0], 1));
    SAME(mask(ends[1]));
    SAME(get(ends[1], 4));
    SAME(get(ends[1], 40));
    SAME(get(ends[1], 40));
    SAME(put(ends[1], 8)); /* the other direction goes on */
    SAME(mask(ends[0]));
    SAME(get(ends[0], 40));
    SAME(get(ends[0], 40));
    SAME(net->shutdown(world, ends[1], SHUT_WR));
    SAME(mask(ends[0]));
    SAME(mask(ends[1]));
    SAME(get(ends[0], 40));
    SAME(peer(ends[0]));
    SAME(peer(ends[1]));
    SAME(net->shutdown(world, ends[1], SHUT_WR));
    close_both(ends);
    connection(script_family, ends);
    SAME(put(ends[0], 10)); /* unread at close */
    SAME(mask(ends[1]));
    SAME(put(ends[1], 3));
    SAME(mask(ends[0]));
    SAME(net->close(world, ends[1]));
    SAME(mask(ends[0]));
    SAME(get(ends[0], 40));
    SAME(get(ends[0], 40));
    SAME(get(ends[0], 40));
    SAME(put(ends[0], 3));
    ends[1] = -1;
    close_both(ends);
    connection(script_family, ends);
    SAME(linger(ends[0]));
    SAME(net->close(world, ends[0]));
    SAME(mask(ends[1]));
    SAME(put(ends[1], 3));
    SAME(put(ends[1], 3));
    SAME(get(ends[1], 3));
    ends[0] = -1;
    close_both(ends);
    connection(script_family, ends);
    SAME(net->close(world, ends[1])); /* writes to an end that is gone */
    SAME(mask(ends[0]));
    SAME(put(ends[0], 3));
    SAME(mask(ends[0]));
    SAME(put(ends[0], 3));
    SAME(get(ends[0], 3));
    ends[1] = -1;
    close_both(ends);
}

/* Fill the buffers; room is reported after the reader has read; no report before. */
static void
full_script(void)
{
    trpi_net_set *set = NULL;
    int ends[2];
    ssize_t sent = 0, part, taken = 0;

    connection(script_family, ends);
    UNIT_REQUIRE(net->set_new(world, NULL, NULL, &set) == 0);
    SAME(net->set_add(set, ends[0], 1));
    SAME(net->set_add(set, ends[0], 1));
    SAME(reported(set));
    SAME(reported(set));
    do {
        part = put(ends[0], 65536);
        sent += part > 0 ? part : 0;
    } while (part > 0);
    SAME(part);
    while (taken < sent) { /* the machine acknowledges when it likes */
        part = get(ends[1], 262144);
        UNIT_REQUIRE(part > 0 || part == -EAGAIN);
        taken += part > 0 ? part : 0;
    }
    SAME(taken == sent);
    SAME(reported(set) & TRPI_NET_OUT);
    SAME(put(ends[0], 10));
    SAME(get(ends[1], 20));
    SAME(put(ends[1], 10));
    SAME(reported(set) & (TRPI_NET_IN | TRPI_NET_DRAIN));
    SAME(net->shutdown(world, ends[1], SHUT_WR));
    SAME(reported(set) & (TRPI_NET_IN | TRPI_NET_DRAIN));
    net->set_remove(set, ends[0]);
    SAME(net->close(world, ends[1]));
    ends[1] = -1;
    SAME(reported(set));
    close_both(ends);
    net->set_free(set);
}

static void
talk_script(void)
{
    int ends[2];

    connection(script_family, ends);
    for (int i = 0; i < TALK_STEPS; i++) {
        int which = (int)draw(2), end = ends[which];
        size_t bytes = 1 + draw(100);
        int how = (int)draw(3);
        uint32_t what = draw(19);

        if (end < 0) {
            continue;
        }
        if (what < 6) {
            SAME(put(end, bytes));
        } else if (what < 11) {
            SAME(get(end, bytes));
        } else if (what == 11 || what == 12) {
            SAME(net->shutdown(world, end, how));
        } else if (what == 13 || what == 14) {
            SAME(error_of(end));
        } else if (what == 15) {
            SAME(peer(end));
        } else if (what == 16) {
            SAME(linger(end));
        } else if (what == 17) {
            SAME(net->close(world, end));
            ends[which] = -1;
        }
        settle(ends);
        for (int k = 0; k < 2; k++) {
            if (ends[k] >= 0) {
                SAME(mask(ends[k]));
            }
        }
    }
    close_both(ends);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
a_fresh_socket_answers_as_the_machines(void)
{
    in_families(fresh_script, 3, 1);
}

static void
a_listener_answers_as_the_machines(void)
{
    in_families(listen_script, 3, 1);
}

static void
a_refused_connect_answers_as_the_machines(void)
{
    in_families(refused_script, 3, 1);
}

static void
ends_and_resets_answer_as_the_machines(void)
{
    in_families(ends_script, 3, 1);
}

static void
full_buffers_and_edges_are_as_the_machines(void)
{
    in_families(full_script, 3, 1);
}

static void
drawn_talks_are_as_the_machines(void)
{
    const char *given = getenv("TROUPE_TEST_SEED"); /* replays one */
    const char *many = getenv("TROUPE_SIM_SEEDS");
    uint64_t from = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint64_t count = given != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : TALKS;

    for (uint64_t seed = from; seed < from + count; seed++) {
        in_families(talk_script, 3, seed);
    }
}

UNIT_BEGIN("sim_twin")
UNIT(a_fresh_socket_answers_as_the_machines)
UNIT(a_listener_answers_as_the_machines)
UNIT(a_refused_connect_answers_as_the_machines)
UNIT(ends_and_resets_answer_as_the_machines)
UNIT(full_buffers_and_edges_are_as_the_machines)
UNIT(drawn_talks_are_as_the_machines)
UNIT_END
