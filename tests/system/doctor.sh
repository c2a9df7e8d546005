#!/bin/bash
# doctor.sh - findings of `troupe doctor` of one host, each by its real cause: a full disk below the log, messages that wait since a
# member cannot be dialled any more, while it still dials this one. Each is named, mended, and gone.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin

# ---- a log that cannot be written
ln -s /dev/full "$work/full.log"
background "$troupe" node --port 0 --seed self --socket "$work/full.sock" --set log.file="$work/full.log" 2>"$work/full.err"
full=$started
log_found() { # LEVEL TEXT
    "$troupe" --socket "$work/full.sock" doctor >"$work/found" 2>"$work/found.err"
    grep -qE "^ $1 +log +.*$2" "$work/found"
}
check a_full_disk_under_the_log_is_named wait_until 60 log_found FAIL 'the log cannot be written \(ENOSPC\)'
ln -sf "$work/room.log" "$work/full.log"
kill -USR1 "$full"
check lost_lines_stay_known_when_it_is_mended wait_until 60 log_found warn 'lines were lost since the start'
background "$troupe" node --port 0 --seed self --socket "$work/fresh.sock" --set log.file="$work/room.log" 2>"$work/fresh.err"
fresh() { "$troupe" --socket "$work/fresh.sock" doctor 2>/dev/null | grep -qE '^ ok +log +no line was lost'; }
check a_node_with_room_has_lost_none wait_until 60 fresh


# ---- what to do is a command: it is typed as it is printed
typed() {
    "$troupe" --socket "$work/fresh.sock" doctor --fix-hints 2>/dev/null | sed -n 's/^ *do: .*: \(troupe undrain troupe\.tcp:.*\)$/\1/p' >"$work/typed"
    test -s "$work/typed"
}
fresh_drained() { "$troupe" --socket "$work/fresh.sock" doctor 2>/dev/null | grep -qE "^ $1 +drained "; }
check it_is_drained "$troupe" --socket "$work/fresh.sock" drain
check a_drained_node_is_named wait_until 60 fresh_drained warn
check what_to_do_names_the_node wait_until 60 typed
# shellcheck disable=SC2046 # words
check what_is_printed_works "$troupe" --socket "$work/fresh.sock" $(sed 's/^troupe //' "$work/typed")
check it_is_drained_no_more wait_until 60 fresh_drained ok

# ---- a way to a member that ends: its port is that of a program in between
cat >"$work/way.py" <<'END'
import socket, sys, threading
def pump(a, b):
    try:
        while True:
            data = a.recv(65536)
            if not data:
                break
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
door = socket.socket()
door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
door.bind(("127.0.0.1", int(sys.argv[1])))
door.listen(64)
print(door.getsockname()[1], flush=True)
target = None
while True:
    inner, _ = door.accept()
    if target is None:
        target = int(open(sys.argv[2]).read())
    outer = socket.create_connection(("127.0.0.1", target))
    threading.Thread(target=pump, args=(inner, outer), daemon=True).start()
    threading.Thread(target=pump, args=(outer, inner), daemon=True).start()
END
background python3 "$work/way.py" 0 "$work/target" >"$work/door" 2>"$work/way.err"
way=$started
wait_until 60 test -s "$work/door" || fail way
door=$(cat "$work/door")
background "$troupe" node --port 0 --seed self --socket "$work/near.sock" 2>"$work/near.log"
near() { "$troupe" --socket "$work/near.sock" "$@"; }
check near_is_up wait_until 60 near is-available
target=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
echo "$target" >"$work/target"
background "$troupe" node --set remote.port="$door" --set remote.bind-port="$target" --socket "$work/far.sock" --load "$build/examples/.libs/echo.so" \
    --seed "$(near members -o name)" 2>"$work/far.log"
check both_are_up wait_until 60 near wait --members 2 --converged --timeout 5s
far="troupe.tcp://demo@127.0.0.1:$door"
check it_is_reached wait_until 60 near ask "$far/user/echo" hello
found() { near doctor >"$work/found" 2>/dev/null; grep -qE "^ $1 +$2 +.*$3" "$work/found"; }
check no_message_waits wait_until 60 found ok waiting ''
kill -KILL "$way"
waits() { near send "$far/user/echo" lost --timeout 1s >/dev/null 2>&1; found '(warn|FAIL)' waiting "messages to $far wait"; }
check messages_that_wait_are_named wait_until 60 waits
check so_is_the_way_that_failed wait_until 60 found FAIL links "this node cannot dial $far"
background python3 "$work/way.py" "$door" "$work/target" >"$work/door" 2>"$work/way.err"
check they_go_again wait_until 60 found ok waiting ''
check the_way_is_there_again wait_until 60 found ok links ''
test_end
