/* closing.h - close what may never be closed. */
#ifndef TRPI_ENDPOINT_CLOSING_H
#define TRPI_ENDPOINT_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#define TRPI_CLOSING_WAIT_MS 2000
#define TRPI_CLOSING_NEXT_MS 100 /* while an earlier one is late */
#define TRPI_CLOSING_LATE_MAX 8  /* of the process; the caller opens no more */

/* Run run(arg) on a thread of its own, and wait for it for TRPI_CLOSING_WAIT_MS. False: it is late,
 * and has arg until it ends, perhaps for ever. Thread: any. */
bool trpi_closing_run(void (*run)(void *arg), void *arg);

/* Return how many are late now. Thread: any; lock-free. */
uint32_t trpi_closing_late(void);

#endif
