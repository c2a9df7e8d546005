#!/bin/bash
# bridge.sh - troupe bridge: a program in any language hosts actors of a node by lines of JSON. Hosting, tells, asks, replies,
# watches, topics, events of the cluster, traces; wrong lines, limits, a program that does not read, each way to end.
. "$(dirname "$0")/lib.sh"
test_begin
work_socket=$work/node.sock
node() { background "$troupe" node --host 127.0.0.1 --port 0 --socket "$work_socket" --seed self "$@" >"$work/node.log" 2>&1; }
node
node_pid=$started
export TROUPE_SOCKET=$work_socket
is_up() { "$troupe" is-available >/dev/null 2>&1; }
check the_node_is_up wait_until 60 is_up

# A bridge NAME with a pipe to it; its lines go to $work/NAME.out.
bridge_open() { # NAME DESCRIPTOR
    mkfifo "$work/$1.in"
    ("$troupe" bridge "$1" <"$work/$1.in" >"$work/$1.out" 2>"$work/$1.err"; echo $? >"$work/$1.rc") 7>&- 8>&- &
    pids+=($!)
    eval "exec $2>'$work/$1.in'"
}
said() { grep -qF -- "$2" "$work/$1.out"; }                                           # NAME TEXT
hears() { check "$1" wait_until 60 said "$2" "$3"; }                                   # TEST NAME TEXT
has_ended() { [ -s "$work/$1.rc" ]; }
ends_with() { check "$1_ends" wait_until 60 has_ended "$2"; is "$1_with_$3" "$(cat "$work/$2.rc" 2>/dev/null)" "$3"; } # TEST NAME CODE

bridge_open py 7
hears it_is_greeted py '"event":"ready","protocol":1'
hears it_knows_its_path py '"path":"/user/py"'

# ---- hosting, tells, asks
echo '{"op":"host","actor":"greeter","id":1}' >&7
hears an_actor_is_hosted py '{"id":1,"ok":true,"path":"/user/py/greeter"}'
expect it_is_an_actor_of_the_node 0 "$troupe" tree /user
has the_tree_has_it greeter
expect a_text_is_sent 0 "$troupe" send /user/py/greeter hello
hears the_program_gets_the_text py '{"event":"message","actor":"greeter","type":"string","text":"hello"}'
expect json_is_sent 0 "$troupe" send /user/py/greeter '{"a":[1,2]}' --type json
hears the_program_gets_the_json py '"type":"json","json":{"a":[1,2]}'
("$troupe" ask /user/py/greeter question -o jsonl >"$work/asked" 2>&1; echo $? >"$work/asked.rc") 7>&- &
hears the_program_is_asked py '"text":"question","reply":1'
echo '{"op":"reply","actor":"greeter","reply":1,"json":{"answer":42},"id":2}' >&7
hears the_reply_is_taken py '{"id":2,"ok":true}'
is_answered() { grep -qF '"json":{"answer":42}' "$work/asked"; }
check the_asker_has_it wait_until 60 is_answered
echo '{"op":"reply","actor":"greeter","reply":1,"json":0,"id":3}' >&7
hears a_second_reply_is_refused py '{"id":3,"ok":false,"exit":68,"error":"no message 1 of actor '"'greeter'"' waits for a reply"'
("$troupe" ask /user/py/greeter "what fails" >"$work/failed" 2>&1; echo $? >"$work/failed.rc") 7>&- &
hears another_question_comes py "what fails"
number_of() { grep -F "$1" "$work/py.out" | sed 's/.*"reply":\([0-9]*\).*/\1/'; } # TEXT
echo '{"op":"fail","actor":"greeter","reply":'"$(number_of "what fails")"',"error":"I do not know"}' >&7
check a_failed_ask_ends wait_until 60 test -s "$work/failed.rc"
has it_says_why_it_failed "refused: I do not know" "$work/failed"
echo '{"op":"host","actor":"echo"}{"op":"x"}' >&7
hears two_objects_in_a_line_are_refused py '"error":"invalid JSON at byte'
echo '{"op":"host","actor":"other","id":4}' >&7
echo '{"op":"tell","actor":"other","to":"/user/py/greeter","json":"from other"}' >&7
hears an_actor_tells_another py '"json":"from other","from":"/user/py/other"'
echo '{"op":"ask","actor":"other","to":"/user/py/greeter","text":"psst","id":5}' >&7
hears an_actor_is_asked_by_another py '"text":"psst","reply":'
echo '{"op":"reply","actor":"greeter","reply":'"$(number_of psst)"',"base64":"AAEC"}' >&7
hears the_answer_is_matched_by_its_id py '{"id":5,"ok":true,"type":"bytes","base64":"AAEC"}'
echo '{"op":"ask","to":"/user/nobody","json":1,"id":6}' >&7
hears an_ask_of_nobody_is_68 py '{"id":6,"ok":false,"exit":68,"error":"/user/nobody: no actor is there"'
echo '{"op":"ask","to":"/user/py/greeter","json":"late","timeoutMs":100,"id":7}' >&7
hears an_ask_without_an_answer_is_75 py '{"id":7,"ok":false,"exit":75'

