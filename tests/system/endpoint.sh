#!/bin/bash
# endpoint.sh - `troupe --endpoint`: each command prints and ends through the management API as it does over the socket; tokens,
# certificates, what is refused, a node that is not there.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
umask 077
tool() { env -u TROUPE_TIMEOUT "$troupe" --timeout 30s "$@"; }
start() { # NAME OPTION...: a node with the API; its URL in $url, its process in $node
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --set management.enabled=on --set management.port=0 \
        --set management.token-file="$work/writers" --set management.reader-token-file="$work/readers" "$@" 2>"$work/$name.log"
    node=$started
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$name.log" || fail "start_$name"
    url=$(grep -o 'https\?://[0-9.]*:[0-9]*' "$work/$name.log" | tail -n 1)
}
members() { [ "$("$troupe" --socket "$work/$1.sock" members -o name 2>/dev/null | wc -l)" -eq "$2" ]; } # NAME COUNT
openssl rand -hex 32 >"$work/writers"
openssl rand -hex 32 >"$work/readers"
if tool --endpoint http://127.0.0.1:1 members 2>"$work/err"; then :; elif grep -q 'no --endpoint' "$work/err"; then
    pass a_build_without_it_says_so
    test_end
fi
"$troupe" config check --set management.enabled=on >"$work/out" 2>&1
if grep -q 'no management API' "$work/out"; then skip "this build has no management API"; fi

start one --seed self --set management.read-only=off --set cluster.downing.active-strategy=manual --load "$build/examples/.libs/echo.so"
one_url=$url one=$node
check one_is_up wait_until 60 members one 1
one_address=$("$troupe" --socket "$work/one.sock" members -o name)
start two --seed "$one_address" --set management.read-only=off --set cluster.downing.active-strategy=manual
two_url=$url two=$node
check two_joins wait_until 60 members one 2
check two_is_known wait_until 60 "$troupe" --socket "$work/one.sock" wait --members 2 --converged --timeout 5s
two_address=$("$troupe" --socket "$work/two.sock" members -o json | sed -n 's/.*"selfNode": "\(.*\)",/\1/p')

# It must outlive management.request-timeout, since it has a credential; its end is looked at below.
background "$troupe" --timeout 15s --endpoint "$one_url" --token-file "$work/readers" logs -f --component nobody -o jsonl 2>"$work/patient.err"
patient=$started

# ---- the same output, JSON and exit code as over the socket: figures that go on are masked
masked() { sed 's/[0-9][0-9.,:TZ]*[a-z%]*/N/g; s/-\?N/N/g; s/  */ /g'; }
far() { tool --endpoint "$one_url" --token-file "$work/readers" "$@"; }
same() { # COMMAND...
    local near_code far_code
    "$troupe" --socket "$work/one.sock" "$@" >"$work/near" 2>/dev/null
    near_code=$?
    far "$@" >"$work/far" 2>"$work/far.err"
    far_code=$?
    [ "$near_code" -eq "$far_code" ] && diff <(masked <"$work/near") <(masked <"$work/far") >"$work/out"
}
for command in status members unreachable why peers leader singleton topics shards is-singleton is-available cluster-status member-status doctor; do
    check "${command}_table" wait_until 60 same $command
    check "${command}_json" wait_until 60 same $command -o json
done
for command in status why peers; do
    check "${command}_of_all_members" wait_until 60 same $command --all-members
    check "${command}_of_all_members_json" wait_until 60 same $command --all-members -o json
