/* config_fuzz.c - a configuration file of any bytes: it is right, or refused with a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    char *text = malloc(size + 1);
    if (!text || trpi_config_new(&config) != TRP_OK) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    trp_err err = trpi_config_load_text(config, "fuzz", text, &error);
    trpi_assert((err == TRP_OK) == (error.text[0] == '\0'));
    (void)trpi_config_int(config, "remote.port");
    (void)trpi_config_float(config, "cluster.failure-detector.threshold");
    (void)!trpi_config_set(config, text, "--set", &error);
    (void)trpi_config_int(config, "cluster.gossip-interval");
    trpi_config_free(config);
    free(text);
    return 0;
}
