#!/bin/bash
# reach.sh - a node that cannot be dialled at the address that it advertises is not admitted, and says why; a member that
# cannot be dialled any more shows in peers, status, why, ask and reach, until it can be again. MEMB-04.
. "$(dirname "$0")/lib.sh"
test_begin
command -v socat >/dev/null || skip "needs socat, which is the address: deploy/bootstrap --tests"
declare -A port pid
for name in one two three inner; do
    hosts_port || { fail "a free port"; test_end; }
    port[$name]=$hosts_free
done
address() { echo "troupe.tcp://demo@127.0.0.1:${port[$1]}"; }
at() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
node() { # NAME OPTION...
    local name=$1
    shift
    background "$troupe" node --host 127.0.0.1 --port "${port[$name]}" --socket "$work/$name.sock" \
        --load "$build/examples/.libs/echo.so" "$@" >"$work/$name.log" 2>&1
    pid[$name]=$started
}
relay_begin() {
    background socat "TCP-LISTEN:${port[three]},bind=127.0.0.1,fork,reuseaddr" "TCP:127.0.0.1:${port[inner]}" 2>>"$work/socat.log"
    relay=$started
    wait_until 60 bash -c "exec 3<>/dev/tcp/127.0.0.1/${port[three]}"
}
relay_end() { # the one that listens and those that carry
    local carriers
    carriers=$(pgrep -P "$relay")
    # shellcheck disable=SC2086 # several
    kill -9 "$relay" $carriers 2>/dev/null
}
row() { at "$1" peers | grep -F "$(address "$2")"; }

node one --seed self
node two --seed "$(address one)"
expect two_are_up 0 at one wait --members 2 --converged --timeout 60s

# Nothing listens where the third says that it does.
node three --bind-host 127.0.0.1 --bind-port "${port[inner]}" --seed "$(address one)"
why="127.0.0.1:${port[one]} refuses this node: it cannot be dialled back at 127.0.0.1:${port[three]}: "
check joiner_logs_why wait_until 60 grep -qF "cannot be dialled back at 127.0.0.1:${port[three]}: " "$work/three.log"
has joiner_logs_when_it_asks_again "; asking again in " "$work/three.log"
expect members_have_not_let_it_in 0 at one wait --members 2 --converged --timeout 60s
quotes_why() { at three status >"$work/status"; [ $? -eq 1 ] && grep -qF "this node has not joined a cluster: $why" "$work/status"; }
check status_of_the_joiner_quotes_why wait_until 60 quotes_why
expect wait_of_the_joiner 75 at three wait --timeout 3s
has wait_quotes_why "$why" "$work/err"
expect join_of_the_joiner 75 at three join "$(address one)" --timeout 12s
has join_quotes_why "$why" "$work/err"
expect why_of_the_joiner 1 at three why
has why_quotes_why "$why"

# A member that does not answer is named, and two of them are awaited at the same time: one after the other takes 8 s.
hosts_port || { fail "a free port"; test_end; }
port[four]=$hosts_free
node four --seed "$(address one)"
silence() { # the time of `reach`, while two of three stand still; seen from then on they are unreachable
    expect three_agree 0 at one wait --members 3 --converged --timeout 60s
    kill -STOP "${pid[two]}" "${pid[four]}"
    at one reach -o json >"$work/silent" 2>"$work/err"
    kill -CONT "${pid[two]}" "${pid[four]}"
    took=$(tr -d ' \n' <"$work/silent" | grep -oE '"elapsedMs":[0-9]+' | cut -d: -f2)
    [ "${took:-99999}" -lt 7500 ]
}
for _ in 1 2 3; do silence && break; done
echo "measure reach_of_two_that_stand_still_ms $took ms"
[ "${took:-99999}" -lt 7500 ] && pass members_are_asked_at_one_time || fail members_are_asked_at_one_time "$took ms"
# A node that has just been continued may name others: it dials them anew. So only where all are well before.
names() { # a stop of the whole machine makes other nodes late, so it is tried again
    wait_until 60 at one reach || return 1
    kill -STOP "${pid[four]}"
    at one reach -o name >"$work/out" 2>"$work/err"
    kill -CONT "${pid[four]}"
    [ "$(sort -u "$work/out")" = "$(address four)" ]
}
for _ in 1 2 3; do names && break; done
is names_are_addresses "$(sort -u "$work/out")" "$(address four)"
expect four_leaves 0 at four leave
expect two_are_left 0 at one wait --members 2 --converged --timeout 60s

