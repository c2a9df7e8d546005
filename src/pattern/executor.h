/* executor.h - runs the callbacks of a system's futures. */
#ifndef TRPI_PATTERN_EXECUTOR_H
#define TRPI_PATTERN_EXECUTOR_H

#include "pattern/future.h"

/* Borrow the executor of a system, and the text of a dispatcher's id (NULL: "default"), both as
 * long as a count of the executor is held. Errors: TRP_ENOENT (no such dispatcher), TRP_ENOMEM,
 * TRP_ECLOSED. */
trp_err trpi_executor_get(trp_system *system, const char *dispatcher, trpi_executor **ret_executor,
                          const char **ret_id);
trpi_executor *trpi_executor_ref(trpi_executor *runs);
void trpi_executor_unref(trpi_executor *runs);

/* Return whether the system may be used, until leave. False: it has ended. */
bool trpi_executor_enter(trpi_executor *runs);
void trpi_executor_leave(trpi_executor *runs);
trp_system *trpi_executor_system(const trpi_executor *runs); /* between enter and leave */

/* List a callback that a dispatcher will run, so that the end of the system does not lose it. */
void trpi_executor_pending_add(trpi_executor *runs, trpi_callback *callback);
void trpi_executor_pending_remove(trpi_executor *runs, trpi_callback *callback);
/* trpi_promise_alarm() */
trp_err trpi_executor_alarm(trpi_executor *runs, trp_promise *promise, uint64_t delay_ms,
                            trp_err with, trpi_alarm_id *ret_id);

/* future.c's: take a pending callback off the list, and run it. */
void trpi_callback_run_pending(trpi_callback *callback);

#endif
