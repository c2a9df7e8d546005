# lib.sh - what the system and multi-node tests share; source it first.
#
#   test_begin            finds the source and build trees, makes $work (removed at the end), sets the trap
#   check NAME COMMAND... PASS when the command succeeds
#   expect NAME CODE COMMAND...   PASS when it exits with CODE; its output is in $work/out and $work/err
#   has NAME TEXT [FILE]  PASS when FILE (default $work/out) contains TEXT. A file that another process writes, which is any but
#                         $work/out and $work/err, has a minute for it;  lacks NAME TEXT [FILE] looks once: call it when the time has come
#   wait_until SECONDS COMMAND...  polls; returns 1 when the time is over (three times that under a sanitizer)
#   elapse SECONDS WHY    lets a time pass that is the condition itself: how long a fault lasts, or over how long a figure is
#                         taken. What shall happen is waited for instead; tests/tidy refuses other sleeps. elapse_ms MS WHY
#   background COMMAND... starts it, pid in $started, killed at the end
#   await PID SECONDS     waits for the end of what `background` started, its exit code in $code; 1 when it lives on
#   ended NAME PID CODE   PASS when it ends within a minute, with that code
#   pauses_begin          watches for how long the machine lets a process wait; `pauses MS` gives those of the last MS
#                         milliseconds, their sum in $pause_sum and the longest in $pause_most
#   says NAME CODE TEXT COMMAND...  as expect, and TEXT on stderr; tried again until it says so
#   measure NAME VALUE UNIT
#   judge NAME VALUE BOUND UNIT    measure, and PASS when VALUE is at most BOUND; under a sanitizer, which costs
#                         memory and time, the figure is told and not judged
#   journal_backup FILE   writes a small backup of a journal: events with tags, snapshots, an id without events, epochs
#   skip WHY              exit 77
#   test_end              exit 0 or 1
#
# $driver is that of all connections (TROUPE_TEST_DRIVER: nng or poll), empty for the default.
# $sanitizer is "asan" or "tsan" when the build is one (TROUPE_SANITIZER, which tests/run sets), else empty. Then
# every process writes its findings to $work, whatever becomes of its output, and one of them fails the test.
# shellcheck shell=bash

lib_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=deploy/hosts.sh
. "$lib_dir/../../deploy/hosts.sh"
failures=0
pids=()
cleanups=()

