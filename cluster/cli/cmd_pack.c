/* cmd_pack.c - `pack DIR [FILE]`: an application as one file, for the directory of a node's
 * applications.
 *
 * Shape.   DIR/FILE --read--> NAME/FILE in a tar.gz, NAME/MANIFEST at its end. Nothing is run.
 * Limits.  FILES_MAX files, TRPI_ARCHIVE_FILE_BYTES_MAX bytes of one; no directories inside.
 * Tests.   tests/system/apps.sh
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/base.h>

#include "base/alloc.h"
#include "cluster/cli/archive.h"
#include "cluster/cli/cli.h"

enum { FILES_MAX = 1000, PATH_BYTES_MAX = 4096, NAME_BYTES_MAX = 63 };
#define SYMBOL "trp_bootable_v1"

typedef struct packing {
    const char *directory, *name; /* name: the last part of directory */
    trpi_archive archive;
    trpi_buffer manifest;
    bool has_object;
} packing;

/* Read a file whole. Gives *ret_bytes (trpi_free). 0, or the errno. */
static int
file_read(const char *path, char **ret_bytes, size_t *ret_count)
{
    struct stat stat;
    FILE *file = fopen(path, "rbe");
    if (file == NULL || fstat(fileno(file), &stat) != 0) {
        int error = errno;
        if (file != NULL) {
            (void)fclose(file);
        }
        return error;
    }
    bool fits = S_ISREG(stat.st_mode) && (uint64_t)stat.st_size <= TRPI_ARCHIVE_FILE_BYTES_MAX;
    char *bytes = fits ? trpi_alloc((size_t)stat.st_size + 1) : NULL;
    size_t count = bytes == NULL ? 0 : fread(bytes, 1, (size_t)stat.st_size, file);
    bool whole = bytes != NULL && count == (size_t)stat.st_size;
    (void)fclose(file);
    if (!whole) {
        trpi_free(bytes);
        return fits ? EIO : EFBIG;
    }
    *ret_bytes = bytes;
    *ret_count = count;
    return 0;
}

static int
file_pack(packing *p, const char *file)
{
    char path[PATH_BYTES_MAX], name[TRPI_ARCHIVE_NAME_BYTES_MAX + 1], object[NAME_BYTES_MAX + 4];
    char line[TRPI_ARCHIVE_NAME_BYTES_MAX + 40];
    char *bytes = NULL;
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/%s", p->directory, file);
    (void)snprintf(object, sizeof object, "%s.so", p->name);
    if ((size_t)snprintf(name, sizeof name, "%s/%s", p->name, file) >= sizeof name) {
        return trpi_cli_fail(TRPI_CTL_EXIT_DATA, "%s: the name is too long, at most %u bytes", path,
                             TRPI_ARCHIVE_NAME_BYTES_MAX);
    }
    int error = file_read(path, &bytes, &count);
    if (error != 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_DATA, "%s: %s; expected files of at most %u MiB", path,
                             strerror(error), TRPI_ARCHIVE_FILE_BYTES_MAX >> 20);
    }
    if (strcmp(file, object) == 0) {
        p->has_object = true;
        if (memmem(bytes, count, SYMBOL, sizeof SYMBOL) == NULL) {
            trpi_free(bytes);
            return trpi_cli_fail(TRPI_CTL_EXIT_DATA,
                                 "%s: it has no symbol " SYMBOL " (see troupe/bootable.h)", path);
        }
    }
    trpi_archive_add(&p->archive, name, bytes, count);
    trpi_free(bytes);
    (void)snprintf(line, sizeof line, "%zu %s\n", count, file);
    return trpi_buffer_append(&p->manifest, line, strlen(line), TRPI_BUFFER_NO_LIMIT) == TRP_OK
               ? 0
               : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
is_packed(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "MANIFEST") != 0;
}

static int
files_pack(packing *p)
{
    struct dirent **entries = NULL;
    int count = scandir(p->directory, &entries, is_packed, alphasort), code = 0;
    if (count < 0 || count > FILES_MAX) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_DATA, "%s: %s", p->directory,
                             count < 0 ? strerror(errno) : "more than 1,000 files");
    }
    for (int i = 0; i < count; i++) {
        code = code == 0 ? file_pack(p, entries[i]->d_name) : code;
        free(entries[i]); /* scandir's */
    }
    free(entries);
    if (code == 0 && !p->has_object) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_DATA, "%s: expected %s.so in it, the application's code",
                             p->directory, p->name);
    }
    return code;
}

/* Write the archive into a file that was not there. */
static int
archive_write(packing *p, const char *path)
{
    char name[NAME_BYTES_MAX + sizeof "/MANIFEST"], head[NAME_BYTES_MAX + 80];
    struct stat stat;
    FILE *file = fopen(path, "wbxe");
    if (file == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_OUTPUT, "%s: %s", path, strerror(errno));
    }
    int64_t time_s = lstat(p->directory, &stat) == 0 ? stat.st_mtime : 0;
    trpi_archive_begin(&p->archive, file, time_s);
    (void)snprintf(head, sizeof head, "application %s\ntroupe %d.%d.%d\n", p->name,
                   TRP_VERSION_MAJOR, TRP_VERSION_MINOR, TRP_VERSION_PATCH);
    int code = trpi_buffer_append(&p->manifest, head, strlen(head), TRPI_BUFFER_NO_LIMIT) == TRP_OK
                   ? files_pack(p)
                   : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    (void)snprintf(name, sizeof name, "%s/MANIFEST", p->name);
    trpi_archive_add(&p->archive, name, (const char *)p->manifest.data, p->manifest.count);
    bool whole = trpi_archive_end(&p->archive);
    whole = fclose(file) == 0 && whole;
    if (code == 0 && !whole) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_OUTPUT, "%s: it could not be written whole", path);
    }
    if (code != 0) {
        (void)unlink(path);
    }
    return code;
}

int
trpi_cli_run_pack(trpi_cli *cli)
{
    char directory[PATH_BYTES_MAX], path[NAME_BYTES_MAX + sizeof ".tar.gz"];
    packing p = { .directory = directory };
    size_t bytes = strlen(cli->args[0]);
    while (bytes > 1 && cli->args[0][bytes - 1] == '/') {
        bytes--;
    }
    if (bytes + TRPI_ARCHIVE_NAME_BYTES_MAX + 2 > sizeof directory) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "the path is too long");
    }
    memcpy(directory, cli->args[0], bytes);
    directory[bytes] = '\0';
    const char *slash = strrchr(directory, '/');
    p.name = slash == NULL ? directory : slash + 1;
    if (p.name[0] == '\0' || p.name[0] == '.' || strlen(p.name) > NAME_BYTES_MAX) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "%s: expected a directory that is named as the application, with at "
                             "most %d characters",
                             directory, NAME_BYTES_MAX);
    }
    (void)snprintf(path, sizeof path, "%s.tar.gz", p.name);
    const char *to = cli->args_count > 1 ? cli->args[1] : path;
    int code = archive_write(&p, to);
    trpi_buffer_fini(&p.manifest);
    if (code == 0) {
        (void)puts(to);
        trpi_cli_note(cli, "next: tar xzf %s -C APPS, where a node runs with --apps APPS", to);
    }
    return code;
}
