/* troupe/config.h - the configuration as a value: read it, lay it over another, look things up.
 *
 * A trp_config is immutable and shared: every function that changes something makes a new one. It
 * maps dotted keys ("cluster.gossip-interval", "app.greeting", "deployment./service.router") to
 * texts, and knows the origin of each. Files have the syntax of docs/configuration.md; a key that
 * they do not set has the default of the reference configuration.
 *
 * Several systems from one file: beside the sections of a configuration may stand subtrees, each a
 * whole configuration, `myapp1 { log { level = debug } app { setting = 43 } }`. Lift one with
 * trp_config_get_subtree(), and lay it over the rest with trp_config_with_fallback().
 */
#ifndef TROUPE_CONFIG_H
#define TROUPE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trp_config trp_config;

/* A mistake and its place, as one sentence: "my.conf:3: no such option 'gosip-interval' in cluster;
 * did you mean 'cluster.gossip-interval'?". */
typedef struct trp_config_error {
    char text[768];
} trp_config_error;

/* ---- reading --------------------------------------------------------------------------------- */

/* Read text as if it stood in a file called name; include("FILE") reads beside that file. The
 * result has the keys of the text and no others.
 *
 * Ownership: gives *ret_config (trp_config_unref); borrows the rest. ret_error may be NULL; it is
 *            filled on failure.
 * Errors:    TRP_ECONFIG  a mistake; *ret_error names file, line and the nearest right name
 *            TRP_EINVAL   an argument is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; may block until another thread has read its file (libconfuse's scanner is one).
 * Source:    CONF-1, -3, -4 (parseString).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_parse_text(const char *name, const char *text,
                                                     trp_config **ret_config,
                                                     trp_config_error *ret_error);

/* Read a file, as trp_config_parse_text does.
 *
 * Ownership: as trp_config_parse_text
 * Errors:    TRP_ENOENT   there is no such file
 *            and those of trp_config_parse_text
 * Thread:    any; may block until the file is read; never from a behaviour.
 * Source:    CONF-1, -3, -4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_parse_file(const char *path, trp_config **ret_config,
                                                     trp_config_error *ret_error);

/* Read the usual stack: settings ("key=value", as on a command line) over TROUPE_* variables over
 * the file. Each of the three may be NULL; both lists end with NULL.
 *
 * Ownership: as trp_config_parse_text
 * Errors:    as trp_config_parse_file
 * Thread:    any; may block until the file is read; never from a behaviour.
 * Source:    CONF-2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_load(const char *path, char *const *environment,
                                               const char *const *settings, trp_config **ret_config,
                                               trp_config_error *ret_error);

/* ---- sharing and combining ------------------------------------------------------------------- */

/* Share config once more; returns config.
 *
 * Ownership: shares config (trp_config_unref).
 * Errors:    none; NULL gives NULL
 * Thread:    any; lock-free.
 * Source:    CONF-4.  Since: 0.1 */
TRP_API trp_config *trp_config_ref(const trp_config *config);

/* Let go of one share. NULL is fine.
 *
 * Ownership: takes one share of config.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONF-4.  Since: 0.1 */
TRP_API void trp_config_unref(trp_config *config);

/* Lay config over fallback: a key that config does not set is as in fallback.
 *
 * Ownership: gives *ret_config (trp_config_unref); borrows both.
 * Errors:    TRP_EINVAL   an argument is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    CONF-4 (withFallback).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_with_fallback(const trp_config *config,
                                                        const trp_config *fallback,
                                                        trp_config **ret_config);

/* Set one key: "app.limits.retries=5"; the values of a list are separated by commas. origin is what
 * trp_config_origin() will say of it.
 *
 * Ownership: gives *ret_config (trp_config_unref); borrows the rest. ret_error may be NULL.
 * Errors:    TRP_ECONFIG  no such key, or the value cannot stand there
 *            TRP_EINVAL   an argument is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    CONF-4 (parseMap).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_with_setting(const trp_config *config,
                                                       const char *assignment, const char *origin,
                                                       trp_config **ret_config,
                                                       trp_config_error *ret_error);

/* Keep what stands at path or below it, and nothing else. Nothing there: an empty configuration.
 *
 * Ownership: gives *ret_config (trp_config_unref); borrows config and path.
 * Errors:    TRP_EINVAL   an argument is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    CONF-4 (withOnlyPath).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_with_only_path(const trp_config *config, const char *path,
                                                         trp_config **ret_config);

/* Leave out what stands at path or below it. "app": what Akka reaches by withOnlyPath("akka").
 *
 * Ownership: gives *ret_config (trp_config_unref); borrows config and path.
 * Errors:    TRP_EINVAL   an argument is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    CONF-4 (withoutPath).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_without_path(const trp_config *config, const char *path,
                                                       trp_config **ret_config);

/* Lift a subtree: what stands below path, with its keys without it. Of the subtree "myapp1" that is
 * a whole configuration, of "app" the application's own settings.
 *
 * Ownership: gives *ret_config (trp_config_unref); borrows config and path.
 * Errors:    TRP_ENOENT   nothing stands below path
 *            TRP_EINVAL   an argument is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    CONF-4 (getConfig).  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_subtree(const trp_config *config, const char *path,
                                                      trp_config **ret_config);

/* ---- looking ------------------------------------------------------------------------------------
 * All getters: a key that is not set has the default of the reference configuration. ret_error may
 * be NULL; it names where the value stands, or the nearest key that there is. */

