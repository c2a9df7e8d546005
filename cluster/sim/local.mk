# The membership simulator: `troupe sim`, tests/sim.
troupe_sources += cluster/sim/check.c cluster/sim/check_events.c cluster/sim/complete.c \
	cluster/sim/complete_faults.c cluster/sim/complete_laws.c cluster/sim/complete_node.c cluster/sim/figures.c \
	cluster/sim/journal.c cluster/sim/journal_flight.c cluster/sim/journal_stray.c cluster/sim/node.c cluster/sim/operated.c cluster/sim/operated_laws.c cluster/sim/operated_load.c \
	cluster/sim/operated_says.c cluster/sim/play.c cluster/sim/scenario.c cluster/sim/schedule.c \
	cluster/sim/schedule_complete.c cluster/sim/schedule_text.c cluster/sim/shrink.c cluster/sim/sim.c cluster/sim/sim_main.c \
	cluster/sim/tenant.c cluster/sim/world.c
