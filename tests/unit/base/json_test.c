/* JSON helpers: 64-bit ids survive, depth and trailing text are refused. */
#include "base/json.h"

#include <math.h>

#include "base/buffer.h"
#include "tests/unit/unit.h"

static void
ids_above_2_to_the_53_survive_as_strings(void)
{
    cJSON *object = cJSON_CreateObject();
    cJSON *back = NULL;
    uint64_t number = 0;
    char *text;

    UNIT_TRUE(trpi_json_add_u64_string(object, "uid", UINT64_MAX));
    UNIT_TRUE(trpi_json_add_i64(object, "small", -5));
    UNIT_TRUE(trpi_json_add_i64(object, "big", INT64_MAX));
    UNIT_TRUE(trpi_json_add_text(object, "none", NULL));
    UNIT_TRUE(trpi_json_add_bool(object, "yes", true));
    text = trpi_json_print(object);
    UNIT_TEXT(text, "{\"uid\":\"18446744073709551615\",\"small\":-5,"
                    "\"big\":\"9223372036854775807\",\"none\":null,\"yes\":true}");
    UNIT_REQUIRE(trpi_json_parse(text, strlen(text), &back, NULL) == TRP_OK);
    UNIT_TRUE(trpi_json_get_u64(back, "uid", &number));
    UNIT_TRUE(number == UINT64_MAX);
    UNIT_TRUE(trpi_json_get_u64(back, "big", &number));
    UNIT_FALSE(trpi_json_get_u64(back, "small", &number));
    UNIT_FALSE(trpi_json_get_u64(back, "absent", &number));
    UNIT_TRUE(trpi_json_get_text(back, "none") == NULL);
    cJSON_free(text);
    cJSON_Delete(object);
    cJSON_Delete(back);
}

static void
a_row_is_put_behind_the_others_or_is_gone(void)
{
    cJSON *list = cJSON_CreateArray();

    UNIT_TRUE(trpi_json_append(list, cJSON_CreateString("a"), true));
    UNIT_FALSE(trpi_json_append(list, cJSON_CreateString("b"), false));
    UNIT_FALSE(trpi_json_append(list, NULL, true));
    UNIT_FALSE(trpi_json_append(NULL, cJSON_CreateString("c"), true)); /* ASan finds leaks */
    UNIT_EQUAL(cJSON_GetArraySize(list), 1);
    cJSON_Delete(list);
}

static bool
u64_of(const char *text, uint64_t *ret_number)
{
    cJSON *json = NULL;
    bool got;

    UNIT_REQUIRE(trpi_json_parse(text, strlen(text), &json, NULL) == TRP_OK);
    got = trpi_json_get_u64(json, "n", ret_number);
    cJSON_Delete(json);
    return got;
}

static void
only_whole_numbers_in_range_are_u64(void)
{
    uint64_t number = 0;

    UNIT_TRUE(u64_of("{\"n\":42}", &number) && number == 42);
    UNIT_TRUE(u64_of("{\"n\":9007199254740992}", &number) && number == 9007199254740992u);
    UNIT_FALSE(u64_of("{\"n\":9007199254740994}", &number));
    UNIT_FALSE(u64_of("{\"n\":1.5}", &number));
    UNIT_FALSE(u64_of("{\"n\":-1}", &number));
    UNIT_FALSE(u64_of("{\"n\":1e300}", &number));
    UNIT_FALSE(u64_of("{\"n\":\"-1\"}", &number));
    UNIT_FALSE(u64_of("{\"n\":\" 1\"}", &number));
    UNIT_FALSE(u64_of("{\"n\":\"1x\"}", &number));
    UNIT_FALSE(u64_of("{\"n\":\"\"}", &number));
    UNIT_FALSE(u64_of("{\"n\":\"18446744073709551616\"}", &number));
    UNIT_FALSE(u64_of("{\"n\":true}", &number));
    UNIT_TRUE(number == 9007199254740992u); /* a failure leaves the output alone */
}

static trp_err
parse_nested(unsigned depth)
{
    trpi_buffer buffer = { 0 };
    cJSON *json = NULL;
    trp_err err;

    for (unsigned i = 0; i < depth; i++) {
        UNIT_REQUIRE(trpi_buffer_append(&buffer, "[", 1, 100000) == TRP_OK);
    }
    for (unsigned i = 0; i < depth; i++) {
        UNIT_REQUIRE(trpi_buffer_append(&buffer, "]", 1, 100000) == TRP_OK);
    }
    err = trpi_json_parse((const char *)buffer.data, buffer.count, &json, NULL);
    cJSON_Delete(json);
    trpi_buffer_fini(&buffer);
    return err;
}

static void
depth_64_is_read_and_65_refused(void)
{
    UNIT_EQUAL(parse_nested(TRPI_JSON_DEPTH_MAX), TRP_OK);
    UNIT_EQUAL(parse_nested(TRPI_JSON_DEPTH_MAX + 1), TRP_EDATA);
    UNIT_EQUAL(parse_nested(50000), TRP_EDATA);
}

static void
refused_at(const char *text, size_t want_offset)
{
    cJSON *json = NULL;
    size_t offset = SIZE_MAX;

    UNIT_EQUAL(trpi_json_parse(text, strlen(text), &json, &offset), TRP_EDATA);
    UNIT_TRUE(json == NULL);
    UNIT_EQUAL(offset, want_offset);
}

