/* breaker.h - the state machine of a circuit breaker, without lock, clock and timer. */
#ifndef TRPI_PATTERN_BREAKER_H
#define TRPI_PATTERN_BREAKER_H

#include <stdbool.h>

#include <troupe/breaker.h>

typedef enum trpi_breaker_event {
    TRPI_BREAKER_ASKED = 1,  /* may a call be made? true: yes */
    TRPI_BREAKER_WORKED = 2, /* a call of `epoch` ended well; true: a state was entered */
    TRPI_BREAKER_FAILED = 3, /* it failed, or was late; same */
    TRPI_BREAKER_TIME = 4    /* half-open may be due; same */
} trpi_breaker_event;

typedef struct trpi_breaker_core {
    trp_breaker_state state;
    uint64_t epoch;    /* of the state; calls are marked with it */
    uint32_t failures; /* in a row */
    uint32_t failures_max;
    uint64_t opened_ns;
    uint64_t reset_ns;
    bool probing; /* half-open: a call is out */
} trpi_breaker_core;

bool trpi_breaker_step(trpi_breaker_core *core, uint64_t now_ns, trpi_breaker_event event,
                       uint64_t epoch);

#endif
