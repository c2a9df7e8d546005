#!/bin/bash
# join.sh - which nodes may join: a node whose configuration does not fit that of the cluster ends within 10 s with 78 and names
# the key; with cluster.enforce-compatible = off it joins with a warning. SEED-01, -02, -05, MEMB-29.
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port && open=$hosts_free && hosts_port && guarded=$hosts_free || { fail "two free ports"; test_end; }
node() { # NAME PORT OPTION...
    local name=$1 port=$2
    shift 2
    background "$troupe" node --host 127.0.0.1 --port "$port" --socket "$work/$name.sock" --set remote.cookie=off "$@" >"$work/$name.log" 2>&1
}
at() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
to() { echo "--set cluster.seed-nodes=troupe.tcp://${2:-demo}@127.0.0.1:$1"; }
refused() { # NAME KEY: that node ends with 78 and says why
    ended "$1_ends_with_78" "${pid[$1]}" 78
    judge "$1_within_10_s" $(($(now_ms) - begin)) 10000 ms
    has "$1_names_the_key" "this node cannot join as it is configured: $2" "$work/$1.log"
}
declare -A pid

cookie=(--set remote.require-cookie=on --set remote.secure-cookie=0123456789abcdef0123456789abcdef)
node open "$open" --seed self
node guarded "$guarded" --seed self "${cookie[@]}" --set remote.secure-cookie-before=anotheranotheranotheranotherone1
expect open_is_up 0 at open wait --members 1 --timeout 60s
expect guarded_is_up 0 at guarded wait --members 1 --timeout 60s

# A forgotten --host: 78 at once, and what to write.
expect loopback_is_not_for_seeds_elsewhere 78 timeout 60 "$troupe" node --port 0 --socket "$work/far.sock" --seed troupe.tcp://demo@10.9.8.7:2552
has loopback_says_what_to_write "remote.hostname: 127.0.0.1, and the seed node is troupe.tcp://demo@10.9.8.7:2552" "$work/err"
has loopback_names_the_option "(remote.hostname, --host)" "$work/err"
expect loopback_join_by_hand 78 at open join troupe.tcp://demo@10.9.8.7:2552
has loopback_join_says_why "can be dialled from its own host only" "$work/err"

begin=$(now_ms)
node strategy 0 $(to "$open") --set cluster.downing.active-strategy=keep-oldest
pid[strategy]=$started
node other_system 0 $(to "$open" other) --system other
pid[other_system]=$started
node wrong_cookie 0 $(to "$guarded") --set remote.require-cookie=on --set remote.secure-cookie=wrongwrongwrongwrongwrongwrong12
pid[wrong_cookie]=$started
node parameter 0 --seed "troupe.tcp://demo@127.0.0.1:$open" --set cluster.downing.keep-majority.role=core
pid[parameter]=$started
node no_cookie 0 $(to "$guarded")
pid[no_cookie]=$started
node unwanted_cookie 0 $(to "$open") "${cookie[@]}"
pid[unwanted_cookie]=$started
node elder_cookie 0 $(to "$guarded") --set remote.require-cookie=on --set remote.secure-cookie=anotheranotheranotheranotherone1
node lenient 0 $(to "$open") --set cluster.downing.active-strategy=keep-oldest --set cluster.enforce-compatible=off \
    --set={cluster.failure,remote.watch-failure,remote.transport-failure}-detector.implementation-class=deadline
refused strategy "cluster.downing.active-strategy: keep-oldest at the joining node, keep-majority in the cluster"
refused parameter "cluster.downing.keep-majority.role: core at the joining node, nothing in the cluster"
refused other_system "system: other here, demo at 127.0.0.1:$open"
refused wrong_cookie "remote.secure-cookie:"
refused no_cookie "remote.secure-cookie: the peer wants a cookie, this node has none"
refused unwanted_cookie "remote.secure-cookie: the peer shows none"
for name in strategy parameter; do
    has "${name}_is_told_of_the_key" "cluster.enforce-compatible = off joins all the same" "$work/$name.log"
done
for name in other_system wrong_cookie no_cookie unwanted_cookie; do
    lacks "${name}_is_told_nothing_that_does_not_help" "enforce-compatible" "$work/$name.log"
done
# SEED-02
expect lenient_joins 0 at open wait --members 2 --timeout 60s
check lenient_warns wait_until 30 grep -qF "configured otherwise than troupe.tcp://demo@127.0.0.1:$open: cluster.downing.active-strategy" \
    "$work/lenient.log"
# SEED-01
expect a_secret_in_common_is_enough 0 at guarded wait --members 2 --timeout 60s
test_end
