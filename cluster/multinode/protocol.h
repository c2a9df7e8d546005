/* protocol.h - the messages between the nodes of a test and the conductor.
 *
 * All are the same program, built once: the messages are plain structs. They travel between the
 * control systems, which are not the systems under test.
 */
#ifndef TRPI_MULTINODE_PROTOCOL_H
#define TRPI_MULTINODE_PROTOCOL_H

#include <troupe/message.h>

enum trpi_multinode_verb {
    /* to the conductor; index: the caller's */
    TRPI_MULTINODE_HELLO = 1, /* by its player */
    TRPI_MULTINODE_PRESENT,   /* name: address; answered when the participants are there */
    TRPI_MULTINODE_ENTER,     /* name: barrier; number: timeout in ms */
    TRPI_MULTINODE_ADDRESS,   /* of target; answered when it is known */
    TRPI_MULTINODE_NODES,     /* text: the nodes that the test waits for, as bits in hexadecimal */
    TRPI_MULTINODE_BYE,
    TRPI_MULTINODE_FAREWELL, /* answered when all others are gone */
    TRPI_MULTINODE_GIVE_UP,  /* text: why */
    /* to the conductor, by the first node only; it passes them on to the player of target */
    TRPI_MULTINODE_REMOVE,
    TRPI_MULTINODE_FAULT,      /* peer; text: rule; number: direction. name: filled by it */
    TRPI_MULTINODE_DISCONNECT, /* peer; name: filled by it */
    TRPI_MULTINODE_EXIT,       /* number: code */
    TRPI_MULTINODE_SHUTDOWN,
    TRPI_MULTINODE_TICK /* to the actor itself */
};

#define TRPI_MULTINODE_CALL(F, S)                                                                  \
    F(S, u32, verb)                                                                                \
    F(S, u32, index)                                                                               \
    F(S, u32, target) F(S, u32, peer) F(S, u32, number) F(S, text512, name) F(S, text512, text)
#define TRPI_MULTINODE_ANSWER(F, S) F(S, i32, err) F(S, text512, text)
#define TRPI_MULTINODE_MESSAGES(M, P)                                                              \
    M(P, call, TRPI_MULTINODE_CALL) M(P, answer, TRPI_MULTINODE_ANSWER)
TRP_PROTOCOL_DECLARE(trpi_multinode, TRPI_MULTINODE_MESSAGES)

/* The roles of a test, in the order of its declaration: the first one conducts. */
typedef struct trpi_multinode_plan {
    const char *const *roles;
    /* the number of nodes that must be there before the test begins */
    uint32_t roles_count, participants;
} trpi_multinode_plan;

#endif
