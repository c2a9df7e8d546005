#!/bin/bash
# dashboard_page.sh - the dashboard in headless Chromium, before three real nodes: healthy, partitioned, one killed (-9), the
# node of the page killed; by keyboard, at 400 and 2,000 pixels, dark and light.
#   dashboard_page.sh --shots DIRECTORY   keeps the pictures of docs/
#   dashboard_page.sh --long              a node of 100,000 actors, and the time that its page needs to load
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_browser.sh"
long=0 shots=
while [ $# -gt 0 ]; do
    case $1 in
    --long) long=1 ;;
    --shots) shots=$2; shift ;;
    *) echo "dashboard_page.sh: unknown argument '$1'" >&2; exit 64 ;;
    esac
    shift
done
test_begin
[ -z "$sanitizer" ] || skip "the page is looked at in the plain build; dashboard.sh has the server's part"
command -v chromium >/dev/null || skip "chromium is not installed (deploy/bootstrap --tests)"
if "$troupe" config check --set management.enabled=on >"$work/out" 2>&1; then :; elif grep -q 'no management API' "$work/out"; then
    skip "this build has no management API"
fi

text() { echo "document.querySelector('#$1').innerText.includes($(printf '%s' "$2" | sed "s/.*/'&'/"))"; } # SECTION TEXT: as JS
picture() { [ -z "$shots" ] || must "picture_$1" shot "$shots/dashboard-$1.png"; }
browser_begin || skip "chromium does not start here: $(head -c 300 "$work/browser.err")"

start() { # NAME OPTION...
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --set management.enabled=on --set management.port=0 \
        --set remote.test-adapters=on --set cluster.downing.stable-after=10m --set cluster.downing.down-all-when-unstable=off "$@" 2>"$work/$name.log"
    node=$started
}
ctl() { "$troupe" --socket "$work/$1.sock" "${@:2}"; } # NAME COMMAND...
members() { [ "$(ctl "$1" members -o name 2>/dev/null | wc -l)" -eq "$2" ]; }
open_page() { # NAME: with a code
    url=$(ctl "$1" dashboard) && must "the_page_of_${1}_opens" open "$url"
}

if [ $long = 1 ]; then
    start big --seed self --load "$build/tests/system/.libs/many.so:100000"
    check a_node_of_100000_actors_is_up wait_until 120 ctl big is-available
    must a_window size 1400 1400
    open_page big
    sees it_shows_all_of_them "$(text actors '100,0')"
    ask eval "Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)" && measure load "$value" ms
    ask eval "Math.round(performance.getEntriesByType('resource').filter(r => r.name.includes('/control/')).reduce((m, r) => Math.max(m, r.duration), 0))" &&
        measure slowest_question "$value" ms
    must one_of_them eval "location.hash = '#actor=/user'"
    sees its_children_are_counted "$(text one 'Show its 100')"
    must its_children eval "document.querySelector('[data-act=children]').click()"
    sees a_hundred_are_shown "$(text one 'the first 100 of')"
    must nothing_was_complained_of errors
    is no_complaint "$value" "[]"
    test_end
fi

start one --seed self --load "$build/examples/.libs/echo.so"
one=$node
check one_is_up wait_until 60 members one 1
one_address=$(ctl one members -o name)
start two --seed "$one_address" --load "$build/tests/system/.libs/stuck.so:1" --set actor.default-dispatcher.workers=2
two=$node
start three --seed "$one_address"
three=$node
check three_are_up wait_until 60 ctl one wait --members 3 --converged --timeout 5s
three_address=$(ctl three members -o json | sed -n 's/.*"selfNode": "\(.*\)",/\1/p')
three_short=${three_address#*@}

# ---- healthy
must a_wide_window size 1100 1300
open_page one
sees it_is_live "document.querySelector('#link').innerText === 'Live'"
sees nothing_is_wrong "$(text wrong 'Nothing is wrong')"
sees three_members "$(text members '3 members')"
sees it_says_who_leads "/this node/.test(document.querySelector('#members').innerText) && /leader/.test(document.querySelector('#members table').innerText)"
sees it_is_converged "$(text members 'Converged')"
sees the_ring_has_three "document.querySelectorAll('svg.ring .dot').length === 3"
sees the_sections_have_their_order "[...document.querySelectorAll('main > section')].map(s => s.id).join() === 'wrong,actors,one,members,shards,dead,events'"
sees the_past_is_there "$(text events 'MemberUp')"
sees the_code_is_gone "location.hash === '' && document.cookie === ''"
sees no_other_host_is_asked "performance.getEntriesByType('resource').every(r => r.name.startsWith(location.origin))"
ctl one send /user/echo lost >/dev/null # its answer is for nobody
sees a_dead_letter_is_told "$(text dead 'told-to-nobody')"
picture healthy

# ---- one actor: what failed, by its path
expect it_is_restarted 0 ctl one restart /user/echo --yes
must an_actor_is_asked_for eval "location.hash = '#actor=/user/echo'"
sees it_has_restarted "/Restarts\\s+1/.test(document.querySelector('#one').innerText)"
sees its_senders_are_not_known "$(text one 'troupe trace start --path /user/echo')"
expect it_is_killed 0 ctl one kill /user/echo --yes
sees it_is_not_there "$(text one 'no actor at')"
sees its_failure_is_told_all_the_same "$(text one 'failed')"

# ---- narrow and wide, dark and light
for width in 400 2000; do
    must "a_window_of_$width" size $width 900
    sees "nothing_is_beyond_$width" "innerWidth === $width && document.documentElement.scrollWidth <= $width"
done
must dark_is_preferred scheme dark
sees it_is_dark "getComputedStyle(document.body).backgroundColor === 'rgb(18, 23, 28)'"
must light_is_preferred scheme light
sees it_is_light "getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'"
must as_before size 1100 1300

# ---- a hundred members, of whom ten are accused by ten each: an answer that this page is given instead of the node's
must a_hundred_members eval "(() => { const real = window.fetch, node = (i) => 'troupe.tcp://demo@10.1.2.' + i + ':25520'; window.fetch = async (path, o) => {
    if (path !== '/control/members') return real(path, o); const reply = await (await real(path, o)).json(), one = reply.members[0];
    reply.members = Array.from({ length: 100 }, (_, i) => ({ ...one, node: node(i), reachable: i % 10 !== 0, roles: ['backend', 'seed'] }));
    reply.unreachable = reply.members.filter(m => !m.reachable).map(m => ({ node: m.node, observedBy: Array.from({ length: 10 }, (_, i) => node(i * 7 + 1)), sinceMs: 9 }));
    return new Response(JSON.stringify(reply)); }; window.restore = () => { window.fetch = real; }; })()"
