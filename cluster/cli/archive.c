/* archive.c - writes a .tar.gz without compressing it.
 *
 * Why.     A report is sent to somebody, so it is one file in a format that every system unpacks.
 *          The program links libc and cJSON only; deflate has stored blocks, and a report is small.
 * Shape.   gzip: header, stored blocks (length, its complement, bytes), an empty last block, the
 *          CRC and the length. In the blocks ustar: for each file a header of 512 bytes and its
 *          bytes, both padded to 512; two empty headers end it.
 * Limits.  TRPI_ARCHIVE_NAME_BYTES_MAX, TRPI_ARCHIVE_FILE_BYTES_MAX.
 * Tests.   tests/unit/cli/archive_test.c, tests/system/cli_fake.sh
 * Sources. RFC 1951, section 3.2.4; RFC 1952; POSIX.1-2017, pax, "ustar Interchange Format"
 */
#include "cluster/cli/archive.h"

#include <string.h>

#define BLOCK_BYTES 512u
#define STORED_BYTES_MAX 65535u

/* ---- gzip ------------------------------------------------------------------------------------ */

static void
raw_write(trpi_archive *archive, const void *bytes, size_t count)
{
    archive->failed = archive->failed || fwrite(bytes, 1, count, archive->file) != count;
}

static uint32_t
crc_add(uint32_t crc, const uint8_t *bytes, size_t count)
{
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

static void
stored_write(trpi_archive *archive, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        size_t part = count < STORED_BYTES_MAX ? count : STORED_BYTES_MAX;
        uint8_t head[5] = { 0, (uint8_t)part, (uint8_t)(part >> 8), (uint8_t)~part,
                            (uint8_t)(~part >> 8) };
        raw_write(archive, head, sizeof head);
        raw_write(archive, bytes, part);
        archive->crc = crc_add(archive->crc, bytes, part);
        archive->bytes += part;
        bytes += part;
        count -= part;
    }
}

static void
u32_write(trpi_archive *archive, uint32_t number)
{
    uint8_t bytes[4] = { (uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16),
                         (uint8_t)(number >> 24) };
    raw_write(archive, bytes, sizeof bytes);
}

/* ---- tar ------------------------------------------------------------------------------------- */

static void
header_fill(uint8_t header[BLOCK_BYTES], const char *name, size_t bytes, int64_t time_s)
{
    char field[16];
    unsigned sum = 0;
    memset(header, 0, BLOCK_BYTES);
    memcpy(header, name, strlen(name));
    memcpy(header + 100, "0000644", 8);
    memcpy(header + 108, "0000000", 8);
    memcpy(header + 116, "0000000", 8);
    (void)snprintf(field, sizeof field, "%011o", (unsigned)bytes);
    memcpy(header + 124, field, 12);
    (void)snprintf(field, sizeof field, "%011llo", (unsigned long long)time_s & 077777777777ull);
    memcpy(header + 136, field, 12);
    memset(header + 148, ' ', 8); /* the checksum counts as blanks */
    header[156] = '0';
    memcpy(header + 257, "ustar", 6);
    memcpy(header + 263, "00", 2);
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        sum += header[i];
    }
    (void)snprintf(field, sizeof field, "%06o", sum);
    memcpy(header + 148, field, 7);
}

void
trpi_archive_begin(trpi_archive *archive, FILE *file, int64_t time_s)
{
    static const uint8_t head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
    memset(archive, 0, sizeof *archive);
    archive->file = file;
    archive->time_s = time_s > 0 ? time_s : 0;
    raw_write(archive, head, sizeof head);
}

void
trpi_archive_add(trpi_archive *archive, const char *name, const char *text, size_t bytes)
{
    static const uint8_t zeros[BLOCK_BYTES];
    uint8_t header[BLOCK_BYTES];
    if (strlen(name) > TRPI_ARCHIVE_NAME_BYTES_MAX || bytes > TRPI_ARCHIVE_FILE_BYTES_MAX) {
        archive->failed = true;
        return;
    }
    header_fill(header, name, bytes, archive->time_s);
    stored_write(archive, header, sizeof header);
    stored_write(archive, (const uint8_t *)text, bytes);
    stored_write(archive, zeros, (BLOCK_BYTES - bytes % BLOCK_BYTES) % BLOCK_BYTES);
}

bool
trpi_archive_end(trpi_archive *archive)
{
    static const uint8_t zeros[2 * BLOCK_BYTES];
    static const uint8_t last[5] = { 1, 0, 0, 0xff, 0xff }; /* an empty block, the last one */
    stored_write(archive, zeros, sizeof zeros);
    raw_write(archive, last, sizeof last);
    u32_write(archive, archive->crc);
    u32_write(archive, (uint32_t)archive->bytes);
    return !archive->failed;
}
