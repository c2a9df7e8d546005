#!/bin/bash
# journal.sh - `troupe journal` on a directory of LMDB, without its node; postgres.sh moves one to PostgreSQL and back.
. "$(dirname "$0")/lib.sh"
test_begin
"$build/tests/system/journal_postgres" lmdb || skip "built --without-lmdb"
journal_backup "$work/backup"
export TROUPE_PERSISTENCE_JOURNAL=lmdb TROUPE_PERSISTENCE_LMDB_DIR=$work/first
says a_missing_journal_is_said 68 "there is no journal in $work/first" "$troupe" journal ids
check a_read_makes_none test ! -e "$work/first"
says a_missing_directory_is_said 78 "persistence.lmdb.dir is not set" env -u TROUPE_PERSISTENCE_LMDB_DIR "$troupe" journal ids
expect init_makes_the_directory 0 "$troupe" journal init
expect init_again_changes_nothing 0 "$troupe" journal init
expect an_empty_journal_is_right 0 "$troupe" journal verify
restore() { "$troupe" journal import <"$work/backup"; }
expect import_restores_a_backup 0 restore
has import_counts '4 events, 3 snapshots, 3 ids, 2 scopes' "$work/err"
says a_second_import_is_refused 1 'another has written' restore
expect what_was_restored_is_right 0 "$troupe" journal verify
has verify_counts '3 ids, 4 events, 0 problems' "$work/err"
expect export_writes_it 0 "$troupe" journal export
cp "$work/out" "$work/again"
check what_was_exported_is_the_backup cmp "$work/backup" "$work/again"
expect ids_are_listed 0 "$troupe" journal ids
has an_id_without_events_is_there '12           forgotten'
expect events_are_shown 0 "$troupe" journal show order-7
has an_event_has_its_tags '#order #paid'
expect an_unknown_id_is_said 68 "$troupe" journal show nobody
expect stats_count 0 "$troupe" journal stats
has stats_say_where_it_is 'lmdb (of this node)'
has stats_count_scopes 'scopes        3' # and that of the import
cut() { head -n 3 "$work/backup" | TROUPE_PERSISTENCE_LMDB_DIR=$work/cut "$troupe" journal import; }
says a_cut_backup_is_refused 65 'the file has no end' cut
expect a_type_without_entities_is_folded 0 "$troupe" journal fold order 8
has fold_counts '0 entities and 0 reminders of 0 shards of order are in the first 8 now' "$work/err"
says no_shards_are_refused 64 'SHARDS is a number from 1 to 100000, and not 0' "$troupe" journal fold order 0
says too_many_shards_are_refused 64 'SHARDS is a number from 1 to 100000, and not 100001' "$troupe" journal fold order 100001

# While a node has the directory, nothing else opens it.
background "$troupe" node --port 0 --socket "$work/node.sock" --seed self --log-level error \
    --set persistence.journal=lmdb --set "persistence.lmdb.dir=$work/first" 2>"$work/node.log"
pid=$started
up() { "$troupe" status --socket "$work/node.sock" >/dev/null 2>&1; }
wait_until 60 up || fail the_node_is_up "$(tail -n 3 "$work/node.log")"
for verb in init ids 'show order-7' export import verify stats 'fold order 8'; do
    # shellcheck disable=SC2086 # words
    says "${verb%% *}_is_refused_while_a_node_has_it" 69 "it is open already, in process $pid" "$troupe" journal $verb </dev/null
done
kill -TERM "$pid"
ended the_node_ends "$pid" 0
expect it_is_right_behind_the_node 0 "$troupe" journal verify
test_end
