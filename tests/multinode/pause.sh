#!/bin/bash
# pause.sh - a process that is stopped (SIGSTOP) again and again, each time within the acceptable pause, is not suspected,
# and suspects no member; one that is stopped for longer is found unreachable, and reachable again when it goes on; it
# does not accuse the others for its own pause. FD-05 (own-pause awareness), EVENTS.
#   pause.sh            half of the default timings: 3 stops of 1.5 s, then one of 5 s
#   pause.sh --long     default timings: 20 stops of 3 s, one every 10 s, then one of 10 s
. "$(dirname "$0")/lib.sh"
stops=3 stop=1.5 between=3 last=5 # between two stops so many heartbeats
settings=(--set cluster.failure-detector.heartbeat-interval=500ms --set cluster.failure-detector.acceptable-heartbeat-pause=1500ms
    --set cluster.failure-detector.min-std-deviation=50ms)
[ "${1:-}" != --long ] || { stops=20 stop=3 between=7 last=10 settings=(); }
hosts_begin 3
for index in 1 2 3; do start_node "$index" --set cluster.downing.stable-after=60s "${settings[@]}"; done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
for index in 1 2 3; do expect converged 0 ctl "$index" wait --members 3 --converged --timeout 60s; done
for index in 1 2 3; do
    host_start "$index" "$work/events-$index" env -u TROUPE_TIMEOUT "$troupe" events -v -o jsonl --type UnreachableMember
    pids+=("$host_started")
    wait_until 60 test -s "$work/events-$index" || fail events_are_subscribed
done
paused=$(addr 3)
uid=$(uid_of 1 "$paused")
check uid_is_known test -n "$uid"

begin=$(now_ms) longest=0
for ((number = 0; number < stops; number++)); do
    beat_on "$between" 1 2 3
    frozen=$(now_ms)
    freeze "${node_pid[3]}"
    elapse "$stop" "how long the process stands still"
    kill -CONT "${node_pid[3]}"
    frozen=$(($(now_ms) - frozen))
    [ "$frozen" -le "$longest" ] || longest=$frozen
done
beat_on "$between" 1 2 3
measure longest_stop "$longest" ms
# From 300 ms more on the detector may speak (half a second to the next heartbeat, 5 deviations of 50 ms): a stop that became
# so much longer, because this script waited for the processor, is none of the short ones.
if [ "$longest" -lt "$(awk -v stop="$stop" 'BEGIN { print stop * 1000 + 150 }')" ]; then
    unsuspected short_stops_make_nobody_unreachable "$(suspicions "$work"/events-[123])" $(($(now_ms) - begin)) 150
else
    measure unreachable_events_of_short_stops "$(suspicions "$work"/events-[123])" events
fi

freeze "${node_pid[3]}"
if timed 60 sees_unreachable "$paused" 1 2; then within pause_unreachable "$took" 6000; else fail paused_node_is_found; fi
expect client_of_a_paused_node_times_out 75 ctl 3 members --timeout 500ms
left=$((last - took / 1000))
[ "$left" -le 0 ] || elapse "$left" "how long the process stands still"
kill -CONT "${node_pid[3]}"
if timed 60 none_unreachable 1 2 3; then pass paused_node_is_reachable_again; measure pause_heal "$took" ms; else fail paused_node_is_reachable_again; fi
check nobody_was_removed wait_until 60 all_up 3 1 2 3
is same_incarnation "$(uid_of 1 "$paused")" "$uid"
unsuspected paused_node_accuses_nobody "$(cat "$work"/events-[123] | grep -c '"observedBy":\["'"$paused"'"\]')" $(($(now_ms) - begin)) 150
test_end
