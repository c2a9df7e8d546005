#!/bin/bash
# speaker.sh - a second implementation of docs/wire.md (speaker.py) is a member among Troupe's own nodes: it shows the
# cookie that they share, joins, is welcomed, beats, is asked, and leaves; without the cookie it is not let in.
. "$(dirname "$0")/lib.sh"
test_begin
command -v python3 >/dev/null || skip "no python3: deploy/bootstrap --tests installs it"
name=speaker$$
cookie=$STATE_DIRECTORY/cookie # that the nodes share, and the speaker shows
node() { # N OPTION...
    local number=$1
    shift
    background "$troupe" node --system "$name" --socket "$work/$number.sock" "$@" 2>"$work/$number.log"
}
ctl() {
    local number=$1
    shift
    "$troupe" --socket "$work/$number.sock" "$@"
}
members_are() { # N TEXT: statuses of all members, sorted
    [ "$(ctl "$1" members -o json 2>/dev/null | grep -oE '"status": ?"[A-Za-z]+"' | grep -oE '[A-Z][A-Za-z]+' | sort | tr '\n' ' ')" = "$2" ]
}

# life FOLLOWER|LEADER: one cluster; the lowest address leads
life() {
    local role=$1 first other one speaker number
    hosts_port || { fail "${role}_has_a_port"; return; }
    first=$hosts_free
    hosts_port || { fail "${role}_has_a_port"; return; }
    other=$hosts_free
    if { [ "$role" = follower ] && [ "$first" -gt "$other" ]; } || { [ "$role" = leader ] && [ "$first" -lt "$other" ]; }; then
        other=$first first=$hosts_free
    fi
    node 1 --port "$first" --seed self
    one=$started
    wait_until 60 members_are 1 "Up " || fail "${role}_has_a_seed" "$(tail -n 2 "$work/1.log")"
    background python3 "$src/tests/system/speaker.py" "$name" "$other" "$first" "$cookie" >"$work/speaker.out" 2>"$work/speaker.log"
    speaker=$started
    wait_until 60 grep -qx welcomed "$work/speaker.out" && pass "${role}_is_welcomed" || fail "${role}_is_welcomed" "$(tail -n 3 "$work/speaker.log")"
    wait_until 60 members_are 1 "Up Up " && pass "${role}_is_up" || fail "${role}_is_up" "$(ctl 1 members)"
    wait_until 60 grep -qx "is Up" "$work/speaker.out" && pass "${role}_knows_it" || fail "${role}_knows_it" "$(cat "$work/speaker.out")"
    node 2 --port 0 --seed "troupe.tcp://$name@127.0.0.1:$first"
    wait_until 60 members_are 2 "Up Up Up " && pass "a_node_comes_up_beside_the_$role" || fail "a_node_comes_up_beside_the_$role" "$(ctl 1 members)"
    wait_until 60 grep -qx beats "$work/speaker.out" && pass "${role}_beats" || fail "${role}_beats" "$(cat "$work/speaker.out")"
    for number in 1 2; do
        expect "node_${number}_asks_the_$role" 0 ctl "$number" ask "troupe.tcp://$name@127.0.0.1:$other/user/echo" "hello from $number"
        has "node_${number}_is_answered_by_the_$role" "hello from $number"
    done
    expect "whom_the_${role}_does_not_have_is_not_found" 68 ctl 1 ask "troupe.tcp://$name@127.0.0.1:$other/user/nobody" hello
    wait_until 60 round_trip "$other" && pass "beats_of_the_${role}_are_measured" || fail "beats_of_the_${role}_are_measured" "$(ctl 1 members)"
    wait_until 60 converged && pass "all_have_one_view_with_the_$role" || fail "all_have_one_view_with_the_$role" "$(ctl 1 status)"
    if [ "$role" = leader ]; then
        has it_leads "leads" "$work/speaker.out"
        expect a_node_leaves_under_it 0 ctl 2 leave
        wait_until 60 members_are 1 "Up Up " && pass it_removes_who_has_left || fail it_removes_who_has_left "$(ctl 1 members)"
    fi
    kill -TERM "$speaker"
    ended "${role}_leaves" "$speaker" 0
    has "${role}_says_so" "left" "$work/speaker.out"
    [ "$role" = leader ] || { wait_until 60 members_are 1 "Up Up " && expect the_other_node_leaves 0 ctl 2 leave; }
    wait_until 60 members_are 1 "Up " && pass "the_others_have_removed_the_$role" || fail "the_others_have_removed_the_$role" "$(ctl 1 members)"
    lacks "${role}_left_in_good_order" "is Down" "$work/1.log"
    kill -TERM "$one"
    ended "the_seed_of_the_${role}_leaves" "$one" 0
    [ ! -s "$work/speaker.log" ] || cat "$work/speaker.log" >&2
}
# stranger NAME WHY FILE...: one that is not let in, and hears why. Then no node must go on with it.
stranger() {
    local number=$1 why=$2 port
    shift 2
    hosts_port || { fail "${number}_has_a_port"; return; }
    port=$hosts_free
    background python3 "$src/tests/system/speaker.py" "$name" "$port" "$seed_port" "$@" >"$work/$number.out" 2>"$work/$number.err"
    wait_until 60 grep -qx "$why" "$work/$number.err" && pass "speaker_with_${number}_is_told" || fail "speaker_with_${number}_is_told" "$(tail -n 3 "$work/$number.err")"
    counted() { [ "$(ctl 3 status -o json | grep -oE '"cookie": ?[0-9]+' | grep -oE '[0-9]+')" -gt "$seen" ]; }
    wait_until 60 counted && pass "speaker_with_${number}_is_counted" || fail "speaker_with_${number}_is_counted" "$(ctl 3 status)"
    seen=$(ctl 3 status -o json | grep -oE '"cookie": ?[0-9]+' | grep -oE '[0-9]+')
    is "speaker_with_${number}_is_no_member" "$(ctl 3 members -o name | wc -l)" 1
    lacks "speaker_with_${number}_is_not_welcomed" welcomed "$work/$number.out"
    kill -KILL "$started"
    await "$started" 60
}
strangers() {
    local seen=0 seed_port
    hosts_port || { fail strangers_have_a_seed; return; }
    seed_port=$hosts_free
    node 3 --port "$seed_port" --seed self
    wait_until 60 members_are 3 "Up " || fail strangers_have_a_seed "$(tail -n 2 "$work/3.log")"
    echo "another cookie" >"$work/wrong"
    stranger no_cookie "it wants a cookie"
    stranger a_wrong_cookie "another cookie" "$work/wrong"
}
round_trip() { ctl 1 members | grep ":$1 " | grep -qE '[0-9]ms'; } # of heartbeats that it answered
converged() { ctl 1 status -o json | grep -qE '"converged": ?true'; }
life follower
life leader
strangers
test_end
