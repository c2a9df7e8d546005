/* start_pages_test.c - pages of code and constants are given back, and come again. */
#include "cluster/node/start_pages.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLE_BYTES (1u << 20)

/* Pages of the program's constants; not all zero, so that they are in the file. */
static const unsigned char table[TABLE_BYTES] = { 1, 2, 3, [TABLE_BYTES - 1] = 9 };
static char written[] = "a variable";

static unsigned
table_sum(void)
{
    const volatile unsigned char *bytes = table;
    unsigned sum = 0;
    for (size_t i = 0; i < TABLE_BYTES; i++) {
        sum += bytes[i];
    }
    return sum;
}

/* Resident pages of files, in KiB. */
static long
file_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    UNIT_REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "RssFile:", 8) == 0) {
            kib = strtol(line + 8, NULL, 10);
        }
    }
    (void)fclose(file);
    return kib;
}

static void
pages_of_the_start_are_given_back_and_come_again(void)
{
    UNIT_EQUAL(table_sum(), 15);
    long before = file_kib();
    UNIT_REQUIRE(before > (long)(TABLE_BYTES / 1024));
    trpi_start_pages_drop();
    long after = file_kib();
    UNIT_TRUE(after <= before - (long)(TABLE_BYTES / 1024) / 2);
    UNIT_EQUAL(table_sum(), 15);
    UNIT_TRUE(file_kib() > after);
}

/* start-pages-P1 */
static void
what_was_written_stays(void)
{
    char *heap = malloc(100000);
    UNIT_REQUIRE(heap != NULL);
    memset(heap, 7, 100000);
    written[0] = 'A';
    for (int i = 0; i < 3; i++) {
        trpi_start_pages_drop();
    }
    UNIT_TEXT(written, "A variable");
    UNIT_EQUAL(heap[99999], 7);
    free(heap);
}

/* A page that was written to, and then protected as relocated code is: smaps says what the kernel
 * would, and the bytes tell whether it was dropped. */
static char
byte_after_drop(const char *sizes)
{
    char path[] = "/tmp/start-pages-XXXXXX", text[512];
    long bytes = sysconf(_SC_PAGESIZE);
    int fd = mkstemp(path);
    UNIT_REQUIRE(fd >= 0 && unlink(path) == 0 && ftruncate(fd, bytes) == 0);
    char *page = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    UNIT_REQUIRE(page != MAP_FAILED);
    page[0] = 'r'; /* the file has 0 there */
    UNIT_EQUAL(mprotect(page, (size_t)bytes, PROT_READ), 0);
    int length = snprintf(text, sizeof text, "%lx-%lx r--p 00000000 08:01 17   /lib/x.so\n%s",
                          (unsigned long)(uintptr_t)page,
                          (unsigned long)(uintptr_t)page + (unsigned long)bytes, sizes);
    FILE *file = fmemopen(text, (size_t)length, "r");
    UNIT_REQUIRE(file != NULL);
    trpi_start_pages_drop_of(file);
    char seen = page[0];
    (void)fclose(file);
    (void)munmap(page, (size_t)bytes);
    (void)close(fd);
    return seen;
}

/* start-pages-P1 */
static void
pages_of_its_own_stay_in_swap_too(void)
{
    UNIT_EQUAL(byte_after_drop("Anonymous: 4 kB\nSwap: 0 kB\nVmFlags: rd mr\n"), 'r');
    UNIT_EQUAL(byte_after_drop("Anonymous: 0 kB\nSwap: 4 kB\nVmFlags: rd mr\n"), 'r');
    UNIT_EQUAL(byte_after_drop("Anonymous: 0 kB\n"), 'r'); /* cut off */
    UNIT_EQUAL(byte_after_drop("Anonymous: 0 kB\nSwap: 0 kB\nVmFlags: rd mr\n"), 0);
}

UNIT_BEGIN("start_pages")
UNIT(pages_of_the_start_are_given_back_and_come_again)
UNIT(what_was_written_stays)
UNIT(pages_of_its_own_stay_in_swap_too)
UNIT_END
