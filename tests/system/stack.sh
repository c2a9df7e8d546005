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

# A turn that computes, and waits in no call: the frame of the loop is the innermost one.
: >"$work/held"
check a_message_that_spins troupe send /user/mule "spin $work/held"
spins() { doctor && found '#0 +mule_spin in many[?]\[31m[?]\.so( \(many.c:[0-9]+\))?$' && found '#1 +mule_receive in many'; }
check the_stack_of_a_loop_is_taken wait_until 60 spins
check its_tracer_is_gone tracer_is 0
rm "$work/held"
check the_loop_goes_on_to_its_end wait_until 60 well

# Another user than root, who runs node and tool: it may trace its own processes, but for hosts where yama forbids that.
scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null)
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null || ! id nobody >/dev/null 2>&1; then
    echo "not tried: a user who is not root (needs root, setpriv and the user nobody)"
    test_end
fi
theirs=$(mktemp -d) # nobody cannot enter $work
chmod 755 "$theirs"
chown nobody "$theirs"
as_nobody=(env STATE_DIRECTORY="$theirs" setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups --inh-caps -all "$troupe")
if ! "${as_nobody[@]}" version >/dev/null 2>&1; then
    echo "not tried: a user who is not root (nobody cannot run $troupe)"
    rm -r "$theirs"
    test_end
fi
background "${as_nobody[@]}" node --port 0 --socket "$theirs/two.sock" --seed self --load "$build/tests/system/.libs/many.so:5" 2>"$work/two.log"
two() { "${as_nobody[@]}" --socket "$theirs/two.sock" "$@"; }
two_doctor() { two doctor >"$work/found" 2>"$work/found.err" || [ $? -eq 1 ]; }
check a_node_of_another_user_is_up wait_until 60 two is-available
: >"$theirs/held"
check it_holds_a_thread two send /user/mule "hold $theirs/held"
case $scope in
"" | 0)
    echo "not tried: the refusal by yama (kernel.yama.ptrace_scope is ${scope:-not there})"
    seen() { two_doctor && found 'mule_receive in many.so'; }
    ;;
3) seen() { two_doctor && found 'no stack of /user/mule: this host lets no process be traced'; } ;;
*) seen() { two_doctor && found 'no stack of /user/mule: this user may not trace process [0-9]+ \(kernel.yama.ptrace_scope\).*sudo troupe doctor'; } ;;
esac
check what_that_user_sees wait_until 60 seen
rm -r "$theirs"
test_end
