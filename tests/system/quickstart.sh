#!/bin/bash
# quickstart.sh - deploy/quickstart with this build: on namespaces, on ports, and interrupted in the middle.
. "$(dirname "$0")/lib.sh"
test_begin
quick=$src/deploy/quickstart
export TMPDIR=$work # everything it makes is below
left_behind() { find "$work" -maxdepth 1 -name 'troupe-quickstart.*' | grep -q . || pgrep -f "$work/troupe-quickstart" >/dev/null; }

shown() { # NAME FILE: the life of the cluster is on the screen
    has "$1_three_up" "3 members, 0 unreachable" "$2"
    has "$1_reply_from_the_second_host" "hello from host 1" "$2"
    has "$1_unreachable" "3 members, 1 unreachable" "$2"
    has "$1_removed" "MemberRemoved" "$2"
    has "$1_back_and_answering" "welcome back" "$2"
    has "$1_left" "Removed" "$2"
    has "$1_stopped" "All seen and stopped" "$2"
    lacks "$1_no_escape_codes" $'\033' "$2"
    if ! wait_until 60 eval '! left_behind'; then fail "$1_leaves_nothing" "$(pgrep -af "$work/troupe-quickstart"; ls "$work")"; else pass "$1_leaves_nothing"; fi
}
# The killed node is looked at between its being found and its being downed; a sanitizer's clients are slow to look.
stable=()
[ -z "$sanitizer" ] || stable=(--stable-after 12s)
run() { "$quick" --build "$build" "${stable[@]}" "$@" 2>&1; }
expect default_exits_0 0 run
cp "$work/out" "$work/first"
shown default "$work/first"
grep -m 1 -E '^== Three' "$work/first"
measure quickstart_s "$(sed -n 's/.*stopped, \([0-9]*\) s in all.*/\1/p' "$work/first")" s
expect ports_exits_0 0 run --ports
cp "$work/out" "$work/second"
shown ports "$work/second"
has ports_says_why "because ports were asked for" "$work/second"
expect interrupted_exits_130 130 timeout --preserve-status -s INT 5 "$quick" --build "$build" --ports
if wait_until 60 eval '! left_behind'; then pass interrupted_leaves_nothing; else fail interrupted_leaves_nothing "$(pgrep -af "$work/troupe-quickstart")"; fi
expect unknown_argument_is_usage 64 "$quick" --bogus
[ "$failures" -eq 0 ] || tail -n 60 "$work/first" "$work/second" >&2
test_end
