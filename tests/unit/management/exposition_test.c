/* exposition_test.c - figures as text that Prometheus and OpenMetrics parse. */
#include <stdio.h>

#include "cluster/management/exposition.h"
#include "tests/unit/unit.h"

#define LEFT_OUT(count)                                                                            \
    "# HELP troupe_metrics_left_out Series that this answer lacks, because there are too many.\n"  \
    "# TYPE troupe_metrics_left_out gauge\ntroupe_metrics_left_out " count "\n"

static void
written(const char *families, bool openmetrics, const char *expected)
{
    cJSON *json = NULL;
    UNIT_REQUIRE(trpi_json_parse(families, strlen(families), &json, NULL) == TRP_OK);
    char *text = trpi_management_exposition(json, openmetrics);
    UNIT_TEXT(text, expected);
    cJSON_free(text);
    cJSON_Delete(json);
}

static void
families_become_text(void)
{
    static const char families[] =
        "[{\"name\":\"a\",\"type\":\"gauge\",\"help\":\"A.\",\"samples\":[{\"value\":1.5}]},"
        "{\"name\":\"b_total\",\"type\":\"counter\",\"help\":\"B.\",\"samples\":[{\"labels\":{"
        "\"x\":\"1\",\"y\":\"2\"},\"value\":3},{\"labels\":{\"x\":\"2\"},\"value\":4}]}]";
    written(families, false,
            "# HELP a A.\n# TYPE a gauge\na 1.5\n# HELP b_total B.\n# TYPE b_total counter\n"
            "b_total{x=\"1\",y=\"2\"} 3\nb_total{x=\"2\"} 4\n" LEFT_OUT("0"));
    written(families, true,
            "# HELP a A.\n# TYPE a gauge\na 1.5\n# HELP b B.\n# TYPE b counter\n"
            "b_total{x=\"1\",y=\"2\"} 3\nb_total{x=\"2\"} 4\n" LEFT_OUT("0") "# EOF\n");
    written("[]", true, LEFT_OUT("0") "# EOF\n");
}

static void
labels_are_escaped_and_cut(void)
{
    char families[512], expected[512], value[TRPI_MANAGEMENT_LABEL_BYTES_MAX + 2];
    written("[{\"name\":\"a\",\"type\":\"gauge\",\"help\":\"x\\\\y\",\"samples\":[{\"labels\":{"
            "\"l\":\"q\\\"b\\\\n\\n\"},\"value\":1}]}]",
            false, "# HELP a x\\\\y\n# TYPE a gauge\na{l=\"q\\\"b\\\\n\\n\"} 1\n" LEFT_OUT("0"));
    /* one byte too many, within a character of two bytes */
    memset(value, 'v', sizeof value);
    memcpy(value + TRPI_MANAGEMENT_LABEL_BYTES_MAX - 1, "\xc3\xa9", 3);
    (void)snprintf(families, sizeof families,
                   "[{\"name\":\"a\",\"type\":\"gauge\",\"help\":\"\",\"samples\":[{\"labels\":{"
                   "\"l\":\"%s\"},\"value\":1}]}]",
                   value);
    (void)snprintf(expected, sizeof expected,
                   "# HELP a \n# TYPE a gauge\na{l=\"%.*s\"} 1\n" LEFT_OUT("0"),
                   (int)TRPI_MANAGEMENT_LABEL_BYTES_MAX - 1, value);
    written(families, false, expected);
}

static void
what_is_malformed_is_left_out(void)
{
    written("[{\"name\":\"1a\",\"type\":\"gauge\",\"help\":\"\"},{\"name\":\"a\",\"type\":"
            "\"summary\",\"help\":\"\"},{\"name\":\"a\",\"type\":\"counter\",\"help\":\"\"},{"
            "\"name\":\"_total\",\"type\":\"counter\",\"help\":\"\"},{\"name\":\"a b\",\"type\":"
            "\"gauge\",\"help\":\"\"},3,{\"name\":\"a\",\"type\":\"gauge\"}]",
            false, LEFT_OUT("7"));
    written("[{\"name\":\"a\",\"type\":\"gauge\",\"help\":\"\",\"samples\":[{\"value\":\"1\"},{"
            "\"labels\":{\"b-c\":\"1\"},\"value\":1},{\"labels\":{\"b\":1},\"value\":1},{"
            "\"labels\":{\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\",\"e\":\"\"},\"value\":1}]}]",
            false, "# HELP a \n# TYPE a gauge\n" LEFT_OUT("4"));
}

#define HISTOGRAM                                                                                  \
    "{\"name\":\"h_seconds\",\"type\":\"histogram\",\"help\":\"H.\",\"buckets\":[{\"le\":1e-06,"   \
    "\"count\":2},{\"le\":2.5,\"count\":3}],\"sum\":7.5,\"count\":4}"

