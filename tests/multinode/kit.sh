#!/bin/bash
# kit.sh - the multi-node kit and its launcher: what passes, what fails and why, hosts reached by other programs, exit codes.
# MNT-01 to -16, TestConductorSpec, MultiNodeSpecSpec.
. "$(dirname "$0")/lib.sh"
test_begin
factor=(--timefactor 1)
[ -z "$sanitizer" ] || factor=(--timefactor 4)
program=$build/tests/multinode/kit_program
kit() { # CASE [OPTION]...: its output in $work/CASE.log, its exit code in $work/CASE.code
    local name=$1 code=0
    shift
    "$troupe" multinode "${factor[@]}" "$@" "$program" -- "$name" --set app.given=by-argument >"$work/$name.log" 2>&1 || code=$?
    echo "$code" >"$work/$name.code"
}
code_is() { is "$1" "$(cat "$work/$2.code")" "$3"; } # NAME CASE CODE
said() { has "$1" "$3" "$work/$2.log"; } # NAME CASE TEXT

# All at once: most of the time they wait.
kit all & jobs=($!)
for name in cluster released wrong fails late lost first-lost; do
    kit "$name" --ports & jobs+=($!)
done

# ---- the launcher, meanwhile
says no_program_is_a_usage_error 64 "Usage: troupe multinode" "$troupe" multinode
says unknown_option 64 "no option --nope" "$troupe" multinode --nope x
says no_such_program 64 "no program nonsense-of-mine" "$troupe" multinode nonsense-of-mine
says nodes_are_limited 64 "from 1 to 64" "$troupe" multinode -n 65 true
says a_program_without_roles_needs_a_number 1 "need --nodes N" "$troupe" multinode true
says a_node_of_a_test_needs_its_place 64 "MULTINODE_INDEX is not set" "$program" all
expect help_of_the_launcher 0 "$troupe" multinode --help
has help_names_the_options "--hosts FILE"
expect any_program_runs_together 0 "$troupe" multinode --ports -n 3 printenv -- MULTINODE_INDEX
has output_has_the_role_in_front "[node3] 2"
expect time_ends_a_test 75 "$troupe" multinode --ports -n 2 --timeout 1 sleep -- 60
has who_did_not_end_is_named "node2 did not end" "$work/err"
expect roles_are_told 0 env MULTINODE_INDEX=roles "$program"
is roles_in_order "$(tr '\n' ' ' <"$work/out")" "first second third fourth "

# MNT-14: options for one role stand in a file; MNT-12: several tests in one go, the worst exit code wins
printf '%s\n' '--set' 'app.nonsense {' >"$work/bad.first.opts"
cp "$build/examples/.libs/multinode" "$work/example" 2>/dev/null || cp "$build/examples/multinode" "$work/example"
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

cp "$work/example" "$work/bad"
expect a_role_has_options_in_a_file 1 "$troupe" multinode --ports --timefactor 0.1 "$work/bad"
has options_in_a_file_are_read "[first] multinode: settings app.nonsense {"

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
expect a_test_runs_on_hosts 0 env HOME="$work" COPIES="$work/copies" MULTINODE_SSH="$work/ssh" MULTINODE_RSYNC="$work/rsync" \
    "$troupe" multinode "${factor[@]}" --hosts "$work/hosts" --server-port "$hosts_free" "$work/example"
has hosts_ran_the_test "[first] pong" && has hosts_are_told "PASS example (2 nodes, hosts)"
is each_host_got_a_copy "$(sort -u "$work/copies" | tr '\n' ' ')" "copied 127.0.0.1 copied me@127.0.0.1 "
says hosts_must_be_enough 64 "2 roles, and" "$troupe" multinode --hosts /dev/null "$work/example"
expect several_tests_in_one_go 64 "$troupe" multinode --ports "${factor[@]}" "$work/example" "$work/no-such"
has the_first_of_them_ran "PASS example (2 nodes, ports)"

# ---- the kit
wait "${jobs[@]}"
code_is the_whole_test_passes all 0
said first_comes_to_the_end all "[first] done"
said second_comes_to_the_end all "[second] done"
said fourth_comes_to_the_end_twice all "[fourth] done"
said the_launcher_says_so all "PASS kit_program (4 nodes, "
code_is a_cluster_is_tested_by_its_events cluster 0
code_is released_nodes_outlive_the_first released 0
code_is time_fails_a_barrier_and_all_later_ones late 0
code_is another_name_fails_the_test wrong 1
for role in first second third fourth; do
    said "wrong_barrier_fails_$role" wrong "[$role] FAIL $role: " # each says it, in its own name
done
said wrong_barrier_is_explained wrong "second entered barrier 'there' while others wait at 'here'"
code_is a_failed_check_fails_the_test fails 1
said who_fails_says_where fails "kit_program.c:"
said a_failure_is_told_to_the_others fails "[fourth] FAIL fourth: "
said with_its_reason fails "cancelled; second failed: !trp_multinode_is(test, \"second\")"
code_is a_lost_node_fails_the_test lost 1
said a_lost_node_fails_the_others lost "third was lost before barrier 'here'"
said who_is_left_ends_as_failed lost "[multinode] fourth ended, exit 1"
code_is the_lost_conductor_fails_the_test first-lost 1
said without_the_first_node_nobody_goes_on first-lost "[second] FAIL second: the first node, which conducts the test, is lost"
[ "$failures" -eq 0 ] || for name in all cluster released wrong fails late lost first-lost; do sed "s/^/$name: /" "$work/$name.log"; done >&2
test_end
