/* stack.h - the stack of one thread of another process, taken from outside as a debugger does. */
#ifndef TRPI_CLI_STACK_H
#define TRPI_CLI_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TRPI_STACK_FRAMES_MAX 48u
#define TRPI_STACK_TEXT_BYTES 240u

typedef struct trpi_stack {
    uint32_t count;
    bool is_cut;       /* there are more frames, or no frame in time */
    double stopped_ms; /* for so long the thread stood still */
    char frames[TRPI_STACK_FRAMES_MAX][TRPI_STACK_TEXT_BYTES]; /* innermost first */
} trpi_stack;

/* Stop the thread of pid that has the id `thread` in its own namespace, note its frames, let it go
 * on, then name them. No signal reaches the process. false: why says what to do. */
bool trpi_stack_take(pid_t pid, int thread, trpi_stack *ret_stack, char *why, size_t why_bytes);

#endif
