/* reach_test.c - can a node be dialled (remote/reach.c), and lanes that cannot be (lane_dial.c). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/remote/pair.h"

static pair p;
static _Atomic int verdict; /* for connections to the right side */
static _Atomic int dials_let;

static trpi_mem_verdict
right_is_not_dialled(void *arg, trpi_mem_event *event)
{
    (void)arg;
    bool dial = event->connect && strcmp(event->to_host, "right") == 0;
    trpi_mem_verdict what = dial ? (trpi_mem_verdict)atomic_load(&verdict) : TRPI_MEM_PASS;
    if (dial && what == TRPI_MEM_PASS) {
        atomic_fetch_add(&dials_let, 1);
    }
    return what;
}

/* The right side calls, so that both have an association, and cannot be called. */
static void
systems_begin(trpi_mem_verdict what)
{
    trpi_remote_options options = { .backoff_min_ms = 20, .backoff_max_ms = 100 };
    pair_start(&p, true, &options);
    atomic_store(&verdict, what);
    trpi_mem_network_fault_set(p.network, right_is_not_dialled, NULL);
    trpi_node_id left = { *trpi_remote_address(p.remote[0]), 0 };
    UNIT_EQUAL(trpi_remote_control_send(p.remote[1], &left, TRPI_CHANNEL_GOSSIP, "knock", 5),
               TRP_OK);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "active") == 0, 60000);
    UNIT_WAIT(strcmp(pair_state(&p, 1), "active") == 0, 60000);
}

static char why[TRPI_REACH_WHY_BYTES];

/* How the left side finds the right one. */
static trp_err
side_reach(int from, uint64_t uid)
{
    trpi_reach state = { .begun = false };
    trpi_node_id to = { *trpi_remote_address(p.remote[1 - from]), uid };
    trp_err err = TRP_EAGAIN;
    UNIT_WAIT((err = trpi_remote_reach(p.remote[from], &to, &state, why, sizeof why)) != TRP_EAGAIN,
              60000);
    return err;
}

static const char *
side_problem(int i)
{
    static trpi_peer_info info;
    size_t count = 0;
    trpi_remote_peers(p.remote[i], &info, 1, &count);
    return count == 0 ? "no peer" : info.problem;
}

static void
who_has_called_and_cannot_be_called_is_not_reached(void)
{
    systems_begin(TRPI_MEM_CUT);
    UNIT_EQUAL(side_reach(1, pair_uid(&p, 0)), TRP_OK);
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1)), TRP_ECONN);
    UNIT_TRUE(why[0] != '\0');
    UNIT_TEXT(pair_state(&p, 0), "active"); /* heartbeats would flow */
    char wanted[TRPI_REACH_WHY_BYTES + 64];
    (void)snprintf(wanted, sizeof wanted, "lane ordinary-1 cannot be dialled: %s", why);
    UNIT_TEXT(side_problem(0), wanted);
    UNIT_TEXT(side_problem(1), "");
    UNIT_WAIT(pair_logged("lane cannot be dialled peer=troupe.mem://right@right:"), 60000);
    atomic_store(&verdict, TRPI_MEM_PASS);
    /* A dial that was refused before may be told after. */
    UNIT_WAIT(side_reach(0, pair_uid(&p, 1)) == TRP_OK, 60000);
    UNIT_WAIT(side_problem(0)[0] == '\0', 60000);
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1)), TRP_OK); /* it stands: nothing is dialled */
    pair_end(&p);
}

static void
who_is_over_or_somebody_else_is_not_reached(void)
{
    systems_begin(TRPI_MEM_PASS);
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1) + 1), TRP_ECLOSED);
    UNIT_TEXT(why, "another incarnation answers there");
    trpi_node_id right = { *trpi_remote_address(p.remote[1]), pair_uid(&p, 1) };
    trpi_remote_quarantine(p.remote[0], &right, "test");
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1)), TRP_EQUARANTINED);
    trpi_reach state = { .begun = false };
    trpi_node_id left = { *trpi_remote_address(p.remote[0]), pair_uid(&p, 0) };
    UNIT_EQUAL(trpi_remote_reach(p.remote[0], &left, &state, why, sizeof why), TRP_EINVAL);
    pair_end(&p);
}

