/* fault_text.c - see the header.
 *
 * Tests.   tests/unit/remote/fault_text_test.c
 * Sources. MNT-07
 */
#include "remote/faults/fault_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/decimal.h"

enum { WORD_BYTES = 64 };

static trp_err
word_refuse(char why[TRPI_FAULT_TEXT_BYTES], const char *word, const char *what)
{
    (void)snprintf(why, TRPI_FAULT_TEXT_BYTES, "'%s': %s", word, what);
    return TRP_EINVAL;
}

/* "0.1" or "10%" */
static trp_err
chance_parse(const char *text, double *ret_chance)
{
    trpi_decimal decimal;
    const char *rest = NULL;
    if (!trpi_decimal_take(text, &decimal, &rest)) {
        return TRP_EINVAL;
    }
    bool percent = strcmp(rest, "%") == 0;
    double chance = percent ? trpi_decimal_f64(&decimal) / 100 : trpi_decimal_f64(&decimal);
    if ((*rest != '\0' && !percent) || chance < 0 || chance > 1) {
        return TRP_EINVAL;
    }
    *ret_chance = chance;
    return TRP_OK;
}

static trp_err
word_take(const char *word, trpi_fault_rule *rule, char why[TRPI_FAULT_TEXT_BYTES])
{
    const struct {
        const char *name;
        double *chance;
        uint32_t *ms;
    } fields[] = { { "lose=", &rule->lose, NULL },
                   { "repeat=", &rule->repeat, NULL },
                   { "reorder=", &rule->reorder, NULL },
                   { "delay=", NULL, &rule->delay_ms },
                   { "jitter=", NULL, &rule->jitter_ms } };
    const char *what;
    double number;
    if (strcmp(word, "pass") == 0) {
        return TRP_OK;
    }
    if (strcmp(word, "blackhole") == 0) {
        rule->bytes_per_s = TRPI_FAULT_RATE_BLACKHOLE;
        return TRP_OK;
    }
    if (strncmp(word, "rate=", 5) == 0) {
        if (trpi_config_parse_number(TRPI_CONFIG_SIZE, word + 5, &number, &what) != TRP_OK ||
            !(number >= 0 && number < 0x1p53)) {
            return word_refuse(why, word, "write rate=125000 or rate=1MiB, in bytes a second");
        }
        rule->bytes_per_s = (int64_t)number;
        return TRP_OK;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *value = word + strlen(fields[i].name);
        if (strncmp(word, fields[i].name, strlen(fields[i].name)) != 0) {
            continue;
        }
        if (fields[i].chance != NULL) {
            return chance_parse(value, fields[i].chance) == TRP_OK
                       ? TRP_OK
                       : word_refuse(why, word, "a probability is 0 to 1, or 0% to 100%");
        }
        if (trpi_config_parse_number(TRPI_CONFIG_DURATION, value, &number, &what) != TRP_OK ||
            !(number >= 0 && number <= TRPI_FAULT_DELAY_MS_MAX)) {
            return word_refuse(why, word, "a duration is 0ms to 60s");
        }
        *fields[i].ms = (uint32_t)number;
        return TRP_OK;
    }
    return word_refuse(why, word,
                       "write pass, blackhole, rate=, lose=, repeat=, reorder=, delay= or jitter=");
}

trp_err
trpi_fault_rule_parse(const char *text, trpi_fault_rule *ret_rule, char why[TRPI_FAULT_TEXT_BYTES])
{
    trpi_fault_rule rule = TRPI_FAULT_RULE_NONE;
    char word[WORD_BYTES];
    trp_err err = TRP_OK;
    text += strspn(text, " ");
    if (*text == '\0') {
        return word_refuse(why, text,
                           "write at least one fault: blackhole, lose=0.1, delay=20ms, pass");
    }
    while (err == TRP_OK && *text != '\0') {
        size_t bytes = strcspn(text, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)(bytes < WORD_BYTES ? bytes : WORD_BYTES),
                       text);
        err = bytes < WORD_BYTES ? word_take(word, &rule, why)
                                 : word_refuse(why, word, "is too long");
        text += bytes;
        text += strspn(text, " ");
    }
    if (err == TRP_OK) {
        *ret_rule = rule;
    }
    return err;
}

/* Write a number with up to ten digits behind the point, and no exponent, so that it can be parsed
 * again in every locale. */
static void
number_format(double number, char out[32])
{
    uint64_t parts = (uint64_t)(number * 1e10 + 0.5);
    int length =
        snprintf(out, 32, "%" PRIu64 ".%010" PRIu64, parts / 10000000000u, parts % 10000000000u);
    while (out[length - 1] == '0') {
        out[--length] = '\0';
    }
    if (out[length - 1] == '.') {
        out[--length] = '\0';
    }
}

char *
trpi_fault_rule_format(const trpi_fault_rule *rule, char out[TRPI_FAULT_TEXT_BYTES])
{
    const struct {
        const char *name;
        double number;
        const char *unit;
    } words[] = { { " lose=", rule->lose, "" },
                  { " repeat=", rule->repeat, "" },
                  { " reorder=", rule->reorder, "" },
                  { " delay=", rule->delay_ms, "ms" },
                  { " jitter=", rule->jitter_ms, "ms" } };
    int at = 0;
    out[0] = '\0';
    if (rule->bytes_per_s == TRPI_FAULT_RATE_BLACKHOLE) {
        at = snprintf(out, TRPI_FAULT_TEXT_BYTES, " blackhole");
    } else if (rule->bytes_per_s > 0) {
        at = snprintf(out, TRPI_FAULT_TEXT_BYTES, " rate=%lld", (long long)rule->bytes_per_s);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].number > 0) { /* all of them need half of out at most */
            char number[32];
            number_format(words[i].number, number);
            at += snprintf(out + at, TRPI_FAULT_TEXT_BYTES - (size_t)at, "%s%s%s", words[i].name,
                           number, words[i].unit);
        }
    }
    if (at == 0) {
        at = snprintf(out, TRPI_FAULT_TEXT_BYTES, " pass");
    }
    return memmove(out, out + 1, (size_t)at); /* without the leading blank */
}
