/* ctl_proto_test.c - framing at its limits, socket names, and which node answers. */
#include "cluster/node/ctl_proto.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static void
frame_of_the_limit_is_whole_and_one_more_is_refused(void)
{
    static uint8_t data[TRPI_CTL_HEADER_BYTES + 64];
    const uint8_t *body = NULL;
    size_t bytes = 0;
    trpi_ctl_header_encode(data, 64);
    UNIT_EQUAL(trpi_ctl_frame_decode(data, sizeof data, 64, &body, &bytes), TRP_OK);
    UNIT_EQUAL(bytes, 64);
    UNIT_TRUE(body == data + TRPI_CTL_HEADER_BYTES);
    UNIT_EQUAL(trpi_ctl_frame_decode(data, sizeof data, 63, &body, &bytes), TRP_EMSGSIZE);
    UNIT_EQUAL(bytes, 64);
}

static void
frame_in_pieces_asks_for_more_until_the_last_byte(void)
{
    uint8_t data[TRPI_CTL_HEADER_BYTES + 2] = { 0 };
    const uint8_t *body = NULL;
    size_t bytes = 0;
    trpi_ctl_header_encode(data, 2);
    for (size_t count = 0; count < sizeof data; count++) {
        UNIT_EQUAL(trpi_ctl_frame_decode(data, count, 64, &body, &bytes), TRP_EAGAIN);
    }
    UNIT_EQUAL(trpi_ctl_frame_decode(data, sizeof data, 64, &body, &bytes), TRP_OK);
}

static void
empty_frame_and_the_largest_length_are_refused(void)
{
    const uint8_t empty[4] = { 0, 0, 0, 0 }, huge[4] = { 0xff, 0xff, 0xff, 0xff };
    const uint8_t *body = NULL;
    size_t bytes = 0;
    UNIT_EQUAL(trpi_ctl_frame_decode(empty, 4, 64, &body, &bytes), TRP_EDATA);
    UNIT_EQUAL(trpi_ctl_frame_decode(huge, 4, TRPI_CTL_RESPONSE_BYTES_MAX, &body, &bytes),
               TRP_EMSGSIZE);
    UNIT_EQUAL(bytes, UINT32_MAX);
}

static void
header_is_little_endian(void)
{
    uint8_t header[TRPI_CTL_HEADER_BYTES];
    trpi_ctl_header_encode(header, 0x04030201);
    for (unsigned index = 0; index < 4; index++) {
        UNIT_EQUAL(header[index], index + 1);
    }
}

static void
socket_names_are_taken_apart_or_refused(void)
{
    static const char *const wrong[] = { "demo.sock",       "@1.sock", "demo@.sock",
                                         "demo@65536.sock", "demo@1",  "demo@-1.sock",
                                         "demo@1.socks",    "",        "demo@999999.sock",
                                         "demo@1x.sock" };
    char system[TRPI_CTL_SYSTEM_BYTES_MAX + 1];
    unsigned port = 0;
    UNIT_EQUAL(trpi_ctl_socket_name_parse("demo@65535.sock", system, &port), TRP_OK);
    UNIT_TEXT(system, "demo");
    UNIT_EQUAL(port, 65535);
    UNIT_EQUAL(trpi_ctl_socket_name_parse("demo@20500.sock", system, &port), TRP_OK);
    UNIT_EQUAL(port, 20500);
    for (size_t index = 0; index < sizeof wrong / sizeof wrong[0]; index++) {
        UNIT_EQUAL(trpi_ctl_socket_name_parse(wrong[index], system, &port), TRP_EINVAL);
    }
    char name[TRPI_CTL_SYSTEM_BYTES_MAX + 16];
    memset(name, 'a', sizeof name);
    memcpy(name + TRPI_CTL_SYSTEM_BYTES_MAX, "@1.sock", 8);
    UNIT_EQUAL(trpi_ctl_socket_name_parse(name, system, &port), TRP_OK);
    memcpy(name + TRPI_CTL_SYSTEM_BYTES_MAX, "a@1.sock", 9);
    UNIT_EQUAL(trpi_ctl_socket_name_parse(name, system, &port), TRP_EINVAL);
}

