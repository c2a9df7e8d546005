#!/bin/bash
# remoting.sh - remoting between processes whose links are cut and which end and come back: the scenarios of
# remoting_program.c, each told by its name, and those of watch_program.c beside them. REMOTE, WATCH, FD-19, FD-20.
. "$(dirname "$0")/lib.sh"
test_begin
factor=(--timefactor 4) patient=()
# Members of watch_program that stand still for 3 s are downed, which a sanitizer's may do though no test ends them.
[ -z "$sanitizer" ] || factor=(--timefactor 8) patient=(-- --set cluster.failure-detector.acceptable-heartbeat-pause=8s)
# ClusterDeathWatchSpec
"$troupe" multinode --ports "${factor[@]}" "$build/tests/multinode/watch_program" "${patient[@]}" >"$work/watch.log" 2>&1 &
watch=$!
"$troupe" multinode "${factor[@]}" "$build/tests/multinode/remoting_program" >"$work/run.log" 2>&1
is all_nodes_end_well "$?" 0
# LookupRemoteActorSpec
has an_actor_is_looked_up_by_its_path "[first] an_actor_is_looked_up_by_its_path" "$work/run.log"
# RemoteDeliverySpec
has numbers_over_two_hops_keep_their_order "[first] numbers_over_two_hops_keep_their_order" "$work/run.log"
# ReliableProxySpec, CONTRIB-31, -32, -34
has a_reliable_proxy_delivers_over_links_that_lose "[first] a_reliable_proxy_delivers_over_links_that_lose" "$work/run.log"
# RemoteNodeDeathWatchSpec
has watchers_on_both_sides_are_told_of_a_stop "[first] watchers_on_both_sides_are_told_of_a_stop" "$work/run.log"
# AttemptSysMsgRedeliverySpec, TransportFailSpec
has a_watch_made_in_silence_holds_after_it "[first] a_watch_made_in_silence_holds_after_it" "$work/run.log"
# RemoteQuarantinePiercingSpec, HandshakeRestartReceiverSpec
has a_new_incarnation_pierces_a_quarantine "[first] a_new_incarnation_pierces_a_quarantine" "$work/run.log"
# RemoteNodeRestartDeathWatchSpec, RemoteNodeShutdownAndComesBackSpec
has a_system_that_comes_back_is_watched_anew "[first] a_system_that_comes_back_is_watched_anew" "$work/run.log"
# RemoteNodeDeathWatchSpec
has watchers_are_told_of_a_crash "[first] watchers_are_told_of_a_crash" "$work/run.log"
code=0
wait "$watch" || code=$?
is members_that_watch_end_well "$code" 0
# ClusterDeathWatchSpec
has a_watch_from_before_joining_ends_with_the_member "[first] a_watch_from_before_joining_ends_with_the_member" "$work/watch.log"
# ClusterDeathWatchSpec
has a_watch_of_who_is_gone_ends_at_once "[first] a_watch_of_who_is_gone_ends_at_once" "$work/watch.log"
# ClusterDeathWatchSpec
has a_watch_ends_when_an_operator_downs_the_member "[first] a_watch_ends_when_an_operator_downs_the_member" "$work/watch.log"
test_end
