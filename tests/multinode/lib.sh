# lib.sh - nodes on several hosts (deploy/hosts.sh); source it first. Adds to tests/system/lib.sh:
#
#   hosts_begin N [namespaces]   test_begin and hosts; with the word, skips where there are none
#   hosts_crowd HOSTS N          N places for nodes on so few hosts: place I is on host (I - 1) mod HOSTS + 1
#   start_node I [OPTION]...     `troupe node` on host I, the seed being host 1 (or $seed_host); log in $work/node-I.log
#   ctl I ARGUMENT...            `troupe ARGUMENT...` on host I
#   kill_node I [SIGNAL]         default KILL; returns when it is gone
#   events_begin I [OPTION]...   `troupe events -o jsonl` on host I into $work/events; returns when it is subscribed
#   event TEXT                   waits until such an event is there
#   addr I                       troupe.tcp://demo@HOST:PORT
#   unsuspected NAME COUNT MS    PASS when COUNT, of suspicions of nodes that live, is 0
#   all_up N, sees I TEXT ...    conditions for wait_until
#   beat N NODE...               waits until each of them has had N heartbeats of every member that it monitors, so that its
#                                failure detector knows the rhythm; beat_on N NODE...  N more than it has had of each
#   host_deafen I, host_listen I host I receives nothing (and can send); receives again (namespaces only)
#   relay_begin I [OPTION]...    host I hangs at the switch by a relay of packets (relay.c); skips where there are no TAP devices
#   relay_say I COMMAND          tells it a line; returns when it has obeyed, with its answer in $relay_said
#   together CASE...             runs these functions at once, each with a cluster of its own and a $work of its own
# shellcheck shell=bash

multinode_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/system/lib.sh
. "$multinode_dir/../system/lib.sh"
node_pid=() relay_in=()

hosts_begin() {
    test_begin
    pauses_begin
    hosts_up "$1" "$work"
    echo "hosts: $hosts_mode ($hosts_why)"
    if [ "${2:-}" = namespaces ] && [ "$hosts_mode" != namespaces ]; then
        skip "needs network namespaces: $hosts_why"
    fi
}

# A namespace for each of many nodes would fill the kernel's table of neighbours, which all namespaces share.
hosts_crowd() { # HOSTS N [namespaces]
    local index on
    hosts_begin "$1" "${3:-}"
    for ((index = $1 + 1; index <= $2; index++)); do
        on=$(((index - 1) % $1 + 1))
        host_address[index]=${host_address[on]}
        if [ "$hosts_mode" = namespaces ]; then
            host_holder[index]=${host_holder[on]}
            host_port[index]=$((host_port[on] + index))
            host_socket[index]=/run/troupe/demo@${host_port[index]}.sock
        else
            hosts_port
            host_port[index]=$hosts_free
            host_socket[index]=$hosts_dir/demo@$hosts_free.sock
        fi
    done
}

addr() { echo "troupe.tcp://demo@${host_address[$1]}:${host_port[$1]}"; }

start_node() {
    local index=$1
    shift
    host_start "$index" "$work/node-$index.log" "$troupe" node --system demo --host "${host_address[index]}" \
        --port "${host_port[index]}" --socket "${host_socket[index]}" --seed "$(addr "${seed_host:-1}")" "$@"
    node_pid[index]=$host_started
    pids+=("$host_started")
}

ctl() {
    local index=$1
    shift
    host_run "$index" "$troupe" "$@"
}

kill_node() {
    kill "-${2:-KILL}" "${node_pid[$1]}"
    await "${node_pid[$1]}" 60 || fail "node $1 ends" "pid ${node_pid[$1]} still runs"
}

# One way: what the switch would send to the host is dropped. Needs no kernel module.
host_deafen() { "${hosts_enter[@]}" --target "$hosts_switch" --net tc qdisc replace dev "port$1" root pfifo limit 0; }
host_listen() { "${hosts_enter[@]}" --target "$hosts_switch" --net tc qdisc del dev "port$1" root; }

