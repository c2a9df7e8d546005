/* cert_main.c - `troupe cert ca|node|renew|revoke|show` and `troupe cookie gen|hash`.
 *
 * Why.     An operator needs an authority, one certificate a host, and their expiry dates; not the
 *          hundred options of a general tool.
 * Must hold.
 *   cert-main-F1  A file that exists is never written over without --force, but by `renew` and
 *       `revoke`.
 *   cert-main-F2  A key is readable by its owner alone from its first byte on. (file_create)
 *   cert-main-F3  A file is replaced by renaming a whole one: a node that reads it meanwhile reads
 *       the old or the new one. (files_replace)
 * Tests.   tests/system/cert.sh
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/node.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/units.h"
#include "base/world.h"
#include "cluster/node/cert.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/node_log.h"

enum {
    FILE_BYTES_MAX = 1 << 20,
    FILES_MAX = 256, /* of one command */
    CA_DAYS = 3650,
    NODE_DAYS = 365,
    LIST_DAYS = 30,
    COOKIE_BYTES = 20,
    KEY_MODE = 0600,
    CERT_MODE = 0644,
    DIR_MODE = 0755
};
#define DAY_MS 86400000ll

static const char help[] =
    "usage: troupe cert ca NAME [--days N] [--dir DIR] [--force]\n"
    "       troupe cert node HOST... [--san NAME]... [--days N] [--dir DIR] [--force]\n"
    "       troupe cert renew FILE... [--days N] [--dir DIR]\n"
    "       troupe cert revoke FILE... [--days N] [--dir DIR]\n"
    "       troupe cert show [FILE]... [--within DAYS] [--dir DIR] [-o table|json]\n"
    "\n"
    "ca       make an authority: ca.pem, which every host gets, and ca.key, which stays here\n"
    "node     make a certificate for each HOST, a name or an address: HOST.pem and HOST.key\n"
    "renew    write FILE and its key anew: same names, new key, new time\n"
    "revoke   add certificates to the list crl.pem, which every host gets\n"
    "show     what each certificate of the files says and how long it lasts; exit 1 when one has\n"
    "         ended\n"
    "\n"
    "  --dir DIR       where ca.pem and ca.key are and files are written (default: here)\n"
    "  --san NAME      one more name or address of the host\n"
    "  --days N        valid so long (ca 3650, node 365); revoke: the list is due then (30)\n"
    "  --force         replace files that exist\n"
    "  --within DAYS   show: exit 1 also when one ends within so many days\n"
    "  -o, --output    show: table (default) or json\n";

typedef struct command {
    const char *verb, *dir;
    const char *words[FILES_MAX];
    size_t words_count;
    const char *names[TRPI_CERT_NAMES_MAX]; /* names[0] is the host's own */
    size_t names_count;
    long days, within;
    bool force, json;
    int64_t now_ms;
    char why[256];
} command;

static int __attribute__((format(printf, 2, 3))) cert_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("troupe: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputs("\n", stderr);
    va_end(args);
    return code;
}

