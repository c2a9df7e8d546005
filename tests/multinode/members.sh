#!/bin/bash
# members.sh - what befalls members, with real processes on hosts of their own: clusters of their own live at once, with short
# timings; with --long one after the other has the default ones.
# LeaderLeavingSpec LeaderElectionSpec DisallowJoinOfTwoClustersSpec RestartFirstSeedNodeSpec QuickRestartSpec
# SingletonClusterSpec; MEMB, SEED, FD, DOWN.
. "$(dirname "$0")/lib.sh"
hosts_begin 16 namespaces
quick=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms
    --set cluster.failure-detector.heartbeat-interval=200ms --set cluster.failure-detector.expected-response-after=1s
    --set cluster.failure-detector.min-std-deviation=50ms)
pause=1s stable=2s beats=5
[ -z "$sanitizer" ] || { pause=3s; stable=8s; }
if [ "${1:-}" = --long ]; then
    quick=() stable=20s pause=3s beats=10
fi
quick+=(--set cluster.failure-detector.acceptable-heartbeat-pause="$pause" --set cluster.downing.stable-after="$stable" --log-level warning)
echoes=(--load "$build/examples/.libs/echo.so")

begin() { # NODE...: they start at once, the first is the seed, and are one cluster
    local index
    seed_host=$1
    for index; do start_node "$index" "${quick[@]}" "${echoes[@]}"; done
    wait_until 60 all_up $# "$@" || { fail "cluster_of_${1}_comes_up" "$(ctl "$1" members 2>&1 | tail -n 5)"; return 1; }
    for index; do ctl "$index" wait --converged --members $# --timeout 60s >/dev/null || fail "cluster_of_${1}_converges"; done
    beat "$beats" "$@"
}
leads() { # LEADER NODE...
    local leader=$1 index
    shift
    for index; do [ "$(ctl "$index" leader)" = "$(addr "$leader")" ] || return 1; done
}
is_another() { # NODE ADDRESS OLD-UID: a new incarnation is Up there
    local uid
    uid=$(uid_of "$1" "$2")
    [ -n "$uid" ] && [ "$uid" != "$3" ] && [ "$(ctl "$1" member-status "$2")" = Up ]
}

leaders() { # 1 2 3 4: the first leaves, the next one crashes
    begin 1 2 3 4 || return
    events_begin 4
    expect leader_leaves 0 ctl 3 leave "$(addr 1)" --timeout 60s
    node_ended leader_that_left_ends_with_0 1 0
    check next_one_leads wait_until 60 leads 2 2 3 4
    check three_remain wait_until 60 all_up 3 2 3 4
    check it_was_seen_leaving event '"type":"MemberLeft"'
    # MembershipChangeListenerExitingSpec
    check it_was_seen_exiting event '"type":"MemberExited"'
    # LeaderLeavingSpec
    check it_was_seen_removed event '"type":"MemberRemoved"'
    unsuspected it_was_not_suspected "$(suspicions "$work/events")" 10000
    kill_node 2
    if timed 60 sees_gone "$(addr 2)" 3 4; then pass leader_that_died_is_removed; measure leader_removed "$took" ms; else fail leader_that_died_is_removed; fi
    # LeaderElectionSpec
    check the_one_after_it_leads wait_until 60 leads 3 3 4
    expect two_are_healthy 0 ctl 4 wait --converged --members 2 --timeout 60s
    check by_downing_it event '"type":"MemberDowned"'
}

restarts() { # 5 6 7: the first seed starts again; another one again and again, once while it still joins
    local old round
    begin 5 6 7 || return
    old=$(uid_of 6 "$(addr 5)")
    kill_node 5
    start_node 5 "${quick[@]}" --seed "$(addr 6)"
    check first_seed_joins_those_that_remain wait_until 60 is_another 6 "$(addr 5)" "$old"
    # RestartFirstSeedNodeSpec
    check no_island wait_until 60 all_up 3 5 6 7
    for round in 1 2 3; do
        old=$(uid_of 5 "$(addr 7)")
        kill_node 7
        start_node 7 "${quick[@]}" --seed "$(addr 6)"
        if [ "$round" = 2 ]; then
            kill_node 7
            start_node 7 "${quick[@]}" --seed "$(addr 6)"
        fi
        # QuickRestartSpec
        check "incarnation_${round}_is_up" wait_until 60 is_another 5 "$(addr 7)" "$old"
    done
    # QuickRestartSpec
    check nobody_is_listed_twice wait_until 60 all_up 3 5 6 7
    # QuickRestartSpec
    expect restarted_ones_converge 0 ctl 7 wait --converged --members 3 --timeout 60s
    # DisallowJoinOfTwoClustersSpec
    expect two_clusters_stay_two 1 ctl 6 join "$(addr 13)"
    check one_leader_of_three wait_until 60 leads 5 5 6 7
}

