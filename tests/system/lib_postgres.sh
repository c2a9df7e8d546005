# lib_postgres.sh - a private PostgreSQL server for a test; source it behind lib.sh, after test_begin.
#
#   postgres_begin [SETTING...]  a server of its own (another user where this one is root, a socket in a temporary directory,
#                         no port), its connection string in $url; skips where there is none. SETTING: as for postgres -c
#   postgres_start        starts it (again) and waits until it takes connections
#   postgres_kill         kill -9 of the server and of all its processes
#   postgres_sql TEXT     runs it with psql
#
# The server of the package is never started (deploy/bootstrap), and no port or directory of it is used.
# shellcheck shell=bash

# shellcheck disable=SC2034 # used by the scripts
postgres_begin() {
    postgres_bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    [ -x "$postgres_bin/initdb" ] || skip "no PostgreSQL server here (apt-get install postgresql)"
    postgres_as=()
    if [ "$(id -u)" -eq 0 ]; then # it refuses to run as root
        command -v setpriv >/dev/null && id nobody >/dev/null 2>&1 || skip "PostgreSQL does not run as root, and there is no other user"
        postgres_as=(setpriv --reuid=nobody "--regid=$(id -g nobody)" --clear-groups)
    fi
    postgres_dir=$(mktemp -d /tmp/troupe-pg.XXXXXX) || exit 1
    cleanups+=('postgres_kill; rm -rf "$postgres_dir"')
    [ ${#postgres_as[@]} -eq 0 ] || chown nobody "$postgres_dir"
    "${postgres_as[@]}" "$postgres_bin/initdb" -D "$postgres_dir/data" -U troupe -A trust -E UTF8 --locale=C --no-sync \
        >"$work/initdb.log" 2>&1 || skip "initdb cannot run as another user here: $(tail -n 1 "$work/initdb.log")"
    postgres_settings=(listen_addresses= "unix_socket_directories=$postgres_dir" unix_socket_permissions=0777 fsync=off "$@")
    url="host=$postgres_dir user=troupe dbname=postgres"
    postgres_start
}

postgres_start() {
    local setting arguments=()
    for setting in "${postgres_settings[@]}"; do arguments+=(-c "$setting"); done
    wait_until 60 postgres_tries || { tail -n 5 "$work/server.out"; exit 1; }
}
# One attempt; behind a kill the memory of the old processes may not be free yet.
postgres_tries() {
    if [ -z "${postgres_pid:-}" ] || ! kill -0 "$postgres_pid" 2>/dev/null; then
        "${postgres_as[@]}" "$postgres_bin/postgres" -D "$postgres_dir/data" "${arguments[@]}" >>"$work/server.out" 2>&1 &
        postgres_pid=$!
    fi
    postgres_sql 'SELECT 1' >/dev/null 2>&1
}

postgres_kill() {
    [ -n "${postgres_pid:-}" ] || return 0
    local children
    children=$(ps -o pid= --ppid "$postgres_pid" 2>/dev/null)
    # shellcheck disable=SC2086 # numbers
    kill -9 "$postgres_pid" $children 2>/dev/null
    wait "$postgres_pid" 2>/dev/null
    postgres_pid=
}

postgres_sql() { "$postgres_bin/psql" -X -q -A -t -d "$url" -v ON_ERROR_STOP=1 -c "$1"; }
