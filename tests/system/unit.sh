#!/bin/bash
# unit.sh - the unit of systemd: it verifies, and its exposure, as systemd judges it, is at most 1.5.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
command -v systemd-analyze >/dev/null || skip "systemd-analyze is not there (apt-get install systemd)"
# The program that was built, in place of the one that systemd finds by its name.
mkdir "$work/units"
sed "s|^ExecStart=trouped |ExecStart=$build/troupe node |" "$src/deploy/systemd/troupe@.service" >"$work/units/troupe@.service"
cp "$work/units/troupe@.service" "$work/units/troupe@demo.service"
check verifies systemd-analyze verify --man=no "$work/units/troupe@demo.service"
is verifies_without_a_word "$(cat "$work/out" "$work/err")" ""
check is_judged systemd-analyze security --offline=true --no-pager "$work/units/troupe@demo.service"
exposure=$(sed -n 's/.*Overall exposure level for troupe@demo.service: \([0-9.]*\) .*/\1/p' "$work/out")
measure exposure "$exposure" points
check exposure_is_at_most_1_5 awk -v points="$exposure" 'BEGIN { exit !(points != "" && points + 0 <= 1.5) }'
# A mistake is found, so that silence means something.
sed -i 's/^ProtectHome=yes/ProtectHomes=yes/' "$work/units/troupe@demo.service"
systemd-analyze verify --man=no "$work/units/troupe@demo.service" >"$work/out" 2>&1
has a_mistake_would_be_found ProtectHomes
# Leaving fits into the time that systemd gives.
leave=$(sed -n 's/^ *leave-timeout = \([0-9]*\)s.*/\1/p' "$src/docs/reference.conf")
stop=$(sed -n 's/^TimeoutStopSec=\([0-9]*\)$/\1/p' "$src/deploy/systemd/troupe@.service")
check leaving_fits_into_the_stop test "$stop" -ge "$((leave + 15))"
test_end
