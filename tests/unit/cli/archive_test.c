/* archive_test.c - the archive of `report`: its bytes and limits. That tar reads it is tested by
 * tests/system/cli_fake.sh. */
#include <stdlib.h>

#include "cluster/cli/archive.h"
#include "tests/unit/unit.h"

/* Make an archive with one file; return its bytes. */
static size_t
archive_made(const char *name, size_t bytes, uint8_t *ret, size_t room, bool *ret_ok)
{
    trpi_archive archive;
    FILE *file = tmpfile();
    char *text = calloc(1, bytes + 1);
    UNIT_REQUIRE(file != NULL && text != NULL);
    trpi_archive_begin(&archive, file, 1000000000);
    trpi_archive_add(&archive, name, text, bytes);
    *ret_ok = trpi_archive_end(&archive);
    rewind(file);
    size_t got = fread(ret, 1, room, file);
    fclose(file);
    free(text);
    return got;
}

static void
an_archive_begins_as_gzip_and_ends_with_its_length(void)
{
    static uint8_t out[200000];
    bool ok = false;
    size_t bytes = archive_made("a/b.json", 3, out, sizeof out, &ok);
    UNIT_TRUE(ok);
    UNIT_EQUAL(out[0], 0x1f);
    UNIT_EQUAL(out[1], 0x8b);
    uint32_t length = 0; /* header, block, two empty headers */
    for (size_t i = 0; i < 4; i++) {
        length |= (uint32_t)out[bytes - 4 + i] << (8 * i);
    }
    UNIT_EQUAL(length, 512 + 512 + 1024);
    UNIT_EQUAL(memcmp(out + 10 + 5, "a/b.json", 9), 0);
    /* RFC 1952: of a block of more than 65,535 bytes */
    bytes = archive_made("a", 65536, out, sizeof out, &ok);
    UNIT_TRUE(ok);
    UNIT_EQUAL(bytes, 10 + (5 + 512) + (5 + 65535) + (5 + 1) + (5 + 1024) + 5 + 8);
}

/* TRPI_ARCHIVE_NAME_BYTES_MAX, TRPI_ARCHIVE_FILE_BYTES_MAX: at it, and one past */
static void
names_and_files_are_limited(void)
{
    static uint8_t out[4096];
    char name[TRPI_ARCHIVE_NAME_BYTES_MAX + 2];
    bool ok = false;
    memset(name, 'x', sizeof name);
    name[TRPI_ARCHIVE_NAME_BYTES_MAX + 1] = '\0';
    (void)archive_made(name, 1, out, sizeof out, &ok);
    UNIT_FALSE(ok);
    name[TRPI_ARCHIVE_NAME_BYTES_MAX] = '\0';
    (void)archive_made(name, 1, out, sizeof out, &ok);
    UNIT_TRUE(ok);
    (void)archive_made("a", TRPI_ARCHIVE_FILE_BYTES_MAX + 1, out, sizeof out, &ok);
    UNIT_FALSE(ok);
    (void)archive_made("a", TRPI_ARCHIVE_FILE_BYTES_MAX, out, sizeof out, &ok);
    UNIT_TRUE(ok);
}

UNIT_BEGIN("archive")
UNIT(an_archive_begins_as_gzip_and_ends_with_its_length)
UNIT(names_and_files_are_limited)
UNIT_END
