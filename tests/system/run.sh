#!/bin/bash
# run.sh - tests/run ends at its deadline, whatever hangs in it. On a project that has nothing but a configure that hangs.
. "$(dirname "$0")/lib.sh"
test_begin

tree=$work/tree
mkdir -p "$tree/tests" "$tree/deploy" "$tree/m4"
cp "$src/tests/run" "$tree/tests/run"
touch -d '1 hour ago' "$tree/configure.ac" "$tree/Makefile.am" "$tree/m4/troupe.m4"
printf '#!/bin/sh\nexit 0\n' >"$tree/deploy/bootstrap"
printf '#!/bin/sh\nexec sleep 600\n' >"$tree/configure"
chmod +x "$tree/deploy/bootstrap" "$tree/configure"

begin=$(now_ms)
expect a_run_ends_at_its_deadline 1 env TROUPE_RUN_SECONDS=1 "$tree/tests/run" --only build
has what_hung_is_named "FAIL configure gcc: did not end in 1 s"
has and_the_results_are_counted_as_ever "passed, 1 failed"
check ending_takes_seconds test $(($(now_ms) - begin)) -lt 60000
test_end
