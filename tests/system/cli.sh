#!/bin/bash
# cli.sh - the program against real nodes on loopback: every exit code, every output, refusals.
# The client alone, against a fake node, is cli_fake.sh.
. "$(dirname "$0")/lib.sh"
test_begin
plugins=$build/examples/.libs
hosts_port && port1=$hosts_free && hosts_port && port2=$hosts_free || { fail "two free ports"; test_end; }
A=troupe.tcp://demo@127.0.0.1:$port1 B=troupe.tcp://demo@127.0.0.1:$port2
one() { "$troupe" --socket "$work/1.sock" "$@"; }
two() { "$troupe" --socket "$work/2.sock" "$@"; }
node() { # N PORT OPTION...
    local number=$1 port=$2
    shift 2
    background "$troupe" node --system demo --host 127.0.0.1 --port "$port" --socket "$work/$number.sock" \
        --set cluster.enforce-compatible=off --load "$plugins/echo.so" --load "$plugins/counter.so" "$@" >"$work/node-$number.log" 2>&1
}

# ---- without a node
expect help_exits_0 0 "$troupe" help
# CLI-01
expect no_command_is_usage 64 "$troupe"
has usage_goes_to_stderr "Usage: troupe" "$work/err"
for words in "--version node" "node --version" "members --version"; do
    # shellcheck disable=SC2086
    expect "version_of_${words// /_}" 0 timeout 20 "$troupe" $words
    has "version_of_${words// /_}_is_all" "troupe 0."
done
expect flags_behind_a_command_of_the_library 0 "$troupe" config show system -s other -q -t 5s
has system_behind_it_is_taken "system = other"
expect output_before_a_command_of_the_library 0 "$troupe" -o json config show system
is_json output_before_it_is_taken
expect full_disk 74 bash -c '"$0" config show >/dev/full' "$troupe"
expect closed_stdout 74 bash -c '"$0" help >&-' "$troupe"
expect wrong_twin_in_the_environment 64 env TROUPE_TIMEOUT=five "$troupe" members
has wrong_twin_is_named "TROUPE_TIMEOUT takes a duration" "$work/err"
expect version 0 "$troupe" --version
for command in status why members member-status join leave down drain undrain unreachable cluster-status leader is-singleton is-available \
    events wait send ask ping tree version completion help dev node sim config fsm; do
    expect "help_of_$command" 0 "$troupe" "$command" --help
    expect "unknown_flag_of_$command" 64 "$troupe" "$command" --bogus-flag
done
expect help_of_one_command 0 "$troupe" help status
has help_tells_the_formats_of_that_command "FMT           table, json, jsonl, name"
has help_tells_the_timeout_of_that_command "(default 5s)"
# CLI-16
expect unknown_command 64 "$troupe" membres
has did_you_mean_a_command "did you mean 'members'?" "$work/err"
expect abbreviation_is_refused 64 "$troupe" mem
expect help_of_unknown_command 64 "$troupe" help membres
has help_did_you_mean "did you mean 'members'?" "$work/err"
expect unknown_flag_of_sim_is_usage 64 "$troupe" sim --node 5
has sim_did_you_mean "did you mean --nodes?" "$work/err"
expect so_many_nodes_and_not_one_more 64 "$troupe" sim --nodes 10001 --until 1ms
expect a_day_and_not_more 64 "$troupe" sim --nodes 1 --until 86401s
expect config_verb 64 "$troupe" config shw
has config_did_you_mean "did you mean 'show'?" "$work/err"
expect system_from_the_environment 0 env TROUPE_SYSTEM=other "$troupe" config show system --origin
has system_of_the_environment_is_told "# environment TROUPE_SYSTEM"
expect a_system_goes_before_the_socket_of_the_environment 69 env TROUPE_SOCKET="$work/x.sock" "$troupe" --system nowhere members
has the_system_is_looked_for "no node of system nowhere runs on this machine" "$work/err"
expect a_node_is_named_in_one_way 64 "$troupe" --socket "$work/x.sock" --endpoint http://127.0.0.1:8558 members
has the_two_ways_are_named "--endpoint and --socket name two nodes" "$work/err"
expect unknown_flag 64 "$troupe" members --ouput json
has did_you_mean_a_flag "did you mean '--output'?" "$work/err"
expect abbreviated_flag_is_refused 64 "$troupe" members --outp json
expect akka_address_is_not_ours 64 "$troupe" join akka.tcp://demo@a:1
# CLI-12
has did_you_mean_troupe "did you mean 'troupe.tcp://demo@a:1'?" "$work/err"
# CLI-16
expect no_node 69 env XDG_RUNTIME_DIR="$work" "$troupe" --system "no-such-system-$$" members
has no_node_tells_where_it_looked "tried      /run/troupe/*.sock, $work/troupe/*.sock" "$work/err"
has no_node_tells_what_to_do "troupe dev 3" "$work/err"
expect wrong_configuration 78 "$troupe" node --set cluster.gosip-interval=1s
has configuration_error_suggests "gossip-interval" "$work/err"
printf 'system = demo\ncluster { gosip-interval = 1s }\n' >"$work/bad.conf"
expect wrong_file 78 "$troupe" node --config "$work/bad.conf"
has file_error_has_file_and_line "bad.conf:2" "$work/err"
expect config_check_of_a_wrong_file 78 "$troupe" config check "$work/bad.conf"
expect wildcard_is_no_address 78 "$troupe" node --host 0.0.0.0 --port 0
expect no_such_plugin 78 "$troupe" node --port 0 --load "$work/none.so" --socket "$work/0.sock"

