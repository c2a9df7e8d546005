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
wait_until 30 test -S "$work/c.sock" || fail fake_starts
export TROUPE_SOCKET=$work/c.sock
expect script_is_printed 0 troupe completion bash
check script_is_bash bash -n "$work/out"
expect other_shells_are_refused 64 troupe completion tcsh
expect zsh_script_is_printed 0 troupe completion zsh
has zsh_asks_the_program '__complete' && has zsh_knows_its_command '#compdef troupe'
! command -v zsh >/dev/null || check script_is_zsh zsh -n "$work/out"
expect fish_script_is_printed 0 troupe completion fish
has fish_asks_the_program '__complete'
! command -v fish >/dev/null || check script_is_fish fish -n "$work/out"
is flags_of_a_node "$(troupe __complete node --log-f | grep -- --log-f | tr '\n' ' ')" "--log-format --log-file "
is flags_of_certificates "$(troupe __complete cert ca --d | grep -- --d | tr '\n' ' ')" "--dir --days "
is words_of_config "$(troupe __complete config "" | tr '\n' ' ')" "show check reload "
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
is commands_by_their_start "$(offers 'troupe mem' | tr '\n' ' ')" "members member-status member "
is hidden_command_is_not_offered "$(offers 'troupe __')" ""
is flag_of_the_command "$(offers 'troupe members --unr')" "--unreachable"
is no_flag_of_another_command "$(offers 'troupe members --dry')" ""
is flag_before_the_command "$(offers 'troupe --time')" "--timeout"
is values_of_output "$(offers 'troupe members -o js' | tr '\n' ' ')" "json jsonl "
is event_types "$(offers 'troupe events --type Member' | head -n 1)" "MemberJoined"
# The node has 200 ms to answer, or nothing is offered: a busy machine may need a second try.
offered() { [ "$(offers "$1" | tr '\n' ' ')" = "$2" ]; }
check members_after_down wait_until 30 offered 'troupe down troupe.tcp' "$A ${A%2}3 "
check member_continues_behind_the_colon wait_until 30 offered 'troupe down troupe.tcp://demo@127.0.0.1:2553' "2553 "
check member_by_host wait_until 30 offered 'troupe leave 127' "127.0.0.1:2552 127.0.0.1:2553 "
is help_offers_commands "$(offers 'troupe help le' | tr '\n' ' ')" "leave leader "
is completion_offers_shells "$(offers 'troupe completion ' | tr '\n' ' ')" "bash zsh fish "
is new_offers_kinds "$(offers 'troupe new ' | tr '\n' ' ')" "app actor plugin "
is new_offers_languages "$(offers 'troupe new app x --lang ' | tr '\n' ' ')" "c c++ "
export TROUPE_SOCKET=$work/none.sock
is silent_without_a_node "$(offers 'troupe down ' 2>&1)" ""
# A second, which a busy machine may lose: so the best of several.
quick() { local begin; begin=$(now_ms); offers 'troupe down ' && [ $(($(now_ms) - begin)) -lt 1000 ]; }
check quick_without_a_node wait_until 30 quick
test_end
