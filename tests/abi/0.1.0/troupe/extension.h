/* troupe/extension.h - one instance of something for each system, made when it is first asked for.
 *
 *     static const trp_extension metrics = { sizeof(trp_extension), "metrics", metrics_create,
 *                                            NULL, metrics_free, NULL };
 *     void *instance;
 *     trp_err err = trp_extension_get(system, &metrics, &instance);
 *
 * An instance is shared by all actors and threads of its system: it must be thread-safe.
 * The descriptor's address is its identity; the name is for people, for the configuration and for
 * trp_extension_find(), and unique within a system.
 */
#ifndef TROUPE_EXTENSION_H
#define TROUPE_EXTENSION_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_EXTENSIONS_MAX 64 /* of one system */
#define TRP_EXTENSION_NAME_BYTES_MAX 63

typedef struct trp_extension {
    size_t size; /* sizeof(trp_extension) */
    const char *name;
    /* Make the instance. May get other extensions, but not in a circle. Called at most once in a
     * system unless it fails. */
    trp_err (*create)(trp_system *system, void *arg, void **ret_instance);
    /* The tree of actors has ended, the threads have not: let go of what they may still use. May be
     * NULL. */
    void (*stop)(void *instance);
    /* All threads of the system have ended. May be NULL. */
    void (*release)(void *instance);
    void *arg; /* passed to create */
} trp_extension;

/* The symbol exported by a shared object that the configuration names (extensions = {
 * "./metrics.so" }):
 *
 *     const trp_extension *const trp_extension_v1 = &metrics; */
#define TRP_EXTENSION_SYMBOL "trp_extension_v1"

/* Get the instance of this system, making it if need be. A caller that comes while another thread
 * makes it waits for that thread.
 *
 * Ownership: borrows extension until the system is freed; *ret_instance is the system's.
 * Errors:    TRP_EINVAL  the descriptor is incomplete, or its name is empty or too long
 *            TRP_EEXIST  another extension has this name
 *            TRP_ELIMIT  TRP_EXTENSIONS_MAX reached
 *            TRP_ESTATE  its create asks for itself, through others perhaps
 *            TRP_ENOMEM  out of memory
 *            TRP_ECLOSED the system has stopped; and while it is freed, what was released already
 *            and those of create, which is tried again at the next call
 * Thread:    any; lock-free once it is made.
 * Source:    EXT-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_extension_get(trp_system *system, const trp_extension *extension,
                                                 void **ret_instance);

/* Return the instance of the extension of this name; NULL when it has not been made, or has been
 * released.
 *
 * Ownership: borrows name; the instance is the system's.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    EXT-01.  Since: 0.1 */
TRP_API void *trp_extension_find(trp_system *system, const char *name);

/* Load a shared object and make the extension that it exports as trp_extension_v1. It stays loaded
 * until the process ends.
 *
 * Ownership: borrows path.
 * Errors:    TRP_ENOENT   it cannot be loaded; the log says why
 *            TRP_EVERSION it has no trp_extension_v1
 *            and those of trp_extension_get
 * Thread:    any; may block until the file is loaded and its create has returned.
 * Source:    EXT-01, SYS-39.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_extension_load(trp_system *system, const char *path);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_EXTENSION_H */
