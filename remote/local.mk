# The remote room. link_nng*.c are the only files that include nng's stream headers.
troupe_sources += remote/frame.c remote/redelivery.c remote/waiting.c remote/association.c remote/serializer.c \
	remote/serializer_json.c remote/codec.c remote/handshake.c remote/resolver.c remote/link_nng.c \
	remote/link_nng_open.c remote/note.c remote/lane.c remote/conn.c remote/peer.c remote/inbound.c remote/route.c \
	remote/round_trip.c remote/remote.c
check_PROGRAMS += tests/unit/remote/remote_test
tests_unit_remote_remote_test_SOURCES = tests/unit/remote/remote_test.c
tests_unit_remote_remote_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/frame_test
tests_unit_remote_frame_test_SOURCES = tests/unit/remote/frame_test.c
tests_unit_remote_frame_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/redelivery_test
tests_unit_remote_redelivery_test_SOURCES = tests/unit/remote/redelivery_test.c
tests_unit_remote_redelivery_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/association_test
tests_unit_remote_association_test_SOURCES = tests/unit/remote/association_test.c
tests_unit_remote_association_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/pressure_test
tests_unit_remote_pressure_test_SOURCES = tests/unit/remote/pressure_test.c
tests_unit_remote_pressure_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/codec_test
tests_unit_remote_codec_test_SOURCES = tests/unit/remote/codec_test.c
tests_unit_remote_codec_test_LDADD = $(TEST_LDADD)
tests_unit_remote_codec_test_CPPFLAGS = $(AM_CPPFLAGS) -DTESTS_SRCDIR=\"$(abs_top_srcdir)\"
check_PROGRAMS += tests/unit/remote/garbage_test
tests_unit_remote_garbage_test_SOURCES = tests/unit/remote/garbage_test.c
tests_unit_remote_garbage_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/link_test
tests_unit_remote_link_test_SOURCES = tests/unit/remote/link_test.c
tests_unit_remote_link_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/lost_test
tests_unit_remote_lost_test_SOURCES = tests/unit/remote/lost_test.c
tests_unit_remote_lost_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/serialize_test
tests_unit_remote_serialize_test_SOURCES = tests/unit/remote/serialize_test.c
tests_unit_remote_serialize_test_LDADD = $(TEST_LDADD)
noinst_PROGRAMS += tests/fuzz/frame_fuzz tests/fuzz/address_fuzz
tests_fuzz_frame_fuzz_SOURCES = tests/fuzz/frame_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_frame_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_frame_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_address_fuzz_SOURCES = tests/fuzz/address_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_address_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_address_fuzz_LDFLAGS = $(FUZZ_LINK)
check_PROGRAMS += tests/unit/remote/waiting_test
tests_unit_remote_waiting_test_SOURCES = tests/unit/remote/waiting_test.c
tests_unit_remote_waiting_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/incarnation_test
tests_unit_remote_incarnation_test_SOURCES = tests/unit/remote/incarnation_test.c
tests_unit_remote_incarnation_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/remote/events_test
tests_unit_remote_events_test_SOURCES = tests/unit/remote/events_test.c
tests_unit_remote_events_test_LDADD = $(TEST_LDADD)
pkginclude_HEADERS += include/troupe/remoting.h
