/* topic_envelope.c - the type of messages between mediators (pattern.h).
 *
 * Tests.   tests/unit/remote/topic_envelope_test.c
 */
#include "pattern/pattern.h"

/* A mediator tells any message that it gets: in untrusted mode no peer may make one. */
trp_type trpi_topic_envelope_type = { .name = "pubsub.envelope",
                                      .tag = 1,
                                      .flags = TRP_TYPE_VARIABLE | TRP_TYPE_POSSIBLY_HARMFUL };
