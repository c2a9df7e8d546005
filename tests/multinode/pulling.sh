#!/bin/bash
# pulling.sh - work that is pulled, by examples/pulling.c on three hosts: the master and its workers find each other by the registry by
# typed key; of three that take long one is stopped and two end with their node, others join, and each job is done.
# HOW-02 HOW-03 TYPED-4
. "$(dirname "$0")/lib.sh"
hosts_begin 3
plugin=$build/examples/.libs/pulling.so
jobs=600
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms --set cluster.downing.active-strategy=auto-down-after
    --set cluster.downing.auto-down-after=2s --set cluster.failure-detector.heartbeat-interval=200ms)
registered() { ctl "$1" topics "pull_master master" -o jsonl 2>/dev/null | grep -qF "\"subscribers\":1,\"here\":$2"; } # I HERE
logged() { [ "$(grep -c "$1" "$work/node-1.log")" -ge "$2" ]; } # TEXT TIMES
start_node 1 "${fast[@]}" --load "$plugin:master:$jobs"
start_node 2 "${fast[@]}" --load "$plugin:workers:3:1000000" # each keeps its first job
# HOW-03
check workers_of_another_node_find_the_master wait_until 60 logged "a worker has come" 3
start_node 3 "${fast[@]}" --load "$plugin:workers:2"
wait_until 60 all_up 3 1 2 3 || fail three_nodes_are_up
# TYPED-4
check the_master_is_registered_at_its_node wait_until 60 registered 1 1
# TYPED-4
check another_node_knows_it wait_until 60 registered 3 0
check more_workers_join wait_until 60 logged "a worker has come" 5
expect a_worker_is_stopped 0 ctl 2 stop /user/worker1 --yes
# HOW-03
check the_master_learns_that_it_has_ended_with_its_job wait_until 60 logged "a worker has ended, with job [1-9]" 1
kill_node 2
# HOW-02
check it_learns_of_those_of_a_node_that_was_killed wait_until 60 logged "a worker has ended, with job [1-9]" 3
start_node 2 "${fast[@]}" --load "$plugin:workers:8"
check workers_join_at_any_time wait_until 60 logged "a worker has come" 13
check each_job_is_done wait_until 120 logged "$jobs jobs are done, sum 72180100" 1
test_end
