#!/bin/bash
# dev.sh - `troupe dev N`: a local cluster, found without --socket, and gone with one signal.
. "$(dirname "$0")/lib.sh"
test_begin
system=dev$$
# A node that is killed leaves its socket behind.
cleanups+=('rm -f "/run/troupe/$system"*@*.sock "${XDG_RUNTIME_DIR:-/nonexistent}/troupe/$system"*@*.sock')
mine() { "$troupe" --system "$system" "$@"; }
nodes() { pgrep -f "node --system $system " || :; }
expect dev_needs_a_sane_number 64 "$troupe" dev 0
expect dev_refuses_a_number_of_more_than_32_bits 64 timeout 20 "$troupe" dev 4294967297
expect dev_above_the_limit 64 "$troupe" dev 65
expect dev_chooses_the_ports 64 "$troupe" dev 2 --port 2552
has dev_names_what_it_chooses "--port" "$work/err"
for own in --host=127.0.0.2 --port=1 --bind-port=1 --seed=self --socket=/tmp/x remote.hostname=127.0.0.2 remote.port=1 remote.bind-port=1 \
    cluster.seed-nodes=self control.socket=/tmp/x; do
    words=("$own")
    [ "${own#--}" != "$own" ] || words=(--set "$own")
    expect "dev_sets_${own%%=*}_itself" 64 "$troupe" dev 2 "${words[@]}"
    has "dev_says_what_to_write_for_${own%%=*}" "${own%%=*}" "$work/err" && has "and_how_${own%%=*}_is_set" "leave it out, or start nodes one by one: troupe node --" "$work/err"
done
expect dev_has_to_know_the_system 64 "$troupe" dev 2 --set=system=other
has dev_says_how_the_system_is_named "write --system NAME" "$work/err"
background "$troupe" --system "$system" dev 3 --load "$build/examples/.libs/echo.so" --log-level warning >"$work/dev.log" 2>&1
dev=$started
expect dev_forms_a_cluster 0 mine wait --members 3 --converged --timeout 90s
is dev_runs_three_nodes "$(nodes | wc -l)" 3
addresses() { [ "$(grep -c "^  troupe.tcp://$system@127.0.0.1:[0-9]*   pid" "$work/dev.log")" -eq 3 ]; }
check dev_prints_the_addresses wait_until 30 addresses
expect lowest_port_answers 0 mine leader
is leader_is_a_node_of_it "$(grep -c "$system@127.0.0.1:" "$work/out")" 1
expect actor_of_the_plugin_answers 0 mine ask /user/echo hello
one=$(nodes | tail -n 1)
kill -9 "$one"
gone() { ! nodes | grep -qx "$one"; } # until then its socket may take a connection, and close it
check killed_node_has_ended wait_until 30 gone
check dev_goes_on_without_a_killed_node mine members
kill -TERM "$dev"
ended dev_ends_with_0 "$dev" 0
is dev_leaves_no_node "$(nodes)" ""
expect nobody_answers_any_more 69 mine members
# Two at once: each has its ports.
background env TROUPE_SOCKET="$work/a.sock" "$troupe" dev 2 --system "${system}a" --log-level warning >"$work/dev-a.log" 2>&1
dev_a=$started
background env TROUPE_SOCKET="$work/b.sock" "$troupe" dev 2 --system "${system}b" --log-level warning >"$work/dev-b.log" 2>&1
dev_b=$started
ports() { grep -ho '127.0.0.1:[0-9]* *pid' "$work/dev-a.log" "$work/dev-b.log" | sort -u | grep -c .; }
four() { [ "$(ports)" -eq 4 ]; }
check two_devs_at_once_choose_four_ports wait_until 60 four
expect the_first_of_them_forms_its_cluster 0 "$troupe" --system "${system}a" wait --members 2 --timeout 90s
expect the_second_of_them_forms_its_cluster 0 "$troupe" --system "${system}b" wait --members 2 --timeout 90s
kill -TERM "$dev_a" "$dev_b"
ended the_first_of_them_ends_with_0 "$dev_a" 0
ended the_second_of_them_ends_with_0 "$dev_b" 0
# Killed itself, it takes the nodes with it.
background env TROUPE_SOCKET="$work/one.sock" "$troupe" dev 2 --system "$system" --log-level info >"$work/dev.log" 2>&1
dev=$started
expect dev_again 0 mine wait --members 2 --timeout 90s
both_are_told() { [ "$(grep -c "^  troupe.tcp:.*@127.0.0.1:[0-9]* .*pid" "$work/dev.log")" -eq 2 ]; }
check both_nodes_are_told wait_until 60 both_are_told
for node in $(sed -nE 's/^  troupe.tcp:.*@(127.0.0.1:[0-9]+) .*/\1/p' "$work/dev.log"); do
    check "lines_have_their_node_${node#*:}" wait_until 30 grep -q "^$node | .*started version=.* address=troupe.tcp://$system@$node " "$work/dev.log"
done
is no_line_is_without_its_node "$(grep -vcE '^127.0.0.1:[0-9]+ \| |^2 nodes of system|^  troupe.tcp://|^In another terminal' "$work/dev.log")" 0
kill -9 "$dev"
wait "$dev" 2>/dev/null
forget "$dev"
if wait_until 60 eval '[ -z "$(nodes)" ]'; then pass killed_dev_leaves_no_node; else fail killed_dev_leaves_no_node "$(pgrep -af "$system")"; fi
test_end
