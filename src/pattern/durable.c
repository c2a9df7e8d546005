/* durable.c - the durable mailbox: the sender stores a message, the owner's thread takes it out.
 *
 * Shape.   tell -> admit: record -> breaker -> store       (the sender's thread; then it returns)
 *               -> the owner's queue, as for any mailbox   (the message is only a token from here)
 *          run  -> enqueue: a token is counted and freed; a message that is not stored is kept
 *              -> dequeue: next is a token? the first record of the store : the kept message
 * Must hold.
 *   durable-U1  A message that admit let pass is in the store, or was dropped from there for want
 *       of room or for its age. Tokens are only hints: those beyond the number of records are
 *       dropped.
 *   durable-U2  The end of the owner takes nothing out of the store (TRP-13). Once clean_up has
 *       run, admit refuses. A token that arrives even later is no dead letter: its record is for
 *       the next owner.
 *   durable-U3  A record is taken out before it is handled, so it is not handled twice.
 *   durable-U4  When the store cannot be read, the owner is woken again after a while.
 * Threads. admit: of senders. All else: of the runner. The store has its lock, a leaf; no message
 *          is sent under it.
 * Tests.   tests/unit/pattern/durable_test.c, tests/unit/pattern/durable_limits_test.c
 * Sources. DUR-01 to -06, MBOX-7, TRP-13.
 */
#include <troupe/durable.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/breaker.h>
#include <troupe/extension.h>
#include <troupe/mailbox.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "pattern/durable_record.h"
#include "pattern/durable_store.h"

#define RETRY_MS 100 /* durable-U4; with an open breaker: its reset timeout */

/* Wakes an owner, which reads the store again; never leaves its queue. */
static trp_type wake_type = { "durable.wake", 0, 0xff48, TRP_TYPE_LOCAL | TRP_TYPE_VARIABLE,
                              NULL,           0, 0 };
static trp_type *const wake_types[] = { &wake_type };
static const trp_protocol wake_protocol = { "durable", wake_types, 1 };

typedef struct kind { /* a registered mailbox */
    struct kind *next;
    _Atomic uint32_t refs; /* of the system, one of each mailbox: freed after those */
    trp_system *system;
    trpi_store *store;
    trp_breaker *breaker;
    trpi_store_limits limits;
    uint64_t max_item_bytes;
    uint64_t max_age_ms;
    uint32_t reset_timeout_ms;
} kind;

typedef struct kept { /* a message that is not stored */
    struct kept *next;
    trp_msg *msg;
    uint32_t tokens; /* tokens that came before it */
} kept;

typedef struct wake {
    trp_system *system;
    trp_ref owner;
} wake;

typedef struct durable_mailbox {
    kind *kind;
    trp_ref owner;
    trpi_store_queue *queue;
    /* the runner's */
    kept *first, *last;
    uint32_t kept_count;
    uint32_t tokens;      /* all */
    uint32_t tokens_last; /* tokens behind the last kept message */
    wake *wake;           /* durable-U4; NULL: none is under way */
    uint64_t wake_id;
} durable_mailbox;

/* ---- storage, through the breaker ------------------------------------------------------------ */

/* Return the errors that count as failures of the storage: neither our own, nor full or empty. */
static trp_err
storage_failure(trp_err err)
{
    return err == TRP_EAGAIN || err == TRP_ECLOSED || err == TRP_EEXIST || err == TRP_ENOENT ||
                   err == TRP_ENOMEM || err == TRP_EBREAKER
               ? TRP_OK
               : err;
}

/* Make the message of a record that stays where it is (it may lie in the store's own pages). NULL:
 * its content is unknown here. */
static trp_msg *
record_restore(const durable_mailbox *mailbox, const trpi_store_record *record,
               const trpi_record_info *info)
{
    trpi_store_record copy = { NULL, record->bytes };
    trpi_record_info of_copy = { .type = NULL };
    trp_msg *msg = NULL;

    if (info->type == NULL || (copy.data = trpi_alloc(copy.bytes)) == NULL) {
        return NULL;
    }
    memcpy(copy.data, record->data, copy.bytes);
    if (trpi_record_read(mailbox->kind->system, &copy, &of_copy) != TRP_OK ||
        trpi_record_msg(mailbox->kind->system, &copy, &of_copy, mailbox->owner, &msg) != TRP_OK) {
        msg = NULL;
    }
    trpi_free(copy.data);
    return msg;
}

