#!/bin/bash
# completion.sh - what bash offers: commands, flags, values, and members of a running node.
. "$(dirname "$0")/lib.sh"
test_begin
PATH=$build:$PATH
A=troupe.tcp://demo@127.0.0.1:2552
cat >"$work/replies" <<END
members {"ok":true,"members":[{"node":"$A"},{"node":"troupe.tcp://demo@127.0.0.1:2553"}]}
END
background "$build/tests/system/ctl_fake" "$work/c.sock" "$work/replies" >/dev/null
wait_until 5 test -S "$work/c.sock" || fail fake_starts
export TROUPE_SOCKET=$work/c.sock
expect script_is_printed 0 troupe completion bash
check script_is_bash bash -n "$work/out"
expect other_shells_are_refused 64 troupe completion tcsh
# shellcheck disable=SC1090
source <(troupe completion bash)

# Complete LINE at its end as readline would: its words break at ':' '=' and '@', too.
offers() {
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    read -ra COMP_WORDS <<<"$(sed -E 's/([:=@])/ \1 /g' <<<"$1")"
    [[ $1 == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _troupe
    printf '%s\n' "${COMPREPLY[@]}"
}
is commands_by_their_start "$(offers 'troupe mem' | tr '\n' ' ')" "members member-status "
is hidden_command_is_not_offered "$(offers 'troupe __')" ""
is flag_of_the_command "$(offers 'troupe members --unr')" "--unreachable"
is no_flag_of_another_command "$(offers 'troupe members --dry')" ""
is flag_before_the_command "$(offers 'troupe --time')" "--timeout"
is values_of_output "$(offers 'troupe members -o js' | tr '\n' ' ')" "json jsonl "
is event_types "$(offers 'troupe events --type Member' | head -n 1)" "MemberJoined"
is members_after_down "$(offers 'troupe down troupe.tcp' | wc -l)" 2
is member_continues_behind_the_colon "$(offers 'troupe down troupe.tcp://demo@127.0.0.1:2553')" "2553"
is member_by_host "$(offers 'troupe leave 127' | tr '\n' ' ')" "127.0.0.1:2552 127.0.0.1:2553 "
is help_offers_commands "$(offers 'troupe help le' | tr '\n' ' ')" "leave leader "
is completion_offers_shells "$(offers 'troupe completion ')" "bash"
export TROUPE_SOCKET=$work/none.sock
begin=$(now_ms)
is silent_without_a_node "$(offers 'troupe down ' 2>&1)" ""
if [ $(($(now_ms) - begin)) -lt 1000 ]; then pass quick_without_a_node; else fail quick_without_a_node; fi
test_end