static void
histograms_become_buckets(void)
{
    static const char text[] =
        "# HELP h_seconds H.\n# TYPE h_seconds histogram\nh_seconds_bucket{le=\"1e-06\"} 2\n"
        "h_seconds_bucket{le=\"2.5\"} 3\nh_seconds_bucket{le=\"+Inf\"} 4\nh_seconds_sum 7.5\n"
        "h_seconds_count 4\n";
    char expected[1024];
    (void)snprintf(expected, sizeof expected, "%s" LEFT_OUT("0"), text);
    written("[" HISTOGRAM "]", false, expected);
    (void)snprintf(expected, sizeof expected, "%s" LEFT_OUT("0") "# EOF\n", text);
    written("[" HISTOGRAM "]", true, expected);
    written(
        "[{\"name\":\"h\",\"type\":\"histogram\",\"help\":\"H.\",\"sum\":1},{\"name\":\"h\","
        "\"type\":\"histogram\",\"help\":\"H.\",\"sum\":1,\"count\":1,\"buckets\":[{\"le\":1}]}]",
        false, LEFT_OUT("2"));
}

static char *
many_before(uint32_t count, const char *label, const char *after)
{
    cJSON *families = cJSON_CreateArray(), *family = cJSON_CreateObject(), *last = NULL;
    UNIT_TRUE(trpi_json_add_text(family, "name", "a") &&
              trpi_json_add_text(family, "type", "gauge") &&
              trpi_json_add_text(family, "help", ""));
    cJSON *samples = cJSON_AddArrayToObject(family, "samples");
    for (uint32_t i = 0; i < count; i++) {
        char number[16];
        cJSON *sample = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(sample, "labels");
        (void)snprintf(number, sizeof number, "%u", i);
        UNIT_TRUE(trpi_json_add_text(labels, label, number) &&
                  trpi_json_append(samples, sample, trpi_json_add_i64(sample, "value", i)));
    }
    UNIT_TRUE(trpi_json_append(families, family, true));
    if (after != NULL) {
        UNIT_REQUIRE(trpi_json_parse(after, strlen(after), &last, NULL) == TRP_OK);
        UNIT_TRUE(trpi_json_append(families, last, true));
    }
    char *text = trpi_management_exposition(families, false);
    cJSON_Delete(families);
    return text;
}

static char *
many(uint32_t count, const char *label)
{
    return many_before(count, label, NULL);
}

static void
a_histogram_is_written_whole_or_not_at_all(void)
{
    char *text = many_before(TRPI_MANAGEMENT_SERIES_MAX - 5, "name", HISTOGRAM);
    UNIT_TRUE(text != NULL && strstr(text, "h_seconds_count 4\n") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "troupe_metrics_left_out 0\n") != NULL);
    cJSON_free(text);
    text = many_before(TRPI_MANAGEMENT_SERIES_MAX - 4, "name", HISTOGRAM);
    UNIT_TRUE(text != NULL && strstr(text, "h_seconds") == NULL);
    UNIT_TRUE(text != NULL && strstr(text, "troupe_metrics_left_out 5\n") != NULL);
    cJSON_free(text);
}

static void
series_are_limited_but_for_those_of_peers(void)
{
    char *text = many(TRPI_MANAGEMENT_SERIES_MAX, "name");
    UNIT_TRUE(text != NULL && strstr(text, "troupe_metrics_left_out 0\n") != NULL);
    cJSON_free(text);
    text = many(TRPI_MANAGEMENT_SERIES_MAX + 1, "name");
    UNIT_TRUE(text != NULL && strstr(text, "troupe_metrics_left_out 1\n") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "{name=\"299\"}") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "{name=\"300\"}") == NULL);
    cJSON_free(text);
    text = many(TRPI_MANAGEMENT_SERIES_MAX + 1, "peer");
    UNIT_TRUE(text != NULL && strstr(text, "troupe_metrics_left_out 0\n") != NULL);
    cJSON_free(text);
}

static void
openmetrics_is_sent_to_clients_that_ask(void)
{
    UNIT_TRUE(trpi_management_accepts_openmetrics("application/openmetrics-text"));
    UNIT_TRUE(trpi_management_accepts_openmetrics(
        "text/html, application/openmetrics-text;version=1.0.0;q=0.5,text/plain"));
    UNIT_FALSE(trpi_management_accepts_openmetrics(NULL));
    UNIT_FALSE(trpi_management_accepts_openmetrics(""));
    UNIT_FALSE(trpi_management_accepts_openmetrics("*/*"));
    UNIT_FALSE(trpi_management_accepts_openmetrics("application/openmetrics-textual"));
    UNIT_FALSE(trpi_management_accepts_openmetrics("text/plain;application/openmetrics-text"));
}

UNIT_BEGIN("management_exposition")
UNIT(families_become_text)
UNIT(labels_are_escaped_and_cut)
UNIT(what_is_malformed_is_left_out)
UNIT(histograms_become_buckets)
UNIT(a_histogram_is_written_whole_or_not_at_all)
UNIT(series_are_limited_but_for_those_of_peers)
UNIT(openmetrics_is_sent_to_clients_that_ask)
UNIT_END
