# The simulated world: implementations of base's interfaces.
troupe_sources += src/sim/mem_transport.c
troupe_sources += src/sim/sim_net.c src/sim/sim_set.c src/sim/sim_stream.c src/sim/sim_local.c src/sim/sim_flow.c src/sim/sim_datagram.c src/sim/sim_address.c src/sim/sim_option.c
