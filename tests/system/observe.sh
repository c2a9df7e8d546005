#!/bin/bash
# observe.sh - what an operator sees of a running node: dead letters and the last lines of the log, also as they come.
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port || { fail "a free port"; test_end; }
background "$troupe" node --host 127.0.0.1 --port "$hosts_free" --socket "$work/one.sock" --seed self --set remote.secure-cookie=notForOthers \
    --load "$build/examples/.libs/echo.so" >"$work/one.log" 2>&1
node=$started
at() { "$troupe" --socket "$work/one.sock" "$@"; }
expect node_is_up 0 at wait --timeout 60s

# LIFE-15: the echo of a message without a sender reaches nobody.
expect no_dead_letters_yet 0 at deadletters -o name
is no_dead_letters_no_lines "$(wc -l <"$work/out")" 0
background at deadletters -f --count 2 -o jsonl >"$work/followed" 2>"$work/followed.err"
follower=$started
followed() { at send /user/echo hello >/dev/null && [ "$(wc -l <"$work/followed")" -ge 2 ]; }
check dead_letters_are_followed wait_until 60 followed
ended follower_ends_after_its_count "$follower" 0
has dead_letter_has_its_sender '"sender":"/user/echo"' "$work/followed"
has dead_letter_has_its_reason '"reason":"told-to-nobody"' "$work/followed"
lacks dead_letter_has_no_payload hello "$work/followed"
expect dead_letters_are_kept 0 at deadletters --count 1
has dead_letters_table "/user/echo -> nobody  troupe.string, 5 B"
has dead_letters_are_counted "told-to-nobody" "$work/err"
expect dead_letters_as_json 0 at deadletters -o json
is_json dead_letters_json

# LOG-03: lines are kept wherever they go.
expect lines_are_kept 0 at logs --component node --count 50
has a_line_is_the_logs_own "plugin"
background at logs -f --level info --component audit --count 1 -o jsonl >"$work/lines" 2>"$work/lines.err"
follower=$started
audited() { kill -HUP "$node" && [ -s "$work/lines" ]; }
check lines_are_followed wait_until 60 audited
ended line_follower_ends_after_its_count "$follower" 0
has a_line_names_the_order '"order":"reload"' "$work/lines"
has a_line_has_its_severity '"severityNumber":9' "$work/lines"
expect lines_of_no_level_are_refused 64 at logs --level loud
# A healthy node of one member: warnings of its host are its host's.
doctors() { at doctor -o json >"$work/out" 2>"$work/err"; [ -s "$work/out" ]; }
check doctor_examines doctors
is_json doctor_json
has doctor_has_its_checks '"id": "leave-timeout"'
lacks doctor_finds_no_fault_of_the_cluster '"id": "joined", "level": "fail"'
# An actor is stopped by its path, and by no other one.
expect stop_of_no_actor 68 at stop /user/none --yes
expect stop_of_a_guardian_is_refused 64 at stop /user --yes
expect stop_is_looked_at 0 at stop /user/echo --dry-run
expect echo_lives 0 at actor /user/echo
expect echo_is_stopped 0 at stop /user/echo --yes
gone() { at actor /user/echo >/dev/null 2>&1; [ $? -eq 68 ]; }
check echo_has_gone wait_until 60 gone
has stop_is_audited "audit order=stop-actor on=/user/echo" "$work/one.log"

# Of its own node: secrets are blanked.
expect report_is_written 0 at report -O "$work/report.tar.gz"
mkdir "$work/unpacked"
expect report_unpacks 0 tar -xzf "$work/report.tar.gz" -C "$work/unpacked"
cat "$work"/unpacked/*/*.json >"$work/out"
has report_has_the_configuration '"remote.secure-cookie"'
has report_has_the_log '"severityNumber"'
lacks report_has_no_secret notForOthers
expect check_of_clock_is_yes 0 at check clock
background at logs -f >"$work/last" 2>&1
follower=$started
check follower_shows_the_last_lines wait_until 60 test -s "$work/last"
expect node_ends_while_somebody_follows 0 at leave
ended node_has_left "$node" 0
ended follower_says_that_the_node_is_gone "$follower" 69
test_end
