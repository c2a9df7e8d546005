#!/bin/bash
# rolling.sh - rolling upgrades of a cluster from an earlier version of Troupe, which is built from its commit, to this one. --long only.
#
#   tests/upgrade/from           from releases: traffic through routed actors and actors that were deployed on other nodes
#   tests/upgrade/from-sharding  from versions with sharding: entities too, whose shards move at most once
#
# A node of the new version is added before the first old one leaves. Nothing is lost. An earlier version whose commit is not there, or
# does not build, fails the test. TROUPE_UPGRADE_BUILDS: a directory in which builds are kept, as COMMIT/build.
# RollingUpdateShardAllocationSpec. --long: as ever; it has no short form.
# shellcheck disable=SC2154
builds=${TROUPE_UPGRADE_BUILDS:-}
. "$(dirname "$0")/../multinode/lib.sh"
hosts_begin 4
if [ "${1:-}" != --long ]; then skip "builds earlier versions: --long"; fi
builds=${builds:-$work/builds}
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms --set log.level=warning)
new=$build

old_build() { # COMMIT: builds it, unless it is there, and sets $old, and $old_driver when it has the key remote.driver
    local commit=$1 home=$builds/$1
    old=$home/build
    old_driver=$(git -C "$src" grep -h '^ *driver = ' "$commit" -- docs/reference.conf 2>/dev/null)
    [ ! -e "$old/done" ] || return 0
    mkdir -p "$old" || return 1
    git -C "$src" cat-file -e "$commit^{commit}" 2>/dev/null || { echo "no commit $commit: fetch the whole history" >&2; return 1; }
    git -C "$src" archive "$commit" | tar -x -C "$home" || return 1
    (cd "$home" && autoreconf -i && cd build && ../configure -q --disable-static CFLAGS='-O1 -g' && make -j2 all && touch done) >"$work/build.log" 2>&1 ||
        { tail -n 20 "$work/build.log" >&2; return 1; }
}
built() { # NAME COMMIT: 1 when it is not, and the test has failed
    local seen=$failures
    check "$1_is_built" old_build "$2"
    [ "$failures" -eq "$seen" ]
}
node_of() { # BUILD I PLUGIN[:ARGUMENTS] [OPTION]...
    local from=$1 index=$2 plugin=$3 troupe=$1/troupe
    shift 3
    # An old one without the key has one driver, and refuses what it does not know.
    [ "$from" != "$old" ] || [ -n "$old_driver" ] || unset TROUPE_REMOTE_DRIVER
    start_node "$index" "${fast[@]}" --load "$from/tests/multinode/.libs/$plugin" "$@"
    [ -z "$driver" ] || export TROUPE_REMOTE_DRIVER=$driver
}
leaves() { # I ASKED: node I leaves, asked at node ASKED
    ctl "$2" leave "$(addr "$1")" --timeout 60s >/dev/null || fail "leave_$1"
    await "${node_pid[$1]}" 120 || fail "node_$1_ends"
}
cluster_ends() {
    local index
    for index in 1 2 3 4; do kill_node "$index" TERM; done
}

# ---- routed and remote actors ----------------------------------------------------------------------------------------------
cat >"$work/front.conf" <<'END'
deployment "/front/pool"  { router = round-robin-pool  nr-of-instances = 100
    cluster { enabled = on  max-nr-of-instances-per-node = 2  allow-local-routees = off  use-role = compute } }
deployment "/front/group" { router = random-group
    cluster { enabled = on  routees-path = /user/worker  use-role = compute } }
