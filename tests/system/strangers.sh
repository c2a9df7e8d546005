#!/bin/bash
# strangers.sh - a node whose port is held by connections that say nothing: descriptors, status, and
# the peers that are admitted nevertheless.
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port || { fail "a free port"; test_end; }
port=$hosts_free
node() { # NAME LIMIT OPTION...
    local name=$1 limit=$2
    shift 2
    background bash -c 'ulimit -Sn $(($1 < 32 ? $1 : 32)) && ulimit -Hn "$1" && shift && exec "$@"' _ "$limit" "$troupe" node --socket "$work/$name.sock" "$@" 2>"$work/$name.log"
}
ctl() {
    local name=$1
    shift
    "$troupe" --socket "$work/$name.sock" "$@"
}
up() { [ "$(ctl "$1" member-status)" = Up ]; }
silent() { # FIRST LAST: that many connections, held open by this shell
    local fd
    for ((fd = $1; fd <= $2; fd++)); do eval "exec $fd<>/dev/tcp/127.0.0.1/$port" 2>/dev/null || return 1; done
}
hang_up() {
    local fd
    for ((fd = $1; fd <= $2; fd++)); do eval "exec $fd>&-" 2>/dev/null; done
}

# ---- the soft limit is raised to the hard one, and what a node needs of it
node a 1000 --port "$port" --seed self
pid=$started
wait_until 60 up a || fail node_starts "$(tail -n 2 "$work/a.log")"
is soft_limit_of_descriptors_is_raised "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")" 1000
used=$(find "/proc/$pid/fd" | wc -l)
silent 100 399 || fail strangers_connect
wait_until 60 grep -q 'reason=pending-handshakes' "$work/a.log" && pass who_gives_way_is_named || fail who_gives_way_is_named
ctl a status >"$work/out" # before the time of their handshakes is over
has status_tells_of_those_who_say_nothing "connections wait for their handshake; with more than 250 the oldest is closed"
node b 1000 --port 0 --seed "troupe.tcp://demo@127.0.0.1:$port"
other=$started
wait_until 60 up b && pass a_member_joins_beside_300_silent_connections || fail a_member_joins_beside_300_silent_connections "$(tail -n 3 "$work/b.log")"
hang_up 100 399
kill -TERM "$other"
ended other_leaves "$other" 0
kill -TERM "$pid"
ended node_leaves "$pid" 0

# ---- no descriptor left: named once, and the operator gets in
node c $((used + 4)) --port "$port" --seed self
pid=$started
wait_until 60 up c || fail node_starts_with_few_descriptors "$(tail -n 2 "$work/c.log")"
silent 100 159
wait_until 60 grep -q 'no descriptor is free for a connection' "$work/c.log" && pass want_of_descriptors_is_named || fail want_of_descriptors_is_named "$(tail -n 3 "$work/c.log")"
ctl c status >"$work/out" || [ $? -eq 1 ] || fail operator_gets_in "$?"
has status_tells_of_the_want_of_descriptors "no descriptor was free for a connection: raise LimitNOFILE="
is want_of_descriptors_is_named_once "$(grep -c 'no descriptor is free' "$work/c.log")" 1
hang_up 100 159
kill -TERM "$pid"
ended node_with_few_descriptors_leaves "$pid" 0
test_end
