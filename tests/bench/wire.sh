#!/bin/bash
# wire.sh - the table "Two processes" of docs/performance.md: remoting on both drivers by turns with plain TCP
# and, where they are there, other libraries; prints the table's rows. Speed never fails it; a figure that is not there, or
# a message that is lost, does.
#
#   wire.sh [--rounds N] [--peers DIR] [--busy] [--few] [PART ...]
#
#   --rounds N    15; in each round everything runs once, one after the other, every second round in the opposite order, so
#                 that what else the machine does hits all. The figures are medians of the rounds, with quartiles; a ratio
#                 is the median of the rounds' ratios.
#   --peers DIR   programs to compare with (default: $TROUPE_PEERS): raw.c (plain TCP), zmqb.c (ZeroMQ: libzmq3-dev) and
#                 dist.erl with dist.sh (Erlang: erlang-base). Without raw.c `bench raw` is plain TCP.
#   --busy        runs although the load is above 1; such figures are not to be quoted
#   --few         a hundredth of the messages: it shows that the script works (tests/run)
#   PART          tells (TLS and the other libraries with them) trips beats memory instructions sockets; default: all
#
# Placement: everything on the first two processors of those allowed, but for "one core": both ends on the second of them.
# A node has one worker. TROUPE_BUILDDIR says which build: it should be one as users have it (./configure without options).
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${TROUPE_BUILDDIR:-.}" && pwd) || exit 1
bench=$build/tests/bench/bench
crowd=$build/tests/system/crowd
rounds=15
peers=${TROUPE_PEERS:-}
busy=
parts=()
tells=10000000 # of 100 B; of 1 KiB an eighth, of 64 KiB a 256th of it
trips=10000
beats=1000
peers_count=1000 # of the node whose associations are weighed
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --peers) peers=${2:?--peers needs a directory}; shift ;;
    --busy) busy=yes ;;
    --few) tells=$((tells / 100)) trips=$((trips / 100)) beats=$((beats / 100)) peers_count=$((peers_count / 100)) ;;
    tells | trips | beats | memory | instructions | sockets) parts+=("$1") ;;
    *) echo "wire.sh: $1 is not known; see the head of this file" >&2; exit 64 ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(tells trips beats memory instructions sockets)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }
[ -x "$bench" ] || { echo "wire.sh: no $bench: build it first (make tests/bench/bench tests/system/crowd)" >&2; exit 77; }
"$bench" 2>&1 | grep -q '^  remote ' || { echo "wire.sh: this build has no remoting" >&2; exit 77; }
load=$(cut -d' ' -f1 /proc/loadavg)
if [ -z "$busy" ] && awk "BEGIN { exit !($load > 1) }"; then
    echo "wire.sh: the load is $load, above 1: wait until the machine is quiet, or say --busy" >&2
    exit 75
fi
work=$(mktemp -d)
export ERL_EPMD_PORT=$((20000 + $$ % 10000))
epmd_end() { [ ! -e "$work/dist.beam" ] || epmd -port "$ERL_EPMD_PORT" -kill >/dev/null 2>&1; }
trap 'epmd_end; rm -rf "$work"' EXIT
TIMEFORMAT='%U %S'

# ---- what is there ------------------------------------------------------------------------------------------------------

allowed=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }' | head -n 2)
both=$(paste -sd, <<<"$allowed")
one=$(tail -n 1 <<<"$allowed")
raw="$bench raw"
if [ -f "$peers/raw.c" ] && gcc -O2 -o "$work/raw" "$peers/raw.c" 2>"$work/err"; then
    raw="$peers/raw.c"
else
    echo "missing: raw.c, \`bench raw\` is plain TCP (--peers)"
fi
if wants tells && ! { [ -f "$peers/zmqb.c" ] && gcc -O2 -o "$work/zmqb" "$peers/zmqb.c" -lzmq 2>"$work/err"; }; then
    echo "missing: ZeroMQ (--peers, libzmq3-dev)"
fi
if wants tells && ! { [ -f "$peers/dist.erl" ] && command -v erl >/dev/null && erlc -o "$work" "$peers/dist.erl"; }; then
    echo "missing: Erlang (--peers, erlang-base)"
fi
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors, Linux $(uname -r | cut -d- -f1), load $load"
echo "placement: processors $both, \"one core\" processor $one; one worker a node; $rounds rounds; plain TCP is $(basename "$raw")"

# ---- measuring: lines of "ROUND WHO PARAM VALUE" -------------------------------------------------------------------------

