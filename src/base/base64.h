/* base64.h - bytes as text in JSON (RFC 4648, with padding). */
#ifndef TRPI_BASE_BASE64_H
#define TRPI_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

/* Gives *ret_bytes (trpi_free), never NULL. Errors: TRP_EDATA, TRP_ENOMEM. */
trp_err trpi_base64_decode(const char *text, size_t count, uint8_t **ret_bytes, size_t *ret_count);
/* NUL-terminated; the caller frees it with trpi_free. NULL: no memory. */
char *trpi_base64_encode(const void *bytes, size_t count);

#endif
