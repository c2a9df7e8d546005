#!/bin/bash
# surface.sh - the commands, flags, paths, keys and exit codes that operators were promised: each is there with help, manual,
# completion and a test that calls it, or stands with its reason in *Left out* of docs/operating.md, which has at most ten rows.
. "$(dirname "$0")/lib.sh"
test_begin
scripts=("$src"/tests/system/*.sh "$src"/tests/multinode/*.sh "$src"/tests/upgrade/*)
mapfile -t scripts < <(printf '%s\n' "${scripts[@]}" | grep -v 'system/surface\.sh$')
sources=("${scripts[@]}" "$src"/tests/unit/*/*.c)
mapfile -t left < <(sed -n '/^## Left out/,/^## /s/^| `\([^`]*\)` |.*/\1/p' "$src/docs/operating.md")
is_left_out() { local name; for name in "${left[@]}"; do [ "$name" != "$1" ] || return 0; done; return 1; }

# ---- commands
mapfile -t commands < <("$troupe" __complete "" | sort -u)
has_command() { local name; for name in "${commands[@]}"; do [ "$name" != "$1" ] || return 0; done; return 1; }
promised="node dev shell status members member join leave down leader unreachable is-singleton is-available events wait why peers shutdown
    tree ls actor kill stop restart spawn send ask ping watch publish topics shards entity singleton routees journal reach
    top deadletters trace metrics logs dashboard graph doctor check report config cert cookie sim fsm new bench completion version
    member-status cluster-status drain undrain upgrade bridge pack help"
missing=0
for name in $promised; do
    if has_command "$name"; then
        ! is_left_out "$name" || fail "${name}_is_there_and_called_left_out"
    elif ! is_left_out "$name"; then
        fail "command_$name" "it is neither there nor in Left out of docs/operating.md"
        missing=$((missing + 1))
    fi
done
is each_promised_command_is_there_or_left_out "$missing" 0
[ "${#left[@]}" -le 10 ] && pass at_most_ten_are_left_out || fail at_most_ten_are_left_out "${#left[@]}"

"$troupe" help >"$work/list" 2>&1
perl "$src/docs/man/make-man" --source --tool "$troupe" "$work/man" "$src/include/troupe/base.h" >"$work/man.out" 2>&1 || fail the_manual_is_made "$(cat "$work/man.out")"
manual=$(find "$work/man" -name 'troupe.1*' | head -n 1)
called() { # NAME: a test runs it, as `troupe NAME` or by one of the names that the scripts have for that
    grep -lE "(troupe\"?'?( --[a-z-]+[ =][^ ]+)*|(^|[ (!])(at|ctl|far|tool|good|same|open|secret|of|cli|one|ask_at|node|run|t)( [0-9]| \"?[$][a-z{}]+\"?)?( --[a-z-]+ [^ ]+)*) $1([ \"')>|;]|$)" \
        "${scripts[@]}" | head -n 1
}
bad_help=() bad_manual=() bad_test=() bad_list=()
for name in "${commands[@]}"; do
    "$troupe" "$name" --help >/dev/null 2>&1 || bad_help+=("$name")
    grep -qE "^ +$name( |$)" "$work/list" || bad_list+=("$name")
    grep -q -- "$name" "$manual" || bad_manual+=("$name")
    where=$(called "$name")
    if [ -n "$where" ]; then echo "  $name: ${where#"$src"/}"; else bad_test+=("$name"); fi
done
is each_command_has_help "${bad_help[*]}" ""
is each_command_is_listed "${bad_list[*]}" ""
is each_command_is_in_the_manual "${bad_manual[*]}" ""
is each_command_is_called_by_a_test "${bad_test[*]}" ""

# What the doctor tells to type, and its pages: commands that there are.
grep -ohE '(^|[^/a-z])troupe [a-z]+( [a-z]+)?' "$src"/cluster/node/doctor{,_cluster}.c "$src/docs/doctor.md" | sed -E 's/^[^t]*troupe //' | sort -u >"$work/typed"
bad=()
while read -r name verb; do
    case $name in
    cert | config | cookie | journal) { "$troupe" __complete "$name" ""; "$troupe" "$name" --help; } 2>&1 | grep -qwF -- "$verb" || bad+=("$name $verb") ;;
    *) has_command "$name" || bad+=("$name") ;; # what follows may be the sentence
    esac