static void
socket_path_is_refused_one_byte_above_the_limit(void)
{
    char path[TRPI_CTL_PATH_BYTES], dir[TRPI_CTL_PATH_BYTES] = "/";
    size_t fits = TRPI_CTL_PATH_BYTES - 1 - strlen("/demo@2552.sock");
    memset(dir + 1, 'd', fits - 1);
    UNIT_EQUAL(trpi_ctl_socket_path(dir, "demo", 2552, path), TRP_OK);
    UNIT_EQUAL(strlen(path), TRPI_CTL_PATH_BYTES - 1);
    dir[fits] = 'd';
    UNIT_EQUAL(trpi_ctl_socket_path(dir, "demo", 2552, path), TRP_ELIMIT);
}

/* A directory of sockets, some of them live. */
typedef struct place {
    char dirs[2][TRPI_CTL_PATH_BYTES];
    int fds[TRPI_CTL_SOCKETS_MAX + 1];
    unsigned count;
    char paths[TRPI_CTL_SOCKETS_MAX + 1][TRPI_CTL_PATH_BYTES];
} place;

static void
place_make(place *p)
{
    memset(p, 0, sizeof *p);
    for (unsigned index = 0; index < 2; index++) {
        snprintf(p->dirs[index], sizeof p->dirs[index], "/tmp/troupe-ctl-test.XXXXXX");
        UNIT_REQUIRE(mkdtemp(p->dirs[index]) != NULL);
    }
}

static void
place_add(place *p, unsigned dir, const char *system, unsigned port, bool live)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char *path = p->paths[p->count];
    UNIT_REQUIRE(trpi_ctl_socket_path(p->dirs[dir], system, port, path) == TRP_OK);
    memcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    UNIT_REQUIRE(!live || listen(fd, 4) == 0);
    p->fds[p->count++] = fd;
}

static void
place_remove(place *p)
{
    for (unsigned index = 0; index < p->count; index++) {
        close(p->fds[index]);
        unlink(p->paths[index]);
    }
    rmdir(p->dirs[0]);
    rmdir(p->dirs[1]);
}

/* Among sockets of one system the lowest live port answers. */
static void
lowest_live_port_answers_and_stale_sockets_are_passed_over(void)
{
    place p;
    trpi_ctl_found found;
    int fd = -1;
    place_make(&p);
    place_add(&p, 0, "demo", 2551, false);
    place_add(&p, 0, "demo", 10000, true);
    place_add(&p, 1, "demo", 2553, true);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, NULL, 60000, &found, &fd), TRP_OK);
    UNIT_EQUAL(found.port, 2553);
    UNIT_EQUAL(found.stale_count, 1);
    UNIT_TEXT(found.path, p.paths[2]);
    UNIT_EQUAL(trpi_ctl_peer_pid(fd), getpid());
    close(fd);
    place_remove(&p);
}

static void
several_systems_are_listed_until_one_is_chosen(void)
{
    place p;
    trpi_ctl_found found;
    int fd = -1;
    place_make(&p);
    place_add(&p, 0, "other", 1, true);
    place_add(&p, 0, "demo", 3, true);
    place_add(&p, 0, "demo", 2, true);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, NULL, 60000, &found, &fd), TRP_ELIMIT);
    UNIT_TEXT(found.systems, "demo@2, other@1");
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "other", 60000, &found, &fd), TRP_OK);
    UNIT_TEXT(found.system, "other");
    close(fd);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "nope", 60000, &found, &fd), TRP_ENOENT);
    place_remove(&p);
}

