/* tls_program.c - TLS contexts of programs, whose files are read again when they change.
 *
 * Shape.   trp_tls: counted by the program, listeners, commands on their way, and its watcher, an
 *          actor on the dispatcher `blocking`, since reading files may block.
 * Must hold.
 *   tls-program-G1  The watcher ends when nobody else has the trp_tls any more, and gives it back
 *       however it ends: its count is held by a message.
 *   tls-program-G2  Files that are refused change nothing, and each reason is logged once.
 * Locks.   `checking`, while the files are read.
 * Tests.   tests/unit/io/tcp_tls_test.c, tests/unit/tls/source_test.c
 * Sources. PIPE-13, PIPE-14
 */
#include "io/tls_program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "io/io.h"

#define TICK_KEY 1u

struct trp_tls {
    _Atomic uint32_t count;
    trpi_world *world;
    trpi_tls_source *source;
    pthread_mutex_t checking;
    uint32_t reload_ms;
    bool is_server, checks_name;
};

trp_tls *
trpi_io_tls_ref(trp_tls *tls)
{
    if (tls != NULL) {
        atomic_fetch_add_explicit(&tls->count, 1, memory_order_relaxed);
    }
    return tls;
}

void
trpi_io_tls_unref(trp_tls *tls)
{
    /* acq_rel: the last one sees all uses */
    if (tls != NULL && atomic_fetch_sub_explicit(&tls->count, 1, memory_order_acq_rel) == 1) {
        trpi_tls_source_free(tls->source);
        trpi_mutex_destroy(&tls->checking);
        trpi_free(tls);
    }
}

bool
trpi_io_tls_is_server(const trp_tls *tls)
{
    return tls->is_server;
}

bool
trpi_io_tls_checks_name(const trp_tls *tls)
{
    return tls->checks_name;
}

trpi_tls_context *
trpi_io_tls_context(trp_tls *tls)
{
    return trpi_tls_source_context(tls->source);
}

/* ---- the watcher of the files ---------------------------------------------------------------- */

trp_type trpi_io_tls_watch_type = TRP_HELD_TYPE("tcp.priv-tls-watch", 41);

typedef struct watcher {
    trp_msg *kept; /* has the count of `tls`: tls-program-G1 */
    trp_tls *tls;
    char said[TRP_TLS_WHY_BYTES]; /* the last reason that was logged */
} watcher;

static void
watch_drop(void *held)
{
    trpi_io_tls_unref(*(trp_tls **)held);
}

/* tls-program-G2 */
static void
files_check(trp_ctx *ctx, watcher *w)
{
    char why[TRP_TLS_WHY_BYTES] = "";
    int changed = 0;
    trp_err err = trp_tls_check(w->tls, &changed, why, sizeof why);

    if (err != TRP_OK && strcmp(why, w->said) != 0) {
        trp_log(ctx, TRP_LOG_WARNING,
                "the new files of TLS are not taken, the old ones stay in use: %s", why);
    } else if (changed != 0) {
        trp_log(ctx, TRP_LOG_INFO, "the files of TLS were read again");
    }
    (void)snprintf(w->said, sizeof w->said, "%s", why);
}

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_tls *const *given = trp_msg_held(msg, &trpi_io_tls_watch_type);
    watcher *w = state;

    if (given != NULL && w->kept == NULL) {
        trp_err err = trp_msg_dup(msg, &w->kept);

        w->tls = *given;
        return err != TRP_OK ? err
                             : trp_timer_repeat(ctx, TICK_KEY, w->tls->reload_ms, w->tls->reload_ms,
                                                &trpi_io_alarm_type, NULL, 0);
    }
    if (!trp_msg_is(msg, &trpi_io_alarm_type) || w->kept == NULL) {
        return TRP_EUNHANDLED;
    }
    if (atomic_load_explicit(&w->tls->count, memory_order_acquire) == 1) {
        trp_stop(ctx, trp_self(ctx));
    } else {
        files_check(ctx, w);
    }
    return TRP_OK;
}

