/* durable_limits_test.c - durable mailboxes: limits of number, age and size; full disks; damaged
 * files; which actors may have such a mailbox.
 */
#include "tests/unit/pattern/post.h"

#include <sys/resource.h>

#ifdef HAVE_LMDB

/* ---- limits ---------------------------------------------------------------------------------- */

/* DUR-05: at max_items nothing is lost, one past it the oldest is a dead letter; and the mailbox's
 * count knows. */
static void
the_oldest_is_dropped_when_it_is_full(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_mailbox_view view;
    trp_ref ref;

    directory_make();
    options.max_items = 5;
    system_start(&options);
    ref = spawn_held();
    for (uint64_t i = 0; i < 5; i++) {
        number_tell(ref, i);
    }
    UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 0);
    number_tell(ref, 5);
    UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 5, 5000);
    UNIT_TRUE(seen[0] == 1 && seen[4] == 5);
    UNIT_WAIT(trp_mailbox_look(system_, ref, &view) == TRP_OK && view.messages == 0, 5000);
    system_stop();
    directory_remove();
}

static trp_ref stopped_clerk, successor;

/* On the thread that tells, when its message is stored and not told yet. */
static trp_err
stop_the_clerk(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    trp_system_stop_actor(system_, stopped_clerk);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(spawn_as("clerk", &clerk, "kept", &successor) == TRP_OK, 60000); /* it has ended */
    return TRP_OK;
}

/* TRP-13, durable-U1: its owner ends between the two steps of a tell; the message is the next
 * one's, and no dead letter besides. A message that is told after that is one. */
static void
what_was_stored_when_its_owner_ended_is_not_a_dead_letter_too(void)
{
    static const trp_behaviour behaviour = {
        .size = sizeof(trp_behaviour), .name = "stopper", .version = 1, .receive = stop_the_clerk
    };
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_spawn_options here = TRP_SPAWN_OPTIONS_INIT;
    trp_ref stopper;

    directory_make();
    options.max_items = 1;
    system_start(&options);
    here.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_system_spawn(system_, &behaviour, &here, &stopper), TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(system_, stopper, &trp_dead_letter_type), TRP_OK);
    stopped_clerk = spawn_held();
    number_tell(stopped_clerk, 1);
    number_tell(stopped_clerk, 2); /* 1 is dropped for it, which the stopper hears of */
    UNIT_EQUAL(trp_system_unsubscribe(system_, stopper, &trp_dead_letter_type), TRP_OK);
    UNIT_WAIT(atomic_load(&seen_count) == 2, 5000);
    UNIT_TRUE(seen[0] == UINT64_MAX && seen[1] == 2);
    UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 1);
    number_tell(stopped_clerk, 3);
    UNIT_WAIT(dead_letters(TRP_DEAD_STALE) == 1, 5000);
    UNIT_EQUAL(dead_letters(TRP_DEAD_STOPPED), 0);
    system_stop();
    directory_remove();
}

/* DUR-05: or the newest is refused, and its sender gets TRP_EAGAIN. */
static void
or_the_newest_is_refused(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    post_letter letter = { 9, TRP_REF_NONE };
    trp_ref ref;

    directory_make();
    options.max_items = 2; /* without the one that holds it, which it is at */
    options.refuse_when_full = 1;
    system_start(&options);
    ref = spawn_held();
    number_tell(ref, 0);
    UNIT_EQUAL(trp_system_try_tell(system_, ref, &post_letter_type, &letter, sizeof letter),
               TRP_OK);
    UNIT_EQUAL(trp_system_try_tell(system_, ref, &post_letter_type, &letter, sizeof letter),
               TRP_EAGAIN);
    number_tell(ref, 2);
    UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 2, 5000);
    UNIT_TRUE(seen[0] == 0 && seen[1] == 9);
    system_stop();
    directory_remove();
}

/* Tell bytes until `limit` messages were refused; return how many were stored. */
static uint32_t
bytes_fill(trp_ref ref, size_t bytes, uint32_t limit, trp_dead_reason reason)
{
    char *payload = calloc(1, bytes);
    uint32_t told = 0;

    UNIT_REQUIRE(payload != NULL);
    while (told < limit && dead_letters(reason) == 0) {
        trp_system_tell(system_, ref, &trp_bytes_type, payload, bytes);
        told++;
    }
    free(payload);
    return told - (dead_letters(reason) > 0 ? 1 : 0);
}

