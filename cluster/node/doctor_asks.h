/* doctor_asks.h - asks that wait for one another in a cycle. Pure. */
#ifndef TRPI_NODE_DOCTOR_ASKS_H
#define TRPI_NODE_DOCTOR_ASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An actor's key is its ref as text without the path, "ADDRESS/#UID@UID": uid of the actor, uid of
 * the node. A ref holds that here and on any other node; the path is often known to its own node
 * only. */
typedef struct trpi_doctor_ask {
    char *name;      /* of from: address and path, for readers */
    char *from, *to; /* keys: from waits for the answer of to */
    uint64_t waited_ms;
    uint32_t from_id, to_id;
} trpi_doctor_ask;

typedef struct trpi_doctor_asks { /* all-zero is empty */
    trpi_doctor_ask *list;
    size_t count, room;
} trpi_doctor_asks;

#define TRPI_DOCTOR_ASKS_MAX 4096u    /* of a node; more are not looked at */
#define TRPI_DOCTOR_ASKS_TOLD_MAX 64u /* that a member tells the doctor of another one */

/* Add an ask, and copy the texts. false: no memory. */
bool trpi_doctor_asks_add(trpi_doctor_asks *asks, const char *name, const char *from,
                          const char *to, uint64_t waited_ms);
void trpi_doctor_asks_fini(trpi_doctor_asks *asks);
/* Drop the asks that are in no cycle, since nothing keeps what they wait for from answering: it
 * waits for nobody. Actors of other nodes than `self` may wait; NULL: all are known. false: no
 * memory, nothing is dropped. */
bool trpi_doctor_asks_trim(trpi_doctor_asks *asks, const char *self);
/* Keep the max asks that have waited longest. false: some were dropped. */
bool trpi_doctor_asks_longest(trpi_doctor_asks *asks, size_t max);
/* Count cycles that share no actor, and write the first, from its actor that has waited longest:
 * "/user/a has waited 2.0 s for /user/b, which has waited 1.5 s for /user/a". With actors of other
 * nodes than `self` all have their addresses; what does not fit is ", and N more". Cycles
 * that share actors count as one. Drops all asks; without memory there is none. */
uint32_t trpi_doctor_asks_cycles(trpi_doctor_asks *asks, const char *self, char *text,
                                 size_t bytes);

#endif
