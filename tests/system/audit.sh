#!/bin/bash
# audit.sh - a line in the log for each change that was ordered, by the socket or by a signal: the order, its target, the uid;
# and a node that stands still is named with its process, by commands that keep their timeouts.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
at() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
uid=$(id -u)
hosts_port && port=$hosts_free || { fail "a free port"; test_end; }
first=troupe.tcp://demo@127.0.0.1:$port
background "$troupe" node --port "$port" --socket "$work/1.sock" --seed self --log-level error --set remote.test-adapters=on \
    --set cluster.failure-detector.acceptable-heartbeat-pause=120s 2>"$work/1.log"
one=$started
for name in 2 3; do
    background "$troupe" node --port 0 --socket "$work/$name.sock" --log-level error 2>"$work/$name.log"
    eval "node$name=$started"
done
audited() { # NAME WHAT: a line of exactly that, by this user, is there
    wait_until 60 grep -qE "info +audit order=$2 by-uid=$uid by-pid=[1-9][0-9]*$" "$work/$1.log"
}
check one_is_up at 1 wait --up
for name in 2 3; do
    check "node_$name_runs" wait_until 60 at "$name" peers
    check "joins_$name" at "$name" join "$first"
    address[name]=$(at "$name" members -o json | sed -n 's/.*"selfNode": *"\([^"]*\)".*/\1/p')
    uids[name]=$(at "$name" members -o wide | sed -n 's/^\* .* \([0-9a-f]\{16\}\) .*/\1/p')
    check "join_is_audited_$name" audited "$name" "join on=${address[name]} through=$first"
done
expect reading_is_no_change 0 at 1 status
expect dry_run_is_none 0 at 1 leave "${address[2]}" --dry-run
expect a_rule 0 at 1 fault set all send lose=0.0
check rule_is_audited audited 1 'fault on=all action=set rule=lose=0.0'
expect rules_are_listed 0 at 1 fault list
expect down_of_nobody 68 at 1 down 'no"body' --yes
check what_was_not_done_is_audited_and_printable audited 1 'down on=no\?body'
expect two_is_told_to_leave 0 at 1 leave "${address[2]}"
check leave_is_audited audited 1 "leave on=${address[2]}#${uids[2]}"
ended two_has_left "$node2" 0
expect three_is_downed 0 at 1 down "${address[3]}" --yes
check down_is_audited audited 1 "down on=${address[3]}#${uids[3]}"
ended three_was_downed "$node3" 76
is nothing_else_is_audited "$(grep -c ' audit ' "$work/1.log")" 4
kill -HUP "$one"
check reload_is_audited wait_until 60 grep -qE "info +audit order=reload on=$first by-uid=$uid by-pid=$$ signal=SIGHUP\$" "$work/1.log"

# One that stands still: what it is, and no longer than was asked for.
freeze "$one"
stopped="process $one is stopped (SIGSTOP); kill -CONT $one lets it go on"
pauses_begin
for words in status "wait --up" "wait --members 9" events "events --count 1" "leave --no-wait"; do
    began=$(now_ms)
    # shellcheck disable=SC2086 # words
    expect "stopped_node_${words// /_}" 75 at 1 $words --timeout 1s
    has "stopped_node_is_named_${words// /_}" "$stopped" "$work/err"
    took=$(($(now_ms) - began))
    check "time_is_waited_for_${words// /_}" test "$took" -ge 900
    pauses "$took"
    kept=$((took - pause_sum))
    for _ in again once_more; do # a start may wait for the disk, which is no pause: the best of several
        [ "$kept" -gt 1800 ] || break
        began=$(now_ms)
        # shellcheck disable=SC2086 # words
        at 1 $words --timeout 1s >"$work/out" 2>&1
        took=$(($(now_ms) - began))
        pauses "$took"
        [ $((took - pause_sum)) -ge "$kept" ] || kept=$((took - pause_sum))
    done
    judge "time_is_kept_${words// /_}" "$kept" 1800 ms
done
background env -u TROUPE_TIMEOUT "$troupe" --socket "$work/1.sock" events -o name >"$work/stream" 2>"$work/noted"
stream=$started
check stream_without_a_limit_says_so wait_until 60 grep -qF "no answer yet from the node at $work/1.sock: $stopped" "$work/noted"
check and_waits_on lives "$stream"
expect running_already 69 "$troupe" node --port 0 --socket "$work/1.sock"
has running_already_and_stopped "process $one is stopped" "$work/err"
kill -CONT "$one"
expect it_goes_on 0 at 1 wait --up
check stream_goes_on wait_until 60 test -s "$work/stream"
is stopped_orders_are_dropped "$(at 1 member-status)" Up
expect shut_down 0 at 1 shutdown --yes
check shutdown_is_audited audited 1 "shutdown on=all-members"
ended one_has_left "$one" 0
ended stream_ends_with_its_node "$stream" 69
test_end
