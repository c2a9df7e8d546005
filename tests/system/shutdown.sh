#!/bin/bash
# shutdown.sh - the end of nodes: phases that `troupe leave` tells, and `troupe shutdown`, which ends all. CLI-05
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port && first=$hosts_free
node() { # INDEX PORT OPTION...
    local index=$1 at=$2
    shift 2
    background "$troupe" node --system "end$$" --port "$at" --socket "$work/$index.sock" --seed "troupe.tcp://end$$@127.0.0.1:$first" \
        --set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms "$@" >"$work/$index.log" 2>&1
}
at() { # INDEX ARGUMENT...
    local index=$1
    shift
    "$troupe" --socket "$work/$index.sock" "$@"
}
up() { [ "$(at "$1" members --status Up -o name 2>/dev/null | wc -l)" -eq "$2" ]; }

node 1 "$first"
# The third takes no commands of other nodes: it cannot be prepared for the shutdown, and does not answer.
deaf=(--set remote.untrusted-mode=on --set remote.trusted-selection-paths=/system/cluster)
for index in 2 3 4; do
    options=(--log-level debug --set "cluster.roles=role$index")
    [ "$index" -ne 3 ] || options+=("${deaf[@]}")
    node "$index" 0 "${options[@]}"
done
check four_are_up wait_until 60 up 4 4
check the_first_knows_it wait_until 60 up 1 4
expect snapshot_has_the_leaders_of_roles 0 at 1 events --snapshot --type RoleLeaderChanged --count 3 -o jsonl --timeout 30s
for index in 2 3 4; do has "leader_of_role_$index" "\"role\":\"role$index\",\"leader\":\"troupe.tcp://" ; done
expect leave_tells_its_phases 0 at 4 leave -v --timeout 60s
ended node_that_left_ends_with_0 "${pids[-1]}" 0
check phases_are_logged wait_until 60 grep -q 'phase cluster-exiting done after' "$work/4.log"
nodes=("${pids[@]:0:3}")

# A node with actors that never end their turn leaves, in the deadlines of its phases, with the code of one that has left.
node 5 0 --load "$build/tests/system/.libs/stuck.so:2" --set actor.default-dispatcher.workers=2 \
    --set coordinated-shutdown.default-phase-timeout=500ms --set coordinated-shutdown.phases.actor-system-terminate.timeout=500ms
stuck=$started
check it_is_up_with_a_blocked_dispatcher wait_until 60 up 1 4
kill -TERM "$stuck"
stopped_ms=$(now_ms)
check it_leaves_all_the_same wait_until 60 up 1 3
ended it_ends_as_one_that_has_left "$stuck" 0
# About 10 s: gossip of the leave, then the phases. Without their deadlines it would be 20 s and more.
judge it_ends_in_its_deadlines $(($(now_ms) - stopped_ms)) 18000 ms
for line in 'SIGTERM: leaving the cluster' 'phase service-stop ' 'phase before-actor-system-terminate ' 'actors are left after 500 ms' \
    'is stuck in its present message' 'its memory is not given back'; do
    has "it_logs_${line//[ :]/_}" "$line" "$work/5.log"
done

expect shutdown_without_terminal_needs_yes 64 at 2 shutdown </dev/null
three_are_left() { [ "$(at 2 members -o name | wc -l)" -eq 3 ]; } # whoever has left may be Exiting here for a while
check three_are_members wait_until 60 three_are_left
expect dry_run_names_all 0 at 2 shutdown --dry-run
is dry_run_counts_all "$(wc -l <"$work/out")" 3
check nothing_has_changed wait_until 30 up 2 3
background env -u TROUPE_TIMEOUT "$troupe" --socket "$work/1.sock" events -v -o jsonl --type ClusterShuttingDown >"$work/events" 2>&1
wait_until 30 test -s "$work/events" || fail events_are_subscribed
began_ms=$(now_ms)
expect all_end 0 at 2 shutdown --yes -v --timeout 60s
judge a_member_that_does_not_answer_holds_nobody_up $(($(now_ms) - began_ms)) 15000 ms
has who_could_not_be_told_is_named "could not be prepared for the shutdown" "$work/err"
has all_are_named "ended troupe.tcp://end$$@127.0.0.1:$first"
for index in 1 2 3; do ended "node_${index}_ends_with_0" "${nodes[index - 1]}" 0; done
check the_others_hear_that_all_end wait_until 30 grep -qF '"type":"ClusterShuttingDown"' "$work/events"
for index in 1 2; do check "node_${index}_knows_that_all_end" grep -q 'whole cluster is being shut down' "$work/$index.log"; done
test_end
