#!/bin/bash
# restart_same_address.sh - a node is killed and started again on its address at once: the new incarnation
# takes the place of the old one, without an operator and before anybody is downed. MEMB, REMOTE (uid).
. "$(dirname "$0")/lib.sh"
hosts_begin 3
for index in 1 2 3; do start_node "$index" --load "$build/examples/.libs/echo.so"; done
wait_until 60 all_up 3 1 2 3 || { fail all_three_come_up; test_end; }
again=$(addr 2)
old=$(uid_of 1 "$again")
check uid_is_known test -n "$old"
expect first_ask 0 ctl 1 ask "$again/user/echo" one

new_is_up() { # the new uid is known and Up on 1 and 3
    local index uid
    for index in 1 3; do
        uid=$(uid_of "$index" "$again")
        [ -n "$uid" ] && [ "$uid" != "$old" ] && [ "$(ctl "$index" member-status "$again")" = Up ] || return 1
    done
}
kill_node 2
start_node 2 --load "$build/examples/.libs/echo.so"
if timed 60 new_is_up; then pass new_incarnation_takes_the_place && measure restart_same_address "$took" ms; else fail new_incarnation_takes_the_place; fi
check three_members_again wait_until 60 all_up 3 1 2 3
check nobody_is_unreachable wait_until 60 none_unreachable 1 2 3
expect old_uid_is_nobody 68 ctl 1 member-status "$old"
expect ask_reaches_the_new_one 0 ctl 1 ask "$again/user/echo" two
is reply_of_the_new_one "$(cat "$work/out")" two

# The first seed, too: it must join the others again, not start a cluster of its own.
first=$(addr 1)
old=$(uid_of 3 "$first")
kill_node 1
start_node 1 --seed "$again" --load "$build/examples/.libs/echo.so"
seed_is_back() {
    local uid
    uid=$(uid_of 3 "$first")
    [ -n "$uid" ] && [ "$uid" != "$old" ] && all_up 3 1 2 3
}
# SEED-02, RestartFirstSeedNodeSpec
if timed 60 seed_is_back; then pass first_seed_joins_the_others && measure restart_seed "$took" ms; else fail first_seed_joins_the_others; fi
check one_cluster wait_until 60 one_leader 1 2 3
test_end
