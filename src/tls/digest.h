/* tls_digest.h - keyed digests, and secrets in memory. Thread: any. */
#ifndef TRPI_TLS_DIGEST_H
#define TRPI_TLS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool trpi_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                      uint8_t ret_digest[32]);
/* Compare in constant time. */
bool trpi_equal_secret(const void *a, const void *b, size_t bytes);
/* Fill with bytes that nobody can guess. false: OpenSSL has none. */
bool trpi_random(void *ret_bytes, size_t bytes);
/* Overwrite, in a way that the compiler does not leave out. */
void trpi_cleanse(void *memory, size_t bytes);

#endif
