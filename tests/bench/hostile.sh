#!/bin/bash
# hostile.sh - heartbeats of a node beside hostile clients of its management API (`bench beside_http`): slow headers and bodies, requests
# inside bodies, paths that lead out, headers and bodies beyond their limits, streams that are not read, bytes that are random.
#
#   hostile.sh          one round of few clients: no beat is lost
#   hostile.sh --long   15 rounds by turns of 1,000 clients; the median p99 is at most 1.5 times that without, no beat takes above 20 ms
#
# With --long on a quiet machine, at real-time priority where that is allowed: the clients take a processor of their own.
set -u
bench=${TROUPE_BUILDDIR:-.}/tests/bench/bench
[ -x "$bench" ] || { echo "no $bench: build first"; exit 77; }
options=(--threads 1 --count 200)
prefix=()
if [ "${1-}" = --long ]; then
    options=(--threads 1)
    ! chrt -f 1 true 2>/dev/null || prefix=(chrt -f 1)
fi
err=$(mktemp)
trap 'rm -f "$err"' EXIT
out=$("${prefix[@]}" timeout 600 "$bench" beside_http "${options[@]}" 2>"$err") || {
    if grep -q 'no management API' "$err"; then echo "this build has no management API"; exit 77; fi
    echo "FAIL heartbeats_beside_hostile_clients_are_answered"
    tail -n 5 "$err"
    exit 1
}
echo "$out"
value() { sed -n "s/^troupe beside_http $1 \([0-9.]*\) .*/\1/p" <<<"$out"; }
status=0
judge() { # NAME CONDITION (awk)
    if awk "BEGIN { exit !($2) }"; then echo "PASS $1"; else echo "FAIL $1"; status=1; fi
}
judge heartbeats_beside_hostile_clients_are_answered "$(value lost) == 0 && $(value beside_p99) > 0"
if [ "${1-}" = --long ]; then
    judge their_median_p99_is_at_most_one_and_a_half_times_that_without "$(value ratio) <= 1.5"
    judge none_takes_above_20_ms "$(value beside_longest) <= 20000"
fi
exit $status
