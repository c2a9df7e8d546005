#!/bin/bash
# permissions.sh - the handbook's table of who may what (docs/operating.md, Permissions of operators), row by row against a node: over
# its socket, as a reader and as a writer of its management API. A word of the table that no request here tries is a failure.
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
test_begin
command -v curl >/dev/null || skip "curl is not installed (deploy/bootstrap --tests)"
if "$troupe" config check --set management.enabled=on 2>&1 | grep -q 'no management API'; then skip "this build has no management API"; fi
umask 077
openssl rand -hex 32 >"$work/writers"
openssl rand -hex 32 >"$work/readers"
start() { # NAME OPTION...: a node with the API; its URL in $url
    local name=$1
    shift
    background "$troupe" node --port 0 --seed self --socket "$work/$name.sock" --set management.enabled=on --set management.port=0 --set remote.test-adapters=on \
        --set management.token-file="$work/writers" --set management.reader-token-file="$work/readers" "$@" 2>"$work/$name.log"
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$name.log" || fail "start_$name"
    url=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/$name.log" | tail -n 1)
    check "${name}_is_up" wait_until 60 "$troupe" --socket "$work/$name.sock" is-available
}
# What tries a word: ARGUMENTS of the tool, and METHOD PATH JSON of a request.
declare -A tool=() request=()
guarded=() tried=()
word() { tool[$1]=$2 request[$1]=$3; }
word members members "GET /control/members"
word why why "GET /control/why"
word peers peers "GET /control/peers"
word shards shards "GET /control/shards"
word topics topics "GET /control/topics"
word singletons singleton "GET /control/singleton"
word metrics metrics "GET /metrics"
word "configuration without secrets" "report -O $work/report.tar.gz" "GET /config"
word actors "tree /user" "GET /actors"
word "dead letters" deadletters "GET /deadletters"
word "log lines" "logs --count 1" "GET /control/logs?count=1"
word doctor doctor "GET /control/doctor"
word traces "trace list" "GET /trace/4bf92f3577b34da6a3ce929d0e0e4736"
word leave "leave nobody:1 --dry-run" 'POST /control/leave {"member":"nobody:1"}'
word down "down nobody:1 --dry-run" 'POST /control/down {"member":"nobody:1","dryRun":true}'
word "shards --rebalance" "shards none --rebalance" 'POST /control/shards {"rebalance":true}'
word "trace start" "trace start --path /user/none" 'POST /control/trace {"action":"start","path":"/user/none"}'
word "a message" "send /user/nobody x" "POST /actors/user/nobody text"
word join "" "POST /cluster/members form"
word shutdown "shutdown --dry-run" "/control/shutdown"
word "config reload" "config reload" "/control/reload"
word drain "drain nobody:1" "/control/drain"
word undrain "undrain nobody:1" "/control/undrain"
word upgrade "upgrade none.so" "/control/upgrade"
word spawn "spawn a --plugin none.so" "/control/spawn"
word watch "watch /user/nobody" "/control/watch"
for word in stop kill restart; do word $word "$word /user/nobody --yes" "/control/$word"; done
word send "send /user/nobody x" "/control/send"
word ask "ask /user/nobody x" "/control/ask"
word publish "publish news x" "/control/publish"
word ping "ping /user/nobody -c 1" "/control/ping"
word entity "entity none 1" "/control/entity"
word reach reach "/control/reach"
word report "report -O $work/again.tar.gz" "/control/report"
word wait "wait --up" "/control/wait"
word fault fault "/control/fault"

