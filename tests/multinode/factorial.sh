#!/bin/bash
# factorial.sh - the factorial sample of examples/ on three hosts: an adaptive router over two backends, one of which leaves.
# CMETRIC-16
. "$(dirname "$0")/lib.sh"
hosts_begin 3
plugins=$build/examples/.libs
for index in 1 2; do
    start_node $index --role backend --load "$plugins/factorial_backend.so"
done
start_node 3 --config "$src/examples/factorial.conf" --load "$plugins/factorial_frontend.so:200"
wait_until 60 all_up 3 1 2 3 || { fail three_nodes_come_up; test_end; }
batches() { [ "$(grep -c "200! has 375 digits" "$work/node-3.log")" -ge "$1" ]; }
# CMETRIC-16
check frontend_gets_all_results wait_until 60 batches 1
expect a_backend_leaves 0 ctl 3 leave "$(addr 2)"
wait_until 60 all_up 2 1 3 || fail two_are_left
# CMETRIC-16
check it_goes_on_when_a_backend_is_gone wait_until 60 batches $(($(grep -c "200! has 375 digits" "$work/node-3.log") + 2))
test_end
