# src/base
check_PROGRAMS += tests/unit/base/address_test tests/unit/base/alloc_test tests/unit/base/buffer_test \
	tests/unit/base/config_tree_test \
	tests/unit/base/err_test tests/unit/base/hash_test tests/unit/base/json_test tests/unit/base/world_test
tests_unit_base_address_test_SOURCES = tests/unit/base/address_test.c
tests_unit_base_address_test_LDADD = $(TEST_LDADD)
tests_unit_base_alloc_test_SOURCES = tests/unit/base/alloc_test.c
tests_unit_base_alloc_test_LDADD = $(TEST_LDADD)
tests_unit_base_config_tree_test_SOURCES = tests/unit/base/config_tree_test.c
tests_unit_base_config_tree_test_LDADD = $(TEST_LDADD)
tests_unit_base_config_tree_test_CPPFLAGS = $(AM_CPPFLAGS) -DTESTS_SRCDIR=\"$(abs_top_srcdir)\"
tests_unit_base_buffer_test_SOURCES = tests/unit/base/buffer_test.c
tests_unit_base_buffer_test_LDADD = $(TEST_LDADD)
tests_unit_base_err_test_SOURCES = tests/unit/base/err_test.c
tests_unit_base_err_test_LDADD = $(TEST_LDADD)
tests_unit_base_hash_test_SOURCES = tests/unit/base/hash_test.c
tests_unit_base_hash_test_LDADD = $(TEST_LDADD)
tests_unit_base_json_test_SOURCES = tests/unit/base/json_test.c
tests_unit_base_json_test_LDADD = $(TEST_LDADD)
tests_unit_base_world_test_SOURCES = tests/unit/base/world_test.c
tests_unit_base_world_test_LDADD = $(TEST_LDADD)
