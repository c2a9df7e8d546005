#!/bin/bash
# rotation.sh - each step of each rotation that docs/remoting.md describes (cookie, certificate, authority), on a cluster
# that runs: after it a member restarts and a new node joins through each of the members, and all are Up.
. "$(dirname "$0")/lib.sh"
test_begin
declare -A port pid cookie before made
nodes=(one two)
for name in "${nodes[@]}" new; do
    hosts_port || { fail "a free port"; test_end; }
    port[$name]=$hosts_free
done
address() { echo "troupe.tls://demo@127.0.0.1:${port[$1]}"; }
at() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
authority() { "$troupe" cert ca "$1" --dir "$work/$1" >/dev/null; }
certificate() { # NAME AUTHORITY: a new one for that host
    "$troupe" cert node 127.0.0.1 --dir "$work/$2" --force >/dev/null && mkdir -p "$work/$1" &&
        cp "$work/$2/127.0.0.1.pem" "$work/$1/cert.pem" && cp -p "$work/$2/127.0.0.1.key" "$work/$1/cert.key"
}
settings() { # NAME: its configuration, with its cookies as they are now
    cat >"$work/$1.conf" <<END
remote {
    transport = tls
    require-cookie = on
    secure-cookie = "${cookie[$1]}"
    ${before[$1]:+secure-cookie-before = "${before[$1]}"}
    tls { ca = "$work/$1/ca.pem"  cert = "$work/$1/cert.pem"  key = "$work/$1/cert.key"  reload-interval = 0s }
}
END
}
start() { # NAME SEED
    background "$troupe" node --config "$work/$1.conf" --host 127.0.0.1 --port "${port[$1]}" --socket "$work/$1.sock" \
        --seed "$2" >>"$work/$1.log" 2>&1
    pid[$1]=$started
}
reload() { # NAME: SIGHUP, and wait until it has read all
    local lines
    lines=$(grep -c "credentials read again" "$work/$1.log")
    kill -HUP "${pid[$1]}"
    wait_until 30 bash -c "[ \$(grep -c 'credentials read again' '$work/$1.log') -gt $lines ]"
}
gone() { kill -TERM "${pid[$1]}"; await "${pid[$1]}" 60 && [ "$code" -eq 0 ]; }
joins() { # NAME SEED
    start "$1" "$(address "$2")" && at one wait --members "$3" --converged --timeout 60s && at two wait --members "$3" --converged --timeout 60s
}
# A new node that is made like HOST joins through each of both and leaves; then two restarts.
after() { # STEP HOST
    local through ok=0
    cookie[new]=${cookie[$2]} before[new]=${before[$2]}
    mkdir -p "$work/new" && cp -p "$work/$2/"* "$work/new/"
    settings new
    for through in one two; do
        joins new "$through" 3 >"$work/out" 2>&1 && gone new && at one wait --members 2 --converged --timeout 60s >/dev/null || ok=1
    done
    check "$1_nodes_join" test "$ok" -eq 0
    gone two && at one wait --members 1 --timeout 60s >/dev/null && joins two one 2 >"$work/out" 2>&1 || ok=1
    check "$1_member_restarts" test "$ok" -eq 0
}

check authority_is_made authority first
for name in "${nodes[@]}"; do
    cookie[$name]=first-cookie-first-cookie-first-1 before[$name]=
    certificate "$name" first && cp "$work/first/ca.pem" "$work/$name/ca.pem"
    settings "$name"
done
start one self
expect one_is_up 0 at one wait --members 1 --timeout 60s
expect two_joins 0 joins two one 2
after begin one

# Cookie: on one host after the other the new one and the old one; then the new one alone.
for name in "${nodes[@]}"; do
    before[$name]=${cookie[$name]} cookie[$name]=second-cookie-second-cookie-sec-2
    settings "$name"
    check "cookie_is_reloaded_on_$name" reload "$name"
    after "cookie_both_on_$name" "$name"
done
for name in "${nodes[@]}"; do
    before[$name]=
    settings "$name"
    check "cookie_alone_is_reloaded_on_$name" reload "$name"
    after "cookie_alone_on_$name" "$name"
done

# A file that will not do: the exit code says it, for scripts.
cp "$work/one/cert.pem" "$work/kept.pem"
echo junk >"$work/one/cert.pem"
expect a_file_that_cannot_be_read_is_78 78 at one config reload
has it_says_that_the_old_ones_stay "were not read again, the old ones stay" "$work/err"
cp "$work/kept.pem" "$work/one/cert.pem"
expect a_file_that_is_mended_is_read 0 at one config reload

# Certificate: renewed on one host after the other.
for name in "${nodes[@]}"; do
    certificate "$name" first
    check "certificate_is_reloaded_on_$name" reload "$name"
    after "certificate_on_$name" "$name"
done

# Authority: the commands of docs/operating.md, with this host's files, name and service in the place of the page's.
page() { # PART: its commands
    awk -v mark="<!-- rotation: $1 -->" '$0 == mark { in_part = 1; next } in_part && /^```/ { if (++fence == 2) exit; next }
        in_part && fence == 1' "$src/docs/operating.md"
}
systemctl() { reload "$host"; }
typed() { # PART NAME: type them on host NAME
    local host=$2 line lines=0
    while IFS= read -r line <&4; do
        line=${line//10.0.0.2/127.0.0.1}
        line=${line//-o troupe /}
        line=${line//\/etc\/troupe/$work/$host}
        lines=$((lines + 1))
        (cd "$work" && eval "$line") || { echo "failed: $line" >&2; return 1; }
    done 4< <(page "$1")
    [ "$lines" -gt 0 ]
}
mkdir "$work/bin" && ln -s "$troupe" "$work/bin/troupe" && PATH=$work/bin:$PATH && mv "$work/first" "$work/pki"
check second_authority_is_made typed 1 one
for name in "${nodes[@]}"; do
    check "authorities_are_reloaded_on_$name" typed 2 "$name"
    is "both_stand_on_$name" "$("$troupe" cert show "$work/$name/ca.pem" | grep -c '(authority)')" 2
    after "authority_both_on_$name" "$name"
done
for name in "${nodes[@]}"; do
    rm -f "$work/pki2/127.0.0.1".*
    check "second_certificate_is_reloaded_on_$name" typed 3 "$name"
    after "authority_signs_on_$name" "$name"
done
for name in "${nodes[@]}"; do
    check "authority_alone_is_reloaded_on_$name" typed 4 "$name"
    after "authority_alone_on_$name" "$name"
done
lacks nobody_is_refused_for_its_configuration "cannot join as it is configured" "$work/new.log"
test_end
