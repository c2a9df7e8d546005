# src/sched
troupe_sources += src/sched/driven.c src/sched/parallelism.c src/sched/private.c src/sched/queue.c src/sched/queue_check.c src/sched/retire.c src/sched/sched.c \
	src/sched/sleep.c src/sched/timer.c src/sched/timer_wheel.c src/sched/worker.c

# dispatchers
troupe_sources += src/sched/affine.c src/sched/group.c src/sched/loop.c src/sched/poll.c
