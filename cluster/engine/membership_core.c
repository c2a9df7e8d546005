/* membership_core.c - functions that all files of a member's engine use: random numbers, this
 * node's place in the view, actions, frames, log lines.
 *
 * Tests. tests/unit/cluster/join_test.c, leader_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/pack.h"

#define UNSENT_LOG_MS 10000u
#define ACTIONS_KEPT 32u /* room for more is given back after the step */

uint64_t
trpi_core_random(trpi_member_core *core) /* splitmix64 */
{
    core->random += 0x9e3779b97f4a7c15u;
    uint64_t z = core->random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t
trpi_core_random_below(trpi_member_core *core, uint32_t bound)
{
    trpi_assert(bound > 0);
    return (uint32_t)((trpi_core_random(core) >> 32) * bound >> 32);
}

uint32_t
trpi_core_self_index(const trpi_member_core *core)
{
    return core->gossip == NULL ? TRPI_GOSSIP_NONE
                                : trpi_gossip_find(core->gossip, core->self->key);
}

bool
trpi_core_misses(const trpi_member_core *core, const trpi_gossip_member *member)
{
    return member->unreachable != 0 ||
           (core->gossip->unreachable_count > 0 &&
            trpi_gossip_observes(core->gossip, core->self->key, member->ident->key));
}

/* ---- actions --------------------------------------------------------------------------------- */

void
trpi_core_actions_clear(trpi_member_core *core)
{
    trpi_assert_slow(core->out.actions_count <= core->out.actions_room);
    for (uint32_t i = 0; i < core->out.actions_count; i++) {
        trpi_buffer_fini(&core->out.actions[i].bytes);
    }
    core->out.actions_count = 0;
    core->out.err = TRP_OK;
    if (core->out.actions_room > ACTIONS_KEPT) { /* a joiner of a large cluster had many events */
        trpi_free(core->out.actions);
        core->out.actions = NULL;
        core->out.actions_room = 0;
    }
    trpi_assert_slow(core->out.actions_count == 0);
}

uint32_t
trpi_core_actions_begin(trpi_member_core *core)
{
    core->out.err = TRP_OK;
    return core->out.actions_count;
}

bool
trpi_core_actions_complete(trpi_member_core *core, uint32_t begin)
{
    trpi_assert_slow(begin <= core->out.actions_count);
    if (core->out.err != TRP_OK) {
        core->out.actions_count = begin;
        return false;
    }
    return true;
}

void
trpi_core_actions_lost(trpi_member_core *core)
{
    core->out.err = TRP_ENOMEM;
}

trpi_member_action *
trpi_core_action(trpi_member_core *core, trpi_member_action_kind kind)
{
    trpi_assert_slow(core->out.actions_count <= core->out.actions_room);
    if (!TRPI_ARRAY_HAS_ROOM(&core->out, actions)) {
        trpi_core_actions_lost(core); /* a send or an event; gossip repeats itself */
        return NULL;
    }
    trpi_member_action *action = &core->out.actions[core->out.actions_count++];
    action->kind = kind; /* the caller sets the fields; only those that are freed must be clean */
    memset(&action->bytes, 0, sizeof action->bytes);
    action->own_end = false;
    action->marks = false;
    return action;
}

void
trpi_core_log(trpi_member_core *core, trp_log_level level, const char *format, ...)
{
    trpi_assert_slow(level <= TRP_LOG_DEBUG);
    trpi_member_action *action =
        core->options.quiet ? NULL : trpi_core_action(core, TRPI_ACTION_LOG);
    if (action != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(action->text, sizeof action->text, format, args);
        va_end(args);
        action->level = level;
    }
}

/* Log that a frame was not sent: a member that misses a view never agrees to it. */
static void
log_unsent(trpi_member_core *core, const trpi_node_id *to, trp_err err)
{
    trpi_assert_slow(err != TRP_OK);
    char text[TRPI_ADDRESS_TEXT_BYTES], why[160];
    if (core->now.mono_ms < core->logged.unsent_ms) {
        return;
    }
    core->logged.unsent_ms = core->now.mono_ms + UNSENT_LOG_MS;
    if (err == TRP_ELIMIT) {
        (void)snprintf(why, sizeof why,
                       "the members have more than %u different roles: stop nodes that bring roles "
                       "of their own, and start them with roles that others have",
                       TRPI_GOSSIP_ROLES_MAX);
    } else if (err == TRP_EMSGSIZE) {
        (void)snprintf(why, sizeof why,
                       "it has more than %u bytes: stop nodes, or start them with shorter host "
                       "names and fewer roles",
                       TRPI_PACK_BYTES_MAX);
    } else {
        (void)snprintf(why, sizeof why, "%s", trp_strerror(err));
    }
    trpi_core_log(core, TRP_LOG_ERROR, "the view cannot be sent to %s: %s",
                  trpi_address_format(&to->address, text, sizeof text), why);
}

void
trpi_core_send(trpi_member_core *core, const trpi_node_id *to, const trpi_frame *frame,
               const trpi_seen *seen)
{
    trpi_assert_slow(frame->kind > 0 && frame->kind < TRPI_FRAME_KIND_COUNT);
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    trpi_buffer bytes = { 0 };
    trp_err err = trpi_frame_encode(frame, seen, &bytes);
    if (err != TRP_OK) {
        log_unsent(core, to, err);
        return;
    }
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_SEND);
    if (action == NULL) {
        trpi_buffer_fini(&bytes);
        return;
    }
    action->to = *to;
    action->bytes = bytes;
    action->marks = frame->kind == TRPI_FRAME_MARKS;
    core->stats.frames_out++;
    core->stats.bytes_out += bytes.count;
    trpi_assert_slow(core->out.actions_count > 0);
}

bool
trpi_seek_is_self(const trpi_member_core *core, const trpi_address *address)
{
    return trpi_address_equal(address, &core->self->id.address);
}