static void
no_socket_and_only_stale_ones_are_not_found(void)
{
    place p;
    trpi_ctl_found found;
    int fd = -1;
    place_make(&p);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "", 60000, &found, &fd), TRP_ENOENT);
    place_add(&p, 0, "demo", 1, false);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "", 60000, &found, &fd), TRP_ENOENT);
    UNIT_EQUAL(found.stale_count, 1);
    UNIT_EQUAL(trpi_ctl_connect(p.paths[0], 60000, &fd), TRP_ECONN);
    UNIT_EQUAL(trpi_ctl_connect("/nowhere/at/all.sock", 60000, &fd), TRP_ENOENT);
    place_remove(&p);
}

/* Connect until the queue takes no more. */
static unsigned
queue_fill(const char *path, int *fds, unsigned limit)
{
    unsigned count = 0;
    while (count < limit && trpi_ctl_connect(path, 0, &fds[count]) == TRP_OK) {
        count++;
    }
    return count;
}

static void
queue_close(const int *fds, unsigned count)
{
    while (count > 0) {
        close(fds[--count]);
    }
}

/* A node that was stopped (SIGSTOP) listens on: it is alive, and a client does not wait for it for
 * ever. */
static void
who_listens_and_does_not_accept_is_alive_and_waited_for_no_longer_than_asked(void)
{
    place p;
    trpi_ctl_found found;
    int fd = -1, queued[16];
    place_make(&p);
    place_add(&p, 0, "still", 1, true);
    place_add(&p, 1, "still", 2, true);
    place_add(&p, 1, "demo", 3, true);
    unsigned count = queue_fill(p.paths[0], queued, 16);
    UNIT_TRUE(count > 0 && count < 16);
    UNIT_EQUAL(trpi_ctl_connect(p.paths[0], 20, &fd), TRP_ETIMEDOUT);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "still", 20, &found, &fd), TRP_ETIMEDOUT);
    UNIT_TEXT(found.path, p.paths[0]); /* not the next one: which answers is not a matter of load */
    UNIT_EQUAL(fd, -1);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "", 60000, &found, &fd), TRP_ELIMIT);
    UNIT_TEXT(found.systems, "demo@3, still@1");
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, "demo", 60000, &found, &fd), TRP_OK);
    close(fd);
    queue_close(queued, count);
    place_remove(&p);
}

static volatile sig_atomic_t interruptions;

static void
on_alarm(int signal_number)
{
    (void)signal_number;
    interruptions++;
}

/* Ctrl-Z and fg, or any handler: such a connect is made again, and ends. */
static void
who_is_interrupted_while_it_connects_waits_on_and_no_longer_than_asked(void)
{
    place p;
    int fd = -1, queued[16];
    struct sigaction action = { .sa_handler = on_alarm }, kept;
    struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
    place_make(&p);
    place_add(&p, 0, "still", 1, true);
    unsigned count = queue_fill(p.paths[0], queued, 16);
    UNIT_REQUIRE(sigaction(SIGALRM, &action, &kept) == 0);
    UNIT_REQUIRE(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    UNIT_EQUAL(trpi_ctl_connect(p.paths[0], 200, &fd), TRP_ETIMEDOUT);
    UNIT_EQUAL(interruptions, 1);
    (void)sigaction(SIGALRM, &kept, NULL);
    queue_close(queued, count);
    place_remove(&p);
}

static void *
accept_later(void *arg)
{
    int fd = -1;
    unit_pause();
    UNIT_WAIT((fd = accept(*(int *)arg, NULL, NULL)) >= 0, 60000);
    close(fd);
    return NULL;
}

/* So many clients at one moment that the queue is full: the one that is chosen gets its time. */
static void
who_accepts_in_time_is_found_though_its_queue_was_full(void)
{
    place p;
    trpi_ctl_found found;
    pthread_t thread;
    int fd = -1, queued[16];
    place_make(&p);
    place_add(&p, 0, "demo", 1, true);
    unsigned count = queue_fill(p.paths[0], queued, 16);
    UNIT_REQUIRE(pthread_create(&thread, NULL, accept_later, &p.fds[0]) == 0);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, NULL, 60000, &found, &fd), TRP_OK);
    (void)pthread_join(thread, NULL);
    close(fd);
    queue_close(queued, count);
    place_remove(&p);
}

