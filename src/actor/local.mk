# src/actor, the hot half
troupe_sources += src/actor/cell.c src/actor/ctx.c src/actor/msg.c src/actor/nodes.c src/actor/run.c \
	src/actor/spawn.c src/actor/system.c src/actor/tell.c src/actor/type.c
