#!/bin/bash
# findings.sh - with the options and suppressions of tests/run each sanitizer still finds what it is there for.
#   findings.sh BUILD asan|tsan
set -u
findings=$1/tests/sanitizer/findings
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

found() { # found SENTENCE MISTAKE TEXT...: the run fails, and each text is in what it says
    local sentence=$1 mistake=$2 text
    shift 2
    if "$findings" "$mistake" >"$log" 2>&1; then
        echo "FAIL $sentence: exit 0"
        status=1
        return
    fi
    for text in "$@"; do
        if ! grep -qF -- "$text" "$log"; then
            echo "FAIL $sentence: no '$text'"
            cat "$log"
            status=1
            return
        fi
    done
    echo "PASS $sentence"
}

"$findings" nothing || { echo "FAIL a_program_without_a_mistake_is_clean"; status=1; }
case ${2:-} in
tsan)
    found a_data_race_is_found race "data race" "in race"
    # The suppression for libnng's mutexes does not cover ours.
    found a_mutex_destroyed_without_order_after_its_use_is_found early "data race" "in trpi_mutex_destroy"
    found a_mutex_used_without_order_after_its_end_is_found late "data race" "#0 trpi_mutex_destroy"
    ;;
asan)
    found a_use_after_free_is_found use-after-free "heap-use-after-free"
    found a_leak_is_found leak "detected memory leaks"
    found an_overflow_is_found overflow "signed integer overflow"
    ;;
*) echo "findings.sh: BUILD asan|tsan" >&2; exit 64 ;;
esac
exit $status
