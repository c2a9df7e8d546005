#!/bin/bash
# drain.sh - four hosts with sharded entities and a singleton (once.so): one is drained and undrained, under an oldest node that leaves
# meanwhile; a drained node that restarts is not; where all are drained the shards stay; and a node of an earlier version among them.
. "$(dirname "$0")/lib.sh"
hosts_begin 4
plugin=$build/tests/multinode/.libs/once.so
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms)
ids=()
for ((number = 1; number <= 30; number++)); do ids+=("id$number"); done
start_host() { # I [OPTION]...
    local index=$1
    shift
    start_node "$index" "${fast[@]}" --load "$plugin:16" "$@"
}
for index in 1 2 3; do
    start_host "$index"
    check "host_${index}_comes_up" wait_until 60 all_up "$index" "$index"
done
check all_come_up wait_until 60 all_up 3 1 2 3

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
on() { # ADDRESS: how many entities live there
    local id count=0
    for id in "${ids[@]}"; do [ "${home[$id]}" != "$1" ] || count=$((count + 1)); done
    echo "$count"
}
shards_of() { # I OF: its shards, as the coordinator tells node I
    ctl "$1" shards tally -o jsonl 2>/dev/null | tr '{' '\n' | grep -F "\"node\":\"$(addr "$2")\"" | grep -oE '"shards": *[0-9]+' | grep -oE '[0-9]+$'
}
has_none() { [ "$(shards_of "$1" "$2")" = 0 ]; }
has_some() { [ "$(shards_of "$1" "$2")" -gt 0 ] 2>/dev/null; }
marked() { ctl "$1" members -o jsonl 2>/dev/null | tr '{' '\n' | grep -F "\"node\":\"$(addr "$2")\"" | grep -qF '"drained":true'; } # I OF
unmarked() { [ "$(count_up "$1")" -gt 0 ] && ! marked "$1" "$2"; }
all_hosted() { [ "$(ctl 1 shards tally 2>/dev/null | grep -c ' hosts')" -eq "$1" ]; }
check all_three_host_the_type wait_until 60 all_hosted 3
homes_look 1
check node_2_has_shards wait_until 60 has_some 1 2

expect drain_of_another_member 0 ctl 3 drain "$(addr 2)" --timeout 60s
has drain_says_what_it_did "drained ("
check no_shard_is_left wait_until 60 has_none 1 2
for index in 1 2 3; do check "node_${index}_knows_the_mark" wait_until 60 marked "$index" 2; done
homes_look 2
is no_entity_lives_there "$(on "$(addr 2)")" 0
expect members_show_it 0 ctl 2 members
has members_says_drained drained
expect status_stays_healthy 0 ctl 2 status
has status_says_drained "troupe undrain"
expect why_is_calm 0 ctl 2 why
has why_says_drained "drained"
ctl 2 doctor >"$work/doctor" 2>&1
has doctor_warns_of_a_drained_member "is drained: it is given no shard" "$work/doctor"
expect draining_twice_is_draining_once 0 ctl 2 drain --timeout 60s
grep -qF 'order=drain' "$work"/node-3.log && pass the_order_is_audited || fail the_order_is_audited

# the coordinator and oldest node leaves: the mark stays, its shards go to node 3 alone
expect the_oldest_leaves 0 ctl 3 leave "$(addr 1)" --timeout 60s
check it_is_gone wait_until 60 sees_gone "$(addr 1)" 2 3
homes_look 3
is still_no_entity_lives_there "$(on "$(addr 2)")" 0
check the_next_coordinator_knows_the_mark wait_until 60 marked 3 2

# the singleton is on the oldest, node 2: it stays, and is named
counts() { ctl 3 ask /user/counter count --timeout 5s >"$work/count" 2>/dev/null; }
check singleton_answers wait_until 60 counts
runs_there() { ctl 2 singleton counter -o jsonl 2>/dev/null | grep -qF '"runsHere":true'; }
check singleton_is_on_the_drained_node wait_until 60 runs_there
expect drain_names_the_singleton 0 ctl 2 drain --timeout 60s
has it_is_named "counter" && has it_says_that_leave_moves_it "troupe leave"

# all are drained: the shards stay
expect drain_of_the_last_one_says_so 1 ctl 3 drain --timeout 60s
has it_says_that_shards_stay "shards stay"
homes_look 3
is the_entities_stay "$(on "$(addr 3)")" "${#ids[@]}"
expect undrain 0 ctl 3 undrain "$(addr 2)"
has undrain_says_so "drained no more"
check it_has_all_shards wait_until 60 has_some 2 2
check the_drained_one_has_none wait_until 60 has_none 2 3

# a restart is another incarnation: it is not drained
kill_node 3
expect it_is_downed 0 ctl 2 down "$(addr 3)" --yes --dead --timeout 60s
seed_host=2 start_host 3
check it_comes_back wait_until 60 all_up 2 2 3
check it_is_not_drained wait_until 60 unmarked 2 3
check it_knows_so wait_until 60 unmarked 3 3

# a member that does not know drain: nothing is changed, and it is named
seed_host=2 start_host 4 --set remote.wire-minor=4
check an_earlier_version_joins wait_until 60 all_up 3 2 3 4
expect drain_is_refused 1 ctl 2 drain "$(addr 3)" --timeout 30s
has it_names_the_member "$(addr 4)" "$work/err"
check nothing_was_changed unmarked 2 3
expect the_earlier_version_says_so_itself 1 ctl 4 drain --timeout 30s
has it_names_itself "$(addr 4)" "$work/err"
expect no_such_member 68 ctl 2 drain nope
test_end
