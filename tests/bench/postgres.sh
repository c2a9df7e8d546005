#!/bin/bash
# postgres.sh - `bench journal-postgres` with a private PostgreSQL server that flushes, as it does by default.
#   postgres.sh [ARGUMENT...]   those of the bench; tests/run gives a small count. Each line that is promised is there.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/lib_postgres.sh"
test_begin
bench=$build/tests/bench/bench
"$bench" 2>&1 | grep -q '^  journal-postgres ' || skip "built --without-postgres"
postgres_begin fsync=on

if ! timeout 600 "$bench" journal-postgres --postgres "$url" "$@" >"$work/figures" 2>"$work/err"; then
    fail bench_journal_postgres_ends_well "$(tail -n 3 "$work/err" | tr '\n' ' ')"
fi
cat "$work/figures"
for param in pg_rate pg_bare_rate pg_ratio pg_events_per_commit pg_replay_rate; do
    check "bench_journal_postgres_has_$param" grep -qE "^troupe journal-postgres $param [0-9.]*[1-9]" "$work/figures"
done
has bench_journal_postgres_loses_nothing "troupe journal-postgres lost 0 messages" "$work/figures"
test_end
