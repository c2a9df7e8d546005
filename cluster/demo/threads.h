/* threads.h - the threads of a demonstration's actors, of which there can be more and fewer while
 * it runs; see threads.c. */
#ifndef TRPI_DEMO_THREADS_H
#define TRPI_DEMO_THREADS_H

#include <troupe/dispatcher.h>

#include "cluster/demo/stage.h"

typedef struct trpi_demo_threads trpi_demo_threads;
typedef void (*trpi_demo_threads_fn)(void *arg, trp_dispatcher_job *job);

/* Give threads that call run(arg, job) for each job; none is there yet. The stage, which outlives
 * them, shows as many as there are. Errors: TRP_ENOMEM. */
trp_err trpi_demo_threads_new(trpi_stage *stage, trpi_demo_threads_fn run, void *arg,
                              trpi_demo_threads **ret_threads);
/* Have so many, 1 to TRPI_STAGE_THREADS_MAX: missing ones are made; those with the highest numbers
 * end, each after the job that it has. One thread calls it. Errors: TRP_EIO: none can be made, and
 * the number is as before. */
trp_err trpi_demo_threads_set(trpi_demo_threads *threads, uint32_t count);
/* Queue a job, at most TRPI_STAGE_ACTORS_MAX at a time; any thread. A trp_dispatcher_execute_fn. */
void trpi_demo_threads_push(void *threads, trp_dispatcher_job *job);
/* Wait for the jobs that run, and end all; what is queued is left. NULL is fine. */
void trpi_demo_threads_free(trpi_demo_threads *threads);
/* Return the number of the calling thread, from 0 on; of another one TRPI_STAGE_NOBODY. */
uint32_t trpi_demo_threads_current(void);

#endif
