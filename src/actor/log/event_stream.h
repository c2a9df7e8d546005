/* event_stream.h - who subscribes to events, and telling them. */
#ifndef TRPI_ACTOR_LOG_EVENT_STREAM_H
#define TRPI_ACTOR_LOG_EVENT_STREAM_H

#include "actor/kernel/run.h"
#include "actor/log/log.h"

struct trpi_event_stream;

trp_err trpi_event_stream_new(struct trpi_event_stream **ret_stream);
void trpi_event_stream_free(struct trpi_event_stream *stream);
/* Returns how many subscribers with a limit there are, dropped ones included. */
uint32_t trpi_event_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes);
/* Errors: as trp_system_subscribe. limit: NULL, or what outlives the stream. Twice is once. */
trp_err trpi_event_subscribe(trp_system *system, trp_ref subscriber, const trp_type *type,
                             trpi_event_limit *limit);
void trpi_event_unsubscribe(trp_system *system, trp_ref subscriber, const trp_type *type);
void trpi_event_subscriber_ended(trp_system *system, trp_ref subscriber);
bool trpi_event_is_wanted(trp_ctx *ctx, const trp_type *type);

#endif
