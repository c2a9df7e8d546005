/* figures.c - see figures.h.
 *
 * Must hold.
 *   figures-F1  A family by name has at most max + 1 series, however many names there are.
 * Tests.   tests/unit/node/figures_test.c
 */
#include "cluster/node/figures.h"

#include <string.h>

void
trpi_figures_family(trpi_figures *figures, const char *name, const char *help)
{
    size_t bytes = strlen(name);
    bool is_counter = bytes > 6 && strcmp(name + bytes - 6, "_total") == 0;
    cJSON *family = figures->ok ? cJSON_CreateObject() : NULL;
    figures->ok = family != NULL && trpi_json_add_text(family, "name", name) &&
                  trpi_json_add_text(family, "type", is_counter ? "counter" : "gauge") &&
                  trpi_json_add_text(family, "help", help);
    figures->samples = figures->ok ? cJSON_AddArrayToObject(family, "samples") : NULL;
    figures->ok = trpi_json_append(figures->families, family, figures->samples != NULL);
}

void
trpi_figures_sample(trpi_figures *figures, const char *label, const char *value,
                    const char *label_2, const char *value_2, double number)
{
    cJSON *sample = figures->ok ? cJSON_CreateObject() : NULL;
    cJSON *labels = label != NULL ? cJSON_AddObjectToObject(sample, "labels") : NULL;
    bool ok = sample != NULL && (label == NULL || trpi_json_add_text(labels, label, value)) &&
              (label_2 == NULL || trpi_json_add_text(labels, label_2, value_2)) &&
              cJSON_AddNumberToObject(sample, "value", number) != NULL;
    figures->ok = trpi_json_append(figures->samples, sample, ok);
}

void
trpi_figures_single(trpi_figures *figures, const char *name, const char *help, double number)
{
    trpi_figures_family(figures, name, help);
    trpi_figures_sample(figures, NULL, NULL, NULL, NULL, number);
}

void
trpi_figures_times(trpi_figures *figures, const char *name, const char *help,
                   const trpi_observed_times *times)
{
    cJSON *family = figures->ok ? cJSON_CreateObject() : NULL;
    bool ok = family != NULL && trpi_json_add_text(family, "name", name) &&
              trpi_json_add_text(family, "type", "histogram") &&
              trpi_json_add_text(family, "help", help);
    cJSON *buckets = ok ? cJSON_AddArrayToObject(family, "buckets") : NULL;
    double all = 0;
    ok = buckets != NULL;
    for (uint32_t i = 0; i < TRPI_OBSERVED_BOUNDS; i++) {
        cJSON *bucket = ok ? cJSON_CreateObject() : NULL;
        all += (double)times->buckets[i];
        ok = cJSON_AddNumberToObject(bucket, "le", (double)trpi_observed_bounds_ns[i] / 1e9) !=
                 NULL &&
             cJSON_AddNumberToObject(bucket, "count", all) != NULL;
        ok = trpi_json_append(buckets, bucket, ok);
    }
    all += (double)times->buckets[TRPI_OBSERVED_BOUNDS];
    ok = ok && cJSON_AddNumberToObject(family, "count", all) != NULL &&
         cJSON_AddNumberToObject(family, "sum", (double)times->sum_ns / 1e9) != NULL;
    figures->ok = trpi_json_append(figures->families, family, ok);
}

/* figures-F1 */
void
trpi_figures_names(trpi_figures *figures, const char *label, const trpi_observed_names *names,
                   uint32_t max, trpi_figures_value value)
{
    double others = names->has_others ? value(&names->others) : 0;
    for (uint32_t i = 0; i < names->count; i++) {
        if (i < max) {
            trpi_figures_sample(figures, label, names->entries[i].name, NULL, NULL,
                                value(&names->entries[i]));
        } else {
            others += value(&names->entries[i]);
        }
    }
    if (names->has_others || names->count > max) {
        trpi_figures_sample(figures, label, "other", NULL, NULL, others);
    }
}
