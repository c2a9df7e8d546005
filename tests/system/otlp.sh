#!/bin/bash
# otlp.sh - a node sends its traces to a collector: OTLP over HTTP, in JSON. HOW-09
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
if ! "$troupe" config check --set trace.otlp-endpoint=http://127.0.0.1:1/ >"$work/out" 2>&1; then skip "this build has no libcurl"; fi
refuses() { # NAME TEXT OPTION...
    local name=$1 text=$2
    shift 2
    expect "$name" 78 "$troupe" config check "$@"
    cat "$work/out" "$work/err" >"$work/both"
    has "${name}_says_why" "$text" "$work/both"
}
refuses what_is_no_url_is_78 "is no URL of a collector" --set trace.otlp-endpoint=127.0.0.1:4318
refuses another_scheme_is_78 "is no URL of a collector" --set trace.otlp-endpoint=grpc://127.0.0.1:4317
refuses no_interval_is_78 "trace.otlp-interval" --set trace.otlp-interval=0s

# A collector: each body is a line of `got`; while there is a file `refuse`, the answer is 503.
cat >"$work/collector.py" <<'PY'
import http.server, os, sys
work = sys.argv[1]
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        refuse = os.path.exists(work + "/refuse")
        if not refuse:
            with open(work + "/got", "ab") as got:
                got.write(self.path.encode() + b" " + self.headers["Content-Type"].encode() + b" " + body + b"\n")
        self.send_response(503 if refuse else 200)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
PY
background python3 "$work/collector.py" "$work" >"$work/port"
wait_until 60 test -s "$work/port" || fail collector
endpoint=http://127.0.0.1:$(cat "$work/port")/v1/traces
: >"$work/got"

start() { # NAME OPTION...: a node with the actor /user/back; its process in $node
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --seed self --load "$build/tests/multinode/.libs/traced.so" "$@" 2>"$work/$name.log"
    node=$started
    wait_until 60 "$troupe" --socket "$work/$name.sock" is-available >/dev/null 2>&1 || fail "start_$name"
}
ctl() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
spans() { grep -o '"spanId":"[0-9a-f]*"' "$work/got"; }
count_is() { [ "$(spans | wc -l)" -ge "$1" ]; }
asks() { ctl "$1" ask /user/back who >/dev/null 2>&1; }

# ---- off by default
start off
if grep -q libcurl "/proc/$node/maps"; then fail off_loads_no_library; else pass off_loads_no_library; fi
kill -TERM "$node"
mkdir "$work/empty"
: >"$work/empty/libcurl.so.4"
expect a_missing_library_is_78 78 env LD_LIBRARY_PATH="$work/empty:${LD_LIBRARY_PATH:-}" "$troupe" node --port 0 --socket "$work/none.sock" --seed self \
    --set trace.otlp-endpoint="$endpoint"
has the_package_is_named "apt-get install libcurl4" "$work/err"

# ---- spans reach the collector
start one --set trace.otlp-endpoint="$endpoint" --set trace.otlp-interval=1s --set management.enabled=on --set management.port=0
one=$node
expect an_actor_is_sampled 0 ctl one trace start --path /user/back
check it_is_asked wait_until 60 asks one
# HOW-09
check the_collector_gets_the_span wait_until 60 count_is 1
expect the_node_has_kept_it 0 ctl one trace last -o json
id=$(grep -o '"traceId": *"[0-9a-f]*"' "$work/out" | grep -o '[0-9a-f]\{32\}')
has it_has_the_id_of_the_trace "\"traceId\":\"$id\"" "$work/got"
has it_is_posted_as_json "/v1/traces application/json {" "$work/got"
has it_names_the_actor '"stringValue":"/user/back"' "$work/got"
instances() { grep -o '"service.instance.id","value":{"stringValue":"[^"]*"' "$1" | sort -u; }
is it_names_the_node "$(instances "$work/got")" "\"service.instance.id\",\"value\":{\"stringValue\":\"$(grep -o 'address=[^ ]*' "$work/one.log" | head -n 1 | cut -d= -f2)\""
expect the_tool_writes_it_too 0 ctl one trace "$id" --format otlp -o jsonl
is the_tool_names_the_same_node "$(instances "$work/out")" "$(instances "$work/got")"
sed 's/^[^{]*//' "$work/got" | head -n 1 >"$work/out"
is_json it_is_json

