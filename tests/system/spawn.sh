#!/bin/bash
# spawn.sh - `troupe spawn` and `troupe watch`: an actor of a file is started, told its arguments, seen to end; who may bring the file,
# what is refused, and how many files one process loads.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
umask 022
dir=$work/plugins
mkdir "$dir"
version() { cp "$build/tests/system/.libs/spawned_$1.so" "$dir/next" && mv "$dir/next" "$dir/keeper.so"; }
version 1
background "$troupe" node --port 0 --socket "$work/one.sock" --seed self --set plugins-dir="$dir" --set management.enabled=on \
    --set management.port=0 --set management.read-only=off 2>"$work/one.log"
one=$started
at() { "$troupe" --socket "$work/one.sock" "$@"; }
check the_node_is_up wait_until 60 at is-available
says_back() { [ "$(at ask "/user/$1" hello 2>"$work/err")" = "$2" ]; } # NAME ANSWER

# ---- an actor begins
expect an_actor_is_started 0 at spawn first --plugin keeper.so --args '{"a":1}'
has its_path_is_printed "/user/first"
check it_was_told_its_arguments wait_until 60 says_back first '1 {"a":1}'
expect another_behaviour_by_its_symbol 0 at spawn second --plugin keeper.so:other -o json
has its_behaviour_is_told '"behaviour": "other"'
check it_answers wait_until 60 says_back second other
has the_order_is_in_the_audit "order=spawn-actor on=/user/first" "$work/one.log"
has the_audit_names_the_file "plugin=keeper.so:other" "$work/one.log"
expect an_actor_with_a_protocol 0 at spawn typed --plugin keeper.so:accepting
version 2
expect a_newer_file_is_loaded_anew 0 at spawn third --plugin keeper.so
check it_has_the_newer_code wait_until 60 says_back third '2 '
check the_first_keeps_its_code wait_until 60 says_back first '1 {"a":1}'

# ---- what is refused
expect a_name_that_lives_is_1 1 at spawn first --plugin keeper.so
has the_actor_is_named "an actor /user/first lives" "$work/err"
expect no_plugin_is_64 64 at spawn fourth
has it_says_which_flag "spawn needs --plugin FILE" "$work/err"
expect a_name_with_a_slash_is_64 64 at spawn a/b --plugin keeper.so
expect a_missing_file_is_68 68 at spawn fourth --plugin none.so
expect a_missing_symbol_is_65 65 at spawn fourth --plugin keeper.so:none
has the_symbol_is_named "it has no symbol none" "$work/err"
expect an_incomplete_behaviour_is_65 65 at spawn fourth --plugin keeper.so:incomplete
expect a_function_is_65 65 at spawn fourth --plugin keeper.so:memcpy
cp "$dir/keeper.so" "$dir/later.so" # nothing else is started from it
expect another_layout_of_a_type_is_65 65 at spawn fourth --plugin later.so:accepting
has the_protocol_is_named "protocol spawned has a message type with other fields" "$work/err"
expect a_type_that_was_registered_before_is_looked_at 0 at send /user/typed --type spawned_later.one '{"value":1}'
expect and_the_node_lives 0 at is-available
echo text >"$dir/text.so"
expect a_file_that_is_no_library_is_65 65 at spawn fourth --plugin text.so
has nothing_was_started "nothing was started: text.so" "$work/err"
expect arguments_that_are_no_json_are_65 65 at spawn fourth --plugin keeper.so --args '{'

# ---- who may bring the file: nothing of another one is mapped
mkdir "$dir/below"
cp "$dir/keeper.so" "$dir/below/deep.so"
cp "$dir/keeper.so" "$work/outer.so"
cp "$dir/keeper.so" "$dir/written.so"
for name in "$dir/keeper.so" below/deep.so ../outer.so . .. ""; do
    expect "a_name_that_is_not_bare_is_64_${name//\//_}" 64 at spawn fourth --plugin "$name"
    has it_wants_a_bare_name "without a /" "$work/err"
done
expect a_directory_is_65 65 at spawn fourth --plugin below
mkfifo "$dir/pipe.so"
expect a_pipe_is_65 65 at spawn fourth --plugin pipe.so
for target in "$work/outer.so" ../outer.so below/deep.so "$dir/keeper.so"; do
    ln -sfn "$target" "$dir/away.so"
    expect "a_link_with_a_slash_is_77_${target//\//_}" 77 at spawn fourth --plugin away.so
    has it_leaves_the_directory "leaves the directory" "$work/err"
done
ln -s written.so "$dir/near.so"
for mode in g+w o+w; do
    chmod "$mode" "$dir/written.so"
    for name in written.so near.so; do
        expect "${name}_of_mode_${mode}_is_77" 77 at spawn fourth --plugin "$name"
        has it_says_how_to_mend_it "chmod go-w written.so" "$work/err"
    done
    chmod go-w "$dir/written.so"
    chmod "$mode" "$dir"
    expect "a_directory_of_mode_${mode}_is_77" 77 at spawn fourth --plugin keeper.so
    chmod go-w "$dir"
