#!/bin/bash
# alerts.sh - each rule of deploy/prometheus/troupe.rules.yml fires on series of a real node in that state, and not on those of a
# healthy one, says promtool; each has its page, and the board asks for metrics that there are.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
command -v curl >/dev/null || skip "curl is not installed (deploy/bootstrap --tests)"
promtool=$(command -v promtool || echo "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/troupe/promtool")
[ -x "$promtool" ] || skip "promtool is not there (deploy/bootstrap --tests unpacks it from Debian's prometheus)"
"$troupe" config check --set management.enabled=on >"$work/out" 2>&1 ||
    { ! grep -q 'no management API' "$work/out" || skip "this build has no management API"; }
rules=$src/deploy/prometheus/troupe.rules.yml
plugin=$build/tests/system/.libs/many.so

start() { # NAME OPTION...: a node with the API; its URL in $url, its process in $node
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --set management.enabled=on --set management.port=0 --load "$plugin:3" "$@" 2>"$work/$name.log"
    node=$started
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$name.log" || fail "start_$name"
    url=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/$name.log" | tail -n 1)
    self=$(grep -o 'troupe.tcp://demo@127.0.0.1:[0-9]*' "$work/$name.log" | head -n 1)
}
scrape() { curl -sS --max-time 60 "$url/metrics" >"$work/${1:-metrics}" 2>"$work/err"; }
shows() { scrape && grep -qxF -- "$1" "$work/metrics"; }
above() { scrape && awk -v name="$1" -v above="$2" 'index($1, name) == 1 { sum += $2 } END { exit !(sum > above) }' "$work/metrics"; }
judged() { # ALERT fires|quiet SCRAPE...
    local files=("${@:3}")
    python3 "$src/tests/system/alerts_series.py" "$rules" "$1" "$2" "${files[@]/#/$work/}" >"$work/rules_test.yml" &&
        "$promtool" test rules "$work/rules_test.yml"
}
mule() { "$troupe" --socket "$work/one.sock" send /user/mule "$1" >/dev/null 2>"$work/err"; }
alerts() { sed -n 's/^ *- alert: //p' "$rules"; }

check promtool_accepts_the_rules "$promtool" check rules "$rules"
for alert in $(alerts); do
    check "there_is_a_page_of_$alert" grep -qx "## $alert" "$src/docs/alerts.md"
    check "the_rule_names_its_page_$alert" grep -q "docs/alerts.md#$(tr '[:upper:]' '[:lower:]' <<<"$alert")\$" "$rules"
done

# ---- a healthy node: no alert
start one --seed self
one=$node one_url=$url one_self=$self
check the_node_is_up wait_until 60 shows 'troupe_cluster_self_up 1'
check its_actors_are_seen wait_until 60 above troupe_metrics_walk_slice_seconds 0
scrape healthy
for alert in $(alerts); do check "healthy_is_quiet_$alert" judged "$alert" quiet healthy; done
if ! python3 - "$src/deploy/grafana/troupe.json" "$rules" "$src/docs/operating.md" >"$work/out" 2>&1 <<'PY'; then fail the_board_and_the_rules_ask_for_metrics_that_there_are "$(cat "$work/out")"; else pass the_board_and_the_rules_ask_for_metrics_that_there_are; fi
import json, re, sys
board, rules, known = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
asked = [t["expr"] for p in json.loads(board)["panels"] for t in p["targets"]] + re.findall(r"expr: (.*)", rules)
names = {re.sub("_bucket$", "", n) for e in asked for n in re.findall(r"\btroupe_[a-z_]+", e)}
assert len(names) > 15, names
missing = sorted(n for n in names if f"`{n}`" not in known)
assert not missing, missing
PY

# ---- dead letters, restarts: counters that grow, a scrape for each step
for step in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
    mule 'lose 200' && wait_until 60 above 'troupe_dead_letters_total{' $((step * 200 + 199)) || fail "dead_letters_$step"
    scrape "dead$step"
done
check many_dead_letters_fire judged TroupeDeadLetters fires dead{0,1,2,3,4,5,6,7,8,9,10,11,12}
for step in 0 1 2 3 4 5; do
    for _ in 1 2 3 4 5 6; do mule fail; done
    wait_until 60 above 'troupe_actor_restarts_total{' $((step * 6 + 5)) || fail "restarts_$step"
    scrape "restarts$step"
done
check many_restarts_fire judged TroupeRestarts fires restarts{0,1,2,3,4,5}

# ---- a stuck actor: a message waits for more than 10 s
: >"$work/held"
mule "hold $work/held"
"$troupe" --socket "$work/one.sock" send /user/mule x --timeout 300ms >/dev/null 2>&1 # what asks for the actor waits there
check a_message_waits wait_until 120 above troupe_mailbox_age_seconds_max 10
scrape waits
check a_stuck_actor_fires judged TroupeMessagesWait fires waits
rm "$work/held"

# ---- a journal without room: those of journals are filled by unit tests, here the figure of one is changed
start journal --seed self --set persistence.journal=memory
check its_journal_has_room wait_until 60 shows 'troupe_journal_full 0'
scrape room
check a_journal_with_room_is_quiet judged TroupeJournal quiet room
sed 's/^troupe_journal_full 0$/troupe_journal_full 1/' "$work/room" >"$work/full"
check a_full_journal_fires judged TroupeJournal fires full
sed 's/^troupe_journal_open 1$/troupe_journal_open 0/' "$work/room" >"$work/shut"
check a_journal_that_is_not_open_fires judged TroupeJournal fires shut
kill -9 "$node"

# ---- a member that is killed; a node that finds no seed node
start two --seed "$one_self"
two=$node
url=$one_url
check two_are_up wait_until 60 above 'troupe_cluster_members{status="Up"' 1
kill -9 "$two"
check it_is_unreachable wait_until 120 shows 'troupe_cluster_unreachable_members 1'
scrape unreachable
check an_unreachable_member_fires judged TroupeMemberUnreachable fires unreachable
check it_does_not_converge wait_until 60 shows 'troupe_cluster_converged 0'
scrape apart
check no_convergence_fires judged TroupeNotConverged fires apart
start alone --seed troupe.tcp://demo@127.0.0.1:1
check it_is_not_up wait_until 60 shows 'troupe_cluster_self_up 0'
scrape alone
check a_node_that_is_not_up_fires judged TroupeNodeNotUp fires alone
kill -9 "$node" "$one"
test_end
