#!/bin/bash
# node.sh - the program `troupe node`: how it starts, what it refuses, what signals do, how it ends.
. "$(dirname "$0")/lib.sh"
test_begin
plugins=$build/examples/.libs
hosts_port || { fail "a free port"; test_end; }
port=$hosts_free
node() { # N OPTION...
    local number=$1
    shift
    background "$troupe" node --socket "$work/$number.sock" "$@" 2>"$work/$number.log"
}
ctl() {
    local number=$1
    shift
    "$troupe" --socket "$work/$number.sock" "$@"
}
up() { [ "$(ctl "$1" member-status)" = Up ]; }
last_ended() { ended "$1" "$started" "$2"; } # NAME CODE: the node that was started last
address() { ctl "$1" leader; } # of a cluster of one

# ---- without a seed; port 0; SIGTERM before joining
node 1 --port 0
wait_until 60 ctl 1 version || fail node_starts "$(tail -n 2 "$work/1.log")"
wait_until 60 grep -q "troupe join" "$work/1.log" && pass unjoined_node_says_what_to_type || fail unjoined_node_says_what_to_type "$(cat "$work/1.log")"
has start_line_has_the_address "address=troupe.tcp://demo@127.0.0.1:" "$work/1.log"
lacks loopback_is_no_warning "encrypted" "$work/1.log"
kill -TERM "$started"
last_ended term_before_joining_ends_with_0 0
check socket_is_gone test ! -e "$work/1.sock"

# ---- beyond loopback: one warning
node 1 --port 0 --bind-host 0.0.0.0 --set remote.cookie=off
wait_until 60 grep -q "not joined" "$work/1.log" || fail node_listens_everywhere "$(tail -n 2 "$work/1.log")"
is beyond_loopback_is_one_warning "$(grep -c "neither encrypted nor authenticated, so any host can send messages to actors, stop and start them, join, and end members" "$work/1.log")" 1
kill -TERM "$started"
last_ended term_again_ends_with_0 0
node 1 --port 0 --bind-host 0.0.0.0 # advertised on loopback, so its peers show the cookie of this user
wait_until 60 grep -q "not joined" "$work/1.log" || fail node_listens_everywhere_with_a_cookie "$(tail -n 2 "$work/1.log")"
is a_cookie_is_not_encryption "$(grep -c "the link is not encrypted, so anybody on the network can read and change the traffic" "$work/1.log")" 1
kill -TERM "$started"
last_ended term_with_a_cookie_ends_with_0 0

# ---- a node of its own; HUP; JSON log; TERM leaves
printf 'system = demo\nlog { level = warning format = json }\ncluster { seed-nodes = self }\n' >"$work/a.conf"
node 1 --config "$work/a.conf" --port 0
wait_until 60 up 1 || fail self_makes_a_cluster "$(tail -n 2 "$work/1.log")"
is warning_level_is_silent "$(grep -cv '"level":"\(warning\|error\)"' "$work/1.log")" 0
printf 'system = demo\nlog { level = info format = json }\ncluster { seed-nodes = self gossip-interval = 2s }\n' >"$work/a.conf"
kill -HUP "$started"
# CONF-7
wait_until 60 grep -q '"reloaded: log.level is info"' "$work/1.log" && pass hup_reloads_the_log_level || fail hup_reloads_the_log_level "$(cat "$work/1.log")"
has hup_names_what_it_refuses "cluster.gossip-interval has changed; that needs a restart" "$work/1.log"
printf 'sistem = demo\n' >"$work/a.conf"
kill -HUP "$started"
wait_until 60 grep -q "reload refused" "$work/1.log" && pass hup_with_a_mistake_changes_nothing || fail hup_with_a_mistake_changes_nothing
up 1 && pass node_lives_on || fail node_lives_on
kill -INT "$started"
last_ended int_leaves_and_ends_with_0 0
bad=0
while IFS= read -r line; do
    printf '%s' "$line" >"$work/line"
    "$build/tests/system/ctl_fake" --check <"$work/line" || bad=$((bad + 1))
done <"$work/1.log"
is every_log_line_is_json "$bad" 0

# ---- a seed that is not there
node 5 --port 0 --seed "troupe.tcp://demo@127.0.0.1:1"
wait_until 60 grep -q "not joined yet" "$work/5.log" && pass waiting_for_a_seed_is_told || fail waiting_for_a_seed_is_told "$(cat "$work/5.log")"
kill -TERM "$started"
last_ended term_while_seeking_ends_with_0 0

