/* nng_address.h - addresses of nng's sockets, and the lengths of the parts of a message. */
#ifndef TRPI_ENDPOINT_NNG_ADDRESS_H
#define TRPI_ENDPOINT_NNG_ADDRESS_H

#include <stdbool.h>

#include <troupe/nng_socket.h>

#define TRPI_NNG_URL_BYTES 300

/* Take the next address of a list that spaces separate. False: there is none. A longer one than
 * fits is cut, and so refused by the check. */
bool trpi_nng_address_next(const char **list, char ret_url[TRPI_NNG_URL_BYTES]);
/* Errors: TRP_EINVAL (no address), TRP_EUNSUPPORTED (of another transport). */
trp_err trpi_nng_address_check(const char *url);
/* Write an address with a numeric host, which may ask the resolver and block. Errors: TRP_ECONN
 * (the name is not known). */
trp_err trpi_nng_address_resolve(const char *url, char ret_url[TRPI_NNG_URL_BYTES]);

/* Bytes that the lengths of so many parts take. */
size_t trpi_nng_lengths_bytes(uint32_t count);
void trpi_nng_lengths_write(const trp_bytes *parts, uint32_t count, uint8_t *ret_bytes);
/* Read the lengths at the end of a body. False: they do not fit it. */
bool trpi_nng_lengths_read(const uint8_t *body, size_t bytes, uint32_t *ret_count,
                           uint32_t ret_lengths[TRP_NNG_PARTS_MAX]);

#endif
