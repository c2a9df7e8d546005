/* inbound.h - frames of a connection: their delivery, and the refusals of untrusted mode. */
#ifndef TRPI_REMOTE_INBOUND_H
#define TRPI_REMOTE_INBOUND_H

#include "remote/association/context.h"
#include "remote/association/effects.h"
#include "remote/wire/codec.h"

/* ---- inbound.c ---- */
trp_err trpi_inbound_frame(trpi_conn *conn, const trpi_frame *frame);
/* When the next bytes of a control lane were read. */
void trpi_inbound_arrived(trpi_conn *conn, uint64_t arrived_ns);
void trpi_inbound_batch_end(trpi_conn *conn);
/* Count and log a frame or payload that makes no sense. wire_id: of its type, 0: not known. */
void trpi_inbound_decode_error(trpi_conn *conn, const char *what, uint64_t wire_id);

/* ---- traced.c ---- */
/* Read the trace section of a message that has one. */
trpi_traced trpi_inbound_traced(const trpi_conn *conn, const trpi_message *message);

/* ---- inbound_tell.c: within a batch ---- */
/* Tell one message to its receiver, or to the dead letters when that is full or type is NULL. */
void trpi_inbound_message(trpi_conn *conn, const trpi_message *to, const trp_type *type,
                          const void *payload, size_t bytes);
/* Tell the messages of a MANY frame whose payloads need no decoding: in runs. Each run is counted
 * for its receiver as one read is: what it adds to an empty mail is not. Return their number;
 * rest: what was not split off, because the frame is damaged. */
uint64_t trpi_inbound_many_plain(trpi_conn *conn, const trp_type *type, const trpi_message *common,
                                 trpi_message *rest);
/* Are the messages of a frame envelopes, which may be told to entities at once? */
bool trpi_inbound_are_entities(const trpi_conn *conn, const trp_type *type,
                               const trpi_message *common);
/* Tell some messages of a MANY frame to their entities, take these off rest, and count them. *most:
 * how many are looked at, at first TRPI_ARRIVALS_MAX. scratch: for payloads that are decoded.
 * false: none could be told; the next one is to be told as a message. */
bool trpi_inbound_entities_take(trpi_conn *conn, const trpi_message *common,
                                const trpi_node_map *map, trpi_buffer *scratch, trpi_message *rest,
                                uint32_t *most);

/* ---- untrusted.c ---- */
trp_err trpi_untrusted_begin(trpi_remote *remote); /* Errors: TRP_ENOMEM */
void trpi_untrusted_end(trpi_remote *remote);
/* Is this message not taken here? Then it was counted and logged. path: of SELECT. */
bool trpi_untrusted_refuses(trpi_conn *conn, uint8_t kind, const trp_type *type, const char *path);
/* An order to make an actor here: is its behaviour not allowed? Counts and logs then. */
bool trpi_deploy_refuses(trpi_conn *conn, const char *behaviour, const char *path);
bool trpi_untrusted_refuses_channel(trpi_conn *conn, enum trpi_control_channel channel);
#define TRPI_TRUSTED_CLUSTER "/system/cluster" /* among the trusted paths: gossip is taken */
bool trpi_untrusted_takes_clusters(const trpi_remote *remote);
/* Is a message refused whose sender is on a third node? */
bool trpi_untrusted_refuses_sender(trpi_conn *conn, bool third);
bool trpi_untrusted_drop(trpi_conn *conn, const char *what, const char *name); /* true */

#endif
