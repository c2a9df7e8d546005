/* association.c - see the header.
 *
 * States.            WANT                   DIALLED/RESPONSE
 *           IDLE ----------> HANDSHAKING -------------------> ACTIVE
 *            ^  \               | LOST, REFUSED, deadline       | LOST, GOODBYE
 *            |   \ REQUEST      v                               |
 *            |    `--------> (ACTIVE)      GATED <--------------'
 *            '--- TICK, not wanted --------'  '-- TICK, wanted --> HANDSHAKING
 *           QUARANTINE from anywhere -> QUARANTINED(uid) -- another uid shakes hands --> ACTIVE
 *         A REQUEST of an incarnation that is not barred makes ACTIVE from any state.
 * Must hold.
 *   association-A1  A barred uid never becomes active again, as long as this machine stands: its
 *       peer is forgotten 24 hours after, 10 minutes if it said goodbye (tick-T4).
 *   association-A2  A uid that is replaced is barred in the same step and its end is told exactly
 *       once.
 *   association-A5  An incarnation that is connected is replaced only when it owes an answer for
 *       ask_ms in which this node did not stand still; a caller with its address and another uid is
 *       refused until then.
 *   association-A6  An incarnation that is not connected, and to whose address no dial has failed
 *       since it was, is dialled before a caller with another uid replaces it: the incarnation that
 *       answers is the present one. Where this node may not dial, the caller is believed.
 *   association-A3  Between two dials that failed at least half of backoff_min passes, at most
 *       backoff_max.
 *   association-A4  HANDSHAKING lasts at most handshake_timeout.
 * Limits. TRPI_ASSOC_BARRED_MAX barred incarnations, the oldest is forgotten first: an incarnation
 *         that old would have to come back after 16 restarts of its address.
 * Tests.  tests/unit/remote/association_test.c
 */
#include "remote/association/association.h"

#include "base/assert.h"

const char *
trpi_assoc_state_name(enum trpi_assoc_state state)
{
    static const char *const names[] = { "idle", "handshaking", "active", "gated", "quarantined" };
    trpi_assert((unsigned)state < sizeof names / sizeof names[0]);
    return names[state];
}

bool
trpi_assoc_is_rival(const trpi_assoc *assoc, uint64_t uid)
{
    return assoc->state == TRPI_ASSOC_ACTIVE && uid != 0 && uid != assoc->uid &&
           !trpi_assoc_is_barred(assoc, uid);
}

bool
trpi_assoc_is_claimant(const trpi_assoc *assoc, uint64_t uid)
{
    /* the first attempt in a row is the loss of its connection */
    return assoc->state != TRPI_ASSOC_ACTIVE && assoc->uid != 0 && uid != 0 && uid != assoc->uid &&
           assoc->attempts < 2 && !trpi_assoc_is_barred(assoc, uid) &&
           !trpi_assoc_is_barred(assoc, assoc->uid);
}

uint32_t
trpi_assoc_backoff_ms(const trpi_assoc_config *config, uint32_t attempts, uint64_t random)
{
    uint64_t delay = config->backoff_min_ms;
    for (uint32_t i = 1; i < attempts && delay < config->backoff_max_ms; i++) {
        delay *= 2;
    }
    delay = delay < config->backoff_max_ms ? delay : config->backoff_max_ms;
    uint64_t half = delay / 2;
    return (uint32_t)(delay - half + random % (half + 1));
}

void
trpi_assoc_bar(trpi_assoc *assoc, uint64_t uid)
{
    if (uid == 0 || trpi_assoc_is_barred(assoc, uid)) {
        return;
    }
    assoc->barred[assoc->barred_next] = uid;
    assoc->barred_next = (assoc->barred_next + 1) % TRPI_ASSOC_BARRED_MAX;
    if (assoc->barred_count < TRPI_ASSOC_BARRED_MAX) {
        assoc->barred_count++;
    }
}

static void
dial_begin(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
           trpi_assoc_effects *effects)
{
    assoc->state = TRPI_ASSOC_HANDSHAKING;
    assoc->deadline_ms = now_ms + config->handshake_timeout_ms;
    assoc->wanted = false;
    effects->bits |= TRPI_ASSOC_DO_DIAL;
}

/* No connection, and none before next_ms. */
static void
back_off(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
         const trpi_assoc_event *event, trpi_assoc_effects *effects)
{
    assoc->asked_ms = 0;
    assoc->attempts++;
    assoc->backoff_ms = trpi_assoc_backoff_ms(config, assoc->attempts, event->random);
    assoc->next_ms = now_ms + assoc->backoff_ms;
    assoc->state = assoc->uid != 0 && trpi_assoc_is_barred(assoc, assoc->uid)
                       ? TRPI_ASSOC_QUARANTINED
                       : TRPI_ASSOC_GATED;
    effects->bits |= TRPI_ASSOC_DO_LOG;
}

