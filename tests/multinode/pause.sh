#!/bin/bash
# pause.sh - a process that is stopped (SIGSTOP) for some seconds is found unreachable, and reachable again when it
# goes on; it does not accuse the others for its own pause. FD (own-pause awareness), EVENTS. PAUSE_SECONDS (10).
. "$(dirname "$0")/lib.sh"
hosts_begin 3
for index in 1 2 3; do start_node "$index" --set cluster.downing.stable-after=60s; done
wait_until 30 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
for index in 1 2 3; do expect converged 0 ctl "$index" wait --members 3 --converged --timeout 60s; done
sleep 5 # some heartbeats
paused=$(addr 3)
uid=$(uid_of 1 "$paused")
check uid_is_known test -n "$uid"
events_begin 3 --type UnreachableMember
freeze "${node_pid[3]}"
if timed 60 sees_unreachable "$paused" 1 2; then within pause_unreachable "$took" 6000; else fail paused_node_is_found; fi
expect client_of_a_paused_node_times_out 75 ctl 3 members --timeout 500ms
left=$((${PAUSE_SECONDS:-10} - took / 1000))
[ "$left" -le 0 ] || sleep "$left"
kill -CONT "${node_pid[3]}"
if timed 60 none_unreachable 1 2 3; then pass paused_node_is_reachable_again; measure pause_heal "$took" ms; else fail paused_node_is_reachable_again; fi
check nobody_was_removed wait_until 30 all_up 3 1 2 3
is same_incarnation "$(uid_of 1 "$paused")" "$uid"
pauses 60000 # who else was kept from the processor for seconds may be accused: then this figure says so
measure longest_pause_of_the_machine "$pause_most" ms
accused=$(grep -c '"observedBy":\["'"$paused"'"\]' "$work/events")
is paused_node_accuses_nobody "$accused" 0
test_end
