/* engine.h - which contact a client talks to, and when it looks for another one: a pure machine.
 *
 * Events go in with the time, actions come out of trpi_client_next(); the shell carries them out.
 */
#ifndef TRPI_REMOTE_CLIENT_ENGINE_H
#define TRPI_REMOTE_CLIENT_ENGINE_H

#include <stdbool.h>

#include "remote/client/frame.h"

#define TRPI_CLIENT_INITIAL_MAX 32 /* contact points that a client is given at its start */
#define TRPI_CLIENT_ACTIONS_MAX 16

typedef struct trpi_client_config {
    uint32_t ping_ms;      /* between two PINGs to the contact */
    uint32_t silence_ms;   /* without an answer: the contact is lost */
    uint32_t try_ms;       /* for a contact to answer HELLO */
    uint32_t refresh_ms;   /* between two requests for contacts */
    uint32_t pause_min_ms; /* after a round in which no contact answered; then doubled */
    uint32_t pause_max_ms;
    uint32_t reconnect_ms; /* the client stops after so long without a contact; 0: never */
} trpi_client_config;

enum trpi_client_state {
    TRPI_CLIENT_LOOKING = 0, /* no contact */
    TRPI_CLIENT_ESTABLISHED = 1,
    TRPI_CLIENT_MOVING = 2, /* established, and another contact is being asked to take over */
    TRPI_CLIENT_STOPPED = 3
};

enum trpi_client_action_kind {
    TRPI_CLIENT_DO_HELLO = 1,  /* to `to` */
    TRPI_CLIENT_DO_PING = 2,   /* to `to` */
    TRPI_CLIENT_DO_BYE = 3,    /* to `to` */
    TRPI_CLIENT_DO_SWITCH = 4, /* `to` is the contact from now on */
    TRPI_CLIENT_DO_LOST = 5,   /* there is no contact any more; why */
    TRPI_CLIENT_DO_STOP = 6
};
typedef struct trpi_client_action {
    enum trpi_client_action_kind kind;
    trpi_address to;
} trpi_client_action;

typedef struct trpi_client_engine {
    trpi_client_config config;
    enum trpi_client_state state;
    uint32_t initial_count, known_count;
    trpi_address initial[TRPI_CLIENT_INITIAL_MAX];
    trpi_address known[TRPI_CLIENT_CONTACTS_MAX]; /* from the last receptionist, best first */
    trpi_address contact;                         /* ESTABLISHED, MOVING */
    uint64_t heard_ms, pinged_ms, refreshed_ms;
    bool redirected; /* it has followed a receptionist's advice since it was looking last */
    /* the contact that is being asked; place in the round: known first, then initial */
    bool trying;
    trpi_address tried;
    uint32_t next;
    uint64_t try_until_ms;
    uint64_t pause_until_ms; /* 0: no pause */
    uint32_t rounds;         /* without success */
    uint64_t looking_since_ms;
    char why[TRPI_CLIENT_WHY_BYTES]; /* why the last attempt or contact failed */
    uint32_t actions_count;
    trpi_client_action actions[TRPI_CLIENT_ACTIONS_MAX];
} trpi_client_engine;

/* Begin to look. `first` chooses the contact point that is asked first. Errors: TRP_EINVAL (none,
 * or too many contact points; times out of order). */
trp_err trpi_client_begin(trpi_client_engine *engine, const trpi_client_config *config,
                          const trpi_address *initial, uint32_t initial_count, uint64_t first,
                          uint64_t now_ms);
/* A receptionist has taken this client, and says which contacts it has. */
void trpi_client_welcome(trpi_client_engine *engine, const trpi_address *from,
                         const trpi_address *contacts, uint32_t count, uint64_t now_ms);
/* Anything else came from it. */
void trpi_client_heard(trpi_client_engine *engine, const trpi_address *from, uint64_t now_ms);
/* It leaves: be taken by one of these. */
void trpi_client_move(trpi_client_engine *engine, const trpi_address *from,
                      const trpi_address *contacts, uint32_t count, uint64_t now_ms);
/* It refuses this client, or its node cannot be reached, or says goodbye. */
void trpi_client_failed(trpi_client_engine *engine, const trpi_address *from, const char *why,
                        uint64_t now_ms);
/* The node that was reached at `from` has another address. */
void trpi_client_elsewhere(trpi_client_engine *engine, const trpi_address *from,
                           const trpi_address *address, uint64_t now_ms);
void trpi_client_tick(trpi_client_engine *engine, uint64_t random, uint64_t now_ms);
/* In how many milliseconds a tick has something to do; 0: now; UINT64_MAX: never. */
uint64_t trpi_client_due_ms(const trpi_client_engine *engine, uint64_t now_ms);
/* Give the next action; false: there is none. After each event until then. */
bool trpi_client_next(trpi_client_engine *engine, trpi_client_action *ret_action);
bool trpi_client_has_contact(const trpi_client_engine *engine);
/* Return NULL, or the invariant that is broken. */
const char *trpi_client_check(const trpi_client_engine *engine);

#endif
