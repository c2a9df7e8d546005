#!/bin/bash
# remoting_hosts.sh - executes the lines of docs/remoting.md, word for word, on three namespaces with the addresses
# that it names (lib_page.sh says how they are marked).
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/multinode/lib_page.sh
. "$(dirname "$0")/lib_page.sh"
HOSTS_NET=10.0.0
hosts_begin 3 namespaces
page=$src/docs/remoting.md
PATH=$build:$PATH
export LD_LIBRARY_PATH=$build/examples/.libs # where the installed plugins would be
host_socket=() # as on a real host: the node is found in /run/troupe
cd "$work" || exit 1

line_said() { # HOST LINE
    case $2 in
    "troupe members") is three_encrypted_members "$(grep -c 'troupe.tls://demo@10.0.0' "$work/out")" 3 ;;
    *"/user/echo hello") is echo_replies "$(cat "$work/out")" hello ;;
    esac
}

page_run "$page"
if [ "$lines" -ge 10 ]; then pass page_was_executed; else fail page_was_executed "only $lines lines in $page"; fi
[ "$failures" -eq 0 ]
test_end
