#!/bin/bash
# churn.sh - a node joins and leaves again and again: the view and the memory of the other members are then as before.
#   churn.sh [CYCLES]   default 10; --long: 500, after hundreds that make what each thread's heap needs once
# NodeChurnSpec; MEMB-11, GOSSIP-12 (tombstones are forgotten after prune-gossip-tombstones-after, here 1 s).
. "$(dirname "$0")/lib.sh"
cycles=${1:-10} first=3 growth=1024 rounds=1
[ "${1:-}" != --long ] || cycles=500 first=100 growth=256 rounds=12
HOSTS_PORTS=1 hosts_begin 4
prune=(--set cluster.prune-gossip-tombstones-after=1s --log-level warning)
for index in 1 2 3; do start_node "$index" "${prune[@]}"; done
wait_until 60 all_up 3 1 2 3 || { fail three_come_up; test_end; }

number() { ctl "$1" status -o json | sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" | head -n 1; } # NODE FIELD
resident() { awk '/^VmRSS:/ { print $2 }' "/proc/${node_pid[1]}/status"; }
cycle() {
    start_node 4 "${prune[@]}"
    ctl 4 wait --up --timeout 60s >/dev/null && ctl 4 leave --timeout 60s >/dev/null && await_node 4 60 && [ "$code" -eq 0 ] &&
        wait_until 60 all_up 3 1
}
forgotten() { [ "$(number 1 tombstones)" -eq 0 ]; }

for ((round = 0; round < rounds; round++)); do # memory that is made once: until a round makes nearly none
    before=$(resident)
    for ((i = 0; i < first; i++)); do cycle || fail "cycle_${i}_at_first"; done
    echo "troupe churn resident_after_$(((round + 1) * first)) $(resident) KiB"
    [ $(($(resident) - before)) -gt 48 ] || break
done
check the_first_are_forgotten wait_until 60 forgotten
before=$(resident)
clock=$(number 1 clock)
begin=$(now_ms)
done=0
for ((i = 0; i < cycles; i++)); do
    if cycle; then
        done=$((done + 1))
    else
        echo "cycle $i: $(tail -n 3 "$work/node-4.log")" >&2
        await_node 4 60
    fi
done
took=$(($(now_ms) - begin))
is each_cycle_ends_well "$done" "$cycles"
# NodeChurnSpec
check nobody_is_left_over wait_until 60 all_up 3 1 2 3
# NodeChurnSpec
check removed_ones_are_forgotten wait_until 60 forgotten
expect three_are_converged 0 ctl 1 wait --converged --members 3 --timeout 60s
entries_are_gone() { [ "$(number 1 clock)" -le 3 ]; }
# NodeChurnSpec
check the_clock_has_as_many_entries_as_before wait_until 60 entries_are_gone
after=$(resident)
echo "troupe churn cycles $cycles cycles"
echo "troupe churn cycle $((took / cycles)) ms"
echo "troupe churn clock_entries_before $clock entries"
echo "troupe churn clock_entries_after $(number 1 clock) entries"
echo "troupe churn resident_before $before KiB"
echo "troupe churn resident_after $after KiB"
# NodeChurnSpec
judge memory_is_where_it_was $((after - before)) "$growth" KiB
test_end
