#!/bin/bash
# cert.sh - `troupe cert` and `troupe cookie` as an operator uses them, and two nodes that talk by what they made.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
pki=$work/pki

expect ca_is_made 0 "$troupe" cert ca demo-ca --dir "$pki"
has ca_says_until "demo-ca, valid until" "$work/out"
expect ca_is_not_written_over 1 "$troupe" cert ca demo-ca --dir "$pki"
has ca_says_force "exists; --force replaces it" "$work/err"
check key_is_its_owners_alone test "$(stat -c %a "$pki/ca.key")" = 600
expect node_is_made 0 "$troupe" cert node 127.0.0.1 host2 --dir "$pki"
check node_key_is_its_owners_alone test "$(stat -c %a "$pki/host2.key")" = 600
expect node_is_not_written_over 1 "$troupe" cert node host2 --dir "$pki"
expect node_is_replaced_by_force 0 "$troupe" cert node host2 --san host2.example --san 10.0.0.2 --days 10 --force --dir "$pki"
expect show_says_names 0 "$troupe" cert show "$pki/host2.pem"
has show_names "names     host2, host2.example, 10.0.0.2"
has show_days "9 days left"
expect show_within 1 "$troupe" cert show "$pki/host2.pem" --within 14
expect show_json 0 "$troupe" cert show "$pki/ca.pem" "$pki/host2.pem" -o json
has show_json_days '"daysLeft":'
cat "$pki/ca.pem" "$pki/host2.pem" >"$work/bundle.pem"
expect show_bundle 0 "$troupe" cert show "$work/bundle.pem"
has bundle_begins_with_the_first "subject   demo-ca (authority)" && has bundle_has_the_second "$work/bundle.pem, certificate 2" &&
    has second_is_shown "subject   host2"
expect what_ends_in_a_bundle_counts 1 "$troupe" cert show "$work/bundle.pem" --within 14
{ cat "$pki/ca.pem"; head -n 4 "$pki/host2.pem"; } >"$work/cut.pem"
expect damaged_bundle 65 "$troupe" cert show "$work/cut.pem"
has damaged_one_is_named "cut.pem, certificate 2: a certificate that cannot be read" "$work/err"
cp "$pki/host2.pem" "$work/before.pem"
expect renew_writes_anew 0 "$troupe" cert renew "$pki/host2.pem" --dir "$pki"
has renew_keeps_names "for host2, host2.example, 10.0.0.2, valid until"
check renew_has_another_key test "$(cmp -s "$work/before.pem" "$pki/host2.pem"; echo $?)" = 1
cp "$pki/host2.key" "$work/key"
mkdir "$pki/host2.pem.new" # where the new certificate would be written
expect renew_without_room_fails 77 "$troupe" cert renew "$pki/host2.pem" --dir "$pki"
check renew_replaces_both_or_none cmp -s "$work/key" "$pki/host2.key"
rmdir "$pki/host2.pem.new"
chmod 640 "$pki/host2.key" # a group reads it; root may give it to one
[ "$(id -u)" -ne 0 ] || chown 1234:1235 "$pki/host2.key"
before=$(stat -c %u:%g:%a "$pki/host2.key")
expect renew_after_all 0 "$troupe" cert renew "$pki/host2.pem" --dir "$pki"
check renew_keeps_owner_and_readers test "$(stat -c %u:%g:%a "$pki/host2.key")" = "$before"
expect revoke_writes_a_list 0 "$troupe" cert revoke "$work/before.pem" --dir "$pki"
has revoke_says_due "1 more, due again on"
check openssl_reads_the_chain openssl verify -CAfile "$pki/ca.pem" "$pki/host2.pem"
expect no_authority 68 "$troupe" cert node host9 --dir "$work/nowhere"
expect bad_name 64 "$troupe" cert node 'a,IP:1.2.3.4' --dir "$pki"
long=$(printf 'a%.0s' {1..253})
expect longest_name 0 "$troupe" cert node host5 --san "$long" --dir "$pki"
expect longer_name 64 "$troupe" cert node host6 --san "a$long" --dir "$pki"
expect bad_days 64 "$troupe" cert ca x --days 0 --dir "$pki"
expect most_days 0 "$troupe" cert node host3 --days 36500 --dir "$pki"
expect more_days 64 "$troupe" cert node host4 --days 36501 --dir "$pki"
has more_days_says_how_many "1 to 36500 days" "$work/err"
expect no_certificate 65 "$troupe" cert show "$pki/ca.key"
expect no_verb 64 "$troupe" cert frobnicate
expect help 0 "$troupe" cert --help
# What picks a node for other commands is none of these's business.
expect cert_with_a_socket_set 0 env TROUPE_SOCKET="$work/x.sock" "$troupe" cert show "$pki/ca.pem"
expect cert_behind_a_system 0 "$troupe" --system other cert show "$pki/ca.pem"
expect cookie_behind_a_socket 0 "$troupe" --socket "$work/x.sock" cookie gen
expect sim_with_a_socket_set 0 env TROUPE_SOCKET="$work/x.sock" "$troupe" sim --nodes 1 --until 1s
"$troupe" cookie gen > "$work/cookie"
"$troupe" cookie hash < "$work/cookie" > "$work/digest"
check cookie_has_forty_digits grep -qxE '[0-9a-f]{40}' "$work/cookie"
check cookie_has_a_digest grep -qxE '[0-9a-f]{16}' "$work/digest"
check digest_is_not_the_cookie test "$(cut -c1-16 "$work/cookie")" != "$(cat "$work/digest")"

