/* access_test.c - which Host and Origin headers, tokens and certificates are taken. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/management/policy.h"

static void
only_own_hosts_are_taken(void)
{
    static const char *const more[] = { "troupe.example" };
    trpi_management_policy policy = policy_make();
    policy.hosts = more;
    policy.hosts_count = 1;
    static const char *const ours[] = { "127.0.0.1",      "127.0.0.1:8558",      "localhost",
                                        "LOCALHOST:1",    "[::1]:8558",          "127.9.9.9:80",
                                        "troupe.example", "Troupe.Example:65535" };
    static const char *const foreign[] = { "",
                                           "evil.example",
                                           "127.0.0.1.evil.example",
                                           "localhost.evil.example",
                                           "evil.example:8558",
                                           "127.0.0.1:",
                                           "127.0.0.1:x",
                                           "127.0.0.1:123456",
                                           "127.0.0.1:80@evil.example",
                                           "[::1",
                                           "[]",
                                           "[::1]evil",
                                           "user@127.0.0.1",
                                           "127.0.0.1/",
                                           " 127.0.0.1",
                                           "10.0.0.1" };
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        UNIT_TRUE(trpi_management_host_is_ours(&policy, ours[i]));
    }
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        UNIT_FALSE(trpi_management_host_is_ours(&policy, foreign[i]));
    }
    UNIT_FALSE(trpi_management_host_is_ours(&policy, NULL));
    policy.bound = "10.0.0.1";
    policy.is_local = false;
    UNIT_TRUE(trpi_management_host_is_ours(&policy, "10.0.0.1:8558"));
    UNIT_FALSE(trpi_management_host_is_ours(&policy, "localhost"));
}

static void
a_host_has_a_limited_length(void)
{
    char host[300];
    trpi_management_policy policy = policy_make();
    const char *const list[] = { host };
    policy.hosts = list;
    policy.hosts_count = 1;
    memset(host, 'h', sizeof host);
    host[255] = '\0';
    UNIT_TRUE(trpi_management_host_is_ours(&policy, host));
    host[255] = 'h';
    host[256] = '\0';
    UNIT_FALSE(trpi_management_host_is_ours(&policy, host));
}

static void
an_origin_must_be_this_host_and_port(void)
{
    UNIT_TRUE(trpi_management_origin_is_ours(NULL, "127.0.0.1:8558"));
    UNIT_TRUE(trpi_management_origin_is_ours("http://127.0.0.1:8558", "127.0.0.1:8558"));
    UNIT_TRUE(trpi_management_origin_is_ours("https://Node.example", "node.example"));
    static const char *const foreign[] = { "",
                                           "null",
                                           "http://",
                                           "http://127.0.0.1",
                                           "http://127.0.0.1:8559",
                                           "http://127.0.0.1:8558/",
                                           "http://evil.example",
                                           "ftp://127.0.0.1:8558",
                                           "http://127.0.0.1:8558@evil.example" };
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        UNIT_FALSE(trpi_management_origin_is_ours(foreign[i], "127.0.0.1:8558"));
    }
    UNIT_FALSE(trpi_management_origin_is_ours("http://127.0.0.1:8558", NULL));
}

static trpi_management_level
level(const trpi_management_policy *policy, const char *authorization, const char *certificate)
{
    bool shown = false;
    char who[TRPI_MANAGEMENT_WHO_BYTES];
    trpi_management_request request = request_make("GET", "/");
    request.authorization = authorization;
    request.certificate = certificate;
    trpi_management_level found = trpi_management_level_of(policy, &request, &shown, who);
    UNIT_EQUAL(shown, authorization != NULL || certificate != NULL);
    UNIT_EQUAL(who[0] != '\0', found != TRPI_MANAGEMENT_NOBODY);
    return found;
}

static void
who_is(const trpi_management_policy *policy, const char *authorization, const char *certificate,
       const char *expected)
{
    bool shown = false;
    char who[TRPI_MANAGEMENT_WHO_BYTES];
    trpi_management_request request = request_make("GET", "/");
    request.authorization = authorization;
    request.certificate = certificate;
    (void)trpi_management_level_of(policy, &request, &shown, who);
    UNIT_TEXT(who, expected);
}

/* For the audit: one of several tokens, or whose certificate it was. */
static void
the_credential_that_counts_is_named(void)
{
    static const char *const writers[] = { "operator.example", "o p\n" };
    trpi_management_policy policy = policy_make();
    policy.writers = writers;
    policy.writers_count = 2;
    who_is(&policy, NULL, NULL, "");
    who_is(&policy, "Bearer wrong", "stranger.example", "");
    who_is(&policy, NULL, "operator.example", "cert=operator.example");
    who_is(&policy, NULL, "o p\n", "cert=o?p?");
    who_is(&policy, "Bearer " WRITER_TOKEN, NULL, "cookie");
    policy_tokens.list[0].line = 7;
    /* printf %s TOKEN | openssl dgst -sha256 -hmac 'troupe management token' */
    who_is(&policy, "Bearer " WRITER_TOKEN, NULL, "token=7/6d18d67c");
    policy_tokens.list[1].line = 4294967295u;
    who_is(&policy, "Bearer " READER_TOKEN, "operator.example", "cert=operator.example");
    who_is(&policy, "Bearer " READER_TOKEN, "stranger.example", "token=4294967295/0a22f7ff");
}

