#!/bin/bash
# crowd.sh - many peers of one node: some call at once, all stay, idle; then they end at once. What an association costs.
#   crowd.sh [PEERS STORM SECONDS]   default 50 30 1; --long is the 1,000, of which 500 at once, and 30 s
. "$(dirname "$0")/lib.sh"
[ "${1:-}" != --long ] || set -- 1000 500 30
peers=${1:-50} storm=${2:-30} seconds=${3:-1}
test_begin
"$build/tests/system/crowd" "$peers" "$storm" "$seconds" >"$work/out" 2>"$work/err"
is the_crowd_comes_and_goes "$?" 0
sed 's/^/    /' "$work/err" "$work/out"
figure() { sed -n "s/^$1 \([0-9]*\).*/\1/p" "$work/out" | head -n 1; } # WORD
judge "storm_of_${storm}_is_associated" "$(figure storm)" 10000 ms
judge an_idle_association_has_at_most_64_kib "$(figure bytes)" 65536 bytes
judge an_idle_association_has_one_descriptor "$(figure fds)" $((peers - 1)) descriptors
judge threads_do_not_grow_with_peers "$(figure threads)" 64 threads
has none_ends_by_itself "associations $peers ended 0"
measure idle_processor_time "$(figure idle)" us/s
test_end
