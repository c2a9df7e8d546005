#!/bin/bash
# bad_links.sh - nodes behind links that lose packets, or are narrow, with real TCP through a relay of packets (relay.c).
#   bad_links.sh          the relay itself: how much it loses, and that it is slow
#   bad_links.sh --long [SECONDS]   default timings, four clusters at once for 10 minutes. Five nodes, 20 % of all packets to and from
#                         one of them are lost, both ways, once the leader and once another: no member is removed, the leader
#                         stays, at most three times a member is unreachable, for at most 5 s; and a crash is found as
#                         always. Three nodes, one behind 64 kbit/s, with a queue of 100 packets (19 s) and of 10, and
#                         1 MB/s of mail both ways: no member is ever unreachable.
# FD-06, MEMB-13; docs/operating.md, Bad links.
. "$(dirname "$0")/lib.sh"
seconds=${2:-600}

# Ours only: ARP and the like come on top.
send() { host_run 1 bash -c 'for ((i = 0; i < $2; i++)); do echo "$i" >"/dev/udp/$1/9"; done' send "${host_address[2]}" "$1"; }
all_are_counted() { # PACKETS: what came to the relay from host 1
    relay_say 2 counts
    read -r _ carried lost dropped _ <<<"$relay_said"
    [ "$((carried + lost + dropped))" -ge "$1" ]
}
counts_are() { # NAME LEAST MOST VALUE
    if [ "$4" -ge "$2" ] && [ "$4" -le "$3" ]; then pass "$1"; else fail "$1" "$4, not $2 to $3"; fi
}
relay_itself() {
    local before=0 sent
    hosts_begin 2 namespaces
    relay_begin 2 --seed 1
    send 1
    wait_until 60 all_are_counted 1 || fail relay_carries "$relay_said"
    relay_say 2 "loss 20"
    before=$lost
    # Few at a time: a relay that is not scheduled for a while has room for some 200 of them in its socket.
    for ((sent = 1; sent < 401; sent += 40)); do
        send 40
        wait_until 60 all_are_counted $((sent + 40)) || fail relay_counts "$relay_said"
    done
    counts_are a_fifth_is_lost 50 115 $((lost - before)) # 80, give or take 4 standard deviations
    relay_say 2 "loss 0"
    relay_say 2 "queue 5"
    relay_say 2 "rate 1000" # 0.4 s for each
    before=$dropped
    send 40
    wait_until 60 all_are_counted 441 || fail relay_counts "$relay_said"
    counts_are a_full_queue_drops 30 40 $((dropped - before))
}

watch_events() { # NODE...: what they tell, in $work/events-N
    local index
    for index; do
        host_start "$index" "$work/events-$index" env -u TROUPE_TIMEOUT "$troupe" events -v -o jsonl
        pids+=("$host_started")
        wait_until 60 test -s "$work/events-$index" || fail events_are_subscribed
    done
}
nothing_told() { is "$1" "$(cat "${@:3}" | grep -cF "\"type\":\"$2\"")" 0; } # NAME TYPE EVENTS...
time_ms() { date -d "$1" +%s%3N; }
# The longest time for which a member was unreachable, as one node tells it, in ms.
longest_ms() { # EVENTS
    local type time longest=0 begin=0 now
    while read -r type time; do
        now=$(time_ms "$time")
        [ "$type" != UnreachableMember ] || begin=$now
        [ "$type" != ReachableMember ] || [ $((now - begin)) -le "$longest" ] || longest=$((now - begin))
    done < <(sed -nE 's/.*"time":"([^"]*)".*"type":"(UnreachableMember|ReachableMember)".*/\2 \1/p;
        s/.*"type":"(UnreachableMember|ReachableMember)".*"time":"([^"]*)".*/\1 \2/p' "$1")
    echo "$longest"
}

lossy() { # FIRST LOSSY
    local one=$1 bad=$2 last=$(($1 + 4)) index most=0 events=() leaders
    seed_host=$one
    relay_begin "$bad" --seed "$RANDOM"
    for ((index = one; index <= last; index++)); do start_node "$index" --log-level info; done
    wait_until 60 all_up 5 "$one" "$last" || { fail five_come_up; return; }
    for ((index = one; index <= last; index++)); do
        watch_events "$index"
        events+=("$work/events-$index")
    done
    leaders=$(cat "${events[@]}" | grep -cF '"type":"LeaderChanged"') # each subscription begins with what is so
    relay_say "$bad" "loss 20"
    elapse "$seconds" "how long packets are lost"
    nothing_told nobody_is_removed MemberRemoved "${events[@]}"
    nothing_told nobody_is_downed MemberDowned "${events[@]}"
    is the_leader_stays "$(cat "${events[@]}" | grep -cF '"type":"LeaderChanged"')" "$leaders"
    for index in "${events[@]}"; do
        index=$(suspicions "$index")
        [ "$index" -le "$most" ] || most=$index
    done
    judge "unreachable_episodes" "$most" 3 episodes
    judge "longest_unreachable" "$(longest_ms "$work/events-$((one + 1))")" 5000 ms
    index=$(now_ms)
    kill_node "$last"
    wait_until 60 sees_unreachable "$(addr "$last")" "$((one + 1))" || fail a_crash_is_found
    within a_crash_is_found_beside_the_loss $(($(now_ms) - index)) 6000
}

thin() { # FIRST QUEUE
    local one=$1 two=$(($1 + 1)) bad=$(($1 + 2)) index begin
    seed_host=$one
    relay_begin "$bad"
    relay_say "$bad" "queue $2"
    relay_say "$bad" "rate 64000"
    for index in "$one" "$two" "$bad"; do start_node "$index" --log-level info --load "$build/tests/multinode/.libs/mail.so"; done
    wait_until 60 all_up 3 "$one" "$two" "$bad" || { fail three_come_up; return; }
    watch_events "$one" "$two" "$bad"
    begin=$(now_ms)
    for index in "$one $bad" "$bad $one"; do
        set -- $index
        expect "mail_flows_to_$2" 0 ctl "$1" ask /user/mail "tell 1000000 $(addr "$2")"
    done
    elapse "$seconds" "how long mail flows"
    unsuspected "nobody_is_unreachable" "$(suspicions "$work/events-$one" "$work/events-$two" "$work/events-$bad")" $(($(now_ms) - begin)) 2000
    measure mail_taken "$(ctl "$bad" ask /user/mail taken)" messages
    measure round_trip "$(ctl "$one" peers -o json | grep -oE '"rttMs": *[0-9.]+' | grep -oE '[0-9.]+$' | sort -n | tail -n 1)" ms
}
loss_at_the_leader() { lossy 1 1; } # addresses are compared as text: of hosts 1 to 5 and 11 to 15 the first leads
loss_at_another() { lossy 11 13; }
thin_link_deep_queue() { thin 6 100; }
thin_link_short_queue() { thin 16 10; }

if [ "${1:-}" = --long ]; then
    hosts_begin 18 namespaces
    together loss_at_the_leader loss_at_another thin_link_deep_queue thin_link_short_queue
else
    relay_itself
fi
test_end
