/* control_why.h - the reply to `troupe why`, made of a view alone. */
#ifndef TRPI_NODE_CONTROL_WHY_H
#define TRPI_NODE_CONTROL_WHY_H

#include "cluster/node/control_member.h"

/* Fill the reply (CONTROL.md, why). false: no memory. */
bool trpi_why_fill(cJSON *reply, const char *self_address, const trpi_view *view);

#endif
