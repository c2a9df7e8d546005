# lib_page.sh - runs the lines of a page that are marked, word for word, on the hosts of a test. Source it after
# lib.sh; call page_run PAGE in the directory where the commands shall run; what each line is to print is checked by
# the caller's line_said HOST LINE. A block is marked by a comment line before it:
#   <!-- hosts: demo.conf -->   a file, put into the working directory
#   <!-- hosts: N -->           commands for host N; `troupe node` keeps running
# shellcheck shell=bash

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
        line_said "$1" "$2"
    fi
}

page_run() { # PAGE
    local mark='' inside='' line
    lines=0
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
    done 4<"$1"
}
