# The simulated world: implementations of base's interfaces.
troupe_sources += src/sim/mem_transport.c
