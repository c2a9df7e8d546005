#!/bin/bash
# split.sh - a cut that lasts: the majority takes the minority out, the minority ends by itself (exit 76), and
# after the heal a fresh process on the same address is welcome. DOWN (keep-majority), MEMB.
. "$(dirname "$0")/lib.sh"
hosts_begin 3 namespaces
for index in 1 2 3; do start_node "$index" --set cluster.downing.stable-after=4s; done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
for index in 1 2 3; do expect converged 0 ctl "$index" wait --members 3 --converged --timeout 60s; done
beat 3 1 2 3
cut=$(addr 3)
events_begin 1
host_cut 3
if timed 60 sees_gone "$cut" 1 2; then pass majority_takes_the_minority_out; measure split_removed "$took" ms; else fail majority_takes_the_minority_out; fi
node_ended minority_ends_with_76 3 76
check majority_says_why event '"type":"DowningDecision"'
check majority_goes_on wait_until 60 all_up 2 1 2
expect majority_is_healthy 0 ctl 1 wait --converged --members 2 --timeout 60s
host_heal 3
start_node 3
# UnreachableNodeJoinsAgainSpec
if timed 60 all_up 3 1 2 3; then pass fresh_process_is_welcome; measure split_back_up "$took" ms; else fail fresh_process_is_welcome; fi
check one_leader wait_until 60 one_leader 1 2 3
test_end
