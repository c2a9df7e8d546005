#!/bin/bash
# test_actor.sh - the example of a test passes.
program=${TROUPE_BUILDDIR:?}/examples/test_actor
if [ "$(timeout 30 "$program" 2>&1)" = "the till is right" ]; then
    echo "PASS the example of a test passes"
else
    echo "FAIL the example of a test passes"
    exit 1
fi
