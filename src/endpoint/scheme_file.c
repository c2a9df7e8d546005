/* scheme_file.c - file:DIR, each file that appears in a folder; or files that are written there.
 *
 * Shape.   DIR/NAME -> message -> done: DIR/.done/NAME, or gone; failed: DIR/.failed/NAME
 *          A file is looked at when its name is there: who writes it renames it into DIR, as a
 *          producer does. Names that begin with a dot, folders, links and devices are not files.
 * Must hold.
 *   scheme-file-D1  A file stays in DIR until its message is settled.
 *   scheme-file-D2  No name leads out of DIR: names come from its list, or have no '/'.
 *   scheme-file-D3  A produced file has its name when all of it is on the disk.
 *   scheme-file-D4  What is moved or deleted is the file that was read: another one that has its
 *       name meanwhile is consumed in its turn.
 *   scheme-file-D5  A file that cannot be opened for want of descriptors or memory is read later.
 * Limits.  message_bytes_max; names of 255 bytes.
 * Tests.   tests/unit/endpoint/consumer_test.c, tests/unit/endpoint/producer_test.c
 * Sources. CAM-03, CAM-10
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"

enum { DELAY_MS = 500, NAME_BYTES = 256 };

/* A file whose message is on its way. */
typedef struct taken {
    char name[NAME_BYTES]; /* "": none */
    struct stat status;    /* as it was read; scheme-file-D4 */
} taken;

typedef struct folder {
    int fd;
    uint32_t delay_ms, deletes, count;
    const char *match, *done, *failed;
    bool lacks;   /* the last time there was no descriptor, or no memory */
    taken *takes; /* of messages that are not settled; pending_max of them */
} folder;

static bool
name_is_plain(const char *name)
{
    return name[0] != '\0' && strlen(name) < NAME_BYTES - 8 && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static trp_err
folder_read(const trpi_uri *uri, folder *f, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    f->delay_ms = DELAY_MS;
    f->match = trpi_uri_option(uri, "match", 0);
    f->done = trpi_uri_option(uri, "done", 0);
    f->failed = trpi_uri_option(uri, "failed", 0);
    f->done = f->done != NULL ? f->done : ".done";
    f->failed = f->failed != NULL ? f->failed : ".failed";
    trp_err err = trpi_uri_number(uri, "delay", 1, INT32_MAX, &f->delay_ms, reason);
    err = err == TRP_OK ? trpi_uri_number(uri, "delete", 0, 1, &f->deletes, reason) : err;
    if (err == TRP_OK && (!name_is_plain(f->done) || !name_is_plain(f->failed))) {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES,
                       "file: done and failed are names of folders in DIR, without /");
        err = TRP_EINVAL;
    }
    if (err == TRP_OK && uri->path[0] == '\0') {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES, "file: needs a folder, file:DIR");
        err = TRP_EINVAL;
    }
    return err;
}

static trp_err
folder_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    folder f = { .deletes = 0 };
    return folder_read(uri, &f, ret_reason);
}

static trp_err
errno_tell(trpi_endpoint *e, const char *what, const char *name)
{
    return trpi_endpoint_errno(e, errno, "%s %.60s in %.60s", what, name, e->uri.path);
}

static trp_err
folder_open(trpi_endpoint *e)
{
    folder *f = trpi_alloc(sizeof *f);
    if (f == NULL) {
        return TRP_ENOMEM;
    }
    f->fd = -1;
    e->state = f;
    trp_err err = folder_read(&e->uri, f, e->reason);
    if (err == TRP_OK) {
        f->fd = open(e->uri.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = f->fd < 0 || faccessat(f->fd, ".", W_OK, 0) != 0
                  ? errno_tell(e, "cannot use", "the folder")
                  : TRP_OK;
    }
    return err;
}

static trp_err
folder_consume(trp_ctx *ctx, trpi_endpoint *e)
{
    trp_err err = folder_open(e);
    folder *f = e->state;
    if (err == TRP_OK && f->deletes == 0 && mkdirat(f->fd, f->done, 0777) != 0 && errno != EEXIST) {
        err = errno_tell(e, "cannot make", f->done);
    }
    if (err == TRP_OK && mkdirat(f->fd, f->failed, 0777) != 0 && errno != EEXIST) {
        err = errno_tell(e, "cannot make", f->failed);
    }
    if (err == TRP_OK) {
        f->takes = trpi_alloc(e->args.options.pending_max * sizeof *f->takes);
        err = f->takes == NULL ? TRP_ENOMEM : TRP_OK;
    }
    if (err == TRP_OK) {
        trpi_consumer_timer(ctx, e, 0, f->delay_ms);
    }
    return err;
}

static void
folder_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    folder *f = e->state;
    (void)ctx;
    if (f != NULL) {
        if (f->fd >= 0) {
            (void)close(f->fd);
        }
        trpi_free(f->takes);
        trpi_free(f);
        e->state = NULL;
    }
}

