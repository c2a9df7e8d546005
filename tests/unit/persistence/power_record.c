/* power_record.c - see power_record.h. This program has the functions that LMDB writes with. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/unit/persistence/power_record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* LMDB must find these in the program, before libc's. */
#define RECORDED __attribute__((visibility("default")))

#define PAGE_BYTES 4096u
#define SECTOR_BYTES 512u

/* ---- the recorder ---------------------------------------------------------------------------- */

power_recorder recorder = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
step_add(step_kind kind, bool is_flushed, uint64_t offset, const void *data, size_t bytes)
{
    pthread_mutex_lock(&recorder.lock);
    if (recorder.steps_count == STEPS_MAX) {
        abort();
    }
    step *to = &recorder.steps[recorder.steps_count++];
    *to = (step){ kind, is_flushed, offset, (uint32_t)bytes, NULL };
    if (data != NULL) {
        to->data = malloc(bytes);
        memcpy(to->data, data, bytes);
    }
    pthread_mutex_unlock(&recorder.lock);
}

static bool
is_recorded(int fd)
{
    struct stat status;
    return recorder.is_on && fstat(fd, &status) == 0 && status.st_ino == recorder.file;
}

static void
write_note(int fd, const void *data, size_t bytes, off_t offset)
{
    if (is_recorded(fd)) {
        bool is_flushed = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
        step_add(STEP_WRITE, is_flushed, (uint64_t)offset, data, bytes);
    }
}

RECORDED ssize_t
pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (next == NULL) {
        next = (ssize_t(*)(int, const void *, size_t, off_t))(uintptr_t)dlsym(RTLD_NEXT, "pwrite");
    }
    if (recorder.write_errno != 0) {
        errno = recorder.write_errno;
        return -1;
    }
    write_note(fd, data, bytes, offset);
    return next(fd, data, bytes, offset);
}

RECORDED ssize_t
writev(int fd, const struct iovec *parts, int count)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    if (next == NULL) {
        next = (ssize_t(*)(int, const struct iovec *, int))(uintptr_t)dlsym(RTLD_NEXT, "writev");
    }
    if (recorder.write_errno != 0 && lseek(fd, 0, SEEK_CUR) >= 0) {
        errno = recorder.write_errno;
        return -1;
    }
    if (is_recorded(fd)) {
        off_t offset = lseek(fd, 0, SEEK_CUR);
        for (int i = 0; i < count; i++) {
            write_note(fd, parts[i].iov_base, parts[i].iov_len, offset);
            offset += (off_t)parts[i].iov_len;
        }
    }
    return next(fd, parts, count);
}

RECORDED int
fdatasync(int fd)
{
    static int (*next)(int);
    if (next == NULL) {
        next = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "fdatasync");
    }
    if (recorder.sync_errno != 0) {
        errno = recorder.sync_errno;
        return -1;
    }
    int result = next(fd);
    if (result == 0 && is_recorded(fd)) {
        step_add(STEP_FLUSH, true, 0, NULL, 0);
    }
    return result;
}

RECORDED int
fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    static int (*next)(int, int, off_t, off_t);
    if (next == NULL) {
        next = (int (*)(int, int, off_t, off_t))(uintptr_t)dlsym(RTLD_NEXT, "fallocate");
    }
    if (recorder.room_errno != 0) {
        errno = recorder.room_errno;
        return -1;
    }
    return next(fd, mode, offset, bytes);
}

void
record_free(void)
{
    recorder.is_on = false;
    for (uint32_t i = 0; i < recorder.steps_count; i++) {
        free(recorder.steps[i].data);
    }
    recorder.steps_count = 0;
}

/* ---- a journal in a directory ---------------------------------------------------------------- */

void
book_path(const book *b, const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", b->directory, name);
}

void
book_make(book *b)
{
    (void)snprintf(b->directory, sizeof b->directory, "%s/troupe-power-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    UNIT_REQUIRE(mkdtemp(b->directory) != NULL);
}

void
book_remove(const book *b)
{
    static const char *const names[] = { "data.mdb", "lock.mdb", "owner" };
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        book_path(b, names[i], path);
        (void)unlink(path);
    }
    (void)rmdir(b->directory);
}

trp_err
book_open(book *b)
{
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    options.directory = b->directory;
    options.size_max = 8 * MIB;
    return trp_journal_lmdb_open(&options, &b->driver, NULL, 0);
}

void
book_close(book *b)
{
    b->driver->close(b->driver->arg);
}

trp_err
book_claim(book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_CLAIM;
    op.scope = "s";
    op.writer = "w";
    trp_err err = trp_journal_call(b->driver, &op);
    b->epoch = err == TRP_OK ? op.ret_epoch : b->epoch;
    return err;
}

void
record_begin(const book *b)
{
    char path[128];
    struct stat status;
    book_path(b, "data.mdb", path);
    UNIT_REQUIRE(stat(path, &status) == 0);
    recorder.file = status.st_ino;
    int fd = open(path, O_RDONLY);
    for (off_t at = 0; at < status.st_size; at += PAGE_BYTES) { /* what is there at first */
        unsigned char page[PAGE_BYTES];
        UNIT_REQUIRE(pread(fd, page, sizeof page, at) == (ssize_t)sizeof page);
        if (page[0] != 0 || memcmp(page, page + 1, sizeof page - 1) != 0) {
            step_add(STEP_WRITE, true, (uint64_t)at, page, sizeof page);
        }
    }
    (void)close(fd);
    recorder.first = recorder.steps_count;
    recorder.is_on = true;
}

/* ---- images ---------------------------------------------------------------------------------- */

uint64_t
draw(uint64_t *seed, uint64_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed % below;
}

uint64_t
asked(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? strtoull(value, NULL, 10) : otherwise;
}

/* Put a page that was not flushed into the image: whole, torn at sectors, or not. */
static void
page_put(unsigned char *image, const step *from, uint64_t *seed)
{
    uint64_t fate = draw(seed, 3);
    for (uint32_t at = 0; at < from->bytes; at += SECTOR_BYTES) {
        uint32_t bytes = from->bytes - at < SECTOR_BYTES ? from->bytes - at : SECTOR_BYTES;
        if (fate == 0 || (fate == 1 && draw(seed, 2) == 0)) {
            memcpy(image + from->offset + at, from->data + at, bytes);
        }
    }
}

size_t image_bytes = MIB;

size_t
image_make(unsigned char *image, uint32_t end, uint32_t skip_flush, uint64_t *seed,
           uint64_t acknowledged[IDS])
{
    uint32_t last_flush = 0;
    size_t length = 0;
    uint32_t flushes = 0;
    memset(acknowledged, 0, IDS * sizeof *acknowledged);
    memset(image, 0, image_bytes);
    for (uint32_t i = 0; i < end; i++) {
        last_flush =
            recorder.steps[i].kind == STEP_FLUSH && flushes++ != skip_flush ? i : last_flush;
    }
    for (uint32_t i = 0; i < end; i++) {
        const step *s = &recorder.steps[i];
        if (s->kind == STEP_ACKNOWLEDGED) {
            acknowledged[s->bytes] = s->offset;
        } else if (s->kind == STEP_WRITE) {
            if (s->offset + s->bytes > image_bytes) {
                abort();
            }
            length = s->offset + s->bytes > length ? s->offset + s->bytes : length;
            if (i < last_flush || s->is_flushed) {
                memcpy(image + s->offset, s->data, s->bytes);
            } else {
                page_put(image, s, seed);
            }
        }
    }
    return length;
}
