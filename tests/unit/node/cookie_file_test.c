/* cookie_file_test.c - the cookie that a user's nodes on loopback share, and configured files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/node/cookie_file.h"
#include "tests/unit/node/inside.h"

static char root[64]; /* a fresh directory for each test */

static void
begin(void)
{
    snprintf(root, sizeof root, "%s", "/tmp/troupe-cookie-XXXXXX");
    UNIT_REQUIRE(mkdtemp(root) != NULL);
    UNIT_EQUAL(setenv("STATE_DIRECTORY", root, 1), 0);
}

static void
end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    UNIT_EQUAL(system(command), 0);
}

static void
write_file(const char *path, const char *text, size_t bytes, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    UNIT_REQUIRE(fd >= 0);
    UNIT_EQUAL((size_t)write(fd, text, bytes), bytes);
    UNIT_EQUAL(fchmod(fd, mode), 0);
    close(fd);
}

static const char *
below(const char *name)
{
    static char path[1200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

/* Load the secrets of a node with this configuration. */
static trp_err
load(const char *text, trpi_secrets_use use, trpi_node_secrets *ret_secrets,
     trpi_config_error *ret_error)
{
    trpi_config *config = NULL;
    ret_error->text[0] = '\0';
    UNIT_REQUIRE(trpi_config_new(&config) == TRP_OK);
    UNIT_REQUIRE(trpi_config_load_text(config, "t.conf", text, ret_error) == TRP_OK);
    trp_err err = trpi_node_secrets_load(config, use, ret_secrets, ret_error);
    trpi_config_free(config);
    return err;
}

static void
refused(const char *text, trpi_secrets_use use, const char *want)
{
    trpi_node_secrets secrets;
    trpi_config_error error;
    UNIT_EQUAL(load(text, use, &secrets, &error), TRP_ECONFIG);
    UNIT_TRUE(strstr(error.text, want) != NULL);
    if (strstr(error.text, want) == NULL) {
        fprintf(stderr, "no '%s' in: %s\n", want, error.text);
    }
    UNIT_TEXT(secrets.now, "");
}

static size_t
entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;
    UNIT_REQUIRE(dir != NULL);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    }
    closedir(dir);
    return count;
}

/* REMOTE-56 */
static void
nodes_that_start_together_share_one_cookie(void)
{
    enum { PROCESSES = 24, ROUNDS = 5 };
    for (int round = 0; round < ROUNDS; round++) {
        int gate[2], out[2], status, failed = 0;
        char texts[PROCESSES][TRPI_COOKIE_FILE_TEXT_BYTES];
        begin();
        UNIT_REQUIRE(pipe(gate) == 0 && pipe(out) == 0);
        fflush(NULL);
        for (int i = 0; i < PROCESSES; i++) {
            pid_t pid = fork();
            UNIT_REQUIRE(pid >= 0);
            if (pid == 0) {
                trpi_node_secrets secrets;
                trpi_config_error error;
                char byte;
                close(gate[1]);
                (void)!read(gate[0], &byte, 1); /* until it is closed */
                trp_err err = load("", TRPI_SECRETS_MAKE, &secrets, &error);
                /* one write of less than PIPE_BUF */
                bool told = err == TRP_OK &&
                            write(out[1], secrets.now, sizeof secrets.now) == sizeof secrets.now;
                _exit(told ? 0 : 1);
            }
        }
        close(gate[0]);
        close(gate[1]);
        close(out[1]);
        for (int i = 0; i < PROCESSES; i++) {
            UNIT_REQUIRE(wait(&status) > 0);
            failed += status != 0;
        }
        UNIT_EQUAL(failed, 0);
        for (int i = 0; i < PROCESSES; i++) {
            UNIT_REQUIRE(read(out[0], texts[i], sizeof texts[i]) == sizeof texts[i]);
            UNIT_EQUAL(strlen(texts[i]), 40);
            UNIT_TEXT(texts[i], texts[0]);
        }
        close(out[0]);
        struct stat info;
        UNIT_EQUAL(stat(below("cookie"), &info), 0);
        UNIT_EQUAL(info.st_mode & 07777, 0400);
        UNIT_EQUAL(entries(root), 1); /* nothing of the others is left */
        end();
    }
}

