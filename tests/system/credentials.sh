#!/bin/bash
# credentials.sh - what operators see of certificates: that one ends soon, when those of the others end, that a reload was
# refused, that a name is wrong; each until it is mended.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
pki=$work/pki
check files_are_made eval '"$troupe" cert ca demo-ca --dir "$pki" && "$troupe" cert node 127.0.0.1 --dir "$pki" &&
    "$troupe" cert node wrong.example --dir "$pki"'
certificate() { # NAME DAYS: one of that name for so many days
    mkdir -p "$work/$1" && cp "$pki/ca.pem" "$work/$1/ca.pem" &&
        "$troupe" cert node 127.0.0.1 --dir "$pki" --days "$2" --force >/dev/null &&
        cp "$pki/127.0.0.1.key" "$work/$1/cert.key" && cp "$pki/127.0.0.1.pem" "$work/$1/cert.pem"
}
start() { # NAME DIRECTORY ARGUMENT...
    hosts_port || { fail "a free port"; test_end; }
    port=$hosts_free name=$1 dir=$2
    cat >"$work/$name.conf" <<END
remote {
    transport = tls
    tls { ca = "$dir/ca.pem"  cert = "$dir/cert.pem"  key = "$dir/cert.key"  reload-interval = 0s }
}
END
    background "$troupe" node --config "$work/$name.conf" --port "$port" --socket "$work/$name.sock" "${@:3}" 2>"$work/$name.log"
}
at() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
problem() { at "$1" status >"$work/out" 2>&1; grep -qF -- "problem     $2" "$work/out"; }
healthy() { at "$1" status >"$work/out" 2>&1; }

# A certificate of 13 days is a problem, one of 15 is none; `members` shows both from either node.
check short_certificate certificate one 14
start one "$work/one" --seed self
one=$started address=troupe.tls://demo@127.0.0.1:$port
check one_is_up at one wait --up
check longer_certificate certificate two 16
start two "$work/two" --seed "$address"
check two_joins at two wait --members 2 --converged
expect status_of_one 1 at one status
has status_says_it_ends "problem     this node's certificate (127.0.0.1) ends in 13 days"
check status_of_two wait_until 60 healthy two
expect why_of_one 1 at one why
has why_says_what_to_do "ends in 13 days" && has why_names_the_command "troupe cert renew"
logged_once() { [ "$(grep -c 'warning remote this node.s certificate (127.0.0.1) ends in 13 days' "$work/one.log")" -eq 1 ]; }
check log_says_it_once wait_until 60 logged_once
lacks log_of_two_says_nothing "ends in" "$work/two.log"
ends() { at "$1" members -o wide | awk '/troupe.tls/ { sub(/^\*/, ""); c = c " " $12 } END { print c }'; } # the column CERT: a UID may be digits and a d, too
check both_ends_stand_in_a_column wait_until 60 eval '[ "$(ends one)" = " 13d 15d" ] || [ "$(ends one)" = " 15d 13d" ]'
check as_the_other_node_sees_them wait_until 60 eval '[ "$(ends two)" = "$(ends one)" ]'
expect members_as_json 0 at two members -o json
has json_has_the_days '"certificateDaysLeft":' && has json_has_the_end '"certificateNotAfter":'
expect members_as_before 0 at two members
lacks only_wide_has_the_column CERT

# A reload that is refused stays a problem; so does the ending, for the old certificate is in use. Then it is mended.
cp -p "$work/one/cert.key" "$work/key" && certificate three 365 && echo "half a file" >"$work/one/cert.pem"
kill -HUP "$one"
check refused_reload_is_a_problem wait_until 60 problem one "certificates and cookies were not read again, the old ones stay: certificate $work/one/cert.pem"
has and_the_old_one_ends "ends in 13 days"
expect it_stays_one 1 at one status
expect why_of_the_reload 1 at one why
has why_says_to_mend_it "mend that, then SIGHUP"
cp -p "$work/three/cert.pem" "$work/three/cert.key" "$work/one"
kill -HUP "$one"
check mended_and_healthy wait_until 60 healthy one
echo 'remote { prot = 1 }' >"$work/one.conf"
kill -HUP "$one"
check refused_configuration_is_a_problem wait_until 60 problem one "the last reload was refused: $work/one.conf:1: no such option 'prot' in remote"
rm "$work/one.conf"
kill -HUP "$one"
check missing_configuration_is_a_problem wait_until 60 problem one "the last reload was refused: $work/one.conf"
echo 'log { level = info }' >"$work/one.conf"
kill -HUP "$one"
check mended_configuration wait_until 60 healthy one

# A name that is wrong, of the node or of its seed: 77 at once, and `peers` has the word.
mkdir "$work/wrong" && cp "$pki/ca.pem" "$work/wrong" && cp "$pki/wrong.example.pem" "$work/wrong/cert.pem" && cp "$pki/wrong.example.key" "$work/wrong/cert.key"
start three "$work/wrong"
check three_runs wait_until 60 at three peers
expect own_wrong_name_at_join 77 at three join "$address"
has join_says_wrong_name "wrong-name: certificate of wrong.example does not cover 127.0.0.1" "$work/err"
peers_say() { at "$1" peers | grep -qF -- "$2"; } # NAME TEXT
check peers_say_wrong_name wait_until 60 peers_say three "wrong-name: certificate of wrong.example does not cover 127.0.0.1"
check its_own_problem wait_until 60 problem three "this node's certificate (wrong.example) is not for 127.0.0.1, which this node advertises"
start four "$work/wrong" --seed self
seed=troupe.tls://demo@127.0.0.1:$port
check four_is_up at four wait --up
start five "$work/two"
check five_runs wait_until 60 at five peers
expect wrong_name_of_the_seed 77 at five join "$seed"
has join_says_whose "wrong-name: IP address mismatch; subject=wrong.example" "$work/err"
check peers_say_whose wait_until 60 peers_say five "wrong-name: IP address mismatch"
kill -TERM "$one"
ended one_leaves "$one" 0
test_end