# Now a process listens there.
check relay_listens relay_begin
expect three_are_up 0 at one wait --members 3 --converged --timeout 60s
check everybody_reaches_everybody wait_until 60 at two reach
counts_ways() { at two reach | grep -qF "6 of 6 ways can be dialled"; }
check reach_counts_the_ways wait_until 60 counts_ways
expect reach_tells_all_in_json 0 at one reach -o json
is_json reach_is_json
check members_are_healthy wait_until 60 at one status

# And now none any more: the third has dialled the others, so its heartbeats still flow.
relay_end
check reach_notices wait_until 60 bash -c "! '$troupe' --socket '$work/one.sock' reach >'$work/out' 2>'$work/err'"
has reach_names_the_way "$(address three)"
cannot() { at one ask "$(address three)/user/echo" hello --timeout 1s >"$work/out" 2>"$work/err"; [ $? -eq 75 ] && grep -qF "cannot be dialled" "$work/err"; }
check ask_quotes_why wait_until 30 cannot
problem() { at one status >"$work/out"; [ $? -eq 1 ] && grep -qF "messages to $(address three) wait: lane ordinary-1 cannot be dialled: " "$work/out"; }
check status_has_a_problem wait_until 30 problem
row_says() { row one three | grep -qF -- "$1"; } # TEXT
check peers_has_the_reason wait_until 60 row_says "cannot be dialled: "
check peers_says_what_is_next wait_until 60 row_says "messages wait"
expect why_says_it 1 at one why
has why_names_the_kind undialled
has it_is_logged "lane cannot be dialled peer=$(address three) lane=ordinary-1" "$work/one.log"
expect it_is_still_a_member 0 at one wait --members 3 --timeout 60s

check relay_listens_again relay_begin
check ask_goes_again wait_until 60 at one ask "$(address three)/user/echo" hello --timeout 5s
check all_is_well_again wait_until 60 at one status
check everybody_reaches_everybody_again wait_until 60 at one reach

# A node of another cluster of that name can talk to a member, and not command it.
hosts_port || { fail "a free port"; test_end; }
port[alone]=$hosts_free
node alone --seed self
expect alone_is_up 0 at alone wait --members 1 --timeout 60s
expect members_command_one_another 0 at two tree "$(address one)/user"
expect strangers_do_not 77 at alone tree "$(address one)/user"
has strangers_are_told_why "takes commands from members of its cluster only" "$work/err"

# Another node with the address of a member: the member is asked, and stays.
hosts_port || { fail "a free port"; test_end; }
background "$troupe" node --host 127.0.0.1 --port "${port[two]}" --bind-host 127.0.0.1 --bind-port "$hosts_free" \
    --socket "$work/double.sock" --seed "$(address one)" >"$work/double.log" 2>&1
quoted() { at double status >"$work/out"; grep -qE "this node has not joined a cluster: .*another node has (your|its) address" "$work/out"; }
check double_is_told_why wait_until 30 quoted
expect wait_of_the_double 75 at double wait --timeout 5s
is wait_of_the_double_says_why "$(grep -cE "another node has (your|its) address" "$work/err")" 1
expect the_member_is_still_there 0 at one wait --members 3 --converged --timeout 60s
check the_member_is_well wait_until 60 at two status
expect the_member_answers 0 at one ask "$(address two)/user/echo" hello
kill -9 "${pid[two]}" # now its address is free, without a listener
check double_is_not_refused_for_a_dead_one wait_until 60 grep -qF "cannot be dialled back at 127.0.0.1:${port[two]}: " "$work/double.log"
test_end
