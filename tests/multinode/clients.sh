#!/bin/bash
# clients.sh - a client from outside (examples/room_caller.c) of a cluster on three hosts (examples/room.c), on a fourth host that cannot be
# called, as behind address translation: TCP segments that would open a connection to it are dropped and counted (relay.c).
#
# | Akka's spec | here |
# |---|---|
# | ClusterClientSpec: any node, ask, publish | a_publication_reaches_ann, _bob and _cid, the_client_hears_what_node_3_says, an_ask_is_answered |
# | ClusterClientSpec: contact is lost, established again | the_client_finds_another_contact, a_contact_that_starts_again_is_found |
# | ClusterClientHandoverSpec: the contact leaves | the_client_was_moved_before |
# | ClusterClientStopSpec: no contact for too long | it_gives_up |
# | names are looked up again when all contacts fail | a_name_is_looked_up_again |
# CONTRIB-22 CONTRIB-24 CONTRIB-25 CONTRIB-28
. "$(dirname "$0")/lib.sh"
hosts_begin 4 namespaces
relay_begin 4
relay_say 4 "closed 1"
fast=(--set cluster.client.receptionist.enabled=on --set cluster.gossip-interval=200ms --set cluster.leader-actions-interval=200ms
    --set cluster.downing.active-strategy=auto-down-after --set cluster.downing.auto-down-after=2s --set cluster.failure-detector.heartbeat-interval=200ms)
enter() { # I GUEST [SEED]
    host_start "$1" "$work/$2.log" env GUEST="$2" "$build/examples/room" --system demo --host "${host_address[$1]}" --port "${host_port[$1]}" \
        --socket "${host_socket[$1]}" --seed "${3:-$(addr 1)}" "${fast[@]}"
    node_pid[$1]=$host_started
    pids+=("$host_started")
}
at() { echo "${host_address[$1]}:${host_port[$1]}"; } # I
heard() { grep -qF "$1 hears: $2" "$work/$1.log"; } # GUEST TEXT
inside() { grep -qF "$1 is in the room" "$work/$1.log"; }
calls_are() { relay_say 4 calls; [ "$relay_said" = "calls $1" ]; }
begin_caller() { # NAME CONTACT...
    mkfifo "$work/$1.in"
    exec {line_in}<>"$work/$1.in"
    # shellcheck disable=SC2016 # expanded there
    host_start 4 "$work/$1.log" bash -c 'exec "$@" <"$0"' "$work/$1.in" "$build/examples/room_caller" "${@:2}"
    caller=$host_started
    pids+=("$caller")
}
say() { echo "$*" >&"$line_in"; }
hears() { grep -qxF "heard: $2" "$work/$1.log"; } # CALLER TEXT
contact_of() { sed -n 's/^contact: //p' "$work/$1.log" | tail -n 1; } # CALLER: address, or none
contact_is() { [ "$(contact_of "$1")" = "$(addr "$2")" ]; } # CALLER I
place_of() { local i; for i in 1 2 3; do [ "$1" != "$(addr "$i")" ] || echo "$i"; done; }
# Published by node I until the caller, whose tunnel is to be subscribed everywhere, hears it.
reached() { # CALLER I TEXT
    ctl "$2" publish rooms/lobby "$3" >/dev/null 2>&1
    hears "$1" "$3"
}
# Published by the caller until the guest, whose subscription is to be known at the contact, hears it.
spoken() { # GUEST TEXT
    say "$2"
    heard "$1" "$2"
}
calls_are 0 || fail the_relay_counts "$relay_said"
enter 1 ann
enter 2 bob
enter 3 cid
for guest in ann bob cid; do check "${guest}_comes_in" wait_until 90 inside "$guest"; done

