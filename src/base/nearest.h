/* nearest.h - "did you mean": the name of a list that is nearest to a misspelt one. */
#ifndef TRPI_BASE_NEAREST_H
#define TRPI_BASE_NEAREST_H

#include <stddef.h>

#define TRPI_NEAREST_BYTES_MAX 255 /* longer names are near to nothing */

/* Edits (insert, delete, replace, swap of neighbours) that make b of a. */
size_t trpi_edit_distance(const char *a, const char *b);
/* Return the name at the least distance, at most one edit in three letters; NULL: none is near. */
const char *trpi_nearest(const char *name, const char *const *names, size_t count);

#endif