static void
report_dead(const durable_mailbox *mailbox, const trpi_store_record *record, trp_dead_reason reason)
{
    trpi_record_info info = { .type = NULL };
    trp_system *system = mailbox->kind->system;

    if (trpi_record_read(system, record, &info) != TRP_OK) {
        trpi_log(system, TRP_LOG_ERROR, "durable", "a damaged record is dropped bytes=%zu",
                 record->bytes);
    }
    trp_msg *msg = record_restore(mailbox, record, &info);

    if (msg != NULL) {
        trpi_dead_letter_msg(system, mailbox->owner, msg, reason);
        trpi_msg_drop(msg);
    } else {
        trpi_dead_letter(system, info.sender, mailbox->owner, reason, info.type,
                         info.payload_bytes);
    }
}

static void
record_dropped(void *arg, const trpi_store_record *record)
{
    report_dead(arg, record, TRP_DEAD_MAILBOX_FULL);
}

static bool
is_stored(const trp_msg *msg)
{
    return !trpi_msg_is_own(msg) && (trp_msg_type(msg)->flags & TRP_TYPE_LOCAL) == 0;
}

/* durable-U1 */
static trp_err
mailbox_admit(void *object, trp_ref receiver, const trp_msg *msg)
{
    durable_mailbox *mailbox = object;
    kind *k = mailbox->kind;
    trpi_store_record record;
    trp_breaker_call call;
    trp_err err;

    (void)receiver;
    if (!is_stored(msg)) {
        return TRP_OK;
    }
    err = trpi_record_write(k->system, msg, k->max_item_bytes, &record);
    if (err != TRP_OK) {
        return err;
    }
    err = trp_breaker_begin(k->breaker, &call);
    if (err == TRP_OK) {
        err = trpi_store_put(mailbox->queue, mailbox, &k->limits, record.data, record.bytes,
                             record_dropped, mailbox);
        trp_breaker_end(k->breaker, call, storage_failure(err));
    }
    trpi_free(record.data);
    if (err == TRP_OK) {
        trpi_msg_stored(msg); /* durable-U2 */
    }
    return storage_failure(err) != TRP_OK ? TRP_EIO : err;
}

static trp_err
store_take(durable_mailbox *mailbox, trpi_store_record *ret_record)
{
    trp_breaker_call call;
    trp_err err = trp_breaker_begin(mailbox->kind->breaker, &call);

    if (err == TRP_OK) {
        err = trpi_store_take(mailbox->queue, mailbox->kind->limits.sync, ret_record);
        trp_breaker_end(mailbox->kind->breaker, call, storage_failure(err));
    }
    return err;
}

/* ---- durable-U4 ------------------------------------------------------------------------------ */

static void
wake_fired(void *arg)
{
    wake *w = arg;
    trp_ref none = TRP_REF_NONE;
    trp_ctx *ctx = trpi_enter(w->system);

    trpi_tell(ctx, w->owner, none, &wake_type, NULL, 0);
    trpi_leave(ctx);
    trpi_free(w);
}

static void
wake_later(durable_mailbox *mailbox, trp_err why)
{
    uint32_t ms = why == TRP_EBREAKER ? mailbox->kind->reset_timeout_ms : RETRY_MS;

    if (mailbox->wake != NULL) {
        return;
    }
    mailbox->wake = trpi_alloc(sizeof *mailbox->wake);
    if (mailbox->wake == NULL) {
        return; /* the next message wakes it */
    }
    *mailbox->wake = (wake){ mailbox->kind->system, mailbox->owner };
    if (trpi_system_after(mailbox->kind->system, ms, wake_fired, mailbox->wake,
                          &mailbox->wake_id) != TRP_OK) {
        trpi_free(mailbox->wake);
        mailbox->wake = NULL;
    }
}

