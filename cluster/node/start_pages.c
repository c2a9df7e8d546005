/* start_pages.c - see the header.
 *
 * Why.     Reading certificates, configuration and relocations touches 8 MB of libraries, most of
 *          it for the last time: the kernel maps 16 pages for each one that is touched, and takes
 *          them back only when memory is short. A node at rest needs about a third of them.
 * Must hold.
 *   start-pages-P1  Only mappings of files are dropped that cannot be written to and have no page
 *       of their own, in memory or in swap: so neither relocated code nor a debugger's breakpoints
 *       are lost.
 * Tests.   tests/unit/node/start_pages_test.c, tests/system/idle.sh
 */
#include "cluster/node/start_pages.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef struct mapping {
    unsigned long first, end;
    char modes[5];
    unsigned long inode;
} mapping;

static void
mapping_drop(const mapping *m)
{
    if (m->inode != 0 && m->modes[0] == 'r' && m->modes[1] == '-' && m->modes[3] == 'p') {
        /* refused where memory is locked: then the pages stay */
        (void)madvise((void *)(uintptr_t)m->first, m->end - m->first, MADV_DONTNEED);
    }
}

/* Each mapping is a line of place, modes, offset, device, inode and path, then lines of sizes, of
 * which the last one is VmFlags. */
void
trpi_start_pages_drop_of(FILE *file)
{
    char line[4608]; /* a path, and what stands before it */
    mapping m = { 0 };
    unsigned long own_kib = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        mapping next = { 0 };
        unsigned long kib;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &next.first, &next.end, next.modes,
                   &next.inode) == 4) {
            m = next;
            own_kib = 0;
        } else if (sscanf(line, "Anonymous: %lu", &kib) == 1 ||
                   sscanf(line, "Swap: %lu", &kib) == 1) {
            own_kib += kib;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && own_kib == 0) {
            mapping_drop(&m); /* start-pages-P1 */
        }
    }
}

void
trpi_start_pages_drop(void)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    (void)malloc_trim(0);
    if (file != NULL) { /* else nothing is dropped */
        trpi_start_pages_drop_of(file);
        (void)fclose(file);
    }
}
