/* doctor_look.h - gathers the doctor's facts from a node, its process and its host. */
#ifndef TRPI_NODE_DOCTOR_LOOK_H
#define TRPI_NODE_DOCTOR_LOOK_H

#include "cluster/node/control_member.h"
#include "cluster/node/doctor.h"
#include "cluster/node/node_private.h"

/* The lowest figures, which tests replace: a full disk, another clock, a low limit. */
typedef struct trpi_doctor_probes {
    /* Fill in the figures of the file system of ret->path; false: they are not known. */
    bool (*disk)(trpi_doctor_disk *ret);
    /* Read a file of /proc or /sys, with a NUL; false: there is none. */
    bool (*file)(const char *path, char *buffer, size_t bytes);
    int64_t (*descriptors)(void);       /* that are open; negative: not known */
    int64_t (*descriptors_limit)(void); /* negative: none */
    bool (*resolves)(const char *host); /* has the name an address? May wait for the resolver. */
    int64_t (*wall_ms)(trp_node *node);
    const char *(*version)(void); /* of Troupe */
} trpi_doctor_probes;
extern const trpi_doctor_probes trpi_doctor_probes_real;

/* A look at the threads and mailboxes, which needs two samples. NULL: no memory. */
struct trp_live *trpi_doctor_live_begin(trp_node *node);
void trpi_doctor_live_end(struct trp_live *live, trp_node *node, trpi_doctor_facts *facts);
/* doctor_waiting.c: the asks that wait now. NULL: none, or no memory. */
struct trpi_doctor_waits *trpi_doctor_waits_begin(trp_node *node);
/* Add those that still wait to asks. Takes begun. *ret_cut becomes true: there are more. */
void trpi_doctor_waits_end(struct trpi_doctor_waits *begun, trp_node *node, trpi_doctor_asks *asks,
                           bool *ret_cut);
/* For the doctor of another node: tell those that may be in a cycle over both, and whether that is
 * cut. Drops asks. false: no memory. */
bool trpi_doctor_asks_tell(const char *self, trpi_doctor_asks *asks, bool cut, cJSON *reply);
/* Take what a member has told of its own actors, as far as these have waited for since_ms; without
 * memory nothing. */
void trpi_doctor_asks_told(const cJSON *reply, const char *member, uint64_t since_ms,
                           trpi_doctor_asks *asks, bool *ret_cut);
/* Fill in what this node knows without asking others; members_count members have room. false: no
 * memory. */
bool trpi_doctor_look(trp_node *node, const trpi_view *view, trpi_doctor_facts *facts,
                      trpi_doctor_member *members);
/* doctor_host.c: fill in the facts of the process and its host. */
void trpi_doctor_look_at_host(trp_node *node, trpi_doctor_facts *facts);
/* doctor_others.c: the keys that decide together, of this node. false: no memory. */
bool trpi_doctor_keys_add(trp_node *node, cJSON *reply);
/* Ask the reachable members, and dial all. false: refused, or no memory. */
bool trpi_doctor_ask_others(trp_node *node, trpi_call *call, const trpi_view *view,
                            trpi_doctor_facts *facts, trpi_doctor_member *members);

#endif
