/* tls_program.h - TLS contexts of programs (troupe/tls.h), as the other parts of the room see them.
 */
#ifndef TRPI_IO_TLS_PROGRAM_H
#define TRPI_IO_TLS_PROGRAM_H

#include <troupe/actor.h>
#include <troupe/tls.h>

#include "tls/tls.h"

#define TRPI_TLS_HOST_BYTES 256 /* of a server's name, with the NUL */

trp_tls *trpi_io_tls_ref(trp_tls *tls); /* NULL is fine */
void trpi_io_tls_unref(trp_tls *tls);   /* NULL is fine */
bool trpi_io_tls_is_server(const trp_tls *tls);
/* Return the present context, for the caller to unref. Thread: any; takes a lock for a moment. */
trpi_tls_context *trpi_io_tls_context(trp_tls *tls);
/* Is a server's name needed, to check its certificate by? */
bool trpi_io_tls_checks_name(const trp_tls *tls);

/* The actor that looks at the files. */
extern const trp_behaviour trpi_io_tls_watcher_behaviour;
extern trp_type trpi_io_tls_watch_type; /* to it: what to look at */

#endif
