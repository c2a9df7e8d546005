#!/bin/bash
# figures.sh - runs the benchmark programs once and checks what must hold on any machine: nothing is lost, and an
# idle actor fits in 192 bytes. Speed never fails a test: rates go to stdout and into the log, and, where
# erlang-base is installed, their ratio to Erlang in the same run, beside the goal.
set -u
srcdir=${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
bench=${TROUPE_BUILDDIR:-.}/tests/bench/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

check() { # check SENTENCE CONDITION (awk)
    if awk "BEGIN { exit !($2) }"; then
        echo "PASS $1"
    else
        echo "FAIL $1: $2"
        status=1
    fi
}

figure() { # figure FILE WORKLOAD PARAM
    awk -v w="$2" -v p="$3" '$1 == "troupe" && $2 == w && $3 == p { print $4; exit }' "$1"
}

run() { # run NAME WORKLOAD ARGUMENTS...: NAME is the file of figures
    local name=$1
    shift
    if ! timeout 120 "$bench" "$@" >"$work/$name" 2>"$work/$name.err"; then
        echo "FAIL bench_$name runs"
        cat "$work/$name.err"
        status=1
    fi
    cat "$work/$name"
}

[ -x "$bench" ] || { echo "no $bench: build first"; exit 77; }
run pingpong1 pingpong --threads 1
run pingpong2 pingpong --threads 2
run count1 count --threads 1
run count2 count --threads 2
run fanin2 fanin --threads 2
run create create --threads 2
run remote remote

for name in pingpong1 pingpong2 count1 count2 fanin2 remote; do
    check "${name}_loses_nothing" "$(grep -c ' lost 0 ' "$work/$name") >= 1 && $(grep ' lost ' "$work/$name" | grep -vc ' lost 0 ') == 0"
done
bytes=$(figure "$work/create" create bytes_per_live_actor)
check "an_idle_actor_takes_at_most_192_bytes" "${bytes:-999} <= 192"

if ! command -v erl >/dev/null || ! command -v erlc >/dev/null; then
    echo "SKIP beats_erlang: apt-get install erlang-base"
    exit $status
fi
erlc -o "$work" "$srcdir/tests/bench/erlang/troupe_peer.erl"

# The best of three, ours and Erlang's in turn: what else the machine does hits both.
ratio() { # ratio WORKLOAD THREADS COUNT TIMES
    local ours=0 peer=0 rate
    for _ in 1 2 3; do
        rate=$(timeout 60 "$bench" "$1" --threads "$2" --count "$3" | awk '$3 == "rate" { print $4 }')
        [ "${rate:-0}" -gt "$ours" ] && ours=$rate
        rate=$(timeout 60 erl +S "$2:$2" -noshell -pa "$work" -run troupe_peer main "$1" "$(($3 / 4))")
        [ "${rate:-0}" -gt "$peer" ] && peer=$rate
    done
    echo "$1 on $2 threads: troupe $ours, erlang $peer messages/s"
    awk "BEGIN { printf \"measure $1_$2t_to_erlang %.1f x (goal $4)\\n\", ($peer > 0 ? $ours / $peer : 0) }"
}
ratio pingpong 1 4000000 10
ratio pingpong 2 4000000 10
ratio count 1 8000000 4
ratio count 2 8000000 4
exit $status
