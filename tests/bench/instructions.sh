#!/bin/bash
# instructions.sh - what a message costs in instructions, on one thread: docs/performance.md. A run of 500,000 less one of
# 100,000, so that start and end cancel out; by valgrind's callgrind, so that what else the machine does is not in it.
#
#   instructions.sh [--functions] [WORKLOAD ...]
#
# --functions adds those that have a third of an instruction or more. TROUPE_BUILDDIR says which build.
# `remote` is a tell of 100 B to another process, both ends together, without the loops that wait: how long they turn is a
# matter of time. TROUPE_REMOTE_DRIVER chooses the driver. `entity_ref` and `entity_name` are tells of 100 B to 10,000 actors of
# another process in turn, entities there, by ref and by name.
set -eu
bench=${TROUPE_BUILDDIR:-.}/tests/bench/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
least=1000000
workloads=()
for word in "$@"; do
    case $word in
    --functions) least=0.33 ;;
    -*) echo "instructions.sh: $word is not known; see the head of this file" >&2; exit 64 ;;
    *) workloads+=("$word") ;;
    esac
done
command -v valgrind >/dev/null || { echo "instructions.sh: needs valgrind" >&2; exit 69; }
[ ${#workloads[@]} -gt 0 ] || workloads=(pingpong count ring fanin big bigpayload text_fixed text_any)

counted() { # counted WORKLOAD COUNT: "INSTRUCTIONS FUNCTION" of each, in this many messages
    local workload=$1 options=() waits='^$'
    case $1 in
    remote) options=(--transport tcp --bytes 100) ;;
    entity_ref | entity_name)
        workload=entity
        options=(--part remote --way "${1#entity_}")
        ;;
    esac
    case $1 in
    remote | entity_*) waits='spin|sched_yield|trpi_cpu_relax|bench_now|clock_gettime' ;;
    esac
    rm -f "$work"/out.*
    valgrind --tool=callgrind --trace-children=yes --callgrind-out-file="$work/out.%p" "$bench" "$workload" --threads 1 --count "$2" \
        "${options[@]}" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
    for out in "$work"/out.*; do
        callgrind_annotate --threshold=100 --auto=no "$out"
    done | awk -v waits="$waits" '$1 ~ /^[0-9,]+$/ && /:/ { n = $1; gsub(/,/, "", n); sub(/^[^:]*:/, ""); if ($1 !~ waits) print n, $1 }'
}

for workload in "${workloads[@]}"; do
    counted "$workload" 100000 >"$work/few"
    counted "$workload" 500000 >"$work/many"
    messages=400000 # a count of these two is a round trip
    case $workload in pingpong | bigpayload) messages=800000 ;; esac
    awk -v w="$workload" -v messages="$messages" -v least="$least" '
        FNR == NR { cost[$2] -= $1; all -= $1; next }
        { cost[$2] += $1; all += $1 }
        END {
            printf "troupe %s instructions %.1f a message\n", w, all / messages
            for (f in cost) {
                if (cost[f] / messages >= least) {
                    printf "%9.1f %s\n", cost[f] / messages, f | "sort -rn"
                }
            }
        }' "$work/few" "$work/many"
done
