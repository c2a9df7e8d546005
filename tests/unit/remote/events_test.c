/* events_test.c - changes of links as events and as log lines, and messages in the log. */
#include <troupe/remoting.h>

#include "tests/unit/remote/pair.h"

static pair p;

/* ---- a subscriber of side 0 ------------------------------------------------------------------ */

enum { SEEN_MAX = 64 };
typedef struct seen_event {
    const trp_type *type;
    trp_remoting_event event;
} seen_event;
static seen_event seen[SEEN_MAX];
static _Atomic uint32_t seen_count;

static trp_err
subscriber_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    uint32_t at = atomic_load(&seen_count);
    if (at < SEEN_MAX) {
        seen[at].type = trp_msg_type(msg);
        memcpy(&seen[at].event, trp_msg_payload(msg), sizeof seen[at].event);
        atomic_store(&seen_count, at + 1);
    }
    return TRP_OK;
}
static const trp_behaviour subscriber = TRP_BEHAVIOUR_INIT("subscriber", char, subscriber_receive);

static void
events_subscribe(trp_system *system, const trp_type *type)
{
    atomic_store(&seen_count, 0);
    trp_ref who = pair_spawn(system, &subscriber, "subscriber", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_subscribe(system, who, type), TRP_OK);
}

static const seen_event *
event_of(const trp_type *type)
{
    for (uint32_t i = 0; i < atomic_load(&seen_count); i++) {
        if (seen[i].type == type) {
            return &seen[i];
        }
    }
    return NULL;
}

static trp_err
left_ask(const char *text, size_t bytes, uint32_t timeout_ms)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_msg *reply = NULL;
    trp_err err =
        trp_system_ask_path(p.system[0], pair_path(&p, 1, "/user/echo", path, sizeof path),
                            &trp_string_type, text, bytes, timeout_ms, &reply);
    trp_msg_free(reply);
    return err;
}

static void
ask_echo(void)
{
    UNIT_EQUAL(left_ask("hello", 5, 60000), TRP_OK);
}