/* ---- consuming ------------------------------------------------------------------------------- */

/* Is this an error of the process, and not of the file? */
static bool
errno_passes(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* Move a file to where done or failed ones are. scheme-file-D4 */
static trp_err
file_put_away(trpi_endpoint *e, const char *name, const struct stat *as, trp_err verdict)
{
    const folder *f = e->state;
    char to[2 * NAME_BYTES];
    struct stat now;
    if (fstatat(f->fd, name, &now, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno_tell(e, "cannot find", name);
    }
    if (now.st_dev != as->st_dev || now.st_ino != as->st_ino ||
        now.st_mtim.tv_sec != as->st_mtim.tv_sec || now.st_mtim.tv_nsec != as->st_mtim.tv_nsec) {
        return TRP_OK;
    }
    if (verdict == TRP_OK && f->deletes != 0) {
        return unlinkat(f->fd, name, 0) == 0 ? TRP_OK : errno_tell(e, "cannot delete", name);
    }
    (void)snprintf(to, sizeof to, "%s/%s", verdict == TRP_OK ? f->done : f->failed, name);
    return renameat(f->fd, name, f->fd, to) == 0 ? TRP_OK : errno_tell(e, "cannot move", name);
}

static trp_err
folder_settle(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err,
              const trpi_endpoint_send *reply)
{
    folder *f = e->state;
    taken *t = &f->takes[token];
    (void)ctx;
    (void)reply;
    trpi_assert(t->name[0] != '\0');
    trp_err own = file_put_away(e, t->name, &t->status, err);
    t->name[0] = '\0';
    return own;
}

static trp_err
file_read(const trpi_endpoint *e, int fd, struct stat *ret_status, trp_bytes *ret_body)
{
    uint8_t *data;
    size_t done = 0;
    if (fstat(fd, ret_status) != 0) {
        return TRP_EIO;
    }
    if ((uint64_t)ret_status->st_size > e->args.options.message_bytes_max) {
        return TRP_EMSGSIZE;
    }
    size_t bytes = (size_t)ret_status->st_size;
    *ret_body = TRP_BYTES_EMPTY;
    if (bytes == 0) {
        return TRP_OK;
    }
    trp_err err = trp_bytes_new(bytes, &data, ret_body);
    while (err == TRP_OK && done < bytes) {
        ssize_t got = read(fd, data + done, bytes - done);
        if (got <= 0 && !(got < 0 && errno == EINTR)) { /* an error, or it was cut meanwhile */
            trp_bytes_unref(ret_body);
            return TRP_EIO;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return err;
}

/* True: it is none of ours, or is on its way already. */
static bool
file_is_skipped(const trpi_endpoint *e, const char *name, struct stat *ret_status)
{
    const folder *f = e->state;
    if (name[0] == '.' || strlen(name) >= NAME_BYTES ||
        (f->match != NULL && fnmatch(f->match, name, FNM_PERIOD) != 0) ||
        fstatat(f->fd, name, ret_status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(ret_status->st_mode)) {
        return true;
    }
    for (uint32_t i = 0; i < e->args.options.pending_max; i++) {
        if (strcmp(f->takes[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* scheme-file-D5 */
static void
lack_log(trp_ctx *ctx, trpi_endpoint *e, const char *what)
{
    folder *f = e->state;
    if (!f->lacks) {
        trp_log(ctx, TRP_LOG_WARNING, "no descriptor or no memory to read %s: it is tried again",
                what);
    }
    f->lacks = true;
}

/* False: not now, nor another one. The status is that of its name. */
static bool
file_deliver(trp_ctx *ctx, trpi_endpoint *e, const char *name, struct stat *status)
{
    folder *f = e->state;
    trp_bytes body = TRP_BYTES_EMPTY;
    uint32_t token = 0;
    int fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        return true; /* somebody else took it */
    }
    trp_err err = fd >= 0               ? file_read(e, fd, status, &body)
                  : errno_passes(errno) ? TRP_ENOMEM
                                        : errno_tell(e, "cannot read", name);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (err == TRP_ENOMEM) {
        lack_log(ctx, e, name);
        return false;
    }
    f->lacks = false;
    if (err != TRP_OK) {
        char reason[TRP_ENDPOINT_REASON_BYTES];
        (void)snprintf(reason, sizeof reason, "%.120s: %s; it goes to %.40s", name,
                       err == TRP_EMSGSIZE ? "longer than message_bytes_max" : "not readable",
                       f->failed);
        trpi_endpoint_error_tell(ctx, e, e->args.options.handler, 0, 0, err, reason);
        if (file_put_away(e, name, status, err) != TRP_OK) {
            trp_log(ctx, TRP_LOG_WARNING, "%s; it is tried again", e->reason);
        }
        return true;
    }
    while (f->takes[token].name[0] != '\0') {
        token++;
    }
    trpi_assert(token < e->args.options.pending_max);
    (void)snprintf(f->takes[token].name, NAME_BYTES, "%s", name);
    f->takes[token].status = *status;
    const trp_endpoint_header header = { "file.name", f->takes[token].name };
    (void)trpi_consumer_deliver(ctx, e, token, body, &header, 1);
    return true;
}

static bool
folder_poll(trp_ctx *ctx, trpi_endpoint *e)
{
    const folder *f = e->state;
    int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    struct stat status;
    bool more = false, goes = true;
    if (list == NULL) {
        int error = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        if (errno_passes(error)) {
            lack_log(ctx, e, e->uri.path);
            return false; /* the timer goes on */
        }
        trp_fail(ctx, TRP_EIO, "cannot list %s: %s", e->uri.path, strerrordesc_np(error));
    }
    while (!more && goes && (entry = readdir(list)) != NULL) {
        if (!file_is_skipped(e, entry->d_name, &status)) {
            more = trpi_consumer_room(e) == 0;
            goes = more || file_deliver(ctx, e, entry->d_name, &status);
        }
    }
    (void)closedir(list);
    return more;
}

/* ---- producing ------------------------------------------------------------------------------- */

static trp_err
folder_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    (void)ctx;
    return folder_open(e);
}

static bool
bytes_write(int fd, trp_bytes body)
{
    uint8_t part[16384];
    size_t length = trp_bytes_length(body);
    for (size_t at = 0; at < length;) {
        size_t now = trp_bytes_copy_out(body, at, part, sizeof part), done = 0;
        while (done < now) {
            ssize_t put = write(fd, part + done, now - done);
            if (put < 0 && errno != EINTR) {
                return false;
            }
            done += put > 0 ? (size_t)put : 0;
        }
        at += now;
    }
    return fsync(fd) == 0;
}

/* scheme-file-D3 */
static trp_err
file_write(trpi_endpoint *e, const char *name, trp_bytes body)
{
    const folder *f = e->state;
    char aside[NAME_BYTES + 8];
    (void)snprintf(aside, sizeof aside, ".%.247s.part", name);
    int fd = openat(f->fd, aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        return errno_tell(e, "cannot write", name);
    }
    trp_err err = bytes_write(fd, body) ? TRP_OK : errno_tell(e, "cannot write", name);
    (void)close(fd);
    if (err == TRP_OK && renameat(f->fd, aside, f->fd, name) != 0) {
        err = errno_tell(e, "cannot rename", name);
    }
    if (err != TRP_OK) {
        (void)unlinkat(f->fd, aside, 0);
        return err;
    }
    return fsync(f->fd) == 0 ? TRP_OK : errno_tell(e, "cannot flush", name);
}

static void
folder_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    folder *f = e->state;
    const trp_endpoint_message as = { .headers_count = send->headers_count,
                                      .headers = send->headers };
    const char *name = trp_endpoint_header_get(&as, "file.name");
    char own[64];
    if (name == NULL) {
        (void)snprintf(own, sizeof own, "%d-%llu-%u", (int)getpid(),
                       (unsigned long long)trp_now_ns(ctx), (unsigned)f->count++);
        name = own;
    }
    if (!name_is_plain(name) || name[0] == '.') {
        trpi_producer_finish(ctx, e, slot, TRP_EINVAL,
                             "file.name is empty, too long, begins with a dot or has a /", NULL,
                             NULL, 0);
        return;
    }
    trp_err err = file_write(e, name, send->body);
    trpi_producer_finish(ctx, e, slot, err, e->reason, NULL, NULL, 0);
}

static const char *const consumer_options[] = {
    "match", "delay", "done", "failed", "delete", NULL
};
static const char *const producer_options[] = { NULL };
const trpi_scheme trpi_scheme_file = { .name = "file",
                                       .consumer_options = consumer_options,
                                       .producer_options = producer_options,
                                       .check = folder_check,
                                       .consume = folder_consume,
                                       .produce = folder_produce,
                                       .stop = folder_stop,
                                       .poll = folder_poll,
                                       .settle = folder_settle,
                                       .send = folder_send };
