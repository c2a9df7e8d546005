/* age.h - the order of members by age, and the oldest: the host of what lives once in a cluster.
 *
 * Every node computes the host from its own view by this one function, so that nodes with equal
 * views name the same one. Order: up-number, then address, then uid; a member that never was Up has
 * no age. Only members that are Up or Leaving count: from Exiting on a member hosts nothing new.
 *
 * Tests: tests/unit/cluster/age_test.c. Sources: MEMB-24, CONTRIB-02, -08.
 */
#ifndef TRPI_CLUSTER_AGE_H
#define TRPI_CLUSTER_AGE_H

#include <troupe/cluster.h>

#include "base/address.h"

#define TRPI_AGE_NONE UINT32_MAX

typedef struct trpi_aged { /* a member, as far as its age is concerned */
    trpi_node_id id;
    uint32_t up_number; /* 0: never was Up */
    uint32_t status;    /* trp_member_status */
} trpi_aged;

/* Return whether it may be the oldest: Up or Leaving, with an up-number. */
bool trpi_age_counts(const trpi_aged *member);
/* Negative: a is older than b. 0 only for one incarnation. Of members that count. */
int trpi_age_compare(const trpi_aged *a, const trpi_aged *b);
/* Return the index of the oldest that counts; TRPI_AGE_NONE: none does. */
uint32_t trpi_oldest(const trpi_aged *members, uint32_t count);
/* Fill *ret_aged from a copy of a member. false: its address does not parse; *ret_aged is untouched
 * then. A role is the caller's question (trp_member_has_role). */
bool trpi_aged_of(const trp_member *member, trpi_aged *ret_aged);

#endif
