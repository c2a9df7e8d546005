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
declare -A token=([reader]=$(<"$work/readers") [writer]=$(<"$work/writers")) url=()
start() { # NAME OPTION...: a node with the API
    background "$troupe" node --port 0 --seed self --socket "$work/$1.sock" --set management.enabled=on --set management.port=0 --set remote.test-adapters=on \
        --set management.token-file="$work/writers" --set management.reader-token-file="$work/readers" "${@:2}" 2>"$work/$1.log"
}
is_up() { # NAME: its URL is url[NAME]
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$1.log" || fail "start_$1"
    url[$1]=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/$1.log" | tail -n 1)
    check "$1_is_up" wait_until 60 "$troupe" --socket "$work/$1.sock" is-available
}
start open --set management.read-only=off
start closed
# What tries a word: ARGUMENTS of the tool, and METHOD PATH JSON of a request.
declare -A tool=() request=()
tried=()
word() { tool[$1]=$2 request[$1]=$3; }
word members members "GET /control/members"
word status status "GET /control/status"
word why why "GET /control/why"
word peers peers "GET /control/peers"
word shards shards "GET /control/shards"
word topics topics "GET /control/topics"
word singletons singleton "GET /control/singleton"
word events "events --snapshot --count 1" "GET /cluster/event-log"
word health "check alive" "GET /health/alive"
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
word "trace stop" "trace stop --path /user/none" 'POST /control/trace {"action":"stop","path":"/user/none"}'
word "a message" "send /user/nobody x" "POST /actors/user/nobody text"
word join "" "POST /cluster/members form"
word "preparing a full shutdown" "shutdown --dry-run" "PUT /cluster/ form"
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

# ---- the requests: all by one curl, and those of the tool eight at a time, since many processes would take longer than their answers

name_of() { local name=${1,,}; name_is=${name//[^a-z]/_}; }
tool_run() { # WORD
    local code=0
    # shellcheck disable=SC2086
    timeout 60 "$troupe" --socket "$work/open.sock" --timeout 20s ${tool[$1]} >"$work/$name_is.out" 2>"$work/$name_is.err" || code=$?
    echo "$code" >"$work/$name_is.code"
}
tools_run() {
    local word children=()
    for word in "${!tool[@]}"; do
        name_of "$word"
        tool_run "$word" &
        children+=($!)
        [ ${#children[@]} -lt 8 ] || { wait "${children[@]}" && children=(); }
    done
    wait "${children[@]}"
}
ask_write() { # KEY NODE CREDENTIAL METHOD PATH BODY: one request of the curl; its body comes to KEY.http
    printf 'url = "%s%s"\nrequest = "%s"\noutput = "%s"\nwrite-out = "%s %%{http_code}\\n"\nmax-time = 60\nheader = "Authorization: Bearer %s"\n' \
        "${url[$2]}" "$5" "$4" "$work/$1.http" "$1" "${token[$3]}"
    case $6 in
    form) printf 'data-urlencode = "address=troupe.tcp://demo@127.0.0.1:1"\n' ;;
    text) printf 'header = "Content-Type: text/plain"\ndata = "x"\n' ;;
    ?*) printf 'header = "Content-Type: application/json"\ndata = "%s"\n' "${6//\"/\\\"}" ;;
    esac
    printf 'next\n'
}
asks_write() { # WORD NODE CREDENTIAL
    local method path body
    read -r method path body <<<"${request[$1]}"
    name_of "$1"
    if [[ $method == /* ]]; then # a path that must not be there, by no method
        ask_write "$name_is.$2.$3.1" "$2" "$3" GET "$method" ""
        ask_write "$name_is.$2.$3.2" "$2" "$3" POST "$method" ""
    else
        ask_write "$name_is.$2.$3.1" "$2" "$3" "$method" "$path" "$body"
    fi
}
all_run() { # the tool, and what asks_write wrote, whose statuses come to status[KEY]
    local key code asks
    curl -sS -K "$work/requests" >"$work/statuses" 2>"$work/curl.err" &
    asks=$!
    tools_run
    wait "$asks"
    while read -r key code; do status[$key]=$code; done <"$work/statuses"
}

# ---- what they say. Is it let through? Not: no credential for it (401, 403), no such path (404 that names /openapi.json), changes are
# off (404 read-only).

over_socket() {
    told=$work/$name_is.out
    case $(<"$work/$name_is.code") in 64 | 69 | 70 | 77 | 124) return 1 ;; esac
}
over_http() { # WORD NODE CREDENTIAL
    local key=$name_is.$2.$3
    told=$work/$key.1.http
    if [[ ${request[$1]} == /* ]]; then
        for told in "$work/$key.1.http" "$work/$key.2.http"; do
            key=${told##*/}
            [ "${status[${key%.http}]-}" = 404 ] && [[ $(<"$told") == *openapi.json* ]] || return 0
        done
        return 1
    fi
    case ${status[$key.1]-000} in
    401 | 403 | 405 | 000) return 1 ;;
    404) [[ $(<"$told") != *openapi.json* && $(<"$told") != *'"error":"read-only"'* ]] ;;
    esac
}
words_of() { # CELL: its words, one a line
    sed 's/^[^:`]*: //; s/ by `[^`]*`//g; s/[`]//g; s/[,;] /\n/g' <<<"$1" | sed 's/^ *//; s/ *$//' | grep .
}
cell_says() { # NAME CELL COMMAND...: a cell that begins with yes, unless or with lets it through; one with no does not
    local name=$1 cell=$2 through=no
    shift 2
    ! "$@" || through=yes
    case $cell in
    yes* | unless* | with*) [ $through = yes ] ;;
    no) [ $through = no ] ;;
    *) false ;;
    esac && pass "$name" || fail "$name" "the table says '$cell', let through: $through; $(head -c 300 "$told")"
}
rows_of_table() { sed -n '/^\*\*Permissions of operators/,/^Each order/p' "$src/docs/operating.md" | grep '^| ' | grep -v '^| |\|^| who'; }

is_up open
is_up closed
is the_socket_is_for_user_and_group "$(stat -c %a "$work/open.sock")" 660
tool[join]="join $("$troupe" --socket "$work/open.sock" members -o name)"
for word in "${!request[@]}"; do
    asks_write "$word" open reader
    asks_write "$word" open writer
    asks_write "$word" closed writer
done >"$work/requests"
declare -A status=()
all_run
rows=0
while IFS='|' read -r _ row local_cell reader_cell writer_cell _; do
    rows=$((rows + 1))
    read -r local_cell <<<"$local_cell"
    read -r reader_cell <<<"$reader_cell"
    read -r writer_cell <<<"$writer_cell"
    while read -r word; do
        name_of "$word"
        if [ -z "${tool[$word]-}" ]; then
            fail "a_request_tries_$name_is" "no word of this script: $word"
            continue
        fi
        cell_says "${name_is}_over_the_socket" "$local_cell" over_socket
        cell_says "${name_is}_of_a_reader" "$reader_cell" over_http "$word" open reader
        cell_says "${name_is}_of_a_writer" "$writer_cell" over_http "$word" open writer
        [[ $writer_cell != unless* ]] || cell_says "${name_is}_while_changes_are_off" no over_http "$word" closed writer
        tried+=("$word")
    done < <(words_of "$row")
done < <(rows_of_table)
is the_table_has_its_rows "$rows" 5
is each_word_here_is_in_the_table "$(for word in "${!tool[@]}"; do printf '%s\n' "${tried[@]}" | grep -qxF -- "$word" || printf '%s, ' "$word"; done)" ""
test_end
