/* bridge_voice.h - shared by the two files of a voice. */
#ifndef TRPI_NODE_BRIDGE_VOICE_H
#define TRPI_NODE_BRIDGE_VOICE_H

#include <troupe/pubsub.h>
#include <troupe/sharding.h>

#include "cluster/node/bridge.h"

/* bridge_voice.c: refuse a request for an error of the library; what: the path or topic. */
void trpi_bridge_refuse_err(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                            trp_err err, const char *what);

/* bridge_asks.c. The answer of each comes as a line, now or later. */
void trpi_bridge_ask_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                        const trpi_bridge_message *m);
void trpi_bridge_watch_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request);
void trpi_bridge_unwatch_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request);
void trpi_bridge_subscribe_do(trp_ctx *ctx, trpi_bridge_voice *v,
                              const trpi_bridge_request *request, bool ends);
void trpi_bridge_publish_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                            const trpi_bridge_message *m);
void trpi_bridge_on_terminated(trp_ctx *ctx, trpi_bridge_voice *v,
                               const trp_terminated *terminated);
void trpi_bridge_on_subscribe_ack(trp_ctx *ctx, trpi_bridge_voice *v, const trp_subscribe_ack *done,
                                  bool ends);
/* The actor ends: refuse what waits for an answer, forget what it watches. */
void trpi_bridge_waitings_refuse(trp_ctx *ctx, trpi_bridge_voice *v);

/* Is it "/cluster/TYPE/ID"? Read it; else the request is refused. */
bool trpi_bridge_is_entity(const char *to);
bool trpi_bridge_entity_parse(trp_ctx *ctx, trpi_bridge_voice *v,
                              const trpi_bridge_request *request, trp_entity *ret_entity);
/* Run fn, as part of the request's trace if it has one. */
trp_err trpi_bridge_in_trace(trp_ctx *ctx, const trpi_bridge_request *request,
                             trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg);

#endif