static void
watcher_post_stop(trp_ctx *ctx, void *state)
{
    watcher *w = state;

    (void)ctx;
    trp_msg_free(w->kept);
    w->kept = NULL;
}

const trp_behaviour trpi_io_tls_watcher_behaviour = { .size = sizeof(trp_behaviour),
                                                      .name = "tls-files",
                                                      .version = 1,
                                                      .state_bytes = sizeof(watcher),
                                                      .receive = watcher_receive,
                                                      .post_stop = watcher_post_stop };

static trp_err
watcher_start(trpi_io *io, trp_tls *tls)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_msg *msg;
    trp_ref ref;
    trp_ctx *ctx;
    void *held;
    trp_err err = trp_msg_new_held(&trpi_io_tls_watch_type, sizeof tls, watch_drop, &msg, &held);

    if (err != TRP_OK) {
        return err;
    }
    memcpy(held, &tls, sizeof tls);
    (void)trpi_io_tls_ref(tls);
    options.dispatcher = "blocking";
    err = trpi_system_spawn_internal(io->system, &trpi_io_tls_watcher_behaviour, &options, &ref);
    if (err != TRP_OK) {
        trp_msg_free(msg);
        return err;
    }
    ctx = trpi_enter(io->system);
    trp_send(ctx, ref, msg);
    trpi_leave(ctx);
    return TRP_OK;
}

/* ---- the public functions -------------------------------------------------------------------- */

static trp_err
options_refuse(char *why, size_t why_bytes, const char *text)
{
    (void)snprintf(why, why_bytes, "%s", text);
    return TRP_EINVAL;
}

/* Return what is wrong with options, or NULL. Most contradictions are found by src/tls. */
static const char *
options_fault(const trp_tls_options *options)
{
    if (options->peer > TRP_TLS_PEER_UNCHECKED) {
        return "peer: one of TRP_TLS_PEER_*";
    }
    if (options->version_min > TRP_TLS_1_2) {
        return "version_min: TRP_TLS_1_3 or TRP_TLS_1_2";
    }
    if (options->is_server != 0 && options->authorities == NULL &&
        (options->peer == TRP_TLS_PEER_REQUIRED || options->peer == TRP_TLS_PEER_OPTIONAL)) {
        return "a server that checks its clients needs authorities";
    }
    for (size_t i = 0; i < options->protocols_count; i++) {
        const char *name = options->protocols[i];

        if (name == NULL || name[0] == '\0' || strlen(name) > TRP_TLS_PROTOCOL_BYTES_MAX) {
            return "protocols: each has 1 to 63 bytes";
        }
    }
    return NULL;
}

static void
options_translate(const trp_tls_options *from, const trpi_tls_pair *more, trpi_tls_options *to)
{
    static const trpi_tls_peer peers[] = { [TRP_TLS_PEER_REQUIRED] = TRPI_TLS_PEER_REQUIRED,
                                           [TRP_TLS_PEER_OPTIONAL] = TRPI_TLS_PEER_OPTIONAL,
                                           [TRP_TLS_PEER_UNCHECKED] = TRPI_TLS_PEER_UNCHECKED };
    bool server = from->is_server != 0;

    *to = (trpi_tls_options){ .use = server ? TRPI_TLS_SERVER : TRPI_TLS_CLIENT,
                              .peer = peers[from->peer],
                              .version_min =
                                  from->version_min == TRP_TLS_1_2 ? TRPI_TLS_1_2 : TRPI_TLS_1_3,
                              .ca = from->authorities,
                              .cert = from->certificate,
                              .key = from->key,
                              .more = more,
                              .more_count = from->more_count,
                              .protocols = from->protocols,
                              .protocols_count = from->protocols_count,
                              .protocol_optional = from->protocol_optional != 0,
                              .crl = from->revoked,
                              .allowed = from->allowed,
                              .allowed_count = from->allowed_count };
    if (from->peer == TRP_TLS_PEER_DEFAULT) {
        to->peer =
            server && from->authorities == NULL ? TRPI_TLS_PEER_UNCHECKED : TRPI_TLS_PEER_REQUIRED;
    }
}