/* ES-06 REMOTE-48 REMOTE-49: events in order, with peer, incarnation and reason */
static void
the_life_of_an_association_is_told_to_subscribers(void)
{
    trpi_remote_options options = { .backoff_min_ms = 2000, .backoff_max_ms = 4000 };
    pair_start(&p, true, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    events_subscribe(p.system[0], &trp_association_event_type);
    ask_echo();
    UNIT_WAIT(event_of(&trp_associated_type) != NULL, 60000);
    const trp_remoting_event *up = &seen[0].event;
    UNIT_TRUE(seen[0].type == &trp_associated_type);
    UNIT_TEXT(up->local, p.address[0]);
    UNIT_TEXT(up->remote, p.address[1]);
    UNIT_TRUE(up->remote_uid == pair_uid(&p, 1));
    UNIT_FALSE(up->inbound);
    trpi_mem_network_fault_set(p.network, pair_cut_all, NULL);
    trpi_mem_network_cut(p.network, NULL, NULL);
    UNIT_WAIT(atomic_load(&seen_count) >= 3, 60000);
    UNIT_TRUE(seen[1].type == &trp_disassociated_type);
    UNIT_TRUE(seen[1].event.remote_uid == up->remote_uid);
    UNIT_TRUE(seen[2].type == &trp_association_error_type);
    UNIT_TEXT(seen[2].event.reason, "connection cut");
    UNIT_TRUE(seen[2].event.next_ms >= 1000 && seen[2].event.next_ms <= 2000);
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    pair_end(&p);
}

/* Take the shortest silence from the log, where it stays; the state changes again. Either side may
 * notice first; its close ends the connection for the other side, before that one has waited as
 * long. */
static bool
silence_is_logged(unsigned *ret_ms)
{
    bool found = false;
    pthread_mutex_lock(&pair_lines.lock);
    pair_lines.text[pair_lines.bytes] = '\0';
    for (const char *at = pair_lines.text; (at = strstr(at, "silent for ")) != NULL; at++) {
        unsigned ms = UINT32_MAX;
        found = sscanf(at, "silent for %u ms", &ms) == 1 || found;
        *ret_ms = ms < *ret_ms ? ms : *ret_ms;
    }
    pthread_mutex_unlock(&pair_lines.lock);
    return found;
}

/* CONF-18 FD-23: with the settings of the reference no link is lost before 3 s of silence. A
 * machine that stands still makes silence longer, never shorter: one of some tries is short. */
static void
a_silent_link_is_found_as_its_detector_is_set(void)
{
    trpi_remote_options options = { .link_heartbeat_ms = 50, .link_pause_ms = 200 };
    unsigned silent_ms = UINT32_MAX;
    pair_start(&p, true, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    for (int i = 0; i < 5 && silent_ms >= 3000; i++) {
        /* its messages are lost with a link that was silent for so long */
        UNIT_WAIT(left_ask("hello", 5, 2000) == TRP_OK, 60000);
        trpi_mem_network_fault_set(p.network, pair_drop_all, NULL);
        UNIT_WAIT(silence_is_logged(&silent_ms), 60000);
        pair_log_clear();
        trpi_mem_network_fault_set(p.network, NULL, NULL);
    }
    UNIT_TRUE(silent_ms < 3000);
    pair_end(&p);
}

/* REMOTE-49: the other end of the same association */
static void
the_side_that_was_called_says_inbound(void)
{
    pair_start(&p, true, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    events_subscribe(p.system[1], &trp_remoting_event_type);
    ask_echo();
    UNIT_WAIT(event_of(&trp_associated_type) != NULL, 60000);
    UNIT_TRUE(seen[0].event.inbound);
    UNIT_TEXT(seen[0].event.remote, p.address[0]);
    /* A goodbye ends it without an error. */
    pair_end_side(&p, 0);
    UNIT_WAIT(event_of(&trp_disassociated_type) != NULL, 60000);
    UNIT_TRUE(event_of(&trp_association_error_type) == NULL);
    UNIT_TRUE(event_of(&trp_quarantined_type) == NULL);
    pair_end(&p);
}

/* REMOTE-36 REMOTE-48 */
static void
a_quarantine_is_told_with_the_incarnation(void)
{
    pair_start(&p, true, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    uint64_t uid = pair_uid(&p, 1);
    events_subscribe(p.system[0], &trp_remoting_event_type);
    trpi_remote_quarantine(p.remote[0], trpi_system_self(p.system[1]), "for a test");
    UNIT_WAIT(event_of(&trp_quarantined_type) != NULL, 60000);
    const seen_event *q = event_of(&trp_quarantined_type);
    UNIT_TRUE(q != NULL && q->event.remote_uid == uid);
    UNIT_TRUE(q != NULL && strcmp(q->event.reason, "for a test") == 0);
    UNIT_TRUE(event_of(&trp_disassociated_type) != NULL);
    pair_end(&p);
}

/* ES-06: the beginning and the end of remoting, and a beginning that fails */
static void
listening_shutdown_and_failure_to_start_are_told(void)
{
    trp_system *system = pair_system("one");
    trp_system *second = pair_system("two");
    trpi_remote *remote = NULL, *refused = NULL;
    trpi_remote_options options = { .bind_port = -1, .driver = pair_drives() };
    char address[TRPI_ADDRESS_TEXT_BYTES];
    events_subscribe(system, &trp_remoting_event_type);
    UNIT_REQUIRE(trpi_remote_start(system, &options, &remote) == TRP_OK);
    UNIT_WAIT(event_of(&trp_remoting_listen_type) != NULL, 60000);
    trpi_address_format(trpi_remote_address(remote), address, sizeof address);
    UNIT_TEXT(seen[0].event.local, address);
    UNIT_TEXT(seen[0].event.remote, "");
    events_subscribe(second, &trp_remoting_event_type);
    options.port = trpi_remote_address(remote)->port;
    UNIT_EQUAL(trpi_remote_start(second, &options, &refused), TRP_EADDRINUSE);
    UNIT_WAIT(event_of(&trp_remoting_error_type) != NULL, 60000);
    UNIT_TEXT(seen[0].event.reason, trp_strerror(TRP_EADDRINUSE));
    UNIT_EQUAL(trp_system_stop(second, 60000), TRP_OK);
    trp_system_free(second);
    atomic_store(&seen_count, 0);
    trpi_remote_stop(remote);
    UNIT_WAIT(event_of(&trp_remoting_shutdown_type) != NULL, 60000);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* ---- logs ------------------------------------------------------------------------------------ */

/* REMOTE-50 CONF-17: off; the events come all the same */
static void
the_log_of_changes_can_be_switched_off(void)
{
    trpi_remote_options options = { .lifecycle_log = TRPI_LIFECYCLE_OFF };
    pair_start(&p, true, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    events_subscribe(p.system[0], &trp_association_event_type);
    ask_echo();
    UNIT_WAIT(event_of(&trp_associated_type) != NULL, 60000);
    pair_end(&p); /* the last lines are there then */
    UNIT_FALSE(pair_logged("association active"));
    UNIT_FALSE(pair_logged("remoting listens"));
    UNIT_FALSE(pair_logged("remoting stopped"));
}

static _Atomic uint32_t lines_at_error;
static void
count_level(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (strstr(line->text, "association active") != NULL && line->level == TRP_LOG_ERROR) {
        atomic_fetch_add(&lines_at_error, 1);
    }
}

/* REMOTE-50, CONF-17: or given a level of their own */
static void
the_log_of_changes_can_have_one_level(void)
{
    trp_system_options quiet = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;
    trpi_remote *remote = NULL;
    trpi_remote_options options = { .bind_port = -1,
                                    .driver = pair_drives(),
                                    .lifecycle_log = TRP_LOG_ERROR };
    char path[TRP_PATH_BYTES_MAX];
    trp_msg *reply = NULL;
    pair_start(&p, false, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    atomic_store(&lines_at_error, 0);
    quiet.log = count_level;
    quiet.log_level = TRP_LOG_ERROR;
    UNIT_REQUIRE(trp_system_new("quiet", &quiet, &system) == TRP_OK);
    UNIT_REQUIRE(trpi_remote_start(system, &options, &remote) == TRP_OK);
    UNIT_EQUAL(trp_system_ask_path(system, pair_path(&p, 1, "/user/echo", path, sizeof path),
                                   &trp_string_type, "x", 1, 60000, &reply),
               TRP_OK);
    trp_msg_free(reply);
    UNIT_WAIT(atomic_load(&lines_at_error) == 1, 60000);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(system);
    pair_end(&p);
}

/* LOG-15 REMOTE-51: by name, size and receiver; the content never */
static void
messages_sent_and_received_can_be_logged(void)
{
    trpi_remote_options options = { .log_sent = true, .log_received = true };
    pair_start(&p, true, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    pair_end(&p);
    UNIT_WAIT(pair_logged("message sent peer=troupe.mem://right@right"), 60000);
    UNIT_WAIT(pair_logged("type=troupe.string bytes=5"), 60000);
    UNIT_WAIT(pair_logged("message received peer=troupe.mem://left@left"), 60000);
    UNIT_WAIT(pair_logged("message sent peer=troupe.mem://left@left"), 60000); /* the reply */
    UNIT_FALSE(pair_logged("hello"));
    pair_start(&p, true, NULL); /* not configured: no line */
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    pair_end(&p);
    UNIT_WAIT(pair_logged("association active"), 60000);
    UNIT_FALSE(pair_logged("message sent"));
    UNIT_FALSE(pair_logged("message received"));
}

static void
send_bytes(size_t bytes)
{
    static char text[4096];
    memset(text, 'x', sizeof text);
    UNIT_EQUAL(left_ask(text, bytes, 60000), TRP_OK);
}

/* LOG-15 REMOTE-52 CONF-17: at the limit not, one past it yes, then by a tenth */
static void
types_that_grow_beyond_a_size_are_logged(void)
{
    trpi_remote_options options = { .log_size_exceeding = 1000 };
    pair_start(&p, true, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    send_bytes(1000);
    send_bytes(1001);
    send_bytes(1101); /* not a tenth more */
    send_bytes(1102);
    send_bytes(1050);
    pair_end(&p);
    UNIT_FALSE(pair_logged("type=troupe.string bytes=1000 "));
    UNIT_WAIT(pair_logged("type=troupe.string bytes=1001 limit=1000"), 60000);
    UNIT_FALSE(pair_logged("bytes=1101"));
    UNIT_WAIT(pair_logged("bytes=1102"), 60000);
    UNIT_FALSE(pair_logged("bytes=1050"));
}

/* ---- quarantined by the other one ------------------------------------------------------------ */

static const char *
echo_path(char path[TRP_PATH_BYTES_MAX])
{
    return pair_path(&p, 1, "/user/echo", path, TRP_PATH_BYTES_MAX);
}

/* REMOTE-36: A process stood still for so long that its peer has quarantined it: it is told so,
 * messages to that peer fail at once, and a later incarnation of the peer is accepted. */
static void
who_is_quarantined_is_told_so_at_once(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;
    trp_msg *reply = NULL;
    trp_system_stats stats = { .size = sizeof stats };
    pair_start(&p, false, NULL);
    uint16_t port = trpi_remote_address(p.remote[1])->port;
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_resolve(p.system[0], echo_path(path), 60000, &ref), TRP_OK);
    events_subscribe(p.system[0], &trp_self_quarantined_type);
    trpi_node_id id = { *trpi_remote_address(p.remote[0]), pair_uid(&p, 0) };
    trpi_remote_quarantine(p.remote[1], &id, "watched node does not answer");
    /* messages before it notices may be lost with the link; it notices when it dials again */
    UNIT_WAIT(trp_system_resolve(p.system[0], echo_path(path), 20000, &ref) == TRP_EQUARANTINED,
              60000);
    uint64_t began_ms = unit_now_ms();
    for (int i = 0; i < 10; i++) {
        UNIT_EQUAL(trp_system_resolve(p.system[0], echo_path(path), 60000, &ref), TRP_EQUARANTINED);
        UNIT_EQUAL(trp_system_ask(p.system[0], ref, &trp_string_type, "x", 1, 60000, &reply),
                   TRP_EQUARANTINED);
    }
    UNIT_TRUE(unit_now_ms() - began_ms < 60000);
    UNIT_WAIT(event_of(&trp_self_quarantined_type) != NULL, 60000);
    UNIT_EQUAL(event_of(&trp_self_quarantined_type)->event.remote_uid, pair_uid(&p, 1));
    UNIT_TEXT(event_of(&trp_self_quarantined_type)->event.remote, p.address[1]);
    UNIT_WAIT(pair_log_count("this node is quarantined") > 0, 60000);
    trp_system_stats_get(p.system[0], &stats);
    UNIT_TRUE(stats.dead_letters[TRP_DEAD_QUARANTINED] > 0);
    pair_end_side(&p, 1);
    p.system[1] = pair_system("right");
    pair_remote(&p, 1, NULL, port);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    UNIT_WAIT(trp_system_resolve(p.system[0], echo_path(path), 20000, &ref) == TRP_OK, 60000);
    UNIT_EQUAL(trp_system_ask(p.system[0], ref, &trp_string_type, "x", 1, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
    UNIT_EQUAL(pair_log_count("this node is quarantined"), 1);
    pair_end(&p);
}

/* A peer that left and is called to no avail: nothing has changed, so no line says so. */
static void
who_left_and_is_called_again_is_not_logged_again(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_msg *reply = NULL;
    pair_start(&p, true, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    events_subscribe(p.system[1], &trp_association_error_type);
    pair_path(&p, 0, "/user/echo", path, sizeof path);
    UNIT_EQUAL(trp_system_stop(p.system[0], 60000), TRP_OK);
    trpi_remote_stop(p.remote[0]);
    p.remote[0] = NULL;
    UNIT_WAIT(pair_logged("association ended peer="), 60000);
    while (event_of(&trp_association_error_type) == NULL && unit_failures() == 0) {
        UNIT_TRUE(trp_system_ask_path(p.system[1], path, &trp_string_type, "?", 1, 100, &reply) !=
                  TRP_OK);
    }
    UNIT_FALSE(pair_logged("\nremote: association quarantined"));
    UNIT_WAIT(pair_logged("\ndebug remote: association quarantined"), 60000);
    pair_end(&p);
}

UNIT_BEGIN("events")
UNIT(the_life_of_an_association_is_told_to_subscribers)
UNIT(a_silent_link_is_found_as_its_detector_is_set)
UNIT(the_side_that_was_called_says_inbound)
UNIT(a_quarantine_is_told_with_the_incarnation)
UNIT(listening_shutdown_and_failure_to_start_are_told)
UNIT(the_log_of_changes_can_be_switched_off)
UNIT(the_log_of_changes_can_have_one_level)
UNIT(messages_sent_and_received_can_be_logged)
UNIT(types_that_grow_beyond_a_size_are_logged)
UNIT(who_is_quarantined_is_told_so_at_once)
UNIT(who_left_and_is_called_again_is_not_logged_again)
UNIT_END