# Is it let through? Not: no credential for it (401, 403), no such path (404 not-found), changes are off (404 read-only).
over_socket() { # WORD
    # shellcheck disable=SC2086
    timeout 60 "$troupe" --socket "$work/open.sock" --timeout 20s ${tool[$1]} >"$work/out" 2>"$work/err"
    case $? in 64 | 69 | 70 | 77 | 124) return 1 ;; esac
}
asks() { # CREDENTIAL METHOD PATH BODY: the status
    local body=()
    case $4 in
    form) body=(--data-urlencode "address=troupe.tcp://demo@127.0.0.1:1") ;;
    text) body=(-H 'Content-Type: text/plain' -d x) ;;
    ?*) body=(-H 'Content-Type: application/json' -d "$4") ;;
    esac
    curl -sS --max-time 60 -o "$work/out" -w '%{http_code}' -X "$2" -H "Authorization: Bearer $(cat "$work/$1s")" "${body[@]}" "$url$3" 2>"$work/err"
}
over_http() { # WORD CREDENTIAL
    local method path body code
    read -r method path body <<<"${request[$1]}"
    if [[ $method == /* ]]; then # a path that must not be there, by no method
        for path in GET POST; do
            code=$(asks "$2" "$path" "$method" "")
            [ "$code" = 404 ] && grep -q '"error":"not-found"' "$work/out" || return 0
        done
        return 1
    fi
    code=$(asks "$2" "$method" "$path" "$body")
    case $code in 401 | 403 | 405 | 000) return 1 ;; esac
    [ "$code" != 404 ] || ! grep -qE '"error":"(not-found|read-only)"' "$work/out"
}
words_of() { # CELL: its words, one a line
    sed 's/^[^:`]*: //; s/ by `[^`]*`//g; s/[`]//g; s/[,;] /\n/g' <<<"$1" | sed 's/^ *//; s/ *$//' | grep .
}
cell_says() { # NAME CELL COMMAND...: a cell that begins with yes, unless or with lets it through; one with no does not
    local name=$1 cell=$2
    shift 2
    case $cell in
    yes | unless* | with*) if "$@"; then pass "$name"; else fail "$name" "the table says '$cell': $(head -c 300 "$work/out") $(head -n 2 "$work/err")"; fi ;;
    no) if "$@"; then fail "$name" "the table says no: $(head -c 300 "$work/out")"; else pass "$name"; fi ;;
    *) fail "$name" "what is '$cell'?" ;;
    esac
}
start open --set management.read-only=off
is the_socket_is_for_user_and_group "$(stat -c %a "$work/open.sock")" 660
self=$("$troupe" --socket "$work/open.sock" members -o name)
tool[join]="join $self"
rows=0
while IFS='|' read -r _ row local_cell reader_cell writer_cell _; do
    rows=$((rows + 1))
    cells=("$(sed 's/^ *//; s/ *$//' <<<"$local_cell")" "$(sed 's/^ *//; s/ *$//' <<<"$reader_cell")" "$(sed 's/^ *//; s/ *$//' <<<"$writer_cell")")
    while read -r word; do
        name=$(tr -c 'a-z\n' _ <<<"${word,,}")
        if [ -z "${tool[$word]-}" ]; then
            fail "a_request_tries_$name" "no word of this script: $word"
            continue
        fi
        cell_says "${name}_over_the_socket" "${cells[0]}" over_socket "$word"
        cell_says "${name}_of_a_reader" "${cells[1]}" over_http "$word" reader
        cell_says "${name}_of_a_writer" "${cells[2]}" over_http "$word" writer
        [[ ${cells[2]} != unless* ]] || guarded+=("$word")
        tried+=("$word")
    done < <(words_of "$row")
done < <(sed -n '/^\*\*Permissions of operators/,/^Each order/p' "$src/docs/operating.md" | grep '^| ' | grep -v '^| |\|^| who')
is the_table_has_its_rows "$rows" 5
is each_word_here_is_in_the_table "$(for word in "${!tool[@]}"; do printf '%s\n' "${tried[@]}" | grep -qxF -- "$word" || printf '%s, ' "$word"; done)" ""

# ---- what is for writers unless changes are off
start closed
for word in "${guarded[@]}"; do
    cell_says "$(tr -c 'a-z\n' _ <<<"${word,,}")_while_changes_are_off" no over_http "$word" writer
done
test_end
