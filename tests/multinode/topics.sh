#!/bin/bash
# topics.sh - publish and subscribe over three hosts, by examples/room.c: guests hear what is published on any node; a node joins late, is
# killed, starts again on its address, and leaves. DistributedPubSubMediatorSpec, DistributedPubSubRestartSpec.
# CONTRIB-12 CONTRIB-15 CONTRIB-21
. "$(dirname "$0")/lib.sh"
hosts_begin 3
room=rooms/lobby
fast=(--set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms --set cluster.downing.active-strategy=auto-down-after
    --set cluster.downing.auto-down-after=2s --set cluster.failure-detector.heartbeat-interval=200ms --set remote.test-adapters=on
    --set cluster.failure-detector.acceptable-heartbeat-pause=20s) # the wire to a member loses all for as long as three programs take
enter() { # I GUEST: what it hears is in GUEST.log
    host_start "$1" "$work/$2.log" env GUEST="$2" "$build/examples/room" --system demo --host "${host_address[$1]}" --port "${host_port[$1]}" \
        --socket "${host_socket[$1]}" --seed "$(addr 1)" "${fast[@]}"
    node_pid[$1]=$host_started
    pids+=("$host_started")
}
heard() { grep -qF "$1 hears: $2" "$work/$1.log"; } # GUEST TEXT
inside() { grep -qF "$1 is in the room" "$work/$1.log"; }
delivered() { [ "$(ctl "$1" publish $room "$2" 2>/dev/null)" = "$3" ]; } # I TEXT ANSWER
enter 1 ann
enter 2 bob
check ann_comes_in wait_until 60 inside ann
check bob_comes_in wait_until 60 inside bob
check both_know_of_both wait_until 60 delivered 1 "good morning" "delivered to 2 subscribers on 2 nodes"
check ann_hears_it wait_until 60 heard ann "good morning"
check bob_hears_it wait_until 60 heard bob "good morning"
expect nobody_subscribes_elsewhere 68 ctl 1 publish rooms/empty hello
# What node 1 knew when it published, node 2 hears of by gossip.
lists_both() { ctl 2 topics -o jsonl | grep -qF '"topic":"rooms/lobby","group":null,"subscribers":2,"here":1,"nodes":2'; }
check topics_counts_both wait_until 60 lists_both
expect an_unknown_topic_is_not_found 68 ctl 2 topics rooms/empty
expect a_publication_says_its_numbers 0 ctl 2 publish $room json -o jsonl # node 2 knows of both
has it_names_delivered '"delivered":2,"nodes":2,"silent":0'

# A late one gets what exists, and is heard of. It needs no answer of anybody who publishes.
enter 3 cid
check cid_comes_in wait_until 60 inside cid
# CONTRIB-21
check the_late_one_is_reached wait_until 60 delivered 1 "welcome" "delivered to 3 subscribers on 3 nodes"
# DistributedPubSubMediatorSpec
check the_late_one_reaches_all wait_until 60 delivered 3 "thanks" "delivered to 3 subscribers on 3 nodes"
check ann_hears_the_late_one wait_until 60 heard ann thanks

# The wire to one node loses three publications, for less time than a failure detector waits.
bob=${host_address[2]}:${host_port[2]}
expect the_wire_loses_all 0 ctl 1 fault set "$bob" send lose=100%
publishers=()
for line in 1 2 3; do
    background ctl 1 publish $room "lost $line" --timeout 3s >>"$work/lost" 2>&1 # bob's node does not answer it
    publishers+=("$started")
done
for line in 1 2 3; do check "ann_hears_what_is_lost_$line" wait_until 60 heard ann "lost $line"; done # her node has sent it then
expect the_wire_is_whole_again 0 ctl 1 fault clear
for publisher in "${publishers[@]}"; do await "$publisher" 60 || fail a_publisher_ends; done
check the_next_reaches_all wait_until 60 delivered 1 "found" "delivered to 3 subscribers on 3 nodes"
# CONTRIB-15
check bob_is_told_what_he_missed wait_until 60 grep -qx "bob missed 3 lines" "$work/bob.log"
check bob_heard_none_of_them test "$(grep -c "bob hears: lost" "$work/bob.log")" -eq 0
check cid_heard_them wait_until 60 heard cid "lost 3"
check nobody_else_missed_any test "$(cat "$work/ann.log" "$work/cid.log" | grep -c missed)" -eq 0

# Killed, and started again on its address: what it had is gone, what it has now counts.
kill_node 3
enter 3 dan
check dan_comes_in wait_until 90 inside dan
# DistributedPubSubRestartSpec
check the_one_that_restarted_is_reached wait_until 60 delivered 1 "again" "delivered to 3 subscribers on 3 nodes"
check dan_hears_it wait_until 60 heard dan again
check cid_heard_nothing_of_that test "$(grep -c again "$work/cid.log")" -eq 0

expect dan_leaves 0 ctl 1 leave "$(addr 3)" --timeout 60s
node_ended dan_has_left 3 0
# DistributedPubSubMediatorSpec
check what_left_is_not_told_any_more wait_until 60 delivered 1 "bye" "delivered to 2 subscribers on 2 nodes"
check dan_did_not_hear_it test "$(grep -c bye "$work/dan.log")" -eq 0
test_end