# The relay's TAP devices take the place of the veth pair of host I, under the same names.
relay_begin() { # I [OPTION]...
    local index=$1 switch=("${hosts_enter[@]}" --target "$hosts_switch" --net)
    shift
    [ -c /dev/net/tun ] && [ -r /dev/net/tun ] && [ -w /dev/net/tun ] || skip "needs TAP devices: /dev/net/tun cannot be opened"
    "${switch[@]}" ip link del "port$index"
    mkfifo "$work/relay-$index"
    exec {relay_in[index]}<>"$work/relay-$index"
    rm "$work/relay-$index"
    "${switch[@]}" setpriv --pdeathsig KILL "$build/tests/multinode/relay" "$@" "$hosts_switch" "port$index" "${host_holder[index]}" eth0 \
        <&"${relay_in[index]}" >"$work/relay-$index.out" 2>&1 &
    pids+=("$!")
    wait_until 60 grep -qx ready "$work/relay-$index.out" || fail "relay $index" "$(cat "$work/relay-$index.out")"
    "${switch[@]}" ip link set "port$index" master br0 up
    "${hosts_enter[@]}" --target "${host_holder[index]}" --net ip address add "${host_address[index]}/24" dev eth0
    "${hosts_enter[@]}" --target "${host_holder[index]}" --net ip link set eth0 up
}
relay_answered() { [ "$(wc -l <"$work/relay-$1.out")" -gt "$2" ]; }
relay_say() { # I COMMAND
    local lines
    lines=$(wc -l <"$work/relay-$1.out")
    echo "$2" >&"${relay_in[$1]}"
    wait_until 60 relay_answered "$1" "$lines" || fail "relay $1 obeys" "$2: $(tail -n 1 "$work/relay-$1.out")"
    relay_said=$(tail -n 1 "$work/relay-$1.out")
}

# Each case in a shell of its own: its processes end with it, its findings and logs are shown when all have ended.
together() {
    local name jobs=()
    for name; do
        mkdir "$work/$name"
        ln -s ../pauses "$work/$name/pauses"
        (
            work=$work/$name
            trap 'exit 1' TERM
            "$name"
            [ "$failures" -eq 0 ] || logs
        ) >"$work/$name.out" 2>"$work/$name.err" &
        jobs+=("$!")
        pids+=("$!")
    done
    for name; do
        wait "${jobs[0]}" || fail "${name}_comes_to_its_end"
        forget "${jobs[0]}"
        jobs=("${jobs[@]:1}")
        cat "$work/$name.out"
        if grep -q '^FAIL' "$work/$name.out"; then
            failures=$((failures + $(grep -c '^FAIL' "$work/$name.out")))
            cat "$work/$name.err" >&2
        fi
    done
}

# A node that gets no processor for longer than the others wait is rightly suspected. So where COUNT is not 0, and the machine stood
# still for LEAST milliseconds (500) within the last MS, it is told and not judged; as under a sanitizer, where whole
# processes stand still that the watch of the machine does not see.
unsuspected() { # NAME COUNT MS [LEAST]
    pauses "$3"
    if [ "$2" = 0 ]; then
        pass "$1"
    elif [ -n "$sanitizer" ] || [ "$pause_most" -ge "${4:-500}" ]; then
        measure "$1" "$2" suspicions
        measure longest_pause_of_the_machine "$pause_most" ms
    else
        fail "$1" "$2 suspicions; longest pause of the machine $pause_most ms"
    fi
}
suspects() { local index; for index; do ctl "$index" unreachable -o name 2>&1; done | wc -l; } # NODE...: how many they name now
suspicions() { cat "$@" | grep -cF '"type":"UnreachableMember"'; } # EVENTS...: how often a member became unreachable

# The first line says that the node has subscribed it: what happens from then on is told.
events_begin() {
    local index=$1
    shift
    host_start "$index" "$work/events" env -u TROUPE_TIMEOUT "$troupe" events -v -o jsonl "$@"
    pids+=("$host_started")
    wait_until 60 test -s "$work/events" || fail events_are_subscribed
}
event() { wait_until 60 grep -qF -- "$1" "$work/events"; }

# The end of node I, as `await` and `ended` do.
await_node() { await "${node_pid[$1]}" "$2"; }
node_ended() { ended "$1" "${node_pid[$2]}" "$3"; } # NAME I CODE

