#!/bin/bash
# idle.sh - what a node costs that has nothing to do: resident memory and processor time.
#   idle.sh [SECONDS]   default 10; --long is the 60 of the promise
# A member of a cluster of two, so that gossip and heartbeats are counted.
. "$(dirname "$0")/../multinode/lib.sh"
seconds=${1:-10}
[ "$seconds" != --long ] || seconds=60
hosts_begin 2
start_node 1
start_node 2
wait_until 60 all_up 2 1 2 || { fail both_come_up; test_end; }
beat 3 1 2 # what starting costs is another question
pid=${node_pid[1]}
ticks() { awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$pid/stat"; }
hertz=$(getconf CLK_TCK)
# What another process does to the caches counts as ours: the best of three is what the node costs.
permille=1000
for _ in 1 2 3; do
    before=$(ticks)
    elapse "$seconds" "the time over which it is measured"
    used=$((($(ticks) - before) * 1000 / hertz / seconds))
    [ "$used" -ge "$permille" ] || permille=$used
    [ "$permille" -gt 9 ] && [ -z "$sanitizer" ] || break
done
rss=$(awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status")
echo "troupe idle_node processor $permille permille"
echo "troupe idle_node resident $rss KiB"
measure idle_cpu "$((permille / 10)).$((permille % 10))" percent
measure idle_seconds "$seconds" s
judge idle_node_has_at_most_15_mb_resident "$rss" 15360 KiB
judge idle_node_uses_less_than_1_percent_of_a_core "$permille" 9 permille
test_end
