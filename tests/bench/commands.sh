#!/bin/bash
# commands.sh - how long each command of the tool takes, as a whole process, beside /bin/true: medians, by turns.
#
#   commands.sh [--rounds N]   default 2; the figures of docs/performance.md are those of 21
#
# A node of one member with an actor and the management API answers them. Orders are asked with --dry-run; left out are commands
# that run until they are told to end (node, dev, multinode, bridge, events) or build something (sim, new, pack, fsm, cert, upgrade).
# The time is never judged; each command must end with the exit code that is named here.
# shellcheck disable=SC2154
. "$(dirname "$0")/../system/lib.sh"
rounds=2
[ "${1-}" != --rounds ] || rounds=${2:?--rounds needs a number}
test_begin
api="--set management.enabled=on --set management.port=0"
# shellcheck disable=SC2086 # words
"$troupe" config check $api >"$work/out" 2>&1 || { ! grep -q 'no management API' "$work/out" || api=; }
# shellcheck disable=SC2086 # words
background "$troupe" node --host 127.0.0.1 --port 0 --socket "$work/one.sock" --seed self $api --load "$build/examples/.libs/echo.so" \
    >"$work/one.log" 2>&1
at=("$troupe" --socket "$work/one.sock")
check the_node_is_up wait_until 60 "${at[@]}" is-available
self=$("${at[@]}" members -o name)

# CODE[|CODE] ARGUMENT...: with "-" before the arguments it needs no node
list() {
    cat <<LIST
0 status
0 members
0 member-status
0 member $self
0 cluster-status
0 leader
0 is-singleton
0 is-available
0 unreachable
0 why
0 peers
0 singleton
0 topics
0 shards
0|1|68 entity nothing 1
0|1 reach
0 wait --up
0 leave --dry-run
0|64 down $self --dry-run --yes
0|1 drain
0|1 undrain
0 shutdown --dry-run
0 send /user/echo hello
0 ask /user/echo hello
0|1|68 publish news hello
0 ping /user/echo
0 actor /user/echo
0 stop /user/echo --dry-run
0 kill /user/echo --dry-run
0 restart /user/echo --dry-run
0 tree
0 ls /user
0 top -o json
0 deadletters
0 logs
0|1|68 trace last
0 metrics
0 graph
0|1 doctor
0 check ready
0 check alive
0 report -O $work/report.tar.gz
0 config show
0 config reload
0 dashboard
- 0 config check
- 0 cookie gen
- 0 completion bash
- 0 version
- 0 help
LIST
}
# Once, and into the file of its times: microseconds.
timed_once() { # FILE CODES COMMAND...
    local file=$1 codes=$2 begin end got=0
    shift 2
    begin=${EPOCHREALTIME/./}
    "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    end=${EPOCHREALTIME/./}
    echo $((end - begin)) >>"$file"
    [[ "|$codes|" == *"|$got|"* ]]
}
mapfile -t lines < <(list)
bad=()
for ((round = 0; round < rounds; round++)); do
    for index in "${!lines[@]}"; do
        read -ra words <<<"${lines[index]}"
        command=("${at[@]}")
        if [ "${words[0]}" = - ]; then command=("$troupe") words=("${words[@]:1}"); fi
        rm -f "$work/report.tar.gz"
        timed_once "$work/true.times" 0 /bin/true
        timed_once "$work/$index.times" "${words[0]}" "${command[@]}" "${words[@]:1}" ||
            { [ "$round" -gt 0 ] || bad+=("${words[*]:1}: $(head -n 1 "$work/err")"); }
    done
done
is each_command_ends_as_it_should "$(printf '%s; ' "${bad[@]}")" "; "
printf '%-34s %8s us\n' /bin/true "$(median <"$work/true.times")"
for index in "${!lines[@]}"; do
    name=${lines[index]#- }
    name=${name#* }
    name=${name//"$self"/ADDRESS}
    printf '%-34s %8s us\n' "${name//"$work"\//}" "$(median <"$work/$index.times")"
done
test_end
