/* start_pages.h - give back the memory that only the start of a program needed. */
#ifndef TRPI_NODE_START_PAGES_H
#define TRPI_NODE_START_PAGES_H

#include <stdio.h>

/* Unmap the pages of code and constants of all libraries and of the program, and free memory at the
 * end of the heap. A page that is used again comes from the page cache, without a read in general:
 * this is for the moment after a start, not for a loop. Thread: any. */
void trpi_start_pages_drop(void);
/* The same for the mappings that file lists, in the form of /proc/PID/smaps. */
void trpi_start_pages_drop_of(FILE *file);

#endif
