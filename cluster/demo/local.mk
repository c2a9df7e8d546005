# `troupe demo`: the articles' demonstrations and their screen, in the tool's process.
troupe_sources += cluster/demo/demo_main.c cluster/demo/http.c cluster/demo/page.c cluster/demo/play_scan.c \
	cluster/demo/plays.c cluster/demo/run.c cluster/demo/stage.c cluster/demo/threads.c

# The assembler includes the files of the page.
cluster/demo/page.lo: $(wildcard $(top_srcdir)/cluster/demo/page/*)
