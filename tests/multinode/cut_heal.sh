#!/bin/bash
# cut_heal.sh - a link that is cut for 15 s, with stable-after 60 s, heals and no member is removed.
# DOWN, EVENTS (UnreachableMember, ReachableMember), FD. CUT_SECONDS changes the 15.
. "$(dirname "$0")/lib.sh"
hosts_begin 3 namespaces
for index in 1 2 3; do
    start_node "$index" --set cluster.downing.stable-after=60s --load "$build/examples/.libs/echo.so"
done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
uid=$(uid_of 1 "$(addr 3)")
check uid_is_known test -n "$uid"
events_begin 1
beat 5 1 2 3

cut=$(addr 3)
host_cut 3
begin=$(now_ms)
if timed 60 sees_unreachable "$cut" 1 2; then within cut_unreachable "$took" 6000; else fail cut_is_seen; fi
check cut_side_sees_the_others wait_until 60 sees_unreachable "$(addr 1)" 3
elapse_ms $((${CUT_SECONDS:-15} * 1000 - $(now_ms) + begin)) "how long the link is cut"
host_heal 3
# ClusterAccrualFailureDetectorSpec
if timed 60 none_unreachable 1 2 3; then pass link_heals && measure heal "$took" ms; else fail link_heals; fi
check nobody_was_removed wait_until 60 all_up 3 1 2 3
is member_is_the_same_incarnation "$(uid_of 1 "$cut")" "$uid"
expect converged_again 0 ctl 3 wait --converged --members 3 --timeout 60s
check messages_flow_again wait_until 60 ctl 1 ask "$cut/user/echo" hello --timeout 5s
check unreachable_event event '"type":"UnreachableMember"'
check reachable_event event '"type":"ReachableMember"'
lacks no_removal_event '"type":"MemberRemoved"' "$work/events"
lacks no_downing_event '"type":"MemberDowned"' "$work/events"
[ "$failures" -eq 0 ]
test_end
