#!/bin/bash
# programs.sh - each program of examples/ compiles with what pkg-config says and nothing else, has at most 60 lines (a
# header beside it, too), and prints what tests/examples/NAME.out says: a line of it is a pattern of the shell, of which *
# and ? mean something. Each feature of the list below has its program, and each program stands in examples/README.md.
# Proves HEADLINE-8, HEADLINE-13, SYS-38, TCP-18, TCP-23, TCP-24, TCP-26, TCP-27,
# ZMQ-07, HOW-01, HOW-12, HOW-04, HOW-05, HOW-06, HOW-07, HOW-08, HOW-10, HOW-11.
set -uo pipefail
top=${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
destdir=${TROUPE_DESTDIR:?an installed Troupe}
export PKG_CONFIG_PATH=$destdir/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$destdir
export LD_LIBRARY_PATH=$destdir/usr/local/lib
lines_max=60
# Longer, because each is a whole program of a cluster and not one feature:
#   cluster   a member with events, roles, a manager and a control socket
#   counter   a plugin with messages of its own and their JSON form
#   ping      both ends of a conversation between two processes
#   echo_*    the document's echo servers whole, with their flow control, and a slow peer
#   frames_tls  both ends of a connection, with their certificates
#   udp       three kinds of sockets
#   proxy     a document's two samples whole: a page, and the proxy before it
#   persistent  commands, events, recovery and snapshots of one actor
#   agent     values, a transaction over them, one derived
#   cache     source, cache and those that wait
#   ending    parts, keeper and reaper
#   hello_app  an application whole: both actors, configuration, startup, shutdown
#   broker    jobs, connections, and both ends of them
#   graph     parts, master, supersteps, two nodes
#   pulling   master and workers, which come and go
#   periodic  both ways, over a failure
#   flow      an ask in sequence, flows of flows, and a failure
#   coordinated  both parties, and an outcome of each kind
#   aggregator  a document's sample whole: request, answers, timeout
#   buncher   a document's sample whole: states, hook, common events, its drawing
#   philosophers  two kinds of machines
#   health    a document's sample whole: probe, logger, alerter
#   orders    a service: entities, reminders, a projection and a singleton
#   registry  services, a job for them, and the list
#   room      a member whole, and all that a subscriber is told; room_caller, the same for a client
longer=" hello_app broker graph pulling agent cache ending flow periodic aggregator coordinated buncher philosophers health cluster counter ping echo_ack echo_nack echo_peer frames_tls udp proxy persistent orders registry room room_caller "
# Not run here: those need a second process or a node, and are run by tests/multinode and tests/system.
elsewhere=" backend cluster counter deployed echo factorial_backend factorial_frontend frontend hello_app member multinode orders ping pulling room room_caller stats stats_master "
# What a program shows, and which one does (examples/README.md says how).
features="lifecycle:restart lifecycle:graceful_stop supervise:decider supervise:strategy crash:trp_fail crash:fault_trap
    lifecycle:trp_alloc lifecycle:trp_defer watch:trp_watch stash:trp_stash stash:trp_become ask:trp_ask
    dispatcher:pinned dispatcher:BLOCKING balancing:BALANCING balancing:affinity mailbox:PRIORITY mailbox:capacity
    mailbox:NOTIFY custom_mailbox:TRP_MAILBOX_KIND_CUSTOM peek:trp_mailbox_ack durable:trp_durable_register breaker:trp_breaker_new
    router:consistent-hashing pool:trp_adjust_pool_size pool:trp_resizer_capacity routing:trp_routing_logic
    deployment:nr-of-instances future:trp_future inbox:trp_inbox_open extension:trp_extension timers:trp_timer_repeat
    timers:trp_schedule_run events:trp_subscribe events:trp_dead_letter bus:TRP_BUS_SUBCHANNEL logging:TRP_LOG
    config:trp_config_origin test_actor:trp_probe seeded:trp_seeded_run alias:trp_alias_set
    category:trp_category_join category:will_receive pending:trp_pending_visit pending:trp_subject
    persistent:trp_persist persistent:trp_persistence_start persistent:snapshot_every orders:trp_sharding_start
    orders:remember_entities orders:trp_reminder_set orders:trp_projection_emit orders:trp_journal_query_spawn orders:trp_singleton_start
    room:trp_mediator_subscribe room:TRP_SUBSCRIBE_TELLS_MISSED room:trp_receptionist_subscribe room_caller:trp_client_topic registry:trp_mediator_topics
    chat:TRP_MSG_ARRAY codec:trp_pipeline_new member:trp_node_run interaction:trp_system_tell_in deactivate:trp_system_deactivate resource:trp_resource_options embedded:trp_embedded_call
    hello_app:TRP_BOOTABLE broker:trp_line_stage graph:TRP_REGISTRY pulling:TRP_REGISTRY
    throttle:trp_system_throttler_spawn name_reuse:TRP_EEXIST ending:trp_system_shutdown periodic:trp_schedule_once cache:trp_schedule_once flow:trp_flow_start flow:trp_flow_ask aggregator:trp_aggregator_expect_once agent:trp_agent_send_in coordinated:trp_coordination_join buncher:TRP_FSM_EXPORT philosophers:trp_fsm_reply
    echo_ack:trp_tcp_ack_type echo_nack:trp_tcp_resume_writing_type udp:trp_udp_simple_sender health:trp_nng_open spool:trp_consumer_open spool:trp_endpoint_ack proxy:trp_endpoint_reply frames_tls:trp_tls_new frames_tls:trp_tcp_pipeline
    live:trp_live_sample select:trp_system_select_tell reliable:trp_reliable_proxy
    remote_child:trp_behaviour_register deployed:trp_watch multinode:trp_multinode_barrier frontend:trp_watch
    backend:trp_cluster_subscribe stats:statsWorker stats_master:oldest_find factorial_frontend:from_config
    factorial_backend:trp_reply"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() {
    echo "FAIL $1"
    sed 's/^/    /' | head -n 30
    status=1
}
pass() { echo "PASS $1"; }

