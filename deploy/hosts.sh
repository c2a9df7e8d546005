# hosts.sh - several "hosts" on one machine, for deploy/quickstart and tests/multinode. Source it (bash).
#
#   hosts_up N DIR [PREFIX]   make N hosts; DIR holds their files. Sets
#                             hosts_mode   namespaces | ports       hosts_why  one sentence
#                             host_address[I], host_port[I], host_socket[I] for I in 1..N
#   host_run I COMMAND...     run a command on host I
#   host_start I LOG COMMAND...   start it there in the background; pid in $host_started
#   host_cut I, host_heal I   unplug host I from the switch, plug it in again (namespaces only)
#   hosts_port                a free port of 127.0.0.1 in $hosts_free, ours until hosts_down
#   hosts_down                end them; nothing is left behind
#
# Namespaces: each host is a process that sleeps in a network and a mount namespace of its own, with an
# address 10.x.y.I on eth0 and a private /run; a further one holds the bridge that joins them. Nothing is made
# in the machine's own namespaces, so nothing remains when the processes end, whatever ends them. As another
# user than root all of it lives in a user namespace. Where the kernel refuses: three ports on 127.0.0.1.
# shellcheck shell=bash disable=SC2034 # the script that sources this uses these variables

host_address=() host_port=() host_socket=() host_holder=()
hosts_mode='' hosts_why='' hosts_dir='' hosts_switch='' host_started='' hosts_free=''
hosts_enter=() hosts_locks=()

# A pause within a loop that waits: a read without a writer needs no process, unlike sleep.
hosts_pause() { # SECONDS
    [ -n "${hosts_never-}" ] || exec {hosts_never}<> <(:)
    read -rt "$1" -u "$hosts_never" || :
}

# A process that sleeps in new namespaces and dies with this shell; pid in $hosts_held.
hosts_hold() { # NAME COMMAND-PREFIX...
    local name=$1 ready=$hosts_dir/$1.ready deadline=$((SECONDS + 60))
    shift
    # shellcheck disable=SC2016 # expanded by the inner shell
    "$@" bash -c 'mount -t tmpfs -o mode=755 troupe-run /run && mkdir -p /run/troupe && ip link set lo up &&
        { hostname "$2" 2>/dev/null || :; } && : >"$1" && exec setpriv --pdeathsig KILL sleep infinity' \
        hold "$ready" "$name" >"$hosts_dir/$name.err" 2>&1 &
    hosts_held=$!
    until [ -e "$ready" ]; do
        if ! kill -0 "$hosts_held" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
            kill -9 "$hosts_held" 2>/dev/null
            wait "$hosts_held" 2>/dev/null
            return 1
        fi
        hosts_pause 0.01
    done
    rm -f "$ready"
}

hosts_namespaces() {
    local count=$1 index net tool holder
    for tool in unshare nsenter setpriv ip hostname; do
        command -v "$tool" >/dev/null || { hosts_why="the program '$tool' is missing"; return 1; }
    done
    if [ "$(id -u)" -eq 0 ]; then
        hosts_enter=(nsenter)
        hosts_hold switch unshare --net --mount --uts || { hosts_why="the kernel refuses namespaces: $(tail -n 1 "$hosts_dir/switch.err")"; return 1; }
    else
        hosts_enter=(nsenter --user --preserve-credentials)
        hosts_hold switch unshare --user --map-root-user --net --mount --uts ||
            { hosts_why="the kernel refuses namespaces to this user: $(tail -n 1 "$hosts_dir/switch.err")"; return 1; }
    fi
    hosts_switch=$hosts_held
    local switch=("${hosts_enter[@]}" --target "$hosts_switch" --net --mount --uts)
    "${switch[@]}" ip link add br0 type bridge 2>"$hosts_dir/switch.err" && "${switch[@]}" ip link set br0 up ||
        { hosts_why="no bridge: $(tail -n 1 "$hosts_dir/switch.err")"; return 1; }
    net=${HOSTS_NET:-10.$((RANDOM % 200 + 20)).$((RANDOM % 250 + 1))}
    for ((index = 1; index <= count; index++)); do
        hosts_hold "host$index" "${hosts_enter[@]}" --target "$hosts_switch" --net --mount --uts \
            unshare --net --mount --uts || { hosts_why="no namespace for host $index: $(tail -n 1 "$hosts_dir/host$index.err")"; return 1; }
        holder=$hosts_held
        host_holder[index]=$holder
        {
            "${switch[@]}" ip link add "port$index" type veth peer name eth0 netns "$holder" &&
                "${switch[@]}" ip link set "port$index" master br0 up &&
                "${hosts_enter[@]}" --target "$holder" --net ip address add "$net.$index/24" dev eth0 &&
                "${hosts_enter[@]}" --target "$holder" --net ip link set eth0 up
        } 2>"$hosts_dir/host$index.err" || { hosts_why="no link to host $index: $(tail -n 1 "$hosts_dir/host$index.err")"; return 1; }
        host_address[index]=$net.$index
        host_port[index]=2552
        host_socket[index]=/run/troupe/demo@2552.sock
    done
    hosts_why="$count network namespaces joined by a bridge"
}

