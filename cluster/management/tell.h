/* tell.h - POST /actors/{path}: a message by HTTP, from programs that are no nodes. */
#ifndef TRPI_MANAGEMENT_TELL_H
#define TRPI_MANAGEMENT_TELL_H

#include "cluster/management/routes.h"

#define TRPI_MANAGEMENT_ASK_MS_MAX 60000u /* query ask */

/* Write the question to the node into plan->command, or refuse the request. plan->subject is the
 * path without its first slash. Thread: any. */
void trpi_management_tell_make(trpi_management_plan *plan, const trpi_management_request *request);
/* Turn the node's reply, an object, into the answer: the message that came back, in its form.
 * Thread: any. */
void trpi_management_tell_answer(const cJSON *reply, trpi_management_answer *ret_answer);

#endif
