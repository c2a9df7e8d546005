/* serializers.c - the registry of a system: serializers by number and name, types bound to them.
 *
 * Why.     The serializer of a type is looked up for each message that is not like the one before
 *          it; bindings change a few times at the start of a program. So the result is cached by
 *          type number, with the version of the registry that it holds for.
 * Must hold.
 *   serializers-G1  A serializer that was added stays: readers need no lock.
 *   serializers-G2  A cached result holds only for the version of the registry in which it was
 *       found; every change, after it was made, begins a new version.
 * Limits.  TRP_SERIALIZER_ID_MAX, TRP_SERIALIZER_BINDINGS_MAX.
 * Tests.   tests/unit/remote/codec_test.c, tests/unit/remote/serialization_test.c
 * Sources. SERIAL-01, -05, -06, -07
 */
#include "remote/wire/serializer.h"

#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "pattern/pattern.h"

static const trpi_serializer *const built_in[] = {
    &trpi_serializer_raw,      &trpi_serializer_json,   &trpi_serializer_text,
    &trpi_serializer_msgpack,  &trpi_serializer_parcel, &trpi_serializer_entity,
    &trpi_serializer_topic,
#ifdef HAVE_PROTOBUF_C
    &trpi_serializer_protobuf,
#endif
};

void
trpi_serializers_init(trpi_serializers *serializers)
{
    memset(serializers, 0, sizeof *serializers);
    pthread_mutex_init(&serializers->lock, NULL);
    atomic_init(&serializers->version, 1);
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        atomic_store_explicit(&serializers->by_id[built_in[i]->id], built_in[i],
                              memory_order_relaxed); /* not shared yet */
    }
}

void
trpi_serializers_fini(trpi_serializers *serializers)
{
    trpi_free(atomic_load_explicit(&serializers->cached, memory_order_relaxed));
    trpi_shapes_free(atomic_load_explicit(&serializers->shapes, memory_order_relaxed));
    trpi_mutex_destroy(&serializers->lock);
}

/* ---- serializers ----------------------------------------------------------------------------- */

static const trpi_serializer *
by_name(trpi_serializers *serializers, const char *name)
{
    for (uint16_t i = 1; i < TRPI_SERIALIZERS_MAX; i++) {
        const trpi_serializer *serializer = trpi_serializers_get(serializers, i);
        if (serializer != NULL && strcmp(serializer->name, name) == 0) {
            return serializer;
        }
    }
    return NULL;
}

/* serializers-G2 */
static void
version_end(trpi_serializers *serializers)
{
    /* release: a thread that sees the version sees the change; pairs with the acquire in
     * trpi_serializers_for() */
    atomic_fetch_add_explicit(&serializers->version, 1, memory_order_release);
}

trp_err
trpi_serializers_add(trpi_serializers *serializers, const trpi_serializer *serializer)
{
    if (serializer->id < TRPI_SERIALIZER_OWN_FIRST || serializer->name == NULL ||
        serializer->name[0] == '\0' || strcmp(serializer->name, "none") == 0 ||
        strlen(serializer->name) > TRP_SERIALIZER_NAME_BYTES_MAX ||
        (serializer->user == NULL && (serializer->encode == NULL || serializer->decode == NULL))) {
        return TRP_EINVAL;
    }
    if (serializer->id >= TRPI_SERIALIZERS_MAX) {
        return TRP_ELIMIT;
    }
    pthread_mutex_lock(&serializers->lock);
    bool taken = trpi_serializers_get(serializers, serializer->id) != NULL ||
                 by_name(serializers, serializer->name) != NULL;
    if (!taken) {
        serializers->own[serializer->id] = *serializer; /* serializers-G1 */
        atomic_store_explicit(&serializers->by_id[serializer->id],
                              &serializers->own[serializer->id],
                              memory_order_release); /* acquire: trpi_serializers_get() */
        version_end(serializers);
    }
    pthread_mutex_unlock(&serializers->lock);
    return taken ? TRP_EEXIST : TRP_OK;
}

/* ---- bindings -------------------------------------------------------------------------------- */

static bool
is_pattern(const char *pattern)
{
    size_t length = strlen(pattern);
    const char *star = strchr(pattern, '*');
    return length > 0 && length <= TRP_TYPE_NAME_BYTES_MAX &&
           (star == NULL || strcmp(pattern, "*") == 0 ||
            (length > 2 && star == pattern + length - 1 && star[-1] == '.'));
}

trp_err
trpi_serializers_bind(trpi_serializers *serializers, const char *pattern, const char *name,
                      bool waits)
{
    uint32_t at = 0;
    trp_err err = TRP_OK;
    if (!is_pattern(pattern) || strlen(name) > TRP_SERIALIZER_NAME_BYTES_MAX) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&serializers->lock);
    while (at < serializers->bindings_count &&
           strcmp(serializers->bindings[at].pattern, pattern) != 0) {
        at++;
    }
    if (!waits && strcmp(name, "none") != 0 && by_name(serializers, name) == NULL) {
        err = TRP_ENOENT;
    } else if (at == TRP_SERIALIZER_BINDINGS_MAX) {
        err = TRP_ELIMIT;
    } else if (atomic_load_explicit(&serializers->cached, memory_order_relaxed) == NULL) {
        trpi_cached_serializer *cache = trpi_alloc((TRP_TYPES_MAX + 1u) * sizeof *cache);
        err = cache != NULL ? TRP_OK : TRP_ENOMEM;
        /* release: a thread that sees it sees zeros */
        atomic_store_explicit(&serializers->cached, cache, memory_order_release);
    }
    if (err == TRP_OK) {
        (void)snprintf(serializers->bindings[at].pattern, sizeof serializers->bindings[at].pattern,
                       "%s", pattern);
        (void)snprintf(serializers->bindings[at].name, sizeof serializers->bindings[at].name, "%s",
                       name);
        serializers->bindings_count += at == serializers->bindings_count;
        version_end(serializers);
    }
    pthread_mutex_unlock(&serializers->lock);
    return err;
}

