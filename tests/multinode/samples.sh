#!/bin/bash
# samples.sh - the samples of a cluster on four hosts: worker dial-in, word statistics with a group, with a pool, and by one
# master on the oldest node, also after that has left.
# CROUTE-17 CROUTE-18 CROUTE-19
. "$(dirname "$0")/lib.sh"
hosts_begin 4
plugins=$build/examples/.libs
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms)
router='router = consistent-hashing  nr-of-instances = 100'
cat >"$work/group.conf" <<END
deployment "/statsService/workerRouter" { $router
    cluster { enabled = on  routees-path = /user/statsWorker  use-role = stats } }
END
cat >"$work/pool.conf" <<END
deployment "/statsService/workerRouter" { $router
    cluster { enabled = on  max-nr-of-instances-per-node = 3  use-role = stats } }
END
cat >"$work/master.conf" <<END
deployment "/facade/statsService/workerRouter" { $router
    cluster { enabled = on  max-nr-of-instances-per-node = 3  allow-local-routees = off } }
END
start_node 1 "${fast[@]}" --config "$work/group.conf" --role frontend --role stats --load "$plugins/frontend.so" --load "$plugins/stats.so"
start_node 2 "${fast[@]}" --config "$work/pool.conf" --role backend --role stats --load "$plugins/backend.so" --load "$plugins/stats.so"
start_node 3 "${fast[@]}" --config "$work/master.conf" --role compute --load "$plugins/stats_master.so"
wait_until 60 all_up 3 1 2 3 || { fail three_nodes_come_up; test_end; }
start_node 4 "${fast[@]}" --config "$work/master.conf" --role compute --role backend --load "$plugins/stats_master.so" \
    --load "$plugins/backend.so"
wait_until 60 all_up 4 1 2 3 4 || { fail four_nodes_come_up; test_end; }

says() { [[ $(ctl "$1" ask "$2" "$3" --timeout 10s 2>/dev/null) == "$4" ]]; } # NODE PATH TEXT ANSWER
mean() { says "$1" "$2" "this is the text that will be analyzed" 3.875; }
# CROUTE-19
check backends_have_dialled_in wait_until 60 says 1 /user/frontend "hello there" "HELLO THERE"
# CROUTE-17
check a_group_of_workers_counts wait_until 60 mean 1 /user/statsService
# CROUTE-17, ClusterConsistentHashingRouterSpec
check a_pool_of_workers_counts wait_until 60 mean 2 /user/statsService
check the_master_counts_on_its_own_node wait_until 60 mean 3 /user/facade
# CROUTE-18
check and_for_another_node wait_until 60 mean 4 /user/facade
expect it_is_on_the_oldest_node 0 ctl 3 tree
has the_master_lives_there statsService
expect not_on_the_other_one 0 ctl 4 tree
lacks it_is_not_here statsService

kill_node 2 TERM # one of two backends: the other one is left
node_ended a_backend_leaves 2 0
both() { says 1 /user/frontend one ONE && says 1 /user/frontend two TWO; }
# CROUTE-19
check the_other_one_works_on wait_until 60 both
kill_node 3 TERM
node_ended the_master_leaves 3 0
# CROUTE-18
check the_next_oldest_is_the_master wait_until 60 mean 4 /user/facade
kill_node 1 TERM # none of its workers is left: the sample says so after its 3 s
node_ended the_last_worker_leaves 1 0
unavailable() { says 4 /user/facade "one two" "Service unavailable, try again later"; }
# CROUTE-17
check without_a_worker_the_service_is_unavailable wait_until 60 unavailable
test_end
