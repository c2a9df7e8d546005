/* keys.h - the configuration keys of endpoints, for the list of all. */
#ifndef TRPI_ENDPOINT_KEYS_H
#define TRPI_ENDPOINT_KEYS_H

#include "base/config.h"

extern const trpi_config_part trpi_endpoint_keys;

#endif
