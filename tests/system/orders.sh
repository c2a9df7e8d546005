#!/bin/bash
# orders.sh - orders to a node that stands still (SIGSTOP): taken back by a timeout or by Ctrl-C, they are not carried
# out when it goes on, and the tool says that the node has not confirmed them.
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port && port=$hosts_free || { fail "a free port"; test_end; }
at() { # INDEX ARGUMENT...
    local index=$1
    shift
    "$troupe" --socket "$work/$index.sock" "$@"
}
for index in 1 2; do
    background "$troupe" node --system "ord$$" --port $((index == 1 ? port : 0)) --socket "$work/$index.sock" \
        --seed "troupe.tcp://ord$$@127.0.0.1:$port" --set cluster.gossip-interval=200ms \
        --set cluster.failure-detector.acceptable-heartbeat-pause=60s >"$work/$index.log" 2>&1
done
first=${pids[0]}
check two_are_up wait_until 60 at 1 wait --members 2 --converged --timeout 1s
second=$(at 2 members -o name | grep -v ":$port\$")

freeze "$first"
expect leave_within_a_second 75 at 1 leave --timeout 1s
has leave_says_that_it_is_not_confirmed "not confirmed by the node" "$work/err"
expect down_within_a_second 75 at 1 down "$second" --yes --timeout 1s
has down_says_that_it_is_not_confirmed "not confirmed by the node" "$work/err"
asks() {
    background "$troupe" --socket "$work/1.sock" shutdown --yes --timeout 60s 2>"$work/interrupted"
    asks=$started
}
asks
interrupts() { # one that it reached before it had become the tool has nothing to say: then another one
    kill -INT "$asks" 2>/dev/null
    grep -q interrupted "$work/interrupted" || { lives "$asks" || asks; return 1; }
}
check it_is_interrupted wait_until 30 interrupts
ended interrupted_ends_with_130 "$asks" 130
has interrupted_says_that_it_is_not_confirmed "interrupted; not confirmed by the node" "$work/interrupted"
kill -CONT "$first"
check it_goes_on wait_until 60 at 1 wait --members 2 --converged --timeout 1s
expect nobody_leaves 0 at 1 wait --members 2 --converged
# CLI-03
is the_first_is_still_up "$(at 1 member-status)" Up
is the_second_is_still_up "$(at 1 member-status "$second")" Up
lacks the_first_was_told_nothing "leaving the cluster" "$work/1.log"
expect an_order_that_is_waited_for_is_carried_out 0 at 1 leave "$second" --timeout 60s
ended the_second_leaves "${pids[1]}" 0
kill -TERM "$first"
ended the_first_leaves "$first" 0
test_end
