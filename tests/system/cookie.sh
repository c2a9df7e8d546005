#!/bin/bash
# cookie.sh - the cookie of a user, which nodes on loopback share: made by the first one, another user is refused by the
# name of the file, what others may read is refused, nowhere to write is 78, off, a file of its own, SIGHUP. REMOTE-56.
. "$(dirname "$0")/lib.sh"
test_begin
hosts_port && one=$hosts_free && hosts_port && two=$hosts_free || { fail "two free ports"; test_end; }
address() { echo "troupe.tcp://demo@127.0.0.1:$1"; }
at() { "$troupe" --socket "$work/$1.sock" "${@:2}"; }
# node NAME COMMAND... -- OPTION...: COMMAND runs the program, as another user or elsewhere; none: as this one
node() {
    local name=$1 prefix=()
    shift
    while [ "$1" != -- ]; do prefix+=("$1"); shift; done
    shift
    background "${prefix[@]}" "$troupe" node --socket "$work/$name.sock" "$@" >"$work/$name.log" 2>&1
}
home=$work/home
mkdir -m 700 "$home"
owner=(env -u STATE_DIRECTORY -u XDG_CONFIG_HOME HOME="$home")
file=$home/.config/troupe/cookie

# ---- a cluster that starts at once in a fresh home
background "${owner[@]}" "$troupe" dev 3 --log-level warning --system "cookie$$" >"$work/dev.log" 2>&1
dev=$started
cleanups+=('rm -f "/run/troupe/cookie$$"*@*.sock "${XDG_RUNTIME_DIR:-/nonexistent}/troupe/cookie$$"*@*.sock')
expect nodes_that_start_together_form_a_cluster 0 "$troupe" --system "cookie$$" wait --members 3 --timeout 90s
is cookie_is_for_its_user_alone "$(stat -c %a "$file")" 400
is nothing_else_is_left "$(ls -A "${file%/*}")" cookie
kill -TERM "$dev"
ended dev_ends "$dev" 0

# ---- another user
node one "${owner[@]}" -- --port "$one" --seed self
first=$started
expect one_is_up 0 at one wait --members 1 --timeout 60s
at one status >"$work/out"
has status_says_cookie "encryption none, cookie"
other=(env STATE_DIRECTORY="$work/other") socket=$work/other.sock
mkdir -m 755 "$work/other"
# Another user may not read the sources, where the sanitizers' suppressions are.
cp "$src"/tests/[lt]san.supp "$work" && chmod 644 "$work"/[lt]san.supp
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env LSAN_OPTIONS="suppressions=$work/lsan.supp:print_suppressions=0"
    TSAN_OPTIONS="suppressions=$work/tsan.supp")
chmod 755 "$work" # for its way to its files
if [ "$(id -u)" -eq 0 ] && "${nobody[@]}" "$troupe" config show >/dev/null 2>&1; then
    mkdir "$work/socket" && chown 65534 "$work/other" "$work/socket"
    other=("${nobody[@]}" STATE_DIRECTORY="$work/other") socket=$work/socket/other.sock
    background "${nobody[@]}" STATE_DIRECTORY="${file%/*}" "$troupe" node --port 0 --socket "$socket" >"$work/thief.log" 2>&1
    ended file_of_another_user_is_78 "$started" 78
    has thief_is_told_which_file "remote.cookie: cannot read $file: Permission denied; set STATE_DIRECTORY" "$work/thief.log"
fi
background "${other[@]}" "$troupe" node --port 0 --seed "$(address "$one")" --socket "$socket" >"$work/other.log" 2>&1
# REMOTE-56
ended another_user_is_not_let_in "$started" 78
has another_user_is_told_its_file "this node cannot join as it is configured: remote.cookie: 127.0.0.1:$one has another cookie than $work/other/cookie" "$work/other.log"
check the_member_names_its_own wait_until 60 grep -qF "the peer has another cookie than $file" "$work/one.log"
expect the_member_is_alone 0 at one wait --members 1 --converged --timeout 60s

# ---- one that asks for none
node none -- --port 0 --set remote.cookie=off --seed "$(address "$one")"
ended without_a_cookie_is_not_let_in "$started" 78
has without_a_cookie_is_told "the peer wants a cookie, this node has none" "$work/none.log"
node two "${other[@]}" -- --port "$two" --set remote.cookie=off --socket "$socket" --seed self
background env STATE_DIRECTORY=/nonexistent "$troupe" node --port 0 --set remote.cookie=off --socket "$work/three.sock" --seed "$(address "$two")" >"$work/three.log" 2>&1
expect off_is_for_everybody 0 at three wait --members 2 --timeout 60s
expect nothing_needs_to_be_written 0 at three leave

# ---- what is refused before a port opens, by the node and by the check
refused() { # NAME TEXT COMMAND...
    local name=$1 text=$2
    shift 2
    expect "${name}_is_78" 78 timeout 60 "$@" node --port 0 --socket "$work/refused.sock"
    has "${name}_says_why" "$text" "$work/err"
    expect "${name}_is_refused_by_the_check" 78 "$@" config check
    has "${name}_is_told_by_the_check" "$text" "$work/err"
}
refused no_home "remote.cookie: cannot make $work/none/.config/troupe/cookie, the cookie that this user's nodes on loopback share: No such file or directory; set STATE_DIRECTORY or XDG_CONFIG_HOME" \
    env -u STATE_DIRECTORY -u XDG_CONFIG_HOME HOME="$work/none" "$troupe"
mkdir "$work/wide"
echo 0123456789abcdef >"$work/wide/cookie"
chmod 644 "$work/wide/cookie"
refused a_wide_file "remote.cookie: $work/wide/cookie: others may read it (mode 0644): chmod 400" env STATE_DIRECTORY="$work/wide" "$troupe"
refused a_wide_configured_file "remote.secure-cookie-file: $work/wide/cookie: others may read it (mode 0644): chmod 400" \
    env TROUPE_REMOTE_REQUIRE_COOKIE=on TROUPE_REMOTE_SECURE_COOKIE_FILE="$work/wide/cookie" "$troupe"

# ---- a file of its own, and SIGHUP reads it again: a second line is the cookie before it
chmod 600 "$work/wide/cookie"
echo "remote { require-cookie = on  secure-cookie-file = \"$work/wide/cookie\" }" >"$work/file.conf"
"$troupe" cookie gen >"$work/new"
node own -- --config "$work/file.conf" --port 0 --seed self
own=$started
expect own_is_up 0 at own wait --members 1 --timeout 60s
expect own_is_shown_without_its_secret 0 "$troupe" config show --config "$work/file.conf"
has own_file_is_shown "remote.secure-cookie-file = $work/wide/cookie"
cat "$work/wide/cookie" >>"$work/new"
cat "$work/new" >"$work/wide/cookie"
kill -HUP "$own"
check own_is_read_again wait_until 60 grep -q "credentials read again" "$work/own.log"
place=$(at own members -o name)
node elder -- --port 0 --set remote.require-cookie=on --set remote.secure-cookie=0123456789abcdef --seed "$place"
elder=$started
expect the_cookie_before_is_taken 0 at own wait --members 2 --timeout 60s
kill -TERM "$elder"
ended elder_leaves "$elder" 0
node newer -- --port 0 --set remote.require-cookie=on --set "remote.secure-cookie=$(head -n 1 "$work/new")" --seed "$place"
expect the_new_cookie_is_taken 0 at newer wait --members 2 --timeout 60s

# ---- one in the configuration: a warning, for such a file holds much else
echo 'remote { require-cookie = on  secure-cookie = 0123456789abcdef }' >"$work/text.conf"
chmod 640 "$work/text.conf"
expect a_narrow_configuration_is_fine 0 "$troupe" config check "$work/text.conf"
lacks nothing_is_said_of_a_narrow_one "others may read" "$work/err"
chmod 644 "$work/text.conf"
expect a_wide_configuration_is_no_error 0 "$troupe" config check "$work/text.conf"
has the_check_says_what_to_do "note: $work/text.conf:1: remote.secure-cookie: others may read it there (mode 0644): chmod o-rwx, or put it into a file of its own, remote.secure-cookie-file" "$work/err"
node text -- --config "$work/text.conf" --port 0 --seed self
check the_node_warns wait_until 60 grep -qF "warning node $work/text.conf:1: remote.secure-cookie: others may read it there" "$work/text.log"
lacks it_is_not_in_the_log 0123456789abcdef "$work/text.log"

# ---- the user's file, too
old=$(cat "$file")
rm "$file"
{ "$troupe" cookie gen && echo "$old"; } >"$file"
chmod 400 "$file"
kill -HUP "$first"
check user_cookie_is_read_again wait_until 60 grep -q "credentials read again" "$work/one.log"
node four "${owner[@]}" -- --port 0 --seed "$(address "$one")"
expect node_with_the_new_one_joins 0 at one wait --members 2 --timeout 60s
chmod 444 "$file"
kill -HUP "$first"
check a_wide_file_is_not_read_again wait_until 60 grep -qF "reload: remote.cookie: $file: others may read it (mode 0444): chmod 400; the old cookie stays" "$work/one.log"
problem() { at one status >"$work/status"; [ $? -eq 1 ] && grep -qF "the last reload was refused: remote.cookie: $file: others may read it" "$work/status"; }
check it_is_a_problem_that_names_the_file wait_until 60 problem
test_end
