/* settings.h - what the configuration says of sockets: io.tcp, io.udp, io.udp-connected. */
#ifndef TRPI_IO_SETTINGS_H
#define TRPI_IO_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"

#define TRPI_TCP_ACCEPTS_DEFAULT 10     /* connections that a listener accepts in one turn */
#define TRPI_TCP_BUFFER_KIB_DEFAULT 128 /* of one large read */
#define TRPI_TCP_BUFFERS_DEFAULT 64     /* free ones that are kept: 8 MiB */
#define TRPI_TCP_FILE_KIB_DEFAULT 512   /* of a file, given to the kernel at once */
#define TRPI_UDP_DATAGRAMS_DEFAULT 64   /* that a socket reads in one turn */
#define TRPI_IO_CHANNELS_MAX 1048576    /* as many as a poller can watch */
#define TRPI_IO_BUFFER_BYTES_MIN 512    /* of direct-buffer-size */
#define TRPI_IO_BUFFER_BYTES_MAX 16777216

typedef struct trpi_io_tcp {
    uint32_t connections_max, accepts, register_ms;
    uint32_t read_bytes; /* of one read */
    uint32_t turn_bytes; /* of one turn */
    uint32_t file_bytes;
    uint32_t buffers_kept;
    bool trace;
    const char *dispatcher, *manager_dispatcher; /* the configuration's */
} trpi_io_tcp;

typedef struct trpi_io_udp {
    uint32_t sockets_max, datagrams;
    uint64_t turn_bytes;
    bool trace;
    const char *dispatcher;
} trpi_io_udp;

typedef struct trpi_io_settings {
    trpi_io_tcp tcp;
    trpi_io_udp udp, udp_connected;
    const char *udp_manager_dispatcher;
} trpi_io_settings;

/* Read them. config NULL: the defaults. It must live as long as they are used. */
void trpi_io_settings_read(const trp_config *config, trpi_io_settings *ret_settings);

/* Keys of the configuration (keys.c). */
extern const trpi_config_part trpi_io_keys;

#endif
