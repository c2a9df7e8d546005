#!/bin/bash
# check.sh - `troupe config check` refuses what a node refuses, in the same words and with the same exit code, for it is the
# node's own start; and plugins are loaded before the port opens, begun before anybody is let in.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
hosts_port || { fail "a free port"; test_end; }
port=$hosts_free
echo "not a plugin" >"$work/text.so"
mkdir "$work/dir" "$work/pki"
check files_are_made eval '"$troupe" cert ca demo-ca --dir "$work/pki" && "$troupe" cert node 127.0.0.1 --dir "$work/pki"'
tls() { # CERTIFICATE
    echo "--set remote.transport=tls --set remote.tls.ca=$work/pki/ca.pem --set remote.tls.cert=$work/pki/$1.pem --set remote.tls.key=$work/pki/127.0.0.1.key"
}
refused() { # NAME CODE ARGUMENT...
    local name=$1 want=$2
    shift 2
    expect "node_refuses_$name" "$want" "$troupe" node --port "$port" --set log.level=error --socket "$work/x.sock" "$@"
    tail -n 1 "$work/err" >"$work/node.said"
    expect "check_refuses_$name" "$want" "$troupe" config check --port "$port" --set log.level=error --socket "$work/x.sock" "$@"
    is "in_the_same_words_$name" "$(tail -n 1 "$work/err")" "$(cat "$work/node.said")"
}
refused a_key 78 --set remote.prot=1
refused a_contradiction 78 --set remote.retry-backoff-min=1m --set remote.retry-backoff-max=1s
refused a_missing_plugin 78 --load "$work/none.so"
refused a_text_as_a_plugin 78 --load "$work/text.so"
refused a_library_that_is_no_plugin 78 --load "$build/.libs/libtroupe.so"
refused a_host_name_that_does_not_resolve 69 --host no-such-host.invalid
refused an_address_of_another_host 69 --bind-host 203.0.113.7
refused a_host_that_cannot_be_advertised 78 --host 0.0.0.0
refused a_lease_file_nowhere 78 --set cluster.downing.active-strategy=lease --set "cluster.downing.lease.file=$work/none/lease"
refused a_lease_file_that_is_a_directory 78 --set cluster.downing.active-strategy=lease --set "cluster.downing.lease.file=$work/dir"
refused no_lease_at_all 78 --set cluster.downing.active-strategy=lease
refused a_log_file_nowhere 78 --log-file "$work/none/log"
# shellcheck disable=SC2046 # words
refused a_certificate_that_is_none 78 $(tls ca.key)
# shellcheck disable=SC2046
refused a_key_of_another_certificate 78 $(tls ca)
refused a_detector_that_nobody_brings 78 --set cluster.failure-detector.implementation-class=mine
refused a_socket_directory_nowhere 78 --socket "$work/none/x.sock"
has it_says_what_to_do_for_it "no such directory: make it (mkdir -p), or name another path with --socket" "$work/err"
refused a_socket_directory_that_is_a_file 78 --socket "$work/text.so/x.sock"
refused a_socket_below_a_file 78 --socket "$work/text.so/y/x.sock"
refused a_socket_that_is_a_file 77 --socket "$work/text.so"
refused a_socket_path_that_is_too_long 78 --socket "$work/$(printf 'x%.0s' {1..120})"

# The check leaves all files as they were; beside a node that runs it finds nothing wrong.
expect good_settings 0 "$troupe" config check --port "$port" --log-file "$work/new.log" --socket "$work/x.sock" \
    --load "$build/tests/system/.libs/late.so:$work/never" --set cluster.downing.active-strategy=lease --set "cluster.downing.lease.file=$work/lease"
check nothing_is_left test ! -e "$work/new.log" -a ! -e "$work/x.sock" -a ! -e "$work/lease"
expect seed_that_does_not_resolve 0 "$troupe" config check --host localhost --set cluster.seed-nodes=troupe.tcp://demo@localhost:2552
lacks seed_that_resolves "does not resolve" "$work/err"
expect keys_of_another_host 0 "$troupe" config check --keys-only --host 203.0.113.7 --load "$work/none.so"
expect wrong_keys_of_another_host 78 "$troupe" config check --keys-only --set remote.prot=1

# The same as JSON, on standard output alone; what is refused is an answer too, of a file that cannot be read as well.
json() { # NAME CODE FILE LEVEL TEXT FORMAT ARGUMENT...: ok, exit and file, and a finding of that level with that text ("": none)
    expect "$1_as_$6" "$2" "$troupe" config check -o "$6" "${@:7}"
    [ "$2" -ne 0 ] || lacks "$1_as_${6}_is_all" note "$work/err"
    cp "$work/out" "$work/json"
    check "$1_as_$6_is_whole" python3 - "$work/json" "$2" "$3" "$4" "$5" "$6" <<'END'
import json, sys
name, code, file, level, text, form = sys.argv[1:]
got = open(name).read()
assert form == "json" or got.count("\n") == 1, got
got = json.loads(got)
assert list(got) == ["file", "ok", "exit", "findings"] and got["ok"] == (code == "0") and got["exit"] == int(code), got
assert got["file"] == (file or None), got
found = [(f["level"], text in f["text"]) for f in got["findings"]]
assert (level, True) in found if level else found == [], got
END
}
printf 'system = demo\n# \303\244\ncluster { gosip-interval = 1s }\n' >"$work/wrong.conf"
printf 'system = demo\nremote { hostname = 127.0.0.1 }\n' >"$work/right.conf"
for form in json jsonl; do
    json right 0 "$work/right.conf" "" "" "$form" "$work/right.conf" --socket "$work/x.sock"
