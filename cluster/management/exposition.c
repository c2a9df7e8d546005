/* exposition.c - see exposition.h.
 *
 * Must hold.
 *   exposition-E1  Whatever the families are, the text is one that a scraper parses: names and
 *       labels are checked, values of labels are escaped and cut between characters.
 *   exposition-E2  The number of series is bounded, whatever a node has.        (samples_write)
 * Tests.   tests/unit/management/exposition_test.c, tests/fuzz/management_fuzz.c
 * Sources. Prometheus, "Exposition formats", version 0.0.4; OpenMetrics 1.0.0.
 */
#include "cluster/management/exposition.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"

#define TEXT_BYTES_MAX (16u * 1024u * 1024u)
#define LABELS_MAX 4u

struct writer {
    trpi_buffer text;
    bool failed; /* no memory, or too long */
    bool openmetrics;
    uint32_t series; /* without those of peers */
    uint32_t left_out;
};

static void
text_put(struct writer *w, const char *text)
{
    w->failed = w->failed || trpi_buffer_append_text(&w->text, text, TEXT_BYTES_MAX) != TRP_OK;
}

static void
bytes_put(struct writer *w, const char *text, size_t bytes)
{
    w->failed = w->failed || trpi_buffer_append(&w->text, text, bytes, TEXT_BYTES_MAX) != TRP_OK;
}

bool
trpi_management_accepts_openmetrics(const char *accept)
{
    static const char wanted[] = "application/openmetrics-text";
    size_t bytes = sizeof wanted - 1;
    for (const char *at = accept; at != NULL && *at != '\0';) {
        at += strspn(at, " \t,");
        if (strncasecmp(at, wanted, bytes) == 0 &&
            (at[bytes] == '\0' || strchr("; ,\t", at[bytes]))) {
            return true;
        }
        at += strcspn(at, ",");
    }
    return false;
}

/* Is it a name of a metric or of a label? */
static bool
is_name(const char *name)
{
    return name != NULL && name[0] != '\0' && (name[0] < '0' || name[0] > '9') &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] ==
               '\0';
}

/* Write text with backslash, newline and quotes escaped, cut between characters. */
static void
escaped_put(struct writer *w, const char *text, size_t bytes_max)
{
    size_t bytes = strlen(text), from = 0;
    bytes = bytes < bytes_max ? bytes : bytes_max;
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    for (size_t i = 0; i < bytes; i++) {
        const char *escape = text[i] == '\\'   ? "\\\\"
                             : text[i] == '\n' ? "\\n"
                             : text[i] == '"'  ? "\\\""
                                               : NULL;
        if (escape != NULL) {
            bytes_put(w, text + from, i - from);
            text_put(w, escape);
            from = i + 1;
        }
    }
    bytes_put(w, text + from, bytes - from);
}

static bool
sample_is_plain(const cJSON *sample)
{
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(sample, "labels"), *label = NULL;
    uint32_t count = 0;
    cJSON_ArrayForEach(label, labels)
    {
        count++;
        if (!is_name(label->string) || !cJSON_IsString(label)) {
            return false;
        }
    }
    return count <= LABELS_MAX && cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(sample, "value"));
}