static int
exit_of(trp_err err)
{
    return err == TRP_EINVAL  ? TRPI_CTL_EXIT_USAGE
           : err == TRP_EDATA ? TRPI_CTL_EXIT_DATA
                              : TRPI_CTL_EXIT_INTERNAL;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int
path_of(const command *c, const char *name, const char *ending, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/%s%s", c->dir, name, ending);
    return length > 0 && length < PATH_MAX ? 0
                                           : cert_fail(TRPI_CTL_EXIT_USAGE, "the path is too long");
}

/* "x/host1.pem" -> "x/host1.key" */
static int
key_path_of(const char *cert_path, char path[PATH_MAX])
{
    size_t bytes = strlen(cert_path);
    if (bytes < 5 || bytes >= PATH_MAX || strcmp(cert_path + bytes - 4, ".pem") != 0) {
        return cert_fail(TRPI_CTL_EXIT_USAGE, "%s: the name of a certificate ends with .pem",
                         cert_path);
    }
    memcpy(path, cert_path, bytes + 1);
    memcpy(path + bytes - 4, ".key", 4);
    return 0;
}

static int
file_read(const char *path, char **ret_text)
{
    FILE *file = fopen(path, "re");
    char *text = trpi_alloc(FILE_BYTES_MAX + 1);
    if (file == NULL || text == NULL) {
        int code = file == NULL ? cert_fail(TRPI_CTL_EXIT_NOT_FOUND, "cannot read %s: %s", path,
                                            strerror(errno))
                                : cert_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
        if (file != NULL) {
            (void)fclose(file);
        }
        trpi_free(text);
        return code;
    }
    size_t bytes = fread(text, 1, FILE_BYTES_MAX + 1, file);
    (void)fclose(file);
    if (bytes > FILE_BYTES_MAX) {
        trpi_free(text);
        return cert_fail(TRPI_CTL_EXIT_DATA, "%s is larger than %d bytes", path, FILE_BYTES_MAX);
    }
    text[bytes] = '\0';
    *ret_text = text;
    return 0;
}

/* Give a new file the owner, group and mode of the file that it replaces, if there is one. */
static bool
looks_like(int fd, const char *replaced, mode_t mode)
{
    struct stat old;
    if (replaced == NULL || stat(replaced, &old) != 0) {
        return fchmod(fd, mode) == 0;
    }
    mode = (old.st_mode | KEY_MODE) & (mode | S_IRGRP);
    return fchown(fd, old.st_uid, old.st_gid) == 0 && fchmod(fd, mode) == 0;
}

static int
file_create(const char *path, const char *replaced, mode_t mode, const char *text)
{
    /* cert-main-F1, cert-main-F2 */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
        return errno == EEXIST ? cert_fail(TRPI_CTL_EXIT_NO, "%s exists; --force replaces it", path)
                               : cert_fail(TRPI_CTL_EXIT_PERMISSION, "cannot write %s: %s", path,
                                           strerror(errno));
    }
    size_t bytes = strlen(text);
    ssize_t written = looks_like(fd, replaced, mode) ? write(fd, text, bytes) : -1;
    bool whole = written == (ssize_t)bytes && fsync(fd) == 0;
    int error = errno;
    if (close(fd) != 0 || !whole) {
        (void)unlink(path);
        return cert_fail(TRPI_CTL_EXIT_PERMISSION, "cannot write %s: %s", path, strerror(error));
    }
    return 0;
}

typedef struct replacement {
    const char *path;
    mode_t mode;
    const char *text;
    char beside[PATH_MAX]; /* the temporary name of the new file */
} replacement;

static int
beside_write(replacement *r)
{
    int length = snprintf(r->beside, sizeof r->beside, "%s.new", r->path);
    if (length <= 0 || (size_t)length >= sizeof r->beside) {
        return cert_fail(TRPI_CTL_EXIT_USAGE, "the path is too long");
    }
    if (unlink(r->beside) != 0 && errno != ENOENT) { /* left by an interrupted attempt */
        return cert_fail(TRPI_CTL_EXIT_PERMISSION, "cannot remove %s: %s", r->beside,
                         strerror(errno));
    }
    return file_create(r->beside, r->path, r->mode, r->text);
}

/* All files are written before the first one takes its name: a failure comes before any change.
 * cert-main-F3 */
static int
files_replace(replacement *all, size_t count)
{
    int code = 0;
    size_t written = 0, named = 0;
    while (written < count && (code = beside_write(&all[written])) == 0) {
        written++;
    }
    while (code == 0 && named < count) {
        if (rename(all[named].beside, all[named].path) != 0) {
            code = cert_fail(TRPI_CTL_EXIT_PERMISSION, "cannot write %s: %s", all[named].path,
                             strerror(errno));
        } else {
            named++;
        }
    }
    for (size_t i = named; i < written; i++) {
        (void)unlink(all[i].beside);
    }
    return code;
}

