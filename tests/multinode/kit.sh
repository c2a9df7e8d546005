#!/bin/bash
# kit.sh - the multi-node kit and its launcher: what passes, what fails and why, hosts reached by other programs, exit codes.
# MNT-01 to -16, TestConductorSpec, MultiNodeSpecSpec.
. "$(dirname "$0")/lib.sh"
test_begin
factor=(--timefactor 4) half=(--timefactor 2) # silence, which the detector times, takes 3 s times that
[ -z "$sanitizer" ] || factor=(--timefactor 8) half=(--timefactor 4)
program=$build/tests/multinode/kit_program
kit() { # CASE [OPTION]...: its output in $work/CASE.log, its exit code in $work/CASE.code
    local name=$1 code=0
    shift
    "$troupe" multinode "${factor[@]}" "$@" "$program" -- "$name" --set app.given=by-argument >"$work/$name.log" 2>&1 || code=$?
    echo "$code" >"$work/$name.code"
}
code_is() { is "$1" "$(cat "$work/$2.code")" "$3"; } # NAME CASE CODE
said() { has "$1" "$3" "$work/$2.log"; } # NAME CASE TEXT
failed_with() { # NAME CASE REASON ROLE...: each on its own line; REASON is for grep -E
    local name=$1 log=$work/$2.log reason=$3 role
    shift 3
    for role; do
        if grep -qE "^\[$role\] FAIL $role: .*$reason" "$log"; then pass "${name}_$role"; else fail "${name}_$role" "$(grep -F FAIL "$log")"; fi
    done
}
times() { sed -n "s/^\[[a-z]*\] $1 at //p" "$work/ends.log" | sort -n; } # WORD: in ms, the first one first

# All at once: most of the time they wait.
cases=(all cluster released ends wrong fails first-fails late lost first-lost)
jobs=()
for name in "${cases[@]}"; do
    case $name in
    all) kit all & ;;
    *lost) kit "$name" --ports "${half[@]}" & ;;
    *) kit "$name" --ports & ;;
    esac
    jobs+=($!)
done

# ---- the launcher, meanwhile
says no_program_is_a_usage_error 64 "Usage: troupe multinode" "$troupe" multinode
says unknown_option 64 "no option --nope" "$troupe" multinode --nope x
says no_such_program 64 "no program nonsense-of-mine" "$troupe" multinode nonsense-of-mine
says nodes_are_limited 64 "from 1 to 64" "$troupe" multinode -n 65 true
says some_node_is_needed 64 "from 1 to 64, not '0'" "$troupe" multinode -n 0 true
says a_program_without_roles_needs_a_number 1 "need --nodes N" "$troupe" multinode true
says a_node_of_a_test_needs_its_place 64 "MULTINODE_INDEX is not set" "$program" all
expect help_of_the_launcher 0 "$troupe" multinode --help
has help_names_the_options "--hosts FILE"
# MNT-13
expect any_program_runs_together 0 "$troupe" multinode --ports -n 3 printenv -- MULTINODE_INDEX
# MNT-13
has output_has_the_role_in_front "[node3] 2"
expect time_ends_a_test 75 "$troupe" multinode --ports -n 2 --timeout 1 sleep -- 60
has who_did_not_end_is_named "node2 did not end" "$work/err"
# shellcheck disable=SC2016 # expanded there
expect time_ends_what_they_started 75 "$troupe" multinode --ports -n 1 --timeout 1 sh -- -c 'sleep 600 & echo $! >"$0"; wait' "$work/child"
gone() { grep -q '^State:.[ZX]' "/proc/$(cat "$1")/status" 2>/dev/null || ! kill -0 "$(cat "$1")" 2>/dev/null; }
check nothing_of_it_is_left wait_until 60 gone "$work/child"
# shellcheck disable=SC2016
expect an_ended_process_leaves_nothing 0 "$troupe" multinode --ports -n 1 sh -- -c 'sleep 600 & echo $! >"$0"' "$work/orphan"
check not_even_its_child wait_until 60 gone "$work/orphan"
expect roles_are_told 0 env MULTINODE_INDEX=roles "$program"
# MNT-05
is roles_in_order "$(tr '\n' ' ' <"$work/out")" "first second third fourth "

# MNT-14: options for one role stand in a file
printf '%s\n' '--set' 'app.nonsense {' >"$work/bad.first.opts"
cp "$build/examples/.libs/multinode" "$work/example" 2>/dev/null || cp "$build/examples/multinode" "$work/example"
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

cp "$work/example" "$work/bad"
{
    "$troupe" multinode --ports --timefactor 0.5 "$work/bad" >"$work/bad.log" 2>&1
    echo $? >"$work/bad.code"
} & jobs+=($!)

