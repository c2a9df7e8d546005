#!/bin/bash
# demo.sh - `troupe demo`: its trace in a terminal, whom its page answers, and the page in headless Chromium: begun and stopped by
# keyboard, at 400 and 2,000 pixels, dark and light. Proves UJ-32, UJ-44 to -47.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_browser.sh"
test_begin
demo() { "$troupe" demo "$@"; }

# ---- in a terminal: the trace, in the article's form
expect it_has_a_list 0 demo --list
for name in countdown producer-consumer map-reduce virus-scan all sequence; do has "the_list_has_$name" "$name"; done
expect it_has_help 0 demo --help
has help_says_where_the_actors_live "no node is asked or needed"
expect a_count_down_ends 0 demo countdown --once --pace 2ms
odd=$(grep -vcE '^[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3} [TW] \[(actor[0-9]|main)\] - ' "$work/out")
# UJ-32
is each_line_has_the_form_of_the_article "$odd" 0
cp "$work/out" "$work/trace"
check a_turn_is_traced grep -qE ' T \[actor[0-9]\] - TestActor:(actor|common)[0-9]+ repeat\([0-9]\)$' "$work/trace"
# UJ-32
check a_missing_actor_is_a_warning grep -qE ' W \[actor[0-9]\] - repeat:(actor|common)[0-9]+ to is null: actor[0-9]+$' "$work/trace"
expect one_on_a_single_thread_ends 0 demo producer-consumer --once --pace 1ms --threads 1
lacks it_has_one_thread "[actor1]"
expect a_scan_of_a_tree_ends 0 demo virus-scan --once --pace 1ms --directory "$src/docs"
has it_says_what_it_lacks "there is no file *.txt"
expect steps_that_are_over_75 75 demo map-reduce --once --steps 1 --pace 10s
has it_says_how_to_go_on "--steps" "$work/err"
expect at_most_200_actors 0 demo countdown --once --pace 1ms --actors 200
expect one_more_64 64 demo countdown --once --actors 201
has it_says_how_many "--actors is a number from 2 to 200" "$work/err"
expect at_most_150_beside_all_others 0 demo all --once --pace 1ms --actors 150
expect one_more_beside_them_64 64 demo all --once --actors 151
has it_says_how_many_fit "--actors of 'all' is a number from 2 to 150" "$work/err"
expect at_most_64_threads_64 64 demo countdown --threads 65
expect a_bad_pace_64 64 demo countdown --pace 11s
expect an_unknown_name_64 64 demo countdwn
has the_nearest_is_named "did you mean 'countdown'?" "$work/err"
expect two_names_64 64 demo countdown all
expect an_unknown_option_64 64 demo countdown --fast
expect a_missing_tree_64 64 demo virus-scan --directory "$work/none"
expect once_needs_a_name_64 64 demo --once
expect closed_stdout 74 bash -c '"$0" demo countdown --once --pace 1ms >/dev/full' "$troupe"
"$troupe" __complete demo "" >"$work/out"
has completion_knows_the_names producer-consumer
background bash -c 'exec "$0" demo map-reduce --once --pace 10s >"$1"' "$troupe" "$work/once.log"
once=$started
check a_long_one_has_begun wait_until 60 grep -q 'MapReduceWorker' "$work/once.log"
kill -INT "$once"
ended an_interrupted_one_130 "$once" 130
background bash -c 'exec "$0" demo map-reduce --once --pace 10s >"$1"' "$troupe" "$work/closed.log"
once=$started
check another_has_begun wait_until 60 grep -q 'MapReduceWorker' "$work/closed.log"
kill -HUP "$once"
ended one_whose_terminal_is_closed_130 "$once" 130