# matches PATTERNS TEXT: line by line, and as many
matches() {
    local pattern line
    exec 3<"$1" 4<"$2"
    while IFS= read -r pattern <&3; do
        IFS= read -r line <&4 || return 1
        # shellcheck disable=SC2053 # it is a pattern
        [[ $line == ${pattern//[/\\[} ]] || return 1
    done
    ! IFS= read -r line <&4
}

for feature in $features; do
    grep -qF -- "${feature#*:}" "$top/examples/${feature%%:*}.c" 2>/dev/null ||
        fail "example ${feature%%:*} shows ${feature#*:}" <<<"it does not name it"
done
[ $status -eq 0 ] && pass "each feature has an example"
for source in "$top"/examples/*.[ch]; do
    name=$(basename "$source")
    [[ $longer == *" ${name%.*} "* ]] && continue
    if [ "$(wc -l <"$source")" -le "$lines_max" ]; then
        pass "example $name has at most $lines_max lines"
    else
        wc -l "$source" | fail "example $name has at most $lines_max lines"
    fi
done

# frames_tls says in its head what it needs.
(cd "$work" && "$destdir/usr/local/bin/troupe" cert ca demo --dir pki && "$destdir/usr/local/bin/troupe" cert node 127.0.0.1 --dir pki) \
    >"$work/log" 2>&1 || fail "certificates for examples" <"$work/log"

read -ra flags <<<"$(pkg-config --cflags --libs troupe)"
for source in "$top"/examples/*.c; do
    name=$(basename "$source" .c)
    kind=()
    grep -qE '^TRP_(PLUGIN|BOOTABLE)\(' "$source" && kind=(-shared -fPIC)
    if ! cc "${kind[@]}" -Wall -Wno-format-truncation -Werror -o "$work/$name" "$source" "${flags[@]}" >"$work/log" 2>&1; then
        fail "example $name compiles" <"$work/log"
        continue
    fi
    pass "example $name compiles"
    if ! grep -qF "\`$name.c\`" "$top/examples/README.md"; then
        fail "example $name stands in examples/README.md" <<<"it does not"
    fi
    [[ $elsewhere == *" $name "* ]] && continue
    if (cd "$work" && timeout 30 "./$name" >"$work/out" 2>"$work/err" </dev/null) &&
        matches "$top/tests/examples/$name.out" "$work/out"; then
        # PIPE-11: the sample codec
        pass "example $name prints what it promises"
    else
        cat "$work/out" "$work/err" | fail "example $name prints what it promises"
    fi
done
exit $status
