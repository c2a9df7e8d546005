/* trouble.c - present and coming problems with a node's certificate, authority and revocation list.
 *
 * Why.     An expired certificate takes a whole cluster down within a minute, months after somebody
 *          last looked. So it is reported while there is time, and until it is replaced.
 * Must hold.
 *   trouble-X1  The text of a problem says what expires, when, and what to do; it is the same in
 *       the log, in `status` and in `why`.
 * Tests.   tests/unit/remote/trouble_test.c, tests/system/credentials.sh
 */
#include "remote/security/trouble.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"

#define DAY_MS INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)

/* "2027-01-31" */
static void
date_put(int64_t wall_ms, char out[16])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL || strftime(out, 16, "%Y-%m-%d", &parts) == 0) {
        (void)snprintf(out, 16, "?");
    }
}

/* Write "ends in 13 days (2027-01-31)" or "has ended 2 hours ago (2027-01-31)"; ends and ended are
 * the two verbs. */
static void
when_put(int64_t end_ms, int64_t wall_ms, const char *ends, const char *ended, char out[96])
{
    int64_t off_ms = end_ms > wall_ms ? end_ms - wall_ms : wall_ms - end_ms;
    bool days = off_ms >= 2 * DAY_MS;
    long long count = (long long)(off_ms / (days ? DAY_MS : HOUR_MS));
    char date[16];
    date_put(end_ms, date);
    (void)snprintf(out, 96, "%s%s%lld %s%s%s (%s)", end_ms > wall_ms ? ends : ended,
                   end_ms > wall_ms ? " in " : " ", count, days ? "day" : "hour",
                   count == 1 ? "" : "s", end_ms > wall_ms ? "" : " ago", date);
}

static bool
is_due(int64_t end_ms, int64_t wall_ms, int64_t warn_ms)
{
    return end_ms != 0 && end_ms - wall_ms <= warn_ms;
}

static void trouble_set(trpi_trouble_text *text, const char *help, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void
trouble_set(trpi_trouble_text *text, const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text->what, sizeof text->what, format, args); /* may be cut */
    va_end(args);
    (void)snprintf(text->help, sizeof text->help, "%s", help);
}

bool
trpi_tls_trouble(const trpi_tls_info *info, trpi_trouble kind, int64_t wall_ms, int64_t warn_ms,
                 trpi_trouble_text *ret_text)
{
    char when[96];
    /* A list is valid for weeks: warn when three quarters of that are over. */
    int64_t list_ms = info->crl_next_ms != 0 ? (info->crl_next_ms - info->crl_from_ms) / 4 : 0;
    bool is = false;
    switch (kind) {
    case TRPI_TROUBLE_CERTIFICATE:
        is = is_due(info->not_after_ms, wall_ms, warn_ms);
        when_put(info->not_after_ms, wall_ms, "ends", "has ended", when);
        trouble_set(
            ret_text,
            "write a new certificate and its key into the files of remote.tls (troupe cert renew), "
            "then send SIGHUP",
            "this node's certificate (%s) %s", info->subject, when);
        break;
    case TRPI_TROUBLE_AUTHORITY:
        is = is_due(info->authority_end_ms, wall_ms, warn_ms);
        when_put(info->authority_end_ms, wall_ms, "ends", "has ended", when);
        trouble_set(ret_text, "docs/operating.md, Changing the authority",
                    "the authority %s in the chain of this node's certificate %s", info->authority,
                    when);
        break;
    case TRPI_TROUBLE_LIST:
        is = is_due(info->crl_next_ms, wall_ms, list_ms < warn_ms ? list_ms : warn_ms);
        when_put(info->crl_next_ms, wall_ms, "is due", "was due", when);
        trouble_set(
            ret_text,
            "troupe cert revoke --days 30 writes it anew; with a list that is too old every peer "
            "is refused",
            "the list of revoked certificates (remote.tls.crl) %s", when);
        break;
    case TRPI_TROUBLE_NAME:
        is = info->uncovered[0] != '\0';
        trouble_set(
            ret_text,
            "the other nodes refuse it (wrong-name): make a certificate for that name (troupe cert "
            "node), then send SIGHUP",
            "this node's certificate (%s) is not for %s, which this node advertises", info->subject,
            info->uncovered);
        break;
    default:
        trpi_assert(kind < TRPI_TROUBLE_COUNT);
        break;
    }
    return is;
}