/* DUR-05: max_bytes counts what is stored; max_item_bytes is exact, one byte more is too large. */
static void
bytes_are_counted_too(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    size_t payload = 1000, bytes = 0;
    trp_ref ref;

    directory_make();
    options.max_item_bytes = 1200;
    options.max_bytes = 12000;
    options.refuse_when_full = 1;
    system_start(&options);
    ref = spawn_held();
    while (dead_letters(TRP_DEAD_TOO_LARGE) == 0 && payload < 1201) {
        bytes = payload++;
        UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 0);
        UNIT_REQUIRE(bytes_fill(ref, bytes, 1, TRP_DEAD_TOO_LARGE) <= 1);
        payload += 19; /* coarse: a record is the payload and some tens of bytes */
    }
    UNIT_EQUAL(dead_letters(TRP_DEAD_TOO_LARGE), 1);
    UNIT_TRUE(bytes > 1000 && bytes <= 1200);
    UNIT_TRUE(bytes_fill(ref, 1000, 20, TRP_DEAD_MAILBOX_FULL) < 12);
    UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 1);
    system_stop();
    directory_remove();
}

/* DUR-03: too old when its turn comes: a dead letter of its own reason. */
static void
what_is_too_old_is_not_given(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    uint64_t since;
    trp_ref ref;

    directory_make();
    options.max_age_ms = 20;
    system_start(&options);
    UNIT_REQUIRE(spawn_as("clerk", &late, "kept", &ref) == TRP_OK);
    number_tell(ref, 1);
    since = unit_now_ms();
    UNIT_WAIT(unit_now_ms() - since > 40, 5000);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(dead_letters(TRP_DEAD_EXPIRED) == 1, 5000);
    UNIT_EQUAL(atomic_load(&seen_count), 0);
    system_stop();
    directory_remove();
}

/* DUR-05: a full disk, by the size of the map: refused, not lost; and what is there can be taken
 * out, after which there is room again. */
static void
a_full_disk_refuses_and_recovers(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    uint32_t told;
    trp_ref ref;

    directory_make();
    options.map_bytes = TRP_DURABLE_MAP_BYTES_MIN;
    system_start(&options);
    ref = spawn_held();
    told = bytes_fill(ref, 10000, 1000, TRP_DEAD_MAILBOX_FULL);
    UNIT_TRUE(told > 20 && told < 110);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == told, 10000);
    number_tell(ref, 77);
    UNIT_WAIT(atomic_load(&seen_count) == told + 1, 5000);
    UNIT_EQUAL(dead_letters(TRP_DEAD_MAILBOX_FULL), 1);
    system_stop();
    directory_remove();
}

static uint64_t
bird_refused(void)
{
    return dead_letters(TRP_DEAD_STORAGE) + dead_letters(TRP_DEAD_MAILBOX_FULL);
}

/* DUR-05: a disk that is full before the map is. (The limit of a file's size stands for it: to
 * write fails in the same place.) LMDB cannot always tell it from an ill disk, so it may be the
 * breaker that refuses; what was let in is there, and when there is room it goes on. */
static void
a_disk_without_room_refuses_and_recovers(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    char payload[10000] = "";
    struct rlimit before, small;
    uint64_t kept, lost;
    trp_ref ref;

    directory_make();
    options.reset_timeout_ms = 50;
    system_start(&options);
    ref = spawn_held();
    UNIT_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 512 * 1024;
    UNIT_TRUE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    UNIT_REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int i = 0; i < 100; i++) {
        trp_system_tell(system_, ref, &trp_bytes_type, payload, sizeof payload);
    }
    UNIT_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    UNIT_TRUE(bird_refused() > 40 && bird_refused() < 95);
    kept = 100 - bird_refused();
    UNIT_WAIT((lost = bird_refused(), number_tell(ref, 77), bird_refused() == lost), 20000);
    kept++;
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == kept, 20000);
    UNIT_EQUAL(seen[kept - 1], 77);
    system_stop();
    directory_remove();
}

