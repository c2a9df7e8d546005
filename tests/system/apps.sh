#!/bin/bash
# apps.sh - a node as a container: it starts the applications of a directory, restarts those that change, with a configuration of their
# own, and shuts them down; `troupe pack` makes a file of one. KER-01 KER-02 KER-03
. "$(dirname "$0")/lib.sh"
test_begin
umask 022 # what others can write is refused
one=$build/examples/.libs/hello_app.so two=$build/examples/.libs/hello_app_two.so
apps=$work/apps log=$work/node.log
mkdir -p "$apps/hello" "$work/out-of-sight"
chmod 755 "$work" "$apps" "$apps/hello"
# Put in place as an installer does: whole, under its name.
install_as() { install -m 644 "$2" "$1.new" && mv "$1.new" "$1"; } # TO FROM
install_text() { printf '%s\n' "$2" >"$1.new" && chmod 644 "$1.new" && mv "$1.new" "$1"; } # TO TEXT
logged() { [ "$(grep -cF -- "$1" "$log")" -ge "${2:-1}" ]; } # TEXT [TIMES]
node_is_up() { "$troupe" --socket "$work/sock" status >/dev/null 2>&1; }
start() {
    background "$troupe" node --system "apps$$" --port 0 --socket "$work/sock" --seed self --apps "$apps" --set apps.interval=200ms "$@" >>"$log" 2>&1
    node=$started
}
install_as "$apps/hello/hello.so" "$one"
start
# KER-01
check an_application_is_started wait_until 60 logged "app hello has started"
# KER-02
check the_hello_sample_says_its_hello wait_until 60 logged "hello HELLO world!"

# KER-01: a new object, and later a configuration, which only this application sees.
install_as "$apps/hello/hello.so" "$two"
# KER-01
check a_changed_one_is_restarted wait_until 60 logged "hello HELLO new world!"
check the_one_before_was_shut_down_first logged "app hello has been shut down"
install_text "$apps/hello/hello.conf" 'app { greeting = "Servus" }'
# KER-01
check its_configuration_is_its_own wait_until 60 logged "hello SERVUS new world!"
mkdir -p "$apps/second"
install_as "$apps/second/second.so" "$one"
check a_second_one_is_started wait_until 60 logged "app second has started"
check and_has_its_own_configuration wait_until 60 logged "second HELLO world!"
check both_versions_are_mapped grep -q memfd:hello.so "/proc/$node/maps"

# What cannot be started is said, with what to do, and tried again when it has changed; the others run on.
install_text "$apps/second/second.so" 'this is no object'
check what_is_no_object_is_said wait_until 60 logged "app second did not start: $apps/second/second.so: "
check it_says_that_it_is_tried_again logged "it is tried again when its files have changed"
install_as "$apps/second/second.so" "$one"
check it_is_tried_again wait_until 60 logged "app second has started" 2
install_text "$apps/second/second.conf" 'app { greeting = '
check a_bad_configuration_is_said wait_until 60 logged "app second did not start: $apps/second/second.conf"
install_text "$apps/second/second.conf" 'app { greeting = "Hi" }'
check it_is_mended wait_until 60 logged "second HI world!"
chmod 666 "$apps/second/second.so"
check what_others_can_change_is_refused wait_until 60 logged "second.so can be written by others (mode 0666): chmod go-w second.so"
chmod 644 "$apps/second/second.so"
check it_is_taken_when_they_cannot wait_until 60 logged "second HI world!" 2
mkdir -p "$apps/plugin"
install_as "$apps/plugin/plugin.so" "$build/examples/.libs/counter.so"
check a_plugin_is_no_application wait_until 60 logged "it has no symbol trp_bootable_v1"
rm -r "$apps/plugin"
downs=$(grep -c "has been shut down" "$log")
mv "$apps/second" "$work/out-of-sight/"
check what_is_gone_is_shut_down wait_until 60 logged "app second has been shut down" 4
check the_others_ran_on test "$(grep -c "app hello has been shut down" "$log")" -eq 2

# KER-03
cp -r "$apps/hello" "$work/packed"
mkdir "$work/src" && mv "$work/packed" "$work/src/packed" && mv "$work/src/packed/hello.so" "$work/src/packed/packed.so" &&
    mv "$work/src/packed/hello.conf" "$work/src/packed/packed.conf"
cd "$work" || exit 1
# KER-03
expect pack_makes_one_file 0 "$troupe" pack src/packed/
is it_prints_its_name "$(cat "$work/out")" packed.tar.gz
expect it_is_an_archive 0 tar tzf packed.tar.gz
is it_has_the_application "$(sort "$work/out" | tr '\n' ' ')" "packed/MANIFEST packed/packed.conf packed/packed.so "
expect the_manifest_can_be_read 0 tar xzOf packed.tar.gz packed/MANIFEST
has the_manifest_names_it "application packed"
has the_manifest_has_sizes "$(stat -c %s src/packed/packed.so) packed.so"
expect a_file_that_exists_is_not_overwritten 74 "$troupe" pack src/packed
expect into_another_file 0 "$troupe" pack src/packed other.tgz
mkdir src/empty
says a_directory_without_code_is_refused 65 "expected empty.so in it" "$troupe" pack src/empty
check nothing_is_left_of_it test ! -e empty.tar.gz
expect it_is_unpacked 0 tar xzf packed.tar.gz -C "$apps"
check it_runs wait_until 60 logged "packed SERVUS new world!"

# KER-01: an interrupt shuts all down, the last one first.
kill -INT "$node"
ended the_node_ends_with_0 "$node" 0
# KER-01
is all_are_shut_down_the_last_first "$(grep -F "has been shut down" "$log" | tail -n 2 | sed 's/.*app \([a-z]*\) has.*/\1/' | tr '\n' ' ')" "packed hello "
expect a_directory_that_is_not_there_is_an_error 78 "$troupe" node --system "apps$$" --port 0 --socket "$work/sock2" --apps "$work/nowhere"
chmod 777 "$apps"
expect a_directory_that_others_can_change_is_refused 78 "$troupe" node --system "apps$$" --port 0 --socket "$work/sock2" --apps "$apps"
chmod 755 "$apps"
test_end
