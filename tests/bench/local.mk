# tests/bench
noinst_PROGRAMS += tests/bench/bench
tests_bench_bench_SOURCES = tests/bench/bench.c tests/bench/create.c tests/bench/local.c
tests_bench_bench_LDADD = libtroupe.la