# Conditions. Each asks the nodes named by their numbers.
count_up() { ctl "$1" members --status Up -o name 2>/dev/null | wc -l; }
all_up() { # N NODE...
    local want=$1 index
    shift
    for index in "$@"; do [ "$(count_up "$index")" -eq "$want" ] || return 1; done
}
none_unreachable() {
    local index
    for index in "$@"; do [ -z "$(ctl "$index" unreachable -o name 2>&1)" ] || return 1; done
}
sees_unreachable() { # ADDRESS NODE...
    local address=$1 index
    shift
    for index in "$@"; do ctl "$index" unreachable -o name 2>/dev/null | grep -qxF "$address" || return 1; done
}
sees_gone() { # ADDRESS NODE...
    local address=$1 index names
    shift
    for index in "$@"; do
        names=$(ctl "$index" members -o name 2>/dev/null) || return 1
        ! grep -qxF "$address" <<<"$names" || return 1
    done
}
heartbeats_in() { grep -oE '"heartbeats": *[0-9]+' | grep -oE '[0-9]+$'; } # members in JSON on stdin
heartbeats() { ctl "$1" members -o json 2>/dev/null | heartbeats_in; } # NODE
at_least() { awk -v least="$1" '$1 < least { few = 1 } END { exit NR == 0 || few }'; } # N: every number on stdin
have_beaten() { # N NODE...
    local least=$1 index
    shift
    for index; do heartbeats "$index" | at_least "$least" || return 1; done
}
beat() { # N NODE...
    local wait_step=$(($1 * 50 + 300)) # to ask costs the nodes something, too
    wait_until $((60 + 3 * $1)) have_beaten "$@" || fail heartbeats_flow "less than $1: $(for index in "${@:2}"; do heartbeats "$index"; done | tr '\n' ' ')"
}
# One that stood still has missed some of what it had to send: its count stays behind those of others for ever.
have_beaten_on() { # N NODE...: beyond those in $had
    local more=$1 index
    shift
    for index; do
        heartbeats "$index" | awk -v more="$more" -v had="${had[index]}" 'BEGIN { split(had, before) }
            $1 < before[NR] + more { few = 1 } END { exit NR == 0 || few }' || return 1
    done
}
beat_on() { # N NODE...
    local wait_step=$(($1 * 50 + 300)) index had=()
    for index in "${@:2}"; do had[index]=$(heartbeats "$index" | tr '\n' ' '); done
    wait_until $((60 + 3 * $1)) have_beaten_on "$@" || fail heartbeats_flow "less than $1 more: ${had[*]}"
}
one_leader() { # NODE...: they name the same one
    local index
    [ "$(for index in "$@"; do ctl "$index" leader || echo "none at $index"; done | sort -u | wc -l)" -eq 1 ] && ctl "$1" leader
}
uid_of() { # NODE ADDRESS: the uid that the node knows for it, 16 hexadecimal digits
    ctl "$1" members -o wide 2>/dev/null | awk -v a="$2" '{
        hit = 0
        for (i = 1; i <= NF; i++) if ($i == a) hit = 1
        for (i = 1; hit && i <= NF; i++) if ($i ~ /^[0-9a-f]+$/ && length($i) == 16) { print $i; exit }
    }'
}

# Milliseconds until the condition holds, in $took; 1 when SECONDS passed first.
timed() { # SECONDS COMMAND...
    local begin
    begin=$(now_ms)
    wait_until "$@" || { took=$(($(now_ms) - begin)); return 1; }
    took=$(($(now_ms) - begin))
}
# PASS when the time that has just been measured is within three times the bound (the bound is what docs/performance.md
# promises). While the machine itself stood still nothing could be done, and a detector that notices its own pause begins
# anew: those milliseconds are added to the bound, and told.
within() { # NAME VALUE BOUND [UNIT]
    pauses "$2"
    [ "${4:-ms}" = ms ] && [ "$pause_sum" -gt 0 ] && measure "paused_$1" "$pause_sum" ms || pause_sum=0
    judge "$1" "$2" $((($3 + pause_sum) * 3)) "${4:-ms}"
}