# ---- one node that has not joined
node 1 "$port1" --role seed
wait_until 60 one members || { fail node_starts "$(tail -n 3 "$work/node-1.log" | tr '\n' ' ')"; test_end; }
kill -0 "${pids[0]}" 2>/dev/null || { fail node_stays_alive; test_end; }
is socket_mode "$(stat -c %a "$work/1.sock")" 660
expect members_before_joining 0 one members
has members_says_what_to_type "troupe join" "$work/err"
expect status_before_joining_is_not_healthy 1 one status
expect member_status_before_joining 0 one member-status
# CLI-05
is before_joining_is_removed "$(cat "$work/out")" Removed
expect not_available_before_joining 1 one is-available
# CLI-09
expect no_leader_before_joining 1 one leader
expect why_before_joining 1 one why
has why_says_what_to_type "troupe join"
expect same_node_twice 69 timeout 60 "$troupe" node --system demo --host 127.0.0.1 --port "$port1" --socket "$work/1.sock"
has already_running_names_the_pid "pid ${pids[0]}" "$work/err"
expect join_needs_an_address 64 one join demo
# CLI-02
expect join_other_system 64 one join troupe.tcp://other@127.0.0.1:"$port1"
# CLI-02
expect join_itself 0 one join "$A" --timeout 60s
expect joining_twice_is_no 1 one join "$A"
has already_a_member "already a member" "$work/err"
# CLI-10
expect single_member 0 one is-singleton
# A name that is not known is not found, whatever it names.
for command in "shards nothing" "shards nothing --rebalance" "entity nothing 1" "singleton nothing"; do
    # shellcheck disable=SC2086
    expect "not_found_${command// /_}" 68 one $command
done
# CLI-11
expect available 0 one is-available
expect wait_up 0 one wait --up --converged --timeout 60s

# ---- two nodes
node 2 "$port2" --seed "$A" --role backend --set cluster.downing.active-strategy=manual
expect wait_for_two 0 one wait --members 2 --role backend=1 --timeout 60s
# CLI-10
expect two_is_no_singleton 1 one is-singleton
expect converged 0 two wait --members 2 --converged --timeout 60s
expect converged_here_too 0 one wait --members 2 --converged --timeout 60s
check both_are_well wait_until 60 one status
expect status_healthy 0 one status
has status_screen "Cluster demo: healthy (2 members, 2 Up, 0 unreachable" && lacks status_has_nothing_to_explain "not-seen"
expect nothing_to_explain 0 two why
expect members 0 one members
has members_marks_itself "*  $A"
lacks no_escape_code $'\033'
# CLI-06
is lists_are_equal_on_both "$(one members -o name)" "$(two members -o name)"
facts() { "$1" members -o json | grep -oE '"(upSince|troupeVersion)": ?"[^"]*"'; }
is both_say_since_when_each_is_up_and_what_it_runs "$(facts one)" "$(facts two)"
is each_of_them_is_said_of_each_member "$(facts two | sed 's/":.*//' | sort | uniq -c | tr -d '\n" ')" "2troupeVersion2upSince"
is troupe_is_what_the_tool_is "$(facts two | grep -c "\"$("$troupe" --version | awk '{ print $2 }')\"")" 2
one_digest() { [ "$(one members -o json | grep '^  "version"')" = "$(two members -o json | grep '^  "version"')" ]; }
check views_have_one_digest wait_until 30 one_digest
for command in status why members member-status unreachable cluster-status leader is-singleton is-available tree version \
    "ask $B/user/echo x" "send $B/user/echo x" "ping $B"; do
    # shellcheck disable=SC2086
    one $command -o json >"$work/out" 2>"$work/err"
    is_json "json_of_${command%% *}"
    lacks "no_escape_in_${command%% *}" $'\033'
