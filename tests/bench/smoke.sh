#!/bin/bash
# smoke.sh - every workload of the bench with a small count, on one and on two threads: it ends, loses nothing, and
# prints the lines that are promised. Its speed is not looked at: figures.sh does that.
# Proves HEADLINE-18.
set -u
bench=${TROUPE_BUILDDIR:-.}/tests/bench/bench
status=0

[ -x "$bench" ] || { echo "no $bench: build first"; exit 77; }
err=$(mktemp) # what is logged, of a worker that is held for long on a slow machine, is no figure
trap 'rm -f "$err"' EXIT

# smoke WORKLOAD COUNT PARAM:UNIT...: each of these lines once, with a number above 0; `lost 0`; nothing else.
smoke() {
    local workload=$1 count=$2 threads out result param
    shift 2
    for threads in 1 2; do
        result=PASS
        out=$(timeout 300 "$bench" "$workload" --threads "$threads" --count "$count" 2>"$err") || result=FAIL
        for param in "$@"; do
            [ "$(grep -cE "^troupe $workload ${param%%:*} [0-9.]*[1-9][0-9.]* ${param#*:}\$" <<<"$out")" -eq 1 ] || result=FAIL
        done
        grep -qx "troupe $workload lost 0 messages" <<<"$out" || result=FAIL
        [ "$(wc -l <<<"$out")" -eq $(($# + 1)) ] || result=FAIL
        echo "$result bench_${workload}_on_${threads}_threads_loses_nothing"
        if [ $result = FAIL ]; then
            sed 's/^/    /' <<<"$out"
            tail -n 20 "$err"
            status=1
        fi
    done
}

smoke pingpong 20000 rate:messages/s
smoke affine 5000 rate_within:messages/s rate_between:messages/s
smoke ring 20000 rate:hops/s
smoke count 200000 peak_rss:MiB rate:messages/s
smoke fanin 200000 peak_rss:MiB rate:messages/s
smoke text_fixed 100000 rate:messages/s
smoke text_any 100000 rate:messages/s
smoke route 200000 peak_rss:MiB rate:messages/s
smoke big 20000 rate:messages/s
# A sanitizer's `create` and `remote` take 5 and 10 to 20 s for these counts: it gets a fifth.
sanitized=1
! grep -qE 'enable-(asan|tsan)' "$(dirname "$bench")/../../config.status" 2>/dev/null || sanitized=5
smoke create $((50000 / sanitized)) bytes_per_live_actor:bytes actors_per_gib:actors rate:actors/s
smoke spawn_tree 10000 time:s
smoke chameneos 20000 rate:meetings/s
smoke forkjoin_throughput 60000 rate:messages/s
smoke fsm $((1000000 / sanitized / sanitized)) plain:ns machine:ns ratio:x # the clock of a process has a resolution of 4 ms
smoke flow 20000 start:ns wait:ns
smoke endpoint $((20000 / sanitized)) in:messages/s out:messages/s
smoke agent 20000 rate:changes/s read:reads/s lock:changes/s
smoke stm 20000 rate:transfers/s lock:transfers/s
smoke bigpayload 10000 rate:messages/s
# What the document promises of idle actors: 2.7 million of them in a gigabyte, about 300 bytes each. A sanitizer has a
# memory of its own.
judge() { # judge NAME VALUE at-most|at-least BOUND
    if awk -v value="$2" -v bound="$4" -v most="$3" 'BEGIN { exit !(value > 0 && (most == "at-most" ? value <= bound : value >= bound)) }'; then
        echo "PASS $1"
    else
        echo "FAIL $1"
        echo "    ${2:-no figure}, not $3 $4"
        status=1
    fi
}
if [ $sanitized = 1 ]; then
    out=$(timeout 300 "$bench" create --threads 1 --count 2700000 2>&1)
    # HEADLINE-2
    judge an_idle_actor_costs_at_most_300_bytes "$(sed -n 's/^troupe create bytes_per_live_actor \([0-9.]*\) bytes$/\1/p' <<<"$out")" at-most 300
    # HEADLINE-1
    judge a_gib_holds_two_million_seven_hundred_thousand_actors \
        "$(sed -n 's/^troupe create actors_per_gib \([0-9]*\) actors$/\1/p' <<<"$out")" at-least 2700000
fi
# Servers with sockets, in processes of their own: each part has its figure. How many they are is not looked at.
out=$(timeout 300 "$bench" sockets --count 2000 --idle 50 2>"$err")
for param in echo_cpu_ratio in_ratio out_ratio; do
    judge "bench_sockets_has_$param" "$(sed -n "s/^troupe sockets $param \([0-9.]*\) times\$/\1/p" <<<"$out")" at-least 0.0001
done
# figures WORKLOAD COUNT PARAM:UNIT...: the same on two threads, of a workload with other lines as well.
options=()
figures() {
    local workload=$1 count=$2 param
    shift 2
    out=$(timeout 300 "$bench" "$workload" --threads 2 --count "$count" "${options[@]}" 2>"$err") || { echo "FAIL bench_${workload}_ends"; tail -n 20 "$err"; status=1; }
    for param in "$@"; do
        judge "bench_${workload}_has_${param%%:*}" "$(sed -n "s|^troupe $workload ${param%%:*} \([0-9.]*\) ${param#*:}\$|\1|p" <<<"$out")" at-least 0.00001
    done
}
params=(local_{ref,name}:ns local_cost_ratio:times)
! "$bench" 2>&1 | grep -q '^  remote ' ||
    params+=(remote_{ref,name}:messages/s remote_ratio:times {idle_entities,idle_most_on_a_node}:entities bytes_per_idle_entity:bytes)
[ "$sanitized" = 1 ] || options=(--rounds 1) # of seven: with a sanitizer they take most of a minute
figures entity 20000 "${params[@]}"
options=()
if "$bench" 2>&1 | grep -q '^  journal '; then
    smoke journal 2000 lmdb_{rate,bare_rate}:events/s lmdb_ratio:times lmdb_events_per_commit:events lmdb_one_ratio:times \
        log_rate:events/s log_ratio:times replay_rate:events/s flush_rate_{before,after}:1/s
fi
# Two processes. A build without remoting has no such workload.
if "$bench" 2>&1 | grep -q '^  remote '; then
    smoke remote $((64000 / sanitized)) {,tls_}{rate_100,rate_1024,rate_65536,rate_100_4s}:messages/s {,tls_}rtt_p{50,99}:us
    figures pubsub 1000 frames_per_node:frames {local,publish}_rate:messages/s fanout_ratio:times topics_seen:s node_idle_bytes_per_s:bytes/s
    judge one_publication_is_one_frame_for_a_node "$(sed -n 's/^troupe pubsub frames_per_node \([0-9.]*\) frames$/\1/p' <<<"$out")" at-most 1
    out=$(timeout 300 "$bench" client --clients 10 2>"$err")
    for param in ask_of_a_node:us ask_of_a_client:us client_to_node:ratio clients:count connected_and_answered:s ask_with_so_many:us; do
        judge "bench_client_has_${param%%:*}" "$(sed -n "s|^troupe client ${param%%:*} \([0-9.]*\) ${param#*:}\$|\1|p" <<<"$out")" at-least 0.00001
    done
    smoke hb_under_bulk 100 bulk_rate:messages/s rtt_p50:us rtt_p99:us
    smoke beside_strangers 100 {alone,beside}_{p99,longest}:us ratio:times
    # An ask to a neighbour of slow receivers: 100 ms is failure, whatever else the machine does.
    out=$(timeout 300 "$bench" slow --threads 2 --count $((200000 / sanitized)) 2>"$err")
    for param in beside_one beside_many; do
        judge "asks_${param}_slow_take_less_than_100_ms" \
            "$(sed -n "s/^troupe slow ${param}_p99 \([0-9.]*\) us\$/\1/p" <<<"$out")" at-most 100000
    done
    judge no_ask_beside_slow_receivers_is_lost \
        "$(sed -n 's/^troupe slow lost \([0-9]*\) messages$/\1/p' <<<"$out" | awk '{ print $1 + 1 }')" at-most 1
fi
# Nodes with the management API and traces.
if out=$(timeout 300 "$bench" observe --threads 2 --count 100000 --rounds 1 2>"$err"); then
    for param in count_{rate,api_ratio,scraped_ratio,trace_off_ratio,trace_sampled_ratio} pingpong_{rate,api_ratio,scraped_ratio,trace_off_ratio} scrape; do
        judge "bench_observe_has_$param" "$(sed -n "s/^troupe observe $param \([0-9.]*\) .*/\1/p" <<<"$out")" at-least 0.00001
    done
elif ! grep -q 'no management API' "$err"; then
    echo "FAIL bench_observe_ends"
    tail -n 20 "$err"
    status=1
fi
smoke latency 10000 rtt_p50:ns rtt_p99:ns rtt_p99.9:ns
exit $status
