# The remote room. link_nng*.c are the only files that include nng's stream headers.
troupe_sources += remote/frame.c remote/redelivery.c remote/waiting.c remote/association.c remote/serializer.c \
	remote/serialization.c remote/serializers.c remote/serializer_msgpack.c remote/serializer_protobuf.c \
	remote/serializer_parcel.c remote/serializer_json.c remote/codec.c remote/handshake.c remote/resolver.c remote/link_nng.c \
	remote/link_nng_open.c remote/link_nng_socket.c remote/bottleneck.c remote/note.c remote/lane.c remote/spread.c \
	remote/fence.c remote/parting.c remote/reach.c remote/compress_lz4.c remote/conn.c remote/conn_write.c remote/peer.c remote/tick.c remote/inbound.c remote/route.c remote/route_lane.c remote/credit.c remote/receiver.c remote/hold.c remote/signal.c \
	remote/round_trip.c remote/stop.c remote/remote.c
troupe_sources += remote/fault_cut.c remote/fault_gate.c remote/fault_text.c remote/faults.c remote/faults_link.c
troupe_sources += remote/refusal.c remote/tls_openssl.c remote/cookie.c remote/secure.c \
	remote/secure_keeper.c remote/security.c remote/trouble.c remote/untrusted.c remote/deployment.c remote/strangers.c remote/pending.c remote/unfinished.c
test_programs += tests/fuzz/frame_fuzz tests/fuzz/address_fuzz
tests_fuzz_frame_fuzz_SOURCES = tests/fuzz/frame_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_frame_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_frame_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_address_fuzz_SOURCES = tests/fuzz/address_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_address_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_address_fuzz_LDFLAGS = $(FUZZ_LINK)
pkginclude_HEADERS += include/troupe/remoting.h
test_programs += tests/fuzz/handshake_fuzz tests/fuzz/redelivery_fuzz tests/fuzz/secure_fuzz
tests_fuzz_secure_fuzz_SOURCES = tests/fuzz/secure_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_secure_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_secure_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_handshake_fuzz_SOURCES = tests/fuzz/handshake_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_handshake_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_handshake_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_redelivery_fuzz_SOURCES = tests/fuzz/redelivery_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_redelivery_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_redelivery_fuzz_LDFLAGS = $(FUZZ_LINK)
pkginclude_HEADERS += include/troupe/serialization.h
test_programs += tests/fuzz/compress_fuzz
tests_fuzz_compress_fuzz_SOURCES = tests/fuzz/compress_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_compress_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_compress_fuzz_LDFLAGS = $(FUZZ_LINK)
pkginclude_HEADERS += include/troupe/protobuf.h
test_programs += tests/fuzz/payload_fuzz
tests_fuzz_payload_fuzz_SOURCES = tests/fuzz/payload_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_payload_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_payload_fuzz_LDFLAGS = $(FUZZ_LINK)
