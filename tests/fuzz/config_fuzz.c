/* config_fuzz.c - a configuration file of any bytes: it is valid, or refused with a sentence. A
 * valid one can be lifted, laid over another, written and read again. The words of the file are
 * also read as durations and whole numbers (base/units.h).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/config.h"
#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Includes and variables of the environment are not the input's own: they make runs differ. */
static void
world_cut(char *text)
{
    for (char *p = text; (p = strstr(p, "include")) != NULL;) {
        memcpy(p, "includ_", 7);
    }
    for (char *p = text; (p = strstr(p, "${")) != NULL;) {
        *p = '_';
    }
}

/* Parse the written text again: it must be valid and equal. */
static void
round_trip(const trp_config *config)
{
    char *text = NULL;
    trp_config *back = NULL;
    trp_config_error error = { "" };
    if (trp_config_render(config, TRP_CONFIG_RENDER_ORIGINS, &text) != TRP_OK) {
        abort();
    }
    trp_err err = trp_config_parse_text("rendered", text, &back, &error);
    trpi_assert(err == TRP_OK);
    trp_config_entry entry = { .size = sizeof entry };
    for (size_t i = 0; trp_config_at(config, i, &entry); i++) {
        const char *const *values = NULL;
        size_t count = 0;
        err = trp_config_get_list(back, entry.key, &values, &count, NULL);
        trpi_assert(err == TRP_OK);
        trpi_assert(count == entry.values_count);
        for (size_t j = 0; j < count; j++) {
            trpi_assert(strcmp(values[j], entry.values[j]) == 0);
        }
    }
    trp_config_unref(back);
    trp_config_text_free(text);
}

static void
config_combine(const trp_config *config)
{
    trp_config_entry entry = { .size = sizeof entry };
    for (size_t i = 0; i < 8 && trp_config_at(config, i, &entry); i++) {
        char path[TRPI_CONFIG_KEY_BYTES_MAX + 1];
        trp_config *lifted = NULL, *both = NULL;
        size_t bytes = strcspn(entry.key, ".");
        memcpy(path, entry.key, bytes);
        path[bytes] = '\0';
        if (trp_config_get_subtree(config, path, &lifted) == TRP_OK &&
            trp_config_with_fallback(lifted, config, &both) == TRP_OK) {
            int64_t number = 0;
            (void)!trp_config_get_duration(both, "cluster.gossip-interval", &number, NULL);
        }
        trp_config_unref(both);
        trp_config_unref(lifted);
    }
}

/* A word is refused, or is a number that reads the same when it is written down. */
static void
word_read(const char *word)
{
    uint64_t ms = 0, number = 0, again = 0;
    char text[32];
    if (trpi_duration_parse(word, TRPI_DURATION_BARE | TRPI_DURATION_BLANKS, 1, 1000000, &ms)) {
        trpi_assert(ms >= 1 && ms <= 1000000);
        (void)snprintf(text, sizeof text, "%llums", (unsigned long long)ms);
        trpi_assert(trpi_duration_parse(text, 0, ms, ms, &again) && again == ms);
    }
    if (trpi_whole_parse(word, 5, UINT64_MAX, &number)) {
        trpi_assert(number >= 5 && number == strtoull(word, NULL, 10));
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        trpi_assert(trpi_whole_parse(text, number, number, &again) && again == number);
    }
}

static void
words_read(const char *text)
{
    static const char blanks[] = " \t\n={}\",";
    char word[64];
    while (*(text += strspn(text, blanks)) != '\0') {
        size_t bytes = strcspn(text, blanks);
        (void)snprintf(word, sizeof word, "%.*s", (int)(bytes < 63 ? bytes : 63), text);
        word_read(word);
        text += bytes;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trp_config *config = NULL, *set = NULL;
    trp_config_error error = { "" };
    char *text = malloc(size + 1);
    if (!text) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    words_read(text);
    world_cut(text);
    trp_err err = trp_config_parse_text("fuzz", text, &config, &error);
    trpi_assert((err == TRP_OK) == (error.text[0] == '\0'));
    trpi_assert((err == TRP_OK) == (config != NULL));
    if (config) {
        (void)trpi_config_int(config, "remote.port");
        (void)trpi_config_float(config, "cluster.failure-detector.threshold");
        round_trip(config);
        config_combine(config);
        (void)!trp_config_with_setting(config, text, "--set", &set, &error);
    }
    trp_config_unref(set);
    trp_config_unref(config);
    free(text);
    return 0;
}
