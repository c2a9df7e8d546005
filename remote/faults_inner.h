/* faults_inner.h - what faults.c (rules) and faults_link.c (the transport) share. */
#ifndef TRPI_REMOTE_FAULTS_INNER_H
#define TRPI_REMOTE_FAULTS_INNER_H

#include <pthread.h>

#include "base/address.h"
#include "base/assert.h"
#include "remote/fault_cut.h"
#include "remote/faults.h"

#define TRPI_FAULT_PEER_BYTES (TRPI_HOST_BYTES_MAX + 8) /* "host:port" */

/* faults.c */
void trpi_fault_peer_format(char out[TRPI_FAULT_PEER_BYTES], const char *host, uint16_t port);
/* peer: of the connection, empty when it is not known; it becomes known by what the peer says. */
trpi_fault_verdict trpi_faults_judge(trpi_faults *faults, char peer[TRPI_FAULT_PEER_BYTES],
                                     bool out, trpi_fault_gate *gate, uint64_t now_ns,
                                     enum trpi_fault_unit unit, const uint8_t *bytes, size_t count,
                                     const uint64_t rolls[4]);
void trpi_faults_cut(trpi_faults *faults, uint64_t bytes); /* count them */
const trpi_transport_ops *trpi_faults_inner(const trpi_faults *faults, void **ret_arg);
void trpi_faults_attach(trpi_faults *faults, trpi_transport *transport);

/* faults_link.c; its scheme is the inner transport's */
extern const trpi_transport_ops trpi_fault_link_ops;
uint32_t trpi_fault_links_cut(trpi_transport *transport, const char *peer);

#endif