static void
value_put(struct writer *w, double value)
{
    if (isnan(value) || isinf(value)) {
        text_put(w, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    w->failed = w->failed || trpi_buffer_printf(&w->text, TEXT_BYTES_MAX, "%.17g", value) != TRP_OK;
}

static void
sample_put(struct writer *w, const char *name, const cJSON *sample)
{
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(sample, "labels"), *label = NULL;
    const char *between = "{";
    text_put(w, name);
    cJSON_ArrayForEach(label, labels)
    {
        text_put(w, between);
        text_put(w, label->string);
        text_put(w, "=\"");
        escaped_put(w, label->valuestring, TRPI_MANAGEMENT_LABEL_BYTES_MAX);
        text_put(w, "\"");
        between = ",";
    }
    text_put(w, between[0] == ',' ? "} " : " ");
    value_put(w, cJSON_GetObjectItemCaseSensitive(sample, "value")->valuedouble);
    text_put(w, "\n");
}

/* exposition-E2. */
static void
samples_write(struct writer *w, const char *name, const cJSON *samples)
{
    const cJSON *sample = NULL;
    cJSON_ArrayForEach(sample, samples)
    {
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(sample, "labels");
        bool is_peers = cJSON_GetObjectItemCaseSensitive(labels, "peer") != NULL;
        if (!sample_is_plain(sample) || (!is_peers && w->series == TRPI_MANAGEMENT_SERIES_MAX)) {
            w->left_out++;
            continue;
        }
        w->series += is_peers ? 0 : 1;
        sample_put(w, name, sample);
    }
}

static void
head_write(struct writer *w, const char *name, size_t bytes, const char *help, const char *type)
{
    text_put(w, "# HELP ");
    bytes_put(w, name, bytes);
    text_put(w, " ");
    escaped_put(w, help, SIZE_MAX);
    text_put(w, "\n# TYPE ");
    bytes_put(w, name, bytes);
    text_put(w, type);
}

static void
line_write(struct writer *w, const char *name, const char *suffix, const char *label, double value)
{
    text_put(w, name);
    text_put(w, suffix);
    text_put(w, label);
    text_put(w, " ");
    value_put(w, value);
    text_put(w, "\n");
}

/* A histogram is written whole or not at all: exposition-E2. false: it is malformed. */
static bool
histogram_write(struct writer *w, const cJSON *family, const char *name, const char *help)
{
    const cJSON *buckets = cJSON_GetObjectItemCaseSensitive(family, "buckets"), *bucket = NULL;
    const cJSON *sum = cJSON_GetObjectItemCaseSensitive(family, "sum");
    const cJSON *count = cJSON_GetObjectItemCaseSensitive(family, "count");
    if (!cJSON_IsNumber(sum) || !cJSON_IsNumber(count)) {
        return false;
    }
    cJSON_ArrayForEach(bucket, buckets)
    {
        if (!cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(bucket, "le")) ||
            !cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(bucket, "count"))) {
            return false;
        }
    }
    uint32_t series = (uint32_t)cJSON_GetArraySize(buckets) + 3;
    if (series > TRPI_MANAGEMENT_SERIES_MAX - w->series) {
        w->left_out += series;
        return true;
    }
    w->series += series;
    head_write(w, name, strlen(name), help, " histogram\n");
    cJSON_ArrayForEach(bucket, buckets)
    {
        char label[48];
        (void)snprintf(label, sizeof label, "{le=\"%.10g\"}",
                       cJSON_GetObjectItemCaseSensitive(bucket, "le")->valuedouble);
        line_write(w, name, "_bucket", label,
                   cJSON_GetObjectItemCaseSensitive(bucket, "count")->valuedouble);
    }
    line_write(w, name, "_bucket", "{le=\"+Inf\"}", count->valuedouble);
    line_write(w, name, "_sum", "", sum->valuedouble);
    line_write(w, name, "_count", "", count->valuedouble);
    return true;
}

static void
family_write(struct writer *w, const cJSON *family)
{
    const char *name = trpi_json_get_text(family, "name"),
               *type = trpi_json_get_text(family, "type");
    const char *help = trpi_json_get_text(family, "help");
    size_t bytes = name != NULL ? strlen(name) : 0;
    if (is_name(name) && help != NULL && type != NULL && strcmp(type, "histogram") == 0) {
        w->left_out += histogram_write(w, family, name, help) ? 0 : 1;
        return;
    }
    bool is_counter = type != NULL && strcmp(type, "counter") == 0;
    if (!is_name(name) || help == NULL || (!is_counter && (!type || strcmp(type, "gauge") != 0)) ||
        (is_counter && (bytes < 7 || strcmp(name + bytes - 6, "_total") != 0))) {
        w->left_out++;
        return;
    }
    /* OpenMetrics names the family of a counter without the suffix of its series */
    size_t shown = is_counter && w->openmetrics ? bytes - 6 : bytes;
    head_write(w, name, shown, help, is_counter ? " counter\n" : " gauge\n");
    samples_write(w, name, cJSON_GetObjectItemCaseSensitive(family, "samples"));
}

char *
trpi_management_exposition(const cJSON *families, bool openmetrics)
{
    struct writer w = { .openmetrics = openmetrics };
    const cJSON *family = NULL;
    cJSON_ArrayForEach(family, families)
    {
        family_write(&w, family);
    }
    w.failed = w.failed ||
               trpi_buffer_printf(&w.text, TEXT_BYTES_MAX,
                                  "# HELP troupe_metrics_left_out Series that this answer lacks, "
                                  "because there are too many.\n# TYPE troupe_metrics_left_out "
                                  "gauge\ntroupe_metrics_left_out %u\n%s",
                                  w.left_out, openmetrics ? "# EOF\n" : "") != TRP_OK;
    char *text = w.failed ? NULL : cJSON_malloc(w.text.count + 1);
    if (text != NULL) {
        memcpy(text, w.text.data, w.text.count);
        text[w.text.count] = '\0';
    }
    trpi_buffer_fini(&w.text);
    return text;
}
