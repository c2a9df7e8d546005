/* extension_test.c - one instance for each system, made on demand or at the start, ended with
 * it. */
#include <troupe/config.h>
#include <troupe/extension.h>

#include "tests/unit/actor/stage.h"

static _Atomic int created, stopped, released;
static _Atomic bool may_finish = true;

typedef struct box {
    int number;
    _Atomic uint64_t hits; /* EXT-02: shared, so atomic */
} box;

static trp_err
box_create(trp_system *system, void *arg, void **ret_instance)
{
    box *b = trpi_alloc(sizeof *b);

    (void)system;
    while (!atomic_load(&may_finish)) {
        unit_pause();
    }
    b->number = arg != NULL ? *(int *)arg : 0;
    atomic_fetch_add(&created, 1);
    *ret_instance = b;
    return TRP_OK;
}

static void
box_stop(void *instance)
{
    stage_note("stop%d", ((box *)instance)->number);
    atomic_fetch_add(&stopped, 1);
}

static void
box_release(void *instance)
{
    stage_note("release%d", ((box *)instance)->number);
    atomic_fetch_add(&released, 1);
    trpi_free(instance);
}

static int one = 1, two = 2;
static const trp_extension first = { sizeof(trp_extension), "first", box_create, box_stop,
                                     box_release,           &one };

static trp_err
second_create(trp_system *system, void *arg, void **ret_instance)
{
    void *other;

    UNIT_EQUAL(trp_extension_get(system, &first, &other), TRP_OK); /* may use others */
    return box_create(system, arg, ret_instance);
}
static const trp_extension second = { sizeof(trp_extension), "second", second_create, box_stop,
                                      box_release,           &two };

static void
reset(void)
{
    atomic_store(&created, 0);
    atomic_store(&stopped, 0);
    atomic_store(&released, 0);
}

static void *
get_first(void *arg)
{
    void *instance = NULL;

    UNIT_EQUAL(trp_extension_get(arg, &first, &instance), TRP_OK);
    if (instance != NULL) {
        atomic_fetch_add(&((box *)instance)->hits, 1);
    }
    return instance;
}

/* EXT-01, EXT-02 */
static void
many_threads_get_one_instance_of_a_system_and_another_of_the_next(void)
{
    trp_system *a, *b;
    pthread_t threads[8];
    void *got[8], *other;

    reset();
    UNIT_REQUIRE(trp_system_new("a", NULL, &a) == TRP_OK);
    UNIT_REQUIRE(trp_system_new("b", NULL, &b) == TRP_OK);
    UNIT_TRUE(trp_extension_find(a, "first") == NULL);
    atomic_store(&may_finish, false); /* all threads are inside create */
    for (int i = 0; i < 8; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, get_first, a) == 0);
    }
    atomic_store(&may_finish, true);
    for (int i = 0; i < 8; i++) {
        UNIT_REQUIRE(pthread_join(threads[i], &got[i]) == 0);
        UNIT_TRUE(got[i] == got[0] && got[i] != NULL);
    }
    UNIT_EQUAL(atomic_load(&created), 1);
    UNIT_EQUAL(atomic_load(&((box *)got[0])->hits), 8);
    UNIT_TRUE(trp_extension_find(a, "first") == got[0]);
    UNIT_EQUAL(trp_extension_get(b, &first, &other), TRP_OK);
    UNIT_TRUE(other != got[0]);
    UNIT_EQUAL(atomic_load(&created), 2);
    trp_system_free(a);
    UNIT_EQUAL(atomic_load(&released), 1);
    trp_system_free(b);
    UNIT_EQUAL(atomic_load(&released), 2);
    UNIT_EQUAL(atomic_load(&stopped), 2);
}

/* EXT-01 */
static void
instances_end_with_their_system_the_last_one_made_first(void)
{
    trp_system *system;
    void *instance;

    reset();
    UNIT_REQUIRE(trp_system_new("order", NULL, &system) == TRP_OK);
    UNIT_EQUAL(trp_extension_get(system, &second, &instance), TRP_OK);
    UNIT_EQUAL(atomic_load(&created), 2);
    trp_system_free(system);
    UNIT_TRUE(stage_has("stop2 stop1 release2 release1"));
}

static trp_err
late_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)arg;
    *ret_instance = system;
    return TRP_OK;
}

static void
late_release(void *system)
{
    void *instance = NULL;

    UNIT_EQUAL(trp_extension_get(system, &second, &instance), TRP_ECLOSED);
    UNIT_EQUAL(trp_extension_get(system, &first, &instance), TRP_ECLOSED);
    UNIT_TRUE(instance == NULL && trp_extension_find(system, "first") == NULL);
    trp_system_tell(system, trp_system_dead_letters(system), &trp_string_type, "late", 4);
    stage_note("late");
}

