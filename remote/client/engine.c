/* engine.c - which contact a client talks to, and when it looks for another one.
 *
 * States.  LOOKING --WELCOME--> ESTABLISHED --MOVE, or better contacts--> MOVING
 *             ^                     |   ^-----WELCOME of another one---------'|
 *             |---------silent, lost, refused-----------------------------'
 *          LOOKING --reconnect_ms--> STOPPED
 *          A round asks the known contacts, then the contact points of the start, one at a time.
 *          When all have failed there is a pause with back-off, and the next round begins: names
 *          are looked up again, for each attempt dials anew.
 * Must hold.
 *   client-engine-E1  One contact is asked at a time, and has until try_until_ms.
 *   client-engine-E2  While another one is asked the present contact stays in use (MOVING).
 *   client-engine-E3  A contact that was given up gets BYE, so that it forgets the client at once.
 *   client-engine-E4  A client follows the advice to use better contacts once; then it stays.
 * Limits.  TRPI_CLIENT_INITIAL_MAX, TRPI_CLIENT_CONTACTS_MAX, TRPI_CLIENT_ACTIONS_MAX.
 * Tests.   tests/unit/client/engine_test.c
 * Sources. CONTRIB-22, -28, -29
 */
#include "remote/client/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static void
action_add(trpi_client_engine *e, enum trpi_client_action_kind kind, const trpi_address *to)
{
    trpi_assert(e->actions_count < TRPI_CLIENT_ACTIONS_MAX);
    trpi_client_action *action = &e->actions[e->actions_count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    if (to != NULL) {
        action->to = *to;
    }
}

static void
why_note(trpi_client_engine *e, const char *why)
{
    (void)snprintf(e->why, sizeof e->why, "%s", why);
}

bool
trpi_client_has_contact(const trpi_client_engine *e)
{
    return e->state == TRPI_CLIENT_ESTABLISHED || e->state == TRPI_CLIENT_MOVING;
}

static bool
is_contact(const trpi_client_engine *e, const trpi_address *address)
{
    return trpi_client_has_contact(e) && trpi_address_equal(&e->contact, address);
}

static bool
is_tried(const trpi_client_engine *e, const trpi_address *address)
{
    return e->trying && trpi_address_equal(&e->tried, address);
}

/* ---- asking one contact after another -------------------------------------------------------- */

static void
contact_ask(trpi_client_engine *e, const trpi_address *address, uint64_t now_ms)
{
    e->trying = true; /* client-engine-E1 */
    e->tried = *address;
    e->try_until_ms = now_ms + e->config.try_ms;
    action_add(e, TRPI_CLIENT_DO_HELLO, address);
}

static const trpi_address *
contact_at(const trpi_client_engine *e, uint32_t place)
{
    return place < e->known_count ? &e->known[place] : &e->initial[place - e->known_count];
}

/* Ask the next one of the round; at its end pause, or stay with the present contact. */
static void
ask_next(trpi_client_engine *e, uint64_t now_ms)
{
    /* A client that moves asks only contacts that a receptionist has named. */
    uint32_t count = e->known_count + (e->state == TRPI_CLIENT_MOVING ? 0 : e->initial_count);
    e->trying = false;
    while (e->next < count) {
        const trpi_address *address = contact_at(e, e->next++);
        if (!is_contact(e, address)) {
            contact_ask(e, address, now_ms);
            return;
        }
    }
    e->next = 0;
    if (e->state == TRPI_CLIENT_MOVING) {
        e->state = TRPI_CLIENT_ESTABLISHED; /* client-engine-E2: nobody else takes it */
        return;
    }
    e->rounds++;
    e->pause_until_ms = UINT64_MAX; /* the tick knows a random number */
}

static void
pause_begin(trpi_client_engine *e, uint64_t random, uint64_t now_ms)
{
    uint64_t pause = e->config.pause_min_ms;
    for (uint32_t i = 1; i < e->rounds && pause < e->config.pause_max_ms; i++) {
        pause *= 2;
    }
    pause = pause < e->config.pause_max_ms ? pause : e->config.pause_max_ms;
    uint64_t half = pause / 2;
    e->pause_until_ms = now_ms + pause - half + random % (half + 1);
}

static void
contacts_look(trpi_client_engine *e, uint64_t now_ms)
{
    e->state = TRPI_CLIENT_LOOKING;
    e->looking_since_ms = now_ms;
    e->pause_until_ms = 0;
    e->rounds = 0;
    e->next = 0;
    e->redirected = false;
    ask_next(e, now_ms);
}

static void
contact_lose(trpi_client_engine *e, const char *why, uint64_t now_ms)
{
    why_note(e, why);
    action_add(e, TRPI_CLIENT_DO_LOST, &e->contact);
    action_add(e, TRPI_CLIENT_DO_BYE, &e->contact);    /* client-engine-E3 */
    if (e->state == TRPI_CLIENT_MOVING && e->trying) { /* the other one may still answer */
        e->state = TRPI_CLIENT_LOOKING;
        e->looking_since_ms = now_ms;
        e->rounds = 0;
        e->pause_until_ms = 0;
        e->redirected = true;
    } else {
        contacts_look(e, now_ms);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

trp_err
trpi_client_begin(trpi_client_engine *e, const trpi_client_config *config,
                  const trpi_address *initial, uint32_t initial_count, uint64_t first,
                  uint64_t now_ms)
{
    if (initial_count == 0 || initial_count > TRPI_CLIENT_INITIAL_MAX || config->ping_ms == 0 ||
        config->silence_ms <= config->ping_ms || config->try_ms == 0 || config->refresh_ms == 0 ||
        config->pause_min_ms == 0 || config->pause_max_ms < config->pause_min_ms) {
        return TRP_EINVAL;
    }
    memset(e, 0, sizeof *e);
    e->config = *config;
    e->initial_count = initial_count;
    for (uint32_t i = 0; i < initial_count; i++) {
        e->initial[i] = initial[(i + first % initial_count) % initial_count];
    }
    contacts_look(e, now_ms);
    return TRP_OK;
}

static void
known_set(trpi_client_engine *e, const trpi_address *contacts, uint32_t count)
{
    e->known_count = count < TRPI_CLIENT_CONTACTS_MAX ? count : TRPI_CLIENT_CONTACTS_MAX;
    memcpy(e->known, contacts, e->known_count * sizeof *contacts);
}

static bool
is_known(const trpi_client_engine *e, const trpi_address *address)
{
    bool is = false;
    for (uint32_t i = 0; i < e->known_count && !is; i++) {
        is = trpi_address_equal(&e->known[i], address);
    }
    return is;
}

static void
contact_establish(trpi_client_engine *e, const trpi_address *from, uint64_t now_ms)
{
    if (trpi_client_has_contact(e)) {
        action_add(e, TRPI_CLIENT_DO_BYE, &e->contact); /* client-engine-E3 */
    }
    e->contact = *from;
    e->state = TRPI_CLIENT_ESTABLISHED;
    e->trying = false;
    e->next = 0;
    e->rounds = 0;
    e->pause_until_ms = 0;
    e->heard_ms = e->pinged_ms = e->refreshed_ms = now_ms;
    action_add(e, TRPI_CLIENT_DO_SWITCH, from);
}

void
trpi_client_welcome(trpi_client_engine *e, const trpi_address *from, const trpi_address *contacts,
                    uint32_t count, uint64_t now_ms)
{
    if (is_contact(e, from)) {
        e->heard_ms = now_ms;
        known_set(e, contacts, count);
        return;
    }
    if (!is_tried(e, from)) {
        if (e->state != TRPI_CLIENT_STOPPED) {
            action_add(e, TRPI_CLIENT_DO_BYE, from); /* it answers late */
        }
        return;
    }
    known_set(e, contacts, count);
    contact_establish(e, from, now_ms);
    if (!e->redirected && e->known_count > 0 && !is_known(e, from)) {
        e->redirected = true; /* client-engine-E4 */
        e->state = TRPI_CLIENT_MOVING;
        ask_next(e, now_ms);
    }
}

void
trpi_client_heard(trpi_client_engine *e, const trpi_address *from, uint64_t now_ms)
{
    if (is_contact(e, from)) {
        e->heard_ms = now_ms;
    }
}

void
trpi_client_move(trpi_client_engine *e, const trpi_address *from, const trpi_address *contacts,
                 uint32_t count, uint64_t now_ms)
{
    if (!is_contact(e, from)) {
        return;
    }
    e->heard_ms = now_ms;
    known_set(e, contacts, count);
    e->redirected = true;
    if (e->known_count > 0) {
        e->state = TRPI_CLIENT_MOVING;
        e->next = 0;
        ask_next(e, now_ms);
    }
}

void
trpi_client_failed(trpi_client_engine *e, const trpi_address *from, const char *why,
                   uint64_t now_ms)
{
    if (is_tried(e, from)) {
        why_note(e, why);
        ask_next(e, now_ms);
    } else if (is_contact(e, from)) {
        contact_lose(e, why, now_ms);
    }
}

void
trpi_client_elsewhere(trpi_client_engine *e, const trpi_address *from, const trpi_address *address,
                      uint64_t now_ms)
{
    if (is_tried(e, from) && !trpi_address_equal(from, address)) {
        contact_ask(e, address, now_ms);
    }
}

static void
tick_contact(trpi_client_engine *e, uint64_t now_ms)
{
    if (now_ms - e->heard_ms >= e->config.silence_ms) {
        contact_lose(e, "the contact does not answer", now_ms);
        return;
    }
    if (now_ms - e->pinged_ms >= e->config.ping_ms) {
        e->pinged_ms = now_ms;
        action_add(e, TRPI_CLIENT_DO_PING, &e->contact);
    }
    if (now_ms - e->refreshed_ms >= e->config.refresh_ms) {
        e->refreshed_ms = now_ms;
        action_add(e, TRPI_CLIENT_DO_HELLO, &e->contact);
    }
}

void
trpi_client_tick(trpi_client_engine *e, uint64_t random, uint64_t now_ms)
{
    if (e->trying && now_ms >= e->try_until_ms) {
        why_note(e, "no answer in time");
        ask_next(e, now_ms);
    }
    if (trpi_client_has_contact(e)) {
        tick_contact(e, now_ms);
        return;
    }
    if (e->state != TRPI_CLIENT_LOOKING) {
        return;
    }
    if (e->config.reconnect_ms != 0 && now_ms - e->looking_since_ms >= e->config.reconnect_ms) {
        e->state = TRPI_CLIENT_STOPPED;
        e->trying = false;
        action_add(e, TRPI_CLIENT_DO_STOP, NULL);
    } else if (e->pause_until_ms == UINT64_MAX) {
        pause_begin(e, random, now_ms);
    } else if (e->pause_until_ms != 0 && now_ms >= e->pause_until_ms) {
        e->pause_until_ms = 0;
        ask_next(e, now_ms);
    }
}

static uint64_t
ms_sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t
trpi_client_due_ms(const trpi_client_engine *e, uint64_t now_ms)
{
    const trpi_client_config *c = &e->config;
    uint64_t at = e->trying ? e->try_until_ms : UINT64_MAX;
    if (trpi_client_has_contact(e)) {
        at = ms_sooner(at, e->heard_ms + c->silence_ms);
        at = ms_sooner(at, e->pinged_ms + c->ping_ms);
        at = ms_sooner(at, e->refreshed_ms + c->refresh_ms);
    } else if (e->state == TRPI_CLIENT_LOOKING) {
        at = e->pause_until_ms == UINT64_MAX ? now_ms : at;
        at = e->pause_until_ms != 0 ? ms_sooner(at, e->pause_until_ms) : at;
        at = c->reconnect_ms != 0 ? ms_sooner(at, e->looking_since_ms + c->reconnect_ms) : at;
    }
    return at == UINT64_MAX ? at : at > now_ms ? at - now_ms : 0;
}

bool
trpi_client_next(trpi_client_engine *e, trpi_client_action *ret_action)
{
    if (e->actions_count == 0) {
        return false;
    }
    *ret_action = e->actions[0];
    e->actions_count--;
    memmove(e->actions, e->actions + 1, e->actions_count * sizeof *e->actions);
    return true;
}

const char *
trpi_client_check(const trpi_client_engine *e)
{
    if (e->known_count > TRPI_CLIENT_CONTACTS_MAX || e->initial_count > TRPI_CLIENT_INITIAL_MAX) {
        return "client-engine: more contacts than there are places";
    }
    if (e->state == TRPI_CLIENT_ESTABLISHED && e->trying) {
        return "client-engine-E2: asks another one, and is not moving";
    }
    if (e->state == TRPI_CLIENT_MOVING && !e->trying) {
        return "client-engine-E2: moves, and asks nobody";
    }
    if (e->state == TRPI_CLIENT_LOOKING && !e->trying && e->pause_until_ms == 0) {
        return "client-engine-E1: looks, and neither asks nor waits";
    }
    if (e->state == TRPI_CLIENT_STOPPED && e->trying) {
        return "client-engine: is stopped, and asks";
    }
    return NULL;
}
