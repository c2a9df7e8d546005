/* handshake_fuzz.c - the body of a handshake frame, and the acceptor's answer to it.
 *
 * The first byte is the kind of the frame. A decoded handshake is encoded and decoded again: it
 * must be the same. Corpus: tests/fuzz/corpus/handshake.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "remote/wire/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static trp_err
handshake_decode(uint8_t kind, const uint8_t *body, size_t bytes, trpi_handshake *ret_handshake)
{
    trpi_frame frame = { (uint32_t)bytes, kind, 0, 0, body };
    return trpi_handshake_decode(&frame, ret_handshake);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    uint8_t kind = (uint8_t)(TRPI_FRAME_HANDSHAKE_REQUEST + data[0] % 3);
    uint8_t *exact = trpi_alloc(size); /* so that a step beyond is seen */
    trpi_handshake first, again;
    trpi_buffer out = { 0 };
    if (exact == NULL) {
        return 0;
    }
    memcpy(exact, data + 1, size - 1);
    if (handshake_decode(kind, exact, size - 1, &first) == TRP_OK) {
        require(memchr(first.reason, '\0', sizeof first.reason) != NULL);
        bool refusal = kind == TRPI_FRAME_HANDSHAKE_REFUSAL;
        require(refusal || (first.from.uid != 0 && first.from.address.host[0] != '\0'));
        if (!refusal && trpi_handshake_append(&out, (enum trpi_frame_kind)kind, &first) == TRP_OK) {
            require(handshake_decode(kind, out.data + TRPI_FRAME_HEADER_BYTES,
                                     out.count - TRPI_FRAME_HEADER_BYTES, &again) == TRP_OK);
            require(again.from.uid == first.from.uid && again.to_uid == first.to_uid &&
                    again.frame_bytes_max == first.frame_bytes_max &&
                    trpi_address_equal(&again.from.address, &first.from.address) &&
                    trpi_address_equal(&again.to, &first.to) &&
                    strcmp(again.reason, first.reason) == 0);
        }
    }
    trpi_buffer_fini(&out);
    trpi_free(exact);
    return 0;
}
