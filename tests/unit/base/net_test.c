/* The machine's sockets: results as -errno, no signal, no blocking call; edges and wake-ups. */
#include "base/net.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static const trpi_net_ops *const net = &trpi_net_machine;

static trpi_net_address
loopback(uint16_t port)
{
    trpi_net_address address = { .bytes = sizeof(struct sockaddr_in) };

    address.of.v4.sin_family = AF_INET;
    address.of.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.of.v4.sin_port = htons(port);
    return address;
}

static int
listener(trpi_net_address *ret_address)
{
    trpi_net_address any = loopback(0);
    int number = net->socket(NULL, AF_INET, SOCK_STREAM);

    UNIT_REQUIRE(number >= 0);
    UNIT_REQUIRE(net->bind(NULL, number, &any) == 0);
    UNIT_REQUIRE(net->listen(NULL, number, 16) == 0);
    UNIT_REQUIRE(net->local_address(NULL, number, ret_address) == 0);
    UNIT_TRUE(ret_address->of.v4.sin_port != 0);
    return number;
}

static int
accepted(int server, trpi_net_address *ret_peer)
{
    int number = -EAGAIN;

    UNIT_WAIT((number = net->accept(NULL, server, ret_peer)) != -EAGAIN, 5000);
    return number;
}

/* Two ends of a connection; pair[0] is the one that connected. */
static void
connection(int pair[2])
{
    trpi_net_address address, peer, local;
    int server = listener(&address), result;

    pair[0] = net->socket(NULL, AF_INET, SOCK_STREAM);
    UNIT_REQUIRE(pair[0] >= 0);
    result = net->connect(NULL, pair[0], &address);
    UNIT_TRUE(result == 0 || result == -EINPROGRESS);
    pair[1] = accepted(server, &peer);
    UNIT_REQUIRE(pair[1] >= 0);
    UNIT_REQUIRE(net->local_address(NULL, pair[0], &local) == 0);
    UNIT_EQUAL(local.of.v4.sin_port, peer.of.v4.sin_port);
    UNIT_EQUAL(net->close(NULL, server), 0);
}

static ssize_t
text_write(int number, const char *text)
{
    struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

    return net->write(NULL, number, &iov, 1);
}

/* Read into two halves, so that vectors are used. */
static ssize_t
text_read(int number, char *ret_text, size_t room)
{
    struct iovec iov[2] = { { ret_text, room / 2 }, { ret_text + room / 2, room - room / 2 } };
    ssize_t got = net->read(NULL, number, iov, 2);

    if (got >= 0 && (size_t)got < room) {
        ret_text[got] = '\0';
    }
    return got;
}

static trpi_net_set *
set_made(void)
{
    trpi_net_set *set = NULL;

    UNIT_REQUIRE(net->set_new(NULL, NULL, NULL, &set) == 0);
    return set;
}

/* Wait until these events of this key have been reported, and no other key. */
static bool
reported(trpi_net_set *set, uint64_t key, uint32_t events)
{
    uint64_t deadline = unit_deadline_ms(5000);
    uint32_t seen = 0;

    while ((seen & events) != events && unit_now_ms() < deadline) {
        trpi_net_report reports[4];
        int count = net->set_wait(set, reports, 4, 10000000u);

        for (int i = 0; i < count; i++) {
            UNIT_EQUAL(reports[i].key, key);
            seen |= reports[i].events;
        }
    }
    return (seen & events) == events;
}

static bool
silent(trpi_net_set *set)
{
    trpi_net_report report;

    return net->set_wait(set, &report, 1, 0) == 0;
}