test_begin() {
    src=${TROUPE_SRCDIR:-$(cd "$lib_dir/../.." && pwd)}
    build=${TROUPE_BUILDDIR:-$src}
    build=$(cd "$build" && pwd)
    # Nodes refuse environment variables that they do not know, and must not see the caller's.
    local name
    sanitizer=${TROUPE_SANITIZER:-} driver=${TROUPE_TEST_DRIVER:-}
    for name in $(compgen -e TROUPE_); do unset "$name"; done
    [ -z "$driver" ] || export TROUPE_REMOTE_DRIVER=$driver
    # How long a client waits for a reply is a test's business only where it says --timeout. (`events` ends then: those
    # that shall go on are started without.)
    export TROUPE_TIMEOUT=60s
    troupe=$build/troupe
    [ -x "$troupe" ] || { echo "FAIL build: no program at $troupe"; exit 1; }
    [ ${#TMPDIR} -le 70 ] || unset TMPDIR # a socket's path has at most 107 bytes
    work=$(mktemp -d "${TMPDIR:-/tmp}/troupe-test.XXXXXX") || { echo "FAIL build: no temporary directory"; exit 1; }
    # Nodes on loopback share a cookie of their user: here the test's own, never the caller's.
    export STATE_DIRECTORY=$work/state
    mkdir "$STATE_DIRECTORY"
    if [ -n "$sanitizer" ]; then
        for name in ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
            export "$name=${!name:+${!name}:}log_path=$work/finding"
        done
    fi
    cleanups+=(hosts_down)
    trap test_cleanup EXIT
    trap 'trap "" INT TERM; exit 130' INT
    trap 'trap "" INT TERM; exit 143' TERM
}

test_cleanup() {
    local code=$? pid index
    trap - EXIT
    trap '' INT TERM # a second signal must not end the clean-up
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
    for ((index = ${#cleanups[@]} - 1; index >= 0; index--)); do eval "${cleanups[index]}"; done
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || logs # of whatever ended it, a deadline too
    if [ "$code" -ne 0 ] && [ -n "${KEEP:-}" ]; then
        echo "kept: $work" >&2
    else
        rm -rf "$work"
    fi
    exit "$code"
}

test_end() {
    local finding # whatever a sanitizer had to say fails the test
    finding=$(grep -D skip -IlE 'Sanitizer: |runtime error: ' "$work"/* 2>/dev/null | head -n 1)
    if [ -n "$finding" ]; then
        fail no_sanitizer_finding "$finding"
        grep -A 40 -m 1 -E 'Sanitizer: |runtime error: ' "$finding" >&2
    fi
    [ "$failures" -eq 0 ] || { echo "$failures failed" >&2; exit 1; }
    exit 0
}

# What the nodes had to say, as far as it is still there.
logs() {
    local file
    for file in "$work"/*.log; do
        [ ! -s "$file" ] || { echo "--- ${file##*/}"; tail -n "${1:-20}" "$file"; } >&2
    done
}

pass() { echo "PASS $1"; }
fail() {
    echo "FAIL $1${2:+ ($2)}"
    failures=$((failures + 1))
}
skip() {
    echo "SKIP $1"
    exit 77
}
measure() { echo "measure $1 $2 $3"; }
judge() {
    measure "$1" "$2" "$4"
    [ -z "$sanitizer" ] || return 0
    if [ "$2" -le "$3" ]; then pass "$1"; else fail "$1" "$2 $4, more than $3"; fi
}

check() {
    local name=$1
    shift
    if "$@" >"$work/out" 2>"$work/err"; then pass "$name"; else fail "$name" "$* exited $?: $(tail -n 3 "$work/err" | tr '\n' ' ')"; fi
}

expect() {
    local name=$1 want=$2 got=0
    shift 2
    "$@" >"$work/out" 2>"$work/err" || got=$?
    if [ "$got" -eq "$want" ]; then
        pass "$name"
    else
        fail "$name" "exit $got, want $want; $* said: $(cat "$work/out" "$work/err" | tail -n 4 | tr '\n' ' ')"
    fi
}

says() {
    local name=$1 want=$2 text=$3
    shift 3
    said_so() { "$@" >"$work/out" 2>"$work/err"; [ $? -eq "$want" ] && grep -qF -- "$text" "$work/err"; }
    if wait_until 30 said_so "$@"; then
        pass "$name"
    else
        fail "$name" "want exit $want and '$text'; $* said: $(cat "$work/out" "$work/err" | tail -n 4 | tr '\n' ' ')"
    fi
}

has() {
    local look=(grep -qF -- "$2" "${3:-$work/out}")
    case ${3:-$work/out} in
    "$work/out" | "$work/err") ;;
    *) look=(wait_until 60 "${look[@]}") ;;
    esac
    if "${look[@]}"; then pass "$1"; else fail "$1" "no '$2' in: $(head -c 400 "${3:-$work/out}" | tr '\n' '|')"; fi
}
lacks() {
    if grep -qF -- "$2" "${3:-$work/out}"; then fail "$1" "'$2' in: $(head -c 400 "${3:-$work/out}" | tr '\n' '|')"; else pass "$1"; fi
}
is() {
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got '$2', want '$3'"; fi
}
# No escape codes and valid JSON.
is_json() {
    if "$build/tests/system/ctl_fake" --check <"${2:-$work/out}"; then pass "$1"; else fail "$1" "no JSON: $(head -c 200 "${2:-$work/out}")"; fi
}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
now_ms_into() { printf -v "$1" %d $((${EPOCHREALTIME/./} / 1000)); } # VARIABLE: without a process
uptime_ms_into() { # VARIABLE: as now_ms_into, but no step of the wall clock ends a wait
    local up
    read -r up _ </proc/uptime
    printf -v "$1" %d $((10#${up/./} * 10))
}
elapse() { # a read without a writer needs no process
    [ -n "${never-}" ] || exec {never}<> <(:)
    read -rt "$1" -u "$never" || :
}
elapse_ms() {
    local seconds
    [ "$1" -gt 0 ] || return 0
    printf -v seconds %d.%03d $(($1 / 1000)) $(($1 % 1000))
    elapse "$seconds" "$2"
}

# A condition is often there at once; each look at one that is not costs processes, so they become rarer.
wait_until() {
    local pause=${wait_step:-50} deadline now
    uptime_ms_into now
    deadline=$((now + $1 * 1000 * (${#sanitizer} ? 3 : 1)))
    shift
    until "$@" >/dev/null 2>&1; do
        uptime_ms_into now
        [ "$now" -lt "$deadline" ] || return 1
        elapse_ms "$pause" "the next look"
        [ "$pause" -ge 200 ] || pause=$((pause + 15))
    done
}

# freeze PID: SIGSTOP, and wait until it has taken effect. One thread has to take the signal from the queue
# before the others stop; on a busy machine they go on answering for milliseconds.
is_frozen() { ! grep -h '^State:' "/proc/$1/task/"*/status | grep -qv 'T (stopped)'; }
freeze() {
    kill -STOP "$1"
    wait_until 10 is_frozen "$1"
}

background() {
    "$@" &
    started=$!
    pids+=("$started")
}

# What a test can see of the machine's own pauses: a process that asks for 20 ms at a time, and what it had to wait
# beyond that, when it was much. Nodes that got no processor for seconds are rightly suspected, or late.
pauses_begin() {
    : >"$work/pauses"
    (
        last=$(now_ms)
        while :; do
            elapse 0.02 "the next look"
            now_ms_into now
            [ $((now - last)) -lt 120 ] || echo "$now $((now - last - 20))" >>"$work/pauses"
            last=$now
        done
    ) &
    pids+=("$!")
}
pauses() { # MS
    read -r pause_sum pause_most < <(awk -v from=$(($(now_ms) - $1)) '$1 >= from { sum += $2; if ($2 > most) most = $2 }
        END { print sum + 0, most + 0 }' "$work/pauses")
}

# A pid that was stopped on purpose: collect it, and do not kill it again at the end.
forget() {
    local pid kept=()
    for pid in "${pids[@]}"; do [ "$pid" = "$1" ] || kept+=("$pid"); done
    pids=("${kept[@]}")
}

# A zombie has ended: the shell may collect it only in `wait`.
lives() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    stat=${stat##*) }
    [ "${stat%% *}" != Z ]
}

await() {
    local now deadline
    now_ms_into now
    deadline=$((now + $2 * 1000 * (${#sanitizer} ? 3 : 1)))
    while lives "$1"; do
        now_ms_into now
        [ "$now" -lt "$deadline" ] || return 1
        elapse 0.02 "the next look"
    done
    code=0
    wait "$1" || code=$?
    forget "$1"
}
ended() {
    if await "$2" 60; then is "$1" "$code" "$3"; else fail "$1" "pid $2 still runs"; fi
}

# Several values on stdin, one a line: the middle one.
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

journal_backup() {
    cat >"$1" <<'BACKUP'
{"journal":"troupe","version":1}
{"event":{"id":"order-7","number":1,"offset":1,"timeMs":1700000000000,"type":"placed","version":1,"tags":["order"],"data":"AAEC"}}
{"event":{"id":"order-8","number":5,"offset":2,"timeMs":1700000000001,"type":"placed","version":2,"data":""}}
{"event":{"id":"order-7","number":2,"offset":3,"timeMs":1700000000002,"type":"paid","version":1,"tags":["order","paid"],"data":"/w=="}}
{"event":{"id":"order-8","number":6,"offset":4,"timeMs":1700000000003,"type":"paid","version":2,"tags":["paid"],"data":"dGVu"}}
{"id":{"id":"forgotten","highest":12}}
{"id":{"id":"order-7","highest":2}}
{"snapshot":{"id":"order-7","number":2,"offset":0,"timeMs":1700000000004,"type":"state","version":1,"data":"c3RhdGU="}}
{"snapshot":{"id":"order-7","number":1,"offset":0,"timeMs":1700000000002,"type":"state","version":1,"data":"c3Q="}}
{"id":{"id":"order-8","highest":6}}
{"snapshot":{"id":"order-8","number":4,"offset":0,"timeMs":1699999999999,"type":"state","version":1,"data":""}}
{"scope":{"scope":"order-7","writer":"troupe://shop@a:2552/user/7","epoch":41}}
{"scope":{"scope":"sharding/order/3","writer":"troupe://shop@b:2552/system/sharding","epoch":2}}
{"end":{"events":4,"snapshots":3,"ids":3,"scopes":2}}
BACKUP
}
