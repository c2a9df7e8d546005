#!/bin/bash
# eight.sh - eight hosts: all come up, the leader leaves and the next one leads, two are killed at once and removed,
# and what remains agrees. MEMB, GOSSIP (convergence), DOWN, SEED.
. "$(dirname "$0")/lib.sh"
count=8
hosts_begin $count
all=(1 2 3 4 5 6 7 8)
for index in "${all[@]}"; do
    start_node "$index" --seed "$(addr 2)" --role "r$((index % 2))" --log-level warning --set cluster.downing.stable-after=8s
done
if timed 60 all_up $count "${all[@]}"; then pass eight_come_up; measure eight_up "$took" ms; else fail eight_come_up "$(ctl 1 members 2>&1 | tail -n 12)"; test_end; fi
agree() { # NODE...: one digest of members, statuses and seen set, all converged
    local index digests=''
    for index in "$@"; do
        digests+=$(ctl "$index" members -o json | grep -E '^  "(version|converged)"' | tr -d ' \n')$'\n'
    done
    [ "$(sort -u <<<"${digests%$'\n'}" | wc -l)" -eq 1 ] && grep -q '"converged":true' <<<"$digests"
}
# HEADLINE-5, JoinSeedNodeSpec
if timed 60 agree "${all[@]}"; then pass eight_agree; measure eight_converged "$took" ms; else fail eight_agree; fi
same_order() { [ "$(for index in "${all[@]}"; do ctl "$index" members -o name | md5sum; done | sort -u | wc -l)" -eq 1 ]; }
check order_is_the_same wait_until 60 same_order
# ROLES-01
is roles_are_known "$(ctl 5 members --role r1 -o name | wc -l)" 4
leader=$(ctl 4 leader)
# CLI-09, MBeanSpec
is leader_has_the_lowest_address "$leader" "$(addr 1)"
expect leader_leaves 0 ctl 4 leave "$leader" --timeout 120s
node_ended leader_ends_with_0 1 0
rest=(2 3 4 5 6 7 8)
check seven_remain wait_until 60 all_up 7 "${rest[@]}"
# LeaderLeavingSpec
check next_one_leads wait_until 60 eval '[ "$(for i in "${rest[@]}"; do ctl "$i" leader; done | sort -u)" = "$(addr 2)" ]'
beat 3 "${rest[@]}"
kill -KILL "${node_pid[5]}" "${node_pid[6]}"
wait "${node_pid[5]}" "${node_pid[6]}" 2>/dev/null
forget "${node_pid[5]}"
forget "${node_pid[6]}"
rest=(2 3 4 7 8)
both_gone() { sees_gone "$(addr 5)" "${rest[@]}" && sees_gone "$(addr 6)" "${rest[@]}"; }
if timed 60 both_gone; then pass two_killed_are_removed; measure eight_removed "$took" ms; else fail two_killed_are_removed; fi
if timed 60 agree "${rest[@]}"; then pass five_agree; else fail five_agree; fi
expect everybody_is_reached 0 ctl 2 ping "$(addr 8)"
test_end
