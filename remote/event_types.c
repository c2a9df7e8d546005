/* event_types.c - built-in types of remoting: the events of associations (troupe/remoting.h).
 *
 * Tests.   tests/unit/actor/type_test.c, tests/unit/remote/events_test.c
 */
#include "remote/remote.h"
#include "remote/wire/serializer.h"

#include <troupe/remoting.h>

#include "base/built_in_types.h"

enum { /* base/built_in_types.h */
       REMOTING_EVENT = 24,
       ASSOCIATION_EVENT = 25,
       ASSOCIATED = 26,
       DISASSOCIATED = 27,
       ASSOCIATION_ERROR = 28,
       QUARANTINED = 29,
       REMOTING_LISTEN = 30,
       REMOTING_SHUTDOWN = 31,
       REMOTING_ERROR = 58,
       SELF_QUARANTINED = 59
};

#define REMOTING(symbol, text, number)                                                             \
    BUILT_IN(symbol, text, sizeof(trp_remoting_event), trp_remoting_tag, TRP_TYPE_LOCAL, number)

REMOTING(trp_remoting_event_type, "troupe.remoting-event", REMOTING_EVENT);
REMOTING(trp_association_event_type, "troupe.association-event", ASSOCIATION_EVENT);
REMOTING(trp_associated_type, "troupe.associated", ASSOCIATED);
REMOTING(trp_disassociated_type, "troupe.disassociated", DISASSOCIATED);
REMOTING(trp_association_error_type, "troupe.association-error", ASSOCIATION_ERROR);
REMOTING(trp_quarantined_type, "troupe.quarantined", QUARANTINED);
REMOTING(trp_remoting_listen_type, "troupe.remoting-listen", REMOTING_LISTEN);
REMOTING(trp_remoting_shutdown_type, "troupe.remoting-shutdown", REMOTING_SHUTDOWN);
REMOTING(trp_remoting_error_type, "troupe.remoting-error", REMOTING_ERROR);
REMOTING(trp_self_quarantined_type, "troupe.self-quarantined", SELF_QUARANTINED);

static const trpi_built_in_type rows[] = {
    { &trp_remoting_event_type, 0 },
    { &trp_association_event_type, REMOTING_EVENT },
    { &trp_associated_type, ASSOCIATION_EVENT },
    { &trp_disassociated_type, ASSOCIATION_EVENT },
    { &trp_association_error_type, ASSOCIATION_EVENT },
    { &trp_quarantined_type, REMOTING_EVENT },
    { &trp_remoting_listen_type, REMOTING_EVENT },
    { &trp_remoting_shutdown_type, REMOTING_EVENT },
    { &trp_self_quarantined_type, REMOTING_EVENT },
    { &trp_remoting_error_type, REMOTING_EVENT },
};

const trpi_type_part trpi_remote_types = TYPES_OF(rows);

/* Before main(). It stands here since every program that is linked statically has this file: stores
 * need the serializers also where nothing is remote. */
__attribute__((constructor)) static void
round_trip_offer(void)
{
    trpi_remote_round_trip_offer();
}