static unsigned
descriptors_open(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    UNIT_REQUIRE(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void
bytes_pass_and_sockets_do_not_block(void)
{
    int pair[2];
    char text[16];
    trpi_net_address peer, local;

    connection(pair);
    for (int i = 0; i < 2; i++) {
        UNIT_TRUE((fcntl(pair[i], F_GETFL) & O_NONBLOCK) != 0);
        UNIT_TRUE((fcntl(pair[i], F_GETFD) & FD_CLOEXEC) != 0);
    }
    UNIT_EQUAL(text_read(pair[1], text, sizeof text), -EAGAIN);
    UNIT_EQUAL(text_write(pair[0], "twelve bytes"), 12);
    UNIT_WAIT(text_read(pair[1], text, sizeof text) == 12, 5000);
    UNIT_TEXT(text, "twelve bytes");
    UNIT_EQUAL(net->peer_address(NULL, pair[0], &peer), 0);
    UNIT_EQUAL(net->local_address(NULL, pair[1], &local), 0);
    UNIT_EQUAL(peer.of.v4.sin_port, local.of.v4.sin_port);
    UNIT_EQUAL(net->shutdown(NULL, pair[0], SHUT_WR), 0);
    UNIT_WAIT(text_read(pair[1], text, sizeof text) == 0, 5000);
    UNIT_EQUAL(text_write(pair[0], "late"), -EPIPE); /* and no signal */
    UNIT_EQUAL(net->close(NULL, pair[0]), 0);
    UNIT_EQUAL(net->close(NULL, pair[0]), -EBADF);
    UNIT_EQUAL(net->close(NULL, pair[1]), 0);
}

static void
options_are_set_and_read(void)
{
    int number = net->socket(NULL, AF_INET, SOCK_STREAM), on = 1, value = 0;
    socklen_t bytes = sizeof value;

    UNIT_REQUIRE(number >= 0);
    UNIT_EQUAL(net->option_set(NULL, number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    UNIT_EQUAL(net->option_get(NULL, number, IPPROTO_TCP, TCP_NODELAY, &value, &bytes), 0);
    UNIT_TRUE(value != 0);
    UNIT_EQUAL(net->option_set(NULL, number, IPPROTO_TCP, TCP_NODELAY, &on, 1), -EINVAL);
    UNIT_EQUAL(net->close(NULL, number), 0);
    UNIT_EQUAL(net->socket(NULL, AF_UNSPEC, SOCK_STREAM), -EAFNOSUPPORT);
}

static void
a_refused_connect_is_reported_with_its_error(void)
{
    trpi_net_address address;
    trpi_net_set *set = set_made();
    int server = listener(&address), number = net->socket(NULL, AF_INET, SOCK_STREAM);
    int result, error = 0;
    socklen_t bytes = sizeof error;

    UNIT_EQUAL(net->close(NULL, server), 0);
    UNIT_REQUIRE(number >= 0);
    result = net->connect(NULL, number, &address);
    UNIT_TRUE(result == -EINPROGRESS || result == -ECONNREFUSED);
    UNIT_EQUAL(net->set_add(set, number, 7), 0);
    UNIT_TRUE(reported(set, 7, TRPI_NET_END));
    if (result == -EINPROGRESS) {
        UNIT_EQUAL(net->option_get(NULL, number, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
        UNIT_EQUAL(error, ECONNREFUSED);
    }
    UNIT_EQUAL(net->close(NULL, number), 0);
    net->set_free(set);
}

static void
a_datagram_that_does_not_fit_says_so(void)
{
    trpi_net_address any = loopback(0), to, from;
    int one = net->socket(NULL, AF_INET, SOCK_DGRAM), two = net->socket(NULL, AF_INET, SOCK_DGRAM);
    char text[8];
    struct iovec in = { text, sizeof text };
    struct iovec out[2] = { { "1234", 4 }, { "56789", 5 } };
    ssize_t got = 0;
    int flags = 0;

    UNIT_REQUIRE(one >= 0 && two >= 0);
    UNIT_EQUAL(net->bind(NULL, one, &any), 0);
    UNIT_EQUAL(net->bind(NULL, two, &any), 0);
    UNIT_EQUAL(net->local_address(NULL, two, &to), 0);
    UNIT_EQUAL(net->receive(NULL, two, &in, 1, &from, &flags), -EAGAIN);
    UNIT_EQUAL(net->send(NULL, one, out, 2, &to), 9);
    UNIT_WAIT((got = net->receive(NULL, two, &in, 1, &from, &flags)) != -EAGAIN, 5000);
    UNIT_EQUAL(got, 8);
    UNIT_TRUE((flags & MSG_TRUNC) != 0);
    UNIT_EQUAL(net->send(NULL, one, out, 1, &to), 4);
    UNIT_WAIT((got = net->receive(NULL, two, &in, 1, &from, &flags)) != -EAGAIN, 5000);
    UNIT_EQUAL(got, 4);
    UNIT_EQUAL(flags, 0);
    UNIT_EQUAL(net->local_address(NULL, one, &to), 0);
    UNIT_EQUAL(from.of.v4.sin_port, to.of.v4.sin_port);
    UNIT_EQUAL(net->send(NULL, one, out, 0, &from), 0); /* empty, to itself */
    UNIT_WAIT((got = net->receive(NULL, one, &in, 1, &from, &flags)) != -EAGAIN, 5000);
    UNIT_EQUAL(got, 0);
    net->close(NULL, one);
    net->close(NULL, two);
}

static void
a_socket_of_the_file_system_passes_bytes(void)
{
    trpi_net_address address = { .bytes = sizeof(struct sockaddr_un) }, peer;
    char directory[] = "/tmp/net_test.XXXXXX", text[8];
    int server = net->socket(NULL, AF_UNIX, SOCK_STREAM);
    int one = net->socket(NULL, AF_UNIX, SOCK_STREAM), two;

    UNIT_REQUIRE(server >= 0 && one >= 0 && mkdtemp(directory) != NULL);
    address.of.local.sun_family = AF_UNIX;
    (void)snprintf(address.of.local.sun_path, sizeof address.of.local.sun_path, "%s/s", directory);
    UNIT_EQUAL(net->connect(NULL, one, &address), -ENOENT);
    UNIT_EQUAL(net->bind(NULL, server, &address), 0);
    UNIT_EQUAL(net->connect(NULL, one, &address), -ECONNREFUSED);
    UNIT_EQUAL(net->listen(NULL, server, 4), 0);
    UNIT_EQUAL(net->connect(NULL, one, &address), 0);
    two = accepted(server, &peer);
    UNIT_REQUIRE(two >= 0);
    UNIT_EQUAL(text_write(two, "hello"), 5);
    UNIT_EQUAL(text_read(one, text, sizeof text), 5);
    UNIT_TEXT(text, "hello");
    net->close(NULL, one);
    net->close(NULL, two);
    net->close(NULL, server);
    UNIT_EQUAL(unlink(address.of.local.sun_path), 0);
    UNIT_EQUAL(rmdir(directory), 0);
}

static void
a_piece_of_a_file_is_sent_and_no_signal_comes(void)
{
    FILE *file = tmpfile();
    off_t offset = 3;
    char text[16];
    int pair[2];
    sigset_t pending;

    UNIT_REQUIRE(file != NULL);
    UNIT_REQUIRE(fputs("0123456789", file) >= 0 && fflush(file) == 0);
    connection(pair);
    UNIT_EQUAL(net->send_file(NULL, pair[0], fileno(file), &offset, 4), 4);
    UNIT_EQUAL(offset, 7);
    UNIT_WAIT(text_read(pair[1], text, sizeof text) == 4, 5000);
    UNIT_TEXT(text, "3456");
    UNIT_EQUAL(net->send_file(NULL, pair[0], fileno(file), &offset, 100), 3); /* to its end */
    UNIT_EQUAL(net->send_file(NULL, pair[0], fileno(file), &offset, 100), 0);
    UNIT_EQUAL(net->shutdown(NULL, pair[0], SHUT_WR), 0);
    offset = 0;
    UNIT_EQUAL(net->send_file(NULL, pair[0], fileno(file), &offset, 4), -EPIPE);
    UNIT_EQUAL(sigpending(&pending), 0);
    UNIT_EQUAL(sigismember(&pending, SIGPIPE), 0);
    net->close(NULL, pair[0]);
    net->close(NULL, pair[1]);
    fclose(file);
}

static void
an_edge_that_comes_while_nobody_waits_is_reported(void)
{
    trpi_net_set *set = set_made();
    char text[16];
    int pair[2];

    connection(pair);
    UNIT_EQUAL(net->set_add(set, pair[1], 5), 0);
    UNIT_TRUE(reported(set, 5, TRPI_NET_OUT)); /* it was ready before it was added */
    UNIT_TRUE(silent(set));
    UNIT_EQUAL(text_write(pair[0], "one"), 3);
    UNIT_TRUE(reported(set, 5, TRPI_NET_IN));
    UNIT_TRUE(silent(set)); /* once, although nobody has read */
    UNIT_EQUAL(text_read(pair[1], text, sizeof text), 3);
    UNIT_EQUAL(text_read(pair[1], text, sizeof text), -EAGAIN);
    UNIT_EQUAL(text_write(pair[0], "two"), 3);
    UNIT_TRUE(reported(set, 5, TRPI_NET_IN));
    UNIT_EQUAL(net->shutdown(NULL, pair[0], SHUT_WR), 0);
    UNIT_TRUE(reported(set, 5, TRPI_NET_IN | TRPI_NET_DRAIN));
    UNIT_EQUAL(net->shutdown(NULL, pair[1], SHUT_WR), 0);
    UNIT_TRUE(reported(set, 5, TRPI_NET_END)); /* both directions have ended */
    net->close(NULL, pair[0]);
    net->close(NULL, pair[1]);
    net->set_free(set);
}

static void
a_full_socket_is_reported_when_it_has_room(void)
{
    static char block[65536];
    struct iovec iov = { block, sizeof block };
    trpi_net_set *set = set_made();
    uint64_t deadline = unit_deadline_ms(5000);
    trpi_net_report report = { 0 };
    bool has_room = false;
    int pair[2];

    connection(pair);
    UNIT_EQUAL(net->set_add(set, pair[0], 9), 0);
    UNIT_TRUE(reported(set, 9, TRPI_NET_OUT)); /* of the time before */
    while (net->write(NULL, pair[0], &iov, 1) > 0) {
    }
    UNIT_EQUAL(net->write(NULL, pair[0], &iov, 1), -EAGAIN);
    while (!has_room && unit_now_ms() < deadline) {
        while (net->read(NULL, pair[1], &iov, 1) > 0) {
        }
        has_room =
            net->set_wait(set, &report, 1, 10000000u) == 1 && (report.events & TRPI_NET_OUT) != 0;
    }
    UNIT_TRUE(has_room);
    net->close(NULL, pair[0]);
    net->close(NULL, pair[1]);
    net->set_free(set);
}

static void
a_removed_socket_is_not_reported(void)
{
    trpi_net_set *set = set_made();
    int pair[2];

    connection(pair);
    UNIT_EQUAL(net->set_add(set, pair[1], 1), 0);
    UNIT_EQUAL(net->set_add(set, pair[1], 2), -EEXIST);
    UNIT_EQUAL(text_write(pair[0], "byte"), 4);
    net->set_remove(set, pair[1]);
    UNIT_TRUE(silent(set)); /* what was ready is forgotten too */
    net->set_remove(set, pair[1]);
    UNIT_EQUAL(net->set_add(set, pair[1], 3), 0);
    UNIT_TRUE(reported(set, 3, TRPI_NET_IN));
    net->close(NULL, pair[1]);
    net->set_remove(set, pair[1]);
    UNIT_EQUAL(net->set_add(set, pair[1], 4), -EBADF);
    UNIT_TRUE(silent(set));
    net->close(NULL, pair[0]);
    net->set_free(set);
}

static void *
wake_main(void *arg)
{
    net->set_wake(arg);
    return NULL;
}

static void
a_wake_up_ends_the_present_wait_or_the_next(void)
{
    trpi_net_set *set = set_made();
    trpi_net_report report;
    pthread_t thread;

    net->set_wake(set);
    net->set_wake(set);
    UNIT_EQUAL(net->set_wait(set, &report, 1, UINT64_MAX), 0); /* returns at all */
    for (int i = 0; i < 20; i++) {
        UNIT_REQUIRE(pthread_create(&thread, NULL, wake_main, set) == 0);
        UNIT_EQUAL(net->set_wait(set, &report, 1, UINT64_MAX), 0);
        pthread_join(thread, NULL);
    }
    net->set_free(set);
}

static void
a_wait_is_not_shorter_than_its_time(void)
{
    trpi_net_set *set = set_made();
    trpi_net_report report;
    uint64_t start = unit_now_ms();

    UNIT_EQUAL(net->set_wait(set, &report, 1, 2000001u), 0);
    UNIT_TRUE(unit_now_ms() >= start + 2);
    UNIT_EQUAL(net->set_wait(set, &report, 1, 0), 0);
    net->set_free(set);
}

static void
many_reports_come_in_several_waits(void)
{
    trpi_net_set *set = set_made();
    trpi_net_report reports[3];
    uint32_t seen = 0;
    int numbers[8];

    for (int i = 0; i < 8; i++) {
        numbers[i] = net->socket(NULL, AF_INET, SOCK_DGRAM); /* can be written to at once */
        UNIT_REQUIRE(numbers[i] >= 0);
        UNIT_EQUAL(net->set_add(set, numbers[i], (uint64_t)i), 0);
    }
    net->set_wake(set); /* takes a place, and is no report */
    for (int waits = 0; waits < 4; waits++) {
        int count = net->set_wait(set, reports, 3, 0);

        for (int i = 0; i < count; i++) {
            seen |= 1u << reports[i].key;
        }
    }
    UNIT_EQUAL(seen, 0xff);
    for (int i = 0; i < 8; i++) {
        net->close(NULL, numbers[i]);
    }
    net->set_free(set);
}

static void
without_descriptors_there_is_an_error_and_no_leak(void)
{
    trpi_net_address address, peer;
    trpi_net_set *set = NULL;
    struct rlimit before, none;
    int server = listener(&address), number = net->socket(NULL, AF_INET, SOCK_STREAM);
    int result, first, second;
    unsigned open_before = descriptors_open();

    UNIT_REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    UNIT_REQUIRE(number >= 0);
    result = net->connect(NULL, number, &address);
    UNIT_TRUE(result == 0 || result == -EINPROGRESS);
    first = dup(server);
    UNIT_REQUIRE(first >= 0);
    close(first);
    none = before;
    none.rlim_cur = (rlim_t)first; /* the lowest free number */
    UNIT_REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    UNIT_EQUAL(net->socket(NULL, AF_INET, SOCK_STREAM), -EMFILE);
    UNIT_EQUAL(net->set_new(NULL, NULL, NULL, &set), -EMFILE);
    UNIT_WAIT((result = net->accept(NULL, server, &peer)) != -EAGAIN, 5000);
    UNIT_EQUAL(result, -EMFILE);
    none.rlim_cur = (rlim_t)first + 1; /* room for one of a set's two */
    UNIT_REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    UNIT_EQUAL(net->set_new(NULL, NULL, NULL, &set), -EMFILE);
    UNIT_TRUE(set == NULL);
    second = net->accept(NULL, server, &peer); /* the connection was not lost */
    UNIT_EQUAL(second, first);
    UNIT_REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    net->close(NULL, second);
    UNIT_EQUAL(descriptors_open(), open_before);
    net->close(NULL, number);
    net->close(NULL, server);
    net->set_free(NULL);
}

UNIT_BEGIN("net")
UNIT(bytes_pass_and_sockets_do_not_block)
UNIT(options_are_set_and_read)
UNIT(a_refused_connect_is_reported_with_its_error)
UNIT(a_datagram_that_does_not_fit_says_so)
UNIT(a_socket_of_the_file_system_passes_bytes)
UNIT(a_piece_of_a_file_is_sent_and_no_signal_comes)
UNIT(an_edge_that_comes_while_nobody_waits_is_reported)
UNIT(a_full_socket_is_reported_when_it_has_room)
UNIT(a_removed_socket_is_not_reported)
UNIT(a_wake_up_ends_the_present_wait_or_the_next)
UNIT(a_wait_is_not_shorter_than_its_time)
UNIT(many_reports_come_in_several_waits)
UNIT(without_descriptors_there_is_an_error_and_no_leak)
UNIT_END
