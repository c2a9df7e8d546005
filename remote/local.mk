# The rooms of remote, from the lowest to the uppermost. nng/link_nng*.c are the only files that include nng's stream
# headers.
troupe_sources += remote/wire/frame.c remote/wire/serializer.c remote/wire/serialization.c \
	remote/wire/serializers.c remote/wire/serializer_msgpack.c remote/wire/serializer_protobuf.c \
	remote/wire/serializer_parcel.c remote/wire/serializer_entity.c remote/wire/serializer_topic.c remote/wire/carried.c remote/wire/serializer_json.c remote/wire/codec.c remote/wire/handshake.c \
	remote/wire/compress_lz4.c remote/wire/deployment.c remote/wire/round_trip.c \
	remote/wire/bottleneck.c
troupe_sources += remote/nng/link_nng.c remote/nng/link_nng_open.c \
	remote/nng/link_nng_socket.c
troupe_sources += remote/poll/link_poll.c remote/poll/link_poll_control.c remote/poll/link_poll_open.c remote/poll/link_poll_way.c
troupe_sources += remote/security/cookie.c remote/security/secure.c remote/security/secure_keeper.c \
	remote/security/trouble.c
troupe_sources += remote/faults/fault_cut.c remote/faults/fault_shaper.c remote/faults/fault_text.c \
	remote/faults/faults.c remote/faults/faults_link.c
troupe_sources += remote/association/redelivery.c remote/association/waiting.c \
	remote/association/association.c remote/association/events.c remote/association/lane.c \
	remote/association/spread.c remote/association/fence.c remote/association/graceful_close.c \
	remote/association/lane_dial.c remote/association/conn.c remote/association/conn_write.c \
	remote/association/peer.c remote/association/peer_check.c remote/association/tick.c remote/association/inbound.c remote/association/inbound_tell.c remote/association/route.c remote/association/route_again.c remote/association/selection.c remote/association/traced.c \
	remote/association/route_lane.c remote/association/credit.c remote/association/receiver.c \
	remote/association/hold.c remote/association/signal.c remote/association/refusal.c \
	remote/association/clients.c remote/association/doors.c remote/association/untrusted.c remote/association/strangers.c remote/association/pending.c \
	remote/association/unfinished.c remote/association/context.c remote/association/conn_events.c \
	remote/association/idle.c remote/association/inflow.c remote/association/peers.c remote/association/pump.c \
	remote/association/routes.c remote/association/route_hold.c \
	remote/association/control_scan.c remote/association/control_lane.c remote/association/control_reserve.c
# client: a process outside a cluster, above remoting.
troupe_sources += remote/client/client.c remote/client/engine.c remote/client/frame.c remote/client/options.c remote/client/stub.c
pkginclude_HEADERS += include/troupe/client.h
troupe_sources += remote/clients.c remote/event_types.c remote/keys.c remote/loopback.c remote/reach.c remote/remote.c remote/status.c remote/stop.c remote/transport.c

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
