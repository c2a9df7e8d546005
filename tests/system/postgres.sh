#!/bin/bash
# postgres.sh - the journal in PostgreSQL: the conformance kit, a server that is away, and one that is killed under load.
#   postgres.sh [KILLS]   default 2; --long: 30
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_postgres.sh"
kills=${1:-2}
[ "$kills" != --long ] || kills=30
test_begin
program=$build/tests/system/journal_postgres
"$program" built || skip "built --without-postgres"
postgres_begin

results() { # the lines of a program, and its exit code
    "$@" >"$work/results" 2>"$work/err"
    local code=$?
    grep -vE '^acked ' "$work/results"
    [ "$code" -eq 0 ] || { fail "${2}_ends_well" "exit $code: $(tail -n 3 "$work/err" | tr '\n' ' ')"; failures=$((failures + 1)); }
}

results "$program" kit "$url"
postgres_sql 'DROP SCHEMA troupe CASCADE' >/dev/null 2>&1
"$program" init "$url" >/dev/null || fail tables_are_made
results "$program" delete "$url"
results "$program" wait "host=$work/nothing user=troupe password=hunter22 connect_timeout=2"
postgres_sql 'DROP SCHEMA troupe CASCADE' >/dev/null 2>&1
"$program" init "$url" >/dev/null || fail tables_are_made
results "$program" hang "$url" "$postgres_pid"

# kill -9 under load: what was acknowledged is there, what waited was not failed, and each id is in order.
postgres_sql 'DROP SCHEMA troupe CASCADE' >/dev/null 2>&1
"$program" init "$url" >/dev/null || fail tables_are_made
writers=2000
"$program" load "$url" "$writers" >"$work/load" 2>"$work/err" &
load_pid=$!
pids+=("$load_pid")
acked() { [ "$(sed -n 's/^acked //p' "$work/load" | tail -n 1)" -ge "$1" ] 2>/dev/null; }
now_acked() { sed -n 's/^acked //p' "$work/load" | tail -n 1; }
for ((i = 0; i < kills; i++)); do
    wait_until 120 acked $(($(now_acked) + 3000)) || fail "writes_go_on_after_kill_$i" "$(now_acked)"
    postgres_kill
    postgres_start
done
wait_until 120 acked $(($(now_acked) + 3000)) || fail writes_go_on_after_the_last_kill "$(now_acked)"
check each_writer_stores_an_event wait_until 120 grep -q '^begun ' "$work/load"
kill -TERM "$load_pid"
wait "$load_pid"
is writers_end_well "$?" 0
grep -vE '^(acked|begun) ' "$work/load"
# Two batches of 100 may be in flight at each kill.
failed=$(sed -n 's/^acks .* failed \([0-9]*\) .*/\1/p' "$work/load")
judge only_what_was_in_flight_failed "${failed:-999999}" $((kills * 200)) appends

# troupe journal: what the writers left is checked, saved, and restored into another schema.
export TROUPE_PERSISTENCE_JOURNAL=postgres TROUPE_PERSISTENCE_POSTGRES_URL=$url
expect verify_finds_nothing_wrong 0 "$troupe" journal verify
expect export_writes_a_backup 0 "$troupe" journal export
cp "$work/out" "$work/backup"
export TROUPE_PERSISTENCE_POSTGRES_SCHEMA=other
expect a_schema_without_tables_is_refused 78 "$troupe" journal stats
has the_refusal_says_what_to_do 'troupe journal init' "$work/err"
expect init_makes_the_tables 0 "$troupe" journal init
expect init_again_changes_nothing 0 "$troupe" journal init
restore() { "$troupe" journal import <"$work/backup"; }
expect import_restores_it 0 restore
expect what_was_restored_is_right 0 "$troupe" journal verify
"$troupe" journal export >"$work/again" 2>/dev/null
strip() { sed 's/"offset":[0-9]*,//' "$1"; }
check the_backup_of_the_restored_journal_is_the_same cmp <(strip "$work/backup") <(strip "$work/again")
expect a_second_import_is_refused 1 restore
expect a_cut_backup_is_refused 65 env TROUPE_PERSISTENCE_POSTGRES_SCHEMA=third bash -c '"$0" journal init && head -n 5 "$1" | "$0" journal import' "$troupe" "$work/backup"
expect ids_are_listed 0 "$troupe" journal ids
has an_id_is_there ' l7'
expect events_are_shown 0 "$troupe" journal show l7 -o json
has an_event_is_there '"id":"l7","number":1,'
expect an_unknown_id_is_said 68 "$troupe" journal show nobody
expect stats_count 0 "$troupe" journal stats
has stats_count_ids "ids           $writers"
# A node whose server is away: doctor and status name it until the server is back.
background env -u TROUPE_PERSISTENCE_POSTGRES_SCHEMA "$troupe" node --port 0 --seed self --socket "$work/node.sock" 2>"$work/node.log"
node() { "$troupe" --socket "$work/node.sock" "$@"; }
journal_found() { node doctor >"$work/found" 2>/dev/null; grep -qE "^ $1 +journal +$2" "$work/found"; } # LEVEL TEXT
has_problem() { node status 2>/dev/null | grep -qF 'the journal (postgres) is away'; }
check doctor_finds_the_journal_open wait_until 60 journal_found ok 'the journal is open'
postgres_kill
check doctor_names_a_journal_that_is_away wait_until 60 journal_found FAIL 'the journal is away'
check status_names_it_too wait_until 60 has_problem
postgres_start
check doctor_finds_it_open_again wait_until 60 journal_found ok 'the journal is open'
# From a directory of LMDB to PostgreSQL and back: events, tags, snapshots, numbers and epochs are the same.
journal_backup "$work/moved"
of_lmdb() { TROUPE_PERSISTENCE_JOURNAL=lmdb TROUPE_PERSISTENCE_LMDB_DIR=$work/$1 "$troupe" journal "$2"; }
of_third() { TROUPE_PERSISTENCE_POSTGRES_SCHEMA=moved "$troupe" journal "$1"; }
"$program" lmdb || skip "built --without-lmdb"
check a_backup_goes_into_lmdb of_lmdb store_one import <"$work/moved"
of_lmdb store_one export >"$work/one"
check from_lmdb of_third init
check to_postgres of_third import <"$work/one"
of_third export >"$work/two"
check and_back_to_lmdb of_lmdb store_two import <"$work/two"
of_lmdb store_two export >"$work/three"
check the_journal_in_postgres_is_the_same cmp <(strip "$work/moved") <(strip "$work/two")
check the_journal_that_came_back_is_the_same cmp "$work/moved" "$work/three"
check what_came_back_is_right of_lmdb store_two verify
postgres_sql 'UPDATE other.format SET version = 99' >/dev/null
expect newer_tables_are_refused 78 "$troupe" journal ids
has the_refusal_names_both_versions 'version 99, and this Troupe uses version 1' "$work/err"
test_end
