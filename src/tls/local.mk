# src/tls: the only files of the library's rooms that include OpenSSL's headers, but for cluster/node/cert_openssl.c.
troupe_sources += src/tls/context.c src/tls/dialer.c src/tls/digest.c src/tls/hello.c src/tls/peer.c src/tls/session.c src/tls/source.c src/tls/verify.c