done
check member_table wait_until 60 same member "$two_address"
check member_json wait_until 60 same member "$two_address" -o json
check member_status_of_another wait_until 60 same member-status "$two_address" -o json
check tree_table wait_until 60 same tree /user --depth 1
check tree_json wait_until 60 same tree /user -o json
check tree_of_a_member wait_until 60 same tree --on "$two_address" --depth 0 -o json
check ls_table wait_until 60 same ls /user
check graph_dot wait_until 60 same graph
check actor_table wait_until 60 same actor /user/echo
check actor_json wait_until 60 same actor /user/echo -o json
check check_versions wait_until 60 same check versions
check check_ready wait_until 60 same check ready
check check_alive wait_until 60 same check alive -o json
check leave_dry_run wait_until 60 same leave "$two_address" --dry-run
"$troupe" --socket "$work/one.sock" send /user/echo hello >/dev/null
check a_letter_is_dead wait_until 60 sh -c "'$troupe' --socket '$work/one.sock' deadletters -o name | grep -q ."
check deadletters_table wait_until 60 same deadletters --count 1
check deadletters_json wait_until 60 same deadletters --count 1 -o json
check deadletters_name wait_until 60 same deadletters -o name
check logs_of_a_component wait_until 60 same logs --component node --level info --count 3
check logs_json wait_until 60 same logs --component node --count 1 -o json
check an_unknown_member_is_68 wait_until 60 same member nobody:1
expect an_unknown_member_ends_so 68 far member nobody:1
has it_is_named "no such member nobody:1" "$work/err"
expect an_unknown_actor_is_68 68 far actor /user/nobody
# The member that is asked is one: else anybody on the host would choose the addresses that the node dials.
status() { curl -sS --max-time 30 -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err"; }
is shards_of_a_member "$(status "$one_url/control/shards?member=$two_address")" 200
is shards_of_another_are_404 "$(status "$one_url/control/shards?member=troupe.tcp://demo@127.0.0.1:1")" 404
has it_is_no_member "no such member troupe.tcp://demo@127.0.0.1:1"
is a_tree_of_another_is_404 "$(status -H "Authorization: Bearer $(cat "$work/readers")" "$one_url/control/tree?path=troupe.tcp://demo@127.0.0.1:2/user")" 404
expect peers_over_the_socket 0 "$troupe" --socket "$work/one.sock" peers -o json
lacks nobody_else_was_dialled 'demo@127.0.0.1:1"'
lacks nor_for_a_tree 'demo@127.0.0.1:2"'
expect a_bad_level_is_64 64 far logs --level loud
expect is_singleton_says_no 1 far is-singleton
expect the_environment_names_it 0 env TROUPE_ENDPOINT="$one_url" TROUPE_TIMEOUT=30s "$troupe" members -o name
has it_answers "$one_address"
expect a_socket_on_the_command_line_wins 0 env TROUPE_ENDPOINT="http://127.0.0.1:1" "$troupe" --socket "$work/one.sock" leader
background far deadletters -f --count 2 -o jsonl >"$work/followed" 2>"$work/followed.err"
follower=$started
followed() { "$troupe" --socket "$work/one.sock" send /user/echo again >/dev/null && [ "$(wc -l <"$work/followed")" -ge 2 ]; }
check dead_letters_are_followed wait_until 60 followed
ended the_follower_ends_after_its_count "$follower" 0

ended a_long_wait_is_not_cut_off "$patient" 0

# ---- who may what
own() { tool --endpoint "$one_url" "$@"; } # with the token of this user's cookie
open() { STATE_DIRECTORY=$work/nothing own "$@"; }
expect reads_of_the_cluster_are_open_on_loopback 0 open members
for command in tree deadletters logs doctor "trace last"; do
    # shellcheck disable=SC2086 # words
    expect "${command% *}_needs_a_token" 77 open $command
    has "${command% *}_says_which" "hint: --token-file" "$work/err"
done
has a_missing_cookie_is_named "there is no $work/nothing/cookie" "$work/err"
for command in tree deadletters doctor "logs --count 1"; do
    # shellcheck disable=SC2086 # words
    expect "${command%% *}_with_the_users_cookie" 0 own $command
done
expect the_users_cookie_orders 0 own down "$two_address" --dry-run
mkdir "$work/others" "$work/wide"
openssl rand -hex 20 >"$work/others/cookie"
expect another_cookie_is_refused 77 env STATE_DIRECTORY="$work/others" "$troupe" --endpoint "$one_url" tree
has its_file_is_named "does not know the one made of $work/others/cookie" "$work/err"
cp "$STATE_DIRECTORY/cookie" "$work/wide/cookie"
chmod 644 "$work/wide/cookie"
expect a_cookie_that_others_may_read_is_not_used 77 env STATE_DIRECTORY="$work/wide" "$troupe" --endpoint "$one_url" tree
has it_says_how_to_mend_it "$work/wide/cookie: others may read it (mode 0644): chmod 400" "$work/err"
expect a_reader_may_not_order 77 far leave "$two_address"
has it_says_what_is_needed "not-a-writer" "$work/err"
expect a_reader_may_not_sample 77 far trace start --path /user/echo
expect a_reader_may_look_for_traces 68 far trace last
expect a_reader_may_list_what_is_sampled 0 far trace list -o jsonl
has nothing_is_sampled '"sampled":[]'
cp "$work/readers" "$work/open"
chmod 644 "$work/open"
expect a_token_that_others_may_read_is_78 78 tool --endpoint "$one_url" --token-file "$work/open" members
has it_says_chmod "chmod 600" "$work/err"
expect no_token_file_is_78 78 tool --endpoint "$one_url" --token-file "$work/none" members
: >"$work/blank"
expect an_empty_token_file_is_78 78 tool --endpoint "$one_url" --token-file "$work/blank" members
expect a_token_in_clear_to_another_host_is_64 64 tool --endpoint http://192.0.2.1:8558 --token-file "$work/readers" members
expect a_url_of_another_kind_is_64 64 tool --endpoint ftp://127.0.0.1 members
expect a_url_with_a_query_is_64 64 tool --endpoint "$one_url/?a" members
expect half_of_a_certificate_is_64 64 tool --endpoint "$one_url" --cert x members
expect other_commands_do_not_take_it 64 tool --endpoint "$one_url" ping /user/echo

# ---- orders
order() { tool --endpoint "$one_url" --token-file "$work/writers" "$@"; }
expect a_writer_may_sample 0 order trace start --path /user/echo --sample 1/10
has it_is_sampled "/user/echo  1/10"
expect a_writer_ends_it 0 order trace stop --path /user/echo
expect down_is_looked_at 0 order down "$two_address" --dry-run
has it_tells_the_plan "would mark $two_address"
expect down_of_an_unknown_member_is_68 68 order down nobody:1 --yes
expect leave_waits_for_the_end 0 order leave "$two_address" -o json
has the_member_is_removed '"status": "Removed"'
ended two_has_left "$two" 0
has the_order_is_in_the_audit "order=leave on=$two_address" "$work/one.log"
has it_came_over_http "by=management from=127.0.0.1" "$work/one.log"
expect the_node_is_gone_then 69 tool --endpoint "$two_url" members
has it_says_what_to_try "management.enabled" "$work/err"

start three --seed "$one_address" --set cluster.downing.active-strategy=manual
three=$node three_url=$url
check three_joins wait_until 60 members one 2
expect a_write_to_a_read_only_node_is_77 77 tool --endpoint "$three_url" --token-file "$work/writers" leave
has it_names_read_only "read-only" "$work/err"
kill -KILL "$three"
unreachable() { [ "$(open unreachable -o name | wc -l)" -eq 1 ]; }
check three_is_unreachable wait_until 120 unreachable
expect why_says_no 1 open why
check why_names_it wait_until 60 same why
check unreachable_json wait_until 60 same unreachable -o json
check status_is_unhealthy wait_until 60 same status
expect down_of_the_unreachable 0 order down --unreachable --dead --yes -o json
has it_is_marked '"majorityKept"'
check it_is_gone wait_until 60 members one 1

# ---- a node that leaves answers the one that ordered it
expect leave_of_the_node_itself 0 order leave -o json
has it_says_that_it_has_left '"status": "Removed"'
ended one_has_left "$one" 0

# ---- a program that is no node, a library that is missing
background python3 -c 'import http.server, sys; s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()' >"$work/port" 2>/dev/null
wait_until 60 test -s "$work/port" || fail web_server
expect another_server_is_69 69 tool --endpoint "http://127.0.0.1:$(cat "$work/port")" members
has it_is_called_none "no management API" "$work/err"

# ---- where the token of the user's cookie goes: a program that asks for a credential writes down those that it is given
cat >"$work/asks.py" <<'END'
import http.server, sys
class Asks(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        members = self.path == "/cluster/members"
        body = b'{"selfNode":"troupe.tcp://demo@127.0.0.1:1"}' if members else b'{"error":"no-credential"}'
        print("given", self.path, self.headers.get("Authorization", "nothing"), file=sys.stderr, flush=True)
        self.send_response(200 if members else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("0.0.0.0", 0), Asks)
print(server.server_port, flush=True)
server.serve_forever()
END
background python3 "$work/asks.py" >"$work/asks.port" 2>"$work/given"
wait_until 60 test -s "$work/asks.port" || fail asking_server
asks=$(cat "$work/asks.port")
secret=$(printf 'troupe management 1 demo' | openssl dgst -sha256 -hmac "$(cat "$STATE_DIRECTORY/cookie")" | sed 's/.* //')
expect it_is_asked 77 tool --endpoint "http://127.0.0.1:$asks" tree
has the_token_is_the_one_of_the_handbook "depth=16 Bearer $secret" "$work/given"
lacks it_is_sent_when_asked_for_alone "given /cluster/members Bearer" "$work/given"
: >"$work/given"
expect another_address_asks 77 tool --endpoint "http://0.0.0.0:$asks" tree
has it_is_reached "depth=16 nothing" "$work/given"
lacks beyond_loopback_no_token_is_sent "Bearer" "$work/given"
stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=/usr/bin:/bin)
if [ "$(id -u)" -eq 0 ] && "${stranger[@]}" python3 -c pass 2>/dev/null; then
    background "${stranger[@]}" python3 -c "$(cat "$work/asks.py")" >"$work/other.port" 2>"$work/other.given"
    wait_until 60 test -s "$work/other.port" || fail server_of_another_user "$(tail -n 1 "$work/other.given")"
    expect a_port_of_another_user 77 tool --endpoint "http://127.0.0.1:$(cat "$work/other.port")" tree
    has its_user_is_named "uid 65534 listens on port" "$work/err"
    lacks another_user_is_not_given_it "Bearer" "$work/other.given"
fi

mkdir "$work/empty"
: >"$work/empty/libcurl.so.4"
expect a_missing_library_is_69 69 env LD_LIBRARY_PATH="$work/empty:${LD_LIBRARY_PATH:-}" "$troupe" --endpoint "$one_url" members
has the_package_is_named "apt-get install libcurl4" "$work/err"

# ---- TLS
(cd "$work" && "$troupe" cert ca test-ca --dir pki && "$troupe" cert node 127.0.0.1 operator.example --dir pki &&
    "$troupe" cert ca other-ca --dir foreign && "$troupe" cert node operator.example --dir foreign) >"$work/cert.out" 2>&1 ||
    fail certificates "$(tail -n 2 "$work/cert.out")"
pki=$work/pki
start four --seed self --set management.bind=0.0.0.0 --set management.hosts=127.0.0.1 --set management.read-only=off \
    --set management.tls.cert="$pki/127.0.0.1.pem" --set management.tls.key="$pki/127.0.0.1.key" --set management.tls.ca="$pki/ca.pem" \
    --set management.writers=operator.example
four=$node
url=https://127.0.0.1:${url##*:}
secret() { tool --endpoint "$url" "$@"; }
mine=(--cacert "$pki/ca.pem" --cert "$pki/operator.example.pem" --key "$pki/operator.example.key")
check a_certificate_reads wait_until 60 secret "${mine[@]}" is-available
expect a_token_reads 0 secret --cacert "$pki/ca.pem" --token-file "$work/readers" tree
expect nothing_is_open_beyond_loopback 77 secret --cacert "$pki/ca.pem" members
expect an_unknown_authority_is_77 77 secret members
has openssls_reason_is_told "certificate problem: self-signed certificate in certificate chain" "$work/err"
expect a_certificate_of_another_authority_is_77 77 secret --cacert "$pki/ca.pem" --cert "$work/foreign/operator.example.pem" \
    --key "$work/foreign/operator.example.key" members
# The node's alert has the reason, unless the connection ends before it has been read.
has it_is_called_a_refusal "TLS with $url is refused" "$work/err"
expect a_file_that_is_none_is_78 78 secret --cacert "$work/none" members
expect plain_to_tls_is_69 69 tool --endpoint "http://127.0.0.1:${url##*:}" members
expect tls_to_plain_is_77 77 tool --endpoint "https://127.0.0.1:$(cat "$work/port")" members
expect an_order_by_certificate 0 secret "${mine[@]}" leave
ended four_has_left "$four" 0
test_end
