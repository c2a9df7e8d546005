/* entity_envelope.c - the type of messages for entities of other nodes (pattern.h).
 *
 * Tests.   tests/unit/remote/envelope_test.c
 */
#include "pattern/pattern.h"

/* A gate tells any message that it gets: in untrusted mode no peer may make one. */
trp_type trpi_entity_envelope_type = { .name = "sharding.envelope",
                                       .tag = 2,
                                       .flags = TRP_TYPE_VARIABLE | TRP_TYPE_POSSIBLY_HARMFUL };
