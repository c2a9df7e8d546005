#!/bin/bash
# unseen.sh - what a message costs while nobody looks: instructions and first-level cache misses by callgrind, and speed by turns.
#
#   unseen.sh                    a node with the management API on, and with one message in 100 sampled, to one with neither
#   unseen.sh --old BUILD        also this build to an earlier one (both configured alike): the API and tracing are off
#   unseen.sh --rounds N         rounds by turns for the speed; default 21, 0: none
#   unseen.sh --skip-counting    the speed alone
#   unseen.sh WORKLOAD ...       of the workloads that are compared with the earlier build; default: those below
#
# TROUPE_BUILDDIR says which build. Instructions and misses are those of a run of 500,000 messages less one of 100,000, so start and end
# cancel out, on one thread, of the threads that handle messages: what the others do depends on time. The caches are those of valgrind's
# model, of fixed sizes. Bounds: 1 % more instructions and misses, with traces 3 %; a miss in 100 messages is none. Of the rounds' ratios
# new to old the median must be 0.95 and its 95 % interval (of 21 the 6th and the 16th) must reach 1. Speed is told where another build is compared.
set -u
bench=${TROUPE_BUILDDIR:-.}/tests/bench/bench
old=
rounds=21
counting=1
workloads=()
while [ $# -gt 0 ]; do
    case $1 in
    --old) old=${2:?--old needs a build}/tests/bench/bench; shift ;;
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --skip-counting) counting=0 ;;
    -*) echo "unseen.sh: $1 is not known; see the head of this file" >&2; exit 64 ;;
    *) workloads+=("$1") ;;
    esac
    shift
done
[ ${#workloads[@]} -gt 0 ] || workloads=(pingpong count ring fanin big)
[ -x "$bench" ] || { echo "no $bench: build first"; exit 77; }
[ -z "$old" ] || [ -x "$old" ] || { echo "unseen.sh: no $old: build it first" >&2; exit 69; }
command -v valgrind >/dev/null || { echo "needs valgrind"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# totals COMMAND...: "INSTRUCTIONS MISSES" of the threads named below, or of all
totals() {
    rm -f "$work"/out.*
    valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64 --separate-threads=yes \
        --callgrind-out-file="$work/out" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
    # The thread with the most is the worker.
    awk '/^events:/ { for (i = 2; i <= NF; i++) at[$i] = i }
        /^(totals|summary):/ { ir = $at["Ir"]; if (ir > most) { most = ir; misses = $at["I1mr"] + $at["D1mr"] + $at["D1mw"] } }
        END { printf "%.0f %.0f\n", most, misses }' "$work"/out-*
}
cost() { # cost COMMAND...: "INSTRUCTIONS MISSES" of a message
    local few many
    few=$(totals "$@" --threads 1 --count 100000) && many=$(totals "$@" --threads 1 --count 500000) || return 1
    awk -v few="$few" -v many="$many" -v count="$messages" 'BEGIN { split(few, f); split(many, m); printf "%.2f %.3f\n", (m[1] - f[1]) / count, (m[2] - f[2]) / count }'
}
judged() { # judged NAME CONDITION (awk)
    if awk "BEGIN { exit !($2) }"; then echo "PASS $1"; else echo "FAIL $1"; status=1; fi
}
compare() { # compare NAME PERCENT BEFORE AFTER: "INSTRUCTIONS MISSES" each
    local i m j n
    read -r i m <<<"$3"
    read -r j n <<<"$4"
    awk -v w="$1" -v i="$i" -v m="$m" -v j="$j" -v n="$n" 'BEGIN { printf "troupe unseen %s instructions %s -> %s (%+.2f %%), misses %s -> %s\n", w, i, j, (j / i - 1) * 100, m, n }'
    judged "$1_has_no_more_instructions" "$j <= $i * (1 + $2 / 100)"
    judged "$1_has_no_more_misses" "$n <= $m * (1 + $2 / 100) + 0.01"
}

rate() { "$1" "$2" --threads 1 --count "$3" 2>/dev/null | awk '$3 == "rate" { print $4 }'; }
speed() { # speed WORKLOAD COUNT: by turns, in either order
    local round a b
    : >"$work/ratios"
    for ((round = 0; round < rounds; round++)); do
        if ((round % 2)); then
            a=$(rate "$old" "$1" "$2") b=$(rate "$bench" "$1" "$2")
        else
            b=$(rate "$bench" "$1" "$2") a=$(rate "$old" "$1" "$2")
        fi
        echo "$a $b" | awk '{ print $2 / $1 }' >>"$work/ratios"
    done
    # Ranks of the interval: of a binomial of n and 1/2.
    read -r median low high < <(sort -g "$work/ratios" | awk '{ v[NR] = $1 } END { r = int((NR - 1.96 * sqrt(NR)) / 2 + 0.5); if (r < 1) r = 1
        printf "%.3f %.3f %.3f\n", v[int((NR + 1) / 2)], v[r], v[NR + 1 - r] }')
    echo "troupe unseen $1 speed $median ($low to $high) of $rounds rounds, load $(cut -d ' ' -f 1 /proc/loadavg)"
    judged "$1_is_as_fast" "$median >= 0.95 && $high >= 1"
}

if [ -n "$old" ]; then
    for workload in "${workloads[@]}"; do
        messages=400000
        case $workload in pingpong | bigpayload) messages=800000 ;; esac # a count is a round trip
        [ $counting = 0 ] || compare "$workload" 1 "$(cost "$old" "$workload")" "$(cost "$bench" "$workload")"
        case $workload in
        count) count=20000000 ;; fanin) count=10000000 ;; big) count=4000000 ;; *) count=5000000 ;;
        esac
        [ "$rounds" = 0 ] || speed "$workload" $count
    done
fi
if [ $counting = 1 ]; then
    messages=400000
    for shape in count; do
        none=$(cost "$bench" observe --only $shape)
        compare "${shape}_with_the_api_on" 1 "$none" "$(cost "$bench" observe --only $shape --api on)"
        [ $shape = pingpong ] || compare "${shape}_with_one_in_100_sampled" 3 "$none" "$(cost "$bench" observe --only $shape --one-in 100)"
    done
fi
exit $status