done
json defaults 0 "" "" "" json --keys-only
json a_wrong_key 78 "$work/wrong.conf" error "wrong.conf:3: " jsonl "$work/wrong.conf"
json a_missing_file 78 "$work/none.conf" error "none.conf" json "$work/none.conf"
json contradiction 78 "" error "remote.retry-backoff-min" json --keys-only --set remote.retry-backoff-min=1m --set remote.retry-backoff-max=1s
json an_address_elsewhere 69 "" error 203.0.113.7 json --bind-host 203.0.113.7 --socket "$work/x.sock"
json a_note 0 "" note "cluster.auto-down has no effect" jsonl --keys-only --set cluster.auto-down=off
expect show_on_one_line 0 "$troupe" config show -o jsonl system
check it_is_one_line [ "$(cat "$work/out")" = '{"system":"demo"}' ]
expect another_form_is_none 64 "$troupe" config check -o xml

# The keys of Akka 2.2 that are taken as they are: none is refused; what does nothing says so.
cat >"$work/all.conf" <<'END'
system = "${TROUPE_SYSTEM:-demo}"
remote     { transport = tcp   hostname = 127.0.0.1   port = 2552   bind-hostname = ""   bind-port = ""   maximum-frame-size = 128000b   large-message-threshold = 256KiB }
cluster    { seed-nodes = { "troupe.tcp://demo@127.0.0.1:2552", "troupe.tcp://demo@127.0.0.1:2553" }   roles = { backend }
             min-nr-of-members = 1   role "backend" { min-nr-of-members = 2 }   gossip-interval = 1s   leave-timeout = 45s
             leader-actions-interval = 1s   unreachable-nodes-reaper-interval = 1s   gossip-different-view-probability = 0.8   auto-down = off
             may-create-cluster = on   seed-node-timeout = 5s   retry-unsuccessful-join-after = 10s   enforce-compatible = on
             failure-detector { threshold = 8.0   acceptable-heartbeat-pause = 3s   heartbeat-interval = "1 s"   min-std-deviation = 100ms
                                max-sample-size = 1000   monitored-by-nr-of-members = 5   nr-of-end-heartbeats = 8   expected-response-after = 3s }
             downing { active-strategy = keep-majority   stable-after = 20s   down-all-when-unstable = on   auto-down-after = 5s
                       static-quorum { quorum-size = 3  role = "" }   keep-majority { role = "" }   keep-oldest { down-if-alone = on  role = "" }
                       keep-referee { address = ""  down-all-if-less-than-nodes = 1 }   lease { name = ""  acquire-lease-delay-for-minority = 2s } } }
deployment "/user/workers" { router = round-robin-pool   nr-of-instances = 5 }
app        { greeting = "hello"   limits { retries = 3 } }
management { bind = 127.0.0.1  port = 8558  route-providers-read-only = true }
log        { level = info  format = text }
tls        { ca = /etc/troupe/pki/ca.pem  cert = /etc/troupe/pki/node.pem  key = /etc/troupe/pki/node.key }
END
expect all_keys_for_reuse 0 "$troupe" config check "$work/all.conf" --socket "$work/x.sock"
for key in cluster.unreachable-nodes-reaper-interval cluster.failure-detector.nr-of-end-heartbeats cluster.auto-down; do
    has "it_says_that_this_does_nothing_$key" "$key has no effect: " "$work/err"
done
lacks others_do_what_they_say "down-all-when-unstable" "$work/err"
expect auto_down_is_a_strategy 0 "$troupe" config show cluster.downing --set cluster.auto-down=on --origin
has auto_down_sets_it "cluster.downing.active-strategy = auto-down-after" && has auto_down_is_its_origin "# cluster.auto-down"
refused auto_down_and_another_strategy 78 --set cluster.auto-down=on --set cluster.downing.active-strategy=manual

# A missing plugin costs no other node a peer: the port was not open.
expect node_without_its_plugin 78 "$troupe" node --port "$port" --log-file "$work/early.log" --socket "$work/x.sock" --load "$work/none.so"
lacks its_port_was_not_open "remoting listens" "$work/early.log"

# No peer is admitted before every plugin has begun; a node that waits meanwhile joins then.
background "$troupe" node --port "$port" --socket "$work/one.sock" --seed self --set cluster.unreachable-nodes-reaper-interval=2s --load "$build/tests/system/.libs/late.so:$work/go" 2>"$work/one.log"
one=$started
check node_says_what_does_nothing wait_until 60 grep -q 'warning node --set: cluster.unreachable-nodes-reaper-interval has no effect: ' "$work/one.log"
check control_socket_is_there wait_until 60 "$troupe" --socket "$work/one.sock" peers
expect check_beside_a_node 0 "$troupe" config check --port "$port" --socket "$work/one.sock"
background "$troupe" node --port 0 --socket "$work/two.sock" --seed "troupe.tcp://demo@127.0.0.1:$port" --set remote.handshake-timeout=500ms 2>"$work/two.log"
two=$started
gated() { "$troupe" --socket "$work/two.sock" peers | grep -q "127.0.0.1:$port *gated"; }
check nobody_answers_yet wait_until 60 gated
touch "$work/go"
expect then_it_joins 0 "$troupe" --socket "$work/two.sock" wait --members 2
kill -TERM "$two"
ended two_leaves "$two" 0
kill -TERM "$one"
ended one_leaves "$one" 0
test_end
