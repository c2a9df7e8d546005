/* keys.c - the configuration keys of endpoints.
 *
 * Sources. CONF-24
 */
#include "endpoint/keys.h"

#include <troupe/endpoint.h>

#include "base/config_keys.h"

_Static_assert(TRP_ENDPOINT_MESSAGE_BYTES_DEFAULT == 1 << 20, "its text below");

/* clang-format off */
static const trpi_config_row rows[] = {
    { "endpoint.pending-max", INT, TEXT_OF(TRP_ENDPOINT_PENDING_DEFAULT), 1,
      TRP_ENDPOINT_PENDING_MAX, NULL,
      "Messages that are with the handler of a consumer, or wait in a producer; the option "
      "pending_max comes first." },
    { "endpoint.timeout", DURATION, MS_OF(TRP_ENDPOINT_TIMEOUT_MS_DEFAULT), 1, DAYS, NULL,
      "Time of a handler to acknowledge a message or reply to it, and of an endpoint to answer a "
      "producer; the option timeout_ms comes first. Akka's name is "
      "camel.consumer.reply-timeout." },
    { "endpoint.message-bytes-max", SIZE, "1MiB", 1, 1024 * MIB, NULL,
      "Most bytes of a body, in and out; the option message_bytes_max comes first." },
    { "endpoint.dispatcher", TEXT, "blocking", 0, 0, NULL,
      "Dispatcher of the actors of endpoints, which may wait for files and transforms; the option "
      "dispatcher comes first." },
    { "endpoint.template.producers-max", INT, "64", 1, 4096, NULL,
      "Endpoints that are open because messages were sent to their URI "
      "(trp_endpoint_send_to); a message to another one fails." },
    { "endpoint.template.idle", DURATION, "120s", 1, DAYS, NULL,
      "Such an endpoint is closed when no message was sent to it for so long, and not before "
      "endpoint.timeout has passed." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};
const trpi_config_part trpi_endpoint_keys = KEYS_OF(rows, NULL);
/* clang-format on */
