#!/bin/bash
# upgrade.sh - `troupe upgrade FILE` on two nodes: code, state, messages of the older layout in the mailbox, the stash, on the wire and in
# the journal, an actor that cannot change, files that are refused, and who may bring them.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
umask 022
dir=$work/plugins
export UP_HOLD=$work/hold # a change of node two lasts until there is such a file
mkdir "$dir"
version() { echo "$build/tests/system/.libs/upgraded_$1.so"; }
# A file in place of another one of its name, as install(1) and packages put it; overwrite changes the bytes of the same file.
bring() { cp "$(version "$1")" "$dir/next" && mv "$dir/next" "$dir/up.so"; }
overwrite() { cat "$(version "$1")" >"$dir/up.so"; }
bring 1
start() { # NAME [OPTION]...
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --load "$dir/up.so" --set plugins-dir="$dir" \
        --set persistence.journal=lmdb --set persistence.lmdb.dir="$work/$name.journal" "$@" 2>"$work/$name.log"
}
at() { "$troupe" --socket "$work/one.sock" "$@"; }
other() { "$troupe" --socket "$work/two.sock" "$@"; }
start one --seed self --set management.enabled=on --set management.port=0 --set management.read-only=off
check node_one_is_up wait_until 60 at is-available
address=$(at members -o name | head -n 1)
start two --seed "$address"
check node_two_is_up wait_until 60 other is-available
check they_know_each_other wait_until 60 other ping "$address/user/counter"
answers() { at ask "/user/$1" "$2" --timeout 10s >"$work/answer" 2>&1 && grep -qxF "$3" "$work/answer"; } # ACTOR TEXT REPLY
adds() { at send "/user/$1" --type up.add "{\"amount\":$2}"; }

# ---- who may bring what
expect a_path_is_64 64 at upgrade "$dir/up.so"
has it_wants_a_name "without a /" "$work/err"
expect the_parent_is_64 64 at upgrade ..
expect another_plugin_is_68 68 at upgrade other.so
has it_names_a_loaded_one "hint: up.so" "$work/err"
mv "$dir/up.so" "$dir/away"
expect a_missing_file_is_68 68 at upgrade up.so
ln -s "$dir/away" "$dir/up.so"
expect a_link_with_a_slash_is_77 77 at upgrade up.so
has it_says_that_it_leaves "leaves the directory" "$work/err"
rm "$dir/up.so"
mkfifo "$dir/up.so"
expect a_pipe_is_65 65 at upgrade up.so
rm "$dir/up.so"
mv "$dir/away" "$dir/up.so"
for i in 1 2 3 4 5 6 7; do ln -s "link$i" "$dir/link$((i + 1))"; done
mv "$dir/up.so" "$dir/away"
ln -s away "$dir/link1"
ln -s link7 "$dir/up.so"
chmod g+w "$dir/away"
expect links_are_followed 77 at upgrade up.so
has they_lead_to_the_file "file away can be written" "$work/err"
ln -sf link8 "$dir/up.so"
expect nine_are_too_many 77 at upgrade up.so
has it_names_the_limit "more than 8 links" "$work/err"
mv "$dir/away" "$dir/up.so"
chmod g+w "$dir/up.so"
expect a_file_that_others_write_is_77 77 at upgrade up.so
has it_says_how_to_mend_it "chmod go-w" "$work/err"
chmod g-w "$dir/up.so"
chmod o+w "$dir"
expect a_directory_that_others_write_is_77 77 at upgrade up.so
chmod o-w "$dir"
if [ "$(id -u)" = 0 ]; then
    chown 12345 "$dir/up.so"
    expect a_file_of_another_user_is_77 77 at upgrade up.so
    has it_names_the_owner "user 12345" "$work/err"
    chown 0 "$dir/up.so"
fi
port=$(grep -oE 'management[^ ]* .*:[0-9]+' "$work/one.log" | grep -oE '[0-9]+$' | head -n 1)
http() { curl -s -o /dev/null -w '%{http_code}' -X POST "http://127.0.0.1:$port/$1"; }
for path in upgrade spawn plugins plugins/up.so/upgrade; do is "http_has_no_$(tr -c 'a-z\n' _ <<<"$path")" "$(http "$path")" 404; done

# ---- files that are refused: nothing has changed
refused() { # NAME VERSION TEXT
    bring "$2"
    expect "$1" 65 at upgrade up.so
    has "$1_says_why" "$3" "$work/err"
    has "$1_says_that_nothing_changed" "nothing was changed" "$work/err"
    check "$1_changes_nothing" answers counter get "v1 sum $sum"
}
sum=0
refused what_does_not_say_what_it_brings 6 "TRP_PLUGIN_UPGRADE"
refused another_version_without_code_change 3 "version 1 with a state of 16 bytes cannot become version 3 with 24 bytes without a code_change"
refused a_message_type_of_another_layout 4 "protocol up has a message type with other fields"
refused a_begin_that_fails 5 "the moon is full"
echo "no code" >"$dir/next"
mv "$dir/next" "$dir/up.so"
expect what_is_no_shared_object_is_65 65 at upgrade up.so

