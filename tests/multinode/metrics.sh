#!/bin/bash
# metrics.sh - figures between processes, and adaptive routing by them: the scenarios of metrics_program.c, each told by its
# name. CMETRIC.
. "$(dirname "$0")/lib.sh"
test_begin
"$troupe" multinode --timefactor 4 "$build/tests/multinode/metrics_program" >"$work/run.log" 2>&1
is all_nodes_end_well "$?" 0
# CMETRIC-09, ClusterMetricsRoutingSpec, ClusterMetricsExtensionSpec, ClusterMetricsDisabledSpec
for name in figures_reach_every_node who_is_switched_off_neither_measures_nor_tells_nor_hears \
    an_adaptive_router_spreads_evenly_when_all_have_the_same_left an_adaptive_router_prefers_free_memory figures_follow_membership; do
    has "$name" "[first] $name" "$work/run.log"
done
test_end
