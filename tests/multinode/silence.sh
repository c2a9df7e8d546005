#!/bin/bash
# silence.sh - three hosts, default settings, several such clusters at once: while all send heartbeats none is suspected; how long
# it takes from `kill -9` until every other node knows; how fast the three come up, and one leaves.
#   silence.sh [CLUSTERS BEATS]   default 2 3; --long: 20 clusters of 180 heartbeats each, together an hour
# FD-06, MEMB-13, SEED-03, MEMB-11. The times are those that the events tell, so looking at them delays nothing.
. "$(dirname "$0")/lib.sh"
clusters=${1:-2} beats=${2:-3}
[ "${1:-}" != --long ] || { clusters=20 beats=180; }
hosts_begin $((3 * clusters)) namespaces

told() { grep -F "\"$2\"" "$work/events-$1" | grep -qF "\"$(addr "$3")\""; } # NODE TYPE SUBJECT: on one line
both_told() { told "$one" "$1" "$2" && { [ -n "${3:-}" ] || told "$two" "$1" "$2"; }; }
told_ms() { # NODE TYPE SUBJECT: when it was told, as now_ms counts
    local time
    time=$(grep -F "\"$2\"" "$work/events-$1" | grep -F "\"$(addr "$3")\"" | sed -n 's/.*"time":"\([^"]*\)".*/\1/p' | head -n 1)
    date -d "$time" +%s%3N
}
later() { [ "$1" -gt "$2" ] && echo "$1" || echo "$2"; }
note() { echo "$2" >>"$work/../$1"; } # FIGURE MS

cluster() { # FIRST HOST
    local one=$1 two=$(($1 + 1)) three=$(($1 + 2)) begin index
    seed_host=$one
    for index in "$one" "$two" "$three"; do start_node "$index" --log-level warning; done
    timed 60 all_up 3 "$one" "$two" "$three" || { fail three_come_up; return; }
    note up "$took"
    begin=$(now_ms)
    for index in "$one" "$two"; do
        host_start "$index" "$work/events-$index" env -u TROUPE_TIMEOUT "$troupe" events -v -o jsonl
        pids+=("$host_started")
        wait_until 60 test -s "$work/events-$index" || fail events_are_subscribed
    done
    beat_on "$beats" "$one" "$two" "$three"
    unsuspected nobody_was_suspected "$(suspicions "$work/events-$one")" $(($(now_ms) - begin))
    begin=$(now_ms)
    kill_node "$three"
    wait_until 60 both_told UnreachableMember "$three" || { fail silence_is_noticed; return; }
    note unreachable $(($(later "$(told_ms "$one" UnreachableMember "$three")" "$(told_ms "$two" UnreachableMember "$three")") - begin))
    expect the_dead_one_is_downed 0 ctl "$one" down "$(addr "$three")" --yes --timeout 60s
    begin=$(now_ms)
    ctl "$two" leave --no-wait >/dev/null || fail leave_is_ordered
    wait_until 60 both_told MemberRemoved "$two" only || { fail it_leaves; return; }
    note leave $(($(told_ms "$one" MemberRemoved "$two") - begin))
    node_ended it_ends_with_0 "$two" 0
}

names=()
for ((c = 0; c < clusters; c++)); do
    eval "cluster_$c() { cluster $((3 * c + 1)); }"
    names+=("cluster_$c")
done
together "${names[@]}"
summary() { # FIGURE BOUND: how many runs kept it
    local least median most kept all
    read -r least median most kept all < <(sort -n "$work/$1" | awk -v bound="$2" '{ v[NR] = $1; kept += $1 <= bound }
        END { print v[1], v[int((NR + 1) / 2)], v[NR], kept + 0, NR }')
    echo "troupe three_hosts $1_least $least ms"
    echo "troupe three_hosts $1_median $median ms"
    echo "troupe three_hosts $1_greatest $most ms"
    echo "troupe three_hosts $1_runs $all runs"
    echo "troupe three_hosts $1_within_${2}_ms $kept runs"
    is "every_cluster_has_its_figure_$1" "$all" "$clusters"
    within "greatest_$1" "$most" "$2"
}
summary up 2000
summary unreachable 6000
summary leave 2000
test_end
