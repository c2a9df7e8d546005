#!/bin/bash
# figures.sh - the table of docs/performance.md: our figures on one and on two threads beside those of Erlang on
# two, in one run. Speed never fails a test. What must hold on any machine does: nothing is lost, an idle actor
# fits in 192 bytes, and a flood keeps within 64 MiB.
#
#   figures.sh [--full] [--rounds N] [WORKLOAD ...]
#
# --full takes the workloads' own counts; without it, a quarter. In each of N rounds (1) a workload runs once on one
# thread, on two, and in Erlang, one after the other, so that what else the machine does hits all three; the medians
# count.
set -u
srcdir=${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
bench=${TROUPE_BUILDDIR:-.}/tests/bench/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
part=4
rounds=1
workloads=()
while [ $# -gt 0 ]; do
    case $1 in
    --full) part=1 ;;
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    *) workloads+=("$1") ;;
    esac
    shift
done

# workload, count, what is compared, how it is shown (divisor and unit), whether more is better, the least and the
# goal as ratios to Erlang (the goals of the reference table over its Erlang column)
table() {
    cat <<'TABLE'
pingpong 5000000 rate 1e6 M/s more 6.5 11.3
ring 5000000 rate 1e6 M/s more 6.7 11.5
count 20000000 rate 1e6 M/s more 2.6 5.7
fanin 10000000 rate 1e6 M/s more 4.3 7.1
big 4000000 rate 1e6 M/s more 10 11.5
create 1000000 rate 1e6 M/s more 13 22.2
spawn_tree 1000000 time 1 s less 8.7 16.7
chameneos 2000000 rate 1e6 M/s more 7.7 9.4
forkjoin_throughput 6000000 rate 1e6 M/s more 6 8.5
bigpayload 2000000 rate 1e6 M/s more 6.8 8.6
latency 2000000 rtt_p50 1 ns less 4.7 6.2
TABLE
}

check() { # check SENTENCE CONDITION (awk)
    if awk "BEGIN { exit !($2) }"; then
        echo "PASS $1"
    else
        echo "FAIL $1: $2"
        status=1
    fi
}

figures() { # figures FILE WORKLOAD PARAM: all values
    awk -v w="$2" -v p="$3" '$2 == w && $3 == p { print $4 }' "$1" 2>/dev/null
}
median() {
    sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'
}
greatest() {
    sort -g | tail -n 1
}

ours() { # ours THREADS WORKLOAD COUNT
    timeout 90 "$bench" "$2" --threads "$1" --count "$3" >>"$work/troupe$1" 2>"$work/err" </dev/null ||
        { echo "FAIL bench_$2_$1t: $(tail -n 1 "$work/err")"; status=1; }
}
erlang() { # erlang WORKLOAD COUNT
    timeout 120 erl +S 2:2 +P 2500000 -noshell -pa "$work" -run troupe_peer main "$1" "$2" >>"$work/erlang" </dev/null
}

[ -x "$bench" ] || { echo "no $bench: build first"; exit 77; }
peer=
if command -v erl >/dev/null && command -v erlc >/dev/null; then
    erlc -o "$work" "$srcdir/tests/bench/erlang/troupe_peer.erl" && peer=yes
else
    echo "no Erlang to compare with: apt-get install erlang-base"
fi
printf '%-20s %10s %10s %6s %10s %7s %6s %6s  (load %s)\n' workload "1 thread" "2 threads" 2t/1t "erlang 2t" ratio least goal \
    "$(cut -d' ' -f1 /proc/loadavg)"
