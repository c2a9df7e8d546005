# The remote room. link_nng.c is the only file that includes nng's stream headers.
troupe_sources += remote/frame.c remote/redelivery.c remote/association.c remote/serializer.c \
	remote/serializer_json.c remote/codec.c remote/handshake.c remote/resolver.c remote/link_nng.c \
	remote/lane.c remote/conn.c remote/peer.c remote/inbound.c remote/route.c remote/remote.c
check_PROGRAMS += tests/unit/remote/remote_test
tests_unit_remote_remote_test_SOURCES = tests/unit/remote/remote_test.c
tests_unit_remote_remote_test_LDADD = $(TEST_LDADD)
