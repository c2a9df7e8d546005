#!/bin/bash
# strategies.sh - eight clusters of three at once, each with a strategy of its own, on the same three hosts: a cut of host 3
# that heals before stable-after takes no member out; one that lasts leaves the side that the table of docs/operating.md says, and
# the other side ends with 76. With auto-down-after both sides go on, as two clusters; with manual no member is taken out before an
# operator says so. DOWN. With --long the default timings.
. "$(dirname "$0")/lib.sh"
hosts_begin 3 namespaces
clusters=(majority quorum oldest referee all lease auto manual)
declare -A port pid
stays=([0]='1 2' [1]='1 2' [2]='1 2' [3]='3' [4]='' [5]='1 2' [6]='1 2' [7]='')
goes=([0]='3' [1]='3' [2]='3' [3]='1 2' [4]='1 2 3' [5]='3' [6]='' [7]='')
# The first cut must have healed before this has passed since it was noticed: TCP may be silent for as long again as the cut
# lasted. With 3 s a script that waited 2 s for the processor was too late; a sanitizer's clients need long to ask all nodes.
stable=8s alone=9s
[ -z "$sanitizer" ] || stable=16s alone=18s
timings=(--set cluster.gossip-interval=300ms --set cluster.leader-actions-interval=300ms --set "cluster.downing.stable-after=$stable"
    --set cluster.failure-detector.heartbeat-interval=300ms --set cluster.failure-detector.acceptable-heartbeat-pause=1s)
[ "${1:-}" = --long ] && timings=() alone=21s

strategy() { # CLUSTER: its options
    local key=cluster.downing
    case $1 in
        majority) echo "--set $key.active-strategy=keep-majority" ;;
        quorum) echo "--set $key.active-strategy=static-quorum --set $key.static-quorum.quorum-size=2" ;;
        oldest) echo "--set $key.active-strategy=keep-oldest" ;;
        referee) echo "--set $key.active-strategy=keep-referee --set $key.keep-referee.address=$(node_at referee 3)" ;;
        all) echo "--set $key.active-strategy=down-all" ;;
        lease) echo "--set $key.active-strategy=lease --set $key.lease.file=$work/lease" ;;
        auto) echo "--set $key.active-strategy=auto-down-after --set $key.auto-down-after=$alone" ;;
        manual) echo "--set $key.active-strategy=manual" ;;
    esac
}
node_at() { echo "troupe.tcp://$1@${host_address[$2]}:${port[$1]}"; }
ask() { # CLUSTER HOST ARGUMENT...
    local name=$1 host=$2
    shift 2
    host_run "$host" "$troupe" --socket "$work/$name-$host.sock" "$@"
}
counts() { # N CLUSTER HOST: so many are Up there, and none is unreachable
    [ "$(ask "$2" "$3" members --status Up -o name 2>/dev/null | wc -l)" -eq "$1" ] &&
        [ -z "$(ask "$2" "$3" unreachable -o name 2>&1)" ]
}
all_whole() {
    local name host
    for name in "${clusters[@]}"; do for host in 1 2 3; do counts 3 "$name" "$host" || return 1; done; done
}
unaware=("${clusters[@]}")
all_cut() { # both sides know of the cut; while it lasts, a node that has noticed it is not asked again
    while [ ${#unaware[@]} -gt 0 ]; do
        [ -n "$(ask "${unaware[0]}" 1 unreachable -o name 2>/dev/null)" ] &&
            [ -n "$(ask "${unaware[0]}" 3 unreachable -o name 2>/dev/null)" ] || return 1
        unaware=("${unaware[@]:1}")
    done
}
marked() { grep -l 'member .* is Down' "$work/$1"-?.log; } # CLUSTER: the logs with a member marked Down
all_marked() { [ "$(marked auto | wc -l)" -eq 3 ]; }
three_there() { # HOST...: in their views of the cluster that waits for its operator
    local host
    for host; do [ "$(ask manual "$host" members -o name 2>/dev/null | wc -l)" -eq 3 ] || return 1; done
}

for index in "${!clusters[@]}"; do port[${clusters[index]}]=$((2600 + index)); done
for host in 1 2 3; do
    for name in "${clusters[@]}"; do
        # shellcheck disable=SC2046 # options are several words
        host_start "$host" "$work/$name-$host.log" "$troupe" node --system "$name" --host "${host_address[host]}" \
            --port "${port[$name]}" --socket "$work/$name-$host.sock" --seed "$(node_at "$name" 1)" "${timings[@]}" $(strategy "$name")
        pid[$name-$host]=$host_started
        pids+=("$host_started")
    done
done
check all_are_up wait_until 60 all_whole
check lease_on_a_disk_of_one_host_is_warned_of wait_until 60 grep -q "file system of this host alone" "$work/lease-1.log"
all_have_beaten() {
    local name host
    for name in "${clusters[@]}"; do
        for host in 1 2 3; do ask "$name" "$host" members -o json 2>/dev/null | heartbeats_in | at_least 3 || return 1; done
    done
}
wait_step=300 check heartbeats_flow wait_until 60 all_have_beaten

host_cut 3
check cut_is_noticed wait_until 60 all_cut
host_heal 3
check heal_before_stable_after_takes_nobody_out wait_until 60 all_whole

host_cut 3
for index in "${!clusters[@]}"; do
    name=${clusters[index]}
    for host in ${goes[index]}; do ended "${name}_ends_on_host_$host" "${pid[$name-$host]}" 76; done
    left=$(wc -w <<<"${stays[index]}")
    for host in ${stays[index]}; do check "${name}_goes_on_on_host_$host" wait_until 60 counts "$left" "$name" "$host"; done
done
# SplitBrainSpec
check auto_other_side_goes_on_too wait_until 60 counts 1 auto 3
# SplitBrainSpec
check both_sides_of_auto_marked_the_other_down wait_until 60 all_marked
# ClientDowningNodeThatIsUnreachableSpec
check manual_waits_for_the_operator wait_until 60 three_there 1 2 3 # all the other clusters have decided meanwhile
is manual_has_marked_nobody_down "$(marked manual)" ""
# ClientDowningNodeThatIsUnreachableSpec
expect operator_downs_who_is_cut_off 0 ask manual 1 down "$(node_at manual 3)" --yes --timeout 60s
for host in 1 2; do check "manual_goes_on_on_host_$host" wait_until 60 counts 2 manual "$host"; done
check manual_cut_off_side_waits_on wait_until 60 three_there 3
host_heal 3
sides_told() { # by each that goes
    local index host log
    for index in "${!clusters[@]}"; do
        for host in ${goes[index]}; do
            log=$work/${clusters[index]}-$host.log
            grep -q 'this side: .*; not on it: ' "$log" && grep -q 'what next: ' "$log" || return 1
        done
    done
}
check who_stops_tells_the_sides_and_what_next wait_until 60 sides_told
check refused_side_tells_why wait_until 60 grep -q 'the lease is refused: .*has it' "$work/lease-3.log"
test_end