done
if [ "$(id -u)" = 0 ]; then
    chown 12345 "$dir/written.so"
    expect a_file_of_another_user_is_77 77 at spawn fourth --plugin written.so
    has it_names_the_owner "user 12345" "$work/err"
    chown 0 "$dir/written.so"
    chown 12345 "$dir"
    expect a_directory_of_another_user_is_77 77 at spawn fourth --plugin keeper.so
    chown 0 "$dir"
fi
expect none_of_them_started_an_actor 68 at actor /user/fourth
cp "/proc/$one/maps" "$work/maps"
has what_was_started_is_mapped "memfd:keeper.so." "$work/maps"
for name in written near away outer deep text pipe; do lacks "nothing_of_${name}_is_mapped" "memfd:$name" "$work/maps"; done
expect a_link_that_stays_is_followed 0 at spawn near --plugin near.so
expect over_an_endpoint_it_is_no_flag 64 at spawn fourth --plugin keeper.so --endpoint http://127.0.0.1:1
expect nor_is_watch 64 at watch /user/first --endpoint http://127.0.0.1:1
port=$(sed -n 's/.*management API at http:\/\/127.0.0.1:\([0-9]*\).*/\1/p' "$work/one.log" | head -n 1)
if [ -n "$port" ] && command -v curl >/dev/null; then
    token=$(printf 'troupe management 1 demo' | openssl dgst -sha256 -hmac "$(cat "$STATE_DIRECTORY/cookie")" | sed 's/.* //')
    http() { curl -s -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $token" "$@"; }
    is a_writer_may_change_over_http "$(http -H 'Content-Type: text/plain' -d hello "http://127.0.0.1:$port/actors/user/near")" 200
    for command in spawn watch; do
        is "${command}_is_refused_over_http" "$(http -d '{"path":"fourth","plugin":"keeper.so"}' "http://127.0.0.1:$port/control/$command")" 404
    done
    expect no_fourth_was_started_over_http 68 at actor /user/fourth
fi

# ---- an actor ends
expect no_actor_to_watch_is_68 68 at watch /user/nobody
says it_lives_on_is_75 75 "/user/first lives after 500 ms" at watch /user/first --timeout 500ms
background at watch /user/first -v --timeout 5m >"$work/watched" 2>"$work/watching"
watcher=$started
has it_watches "watching " "$work/watching"
expect the_actor_is_stopped 0 at stop /user/first --yes
ended the_watch_ends "$watcher" 0
has the_end_is_told "/user/first  has ended" "$work/watched"
background at watch /user/second -v -o json --timeout 5m >"$work/watched.json" 2>"$work/watching.json"
watcher=$started
has it_watches_too "watching " "$work/watching.json"
background "$troupe" node --port 0 --socket "$work/two.sock" --seed "$(at members -o name)" 2>"$work/two.log"
two=$started
other() { "$troupe" --socket "$work/two.sock" "$@"; }
check node_two_is_up wait_until 60 other is-available
background other watch "$(at members -o json | sed -n 's/.*"selfNode": "\(.*\)",/\1/p')/user/third" -v --timeout 5m >"$work/far" 2>"$work/far.err"
far=$started
has an_actor_of_another_node_is_watched "watching troupe.tcp://" "$work/far.err"
expect the_third_is_stopped 0 at stop /user/third --yes
ended the_far_watch_ends "$far" 0
has the_far_end_is_told "/user/third  has ended" "$work/far"
expect the_second_is_stopped 0 at stop /user/second --yes
ended the_watch_in_json_ends "$watcher" 0
has the_end_is_json '"addressTerminated": false' "$work/watched.json"
background other watch /user --timeout 5m -v >"$work/guardian" 2>"$work/guardian.err"
watcher=$started
has the_guardian_is_watched "watching " "$work/guardian.err"
kill -TERM "$two"
ended node_two_leaves "$two" 0
await "$watcher" 60 && pass a_watch_ends_with_its_node || fail a_watch_ends_with_its_node

# ---- how many files a process loads: four are there
# Over one connection: a start of the tool for each is slow beside a sanitizer.
cat >"$work/many.py" <<'PY'
import json, os, shutil, socket, struct, sys
path, source, target = sys.argv[1:]
node = socket.socket(socket.AF_UNIX)
node.connect(path)
stream = node.makefile("rb")
started = 0
for number in range(5, 65):
    shutil.copy(source, target + ".next")
    os.rename(target + ".next", target)
    request = json.dumps({"v": 1, "cmd": "spawn", "path": f"many{number}", "plugin": os.path.basename(target), "timeoutMs": 60000}).encode()
    node.sendall(struct.pack("<I", len(request)) + request)
    reply = {}
    while "ok" not in reply:
        reply = json.loads(stream.read(struct.unpack("<I", stream.read(4))[0]))
    started += reply["ok"]
    if not reply["ok"]:
        print(reply, file=sys.stderr)
print(started)
PY
started_count=$(python3 "$work/many.py" "$work/one.sock" "$build/tests/system/.libs/spawned_2.so" "$dir/keeper.so" 2>"$work/err")
is sixty_four_files_are_loaded "$started_count" 60
expect what_is_loaded_goes_on_starting 0 at spawn again --plugin keeper.so
version 2
expect one_file_more_is_1 1 at spawn more --plugin keeper.so
has it_names_the_limit "64 files were loaded" "$work/err"
test_end
