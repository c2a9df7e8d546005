/* cmd_new.c - `new`: write a project that compiles and passes its test without an edit.
 *
 * Shape.   A directory of the project's name is made here; one that exists is never written into.
 *          When a file cannot be written, what was made is taken away again.
 * Tests.   tests/system/new.sh, tests/examples/new.sh
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cli/cli.h"
#include "cluster/cli/new_files.h"

#define FILE_BYTES_MAX (TRPI_NEW_NAME_BYTES_MAX + 24u)
#define PATH_BYTES_MAX (TRPI_NEW_NAME_BYTES_MAX + FILE_BYTES_MAX + 2u)

/* 0, or the errno of what failed. */
static int
file_write(const char *path, const trpi_buffer *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return errno;
    }
    int error = 0;
    size_t written = 0;
    while (error == 0 && written < text->count) {
        ssize_t part = write(fd, text->data + written, text->count - written);
        if (part >= 0) {
            written += (size_t)part;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

/* The path of file `index`, and its text behind what the buffer has. False: there is none. */
static bool
file_make(const trpi_new_project *project, size_t index, char path[PATH_BYTES_MAX],
          trpi_buffer *text, trp_err *ret_err)
{
    char name[FILE_BYTES_MAX];
    trpi_buffer_clear(text);
    *ret_err = trpi_new_file(project, index, name, sizeof name, text);
    if (*ret_err == TRP_OK) {
        (void)snprintf(path, PATH_BYTES_MAX, "%s/%s", project->name, name);
    }
    return *ret_err == TRP_OK;
}

static void
project_remove(const trpi_new_project *project, size_t files_count)
{
    trpi_buffer text = { 0 };
    char path[PATH_BYTES_MAX];
    trp_err err;
    for (size_t index = 0; index < files_count && file_make(project, index, path, &text, &err);
         index++) {
        (void)unlink(path); /* nothing more can be done about one that stays */
    }
    trpi_buffer_fini(&text);
    (void)rmdir(project->name);
}

/* Write all files, or with dry_run only name them; 0, or the exit code with the reason printed. */
static int
project_write(const trpi_new_project *project, bool dry_run)
{
    trpi_buffer text = { 0 };
    char path[PATH_BYTES_MAX];
    size_t index = 0;
    int error = 0;
    trp_err err;
    while (error == 0 && file_make(project, index, path, &text, &err)) {
        error = dry_run ? 0 : file_write(path, &text);
        index++;
    }
    trpi_buffer_fini(&text);
    if (error != 0 || err != TRP_ENOENT) {
        project_remove(project, index);
        return error != 0
                   ? trpi_cli_fail(TRPI_CTL_EXIT_OUTPUT, "%s: %s; nothing is left of the project",
                                   path, strerror(error))
                   : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    for (index = 0; file_make(project, index, path, &text, &err); index++) {
        (void)puts(path);
    }
    trpi_buffer_fini(&text);
    return 0;
}

/* 0, or 64 with what is wrong with the words of the command line. */
static int
project_read(const trpi_cli *cli, trpi_new_project *ret_project)
{
    const char *language = trpi_cli_text(cli, TRPI_CLI_LANG);
    const char *fault = trpi_new_name_fault(cli->args[1]);
    if (!trpi_new_kind_is(cli->args[0])) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "no project is called '%s'; there are: app, actor, plugin",
                             cli->args[0]);
    }
    if (fault != NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "'%s' cannot be the name of a project: %s",
                             cli->args[1], fault);
    }
    if (language != NULL && strcmp(language, "c") != 0 && strcmp(language, "c++") != 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--lang takes c or c++, not '%s'", language);
    }
    ret_project->kind = cli->args[0];
    ret_project->name = cli->args[1];
    ret_project->cpp = language != NULL && language[1] != '\0';
    return 0;
}

int
trpi_cli_run_new(trpi_cli *cli)
{
    trpi_new_project project;
    struct stat stat;
    bool dry_run = trpi_cli_has(cli, TRPI_CLI_DRY_RUN);
    int code = project_read(cli, &project);
    if (code != 0) {
        return code;
    }
    if (lstat(project.name, &stat) == 0 || (!dry_run && mkdir(project.name, 0777) != 0)) {
        int error = errno;
        bool exists = lstat(project.name, &stat) == 0;
        return trpi_cli_fail(TRPI_CTL_EXIT_OUTPUT, "%s: %s", project.name,
                             exists ? "there is something of that name; choose another name or "
                                      "another directory"
                                    : strerror(error));
    }
    code = project_write(&project, dry_run);
    if (code == 0 && !dry_run) {
        trpi_cli_note(cli, "next: cd %s && make check", project.name);
    }
    return code;
}