/* Return how well a pattern matches a type: 0 not at all, a longer pattern better, a name best. */
static uint32_t
pattern_fit(const char *pattern, const trp_type *type)
{
    enum { NAMES = 1000 }; /* above any pattern's length */
    size_t length = strlen(pattern);
    if (pattern[length - 1] == '*') {
        return strncmp(pattern, type->name, length - 1) == 0 ? (uint32_t)length : 0;
    }
    uint32_t level = 0;
    for (const trp_type *t = type; t != NULL; t = trpi_type_get(trpi_type_parent(t->number))) {
        if (strcmp(pattern, t->name) == 0) {
            return NAMES + TRP_TYPE_DEPTH_MAX - level;
        }
        level++;
    }
    return 0;
}

/* Find the serializer by the bindings, or by the type's form. The caller holds the lock. */
static uint16_t
find_bound(trpi_serializers *serializers, const trp_type *type)
{
    const char *name = NULL;
    uint32_t best = 0;
    for (uint32_t i = 0; i < serializers->bindings_count; i++) {
        uint32_t how = pattern_fit(serializers->bindings[i].pattern, type);
        if (how > best) {
            best = how;
            name = serializers->bindings[i].name;
        }
    }
    if (name == NULL) {
        return (type->flags & (TRP_TYPE_TEXT | TRP_TYPE_JSON)) != 0 ? TRPI_SERIALIZER_TEXT
                                                                    : TRPI_SERIALIZER_RAW;
    }
    const trpi_serializer *serializer = by_name(serializers, name); /* not for "none" */
    return serializer != NULL ? serializer->id : 0;
}

bool
trpi_is_plain(const trp_type *type, const trpi_serializer *serializer)
{
    uint32_t fields_count = 0;
    return (serializer == &trpi_serializer_raw && !trpi_type_carries(type) && /* our numbers */
            trpi_type_fields(type, &fields_count) == NULL) ||
           (serializer == &trpi_serializer_text &&
            (type->flags & (TRP_TYPE_TEXT | TRP_TYPE_JSON)) != 0);
}

const trpi_serializer *
trpi_serializers_for(trpi_serializers *serializers, const trp_type *type)
{
    if ((type->flags & TRP_TYPE_LOCAL) != 0) {
        return NULL;
    }
    if (type == &trpi_parcel_type) {
        return &trpi_serializer_parcel;
    }
    if (type == &trpi_entity_envelope_type) {
        return &trpi_serializer_entity;
    }
    if (type == &trpi_topic_envelope_type) {
        return &trpi_serializer_topic;
    }
    trpi_cached_serializer *cache =
        atomic_load_explicit(&serializers->cached, memory_order_acquire);
    if (cache == NULL) { /* no bindings */
        return (type->flags & (TRP_TYPE_TEXT | TRP_TYPE_JSON)) != 0 ? &trpi_serializer_text
                                                                    : &trpi_serializer_raw;
    }
    /* acquire: the change that ended the version before it is seen */
    uint32_t version = atomic_load_explicit(&serializers->version, memory_order_acquire);
    uint64_t known = atomic_load_explicit(&cache[type->number], memory_order_relaxed);
    uint16_t id = (uint16_t)known;
    if (known >> 16 != version || type->number == 0) {
        pthread_mutex_lock(&serializers->lock);
        version = atomic_load_explicit(&serializers->version, memory_order_relaxed);
        id = find_bound(serializers, type);
        pthread_mutex_unlock(&serializers->lock);
        /* relaxed: the version says whether it is valid */
        atomic_store_explicit(&cache[type->number], (uint64_t)version << 16 | id,
                              memory_order_relaxed);
    }
    return trpi_serializers_get(serializers, id);
}

bool
trpi_serializers_waiting(trpi_serializers *serializers, uint32_t index, char *pattern, char *name)
{
    bool found = false;
    pthread_mutex_lock(&serializers->lock);
    for (uint32_t i = 0; i < serializers->bindings_count && !found; i++) {
        bool waits = strcmp(serializers->bindings[i].name, "none") != 0 &&
                     by_name(serializers, serializers->bindings[i].name) == NULL;
        if (waits && index-- == 0) {
            found = true;
            (void)snprintf(pattern, TRP_TYPE_NAME_BYTES_MAX + 1, "%s",
                           serializers->bindings[i].pattern);
            (void)snprintf(name, TRP_SERIALIZER_NAME_BYTES_MAX + 1, "%s",
                           serializers->bindings[i].name);
        }
    }
    pthread_mutex_unlock(&serializers->lock);
    return found;
}
