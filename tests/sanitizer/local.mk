# tests/sanitizer: mistakes that a sanitizer must find; findings.sh looks.
test_programs += tests/sanitizer/findings
tests_sanitizer_findings_SOURCES = tests/sanitizer/findings.c
tests_sanitizer_findings_LDADD = $(TEST_LDADD)
