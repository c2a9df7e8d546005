/* figures_test.c - families of series: by name, with a bound; histograms. */
#include <stdio.h>
#include <stdlib.h>

#include "cluster/node/figures.h"
#include "tests/unit/unit.h"

#define NAMES 20u

static double
count_of(const trpi_observed_name *name)
{
    return (double)name->count;
}

/* The samples of a family of `count` names that count 1 each, of which at most 20 are shown. */
static cJSON *
family_of(uint32_t count, cJSON **ret_samples)
{
    trpi_observed_names *names = calloc(1, sizeof *names);
    trpi_figures f = { .families = cJSON_CreateArray(), .ok = true };
    UNIT_REQUIRE(names != NULL);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        trpi_observed_name_get(names, name)->count++;
    }
    trpi_figures_family(&f, "troupe_things", "Things.");
    trpi_figures_names(&f, "thing", names, NAMES, count_of);
    UNIT_TRUE(f.ok);
    free(names);
    *ret_samples = f.samples;
    return f.families;
}

static void
last_is(const cJSON *samples, const char *name, double value)
{
    const cJSON *last = cJSON_GetArrayItem(samples, cJSON_GetArraySize(samples) - 1);
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(last, "labels");
    UNIT_TEXT(trpi_json_get_text(labels, "thing"), name);
    UNIT_TRUE(cJSON_GetObjectItemCaseSensitive(last, "value")->valuedouble == value);
}

/* Metrics: 20 names have series of their own, and the 21st makes one called other */
static void
the_first_names_have_series_and_the_rest_is_other(void)
{
    cJSON *samples = NULL, *families = family_of(0, &samples);
    UNIT_EQUAL(cJSON_GetArraySize(samples), 0);
    cJSON_Delete(families);
    families = family_of(NAMES, &samples);
    UNIT_EQUAL(cJSON_GetArraySize(samples), (int)NAMES);
    last_is(samples, "n19", 1);
    cJSON_Delete(families);
    families = family_of(NAMES + 1, &samples);
    UNIT_EQUAL(cJSON_GetArraySize(samples), (int)NAMES + 1);
    last_is(samples, "other", 1);
    cJSON_Delete(families);
    families = family_of(TRPI_OBSERVED_NAMES_MAX + 50, &samples);
    UNIT_EQUAL(cJSON_GetArraySize(samples), (int)NAMES + 1);
    last_is(samples, "other", TRPI_OBSERVED_NAMES_MAX + 50 - NAMES);
    cJSON_Delete(families);
}

static void
buckets_of_times_are_cumulative_and_in_seconds(void)
{
    trpi_observed_times times = { .sum_ns = 1500000000u };
    trpi_figures f = { .families = cJSON_CreateArray(), .ok = true };
    times.buckets[0] = 2;
    times.buckets[1] = 3;
    times.buckets[TRPI_OBSERVED_BOUNDS] = 4;
    trpi_figures_times(&f, "troupe_times_seconds", "Times.", &times);
    UNIT_TRUE(f.ok);
    char *text = trpi_json_print(f.families);
    UNIT_TRUE(text != NULL && strstr(text, "\"type\":\"histogram\"") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "{\"le\":1e-06,\"count\":2}") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "{\"le\":5e-06,\"count\":5}") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "{\"le\":10,\"count\":5}") != NULL);
    UNIT_TRUE(text != NULL && strstr(text, "\"count\":9,\"sum\":1.5") != NULL);
    cJSON_free(text);
    cJSON_Delete(f.families);
}

UNIT_BEGIN("figures")
UNIT(the_first_names_have_series_and_the_rest_is_other)
UNIT(buckets_of_times_are_cumulative_and_in_seconds)
UNIT_END
