/* sized.h - public structs that begin with their size, as the program that made them knows it.
 *
 * Why.     A program and the library are compiled at different times. A struct of options that has
 *          grown since must still be understood, in both directions.
 * Rules.
 *   1  A shorter struct (an older program) is read as far as it goes; the members that it lacks are
 *      zero, which is their default.
 *   2  A longer struct (a newer program) is refused only when one of its unknown bytes is not zero.
 *   3  A size below that of the first release, or above TRPI_SIZED_BYTES_MAX, is refused: no
 *      release has had it, so it is garbage.
 *   4  A struct that the library fills is written as far as it goes; unknown bytes become zero.
 * Use.     The last member of the first release names its size, and stays when others are added
 *          behind it.
 *
 *              trp_inbox_options own = TRP_INBOX_OPTIONS_INIT;
 *              if (!TRPI_SIZED_COPY(options, &own, timeout_ms)) { return TRP_EINVAL; }
 *
 *          TRPI_SIZED_TAKE copies only a struct of another size. A struct that is borrowed for
 *          longer than the call is checked with TRPI_SIZED_FITS; a member that came after the first
 *          release is then read with TRPI_SIZED_MEMBER.
 * Tests.   tests/unit/base/sized_test.c, tests/abi/program.c
 */
#ifndef TRPI_BASE_SIZED_H
#define TRPI_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

#define TRPI_SIZED_BYTES_MAX 4096u

/* Bytes of a struct up to and including one of its members. */
#define TRPI_SIZED_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Return whether `given` obeys rules 1 to 3, where its size is not `known`. */
bool trpi_sized_differs_well(const void *given, size_t first, size_t known);

/* Fill *own from *given and return it; NULL: refused. */
const void *trpi_sized_convert(const void *given, void *own, size_t first, size_t known);

/* Fill *ret from *own. Return false and leave it alone when its size is refused. */
bool trpi_sized_write(void *ret, const void *own, size_t first, size_t known);

static inline bool
trpi_sized_fits(const void *given, size_t first, size_t known)
{
    return *(const size_t *)given == known || trpi_sized_differs_well(given, first, known);
}

static inline const void *
trpi_sized_take(const void *given, void *own, size_t first, size_t known)
{
    return *(const size_t *)given == known ? given : trpi_sized_convert(given, own, first, known);
}

/* Return whether the struct that `given` points to can be read where it is. given is not NULL. */
#define TRPI_SIZED_FITS(given, last)                                                               \
    trpi_sized_fits((given), TRPI_SIZED_TO(__typeof__(*(given)), last), sizeof(*(given)))

/* Fill *own, which holds the defaults, from the struct that `given` points to (NULL: leave it).
 * False: refused. */
#define TRPI_SIZED_COPY(given, own, last)                                                          \
    ((given) == NULL ||                                                                            \
     trpi_sized_convert((given), (own), TRPI_SIZED_TO(__typeof__(*(own)), last),                   \
                        sizeof(*(own))) != NULL)

/* Let `given`, a variable, point to a struct of the size that this library knows: the caller's, or
 * *own, filled from it. NULL stays NULL. False: refused. */
#define TRPI_SIZED_TAKE(given, own, last)                                                          \
    ((given) == NULL ||                                                                            \
     ((given) = trpi_sized_take((given), (own), TRPI_SIZED_TO(__typeof__(*(own)), last),           \
                                sizeof(*(own)))) != NULL)

/* Fill the caller's struct from *own. False: refused, and not written to. */
#define TRPI_SIZED_FILL(ret, own, last)                                                            \
    trpi_sized_write((ret), (own), TRPI_SIZED_TO(__typeof__(*(own)), last), sizeof(*(own)))

/* Read a member that the struct of an older program lacks: then 0. */
#define TRPI_SIZED_MEMBER(given, member)                                                           \
    ((given)->size >= TRPI_SIZED_TO(__typeof__(*(given)), member)                                  \
         ? (given)->member                                                                         \
         : (__typeof__((given)->member))0)

#endif