static void
a_token_gives_its_level(void)
{
    trpi_management_policy policy = policy_make();
    UNIT_EQUAL(level(&policy, NULL, NULL), TRPI_MANAGEMENT_NOBODY);
    UNIT_EQUAL(level(&policy, "Bearer " WRITER_TOKEN, NULL), TRPI_MANAGEMENT_WRITER);
    UNIT_EQUAL(level(&policy, "bearer " READER_TOKEN, NULL), TRPI_MANAGEMENT_READER);
    static const char *const unknown[] = { "Bearer",
                                           "Bearer ",
                                           "Basic " WRITER_TOKEN,
                                           "Bearer " WRITER_TOKEN "x",
                                           "Bearer  " WRITER_TOKEN,
                                           "Bearer writer-0123456789abcdef0123456789abcde",
                                           WRITER_TOKEN };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        UNIT_EQUAL(level(&policy, unknown[i], NULL), TRPI_MANAGEMENT_NOBODY);
    }
}

static void
a_certificate_gives_the_level_of_its_name(void)
{
    static const char *const readers[] = { "board.example", "both.example" };
    static const char *const writers[] = { "operator.example", "both.example" };
    trpi_management_policy policy = policy_make();
    UNIT_EQUAL(level(&policy, NULL, "operator.example"), TRPI_MANAGEMENT_NOBODY);
    policy.readers = readers;
    policy.readers_count = 2;
    policy.writers = writers;
    policy.writers_count = 2;
    UNIT_EQUAL(level(&policy, NULL, "operator.example"), TRPI_MANAGEMENT_WRITER);
    UNIT_EQUAL(level(&policy, NULL, "both.example"), TRPI_MANAGEMENT_WRITER);
    UNIT_EQUAL(level(&policy, NULL, "board.example"), TRPI_MANAGEMENT_READER);
    UNIT_EQUAL(level(&policy, NULL, "stranger.example"), TRPI_MANAGEMENT_NOBODY);
    /* the stronger of two credentials counts */
    UNIT_EQUAL(level(&policy, "Bearer " WRITER_TOKEN, "board.example"), TRPI_MANAGEMENT_WRITER);
    UNIT_EQUAL(level(&policy, "Bearer wrong", "board.example"), TRPI_MANAGEMENT_READER);
}

static void
tokens_are_limited_in_length_and_number(void)
{
    char token[TRPI_MANAGEMENT_TOKEN_BYTES_MAX + 1];
    trpi_management_tokens tokens = { .count = 0 };
    memset(token, 't', sizeof token);
    UNIT_EQUAL(trpi_management_tokens_add(&tokens, token, TRPI_MANAGEMENT_TOKEN_BYTES_MIN - 1,
                                          TRPI_MANAGEMENT_READER),
               TRP_EINVAL);
    UNIT_EQUAL(trpi_management_tokens_add(&tokens, token, TRPI_MANAGEMENT_TOKEN_BYTES_MAX + 1,
                                          TRPI_MANAGEMENT_READER),
               TRP_EINVAL);
    UNIT_EQUAL(trpi_management_tokens_add(&tokens, "a token with blanks is none at all......", 40,
                                          TRPI_MANAGEMENT_READER),
               TRP_EINVAL);
    UNIT_EQUAL(tokens.count, 0);
    for (size_t i = 0; i < sizeof tokens.list / sizeof tokens.list[0]; i++) {
        UNIT_EQUAL(trpi_management_tokens_add(&tokens, token,
                                              i == 0 ? TRPI_MANAGEMENT_TOKEN_BYTES_MIN
                                                     : TRPI_MANAGEMENT_TOKEN_BYTES_MAX,
                                              TRPI_MANAGEMENT_READER),
                   TRP_OK);
    }
    UNIT_EQUAL(trpi_management_tokens_add(&tokens, token, TRPI_MANAGEMENT_TOKEN_BYTES_MAX,
                                          TRPI_MANAGEMENT_READER),
               TRP_ELIMIT);
}