# ---- layers, as config show tells them
printf 'cluster { gossip-interval = 2s leave-timeout = 9s }\n' >"$work/b.conf"
TROUPE_CLUSTER_GOSSIP_INTERVAL=3s "$troupe" config show --config "$work/b.conf" --set log.level=debug --origin >"$work/out"
has file_has_its_line "b.conf:1" && has env_is_named "environment TROUPE_CLUSTER_GOSSIP_INTERVAL" && has flag_is_named "# --set"
expect one_key 0 "$troupe" config show cluster.downing.stable-after
is one_key_prints_its_value "$(cat "$work/out")" "cluster.downing.stable-after = 20s"
expect sample_is_right 0 "$troupe" config check "$src/deploy/troupe.conf"
expect unit_finds_the_program_below_any_usual_prefix 0 grep '^ExecStart=trouped --config' "$src/deploy/systemd/troupe@.service"
expect unit_lets_the_node_measure_itself 1 grep '^ProcSubset' "$src/deploy/systemd/troupe@.service"
expect wrong_variable 78 env TROUPE_CLUSTER_GOSIP_INTERVAL=1s "$troupe" config check
has variable_is_suggested "TROUPE_CLUSTER_GOSSIP_INTERVAL" "$work/err"
for pair in CLUSTR_GOSSIP_INTERVAL:CLUSTER_GOSSIP_INTERVAL SYTEM:SYSTEM PLUGIN:PLUGINS TIMOUT:TIMEOUT; do
    expect "wrong_variable_${pair%:*}" 78 env "TROUPE_${pair%:*}=1s" "$troupe" config check
    has "variable_${pair#*:}_is_suggested" "did you mean TROUPE_${pair#*:}?" "$work/err"
done
expect variables_of_the_client_and_of_others 0 env TROUPE_TIMEOUT=5s TROUPE_NO_WAIT=1 TROUPE_HOME=/srv "$troupe" config check

# ---- what is refused at start
expect plugin_without_symbol 78 "$troupe" node --port 0 --socket "$work/0.sock" --load "$build/.libs/libtroupe.so"
has plugin_error_says_why "trp_plugin_v1" "$work/err"
check refused_node_leaves_no_socket test ! -e "$work/0.sock"
expect address_of_another_host 69 "$troupe" node --host 192.0.2.1 --port 0 --socket "$work/0.sock"
has address_of_another_host_says_what_to_do "--bind-host" "$work/err"
expect no_address_to_bind 69 "$troupe" node --bind-host no.such.host.invalid --port 0 --socket "$work/0.sock"
has no_address_to_bind_is_named "no.such.host.invalid" "$work/err"
expect frame_larger_than_lane 78 "$troupe" node --port 0 --socket "$work/0.sock" --set remote.maximum-frame-size=32MiB
has frame_larger_than_lane_names_the_key "remote.lane-buffer-size" "$work/err"
expect can_never_join 78 "$troupe" node --port 0 --socket "$work/0.sock" --seed self --set cluster.may-create-cluster=off
has can_never_join_says_why "cluster.may-create-cluster" "$work/err"
expect detector_nowhere 78 "$troupe" node --port 0 --socket "$work/0.sock" --set cluster.failure-detector.implementation-class=nobody
has detector_nowhere_is_named "no failure detector 'nobody'" "$work/err"
expect plugin_twice 78 "$troupe" node --port 0 --socket "$work/0.sock" --load "$plugins/echo.so" --load "$plugins/echo.so"
has plugin_twice_says_so "loaded twice" "$work/err"
expect plugin_of_another_role 78 "$troupe" node --port 0 --socket "$work/0.sock" --role frontend --load "$plugins/backend.so"
# ROLES-05
has plugin_of_another_role_says_which "does not have the role [backend], but [frontend]" "$work/err"
limited() { # LIMIT VALUE: a node that may have no more than that
    bash -c 'ulimit "$1" "$2" && shift 2 && exec "$@"' _ "$1" "$2" "$troupe" node --port 0 --socket "$work/0.sock" --seed self
}
expect too_few_descriptors 78 limited -n 15
has descriptors_are_said_with_the_need "may have 15 descriptors (RLIMIT_NOFILE), and a node needs 16" "$work/err"
if [ -z "$sanitizer" ]; then # which reserves terabytes
    expect too_little_address_space 78 limited -v 300000
    has address_space_is_said_with_the_need "may have 292 MiB of address space (RLIMIT_AS), and a node on" "$work/err"
fi
expect plugin_nowhere 78 "$troupe" node --port 0 --socket "$work/0.sock" --load no-such-plugin.so
has plugin_nowhere_says_where_it_looked "/troupe and where" "$work/err"
expect no_place_for_the_socket 78 "$troupe" node --port 0 --socket "$work/none/0.sock"
node 1 --port "$port" --seed self
wait_until 60 up 1
expect taken_port 69 "$troupe" node --port "$port" --socket "$work/2.sock"
has taken_port_says_what_to_do "--port" "$work/err"
expect already_running 69 "$troupe" node --port 0 --socket "$work/1.sock"
has already_running_names_the_pid "pid $started" "$work/err"

