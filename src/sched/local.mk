# src/sched
troupe_sources += src/sched/driven.c src/sched/gang.c src/sched/private.c src/sched/queue.c src/sched/retire.c src/sched/sched.c \
	src/sched/sleep.c src/sched/timer.c src/sched/timer_wheel.c src/sched/worker.c

check_PROGRAMS += tests/unit/sched/driven_test tests/unit/sched/gang_test tests/unit/sched/gang_trial_test \
    tests/unit/sched/sched_test \
	tests/unit/sched/timer_test tests/unit/sched/timer_wheel_test
tests_unit_sched_gang_test_SOURCES = tests/unit/sched/gang_test.c
tests_unit_sched_gang_test_LDADD = $(TEST_LDADD)
tests_unit_sched_gang_trial_test_SOURCES = tests/unit/sched/gang_trial_test.c
tests_unit_sched_gang_trial_test_LDADD = $(TEST_LDADD)
tests_unit_sched_sched_test_SOURCES = tests/unit/sched/sched_test.c
tests_unit_sched_sched_test_LDADD = $(TEST_LDADD)
tests_unit_sched_timer_test_SOURCES = tests/unit/sched/timer_test.c
tests_unit_sched_timer_test_LDADD = $(TEST_LDADD)
tests_unit_sched_timer_wheel_test_SOURCES = tests/unit/sched/timer_wheel_test.c
tests_unit_sched_timer_wheel_test_LDADD = $(TEST_LDADD)
tests_unit_sched_driven_test_SOURCES = tests/unit/sched/driven_test.c
tests_unit_sched_driven_test_LDADD = $(TEST_LDADD)

# dispatchers
troupe_sources += src/sched/affine.c src/sched/group.c