/* TRPI_CTL_SOCKETS_MAX: all of them are looked at; of one more, one is passed over */
static void
so_many_sockets_are_looked_at_and_not_one_more(void)
{
    static place p;
    trpi_ctl_found found;
    int fd = -1;
    place_make(&p);
    for (unsigned index = 0; index < TRPI_CTL_SOCKETS_MAX; index++) {
        place_add(&p, index % 2, "demo", TRPI_CTL_SOCKETS_MAX + 1 - index, true);
    }
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, NULL, 60000, &found, &fd), TRP_OK);
    UNIT_EQUAL(found.port, 2);
    close(fd);
    place_add(&p, 1, "demo", 1, true);
    UNIT_EQUAL(trpi_ctl_find(p.dirs, 2, NULL, 60000, &found, &fd), TRP_OK);
    UNIT_TRUE(found.port == 1 || found.port == 2);
    close(fd);
    place_remove(&p);
}

static void
too_long_socket_path_is_refused(void)
{
    char path[TRPI_CTL_PATH_BYTES + 1];
    int fd = -1;
    memset(path, 'a', TRPI_CTL_PATH_BYTES);
    path[TRPI_CTL_PATH_BYTES] = '\0';
    UNIT_EQUAL(trpi_ctl_connect(path, 60000, &fd), TRP_ELIMIT);
}

static void
directories_follow_the_environment(void)
{
    char dirs[TRPI_CTL_DIRS_MAX][TRPI_CTL_PATH_BYTES];
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    UNIT_EQUAL(trpi_ctl_dirs(dirs), 2);
    UNIT_TEXT(dirs[0], "/run/troupe");
    UNIT_TEXT(dirs[1], "/run/user/7/troupe");
    unsetenv("XDG_RUNTIME_DIR");
    UNIT_EQUAL(trpi_ctl_dirs(dirs), 2);
    UNIT_TRUE(strncmp(dirs[1], "/tmp/troupe-", 12) == 0);
}

static void
every_error_has_an_exit_code_of_the_table(void)
{
    static const int allowed[] = { 0, 1, 64, 65, 68, 69, 70, 75, 77, 78 };
    for (int err = 0; err < 64; err++) {
        int code = trpi_ctl_exit_of((trp_err)err);
        bool known = false;
        for (size_t index = 0; index < sizeof allowed / sizeof allowed[0]; index++) {
            known = known || allowed[index] == code;
        }
        UNIT_TRUE(known);
        UNIT_EQUAL(code == 0, err == 0);
    }
}

UNIT_BEGIN("ctl_proto")
UNIT(frame_of_the_limit_is_whole_and_one_more_is_refused)
UNIT(frame_in_pieces_asks_for_more_until_the_last_byte)
UNIT(empty_frame_and_the_largest_length_are_refused)
UNIT(header_is_little_endian)
UNIT(socket_names_are_taken_apart_or_refused)
UNIT(socket_path_is_refused_one_byte_above_the_limit)
UNIT(lowest_live_port_answers_and_stale_sockets_are_passed_over)
UNIT(several_systems_are_listed_until_one_is_chosen)
UNIT(no_socket_and_only_stale_ones_are_not_found)
UNIT(who_listens_and_does_not_accept_is_alive_and_waited_for_no_longer_than_asked)
UNIT(who_is_interrupted_while_it_connects_waits_on_and_no_longer_than_asked)
UNIT(who_accepts_in_time_is_found_though_its_queue_was_full)
UNIT(so_many_sockets_are_looked_at_and_not_one_more)
UNIT(too_long_socket_path_is_refused)
UNIT(directories_follow_the_environment)
UNIT(every_error_has_an_exit_code_of_the_table)
UNIT_END
