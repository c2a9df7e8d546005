#!/bin/bash
# rolling.sh - a rolling update of a cluster with sharded entities (once.so): two nodes of one version of the application, then two of
# the next one, then the old ones leave. Shards go to nodes of the newer version only, and each moves at most once.
# FUTURE-06; RollingUpdateShardAllocationSpec. --long: default timings.
. "$(dirname "$0")/lib.sh"
hosts_begin 4
plugin=$build/tests/multinode/.libs/once.so
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms)
[ "${1:-}" != --long ] || fast=()
ids=()
for ((number = 1; number <= 40; number++)); do ids+=("id$number"); done
start_version() { # VERSION I...
    local version=$1 index
    shift
    for index in "$@"; do start_node "$index" "${fast[@]}" --set cluster.app-version="$version" --load "$plugin:16"; done
}
tally() { ctl "$1" ask /user/tally "$2" --timeout 5s 2>/dev/null; } # I ID: "N ADDRESS"
tallied() { tally "$1" "$2" >"$work/tally" && [ -s "$work/tally" ]; }
declare -A home
homes_look() { # I: where each entity lives, asked at this node
    local id
    for id in "${ids[@]}"; do
        wait_until 60 tallied "$1" "$id" || fail "entity_${id}_answers_node_$1"
        read -r _ "home[$id]" <"$work/tally"
    done
}
on() { # ADDRESS...: how many entities live on these nodes
    local id count=0
    for id in "${ids[@]}"; do [[ " $* " != *" ${home[$id]} "* ]] || count=$((count + 1)); done
    echo "$count"
}

# "1.10" is newer than "1.9": numbers are compared.
start_version 1.9 1 2
check two_old_nodes_come_up wait_until 60 all_up 2 1 2
# Those that the coordinator knows get shards.
so_many_host() { [ "$(ctl 1 shards tally | grep -c ' hosts')" -eq "$1" ]; } # N
check both_old_nodes_host_the_type wait_until 60 so_many_host 2
homes_look 1
is old_nodes_share_the_shards "$(($(on "$(addr 1)") > 0 && $(on "$(addr 2)") > 0))" 1
start_version 1.10 3 4
check two_new_nodes_come_up wait_until 60 all_up 4 1 2 3 4
expect members_say_their_version 0 ctl 1 members
has a_member_has_the_new_version 1.10
check all_four_host_the_type wait_until 60 so_many_host 4
for id in "${ids[@]}"; do echo "$id ${home[$id]}"; done >"$work/seen"
expect rebalancing_is_asked_for 0 ctl 1 shards tally --rebalance

# Whoever asks at node 3 while the old nodes leave sees each entity go once.
follow() {
    local id at
    while [ ! -e "$work/over" ]; do
        for id in "${ids[@]}"; do
            read -r _ at < <(tally 3 "$id")
            [ -z "$at" ] || echo "$id $at"
        done
    done >>"$work/seen"
}
background follow
follower=$started
homes_look 3
is no_shard_moves_because_new_nodes_are_there "$(on "$(addr 1)" "$(addr 2)")" "${#ids[@]}"
was_on_one=$(on "$(addr 1)")
expect the_younger_old_node_leaves 0 ctl 3 leave "$(addr 2)" --timeout 60s
homes_look 3
is its_shards_are_on_new_nodes "$(on "$(addr 3)" "$(addr 4)")" $((${#ids[@]} - was_on_one))
is those_of_the_other_old_node_stay "$(on "$(addr 1)")" "$was_on_one"
expect the_oldest_node_leaves 0 ctl 3 leave "$(addr 1)" --timeout 60s
homes_look 3
# RollingUpdateShardAllocationSpec
is all_shards_are_on_new_nodes "$(on "$(addr 3)" "$(addr 4)")" "${#ids[@]}"
is both_new_nodes_have_some "$(($(on "$(addr 3)") > 0 && $(on "$(addr 4)") > 0))" 1
touch "$work/over"
await "$follower" 120 || fail the_follower_ends
moves() { awk '{ if (($1 in last) && last[$1] != $2) moves[$1]++; last[$1] = $2 } END { for (id in last) print moves[id] + 0 }' "$work/seen" | sort -n | tail -n 1; }
# RollingUpdateShardAllocationSpec
is each_shard_moves_at_most_once "$(moves)" 1
test_end
