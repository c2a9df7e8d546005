/* faults_inner.h - what faults.c (rules) and faults_link.c (the transport) share. */
#ifndef TRPI_REMOTE_FAULTS_INNER_H
#define TRPI_REMOTE_FAULTS_INNER_H

#include <pthread.h>

#include "base/assert.h"
#include "remote/faults/fault_cut.h"
#include "remote/faults/faults.h"

/* faults.c */
/* peer: of the connection, empty while it is unknown; filled in from the peer's preamble or
 * handshake. */
trpi_fault_verdict trpi_faults_judge(trpi_faults *faults, char peer[TRPI_FAULT_PEER_BYTES],
                                     bool out, trpi_fault_shaper *shaper, uint64_t now_ns,
                                     enum trpi_fault_unit unit, const uint8_t *bytes, size_t count,
                                     const uint64_t rolls[4]);
void trpi_faults_cut(trpi_faults *faults, uint64_t bytes); /* count dropped bytes */
const trpi_transport_ops *trpi_faults_inner(const trpi_faults *faults, void **ret_arg);
void trpi_faults_attach(trpi_faults *faults, trpi_transport *transport);

/* faults_link.c; its scheme is the inner transport's */
extern const trpi_transport_ops trpi_fault_link_ops;
trpi_transport *trpi_fault_transport_inner(const trpi_transport *transport);
uint32_t trpi_fault_links_cut(trpi_transport *transport, const char *peer);

#endif