# ---- watches
echo '{"op":"watch","actor":"greeter","to":"/user/py/other","id":10}' >&7
hears an_actor_is_watched py '{"id":10,"ok":true}'
echo '{"op":"watch","to":"/user/nobody","id":11}' >&7
hears nobody_cannot_be_watched py '{"id":11,"ok":false,"exit":68'
echo '{"op":"tell","actor":"other","to":"/user/py/greeter","json":"last words"}' >&7
echo '{"op":"stop","actor":"other","id":12}' >&7
hears it_is_stopped py '{"id":12,"ok":true}'
hears what_it_did_before_is_done py '"json":"last words","from":"/user/py/other"'
hears its_end_is_told py '{"event":"terminated","actor":"greeter","to":"/user/py/other","nodeLost":false}'
echo '{"op":"stop","actor":"other","id":13}' >&7
hears it_is_not_there_any_more py '{"id":13,"ok":false,"exit":68,"error":"this program hosts no actor '"'other'"'"'

# ---- topics, events, traces
echo '{"op":"subscribe","actor":"greeter","topic":"news","id":20}' >&7
hears an_actor_subscribes py '{"id":20,"ok":true}'
expect a_topic_is_published_to 0 "$troupe" publish news extra
hears the_subscriber_gets_it py '"actor":"greeter","type":"string","text":"extra"'
echo '{"op":"publish","topic":"news","json":"by the program","id":21}' >&7
hears the_program_publishes py '{"id":21,"ok":true,"delivered":1,"nodes":1,"silent":0}'
echo '{"op":"unsubscribe","actor":"greeter","topic":"news","id":22}' >&7
hears an_actor_unsubscribes py '{"id":22,"ok":true}'
echo '{"op":"events","types":["MemberUp"],"id":23}' >&7
hears members_are_shown_first py '{"event":"cluster","type":"MemberUp","member":{"node":"troupe.tcp://'
echo '{"op":"tell","to":"/user/py/greeter","json":"traced","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}' >&7
hears a_trace_goes_through py '"json":"traced","from":"/user/py","reply":'
has the_message_is_of_the_trace '"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-' "$work/py.out"
trace_has_it() { "$troupe" trace 4bf92f3577b34da6a3ce929d0e0e4736 2>/dev/null | grep -qF greeter; }
# HOW-09
check the_trace_names_the_actor wait_until 60 trace_has_it

