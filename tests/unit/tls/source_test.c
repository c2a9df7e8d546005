/* source_test.c - files that change while sessions are open. */
#include <pthread.h>

#include "tests/unit/tls/ends.h"

/* The digest of the certificate that a new session would show. */
static const char *
present(trpi_tls_source *source)
{
    static char digest[65];
    trpi_tls_info info;
    trpi_tls_context *context = trpi_tls_source_context(source);
    trpi_tls_context_info(context, "", &info);
    (void)snprintf(digest, sizeof digest, "%s", info.digest);
    trpi_tls_context_unref(context);
    return digest;
}

static trp_err
check(const ends_files *f, trpi_tls_source *source, int days_ahead, bool changed)
{
    char why[300] = "";
    bool has_changed = !changed;
    trp_err err = trpi_tls_source_check(source, f->pki.now_ms + days_ahead * PKI_DAY, &has_changed,
                                        why, sizeof why);
    UNIT_EQUAL(has_changed, changed);
    UNIT_EQUAL(err != TRP_OK, why[0] != '\0');
    return err;
}

static void
new_files_are_taken_and_open_sessions_keep_theirs(void)
{
    ends_files f;
    end c;
    char why[300] = "", first[65], text[100];
    trpi_tls_source *source = NULL;
    size_t count = 0;
    ends_files_start(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    const trpi_tls_pair more = { ends_path(&f, "other.pem"), ends_path(&f, "other.key") };
    static const char *const protocols[] = { "echo/1" };
    server.more = &more;
    server.more_count = 1;
    server.protocols = client.protocols = protocols;
    server.protocols_count = client.protocols_count = 1;
    UNIT_REQUIRE(trpi_tls_source_new(&server, f.pki.now_ms, &source, why, sizeof why) == TRP_OK);
    (void)snprintf(first, sizeof first, "%s", present(source));
    UNIT_EQUAL(check(&f, source, 0, false), TRP_OK);

    end s = { .context = trpi_tls_source_context(source) }; /* a session of the first files */
    const trpi_tls_session_options options = { .wall_ms = f.pki.now_ms };
    UNIT_REQUIRE(trpi_tls_session_new(s.context, &options, &s.session) == TRP_OK);
    end_start(&c, &f, &client, "echo.example", 0);
    pki_node(&f.pki, "ca", "echo", "echo.example", -1, 60); /* written again */
    UNIT_EQUAL(check(&f, source, 0, true), TRP_OK);
    UNIT_FALSE(strcmp(first, present(source)) == 0);
    UNIT_EQUAL(check(&f, source, 0, false), TRP_OK);
    ends_shake(&c, &s);
    UNIT_EQUAL(s.result, TRPI_TLS_OK);
    end_write(&c, "hello", 5);
    UNIT_EQUAL(end_read(&s, &c, text, sizeof text, &count), TRPI_TLS_MORE);
    UNIT_EQUAL(count, 5);
    pki_node(&f.pki, "ca", "other", "other.example", -1, 60); /* the second pair counts, too */
    UNIT_EQUAL(check(&f, source, 0, true), TRP_OK);
    trpi_tls_source_free(source); /* before the session of its first context */
    end_stop(&c);
    end_stop(&s);
    pki_end(&f.pki);
}

/* tls-source-R1, tls-source-R2 */
static void
files_that_do_not_match_leave_the_old_ones_in_use(void)
{
    ends_files f;
    char why[300] = "", first[65];
    trpi_tls_source *source = NULL;
    ends_files_start(&f);
    trpi_tls_options server = ends_server(&f);
    UNIT_REQUIRE(trpi_tls_source_new(&server, f.pki.now_ms, &source, why, sizeof why) == TRP_OK);
    (void)snprintf(first, sizeof first, "%s", present(source));
    char *key = pki_read(&f.pki, "echo.key"), *foreign = pki_read(&f.pki, "other.key");
    pki_write(&f.pki, "echo.key", foreign); /* the certificate follows later */
    UNIT_EQUAL(check(&f, source, 0, false), TRP_ECONFIG);
    UNIT_EQUAL(check(&f, source, 0, false), TRP_ECONFIG); /* each time */
    UNIT_TEXT(present(source), first);
    pki_write(&f.pki, "echo.key", key);
    UNIT_EQUAL(check(&f, source, 0, true), TRP_OK);
    UNIT_TEXT(present(source), first);

    pki_node(&f.pki, "ca", "echo", "echo.example", 3, 60); /* too early: only time is missing */
    UNIT_EQUAL(check(&f, source, 0, false), TRP_ECONFIG);
    UNIT_TEXT(present(source), first);
    UNIT_EQUAL(check(&f, source, 4, true), TRP_OK);
    UNIT_FALSE(strcmp(first, present(source)) == 0);
    trpi_free(key);
    trpi_free(foreign);
    trpi_tls_source_free(source);
    pki_end(&f.pki);
}

enum { THREADS = 3, SHAKES = 12, RELOADS = 12 };

typedef struct shaker {
    trpi_tls_source *source;
    trpi_tls_context *client;
    int64_t now_ms;
} shaker;

static void *
shaker_run(void *arg)
{
    const shaker *self = arg;
    const trpi_tls_session_options dialled = { .host = "echo.example", .wall_ms = self->now_ms };
    const trpi_tls_session_options accepted = { .wall_ms = self->now_ms };
    for (int i = 0; i < SHAKES; i++) {
        end c = { .context = trpi_tls_context_ref(self->client) };
        end s = { .context = trpi_tls_source_context(self->source) };
        if (UNIT_EQUAL(trpi_tls_session_new(c.context, &dialled, &c.session), TRP_OK) &&
            UNIT_EQUAL(trpi_tls_session_new(s.context, &accepted, &s.session), TRP_OK)) {
            ends_shake(&c, &s);
            UNIT_EQUAL(c.result, TRPI_TLS_OK);
            UNIT_EQUAL(s.result, TRPI_TLS_OK);
        }
        end_stop(&c);
        end_stop(&s);
    }
    return NULL;
}

static void
threads_begin_sessions_while_the_files_change(void)
{
    ends_files f;
    char why[300] = "";
    pthread_t threads[THREADS];
    shaker all = { 0 };
    ends_files_start(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    all.now_ms = f.pki.now_ms;
    UNIT_REQUIRE(trpi_tls_source_new(&server, f.pki.now_ms, &all.source, why, sizeof why) ==
                 TRP_OK);
    UNIT_REQUIRE(trpi_tls_context_load(&client, f.pki.now_ms, &all.client, why, sizeof why) ==
                 TRP_OK);
    for (int i = 0; i < THREADS; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, shaker_run, &all) == 0);
    }
    for (int i = 0; i < RELOADS; i++) {
        pki_node(&f.pki, "ca", "echo", "echo.example", -1, 30);
        UNIT_EQUAL(check(&f, all.source, 0, true), TRP_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    trpi_tls_context_unref(all.client);
    trpi_tls_source_free(all.source);
    pki_end(&f.pki);
}

static void
without_memory_there_is_no_source_and_nothing_is_lost(void)
{
    ends_files f;
    char why[300] = "";
    trpi_tls_source *source = NULL;
    static const char *const names[] = { "a.example", "b.example" };
    ends_files_start(&f);
    trpi_tls_options server = ends_server(&f);
    const trpi_tls_pair more = { ends_path(&f, "other.pem"), ends_path(&f, "other.key") };
    server.more = &more;
    server.more_count = 1;
    server.allowed = server.protocols = names;
    server.allowed_count = server.protocols_count = 2;
    trp_err err = TRP_ENOMEM;
    long n = 0;
    for (; n < 200 && err == TRP_ENOMEM; n++) {
        trpi_alloc_fail_here_after(n);
        err = trpi_tls_source_new(&server, f.pki.now_ms, &source, why, sizeof why);
        trpi_alloc_fail_here_after(-1);
    }
    UNIT_EQUAL(err, TRP_OK);
    UNIT_TRUE(n > 10);
    trpi_tls_source_free(source);
    pki_end(&f.pki);
}

UNIT_BEGIN("source")
UNIT(new_files_are_taken_and_open_sessions_keep_theirs)
UNIT(files_that_do_not_match_leave_the_old_ones_in_use)
UNIT(threads_begin_sessions_while_the_files_change)
UNIT(without_memory_there_is_no_source_and_nothing_is_lost)
UNIT_END
