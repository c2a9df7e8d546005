/* settings.c - see the header.
 *
 * Tests.   tests/unit/io/settings_test.c
 * Sources. CONF-12, CONF-13
 */
#include "io/settings.h"

#include <stdio.h>

#include "io/poller.h"

static uint32_t
number_of(const trp_config *config, const char *part, const char *key)
{
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];

    (void)snprintf(full, sizeof full, "io.%s.%s", part, key);
    return (uint32_t)trpi_config_int(config, full); /* no key of these has a larger one */
}

static uint32_t
less_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void
udp_read(const trp_config *config, const char *part, const char *dispatcher, const char *trace,
         trpi_io_udp *ret_limits)
{
    ret_limits->sockets_max = number_of(config, part, "max-channels");
    ret_limits->datagrams = number_of(config, part, "receive-throughput");
    ret_limits->turn_bytes = number_of(config, part, "received-message-size-limit");
    ret_limits->trace = trpi_config_bool(config, trace);
    ret_limits->dispatcher = trpi_config_text(config, dispatcher);
}

void
trpi_io_settings_read(const trp_config *config, trpi_io_settings *ret_settings)
{
    trpi_io_tcp *tcp = &ret_settings->tcp;

    tcp->connections_max = number_of(config, "tcp", "max-channels");
    tcp->accepts = number_of(config, "tcp", "batch-accept-limit");
    tcp->register_ms = number_of(config, "tcp", "register-timeout");
    tcp->turn_bytes =
        less_of(number_of(config, "tcp", "max-received-message-size"), TRPI_POLL_READ_BYTES);
    tcp->read_bytes = less_of(number_of(config, "tcp", "direct-buffer-size"), tcp->turn_bytes);
    tcp->buffers_kept = number_of(config, "tcp", "direct-buffer-pool-limit");
    tcp->file_bytes = number_of(config, "tcp", "file-io-transfer-to-limit");
    tcp->trace = trpi_config_bool(config, "io.tcp.trace-logging");
    tcp->dispatcher = trpi_config_text(config, "io.tcp.worker-dispatcher");
    tcp->manager_dispatcher = trpi_config_text(config, "io.tcp.management-dispatcher");
    udp_read(config, "udp", "io.udp.worker-dispatcher", "io.udp.trace-logging", &ret_settings->udp);
    udp_read(config, "udp-connected", "io.udp-connected.worker-dispatcher",
             "io.udp-connected.trace-logging", &ret_settings->udp_connected);
    ret_settings->udp_manager_dispatcher = trpi_config_text(config, "io.udp.management-dispatcher");
}
