/* address_test.c - addresses as text and back. */
#include <troupe/io.h>

#include "tests/unit/unit.h"

static void
addresses_are_read_and_written(void)
{
    static const struct {
        const char *text, *again; /* NULL: refused */
    } rows[] = {
        { "127.0.0.1:80", "127.0.0.1:80" },
        { "[::1]:65535", "[::1]:65535" },
        { "[127.0.0.1]:1", "127.0.0.1:1" },
        { "unix:/run/a.sock", "unix:/run/a.sock" },
        { "127.0.0.1:65536", NULL },
        { "127.0.0.1", NULL },
        { "127.0.0.1:", NULL },
        { "127.0.0.1:8a", NULL },
        { "::1:80", NULL },
        { "name:80", NULL },
        { "unix:", NULL },
        { "", NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[TRP_IO_ADDRESS_BYTES_MAX];
        trp_io_address address;

        UNIT_EQUAL(trp_io_address_parse(rows[i].text, &address),
                   rows[i].again != NULL ? TRP_OK : TRP_EINVAL);
        if (rows[i].again != NULL) {
            UNIT_TEXT(trp_io_address_text(&address, text, sizeof text), rows[i].again);
        }
    }
}

static void
a_path_has_at_most_the_bytes_that_a_socket_takes(void)
{
    char text[TRP_IO_PATH_BYTES_MAX + 7] = "unix:";
    trp_io_address address;

    memset(text + 5, 'a', TRP_IO_PATH_BYTES_MAX);
    text[5 + TRP_IO_PATH_BYTES_MAX] = '\0';
    UNIT_EQUAL(trp_io_address_parse(text, &address), TRP_OK);
    text[5 + TRP_IO_PATH_BYTES_MAX] = 'a';
    text[6 + TRP_IO_PATH_BYTES_MAX] = '\0';
    UNIT_EQUAL(trp_io_address_parse(text, &address), TRP_EINVAL);
}

UNIT_BEGIN("address")
UNIT(addresses_are_read_and_written)
UNIT(a_path_has_at_most_the_bytes_that_a_socket_takes)
UNIT_END