static void
wake_cancel(durable_mailbox *mailbox)
{
    if (mailbox->wake != NULL &&
        trpi_system_after_cancel(mailbox->kind->system, mailbox->wake_id)) {
        trpi_free(mailbox->wake);
    }
    mailbox->wake = NULL;
}

/* ---- the runner ------------------------------------------------------------------------------ */

static trp_err
mailbox_enqueue(void *object, trp_ref receiver, trp_msg *msg)
{
    durable_mailbox *mailbox = object;
    kept *k;

    (void)receiver;
    if (trp_msg_is(msg, &wake_type)) {
        mailbox->wake = NULL; /* it has freed itself */
        trpi_msg_drop(msg);
        return TRP_OK;
    }
    if (is_stored(msg)) {
        mailbox->tokens++;
        mailbox->tokens_last++;
        trpi_msg_drop(msg);
        return TRP_OK;
    }
    k = trpi_alloc(sizeof *k);
    if (k == NULL) {
        return TRP_ENOMEM;
    }
    *k = (kept){ NULL, msg, mailbox->tokens_last };
    mailbox->tokens_last = 0;
    if (mailbox->last != NULL) {
        mailbox->last->next = k;
    } else {
        mailbox->first = k;
    }
    mailbox->last = k;
    mailbox->kept_count++;
    return TRP_OK;
}

static trp_msg *
kept_take(durable_mailbox *mailbox)
{
    kept *k = mailbox->first;
    trp_msg *msg = k->msg;

    mailbox->first = k->next;
    if (mailbox->first == NULL) {
        mailbox->last = NULL;
    }
    mailbox->kept_count--;
    trpi_free(k);
    return msg;
}

/* Make the message of a record. NULL: it cannot be delivered. */
static trp_msg *
msg_of(durable_mailbox *mailbox, trpi_store_record *record)
{
    trp_system *system = mailbox->kind->system;
    trpi_record_info info;
    trp_msg *msg = NULL;
    uint64_t age;

    if (trpi_record_read(system, record, &info) != TRP_OK || info.type == NULL) {
        report_dead(mailbox, record, TRP_DEAD_NOT_ENCODABLE);
        return NULL;
    }
    age = (uint64_t)(trpi_world_wall_ms(trpi_system_world(system)) - info.stored_ms);
    if (mailbox->kind->max_age_ms != 0 && (int64_t)age > 0 && age > mailbox->kind->max_age_ms) {
        report_dead(mailbox, record, TRP_DEAD_EXPIRED);
    } else if (trpi_record_msg(system, record, &info, mailbox->owner, &msg) != TRP_OK) {
        report_dead(mailbox, record, TRP_DEAD_NO_MEMORY);
    }
    return msg;
}

/* Return the counter of the tokens before the first kept message. */
static uint32_t *
tokens_first(durable_mailbox *mailbox)
{
    return mailbox->first != NULL ? &mailbox->first->tokens : &mailbox->tokens_last;
}

static trp_msg *
mailbox_dequeue(void *object)
{
    durable_mailbox *mailbox = object;

    for (;;) {
        uint32_t *tokens = tokens_first(mailbox);
        trpi_store_record record;
        trp_msg *msg;
        trp_err err;

        if (*tokens == 0) {
            return mailbox->first != NULL ? kept_take(mailbox) : NULL;
        }
        err = store_take(mailbox, &record); /* durable-U3 */
        if (err == TRP_ENOENT) {            /* durable-U1 */
            mailbox->tokens -= *tokens;
            *tokens = 0;
            continue;
        }
        if (err != TRP_OK) {
            wake_later(mailbox, err); /* durable-U4 */
            return NULL;
        }
        *tokens -= 1;
        mailbox->tokens--;
        msg = msg_of(mailbox, &record);
        trpi_free(record.data);
        if (msg != NULL) {
            return msg;
        }
    }
}

static uint32_t
mailbox_count(void *object)
{
    durable_mailbox *mailbox = object;
    uint32_t stored = atomic_load(&mailbox->queue->count);

    return mailbox->kept_count + (mailbox->tokens < stored ? mailbox->tokens : stored);
}

static int
mailbox_has(void *object)
{
    return mailbox_count(object) > 0;
}

