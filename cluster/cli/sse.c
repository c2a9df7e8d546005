/* sse.c - see sse.h. */
#include "cluster/cli/sse.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define RETRY_MS_MAX 60000u

static void
name_set(char name[TRPI_SSE_NAME_BYTES], const char *value, bool *too_long)
{
    int length = snprintf(name, TRPI_SSE_NAME_BYTES, "%s", value);
    *too_long = *too_long || length < 0 || (size_t)length >= TRPI_SSE_NAME_BYTES;
}

static trp_err
field_take(trpi_sse *sse, const char *name, const char *value)
{
    uint32_t number = 0;
    trp_err err = TRP_OK;
    if (strcmp(name, "data") == 0) {
        if (sse->data.count > 0) {
            err = trpi_buffer_append(&sse->data, "\n", 1, TRPI_SSE_BYTES_MAX);
        }
        return err == TRP_OK ? trpi_buffer_append_text(&sse->data, value, TRPI_SSE_BYTES_MAX) : err;
    }
    if (strcmp(name, "event") == 0) {
        name_set(sse->type, value, &sse->too_long);
    } else if (strcmp(name, "id") == 0) {
        name_set(sse->next_id, value, &sse->too_long);
        sse->has_id = true;
    } else if (strcmp(name, "retry") == 0 && trpi_whole32_parse(value, 0, UINT32_MAX, &number)) {
        sse->retry_ms = number < RETRY_MS_MAX ? number : RETRY_MS_MAX;
    }
    return TRP_OK; /* other fields mean nothing */
}

/* The blank line: the event is whole. */
static trp_err
event_end(trpi_sse *sse, trpi_sse_fn fn, void *arg)
{
    trp_err err = sse->too_long ? TRP_ELIMIT : TRP_OK;
    if (err == TRP_OK && sse->has_id) { /* sse-S1 */
        memcpy(sse->id, sse->next_id, sizeof sse->id);
    }
    if (err == TRP_OK && sse->data.count > 0) {
        err = trpi_buffer_append(&sse->data, "", 1, TRPI_SSE_BYTES_MAX + 1);
        if (err == TRP_OK && !fn(arg, sse->type, (const char *)sse->data.data)) {
            err = TRP_ECANCELED;
        }
    }
    sse->type[0] = '\0';
    sse->has_id = false;
    trpi_buffer_clear(&sse->data);
    return err;
}

/* A whole line, which ends with a NUL. */
static trp_err
line_take(trpi_sse *sse, trpi_sse_fn fn, void *arg)
{
    char *line = (char *)sse->line.data;
    char *colon = strchr(line, ':');
    if (line[0] == '\0') {
        return event_end(sse, fn, arg);
    }
    if (colon == line) {
        return TRP_OK; /* a comment */
    }
    const char *value = "";
    if (colon != NULL) {
        *colon = '\0';
        value = colon + 1 + (colon[1] == ' ');
    }
    return field_take(sse, line, value);
}

trp_err
trpi_sse_take(trpi_sse *sse, const char *bytes, size_t count, trpi_sse_fn fn, void *arg)
{
    trp_err err = TRP_OK;
    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        bool ends = bytes[i] == '\n' || bytes[i] == '\r';
        bool second = bytes[i] == '\n' && sse->after_cr; /* of one line's end */
        sse->after_cr = bytes[i] == '\r';
        if (second) {
            continue;
        }
        err = ends ? trpi_buffer_append(&sse->line, "", 1, TRPI_SSE_BYTES_MAX + 1)
                   : trpi_buffer_append(&sse->line, &bytes[i], 1, TRPI_SSE_BYTES_MAX);
        if (err == TRP_OK && ends) {
            err = line_take(sse, fn, arg);
            trpi_buffer_clear(&sse->line);
        }
    }
    return err;
}

void
trpi_sse_again(trpi_sse *sse)
{
    trpi_buffer_clear(&sse->line);
    trpi_buffer_clear(&sse->data);
    sse->type[0] = '\0';
    sse->has_id = sse->after_cr = sse->too_long = false;
}

void
trpi_sse_fini(trpi_sse *sse)
{
    trpi_buffer_fini(&sse->line);
    trpi_buffer_fini(&sse->data);
}
