/* reliable.h - what the two ends of a reliable proxy say to each other. */
#ifndef TRPI_PATTERN_RELIABLE_H
#define TRPI_PATTERN_RELIABLE_H

#include <troupe/reliable_proxy.h>

#include "pattern/pattern.h"

/* `instance` tells the lives of a proxy apart, and its targets: later ones are larger. */

/* Proxy to the receptionist of the target's node, which has it from a far end of this proxy. */
typedef struct trpi_reliable_open {
    trp_ref proxy, target;
    uint64_t instance;
    uint64_t next; /* the number that will come first */
} trpi_reliable_open;
extern trp_type trpi_reliable_open_type;

/* Far end to proxy: it is there, and has passed on all below next. */
typedef struct trpi_reliable_ack {
    uint64_t instance;
    uint64_t next;
} trpi_reliable_ack;
extern trp_type trpi_reliable_ack_type;

extern trp_type trpi_reliable_later_type; /* far end to itself: acknowledge what came so far */
extern trp_type trpi_reliable_retry_type; /* timers of the proxy */
extern trp_type trpi_reliable_look_type;

#define TRPI_RELIABLE_RECEPTIONIST "reliable-proxy" /* below /system */

#endif
