/* apps.c - applications that a node starts, stops and restarts while it runs.
 *
 * Shape.   a thread, each apps.interval: DIR --> NAME: new | gone | changed --> shutdown, startup
 *          NAME.so --checked, copied to a file without a name--> dlopen; never closed
 * Must hold.
 *   apps-A1  An application is started at most once at a time: startup follows the return of the
 *       shutdown before.
 *   apps-A2  Code that was mapped stays: an object is mapped from a copy that nobody can change.
 *   apps-A3  What a file was when it was started is compared, by inode, size and times; one that
 *       changed within the last SETTLE_MS is still being written and waits.
 * Limits.  TRP_APPS_MAX, TRP_APP_NAME_BYTES_MAX, TRP_APP_BYTES_MAX.
 * Tests.   tests/system/apps.sh
 */
#include "cluster/node/apps.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <troupe/bootable.h>
#include <troupe/shutdown.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"
#include "cluster/node/node_plugin.h"
#include "cluster/node/node_private.h"
#include "cluster/node/node_start.h"

#define SYMBOL "trp_bootable_v1"
enum { SETTLE_MS = 500, STOP_S = 10, PATH_BYTES = 4096, WHY_BYTES = 512 };

typedef struct stamp { /* of a file; ino 0: it is not there */
    ino_t ino;
    off_t bytes;
    struct timespec changed, modified;
} stamp;

typedef struct app {
    trp_app app; /* what its functions are given */
    trp_config *config;
    const trp_bootable *code; /* NULL: it is not started */
    void *state;
    stamp object, settings; /* when it was started, or failed to */
    bool seen;
    uint32_t copies;
    char name[TRP_APP_NAME_BYTES_MAX + 1];
    char directory[PATH_BYTES];
} app;

typedef struct trpi_apps {
    trp_node *node;
    pthread_t thread;
    pthread_mutex_t lock; /* the next five; a leaf */
    pthread_cond_t changed;
    bool stops, ended;
    uint64_t task; /* of the shutdown; 0: none yet */
    /* the rest is the thread's */
    app *list[TRP_APPS_MAX]; /* in the order in which they were started first */
    uint32_t count, interval_ms;
    bool full; /* that was logged */
    char directory[PATH_BYTES];
} apps;

