#!/bin/bash
# stack.sh - the stack of an actor that does not end its turn, taken by troupe doctor from outside: it names the function and the
# call, disturbs neither the call nor the program, and what forbids it is said with what to do.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
# The name of the plugin's file has an order for a terminal, and a byte that is no UTF-8.
many=$work/$'many\e[31m\xff.so'
cp "$build/tests/system/.libs/many.so" "$many"
background "$troupe" node --port 0 --socket "$work/one.sock" --seed self --load "$many:5" 2>"$work/one.log"
node=$started
troupe() { "$troupe" --socket "$work/one.sock" "$@"; }
doctor() { troupe doctor "$@" >"$work/found" 2>"$work/found.err" || [ $? -eq 1 ]; }
found() { grep -qE "$1" "$work/found"; }
check the_node_is_up wait_until 60 troupe is-available
no_stack() { doctor && found '^ ok +stuck ' && ! found 'stack of'; }
check nothing_is_stuck_and_no_stack_is_taken wait_until 60 no_stack

: >"$work/held"
check a_message_that_holds troupe send /user/mule "hold $work/held"
is_stuck() { doctor && found '^ FAIL +stuck +/user/mule '; }
check it_is_named wait_until 60 is_stuck

# A host without libdw: an empty file in its place.
mkdir "$work/without"
: >"$work/without/libdw.so.1"
without() { LD_LIBRARY_PATH=$work/without doctor && found 'no stack of /user/mule: libdw.so.1 cannot be loaded .*apt-get install libdw1'; }
check a_library_that_is_missing_is_named wait_until 60 without
if ! python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null; then
    skip "libdw1 is not installed (deploy/bootstrap --tests)"
fi

has_stack() { doctor && found 'stack of /user/mule \(thread [0-9]+, which stood still for [0-9.]+ ms\):'; }
check its_stack_is_taken wait_until 60 has_stack
check it_names_the_function_of_the_behaviour found '#[0-9]+ +mule_receive in many[?]\[31m[?]\.so( \(many.c:[0-9]+\))?$'
bare() { ! LC_ALL=C grep -q "[$1]" "$work/found"; }
check no_terminal_obeys_the_name_of_a_file bare $'\001-\010\013-\037\177\377'
check it_names_the_call_that_waits found '#[0-9]+ +(.*sleep) in '
check it_ends_where_the_thread_began found 'worker_main in libtroupe'
json() {
    troupe doctor -o json >"$work/json" 2>"$work/json.err" || [ $? -eq 1 ]
    python3 - "$work/json" <<'END'
import json, sys
stuck, = (f for f in json.load(open(sys.argv[1]))["findings"] if f["id"] == "stuck")
thread, = stuck["threads"]
assert thread["actor"] == "/user/mule" and thread["thread"] > 0
assert any(f.startswith("mule_receive in many\x1b[31m?.so") for f in thread["frames"]) and thread["cut"] is False
assert 0 < thread["stoppedMs"] < 1000, thread["stoppedMs"] # STOP_MS and FRAMES_MS, and the machine
END
}
check json_has_the_same wait_until 60 json
reported() {
    troupe report -O "$work/report.tar.gz" >/dev/null 2>"$work/report.err" &&
        tar -xzOf "$work/report.tar.gz" --wildcards '*/doctor.json' | grep -q '"mule_receive in many'
}
check a_report_has_it_too wait_until 60 reported
tracer_is() { grep -q "^TracerPid:[[:space:]]*$1\$" "/proc/$node/status"; }
check no_tracer_stays tracer_is 0
# Where a process may not be traced: root without this right, as a user who is not root.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    refused() {
        setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$troupe" --socket "$work/one.sock" doctor >"$work/found" 2>"$work/found.err"
        found "no stack of /user/mule: root may not trace process $node here: the tool lacks CAP_SYS_PTRACE"
    }
    check root_without_the_right_is_told_which wait_until 60 refused
fi
rm "$work/held"
well() { doctor && found '^ ok +stuck '; }
check the_turn_ends_as_if_nobody_had_looked wait_until 60 well
check the_actor_works_on troupe send /user/mule hello
check the_node_lives troupe is-available
test_end
