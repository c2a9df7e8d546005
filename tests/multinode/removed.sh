#!/bin/bash
# removed.sh - a node that is removed while it stands still (SIGSTOP) and is quarantined before it goes on learns it from its
# first handshakes: it ends with 76 within 10 s when the members that refuse it may go on without it. The one with the lowest address
# of two is refused by half of the votes, which may not: it stays, and status and why call it two clusters.
. "$(dirname "$0")/lib.sh"
settings=(--set cluster.downing.active-strategy=manual --set cluster.quarantine-removed-node-after=500ms
    --set cluster.failure-detector.heartbeat-interval=500ms --set cluster.failure-detector.acceptable-heartbeat-pause=1500ms
    --set cluster.failure-detector.min-std-deviation=50ms)
hosts_begin 3
for index in 1 2 3; do start_node "$index" "${settings[@]}"; done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
for index in 1 2 3; do expect converged 0 ctl "$index" wait --members 3 --converged --timeout 60s; done

# The others hold it for unreachable, and an operator takes it out.
remove() { # NODE AT
    local others=$2
    freeze "${node_pid[$1]}"
    timed 60 sees_unreachable "$(addr "$1")" "$others" || fail "node_$1_is_unreachable"
    expect "node_$1_is_downed" 0 ctl "$others" down --yes --dead "$(addr "$1")"
    wait_until 60 sees_gone "$(addr "$1")" "$others" || fail "node_$1_is_removed"
    wait_until 60 grep -q "quarantined peer=$(addr "$1")" "$work/node-$others.log" || fail "node_$1_is_quarantined"
}

remove 3 1
wait_until 60 grep -q "quarantined peer=$(addr 3)" "$work/node-2.log" || fail node_3_is_quarantined_by_both
kill -CONT "${node_pid[3]}"
begin=$(now_ms)
if await_node 3 60; then # its pid is another process's from here on
    within removed_node_ends $(($(now_ms) - begin)) 10000
    is removed_node_ends_with_76 "$code" 76
else
    fail removed_node_ends
fi
check its_log_says_so grep -q 'this node was removed while it was cut off or stood still: .* 2 of 3 votes' "$work/node-3.log"
check its_log_says_that_it_stood_still grep -q 'this node stood still for longer' "$work/node-3.log"
check the_others_are_healthy wait_until 60 ctl 1 status

low=$(printf '%s\n' "$(addr 1)" "$(addr 2)" | sort -t: -k2,2 -k3,3n | head -n 1)
if [ "$low" = "$(addr 1)" ]; then low=1 high=2; else low=2 high=1; fi
remove "$low" "$high"
kill -CONT "${node_pid[low]}"
calls_it_two() { ctl "$low" status 2>&1 | grep -q "two clusters: $(addr "$high") removed this node"; }
check status_calls_it_two_clusters wait_until 60 calls_it_two
expect status_is_not_healthy 1 ctl "$low" status
check why_names_who_has_removed_it grep -q "two-clusters *demo@${host_address[high]}:${host_port[high]} " <<<"$(ctl "$low" why 2>&1)"
check the_log_calls_it_two_clusters wait_until 60 grep -q 'two clusters: .* 1 of 2 votes may not go on by manual' "$work/node-$low.log"
check it_lives lives "${node_pid[low]}"
test_end
