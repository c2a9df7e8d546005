troupe_sources += \
	cluster/management/access.c \
	cluster/management/answers.c \
	cluster/management/events.c \
	cluster/management/exchange.c \
	cluster/management/exposition.c \
	cluster/management/form.c \
	cluster/management/forward.c \
	cluster/management/openapi.c \
	cluster/management/page.c \
	cluster/management/routes.c \
	cluster/management/server.c \
	cluster/management/sessions.c \
	cluster/management/stream.c \
	cluster/management/tell.c

# The assembler includes the files of the page.
cluster/management/page.lo: $(wildcard $(top_srcdir)/cluster/management/page/*)

test_programs += tests/fuzz/management_fuzz
tests_fuzz_management_fuzz_SOURCES = tests/fuzz/management_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_management_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_management_fuzz_LDFLAGS = $(FUZZ_LINK)
