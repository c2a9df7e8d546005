/* main.c - the program `troupe`; called as `trouped` it is `troupe node`.
 *
 * Why.     One program, one way to install it, one table of commands. It loads the library only for
 *          the commands that need it (library.c).
 * Tests.   tests/system/cli.sh
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

/* The reader of our output has ended (`troupe events | head -1`): no error. */
static void
on_closed_pipe(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

/* Fill closed standard streams: output must not go into the next socket that is opened, nor a log
 * into a connection of the node. They are opened in the wrong direction, so that their use is an
 * error as before. */
static void
streams_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* trouped ARGS... is troupe node ARGS... */
static char **
daemon_arguments(int argc, char **argv)
{
    char **words = trpi_alloc(((size_t)argc + 2) * sizeof *words);
    if (words != NULL) {
        words[0] = argv[0];
        words[1] = "node";
        memcpy(words + 2, argv + 1, (size_t)argc * sizeof *words); /* with the NULL at the end */
    }
    return words;
}

int
main(int argc, char **argv)
{
    static trpi_cli cli; /* zeroed; too large for comfort on the stack */
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "troupe";
    if (strcmp(name, "trouped") == 0) {
        argv = daemon_arguments(argc, argv);
        argc++;
        if (argv == NULL) {
            return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
        }
    }
    struct sigaction action = { .sa_handler = on_closed_pipe };
    sigset_t pipe_closed;
    (void)sigemptyset(&pipe_closed); /* none of these can fail with such a number */
    (void)sigaddset(&pipe_closed, SIGPIPE);
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigprocmask(SIG_UNBLOCK, &pipe_closed, NULL);
    streams_hold();
    int code = trpi_cli_parse(&cli, argc, argv);
    if (code == 0 && trpi_cli_has(&cli, TRPI_CLI_HELP)) {
        if (cli.command->passes_through) {
            cli.rest = (char *[]){ "--help", NULL };
            cli.rest_count = 1;
            code = cli.command->run(&cli);
        } else {
            trpi_cli_help_command(cli.command, stdout);
        }
    } else if (code == 0) {
        code = cli.command->run(&cli);
    }
    trpi_cli_flush();
    if (cli.fd >= 0) {
        (void)close(cli.fd); /* the answer was read */
    }
    trpi_buffer_fini(&cli.in);
    if (argc > 0 && strcmp(name, "trouped") == 0) {
        trpi_free(argv);
    }
    return code;
}