# ---- the page: for whom
command -v curl >/dev/null || skip "curl is not installed (deploy/bootstrap --tests)"
code() { curl -sS --max-time 30 -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err"; }
# Without a descriptor (as many are open as it may have) it says so, and takes the connection as soon as there is one.
background bash -c 'for i in {10..99}; do eval "exec $i</dev/null"; done; exec "$0" demo >"$1" 2>"$2"' "$troupe" "$work/few.log" "$work/few.err"
few=$started
check one_with_few_descriptors_prints_an_address wait_until 60 grep -q '^http' "$work/few.log"
few_url=$(sed 's,/#.*,,' "$work/few.log")/
none_is_free() { # it may have one open for a moment, such as of a file in /proc
    local free=0
    while [ -e "/proc/$few/fd/$free" ]; do free=$((free + 1)); done
    prlimit --pid "$few" --nofile="$free:"
    curl -sS --max-time 1 -o /dev/null "$few_url" 2>"$work/curl.err" || true
    grep -q 'no descriptor is free for another connection' "$work/few.err"
}
check it_says_that_none_is_free wait_until 60 none_is_free
curl -sS --max-time 120 -o /dev/null -w '%{http_code}' "$few_url" >"$work/few.code" 2>&1 &
few_asks=$!
prlimit --pid "$few" --nofile=1024:
wait "$few_asks"
is it_goes_on "$(cat "$work/few.code")" 200
is it_has_said_it_once "$(grep -c 'no descriptor' "$work/few.err")" 1
kill -TERM "$few"
background bash -c 'exec "$0" demo --pace 300ms >"$1"' "$troupe" "$work/page.log"
page=$started
check it_prints_an_address wait_until 60 grep -q '^http://127.0.0.1:[0-9]*/#key=[0-9a-f]\{32\}$' "$work/page.log"
address=$(cat "$work/page.log") url=${address%/#*} key=${address##*=}
with=(-H "Authorization: Bearer $key")
is the_page_is_for_anybody "$(code -D "$work/head" "$url/")" 200
has it_loads_nothing_from_elsewhere "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'" "$work/head"
for part in demo.css demo.js draw.js icon.svg; do is "part_$part" "$(code "$url/$part")" 200; done
is nothing_else_is_there "$(code "$url/page.c")" 404
is without_the_key_nothing_is_told "$(code "$url/state")" 401
has it_says_what_to_open "open the address"
is another_key_opens_nothing "$(code -H "Authorization: Bearer ${key%?}x" "$url/state")" 401
is the_key_opens_it "$(code "${with[@]}" "$url/state")" 200
is_json the_state_is_json
has nothing_was_started '"state":"idle"'
is another_host_is_refused "$(code "${with[@]}" -H 'Host: evil.example' "$url/state")" 403
is a_foreign_page_is_refused "$(code "${with[@]}" -H 'Origin: http://evil.example' -d demo=all "$url/start")" 403
is a_start_is_no_get "$(code "${with[@]}" "$url/start")" 405
is a_demo_has_a_name "$(code "${with[@]}" -d 'demo=none&threads=1&steps=1' "$url/start")" 400
is threads_have_a_limit "$(code "${with[@]}" -d 'demo=all&threads=65&steps=1' "$url/start")" 400
is it_begins "$(code "${with[@]}" -d 'demo=map-reduce&threads=2&steps=64' "$url/start")" 200
is one_runs_at_a_time "$(code "${with[@]}" -d 'demo=all&threads=2&steps=64' "$url/start")" 409
# UJ-44: Add Task and Remove Task
is only_added_ones_are_removed "$(code "${with[@]}" -d '' "$url/remove-task")" 409
has it_says_that_none_was_added "none was added"
is a_task_is_added "$(code "${with[@]}" -d '' "$url/add-task")" 200
is a_task_is_no_get "$(code "${with[@]}" "$url/add-task")" 405
is a_foreign_page_adds_none "$(code "${with[@]}" -H 'Origin: http://evil.example' -d '' "$url/add-task")" 403
is three_threads_are_there "$(code "${with[@]}" "$url/state")" 200
has one_of_them_was_added '"added":1'
has the_state_has_three '"threads":3'
is it_is_removed_again "$(code "${with[@]}" -d '' "$url/remove-task")" 200
threads() { code "${with[@]}" "$url/state" >/dev/null && grep -qF "\"threads\":$1," "$work/out"; }
check it_ends_after_its_turn wait_until 60 threads 2
state() { code "${with[@]}" "$url/state" >/dev/null && grep -qF "\"state\":\"$1\"" "$work/out"; }
is it_stops "$(code "${with[@]}" -d '' "$url/stop")" 200
check it_has_stopped wait_until 60 state stopped
is a_task_belongs_to_a_run "$(code "${with[@]}" -d '' "$url/add-task")" 409
is what_is_no_request_is_refused "$(code --http1.0 "$url/")" 400
expect a_taken_port_69 69 demo --port "${url##*:}"

# ---- the page itself
if [ -z "$sanitizer" ] && command -v chromium >/dev/null && browser_begin; then
    must a_window size 1200 1000
    must the_address_opens open "$address"
    sees it_is_live "document.querySelector('#link').innerText === 'Live'"
    sees the_key_is_out_of_the_address "location.hash === ''"
    # UJ-44
    sees the_menu_has_all "document.querySelector('#demo').options.length === 6"
    must a_demo_is_chosen eval "(() => { document.querySelector('#demo').value = 'countdown'; document.querySelector('#threads').value = 7; })()"
    # UJ-44
    press start_is_pressed_without_a_mouse start
    # UJ-44
    sees seven_threads "document.querySelectorAll('#stage .thread').length === 7 && document.querySelectorAll('#bars li').length === 7"
    sees all_actors "document.querySelectorAll('#stage .actor').length === 34"
    sees none_can_be_removed_yet "document.querySelector('#remove-task').disabled && !document.querySelector('#add-task').disabled"
    # UJ-44
    press add_task_is_pressed_without_a_mouse add-task
    sees eight_threads "document.querySelectorAll('#stage .thread').length === 8 && document.querySelectorAll('#bars li').length === 8"
    sees the_trace_has_the_task "/ T \\[main\\] - task added: 8 threads/.test(document.querySelector('#lines').textContent)"
    press remove_task_is_pressed_without_a_mouse remove-task
    # UJ-44
    sees seven_threads_again "document.querySelectorAll('#stage .thread').length === 7 && document.querySelector('#remove-task').disabled"
    # UJ-46
    sees threads_are_busy "document.querySelectorAll('#stage .thread.busy').length > 0 && document.querySelectorAll('#stage .actor.busy').length > 0"
    # UJ-46
    sees messages_wait "document.querySelectorAll('#stage .waits').length > 0"
    # UJ-46
    sees new_ones_are_marked "document.querySelectorAll('#stage .fresh').length > 0"
    # UJ-45
    sees rates_are_told "/^[1-9][0-9]* messages/.test(document.querySelector('#accepts').innerText) && /^[1-9][0-9]* messages/.test(document.querySelector('#completions').innerText)"
    # UJ-45
    sees the_balance_is_told_in_words "/arrive|handled|balanced/.test(document.querySelector('#balance-text').innerText)"
    # UJ-45
    sees threads_in_use "/^[1-9][0-9]* % of 7/.test(document.querySelector('#usage').innerText)"
    # UJ-47
    sees the_trace_is_there "/ T \\[actor[0-6]\\] - TestActor:actor\\d+ repeat/.test(document.querySelector('#lines').textContent)"
    sees warnings_stand_out "document.querySelectorAll('#lines .warning').length > 0"
    # UJ-47
    sees the_backlog_has_a_curve "document.querySelector('#backlog polygon').points.numberOfItems >= 4"
    # UJ-47
    sees the_past_has_pictures "document.querySelectorAll('#snapshots li svg .dot').length >= 2 * 34"
    sees start_waits_for_the_end "document.querySelector('#start').disabled && !document.querySelector('#stop').disabled"
    must the_place_of_the_first eval "window.before = document.querySelector('#stage .actor').getAttribute('cx') + document.querySelector('#stage .actor').getAttribute('fill')"
    must they_are_redistributed eval "document.querySelector('#redistribute').click()"
    # UJ-44
    sees it_has_another_place_or_colour "document.querySelector('#stage .actor').getAttribute('cx') + document.querySelector('#stage .actor').getAttribute('fill') !== window.before"
    must they_become_transparent eval "document.querySelector('#transparent').click()"
    # UJ-44
    sees they_are "getComputedStyle(document.querySelector('#stage .actor')).fillOpacity === '0.35'"
    # UJ-44
    press stop_is_pressed stop
    sees it_has_stopped_there "/stopped/.test(document.querySelector('#which').innerText) && !document.querySelector('#start').disabled"
    # UJ-44
    sees tasks_wait_for_a_run "document.querySelector('#add-task').disabled && document.querySelector('#remove-task').disabled"
    sees nothing_waits "/^0 messages/.test(document.querySelector('#waiting').innerText)"
    for width in 400 2000; do
        must "a_window_of_$width" size $width 900
        sees "nothing_is_beyond_$width" "innerWidth === $width && document.documentElement.scrollWidth <= $width"
    done
    must dark_is_preferred scheme dark
    sees it_is_dark "getComputedStyle(document.body).backgroundColor === 'rgb(18, 23, 28)'"
    must light_is_preferred scheme light
    sees it_is_light "getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'"
    sees no_other_host_is_asked "performance.getEntriesByType('resource').every(r => r.name.startsWith(location.origin))"
    must the_complaints errors
    is the_page_complains_of_nothing "$value" "[]"
    browsed=1
fi
kill -TERM "$page"
ended the_program_ends_0 "$page" 0
[ -z "${browsed-}" ] || sees the_page_says_that_it_has "document.querySelector('#link').dataset.state === 'gone'"
test_end
