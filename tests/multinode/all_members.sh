#!/bin/bash
# all_members.sh - --all-members: the answers of every member to status, why, peers and doctor through one of them; one that says no,
# one that is silent.
. "$(dirname "$0")/lib.sh"
hosts_begin 3
for index in 1 2 3; do start_node "$index" --set cluster.downing.active-strategy=manual; done
wait_until 60 all_up 3 1 2 3 || { fail all_come_up; test_end; }
rows() { grep -c "$1" "$work/out"; } # PATTERN: lines of it
count() { grep -o "$1" "$work/out" | wc -l; }
well() { ctl 2 "$1" --all-members >"$work/out" 2>"$work/err"; }

check each_member_is_healthy wait_until 60 well status
is each_has_its_heading "$(grep '^== ' "$work/out" | sort | tr '\n' ' ')" "$(for index in 1 2 3; do echo "== $(addr "$index")"; done | sort | tr '\n' ' ')"
is each_tells_of_itself "$(rows '^  this node ')" 3
check nothing_keeps_any_from_agreeing wait_until 60 well why
is each_says_so "$(rows '^all agree ')" 3
check the_peers_of_each_are_listed wait_until 60 well peers
is each_has_a_table "$(rows '^ADDRESS ')" 3
expect status_as_json 0 ctl 2 status --all-members -o jsonl
is_json status_json_is_json
is each_says_yes "$(count '"yes":true')" 3
is the_one_that_was_asked_is_the_first "$(grep -o '"members":\[{"node":"[^"]*"' "$work/out")" "\"members\":[{\"node\":\"$(addr 2)\""
has none_is_silent '"silent":[]'
expect names_of_all 0 ctl 2 status --all-members -o name
is names_are_three "$(sort -u "$work/out" | wc -l)" 3
# Hosts of the test may have too little memory or protection, which is a finding and exit 1.
doctors() { ctl 2 doctor --all-members -o jsonl >"$work/out" 2>"$work/err" || [ $? -eq 1 ]; }
check each_examines_itself wait_until 60 doctors
is_json doctor_json_is_json
is each_has_findings "$(count '"findings":\[')" 3
is each_was_answered_by_the_others "$(count '"id":"members","level":"ok"')" 3
doctors() { ctl 2 doctor --all-members >"$work/out" 2>"$work/err" || [ $? -eq 1 ]; }
check the_table_has_all_findings wait_until 60 doctors
is joined_stands_thrice "$(rows '^ ok    joined ')" 3
expect no_figures_for_a_collector 64 ctl 2 status --all-members -o prom
expect another_command_has_no_such_flag 64 ctl 2 members --all-members

freeze "${node_pid[3]}"
# shellcheck disable=SC2154 # of lib.sh
silent() { ctl 1 peers --all-members >"$work/out" 2>"$work/err"; [ $? -eq 75 ]; }
check a_silent_member_is_75 wait_until 60 silent
has it_is_named "1 member has not answered: $(addr 3 | sed 's|.*//||')" "$work/err"
is the_others_are_told "$(rows '^ADDRESS ')" 2
has its_place_says_so "no answer: "
check it_becomes_unreachable wait_until 60 sees_unreachable "$(addr 3)" 1 2
expect one_that_says_no_is_1 1 ctl 1 why --all-members
is both_name_the_cause "$(rows '^  unreachable ')" 2
has the_silent_one_is_still_named "1 member has not answered" "$work/err"
expect no_is_1_in_json 1 ctl 1 status --all-members -o jsonl
is both_say_no "$(count '"yes":false')" 2
is the_silent_one_says_nothing "$(count '"yes":null')" 1
has the_silent_one_is_listed "\"silent\":[\"$(addr 3)\"]"
kill -CONT "${node_pid[3]}"
check all_are_well_again wait_until 90 well why
test_end