END
routees() { [[ $(ctl "$1" ask /user/front routees 2>/dev/null) == "$2" ]]; } # I "POOL GROUP"
traffic_ends() { # NAME
    local report sent answered
    report=$(ctl 1 ask /user/front end --timeout 60s)
    read -r _ sent _ answered <<<"$report"
    echo "$1: $report"
    check "$1_had_traffic" [ "${sent:-0}" -ge 240 ]
    is "$1_lost_nothing" "${answered:-none}" "${sent:-0}"
}
routed_upgrade() { # VERSION: with $old
    local name=from_${1//[^0-9a-z]/_} index
    node_of "$old" 1 routers.so:front --config "$work/front.conf"
    for index in 2 3; do node_of "$old" "$index" routers.so --role compute; done
    check "${name}_three_old_nodes" wait_until 60 all_up 3 1 2 3
    check "${name}_old_routees" wait_until 60 routees 1 "4 2"
    is "${name}_traffic_begins" "$(ctl 1 ask /user/front begin)" begun
    node_of "$new" 4 routers.so --role compute
    check "${name}_a_new_node_is_added" wait_until 60 all_up 4 1 2 3 4
    check "${name}_it_gets_routees" wait_until 60 routees 1 "6 3"
    for index in 2 3; do
        leaves "$index" 1
        check "${name}_node_${index}_is_out" wait_until 60 routees 1 "4 2"
        node_of "$new" "$index" routers.so --role compute
        check "${name}_node_${index}_is_new" wait_until 60 routees 1 "6 3"
    done
    traffic_ends "${name}_an_old_front"
    leaves 1 4
    seed_host=4 node_of "$new" 1 routers.so:front --config "$work/front.conf"
    check "${name}_all_are_new" wait_until 60 all_up 4 1 2 3 4
    check "${name}_the_new_front_finds_them" wait_until 60 routees 1 "6 3"
    is "${name}_traffic_begins_again" "$(ctl 1 ask /user/front begin)" begun
    leaves 4 1
    traffic_ends "${name}_a_new_front"
    node_of "$new" 4 routers.so --role compute
    check "${name}_four_new_nodes" wait_until 60 all_up 4 1 2 3 4
    cluster_ends
}

# ---- sharded actors --------------------------------------------------------------------------------------------------------
ids=()
for ((number = 1; number <= 40; number++)); do ids+=("id$number"); done
tally() { ctl "$1" ask /user/tally "$2" --timeout 5s 2>/dev/null; } # I ID: "N ADDRESS"
tallied() { tally "$1" "$2" >"$work/tally" && [ -s "$work/tally" ]; }
homes_look() { # I: note where each entity lives, asked at node I
    local id at
    for id in "${ids[@]}"; do
        wait_until 60 tallied "$1" "$id" || fail "entity_${id}_answers_node_$1"
        read -r _ at <"$work/tally"
        echo "$id $at" >>"$work/seen"
    done
}
follow() { # I: ask at node I until it is over; each question must be answered
    local id at
    while [ ! -e "$work/over" ]; do
        for id in "${ids[@]}"; do
            at=
            read -r _ at < <(ctl "$1" ask /user/tally "$id" --timeout 30s 2>/dev/null)
            if [ -n "$at" ]; then echo "$id $at" >>"$work/seen"; else echo "$id" >>"$work/lost"; fi
            echo >>"$work/asked"
        done
    done
}
moves() { awk '{ if (($1 in last) && last[$1] != $2) moves[$1]++; last[$1] = $2 } END { for (id in last) print moves[id] + 0 }' "$work/seen" | sort -n | tail -n 1; }
homes() { awk '{ last[$1] = $2 } END { for (id in last) print last[id] }' "$work/seen" | sort | uniq -c | tr '\n' ' '; }
so_many_host() { [ "$(ctl "$1" shards tally 2>/dev/null | grep -c ' hosts')" -eq "$2" ]; } # I N
sharded_upgrade() { # VERSION: with $old
    local name=shards_from_${1//[^0-9a-z]/_} follower
    rm -f "$work/over" "$work/seen" "$work/asked"
    : >"$work/lost"
    node_of "$old" 1 once.so:16 --set cluster.app-version=1.9
    node_of "$old" 2 once.so:16 --set cluster.app-version=1.9
    check "${name}_two_old_nodes" wait_until 60 all_up 2 1 2
    check "${name}_both_host" wait_until 60 so_many_host 1 2
    homes_look 1
    node_of "$new" 3 once.so:16 --set cluster.app-version=1.10
    check "${name}_a_new_node_is_added" wait_until 60 all_up 3 1 2 3
    check "${name}_it_hosts_too" wait_until 60 so_many_host 1 3
    background follow 3
    follower=$started
    leaves 2 3
    homes_look 3
    seed_host=3 node_of "$new" 4 once.so:16 --set cluster.app-version=1.10
    check "${name}_another_new_node" wait_until 60 all_up 3 1 3 4
    check "${name}_it_hosts_as_well" wait_until 60 so_many_host 3 3
    leaves 1 3
    homes_look 3
    touch "$work/over"
    await "$follower" 120 || fail "${name}_the_follower_ends"
    echo "$name: $(wc -l <"$work/asked") questions while nodes left, $(wc -l <"$work/lost") without an answer; $(homes)"
    check "${name}_had_questions" [ "$(wc -l <"$work/asked")" -ge 40 ]
    is "${name}_lost_nothing" "$(wc -l <"$work/lost")" 0
    is "${name}_no_shard_is_on_an_old_node" "$(homes | grep -cE "$(addr 1)( |\$)|$(addr 2)( |\$)")" 0
    # RollingUpdateShardAllocationSpec
    is "${name}_each_shard_moves_at_most_once" "$(moves)" 1
    for index in 3 4; do kill_node "$index" TERM; done
}

while read -r version commit; do
    case $version in '' | '#'*) continue ;; esac
    built "version_${version//./_}" "$commit" && routed_upgrade "$version"
done <"$src/tests/upgrade/from"
while read -r version commit; do
    case $version in '' | '#'*) continue ;; esac
    built "commit_${commit:0:8}" "$commit" && routed_upgrade "$version" && sharded_upgrade "$version"
done <"$src/tests/upgrade/from-sharding"
test_end