# A node that lacks a file says which one, and does not start.
expect tls_needs_files 78 "$troupe" node --set remote.transport=tls --socket "$work/x.sock" --port 0
has tls_says_files "TLS needs the files remote.tls.ca, .cert and .key" "$work/err"
expect cookie_needs_text 78 "$troupe" node --set remote.require-cookie=on --socket "$work/x.sock" --port 0
has cookie_says_gen "remote.secure-cookie is empty" "$work/err"

# Two nodes by these files join; what is shown hides the cookie.
tls=(--set remote.transport=tls --set "remote.tls.ca=$pki/ca.pem" --set "remote.tls.cert=$pki/127.0.0.1.pem"
    --set "remote.tls.key=$pki/127.0.0.1.key" --set remote.require-cookie=on
    --set "remote.secure-cookie=$(cat "$work/cookie")")
background "$troupe" node --system demo --port 0 --socket "$work/a.sock" --seed self "${tls[@]}" 2> "$work/a.log"
first=$started
expect first_is_up 0 "$troupe" --socket "$work/a.sock" wait --up
address=$("$troupe" --socket "$work/a.sock" leader -o name)
check address_is_encrypted test "${address%%@*}" = troupe.tls://demo
background "$troupe" node --system demo --port 0 --socket "$work/b.sock" --seed "$address" "${tls[@]}" 2> "$work/b.log"
second=$started
expect both_are_up 0 "$troupe" --socket "$work/b.sock" wait --members 2
expect config_is_shown 0 "$troupe" config show "${tls[@]}"
has cookie_is_hidden 'remote.secure-cookie = "(secret)"'
lacks cookie_is_nowhere "$(cat "$work/cookie")"
lacks cookie_is_not_in_the_log "$(cat "$work/cookie")" "$work/a.log"
expect the_first_sees_both 0 "$troupe" --socket "$work/a.sock" wait --members 2 --converged
healthy() { "$troupe" --socket "$work/a.sock" status >"$work/status"; }
check status_of_encrypted wait_until 60 healthy
cp "$work/status" "$work/out"
has status_says_how_long "TLS 1.3 mutual, certificate valid 364 days, cookie"
lacks status_refused_nobody "refused "

# A host of another authority is told at once that it is not let in, and why.
other=$work/other
"$troupe" cert ca other-ca --dir "$other" > "$work/out" && "$troupe" cert node 127.0.0.1 --dir "$other" >> "$work/out"
background "$troupe" node --system demo --port 0 --socket "$work/c.sock" --set remote.transport=tls \
    --set "remote.tls.ca=$other/ca.pem" --set "remote.tls.cert=$other/127.0.0.1.pem" \
    --set "remote.tls.key=$other/127.0.0.1.key" 2> "$work/c.log"
third=$started
wait_until 60 "$troupe" --socket "$work/c.sock" peers > "$work/out" 2>&1
expect join_is_not_permitted 77 "$troupe" --socket "$work/c.sock" join "$address"
has join_says_why "unknown-ca: self-signed certificate in certificate chain; subject=" "$work/err"
expect stranger_is_no_member 1 "$troupe" --socket "$work/c.sock" status
has status_counts_refusals "refused     unknown-ca "
kill -TERM "$third"
ended third_ends "$third" 0
expect renew_while_it_runs 0 "$troupe" cert renew "$pki/127.0.0.1.pem" --dir "$pki"
kill -HUP "$first"
check hangup_reads_files wait_until 60 grep -q "credentials read again" "$work/a.log"
kill -TERM "$second"
ended second_leaves "$second" 0
kill -TERM "$first"
ended first_leaves "$first" 0
test_end