one_way() { # 8 9 10: the last one receives nothing: first not for long, then for good
    local deaf
    [ "$stable" != 2s ] || quick+=(--set cluster.downing.stable-after=4s) # TCP is silent for as long again
    begin 8 9 10 || return
    deaf=$(addr 10)
    host_deafen 10
    if timed 60 sees_unreachable "$deaf" 8 9; then pass deaf_one_is_found; measure one_way_unreachable "$took" ms; else fail deaf_one_is_found; fi
    host_listen 10
    check it_hears_again wait_until 60 none_unreachable 8 9 10
    check nobody_was_removed_for_it wait_until 60 all_up 3 8 9 10
    host_deafen 10
    check deaf_for_good_is_removed wait_until 90 sees_gone "$deaf" 8 9
    host_listen 10
    node_ended it_ends_with_76 10 76
    start_node 10 "${quick[@]}"
    check a_fresh_process_is_welcome wait_until 60 all_up 3 8 9 10
}

flapping() { # 11 12 13: a link that comes and goes
    local round
    quick+=(--set cluster.downing.stable-after=20s)
    begin 11 12 13 || return
    for round in 1 2 3 4 5; do
        host_cut 13
        elapse 0.4 "how long the link is cut"
        host_heal 13
        elapse 0.4 "how long it is whole"
    done
    expect flapping_link_heals 0 ctl 13 wait --converged --members 3 --timeout 60s
    check nobody_was_removed_for_flapping wait_until 60 all_up 3 11 12 13
    check messages_pass_afterwards wait_until 60 ctl 11 ask "$(addr 13)/user/echo" hello --timeout 5s
    lacks nobody_was_downed_for_flapping "is Down" "$work/node-11.log"
}

jumps() { # 14 15 16: the wall clock of 15, and of no other, is set forth and back (wall_clock.c)
    local seconds begin
    seed_host=14
    echo 0 >"$work/clock"
    for index in 14 16; do start_node "$index" "${quick[@]}" "${echoes[@]}"; done
    host_start 15 "$work/node-15.log" env LD_PRELOAD="$build/tests/multinode/.libs/wall_clock.so" WALL_CLOCK_FILE="$work/clock" \
        "$troupe" node --system demo --host "${host_address[15]}" --port "${host_port[15]}" --socket "${host_socket[15]}" \
        --seed "$(addr 14)" "${quick[@]}" "${echoes[@]}" --log-level info
    node_pid[15]=$host_started
    pids+=("$host_started")
    check cluster_with_a_clock_of_its_own wait_until 60 all_up 3 14 15 16
    for index in 14 15 16; do ctl "$index" wait --converged --members 3 --timeout 60s >/dev/null || fail "node_${index}_converges"; done
    beat "$beats" 14 15 16
    begin=$(now_ms)
    for index in 14 15; do
        host_start "$index" "$work/events-$index" env -u TROUPE_TIMEOUT "$troupe" events -o jsonl --type UnreachableMember
        pids+=("$host_started")
    done
    for seconds in 3600 -7200 100000 0; do # forth, back, more than a tombstone's age forth, as it was
        echo "$seconds" >"$work/clock"
        expect "it_answers_at_${seconds#-}" 0 ctl 14 ask "$(addr 15)/user/echo" hello
        beat_on "$beats" 14 15 16
    done
    echo -3600 >"$work/clock"
    kill_node 16
    check the_dead_one_is_removed_all_the_same wait_until 90 sees_gone "$(addr 16)" 14 15
    echo 100000 >"$work/clock"
    start_node 16 "${quick[@]}"
    check its_next_incarnation_is_up wait_until 60 all_up 3 14 15 16
    unsuspected only_the_dead_one_was_unreachable "$(suspicions <(grep -hvF "\"$(addr 16)\"" "$work"/events-1?))" $(($(now_ms) - begin))
    echo 315360000 >"$work/clock" # ten years; the node's own stamps show that the clock does move
    kill_node 15 TERM
    check its_log_shows_the_jump grep -q "^$(($(date +%Y) + 9))\|^$(($(date +%Y) + 10))" "$work/node-15.log"
}

together leaders restarts one_way flapping jumps
test_end
