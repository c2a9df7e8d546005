/* journal_postgres_test.c - the options of a journal in PostgreSQL, without a server; with one:
 * tests/system/postgres.sh. */
#include "tests/unit/unit.h"

#include <troupe/journal_postgres.h>

/* Open with these options and close again; why is the reason. */
static trp_err
opened(const trp_journal_postgres_options *options, char why[512])
{
    const trp_journal_driver *driver = NULL;
    why[0] = '\0';
    trp_err err = trp_journal_postgres_open(options, &driver, why, 512);
    if (err == TRP_OK) {
        driver->close(driver->arg);
    }
    return err;
}

static bool
is_built(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    return opened(&options, why) != TRP_EUNSUPPORTED;
}

static void
a_build_without_postgres_or_libpq_says_so(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    options.url = "postgresql://nobody@127.0.0.1:1/none";
    trp_err err = opened(&options, why);
    if (err == TRP_EUNSUPPORTED) {
        UNIT_TRUE(strstr(why, "--without-postgres") != NULL || strstr(why, "libpq5") != NULL);
        UNIT_EQUAL(trp_journal_postgres_init(&options, NULL, why, sizeof why), TRP_EUNSUPPORTED);
    } else {
        UNIT_EQUAL(err, TRP_OK);
    }
}

static void
wrong_options_are_refused_with_a_reason(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    if (!is_built()) {
        return;
    }
    UNIT_EQUAL(trp_journal_postgres_open(NULL, NULL, NULL, 0), TRP_EINVAL);
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.url = "host=127.0.0.1 port=1";
    options.schema = "Upper";
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    UNIT_TRUE(strstr(why, "schema") != NULL);
    options.schema = "a123456789b123456789c123456789d123456789e123456789f123456789g123";
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.schema++;                              /* the longest */
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL); /* it begins with a digit */
    options.schema = "a23456789b123456789c123456789d123456789e123456789f123456789g123";
    UNIT_EQUAL(opened(&options, why), TRP_OK);
    options.schema = NULL;
    options.readers = TRP_JOURNAL_POSTGRES_READERS_MAX + 1;
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.readers = TRP_JOURNAL_POSTGRES_READERS_MAX;
    options.batch_max = TRP_JOURNAL_POSTGRES_BATCH_MAX + 1;
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.batch_max = TRP_JOURNAL_POSTGRES_BATCH_MAX;
    UNIT_EQUAL(opened(&options, why), TRP_OK);
}

static void
a_wrong_connection_string_is_not_quoted(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    if (!is_built()) {
        return;
    }
    options.url = "host=127.0.0.1 password='hunter22";
    UNIT_EQUAL(opened(&options, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "hunter22") == NULL && why[0] != '\0');
    options.url = "postgresql://u:hunter22@127.0.0.1:1/x?nothing=1";
    UNIT_EQUAL(opened(&options, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "hunter22") == NULL);
}

static void
a_server_that_is_not_there_is_no_error_of_open_but_of_init(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    if (!is_built()) {
        return;
    }
    options.url = "host=127.0.0.1 port=1 user=x dbname=x password=hunter22";
    UNIT_EQUAL(opened(&options, why), TRP_OK);
    UNIT_EQUAL(trp_journal_postgres_init(&options, NULL, why, sizeof why), TRP_ECONN);
    UNIT_TRUE(strstr(why, "hunter22") == NULL && why[0] != '\0');
    options.password_file = "/nowhere/password";
    UNIT_EQUAL(trp_journal_postgres_init(&options, NULL, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "/nowhere/password") != NULL);
}

UNIT_BEGIN("journal_postgres")
UNIT(a_build_without_postgres_or_libpq_says_so)
UNIT(wrong_options_are_refused_with_a_reason)
UNIT(a_wrong_connection_string_is_not_quoted)
UNIT(a_server_that_is_not_there_is_no_error_of_open_but_of_init)
UNIT_END
