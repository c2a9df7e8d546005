# In the program troupe too: nothing but libc and cJSON.
troupe_base_sources += src/base/address.c src/base/alloc.c src/base/assert.c src/base/buffer.c \
	src/base/err.c src/base/hash.c src/base/json.c src/base/world_real.c
troupe_sources += src/base/world_virtual.c
