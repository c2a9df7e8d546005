#!/bin/bash
# metrics.sh - figures of a real node: families and labels of docs/operating.md, promtool, what a scrape costs with 100,000 actors,
# and that a walk over them is made only while somebody looks.
#   metrics.sh [--actors N]    --long: 1,000,000
# shellcheck disable=SC2154
. "$(dirname "$0")/lib.sh"
actors=100000
case ${1-} in --actors) actors=$2 ;; --long) actors=1000000 ;; esac
test_begin
command -v curl >/dev/null || skip "curl is not installed (deploy/bootstrap --tests)"
plugin=$build/tests/system/.libs/many.so
promtool=$(command -v promtool || echo "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/troupe/promtool")

"$troupe" config check --set management.enabled=on >"$work/out" 2>&1 ||
    { ! grep -q 'no management API' "$work/out" || skip "this build has no management API"; }

start() { # NAME OPTION...: a node with the API; its URL in $url, its process in $node
    local name=$1
    shift
    background "$troupe" node --port 0 --socket "$work/$name.sock" --seed self --set management.enabled=on --set management.port=0 "$@" 2>"$work/$name.log"
    node=$started
    wait_until 60 grep -qE 'management API at|troupe: ' "$work/$name.log" || fail "start_$name"
    url=$(grep -o 'https\?://[0-9.]*:[0-9]*' "$work/$name.log" | tail -n 1)
}
scrape() { curl -sS --max-time 60 "$url/metrics" >"$work/metrics" 2>"$work/err"; }
value() { awk -v name="$1" '$1 == name { print $2 }' "$work/metrics"; } # SERIES
shows() { scrape && grep -qF -- "$1" "$work/metrics"; }
least() { scrape && awk -v name="$1" -v least="$2" '$1 == name && $2 + 0 >= least { found = 1 } END { exit !found }' "$work/metrics"; }
walked() { least troupe_actors_active 0; }
series() { grep -vc '^#\|peer="' "$work/metrics"; }

# ---- families, promtool
start one
check the_node_is_up wait_until 60 shows 'troupe_cluster_self_up 1'
check a_scrape_starts_a_walk wait_until 60 walked
for name in troupe_build_info troupe_uptime_seconds troupe_actors troupe_messages_total troupe_dead_letters_total troupe_cluster_members \
    troupe_cluster_unreachable_members troupe_cluster_converged troupe_cluster_gossip_seconds troupe_cluster_gossip_bytes_total \
    troupe_remote_associations troupe_remote_lanes_open troupe_actor_restarts_total troupe_message_wait_seconds troupe_message_run_seconds \
    troupe_mailbox_depth_max troupe_mailbox_age_seconds_max troupe_metrics_walk_age_seconds troupe_dispatcher_saturation_ratio \
    troupe_dispatcher_actors_active troupe_behaviour_actors; do
    has "there_is_$name" "# TYPE $name " "$work/metrics"
done
is nothing_is_left_out "$(value troupe_metrics_left_out)" 0
if [ -x "$promtool" ]; then
    expect promtool_finds_no_fault 0 "$promtool" check metrics <"$work/metrics"
else
    echo "promtool is not there (deploy/bootstrap --tests): its check is left out"
fi
kill -TERM "$node"

# ---- what a scrape costs with many actors, and what is seen of them
start many --load "$plugin:$actors" --set actor.actors-max=2000000
check many_actors_are_counted wait_until 120 least 'troupe_behaviour_actors{behaviour="many"}' "$actors"
check at_most_300_series test "$(series)" -le 300
check a_walk_is_young least troupe_metrics_walk_age_seconds 0
costs=()
for ((i = 0; i < 15; i++)); do
    costs+=("$(curl -sS --max-time 60 -o /dev/null -w '%{time_starttransfer}\n' "$url/metrics")")
done
measure scrape_of_actors "$actors" actors
judge scrape_lower_quartile "$(printf '%s\n' "${costs[@]}" | sort -n | awk '{ t[NR] = $1 * 1000000 } END { printf "%d", t[4] }')" 15000 us # three times 5 ms
# of some 100 slices the machine interrupts one or another, for a time slice of its own
most() { scrape && awk -v name="$1" -v most="$2" '$1 == name && $2 + 0 <= most { found = 1 } END { exit !found }' "$work/metrics"; }
[ -n "$sanitizer" ] || check the_slices_of_a_walk_are_short wait_until 60 most troupe_metrics_walk_slice_seconds 0.015
kill -TERM "$node"
test_end
