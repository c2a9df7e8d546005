/* extension.c - extensions: one instance for each system, made on demand.
 *
 * Why.     Libraries on top of actors need state that belongs to a system and ends with it; globals
 *          would tie the systems of a process together.
 * Shape.   an append-only array of entries; count is published after the entry.
 *          entry: making --create succeeded--> made          (read without the lock) --release-->
 *                    `--create failed----> gone (the place is used again)             gone
 * Must hold.
 *   extension-E1  create runs once for each instance, without the lock: it may call
 *       trp_extension_get() for others.
 *   extension-E2  stop and release are called once each for every instance that was made, in
 *       reverse order.
 *   extension-E3  An instance is not given out after its release: callbacks that still run while
 *       the system is freed (futures) get TRP_ECLOSED.
 * Limits.  TRP_EXTENSIONS_MAX (TRP_ELIMIT).
 * Tests.   tests/unit/actor/extension_test.c
 * Sources. EXT-01 to -03, SYS-39
 */
#include "actor/log/log.h"
#include "actor/system/extension.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "actor/kernel/system.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/config.h"
#include "base/sized.h"

enum state { GONE = 0, MAKING = 1, MADE = 2 };

typedef struct entry {
    const trp_extension *extension; /* guarded by lock until MADE, then constant */
    pthread_t maker;                /* guarded by lock while MAKING */
    void *instance;                 /* written before MADE */
    uint32_t order;                 /* its position in the order of making; as instance */
    _Atomic uint32_t state;         /* release at MADE; pair: made_find */
} entry;

struct trpi_extensions {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an entry left MAKING */
    bool closed;            /* guarded by lock */
    uint32_t made;          /* guarded by lock */
    _Atomic uint32_t count; /* places in use; grows under lock. Release; pair: made_find */
    entry entries[TRP_EXTENSIONS_MAX];
};

trp_err
trpi_extensions_new(trpi_extensions **ret_extensions)
{
    trpi_extensions *x = trpi_alloc(sizeof *x);

    if (x == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->changed, NULL);
    *ret_extensions = x;
    return TRP_OK;
}

/* Find an instance by descriptor, or by name. */
static const entry *
made_find(trpi_extensions *x, const trp_extension *extension, const char *name)
{
    uint32_t count = atomic_load_explicit(&x->count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++) {
        const entry *e = &x->entries[i];

        if (atomic_load_explicit(&e->state, memory_order_acquire) == MADE &&
            (name != NULL ? strcmp(e->extension->name, name) == 0 : e->extension == extension)) {
            return e;
        }
    }
    return NULL;
}

/* Find or take an entry for extension; NULL with *ret_err TRP_OK: wait and look again. Caller holds
 * the lock. */
static entry *
place_find(trpi_extensions *x, const trp_extension *extension, trp_err *ret_err)
{
    uint32_t count = atomic_load_explicit(&x->count, memory_order_relaxed);
    entry *place = NULL;

    *ret_err = TRP_OK;
    for (uint32_t i = 0; i < count; i++) {
        entry *e = &x->entries[i];
        uint32_t state = atomic_load_explicit(&e->state, memory_order_relaxed);

        if (state == GONE) {
            place = place == NULL ? e : place;
        } else if (e->extension == extension) {
            trpi_assert(state == MAKING); /* made ones are found before */
            *ret_err = pthread_equal(e->maker, pthread_self()) ? TRP_ESTATE : TRP_OK;
            return NULL;
        } else if (strcmp(e->extension->name, extension->name) == 0) {
            *ret_err = TRP_EEXIST;
            return NULL;
        }
    }
    if (place == NULL && count == TRP_EXTENSIONS_MAX) {
        *ret_err = TRP_ELIMIT;
        return NULL;
    }
    if (place == NULL) {
        place = &x->entries[count];
        atomic_store_explicit(&x->count, count + 1, memory_order_release); /* state is GONE */
    }
    return place;
}

/* Make the instance. Caller holds the lock, which is given up during create (extension-E1). */
static trp_err
instance_make(trpi_extensions *x, trp_system *system, entry *place, const trp_extension *extension,
              void **ret_instance)
{
    void *instance = NULL;
    trp_err err;

    place->extension = extension;
    place->maker = pthread_self();
    atomic_store_explicit(&place->state, MAKING, memory_order_relaxed);
    pthread_mutex_unlock(&x->lock);
    err = extension->create(system, extension->arg, &instance);
    pthread_mutex_lock(&x->lock);
    if (err == TRP_OK) {
        place->instance = instance;
        place->order = x->made++;
        *ret_instance = instance;
    }
    atomic_store_explicit(&place->state, err == TRP_OK ? MADE : GONE, memory_order_release);
    pthread_cond_broadcast(&x->changed);
    return err;
}

static bool
is_valid(const trp_extension *extension)
{
    return extension != NULL && TRPI_SIZED_FITS(extension, arg) && extension->name != NULL &&
           extension->name[0] != '\0' && strlen(extension->name) <= TRP_EXTENSION_NAME_BYTES_MAX &&
           extension->create != NULL;
}

