#!/bin/bash
# doctor.sh - findings of `troupe doctor` on several hosts, each by its real cause: hosts that stand still, one after the other, and
# journals of one host alone, a node that stood still. Each is named, mended, and gone.
. "$(dirname "$0")/lib.sh"
hosts_begin 3
for index in 1 2 3; do
    mkdir "$work/journal-$index"
    start_node "$index" --set cluster.downing.active-strategy=keep-majority --set cluster.downing.stable-after=10m \
        --set persistence.journal=lmdb --set persistence.lmdb.dir="$work/journal-$index" --set persistence.local-store-is-enough=on
done
wait_until 60 all_up 3 1 2 3 || { fail all_come_up; test_end; }
examined() { ctl "$1" doctor >"$work/found" 2>/dev/null || [ $? -eq 1 ]; } # NODE
finds() { examined "$1" && grep -qE "^ $2 +$3 .*$4" "$work/found"; } # NODE LEVEL ID TEXT
well() { finds 1 ok "$1" ''; }
for id in joined members unreachable links convergence views outlook down waiting; do check "${id}_is_ok" wait_until 90 well "$id"; done

# shellcheck disable=SC2154 # of deploy/hosts.sh
if [ "$hosts_mode" = namespaces ]; then
    check a_journal_of_one_host_is_named wait_until 60 finds 1 warn journal-place "this node's alone"
fi

# A host that stands still: first it is only silent, then it cannot be dialled, is unreachable, and keeps the members from agreeing.
beat 5 1 2 # the detectors know the rhythm
freeze "${node_pid[3]}"
check a_silent_member_is_named wait_until 60 finds 1 '(warn|FAIL)' '(members|unreachable)' "$(addr 3)"
check it_cannot_be_dialled wait_until 60 finds 1 FAIL links "cannot dial $(addr 3)"
check it_is_unreachable wait_until 60 finds 1 FAIL unreachable "$(addr 3) is unreachable"
hinted() { ctl 1 doctor --fix-hints 2>/dev/null | grep -qF "if it is dead: troupe down $(addr 3);"; }
check what_to_do_names_it wait_until 60 hinted
check the_members_do_not_agree wait_until 60 finds 1 '(warn|FAIL)' convergence "have not agreed for"
# Of three only one is left: this side will stop, when the time is over.
freeze "${node_pid[2]}"
check this_node_will_stop wait_until 90 finds 1 FAIL outlook "this node will stop, if nothing changes"
# A member that is marked Down stays, as long as another one does not see it.
expect one_is_marked_down 0 ctl 1 down "$(addr 3)" --yes --dead --no-wait
check it_is_named wait_until 60 finds 1 warn down "$(addr 3) is Down"

kill -CONT "${node_pid[2]}"
for id in down unreachable links convergence outlook members; do check "${id}_is_ok_again" wait_until 120 well "$id"; done

# This node itself stands still, and does not trust its detector until it has heard the other one, which it cannot.
freeze "${node_pid[2]}"
stood_still() {
    freeze "${node_pid[1]}"
    elapse 6 "more than acceptable-heartbeat-pause"
    kill -CONT "${node_pid[1]}"
    finds 1 warn standstill 'this node stood still'
}
check it_knows_that_it_stood_still wait_until 120 stood_still
kill -CONT "${node_pid[2]}"
check standstill_is_ok_again wait_until 120 well standstill
kill -KILL "${node_pid[3]}"
test_end