done
# MBeanSpec
is status_names_its_node "$(one status -o name)" "$A"
is akka_keys "$(one members -o json | grep -cE '^  "(selfNode|members|unreachable|leader|oldest|oldestPerRole)":')" 6
expect member_by_host_and_port 0 one member-status "127.0.0.1:$port2"
uid=$(one members -o json | tr -d ' \n' | sed 's/.*"node":"[^"]*'"$port2"'","nodeUid":"\([0-9]*\)".*/\1/')
expect member_by_uid 0 one member-status "$uid"
# CLI-05, MBeanSpec
is member_by_uid_is_up "$(cat "$work/out")" Up
# CLI-16
expect unknown_member 68 one member-status 127.0.0.1:1
expect bad_member 64 one member-status 'troupe.tcp://demo@'
expect leave_of_unknown_member 68 one leave 127.0.0.1:1
expect down_of_unknown_member 68 one down 127.0.0.1:1 --yes

# ---- actors
expect ask_here 0 one ask /user/echo hello
is echo_here "$(cat "$work/out")" hello
expect ask_there 0 one ask "$B/user/echo" '{"a":1}'
is echo_json_there "$(cat "$work/out")" '{"a":1}'
expect ask_on_member 0 one ask /user/counter '{"add":5}' --on "127.0.0.1:$port2"
is counter_counts "$(cat "$work/out")" '{"total":5}'
expect ask_typed 0 one ask "$B/user/counter" --type counter.add '{"amount":37}'
has typed_reply 42
expect ask_nobody_here 68 one ask /user/nobody x
expect ask_nobody_there 68 one ask "$B/user/nobody" x
has nobody_there_hint_asks_there "troupe tree $B/user" "$work/err"
says ask_no_member_says_so 75 "is no member of this cluster" one ask troupe.tcp://demo@127.0.0.1:1/user/echo x --timeout 300ms
expect join_dry_run_of_a_member 1 one join "$B" --dry-run
expect send_nobody 68 one send /user/nobody x
head -c 300000 /dev/zero | tr '\0' x >"$work/large"
expect send_of_too_much_there 65 one send "$B/user/counter" - <"$work/large"
has send_of_too_much_names_the_limit "remote.maximum-frame-size" "$work/err"
expect send_somebody 0 one send "$B/user/counter" '{"add":1}'
expect ask_unknown_type 65 one ask /user/counter --type counter.nothing '{}'
expect send_of_an_order_to_the_runtime 65 one send /system/cluster --type troupe.kill '{}'
has send_of_an_order_says_what_to_do "troupe stop, kill and restart" "$work/err"
expect send_of_a_private_type 65 one send /user --type troupe.priv-mark '{}'
expect ask_that_the_actor_cannot_decode 65 one ask /user/counter '{"ad":1}'
expect ask_that_the_actor_refuses 1 one ask /user/counter '{"add":1000001}'
expect ask_bad_json 65 one ask /user/counter --type counter.add '{'
expect ask_dead_host 75 one ask troupe.tcp://demo@127.0.0.1:1/user/echo x --timeout 500ms
expect ping_member 0 one ping "$B"
expect ping_path 0 one ping "$B/user/echo" -c 3 --interval 1ms
has ping_summary "3 sent, 3 received, 0 lost" "$work/err"
expect ping_nobody 68 one ping "$B/user/nobody"
expect tree 0 one tree /user
# HEADLINE-8
has tree_has_the_actors echo
expect tree_there 0 one tree "$B/user" -o name
has tree_there_has_paths "/user/counter"
expect tree_of_a_member 0 one tree "127.0.0.1:$port2" --depth 1
expect tree_of_no_member 68 one tree 127.0.0.1:1
expect closed_stdout_is_no_socket 74 bash -c '"$0" --socket "$1" members >&-' "$troupe" "$work/1.sock"
printf 'a\0b' >"$work/zero"
expect byte_0_is_no_text 65 one send /user/counter - <"$work/zero"
for words in "events --snapshot --count 1" cluster-status "ping /user/echo"; do
    # shellcheck disable=SC2086
    expect "name_of_${words%% *}" 0 one $words -o name
    has "name_of_${words%% *}_is_an_address" "troupe.tcp://demo@127.0.0.1:"