# ---- lines that are wrong, at the limit and one past it
echo '{"op":"tel","id":30}' >&7
hears a_wrong_op_is_answered py '{"id":30,"ok":false,"exit":64,"error":"no such op '"'tel'; did you mean 'tell'?"'"'
echo '{"op":"tell","to":"/user/py/greeter","jsn":1}' >&7
hears an_unknown_key_is_named py "op 'tell' has no key 'jsn'"
long() { printf '{"op":"tell","to":"/user/py/greeter","text":"%s"}\n' "$(head -c "$1" /dev/zero | tr '\0' x)"; }
line_bytes=$(long 0 | wc -c)
{ long $((1048576 - line_bytes + 2)); echo '{"op":"ping","id":31}'; } >&7
hears a_line_above_the_limit_is_refused py '"error":"the line is longer than 1048576 bytes"'
hears the_next_one_is_read py '{"id":31,"ok":true}'
long $((1048576 - line_bytes + 1)) >&7 # with its actor, type and sender it is above the limit on its way back
lost_too_large() { "$troupe" deadletters -o jsonl | grep -F /user/py/greeter | grep -q 'too.large'; }
check a_message_above_a_line_is_a_dead_letter wait_until 60 lost_too_large

# ---- names
expect a_name_is_taken_once 1 "$troupe" bridge py </dev/null
has it_says_so "/user/py is there already" "$work/err"
expect a_wrong_name_is_64 64 "$troupe" bridge 'a/b' </dev/null
expect without_a_name_it_has_a_number 0 "$troupe" bridge </dev/null
has the_number_is_there '"path":"/user/bridge-'
has the_order_is_audited 'order=bridge on=/user/py' "$work/node.log"

# ---- ends
("$troupe" ask /user/py/greeter unanswered >"$work/unanswered" 2>&1; echo $? >"$work/unanswered.rc") 7>&- &
hears the_last_question_is_there py unanswered
exec 7>&-
ends_with the_bridge py 0
has_failed() { grep -qF "the program behind the bridge has ended" "$work/unanswered"; }
check an_ask_fails_at_once wait_until 15 has_failed
is_gone() { ! "$troupe" tree /user | grep -q py; }
check its_actors_are_gone wait_until 60 is_gone

bridge_open stopped 8
hears another_one_comes stopped '"event":"ready"'
expect what_cannot_be_written_is_74 74 bash -c '"$0" bridge </dev/null >/dev/full' "$troupe"
expect its_actor_is_stopped 0 "$troupe" stop /user/stopped --yes
ends_with a_stopped_bridge stopped 69
has it_says_why "the node ended the bridge" "$work/stopped.err"
exec 8>&-

# ---- what a program and a node may have, at the limit and one past it
many() { # FORMAT FIRST LAST: requests that have their number twice
    local i
    for ((i = $2; i <= $3; i++)); do printf "$1\n" "$i" "$i"; done
}
ok_from() { # NAME PREFIX COUNT: so many requests whose ids begin so are answered with ok
    [ "$(grep -cE "\"id\":$2[0-9]{3},\"ok\":true" "$work/$1.out")" -ge "$3" ]
}
bridge_open full 7
hears a_program_with_much_comes full '"event":"ready"'
many '{"op":"host","actor":"a%d","id":%d}' 1000 1256 >&7
check as_many_actors_as_the_limit_are_hosted wait_until 60 ok_from full 1 256
hears one_more_is_refused full '{"id":1256,"ok":false,"exit":75,"error":"this program hosts 256 actors already"'
watched() { # WATCHER PREFIX: this actor watches all of them; the asks that find them are bounded, too
    local i
    for ((i = 0; i < 256; i++)); do
        echo '{"op":"watch","actor":"a'"$1"'","to":"/user/full/a'$((1000 + i))'","id":'$(($2 * 1000 + i))'}'
    done >&7
    check "the_watches_of_${1}_are_taken" wait_until 60 ok_from full "$2" 256
}
watched 1000 2
watched 1001 3
watched 1002 4
watched 1003 5
echo '{"op":"watch","actor":"a1004","to":"/user/full/a1000","id":6000}' >&7
hears a_watch_more_is_refused full '{"id":6000,"ok":false,"exit":75,"error":"this program watches 1024 actors already"'
many '{"op":"ask","to":"/user/full/a1000","json":%d,"timeoutMs":60000,"id":%d}' 7000 7256 >&7
hears an_ask_more_is_refused full '"ok":false,"exit":75,"error":"256 asks of this program wait already"'
is the_asks_below_the_limit_are_not "$(grep -cF 'asks of this program wait already' "$work/full.out")" 1
exec 7>&-
ends_with the_full_bridge full 0

