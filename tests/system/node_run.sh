#!/bin/bash
# node_run.sh - a program that calls trp_node_run(): options, settings of its own, signals, exit codes.
. "$(dirname "$0")/lib.sh"
test_begin
member=$build/examples/member
program=$build/tests/system/node_run_program
hosts_port || { fail "a free port"; test_end; }
seed=troupe.tcp://demo@127.0.0.1:$hosts_free
run() { # N PROGRAM OPTION...
    local number=$1
    shift
    background "$@" --socket "$work/$number.sock" >"$work/$number.out" 2>"$work/$number.log"
}
ctl() {
    local number=$1
    shift
    "$troupe" --socket "$work/$number.sock" "$@"
}
up() { [ "$(ctl "$1" member-status)" = Up ]; }

# ---- two members that are found, asked, and leave
run 1 "$member" --port "$hosts_free" --seed self
first=$started
wait_until 60 up 1 && pass a_program_of_ten_lines_is_a_member || fail a_program_of_ten_lines_is_a_member "$(tail -n 2 "$work/1.log")"
run 2 "$member" --port 0 --seed "$seed"
second=$started
wait_until 60 up 2 && pass another_joins_by_its_options || fail another_joins_by_its_options "$(tail -n 2 "$work/2.log")"
expect an_actor_of_start_is_asked_from_the_other 0 ctl 2 ask "$seed/user/greeter" hello
has its_answer_comes "good day"
kill -TERM "$second"
ended a_signal_ends_the_program_with_0 "$second" 0
has a_signal_leaves_first "leaving the cluster" "$work/2.log"
expect leave_ends_the_program 0 ctl 1 leave
ended troupe_leave_ends_the_program_with_0 "$first" 0

# ---- help, a mistake in an option
expect help_is_of_this_program 0 "$member" --help
has help_names_the_program "member [OPTION]..."
expect a_wrong_option_is_64 64 "$member" --sead self
has the_right_option_is_suggested "--seed" "$work/err"
expect a_wrong_key_is_78 78 "$member" --set cluster.gosip-interval=1s

# ---- settings of the program: over the environment, below the command line
TROUPE_APP_GREETING="from the environment" run 3 "$program"
third=$started
wait_until 60 test -s "$work/3.out"
is the_program_has_settings_of_its_own "$(cat "$work/3.out")" "hello from the program"
kill -INT "$third"
ended int_ends_the_program_with_0 "$third" 0
run 4 "$program" --set app.greeting="from the command line"
fourth=$started
wait_until 60 test -s "$work/4.out"
is the_command_line_is_stronger "$(cat "$work/4.out")" "hello from the command line"
kill -TERM "$fourth"
ended term_ends_the_program_with_0 "$fourth" 0

# ---- a program that writes the log itself has the dump in it, whatever log.level is
OWN_LOG=1 run 6 "$program" --log-level error <>"$work/6.in"
sixth=$started
wait_until 60 grep -q hello "$work/6.out"
kill -USR2 "$sixth"
check usr2_dumps_into_the_log_of_the_program wait_until 30 grep -q 'own log: end of the dump' "$work/6.out"
is the_dump_does_not_go_to_standard_input "$(cat "$work/6.in")" ""
kill -TERM "$sixth"
ended a_program_with_its_own_log_ends_with_0 "$sixth" 0
OWN_LOG=1 run 7 "$program" --log-file "$work/unused.log"
seventh=$started
check a_file_that_is_not_used_is_said wait_until 60 grep -qF "own log: log.file is not used: this program takes the lines of the log itself file=$work/unused.log" "$work/7.out"
kill -TERM "$seventh"
ended a_program_with_a_file_that_is_not_used_ends_with_0 "$seventh" 0

# ---- a start that fails ends the program, and says why
expect a_start_that_fails_is_70 70 "$program" --set app.start=no-memory --socket "$work/5.sock"
has the_reason_of_a_failed_start_is_logged "the program failed at its start, the node ends: out of memory" "$work/err"
expect a_start_that_refuses_its_configuration_is_78 78 "$program" --set app.start=config --socket "$work/5.sock"
test_end