static void
kind_unref(kind *k)
{
    if (atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1) {
        trp_breaker_unref(k->breaker);
        trpi_store_unref(k->store);
        trpi_free(k);
    }
}

/* ---- birth and end --------------------------------------------------------------------------- */

static trp_err
queue_find(durable_mailbox *mailbox)
{
    kind *k = mailbox->kind;
    char key[TRP_DURABLE_KEY_BYTES_MAX + 1], path[TRP_PATH_BYTES_MAX + 1];
    trp_breaker_call call;
    int written;
    trp_err err;

    if (trpi_path_unborn(k->system, mailbox->owner, path, sizeof path) == 0) {
        trpi_log(k->system, TRP_LOG_ERROR, "durable",
                 "an actor with a durable mailbox needs a name of its own");
        return TRP_EINVAL;
    }
    written = snprintf(key, sizeof key, "%s%s", trp_system_name(k->system), path);
    if (written < 0 || (size_t)written >= sizeof key) {
        trpi_log(k->system, TRP_LOG_ERROR, "durable",
                 "the path is too long for a durable mailbox path=%s max=%d", path,
                 TRP_DURABLE_KEY_BYTES_MAX);
        return TRP_EINVAL;
    }
    err = trp_breaker_begin(k->breaker, &call);
    if (err == TRP_OK) {
        err = trpi_store_queue_open(k->store, key, mailbox, &mailbox->queue);
        trp_breaker_end(k->breaker, call, storage_failure(err));
    }
    return err;
}

static trp_err
mailbox_create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    kind *k = arg;
    durable_mailbox *mailbox = trpi_alloc(sizeof *mailbox);
    trp_err err;

    (void)system;
    if (mailbox == NULL) {
        return TRP_ENOMEM;
    }
    mailbox->kind = k;
    mailbox->owner = owner;
    err = queue_find(mailbox);
    if (err != TRP_OK) {
        trpi_free(mailbox);
        return err;
    }
    (void)atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    mailbox->tokens = mailbox->tokens_last = atomic_load(&mailbox->queue->count);
    *ret_mailbox = mailbox;
    return TRP_OK;
}

/* durable-U2 */
static void
clean_up(void *object, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    durable_mailbox *mailbox = object;

    trpi_store_queue_close(mailbox->queue, mailbox);
    wake_cancel(mailbox);
    while (mailbox->first != NULL) {
        dead(arg, kept_take(mailbox));
    }
    mailbox->tokens = mailbox->tokens_last = 0;
}

static void
mailbox_destroy(void *object)
{
    durable_mailbox *mailbox = object;

    trpi_store_queue_close(mailbox->queue, mailbox); /* of an actor that never lived */
    kind_unref(mailbox->kind);
    trpi_free(mailbox);
}

/* ---- registration: what belongs to a system -------------------------------------------------- */

typedef struct kinds {
    pthread_mutex_t lock; /* the list; a leaf */
    kind *first;
} kinds;

