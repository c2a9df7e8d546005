#!/bin/bash
# tls_lines.sh - sockets with TLS talk to another implementation's ends: `openssl s_client` and `openssl s_server`.
# Proves PIPE-12, PIPE-13.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "no openssl"
test_begin
program=$build/tests/system/tls_lines
cd "$work" || exit 1

# make NAME [AUTHORITY]: NAME.pem and NAME.key, signed by itself or by the authority.
make() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.pem" \
        -addext "subjectAltName=DNS:$1.example" ${2:+-CA "$2.pem" -CAkey "$2.key"} >/dev/null 2>&1
}
make ca && make echo ca && make client ca && make stranger
check certificates_are_made test -s echo.pem -a -s client.pem -a -s stranger.pem

background "$program" serve echo.pem echo.key ca.pem >server.out 2>server.err
wait_until 30 grep -q '^port ' server.out
port=$(sed -n 's/^port //p' server.out)

# ask_openssl OPTIONS...: a line and its answer, by openssl's client, which ends by closing.
ask_openssl() {
    rm -f asked.out
    { echo hello; wait_until 30 grep -qs "^hello\$" asked.out; } |
        openssl s_client -connect "127.0.0.1:$port" -CAfile ca.pem -verify_return_error -servername echo.example -quiet -no_ign_eof "$@" >asked.out 2>asked.err
    grep -q '^hello$' asked.out
}
for version in -tls1_3 -tls1_2; do
    check "openssl_asks_with${version//[-.]/_}" ask_openssl "$version" -alpn lines/1
done
check openssl_shows_its_certificate ask_openssl -cert client.pem -key client.key
told() { wait_until 30 grep -q "$1" server.out; }
check the_server_knows_version_and_protocol told 'connected protocol=lines/1 peer= version=303'
check the_server_knows_its_peer told 'connected protocol= peer=client version=304'
check the_end_of_openssl_is_in_order told '^closed 4 $'
openssl s_client -connect "127.0.0.1:$port" -cert stranger.pem -key stranger.key -quiet -no_ign_eof </dev/null >asked.out 2>asked.err
check a_stranger_is_refused told '^refused no authority here has signed'

background openssl s_server -accept 127.0.0.1:0 -cert echo.pem -key echo.key -rev -alpn lines/1 >openssl.out 2>openssl.err
wait_until 30 grep -q '^ACCEPT' openssl.out
port=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' openssl.out | head -n 1)
expect asks_openssl 0 timeout 60 "$program" ask "$port" ca.pem echo.example
has openssl_answers "answer olleh"
has the_name_and_the_protocol_are_known "connected protocol=lines/1 peer=echo version=304"
has it_closes_in_order "closed 1"
expect asks_by_a_wrong_name 0 timeout 60 "$program" ask "$port" ca.pem other.example
has a_wrong_name_is_refused "failed the peer's certificate has another name"
expect asks_with_a_wrong_authority 0 timeout 60 "$program" ask "$port" stranger.pem echo.example
has an_unknown_authority_is_refused "failed no authority here has signed"
test_end
