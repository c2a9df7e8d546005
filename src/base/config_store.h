/* config_store.h - values and functions that the files of the configuration share. */
#ifndef TRPI_BASE_CONFIG_STORE_H
#define TRPI_BASE_CONFIG_STORE_H

#include <stdarg.h>
#include <stdatomic.h>

#include "base/config.h"

typedef struct trpi_config_slot {
    char *key;
    uint32_t hash;              /* of key */
    const trpi_config_row *row; /* NULL below app */
    char **values;
    uint32_t count, room; /* of values */
    trpi_config_layer layer;
    char *origin;
} trpi_config_slot;

/* A growing table: config.c has one of the values in force, config_load.c one of a file's
 * values. */
typedef struct trpi_config_slots {
    trpi_config_slot *slots;
    uint32_t count, room;
} trpi_config_slots;

struct trp_config {
    _Atomic uint32_t refs; /* trp_config_ref, _unref; relaxed up, acq_rel down */
    trpi_config_slots slots;
};

void trpi_config_slots_clear(trpi_config_slots *slots);
trpi_config_slot *trpi_config_slots_find(const trpi_config_slots *slots, const char *key);
/* Add an empty slot. Errors: TRP_ENOMEM. */
trp_err trpi_config_slots_add(trpi_config_slots *slots, const char *key, const trpi_config_row *row,
                              trpi_config_slot **ret_slot);
trp_err trpi_config_slot_append(trpi_config_slot *slot, const char *value);
trp_err trpi_config_slot_origin(trpi_config_slot *slot, trpi_config_layer layer,
                                const char *origin);

void trpi_config_slot_clear(trpi_config_slot *slot); /* no values any more */
/* Put a copy of slot, under another key, into slots, which must not have it. Errors: TRP_ENOMEM. */
trp_err trpi_config_slot_copy(trpi_config_slots *slots, const char *key,
                              const trpi_config_slot *slot);

/* A config without any value. Gives *ret_config. Errors: TRP_ENOMEM. */
trp_err trpi_config_empty_new(trpi_config **ret_config);

/* The bytes of "myapp1." before a key of a subtree that slots has; 0: the key is of the root. */
size_t trpi_config_subtree_bytes(const trpi_config_slots *slots, const char *key);
/* Return whether a section or key of the schema, or app, begins with this word. */
bool trpi_config_word_is_ours(const char *word, size_t bytes);
/* Check the title that key has for row. */
trp_err trpi_config_title_check(const char *key, const trpi_config_row *row, char *ret_what,
                                size_t what_bytes);
/* Lower case for a choice, which may be written in any case. Returns buffer or value. */
const char *trpi_config_value_fold(const trpi_config_row *row, const char *value, char *buffer,
                                   size_t bytes);
/* One text for a key: a list is cut at its commas, blanks around them go. */
trp_err trpi_config_put_text(trpi_config *config, trpi_config_layer layer, const char *key,
                             const char *text, const char *origin, trpi_config_error *ret_error);

/* The row of a key, "*" matching a title; NULL: no such key. */
const trpi_config_row *trpi_config_row_find(const char *key);
bool trpi_config_key_is_app(const char *key);
/* Check a value of row. *ret_what gets a sentence without place or key, in what_bytes bytes. */
trp_err trpi_config_value_check(const trpi_config_row *row, const char *value, char *ret_what,
                                size_t what_bytes);
/* Move the values of a file into config. */
trp_err trpi_config_adopt(trpi_config *config, trpi_config_slots *from);
/* Return our name of Akka's `key`; NULL: it is no such name. */
const char *trpi_config_alias_of(const char *key);
/* Write the sentence, return TRP_ECONFIG. */
trp_err trpi_config_fail(trpi_config_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "; did you mean 'x'?", for a key of Akka's that is not here "; what to do", or "". */
const char *trpi_config_hint(const char *name, char *buffer, size_t bytes);

#endif