trp_err
trp_extension_get(trp_system *system, const trp_extension *extension, void **ret_instance)
{
    trpi_extensions *x;
    const entry *found;
    trp_err err = TRP_OK;

    if (!trpi_system_is_valid(system) || !is_valid(extension) || ret_instance == NULL) {
        return TRP_EINVAL;
    }
    x = system->extensions;
    if (x == NULL) { /* extension-E3 */
        return TRP_ECLOSED;
    }
    found = made_find(x, extension, NULL);
    if (found != NULL) {
        *ret_instance = found->instance;
        return TRP_OK;
    }
    pthread_mutex_lock(&x->lock);
    for (;;) {
        entry *place;

        found = made_find(x, extension, NULL);
        if (found != NULL) {
            *ret_instance = found->instance;
            break;
        }
        if (x->closed) {
            err = TRP_ECLOSED;
            break;
        }
        place = place_find(x, extension, &err);
        if (place != NULL) {
            err = instance_make(x, system, place, extension, ret_instance);
            break;
        }
        if (err != TRP_OK) {
            break;
        }
        pthread_cond_wait(&x->changed, &x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    return err;
}

void *
trp_extension_find(trp_system *system, const char *name)
{
    const entry *found = !trpi_system_is_valid(system) || name == NULL || system->extensions == NULL
                             ? NULL
                             : made_find(system->extensions, NULL, name);

    return found == NULL ? NULL : found->instance;
}

trp_err
trp_extension_load(trp_system *system, const char *path)
{
    const trp_extension *const *symbol;
    void *object, *instance;
    trp_err err;

    if (!trpi_system_is_valid(system) || path == NULL) {
        return TRP_EINVAL;
    }
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        trpi_log(system, TRP_LOG_ERROR, "actor", "an extension cannot be loaded path=%s why=%s",
                 path, dlerror());
        return TRP_ENOENT;
    }
    symbol = dlsym(object, TRP_EXTENSION_SYMBOL);
    if (symbol == NULL || !is_valid(*symbol)) {
        trpi_log(system, TRP_LOG_ERROR, "actor",
                 "this shared object is no extension path=%s missing=%s", path,
                 TRP_EXTENSION_SYMBOL);
        (void)dlclose(object);
        return TRP_EVERSION;
    }
    trpi_fault_trust(*symbol);
    err = trp_extension_get(system, *symbol, &instance);
    if (err != TRP_OK) { /* pointers to its code may have been given out: it stays loaded */
        trpi_log(system, TRP_LOG_ERROR, "actor",
                 "an extension did not start name=%s path=%s err=%s", (*symbol)->name, path,
                 trp_err_name(err));
    }
    return err;
}

/* ---- start and end of the system ------------------------------------------------------------- */

trp_err
trpi_extensions_start(trp_system *system)
{
    const trp_extension *const *listed = system->options.extensions;
    size_t count = trpi_config_list_count(system->options.config, "extensions");
    trp_err err = TRP_OK;

    for (; err == TRP_OK && listed != NULL && *listed != NULL; listed++) {
        void *instance;

        err = trp_extension_get(system, *listed, &instance);
        if (err != TRP_OK) {
            trpi_log(system, TRP_LOG_ERROR, "actor", "an extension did not start name=%s err=%s",
                     is_valid(*listed) ? (*listed)->name : "?", trp_err_name(err));
        }
    }
    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        err = trp_extension_load(system,
                                 trpi_config_list_at(system->options.config, "extensions", i));
    }
    return err;
}

/* Call stop or release of all instances, the last one made first. */
static void
in_reverse(trpi_extensions *x, bool release)
{
    for (uint32_t order = x->made; order-- > 0;) {
        for (uint32_t i = 0; i < TRP_EXTENSIONS_MAX; i++) {
            entry *e = &x->entries[i];
            void (*call)(void *instance);

            if (atomic_load_explicit(&e->state, memory_order_acquire) != MADE ||
                e->order != order) {
                continue;
            }
            call = release ? e->extension->release : e->extension->stop;
            if (call != NULL) {
                call(e->instance);
            }
            if (release) {
                atomic_store_explicit(&e->state, GONE, memory_order_relaxed); /* extension-E3 */
            }
        }
    }
}

void
trpi_extensions_stop(trpi_extensions *x)
{
    bool first;

    if (x == NULL) {
        return;
    }
    pthread_mutex_lock(&x->lock);
    first = !x->closed;
    x->closed = true;
    pthread_mutex_unlock(&x->lock);
    if (first) {
        in_reverse(x, false);
    }
}

void
trpi_extensions_free(trpi_extensions *x)
{
    if (x == NULL) {
        return;
    }
    trpi_extensions_stop(x);
    in_reverse(x, true);
    pthread_cond_destroy(&x->changed);
    trpi_mutex_destroy(&x->lock);
    trpi_free(x);
}
