/* coroutine_portable_test.c - the same by ucontext, which other machines use: a copy of coroutine.c
 * with names of its own. */
#define TRPI_COROUTINE_PORTABLE 1
#define trpi_stack_map portable_stack_map
#define trpi_stack_unmap portable_stack_unmap
#define trpi_coroutine_new portable_coroutine_new
#define trpi_coroutine_free portable_coroutine_free
#define trpi_coroutine_resume portable_coroutine_resume
#define trpi_coroutine_suspend portable_coroutine_suspend
#include "pattern/coroutine.c"

#include "tests/unit/pattern/coroutine.h"

UNIT_BEGIN("coroutine_portable")
COROUTINE_TESTS
UNIT_END