must a_narrow_window size 400 900
sees a_hundred_are_listed "document.querySelectorAll('#members tbody tr').length === 100 && document.querySelectorAll('svg.ring .dot.lost').length === 10"
sees each_accusation_is_an_arrow "document.querySelectorAll('svg.ring .accuses').length >= 90"
sees they_fit_into_400 "document.documentElement.scrollWidth <= 400"
must the_answers_are_real_again eval "window.restore()"
must as_before_again size 1100 1300
sees three_again "document.querySelectorAll('#members tbody tr').length === 3"

# ---- partitioned: this node hears nobody, and its strategy says what becomes of it
expect it_is_cut_off 0 ctl one fault set all blackhole
sees both_are_accused "document.querySelectorAll('svg.ring .dot.lost').length === 2 && document.querySelectorAll('svg.ring .accuses').length >= 2"
sees it_says_that_this_side_stops "$(text wrong 'downing, stops')"
sees it_says_why_not_converged "$(text members 'Not converged')"
sees it_names_the_accuser "$(text members "says ${one_address#*@}")"
picture partitioned
expect it_is_healed 0 ctl one fault clear
for node in $(ctl one members -o name); do # or they wait for answers on connections that have swallowed theirs
    [ "$node" = "$one_address" ] || ctl one fault disconnect "${node#*@}" >/dev/null 2>&1
done
sees nothing_is_wrong_again "$(text wrong 'Nothing is wrong')"
sees the_stream_has_told_both "document.querySelector('#events').innerText.includes('UnreachableMember') && document.querySelector('#events').innerText.includes('ReachableMember')"

# ---- one killed
kill -KILL "$three"
sees the_dead_one_is_unreachable "$(text wrong "unreachable: $three_short")"
sees it_says_since_when_and_who "/unreachable for .*says /.test(document.querySelector('#members').innerText)"
picture unreachable
expect it_is_downed 0 ctl one down "$three_address" --yes --dead
sees its_removal_is_an_event "$(text events 'MemberRemoved')"
sees two_are_left "$(text members '2 members')"

# ---- by keyboard, on a node with an actor that does not end its turn
open_page two
sees the_turn_is_found "$(text actors 'still, ')"
sees it_is_wrong "$(text wrong 'has held its thread with one message')"
must a_used_address open "$url"
sees it_says_that_it_was_used "$(text wrong 'this code was used')"
sees the_session_goes_on "$(text actors 'still, ')"
reached=0
for ((i = 0; i < 40 && !reached; i++)); do
    ask key Tab
    ask eval "document.activeElement.dataset.key ?? ''"
    [[ $value != *'"long:/user/'* ]] || reached=1
done
if [ $reached = 1 ]; then pass tab_reaches_the_actor; else fail tab_reaches_the_actor "$value"; fi
must enter_chooses_it key Enter
sees it_is_shown "$(text one 'Behaviour')"

# ---- the node of the page is killed: what is shown is marked as old
kill -KILL "$two"
sees the_page_says_that_it_is_gone "document.querySelector('#link').dataset.state === 'gone' && /has not answered since/.test(document.querySelector('#link').innerText)"
sees it_is_the_first_of_what_is_wrong "$(text wrong 'has not answered since')"
sees the_members_are_marked_as_old "/stale: as of .* ago/.test(document.querySelector('#members h2').innerText)"
must the_complaints errors
is the_page_complains_of_nothing "$value" "[]"
kill -KILL "$one"
test_end
