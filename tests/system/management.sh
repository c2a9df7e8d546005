#!/bin/bash
# management.sh - the management API over HTTP: what it answers, whom it answers, and hostile input.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
command -v curl >/dev/null || skip "curl is not installed (deploy/bootstrap --tests)"
client=$src/tests/system/management_client.py

start() { # NAME OPTION...: a node with the API; its URL in $url, its port in $port, its process in $node
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --set management.enabled=on --set management.port=0 "$@" 2>"$work/$name.log"
    node=$started
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$name.log" || fail "start_$name"
    url=$(grep -o 'https\?://[0-9.]*:[0-9]*' "$work/$name.log" | tail -n 1)
    port=${url##*:}
}
get() { curl -sS --max-time 30 "$@" >"$work/out" 2>"$work/err"; }
code() { curl -sS --max-time 30 -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err"; }
hostile() { python3 "$client" "$port" "$@"; }
up() { get "$url/cluster/members" && grep -q '"status":"Up"' "$work/out"; }
token_of() { printf 'troupe management 1 demo' | openssl dgst -sha256 -hmac "$(head -n 1 "$STATE_DIRECTORY/cookie")" | sed 's/.* //'; }

# ---- off by default: no library, no port
background "$troupe" node --port 0 --socket "$work/off.sock" --seed self 2>"$work/off.log"
off=$started
check a_node_without_it_is_up wait_until 60 "$troupe" --socket "$work/off.sock" is-available
if grep -q libwebsockets "/proc/$off/maps"; then fail off_loads_no_library; else pass off_loads_no_library; fi
lacks off_listens_nowhere "management API" "$work/off.log"
kill -TERM "$off"

if "$troupe" config check --set management.enabled=on >"$work/out" 2>&1; then :; elif grep -q 'no management API' "$work/out"; then
    pass a_build_without_it_says_so
    test_end
fi

# ---- Akka Management's paths and JSON
start one --seed self
check a_node_with_it_is_up wait_until 60 up
self=$(sed -n 's/.*"selfNode":"\([^"]*\)".*/\1/p' "$work/out")
is members_have_akkas_keys "$(python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(" ".join(d), "/", " ".join(d["members"][0]))' "$work/out")" \
    "selfNode members unreachable leader oldest oldestPerRole / node nodeUid status roles"
is members_with_a_slash "$(code "$url/cluster/members/")" 200
is a_member_by_its_address "$(code "$url/cluster/members/$self")" 200
has a_member_has_its_status '"status":"Up","roles":[]'
is a_member_without_protocol "$(code "$url/cluster/members/${self#troupe.tcp://}")" 200
is an_unknown_member_is_404 "$(code "$url/cluster/members/demo@127.0.0.1:1")" 404
is an_unknown_member_is_named "$(cat "$work/out")" '{"error":"no-such-member"}'
is openapi_is_served "$(code "$url/openapi.json")" 200
perl "$src/docs/man/make-man" --source "$work/man" "$src/include/troupe/base.h" >"$work/man.out" 2>&1 || fail the_manual_is_made "$(cat "$work/man.out")"
python3 - "$work/out" "$work/man/man7/troupe-http.7.scd" >"$work/untold" 2>&1 <<'END'
import json, sys
page = open(sys.argv[2]).read().replace("\\", "")
print(" ".join(f"{m.upper()} {p}" for p, ways in json.load(open(sys.argv[1]))["paths"].items() for m in ways if f"*{m.upper()} {p}* (" not in page))
END
is each_path_is_in_the_manual "$(cat "$work/untold")" ""
is an_unknown_path_is_404 "$(code "$url/nowhere")" 404
is another_method_is_405 "$(code -X PATCH "$url/cluster/members")" 405
get -I "$url/cluster/members"
has head_has_a_length "Content-Length: "
has answers_have_a_content_security_policy "Content-Security-Policy: default-src 'none'"
lacks no_other_origin_may_read "Access-Control"

# ---- who may what, on loopback
is a_write_is_read_only_by_default "$(code -X DELETE "$url/cluster/members/$self")" 404
is read_only_is_named "$(cat "$work/out")" '{"error":"read-only"}'
is the_configuration_needs_a_token "$(code "$url/config")" 401
token=$(token_of)
is the_token_of_the_cookie_opens_it "$(code -H "Authorization: Bearer $token" "$url/config")" 200
has the_configuration_has_origins '"management.enabled":{"value":"on","origin":"--set"}'
lacks no_secret_is_shown "$(head -n 1 "$STATE_DIRECTORY/cookie")"
is a_wrong_token_opens_nothing "$(code -H "Authorization: Bearer ${token%?}x" "$url/config")" 401
is actors_are_shown "$(code -H "Authorization: Bearer $token" "$url/actors?path=/user&depth=0")" 200
has an_actor_has_its_behaviour '"path":"/user"'
is another_host_is_refused "$(code -H 'Host: evil.example' "$url/cluster/members")" 403

# ---- health: over HTTP, and by the tool; each no has its cause (the tool: 1, HTTP: 503, Akka's paths: 500)
is a_node_that_is_up_is_ready "$(code "$url/health/ready")" 200
has ready_has_its_checks '{"status":"up","checks":[{"name":"cluster-membership","ok":true,"detail":"Up"},{"name":"drain",'
is akkas_ready_is_the_same "$(code "$url/ready")" 200
is it_is_alive "$(code "$url/health/alive")" 200
is akkas_alive_is_the_same "$(code "$url/alive")" 200
expect the_tool_says_ready 0 "$troupe" --socket "$work/one.sock" check ready
has ready_is_told_line_by_line "inbound: ok: answers"
expect the_tool_says_alive 0 "$troupe" --socket "$work/one.sock" check alive -o json
has alive_as_json '"status": "up"'

# ---- metrics: text, OpenMetrics for a client that asks; few series
is metrics_are_open_on_loopback "$(code "$url/metrics")" 200
cp "$work/out" "$work/metrics"
has metrics_count_members 'troupe_cluster_members{status="Up",role=""} 1'
has metrics_count_dead_letters 'troupe_dead_letters_total{reason="no-such-actor"} 0'
series=$(grep -vc '^#\|peer="' "$work/metrics")
if [ "$series" -ge 40 ] && [ "$series" -le 300 ]; then pass a_node_has_at_most_300_series; else fail a_node_has_at_most_300_series "$series"; fi
get -H 'Accept: application/openmetrics-text; version=1.0.0' -D "$work/head" "$url/metrics"
has openmetrics_has_its_type "application/openmetrics-text; version=1.0.0; charset=utf-8" "$work/head"
is openmetrics_has_an_end "$(tail -n 1 "$work/out")" "# EOF"
has openmetrics_names_counters_without_total "# TYPE troupe_messages counter"

# ---- hostile input: no request is read out of another one's body, and no one holds a connection
one_answer() { [ "$(grep -c '^HTTP/1' "$work/raw")" -eq 1 ] && ! grep -q selfNode "$work/raw"; }
hostile raw 'POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60\r\n\r\nGET /cluster/members HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nxxxxxxxxxx' >"$work/raw"
check a_request_in_a_body_is_none one_answer
hostile raw 'GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /cluster/members HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' >"$work/raw"
check a_second_request_is_none one_answer
hostile raw 'PUT /cluster/members/x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n' >"$work/raw"
check a_chunked_body_is_none one_answer
hostile raw 'PUT /cluster/members/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nContent-Length: 50\r\n\r\nabc' >"$work/out"
has two_lengths_are_400 "HTTP/1.1 400"
hostile raw 'PUT /cluster/members/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 65537\r\n\r\nabc' >"$work/out"
has a_body_above_the_limit_is_413 "HTTP/1.1 413"
hostile raw 'GET /cluster/members HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n' >"$work/out"
has two_hosts_are_refused "HTTP/1.1 403"
hostile raw 'GET /cluster/members%00zzz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' >"$work/out"
lacks a_nul_in_a_path_reaches_nothing selfNode
hostile raw 'GET /cluster/members HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n' >"$work/out"
lacks no_other_protocol_is_spoken 101
hostile raw "GET /cluster/members HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: $(head -c 20000 /dev/zero | tr '\0' x)\r\n\r\n" >"$work/out"
lacks a_header_above_the_limit_is_not_served selfNode
check it_still_answers wait_until 60 up
"$troupe" --socket "$work/one.sock" leave >/dev/null 2>&1
ended a_node_with_it_leaves "$node" 0

# ---- messages by HTTP, and the shards of a type in Akka's JSON
start door --seed self --set management.read-only=off --load "$build/examples/.libs/echo.so" \
    --load "$build/tests/multinode/.libs/once.so" --load "$build/tests/system/.libs/many.so:0"
door=$node
check the_door_is_up wait_until 60 up
post() { code -X POST -H "Authorization: Bearer $(token_of)" "$@"; }
is a_message_needs_a_credential "$(code -X POST -H 'Content-Type: text/plain' -d hi "$url/actors/user/echo")" 401
is a_message_is_told "$(post -H 'Content-Type: text/plain' -d hi "$url/actors/user/echo")" 200
is an_actor_is_asked "$(post -H 'Content-Type: text/plain' -d hi "$url/actors/user/echo?ask=30s")" 200
is its_answer_is_the_body "$(cat "$work/out")" hi
is an_actor_is_asked_in_json "$(post -H 'Content-Type: application/json' -d '{"n": 1}' "$url/actors/user/echo?ask=30s")" 200
is its_answer_is_json "$(cat "$work/out")" '{"n":1}'
# ---- a message continues the trace of its request (HOW-09)
trace_has() { "$troupe" --socket "$work/$1.sock" trace "$2" >"$work/trace" 2>&1 && grep -q /user/echo "$work/trace"; }
parent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
is a_traced_message_is_told "$(post -H "traceparent: $parent" -H 'Content-Type: text/plain' -d hi "$url/actors/user/echo")" 200
# HOW-09
check it_is_in_the_trace_of_the_request wait_until 60 trace_has door 4bf92f3577b34da6a3ce929d0e0e4736
# HOW-09
read_trace() { code -H "Authorization: Bearer $(token_of)" "$url/trace/$1"; }
is a_trace_needs_a_credential "$(code "$url/trace/4bf92f3577b34da6a3ce929d0e0e4736")" 401
is the_trace_is_read_by_its_id "$(read_trace 4bf92f3577b34da6a3ce929d0e0e4736)" 200
has the_trace_has_its_id '"traceId":"4bf92f3577b34da6a3ce929d0e0e4736"'
has the_trace_has_the_actor '/user/echo"'
is an_unknown_trace_is_404 "$(read_trace 4bf92f3577b34da6a3ce929d0e0e4737)" 404
has it_is_called_no_such_trace '"error":"no-such-trace"'
is a_trace_id_has_32_digits "$(read_trace 4bf9)" 400
has the_form_of_an_id_is_told "is no trace id: 32 digits of 0-9a-f"
parent=00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
is a_traced_question_is_asked "$(post -H "traceparent: $parent" -H 'Content-Type: text/plain' -d hi "$url/actors/user/echo?ask=30s")" 200
check it_is_in_its_trace wait_until 60 trace_has door 5bf92f3577b34da6a3ce929d0e0e4736
is a_malformed_traceparent_is_ignored "$(post -H "traceparent: 00-x" -H 'Content-Type: text/plain' -d hi "$url/actors/user/echo?ask=30s")" 200
is no_actor_is_404 "$(post -H 'Content-Type: text/plain' -d hi "$url/actors/user/nobody?ask=30s")" 404
has it_is_called_so '"error":"no-such-actor"'
is an_order_to_the_runtime_is_no_message "$(post -H 'Content-Type: application/json' -d '{}' "$url/actors/system/cluster?type=troupe.kill")" 400
is a_form_is_no_message "$(post -d hi "$url/actors/user/echo")" 415
is no_shards_of_a_type_that_is_none "$(code "$url/cluster/shards/nothing")" 404
has the_type_is_named '"error":"no-such-type"'
tallied() { "$troupe" --socket "$work/door.sock" ask /cluster/tally/a again >/dev/null 2>&1; }
check an_entity_lives wait_until 60 tallied
parent=00-6bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
is a_traced_question_to_an_entity "$(post -H "traceparent: $parent" -H 'Content-Type: text/plain' -d again "$url/actors/cluster/tally/a?ask=30s")" 200
trace_has_entity() { "$troupe" --socket "$work/door.sock" trace 6bf92f3577b34da6a3ce929d0e0e4736 2>&1 | grep -q tally; }
check it_is_in_the_trace_of_the_entity wait_until 60 trace_has_entity
one_lives() { [ "$(code "$url/cluster/shards/tally")" = 200 ] && grep -q '"numEntities":1' "$work/out"; }
check the_shards_of_a_type_are_told wait_until 60 one_lives
is they_have_akkas_keys "$(python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(" ".join(d), "/", " ".join(d["regions"][0]), sum(r["numEntities"] for r in d["regions"]))' "$work/out")" \
    "regions / shardId numEntities 1"
# ---- clients that wait for a log line, and those of them that go, leave places for others
logs="GET /control/logs?follow=true&level=error&timeoutMs=86400000 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer $(token_of)\r\n\r\n"
authorized() { [ "$(code -H "Authorization: Bearer $(token_of)" "$url$1")" = "$2" ]; }
background python3 "$client" "$port" hold 20 "$logs" >"$work/held"
holder=$started
check clients_follow wait_until 60 grep -q held "$work/held"
check one_too_many_is_503 wait_until 20 authorized '/control/logs?follow=true&timeoutMs=1' 503
check others_are_served wait_until 10 authorized '/actors?path=/user&depth=0' 200
kill -KILL "$holder"
check a_client_that_goes_leaves_its_place wait_until 10 authorized '/control/logs?follow=true&timeoutMs=1' 200
# ---- clients that wait for an answer that never comes, and go
for _ in {1..20}; do
    background curl -s -m 1 -o /dev/null -X POST -H "Authorization: Bearer $(token_of)" -H 'Content-Type: text/plain' -d hi "$url/actors/user/mule?ask=1h"
    gone=$started
done
await "$gone" 60
check questions_of_clients_that_went_leave_their_places wait_until 20 authorized '/actors?path=/user&depth=0' 200
threads_are() { [ "$(find "/proc/$door/task" -mindepth 1 -maxdepth 1 | wc -l)" "$@" ]; }
before=$(find "/proc/$door/task" -mindepth 1 -maxdepth 1 | wc -l)
asking=()
for _ in {1..20}; do
    background "$troupe" --socket "$work/door.sock" ask /user/mule hi -t 1h
    asking+=("$started")
done
check each_has_a_thread_of_the_node wait_until 60 threads_are -ge $((before + 20))
kill -KILL "${asking[@]}"
check the_threads_end_with_their_clients wait_until 20 threads_are -le $((before + 2))
background "$troupe" --socket "$work/door.sock" ask /user/mule hi -t 1h
asking=$started
check one_asks_on wait_until 60 threads_are -ge $((before + 1))
kill -TERM "$door"
ended the_door_leaves "$door" 0
ended the_question_ends_with_the_node "$asking" 69

# ---- events: Reset and the state, then each change soon after it; a stream too many is 503
start watched --seed self --set management.streams-max=1
watched=$node watched_url=$url watched_port=$port
check the_watched_node_is_up wait_until 60 up
watched_address=$(sed -n 's/.*"selfNode":"\([^"]*\)".*/\1/p' "$work/out")
background python3 "$client" "$watched_port" events '?type=ClusterDomainEvent' >"$work/events"
reader=$started
check a_stream_begins_with_reset wait_until 60 grep -q '^Reset' "$work/events"
is a_stream_above_the_limit_is_503 "$(code "$watched_url/cluster/domain-events")" 503
has it_names_the_limit too-many-streams
is an_unknown_type_is_400 "$(code "$watched_url/cluster/domain-events?type=Nope")" 400
background "$troupe" node --port 0 --socket "$work/guest.sock" --seed "$watched_address" 2>"$work/guest.log"
check a_member_that_is_up_is_an_event wait_until 60 grep -q '^MemberUp' "$work/events"
"$troupe" --socket "$work/guest.sock" leave >/dev/null 2>&1
check a_member_that_is_gone_is_an_event wait_until 60 grep -q '^MemberRemoved' "$work/events"
kill -KILL "$reader"
hostile reopen 20 >"$work/out"
accepted=$(sed -n 's/^accepted //p' "$work/out")
if [ "${accepted:-0}" -ge 10 ]; then pass a_reader_that_has_gone_keeps_no_place; else fail a_reader_that_has_gone_keeps_no_place "$accepted of 20 were accepted"; fi
late=$(awk '{ print $2 }' "$work/events" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }')
measure event_delay "${late:-9999}" ms
if [ "${late:-9999}" -le 300 ]; then pass events_come_soon_after_the_change; else fail events_come_soon_after_the_change "median $late ms of $(wc -l <"$work/events") events"; fi
kill -KILL "$watched"

# ---- a node that is no member; one whose workers are in turns that never end
start lonely
no_member() { [ "$(code "$url/health/ready")" = 503 ] && grep -q '"name":"cluster-membership","ok":false,"detail":"not a member"' "$work/out"; }
check who_is_no_member_is_not_ready wait_until 60 no_member
is akkas_ready_is_500 "$(code "$url/ready")" 500
is who_is_no_member_is_alive "$(code "$url/health/alive")" 200
expect the_tool_says_not_ready 1 "$troupe" --socket "$work/lonely.sock" check ready
has not_ready_says_why "cluster-membership: fail: not a member"
kill -KILL "$node"
start stuck --seed self --load "$build/tests/system/.libs/stuck.so:2" --set actor.default-dispatcher.workers=2 --set management.alive-after=1s
not_alive() { [ "$(code "$url/health/alive")" = 503 ]; }
check who_does_no_work_is_not_alive wait_until 60 not_alive
is akkas_alive_is_500 "$(code "$url/alive")" 500
is who_does_no_work_is_not_ready "$(code "$url/health/ready")" 503
has it_names_the_dispatcher '"name":"default-dispatcher","ok":false'
expect the_tool_says_not_alive 1 "$troupe" --socket "$work/stuck.sock" check alive
kill -KILL "$node"

# ---- limits of connections and time
start two --seed self --set management.connections-max=32 --set management.request-timeout=2s
check the_second_is_up wait_until 60 up
is a_slow_client_is_cut_off "$(hostile slow 30000)" closed
hostile crowd 1000 >"$work/out"
kept=$(sed -n 's/^open //p' "$work/out")
if [ "${kept:-9999}" -le 32 ]; then pass a_crowd_gets_no_more_than_the_limit; else fail a_crowd_gets_no_more_than_the_limit "$kept of 1000 connections stayed"; fi
check it_answers_after_a_crowd wait_until 60 up
expect a_port_in_use_is_69 69 "$troupe" node --port 0 --socket "$work/x.sock" --set management.enabled=on --set management.port="$port"
has a_port_in_use_is_named "cannot listen on 127.0.0.1:$port" "$work/err"
kill -KILL "$node"

# ---- tokens of files, writes, audit
umask 077
openssl rand -hex 32 >"$work/tokens"
openssl rand -hex 32 >"$work/readers"
start three --seed self --set management.read-only=off --set management.token-file="$work/tokens" --set management.reader-token-file="$work/readers"
check the_third_is_up wait_until 60 up
self=$(sed -n 's/.*"selfNode":"\([^"]*\)".*/\1/p' "$work/out")
three=$node three_url=$url
writer="Authorization: Bearer $(cat "$work/tokens")"
is a_write_needs_a_token "$(code -X DELETE "$url/cluster/members/$self")" 401
is a_reader_may_not_write "$(code -H "Authorization: Bearer $(cat "$work/readers")" -X DELETE "$url/cluster/members/$self")" 403
is a_reader_may_read "$(code -H "Authorization: Bearer $(cat "$work/readers")" "$url/config")" 200
is a_page_of_another_origin_may_not_write "$(code -H "$writer" -H 'Origin: http://evil.example' -X DELETE "$url/cluster/members/$self")" 403
is a_wrong_operation_is_400 "$(code -H "$writer" -X PUT -d operation=Explode "$url/cluster/members/$self")" 400
is a_form_of_another_type_is_415 "$(code -H "$writer" -H 'Content-Type: application/json' -X PUT -d '{}' "$url/cluster/members/$self")" 415
is down_of_an_unknown_member_is_404 "$(code -H "$writer" -X PUT -F operation=Down "$url/cluster/members/demo@127.0.0.1:1")" 404
start four --set management.read-only=off --set management.token-file="$work/tokens"
four=$node four_url=$url
joined() { get "$three_url/cluster/members" && [ "$(grep -o '"status":"Up"' "$work/out" | wc -l)" -eq "$1" ]; }
is join_is_ordered "$(code -H "$writer" -d "address=$self" "$four_url/cluster/members/")" 200
is join_answers_in_akkas_words "$(cat "$work/out")" "{\"message\":\"Joining $self\"}"
check the_fourth_joins wait_until 60 joined 2
other=$(get "$four_url/cluster/members" && sed -n 's/.*"selfNode":"\([^"]*\)".*/\1/p' "$work/out")
peers_series() { get "$three_url/metrics" && [ "$(grep -c "peer=\"$other\"" "$work/out")" -eq 8 ]; }
check a_peer_has_eight_series wait_until 60 peers_series
prepare() { code -H "$writer" -X PUT -d "operation=$1" "$three_url/cluster/"; }
is another_operation_on_all_is_400 "$(prepare Down)" 400
is the_end_of_all_is_prepared "$(prepare Prepare-for-full-shutdown)" 200
is it_answers_in_akkas_words "$(cat "$work/out")" '{"message":"Preparing for full cluster shutdown"}'
for log in three four; do
    check "${log}_is_prepared" wait_until 60 grep -q 'the whole cluster is being shut down' "$work/$log.log"
done
has the_preparation_is_in_the_audit 'order=prepare-shutdown on=all-members' "$work/three.log"
check nobody_ends_by_it joined 2
is leave_is_ordered "$(code -H "$writer" -X PUT -d operation=leave "$three_url/cluster/members/$other")" 200
is leave_answers_in_akkas_words "$(cat "$work/out")" "{\"message\":\"Leaving $other\"}"
ended the_fourth_leaves "$four" 0
has the_order_is_in_the_audit "order=leave on=$other" "$work/three.log"
digest=$(tr -d '\n' <"$work/tokens" | openssl dgst -sha256 -hmac "troupe management token" | sed 's/.* \(.\{8\}\).*/\1/')
has the_audit_names_the_client_and_its_token "by=management from=127.0.0.1 token=1/$digest" "$work/three.log"
openssl rand -hex 32 >"$work/tokens"
kill -HUP "$three"
renewed() { [ "$(code -H "Authorization: Bearer $(cat "$work/tokens")" "$three_url/config")" = 200 ]; }
check a_new_token_counts_after_a_reload wait_until 60 renewed
is the_old_token_does_not "$(code -H "$writer" "$three_url/config")" 401
chmod 644 "$work/tokens"
kill -HUP "$three"
check a_file_that_others_may_read_is_named wait_until 60 grep -q 'reload: management.token-file: .*chmod 600; the old tokens stay' "$work/three.log"
check the_present_tokens_stay wait_until 60 renewed
kill -KILL "$three"

# ---- what a check of the configuration finds
expect a_token_file_for_all_is_78 78 "$troupe" config check --set management.enabled=on --set management.token-file="$work/tokens"
has it_says_what_to_do "chmod 600" "$work/err"
expect a_name_to_bind_is_78 78 "$troupe" config check --set management.enabled=on --set management.bind=localhost
expect beyond_loopback_without_tls_is_78 78 "$troupe" config check --set management.enabled=on --set management.bind=0.0.0.0
has it_names_the_keys "management.tls.cert" "$work/err"
mkdir "$work/empty"
: >"$work/empty/libwebsockets.so.17"
: >"$work/empty/libwebsockets.so.19"
expect a_missing_library_is_78 78 env LD_LIBRARY_PATH="$work/empty:${LD_LIBRARY_PATH:-}" "$troupe" config check --set management.enabled=on
has the_package_is_named "apt-get install libwebsockets1" "$work/err"

# ---- TLS 1.3 and certificates
(cd "$work" && "$troupe" cert ca test-ca --dir pki && "$troupe" cert node 127.0.0.1 board.example operator.example --dir pki &&
    "$troupe" cert ca other-ca --dir foreign && "$troupe" cert node operator.example --dir foreign) >"$work/cert.out" 2>&1 || fail certificates "$(tail -n 2 "$work/cert.out")"
pki=$work/pki
start five --seed self --set management.bind=0.0.0.0 --set management.hosts=127.0.0.1 --set management.read-only=off \
    --set management.tls.cert="$pki/127.0.0.1.pem" --set management.tls.key="$pki/127.0.0.1.key" --set management.tls.ca="$pki/ca.pem" \
    --set management.readers=board.example --set management.writers=operator.example --set management.token-file="$work/readers"
url=https://127.0.0.1:$port
curl_as() { curl -sS --max-time 30 --cacert "$pki/ca.pem" -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err"; }
certificate() { local d=$1 n=$2; shift 2; curl_as --cert "$d/$n.pem" --key "$d/$n.key" "$@"; }
answers() { [ "$(certificate "$pki" board.example "$url/cluster/members")" = 200 ]; }
check a_reader_by_certificate_reads wait_until 60 answers
is without_a_credential_nothing_is_open "$(curl_as "$url/cluster/members")" 401
is a_token_does_as_well "$(curl_as -H "Authorization: Bearer $(cat "$work/readers")" "$url/config")" 200
is a_certificate_of_no_list_reads_nothing "$(certificate "$pki" 127.0.0.1 "$url/cluster/members")" 401
is a_reader_by_certificate_may_not_write "$(certificate "$pki" board.example -X DELETE "$url/cluster/members/x")" 403
is a_writer_by_certificate_may "$(certificate "$pki" operator.example -X DELETE "$url/cluster/members/demo@127.0.0.1:1")" 404
is a_certificate_of_another_authority_is_refused "$(certificate "$work/foreign" operator.example "$url/cluster/members")" 000
# the name is the common name, not what stands in another part of the subject
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/sly.key" -subj "/O=x\\/CN=operator.example" -out "$work/sly.csr" 2>/dev/null
openssl x509 -req -in "$work/sly.csr" -CA "$pki/ca.pem" -CAkey "$pki/ca.key" -CAcreateserial -days 2 -out "$work/sly.pem" 2>/dev/null
check the_sly_subject_is_an_organisation grep -q 'O *= *"\?x/CN' <(openssl x509 -in "$work/sly.pem" -noout -subject)
is a_common_name_in_another_part_is_none "$(certificate "$work" sly -X DELETE "$url/cluster/members/demo@127.0.0.1:1")" 401
is tls_1_2_is_refused "$(certificate "$pki" board.example --tls-max 1.2 "$url/cluster/members")" 000
get "http://127.0.0.1:$port/cluster/members"
lacks plain_http_is_not_served selfNode
# new files at SIGHUP: another certificate, then another authority for clients; files that will not do change nothing
shown() { openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | openssl x509 -noout -fingerprint 2>/dev/null; }
before=$(shown)
(cd "$work" && "$troupe" cert ca test-ca --dir fresh && cp pki/ca.pem pki/ca.key fresh/ && "$troupe" cert node 127.0.0.1 --dir fresh) >"$work/cert.out" 2>&1
cp "$work/fresh/127.0.0.1.key" "$pki/127.0.0.1.key"
kill -HUP "$node"
check a_key_of_another_certificate_is_named wait_until 60 grep -q 'reload: management.tls: .*; the old certificate stays' "$work/five.log"
is the_old_certificate_stays "$(shown)" "$before"
cp "$work/fresh/127.0.0.1.pem" "$pki/127.0.0.1.pem"
kill -HUP "$node"
changed() { local now; now=$(shown); [ -n "$now" ] && [ "$now" != "$before" ]; }
check a_new_certificate_is_shown_after_a_reload wait_until 60 changed
is clients_are_judged_as_before "$(certificate "$pki" board.example "$url/cluster/members")" 200
cp "$pki/ca.pem" "$work/first-ca.pem"
cp "$work/foreign/ca.pem" "$pki/ca.pem"
cat "$work/first-ca.pem" >>"$pki/ca.pem"
kill -HUP "$node"
foreign_is_taken() { [ "$(curl -sS --max-time 30 --cacert "$work/first-ca.pem" --cert "$work/foreign/operator.example.pem" --key "$work/foreign/operator.example.key" -o "$work/out" -w '%{http_code}' "$url/cluster/members" 2>"$work/err")" = 200 ]; }
check a_new_authority_counts_after_a_reload wait_until 60 foreign_is_taken
kill -TERM "$node"
ended a_node_with_tls_ends "$node" 0
test_end
