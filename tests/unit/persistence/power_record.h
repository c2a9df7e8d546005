/* power_record.h - a record of what LMDB writes to its file, and images of power losses. */
#ifndef TESTS_UNIT_PERSISTENCE_POWER_RECORD_H
#define TESTS_UNIT_PERSISTENCE_POWER_RECORD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <troupe/journal_lmdb.h>

#define STEPS_MAX 20000u
#define IDS 3u
#define MIB (1024u * 1024u)

typedef enum step_kind { STEP_WRITE, STEP_FLUSH, STEP_ACKNOWLEDGED } step_kind;

typedef struct step {
    step_kind kind;
    bool is_flushed; /* a write through O_DSYNC */
    uint64_t offset; /* a page; of an acknowledgement the number */
    uint32_t bytes;  /* of an acknowledgement the id */
    unsigned char *data;
} step;

typedef struct power_recorder {
    pthread_mutex_t lock;
    bool is_on;
    ino_t file;
    step steps[STEPS_MAX];
    uint32_t steps_count;
    uint32_t first; /* behind those of what is there at first */
    /* Errors to answer with. */
    int sync_errno;
    int write_errno;
    int room_errno;
} power_recorder;
extern power_recorder recorder;

void step_add(step_kind kind, bool is_flushed, uint64_t offset, const void *data, size_t bytes);
void record_free(void);

/* A journal in a directory. */
typedef struct book {
    char directory[64];
    const trp_journal_driver *driver;
    uint64_t epoch;
} book;

void book_path(const book *b, const char *name, char path[128]);
void book_make(book *b);
void book_remove(const book *b);
trp_err book_open(book *b);
void book_close(book *b);
trp_err book_claim(book *b);
/* Record from now on, behind what is there; the book is closed. */
void record_begin(const book *b);

uint64_t draw(uint64_t *seed, uint64_t below);
uint64_t asked(const char *name, uint64_t otherwise); /* of an environment variable */

/* Make the image of a power loss behind `end` steps, in image_bytes; skip_flush: flush to leave
 * out, UINT32_MAX: none. Returns its length. */
extern size_t image_bytes;
size_t image_make(unsigned char *image, uint32_t end, uint32_t skip_flush, uint64_t *seed,
                  uint64_t acknowledged[IDS]);

#endif
