/* trouble_test.c - problems of a certificate, of the authority above it and of a list of revoked
 * ones, when they end within a time that is given, or have ended. */
#include "remote/security/trouble.h"
#include "tests/unit/unit.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define NOW (INT64_C(20000) * DAY) /* 2024-10-04 */
#define WARN (14 * DAY)

static trpi_trouble_text text;

static bool
is_troubled(const trpi_tls_info *info, trpi_trouble kind)
{
    memset(&text, 0, sizeof text);
    return trpi_tls_trouble(info, kind, NOW, WARN, &text);
}

static void
a_certificate_is_a_problem_from_the_warning_on(void)
{
    trpi_tls_info info = { .subject = "host1", .not_after_ms = NOW + WARN + 1 };
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_CERTIFICATE));
    info.not_after_ms = NOW + WARN;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_CERTIFICATE));
    UNIT_TEXT(text.what, "this node's certificate (host1) ends in 14 days (2024-10-18)");
    UNIT_TRUE(strstr(text.help, "troupe cert renew") != NULL);
    info.not_after_ms = NOW + DAY + HOUR;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_CERTIFICATE));
    UNIT_TEXT(text.what, "this node's certificate (host1) ends in 25 hours (2024-10-05)");
    info.not_after_ms = NOW - HOUR;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_CERTIFICATE));
    UNIT_TEXT(text.what, "this node's certificate (host1) has ended 1 hour ago (2024-10-03)");
}

static void
an_authority_that_ends_first_is_named(void)
{
    trpi_tls_info info = { .subject = "host1", .not_after_ms = NOW + 300 * DAY };
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_AUTHORITY)); /* none is known */
    (void)snprintf(info.authority, sizeof info.authority, "demo-ca");
    info.authority_end_ms = NOW + WARN + 1;
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_AUTHORITY));
    info.authority_end_ms = NOW + WARN;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_AUTHORITY));
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_CERTIFICATE));
    UNIT_TEXT(text.what, "this node's certificate (host1) ends in 300 days (2025-07-31)");
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_AUTHORITY));
    UNIT_TEXT(text.what, "the authority demo-ca in the chain of this node's certificate ends "
                         "in 14 days (2024-10-18)");
}

/* The list is valid for a month: a warning 14 days before its end would last for half of that. */
static void
a_list_is_a_problem_in_the_last_quarter_of_its_time(void)
{
    trpi_tls_info info = { .crl_next_ms = 0 };
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_LIST));
    info.crl_next_ms = NOW + 5 * DAY;
    info.crl_from_ms = info.crl_next_ms - 20 * DAY;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_LIST));
    UNIT_TEXT(text.what,
              "the list of revoked certificates (remote.tls.crl) is due in 5 days (2024-10-09)");
    info.crl_next_ms += 1;
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_LIST));
    info.crl_next_ms = NOW + WARN + 1; /* however long it is valid */
    info.crl_from_ms = NOW - 3000 * DAY;
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_LIST));
    info.crl_next_ms = NOW + WARN;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_LIST));
    info.crl_next_ms = NOW - 3 * DAY;
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_LIST));
    UNIT_TEXT(text.what, "the list of revoked certificates (remote.tls.crl) was due 3 days ago "
                         "(2024-10-01)");
}

static void
a_certificate_for_another_host_is_a_problem(void)
{
    trpi_tls_info info = { .subject = "host1", .uncovered = "" };
    UNIT_TRUE(!is_troubled(&info, TRPI_TROUBLE_NAME));
    (void)snprintf(info.uncovered, sizeof info.uncovered, "10.0.0.7");
    UNIT_TRUE(is_troubled(&info, TRPI_TROUBLE_NAME));
    UNIT_TEXT(text.what,
              "this node's certificate (host1) is not for 10.0.0.7, which this node advertises");
}

UNIT_BEGIN("trouble")
UNIT(a_certificate_is_a_problem_from_the_warning_on)
UNIT(an_authority_that_ends_first_is_named)
UNIT(a_list_is_a_problem_in_the_last_quarter_of_its_time)
UNIT(a_certificate_for_another_host_is_a_problem)
UNIT_END
