/* postgres_init.c - options of a journal in PostgreSQL, and the making of its tables.
 *
 * Must hold.
 *   postgres-init-T1  No text of ours holds a password: a connection string that libpq refuses is
 *       not quoted, a password file is read at each connect and named, never shown.
 * Tests. tests/unit/persistence/journal_postgres_test.c, tests/system/postgres.sh
 */
#include "persistence/postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/journal_postgres.h>

#include "base/alloc.h"
#include "base/errno_name.h"
#include "base/sized.h"

static trp_err why_say(char *why, size_t why_bytes, trp_err err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static trp_err
why_say(char *why, size_t why_bytes, trp_err err, const char *format, ...)
{
    va_list args;

    if (why != NULL && why_bytes != 0) {
        va_start(args, format);
        (void)vsnprintf(why, why_bytes, format, args);
        va_end(args);
    }
    return err;
}

#ifdef HAVE_POSTGRES

static bool
is_schema_name(const char *name)
{
    size_t bytes = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return bytes != 0 && name[bytes] == '\0' && bytes <= TRP_JOURNAL_POSTGRES_SCHEMA_BYTES_MAX &&
           (name[0] < '0' || name[0] > '9') && strncmp(name, "pg_", 3) != 0;
}

trp_err
trpi_pg_options_check(const trp_journal_postgres_options *options, const trpi_libpq *pq, char *why,
                      size_t why_bytes)
{
    PQconninfoOption *parsed = NULL;
    char *error = NULL;

    if (options->url == NULL || options->url[0] == '\0') {
        return why_say(why, why_bytes, TRP_EINVAL,
                       "no database is named: a URL as postgresql://user@host/database is needed");
    }
    if (options->schema != NULL && !is_schema_name(options->schema)) {
        return why_say(why, why_bytes, TRP_EINVAL,
                       "the schema has a name of 1 to %d letters a-z, digits and _",
                       TRP_JOURNAL_POSTGRES_SCHEMA_BYTES_MAX);
    }
    if (options->readers > TRP_JOURNAL_POSTGRES_READERS_MAX ||
        options->batch_max > TRP_JOURNAL_POSTGRES_BATCH_MAX) {
        return why_say(why, why_bytes, TRP_EINVAL,
                       "at most %d readers, and batches of at most %d operations",
                       TRP_JOURNAL_POSTGRES_READERS_MAX, TRP_JOURNAL_POSTGRES_BATCH_MAX);
    }
    parsed = pq->PQconninfoParse(options->url, &error);
    if (error != NULL) {
        pq->PQfreemem(error); /* postgres-init-T1: it may quote a password */
    }
    if (parsed == NULL) {
        return why_say(why, why_bytes, TRP_ECONFIG,
                       "the URL of the database is no connection string of libpq (it is not shown "
                       "here, since it may hold a password): postgresql://user@host:port/database");
    }
    pq->PQconninfoFree(parsed);
    return TRP_OK;
}

trp_err
trpi_pg_password_read(const char *path, char *ret_password, size_t bytes, char *why,
                      size_t why_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    trp_err err = TRP_OK;
    ssize_t count = 0;

    if (fd < 0) {
        return why_say(why, why_bytes, TRP_ECONFIG, "the password file %s: %s", path,
                       trpi_errno_name(errno));
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        err = why_say(why, why_bytes, TRP_ECONFIG, "%s is not a regular file", path);
    } else if (status.st_uid == geteuid() ? (status.st_mode & 077) != 0
                                          : (status.st_mode & 07) != 0) {
        err = why_say(why, why_bytes, TRP_ECONFIG, "%s: others may read it (mode %04o): chmod 400",
                      path, (unsigned)status.st_mode & 07777);
    } else if ((count = read(fd, ret_password, bytes)) < 0 || (size_t)count == bytes) {
        err = why_say(why, why_bytes, TRP_ECONFIG, "%s cannot be read, or is too long", path);
    } else {
        ret_password[count] = '\0';
        ret_password[strcspn(ret_password, "\r\n")] = '\0';
    }
    (void)close(fd);
    return err;
}

void
trpi_pg_keywords(const trp_journal_postgres_options *options, const char *password,
                 const char **keywords, const char **values)
{
    static const char *const before[][2] = {
        { "target_session_attrs", "read-write" },
        { "gssencmode", "disable" },
        { "keepalives_idle", "10" },
        { "keepalives_interval", "5" },
        { "keepalives_count", "3" },
        { "fallback_application_name", "troupe" },
    };
    size_t count = 0;

    for (; count < sizeof before / sizeof *before; count++) {
        keywords[count] = before[count][0];
        values[count] = before[count][1];
    }
    keywords[count] = "dbname"; /* a whole connection string: it wins over what stands before */
    values[count++] = options->url;
    if (password != NULL && password[0] != '\0') {
        keywords[count] = "password";
        values[count++] = password;
    }
    keywords[count] = "client_encoding";
    values[count++] = "UTF8";
    keywords[count] = NULL;
    values[count] = NULL;
}

/* One connection that waits: for the making of tables. */
typedef struct maker {
    const trpi_libpq *pq;
    PGconn *conn;
    const char *schema;
    char *why;
    size_t why_bytes;
} maker;

static trp_err
maker_error(const maker *m, trp_err err, const char *what)
{
    char text[TRP_JOURNAL_WHY_BYTES];

    trpi_pg_text_clean(NULL, m->pq->PQerrorMessage(m->conn), text, sizeof text);
    return why_say(m->why, m->why_bytes, err, "%s: %s", what, text);
}

/* Read the version of the tables: 0: there are none. */
static trp_err
maker_version(const maker *m, int64_t *ret_version)
{
    char *text = trpi_postgres_text("SELECT CASE WHEN to_regclass('@.format') IS NULL THEN 0 ELSE "
                                    "1 END",
                                    m->schema);
    char *version = trpi_postgres_text("SELECT version FROM @.format", m->schema);
    trp_err err = text != NULL && version != NULL ? TRP_OK : TRP_ENOMEM;

    for (int i = 0; err == TRP_OK && i < 2; i++) {
        PGresult *result =
            m->pq->PQexecParams(m->conn, i == 0 ? text : version, 0, NULL, NULL, NULL, NULL, 1);
        if (m->pq->PQresultStatus(result) != PGRES_TUPLES_OK || m->pq->PQntuples(result) != 1) {
            err = maker_error(m, TRP_EFAILED, "the tables cannot be looked at");
        } else {
            *ret_version = trpi_pg_int(m->pq, result, 0, 0);
        }
        m->pq->PQclear(result);
        if (*ret_version == 0) {
            break;
        }
    }
    trpi_free(text);
    trpi_free(version);
    return err;
}

static trp_err
maker_make(const maker *m)
{
    char *text = trpi_postgres_text(trpi_postgres_tables, m->schema);
    trp_err err = text != NULL ? TRP_OK : TRP_ENOMEM;

    if (err == TRP_OK) { /* several statements in one text are one transaction */
        PGresult *result = m->pq->PQexec(m->conn, text);
        if (m->pq->PQresultStatus(result) != PGRES_COMMAND_OK) {
            err = maker_error(m, TRP_EFAILED, "the tables were not made");
        }
        m->pq->PQclear(result);
    }
    trpi_free(text);
    return err;
}

static void
notice_ignore(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

static trp_err
maker_connect(maker *m, const trp_journal_postgres_options *options)
{
    const char *keywords[TRPI_PG_KEYWORDS_MAX];
    const char *values[TRPI_PG_KEYWORDS_MAX];
    char password[TRPI_PG_TEXT_BYTES] = "";
    char seconds[16];
    size_t count = 0;
    trp_err err = TRP_OK;

    if (options->password_file != NULL) {
        err = trpi_pg_password_read(options->password_file, password, sizeof password, m->why,
                                    m->why_bytes);
    }
    if (err != TRP_OK) {
        return err;
    }
    trpi_pg_keywords(options, password, keywords, values);
    while (keywords[count] != NULL) {
        count++;
    }
    (void)snprintf(seconds, sizeof seconds, "%u",
                   (options->connect_timeout_ms != 0 ? options->connect_timeout_ms
                                                     : TRP_JOURNAL_POSTGRES_CONNECT_MS_DEFAULT) /
                           1000 +
                       1);
    keywords[count] = "connect_timeout";
    values[count++] = seconds;
    keywords[count] = values[count] = NULL;
    m->conn = m->pq->PQconnectdbParams(keywords, values, 1);
    memset(password, 0, sizeof password);
    if (m->conn == NULL) {
        return TRP_ENOMEM;
    }
    if (m->pq->PQstatus(m->conn) != CONNECTION_OK) {
        return maker_error(m, TRP_ECONN, "no connection");
    }
    (void)m->pq->PQsetNoticeReceiver(m->conn, notice_ignore, NULL);
    return TRP_OK;
}

trp_err
trp_journal_postgres_init(const trp_journal_postgres_options *options, uint32_t *ret_made,
                          char *why, size_t why_bytes)
{
    trp_journal_postgres_options own = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char unused[1];
    maker m = { NULL, NULL, NULL, why != NULL ? why : unused, why != NULL ? why_bytes : 1 };
    int64_t version = 0;
    trp_err err = TRP_OK;

    if (options == NULL || !TRPI_SIZED_COPY(options, &own, waiting_bytes_max)) {
        return why_say(why, why_bytes, TRP_EINVAL, "the options are missing or of another size");
    }
    m.pq = trpi_libpq_get(m.why, m.why_bytes);
    m.schema = own.schema != NULL ? own.schema : TRP_JOURNAL_POSTGRES_SCHEMA;
    err = m.pq != NULL ? trpi_pg_options_check(&own, m.pq, why, why_bytes) : TRP_EUNSUPPORTED;
    if (err == TRP_OK) {
        err = maker_connect(&m, &own);
    }
    if (err == TRP_OK) {
        err = maker_version(&m, &version);
    }
    if (err == TRP_OK && version == 0) {
        err = maker_make(&m);
    } else if (err == TRP_OK && version != TRPI_POSTGRES_VERSION) {
        err = why_say(why, why_bytes, TRP_EVERSION,
                      "schema \"%s\" has tables of version %d, and this Troupe uses version %d: %s",
                      m.schema, (int)version, TRPI_POSTGRES_VERSION,
                      version > TRPI_POSTGRES_VERSION
                          ? "use a newer Troupe"
                          : "export with the Troupe that made them, and import into a new schema");
    }
    if (err == TRP_OK && ret_made != NULL) {
        *ret_made = version == 0;
    }
    if (m.conn != NULL) {
        m.pq->PQfinish(m.conn);
    }
    return err;
}

#else

trp_err
trp_journal_postgres_init(const trp_journal_postgres_options *options, uint32_t *ret_made,
                          char *why, size_t why_bytes)
{
    (void)options;
    (void)ret_made;
    return why_say(why, why_bytes, TRP_EUNSUPPORTED,
                   "this Troupe was built --without-postgres: it has no journal in PostgreSQL");
}

trp_err
trp_journal_postgres_open(const trp_journal_postgres_options *options,
                          const trp_journal_driver **ret_driver, char *why, size_t why_bytes)
{
    (void)options;
    (void)ret_driver;
    return why_say(why, why_bytes, TRP_EUNSUPPORTED,
                   "this Troupe was built --without-postgres: it has no journal in PostgreSQL");
}

#endif
