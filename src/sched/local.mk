# src/sched
troupe_sources += src/sched/private.c src/sched/queue.c src/sched/retire.c src/sched/sched.c src/sched/sleep.c \
	src/sched/timer.c src/sched/timer_wheel.c src/sched/worker.c
