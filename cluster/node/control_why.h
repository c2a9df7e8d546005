/* control_why.h - the reply to `troupe why`, and of that to status the same reasons, of a view. */
#ifndef TRPI_NODE_CONTROL_WHY_H
#define TRPI_NODE_CONTROL_WHY_H

#include "cluster/node/control_member.h"

/* Add "reasons", an array: empty when nothing blocks. false: no memory. */
bool trpi_why_add_reasons(cJSON *reply, const trpi_view *view);
/* Fill the reply (CONTROL.md, why). false: no memory. */
bool trpi_why_fill(cJSON *reply, const char *self_address, const trpi_view *view);

#endif