/* Certificate and key, both or none. The key first: a node that looks between the two finds a pair
 * that does not fit, and looks again. */
static int
pair_write(bool replace, const char *cert_path, const char *key_path, const char *cert,
           const char *key)
{
    if (replace) {
        replacement both[2] = { { .path = key_path, .mode = KEY_MODE, .text = key },
                                { .path = cert_path, .mode = CERT_MODE, .text = cert } };
        return files_replace(both, 2);
    }
    if (access(cert_path, F_OK) == 0) {
        return cert_fail(TRPI_CTL_EXIT_NO, "%s exists; --force replaces it", cert_path);
    }
    int code = file_create(key_path, NULL, KEY_MODE, key);
    if (code == 0 && (code = file_create(cert_path, NULL, CERT_MODE, cert)) != 0) {
        (void)unlink(key_path);
    }
    return code;
}

static int
authority_read(const command *c, char **ret_cert, char **ret_key)
{
    char path[PATH_MAX];
    int code = path_of(c, "ca", ".pem", path);
    code = code != 0 ? code : file_read(path, ret_cert);
    if (code != 0) {
        return code;
    }
    code = path_of(c, "ca", ".key", path);
    code = code != 0 ? code : file_read(path, ret_key);
    if (code != 0) {
        trpi_free(*ret_cert);
    }
    return code;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Whole days; less than 0 for an expired certificate. */
static long
days_left(const command *c, int64_t end_ms)
{
    int64_t left_ms = end_ms - c->now_ms;
    return (long)(left_ms >= 0 ? left_ms / DAY_MS : -1 + (left_ms + 1) / DAY_MS);
}

static const char *
date_of(int64_t ms, char text[32])
{
    (void)trpi_time_format(ms, text, 32);
    text[10] = '\0'; /* the day is enough */
    return text;
}

static void
written_tell(const command *c, const char *cert_path, const char *key_path, const char *cert)
{
    trpi_cert_info info;
    char date[32], why[256];
    if (trpi_cert_read(cert, &info, why, sizeof why) == TRP_OK) {
        (void)printf("wrote %s and %s: %s%s%s, valid until %s (%ld days)\n", cert_path, key_path,
                     info.subject, *info.names ? " for " : "", info.names,
                     date_of(info.not_after_ms, date), days_left(c, info.not_after_ms));
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

static trpi_cert_request
request_of(const command *c, const char *subject, long days_default)
{
    long days = c->days > 0 ? c->days : days_default;
    trpi_cert_request request = { .subject = subject,
                                  .not_before_ms = c->now_ms - TRPI_CERT_SKEW_MS,
                                  .not_after_ms = c->now_ms + days * DAY_MS };
    return request;
}

static int
run_ca(command *c)
{
    char cert_path[PATH_MAX], key_path[PATH_MAX], *cert = NULL, *key = NULL;
    if (c->words_count != 1) {
        return cert_fail(TRPI_CTL_EXIT_USAGE, "cert ca takes one NAME");
    }
    trpi_cert_request request = request_of(c, c->words[0], CA_DAYS);
    if (path_of(c, "ca", ".pem", cert_path) != 0 || path_of(c, "ca", ".key", key_path) != 0) {
        return TRPI_CTL_EXIT_USAGE;
    }
    trp_err err = trpi_cert_make_authority(&request, &cert, &key, c->why, sizeof c->why);
    if (err != TRP_OK) {
        return cert_fail(exit_of(err), "%s", c->why);
    }
    int code = pair_write(c->force, cert_path, key_path, cert, key);
    if (code == 0) {
        written_tell(c, cert_path, key_path, cert);
    }
    trpi_free(cert);
    trpi_free(key);
    return code;
}

/* One certificate for names[]. */
static int
node_make(command *c, const char *ca_cert, const char *ca_key, const char *subject, bool replace,
          const char *cert_path, const char *key_path)
{
    char *cert = NULL, *key = NULL;
    char short_subject[TRPI_CERT_SUBJECT_BYTES_MAX + 1];
    trpi_cert_info ca;
    /* the names count, not the subject */
    (void)snprintf(short_subject, sizeof short_subject, "%s", subject);
    trpi_cert_request request = request_of(c, short_subject, NODE_DAYS);
    request.names = c->names;
    request.names_count = c->names_count;
    trp_err err = trpi_cert_read(ca_cert, &ca, c->why, sizeof c->why);
    if (err == TRP_OK && ca.not_after_ms <= c->now_ms) {
        return cert_fail(
            TRPI_CTL_EXIT_DATA,
            "the authority's certificate has expired; make a new authority with troupe cert ca");
    }
    err = err != TRP_OK
              ? err
              : trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, c->why, sizeof c->why);
    if (err != TRP_OK) {
        return cert_fail(exit_of(err), "%s", c->why);
    }
    int code = pair_write(replace, cert_path, key_path, cert, key);
    if (code == 0) {
        written_tell(c, cert_path, key_path, cert);
        if (request.not_after_ms > ca.not_after_ms) {
            (void)cert_fail(0, "warning: the authority's certificate expires before this one");
        }
    }
    trpi_free(cert);
    trpi_free(key);
    return code;
}

static int
run_node(command *c)
{
    char *ca_cert = NULL, *ca_key = NULL;
    size_t more = c->names_count - 1; /* --san; names[0] is free */
    if (c->words_count == 0 || (more > 0 && c->words_count != 1)) {
        return cert_fail(TRPI_CTL_EXIT_USAGE,
                         "cert node takes at least one HOST, and exactly one with --san");
    }
    int code = authority_read(c, &ca_cert, &ca_key);
    for (size_t i = 0; i < c->words_count && code == 0; i++) {
        char cert_path[PATH_MAX], key_path[PATH_MAX];
        if (strchr(c->words[i], '/') != NULL || c->words[i][0] == '.' ||
            strcmp(c->words[i], "ca") == 0) {
            code = cert_fail(TRPI_CTL_EXIT_USAGE, "'%s' is neither a host name nor an address",
                             c->words[i]);
            break;
        }
        c->names[0] = c->words[i];
        code = path_of(c, c->words[i], ".pem", cert_path);
        code = code != 0 ? code : path_of(c, c->words[i], ".key", key_path);
        code = code != 0
                   ? code
                   : node_make(c, ca_cert, ca_key, c->words[i], c->force, cert_path, key_path);
    }
    if (ca_key != NULL) {
        trpi_free(ca_cert);
        trpi_free(ca_key);
    }
    return code;
}

static int
run_renew(command *c)
{
    char *ca_cert = NULL, *ca_key = NULL;
    if (c->words_count == 0) {
        return cert_fail(TRPI_CTL_EXIT_USAGE, "cert renew takes at least one FILE");
    }
    int code = authority_read(c, &ca_cert, &ca_key);
    if (code != 0) {
        return code;
    }
    for (size_t i = 0; i < c->words_count && code == 0; i++) {
        char key_path[PATH_MAX], *old = NULL, *storage = NULL;
        trpi_cert_info info;
        code = key_path_of(c->words[i], key_path);
        code = code != 0 ? code : file_read(c->words[i], &old);
        if (code != 0) {
            break;
        }
        trp_err err = trpi_cert_read(old, &info, c->why, sizeof c->why);
        err = err != TRP_OK ? err : trpi_cert_names(old, c->names, &c->names_count, &storage);
        if (err != TRP_OK || info.is_authority || c->names_count == 0) {
            code =
                cert_fail(TRPI_CTL_EXIT_DATA, "%s is not the certificate of a node", c->words[i]);
        } else {
            code = node_make(c, ca_cert, ca_key, info.subject, true, c->words[i], key_path);
        }
        trpi_free(storage);
        trpi_free(old);
    }
    trpi_free(ca_cert);
    trpi_free(ca_key);
    return code;
}

static int
run_revoke(command *c)
{
    char path[PATH_MAX], date[32], *ca_cert = NULL, *ca_key = NULL, *old = NULL, *list = NULL;
    char *certs[FILES_MAX] = { NULL };
    if (c->words_count == 0 && c->days == 0) {
        return cert_fail(TRPI_CTL_EXIT_USAGE,
                         "cert revoke takes FILEs, or --days to prolong the list");
    }
    int code = path_of(c, "crl", ".pem", path);
    code = code != 0 ? code : authority_read(c, &ca_cert, &ca_key);
    if (code != 0) {
        return code;
    }
    if (access(path, F_OK) == 0) {
        code = file_read(path, &old);
    }
    for (size_t i = 0; i < c->words_count && code == 0; i++) {
        code = file_read(c->words[i], &certs[i]);
    }
    int64_t next_ms = c->now_ms + (c->days > 0 ? c->days : LIST_DAYS) * DAY_MS;
    if (code == 0) {
        trp_err err =
            trpi_cert_revoke(ca_cert, ca_key, old, (const char *const *)certs, c->words_count,
                             c->now_ms, next_ms, &list, c->why, sizeof c->why);
        replacement new_list = { .path = path, .mode = CERT_MODE, .text = list };
        code = err == TRP_OK ? files_replace(&new_list, 1) : cert_fail(exit_of(err), "%s", c->why);
    }
    if (code == 0) {
        (void)printf("wrote %s: %zu more, due again on %s\n", path, c->words_count,
                     date_of(next_ms, date));
    }
    for (size_t i = 0; i < c->words_count; i++) {
        trpi_free(certs[i]);
    }
    trpi_free(list);
    trpi_free(old);
    trpi_free(ca_cert);
    trpi_free(ca_key);
    return code;
}

static bool
show_json(cJSON *array, const char *path, unsigned number, const trpi_cert_info *info, long left)
{
    char from[32], until[32];
    cJSON *row = cJSON_CreateObject();
    return cJSON_AddItemToArray(array, row) && trpi_json_add_text(row, "file", path) &&
           trpi_json_add_text(row, "subject", info->subject) &&
           trpi_json_add_text(row, "issuer", info->issuer) &&
           trpi_json_add_text(row, "names", info->names) &&
           cJSON_AddBoolToObject(row, "authority", info->is_authority) != NULL &&
           trpi_json_add_text(row, "notBefore",
                              trpi_time_format(info->not_before_ms, from, sizeof from)) &&
           trpi_json_add_text(row, "notAfter",
                              trpi_time_format(info->not_after_ms, until, sizeof until)) &&
           cJSON_AddNumberToObject(row, "daysLeft", (double)left) != NULL &&
           trpi_json_add_text(row, "serial", info->serial) &&
           trpi_json_add_text(row, "sha256", info->digest) &&
           cJSON_AddNumberToObject(row, "number", (double)number) != NULL;
}

static void
show_text(const char *path, unsigned number, const trpi_cert_info *info, long left)
{
    char date[32], which[32] = "";
    if (number > 1) {
        (void)snprintf(which, sizeof which, ", certificate %u", number);
    }
    (void)printf("%s%s\n  subject   %s%s\n  issuer    %s\n", path, which, info->subject,
                 info->is_authority ? " (authority)" : "", info->issuer);
    if (info->names[0] != '\0') {
        (void)printf("  names     %s\n", info->names);
    }
    (void)printf("  until     %s, %ld days left%s\n  sha256    %s\n",
                 date_of(info->not_after_ms, date), left, left < 0 ? ": it has ended" : "",
                 info->digest);
}

/* Each certificate of a file: of a bundle there are several. Returns the exit code. */
static int
show_file(command *c, cJSON *array, const char *path)
{
    char *text = NULL;
    int code = file_read(path, &text), worst = code;
    const char *at = text;
    unsigned number = 0;
    trp_err err = TRP_OK;
    while (code == 0 && err == TRP_OK) {
        trpi_cert_info info;
        err = trpi_cert_next(&at, &info, c->why, sizeof c->why);
        if (err == TRP_OK) {
            long left = days_left(c, info.not_after_ms);
            bool due = left < 0 || (c->within > 0 && left <= c->within);
            number++;
            worst = due ? TRPI_CTL_EXIT_NO : worst;
            if (array != NULL) { /* without memory: not shown */
                (void)show_json(array, path, number, &info, left);
            } else {
                show_text(path, number, &info, left);
            }
        } else if (err != TRP_ENOENT) {
            worst = cert_fail(exit_of(err), "%s, certificate %u: %s", path, number + 1, c->why);
        } else if (number == 0) {
            worst = cert_fail(TRPI_CTL_EXIT_DATA, "%s: no certificate in PEM form", path);
        }
    }
    trpi_free(text);
    return worst;
}

static int
run_show(command *c)
{
    char own[PATH_MAX];
    cJSON *array = c->json ? cJSON_CreateArray() : NULL;
    int worst = 0;
    if (c->words_count == 0) {
        if (path_of(c, "ca", ".pem", own) != 0) {
            cJSON_Delete(array);
            return TRPI_CTL_EXIT_USAGE;
        }
        c->words[c->words_count++] = own;
    }
    for (size_t i = 0; i < c->words_count; i++) {
        int code = show_file(c, array, c->words[i]);
        /* an unreadable certificate is worse than an expired one */
        worst = code != 0 && (worst == 0 || code != TRPI_CTL_EXIT_NO) ? code : worst;
    }
    char *json = array != NULL ? cJSON_Print(array) : NULL;
    if (json != NULL) {
        (void)printf("%s\n", json);
        cJSON_free(json);
    }
    cJSON_Delete(array);
    return worst;
}

/* ---- options --------------------------------------------------------------------------------- */

static int
number_take(const char *text, const char *flag, long *ret_number)
{
    uint64_t number = 0;
    if (!trpi_whole_parse(text, 1, TRPI_CERT_DAYS_MAX, &number)) {
        return cert_fail(TRPI_CTL_EXIT_USAGE, "%s takes 1 to %d days, not '%s'", flag,
                         TRPI_CERT_DAYS_MAX, text);
    }
    *ret_number = (long)number;
    return 0;
}

/* Take an option with a value; -1: it is none. */
static int
option_take(command *c, const char *flag, const char *value)
{
    static const char *const known[] = { "--days", "--within", "--dir", "--san", "-o", "--output" };
    bool found = false;
    for (size_t i = 0; i < sizeof(known) / sizeof known[0]; i++) {
        found = found || strcmp(flag, known[i]) == 0;
    }
    if (!found) {
        return -1;
    }
    if (value == NULL) {
        return cert_fail(TRPI_CTL_EXIT_USAGE, "%s needs a value", flag);
    }
    if (strcmp(flag, "--days") == 0) {
        return number_take(value, flag, &c->days);
    }
    if (strcmp(flag, "--within") == 0) {
        return number_take(value, flag, &c->within);
    }
    if (strcmp(flag, "--dir") == 0) {
        c->dir = value;
        return 0;
    }
    if (strcmp(flag, "--san") == 0) {
        if (c->names_count == TRPI_CERT_NAMES_MAX) {
            return cert_fail(TRPI_CTL_EXIT_USAGE, "--san may be given for at most %d names",
                             TRPI_CERT_NAMES_MAX - 1);
        }
        c->names[c->names_count++] = value;
        return 0;
    }
    c->json = strcmp(value, "json") == 0;
    return c->json || strcmp(value, "table") == 0
               ? 0
               : cert_fail(TRPI_CTL_EXIT_USAGE, "%s takes table or json, not '%s'", flag, value);
}

static int
words_take(command *c, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        int code = option_take(c, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        if (code > 0) {
            return code;
        }
        if (code == 0) {
            i++;
        } else if (strcmp(argv[i], "--force") == 0) {
            c->force = true;
        } else if (argv[i][0] == '-') {
            return cert_fail(TRPI_CTL_EXIT_USAGE, "cert: unknown option '%s'", argv[i]);
        } else if (c->words_count == FILES_MAX - 1) {
            return cert_fail(TRPI_CTL_EXIT_USAGE, "cert: at most %d hosts or files at once",
                             FILES_MAX - 1);
        } else {
            c->words[c->words_count++] = argv[i];
        }
    }
    return 0;
}

static bool
help_wanted(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

int
trp_cert_main(int argc, char **argv)
{
    static const struct {
        const char *verb;
        int (*run)(command *c);
    } verbs[] = { { "ca", run_ca },
                  { "node", run_node },
                  { "renew", run_renew },
                  { "revoke", run_revoke },
                  { "show", run_show } };
    trpi_world *world = NULL;
    if (help_wanted(argc, argv)) {
        (void)fputs(help, stdout);
        return TRPI_CTL_EXIT_OK;
    }
    if (argc < 2 || trpi_world_real_new(&world) != TRP_OK) {
        (void)fputs(help, stderr);
        return TRPI_CTL_EXIT_USAGE;
    }
    command c = { .verb = argv[1], .dir = ".", .names_count = 1 };
    c.now_ms = trpi_world_wall_ms(world);
    trpi_world_free(world);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, argv[1]) == 0) {
            int code = words_take(&c, argc, argv);
            if (code == 0 && mkdir(c.dir, DIR_MODE) != 0 && errno != EEXIST) {
                code = cert_fail(TRPI_CTL_EXIT_PERMISSION, "cannot make %s: %s", c.dir,
                                 strerror(errno));
            }
            return code != 0 ? code : verbs[i].run(&c);
        }
    }
    return cert_fail(TRPI_CTL_EXIT_USAGE, "cert takes ca, node, renew, revoke or show, not '%s'",
                     argv[1]);
}