/* EXT-01 */
static void
what_was_released_is_given_to_nobody_and_a_release_may_still_tell(void)
{
    static const trp_extension late = { sizeof(trp_extension), "late", late_create, NULL,
                                        late_release,          NULL };
    trp_system *system;
    void *instance;

    reset();
    system = stage_open();
    UNIT_EQUAL(trp_extension_get(system, &late, &instance), TRP_OK);
    UNIT_EQUAL(trp_extension_get(system, &second, &instance), TRP_OK);
    stage_close(system);
    UNIT_TRUE(stage_has("release2 release1 late"));
    UNIT_EQUAL(atomic_load(&created), 2);
}

static trp_err
circle_create(trp_system *system, void *arg, void **ret_instance)
{
    return trp_extension_get(system, arg, ret_instance);
}
static trp_extension circle_a = {
    sizeof(trp_extension), "circle-a", circle_create, NULL, NULL, NULL
};
static trp_extension circle_b = {
    sizeof(trp_extension), "circle-b", circle_create, NULL, NULL, &circle_a
};

static int failures_left;
static trp_err
moody_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)system;
    (void)arg;
    *ret_instance = &failures_left;
    return failures_left-- > 0 ? TRP_EIO : TRP_OK;
}
static const trp_extension moody = {
    sizeof(trp_extension), "moody", moody_create, NULL, NULL, NULL
};

/* EXT-01 */
static void
what_fails_is_tried_again_and_a_circle_or_a_taken_name_is_refused(void)
{
    static const trp_extension namesake = {
        sizeof(trp_extension), "moody", moody_create, NULL, NULL, NULL
    };
    static const trp_extension nameless = {
        sizeof(trp_extension), "", moody_create, NULL, NULL, NULL
    };
    trp_system *system;
    void *instance = NULL;

    UNIT_REQUIRE(trp_system_new("refuse", NULL, &system) == TRP_OK);
    failures_left = 1;
    UNIT_EQUAL(trp_extension_get(system, &moody, &instance), TRP_EIO);
    UNIT_TRUE(instance == NULL);
    UNIT_EQUAL(trp_extension_get(system, &moody, &instance), TRP_OK);
    UNIT_TRUE(instance == &failures_left);
    UNIT_EQUAL(trp_extension_get(system, &namesake, &instance), TRP_EEXIST);
    UNIT_EQUAL(trp_extension_get(system, &nameless, &instance), TRP_EINVAL);
    circle_a.arg = &circle_b;
    UNIT_EQUAL(trp_extension_get(system, &circle_a, &instance), TRP_ESTATE);
    trp_system_free(system);
}

/* EXT-01: TRP_EXTENSIONS_MAX, and one past it */
static void
a_system_has_room_for_so_many_extensions_and_not_one_more(void)
{
    static trp_extension many[TRP_EXTENSIONS_MAX + 1];
    static char names[TRP_EXTENSIONS_MAX + 1][16];
    trp_system *system;
    void *instance;

    UNIT_REQUIRE(trp_system_new("many", NULL, &system) == TRP_OK);
    failures_left = 0;
    for (int i = 0; i <= TRP_EXTENSIONS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        many[i] =
            (trp_extension){ sizeof(trp_extension), names[i], moody_create, NULL, NULL, NULL };
        UNIT_EQUAL(trp_extension_get(system, &many[i], &instance),
                   i < TRP_EXTENSIONS_MAX ? TRP_OK : TRP_ELIMIT);
    }
    trp_system_free(system);
}

/* EXT-01: TRP_EXTENSION_NAME_BYTES_MAX, and one past it */
static void
a_name_has_so_many_bytes_and_not_one_more(void)
{
    char name[TRP_EXTENSION_NAME_BYTES_MAX + 2];
    trp_extension named = { sizeof(trp_extension), name, moody_create, NULL, NULL, NULL };
    trp_system *system;
    void *instance = NULL;

    UNIT_REQUIRE(trp_system_new("named", NULL, &system) == TRP_OK);
    failures_left = 0;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    UNIT_EQUAL(trp_extension_get(system, &named, &instance), TRP_EINVAL);
    name[sizeof name - 2] = '\0';
    UNIT_EQUAL(trp_extension_get(system, &named, &instance), TRP_OK);
    UNIT_TRUE(trp_extension_find(system, name) == instance && instance != NULL);
    trp_system_free(system);
}

