/* peer.h - another program of nng as the peer of a socket: tests/unit/endpoint/nng_peer.c. */
#ifndef TESTS_UNIT_ENDPOINT_PEER_H
#define TESTS_UNIT_ENDPOINT_PEER_H

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

typedef struct peer {
    pid_t pid;
    FILE *to, *from;
    char answer[256]; /* the last one */
    char address[160];
} peer;

/* The program stands beside that of the suite, which libtool may have put one folder below. */
static inline void
peer_program(char *path, size_t bytes)
{
    char self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    UNIT_REQUIRE(length > 0);
    self[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        UNIT_REQUIRE(slash != NULL);
        *slash = '\0';
        snprintf(path, bytes, "%s/nng_peer", self);
        if (access(path, X_OK) == 0) {
            return;
        }
    }
    UNIT_FAIL("nng_peer is not built: make tests/unit/endpoint/nng_peer");
    UNIT_REQUIRE(false);
}

static inline void
peer_hear(peer *p)
{
    if (fgets(p->answer, sizeof p->answer, p->from) == NULL) {
        snprintf(p->answer, sizeof p->answer, "nothing: it has ended");
    }
    p->answer[strcspn(p->answer, "\n")] = '\0';
}

/* Start a socket that listens or dials, and wait until it does. prefix: of a subscriber. */
static inline peer *
peer_start(const char *kind, const char *how, const char *url, const char *prefix)
{
    char path[600];
    const char *arguments[] = { "nng_peer", kind, how, url, prefix, NULL };
    extern char **environ;
    posix_spawn_file_actions_t actions;
    int in[2], out[2];
    peer *p = calloc(1, sizeof *p);
    UNIT_REQUIRE(p != NULL);
    peer_program(path, sizeof path);
    UNIT_REQUIRE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    UNIT_REQUIRE(
        posix_spawn(&p->pid, path, &actions, NULL, (char **)(uintptr_t)arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    signal(SIGPIPE, SIG_IGN); /* a peer that has ended is an answer that is wrong */
    p->to = fdopen(in[1], "w");
    p->from = fdopen(out[0], "r");
    UNIT_REQUIRE(p->to != NULL && p->from != NULL);
    peer_hear(p);
    if (UNIT_TRUE(strncmp(p->answer, "at ", 3) == 0)) {
        snprintf(p->address, sizeof p->address, "%.150s", p->answer + 3);
    } else {
        printf("  was: %s\n", p->answer);
    }
    return p;
}

/* Give it a line, and compare its answer. */
static inline bool
peer_does(peer *p, const char *want, const char *order)
{
    fprintf(p->to, "%s\n", order);
    fflush(p->to);
    peer_hear(p);
    if (want != NULL && strcmp(p->answer, want) != 0) {
        printf("  was: \"%s\", not \"%s\" but \"%s\"\n", order, want, p->answer);
        return false;
    }
    return true;
}

static inline bool
peer_puts(peer *p, const char *text)
{
    char order[300];
    snprintf(order, sizeof order, "put %s", text);
    return peer_does(p, "ok", order);
}

static inline bool
peer_gets(peer *p, const char *text)
{
    char want[300];
    snprintf(want, sizeof want, "got %s", text);
    return peer_does(p, want, "get 60000");
}

/* End its process; its connections are closed by the kernel. NULL is fine. */
static inline void
peer_end(peer *p)
{
    int status = -1;
    if (p == NULL) {
        return;
    }
    fclose(p->to);
    UNIT_EQUAL(waitpid(p->pid, &status, 0), p->pid);
    UNIT_EQUAL(status, 0);
    fclose(p->from);
    free(p);
}

#endif