done
expect tree_of_nobody 68 one tree /user/nobody

# ---- streams, signals, permission
expect sigint_is_130 130 timeout --preserve-status -s INT 0.5 "$troupe" --socket "$work/1.sock" events
expect sigterm_is_143 143 timeout --preserve-status -s TERM 0.5 "$troupe" --socket "$work/1.sock" events
expect events_timeout_is_an_end 0 one events --type MemberUp --timeout 3s
is events_of_a_type_begin_with_what_happens "$(cat "$work/out")" ""
expect events_snapshot 0 one events --snapshot --count 2 --timeout 60s -o json
is_json events_are_json
expect closed_pipe 0 bash -c '"$0" --socket "$1" members | true; exit ${PIPESTATUS[0]}' "$troupe" "$work/1.sock"
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null; then
    chmod 755 "$work"
    # Nor may that user read the sanitizers' suppressions, where the clone is private.
    expect other_user_is_not_permitted 77 env -u TSAN_OPTIONS -u LSAN_OPTIONS setpriv --reuid 65534 --regid 65534 --clear-groups "$troupe" --socket "$work/1.sock" members
else
    echo "SKIP other_user_is_not_permitted: needs root"
fi

# ---- the end of nodes
expect down_without_terminal_needs_yes 64 one down "127.0.0.1:$port2" </dev/null
expect down_dry_run_of_a_reachable_member 0 one down "127.0.0.1:$port2" --dry-run
has dry_run_says_reachable "reachable"
expect still_two 0 one wait --members 2 --timeout 60s
second=${pids[-1]}
# CLI-04
expect down_of_a_reachable_member 0 one down "127.0.0.1:$port2" --yes --timeout 60s
ended downed_node_ends_with_76 "$second" 76
node 2 "$port2" --set cluster.downing.active-strategy=manual
wait_until 60 two members >/dev/null || fail node_without_seeds_starts
# CLI-02, MBeanSpec
expect join_another 0 two join "$A" --timeout 60s
expect back_again 0 two wait --members 2 --timeout 60s
# what the stream says from its snapshot on, put together: the addresses of the members
replayed() {
    sed -n 's/.*"type":"\([A-Za-z]*\)","member":{"node":"\([^"]*\)".*/\1 \2/p' "$work/stream" |
        awk '$1 == "MemberRemoved" { delete in_it[$2]; next } { in_it[$2] = 1 } END { for (n in in_it) print n }' | sort
}
background "$troupe" --socket "$work/1.sock" events -o jsonl >"$work/stream"
stream=$started; forget "$stream"
# EVENTS-01
check the_stream_begins_with_a_snapshot wait_until 30 grep -q SeenChanged "$work/stream"
is the_snapshot_is_the_state "$(replayed)" "$(one members -o name | sort)"
check the_snapshot_says_that_it_is_one grep -q '"status":"Up".*"snapshot":true' "$work/stream"
expect leave_dry_run_foresees 0 one leave --dry-run "127.0.0.1:$port2"
has leave_dry_run_tells_what_the_next_crash_does "once it has left, one member is left: the next crash ends the cluster" "$work/out"
# CLI-03, MBeanSpec
expect leave_other 0 one leave "127.0.0.1:$port2" --timeout 60s
has leave_tells_what_the_next_crash_does "the next crash ends the cluster" "$work/out"
ended node_that_left_ends_with_0 "${pids[-1]}" 0
# So long it waits for a leave that cannot end: clients must have asked by then, and a sanitizer's need a second to start.
leave_timeout=4s
[ -z "$sanitizer" ] || leave_timeout=12s
node 2 "$port2" --seed "$A" --set "cluster.leave-timeout=$leave_timeout" --set cluster.downing.active-strategy=manual
expect third_time 0 two wait --members 2 --converged --timeout 60s
is_replayed() { grep -q '"MemberRemoved"' "$work/stream" && [ "$(replayed)" = "$(one members -o name | sort)" ]; }
# EVENTS-01
if wait_until 60 is_replayed; then pass the_stream_replayed_gives_the_state; else fail the_stream_replayed_gives_the_state "$(replayed)"; fi
# EVENTS-05
check who_is_removed_says_what_it_was grep -q '"type":"MemberRemoved".*"previousStatus":"Exiting"}' "$work/stream"
kill "$stream"; wait "$stream" 2>/dev/null
second=${pids[-1]} first=${pids[0]}
kill -9 "$first"; wait "$first" 2>/dev/null; forget "$first"
wait_until 60 bash -c '[ -n "$("$0" --socket "$1" unreachable -o name)" ]' "$troupe" "$work/2.sock" || fail killed_is_unreachable
# CLI-07, MBeanSpec
is unreachable_names_the_killed_one "$(two unreachable -o name)" "$A"
expect unreachable_of_the_survivor 0 two unreachable
# CLI-07
has unreachable_says_who_sees_it "$B"
view() { two cluster-status -o table | tr '\t\n' ' |'; }
member_is() { echo " Member(address = $1, status = Up)|"; }
first_two=$(member_is "$A")$(member_is "$B")
[ "$port1" -lt "$port2" ] || first_two=$(member_is "$B")$(member_is "$A")
# CLI-08, MBeanSpec
is cluster_status_is_the_whole_view "$(view)" "Members:|$first_two""Unreachable:| Member(address = $A)|"
# Of two, the half with the lower address may go on without the other.
helps="do not mark it Down here"
[ "$port2" -gt "$port1" ] || helps="troupe down $A"
expect why_the_survivor_waits 1 two why
has why_names_who_sees_it "unreachable ${A#*://} (Up)" && has why_says_on_whose_word "says ${B#*://}" && has why_says_what_helps "$helps"
expect status_of_the_survivor 1 two status
has status_says_what_blocks "unreachable ${A#*://} (Up)" && has status_says_what_helps "$helps"
background "$troupe" --socket "$work/2.sock" leave --timeout 60s >"$work/given-up" 2>&1
given_up=$started
says leave_cannot_end_and_says_what_it_waits_for 75 "$port1" two leave --timeout 500ms
ended leave_that_was_given_up_is_no_success "$given_up" 75
has leave_that_was_given_up_says_so "leaving took longer than cluster.leave-timeout ($leave_timeout)" "$work/given-up"
ended leave_timeout_ends_with_75 "$second" 75
expect stale_socket 69 one members
has stale_socket_is_named "no process listens" "$work/err"
begin=$(now_ms)
expect wait_ends_without_a_node 69 one wait --members 1 --timeout 1s
if [ $(($(now_ms) - begin)) -ge 1000 ]; then pass wait_waits_for_the_node_that_replaces_it; else fail wait_waits_for_the_node_that_replaces_it; fi
node 1 "$port1" # replaces the stale socket
wait_until 60 one members && pass stale_socket_is_replaced || fail stale_socket_is_replaced "$(tail -n 2 "$work/node-1.log")"
kill -TERM "${pids[-1]}"
ended node_that_never_joined_ends_with_0 "${pids[-1]}" 0

# ---- nodes of two systems, and no --system
up_in() { [ "$("$troupe" --system "$1" member-status)" = Up ]; }
for name in "alpha$$" "beta$$"; do
    background "$troupe" node --system "$name" --host 127.0.0.1 --port 0 --seed self >"$work/node-$name.log" 2>&1
    wait_until 60 up_in "$name" || fail "node_of_${name%%[0-9]*}" "$(tail -n 2 "$work/node-$name.log")"
done
expect two_systems_need_a_choice 64 "$troupe" members
has first_system_is_named "alpha$$" "$work/err"
has second_system_is_named "beta$$" "$work/err"
has option_is_named "--system NAME" "$work/err"
expect a_choice_is_enough 0 "$troupe" --system "beta$$" member-status
for index in -2 -1; do kill -TERM "${pids[index]}"; done
for index in 1 2; do ended "node_of_a_system_ends_with_0_$index" "${pids[-1]}" 0; done
test_end
