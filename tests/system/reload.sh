#!/bin/bash
# reload.sh - `troupe config reload` (what has changed, what needs a restart, what is refused) and `troupe restart PATH`.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
umask 077
conf() { printf 'log { level = %s }\nremote { port = 0 }\ncluster { gossip-interval = %s }\n%s\n' "$1" "$2" "${3:-}" >"$work/node.conf"; }
conf info 1s
background "$troupe" node --config "$work/node.conf" --socket "$work/one.sock" --seed self --load "$build/examples/.libs/counter.so" 2>"$work/one.log"
node=$started
at() { "$troupe" --socket "$work/one.sock" "$@"; }
check node_is_up wait_until 60 at is-available

# ---- reload
expect nothing_has_changed 0 at config reload
has it_says_so "no key has changed"
expect as_json 0 at config reload -o json
is_json reload_json
has there_are_two_lists '"needRestart": []'
conf debug 2s
expect a_change_is_told 0 at config reload
has the_level_has_changed "changed         log.level: info -> debug"
has gossip_needs_a_restart "needs a restart cluster.gossip-interval"
has the_log_says_it_too "cluster.gossip-interval has changed; that needs a restart" "$work/one.log"
has it_is_audited "audit order=reload on=troupe.tcp://" "$work/one.log"
expect it_is_compared_with_the_last_reload 0 at config reload -o jsonl
has the_level_is_the_same '"changed":[]'
has the_other_still_waits '"needRestart":["cluster.gossip-interval"]'
conf loud 1s
expect a_bad_value_is_78 78 at config reload
has it_names_the_key "log.level" "$work/err"
has it_says_how_to_look "hint: troupe config check" "$work/err"
expect status_tells_it_too 1 at status
has the_problem_is_there "the last reload was refused"
finds() { at doctor >"$work/found" 2>/dev/null || [ $? -eq 1 ] && grep -qE "^ $1 +files .*$2" "$work/found"; }
check the_doctor_names_it wait_until 60 finds FAIL "the last reload was refused"
conf info 1s
expect it_can_be_mended 0 at config reload
has it_went_back "log.level: debug -> info"
check it_is_healthy_again wait_until 60 at status
check the_doctor_finds_it_mended wait_until 60 finds ok ''
expect flags_stand_behind 0 "$troupe" config reload --socket "$work/one.sock" --timeout 20s
expect an_unknown_flag_is_64 64 at config reload --seed self
expect an_argument_is_64 64 at config reload now
expect the_reference_is_printed 0 "$troupe" config show --reference
has it_has_the_keys "stable-after"
expect it_has_help 0 "$troupe" config reload --help
has help_names_sighup SIGHUP
expect no_node_is_69 69 "$troupe" --socket "$work/none.sock" config reload
expect another_word_is_the_librarys 64 "$troupe" config relaod
for _ in 1 2 3 4 5 6; do at config reload >/dev/null 2>"$work/err.$_" & several[$_]=$!; done
all=0
for i in 1 2 3 4 5 6; do wait "${several[$i]}" || all=$?; done
is several_at_once_are_served "$all" 0

# ---- restart
path=$(at tree /user -o name | grep counter | head -n 1)
expect an_actor_counts 0 at ask "$path" 1
expect a_restart_needs_yes 64 at restart "$path"
expect a_restart_is_looked_at 0 at restart "$path" --dry-run
has it_would "would restart: "
expect a_restart_of_nobody_is_68 68 at restart /user/nobody --yes
expect a_guardian_is_not_restarted 64 at restart /user --yes
restarts() { at actor "$path" -o jsonl | grep -q "\"restarts\":$1,"; }
check it_was_not_restarted_yet restarts 0
expect a_restart_is_ordered 0 at restart "$path" --yes -o json
has it_is_told '"action": "restart"'
check it_is_restarted wait_until 60 restarts 1
check it_answers_again wait_until 60 at ask "$path" 1
has the_restart_is_audited "audit order=restart-actor on=$path" "$work/one.log"
at leave >/dev/null 2>&1
ended the_node_leaves "$node" 0
test_end
