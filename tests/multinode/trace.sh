#!/bin/bash
# trace.sh - traces over two hosts: an actor is sampled, asks one of the other host, and the tree shows both. HOW-09
. "$(dirname "$0")/lib.sh"
hosts_begin 2
start_node 1 --load "$build/tests/multinode/.libs/traced.so"
start_node 2 --load "$build/tests/multinode/.libs/traced.so"
wait_until 60 all_up 2 1 2 || { fail both_come_up; test_end; }
far=$(addr 2)/user/back
# The first message to a node may go before anybody knows what that takes; this one is in no trace.
asks() { [ "$(ctl 1 ask /user/front "$far" 2>/dev/null)" = back ]; }
check the_actors_know_each_other wait_until 60 asks

expect nothing_is_traced 68 ctl 1 trace last
expect no_actor_is_sampled 0 ctl 1 trace list -o jsonl
has no_path_is_listed '"sampled":[]'
expect an_actor_is_sampled 0 ctl 1 trace start --path /user/front --sample 1/1
expect it_is_listed 0 ctl 1 trace list -o jsonl
has with_its_rate '{"path":"/user/front","oneIn":1}'
check a_question_goes_through wait_until 30 asks
# HOW-09
whole() { [ "$(ctl 1 trace last -o json | grep -o '"span":' | wc -l)" -ge 3 ]; }
check its_trace_has_all_hops wait_until 30 whole
expect the_last_trace_is_shown 0 ctl 1 trace last
cp "$work/out" "$work/tree"
has the_front_actor_is_the_root "/user/front@$(addr 1 | cut -d@ -f2)" "$work/tree"
# HOW-09
has the_actor_of_the_other_host_is_below_it "─ /user/back@$(addr 2 | cut -d@ -f2)" "$work/tree"
has its_way_over_the_network_is_told "net " "$work/tree"
is both_hosts_are_counted "$(grep -c '3 hops, 2 nodes' "$work/tree")" 1
id=$(sed -n 's/^trace \([0-9a-f]*\) .*/\1/p' "$work/tree")
expect the_other_host_shows_it_by_its_id 0 ctl 2 trace "$id"
is it_is_the_same_tree "$(grep -c '/user/' "$work/out")" "$(grep -c '/user/' "$work/tree")"
expect it_is_written_for_graphviz 0 ctl 1 trace "$id" --format dot
has as_a_graph "digraph trace"
expect it_is_written_for_perfetto 0 ctl 1 trace "$id" --format chrome
is_json for_perfetto_it_is_json
expect it_is_written_for_a_collector 0 ctl 1 trace "$id" --format otlp -o jsonl
is_json for_a_collector_it_is_json
has the_collector_gets_the_id "\"traceId\":\"$id\""

expect an_unknown_trace_is_not_found 68 ctl 1 trace 0123456789abcdef0123456789abcdef
expect what_is_no_id_is_refused 64 ctl 1 trace 0123
expect another_format_is_refused 64 ctl 1 trace last --format svg
expect a_path_must_be_given 64 ctl 1 trace start
expect a_rate_must_be_a_number 64 ctl 1 trace start --path /user/front --sample often
expect a_relative_path_is_refused 64 ctl 1 trace start --path front
expect sampling_ends 0 ctl 1 trace stop --path /user/front
expect it_ends_once 68 ctl 1 trace stop --path /user/front

# A host that stands still is named, and the rest is shown.
freeze "${node_pid[2]}"
expect the_rest_is_shown 0 ctl 1 trace "$id" --timeout 20s
has the_silent_host_is_named "$(addr 2) did not say what it has" "$work/err"
kill -CONT "${node_pid[2]}"
test_end
