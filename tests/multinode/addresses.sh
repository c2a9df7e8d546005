#!/bin/bash
# addresses.sh - names and addresses between hosts: an IPv6 cluster; a node behind address translation, whose advertised
# address is not where it listens; a name with several addresses, the first of which do not answer. REMOTE-02, REMOTE-03.
. "$(dirname "$0")/lib.sh"
hosts_begin 3 namespaces
command -v socat >/dev/null || skip "needs socat, which translates addresses: deploy/bootstrap --tests"
net=${host_address[1]%.1}
echo=$build/examples/.libs/echo.so

# A node with addresses of its own; start_node's are the plain ones.
start_at() { # HOST SEED OPTION...
    local index=$1 seed=$2
    shift 2
    host_start "$index" "$work/node-$index.log" "$troupe" node --system demo --socket "${host_socket[index]}" \
        --seed "$seed" --load "$echo" "$@"
    node_pid[index]=$host_started
    pids+=("$host_started")
}
stop_all() {
    local index
    for index in "$@"; do kill_node "$index" TERM; done
}

# IPv6: every host has an address of fd00::/64 on the same wire.
for index in 1 2; do
    check "host_${index}_has_ipv6" host_run "$index" ip -6 address add "fd00::$index/64" dev eth0 nodad
    start_at "$index" 'troupe.tcp://demo@[fd00::1]:2552' --host "fd00::$index" --port 2552
done
check ipv6_nodes_form_a_cluster wait_until 60 all_up 2 1 2
expect ipv6_actor_answers 0 ctl 1 ask 'troupe.tcp://demo@[fd00::2]:2552/user/echo' six
is ipv6_reply "$(cat "$work/out")" six
expect ipv6_member_has_a_status 0 ctl 1 member-status '[fd00::2]:2552'
stop_all 2 1

# Translation: the world knows host 2 as 192.0.2.7:4000 and host 1 as 192.0.2.8:4000, which host 3 carries to where they
# listen. The direct way is shut. (Each must be dialled by the other: a member that cannot be dialled is not admitted.)
public=192.0.2.7
public_1=192.0.2.8
translate() { # PUBLIC HOST ADDRESS:PORT: host 3 carries PUBLIC:4000 there; the way to it is HOST's
    check "public_address_$1" host_run 3 ip address add "$1/32" dev lo
    check "way_to_$1" host_run "$2" ip route add "$1/32" via "$net.3"
    host_start 3 "$work/socat-$1.log" socat "TCP-LISTEN:4000,bind=$1,fork,reuseaddr" "TCP:$3"
    pids+=("$host_started")
}
translate "$public" 1 "$net.2:2600"
translate "$public_1" 2 "$net.1:2552"
check no_direct_way host_run 1 ip route add prohibit "$net.2/32"
seed=troupe.tcp://demo@$public:4000 # so that the other one dials
start_at 2 "$seed" --host "$public" --port 4000 --bind-host "$net.2" --bind-port 2600
start_at 1 "$seed" --host "$public_1" --port 4000 --bind-host "$net.1" --bind-port 2552
check translated_nodes_form_a_cluster wait_until 60 all_up 2 1 2
# REMOTE-02
expect actor_behind_translation_answers 0 ctl 1 ask "troupe.tcp://demo@$public:4000/user/echo" seven
is translated_reply "$(cat "$work/out")" seven
expect who_is_behind_it_asks_out 0 ctl 2 ask "troupe.tcp://demo@$public_1:4000/user/echo" eight
expect inner_address_is_nobody 68 ctl 1 member-status "$net.2:2600"
stop_all 2 1

# A name of three addresses: one refused by the route, one by the host, the last is right.
check direct_way_again host_run 1 ip route del prohibit "$net.2/32"
printf '%s\n' "127.0.0.1 localhost" "$net.77 far.test" "$net.3 far.test" "$net.2 far.test" "$net.1 near.test" >"$work/hosts"
check nobody_at_the_first host_run 1 ip route add prohibit "$net.77/32"
for index in 1 2; do
    check "host_${index}_has_names" host_run "$index" mount --bind "$work/hosts" /etc/hosts
done
seed=troupe.tcp://demo@near.test:2552
start_at 1 "$seed" --host near.test --port 2552 --bind-host "$net.1"
start_at 2 "$seed" --host far.test --port 2552 --bind-host "$net.2"
check named_nodes_form_a_cluster wait_until 60 all_up 2 1 2
expect actor_at_the_last_address_answers 0 ctl 1 ask "troupe.tcp://demo@far.test:2552/user/echo" nine
is named_reply "$(cat "$work/out")" nine
expect address_is_not_the_name 68 ctl 1 member-status "$net.2:2552"
stop_all 2 1
test_end
