# The membership simulator: `troupe sim`, tests/sim.
troupe_sources += cluster/sim/check.c cluster/sim/node.c cluster/sim/scenario.c cluster/sim/sim.c \
	cluster/sim/world.c