round=0
fail() {
    echo "FAIL $*: $(tail -n 1 "$work/err")"
    status=1
}
status=0
note() { # WHO PARAM VALUE
    [ -z "$3" ] || echo "$round $1 $2 $3" >>"$work/data"
}
# timed WHO PARAM COUNT COMMAND...: the output is in $work/out; PARAM is the processor time of all its processes, ns of COUNT
timed() {
    local who=$1 param=$2 count=$3 used
    shift 3
    used=$({ time timeout 600 "$@" >"$work/out" 2>"$work/err" </dev/null || echo "$who" >>"$work/failed"; } 2>&1)
    [ ! -s "$work/failed" ] || fail "$*"
    rm -f "$work/failed"
    [ "$param" = - ] || note "$who" "$param" "$(awk -v n="$count" '{ print ($1 + $2) * 1e9 / n }' <<<"$used")"
}
from() { awk -v p="$1" '$3 == p { print $4; exit }' "$work/out"; } # PARAM of `bench`
# ours DRIVER PROCESSORS [OPTION...]: a run of `bench`
ours() {
    local driver=$1 where=$2 cpu=- count=1
    shift 2
    case "$*" in *"--bytes 100 "*tcp) cpu=cpu_100 count=$tells ;; esac
    timed "$driver" $cpu $count env TROUPE_REMOTE_DRIVER="$driver" taskset -c "$where" "$bench" "$@" --threads 1
    [ "$(from lost)" = 0 ] || { echo "FAIL $driver $*: messages are lost"; status=1; }
}
run_tells() { # DRIVER
    local size count
    for size in 100 1024 65536; do
        count=$tells
        [ $size = 100 ] || count=$((size == 1024 ? tells / 8 : tells / 256))
        ours "$1" "$both" remote --bytes $size --count $count --transport tcp
        note "$1" rate_$size "$(from rate)"
    done
    ours "$1" "$both" remote --bytes 100 --count "$tells" --transport tls
    note "$1" tls_rate_100 "$(from tls_rate)"
}
run_trips() {
    local where
    for where in both one; do
        ours "$1" "${!where}" remote --trips $trips --transport tcp
        note "$1" ${where}_p50 "$(from rtt_p50)"
        note "$1" ${where}_p99 "$(from rtt_p99)"
    done
}
run_beats() {
    ours "$1" "$both" hb_under_bulk --count $beats
    note "$1" beat_p50 "$(from rtt_p50)"
    note "$1" beat_p99 "$(from rtt_p99)"
}
raw_tells() {
    local size count cpu
    for size in 100 1024 65536; do
        count=$((size == 100 ? tells : size == 1024 ? tells / 8 : tells / 256)) cpu=-
        [ $size != 100 ] || cpu=cpu_100
        if [ -x "$work/raw" ]; then
            timed raw $cpu "$count" taskset -c "$both" "$work/raw" tput $size "$count" copy
            note raw rate_$size "$(awk '{ print $4 }' "$work/out")"
        else
            timed raw $cpu "$count" taskset -c "$both" "$bench" raw --bytes $size --count "$count"
            note raw rate_$size "$(from rate)"
        fi
    done
}
raw_trips() {
    local where
    for where in both one; do
        if [ -x "$work/raw" ]; then
            timed raw - 1 taskset -c "${!where}" "$work/raw" rtt 100 $trips
            note raw ${where}_p50 "$(awk '/p50/ { print $4 }' "$work/out")"
            note raw ${where}_p99 "$(awk '/p99/ { print $4 }' "$work/out")"
        else
            timed raw - 1 taskset -c "${!where}" "$bench" raw --trips $trips
            note raw ${where}_p50 "$(from rtt_p50)"
            note raw ${where}_p99 "$(from rtt_p99)"
        fi
    done
}
run_zeromq() {
    [ -x "$work/zmqb" ] || return 0
    timed zeromq - 1 taskset -c "$both" "$work/zmqb" tput 100 $((tells / 5))
    note zeromq rate_100 "$(awk '{ print $4 }' "$work/out")"
}
run_erlang() {
    [ -e "$work/dist.beam" ] || return 0
    timed erlang - 1 taskset -c "$both" sh "$peers/dist.sh" "$work"
    note erlang rate_100 "$(awk '$2 == "tput" && $3 == "100B" { print $4 }' "$work/out")"
}
# Once a driver: a node that 1,000 others have called, resident memory for each.
run_memory() {
    [ -x "$crowd" ] || { echo "missing: $crowd: no memory of an association"; return 0; }
    timed "$1" - 1 env TROUPE_REMOTE_DRIVER="$1" taskset -c "$both" "$crowd" $peers_count $((peers_count / 2)) 3
    note "$1" association_bytes "$(awk '$1 == "bytes" { print $2 }' "$work/out")"
}
run_instructions() { # three times: how messages meet in a frame is a matter of time
    command -v valgrind >/dev/null || { echo "missing: valgrind: no instructions"; return 0; }
    timed "$1" - 1 env TROUPE_REMOTE_DRIVER="$1" TROUPE_BUILDDIR="$build" "$here/instructions.sh" remote
    note "$1" instructions "$(from instructions)"
}
# The workload runs its rounds itself, each beside bare programs, on processors of its own choice: quartiles are what it says.
run_sockets() {
    local param q3
    timed sockets - 1 "$bench" sockets --rounds "$rounds" --idle $((peers_count * 10))
    for param in echo_cpu_ratio in_ratio out_ratio idle_bytes idle_cpu; do
        round=1
        for q3 in _q1 _q1 '' _q3 _q3; do
            note sockets $param "$(from $param$q3)"
            round=$((round + 1))
        done
    done
}

