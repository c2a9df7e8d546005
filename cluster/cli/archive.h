/* archive.h - an archive of a few texts, in the format of tar in that of gzip. */
#ifndef TRPI_CLI_ARCHIVE_H
#define TRPI_CLI_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TRPI_ARCHIVE_NAME_BYTES_MAX 99u
#define TRPI_ARCHIVE_FILE_BYTES_MAX (64u << 20)

typedef struct trpi_archive {
    FILE *file; /* borrowed */
    uint32_t crc;
    uint64_t bytes; /* of the tar so far */
    int64_t time_s; /* of each file, since 1970 */
    bool failed;    /* a write, or a name or text that is too long */
} trpi_archive;

/* Begin to write to file, which is empty. */
void trpi_archive_begin(trpi_archive *archive, FILE *file, int64_t time_s);
void trpi_archive_add(trpi_archive *archive, const char *name, const char *text, size_t bytes);
/* Write the end. false: it could not be written whole. */
bool trpi_archive_end(trpi_archive *archive);

#endif
