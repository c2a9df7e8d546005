# The io room: sockets of the world, and actors that own them.
troupe_sources += src/io/poller.c src/io/resolver.c src/io/system_poller.c src/io/tcp_conn.c
troupe_sources += src/io/gather.c src/io/pipeline.c src/io/stage_buffer.c src/io/stage_delimiter.c src/io/stage_length.c src/io/stage_text.c src/io/stage_tls.c
pkginclude_HEADERS += include/troupe/pipeline.h
test_programs += tests/fuzz/frames_fuzz
tests_fuzz_frames_fuzz_SOURCES = tests/fuzz/frames_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_frames_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_frames_fuzz_LDFLAGS = $(FUZZ_LINK)
# actors that own sockets
pkginclude_HEADERS += include/troupe/io.h include/troupe/tcp_pipeline.h include/troupe/tls.h
troupe_sources += src/io/address.c src/io/buffers.c src/io/io.c src/io/keys.c src/io/lookup.c src/io/settings.c src/io/socket.c src/io/tcp_actor.c src/io/tcp_listener.c \
	src/io/tcp_manager.c src/io/tcp_pipeline.c src/io/tcp_pump.c src/io/tcp_tls.c src/io/tcp_types.c src/io/tls_program.c src/io/udp.c