static void
the_derived_token_depends_on_cookie_and_system(void)
{
    char one[65], same[65], other[65];
    UNIT_TRUE(trpi_management_token_derive("cookie", "demo", one));
    UNIT_TRUE(trpi_management_token_derive("cookie", "demo", same));
    UNIT_TEXT(one, same);
    /* printf 'troupe management 1 demo' | openssl dgst -sha256 -hmac cookie */
    UNIT_TEXT(one, "8736a52ead1653bb4553b61b1ed3631a9d06604ef4389d27398ec3c000b8358f");
    UNIT_TRUE(trpi_management_token_derive("cookie", "other", other));
    UNIT_TRUE(strcmp(one, other) != 0);
    UNIT_TRUE(trpi_management_token_derive("Cookie", "demo", other));
    UNIT_TRUE(strcmp(one, other) != 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static trp_err
file_load(const char *text, size_t bytes, mode_t mode, trpi_management_tokens *tokens, char *why)
{
    char path[] = "/tmp/troupe-tokens.XXXXXX";
    int fd = mkstemp(path);
    UNIT_REQUIRE(fd >= 0);
    UNIT_EQUAL(write(fd, text, bytes), (long long)bytes);
    UNIT_EQUAL(fchmod(fd, mode), 0);
    (void)close(fd);
    why[0] = '\0';
    trp_err err = trpi_management_tokens_load(tokens, path, TRPI_MANAGEMENT_WRITER, why);
    (void)unlink(path);
    return err;
}

static void
a_token_file_has_a_token_a_line(void)
{
    static const char text[] = "# of the board\n" READER_TOKEN "\n\n" WRITER_TOKEN "  \r\n";
    trpi_management_tokens tokens = { .count = 0 };
    trpi_management_policy policy = policy_make();
    char why[TRPI_MANAGEMENT_WHY_BYTES];
    UNIT_EQUAL(file_load(text, sizeof text - 1, 0600, &tokens, why), TRP_OK);
    UNIT_EQUAL(tokens.count, 2);
    policy.tokens = &tokens;
    UNIT_EQUAL(level(&policy, "Bearer " READER_TOKEN, NULL), TRPI_MANAGEMENT_WRITER);
}

static void
a_token_file_that_will_not_do_is_named(void)
{
    char many[(TRPI_MANAGEMENT_TOKENS_MAX + 1) * 40 + 1] = "", why[TRPI_MANAGEMENT_WHY_BYTES];
    trpi_management_tokens tokens = { .count = 0 };
    UNIT_EQUAL(file_load(READER_TOKEN, strlen(READER_TOKEN), 0640, &tokens, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "chmod 600") != NULL);
    UNIT_EQUAL(file_load("\n# nothing\n", 11, 0600, &tokens, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "holds no token") != NULL);
    UNIT_EQUAL(file_load("\nshort\n", 7, 0600, &tokens, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, ":2: no token") != NULL);
    UNIT_EQUAL(
        trpi_management_tokens_load(&tokens, "/nonexistent/tokens", TRPI_MANAGEMENT_READER, why),
        TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "/nonexistent/tokens") != NULL);
    UNIT_EQUAL(trpi_management_tokens_load(&tokens, "/dev/null", TRPI_MANAGEMENT_READER, why),
               TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "no regular file") != NULL);
    for (size_t i = 0; i < TRPI_MANAGEMENT_TOKENS_MAX; i++) {
        memcpy(many + strlen(many), READER_TOKEN "\n", sizeof READER_TOKEN + 1);
    }
    UNIT_EQUAL(file_load(many, strlen(many), 0600, &tokens, why), TRP_OK);
    UNIT_EQUAL(tokens.count, TRPI_MANAGEMENT_TOKENS_MAX);
    tokens.count = 0;
    memcpy(many + strlen(many), READER_TOKEN "\n", sizeof READER_TOKEN + 1);
    UNIT_EQUAL(file_load(many, strlen(many), 0600, &tokens, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "more than 16 tokens") != NULL);
    UNIT_EQUAL(tokens.count, 0);
}

UNIT_BEGIN("management_access")
UNIT(only_own_hosts_are_taken)
UNIT(a_host_has_a_limited_length)
UNIT(an_origin_must_be_this_host_and_port)
UNIT(a_token_gives_its_level)
UNIT(a_certificate_gives_the_level_of_its_name)
UNIT(the_credential_that_counts_is_named)
UNIT(tokens_are_limited_in_length_and_number)
UNIT(the_derived_token_depends_on_cookie_and_system)
UNIT(a_token_file_has_a_token_a_line)
UNIT(a_token_file_that_will_not_do_is_named)
UNIT_END
