#!/bin/bash
# sim.sh - `troupe sim`: its exit codes, a scenario of one's own, what it says when an invariant breaks, and --shrink.
. "$(dirname "$0")/lib.sh"
test_begin
sim() { "$troupe" sim "$@"; }
expect a_run_that_holds_ends_with_0 0 sim --nodes 3 --seed 7 --until 20s
is it_prints_one_line "$(grep -cE '^seed 7 trace hash [0-9a-f]{16}$' "$work/out")" 1
cp "$work/out" "$work/first"
expect the_same_again 0 sim --nodes=3 --seed=7 --until 20
is a_seed_has_one_history "$(<"$work/out")" "$(<"$work/first")"
expect several_seeds 0 sim --nodes 3 --faults swarm --seed 1 --seeds 3
is each_seed_has_its_line "$(grep -c '^seed [123] trace hash' "$work/out")" 3

printf '%s\n' '# one of five dies, and the others remove it' '0s stable-after 3s' '20s kill 4' '60s end' >"$work/holds"
expect a_file_is_a_scenario 0 sim --nodes 5 --scenario "$work/holds"
printf '%s\n' '0s downing manual' '20s kill 4' '21s pause 3 500ms' '60s end' >"$work/breaks"
expect a_broken_invariant_ends_with_1 1 sim --nodes 5 --seed 3 --scenario "$work/breaks"
has it_says_which_seed "seed 3 FAILED" "$work/err"
has it_says_how_to_see_it_again "replay: troupe sim --nodes 5 --seed 3 --scenario $work/breaks --trace" "$work/err"
expect what_fails_is_shrunk 1 sim --nodes 5 --seed 3 --scenario "$work/breaks" --shrink
has it_says_how_much_is_left " of 4 actions; troupe sim --nodes 5 --seed 3 --scenario THIS-FILE"
lacks what_does_not_matter_is_gone " pause "
cp "$work/out" "$work/shrunk"
expect what_is_printed_is_a_scenario_that_fails_too 1 sim --nodes 5 --seed 3 --scenario "$work/shrunk"

sim --break learn-pause --until 1s >/dev/null 2>"$work/err" && broken=yes || broken=
if [ -n "$broken" ]; then
    expect a_deliberate_fault_is_caught 1 sim --nodes 5 --faults swarm --seeds 10 --break no-tombstones
    has its_replay_names_the_fault "--break no-tombstones" "$work/err"
else
    expect deliberate_faults_are_for_developers 69 sim --break learn-pause
    has it_says_which_build "--enable-developer" "$work/err"
fi

expect an_option_that_is_unknown 64 sim --node 3
has the_right_one_is_named "did you mean --nodes?" "$work/err"
expect a_value_that_is_missing 64 sim --nodes
expect no_nodes 64 sim --nodes 0
expect a_time_that_is_none 64 sim --until soon
expect a_fault_that_is_none 64 sim --break everything
expect a_file_that_is_not_there 64 sim --scenario "$work/none"
has the_named_ones_are_listed "swarm" "$work/err"
echo "20s explode 4" >"$work/wrong"
expect a_line_that_is_wrong 65 sim --nodes 5 --scenario "$work/wrong"
test_end
