# The endpoint room: actors that speak with programs which know nothing of actors.
pkginclude_HEADERS += include/troupe/nng_socket.h
troupe_sources += src/endpoint/closing.c
troupe_sources += src/endpoint/nng_address.c src/endpoint/nng_device.c src/endpoint/nng_library.c src/endpoint/nng_open.c src/endpoint/nng_socket.c
pkginclude_HEADERS += include/troupe/endpoint.h
troupe_sources += src/endpoint/consumer.c src/endpoint/endpoint.c src/endpoint/framing.c src/endpoint/http_request.c src/endpoint/keys.c src/endpoint/producer.c src/endpoint/scheme_actor.c src/endpoint/scheme_exec.c src/endpoint/scheme_file.c src/endpoint/scheme_http_client.c src/endpoint/scheme_tcp.c src/endpoint/scheme_tcp_out.c src/endpoint/scheme_timer.c src/endpoint/scheme_udp.c src/endpoint/template.c src/endpoint/uri.c
test_programs += tests/fuzz/nng_parts_fuzz
tests_fuzz_nng_parts_fuzz_SOURCES = tests/fuzz/nng_parts_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_nng_parts_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_nng_parts_fuzz_LDFLAGS = $(FUZZ_LINK)
test_programs += tests/fuzz/uri_fuzz
tests_fuzz_uri_fuzz_SOURCES = tests/fuzz/uri_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_uri_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_uri_fuzz_LDFLAGS = $(FUZZ_LINK)
test_programs += tests/fuzz/framing_fuzz
tests_fuzz_framing_fuzz_SOURCES = tests/fuzz/framing_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_framing_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_framing_fuzz_LDFLAGS = $(FUZZ_LINK)