while read -r workload count param divisor unit better least goal; do
    if [ ${#workloads[@]} -gt 0 ] && [[ " ${workloads[*]} " != *" $workload "* ]]; then
        continue
    fi
    [ "$workload" = create ] || [ "$workload" = spawn_tree ] || count=$((count / part))
    for _ in $(seq "$rounds"); do
        ours 1 "$workload" "$count"
        ours 2 "$workload" "$count"
        [ -n "$peer" ] && erlang "$workload" "$count"
    done
    awk -v w="$workload" -v one="$(figures "$work/troupe1" "$workload" "$param" | median)" \
        -v two="$(figures "$work/troupe2" "$workload" "$param" | median)" \
        -v peer="$(figures "$work/erlang" "$workload" "$param" | median)" \
        -v d="$divisor" -v unit="$unit" -v better="$better" -v least="$least" -v goal="$goal" 'BEGIN {
            both = better == "more" ? one ? two / one : 0 : two ? one / two : 0
            ratio = !peer || !two ? 0 : better == "more" ? two / peer : peer / two
            printf "%-20s %10.4g %10.4g %6.2f %10.4g %7s %6s %6s  %s\n", w, one / d, two / d, both, peer / d,
                ratio ? sprintf("%.1f x", ratio) : "-", least, goal, unit }'
done < <(table)

cat "$work"/troupe[12] >"$work/all" 2>/dev/null
# Remoting: two processes of ours, of plain TCP and of Erlang, one after the other. Goals as ratios to plain TCP at 100 B
# (0.3; with TLS 0.2, least 0.1) and 64 KiB (0.5) and to Erlang (20; least 9); on one core a round trip of at most 2.9 times plain TCP's.
far_erlang() {
    local sink
    export ERL_EPMD_ADDRESS=127.0.0.1 HOME=$work
    epmd -daemon
    ERL_CRASH_DUMP=/dev/null erl -noshell -noinput -kernel logger_level error -setcookie bench -pa "$work" -name "sink$$@127.0.0.1" -eval 'troupe_far:sink().' &
    sink=$!
    timeout 120 erl -noshell -noinput -kernel logger_level error -setcookie bench -pa "$work" -name "src$$@127.0.0.1" \
        -eval "troupe_far:main('sink$$@127.0.0.1', $1)." >>"$work/far_erlang" </dev/null
    kill $sink 2>/dev/null
    wait $sink 2>/dev/null
}
far() { # far COUNT
    local _
    for _ in $(seq "$rounds"); do
        timeout 120 "$bench" remote --threads 1 --count "$1" >>"$work/far" 2>"$work/err" </dev/null ||
            { echo "FAIL bench_remote: $(tail -n 1 "$work/err")"; status=1; }
        timeout 120 "$bench" raw --count "$1" >>"$work/far_raw" </dev/null
        [ -n "$peer" ] && far_erlang "$1"
        timeout 120 "$bench" hb_under_bulk --threads 1 >>"$work/far" 2>"$work/err" </dev/null ||
            { echo "FAIL bench_hb_under_bulk: $(tail -n 1 "$work/err")"; status=1; }
        for it in remote raw; do
            timeout 120 taskset -c 1 "$bench" $it --threads 1 --count 64000 --transport tcp </dev/null |
                sed -n "s/ $it rtt_/ $it one_core_rtt_/p" >>"$work/far"
        done
    done
    printf '%-20s %12s %12s %8s %12s %8s\n' "two processes" troupe "plain TCP" ratio erlang ratio
    for param in rate_100 rate_1024 rate_65536 rate_100_4s rtt_p50 rtt_p99 one_core_rtt_p50 one_core_rtt_p99 \
        tls_rate_100 tls_rate_1024 tls_rate_65536 tls_rate_100_4s tls_rtt_p50 tls_rtt_p99; do
        plain=${param#tls_} plain=${plain%_4s}
        awk -v w="$param" -v ours="$(figures "$work/far" remote $param | median)" \
            -v raw="$(cat "$work/far_raw" "$work/far" | figures /dev/stdin raw "$plain" | median)" \
            -v erl="$(figures "$work/far_erlang" remote "$plain" | median)" 'BEGIN {
                printf "%-20s %12.6g %12.6g %8s %12.6g %8s\n", w, ours, raw, raw ? sprintf("%.2f", ours / raw) : "-", erl,
                    erl ? sprintf("%.2f", ours / erl) : "-" }'
    done
    printf '%-20s %12s us\n' "heartbeat p50" "$(figures "$work/far" hb_under_bulk rtt_p50 | median)" \
        "heartbeat p99" "$(figures "$work/far" hb_under_bulk rtt_p99 | median)"
    cat "$work/far" >>"$work/all"
}
if [ ${#workloads[@]} -eq 0 ] || [[ " ${workloads[*]} " == *" remote "* ]]; then
    [ -z "$peer" ] || erlc -o "$work" "$srcdir/tests/bench/erlang/troupe_far.erl" || peer=
    far $((10000000 / part))
fi
check "nothing_is_lost" "$(grep -c ' lost 0 ' "$work/all") >= 1 && $(grep ' lost ' "$work/all" | grep -vc ' lost 0 ') == 0"
for limit in "create bytes_per_live_actor 192" "count peak_rss 64" "fanin peak_rss 64"; do
    read -r workload param most <<<"$limit"
    value=$(figures "$work/all" "$workload" "$param" | greatest)
    [ -z "$value" ] || check "${workload}_${param}_is_at_most_$most" "$value <= $most"
done
exit $status