static trp_err
kinds_create(trp_system *system, void *arg, void **ret_instance)
{
    kinds *all = trpi_alloc(sizeof *all);
    trp_err err = trp_protocol_register(&wake_protocol);

    (void)system;
    (void)arg;
    if (all == NULL || err != TRP_OK) {
        trpi_free(all);
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    pthread_mutex_init(&all->lock, NULL);
    *ret_instance = all;
    return TRP_OK;
}

static void
kinds_release(void *instance)
{
    kinds *all = instance;

    while (all->first != NULL) {
        kind *next = all->first->next;

        kind_unref(all->first);
        all->first = next;
    }
    trpi_mutex_destroy(&all->lock);
    trpi_free(all);
}

static const trp_extension extension = { sizeof(trp_extension), "durable", kinds_create, NULL,
                                         kinds_release,         NULL };

static bool
options_are_valid(const trp_durable_options *options)
{
    return (options->directory == NULL || options->directory[0] != 0) &&
           (options->map_bytes == 0 || options->map_bytes >= TRP_DURABLE_MAP_BYTES_MIN) &&
           options->refuse_when_full <= 1 && options->sync <= 1;
}

/* Open the storage that was given, or that of the world for this directory, or the machine's. */
static trp_err
store_open(kind *k, const trp_durable_options *options, const char *directory, uint64_t map,
           char *error)
{
    trpi_world *world = trpi_system_world(k->system);
    const trp_durable_storage *storage = options->storage;
    trp_err err = TRP_OK;

    if (storage == NULL && world->ops->storage == NULL) {
        return trpi_store_open(directory, map, &k->store, error);
    }
    if (storage == NULL) {
        err = world->ops->storage(world, directory, &storage);
    }
    err = err == TRP_OK ? trpi_store_open_on(storage, &k->store) : err;
    if (err != TRP_OK) {
        (void)snprintf(error, TRPI_STORE_ERROR_BYTES, "the storage cannot be used: %s",
                       trp_strerror(err));
    }
    return err;
}

static trp_err
kind_fill(kind *k, const trp_durable_options *options)
{
    const char *directory = options->directory != NULL ? options->directory : "./_mb";
    uint64_t map = options->map_bytes != 0 ? options->map_bytes : TRP_DURABLE_MAP_BYTES_DEFAULT;
    trp_breaker_options breaker = TRP_BREAKER_OPTIONS_INIT;
    char error[TRPI_STORE_ERROR_BYTES] = "";
    trp_err err;

    k->limits.max_items = options->max_items != 0 ? options->max_items : TRP_DURABLE_ITEMS_DEFAULT;
    k->limits.max_bytes = options->max_bytes != 0 ? options->max_bytes : TRP_DURABLE_BYTES_DEFAULT;
    k->limits.refuse_when_full = options->refuse_when_full != 0;
    k->limits.sync = options->sync != 0;
    k->max_item_bytes =
        options->max_item_bytes != 0 ? options->max_item_bytes : TRP_DURABLE_BYTES_DEFAULT;
    k->max_age_ms = options->max_age_ms;
    breaker.failures_max =
        options->failures_max != 0 ? options->failures_max : TRP_DURABLE_FAILURES_DEFAULT;
    breaker.call_timeout_ms =
        options->call_timeout_ms != 0 ? options->call_timeout_ms : TRP_DURABLE_CALL_DEFAULT_MS;
    breaker.reset_timeout_ms =
        options->reset_timeout_ms != 0 ? options->reset_timeout_ms : TRP_DURABLE_RESET_DEFAULT_MS;
    k->reset_timeout_ms = breaker.reset_timeout_ms;
    err = store_open(k, options, directory, map, error);
    if (err != TRP_OK) {
        trpi_log(k->system, TRP_LOG_ERROR, "durable", "%s", error);
        return err;
    }
    return trp_breaker_new(k->system, &breaker, &k->breaker);
}

trp_err
trp_durable_register(trp_system *system, const char *id, const trp_durable_options *options)
{
    static const trp_mailbox_ops ops = { sizeof ops,      mailbox_create,  mailbox_enqueue,
                                         mailbox_dequeue, mailbox_count,   mailbox_has,
                                         clean_up,        mailbox_destroy, mailbox_admit };
    trp_mailbox_options mailbox = TRP_MAILBOX_OPTIONS_INIT;
    trp_durable_options own;
    void *instance;
    kinds *all;
    kind *k;
    trp_err err;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &own, storage) ||
        !options_are_valid(options)) {
        return TRP_EINVAL;
    }
    err = trp_extension_get(system, &extension, &instance);
    if (err != TRP_OK) {
        return err;
    }
    all = instance;
    k = trpi_alloc(sizeof *k);
    if (k == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&k->refs, 1);
    k->system = system;
    mailbox.kind = TRP_MAILBOX_KIND_CUSTOM;
    mailbox.ops = &ops;
    mailbox.arg = k;
    mailbox.capabilities = TRP_MAILBOX_DURABLE;
    err = kind_fill(k, options);
    err = err == TRP_OK ? trp_mailbox_register(system, id, &mailbox) : err;
    if (err != TRP_OK) {
        kind_unref(k);
        return err;
    }
    pthread_mutex_lock(&all->lock);
    k->next = all->first;
    all->first = k;
    pthread_mutex_unlock(&all->lock);
    return TRP_OK;
}
