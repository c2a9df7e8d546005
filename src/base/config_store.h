/* config_store.h - what config.c and config_load.c share; private to them. */
#ifndef TRPI_BASE_CONFIG_STORE_H
#define TRPI_BASE_CONFIG_STORE_H

#include <stdarg.h>

#include "base/config.h"

typedef struct trpi_config_slot {
    char *key;
    const trpi_config_row *row; /* NULL below app */
    char **values;
    size_t count;
    trpi_config_layer layer;
    char *origin;
} trpi_config_slot;

/* A growing table; config.c holds the values in force in one, config_load.c what a file says. */
typedef struct trpi_config_slots {
    trpi_config_slot *slots;
    size_t count, room;
} trpi_config_slots;

void trpi_config_slots_clear(trpi_config_slots *slots);
trpi_config_slot *trpi_config_slots_find(const trpi_config_slots *slots, const char *key);
/* Add an empty slot. Errors: TRP_ENOMEM. */
trp_err trpi_config_slots_add(trpi_config_slots *slots, const char *key, const trpi_config_row *row,
                              trpi_config_slot **ret_slot);
trp_err trpi_config_slot_append(trpi_config_slot *slot, const char *value);
trp_err trpi_config_slot_origin(trpi_config_slot *slot, trpi_config_layer layer,
                                const char *origin);

/* The row of a key, "*" matching a title; NULL: no such key. */
const trpi_config_row *trpi_config_row_find(const char *key);
bool trpi_config_key_is_app(const char *key);
/* Is value right for row? *ret_what gets a sentence without place or key, in what_bytes bytes. */
trp_err trpi_config_value_check(const trpi_config_row *row, const char *value, char *ret_what,
                                size_t what_bytes);
/* Move what a file said into config. */
trp_err trpi_config_adopt(trpi_config *config, trpi_config_slots *from);
/* Write the sentence, return TRP_ECONFIG. */
trp_err trpi_config_fail(trpi_config_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "; did you mean 'x'?" or "". */
const char *trpi_config_hint(const char *name, char *buffer, size_t bytes);

#endif
