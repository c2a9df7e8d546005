#!/bin/bash
# top.sh - troupe top against a real node: a stuck actor is the first row, and no actor is asked.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
background "$troupe" node --port 0 --socket "$work/one.sock" --seed self --load "$build/tests/system/.libs/many.so:50" 2>"$work/one.log"
node=$started
troupe() { "$troupe" --socket "$work/one.sock" "$@"; }
check the_node_is_up wait_until 60 troupe is-available

check it_prints_once_without_a_terminal troupe top
has it_counts_actors "msg/s" "$work/out"
has it_has_a_head "PATH" "$work/out"
lacks it_draws_nothing_for_no_terminal $'\033' "$work/out"
expect json_of_it 0 troupe top -o json
cp "$work/out" "$work/top"
check json_is_json python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/top"

: >"$work/held"
check a_message_that_holds troupe send /user/mule "hold $work/held"
expect a_message_behind_it_waits 75 troupe send /user/mule x --timeout 300ms
first_is() { troupe top >"$work/top" 2>"$work/err" && sed -n 3p "$work/top" | grep -q "$1"; }
check the_stuck_actor_is_first wait_until 60 first_is '^/user/mule .* mule .*one message for'
waits() { troupe top -o json >"$work/top" 2>"$work/err" && grep -q '"heldMs": *[0-9]' "$work/top" && grep -q '"ageMs": *[0-9]' "$work/top"; }
check its_message_waits wait_until 60 waits
names() { troupe top -o name >"$work/top" 2>"$work/err" && grep -qx /user/mule "$work/top"; }
check names_are_paths wait_until 60 names
rm "$work/held"
gone() { troupe top -o name >"$work/top" 2>"$work/err" && ! grep -qx /user/mule "$work/top"; }
check it_is_gone_when_it_goes_on wait_until 60 gone

expect a_count_ends_it 0 troupe top --count 2 --watch=0.2
is a_count_is_a_number_of_pictures "$(grep -c '^PATH' "$work/out")" 2
expect a_count_of_nothing_is_refused 64 troupe top --count 0
expect an_argument_is_refused 64 troupe top x
python3 - "$troupe" "$work/one.sock" >"$work/pty" 2>&1 <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "--socket", sys.argv[2], "top", "--count", "2"])
seen = b""
try:
    while True:
        part = os.read(fd, 4096)
        if not part:
            break
        seen += part
except OSError:
    pass
print("code", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "pictures", seen.count(b"\x1b[H\x1b[J"), "heads", seen.count(b"PATH"))
PY
is a_terminal_is_drawn_anew "$(cat "$work/pty")" "code 0 pictures 2 heads 2"
kill -TERM "$node"
ended the_node_leaves "$node" 0
expect without_a_node_it_says_so 69 troupe top
test_end
