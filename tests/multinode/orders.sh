#!/bin/bash
# orders.sh - examples/orders.c: on three nodes with PostgreSQL, of which one is killed (kill -9) and loses its disk, and
# on one node with LMDB, killed too. Nothing that was answered is lost.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../system/lib_postgres.sh"
hosts_begin 3
program=$build/examples/orders
per_node=8

shop() { # HOST TEXT: the answer of its desk
    ctl "$1" ask /user/desk "$2" --timeout "${patience:-60s}" 2>>"$work/refused" || echo "exit $?"
}
shop_says() { [ "$(patience=3s shop "$1" "$2")" = "$3" ]; }
orders_node() { # HOST NAME OPTION...
    local index=$1 name=$2
    shift 2
    host_start "$index" "$work/$name.log" "$program" --config "$src/examples/orders.conf" --system demo --host "${host_address[index]}" \
        --port "${host_port[index]}" --socket "${host_socket[index]}" --set app.lapse-ms="$lapse_ms" "$@"
    node_pid[index]=$host_started
    pids+=("$host_started")
}

# ---- one node, LMDB: the same file, but for one line ----
lapse_ms=600000
alone() {
    orders_node 1 "$1" --seed self --set persistence.journal=lmdb --set persistence.lmdb.dir="$work/journal"
    wait_until 60 ctl 1 wait --members 1 --timeout 1s
}
alone lmdb-1 || fail node_alone_starts
is an_order_is_taken_alone "$(shop 1 'add a1 2 500')" "2 things, 1000 cents, open"
is an_order_is_paid_alone "$(shop 1 'pay a1')" "2 things, 1000 cents, paid"
is another_is_taken_alone "$(shop 1 'add a2 1 7')" "1 things, 7 cents, open"
kill_node 1
lapse_ms=1
alone lmdb-2 || fail node_alone_starts_again
is what_is_paid_survives_a_kill "$(shop 1 'look a1')" "2 things, 1000 cents, paid"
is what_is_open_survives_a_kill "$(shop 1 'look a2')" "1 things, 7 cents, open"
check each_sale_is_in_the_books wait_until 60 shop_says 1 report "1 sold, 1000 cents"
is a_new_order_has_the_new_time "$(shop 1 'add a3 1 7')" "1 things, 7 cents, open"
check the_reminder_cancels_it wait_until 60 shop_says 1 'look a3' "1 things, 7 cents, cancelled"
is a_cancelled_order_is_not_paid "$(shop 1 'pay a3' 2>/dev/null)" "exit 1"
kill_node 1 TERM

# ---- three nodes, PostgreSQL ----
"$build/tests/system/journal_postgres" built || skip "built --without-postgres"
postgres_begin
lapse_ms=600000
postgres=(--set persistence.postgres.url="$url" --set cluster.downing.stable-after=8s --set persistence.local-store-is-enough=off)
expect tables_are_made 0 "$troupe" journal init --config "$src/examples/orders.conf" --set persistence.postgres.url="$url"
for index in 1 2 3; do
    mkdir "$work/disk-$index" # all that a node keeps on its host
    STATE_DIRECTORY=$work/state orders_node "$index" "postgres-$index" --seed "$(addr 1)" "${postgres[@]}" --set persistence.lmdb.dir="$work/disk-$index"
done
wait_until 90 all_up 3 1 2 3 || { fail three_nodes_come_up; test_end; }
# TRIES TEXT WANT HOST...: how many orders answer something else, asked at one of these hosts in turn
each_order() {
    local tries=$1 text=$2 want=$3 wrong=0 from number turn=0 ask=()
    shift 3
    local at=("$@")
    for from in 1 2 3; do
        for ((number = 1; number <= per_node; number++)); do
            ask=(shop_says "${at[turn++ % ${#at[@]}]}" "${text/ORDER/n$from-$number}" "$want")
            [ "$tries" -gt 1 ] || ask=(test "$(shop "${ask[@]:1:2}")" = "$want")
            wait_until "$tries" "${ask[@]}" || wrong=$((wrong + 1))
        done
    done
    echo "$wrong"
}
sum="$((3 * per_node)) sold, $((3 * per_node * 1000)) cents"
is orders_are_taken_on_three_nodes "$(each_order 1 'add ORDER 2 500' '2 things, 1000 cents, open' 1 2 3)" 0
is orders_are_asked_on_any_node "$(each_order 1 'look ORDER' '2 things, 1000 cents, open' 3 1 2)" 0
is half_is_paid "$(shop 2 'pay n1-1')" "2 things, 1000 cents, paid"
# The oldest node has the singleton with the books, and the coordinator of the shards. Its disk is lost with it.
kill_node 1
rm -rf "$work/disk-1"
lost_began=$(date +%s%N)
# A payment that gets no answer is made again: what went to the dead host is lost, and an order is paid once.
is no_order_is_lost "$(each_order 60 'pay ORDER' '2 things, 1000 cents, paid' 2 3)" 0
measure orders_paid_after_the_loss $((($(date +%s%N) - lost_began) / 1000000)) ms
check the_books_have_each_sale_once wait_until 60 shop_says 3 report "$sum"
is the_books_say_the_same_elsewhere "$(shop 2 report)" "$sum"
expect the_journal_is_in_order 0 "$troupe" journal verify --config "$src/examples/orders.conf" --set persistence.postgres.url="$url"
for index in 2 3; do kill -TERM "${node_pid[index]}"; done
for index in 2 3; do ended "node_${index}_ends_with_0" "${node_pid[index]}" 0; done
test_end
