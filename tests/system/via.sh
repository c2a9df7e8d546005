#!/bin/bash
# via.sh - send, ask and publish from a host without a node, through a receptionist: examples/room.c is the cluster. Exit codes, the
# cookie of the user, what is not registered, no receptionist, TLS. CONTRIB-22 CONTRIB-24
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port && one=$hosts_free && hosts_port && two=$hosts_free && hosts_port && three=$hosts_free || { fail "free ports"; test_end; }
via() { env -u TROUPE_TIMEOUT "$troupe" --timeout 20s --via "127.0.0.1:$one" "$@"; }
room() { # NAME PORT OPTION...
    background env GUEST="$1" "$build/examples/room" --system demo --port "$2" --socket "$work/$1.sock" --seed self "${@:3}" >"$work/$1.log" 2>&1
}
takes=(--set cluster.client.receptionist.enabled=on)
room ann "$one" "${takes[@]}"
heard() { grep -qF "$1 hears: $2" "$work/$1.log"; } # GUEST TEXT
answered() { [ "$(via ask porter hello 2>/dev/null)" = "say enter" ]; }
check ann_comes_in wait_until 60 grep -qF "ann is in the room" "$work/ann.log"
# CONTRIB-24
check a_service_answers wait_until 60 answered
expect a_topic_is_published_to 0 via publish rooms/lobby "good morning"
has it_says_to_how_many "delivered to 1 subscriber on 1 node"
check ann_hears_it wait_until 30 heard ann "good morning"
expect json_has_the_numbers 0 via publish rooms/lobby again -o jsonl
has they_are_there '"topic":"rooms/lobby","delivered":1,"nodes":1,"silent":0'
expect an_answer_can_be_json 0 via ask porter hello -o jsonl
has it_names_the_service '"from":"porter"'
has it_has_the_text '"text":"say enter"'
expect several_asks 0 via ask porter hello -c 2
is there_are_two_answers "$(wc -l <"$work/out")" 2
expect a_message_is_sent 0 via send porter enter
expect stdin_is_read 0 via publish rooms/lobby - <<<"from stdin"
check ann_hears_that_too wait_until 30 heard ann "from stdin"
expect a_service_that_is_not_registered_is_68 68 via ask nobody hello
has it_says_so "no service 'nobody': no service of that name is registered" "$work/err"
expect send_says_it_too 68 via send nobody hello
expect a_topic_that_is_not_open_is_68 68 via publish rooms/cellar hello
has nobody_subscribes "nobody subscribes to rooms/cellar" "$work/err"
expect the_environment_names_it_too 0 env TROUPE_VIA="127.0.0.1:$one" "$troupe" ask porter hello
expect other_commands_do_not_take_it 64 via members
expect bridge_does_not_take_it 64 via bridge shop
has it_says_that_bridge_has_no_such_flag "--via" "$work/err"
expect a_wrong_contact_is_64 64 "$troupe" --via nowhere ask porter hello
expect on_is_of_nodes 64 via ask porter hello --on 127.0.0.1:1
expect half_of_tls_is_64 64 via ask porter hello --cacert x
expect a_type_of_a_plugin_is_65 65 via send porter 1 --type shop.order

# ---- no receptionist
expect nothing_there_is_69 69 "$troupe" --via "127.0.0.1:$two" ask porter hello
has it_says_what_is_missing "no receptionist at 127.0.0.1:$two" "$work/err"
room bob "$two"
check bob_comes_in wait_until 60 grep -qF "bob is in the room" "$work/bob.log"
says a_node_without_a_receptionist_is_69 69 "no receptionist at 127.0.0.1:$two" "$troupe" --via "127.0.0.1:$two" ask porter hello
has it_says_which_key "cluster.client.receptionist.enabled" "$work/err"
expect one_of_several_contacts_is_enough 0 "$troupe" --via "127.0.0.1:$two,127.0.0.1:$one" ask porter hello

# ---- cookies
mkdir "$work/elsewhere"
expect without_the_cookie_it_is_refused 69 env STATE_DIRECTORY="$work/elsewhere" "$troupe" --via "127.0.0.1:$one" ask porter hello
has it_names_the_cookie cookie "$work/err"
expect a_file_with_it_is_enough 0 env STATE_DIRECTORY="$work/elsewhere" "$troupe" --via "127.0.0.1:$one" ask porter hello \
    --cookie-file "$STATE_DIRECTORY/cookie"
cookie_refused() { # NAME FILE REASON
    expect "${1}_is_78" 78 via ask porter hello --cookie-file "$2"
    has "${1}_is_named" "$2$3" "$work/err"
    has "${1}_gets_a_hint" "copy that of a node, for its user alone (chmod 400)" "$work/err"
}
cookie_refused a_file_that_is_not_there "$work/none" ": No such file or directory"
cookie_refused a_directory "$work/elsewhere" " is not a regular file"
cp "$STATE_DIRECTORY/cookie" "$work/wide" && chmod 644 "$work/wide"
cookie_refused a_file_that_others_may_read "$work/wide" ": others may read it (mode 0644): chmod 400"
: >"$work/nothing" && chmod 400 "$work/nothing"
cookie_refused a_file_without_a_cookie "$work/nothing" " holds no cookie"
expect a_missing_authority_is_78 78 via ask porter hello --cacert "$work/none" --cert "$work/none" --key "$work/none"
has it_is_named "authorities $work/none: No such file or directory" "$work/err"

# ---- TLS: the name in the certificate is what permissions go by
"$troupe" cert ca demo --dir "$work/pki" >/dev/null && "$troupe" cert node 127.0.0.1 --dir "$work/pki" >/dev/null ||
    { fail certificates; test_end; }
pki=$work/pki
room cid "$three" "${takes[@]}" --set remote.transport=tls --set remote.tls.ca="$pki/ca.pem" --set remote.tls.cert="$pki/127.0.0.1.pem" \
    --set remote.tls.key="$pki/127.0.0.1.key" --set "cluster.client.receptionist.permissions=topic:rooms/lobby=nobody"
check cid_comes_in wait_until 60 grep -qF "cid is in the room" "$work/cid.log"
tls=(--cacert "$pki/ca.pem" --cert "$pki/127.0.0.1.pem" --key "$pki/127.0.0.1.key")
secret() { "$troupe" --via "127.0.0.1:$three" "${tls[@]}" "$@"; }
check tls_reaches_a_service wait_until 60 secret ask porter hello
expect what_is_not_permitted_is_77 77 secret publish rooms/lobby hello
expect plain_is_refused_by_tls 69 "$troupe" --via "127.0.0.1:$three" ask porter hello
test_end
