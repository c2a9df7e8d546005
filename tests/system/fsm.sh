#!/bin/bash
# fsm.sh - `troupe fsm dot` draws the state machine of a shared object, without a node. Proves FSM-2.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
object=$build/examples/.libs/buncher_drawing.so

expect it_is_drawn 0 "$troupe" fsm dot "$object" buncher
cp "$work/out" "$work/drawing"
cat >"$work/expected" <<'END'
digraph "buncher" {
    node [shape=box, style=rounded];
    __first [shape=point];
    "IDLE";
    "ACTIVE" [label="ACTIVE\n100 ms"];
    __first -> "IDLE";
    "IDLE" -> "ACTIVE" [label="queue"];
    "ACTIVE" -> "IDLE" [label="flush, or a pause"];
}
END
check the_drawing_has_states_limits_and_edges diff "$work/expected" "$work/drawing"
cp "$object" "$work/buncher.so"
expect a_bare_name_is_a_file_here 0 bash -c 'cd "$1" && "$2" fsm dot buncher.so buncher' - "$work" "$troupe"
expect a_machine_that_is_not_exported 68 "$troupe" fsm dot "$object" punchcard
has the_refusal_says_what_to_do "name it by TRP_FSM_EXPORT(NAME, &definition): punchcard" "$work/err"
expect no_shared_object 68 "$troupe" fsm dot "$work/none.so" buncher
has the_missing_one_is_named "none.so" "$work/err"
expect a_name_that_is_none_in_c 64 "$troupe" fsm dot "$object" 'bunch er'
expect no_verb 64 "$troupe" fsm
expect another_verb 64 "$troupe" fsm draw "$object" buncher
expect help 0 "$troupe" fsm --help
expect closed_stdout 74 bash -c '"$0" fsm dot "$1" buncher >/dev/full' "$troupe" "$object"
test_end
