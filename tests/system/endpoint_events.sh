#!/bin/bash
# endpoint_events.sh - `troupe --endpoint URL events`: what the socket gives, over the server-sent events of the management API; a
# stream that is cut goes on behind its last event, one of a restarted node begins anew.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
command -v python3 >/dev/null || skip "needs python3"
tool() { env -u TROUPE_TIMEOUT "$troupe" "$@"; }
start() { # NAME OPTION...: a node with the API; its port in $port, its process in $node
    local name=$1
    shift
    background "$troupe" node --socket "$work/$name.sock" --set management.enabled=on --set management.port=0 "$@" 2>"$work/$name.log"
    node=$started
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$name.log" || fail "start_$name"
    port=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/$name.log" | tail -n 1 | sed 's/.*://')
}
if tool --endpoint http://127.0.0.1:1 members 2>"$work/err"; then :; elif grep -q 'no --endpoint' "$work/err"; then
    pass a_build_without_it_says_so
    test_end
fi
"$troupe" config check --set management.enabled=on >"$work/out" 2>&1
if grep -q 'no management API' "$work/out"; then skip "this build has no management API"; fi
hosts_port || { fail "a free port"; test_end; }
one_port=$hosts_free
start one --port "$one_port" --seed self --set management.streams-max=3 --set cluster.downing.active-strategy=manual
one=$node
check one_is_up wait_until 60 "$troupe" --socket "$work/one.sock" wait --up --timeout 5s
one_address=$("$troupe" --socket "$work/one.sock" members -o name)
echo "$port" >"$work/port"

# The relay stands between the tool and the node, so that the test can cut the stream.
mkfifo "$work/relay.in"
exec {relay}<>"$work/relay.in"
python3 "$src/tests/system/cut_relay.py" "$work/port" <"$work/relay.in" >"$work/relay.out" 2>"$work/relay.err" & # (background has no stdin)
pids+=("$!")
check the_relay_listens wait_until 60 test -s "$work/relay.out"
url=http://127.0.0.1:$(head -n 1 "$work/relay.out")
relay_is() { [ "$(tail -n 1 "$work/relay.out")" = "$1" ]; }
relay_say() { echo "$1" >&"$relay"; wait_until 60 relay_is "$1" || fail "the relay obeys $1"; }

