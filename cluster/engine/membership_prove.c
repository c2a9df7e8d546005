/* membership_prove.c - a joiner is dialled back before it is let in (MEMB-04).
 *
 * Why.     A joiner dials its contact, and heartbeats then flow on that connection, so a node that
 *          cannot be dialled (a firewall, a wrong remote.hostname) would be Up and healthy, and
 *          each ordinary message to it would wait for ever.
 * Shape.   JOIN --> asks list --REACH--> shell dials the advertised address --REACHED--> let in,
 *          or INIT_JOIN_NACK(refused, why): the joiner logs why and asks again, with back-off.
 * Must hold.
 *   membership-prove-J12 Where options.dial_back is on, a joiner is let in by this contact only
 *       after the very incarnation has answered at the address that it advertises, within REACH_MS.
 * Limits.  ASKS_MAX joiners that are being dialled; one too many asks again.
 * Tests.   tests/unit/cluster/join_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

#define REACH_MS 5000u
#define ASKS_MAX 2048u
#define REFUSED_LOG_MS 10000u

static trpi_prove *
find_dial_back(trpi_member_core *core, uint64_t key)
{
    trpi_assert_slow(core->proving.proves_count <= ASKS_MAX);
    for (uint32_t i = 0; i < core->proving.proves_count; i++) {
        if (core->proving.proves[i].ident->key == key) {
            return &core->proving.proves[i];
        }
    }
    return NULL;
}

static void
forget_dial_back(trpi_member_core *core, trpi_prove *prove)
{
    trpi_assert_slow(prove >= core->proving.proves &&
                     prove < core->proving.proves + core->proving.proves_count);
    trpi_ident_unref(prove->ident);
    *prove = core->proving.proves[--core->proving.proves_count];
    if (core->proving.proves_count == 0) {
        trpi_free(core->proving.proves);
        core->proving.proves = NULL;
        core->proving.proves_room = 0;
    }
    trpi_assert_slow(core->proving.proves_count <= core->proving.proves_room);
}

void
trpi_prove_forget_all(trpi_member_core *core)
{
    trpi_assert_slow(core->proving.proves_count <= core->proving.proves_room);
    while (core->proving.proves_count > 0) {
        forget_dial_back(core, &core->proving.proves[0]);
    }
    trpi_assert_slow(core->proving.proves_count == 0);
}

void
trpi_prove_joiner(trpi_member_core *core, trpi_ident *ident)
{
    trpi_assert_slow(core->options.dial_back);
    if (find_dial_back(core, ident->key) != NULL ||
        TRPI_ARRAY_RESERVE(&core->proving, proves, 1, ASKS_MAX) != TRP_OK) {
        return; /* it is being dialled; or it asks again */
    }
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_REACH);
    if (action == NULL) {
        return; /* likewise */
    }
    action->to = ident->id;
    core->proving.proves[core->proving.proves_count++] =
        (trpi_prove){ trpi_ident_ref(ident), core->now.mono_ms + REACH_MS };
    trpi_assert_slow(core->proving.proves_count <= ASKS_MAX);
}

static void
refuse_joiner(trpi_member_core *core, const trpi_node_id *id, const char *why)
{
    char text[TRPI_ADDRESS_TEXT_BYTES], reason[TRPI_FRAME_REASON_BYTES];
    (void)snprintf(reason, sizeof reason, "it cannot be dialled back at %.60s:%u: %.80s",
                   id->address.host, id->address.port, why[0] != '\0' ? why : "no reason is known");
    trpi_contact_refuse(core, id, reason);
    if (core->now.mono_ms >= core->logged.refused_ms) {
        trpi_core_log(core, TRP_LOG_WARNING, "%s is not let in: %s",
                      trpi_address_format(&id->address, text, sizeof text), reason);
        core->logged.refused_ms = core->now.mono_ms + REFUSED_LOG_MS;
    }
}

void
trpi_prove_reached(trpi_member_core *core, const trpi_node_id *id, const char *why)
{
    trpi_prove *prove = find_dial_back(core, trpi_ident_key(id));
    if (prove == NULL) {
        return; /* it was too late */
    }
    trpi_ident *ident = trpi_ident_ref(prove->ident);
    forget_dial_back(core, prove);
    if (why != NULL) {
        refuse_joiner(core, id, why);
    } else {
        trpi_contact_take(core, ident);
    }
    trpi_ident_unref(ident);
}

void
trpi_prove_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    for (uint32_t i = core->proving.proves_count; i-- > 0;) {
        if (core->now.mono_ms >= core->proving.proves[i].until_ms) {
            char why[64];
            (void)snprintf(why, sizeof why, "no answer in %u s", REACH_MS / 1000);
            refuse_joiner(core, &core->proving.proves[i].ident->id, why);
            forget_dial_back(core, &core->proving.proves[i]);
        }
    }
}

uint64_t
trpi_prove_wake_ms(const trpi_member_core *core)
{
    trpi_assert_slow(core->proving.proves_count <= core->proving.proves_room);
    uint64_t wake = TRPI_NEVER;
    for (uint32_t i = 0; i < core->proving.proves_count; i++) {
        wake = core->proving.proves[i].until_ms < wake ? core->proving.proves[i].until_ms : wake;
    }
    return wake;
}
