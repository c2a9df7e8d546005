/* life_types.c - built-in types of the room life: messages that the runtime handles or sends for an
 * actor, and the events of lost messages.
 *
 * Tests.   tests/unit/actor/type_test.c
 */
#include "actor/life/life.h"

#include "base/built_in_types.h"

static const trp_field identity_fields[] = {
    { "id", TRP_FIELD_u64, offsetof(trp_actor_identity, id) },
    { "ref", TRP_FIELD_ref, offsetof(trp_actor_identity, ref) },
};
static const trp_field identify_fields[] = { { "id", TRP_FIELD_u64, offsetof(trp_identify, id) } };

BUILT_IN(trp_terminated_type, "troupe.terminated", sizeof(trp_terminated), trp_terminated_tag,
         TRP_TYPE_LOCAL, TRPI_TYPE_TERMINATED);
BUILT_IN(trp_receive_timeout_type, "troupe.receive-timeout", 0, trp_receive_timeout_tag,
         TRP_TYPE_LOCAL, TRPI_TYPE_RECEIVE_TIMEOUT);
BUILT_IN(trp_poison_pill_type, "troupe.poison-pill", 0, trp_poison_pill_tag,
         TRP_TYPE_POSSIBLY_HARMFUL, TRPI_TYPE_POISON_PILL);
BUILT_IN(trp_kill_type, "troupe.kill", 0, trp_kill_tag, TRP_TYPE_POSSIBLY_HARMFUL, TRPI_TYPE_KILL);
BUILT_IN_FIELDS(trp_identify_type, "troupe.identify", sizeof(trp_identify), trp_identify_tag, 0,
                identify_fields, TRPI_TYPE_IDENTIFY);
BUILT_IN_FIELDS(trp_actor_identity_type, "troupe.actor-identity", sizeof(trp_actor_identity),
                trp_actor_identity_tag, 0, identity_fields, TRPI_TYPE_ACTOR_IDENTITY);
BUILT_IN(trp_status_failure_type, "troupe.status-failure", sizeof(trp_status_failure),
         trp_status_failure_tag, 0, TRPI_TYPE_STATUS_FAILURE);
BUILT_IN(trp_dead_letter_type, "troupe.dead-letter", 0, trp_dead_letter_tag,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_DEAD_LETTER);
BUILT_IN(trp_unhandled_type, "troupe.unhandled", sizeof(trp_unhandled), trp_unhandled_tag,
         TRP_TYPE_LOCAL, TRPI_TYPE_UNHANDLED);
BUILT_IN(trp_all_dead_letters_type, "troupe.all-dead-letters", 0, trp_dead_letter_tag,
         TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_ALL_DEAD_LETTERS);
BUILT_IN(trp_suppressed_dead_letter_type, "troupe.suppressed-dead-letter", 0,
         trp_suppressed_dead_letter_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, TRPI_TYPE_SUPPRESSED);
INTERNAL(trpi_timer_type, "troupe.priv-timer", TRPI_TYPE_TIMER);
INTERNAL(trpi_continue_type, "troupe.priv-continue", TRPI_TYPE_CONTINUE);
BUILT_IN(trpi_ask_unhandled_type, "troupe.ask-unhandled", 0, 0xfff0, 0, TRPI_TYPE_ASK_UNHANDLED);
INTERNAL(trpi_withdrawn_type, "troupe.priv-withdrawn", TRPI_TYPE_WITHDRAWN);
INTERNAL(trpi_mark_type, "troupe.priv-mark", TRPI_TYPE_MARK);

static const trpi_built_in_type rows[] = {
    { &trp_terminated_type, 0 },
    { &trp_poison_pill_type, 0 },
    { &trp_kill_type, 0 },
    { &trp_identify_type, 0 },
    { &trp_receive_timeout_type, 0 },
    { &trpi_timer_type, 0 },
    { &trpi_continue_type, 0 },
    { &trpi_withdrawn_type, 0 },
    { &trpi_ask_unhandled_type, 0 },
    { &trpi_mark_type, 0 },
    { &trp_actor_identity_type, 0 },
    { &trp_status_failure_type, 0 },
    { &trp_dead_letter_type, TRPI_TYPE_ALL_DEAD_LETTERS },
    { &trp_unhandled_type, 0 },
    { &trp_all_dead_letters_type, 0 },
    { &trp_suppressed_dead_letter_type, TRPI_TYPE_ALL_DEAD_LETTERS },
};

const trpi_type_part trpi_life_types = TYPES_OF(rows);
