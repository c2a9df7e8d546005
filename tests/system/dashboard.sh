#!/bin/bash
# dashboard.sh - who is given the dashboard and what it asks for: the code that is good once, the cookie, foreign pages, the log of
# events, the senders of an actor. dashboard_page.sh looks at the page itself.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
command -v curl >/dev/null || skip "curl is not installed (deploy/bootstrap --tests)"
tool() { "$troupe" --socket "$work/one.sock" "$@"; }
code() { curl -sS --max-time 30 -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err"; }
code_of() { sed -n 's/.*#code=\([0-9a-f]*\)$/\1/p' "$work/out"; }

background "$troupe" node --port 0 --socket "$work/off.sock" --seed self 2>"$work/off.log"
off=$started
check a_node_without_the_api_is_up wait_until 60 "$troupe" --socket "$work/off.sock" is-available
expect without_the_api_there_is_none_78 78 "$troupe" --socket "$work/off.sock" dashboard
has it_says_what_to_set "management.enabled = on" "$work/err"
kill -KILL "$off"
if "$troupe" config check --set management.enabled=on >"$work/out" 2>&1; then :; elif grep -q 'no management API' "$work/out"; then
    pass a_build_without_it_says_so
    test_end
fi

background "$troupe" node --port 0 --socket "$work/one.sock" --seed self --set management.enabled=on --set management.port=0 \
    --set management.read-only=off --load "$build/examples/.libs/echo.so" 2>"$work/one.log"
one=$started
check the_node_is_up wait_until 60 tool is-available
url=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/one.log" | tail -n 1)
self=$(tool members -o name)

# ---- the page, for anybody: it tells nothing of the node
for path in / /dashboard /dashboard/; do
    is "page_at_$path" "$(code -D "$work/head" "$url$path")" 200
done
has the_page_has_a_policy "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'" "$work/head"
lacks the_page_does_not_name_the_node "$self"
for file in dashboard.css live.js draw.js ring.js main.js icon.svg; do
    is "part_$file" "$(code "$url/dashboard/$file")" 200
done
is nothing_else_is_there "$(code "$url/dashboard/page.c")" 404

# ---- a code is good once, on this page alone
expect the_tool_prints_an_address 0 tool dashboard
has it_is_the_address_of_this_node "$url/dashboard#code="
one_code=$(code_of)
is the_code_has_256_bits "${#one_code}" 64
expect another_one_is_another 0 tool dashboard
if [ "$(code_of)" != "$one_code" ]; then pass codes_differ; else fail codes_differ; fi
other_code=$(code_of)
is a_foreign_page_gets_no_session "$(code -H 'Origin: http://evil.example' -d "code=$one_code" "$url/dashboard/session")" 403
has it_is_named_foreign foreign-origin
is a_wrong_code_opens_nothing "$(code -d "code=${one_code%?}" "$url/dashboard/session")" 403
has it_says_what_prints_one "troupe dashboard"
is a_code_in_the_query_is_none "$(code -X POST "$url/dashboard/session?code=$one_code")" 400
is a_code_is_exchanged "$(code -D "$work/head" -c "$work/jar" -H "Origin: $url" -d "code=$one_code" "$url/dashboard/session")" 200
has the_cookie_is_hidden_from_scripts "; HttpOnly; SameSite=Strict" "$work/head"
lacks the_answer_has_no_secret "$(awk '/troupe-/ { print $7 }' "$work/jar")"
is a_code_is_good_once "$(code -d "code=$one_code" "$url/dashboard/session")" 403
is the_other_code_still_is "$(code -d "code=$other_code" "$url/dashboard/session")" 200

# ---- what the cookie opens
is without_it_actors_are_closed "$(code "$url/control/top")" 401
is it_opens_actors "$(code -b "$work/jar" "$url/control/top")" 200
is it_opens_dead_letters "$(code -b "$work/jar" "$url/deadletters")" 200
is it_opens_no_order "$(code -b "$work/jar" -X DELETE "$url/cluster/members/$self")" 403
has it_is_a_readers not-a-writer
is a_foreign_page_has_no_use_of_it "$(code -b "$work/jar" -H 'Origin: http://127.0.0.1:1' "$url/deadletters")" 401
is a_foreign_host_has_none "$(code -b "$work/jar" -H 'Host: evil.example' "$url/deadletters")" 403
name=$(awk '/troupe-/ { print $6 }' "$work/jar") secret=$(awk '/troupe-/ { print $7 }' "$work/jar")
is another_secret_opens_nothing "$(code -b "$name=${secret%?}x" "$url/deadletters")" 401
is cookies_of_other_programs_do_no_harm "$(code -b "a=$(printf '%3000s' '' | tr ' ' x); $name=$secret" "$url/deadletters")" 200
is the_name_has_the_port "$name" "troupe-${url##*:}"

# ---- the log of events
is the_log_is_open_on_loopback "$(code "$url/cluster/event-log?type=MemberUp")" 200
has it_has_the_event "\"type\":\"MemberUp\""
has it_is_complete '"complete":true'
lacks it_has_no_other_type MemberJoined

# ---- who sends to an actor: known of traced messages
senders() { code -b "$work/jar" "$url/control/senders?path=/user/echo" >/dev/null && grep -qF "$1" "$work/out"; }
check nobody_is_known_before_traces wait_until 60 senders '"traced":0,"senders":[]'
expect its_messages_are_sampled 0 tool trace start --path /user/echo
traced() { tool ask /user/echo hello >/dev/null && senders '"count":'; }
check a_sender_is_told_then wait_until 60 traced
has of_its_type '"type":"troupe.string"'
is a_path_is_needed "$(code -b "$work/jar" "$url/control/senders")" 400
ended_by_kill() { kill -KILL "$one"; }
ended_by_kill
test_end