# ---- a program that does not read: its messages wait, at most 1,000 of them, and the node goes on
mkfifo "$work/deaf.out"
mkfifo "$work/deaf.in"
("$troupe" bridge deaf <"$work/deaf.in" >"$work/deaf.out") &
pids+=($!)
exec 8>"$work/deaf.in" 9<"$work/deaf.out"
echo '{"op":"host","actor":"a","id":1}' >&8
hosted() { "$troupe" tree /user/deaf 2>/dev/null | grep -qw a; }
check a_deaf_program_hosts_an_actor wait_until 60 hosted
head -c 60000 /dev/zero | tr '\0' y >"$work/large"
bridge_open loud 7
hears a_loud_program_comes loud '"event":"ready"'
for ((i = 0; i < 1200; i++)); do
    printf '{"op":"tell","to":"/user/deaf/a","text":"%s"}\n' "$(<"$work/large")"
done >&7
echo '{"op":"ping","id":40}' >&7
hears the_loud_one_is_not_held_up loud '{"id":40,"ok":true}'
is_full() { "$troupe" deadletters -o jsonl | grep -F /user/deaf/a | grep -q 'mailbox'; }
check what_is_too_much_is_a_dead_letter wait_until 60 is_full
expect the_node_answers 0 "$troupe" status
cat <&9 >"$work/deaf" 7>&- 8>&- &
reader=$!
pids+=("$reader")
reads_on() { [ "$(grep -c yyyy "$work/deaf")" -ge 1000 ]; }
check all_that_waited_comes_when_it_reads wait_until 180 reads_on
exec 7>&- 8>&- 9<&-
ends_with a_loud_bridge loud 0

# ---- bridges of a node, at the limit and one past it
if [ -z "${TROUPE_SANITIZER-}" ]; then # of processes with a sanitizer so many are dear
    bridges=()
    exec 9<> <(:)
    for ((i = 1; i <= 64; i++)); do
        "$troupe" bridge "b$i" <&9 >/dev/null 2>&1 &
        pids+=($!)
        bridges+=($!)
    done
    all_there() { [ "$("$troupe" ls /user -o name 2>/dev/null | grep -cE '/b[0-9]+$')" -eq 64 ]; }
    check as_many_bridges_as_the_limit wait_until 60 all_there
    expect one_bridge_more_is_75 75 "$troupe" bridge </dev/null
    has it_says_how_many "this node has 64 bridges already" "$work/err"
    exec 9<&-
    kill "${bridges[@]}"
    none_there() { ! "$troupe" ls /user -o name 2>/dev/null | grep -qE '/b[0-9]+$'; }
    check those_whose_program_is_killed_are_gone wait_until 60 none_there
fi

# ---- a node that hangs does not hold the program (cmd-bridge-B3)
TROUPE_TIMEOUT=5s bridge_open held 7
hears one_before_the_node_hangs held '"event":"ready"'
kill -STOP "$node_pid"
stands_still() { ! cat "/proc/$node_pid/task/"*/stat | grep -qv '^[0-9]* (.*) T '; } # each of its threads
check the_node_hangs wait_until 60 stands_still
exec 7>&-
ends_with a_bridge_whose_node_hangs held 75
has it_says_how_long_it_waited "the node has not ended the bridge in 5000 ms" "$work/held.err"
kill -CONT "$node_pid"

# ---- the node stops
bridge_open last 7
hears the_last_one_comes last '"event":"ready"'
kill "$node_pid"
ends_with a_bridge_whose_node_stops last 69
exec 7>&-
check the_node_ends await "$node_pid" 60
expect without_a_node_it_is_69 69 "$troupe" bridge </dev/null
test_end
