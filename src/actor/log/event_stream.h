/* event_stream.h - subscriptions to events, and publishing. */
#ifndef TRPI_ACTOR_LOG_EVENT_STREAM_H
#define TRPI_ACTOR_LOG_EVENT_STREAM_H

#include "actor/kernel/run.h"
#include "actor/log/log.h"

struct trpi_event_stream;

trp_err trpi_event_stream_new(struct trpi_event_stream **ret_stream);
void trpi_event_stream_free(struct trpi_event_stream *stream);
/* Publish an event. Returns the number of subscribers with a limit, those that it was dropped for
 * included. */
uint32_t trpi_event_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes);
/* Subscribe; idempotent. limit: NULL, or one that outlives the stream. Errors: as
 * trp_system_subscribe. */
trp_err trpi_event_subscribe(trp_system *system, trp_ref subscriber, const trp_type *type,
                             trpi_event_limit *limit);
void trpi_event_unsubscribe(trp_system *system, trp_ref subscriber, const trp_type *type);
void trpi_event_subscriber_ended(trp_system *system, trp_ref subscriber);
bool trpi_event_is_wanted(trp_ctx *ctx, const trp_type *type);

#endif