/* ---- files that are not as they should be ---------------------------------------------------- */

/* DUR-03: a file that is no store of ours is refused: garbage, a truncated file, no directory. */
static void
damaged_and_foreign_files_are_refused(void)
{
    char garbage[8192];
    char path[128];
    struct stat status;
    trp_ref ref;
    int fd;

    directory_make();
    memset(garbage, 0x5a, sizeof garbage);
    fd = open_in_directory("data.mdb", O_WRONLY | O_CREAT);
    UNIT_TRUE(write(fd, garbage, sizeof garbage) == (ssize_t)sizeof garbage);
    (void)close(fd);
    UNIT_EQUAL(register_here(), TRP_EDATA);
    UNIT_TRUE(strstr(last_line, directory) != NULL &&
              strstr(last_line, "/data.mdb: MDB_INVALID") != NULL);
    directory_remove();

    directory_make();
    system_start(NULL);
    ref = spawn_held();
    (void)bytes_fill(ref, 5000, 20, TRP_DEAD_STORAGE);
    stop_held(ref);
    (void)snprintf(path, sizeof path, "%s/data.mdb", directory);
    UNIT_REQUIRE(stat(path, &status) == 0 && status.st_size > 16384);
    UNIT_EQUAL(truncate(path, 12288), 0);
    UNIT_EQUAL(register_here(), TRP_EDATA);
    UNIT_TRUE(strstr(last_line, "/data.mdb: MDB_CORRUPTED") != NULL);
    directory_remove();
    (void)snprintf(directory, sizeof directory, "durable-none/below");
    UNIT_EQUAL(register_here(), TRP_EIO);
    UNIT_TRUE(strstr(last_line, "cannot make directory durable-none/below: No such file") != NULL);
}

/* A type that the next process does not know, here: whose name is another one there. */
static void
an_unknown_type_is_a_dead_letter(void)
{
    rare_bird bird = { 1, TRP_REF_NONE };
    char bytes[65536], path[128];
    trp_ref ref;
    ssize_t got;
    int fd;

    UNIT_REQUIRE(trp_protocol_register(&rare_protocol) == TRP_OK);
    directory_make();
    system_start(NULL);
    ref = spawn_held();
    trp_system_tell(system_, ref, &rare_bird_type, &bird, sizeof bird);
    number_tell(ref, 2);
    stop_held(ref);
    (void)snprintf(path, sizeof path, "%s/data.mdb", directory);
    fd = open(path, O_RDWR);
    for (off_t at = 0; (got = pread(fd, bytes, sizeof bytes, at)) > 0; at += got) {
        for (ssize_t i = 0; i + 9 <= got; i++) {
            if (memcmp(bytes + i, "rare.bird", 9) == 0) {
                UNIT_TRUE(pwrite(fd, "rare.worm", 9, at + i) == 9);
            }
        }
    }
    (void)close(fd);
    system_start(NULL);
    ref = spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 1, 5000);
    UNIT_EQUAL(seen[0], 2);
    UNIT_EQUAL(dead_letters(TRP_DEAD_NOT_ENCODABLE), 1);
    system_stop();
    directory_remove();
}

/* DUR-01, MBOX-07: the section of a deployment may name it, too, and so may a dispatcher. One of
 * the configuration cannot: its section is read before the program has registered the mailbox. */