# ---- CONTRIB-22, CONTRIB-24, CONTRIB-25: what a client can do
begin_caller zoe "$(at 1)"
for guest in ann bob cid; do check "a_publication_reaches_$guest" wait_until 60 spoken "$guest" "hello $guest"; done
for index in 1 2 3; do check "the_client_hears_what_node_${index}_says" wait_until 60 reached zoe "$index" "from $index"; done
# ClusterClientSpec
expect an_ask_is_answered 0 host_run 4 "$troupe" --via "$(at 2)" ask porter hello
has by_the_service "say enter"
# Its load does not touch the heartbeats of the cluster.
events_begin 1 --type UnreachableMember
begin=$(now_ms)
for ((index = 1; index <= 10000; index++)); do echo "flood $index"; done >&"$line_in"
for guest in ann bob cid; do check "a_flood_reaches_$guest" wait_until 120 heard "$guest" "flood 10000"; done
unsuspected a_flood_makes_nobody_unreachable "$(suspicions "$work/events")" $(($(now_ms) - begin))
# CONTRIB-22
check no_node_has_called_the_client calls_are 0
a_call_is_seen() {
    host_run 1 timeout 1 bash -c ": </dev/tcp/${host_address[4]}/80"
    ! calls_are 0
}
check a_call_would_have_been_seen wait_until 60 a_call_is_seen
relay_say 4 calls
called=${relay_said#calls }

# ---- CONTRIB-28: its contact is killed, and starts again on its address
has_contact() { contact=$(place_of "$(contact_of zoe)") && [ -n "$contact" ]; } # its number, in $contact
wait_until 60 has_contact || { fail zoe_has_a_contact; test_end; }
lost=$contact
kill_node "$lost"
is_elsewhere() { local now; now=$(contact_of zoe); [ "$now" != none ] && [ -n "$now" ] && [ "$now" != "$(addr "$lost")" ]; }
# CONTRIB-28, ClusterClientSpec
check the_client_finds_another_contact wait_until 60 is_elsewhere
left=$((lost % 3 + 1))
check it_hears_through_it wait_until 60 reached zoe "$left" "after the crash"
guests=(- ann bob cid)
check it_is_heard_through_it wait_until 60 spoken "${guests[left]}" "I am here"
if [ "$lost" = 1 ]; then enter 1 dan "$(addr 2)"; else enter "$lost" dan; fi
check dan_comes_in wait_until 90 inside dan
check dan_hears_the_client wait_until 60 spoken dan "welcome dan"

# ---- CONTRIB-28: its contact leaves, and has moved it before
wait_until 60 has_contact || { fail zoe_has_a_contact_again; test_end; }
leaves=$contact
moves=$(grep -c '^contact: ' "$work/zoe.log")
expect its_contact_leaves 0 ctl "$leaves" leave --timeout 60s
node_ended its_contact_has_left "$leaves" 0
is_moved() { local now; now=$(contact_of zoe); [ "$now" != none ] && [ "$now" != "$(addr "$leaves")" ]; }
check the_client_has_another_contact wait_until 60 is_moved
# CONTRIB-28, ClusterClientHandoverSpec
check the_client_was_moved_before test "$(tail -n +$((moves + 1)) < <(grep '^contact: ' "$work/zoe.log") | grep -c none)" -eq 0
kill "$caller"
await "$caller" 60 || fail zoe_ends

# ---- CONTRIB-28: all contacts fail; a name is looked up again; the same address again
for index in 1 2 3; do
    [ "$index" = "$leaves" ] || kill_node "$index"
done
names=$work/hosts
echo "${host_address[1]} shop.test" >"$names"
echo "hosts: files" >"$work/nsswitch" # nobody answers a query for the other family
host_run 4 mount --bind "$work/nsswitch" /etc/nsswitch.conf
host_run 4 mount --bind "$names" /etc/hosts
enter 1 eve self
check eve_comes_in wait_until 60 inside eve
begin_caller yan "shop.test:${host_port[1]}"
check the_client_finds_a_name wait_until 60 contact_is yan 1
kill_node 1
check all_contacts_fail wait_until 60 grep -q '^no contact answers' "$work/yan.log"
enter 1 fay self
check a_contact_that_starts_again_is_found wait_until 60 reached yan 1 "again"
kill_node 1
enter 2 gus self
check gus_comes_in wait_until 60 inside gus
echo "${host_address[2]} shop.test" >"$names" # in place: the mount is of the file
# CONTRIB-28
check a_name_is_looked_up_again wait_until 60 contact_is yan 2
check it_hears_there wait_until 60 reached yan 2 "over here"
kill_node 2
kill "$caller"
await "$caller" 60 || fail yan_ends

# ---- ClusterClientStopSpec
PATIENCE_MS=1000 begin_caller xia "$(at 1)" "$(at 2)"
# ClusterClientStopSpec
check it_gives_up wait_until 60 grep -q '^gives up: ' "$work/xia.log"
check the_client_was_never_called calls_are "$called"
test_end