# MNT-09: the limit for finding the conductor, 20 s, by a factor
begun=$(now_ms)
expect a_node_without_conductor_ends 1 env MULTINODE_INDEX=1 MULTINODE_SERVER_PORT=1 MULTINODE_TIMEFACTOR=0.05 "$work/example"
has it_says_whom_it_missed "the first node of the test does not answer at" "$work/err"
# MNT-09
check not_before_its_time [ $(($(now_ms) - begun)) -ge 1000 ]

# MNT-11: hosts that are reached by a shell of their own; here that shell and the copying are scripts
cat >"$work/ssh" <<'END'
#!/bin/sh
shift
cd "$HOME" && exec sh -c "$1"
END
cat >"$work/rsync" <<'END'
#!/bin/sh
host=${3%%:*} && echo "copied $host" >>"$COPIES" && mkdir -p "${3#*:}" && exec cp "$2" "${3#*:}"
END
chmod +x "$work/ssh" "$work/rsync"
printf '%s\n' '# two hosts' "me@127.0.0.1:$work/a b" "127.0.0.1:$work/ab" >"$work/hosts"
hosts_port
# MNT-11
expect a_test_runs_on_hosts 0 env HOME="$work" COPIES="$work/copies" MULTINODE_SSH="$work/ssh" MULTINODE_RSYNC="$work/rsync" \
    "$troupe" multinode "${factor[@]}" --hosts "$work/hosts" --server-port "$hosts_free" "$work/example"
has hosts_ran_the_test "[first] pong" && has hosts_are_told "PASS example (2 nodes, hosts)"
# MNT-11
is each_host_got_a_copy "$(sort -u "$work/copies" | tr '\n' ' ')" "copied 127.0.0.1 copied me@127.0.0.1 "
says hosts_must_be_enough 64 "2 roles, and" "$troupe" multinode --hosts /dev/null "$work/example"
# MNT-12
expect several_tests_in_one_go 0 "$troupe" multinode --ports "${factor[@]}" "$work/example" "$work/example"
# MNT-12
is both_of_them_ran "$(grep -cxF "PASS example (2 nodes, ports)" "$work/out")" 2
expect one_that_is_missing_is_told 64 "$troupe" multinode --ports "${factor[@]}" "$work/example" "$work/no-such"
has the_first_of_them_ran "PASS example (2 nodes, ports)"

# ---- the kit
wait "${jobs[@]}"
# MNT-14
code_is a_role_has_options_in_a_file bad 1
said options_in_a_file_are_read bad "[first] multinode: settings app.nonsense {"
# MNT-01, MNT-02, MNT-03, MNT-05, MNT-07, MNT-10, TestConductorSpec, MultiNodeSpecSpec
code_is the_whole_test_passes all 0
# MNT-06, MultiNodeSpecSpec
said first_comes_to_the_end all "[first] done"
# MNT-06, MNT-14
said second_comes_to_the_end all "[second] done"
said fourth_comes_to_the_end_twice all "[fourth] done"
said the_launcher_says_so all "PASS kit_program (4 nodes, "
# MNT-15
code_is a_cluster_is_tested_by_its_events cluster 0
# MNT-07
code_is released_nodes_outlive_the_first released 0
# TestConductorSpec
code_is time_fails_a_barrier_and_all_later_ones late 0
code_is beginning_and_end_are_barriers ends 0 # MNT-16
is all_four_begin "$(times begins | wc -l)" 4
# MNT-16
check nobody_begins_before_the_last_one_starts [ "$(times begins | head -n 1)" -ge "$(times starts)" ]
is the_others_leave "$(times leaves | wc -l)" 3
# MNT-16, MultiNodeSpecSpec
check the_first_node_leaves_last [ "$(times 'is over')" -ge "$(times leaves | tail -n 1)" ]
code_is another_name_fails_the_test wrong 1
there="second entered barrier 'there' while others wait at 'here'" # if another one came first, which is not determined
here="(first|third|fourth) entered barrier 'here' while others wait at 'there'"
failed_with wrong_barrier_fails wrong "cancelled; ($there|$here)" first second third fourth
code_is a_failed_check_fails_the_test fails 1
said who_fails_says_where fails "kit_program.c:"
failed_with a_failure_is_told_to fails 'cancelled; second failed: !trp_multinode_is\(test, "second"\)' first third fourth
code_is the_first_node_can_fail first-fails 1
failed_with its_failure_is_told_to first-fails 'cancelled; first failed: !trp_multinode_is\(test, "first"\)' second third fourth
# MNT-08
code_is a_lost_node_fails_the_test lost 1
failed_with a_lost_node_fails lost "cancelled; third was lost before barrier 'here'" first second fourth
said who_is_left_ends_as_failed lost "[multinode] fourth ended, exit 1"
code_is the_lost_conductor_fails_the_test first-lost 1
failed_with the_lost_conductor_fails first-lost "the first node, which conducts the test, is lost" second third fourth
[ "$failures" -eq 0 ] || for name in "${cases[@]}"; do sed "s/^/$name: /" "$work/$name.log"; done >&2
test_end