static void
apps_free(apps *s)
{
    pthread_cond_destroy(&s->changed);
    trpi_mutex_destroy(&s->lock);
    trpi_free(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void
stamp_take(const struct stat *file, stamp *ret_stamp)
{
    memset(ret_stamp, 0, sizeof *ret_stamp);
    ret_stamp->ino = file->st_ino;
    ret_stamp->bytes = file->st_size;
    ret_stamp->changed = file->st_ctim;
    ret_stamp->modified = file->st_mtim;
}

static void
stamp_look(const char *path, stamp *ret_stamp)
{
    struct stat file;
    memset(ret_stamp, 0, sizeof *ret_stamp);
    if (stat(path, &file) == 0) {
        stamp_take(&file, ret_stamp);
    }
}

static bool
stamp_equal(const stamp *a, const stamp *b)
{
    return a->ino == b->ino && a->bytes == b->bytes && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec && a->modified.tv_sec == b->modified.tv_sec &&
           a->modified.tv_nsec == b->modified.tv_nsec;
}

/* Return whether the file has not changed for a while (apps-A3), or is not there. */
static bool
stamp_is_settled(const stamp *s)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t ms = (int64_t)(now.tv_sec - s->changed.tv_sec) * 1000 +
                 (now.tv_nsec - s->changed.tv_nsec) / 1000000;
    return s->ino == 0 || ms < 0 || ms >= SETTLE_MS;
}

/* Return whether others than this user and root can write it. */
static bool
is_foreign(const struct stat *file)
{
    return (file->st_uid != 0 && file->st_uid != geteuid()) ||
           (file->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* Copy an object into memory that has no name and cannot be changed (apps-A2). */
static trp_err
object_copy(app *a, int *ret_fd, char ret_path[64], char *why)
{
    trpi_control_refusal refusal = { .error = "" };
    char name[TRP_APP_NAME_BYTES_MAX + sizeof ".so"];
    struct stat file;
    int fd = -1;
    (void)snprintf(name, sizeof name, "%s.so", a->name);
    if (!trpi_plugin_file_open(a->directory, name, &fd, &refusal) || fstat(fd, &file) != 0 ||
        !trpi_plugin_file_copy(fd, name, ++a->copies, ret_fd, ret_path, &refusal)) {
        (void)snprintf(why, WHY_BYTES, "%.*s", WHY_BYTES - 1, refusal.error);
        return TRP_ECONFIG;
    }
    stamp_take(&file, &a->object);
    return TRP_OK;
}

/* ---- one application ------------------------------------------------------------------------- */

static trp_err
code_open(app *a, const char *path, char *why)
{
    char copy[64];
    int fd = -1;
    trp_err err = object_copy(a, &fd, copy, why);
    if (err != TRP_OK) {
        return err;
    }
    /* Each copy is another file, so that a new version is not the old one to the loader; the
     * descriptor is kept, so that no later one has its path. */
    void *handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    const trp_bootable *code = handle == NULL ? NULL : dlsym(handle, SYMBOL);
    if (code == NULL) {
        const char *text = dlerror();
        if (handle == NULL) {
            (void)close(fd);
        }
        (void)snprintf(why, WHY_BYTES, "%s: %s", path,
                       handle != NULL ? "it has no symbol " SYMBOL " (see troupe/bootable.h)"
                       : text != NULL ? text
                                      : "it cannot be loaded");
        return TRP_ECONFIG;
    }
    if (code->abi != TRP_BOOTABLE_ABI || code->startup == NULL || code->shutdown == NULL) {
        (void)snprintf(why, WHY_BYTES, "%s: it was built for version %u, this node has %u", path,
                       code->abi, TRP_BOOTABLE_ABI);
        return TRP_ECONFIG;
    }
    a->code = code;
    return TRP_OK;
}

/* Its own configuration, which is empty where there is no file. */
static trp_err
config_open(app *a, const char *path, char *why)
{
    trp_config_error error = { .text = "" };
    struct stat file;
    stamp_look(path, &a->settings);
    if (a->settings.ino == 0) {
        return trp_config_parse_text(path, "", &a->config, &error);
    }
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || is_foreign(&file)) {
        (void)snprintf(why, WHY_BYTES,
                       "%s: expected a file that only this user and root can change", path);
        return TRP_ECONFIG;
    }
    trp_err err = trp_config_parse_file(path, &a->config, &error);
    if (err != TRP_OK) {
        (void)snprintf(why, WHY_BYTES, "%s", error.text);
    }
    return err;
}

static void
app_start(apps *s, app *a)
{
    char object[PATH_BYTES + 80], settings[PATH_BYTES + 80], why[WHY_BYTES] = "";
    trp_plugin_error error = { "" };
    trp_system *system = s->node->system;
    (void)snprintf(object, sizeof object, "%s/%s.so", a->directory, a->name);
    (void)snprintf(settings, sizeof settings, "%s/%s.conf", a->directory, a->name);
    trp_err err = config_open(a, settings, why);
    err = err == TRP_OK ? code_open(a, object, why) : err;
    if (err == TRP_OK) {
        a->app = (trp_app){ s->node, a->name, a->directory, a->config };
        trpi_fault_trust(a->code);
        err = a->code->startup(&a->app, &a->state, &error);
        (void)snprintf(why, sizeof why, "%s", error.text[0] ? error.text : trp_strerror(err));
    }
    if (err == TRP_OK) {
        trp_system_log(system, TRP_LOG_INFO, "apps", "app %s has started", a->name);
        return;
    }
    a->code = NULL;
    trp_config_unref(a->config);
    a->config = NULL;
    stamp_look(object, &a->object);
    trp_system_log(system, TRP_LOG_ERROR, "apps",
                   "app %s did not start: %s; it is tried again when its files have changed",
                   a->name, why);
}

static void
app_stop(apps *s, app *a)
{
    if (a->code != NULL) {
        a->code->shutdown(&a->app, a->state);
        trp_system_log(s->node->system, TRP_LOG_INFO, "apps", "app %s has been shut down", a->name);
    }
    trp_config_unref(a->config);
    a->code = NULL;
    a->config = NULL;
    a->state = NULL;
}

/* ---- the directory --------------------------------------------------------------------------- */

static bool
name_is_valid(const char *name)
{
    size_t bytes = strnlen(name, TRP_APP_NAME_BYTES_MAX + 1);
    return bytes <= TRP_APP_NAME_BYTES_MAX && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               bytes;
}

static app *
app_find(const apps *s, const char *name)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (strcmp(s->list[i]->name, name) == 0) {
            return s->list[i];
        }
    }
    return NULL;
}

/* Look at DIR/NAME: is it an application, and another one than before? */
static void
app_look(apps *s, const char *name)
{
    char path[PATH_BYTES + 2 * TRP_APP_NAME_BYTES_MAX + 16];
    stamp object, settings;
    app *a = app_find(s, name);
    (void)snprintf(path, sizeof path, "%s/%s/%s.so", s->directory, name, name);
    stamp_look(path, &object);
    (void)snprintf(path, sizeof path, "%s/%s/%s.conf", s->directory, name, name);
    stamp_look(path, &settings);
    if (object.ino == 0) {
        return; /* no application, or one that is gone */
    }
    if (a != NULL) {
        a->seen = true;
        if (stamp_equal(&object, &a->object) && stamp_equal(&settings, &a->settings)) {
            return;
        }
    }
    if (!stamp_is_settled(&object) || !stamp_is_settled(&settings)) {
        return;
    }
    if (a == NULL) {
        a = s->count < TRP_APPS_MAX ? trpi_alloc(sizeof *a) : NULL;
        if (a == NULL) {
            if (!s->full) {
                trp_system_log(s->node->system, TRP_LOG_ERROR, "apps",
                               "app %s is not started: %u are the most, or there is no memory",
                               name, TRP_APPS_MAX);
            }
            s->full = true;
            return;
        }
        (void)snprintf(a->name, sizeof a->name, "%s", name);
        (void)snprintf(a->directory, sizeof a->directory, "%s/%s", s->directory, name);
        a->seen = true;
        s->list[s->count++] = a;
    }
    app_stop(s, a); /* apps-A1 */
    app_start(s, a);
}