/* a peer without association is dialled */
static void
a_stranger_is_dialled(void)
{
    pair_start(&p, true, NULL);
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1)), TRP_OK);
    UNIT_TEXT(pair_state(&p, 0), "active");
    pair_end(&p);
    pair_start(&p, true, NULL);
    atomic_store(&verdict, TRPI_MEM_CUT);
    trpi_mem_network_fault_set(p.network, right_is_not_dialled, NULL);
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1)), TRP_ECONN);
    UNIT_TRUE(why[0] != '\0');
    pair_end(&p);
}

/* messages wait, the reason is shown, and they are sent when the peer can be dialled */
static void
messages_to_who_cannot_be_dialled_wait_and_it_shows(void)
{
    systems_begin(TRPI_MEM_CUT);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    trp_msg *answer = NULL;
    UNIT_EQUAL(trp_system_ask(p.system[0], echo, &trp_string_type, "a", 1, 300, &answer),
               TRP_ETIMEDOUT);
    char text[256];
    const trpi_address *right = trpi_remote_address(p.remote[1]);
    UNIT_TRUE(trpi_remote_problem(p.remote[0], right, text, sizeof text));
    UNIT_TRUE(strncmp(text, "lane ordinary-1 cannot be dialled: ", 35) == 0);
    atomic_store(&verdict, TRPI_MEM_PASS);
    UNIT_EQUAL(trp_system_ask(p.system[0], echo, &trp_string_type, "b", 1, 60000, &answer), TRP_OK);
    trp_msg_free(answer);
    UNIT_FALSE(trpi_remote_problem(p.remote[0], right, text, sizeof text));
    pair_end(&p);
}

/* lane-dial-D3: the problem is over when the peer can be dialled, long before PROBLEM_MS */
static void
a_problem_ends_with_its_reason_though_nothing_is_sent(void)
{
    systems_begin(TRPI_MEM_CUT);
    UNIT_EQUAL(side_reach(0, pair_uid(&p, 1)), TRP_ECONN);
    UNIT_TRUE(side_problem(0)[0] != '\0');
    atomic_store(&dials_let, 0);
    atomic_store(&verdict, TRPI_MEM_PASS);
    UNIT_WAIT(side_problem(0)[0] == '\0', 30000);
    UNIT_TRUE(atomic_load(&dials_let) > 0);
    pair_end(&p);
}

/* another process listens at its address, and never answers */
static void
a_dial_without_an_answer_shows_after_three_seconds(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof at;
    int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(bind(silent, (struct sockaddr *)&at, sizeof at) == 0 && listen(silent, 8) == 0);
    UNIT_REQUIRE(getsockname(silent, (struct sockaddr *)&at, &bytes) == 0);
    pair_start(&p, false, NULL);
    pair_end_side(&p, 1);
    p.system[1] = pair_system("right");
    trpi_remote_options o = {
        .driver = pair_drives(), .port = ntohs(at.sin_port), .bind_port = 0, .link_pause_ms = 60000
    };
    UNIT_REQUIRE(trpi_remote_start(p.system[1], &o, &p.remote[1]) == TRP_OK);
    trpi_node_id left = { *trpi_remote_address(p.remote[0]), 0 };
    UNIT_EQUAL(trpi_remote_control_send(p.remote[1], &left, TRPI_CHANNEL_GOSSIP, "knock", 5),
               TRP_OK);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "active") == 0, 60000);
    trpi_reach state = { .begun = false };
    trpi_node_id to = { *trpi_remote_address(p.remote[1]), pair_uid(&p, 1) };
    UNIT_EQUAL(trpi_remote_reach(p.remote[0], &to, &state, why, sizeof why), TRP_EAGAIN);
    UNIT_TEXT(side_problem(0), "");
    UNIT_WAIT(strncmp(side_problem(0), "lane ordinary-1 cannot be dialled: no answer for ", 49) ==
                  0,
              60000);
    pair_end(&p);
    (void)close(silent);
}

UNIT_BEGIN("reach")
UNIT(who_has_called_and_cannot_be_called_is_not_reached)
UNIT(who_is_over_or_somebody_else_is_not_reached)
UNIT(a_stranger_is_dialled)
UNIT(messages_to_who_cannot_be_dialled_wait_and_it_shows)
UNIT(a_problem_ends_with_its_reason_though_nothing_is_sent)
UNIT(a_dial_without_an_answer_shows_after_three_seconds)
UNIT_END
