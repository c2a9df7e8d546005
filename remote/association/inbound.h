/* inbound.h - frames of a connection: their delivery, and the refusals of untrusted mode. */
#ifndef TRPI_REMOTE_INBOUND_H
#define TRPI_REMOTE_INBOUND_H

#include "remote/association/context.h"
#include "remote/association/effects.h"
#include "remote/wire/codec.h"

/* ---- inbound.c ---- */
trp_err trpi_inbound_frame(trpi_conn *conn, const trpi_frame *frame);
void trpi_inbound_batch_end(trpi_conn *conn);

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