/* SYS-39, EXT-01: listed in the options, they are there before the system is given */
static void
listed_extensions_are_made_at_the_start_and_a_failing_one_fails_it(void)
{
    static const trp_extension *const good[] = { &first, &second, NULL };
    static const trp_extension *const bad[] = { &first, &moody, NULL };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    reset();
    options.extensions = good;
    UNIT_REQUIRE(trp_system_new("listed", &options, &system) == TRP_OK);
    UNIT_TRUE(trp_extension_find(system, "first") != NULL);
    UNIT_TRUE(trp_extension_find(system, "second") != NULL);
    trp_system_free(system);
    reset();
    failures_left = 1;
    options.extensions = bad;
    options.log = stage_log;
    UNIT_EQUAL(trp_system_new("listed", &options, &system), TRP_EIO);
    UNIT_EQUAL(atomic_load(&created), 1);
    UNIT_EQUAL(atomic_load(&released), 1); /* what was made is undone */
    UNIT_WAIT(stage_book_has(&stage_lines, "name=moody"), 5000);
}

/* SYS-39, EXT-01: named in the configuration, a shared object is loaded */
static void
an_extension_that_the_configuration_names_is_loaded(void)
{
    static const char text[] = "extensions = { \"./tests/unit/actor/.libs/plain_extension.so\" }\n";
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error;
    trp_config *config = NULL;
    trp_system *system = NULL;
    int *instance;

    UNIT_REQUIRE(trp_config_parse_text("test", text, &config, &error) == TRP_OK);
    options.config = config;
    options.log = stage_log;
    UNIT_REQUIRE(trp_system_new("loaded", &options, &system) == TRP_OK);
    instance = trp_extension_find(system, "plain");
    UNIT_REQUIRE(instance != NULL);
    UNIT_EQUAL(*instance, 42);
    UNIT_EQUAL(trp_extension_load(system, "/nowhere/x.so"), TRP_ENOENT);
    UNIT_EQUAL(trp_extension_load(system, "libm.so.6"), TRP_EVERSION);
    UNIT_WAIT(stage_book_has(&stage_lines, "missing=trp_extension_v1"), 5000);
    trp_system_free(system);
    trp_config_unref(config);
}

typedef struct settings {
    char uri[64];
    int64_t timeout_ms;
} settings;

static trp_err
settings_create(trp_system *system, void *arg, void **ret_instance)
{
    settings *s = arg;
    trp_config *config = trp_system_config(system);
    const char *uri;
    trp_err err = trp_config_get_text(config, "app.db.uri", &uri, NULL);

    if (err == TRP_OK) {
        snprintf(s->uri, sizeof s->uri, "%s", uri);
        err = trp_config_get_duration(config, "app.circuit-breaker.timeout", &s->timeout_ms, NULL);
    }
    atomic_fetch_add(&created, 1);
    trp_config_unref(config);
    *ret_instance = s;
    return err;
}

/* EXT-03: the document's own example, settings that are read once for each system */
static void
settings_of_an_application_are_read_once(void)
{
    static const char text[] = "app { db { uri = \"db://one\" }\n"
                               "circuit-breaker { timeout = 30s } }\n";
    static settings mine;
    static const trp_extension reader = {
        sizeof(trp_extension), "settings", settings_create, NULL, NULL, &mine
    };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error;
    trp_config *config = NULL;
    trp_system *system;
    void *instance;

    reset();
    UNIT_REQUIRE(trp_config_parse_text("test", text, &config, &error) == TRP_OK);
    options.config = config;
    UNIT_REQUIRE(trp_system_new("settings", &options, &system) == TRP_OK);
    UNIT_EQUAL(trp_extension_get(system, &reader, &instance), TRP_OK);
    UNIT_EQUAL(trp_extension_get(system, &reader, &instance), TRP_OK);
    UNIT_EQUAL(atomic_load(&created), 1);
    UNIT_TEXT(((settings *)instance)->uri, "db://one");
    UNIT_EQUAL(((settings *)instance)->timeout_ms, 30000);
    trp_system_free(system);
    trp_config_unref(config);
}

UNIT_BEGIN("extension")
UNIT(many_threads_get_one_instance_of_a_system_and_another_of_the_next)
UNIT(instances_end_with_their_system_the_last_one_made_first)
UNIT(what_was_released_is_given_to_nobody_and_a_release_may_still_tell)
UNIT(what_fails_is_tried_again_and_a_circle_or_a_taken_name_is_refused)
UNIT(a_system_has_room_for_so_many_extensions_and_not_one_more)
UNIT(a_name_has_so_many_bytes_and_not_one_more)
UNIT(listed_extensions_are_made_at_the_start_and_a_failing_one_fails_it)
UNIT(an_extension_that_the_configuration_names_is_loaded)
UNIT(settings_of_an_application_are_read_once)
UNIT_END