static void
bad_text_is_refused_with_its_place(void)
{
    cJSON *json = NULL;

    refused_at("", 0);
    refused_at("{\"a\":1} x", 8);
    refused_at("[1][2]", 3);
    refused_at("nul", 0);
    UNIT_EQUAL(trpi_json_parse("{}\n", 3, &json, NULL), TRP_OK);
    cJSON_Delete(json);
    json = NULL;
    /* brackets in strings are no depth, and the length counts, not the NUL */
    UNIT_EQUAL(trpi_json_parse("\"[[[\\\"[[\"]]", 9, &json, NULL), TRP_OK);
    cJSON_Delete(json);
}

static void
f64_survives(double number)
{
    cJSON *object = cJSON_CreateObject(), *back = NULL;
    double got;
    char *text;

    UNIT_TRUE(trpi_json_add_f64(object, "n", number));
    text = trpi_json_print(object);
    UNIT_REQUIRE(trpi_json_parse(text, strlen(text), &back, NULL) == TRP_OK);
    got = cJSON_GetNumberValue(cJSON_GetObjectItem(back, "n"));
    if (!UNIT_TRUE(memcmp(&got, &number, sizeof got) == 0)) {
        printf("  %.17g as %s\n", number, text);
    }
    cJSON_free(text);
    cJSON_Delete(object);
    cJSON_Delete(back);
}

/* Doubles of all sizes, bit by bit; drawn ones, of a fixed seed */
static void
every_double_reads_back_equal(void)
{
    static const double numbers[] = { 0.0,
                                      -0.0,
                                      0.1,
                                      0.3 + 0.6,
                                      1e21,
                                      5e-324,
                                      1.0 / 3,
                                      123,
                                      1.7976931348623157e308,
                                      0.1 + 0.2,
                                      2.2250738585072014e-308,
                                      9007199254740991.0 };
    cJSON *object = cJSON_CreateObject();
    uint64_t state = 42;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        f64_survives(numbers[i]);
    }
    for (int i = 0; i < 20000; i++) {
        double number;

        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(&number, &state, sizeof number);
        if (isfinite(number)) {
            f64_survives(number);
        }
    }
    UNIT_FALSE(trpi_json_add_f64(object, "n", (double)NAN));
    UNIT_FALSE(trpi_json_add_f64(object, "n", (double)INFINITY));
    UNIT_FALSE(trpi_json_add_f64(NULL, "n", 1));
    UNIT_TRUE(trpi_json_add_i64(object, "edge", 9007199254740991));
    {
        char *text = trpi_json_print(object);

        UNIT_TEXT(text, "{\"edge\":9007199254740991}");
        cJSON_free(text);
    }
    cJSON_Delete(object);
}

/* A NUL, which would cut a string of C, and bytes that are no UTF-8. */
static void
a_nul_and_what_is_no_utf8_are_refused(void)
{
    static const struct {
        const char *text;
        size_t bytes, at;
    } rows[] = {
        { "{\"a\":\"x\\u0000y\"}", 15, 7 },
        { "{\"a\":\"x\0y\"}", 10, 7 },
        { "[\"\xff\"]", 5, 2 },
        { "[\"\xc0\x80\"]", 6, 2 },
        { "[\"\xed\xa0\x80\"]", 7, 2 },
        { "[\"\xf4\x90\x80\x80\"]", 8, 2 },
        { "[\"\xe2\x82\"]", 6, 2 },
        { "[\"\xe0\x9f\xbf\"]", 7, 2 },
    };
    cJSON *json = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t offset = 0;

        UNIT_EQUAL(trpi_json_parse(rows[i].text, rows[i].bytes, &json, &offset), TRP_EDATA);
        UNIT_EQUAL(offset, rows[i].at);
    }
    UNIT_EQUAL(trpi_json_parse("[\"\\\\u0000 \xf4\x8f\xbf\xbf\xe2\x82\xac\"]", 19, &json, NULL),
               TRP_OK);
    UNIT_TEXT(cJSON_GetStringValue(cJSON_GetArrayItem(json, 0)),
              "\\u0000 \xf4\x8f\xbf\xbf\xe2\x82\xac");
    cJSON_Delete(json);
}

/* A text of an actor or peer may have any bytes; a reader of the JSON must not fail at them. */
static void
what_is_printed_is_utf8(void)
{
    cJSON *object = cJSON_CreateObject();
    cJSON *back = NULL;
    char *text;

    UNIT_TRUE(trpi_json_add_text(object, "caf\xe9", "\xff\xc3\xa9\xc3"));
    text = trpi_json_print(object);
    UNIT_TEXT(text, "{\"caf?\":\"?\xc3\xa9?\"}");
    UNIT_EQUAL(trpi_json_parse(text, strlen(text), &back, NULL), TRP_OK);
    cJSON_free(text);
    cJSON_Delete(object);
    cJSON_Delete(back);
}

UNIT_BEGIN("json")
UNIT(ids_above_2_to_the_53_survive_as_strings)
UNIT(a_row_is_put_behind_the_others_or_is_gone)
UNIT(only_whole_numbers_in_range_are_u64)
UNIT(depth_64_is_read_and_65_refused)
UNIT(bad_text_is_refused_with_its_place)
UNIT(every_double_reads_back_equal)
UNIT(a_nul_and_what_is_no_utf8_are_refused)
UNIT(what_is_printed_is_utf8)
UNIT_END
