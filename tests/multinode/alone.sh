#!/bin/bash
# alone.sh - `status` of a node whose peers have all ended at once shows that long before its failure detector does.
. "$(dirname "$0")/lib.sh"
hosts_begin 3
for index in 1 2 3; do
    start_node "$index" --set cluster.failure-detector.acceptable-heartbeat-pause=5m --set cluster.downing.active-strategy=manual
done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
expect converged 0 ctl 1 wait --members 3 --converged --timeout 60s
check status_is_healthy wait_until 60 ctl 1 status
kill_node 3
ctl 1 status >"$work/one.out" 2>&1 # it may name the one that is dead
lacks one_that_can_be_reached_is_enough "no other member can be reached" "$work/one.out"
kill_node 2
begin=$(now_ms)
says_alone() { ctl 1 status 2>&1 | grep -Eq 'no other member can be reached: troupe.tcp://demo@.* and 1 more: .*(refused|closed|reset)'; }
if wait_until 60 says_alone; then within status_says_that_it_is_alone $(($(now_ms) - begin)) 1000; else fail status_says_that_it_is_alone "$(ctl 1 status 2>&1)"; fi
expect status_is_not_healthy 1 ctl 1 status
check its_detector_has_not_spoken none_unreachable 1
test_end
