/* coroutine_test.c - functions that are left and resumed, as this machine switches stacks. */
#include "tests/unit/pattern/coroutine.h"

UNIT_BEGIN("coroutine")
COROUTINE_TESTS
UNIT_END
