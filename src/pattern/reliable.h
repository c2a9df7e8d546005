/* reliable.h - messages between the two ends of a reliable proxy. */
#ifndef TRPI_PATTERN_RELIABLE_H
#define TRPI_PATTERN_RELIABLE_H

#include <troupe/reliable_proxy.h>

#include "pattern/pattern.h"

/* `instance` tells the lives of a proxy apart, and its targets: later ones are larger. */

/* From the proxy to the receptionist of the target's node, which spawns a far end of this proxy. */
typedef struct trpi_reliable_open {
    trp_ref proxy, target;
    uint64_t instance;
    uint64_t next; /* the number that will come first */
} trpi_reliable_open;
extern trp_type trpi_reliable_open_type;

/* Far end to proxy: it exists, and has passed on all messages below next. */
typedef struct trpi_reliable_ack {
    uint64_t instance;
    uint64_t next;
} trpi_reliable_ack;
extern trp_type trpi_reliable_ack_type;

extern trp_type trpi_reliable_later_type; /* far end to itself: acknowledge the messages so far */
extern trp_type trpi_reliable_retry_type; /* timers of the proxy */
extern trp_type trpi_reliable_look_type;

#define TRPI_RELIABLE_RECEPTIONIST "reliable-proxy" /* below /system */

#endif
