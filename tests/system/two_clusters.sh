#!/bin/bash
# two_clusters.sh - two clusters of one name side by side: status and why of a member say so, when a seed node lives in
# another one, and when a node that was removed lives on.
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port && one=$hosts_free && hosts_port && two=$hosts_free || { fail "two free ports"; test_end; }
[ "$one" -gt "$two" ] || { other=$one one=$two two=$other; } # alone, the higher address is no side that goes on
at() { # INDEX ARGUMENT...
    local index=$1
    shift
    "$troupe" --socket "$work/$index.sock" "$@"
}
address() { echo "troupe.tcp://two$$@127.0.0.1:$1"; }
node() { # INDEX PORT OPTION...
    local index=$1 port=$2
    shift 2
    background "$troupe" node --system "two$$" --port "$port" --socket "$work/$index.sock" --set cluster.seed-node-timeout=300ms \
        --set cluster.seed-check-interval=500ms --set cluster.downing.active-strategy=manual \
        --set cluster.quarantine-removed-node-after=200ms "$@" >"$work/$index.log" 2>&1
}
says_two() { at "$1" status | grep -qF "two clusters: seed node $(address "$2") is alive and no member of this one"; }

# ---- the first seed was started while it could not reach the second
node 1 "$one" --seed "$(address "$one")" --seed "$(address "$two")"
check the_first_seed_makes_a_cluster wait_until 60 at 1 wait --up --timeout 1s
check it_is_healthy wait_until 60 at 1 status
node 2 "$two" --seed self
check the_second_makes_another wait_until 60 at 2 wait --up --timeout 1s
check status_says_two_clusters wait_until 30 says_two 1 "$two"
expect it_is_not_healthy 1 at 1 status
expect why_says_so 1 at 1 why
has why_names_the_runbook "docs/operating.md, Two clusters at once"
doctors() { at 1 doctor >"$work/found" 2>/dev/null || [ $? -eq 1 ]; }
finds() { doctors && grep -qE "^ $1 +two-clusters .*$2" "$work/found"; }
check the_doctor_says_so wait_until 60 finds FAIL "seed node $(address "$two") is alive and no member of this cluster"
has the_log_says_so "two clusters: the seed node $(address "$two")" "$work/1.log"
kill -TERM "$started"
ended the_second_leaves "$started" 0
healthy_again() { at 1 status >/dev/null; }
check then_there_is_one wait_until 30 healthy_again
check the_doctor_finds_it_mended wait_until 60 finds ok ''

# ---- a member that was removed while it stood still lives on
node 2 "$two" --seed "$(address "$one")" --seed "$(address "$two")"
check the_second_joins wait_until 60 at 2 wait --members 2 --converged --timeout 1s
freeze "$started"
is_missed() { [ -n "$(at 1 unreachable -o name)" ]; }
check it_is_missed wait_until 60 is_missed
# CLI-04
expect this_side_does_not_go_on 1 at 1 down "$(address "$two")" --yes
has down_says_what_may_come "members that are still alive would go on as a second cluster" "$work/err"
expect the_operator_says_that_it_is_dead 0 at 1 down "$(address "$two")" --yes --dead
kill -CONT "$started"
check the_removed_one_is_told wait_until 60 says_two 1 "$two"
test_end