static trp_err
tls_make(trpi_io *io, const trp_tls_options *options, trp_tls **ret_tls, char *why,
         size_t why_bytes)
{
    trpi_tls_pair *more =
        options->more_count > 0 ? trpi_alloc(options->more_count * sizeof *more) : NULL;
    trp_tls *tls = trpi_alloc(sizeof *tls);
    trpi_tls_options own;
    trp_err err = TRP_ENOMEM;

    for (size_t i = 0; more != NULL && i < options->more_count; i++) {
        more[i] = (trpi_tls_pair){ options->more[i].certificate, options->more[i].key };
    }
    if (tls != NULL && (more != NULL || options->more_count == 0)) {
        options_translate(options, more, &own);
        err =
            trpi_tls_source_new(&own, trpi_world_wall_ms(io->world), &tls->source, why, why_bytes);
    }
    trpi_free(more);
    if (err != TRP_OK) {
        trpi_free(tls);
        return err;
    }
    atomic_init(&tls->count, 1);
    pthread_mutex_init(&tls->checking, NULL);
    tls->world = io->world;
    tls->reload_ms = options->reload_ms != 0 ? options->reload_ms : TRP_TLS_RELOAD_DEFAULT_MS;
    tls->is_server = options->is_server != 0;
    tls->checks_name = !tls->is_server && own.peer != TRPI_TLS_PEER_UNCHECKED;
    *ret_tls = tls;
    return TRP_OK;
}

trp_err
trp_tls_new(trp_system *system, const trp_tls_options *given, trp_tls **ret_tls, char *why,
            size_t why_bytes)
{
    trp_tls_options options = TRP_TLS_OPTIONS_INIT;
    char unwanted[TRP_TLS_WHY_BYTES];
    const char *fault;
    trpi_io *io;
    trp_err err;

    if (why == NULL || why_bytes == 0) {
        why = unwanted;
        why_bytes = sizeof unwanted;
    }
    why[0] = '\0';
    if (system == NULL || given == NULL || ret_tls == NULL ||
        !TRPI_SIZED_COPY(given, &options, allowed_count)) {
        return options_refuse(why, why_bytes,
                              "an argument is NULL, or options were not initialised");
    }
    fault = options_fault(&options);
    if (fault != NULL) {
        return options_refuse(why, why_bytes, fault);
    }
    err = trpi_io_get(system, &io);
    err = err == TRP_OK ? tls_make(io, &options, ret_tls, why, why_bytes) : err;
    if (err == TRP_OK && (*ret_tls)->reload_ms != TRP_TLS_NEVER_RELOAD) {
        err = watcher_start(io, *ret_tls);
        if (err != TRP_OK) {
            trpi_io_tls_unref(*ret_tls);
            *ret_tls = NULL;
        }
    }
    if (err != TRP_OK && why[0] == '\0') {
        (void)snprintf(why, why_bytes, "%s", trp_strerror(err));
    }
    return err;
}

trp_err
trp_tls_check(trp_tls *tls, int *ret_changed, char *why, size_t why_bytes)
{
    char unwanted[TRP_TLS_WHY_BYTES];
    bool changed = false;
    trp_err err;

    if (why == NULL || why_bytes == 0) {
        why = unwanted;
        why_bytes = sizeof unwanted;
    }
    why[0] = '\0';
    if (tls == NULL) {
        return options_refuse(why, why_bytes, "tls is NULL");
    }
    pthread_mutex_lock(&tls->checking);
    err = trpi_tls_source_check(tls->source, trpi_world_wall_ms(tls->world), &changed, why,
                                why_bytes);
    pthread_mutex_unlock(&tls->checking);
    if (ret_changed != NULL) {
        *ret_changed = changed ? 1 : 0;
    }
    return err;
}

void
trp_tls_free(trp_tls *tls)
{
    trpi_io_tls_unref(tls);
}
