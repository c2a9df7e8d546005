/* events.c - what happened to links: one log line and one event each, told when no lock is held.
 *
 * Why.     Changes are found out under a peer's lock; loggers and subscribers must not be called
 *          there. So a change is an event in the trpi_deferred of the holder of the lock.
 * Must hold.
 *   remote-event-E1  Notes are told in the order in which they were made.
 *   remote-event-E2  Without memory a note is lost, the change is not.
 * Tests.   tests/unit/remote/events_test.c
 * Sources. REMOTE-48 to -52, ES-06, LOG-15.
 */
#include "remote/association/effects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "remote/association/peer.h"

_Static_assert(TRP_REMOTING_ADDRESS_BYTES >= TRPI_ADDRESS_TEXT_BYTES, "any address fits");

trpi_link_event *
trpi_link_event_new(trpi_peer *peer, const trp_type *type, trpi_deferred *deferred)
{
    trpi_link_event *note = trpi_alloc(sizeof *note);
    if (note == NULL) {
        return NULL; /* remote-event-E2 */
    }
    trpi_link_event **end = &deferred->events;
    while (*end != NULL) { /* a handful */
        end = &(*end)->next;
    }
    *end = note; /* remote-event-E1 */
    note->type = type;
    if (type != NULL) {
        (void)trpi_address_format(trpi_peer_address(peer), note->event.remote,
                                  sizeof note->event.remote);
    }
    return note;
}

/* The level that the configuration gives to a line of `level`; false: it is not wanted. */
static bool
level_of(const trpi_remote *remote, trp_log_level level, trp_log_level *ret_level)
{
    *ret_level = remote->options.lifecycle_log == TRPI_LIFECYCLE_EACH
                     ? level
                     : (trp_log_level)remote->options.lifecycle_log;
    return remote->options.lifecycle_log != TRPI_LIFECYCLE_OFF;
}

void
trpi_lifecycle_log(trpi_remote *remote, trp_log_level level, const char *text)
{
    if (level_of(remote, level, &level)) {
        trpi_log(remote->system, level, "remote", "%s", text);
    }
}

void
trpi_remoting_publish(trpi_remote *remote, const trp_type *type, trp_remoting_event *event)
{
    (void)trpi_address_format(&remote->address, event->local, sizeof event->local);
    trp_system_publish(remote->system, type, event, sizeof *event);
}

void
trpi_link_events_publish(trpi_remote *remote, trpi_link_event *notes)
{
    while (notes != NULL) {
        trpi_link_event *note = notes;
        notes = note->next;
        if (note->text[0] != '\0') {
            trpi_lifecycle_log(remote, note->level, note->text);
        }
        if (note->type != NULL) {
            trpi_remoting_publish(remote, note->type, &note->event);
        }
        trpi_free(note);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void
message_log(trpi_remote *remote, const trpi_peer *peer, bool sent, const trp_type *type,
            const trpi_message *message)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    char slot[40];
    (void)snprintf(slot, sizeof slot, "slot %" PRIu32, message->to_slot);
    trpi_log(remote->system, TRP_LOG_DEBUG, "remote",
             "message %s peer=%s to=\"%.*s\" type=%s bytes=%zu", sent ? "sent" : "received",
             trpi_address_format(trpi_peer_address(peer), address, sizeof address),
             message->path != NULL ? (int)message->path_bytes : (int)strlen(slot),
             message->path != NULL ? message->path : slot, type != NULL ? type->name : "?",
             message->payload_bytes);
}

/* The largest of each type: logged when one is larger than the last that was, by 10 %. */
static void
size_log(trpi_remote *remote, const trp_type *type, size_t bytes)
{
    if (bytes > UINT32_MAX) {
        bytes = UINT32_MAX;
    }
    _Atomic uint32_t *largest = &remote->largest[type->number];
    uint32_t before = atomic_load_explicit(largest, memory_order_relaxed);
    /* Relaxed: of two threads with a new largest at once one may log for both. */
    while (bytes > (uint64_t)before + before / 10) {
        if (atomic_compare_exchange_weak_explicit(largest, &before, (uint32_t)bytes,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            trpi_log(remote->system, TRP_LOG_INFO, "remote",
                     "largest message so far type=%s bytes=%zu limit=%" PRIu32, type->name, bytes,
                     remote->options.log_size_exceeding);
            return;
        }
    }
}

void
trpi_message_trace(trpi_remote *remote, const trpi_peer *peer, bool sent, const trp_type *type,
                   const trpi_message *message)
{
    const trpi_remote_options *o = &remote->options;
    if (sent ? o->log_sent : o->log_received) {
        message_log(remote, peer, sent, type, message);
    }
    if (sent && o->log_size_exceeding != 0 && message->payload_bytes > o->log_size_exceeding) {
        size_log(remote, type, message->payload_bytes);
    }
}
