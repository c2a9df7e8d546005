#!/bin/bash
# examples.sh - the programs of examples/, compiled against `make install DESTDIR` with nothing but pkg-config,
# and run: hello, ping between two processes, cluster as a member beside two `troupe node`s.
. "$(dirname "$0")/lib.sh"
installed=${TROUPE_DESTDIR:-}
hosts_begin 3
root=$work/root
# Not beside anything else that uses this build: while libtool links a library anew for its installed place, the one in
# the build is not there. So tests/run has installed it before, into TROUPE_DESTDIR.
if [ -n "$installed" ]; then
    root=$installed
else
    make -C "$build" -s install DESTDIR="$root" >"$work/install.log" 2>&1 || { fail make_install; test_end; }
fi
pass make_install
pc=$(find "$root" -name troupe.pc | head -n 1)
libdir=$(dirname "$(dirname "$pc")")
prefix=$(dirname "$libdir")
[ -x "$prefix/bin/troupe" ] && [ "$(readlink "$prefix/bin/trouped")" = troupe ] && pass program_is_installed || fail program_is_installed
troupe=$prefix/bin/troupe
export LD_LIBRARY_PATH=$libdir
flags() { PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config "$@" troupe; }
# A sanitized library needs the sanitizer in the program, too.
sanitize=$(sed -n 's/^TROUPE_LDFLAGS = //p' "$build/Makefile")
compiler=$(sed -n 's/^CC = //p' "$build/Makefile")
for name in hello ping cluster multinode; do
    # shellcheck disable=SC2046,SC2086 # lists of flags
    expect "compile_$name" 0 ${compiler:-cc} $sanitize -Wall -Wextra -Werror "$src/examples/$name.c" $(flags --cflags --libs) -o "$work/$name"
done
# The libraries that only the static one needs are those that the shared one names.
flags --libs --static | tr ' ' '\n' | sed -n 's/^-l//p' >"$work/private"
missing=
for name in $(sed -n 's/^dependency_libs=//p' "$libdir/libtroupe.la" | tr " '" '\n\n' | sed -n 's/^-l//p'); do
    grep -qxF -- "$name" "$work/private" || missing="$missing $name"
done
is static_flags_name_every_library "$missing" ""
for name in echo counter; do
    # shellcheck disable=SC2046,SC2086
    expect "compile_$name" 0 ${compiler:-cc} $sanitize -Wall -Wextra -Werror -shared -fPIC "$src/examples/$name.c" $(flags --cflags --libs) -o "$work/$name.so"
done
[ "$failures" -eq 0 ] || test_end

expect hello_runs 0 "$work/hello"
has hello_greets world

expect multinode_runs_by_the_installed_launcher 0 "$troupe" multinode --ports --timefactor 4 "$work/multinode" # docs/multinode.md
has multinode_says_pong "[first] pong"

host_start 1 "$work/pong.log" "$work/ping" serve
pong=$host_started
pids+=("$pong")
has_path() { grep -q '^troupe.tcp://.*/user/pong' "$work/pong.log"; }
wait_until 60 has_path || fail pong_prints_its_path "$(cat "$work/pong.log")"
path=$(grep -m 1 '^troupe.tcp://' "$work/pong.log")
expect ping_plays 0 host_run 1 "$work/ping" "$path" 1000
has ping_counts "1000 round trips"
expect ping_says_stop 0 host_run 1 "$work/ping" "$path" stop
ended pong_ends_with_0 "$pong" 0
has pong_counted "1000 balls" "$work/pong.log"

start_node 1 --role seed --load "$work/echo.so"
start_node 2 --role other --load "$work/counter.so"
wait_until 60 all_up 2 1 2 || { fail two_nodes_come_up; test_end; }
member=$(addr 3)
host_start 3 "$work/node-3.log" "$work/cluster" system=demo remote.hostname="${host_address[3]}" \
    remote.port="${host_port[3]}" cluster.seed-nodes="$(addr 1)" cluster.roles=worker control.socket="${host_socket[3]}"
node_pid[3]=$host_started
pids+=("$host_started")
check program_is_a_member wait_until 60 all_up 3 1 2
expect program_is_listed_with_its_role 0 ctl 1 members --role worker -o name
is listed_address "$(cat "$work/out")" "$member"
check program_has_a_control_socket wait_until 60 ctl 3 members
is own_socket_answers_as_itself "$(ctl 3 members | sed -n 's/^\* *\([^ ]*\).*/\1/p')" "$member"
worked() { [[ $(ctl 1 ask "$member/user/manager" 7 2>/dev/null) == "49, by $member" ]]; }
check program_answers_from_another_host wait_until 60 worked
expect program_is_taken_out 0 ctl 2 leave "$member" --timeout 90s
node_ended program_ends_with_0 3 0
has program_says_why_it_ends "left the cluster" "$work/node-3.log"
check it_is_gone wait_until 60 sees_gone "$member" 1 2
[ "$failures" -eq 0 ]
test_end
