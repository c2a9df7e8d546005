/* config_keys.h - how a room writes its keys: type, default, range, words and one sentence of each.
 *
 * Names are Akka's without the leading "akka."; the sentence of a key says where Akka has another
 * name or no such key. Only the keys.c of a room includes this.
 */
#ifndef TRPI_BASE_CONFIG_KEYS_H
#define TRPI_BASE_CONFIG_KEYS_H

#include "base/config.h"

#define PORT_MAX 65535
#define KIB 1024.0
#define MIB (1024.0 * 1024.0)
#define SECONDS 1000.0
#define HOURS 3600000.0
#define DAYS (24.0 * HOURS)

/* The text of a number that a header names: a default that code uses, too, stands there only. */
#define TEXT_OF(number) TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number
#define MS_OF(number) TEXT_OF(number) "ms"
#define SECONDS_OF(number) TEXT_OF(number) "s"
#define HOURS_OF(number) TEXT_OF(number) "h"
#define KIB_OF(number) TEXT_OF(number) "KiB"

#define TEXT TRPI_CONFIG_TEXT
#define INT TRPI_CONFIG_INT
#define FLOAT TRPI_CONFIG_FLOAT
#define DURATION TRPI_CONFIG_DURATION
#define SIZE TRPI_CONFIG_SIZE
#define BOOL TRPI_CONFIG_BOOL
#define CHOICE TRPI_CONFIG_CHOICE
#define LIST TRPI_CONFIG_LIST

/* The part of a room: its rows (the last has no key) and its aliases, or NULL. */
#define KEYS_OF(rows, aliases)                                                                     \
    {                                                                                              \
        rows, sizeof rows / sizeof rows[0] - 1, aliases                                            \
    }

#endif