static void
a_section_or_a_dispatcher_names_it_too(void)
{
    static const char *const texts[] = { "deployment \"/clerk\" { mailbox = kept }", "" };

    for (int i = 0; i < 2; i++) {
        trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
        trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
        trp_spawn_options spawn_options = TRP_SPAWN_OPTIONS_INIT;
        trp_dispatcher_options dispatcher = TRP_DISPATCHER_OPTIONS_INIT;
        trp_config_error error = { "" };
        trp_config *config = NULL;
        post_hold hold = { 0 };
        trp_ref ref = TRP_REF_NONE;

        directory_make();
        UNIT_REQUIRE(trp_config_parse_text("t.conf", texts[i], &config, &error) == TRP_OK);
        UNIT_EQUAL(trp_protocol_register(&post_protocol), TRP_OK);
        system_options.config = config;
        UNIT_REQUIRE(trp_system_new("post", &system_options, &system_) == TRP_OK);
        trp_config_unref(config);
        options.directory = directory;
        UNIT_EQUAL(trp_durable_register(system_, "kept", &options), TRP_OK);
        dispatcher.kind = TRP_DISPATCHER_POOL;
        dispatcher.mailbox = "kept";
        UNIT_EQUAL(trp_dispatcher_register(system_, "d", &dispatcher), TRP_OK);
        atomic_store(&holding, 0);
        atomic_store(&gate_open, 0);
        spawn_options.name = "clerk";
        spawn_options.dispatcher = i == 1 ? "d" : NULL;
        UNIT_REQUIRE(trp_system_spawn(system_, &clerk, &spawn_options, &ref) == TRP_OK);
        trp_system_tell(system_, ref, &post_hold_type, &hold, sizeof hold);
        UNIT_REQUIRE(UNIT_WAIT(atomic_load(&holding) == 1, 60000));
        number_tell(ref, 7);
        number_tell(ref, 8);
        stop_held(ref);
        system_start(NULL);
        (void)spawn_clerk();
        UNIT_WAIT(atomic_load(&seen_count) == 2, 60000);
        UNIT_TRUE(seen[0] == 7 && seen[1] == 8);
        system_stop();
        directory_remove();
    }
}

/* DUR-06, DUR-01: it needs an owner with a name; one directory may serve many mailboxes and
 * systems, but one actor at a time has a path's mail. */
static void
who_may_have_one(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *first, *second;
    trp_ref ref, none = TRP_REF_NONE;
    char name[TRP_NAME_BYTES_MAX + 1];

    directory_make();
    system_start(NULL);
    first = system_;
    options.directory = directory;
    UNIT_EQUAL(trp_durable_register(system_, "kept", &options), TRP_EEXIST);
    UNIT_EQUAL(trp_durable_register(system_, "too", &options), TRP_OK);
    UNIT_EQUAL(spawn_as(NULL, &clerk, "kept", &ref), TRP_EINVAL);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    UNIT_EQUAL(spawn_as(name, &clerk, "kept", &ref),
               sizeof name - 1 + strlen("post/user/") <= TRP_DURABLE_KEY_BYTES_MAX ? TRP_OK
                                                                                   : TRP_EINVAL);
    (void)spawn_clerk();
    UNIT_REQUIRE(trp_system_new("post", &system_options, &second) == TRP_OK);
    UNIT_EQUAL(trp_durable_register(second, "kept", &options), TRP_OK);
    system_ = second;
    UNIT_EQUAL(spawn_as("clerk", &clerk, "kept", &ref), TRP_EEXIST);
    ref = none;
    UNIT_EQUAL(spawn_as("clark", &clerk, "kept", &ref), TRP_OK);
    system_stop();
    system_ = first;
    options.size--;
    UNIT_EQUAL(trp_durable_register(system_, "third", &options), TRP_EINVAL);
    options.size++;
    options.map_bytes = TRP_DURABLE_MAP_BYTES_MIN - 1;
    UNIT_EQUAL(trp_durable_register(system_, "third", &options), TRP_EINVAL);
    system_stop();
    directory_remove();
}

UNIT_BEGIN("durable_limits")
UNIT(the_oldest_is_dropped_when_it_is_full)
UNIT(what_was_stored_when_its_owner_ended_is_not_a_dead_letter_too)
UNIT(or_the_newest_is_refused)
UNIT(bytes_are_counted_too)
UNIT(what_is_too_old_is_not_given)
UNIT(a_full_disk_refuses_and_recovers)
UNIT(a_disk_without_room_refuses_and_recovers)
UNIT(damaged_and_foreign_files_are_refused)
UNIT(an_unknown_type_is_a_dead_letter)
UNIT(a_section_or_a_dispatcher_names_it_too)
UNIT(who_may_have_one)
UNIT_END

#else

UNIT_SKIPPED("durable_limits", "built without LMDB (--without-lmdb)")
#endif