# ---- leaving takes too long: the other member is stopped, so the view cannot converge
seed=$(address 1)
first=$started
node 2 --port 0 --seed "$seed" --set cluster.leave-timeout=500ms
wait_until 60 up 2 || fail second_comes_up "$(tail -n 2 "$work/2.log")"
freeze "$first"
kill -TERM "$started"
last_ended leave_timeout_ends_with_75 75
has leave_timeout_is_told "cluster.leave-timeout" "$work/2.log"
node 3 --port 0 --seed self
wait_until 60 up 3
kill -CONT "$first"
kill -9 "$first"
wait "$first" 2>/dev/null
forget "$first"

# ---- a second signal ends at once
node 4 --port 0 --seed "$(address 3)"
wait_until 60 up 4 || fail fourth_comes_up
third=${pids[-2]}
freeze "$third"
told_ms=$(now_ms)
kill -TERM "$started"
kill -INT "$started" # the same wish, as a terminal and a service manager send it
wait_until 60 grep -q "once more to end at once" "$work/4.log"
kill -TERM "$started"
if lives "$started" && [ $(($(now_ms) - told_ms)) -lt 400 ]; then
    ends_early() { ! lives "$started" || [ $(($(now_ms) - told_ms)) -ge 400 ]; }
    wait_until 10 ends_early
    # On a busy machine the node may have read it later than it was sent.
    is_same() { lives "$started" || [ $(($(now_ms) - told_ms)) -ge 500 ]; }
    check a_second_signal_at_once_is_the_same is_same
fi
term_again() { kill -TERM "$started"; ! lives "$started"; }
wait_until 60 term_again
last_ended second_signal_ends_with_1 1
lacks a_second_signal_at_once_is_not_taken_for_one "SIGINT again" "$work/4.log"
kill -CONT "$third"

# ---- also while the node closes: the end of its plugin hangs
closing() { # N OPTION...: a node of its own that hangs when it closes
    node "$@" --port 0 --seed self --load "$build/tests/system/.libs/many.so:$work/held$1"
    : >"$work/held$1"
    check "node_$1_comes_up" wait_until 60 up "$1"
}
term_once_more() { # NAME LOG
    local told_ms
    # It has been told half a second ago, or is told again: each look sends one.
    check "$1" wait_until 60 term_again
    last_ended "$1_with_1" 1
    has "$1_and_logs_it" "SIGTERM again: ending at once" "$2"
    has "$1_and_audits_it" "order=end-at-once on=troupe.tcp://demo@127.0.0.1:" "$2"
}
closing 8 --log-file "$work/8.file"
kill -TERM "$started"
check the_plugin_of_node_8_hangs wait_until 60 test -e "$work/held8.fini"
term_once_more a_second_signal_ends_a_node_that_closes "$work/8.file"
closing 9
expect it_is_told_to_leave 0 ctl 9 leave
check the_plugin_of_node_9_hangs wait_until 60 test -e "$work/held9.fini"
kill -TERM "$started"
check the_first_signal_behind_an_order_ends_nothing wait_until 60 grep -q "SIGTERM: the node ends already (once more to end at once)" "$work/9.log"
check node_9_still_closes lives "$started"
term_once_more the_next_one_does "$work/9.log"

# ---- standard error is a pipe without a reader
mkfifo "$work/full"
exec {full}<>"$work/full"
dd if=/dev/zero of="$work/full" oflag=nonblock bs=4096 count=1000 2>/dev/null
background "$troupe" node --socket "$work/6.sock" --port 0 --seed self --log-level debug 2>&"$full"
wait_until 60 up 6 || fail node_with_a_full_pipe_comes_up
told_ms=$(now_ms)
kill -TERM "$started"
last_ended node_with_a_full_pipe_leaves 0
judge node_with_a_full_pipe_ends_in_time_ms $(($(now_ms) - told_ms)) 10000 ms
exec {full}>&-
rm "$work/full" # a search through the files would read it

# ---- a log file: USR1 opens it again, USR2 writes down what the node knows
node 7 --port 0 --seed self --log-level warning --log-format json --log-file "$work/7.file"
wait_until 60 up 7 || fail node_with_a_file_comes_up
kill -USR2 "$started"
check usr2_dumps_the_state wait_until 30 grep -q 'end of the dump' "$work/7.file"
has the_dump_has_the_members '"status":"Up","reachable":"yes"' "$work/7.file"
has the_dump_has_the_view '"strategy":"keep-majority"' "$work/7.file"
mv "$work/7.file" "$work/7.moved"
kill -USR1 "$started"
check usr1_opens_the_file_again wait_until 30 test -e "$work/7.file"
kill -USR2 "$started"
check what_follows_goes_to_the_new_file wait_until 30 grep -q 'end of the dump' "$work/7.file"
is the_old_file_has_one_dump "$(grep -c 'end of the dump' "$work/7.moved")" 1
kill -TERM "$started"
last_ended node_with_a_file_leaves 0
expect log_file_nowhere 78 "$troupe" node --port 0 --socket "$work/0.sock" --log-file "$work/none/log"
has log_file_nowhere_is_named "log.file $work/none/log: No such file or directory (ENOENT)" "$work/err"
test_end
