#!/bin/bash
# readme_hosts.sh - executes the lines for three hosts that the documentation shows, word for word, on three
# namespaces with the addresses that it names (lib_page.sh says how they are marked).
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/multinode/lib_page.sh
. "$(dirname "$0")/lib_page.sh"
HOSTS_NET=10.0.0
hosts_begin 3 namespaces
page=$src/README.md
PATH=$build:$PATH
export LD_LIBRARY_PATH=$build/examples/.libs # where the installed plugins would be
host_socket=() # as on a real host: the node is found in /run/troupe
cd "$work" || exit 1

line_said() { # HOST LINE
    case $2 in
    "troupe members") cp "$work/out" "$work/members" ;;
    *"/user/echo hello") is echo_replies "$(cat "$work/out")" hello ;;
    *'{"add":5}'*) is counter_replies "$(cat "$work/out")" '{"total":5}' ;;
    esac
}

page_run "$page"
if [ "$lines" -ge 5 ]; then pass page_was_executed; else fail page_was_executed "only $lines lines in $page"; fi
is two_members_remain "$(grep -c 'troupe.tcp://demo@10.0.0' "$work/members")" 2
node_ended node_that_left_ends_with_0 3 0
[ "$failures" -eq 0 ]
test_end
