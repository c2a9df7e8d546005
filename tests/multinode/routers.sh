#!/bin/bash
# routers.sh - cluster-aware routers over four hosts: routees come with their nodes, are taken out while a node is cut off and
# put back, are made again on the next incarnation; and a rolling restart under traffic, in which nothing is lost.
# CROUTE-02 CROUTE-04 CROUTE-06 CROUTE-09 CROUTE-10; ClusterRoundRobinSpec. --long: default timings.
. "$(dirname "$0")/lib.sh"
hosts_begin 4
plugin=$build/tests/multinode/.libs/routers.so
fast=(--set cluster.gossip-interval=100ms --set cluster.leader-actions-interval=100ms --set log.level=warning
    --set cluster.failure-detector.heartbeat-interval=200ms --set cluster.failure-detector.acceptable-heartbeat-pause=3s)
[ "${1:-}" != --long ] || fast=()
# What is on a link that is found dead is lost, as is what a node has not worked off when its phases are over: a sanitizer's
# nodes may stand still for longer than that allows.
[ -z "$sanitizer" ] || fast+=(--set remote.transport-failure-detector.acceptable-heartbeat-pause=30s --set coordinated-shutdown.default-phase-timeout=30s)
cat >"$work/front.conf" <<'END'
deployment "/front/pool"  { router = round-robin-pool  nr-of-instances = 100
    cluster { enabled = on  max-nr-of-instances-per-node = 2  allow-local-routees = off  use-role = compute } }
deployment "/front/group" { router = random-group
    cluster { enabled = on  routees-path = /user/worker  use-role = compute } }
END
start_worker() { start_node "$1" "${fast[@]}" --role compute --load "$plugin"; }
# The front is no worker itself: it has no role.
start_node 1 "${fast[@]}" --config "$work/front.conf" --load "$plugin:front"
routees() { [[ $(ctl 1 ask /user/front routees 2>/dev/null) == "$1" ]]; }

check a_router_waits_for_routees wait_until 60 routees "0 0"
start_worker 2
start_worker 3
# ClusterRoundRobinSpec
check routees_come_with_their_nodes wait_until 60 routees "4 2"
start_worker 4
# ClusterConsistentHashingRouterSpec
check a_new_node_gets_some_too wait_until 60 routees "6 3"

if [ "$hosts_mode" = namespaces ]; then
    host_cut 4
    # CROUTE-02, ClusterRoundRobinSpec
    check who_is_cut_off_is_taken_out wait_until 60 routees "4 2"
    host_heal 4
    # CROUTE-02, ClusterRoundRobinSpec
    check and_put_back wait_until 60 routees "6 3"
fi

wait_until 60 all_up 4 1 2 3 4 || fail all_are_up
is traffic_begins "$(ctl 1 ask /user/front begin)" begun
for index in 2 3 4; do
    ctl "$index" leave --timeout 60s >/dev/null || fail "leave_$index"
    node_ended "node_${index}_has_left" "$index" 0
    start_worker "$index"
    check "routees_are_back_on_node_$index" wait_until 60 routees "6 3"
done
report=$(ctl 1 ask /user/front end --timeout 60s)
read -r _ sent _ answered <<<"$report"
echo "$report"
check there_was_traffic [ "${sent:-0}" -ge 480 ]
# CROUTE-02
is nothing_was_lost "${answered:-none}" "${sent:-0}"
test_end
