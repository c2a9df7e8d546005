/* dns.h - a name server of one zone inside the test program: UDP on a free port of loopback. */
#ifndef TESTS_UNIT_NODE_DNS_H
#define TESTS_UNIT_NODE_DNS_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define DNS_RECORDS_MAX 300 /* an answer, those of one type, has 4096 bytes */
enum { DNS_A = 1, DNS_AAAA = 28, DNS_SRV = 33 };

struct dns_record {
    uint16_t type, port;
    char text[64]; /* an address, or a target */
};

struct dns {
    int fd;
    pthread_t thread;
    char address[32]; /* "127.0.0.1:PORT" */
    pthread_mutex_t lock;
    struct dns_record records[DNS_RECORDS_MAX];
    uint32_t count;
    _Atomic uint32_t asked;
};

static inline size_t
dns_name(uint8_t *at, const char *text)
{
    size_t used = 0;
    for (;;) {
        size_t bytes = strcspn(text, ".");
        at[used++] = (uint8_t)bytes;
        memcpy(at + used, text, bytes);
        used += bytes;
        if (text[bytes] == '\0') {
            at[used++] = 0;
            return used;
        }
        text += bytes + 1;
    }
}

/* Append an answer for the name of the question. */
static inline size_t
dns_answer(uint8_t *at, const struct dns_record *r)
{
    const uint8_t head[] = { 0xc0, 12, 0, (uint8_t)r->type, 0, 1, 0, 0, 0, 0 };
    uint8_t data[80] = { 0 };
    size_t bytes = r->type == DNS_A ? 4 : 16;
    if (r->type == DNS_SRV) {
        data[4] = (uint8_t)(r->port >> 8);
        data[5] = (uint8_t)r->port;
        bytes = 6 + dns_name(data + 6, r->text);
    } else {
        UNIT_EQUAL(inet_pton(r->type == DNS_A ? AF_INET : AF_INET6, r->text, data), 1);
    }
    memcpy(at, head, sizeof head);
    at[sizeof head] = 0;
    at[sizeof head + 1] = (uint8_t)bytes;
    memcpy(at + sizeof head + 2, data, bytes);
    return sizeof head + 2 + bytes;
}

static inline void *
dns_run(void *arg)
{
    struct dns *dns = arg;
    for (;;) {
        uint8_t bytes[4096];
        struct sockaddr_in from;
        socklen_t from_bytes = sizeof from;
        ssize_t count = recvfrom(dns->fd, bytes, 512, 0, (struct sockaddr *)&from, &from_bytes);
        if (count <= 0) {
            return NULL; /* dns_end() */
        }
        size_t end = 12;
        while (end < (size_t)count && bytes[end] != 0) {
            end += bytes[end] + 1u;
        }
        uint16_t type = bytes[end + 2];
        end += 5;
        uint32_t answers = 0;
        pthread_mutex_lock(&dns->lock);
        for (uint32_t i = 0; i < dns->count; i++) {
            if (dns->records[i].type == type) {
                end += dns_answer(bytes + end, &dns->records[i]);
                answers++;
            }
        }
        pthread_mutex_unlock(&dns->lock);
        bytes[2] = 0x81;
        bytes[3] = 0x80;
        memset(bytes + 6, 0, 6); /* answers, authorities, more */
        bytes[7] = (uint8_t)answers;
        atomic_fetch_add(&dns->asked, 1);
        (void)!sendto(dns->fd, bytes, end, 0, (struct sockaddr *)&from, from_bytes);
    }
}

static inline void
dns_begin(struct dns *dns)
{
    struct sockaddr_in own = { .sin_family = AF_INET };
    socklen_t bytes = sizeof own;
    memset(dns, 0, sizeof *dns);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pthread_mutex_init(&dns->lock, NULL);
    dns->fd = socket(AF_INET, SOCK_DGRAM, 0);
    UNIT_REQUIRE(dns->fd >= 0);
    UNIT_REQUIRE(bind(dns->fd, (struct sockaddr *)&own, sizeof own) == 0);
    UNIT_REQUIRE(getsockname(dns->fd, (struct sockaddr *)&own, &bytes) == 0);
    snprintf(dns->address, sizeof dns->address, "127.0.0.1:%u", ntohs(own.sin_port));
    UNIT_REQUIRE(pthread_create(&dns->thread, NULL, dns_run, dns) == 0);
}

static inline void
dns_add(struct dns *dns, uint16_t type, const char *text, uint16_t port)
{
    pthread_mutex_lock(&dns->lock);
    struct dns_record *r = &dns->records[dns->count++];
    r->type = type;
    r->port = port;
    snprintf(r->text, sizeof r->text, "%s", text);
    pthread_mutex_unlock(&dns->lock);
}

static inline void
dns_clear(struct dns *dns)
{
    pthread_mutex_lock(&dns->lock);
    dns->count = 0;
    pthread_mutex_unlock(&dns->lock);
}

static inline void
dns_end(struct dns *dns)
{
    (void)shutdown(dns->fd, SHUT_RDWR);
    pthread_join(dns->thread, NULL);
    close(dns->fd);
    pthread_mutex_destroy(&dns->lock);
}

#endif