/* Get a text; of a number too, as it was written. Borrowed until config ends.
 *
 * Ownership: borrows all; *ret_text until config ends.
 * Errors:    TRP_ENOENT   the key is not set and has no default
 *            TRP_ECONFIG  it is a list
 *            TRP_EINVAL   an argument is NULL
 * Thread:    any; lock-free.
 * Source:    CONF-4, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_text(const trp_config *config, const char *key,
                                                   const char **ret_text,
                                                   trp_config_error *ret_error);

/* Get a whole number.
 *
 * Ownership: borrows all.
 * Errors:    TRP_ECONFIG  it is none; and those of trp_config_get_text
 * Thread:    any; lock-free.
 * Source:    CONF-1, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_int(const trp_config *config, const char *key,
                                                  int64_t *ret_number, trp_config_error *ret_error);

/* Get a number.
 *
 * Ownership: borrows all.
 * Errors:    TRP_ECONFIG  it is none; and those of trp_config_get_text
 * Thread:    any; lock-free.
 * Source:    CONF-1, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_float(const trp_config *config, const char *key,
                                                    double *ret_number,
                                                    trp_config_error *ret_error);

/* Get a boolean: on, yes, true give 1; off, no, false give 0.
 *
 * Ownership: borrows all.
 * Errors:    TRP_ECONFIG  it is none; and those of trp_config_get_text
 * Thread:    any; lock-free.
 * Source:    CONF-1, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_bool(const trp_config *config, const char *key,
                                                   int *ret_holds, trp_config_error *ret_error);

/* Get a duration ("500ms", "5 seconds") in milliseconds.
 *
 * Ownership: borrows all.
 * Errors:    TRP_ECONFIG  it is none; and those of trp_config_get_text
 * Thread:    any; lock-free.
 * Source:    CONF-1, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_duration(const trp_config *config, const char *key,
                                                       int64_t *ret_ms,
                                                       trp_config_error *ret_error);

/* Get a size ("128KiB", "256000b") in bytes.
 *
 * Ownership: borrows all.
 * Errors:    TRP_ECONFIG  it is none; and those of trp_config_get_text
 * Thread:    any; lock-free.
 * Source:    CONF-1, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_size(const trp_config *config, const char *key,
                                                   int64_t *ret_bytes, trp_config_error *ret_error);

/* Get the values of a list; one text is a list of one. Borrowed until config ends.
 *
 * Ownership: borrows all; *ret_values until config ends.
 * Errors:    as trp_config_get_text, but for the list
 * Thread:    any; lock-free.
 * Source:    CONF-1, -25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_get_list(const trp_config *config, const char *key,
                                                   const char *const **ret_values,
                                                   size_t *ret_count, trp_config_error *ret_error);

/* Return non-zero if key is set; a default does not count.
 *
 * Ownership: borrows config and key.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONF-4 (hasPath).  Since: 0.1 */
TRP_API int trp_config_is_set(const trp_config *config, const char *key);

/* Borrow where a key was said: "my.conf:3", "environment TROUPE_SYSTEM", "--set", "default"; NULL
 * when there is no such key.
 *
 * Ownership: borrows config and key; the text until config ends.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONF-5.  Since: 0.1 */
TRP_API const char *trp_config_origin(const trp_config *config, const char *key);

/* One key that is set. */
typedef struct trp_config_entry {
    size_t size; /* sizeof(trp_config_entry), set by the caller */
    const char *key;
    const char *const *values;
    size_t values_count; /* 1 unless it is a list */
    const char *origin;
} trp_config_entry;

/* Walk the keys that are set: index from 0; returns 0 behind the last.
 *
 * Ownership: borrows config; what *ret_entry points to lasts until config ends.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONF-4 (entrySet).  Since: 0.1 */
TRP_API int trp_config_at(const trp_config *config, size_t index, trp_config_entry *ret_entry);

#define TRP_CONFIG_RENDER_ORIGINS 1u  /* each value with its origin */
#define TRP_CONFIG_RENDER_DEFAULTS 2u /* keys that are not set, too */
#define TRP_CONFIG_RENDER_DOCS 4u     /* each known key with its sentence */

/* Write config as a file that trp_config_parse_text() reads back. flags: TRP_CONFIG_RENDER_...;
 * config NULL with DEFAULTS and DOCS: the reference configuration.
 *
 * Ownership: gives *ret_text (trp_config_text_free); borrows config.
 * Errors:    TRP_EINVAL   ret_text is NULL
 *            TRP_ENOMEM   out of memory
 * Thread:    any; lock-free.
 * Source:    CONF-5, SYS-2 (settings().toString), CONF-26.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_config_render(const trp_config *config, unsigned flags,
                                                 char **ret_text);

/* Free what trp_config_render() gave. NULL is fine.
 *
 * Ownership: takes text.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONF-5.  Since: 0.1 */
TRP_API void trp_config_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_CONFIG_H */
