/* topic_envelope.c - the type of messages between mediators (pattern.h).
 *
 * Tests.   tests/unit/remote/topic_envelope_test.c
 */
#include "pattern/pattern.h"

#include <string.h>

#include "actor/actor.h"

/* A mediator tells any message that it gets: in untrusted mode no peer may make one. */
trp_type trpi_topic_envelope_type = { .name = "pubsub.envelope",
                                      .tag = 1,
                                      .flags = TRP_TYPE_VARIABLE | TRP_TYPE_POSSIBLY_HARMFUL };

void
trpi_topic_envelope_show(const trp_type **type, const void **payload, size_t *bytes)
{
    trpi_topic_envelope head;
    if (*type != &trpi_topic_envelope_type || *bytes < sizeof head) {
        return;
    }
    memcpy(&head, *payload, sizeof head);
    size_t skip = trpi_topic_envelope_bytes(head.head_bytes);
    const trp_type *carried = head.type == 0 ? NULL : trpi_type_get(head.type);
    if (carried != NULL && *bytes >= skip) {
        *type = carried;
        *payload = (const char *)*payload + skip;
        *bytes -= skip;
    }
}
