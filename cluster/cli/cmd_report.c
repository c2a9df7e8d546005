/* cmd_report.c - `report`: what a node says about itself and its cluster, in one file to send.
 *
 * Why.     Support begins with the same dozen of outputs. The node blanks secrets in its
 *          configuration and never tells payloads, so the file can leave the site.
 * Shape.   One request after the other; a refusal or a late answer becomes the text of that file,
 *          so that a report of a sick node is a report, too. The file appears whole or not at all,
 *          and never in the place of a device or a link.
 * Tests.   tests/system/cli_fake.sh, tests/system/observe.sh
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/cli/archive.h"
#include "cluster/cli/cli.h"

static const char *const asked[] = { "version", "status", "members",     "why",    "peers",
                                     "reach",   "doctor", "config",      "shards", "singleton",
                                     "topics",  "tree",   "deadletters", "logs" };
#define ASKED_COUNT (sizeof asked / sizeof asked[0])

/* Ask the node, and put its answer in, or the exit code of the failure. */
static void
answer_add(trpi_cli *cli, trpi_archive *archive, const char *directory, const char *cmd)
{
    char name[TRPI_ARCHIVE_NAME_BYTES_MAX + 1];
    cJSON *reply = NULL;
    (void)snprintf(name, sizeof name, "%s/%s.json", directory, cmd);
    cli->holds_late = true; /* one late answer is no end of the report */
    int code = trpi_cli_call_quiet(cli, trpi_cli_request_new(cli, cmd), &reply);
    if (strcmp(cmd, "doctor") == 0) {
        trpi_cli_doctor_stacks(cli, reply);
    }
    char *text = reply != NULL ? cJSON_Print(reply) : NULL;
    if (text != NULL) {
        trpi_archive_add(archive, name, text, strlen(text));
    } else {
        char why[640];
        (void)snprintf(why, sizeof why, "{\"ok\":false,\"exit\":%d}\n", code);
        trpi_archive_add(archive, name, why, strlen(why));
    }
    cJSON_free(text);
    cJSON_Delete(reply);
}

/* "troupe-report-20261129T201500Z" */
static void
directory_name(char name[64], time_t now)
{
    struct tm utc;
    (void)snprintf(name, 64, "troupe-report");
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(name, 64, "troupe-report-%Y%m%dT%H%M%SZ", &utc);
    }
}

static int
report_write(trpi_cli *cli, FILE *file, const char *directory, time_t now)
{
    trpi_archive archive;
    trpi_archive_begin(&archive, file, (int64_t)now);
    for (size_t i = 0; i < ASKED_COUNT; i++) {
        answer_add(cli, &archive, directory, asked[i]);
    }
    bool ok = trpi_archive_end(&archive) && fflush(file) == 0;
    ok = ok && (file == stdout || fsync(fileno(file)) == 0);
    return ok ? 0 : TRPI_CTL_EXIT_OUTPUT;
}

/* Make the file to write to, in place of one that was left behind. NULL: refused, *ret_code. */
static FILE *
part_open(const char *path, const char *part, int *ret_code)
{
    struct stat old;
    if (lstat(path, &old) == 0 && !S_ISREG(old.st_mode)) {
        *ret_code =
            trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                          "%s is no regular file; name a file that the report becomes", path);
        return NULL;
    }
    if (lstat(part, &old) == 0 && S_ISREG(old.st_mode)) {
        (void)unlink(part);
    }
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (file == NULL) {
        *ret_code = trpi_cli_fail(TRPI_CTL_EXIT_OUTPUT, "%s: %s", part, strerror(errno));
    }
    return file;
}

#define READ_IT "secrets are blanked and no payloads are in it; read it before you send it"

/* -O -, as in: ssh HOST troupe report -O - >report.tar.gz */
static int
report_pass(trpi_cli *cli, const char *directory, time_t now)
{
    if (isatty(STDOUT_FILENO)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "the report is an archive, and stdout is a terminal: direct it to a "
                             "file");
    }
    int code = report_write(cli, stdout, directory, now);
    if (code == TRPI_CTL_EXIT_OUTPUT) {
        return trpi_cli_fail(code, "stdout: %s", strerror(errno));
    }
    trpi_cli_note(cli, READ_IT);
    return code;
}

int
trpi_cli_run_report(trpi_cli *cli)
{
    char directory[64], path[1024], part[1040];
    struct timespec clock = { 0, 0 };
    (void)clock_gettime(CLOCK_REALTIME, &clock);
    time_t now = clock.tv_sec;
    const char *given = trpi_cli_text(cli, TRPI_CLI_OUT_FILE);
    int code = trpi_cli_connect(cli); /* no node: no file */
    if (code != 0) {
        return code;
    }
    directory_name(directory, now);
    if (given != NULL && strcmp(given, "-") == 0) {
        return report_pass(cli, directory, now);
    }
    (void)snprintf(path, sizeof path, "%s%s", given != NULL ? given : directory,
                   given != NULL ? "" : ".tar.gz");
    (void)snprintf(part, sizeof part, "%s.part", path);
    FILE *file = part_open(path, part, &code);
    if (file == NULL) {
        return code;
    }
    code = report_write(cli, file, directory, now);
    bool closed = fclose(file) == 0;
    if (code == 0 && (!closed || rename(part, path) != 0)) {
        code = TRPI_CTL_EXIT_OUTPUT;
    }
    if (code == TRPI_CTL_EXIT_OUTPUT) {
        (void)trpi_cli_fail(code, "%s could not be written: %s", path, strerror(errno));
    }
    if (code != 0) {
        (void)unlink(part);
        return code;
    }
    (void)puts(path);
    trpi_cli_note(cli, READ_IT);
    return 0;
}
