/* form_test.c - fields of forms and queries. */
#include "cluster/management/form.h"
#include "tests/unit/unit.h"

#define URLENCODED "application/x-www-form-urlencoded"

static trp_err
get(const char *type, const char *body, char value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    value[0] = '\0';
    return trpi_management_form_get(type, (const uint8_t *)body, strlen(body), "address", value);
}

static void
a_field_is_decoded(void)
{
    char value[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    UNIT_EQUAL(get(URLENCODED, "a=b&address=troupe.tcp%3A%2F%2Fdemo%40h%3a1&c", value), TRP_OK);
    UNIT_TEXT(value, "troupe.tcp://demo@h:1");
    UNIT_EQUAL(get(URLENCODED "; charset=utf-8", "address=a+b", value), TRP_OK);
    UNIT_TEXT(value, "a b");
    UNIT_EQUAL(get(URLENCODED, "address", value), TRP_OK);
    UNIT_TEXT(value, "");
}

static void
what_is_no_form_is_refused(void)
{
    char value[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    UNIT_EQUAL(get(URLENCODED, "", value), TRP_ENOENT);
    UNIT_EQUAL(get(URLENCODED, "addres=a&address2=b", value), TRP_ENOENT);
    UNIT_EQUAL(get(URLENCODED, "address=a&address=b", value), TRP_EDATA);
    UNIT_EQUAL(get(URLENCODED, "address=%0", value), TRP_EDATA);
    UNIT_EQUAL(get(URLENCODED, "address=%0g", value), TRP_EDATA);
    UNIT_EQUAL(get(URLENCODED, "address=%00", value), TRP_EDATA);
    UNIT_EQUAL(get(URLENCODED, "address=%ff", value), TRP_EDATA);
    UNIT_EQUAL(get("application/json", "{}", value), TRP_EVERSION);
    UNIT_EQUAL(get(URLENCODED "x", "address=a", value), TRP_EVERSION);
    UNIT_EQUAL(get(NULL, "address=a", value), TRP_EVERSION);
    UNIT_EQUAL(get(NULL, "", value), TRP_ENOENT);
}

static void
a_value_has_a_limited_length(void)
{
    char body[TRPI_MANAGEMENT_FIELD_BYTES_MAX + 16] = "address=";
    char value[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    memset(body + 8, 'a', TRPI_MANAGEMENT_FIELD_BYTES_MAX - 1);
    UNIT_EQUAL(get(URLENCODED, body, value), TRP_OK);
    UNIT_EQUAL(strlen(value), TRPI_MANAGEMENT_FIELD_BYTES_MAX - 1);
    body[8 + TRPI_MANAGEMENT_FIELD_BYTES_MAX - 1] = 'a';
    UNIT_EQUAL(get(URLENCODED, body, value), TRP_EMSGSIZE);
}

#define PART(name, value)                                                                          \
    "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n--B"

static void
what_curl_sends_with_F_is_a_form_too(void)
{
    static const char type[] = "multipart/form-data; boundary=B";
    char value[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    UNIT_EQUAL(get(type, "--B\r\n" PART("x", "1") "\r\n" PART("address", "h:1") "--\r\n", value),
               TRP_OK);
    UNIT_TEXT(value, "h:1");
    UNIT_EQUAL(
        get("multipart/form-data; boundary=\"B\"", "--B\r\n" PART("address", "h") "--", value),
        TRP_OK);
    UNIT_EQUAL(get(type, "--B\r\n" PART("x", "1") "--\r\n", value), TRP_ENOENT);
    UNIT_EQUAL(
        get(type, "--B\r\n" PART("address", "1") "\r\n" PART("address", "2") "--\r\n", value),
        TRP_EDATA);
    UNIT_EQUAL(get(type, "--B\r\n" PART("address", "1"), value), TRP_EDATA); /* no end */
    UNIT_EQUAL(get(type, "address=1", value), TRP_EDATA);
    UNIT_EQUAL(get(type, "", value), TRP_EDATA);
    UNIT_EQUAL(get("multipart/form-data", "--B\r\n" PART("address", "1") "--\r\n", value),
               TRP_EDATA);
    UNIT_EQUAL(get("multipart/form-data; boundary=", "--", value), TRP_EDATA);
}

static void
a_query_has_each_name_once(void)
{
    char value[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    UNIT_EQUAL(trpi_management_query_get("a=1&path=/user&b=2", "path", value), TRP_OK);
    UNIT_TEXT(value, "/user");
    UNIT_EQUAL(trpi_management_query_get("paths=/user&pat=h", "path", value), TRP_ENOENT);
    UNIT_EQUAL(trpi_management_query_get("", "path", value), TRP_ENOENT);
    UNIT_EQUAL(trpi_management_query_get("path=1&path=2", "path", value), TRP_EDATA);
}

UNIT_BEGIN("management_form")
UNIT(a_field_is_decoded)
UNIT(what_is_no_form_is_refused)
UNIT(a_value_has_a_limited_length)
UNIT(what_curl_sends_with_F_is_a_form_too)
UNIT(a_query_has_each_name_once)
UNIT_END
