#!/bin/bash
# readme_hosts.sh - executes the lines for three hosts that the documentation shows, word for word, on three
# namespaces with the addresses that it names. A block is marked by a comment line before it:
#   <!-- hosts: demo.conf -->   a file, put into the working directory
#   <!-- hosts: N -->           commands for host N; `troupe node` keeps running
. "$(dirname "$0")/lib.sh"
HOSTS_NET=10.0.0
hosts_begin 3 namespaces
page=$src/README.md
PATH=$build:$PATH
export LD_LIBRARY_PATH=$build/examples/.libs # where the installed plugins would be
host_socket=() # as on a real host: the node is found in /run/troupe
cd "$work" || exit 1

run_line() { # HOST LINE
    if [[ $2 == "troupe node "* ]]; then
        # shellcheck disable=SC2086 # split as the reader's shell would; no quotes in these lines
        host_start "$1" "$work/node-$1.log" env -C "$work" $2
        node_pid[$1]=$host_started
        pids+=("$host_started")
        pass "host_$1_starts"
    else
        lines=$((lines + 1))
        expect "line_$lines $2" 0 host_run "$1" env -C "$work" bash -c "$2"
        case $2 in
        "troupe members") cp "$work/out" "$work/members" ;;
        *"/user/echo hello") is echo_replies "$(cat "$work/out")" hello ;;
        *'{"add":5}'*) is counter_replies "$(cat "$work/out")" '{"total":5}' ;;
        esac
    fi
}

lines=0 mark='' inside=''
while IFS= read -r line <&4; do
    if [[ $line == "<!-- hosts: "* ]]; then
        mark=${line#<!-- hosts: }
        mark=${mark% -->}
    elif [[ -n $mark && $line == '```'* ]]; then
        if [ -n "$inside" ]; then inside='' mark=''; else inside=yes; fi
    elif [ -n "$inside" ] && [[ $mark == [0-9] ]]; then
        [ -z "$line" ] || run_line "$mark" "$line"
    elif [ -n "$inside" ]; then
        echo "$line" >>"$work/$mark"
    fi
done 4<"$page"
if [ "$lines" -ge 5 ]; then pass page_was_executed; else fail page_was_executed "only $lines lines in $page"; fi
is two_members_remain "$(grep -c 'troupe.tcp://demo@10.0.0' "$work/members")" 2
node_ended node_that_left_ends_with_0 3 0
[ "$failures" -eq 0 ]
test_end
