/* driver.c - runs a libFuzzer target without libFuzzer (gcc).
 *
 *     x_fuzz SECONDS [CORPUS_DIRECTORY [SEED]]
 *
 * It runs every file of the corpus unchanged, then random mutations of corpus files until the time
 * is over. The seed that is printed at the start reproduces a crash: all inputs follow from it
 * (their number differs with the machine's speed, their order does not).
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INPUT_BYTES_MAX 65536u
#define FILES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input corpus[FILES_MAX];
static size_t corpus_count;
static uint64_t random_state;

/* SplitMix64. */
static uint64_t
next_random(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t
random_below(size_t limit)
{
    return limit == 0 ? 0 : (size_t)(next_random() % limit);
}

static uint64_t
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
corpus_add(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_BYTES_MAX);

    if (file == NULL || data == NULL) {
        perror(path);
        exit(1);
    }
    corpus[corpus_count].data = data;
    corpus[corpus_count].size = fread(data, 1, INPUT_BYTES_MAX, file);
    corpus_count++;
    fclose(file);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, so that a seed means the same inputs on every file system. */
static void
corpus_load(const char *directory)
{
    char *names[FILES_MAX];
    size_t count = 0;
    struct dirent *entry;
    DIR *opened = opendir(directory);

    if (opened == NULL) {
        perror(directory);
        exit(1);
    }
    while ((entry = readdir(opened)) != NULL && count < FILES_MAX) {
        if (entry->d_name[0] != '.') {
            char path[4096];

            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            names[count++] = strdup(path);
        }
    }
    closedir(opened);
    qsort(names, count, sizeof names[0], by_name);
    for (size_t i = 0; i < count; i++) {
        corpus_add(names[i]);
        free(names[i]);
    }
}

/* The target gets a block of exactly the input's size, so that the address sanitizer sees a read
 * past its end. */
static void
run_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size == 0 ? 1 : size);

    if (copy == NULL) {
        perror("malloc");
        exit(1);
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t
mutate_once(uint8_t *data, size_t size)
{
    static const uint8_t special[] = { 0, 1, 0x7f, 0x80, 0xff, '/', ':', '"', '{', '[', '\n' };
    size_t at = random_below(size);
    size_t span;

    switch (next_random() % 7) {
    case 0: /* flip a bit */
        if (size > 0) {
            data[at] ^= (uint8_t)(1u << random_below(8));
        }
        return size;
    case 1: /* a byte with a meaning for parsers */
        if (size > 0) {
            data[at] = special[random_below(sizeof special)];
        }
        return size;
    case 2: /* cut the end */
        return random_below(size + 1);
    case 3: /* insert a byte */
        if (size < INPUT_BYTES_MAX) {
            memmove(data + at + 1, data + at, size - at);
            data[at] = (uint8_t)next_random();
            size++;
        }
        return size;
    case 4: /* remove a span */
        span = random_below(size - at + 1);
        memmove(data + at, data + at + span, size - at - span);
        return size - span;
    case 5: /* a 32-bit length, huge or small */
        if (size >= 4) {
            uint32_t number = (uint32_t)next_random() >> random_below(32);

            memcpy(data + random_below(size - 3), &number, 4);
        }
        return size;
    default: /* splice: the tail of another file */
        if (corpus_count > 0) {
            const input *other = &corpus[random_below(corpus_count)];
            size_t from = random_below(other->size);

            span = other->size - from;
            span = span > INPUT_BYTES_MAX - at ? INPUT_BYTES_MAX - at : span;
            memcpy(data + at, other->data + from, span);
            return at + span;
        }
        return size;
    }
}

static size_t
input_mutate(uint8_t *data)
{
    size_t size = 0;
    size_t changes = 1 + random_below(8);

    if (corpus_count > 0 && random_below(20) != 0) {
        const input *base = &corpus[random_below(corpus_count)];

        memcpy(data, base->data, base->size);
        size = base->size;
    } else {
        size = random_below(512);
        for (size_t i = 0; i < size; i++) {
            data[i] = (uint8_t)next_random();
        }
    }
    for (size_t i = 0; i < changes; i++) {
        size = mutate_once(data, size);
    }
    return size;
}

int
main(int argc, char **argv)
{
    static uint8_t data[INPUT_BYTES_MAX + 1];
    uint64_t seconds, end;
    uint64_t runs = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: %s SECONDS [CORPUS_DIRECTORY [SEED]]\n", argv[0]);
        return 64;
    }
    seconds = strtoull(argv[1], NULL, 10);
    random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : now_ns();
    printf("seed %llu\n", (unsigned long long)random_state);
    fflush(stdout); /* visible also after a crash */
    if (argc > 2) {
        corpus_load(argv[2]);
    }
    for (size_t i = 0; i < corpus_count; i++) {
        run_one(corpus[i].data, corpus[i].size);
        runs++;
    }
    end = now_ns() + seconds * 1000000000u;
    while (now_ns() < end) {
        for (int i = 0; i < 64; i++) {
            run_one(data, input_mutate(data));
            runs++;
        }
    }
    printf("%llu runs, %zu corpus files\n", (unsigned long long)runs, corpus_count);
    for (size_t i = 0; i < corpus_count; i++) {
        free(corpus[i].data);
    }
    return 0;
}