# ---- a collector that refuses: what it did not take comes later, once
: >"$work/refuse"
before=$(spans | wc -l)
for _ in 1 2 3; do asks one; done
check the_log_says_so wait_until 60 grep -q "traces are not taken by $endpoint: HTTP 503" "$work/one.log"
is nothing_is_taken "$(spans | wc -l)" "$before"
rm "$work/refuse"
check the_log_says_that_it_is_over wait_until 60 grep -q "traces are taken again by $endpoint" "$work/one.log"
check all_of_them_come wait_until 60 count_is $((before + 3))
is each_comes_once "$(spans | sort | uniq -d | wc -l)" 0
is the_log_says_it_once "$(grep -c 'traces are not taken' "$work/one.log")" 1
metrics() { curl -sS --max-time 30 "$(grep -o 'http://[0-9.:]*' "$work/one.log" | grep -v "$endpoint" | head -n 1)/metrics" >"$work/metrics" 2>/dev/null; }
counted() { metrics && grep -q 'troupe_trace_spans_total{result="sent"} [1-9]' "$work/metrics"; }
check the_spans_are_counted wait_until 60 counted
has none_was_dropped 'troupe_trace_spans_total{result="dropped"} 0' "$work/metrics"
has the_refusals_are_counted 'troupe_trace_requests_failed_total' "$work/metrics"
kill -TERM "$one"
ended the_node_leaves "$one" 0

# ---- the ring is the queue: what is overwritten before a collector takes it is counted
start two --set trace.otlp-endpoint=http://127.0.0.1:1/v1/traces --set trace.otlp-interval=1h
two=$node
expect its_actor_is_sampled 0 ctl two trace start --path /user/back
check it_is_asked_too wait_until 60 asks two
kill -TERM "$two"
ended a_collector_that_is_not_there_holds_no_node "$two" 0

# ---- a collector that takes the connection and the request, and answers nothing
cat >"$work/silent.py" <<'PY'
import os, socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
held = []
while True:
    held.append(server.accept()[0])
    held[-1].recv(1)
    open(sys.argv[1] + "/asked", "w").close()
PY
background python3 "$work/silent.py" "$work" >"$work/silent"
check a_silent_collector_listens wait_until 60 test -s "$work/silent"
start silent --set trace.otlp-endpoint="http://127.0.0.1:$(cat "$work/silent")/v1/traces" --set trace.otlp-interval=1s
silent=$node
expect an_actor_of_its_node_is_sampled 0 ctl silent trace start --path /user/back
check its_actor_is_asked wait_until 60 asks silent
check the_request_waits_for_its_answer wait_until 60 test -e "$work/asked"
expect it_leaves 0 ctl silent leave
removed_ms=$(now_ms)
ended it_is_gone "$silent" 0
end_ms=$(($(now_ms) - removed_ms))
measure end_with_a_silent_collector "$end_ms" ms
# Two seconds for the collector; the request would take ten.
is_soon() { [ "$end_ms" -lt 6000 ] || ! grep -q "timed out" "$work/silent.log"; }
check a_silent_collector_holds_no_node is_soon

# ---- the last ones go at the end
start three --set trace.otlp-endpoint="$endpoint" --set trace.otlp-interval=1h
three=$node
expect its_actor_is_sampled_too 0 ctl three trace start --path /user/back
before=$(spans | wc -l)
check the_third_is_asked wait_until 60 asks three
kill -TERM "$three"
ended the_third_leaves "$three" 0
check its_spans_were_sent_at_its_end wait_until 60 count_is $((before + 1))
test_end
