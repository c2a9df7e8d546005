#!/bin/bash
# notify.sh - what a node tells the service manager that has started it (NOTIFY_SOCKET, WATCHDOG_USEC), by one that
# listens.
. "$(dirname "$0")/lib.sh"
test_begin
command -v python3 >/dev/null || skip "no python3: deploy/bootstrap --tests installs it"
listen() { # N PATH|@NAME: its words go to $work/N.told
    background python3 "$src/tests/system/notify_listen.py" "$2" >"$work/$1.told" 2>&1
    wait_until 30 grep -q listening "$work/$1.told" || fail "listener_$1_listens" "$(cat "$work/$1.told")"
}
node() { # N OPTION... with the variables of `manager`
    local number=$1
    shift
    background env "${manager[@]}" "$troupe" node --port 0 --socket "$work/$number.sock" "$@" 2>"$work/$number.log"
}
told() { grep -c " $2" "$work/$1.told"; } # N TEXT
beats() { [ "$(told "$1" WATCHDOG=1)" -ge "$2" ]; }

# ---- ready when it is Up, beats, a reload, the end; by a path
listen 1 "$work/notify"
listen 2 "@troupe-notify-$$"
manager=("NOTIFY_SOCKET=$work/notify" WATCHDOG_USEC=400000)
hosts_port && first=$hosts_free
seed=troupe.tcp://demo@127.0.0.1:$first
node 1 --seed "$seed"
one=$started
check it_beats_while_it_looks_for_its_seeds wait_until 60 beats 1 5
is it_is_not_ready_before_it_is_up "$(told 1 READY=1)" 0
waits_for_it() { [ "$(told 1 'STATUS=joining the cluster')" -eq 1 ]; }
check it_says_what_it_waits_for wait_until 60 waits_for_it
manager=("NOTIFY_SOCKET=@troupe-notify-$$")
node 2 --port "$first" --seed self
check up_is_ready wait_until 60 grep -q ' READY=1|STATUS=started as troupe.tcp://' "$work/1.told"
expect ready_is_up 0 "$troupe" --socket "$work/1.sock" member-status
has ready_is_up_by_its_own_word Up
check an_abstract_name_is_told wait_until 60 grep -q ' READY=1|' "$work/2.told"
is no_watchdog_no_beats "$(told 2 WATCHDOG=1)" 0
kill -HUP "$one"
twice() { [ "$(told 1 READY=1)" -eq 2 ]; }
check a_reload_ends_with_ready wait_until 60 twice
read -r arrived words < <(grep ' RELOADING=1' "$work/1.told")
sent=${words#RELOADING=1|MONOTONIC_USEC=}
if [[ $sent =~ ^[0-9]+$ ]] && [ "$sent" -le "$arrived" ] && [ $((arrived - sent)) -lt 60000000 ]; then
    pass a_reload_has_its_time
else
    fail a_reload_has_its_time "'$words' at $arrived"
fi
is reload_comes_before_its_ready "$(grep -oE '(RELOADING|READY)=1' "$work/1.told" | tr '\n' ' ')" "READY=1 RELOADING=1 READY=1 "
kill -TERM "$one"
ended it_ends_with_0 "$one" 0
check stopping_is_said wait_until 60 grep -q ' STOPPING=1' "$work/1.told"
is stopping_is_said_once "$(told 1 STOPPING=1)" 1
is nothing_but_beats_after_it "$(sed '1,/ STOPPING=1/d' "$work/1.told" | grep -vc ' WATCHDOG=1$')" 0
expect the_other_leaves_by_command 0 "$troupe" --socket "$work/2.sock" leave
check an_end_by_command_is_told wait_until 60 grep -q ' STOPPING=1' "$work/2.told"

# ---- the watchdog: held workers do not stop it, the library's own dispatcher does
manager=("NOTIFY_SOCKET=$work/3.notify" WATCHDOG_USEC=400000)
listen 3 "$work/3.notify"
node 3 --load "$build/tests/system/.libs/stuck.so:2" --set actor.default-dispatcher.workers=2 --set coordinated-shutdown.default-phase-timeout=500ms \
    --set coordinated-shutdown.phases.actor-system-terminate.timeout=500ms
held=$started
check no_seeds_is_ready_at_once wait_until 60 grep -q ' READY=1|' "$work/3.told"
check held_workers_beat_on wait_until 60 beats 3 5
manager=("NOTIFY_SOCKET=$work/4.notify" WATCHDOG_USEC=400000)
listen 4 "$work/4.notify"
: >"$work/held"
node 4 --load "$build/tests/system/.libs/stuck.so:$work/held"
four=$started
check the_one_that_hangs_is_there wait_until 60 grep -q ' READY=1|' "$work/4.told"
seen=$(told 3 WATCHDOG=1)
check the_other_one_beats_on wait_until 60 beats 3 $((seen + 5))
is no_beat_while_its_own_dispatcher_hangs "$(told 4 WATCHDOG=1)" 0
rm "$work/held"
check beats_come_when_it_goes_on wait_until 60 beats 4 3
kill -TERM "$four" "$held"
ended the_one_that_hung_ends_with_0 "$four" 0
ended the_held_one_ends_with_0 "$held" 0

# ---- no service manager, another process's watchdog, an invalid address
threads() { cat "/proc/$1/task/"*/comm; }
started_by_log() { grep -q 'not joined: no seed nodes' "$work/$1.log"; }
manager=(WATCHDOG_USEC=400000)
node 5
check without_a_manager_it_starts wait_until 60 started_by_log 5
is without_a_manager_no_thread "$(threads "$started" | grep -c trp-notify)" 0
manager=("NOTIFY_SOCKET=$work/notify" WATCHDOG_USEC=400000 WATCHDOG_PID=1)
seen=$(told 1 WATCHDOG=1)
node 6
thrice() { [ "$(told 1 READY=1)" -eq 3 ]; }
check the_watchdog_of_another_process_leaves_ready wait_until 60 thrice
manager=("NOTIFY_SOCKET=$work/nobody")
node 7
check a_manager_that_is_not_there_is_logged wait_until 60 grep -q "\"READY=1\" cannot be sent to the service manager: .*ENOENT.*; NOTIFY_SOCKET is $work/nobody" "$work/7.log"
kill -TERM "$started"
ended it_ends_all_the_same "$started" 0
is and_logged_once "$(grep -c 'cannot be sent to the service manager' "$work/7.log")" 1
manager=(NOTIFY_SOCKET=somewhere)
node 8
check an_address_that_is_none_is_logged wait_until 60 grep -q 'neither an absolute path nor @NAME.*: somewhere' "$work/8.log"
is the_watchdog_of_another_process_has_no_beats "$(told 1 WATCHDOG=1)" "$seen"
expect unit_waits_for_ready 0 grep -x 'Type=notify' "$src/deploy/systemd/troupe@.service"
expect unit_reloads_by_hup 0 grep -x 'ExecReload=/bin/kill -HUP $MAINPID' "$src/deploy/systemd/troupe@.service"
test_end
