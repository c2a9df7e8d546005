/* source.c - the present context of a set of files, which are read again when they change.
 *
 * Why.   A certificate is replaced while connections are open, and reading files may block: whoever
 *        has a thread for that checks; whoever begins a session takes what is present.
 * Must hold.
 *   tls-source-R1  New files are taken as a whole or not at all: while they do not match each
 *       other, the old context stays in use.
 *   tls-source-R2  After a failure the files are read again at each check, changed or not: a
 *       certificate may only have been too early.
 * Locks. source->lock, for a few instructions.
 * Tests. tests/unit/tls/source_test.c, tests/unit/remote/reload_test.c
 */
#include "tls/tls.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/mutex.h"

/* ---- options --------------------------------------------------------------------------------- */

static bool
text_copy(const char **to, const char *from)
{
    *to = from != NULL ? trpi_strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

static void
text_free(const char *text)
{
    trpi_free((char *)(uintptr_t)text);
}

/* Copy a list of texts. false: out of memory; what was copied is in *to. */
static bool
texts_copy(const char *const **to, size_t *to_count, const char *const *from, size_t count)
{
    const char **texts = count > 0 ? trpi_alloc(count * sizeof *texts) : NULL;
    bool copied = count == 0 || texts != NULL;
    for (size_t i = 0; texts != NULL && i < count; i++) {
        copied = text_copy(&texts[i], from[i]) && copied;
    }
    *to = texts;
    *to_count = texts != NULL ? count : 0;
    return copied;
}

static void
texts_free(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_free(texts[i]);
    }
    trpi_free((void *)(uintptr_t)texts);
}

static bool
pairs_copy(trpi_tls_options *to, const trpi_tls_options *from)
{
    trpi_tls_pair *more = from->more_count > 0 ? trpi_alloc(from->more_count * sizeof *more) : NULL;
    bool copied = from->more_count == 0 || more != NULL;
    for (size_t i = 0; more != NULL && i < from->more_count; i++) {
        copied = text_copy(&more[i].cert, from->more[i].cert) &&
                 text_copy(&more[i].key, from->more[i].key) && copied;
    }
    to->more = more;
    to->more_count = more != NULL ? from->more_count : 0;
    return copied;
}

trp_err
trpi_tls_options_copy(trpi_tls_options *to, const trpi_tls_options *from)
{
    *to = *from;
    bool copied = text_copy(&to->ca, from->ca);
    copied = text_copy(&to->cert, from->cert) && copied;
    copied = text_copy(&to->key, from->key) && copied;
    copied = text_copy(&to->crl, from->crl) && copied;
    copied = text_copy(&to->ciphers, from->ciphers) && copied;
    copied =
        texts_copy(&to->allowed, &to->allowed_count, from->allowed, from->allowed_count) && copied;
    copied =
        texts_copy(&to->protocols, &to->protocols_count, from->protocols, from->protocols_count) &&
        copied;
    copied = pairs_copy(to, from) && copied;
    if (!copied) {
        trpi_tls_options_fini(to);
    }
    return copied ? TRP_OK : TRP_ENOMEM;
}

void
trpi_tls_options_fini(trpi_tls_options *options)
{
    const char *texts[] = { options->ca, options->cert, options->key, options->crl,
                            options->ciphers };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text_free(texts[i]);
    }
    for (size_t i = 0; i < options->more_count; i++) {
        text_free(options->more[i].cert);
        text_free(options->more[i].key);
    }
    trpi_free((void *)(uintptr_t)options->more);
    texts_free(options->allowed, options->allowed_count);
    texts_free(options->protocols, options->protocols_count);
    memset(options, 0, sizeof *options);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Add the facts of a file that change when it is written again, or its mode or owner changes. */
static uint64_t
mark_add(uint64_t mark, const char *file)
{
    struct stat info;
    if (file == NULL || file[0] == '\0' || stat(file, &info) != 0) {
        return trpi_hash_u64(mark);
    }
    const uint64_t facts[] = { (uint64_t)info.st_ino,         (uint64_t)info.st_size,
                               (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec,
                               (uint64_t)info.st_ctim.tv_sec, (uint64_t)info.st_ctim.tv_nsec };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        mark = trpi_hash_u64(mark ^ facts[i]);
    }
    return mark;
}

uint64_t
trpi_tls_files_mark(const trpi_tls_options *options)
{
    const char *files[] = { options->ca, options->cert, options->key, options->crl };
    uint64_t mark = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        mark = mark_add(mark, files[i]);
    }
    for (size_t i = 0; i < options->more_count; i++) {
        mark = mark_add(mark_add(mark, options->more[i].cert), options->more[i].key);
    }
    return mark;
}

/* ---- sources --------------------------------------------------------------------------------- */

struct trpi_tls_source {
    trpi_tls_options options; /* own copies */
    pthread_mutex_t lock;
    trpi_tls_context *context; /* by lock */
    uint64_t mark;             /* the checking thread's: of the files in use */
};

trp_err
trpi_tls_source_new(const trpi_tls_options *options, int64_t wall_ms, trpi_tls_source **ret_source,
                    char *why, size_t why_bytes)
{
    trpi_tls_source *source = trpi_alloc(sizeof *source);
    if (source == NULL || trpi_tls_options_copy(&source->options, options) != TRP_OK) {
        trpi_free(source);
        (void)snprintf(why, why_bytes, "out of memory");
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&source->lock, NULL);
    source->mark = trpi_tls_files_mark(&source->options);
    trp_err err =
        trpi_tls_context_load(&source->options, wall_ms, &source->context, why, why_bytes);
    if (err != TRP_OK) {
        trpi_tls_source_free(source);
        return err;
    }
    *ret_source = source;
    return TRP_OK;
}

void
trpi_tls_source_free(trpi_tls_source *source)
{
    if (source != NULL) {
        trpi_tls_context_unref(source->context);
        trpi_tls_options_fini(&source->options);
        trpi_mutex_destroy(&source->lock);
        trpi_free(source);
    }
}

trpi_tls_context *
trpi_tls_source_context(trpi_tls_source *source)
{
    pthread_mutex_lock(&source->lock);
    trpi_tls_context *context = trpi_tls_context_ref(source->context);
    pthread_mutex_unlock(&source->lock);
    return context;
}

trp_err
trpi_tls_source_check(trpi_tls_source *source, int64_t wall_ms, bool *ret_changed, char *why,
                      size_t why_bytes)
{
    uint64_t mark = trpi_tls_files_mark(&source->options); /* before reading: a change during it is
                                                            * seen at the next check */
    trpi_tls_context *context = NULL;
    *ret_changed = false;
    if (mark == source->mark) {
        return TRP_OK;
    }
    trp_err err = trpi_tls_context_load(&source->options, wall_ms, &context, why, why_bytes);
    if (err != TRP_OK) {
        return err; /* tls-source-R2: the mark stays that of the files in use */
    }
    source->mark = mark;
    pthread_mutex_lock(&source->lock); /* tls-source-R1 */
    trpi_tls_context *old = source->context;
    source->context = context;
    pthread_mutex_unlock(&source->lock);
    trpi_tls_context_unref(old);
    *ret_changed = true;
    return TRP_OK;
}
