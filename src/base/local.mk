# In the program troupe too: nothing but libc and cJSON.
troupe_base_sources += src/base/address.c src/base/alloc.c src/base/array.c src/base/assert.c src/base/buffer.c src/base/check.c src/base/cookie_reader.c src/base/curl.c \
	src/base/decimal.c src/base/err.c src/base/hash.c src/base/json.c src/base/span_json.c src/base/loaded_library.c src/base/mutex.c src/base/nearest.c src/base/net_machine.c src/base/table.c \
	src/base/quick_clock.c src/base/units.c src/base/utf8.c src/base/world_real.c
troupe_sources += src/base/lws.c src/base/sized.c
troupe_sources += src/base/storage_memory.c src/base/transport.c src/base/world_virtual.c src/base/payload.c src/base/base64.c
troupe_sources += src/base/bytes.c src/base/bytes_codec.c
pkginclude_HEADERS += include/troupe/bytes.h include/troupe/payload.h
# The configuration needs libconfuse, so it is not among the sources the client links.
troupe_sources += src/base/config.c src/base/config_check.c src/base/config_env.c \
	src/base/config_load.c src/base/config_render.c src/base/config_parts.c src/base/config_text.c \
	src/base/config_tree.c src/base/config_value.c
pkginclude_HEADERS += include/troupe/config.h
