/* compat.h - the settings that all nodes of a cluster must share, and the first one that differs.
 *
 * A joiner sends its list; the contact compares it with its own. A key that only one of them has is
 * not compared: versions may be mixed. Pure.
 */
#ifndef TRPI_CLUSTER_COMPAT_H
#define TRPI_CLUSTER_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_COMPAT_MAX 16u
#define TRPI_COMPAT_KEY_BYTES 64u    /* with the NUL */
#define TRPI_COMPAT_VALUE_BYTES 352u /* likewise: an address fits */
#define TRPI_COMPAT_SECRET '#'       /* a value that begins so is not shown: it is digests */

typedef struct trpi_compat {
    uint32_t count;
    struct {
        char key[TRPI_COMPAT_KEY_BYTES];
        char value[TRPI_COMPAT_VALUE_BYTES];
    } entries[TRPI_COMPAT_MAX];
} trpi_compat;

/* Errors: TRP_ELIMIT (one too many, or too long). */
trp_err trpi_compat_add(trpi_compat *compat, const char *key, const char *value);
/* Change the value of that key; false: there is no such key, or the value is too long. */
bool trpi_compat_set(trpi_compat *compat, const char *key, const char *value);
/* Return whether they are compatible (NULL: with everything). Two values are when they are equal,
 * or comma-separated lists with a common word. Else *ret_why names the key and both values: "KEY: A
 * at the joining node, B in the cluster". */
bool trpi_compat_check(const trpi_compat *joining, const trpi_compat *own, char *ret_why,
                       size_t why_bytes);

#endif
