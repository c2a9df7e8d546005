#!/bin/bash
# web.sh - endpoints over HTTP and WebSocket with peers that are not ours: curl, and Python's websockets; with TLS, certificates
# of clients, and what is refused.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "no openssl"
test_begin
web=$build/tests/system/web
python=/usr/bin/python3 # Debian has the library for its own
peer=(env PYTHONDONTWRITEBYTECODE=1 "$python" "$src/tests/system/web_peer.py")
get() { curl -sS --noproxy '*' --max-time 60 "$@"; }
consume() { # NAME URI: the address in $at
    background "$web" consume "$2" >"$work/$1.out" 2>&1
    wait_until 60 grep -qE '^at |stopped' "$work/$1.out" || fail "start_$1"
    at=$(sed -n 's/^at //p' "$work/$1.out")
}
certificate() { # NAME HOST: signed by the authority
    openssl req -quiet -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -subj "/CN=$1" -out "$work/$1.csr" 2>/dev/null ||
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -subj "/CN=$1" -out "$work/$1.csr" 2>/dev/null
    openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 -out "$work/$1.pem" \
        -extfile <(echo "subjectAltName=DNS:$2") 2>/dev/null
}
for name in ca other; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$name.key" -subj "/CN=$name" -days 2 -out "$work/$name.pem" 2>/dev/null
done
certificate server localhost
certificate client client
tls="cert=$work/server.pem&key=$work/server.key"

consume http 'http://127.0.0.1:0/a?prefix=1'
check curl_gets_its_body test "$(get -d hello "http://$at/a/b")" = hello
check curl_keeps_its_connection test "$(get -d x -o /dev/null "http://$at/a" -o /dev/null "http://$at/a" -w '%{num_connects}')" = 10
head -c 3000000 /dev/urandom >"$work/large"
get --data-binary "@$work/large" -H 'Expect: 100-continue' "http://$at/a" >"$work/back"
check a_large_body_comes_back cmp "$work/large" "$work/back"
check another_path_is_not_found test "$(get -o /dev/null -w '%{http_code}' "http://$at/b")" = 404
check a_large_one_is_refused test "$(get --data-binary "@$work/large" -H 'Expect: 100-continue' -H 'Content-Length: 9999999' -o /dev/null -w '%{http_code}' "http://$at/a")" = 413
check our_client_speaks_with_our_server test "$("$web" produce "http://$at/a" word)" = 200word

consume https "https://127.0.0.1:0/?$tls"
port=${at##*:}
check https_is_served test "$(get --cacert "$work/ca.pem" -d tls "https://localhost:$port/" --resolve "localhost:$port:127.0.0.1")" = tls
check https_of_another_authority_is_refused test "$(get --cacert "$work/other.pem" -d tls "https://localhost:$port/" 2>/dev/null; echo $?)" = 60
consume mutual "https://127.0.0.1:0/?$tls&ca=$work/ca.pem"
port=${at##*:}
mine=(--cert "$work/client.pem" --key "$work/client.key")
check a_client_needs_a_certificate test -z "$(get --cacert "$work/ca.pem" -d tls "https://localhost:$port/" 2>/dev/null)"
check a_client_with_one_is_known grep -q '^x-subject: client' <(get -i --cacert "$work/ca.pem" "${mine[@]}" -d tls "https://localhost:$port/")
check one_of_another_authority_is_refused test -z "$(get --cacert "$work/ca.pem" --cert "$work/other.pem" --key "$work/other.key" -d tls "https://localhost:$port/" 2>/dev/null)"

if "$python" -c "import websockets" 2>/dev/null; then
    consume ws 'ws://127.0.0.1:0/'
    check a_stranger_speaks_with_ws grep -q 'all came back' <("${peer[@]}" ask "ws://$at/" 2>&1)
    consume wss "wss://127.0.0.1:0/?$tls"
    check a_stranger_speaks_with_wss grep -q 'all came back' <("${peer[@]}" ask "wss://localhost:${at##*:}/" "$work/ca.pem" 2>&1)
    background "${peer[@]}" serve 2>"$work/plain.log" >"$work/plain.port"
    background "${peer[@]}" serve "$work/server.pem" "$work/server.key" 2>"$work/tls.log" >"$work/tls.port"
    wait_until 60 test -s "$work/plain.port" && wait_until 60 test -s "$work/tls.port" || fail peers_serve
    plain=$(cat "$work/plain.port") secure=$(cat "$work/tls.port")
    check our_client_speaks_with_a_stranger test "$("$web" produce "ws://127.0.0.1:$plain/" word)" = word
    check our_client_verifies_and_speaks test "$("$web" produce "wss://localhost:$secure/?ca=$work/ca.pem" word)" = word
    check our_client_refuses_another_authority grep -q '^error: cannot connect' <("$web" produce "wss://localhost:$secure/?ca=$work/other.pem" word)
    check our_client_refuses_another_name grep -q '^error: cannot connect' <("$web" produce "wss://127.0.0.1:$secure/?ca=$work/ca.pem" word)
else
    echo "SKIP web: python3-websockets is not installed (deploy/bootstrap --tests)"
fi
check a_missing_file_is_named grep -q 'stopped: .*/none' <("$web" consume 'https://127.0.0.1:0/?cert=/none&key=/none')
test_end
