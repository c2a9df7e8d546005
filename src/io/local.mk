# The io room: sockets of the world, and actors that own them.
troupe_sources += src/io/tcp_conn.c
