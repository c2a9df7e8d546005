/* keys.c - the configuration keys of sockets. */
#include "io/settings.h"

#include <troupe/io.h>

#include "base/config_keys.h"

#define WORKER_DISPATCHER                                                                          \
    "Dispatcher on which the actors of its sockets run, which read and write them."

#define UDP_ROWS(part)                                                                             \
    { "io." part ".max-channels",                                                                  \
      INT,                                                                                         \
      TEXT_OF(TRP_UDP_SOCKETS_MAX),                                                                \
      1,                                                                                           \
      TRPI_IO_CHANNELS_MAX,                                                                        \
      "unlimited",                                                                                 \
      "Open sockets; with one more the command fails with EMFILE. unlimited: as many as can be "   \
      "watched, 1048576." },                                                                       \
        { "io." part ".receive-throughput",                                                        \
          INT,                                                                                     \
          TEXT_OF(TRPI_UDP_DATAGRAMS_DEFAULT),                                                     \
          1,                                                                                       \
          1000000,                                                                                 \
          NULL,                                                                                    \
          "Datagrams that a socket reads in one turn before other actors run. Akka's default is "  \
          "3; a "                                                                                  \
          "buffer of the kernel that is emptied late loses datagrams." },                          \
        { "io." part ".received-message-size-limit",                                               \
          SIZE,                                                                                    \
          "unlimited",                                                                             \
          1,                                                                                       \
          1024 * MIB,                                                                              \
          "unlimited",                                                                             \
          "After so many bytes of datagrams a socket lets other actors run before it reads more. " \
          "A "                                                                                     \
          "datagram is never cut." },                                                              \
        { "io." part ".trace-logging",                                                             \
          BOOL,                                                                                    \
          "off",                                                                                   \
          0,                                                                                       \
          0,                                                                                       \
          NULL,                                                                                    \
          "on: log what each socket does, at level debug: several lines for each datagram." },     \
    {                                                                                              \
        "io." part ".worker-dispatcher", TEXT, "default", 0, 0, NULL, WORKER_DISPATCHER            \
    }

/* clang-format off */
static const trpi_config_row io_rows[] = {
    { "io.tcp.max-channels", INT, TEXT_OF(TRP_TCP_CONNECTIONS_MAX), 1, TRPI_IO_CHANNELS_MAX,
      "unlimited",
      "Open connections, a few more at times: beyond, accepting pauses and connecting fails with "
      "EMFILE. unlimited: as many as can be watched, 1048576." },
    { "io.tcp.batch-accept-limit", INT, TEXT_OF(TRPI_TCP_ACCEPTS_DEFAULT), 1, 1000000, NULL,
      "Connections that a listener accepts in one turn before other actors run." },
    { "io.tcp.direct-buffer-size", SIZE, KIB_OF(TRPI_TCP_BUFFER_KIB_DEFAULT),
      TRPI_IO_BUFFER_BYTES_MIN, TRPI_IO_BUFFER_BYTES_MAX, NULL,
      "Bytes that a connection reads at once, and the most that one message has. A connection has "
      "a buffer only while it reads." },
    { "io.tcp.direct-buffer-pool-limit", INT, TEXT_OF(TRPI_TCP_BUFFERS_DEFAULT), 0, 1000000, NULL,
      "Free buffers that are kept for the next reads; Akka's default is 1000." },
    { "io.tcp.register-timeout", DURATION, MS_OF(TRP_TCP_REGISTER_TIMEOUT_MS), 1, HOURS, NULL,
      "A connection for which no handler has registered within this time is aborted; the option "
      "register_timeout_ms of connect and bind comes first." },
    { "io.tcp.max-received-message-size", SIZE, "unlimited", 1, 1024 * MIB, "unlimited",
      "Bytes that one message with received bytes has at most. After so many a connection lets "
      "other actors run before it reads more. unlimited: direct-buffer-size, and 256KiB a turn." },
    { "io.tcp.trace-logging", BOOL, "off", 0, 0, NULL,
      "on: log what each connection does, at level debug: several lines for each read and write." },
    { "io.tcp.worker-dispatcher", TEXT, "default", 0, 0, NULL, WORKER_DISPATCHER },
    { "io.tcp.management-dispatcher", TEXT, "default", 0, 0, NULL,
      "Dispatcher of the manager and of the listeners." },
    { "io.tcp.file-io-transfer-to-limit", SIZE, KIB_OF(TRPI_TCP_FILE_KIB_DEFAULT), 512,
      1024 * MIB, "unlimited",
      "Bytes of a file that are given to the kernel at once. A slow disk holds a thread of "
      "worker-dispatcher for this long." },
    UDP_ROWS("udp"),
    { "io.udp.management-dispatcher", TEXT, "default", 0, 0, NULL,
      "Dispatcher of the manager of all sockets for datagrams." },
    UDP_ROWS("udp-connected"),
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

static const trpi_config_alias io_aliases[] = {
    { "io.tcp.file-io-transferTo-limit", "io.tcp.file-io-transfer-to-limit" },
    { NULL, NULL },
};

const trpi_config_part trpi_io_keys = KEYS_OF(io_rows, io_aliases);
/* clang-format on */
