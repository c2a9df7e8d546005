#!/bin/bash
# topics_path.sh - mediators of three hosts: actors under their path, groups, unsubscribe (topics.sh has the rest).
# DistributedPubSubMediatorSpec, by part:
#   register, send, send to all, remove: an_actor_is_reached_... to what_was_removed_...
#   groups: one_of_a_group_...             unsubscribe: who_unsubscribes_...
#   replicate, publish, topics, node removal, DistributedPubSubRestartSpec: topics.sh
# CONTRIB-13 CONTRIB-14 CONTRIB-16
. "$(dirname "$0")/lib.sh"
hosts_begin 3
for index in 1 2 3; do start_node "$index" --load "$build/tests/multinode/.libs/topics.so"; done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
guest() { [ "$(ctl "$1" ask /user/guest "$2" 2>/dev/null)" = "$3" ]; } # I COMMAND ANSWER
hears() { wait_until 60 guest "$1" heard "$2"; } # I NUMBER: of words that come at once
all=0
adds_up() { # NUMBER: so many words in all have come to the three since all=0
    local index
    for index in 1 2 3; do all=$((all + $(ctl "$index" ask /user/guest heard))); done
    [ "$all" -eq "$1" ]
}
for index in 1 2 3; do
    check "node_${index}_puts_its_actor" guest "$index" put ok
    check "node_${index}_subscribes" guest "$index" "subscribe news" ok # what was put before is known everywhere, too
done
check an_actor_is_reached_near guest 2 near ok
check it_is_the_one_of_this_node hears 2 1
check all_are_told guest 1 all ok
for index in 1 2 3; do check "the_actor_of_node_${index}_is_told" hears "$index" 1; done
check the_others_are_told guest 1 others ok
for index in 2 3; do check "the_actor_of_node_${index}_is_one_of_the_others" hears "$index" 1; done
check who_sends_to_the_others_hears_nothing guest 1 heard 0
for index in 1 2 3 1 2 3; do check "node_${index}_sends_to_any" guest "$index" send ok; done
check each_word_reaches_one wait_until 60 adds_up 6
check an_actor_is_removed guest 1 remove ok
check the_near_one_is_elsewhere_now guest 1 near ok
all=0
check somebody_else_hears_it wait_until 60 adds_up 1
check it_is_removed_for_itself_only guest 2 near ok
check the_others_are_still_there hears 2 1

for index in 1 2 3; do check "node_${index}_joins_the_group" guest "$index" "subscribe jobs workers" ok; done
for index in 1 2 3 4 5 6; do ctl 1 publish jobs word -o jsonl; done >"$work/jobs" 2>&1
check one_of_a_group_gets_a_job test "$(grep -c '"delivered":1,"nodes":1,"silent":0' "$work/jobs")" -eq 6
for index in 1 2 3; do check "node_${index}_gets_its_turns" guest "$index" heard 2; done

check who_unsubscribes_is_told guest 2 "unsubscribe news" ok
check who_unsubscribes_again_is_told_that_it_was_not_there guest 2 "unsubscribe news" "no such actor, member or name"
two_get_news() { ctl 1 publish news word -o jsonl 2>/dev/null | grep -qF '"delivered":2,'; }
check the_rest_gets_it wait_until 60 two_get_news
check who_unsubscribed_hears_nothing guest 2 heard 0
test_end