/* ---- cookies --------------------------------------------------------------------------------- */

static const char cookie_help[] =
    "usage: troupe cookie gen\n"
    "       troupe cookie hash < FILE\n"
    "\n"
    "gen    print a secret for remote.secure-cookie: 20 random bytes as 40 digits\n"
    "hash   print a digest of the secret on stdin, by which two operators can compare theirs\n";

int
trp_cookie_main(int argc, char **argv)
{
    if (help_wanted(argc, argv)) {
        (void)fputs(cookie_help, stdout);
        return TRPI_CTL_EXIT_OK;
    }
    if (argc == 2 && strcmp(argv[1], "gen") == 0) {
        char text[2 * COOKIE_BYTES + 1];
        if (trpi_cert_random_hex(text, COOKIE_BYTES) != TRP_OK) {
            return cert_fail(TRPI_CTL_EXIT_INTERNAL, "the system gives no random bytes");
        }
        (void)printf("%s\n", text);
        return TRPI_CTL_EXIT_OK;
    }
    if (argc == 2 && strcmp(argv[1], "hash") == 0) {
        char text[1024], digest[65];
        if (fgets(text, sizeof text, stdin) == NULL) {
            return cert_fail(TRPI_CTL_EXIT_DATA,
                             "cookie hash: stdin is empty; write the secret to it");
        }
        text[strcspn(text, "\r\n")] = '\0';
        if (trpi_cert_digest_hex(text, digest) != TRP_OK) {
            return cert_fail(TRPI_CTL_EXIT_INTERNAL, "the digest cannot be computed");
        }
        (void)printf("%.16s\n", digest);
        return TRPI_CTL_EXIT_OK;
    }
    (void)fputs(cookie_help, stderr);
    return TRPI_CTL_EXIT_USAGE;
}