# ---- messages of version 1 wait in the mailbox and the stash
expect a_message_comes 0 adds counter 1
expect it_stashes 0 at send /user/counter stash
expect one_is_stashed 0 adds counter 10
check it_has_the_first_only wait_until 60 answers counter get "v1 sum 1"
expect its_turn_lasts 0 at send /user/counter "hold $work/go"
expect stubborn_is_odd 0 adds stubborn 3
check stubborn_has_it wait_until 60 answers stubborn get "v1 sum 3"
check an_event_is_stored answers account "add 5" "v1 5"
bring 2
background "$troupe" --socket "$work/one.sock" upgrade up.so >"$work/upgrade.out" 2>&1
upgrade=$started
check the_change_of_others_does_not_wait wait_until 60 answers account get "v2 5 of 1"
touch "$work/go"
ended the_upgrade_ends_with_1 "$upgrade" 1
has it_counts_those_that_changed "up.so  upgraded (" "$work/upgrade.out"
has two_have_changed "2 actors changed" "$work/upgrade.out"
has it_lists_the_other "/user/stubborn  keeps its old code: code_change from version 1 to 2 failed: its sum is odd" "$work/upgrade.out"
has it_says_what_helps "troupe restart PATH" "$work/upgrade.out"
has the_log_has_it "/user/stubborn keeps its old code" "$work/one.log"
has it_is_audited "audit order=upgrade-plugin on=up.so" "$work/one.log"
check the_state_has_come_along wait_until 60 answers counter get "v2 sum 1 from v1"
expect it_unstashes 0 at send /user/counter unstash
check stash_and_mailbox_are_handled_by_the_newer_code wait_until 60 answers counter get "v2 sum 111 from v1"
check stubborn_has_its_old_code answers stubborn get "v1 sum 3"

# ---- the wire: a node of the older version tells the newer one, and the other way
expect the_older_node_tells 0 other send "$address/user/counter" --type up.add '{"amount":1000}'
check it_was_understood wait_until 60 answers counter get "v2 sum 1111 from v1"
expect the_newer_message_is_known_here 0 at send /user/counter --type up.add_times '{"amount":1000,"times":2}'
check it_is_handled wait_until 60 answers counter get "v2 sum 3111 from v1"
expect the_older_node_does_not_know_it 65 other send "$address/user/counter" --type up.add_times '{"amount":1,"times":2}'

# ---- the journal: events of both layouts
check a_newer_event_is_stored answers account "add 7" "v2 12 of 2"
expect it_restarts 0 at restart /user/account --yes
check both_events_are_recovered wait_until 60 answers account get "v2 12 of 2"

# ---- the same file again, overwritten in place: the code that runs is a copy
expect stubborn_becomes_even 0 adds stubborn 1
check it_is_even wait_until 60 answers stubborn get "v1 sum 4"
bring 2
expect the_rest_changes 0 at upgrade up.so -o jsonl
has the_answer_counts '"keptCount":0'
check stubborn_has_changed answers stubborn get "v2 sum 4 from v1"
overwrite 1
check code_that_runs_was_not_touched answers counter get "v2 sum 3111 from v1"
overwrite 6
expect the_node_lives_on 0 at status

# ---- an actor that cannot change is made anew
bring 1
expect the_other_node_is_older 0 other send /user/stubborn --type up.add '{"amount":1}'
older() { other ask /user/stubborn get 2>/dev/null | grep -qxF "$1"; }
check it_has_it wait_until 60 older "v1 sum 1"
expect one_is_to_hang 0 other send /user/counter --type up.add '{"amount":666}'
hanging() { other ask /user/counter get --timeout 10s 2>/dev/null | grep -qxF "$1"; }
check it_has_that wait_until 60 hanging "v1 sum 666"
bring 2
expect a_change_that_hangs_is_1_at_the_deadline 1 other upgrade up.so --timeout 4s
has the_hanging_actor_is_named "/user/counter  keeps its old code: its code_change has not returned in time"
expect the_node_can_still_be_asked 0 other status
expect and_takes_orders 0 other restart /user/account --yes
touch "$UP_HOLD"
check the_change_ends_when_it_returns wait_until 60 hanging "v2 sum 666 from v1"
expect it_keeps_one 1 other upgrade up.so --quiet
is quiet_is_quiet "$(wc -c <"$work/out")" 0
expect an_operator_restarts_it 0 other restart /user/stubborn --yes
check it_has_the_newer_code wait_until 60 older "v2 sum 0 from v0"

# ---- a node that is told to end does not wait for an upgrade, whatever its deadline
rm "$UP_HOLD" "$UP_HOLD.runs"
bring 1
start three --seed self --set coordinated-shutdown.default-phase-timeout=500ms \
    --set coordinated-shutdown.phases.actor-system-terminate.timeout=500ms
three=$started
third() { "$troupe" --socket "$work/three.sock" "$@"; }
check node_three_is_up wait_until 60 third is-available
expect one_is_to_hang_there 0 third send /user/counter --type up.add '{"amount":666}'
of_third() { third ask "/user/$1" get --timeout 10s 2>/dev/null | grep -qxF "$2"; }
check it_has_that_there wait_until 60 of_third counter "v1 sum 666"
bring 2
background "$troupe" --socket "$work/three.sock" upgrade up.so --timeout 150s >"$work/three.out" 2>&1
upgrade=$started
check one_of_its_changes_hangs wait_until 60 test -e "$UP_HOLD.runs"
check the_other_has_changed wait_until 60 of_third stubborn "v2 sum 0 from v1"
check the_account_has_changed wait_until 60 of_third account "v2 0 of 0"
kill -TERM "$three"
told_ms=$(now_ms)
ended an_upgrade_that_runs_ends_with_69 "$upgrade" 69
has it_says_why "the node is stopping: 2 actors changed, 1 kept their old code" "$work/three.out"
ended the_node_ends "$three" 0
judge the_node_ends_in_time $(($(now_ms) - told_ms)) 45000 ms
touch "$UP_HOLD"

expect completion_knows_plugins 0 "$troupe" --socket "$work/one.sock" __complete upgrade ''
has completion_has_the_file up.so
test_end