# A port without a listener that the kernel does not assign by itself (it is below the local port range), and a
# locked file for it, so that two runs at the same time do not choose the same one before they listen.
hosts_port() {
    local low=10000 high=32768 lock fd tries
    read -r high _ 2>/dev/null </proc/sys/net/ipv4/ip_local_port_range || :
    [ "$high" -gt 12000 ] || low=20000 high=40000
    hosts_free=$((low + (RANDOM * 32768 + RANDOM) % (high - low)))
    for ((tries = high - low; tries > 0; tries--, hosts_free = hosts_free + 1 < high ? hosts_free + 1 : low)); do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$hosts_free") 2>/dev/null || continue
        command -v flock >/dev/null || return 0 # without flock two runs may choose the same port
        lock=/tmp/troupe-port-$hosts_free # not below TMPDIR, which each run may set
        { exec {fd}>"$lock"; } 2>/dev/null || continue # another user's
        # A run removes its file while it holds the lock: check that the name still leads to the locked file.
        if flock -n "$fd" && [ "$lock" -ef "/proc/self/fd/$fd" ]; then
            hosts_locks+=("$lock")
            return
        fi
        exec {fd}>&-
    done
    echo "no free port on 127.0.0.1" >&2
    return 1
}

hosts_ports() {
    local count=$1 index
    for ((index = 1; index <= count; index++)); do
        hosts_port
        host_address[index]=127.0.0.1
        host_port[index]=$hosts_free
        host_socket[index]=$hosts_dir/demo@$hosts_free.sock
    done
}

hosts_up() {
    local count=$1
    hosts_dir=$2
    hosts_mode=namespaces
    if [ -n "${HOSTS_PORTS:-}" ]; then
        hosts_why="ports were asked for"
        hosts_mode=ports
    elif ! hosts_namespaces "$count"; then
        hosts_down
        hosts_mode=ports
    fi
    [ "$hosts_mode" = namespaces ] || hosts_ports "$count"
}

# The prefix that runs a command on host I, in host_prefix, and the control socket of its node, in host_control.
hosts_prefix() {
    host_prefix=()
    host_control=${host_socket[$1]:-}
    [ "$hosts_mode" = ports ] || host_prefix=("${hosts_enter[@]}" --target "${host_holder[$1]}" --net --mount --uts)
}

host_run() {
    local host_prefix host_control
    hosts_prefix "$1"
    shift
    local -x TROUPE_SOCKET=$host_control # a shell's own needs no program `env`
    [ -n "$host_control" ] || unset TROUPE_SOCKET
    "${host_prefix[@]}" "$@"
}

host_start() {
    local host_prefix host_control log=$2
    hosts_prefix "$1"
    shift 2
    local -x TROUPE_SOCKET=$host_control
    [ -n "$host_control" ] || unset TROUPE_SOCKET
    "${host_prefix[@]}" setpriv --pdeathsig KILL "$@" >>"$log" 2>&1 &
    host_started=$!
}

host_cut() { "${hosts_enter[@]}" --target "$hosts_switch" --net ip link set "port$1" down; }
host_heal() { "${hosts_enter[@]}" --target "$hosts_switch" --net ip link set "port$1" up; }

hosts_down() {
    local pid
    for pid in "${host_holder[@]}" $hosts_switch; do
        kill -9 "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    [ ${#hosts_locks[@]} -eq 0 ] || rm -f "${hosts_locks[@]}"
    host_holder=()
    hosts_locks=()
    hosts_switch=''
}