background env -u TROUPE_TIMEOUT "$troupe" --socket "$work/one.sock" events -v -o jsonl >"$work/near" 2>"$work/near.err"
near=$started
background env -u TROUPE_TIMEOUT "$troupe" --endpoint "$url" events -v -o jsonl >"$work/far" 2>"$work/far.err"
far=$started
check the_near_stream_begins wait_until 60 grep -q subscribed "$work/near.err"
wait_until 60 grep -q subscribed "$work/far.err" || { fail the_far_stream_begins "$(cat "$work/far.err")"; test_end; }
check the_state_comes_first wait_until 60 grep -q '"type":"MemberUp".*"snapshot":true' "$work/far"
start two --port 0 --seed "$one_address" --set cluster.downing.active-strategy=manual
two=$node
has_event() { grep -q "\"type\":\"$2\"" "$work/$1" && [ "$(grep -c "\"type\":\"$2\"" "$work/$1")" -ge "${3:-1}" ]; } # FILE TYPE [COUNT]
check two_is_up_for_the_far_stream wait_until 60 has_event far MemberUp 2
check two_is_up_for_the_near_stream wait_until 60 has_event near MemberUp 2
changes() { grep -v '"snapshot":true' "$work/$1" | grep -E '"type":"Member(Joined|Up|Left|Exited|Removed)"'; } # FILE
check both_streams_are_the_same diff <(changes near) <(changes far)
two_address=$("$troupe" --socket "$work/two.sock" members -o json | sed -n 's/.*"selfNode": "\(.*\)",/\1/p')

# What happens while the stream is cut comes when it goes on, once.
relay_say cut
expect two_leaves 0 tool --socket "$work/one.sock" leave "$two_address" --timeout 60s
ended two_has_left "$two" 0
check the_near_stream_has_its_end wait_until 60 has_event near MemberRemoved
lacks nothing_comes_through_the_cut '"type":"MemberRemoved"' "$work/far"
relay_say mend
check the_far_stream_goes_on wait_until 90 has_event far MemberRemoved
is the_break_is_told "$(grep -c 'has ended; it is asked for again' "$work/far.err")" 1
check no_event_is_missing_or_double diff <(changes near) <(changes far)
lacks nothing_is_called_lost "events were lost" "$work/far.err"

# A node that has restarted has other events: its state comes anew, and the loss is told.
kill -KILL "$one"
await "$one" 60 || fail one_is_killed
await "$near" 60 || fail the_near_stream_ends
start again --port "$one_port" --seed self --set cluster.downing.active-strategy=manual
again=$node
echo "$port" >"$work/port"
check a_loss_is_told wait_until 90 grep -q "events were lost: the node has restarted" "$work/far.err"
up_again() { [ "$(grep -c '"type":"MemberUp"' "$work/far")" -ge 3 ]; }
check the_new_state_is_given wait_until 60 up_again
kill "$far" && forget "$far"

# ---- options and ends
one_url=http://127.0.0.1:$(cat "$work/port")
expect it_ends_after_its_count 0 tool --endpoint "$one_url" events --snapshot --count 1 -o name
is it_prints_the_member "$(cat "$work/out")" "$one_address"
expect types_are_chosen 0 tool --endpoint "$one_url" events --snapshot --type LeaderChanged --count 1 -o jsonl
has it_is_the_leader "\"type\":\"LeaderChanged\",\"leader\":\"$one_address\""
lacks akkas_keys_are_left_out '"address"'
expect a_time_that_is_over_is_its_end 0 tool --endpoint "$one_url" events --type MemberRemoved --timeout 1s
is nothing_has_happened "$(wc -l <"$work/out")" 0
expect a_type_that_is_none_is_64 64 tool --endpoint "$one_url" events --type MemberUpp
expect no_node_is_69 69 tool --endpoint http://127.0.0.1:1 events
kill "$again"
ended the_node_leaves "$again" 0
start few --port 0 --seed self --set management.streams-max=1
few_url=http://127.0.0.1:$port
background env -u TROUPE_TIMEOUT "$troupe" --endpoint "$few_url" events -v 2>"$work/only.err" >/dev/null
check the_only_stream_begins wait_until 60 grep -q subscribed "$work/only.err"
expect a_stream_too_many_is_75 75 tool --endpoint "$few_url" events
has it_says_so "too-many-streams" "$work/err"

# What a node sends reaches the terminal without its control characters, over HTTP as over the socket.
cat >"$work/evil.py" <<'END'
import socket
evil = "\\u001b[31mEVIL\\u001b]0;title\\u0007\\r\\nline"
event = '{"time":"2026-11-30T08:15:49.522Z","type":"MemberUp","member":{"node":"troupe.tcp://demo@%s:1","nodeUid":"1","status":"Up","roles":["%s"]}}'
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    conn, _ = server.accept()
    conn.recv(65536)
    conn.sendall(("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nid:1-1\n\nid:1-2\ndata:%s\nevent:MemberUp\n\n"
                  % (event % (evil, evil))).encode())
    conn.close()
END
background python3 "$work/evil.py" >"$work/evil.port" 2>"$work/evil.err"
wait_until 60 test -s "$work/evil.port" || fail evil_server
for form in name table jsonl; do
    expect "evil_event_as_$form" 0 tool --endpoint "http://127.0.0.1:$(cat "$work/evil.port")" events --count 1 --timeout 30s -o "$form"
    has "evil_event_is_shown_as_$form" EVIL
    lacks "no_control_character_as_$form" $'\x1b'
done
test_end
