# src/actor, the hot half
troupe_sources += src/actor/cell.c src/actor/ctx.c src/actor/msg.c src/actor/nodes.c src/actor/run.c \
	src/actor/spawn.c src/actor/system.c src/actor/tell.c src/actor/type.c

# src/actor, the semantic half
troupe_sources += src/actor/ask.c src/actor/children.c src/actor/dead_letter.c src/actor/event_stream.c \
	src/actor/guardian.c src/actor/inbound.c src/actor/life.c src/actor/log.c src/actor/memory.c \
	src/actor/name.c src/actor/path.c src/actor/ref_map.c src/actor/registry.c src/actor/restart.c \
	src/actor/select.c src/actor/stash.c src/actor/supervise.c src/actor/timers.c src/actor/tree.c \
	src/actor/watch.c

check_PROGRAMS += tests/unit/actor/life_test
tests_unit_actor_life_test_SOURCES = tests/unit/actor/life_test.c
tests_unit_actor_life_test_LDADD = $(TEST_LDADD)