/* The incarnation `uid` is over. */
static void
incarnation_end(trpi_assoc *assoc, uint64_t uid, bool quarantined, trpi_assoc_effects *effects)
{
    trpi_assert(uid != 0);
    trpi_assoc_bar(assoc, uid);
    effects->bits |= TRPI_ASSOC_DO_END; /* association-A2 */
    effects->over_uid = uid;
    effects->over_quarantined = quarantined;
}

/* Peer uid has shown itself, by request or response; false: it is barred. */
static bool
incarnation_prove(trpi_assoc *assoc, uint64_t uid, trpi_assoc_effects *effects)
{
    if (uid == 0 || trpi_assoc_is_barred(assoc, uid)) { /* association-A1 */
        return false;
    }
    if (assoc->uid != 0 && assoc->uid != uid && !trpi_assoc_is_barred(assoc, assoc->uid)) {
        effects->bits |= TRPI_ASSOC_DO_CLOSE;
        incarnation_end(assoc, assoc->uid, false, effects);
    }
    if (assoc->state != TRPI_ASSOC_ACTIVE || assoc->uid != uid) {
        effects->bits |= TRPI_ASSOC_DO_ACTIVATE | TRPI_ASSOC_DO_LOG;
    }
    assoc->asked_ms = assoc->uid == uid ? assoc->asked_ms : 0;
    assoc->uid = uid;
    assoc->state = TRPI_ASSOC_ACTIVE;
    assoc->attempts = 0;
    assoc->wanted = false;
    return true;
}

/* association-A5 */
static void
liveness_ask(trpi_assoc *assoc, uint64_t now_ms, trpi_assoc_effects *effects)
{
    if (assoc->asked_ms == 0) {
        assoc->asked_ms = now_ms != 0 ? now_ms : 1;
        effects->bits |= TRPI_ASSOC_DO_ASK;
    }
}

static void
on_tick(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
        const trpi_assoc_event *event, trpi_assoc_effects *effects)
{
    if (assoc->asked_ms != 0 && now_ms >= assoc->asked_ms + config->ask_ms) {
        incarnation_end(assoc, assoc->uid, false, effects);
        effects->bits |= TRPI_ASSOC_DO_CLOSE;
        back_off(assoc, config, now_ms, event, effects);
        return;
    }
    /* association-A4 */
    if (assoc->state == TRPI_ASSOC_HANDSHAKING && now_ms >= assoc->deadline_ms) {
        effects->bits |= TRPI_ASSOC_DO_CLOSE;
        back_off(assoc, config, now_ms, event, effects);
    } else if ((assoc->state == TRPI_ASSOC_GATED || assoc->state == TRPI_ASSOC_QUARANTINED) &&
               now_ms >= assoc->next_ms) {
        if (event->want || assoc->wanted) {
            dial_begin(assoc, config, now_ms, effects);
        } else if (assoc->state == TRPI_ASSOC_GATED) {
            assoc->state = TRPI_ASSOC_IDLE;
        }
    } else if (assoc->state == TRPI_ASSOC_IDLE && event->want) {
        dial_begin(assoc, config, now_ms, effects);
    }
}

static void
on_want(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
        trpi_assoc_effects *effects)
{
    bool waits = assoc->state == TRPI_ASSOC_GATED || assoc->state == TRPI_ASSOC_QUARANTINED;
    if (assoc->state == TRPI_ASSOC_IDLE || (waits && now_ms >= assoc->next_ms)) {
        dial_begin(assoc, config, now_ms, effects);
    } else if (waits) {
        assoc->wanted = true;
    }
}

/* association-A6 */
static void
look_who_answers(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
                 trpi_assoc_effects *effects)
{
    uint64_t soon_ms = now_ms + config->backoff_min_ms; /* association-A3 */
    assoc->next_ms = assoc->next_ms < soon_ms ? assoc->next_ms : soon_ms;
    on_want(assoc, config, now_ms, effects);
}

static void
on_request(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
           const trpi_assoc_event *event, trpi_assoc_effects *effects)
{
    if (trpi_assoc_is_rival(assoc, event->uid)) {
        effects->bits |= TRPI_ASSOC_DO_REFUSE;
        liveness_ask(assoc, now_ms, effects);
    } else if (event->want && trpi_assoc_is_claimant(assoc, event->uid)) {
        effects->bits |= TRPI_ASSOC_DO_REFUSE;
        look_who_answers(assoc, config, now_ms, effects);
    } else {
        bool is = incarnation_prove(assoc, event->uid, effects);
        effects->bits |= is ? TRPI_ASSOC_DO_RESPOND : TRPI_ASSOC_DO_REFUSE;
    }
}

