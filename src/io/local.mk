# The io room: sockets of the world, and actors that own them.
troupe_sources += src/io/poller.c src/io/system_poller.c src/io/tcp_conn.c
