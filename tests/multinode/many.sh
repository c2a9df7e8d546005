#!/bin/bash
# many.sh - many joiners of one node at once, on three hosts, and what each costs when nothing happens.
#   many.sh [NODES SECONDS]   default 51 3; --long: 3, 20 and 100 nodes, 60 s each
# JoinSeedNodeSpec; SEED, GOSSIP-15, FD-12 (what watching costs does not depend on the number of members).
. "$(dirname "$0")/lib.sh"
sizes=("${1:-51}") seconds=${2:-3}
[ "${1:-}" != --long ] || sizes=(3 20 100) seconds=60
[ -z "${TROUPE_SANITIZER:-}" ] || sizes=(12)
hosts_crowd 3 "${sizes[-1]}"
hertz=$(getconf CLK_TCK)
figure() { echo "troupe members_$size $1 $2 $3"; } # PARAM VALUE UNIT

ticks() { # of all nodes
    local index sum=0 line fields
    for index in "${nodes[@]}"; do
        line=$(<"/proc/${node_pid[index]}/stat")
        read -ra fields <<<"${line##*) }"
        sum=$((sum + fields[11] + fields[12]))
    done
    echo "$sum"
}
sent() { # NODE: frames and bytes that it has sent so far
    echo "$(ctl "$1" status -o json | sed -n 's/^ *"framesOut": *\([0-9]*\).*/\1/p')" \
        "$(ctl "$1" peers -o json | sed -n 's/^ *"bytesOut": *\([0-9]*\).*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')"
}
idle_costs() {
    local index before frames=0 bytes=0 rss=0 kib from to looked
    looked=(1 $(((size + 1) / 2)) "$size")
    # What another process does to the caches counts as ours: the best of three is what a node costs.
    for _ in 1 2 3; do
        for index in "${looked[@]}"; do sent "$index"; done >"$work/before"
        before=$(ticks)
        begin=$(now_ms)
        elapse "$seconds" "the time over which it is counted"
        used=$((($(ticks) - before) * 1000 * 1000 / hertz / size / ($(now_ms) - begin)))
        [ "$used" -gt 9 ] && [ -z "$sanitizer" ] || break
    done
    for index in "${looked[@]}"; do sent "$index"; done >"$work/after"
    took=$(($(now_ms) - begin + 1000)) # what beats once a second beats N + 1 times in N seconds and a bit
    while read -r from to; do # of the three that were looked at the busiest
        [ $((from * 1000 / took)) -le "$frames" ] || frames=$((from * 1000 / took))
        [ $((to * 1000 / took)) -le "$bytes" ] || bytes=$((to * 1000 / took))
    done < <(paste "$work/before" "$work/after" | awk '{ print $3 - $1, $4 - $2 }')
    for index in "${nodes[@]}"; do
        kib=$(awk '/^VmRSS:/ { print $2 }' "/proc/${node_pid[index]}/status")
        [ "$kib" -le "$rss" ] || rss=$kib
    done
    figure messages "$frames" 1/s
    figure bytes "$bytes" B/s
    figure processor "$used" permille
    figure resident "$rss" KiB
    judge idle_nodes_send_at_most_12_messages_a_second "$frames" 12 1/s
    judge idle_nodes_send_at_most_5_kb_a_second "$bytes" 5000 B/s
    judge idle_nodes_use_less_than_1_percent_of_a_core "$used" 9 permille
    judge idle_nodes_have_at_most_15_mb_resident "$rss" 15360 KiB
}

for size in "${sizes[@]}"; do
    echo "$size nodes"
    nodes=($(seq "$size"))
    begin=$(now_ms)
    for index in "${nodes[@]}"; do start_node "$index" --log-level warning; done
    ctl 1 wait --members "$size" --converged --timeout 120s >/dev/null || { fail all_joiners_come_up "$(ctl 1 members 2>&1 | tail -n 5)"; test_end; }
    took=$(($(now_ms) - begin))
    # All have seen it by then. Asking them all takes a process each, which is no part of the time.
    wait_until 60 all_up "$size" "${nodes[@]}" || { fail all_joiners_come_up "$(ctl 1 members 2>&1 | tail -n 5)"; test_end; }
    # JoinSeedNodeSpec
    pass all_joiners_come_up
    figure all_up "$took" ms
    within time_of_all_joiners "$took" 10000 # 30 s: three times that
    expect they_converge 0 ctl "$size" wait --converged --members "$size" --timeout 60s
    beat 3 1 $(((size + 1) / 2)) "$size" # what starting costs is another question
    idle_costs
    unsuspected nobody_of_them_is_suspected "$(suspects 1 "$size")" $(($(now_ms) - begin))
    for index in "${nodes[@]}"; do kill "${node_pid[index]}"; done
    for index in "${nodes[@]}"; do await "${node_pid[index]}" 60 || fail "node_${index}_ends"; done
done
test_end