static void
gone_remove(apps *s)
{
    for (uint32_t i = s->count; i-- > 0;) {
        if (!s->list[i]->seen) {
            app_stop(s, s->list[i]);
            trpi_free(s->list[i]);
            memmove(&s->list[i], &s->list[i + 1], (s->count - i - 1) * sizeof s->list[0]);
            s->count--;
            s->full = false;
        }
    }
}

static int
by_name(const struct dirent *entry)
{
    return name_is_valid(entry->d_name);
}

/* In the order of their names. */
static void
apps_scan(apps *s)
{
    struct dirent **entries = NULL;
    int count = scandir(s->directory, &entries, by_name, alphasort);
    if (count < 0) { /* all stay as they are */
        trp_system_log(s->node->system, TRP_LOG_WARNING, "apps", "%s cannot be read: %s",
                       s->directory, strerror(errno));
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        s->list[i]->seen = false;
    }
    for (int i = 0; i < count; i++) {
        app_look(s, entries[i]->d_name);
        free(entries[i]); /* scandir's */
    }
    free(entries);
    gone_remove(s);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void
wait_until_due(apps *s) /* with the lock */
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += s->interval_ms / 1000;
    until.tv_nsec += (long)(s->interval_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!s->stops && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0) {
    }
}

static void *
apps_main(void *arg)
{
    apps *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stops) {
        pthread_mutex_unlock(&s->lock);
        apps_scan(s);
        pthread_mutex_lock(&s->lock);
        wait_until_due(s);
    }
    pthread_mutex_unlock(&s->lock);
    while (s->count > 0) {
        app_stop(s, s->list[--s->count]);
        trpi_free(s->list[s->count]);
    }
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    uint64_t task = s->task;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (task != 0) {
        trp_shutdown_done(s->node->system, task, TRP_OK);
    }
    return NULL;
}

/* A trp_shutdown_fn. */
static void
apps_shutdown(void *arg, uint64_t task)
{
    apps *s = arg;
    pthread_mutex_lock(&s->lock);
    bool ended = s->ended;
    s->task = task;
    s->stops = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (ended) {
        trp_shutdown_done(s->node->system, task, TRP_OK);
    }
}

bool
trpi_apps_stop(trp_node *node)
{
    apps *s = node->apps;
    struct timespec until;
    if (s == NULL) {
        return true;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_S;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->changed);
    while (!s->ended && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0) {
    }
    bool ended = s->ended;
    pthread_mutex_unlock(&s->lock);
    if (!ended) {
        trp_system_log(node->system, TRP_LOG_ERROR, "apps",
                       "the shutdown of an app did not return in %d s; the node ends without it",
                       STOP_S);
        return false;
    }
    (void)pthread_join(s->thread, NULL);
    return true;
}

void
trpi_apps_free(trp_node *node)
{
    if (node->apps != NULL) {
        apps_free(node->apps);
        node->apps = NULL;
    }
}

static trp_err
apps_new(trp_node *node, const char *directory, apps **ret_apps)
{
    pthread_condattr_t clock;
    apps *s = trpi_alloc(sizeof *s);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->node = node;
    (void)snprintf(s->directory, sizeof s->directory, "%s", directory);
    s->interval_ms = trpi_node_number(node, "apps.interval");
    pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    *ret_apps = s;
    return TRP_OK;
}

trp_err
trpi_apps_start(trp_node *node, trp_node_error *ret_error)
{
    const char *directory = trpi_config_text(node->config, "apps.directory");
    struct stat file;
    uint64_t task = 0;
    apps *s;
    if (directory[0] == '\0') {
        return TRP_OK;
    }
    if (strlen(directory) + 1 + TRP_APP_NAME_BYTES_MAX >= PATH_BYTES ||
        stat(directory, &file) != 0 || !S_ISDIR(file.st_mode) || is_foreign(&file)) {
        return trpi_node_fail(
            ret_error, TRP_ECONFIG,
            "apps.directory: %s: expected a directory that only this user and root "
            "can change",
            directory);
    }
    trp_err err = apps_new(node, directory, &s);
    if (err == TRP_OK) {
        err = trp_shutdown_add(node->system, TRP_SHUTDOWN_SERVICE_STOP, "apps", apps_shutdown, s,
                               &task);
        err = err == TRP_OK ? trpi_thread_start(&s->thread, apps_main, s) : err;
        if (err != TRP_OK) {
            (void)trp_shutdown_remove(node->system, task);
            apps_free(s);
        }
    }
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err, "apps: %s", trp_strerror(err));
    }
    node->apps = s;
    return TRP_OK;
}
