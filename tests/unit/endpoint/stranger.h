/* stranger.h - a peer of an endpoint that is not ours: sockets of the C library, which block the
 * test's thread, with a deadline.
 */
#ifndef TESTS_UNIT_ENDPOINT_STRANGER_H
#define TESTS_UNIT_ENDPOINT_STRANGER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/unit/endpoint/keeper.h"

static inline struct sockaddr_in
stranger_address(const char *text)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    const char *colon = strrchr(text, ':');
    UNIT_REQUIRE(colon != NULL);
    address.sin_port = htons((uint16_t)atoi(colon + 1));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline int
stranger_socket(int kind)
{
    struct timeval minute = { 60, 0 };
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(fd >= 0);
    UNIT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute), 0);
    return fd;
}

/* Connect to "127.0.0.1:PORT". */
static inline int
stranger_connect(int kind, const char *text)
{
    struct sockaddr_in address = stranger_address(text);
    int fd = stranger_socket(kind);
    UNIT_REQUIRE(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Bind, to the port (0: any), and return its number. */
static inline int
stranger_bind(int fd, int port)
{
    struct sockaddr_in address = stranger_address("x:0");
    socklen_t bytes = sizeof address;
    int one = 1;
    address.sin_port = htons((uint16_t)port);
    UNIT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    UNIT_REQUIRE(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    UNIT_REQUIRE(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    return ntohs(address.sin_port);
}

static inline void
stranger_write(int fd, const void *data, size_t bytes)
{
    UNIT_EQUAL(send(fd, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

static inline void
stranger_say(int fd, const char *text)
{
    stranger_write(fd, text, strlen(text));
}

/* Does the peer say this next, exactly? */
static inline bool
stranger_hears(int fd, const char *text)
{
    char data[256];
    size_t got = 0, bytes = strlen(text);
    while (got < bytes) {
        ssize_t now = recv(fd, data + got, bytes - got, 0);
        if (now <= 0) {
            break;
        }
        got += (size_t)now;
    }
    return got == bytes && memcmp(data, text, bytes) == 0;
}

/* Does the peer end the connection, in order or by a reset? */
static inline bool
stranger_sees_end(int fd)
{
    char data[256];
    ssize_t got;
    while ((got = recv(fd, data, sizeof data, 0)) > 0) {
    }
    return got == 0 || errno == ECONNRESET || errno == EPIPE;
}

/* By a reset, and not in order? */
static inline bool
stranger_sees_reset(int fd)
{
    char data[4096];
    ssize_t got;
    while ((got = recv(fd, data, sizeof data, 0)) > 0) {
    }
    return got < 0 && errno == ECONNRESET;
}

#endif
