#!/bin/bash
# once.sh - what lives once in a cluster of four hosts, a singleton and sharded entities, by once.so: it is found from every node; its
# host leaves, is killed, and stands still until the others have given it up. And a node whose type has other shards.
# CONTRIB-01 CONTRIB-02 CONTRIB-04 CONTRIB-06 CONTRIB-09 CONTRIB-48; ClusterSingletonManagerSpec, ClusterShardingSpec,
# ClusterShardingLeavingSpec, ClusterShardingFailureSpec. --long: default timings.
. "$(dirname "$0")/lib.sh"
hosts_begin 4
plugin=$build/tests/multinode/.libs/once.so
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms --set cluster.downing.stable-after=4s
    --set cluster.failure-detector.heartbeat-interval=200ms --set cluster.failure-detector.acceptable-heartbeat-pause=1s)
# A sanitizer's nodes may stand still for longer than that.
[ -z "$sanitizer" ] || fast+=(--set cluster.failure-detector.acceptable-heartbeat-pause=3s --set cluster.downing.stable-after=8s)
[ "${1:-}" != --long ] || fast=()
ids=(a b c d e f g h i j k l)
start_host() { start_node "$1" "${fast[@]}" --load "$plugin:16"; }
for index in 1 2 3 4; do # one after the other: the lower number is the older
    start_host "$index"
    check "host_${index}_comes_up" wait_until 60 all_up "$index" "$index"
done
check all_come_up wait_until 60 all_up 4 1 2 3 4

tally() { ctl "$1" ask /user/tally "$2" --timeout 5s 2>/dev/null; } # I ID: "N ADDRESS"
tallied() { tally "$1" "$2" >"$work/tally" && [ -s "$work/tally" ]; }
ask_all() { # I: each entity, until it answers; a question to a node that has just ended is lost
    local id
    for id in "${ids[@]}"; do
        wait_until 60 tallied "$1" "$id" || fail "entity_${id}_answers_node_$1"
        read -r count home <"$work/tally"
        counts[$id]=$count homes[$id]=$home
    done
}
declare -A counts homes before
# I: a question whose answer comes too late counts, too. So each next number is only known to be greater than the last one.
counts_on() { ctl "$1" ask /user/counter count --timeout 5s >"$work/count" 2>/dev/null && [ -s "$work/count" ]; }
goes_on() { # NAME I: the first answer that it gets is more than the last one
    local last
    last=$(cat "$work/count")
    if wait_until 60 counts_on "$2" && [ "$(cat "$work/count")" -gt "$last" ]; then pass "$1"; else fail "$1" "$(cat "$work/count") after $last"; fi
}

# CONTRIB-01, CONTRIB-09
check singleton_is_found_from_one_node wait_until 60 counts_on 1
goes_on and_from_another_it_is_the_same_one 4
has_host() { ctl "$1" singleton counter -o jsonl 2>/dev/null | grep -qF "\"host\":\"$(addr "$2")\""; }
check singleton_says_its_host wait_until 60 has_host 3 1
# A node that the coordinator does not know yet gets no shard.
four_host() { [ "$(ctl "$1" shards tally | grep -c ' hosts')" -eq 4 ]; } # I
for index in 1 3; do check "node_${index}_knows_that_all_host_the_type" wait_until 60 four_host "$index"; done
ask_all 2
# ClusterShardingSpec
check entities_are_spread test "$(printf '%s\n' "${homes[@]}" | sort -u | wc -l)" -ge 3
place() { ctl "$1" entity tally "$2" | awk '$1 == "node" { print $2 }'; }
# FUTURE-20
expect entity_is_asked_by_its_path 0 ctl 2 ask /cluster/tally/a again
has its_answer_names_its_home "${homes[a]}"
# ClusterShardingGetStateSpec
is entity_says_where_it_lives "$(place 2 a)" "${homes[a]}"
expect shards_from_a_node_that_does_not_coordinate 0 ctl 3 shards tally
# ClusterShardingGetStateSpec
has shards_names_the_coordinator "coordinator"
for index in 1 2 3 4; do has "shards_names_node_$index" "$(addr "$index")"; done

# The oldest: singleton and coordinator at once.
for id in "${ids[@]}"; do before[$id]="${homes[$id]} ${counts[$id]}"; done
left=$(addr 1)
expect oldest_leaves 0 ctl 2 leave "$left" --timeout 60s
node_ended oldest_has_left 1 0
# CONTRIB-02, CONTRIB-04
goes_on singleton_moved_with_its_count 2
ask_all 3
kept=0
for id in "${ids[@]}"; do
    read -r home count <<<"${before[$id]}"
    [ "$home" != "$left" ] || [ "${homes[$id]}" != "$left" ] || fail "entity_${id}_left_with_its_host"
    [ "$home" != "${homes[$id]}" ] || [ "${counts[$id]}" -gt "$count" ] || fail "entity_${id}_did_not_restart"
    [ "${homes[$id]}" = "$left" ] || kept=$((kept + 1))
done
# ClusterShardingLeavingSpec
is all_entities_live_on_the_others "$kept" "${#ids[@]}"

kill_node 4
killed=$(addr 4)
# ClusterShardingFailureSpec
ask_all 2
check none_lives_on_the_killed_one test "$(printf '%s\n' "${homes[@]}" | grep -cxF "$killed")" -eq 0
check singleton_goes_on wait_until 60 counts_on 3

# Host 2 has the singleton now. It stands still until the others have given it up; when it goes on, it ends.
check host_of_the_singleton wait_until 60 has_host 3 2
seed_host=3 start_host 1
check host_1_is_back wait_until 60 all_up 3 1 2 3
freeze "${node_pid[2]}"
silence_is_said() { ctl 3 shards tally --timeout 3s 2>/dev/null | grep -qF 'tally: its coordinator did not tell'; }
# ClusterShardingQueriesSpec
check a_coordinator_that_does_not_answer_is_said wait_until 60 silence_is_said
# CONTRIB-06
check singleton_is_taken_over wait_until 90 counts_on 3
check entities_answer_meanwhile wait_until 60 tallied 1 a
kill -CONT "${node_pid[2]}"
node_ended who_stood_still_ends 2 76

# trp_sharding_start() waits in vain for a coordinator in a node that has not joined: it is refused when it has.
start_node 4 "${fast[@]}" --load "$plugin:8"
node_ended other_shards_are_refused 4 78
check its_log_names_both_numbers grep -q 'type refused type=tally reason=.*16.*8\|type refused type=tally reason=.*8.*16' "$work/node-4.log"
check the_others_go_on wait_until 60 tallied 3 b
test_end
