#!/bin/bash
# bridge_child.sh - programs that a node starts and supervises: bridge NAME { command = ... }. They host actors, are started again when
# they end, their standard error goes to the log, and none is left when the node ends.
. "$(dirname "$0")/lib.sh"
test_begin
export TROUPE_SOCKET=$work/node.sock
# Hosts "echo", answers each message with its process id; "end CODE" ends it.
cat >"$work/program.sh" <<'PROGRAM'
#!/bin/bash
read -r ready
echo "it runs: $ready" >&2
head -c 3000 /dev/zero | tr '\0' z >&2
echo >&2
echo '{"op":"host","actor":"echo","id":1}'
while read -r line; do
    case $line in
    *'"text":"end '*) rest=${line#*'"text":"end '}; exit "${rest%%\"*}" ;;
    *'"reply":'*) rest=${line#*'"reply":'}; echo '{"op":"reply","actor":"echo","reply":'"${rest%%[,\}]*}"',"json":'$$'}' ;;
    esac
done
echo "$$" >>"$(dirname "$0")/ended"
PROGRAM
chmod +x "$work/program.sh"
cat >"$work/deaf.sh" <<'PROGRAM'
#!/bin/bash
trap '' TERM
exec <&- >&-
echo "$$" >>"$(dirname "$0")/deaf"
exec tail -f /dev/null
PROGRAM
cat >"$work/node.conf" <<CONF
bridge worker { command = { "/bin/bash", "$work/program.sh" }  min-backoff = 100ms  max-backoff = 400ms }
bridge broken { command = { "$work/nowhere" }  min-backoff = 200ms  max-backoff = 400ms }
CONF
expect its_configuration_is_right 0 "$troupe" config check --config "$work/node.conf"
background "$troupe" node --config "$work/node.conf" --host 127.0.0.1 --port 0 --socket "$work/node.sock" --seed self >"$work/node.log" 2>&1
node_pid=$started
answer() { "$troupe" ask /user/worker/echo hello -o jsonl 2>/dev/null | sed -n 's/.*"json":\([0-9]*\).*/\1/p'; }
answers() { first=$(answer); [ -n "$first" ]; }
check its_actor_answers wait_until 60 answers
in_log() { grep -qF -- "$1" "$work/node.log"; }
check its_standard_error_is_in_the_log wait_until 60 in_log 'worker: it runs: {"event":"ready"'
check a_long_line_of_it_is_cut wait_until 60 grep -qE 'worker: z{1000}\.\.\.$' "$work/node.log"
check a_program_that_cannot_run_is_named wait_until 60 in_log "nowhere cannot be started: No such file or directory; next try in 400 ms: bridge.broken.command"

# ---- it ends, and comes again
expect it_is_told_to_end 0 "$troupe" send /user/worker/echo "end 3"
anew() { second=$(answer); [ -n "$second" ] && [ "$second" != "$first" ]; }
check another_process_answers wait_until 60 anew
check the_log_says_that_it_ended wait_until 60 in_log " ended with 3; it is started again in"
killed=$second
kill -9 "$second"
anew_again() { third=$(answer); [ -n "$third" ] && [ "$third" != "$killed" ]; }
check it_comes_again_after_a_kill wait_until 60 anew_again
check the_log_names_the_signal wait_until 60 in_log " was killed by signal 9; it is started again in"
expect the_operator_restarts_it 0 "$troupe" restart /user/worker --yes
restarted() { fourth=$(answer); [ -n "$fourth" ] && [ "$fourth" != "$third" ]; }
check that_starts_it_anew wait_until 60 restarted
check the_process_before_has_gone wait_until 60 eval '! lives "$third"'

# ---- the end of the node
kill "$node_pid"
check the_node_ends await "$node_pid" 60
check the_program_has_ended_with_it wait_until 60 eval '! lives "$fourth"'

# ---- a program that closes both directions and ignores SIGTERM is killed
cat >"$work/deaf.conf" <<CONF
bridge deaf { command = { "/bin/bash", "$work/deaf.sh" }  min-backoff = 100ms }
CONF
background "$troupe" node --config "$work/deaf.conf" --host 127.0.0.1 --port 0 --socket "$work/node.sock" --seed self >"$work/deaf.log" 2>&1
node_pid=$started
twice() { [ "$(wc -l <"$work/deaf" 2>/dev/null || echo 0)" -ge 2 ]; }
check it_is_killed_and_started_again wait_until 60 twice
kill "$node_pid"
check that_node_ends await "$node_pid" 60
none_left() { local pid; while read -r pid; do ! lives "$pid" || return 1; done <"$work/deaf"; }
check no_program_is_left wait_until 60 none_left

# ---- what a program has started ends with it (bridge-child-H3, bridge-session-N5)
cat >"$work/parent.sh" <<'PROGRAM'
#!/bin/bash
at=$(dirname "$0")
tail -f /dev/null </dev/null >/dev/null 2>&1 &
tail -f /dev/null & # holds the standard output
echo "$!" >>"$at/holders"
jobs -p >>"$at/children"
exit 1
PROGRAM
cat >"$work/stubborn.sh" <<'PROGRAM'
#!/bin/bash
trap '' TERM
tail -f /dev/null </dev/null >/dev/null 2>&1 &
echo "$!" >>"$(dirname "$0")/stubborn"
read -r line
PROGRAM
cat >"$work/parent.conf" <<CONF
bridge parent { command = { "/bin/bash", "$work/parent.sh" }  min-backoff = 100ms  max-backoff = 200ms }
bridge stubborn { command = { "/bin/bash", "$work/stubborn.sh" }  min-backoff = 100ms  max-backoff = 200ms }
CONF
background "$troupe" node --config "$work/parent.conf" --host 127.0.0.1 --port 0 --socket "$work/node.sock" --seed self >"$work/parent.log" 2>&1
node_pid=$started
thrice() { [ "$(wc -l <"$work/holders" 2>/dev/null || echo 0)" -ge 3 ]; }
check an_end_behind_a_held_stream_is_noticed wait_until 60 thrice
first_gone() { local pid; while read -r pid; do ! lives "$pid" || return 1; done < <(head -n 2 "$work/children"); }
check what_it_started_has_ended wait_until 60 first_gone
kill "$node_pid"
check the_node_of_parents_ends await "$node_pid" 60
all_gone() { local pid; while read -r pid; do ! lives "$pid" || return 1; done < <(cat "$work/children" "$work/stubborn"); }
check nothing_of_them_is_left wait_until 60 all_gone

# ---- names
cat >"$work/wrong.conf" <<CONF
bridge "\$x" { command = { "/bin/true" } }
CONF
expect a_wrong_name_is_78 78 "$troupe" node --config "$work/wrong.conf" --host 127.0.0.1 --port 0 --socket "$work/wrong.sock"
has it_says_which "bridge" "$work/err"
test_end
