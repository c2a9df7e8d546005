/* digest.c - keyed digests and secrets in memory, by OpenSSL.
 *
 * Tests. tests/unit/remote/cookie_test.c
 */
#include "tls/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/assert.h"

bool
trpi_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                 uint8_t ret_digest[32])
{
    unsigned count = 0;
    trpi_assert(key_bytes <= INT32_MAX);
    return HMAC(EVP_sha256(), key, (int)key_bytes, data, bytes, ret_digest, &count) != NULL &&
           count == 32;
}

bool
trpi_equal_secret(const void *a, const void *b, size_t bytes)
{
    return CRYPTO_memcmp(a, b, bytes) == 0;
}

bool
trpi_random(void *ret_bytes, size_t bytes)
{
    trpi_assert(bytes <= INT32_MAX);
    return RAND_bytes(ret_bytes, (int)bytes) == 1;
}

void
trpi_cleanse(void *memory, size_t bytes)
{
    OPENSSL_cleanse(memory, bytes);
}
