#!/bin/bash
# deployment.sh - the example deployed.c on two hosts: a worker that the configuration puts on another one, its
# failure, the death of its node, and the next incarnation of that node.
# REMOTE-16 REMOTE-17 REMOTE-23 SYS-15 HEADLINE-4; remote-tests NewRemoteActorSpec, RemoteDeploymentDeathWatchSpec
. "$(dirname "$0")/lib.sh"
hosts_begin 2
plugin=$build/examples/.libs/deployed.so
cat >"$work/one.conf" <<END
deployment "/service/*" { remote = "$(addr 2)" }
END
start_node 1 --config "$work/one.conf" --load "$plugin:service"
start_node 2 --load "$plugin"
wait_until 60 all_up 2 1 2 || { fail two_nodes_come_up; test_end; }

# Its answer counts the questions, so it is asked once, when it is there: one whose answer came too late would count, too.
is_there() { ctl 2 tree 2>/dev/null | grep -q worker; }
answers() { # NAME: with the first number
    wait_until 60 is_there || fail "$1" "no worker on the other host"
    is "$1" "$(ctl 1 ask /user/service hello 2>&1)" "1 at $where"
}
where="/remote/demo@${host_address[1]}:${host_port[1]}/user/service/worker"
# NewRemoteActorSpec
answers worker_answers_from_the_other_host
expect worker_fails 0 ctl 1 ask /user/service fail
answers its_parent_restarts_it
check the_failure_is_in_the_parents_log wait_until 60 grep -qF "failed: as it was told" "$work/node-1.log"
expect tree_of_the_other_host 0 ctl 2 tree
has worker_was_restarted_there "restarts 1" "$work/out"

kill_node 2 # the next incarnation of the address proves that this one is over, for the cluster, too
start_node 2 --load "$plugin"
wait_until 60 all_up 2 1 2 || fail both_are_up_again
answers service_makes_another_one_there
kill_node 1 TERM # it says goodbye: no failure detector is needed
# NewRemoteActorSpec
node_ended parent_ends_with_0 1 0
check worker_ends_with_its_parents_node wait_until 60 eval '! is_there'

# Node 2 crashes with a worker, and its parent's node stops before its detector has found that out: it does not wait. (When
# nng first frees a connection the thread sanitizer has a report that it suppresses, and starts the symbolizer for that: on
# a busy machine the end of the connection is known 10 s later only, when a node gives up what is left.)
patient=()
[ -z "$sanitizer" ] || patient=(--set coordinated-shutdown.phases.actor-system-terminate.timeout=60s)
start_node 1 --config "$work/one.conf" --load "$plugin:service" "${patient[@]}"
answers next_incarnation_makes_one_there
kill_node 2
kill_node 1 TERM
# ClusterDeathWatchSpec, RemoteDeploymentDeathWatchSpec
node_ended parent_ends_though_the_worker_cannot 1 0
# RemoteDeploymentDeathWatchSpec
lacks nobody_was_left_over "has not ended yet" "$work/node-1.log"
test_end