steps=()
for part in tells trips beats; do
    wants $part || continue
    steps+=("run_$part nng" "run_$part poll")
    case $part in
    tells) steps+=(raw_tells run_zeromq run_erlang) ;;
    trips) steps+=(raw_trips) ;;
    esac
done
: >"$work/data"
began=$SECONDS
busy_time() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $9 }' /proc/stat; }
read -r busy_before stolen_before < <(busy_time)
times >"$work/times"
for ((round = 1; round <= rounds; round++)); do
    for i in "${!steps[@]}"; do
        [ $((round % 2)) = 1 ] || i=$((${#steps[@]} - 1 - i))
        ${steps[i]}
    done
done
times >"$work/times.end"
read -r busy_after stolen_after < <(busy_time)
own=$(awk 'FNR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); t = (u[1] + s[1]) * 60 + u[2] + s[2]; print t }' "$work/times" "$work/times.end" |
    awk 'NR == 1 { a = $1 } END { print $1 - a }')
others=$(awk -v b=$((busy_after - busy_before)) -v hz="$(getconf CLK_TCK)" -v own="$own" -v s=$((SECONDS - began)) \
    'BEGIN { o = b / hz - own; printf "%.0f %%", s ? (o > 0 ? o : 0) * 100 / s : 0 }')
lasted=$((SECONDS - began))
! wants sockets || run_sockets
for driver in nng poll; do
    round=0
    ! wants memory || run_memory $driver
    ! wants instructions || for round in 1 2 3; do run_instructions $driver; done
done
echo "others: other processes took $others of a processor during the rounds, the host stole $(((stolen_after - stolen_before) * 10)) ms; the rounds took $lasted s, all $SECONDS s"

# ---- the tables ----------------------------------------------------------------------------------------------------------

# row; param; whom it is compared with; more or less is better; goal; least; divisor and digits of the figure
rows() {
    cat <<'ROWS'
tell 100 B, one sender, to plain TCP;rate_100;raw;more;0.7;0.45;1;2
the same to ZeroMQ;rate_100;zeromq;more;5.5;3.5;1;2
the same to Erlang;rate_100;erlang;more;50;30;1;1
processor time a message of 100 B, both ends, to plain TCP;cpu_100;raw;less;1.9;2.9;1;2
instructions a message of 100 B, both ends;instructions;-;less;450;700;1;0
tell 1 KiB, to plain TCP;rate_1024;raw;more;0.9;0.7;1;2
tell 64 KiB, to plain TCP;rate_65536;raw;more;1.0;0.8;1;2
TLS 100 B, to plain TCP without TLS;tls_rate_100;raw:rate_100;more;0.4;0.3;1;2
round trip p50, one core, to plain TCP;one_p50;raw;less;1.5;2;1;2
round trip p50, both cores, to plain TCP;both_p50;raw;less;0.8;1.0;1;2
round trip p99, both cores, to plain TCP;both_p99;raw;less;0.7;1.2;1;2
heartbeat round trip under bulk p50, us;beat_p50;-;less;60;100;1;0
heartbeat round trip under bulk p99, us;beat_p99;-;less;500;1500;1;0
1,000 associations, KiB each;association_bytes;-;less;12;19;1024;1
ROWS
}
socket_rows() {
    cat <<'ROWS'
TCP echo, 64 B, 100 connections: server's processor time, to a bare epoll echo;echo_cpu_ratio;-;less;1.15;1.5;1;2
TCP bulk to actors, to a bare epoll program;in_ratio;-;more;0.95;0.85;1;2
TCP bulk from actors, to a bare epoll program;out_ratio;-;more;0.95;0.85;1;2
10,000 idle TCP connections, KiB each;idle_bytes;-;less;1;4;1024;1
10,000 idle TCP connections, processor time, %;idle_cpu;-;less;0;0.1;1;2
ROWS
}
# awk functions: quartiles of values by name, as text
stats='
    function quantile(name, q,   n, i, j, t, s) {
        n = count[name]
        for (i = 1; i <= n; i++) s[i] = values[name, i]
        for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j - 1] > s[j]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
        i = int((n - 1) * q + 0.5) + 1
        return s[i]
    }
    function shown(name, d, digits,   f, t) {
        if (!count[name]) return "-"
        f = "%." digits "f"
        t = sprintf(f, quantile(name, 0.5) / d)
        return count[name] > 1 ? t sprintf(" (" f " to " f ")", quantile(name, 0.25) / d, quantile(name, 0.75) / d) : t
    }
    function add(name, v) { values[name, ++count[name]] = v }'
table() { # table ROWS WHO...: rows of the page's table: met, *goal missed*, **least missed**
    local rows=$1
    shift
    awk -F'[; ]' -v who="$*" "$stats"'
        FNR == NR { data[$1, $2, $3] = $4; if ($1 > last) last = $1; next }
        { n = split($0, row, ";"); names = split(who, w, " ")
          line = "| " row[1] " | " row[5] " (" row[6] ") |"
          for (i = 1; i <= names; i++) {
              name = w[i] "." FNR
              to = row[3]; param = row[2]
              if (split(to, other, ":") == 2) { to = other[1]; param = other[2] }
              for (r = 0; r <= last; r++) {
                  if (!((r, w[i], row[2]) in data)) continue
                  if (to == "-") add(name, data[r, w[i], row[2]])
                  else if ((r, to, param) in data && data[r, to, param] > 0) add(name, data[r, w[i], row[2]] / data[r, to, param])
              }
              text = shown(name, row[7], row[8])
              if (count[name]) {
                  sign = row[4] == "more" ? 1 : -1
                  m = sprintf("%." row[8] "f", quantile(name, 0.5) / row[7]) + 0
                  mark = sign * m < sign * row[6] ? "**" : sign * m < sign * row[5] ? "*" : ""
                  text = mark text mark
              }
              line = line " " text " |"
          }
          print line }' "$work/data" <($rows)
}
absolute() { # absolute NAME PARAM DIVISOR DIGITS: a row of medians
    awk -v name="$1" -v param="$2" -v d="$3" -v digits="$4" "$stats"'
        $3 == param { add($2, $4) }
        END { printf "| %s |", name; split("nng poll raw zeromq erlang", w, " ")
              for (i = 1; i <= 5; i++) printf " %s |", count[w[i]] ? sprintf("%." digits "f", quantile(w[i], 0.5) / d) : "-"
              print "" }' "$work/data"
}

echo
echo "| | goal (least) | nng | poll |"
echo "|---|---|---|---|"
table rows nng poll
echo
echo "| sockets | goal (least) | |"
echo "|---|---|---|"
table socket_rows sockets
echo
echo "| medians | nng | poll | plain TCP | ZeroMQ | Erlang |"
echo "|---|---|---|---|---|---|"
absolute "100 B, M tells/s" rate_100 1e6 2
absolute "100 B, processor time of both ends, ns" cpu_100 1 0
absolute "1 KiB, M tells/s" rate_1024 1e6 2
absolute "64 KiB, k tells/s" rate_65536 1e3 1
absolute "TLS, 100 B, M tells/s" tls_rate_100 1e6 2
absolute "round trip p50, both cores, us" both_p50 1 1
absolute "round trip p99, both cores, us" both_p99 1 1
absolute "round trip p50, one core, us" one_p50 1 1
absolute "round trip p99, one core, us" one_p99 1 1

for param in rate_100 cpu_100 rate_1024 rate_65536 tls_rate_100 both_p50 both_p99 one_p50 one_p99 beat_p50 beat_p99; do
    case $param in *rate* | cpu*) wants tells ;; beat*) wants beats ;; *) wants trips ;; esac || continue
    for driver in nng poll; do
        grep -q " $driver $param [0-9.]*[1-9]" "$work/data" && echo "PASS wire_${param}_on_$driver" ||
            { echo "FAIL wire_${param}_on_$driver: no figure"; status=1; }
    done
done
exit $status