done <"$work/typed"
is what_doctor_tells_to_type_is_there "${bad[*]}" ""
check the_list_has_them grep -q '^undrain' "$work/typed"

# ---- flags: all that the completion offers, and those that were promised
for name in "${commands[@]}"; do "$troupe" __complete "$name" --; done | grep '^--' | sed 's/=.*//' | sort -u >"$work/flags"
bad=()
while read -r flag; do
    grep -qF -- "$flag" "${scripts[@]}" || grep -qF -- "\"$flag\"" "${sources[@]}" || bad+=("$flag")
done <"$work/flags"
is each_flag_is_given_by_a_test "${bad[*]}" ""
bad=()
for flag in --system --socket --endpoint --via --cacert --cert --key --output --watch --timeout --dry-run --yes --quiet --verbose --color --help \
    --version --role --status --unreachable --no-wait --dead --type --since --members --gone --converged --up --depth --on --rebalance --follow \
    --level --component --all-members --fix-hints --out-file --apps; do
    grep -qx -- "$flag" "$work/flags" || is_left_out "events $flag" || bad+=("$flag")
done
is each_promised_flag_is_there_or_left_out "${bad[*]}" ""

# ---- paths of the management API
bad=()
for path in /cluster/members /cluster/domain-events /cluster/shards /ready /alive /health/ready /health/alive /metrics /actors /deadletters /trace /config /openapi.json; do
    grep -qF -- "$path" "${sources[@]}" && grep -qF -- "\`$path" "$src/docs/operating.md" || bad+=("$path")
done
is each_path_is_asked_by_a_test_and_told "${bad[*]}" ""

# ---- keys
"$troupe" config show -o json >"$work/keys" 2>&1
bad=()
for key in remote.transport remote.hostname remote.port remote.bind-hostname remote.bind-port remote.maximum-frame-size remote.large-message-threshold \
    cluster.seed-nodes cluster.roles cluster.min-nr-of-members cluster.gossip-interval cluster.leave-timeout cluster.may-create-cluster \
    cluster.seed-node-timeout cluster.retry-unsuccessful-join-after cluster.failure-detector.{threshold,acceptable-heartbeat-pause,heartbeat-interval} \
    cluster.failure-detector.{min-std-deviation,max-sample-size,monitored-by-nr-of-members,expected-response-after} \
    cluster.downing.{active-strategy,stable-after,down-all-when-unstable,auto-down-after,static-quorum.quorum-size,static-quorum.role} \
    cluster.downing.{keep-majority.role,keep-oldest.down-if-alone,keep-oldest.role,keep-referee.address,lease.name} \
    management.bind management.port management.read-only log.level log.format; do
    grep -qF "\"$key\"" "$work/keys" || bad+=("$key")
done
is each_key_is_known "${bad[*]}" ""

# ---- exit codes and signals
bad=()
for code in 0 1 64 65 68 69 70 74 75 76 77 78 130 143; do
    where=$(grep -lE "^ *(! )?(expect|says|ended|node_ended) [A-Za-z0-9_\"\${}]+ (\"[^\"]*\" |[0-9]+ )?$code( |$)|(code|-eq|=) \"?$code\"?( |;|\]|$)" "${scripts[@]}" | head -n 1)
    if [ -n "$where" ]; then echo "  exit $code: ${where#"$src"/}"; else bad+=("$code"); fi
done
is each_exit_code_is_made_by_a_test "${bad[*]}" ""
bad=()
for signal in TERM INT HUP USR1 USR2; do grep -qE "(kill|kill_node|-s) .*-?$signal|-$signal" "${scripts[@]}" || bad+=("$signal"); done
is each_signal_is_sent_by_a_test "${bad[*]}" ""
test_end