static void
place_is_state_directory_then_configuration_then_home(void)
{
    trpi_node_secrets secrets;
    trpi_config_error error;
    char path[600];
    struct stat info;
    begin();
    snprintf(path, sizeof path, "%s:/nonexistent", root); /* as systemd writes several */
    setenv("STATE_DIRECTORY", path, 1);
    setenv("XDG_CONFIG_HOME", below("a/xdg"), 1);
    setenv("HOME", root, 1);
    UNIT_EQUAL(load("", TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
    UNIT_TEXT(secrets.file, below("cookie"));
    UNIT_TRUE(secrets.is_users);
    UNIT_TEXT(secrets.before, "");
    unsetenv("STATE_DIRECTORY");
    UNIT_EQUAL(load("", TRPI_SECRETS_CHECK, &secrets, &error), TRP_OK);
    UNIT_EQUAL(access(below("a"), F_OK), -1); /* a check makes nothing */
    UNIT_EQUAL(load("", TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
    UNIT_TEXT(secrets.file, below("a/xdg/troupe/cookie"));
    UNIT_EQUAL(stat(below("a/xdg/troupe"), &info), 0);
    UNIT_EQUAL(info.st_mode & 0777, 0700);
    setenv("XDG_CONFIG_HOME", "relative", 1); /* says nothing, by its specification */
    UNIT_EQUAL(load("", TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
    UNIT_TEXT(secrets.file, below(".config/troupe/cookie"));
    char first[TRPI_COOKIE_FILE_TEXT_BYTES];
    memcpy(first, secrets.now, sizeof first);
    UNIT_EQUAL(load("", TRPI_SECRETS_READ, &secrets, &error), TRP_OK);
    UNIT_TEXT(secrets.now, first);
    /* a path that is too long by one byte */
    size_t room = TRPI_COOKIE_FILE_PATH_BYTES - 1 - strlen("/troupe/cookie");
    size_t at = (size_t)snprintf(path, sizeof path, "%s/", root);
    while (at < room) { /* no name is longer than a directory may have */
        path[at] = at % 100 == 0 ? '/' : 'x';
        at++;
    }
    path[room] = '\0';
    setenv("XDG_CONFIG_HOME", path, 1);
    UNIT_EQUAL(load("", TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
    UNIT_EQUAL(strlen(secrets.file), TRPI_COOKIE_FILE_PATH_BYTES - 1);
    path[room] = 'x';
    path[room + 1] = '\0';
    setenv("XDG_CONFIG_HOME", path, 1);
    refused("", TRPI_SECRETS_MAKE, "the path of this user's cookie is longer than 511 bytes");
    unsetenv("XDG_CONFIG_HOME");
    end();
}

static void
nowhere_to_write_says_what_to_set(void)
{
    begin();
    unsetenv("XDG_CONFIG_HOME");
    write_file(below("file"), "x", 1, 0600);
    static const char *const variables[] = { "STATE_DIRECTORY", "XDG_CONFIG_HOME", "HOME" };
    static const char *const places[] = { "file/cookie", "file/troupe/cookie",
                                          "file/.config/troupe/cookie" };
    char want[256];
    for (int i = 0; i < 3; i++) { /* each is looked at when those before it say nothing */
        setenv(variables[i], below("file"), 1);
        snprintf(want, sizeof want, "remote.cookie: cannot make %s, the cookie that this user's",
                 below(places[i]));
        refused("", TRPI_SECRETS_CHECK, want);
        refused("", TRPI_SECRETS_MAKE, want);
        unsetenv(variables[i]);
    }
    setenv("HOME", below("none"), 1); /* a home that is not there is not made */
    snprintf(want, sizeof want, "remote.cookie: cannot make %s",
             below("none/.config/troupe/cookie"));
    refused("", TRPI_SECRETS_CHECK, want);
    refused("", TRPI_SECRETS_MAKE, want);
    refused("", TRPI_SECRETS_MAKE,
            "set STATE_DIRECTORY or XDG_CONFIG_HOME to a directory of this "
            "user, or remote.cookie = off");
    UNIT_EQUAL(access(below("none"), F_OK), -1);
    setenv("HOME", root, 1);
    end();
}

static void
file_that_others_may_read_is_refused(void)
{
    static const mode_t wide[] = { 0644, 0440, 0404, 0420, 0402, 0410, 0401 };
    static const mode_t narrow[] = { 0400, 0600, 0700 };
    trpi_node_secrets secrets;
    trpi_config_error error;
    char configured[256], mode[32];
    begin();
    snprintf(configured, sizeof configured,
             "remote { require-cookie = on  secure-cookie-file = \"%s\" }", below("cookie"));
    const char *const configs[] = { "", configured };
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
            write_file(below("cookie"), "secret", 6, wide[i]);
            snprintf(mode, sizeof mode, "others may read it (mode %04o): chmod", (unsigned)wide[i]);
            refused(configs[k], TRPI_SECRETS_CHECK, mode);
            refused(configs[k], TRPI_SECRETS_MAKE, mode);
            refused(configs[k], TRPI_SECRETS_READ, below("cookie"));
        }
        for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
            write_file(below("cookie"), "secret", 6, narrow[i]);
            UNIT_EQUAL(load(configs[k], TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
            UNIT_TEXT(secrets.now, "secret");
            UNIT_EQUAL(secrets.is_users, k == 0);
        }
        unlink(below("cookie"));
    }
    end();
}

/* root can make a file of another user. Its owner may change it, so it is no secret of ours. */
static void
file_of_another_user_is_refused(void)
{
    trpi_node_secrets secrets;
    trpi_config_error error;
    char configured[256];
    if (geteuid() != 0) {
        return;
    }
    begin();
    write_file(below("cookie"), "secret", 6, 0440);
    UNIT_EQUAL(chown(below("cookie"), 65534, 65534), 0);
    refused("", TRPI_SECRETS_MAKE, "belongs to uid 65534, and this node runs as uid 0");
    refused("", TRPI_SECRETS_CHECK, below("cookie"));
    /* configured, its group is the administrator's decision, and all others are not */
    snprintf(configured, sizeof configured,
             "remote { require-cookie = on  secure-cookie-file = \"%s\" }", below("cookie"));
    UNIT_EQUAL(load(configured, TRPI_SECRETS_READ, &secrets, &error), TRP_OK);
    UNIT_EQUAL(chmod(below("cookie"), 0444), 0);
    refused(configured, TRPI_SECRETS_READ, "others may read it (mode 0444)");
    end();
}

static void
file_holds_one_or_two_lines(void)
{
    char text[1100], line[TRPI_COOKIE_FILE_TEXT_BYTES + 1];
    trpi_node_secrets secrets;
    trpi_config_error error;
    begin();
    memset(line, 'c', sizeof line);
    line[TRPI_COOKIE_FILE_TEXT_BYTES - 1] = '\0'; /* the longest one */
    static const char *const bad[] = {
        "", "\n", "\nsecond", "a\nb\nc", "a\nb\n\n", "a\tb", "a\x7f"
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(below("cookie"), bad[i], strlen(bad[i]), 0600);
        refused("", TRPI_SECRETS_MAKE,
                "holds no cookie: it must have one line of at most 255 bytes");
    }
    write_file(below("cookie"), "a\0b", 3, 0600);
    refused("", TRPI_SECRETS_MAKE, "holds no cookie");
    int bytes = snprintf(text, sizeof text, "%s \r\n%s\n", line, line);
    write_file(below("cookie"), text, (size_t)bytes, 0600);
    UNIT_EQUAL(load("", TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
    UNIT_TEXT(secrets.now, line);
    UNIT_TEXT(secrets.before, line);
    memset(text, ' ', sizeof text); /* blanks behind it count for the file alone */
    text[0] = 'c';
    write_file(below("cookie"), text, 1023, 0600);
    UNIT_EQUAL(load("", TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
    UNIT_TEXT(secrets.now, "c");
    write_file(below("cookie"), text, 1024, 0600);
    refused("", TRPI_SECRETS_MAKE, "holds no cookie");
    line[TRPI_COOKIE_FILE_TEXT_BYTES - 1] = 'c';
    line[TRPI_COOKIE_FILE_TEXT_BYTES] = '\0'; /* one byte more */
    write_file(below("cookie"), line, strlen(line), 0600);
    refused("", TRPI_SECRETS_MAKE, "holds no cookie");
    UNIT_EQUAL(unlink(below("cookie")), 0);
    UNIT_EQUAL(mkfifo(below("cookie"), 0600), 0); /* an open() must not wait for a writer */
    refused("", TRPI_SECRETS_MAKE, "is not a regular file");
    end();
}

/* REMOTE-56, CONF-16: the default is for loopback alone, and weaker than what was configured. */
static void
user_cookie_is_for_plain_loopback_alone(void)
{
    static const char *const without[] = {
        "remote { cookie = off }", "remote { hostname = 10.0.0.1 }",
        "remote { hostname = node.example.org }",
        "remote { transport = tls }", /* certificates decide about peers */
    };
    static const char *const with[] = {
        "", "remote { hostname = localhost }", "remote { hostname = \"::1\" }",
        "remote { hostname = 127.1.2.3  bind-hostname = 0.0.0.0 }"
    };
    trpi_node_secrets secrets;
    trpi_config_error error;
    begin();
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        UNIT_EQUAL(load(without[i], TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
        UNIT_TEXT(secrets.now, "");
    }
    UNIT_EQUAL(load("remote { require-cookie = on  secure-cookie = abc  secure-cookie-before = d }",
                    TRPI_SECRETS_MAKE, &secrets, &error),
               TRP_OK);
    UNIT_TEXT(secrets.now, "abc");
    UNIT_TEXT(secrets.before, "d");
    UNIT_FALSE(secrets.is_users);
    UNIT_EQUAL(entries(root), 0);
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        UNIT_EQUAL(load(with[i], TRPI_SECRETS_MAKE, &secrets, &error), TRP_OK);
        UNIT_EQUAL(strlen(secrets.now), 40);
        UNIT_TRUE(secrets.is_users);
    }
    refused("remote { require-cookie = on  secure-cookie = abc  secure-cookie-file = /x }",
            TRPI_SECRETS_CHECK,
            "t.conf:1: remote.secure-cookie-file: remote.secure-cookie is "
            "given, too; leave one of them out");
    refused("remote { require-cookie = on  secure-cookie-file = /nonexistent/x }",
            TRPI_SECRETS_CHECK, "remote.secure-cookie-file: cannot read /nonexistent/x: No such");
    end();
}

static char said[2][65536];
static atomic_size_t said_bytes[2];

static void
remember(size_t who, const trp_log_line *line)
{
    size_t at = atomic_fetch_add(&said_bytes[who], strlen(line->text) + 1);
    if (at + strlen(line->text) < sizeof said[who]) {
        memcpy(said[who] + at, line->text, strlen(line->text));
    }
}
static void
remember_own(void *arg, const trp_log_line *line)
{
    (void)arg;
    remember(0, line);
}
static void
remember_other(void *arg, const trp_log_line *line)
{
    (void)arg;
    remember(1, line);
}

static bool
has_said(size_t who, const char *text)
{
    size_t bytes = strlen(text);
    for (size_t at = 0; at + bytes < sizeof said[who]; at++) {
        if (memcmp(said[who] + at, text, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Two users have two files: the error names the file that each node needs. */
static void
node_of_another_user_is_refused_by_name_of_the_file(void)
{
    trp_node_end why = (trp_node_end)0;
    char own[128], other[128], text[200];
    begin();
    snprintf(own, sizeof own, "%s", below("own"));
    snprintf(other, sizeof other, "%s", below("other"));
    UNIT_REQUIRE(mkdir(own, 0700) == 0 && mkdir(other, 0700) == 0);
    setenv("STATE_DIRECTORY", own, 1);
    node_log = remember_own;
    trp_node *first = up(alone);
    trp_node *third = up_beside(first, NULL); /* the same user */
    setenv("STATE_DIRECTORY", other, 1);
    node_log = remember_other;
    trp_node *second = open_beside(first, NULL);
    UNIT_EQUAL(trp_node_await(second, 60000, &why), TRP_OK);
    UNIT_EQUAL(why, TRP_NODE_INCOMPATIBLE);
    trp_node_close(second);
    snprintf(text, sizeof text, "has another cookie than %s/cookie", other);
    UNIT_TRUE(has_said(1, text));
    UNIT_TRUE(has_said(1, "cannot join as it is configured: remote.cookie: 127.0.0.1:"));
    trp_node_leave(third);
    closes(third, TRP_NODE_LEFT);
    trp_node_close(first);
    snprintf(text, sizeof text, "the peer has another cookie than %s/cookie", own);
    UNIT_TRUE(has_said(0, text));
    node_log = quiet;
    end();
}

UNIT_BEGIN("cookie_file")
UNIT(nodes_that_start_together_share_one_cookie)
UNIT(place_is_state_directory_then_configuration_then_home)
UNIT(nowhere_to_write_says_what_to_set)
UNIT(file_that_others_may_read_is_refused)
UNIT(file_of_another_user_is_refused)
UNIT(file_holds_one_or_two_lines)
UNIT(user_cookie_is_for_plain_loopback_alone)
UNIT(node_of_another_user_is_refused_by_name_of_the_file)
UNIT_END