static void
on_hurry(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms)
{
    uint64_t soon_ms = now_ms + config->backoff_min_ms; /* association-A3 */
    if (assoc->state == TRPI_ASSOC_GATED) {
        assoc->attempts = assoc->attempts > 0 ? 1 : 0;
        assoc->next_ms = assoc->next_ms < soon_ms ? assoc->next_ms : soon_ms;
        assoc->wanted = true;
    }
}

static void
on_quarantine(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
              const trpi_assoc_event *event, trpi_assoc_effects *effects)
{
    uint64_t uid = event->uid != 0 ? event->uid : assoc->uid;
    if (uid == 0 || trpi_assoc_is_barred(assoc, uid)) {
        return;
    }
    incarnation_end(assoc, uid, true, effects);
    effects->bits |= TRPI_ASSOC_DO_LOG;
    if (uid == assoc->uid || assoc->uid == 0) {
        assoc->uid = uid;
        effects->bits |= TRPI_ASSOC_DO_CLOSE | TRPI_ASSOC_DO_CLOSE_THIS;
        assoc->wanted = false;
        back_off(assoc, config, now_ms, event, effects);
    }
}

trpi_assoc_effects
trpi_assoc_step(trpi_assoc *assoc, const trpi_assoc_config *config, uint64_t now_ms,
                const trpi_assoc_event *event)
{
    trpi_assoc_effects effects = { 0, 0, false };
    switch (event->kind) {
    case TRPI_ASSOC_WANT:
        on_want(assoc, config, now_ms, &effects);
        break;
    case TRPI_ASSOC_DIALLED:
        /* Also when a request of the peer made us active meanwhile: it is one more connection. */
        effects.bits |= assoc->state == TRPI_ASSOC_HANDSHAKING || assoc->state == TRPI_ASSOC_ACTIVE
                            ? TRPI_ASSOC_DO_REQUEST
                            : TRPI_ASSOC_DO_CLOSE_THIS;
        break;
    case TRPI_ASSOC_REQUEST:
        on_request(assoc, config, now_ms, event, &effects);
        break;
    case TRPI_ASSOC_RESPONSE:
        if (trpi_assoc_is_rival(assoc, event->uid)) { /* the present one called meanwhile */
            effects.bits |= TRPI_ASSOC_DO_CLOSE_THIS;
            liveness_ask(assoc, now_ms, &effects);
            break;
        }
        if (!incarnation_prove(assoc, event->uid, &effects)) {
            effects.bits |= TRPI_ASSOC_DO_CLOSE_THIS;
            if (assoc->state == TRPI_ASSOC_HANDSHAKING) {
                back_off(assoc, config, now_ms, event, &effects);
            }
        }
        break;
    case TRPI_ASSOC_REFUSED:
        effects.bits |= TRPI_ASSOC_DO_CLOSE_THIS;
        if (assoc->state == TRPI_ASSOC_HANDSHAKING) {
            back_off(assoc, config, now_ms, event, &effects);
        }
        break;
    case TRPI_ASSOC_LOST:
        if (assoc->state == TRPI_ASSOC_HANDSHAKING || assoc->state == TRPI_ASSOC_ACTIVE) {
            back_off(assoc, config, now_ms, event, &effects);
        }
        break;
    case TRPI_ASSOC_QUARANTINE:
        on_quarantine(assoc, config, now_ms, event, &effects);
        break;
    case TRPI_ASSOC_GOODBYE:
        if (assoc->state == TRPI_ASSOC_ACTIVE) {
            incarnation_end(assoc, assoc->uid, false, &effects);
            back_off(assoc, config, now_ms, event, &effects);
        }
        break;
    case TRPI_ASSOC_ALIVE:
        assoc->asked_ms = 0;
        break;
    case TRPI_ASSOC_PAUSED:
        if (assoc->asked_ms != 0) { /* association-A5: the time for an answer begins anew */
            assoc->asked_ms = 0;
            liveness_ask(assoc, now_ms, &effects);
        }
        break;
    case TRPI_ASSOC_HURRY:
        on_hurry(assoc, config, now_ms);
        break;
    case TRPI_ASSOC_TICK:
        on_tick(assoc, config, now_ms, event, &effects);
        break;
    }
    return effects;
}
