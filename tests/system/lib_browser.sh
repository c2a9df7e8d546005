# lib_browser.sh - a page in headless Chromium; source it behind lib.sh.
#
#   browser_begin                starts browser.py, which ends with the test; 1: Chromium does not start here ($work/browser.err)
#   ask WORD ARGUMENT...         a line to it and a line back (browser.py has the words): its value in $value
#   must NAME WORD ARGUMENT...   the same, as a check
#   sees NAME JS                 a check: the expression comes to be true within a minute
#   press NAME ID                a check: Tab leads to the element, and Enter is pressed there
#
# shellcheck shell=bash

browser_begin() {
    coproc browser { python3 "$src/tests/system/browser.py" 2>"$work/browser.err"; }
    pids+=("$browser_PID")
    from=${browser[0]} to=${browser[1]}
    answer
}
answer() { read -r reply <&"$from" && [[ $reply == ok* ]]; } # the browser's program has limits of its own
ask() {
    echo "${*//$'\n'/ }" >&"$to"
    answer || return 1
    value=${reply#ok }
}
must() {
    local name=$1
    shift
    if ask "$@"; then pass "$name"; else fail "$name" "${reply:-no answer}"; fi
}
sees() {
    if ask await 60 "$2"; then pass "$1"; else fail "$1" "${reply:0:1500}"; fi
}
press() {
    local reached=0 i
    for ((i = 0; i < 30 && !reached; i++)); do
        ask key Tab
        ask eval "document.activeElement.id"
        [ "$value" != "\"$2\"" ] || reached=1
    done
    [ $reached = 1 ] && ask key Enter && pass "$1" || fail "$1" "$value"
}
