#!/bin/bash
# exchange.sh - two nodes on two hosts tell each other millions of messages; then one tells while its link is cut and
# healed. Told with overflow = notify: none is lost while the link stands, all are in order; else told = received + dead
# letters + at most what was on the wire, and every watcher learns of what ended, once. REMOTE-01, REMOTE-06, WATCH-8.
#   exchange.sh [MESSAGES [CUTS]]   default 2 million and 1 cut; --long is the 100 million and the 10 cuts of the promise
. "$(dirname "$0")/lib.sh"
messages=${1:-2000000} cuts=${2:-1}
[ "$messages" != --long ] || messages=100000000 cuts=10
patient=() # a sanitizer's processes may stand still for the 5 s after which a link is given up, with what is on it
[ -z "$sanitizer" ] || { messages=$((messages / 20)) patient=(patient); }
hosts_begin 2 namespaces
exchange=$build/tests/multinode/exchange
node_of() { # I LOG ARGUMENT...
    local index=$1 log=$2
    shift 2
    host_start "$index" "$work/$log" "$exchange" "${host_address[index]}" "${host_port[index]}" "$@"
    node_pid[index]=$host_started
    pids+=("$host_started")
}
count() { grep -c "^$1" "$work/$2" 2>/dev/null || :; }
says_it() { [ "$(count "$1" "$2")" -ge "$3" ]; } # TEXT LOG TIMES
both() { says_it "$1" one "$2" && says_it "$1" two "$2"; }
end_both() {
    kill -TERM "${node_pid[1]}" "${node_pid[2]}"
    ended "$1_node_1_ends" "${node_pid[1]}" 0
    ended "$1_node_2_ends" "${node_pid[2]}" 0
}

# Both tell half of them at once.
node_of 1 one "${patient[@]}" "$(addr 2)" $((messages / 2))
node_of 2 two "${patient[@]}" "$(addr 1)" $((messages / 2))
check both_have_told_all wait_until 600 both "law [hb]" 1
for side in one two; do
    sed "s/^/    $side /" "$work/$side"
    check "${side}_has_told_half" grep -q "^sent $((messages / 2)) " "$work/$side"
    is "nothing_told_by_${side}_is_lost_or_out_of_order" "$(sed -n 's/^received //p' "$work/$side")" \
        "$(sed -n 's/^sent //p' "$work/$side")"
    check "${side}_keeps_the_law" grep -qx "law holds" "$work/$side"
done
end_both exchange
rm -f "$work/one" "$work/two"

# One tells without end, and the other one loses its network again and again; each time an actor there ends that is watched
# from here.
node_of 2 two quick
node_of 1 one quick "$(addr 2)" 0
check messages_flow wait_until 60 says_it flowing one 1
for ((cut = 1; cut <= cuts; cut++)); do
    was=$(count disassociated one)
    was_two=$(count disassociated two)
    host_cut 2
    kill -USR2 "${node_pid[2]}"
    check "cut_${cut}_is_noticed_by_one" wait_until 60 says_it disassociated one $((was + 1))
    check "cut_${cut}_is_noticed_by_two" wait_until 60 says_it disassociated two $((was_two + 1))
    was=$(count flowing one)
    host_heal 2
    check "cut_${cut}_heals" wait_until 60 says_it flowing one $((was + 1))
done
kill -USR1 "${node_pid[1]}"
check balance_is_drawn wait_until 120 says_it "law [hb]" one 1
sed "s/^/    one /" "$work/one"
check law_holds_over_cuts grep -qx "law holds" "$work/one"
check order_is_kept_over_cuts grep -q "^disorder 0 damaged 0 " "$work/one"
is watchers_are_told_once_of_each_end "$(sed -n 's/^ends told //p' "$work/one")" "$cuts twice 0"
end_both cuts
test_end
