/* exchange.c - one of two nodes that tell each other millions of messages and keep account of each.
 *
 *   exchange HOST PORT [HOW]                be told only; HOW is quick or patient
 *   exchange HOST PORT [HOW] PEER COUNT     and tell the one at PEER ("troupe.tcp://...") COUNT
 *                                           messages, 0: until SIGUSR1
 *
 * Why.    Remoting promises an equation: sent = received + dead letters + messages on the wire when
 *          a link broke, and delivery in order. Here both ends count, the sender checks the
 *          equation, and exchange.sh cuts the link meanwhile.
 * Shape.  teller --trp_try_tell()--> /user/sink of the peer, which follows the numbers, looks at
 *         every byte, and sums up; /user/watched-0 .. of the peer are watched, SIGUSR2 stops the
 *         next one there. Lines of the output are the report; SIGTERM ends.
 *         quick: links are found dead within about a second, instead of four; patient: in half a
 *         minute, for processes that may stand still.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/mailbox.h>
#include <troupe/remoting.h>

#include "remote/association/route.h"
#include "remote/remote.h"

enum {
    WORDS = 12, /* of a message, and 4 bytes: 100 bytes */
    MESSAGE_BYTES = 100,
    WIRE_BYTES = 104, /* in a frame with others like it */
    TURN_TELLS = 1000,
    WATCHED = 16,
    ASK_MS = 10000,
    SAMPLE_NS = 10000000,
    SAMPLES = 32,          /* how many are looked back at, when a link has broken */
    FLOWING_TELLS = 20000, /* more than the lane holds: they go through */
    LETTERS_QUIET = 20,    /* samples without another dead letter: there are no more */
    QUICK_BEAT_MS = 250,
    QUICK_PAUSE_MS = 500,
    QUICK_HANDSHAKE_MS = 2000,
    QUICK_BACKOFF_MS = 100,
    PATIENT_PAUSE_MS = 30000,
    /* Bytes that this process itself may hold when a link breaks: the write in progress, and two
     * buffers of a read. */
    HELD_BYTES = TRPI_ADMIT_BYTES_MAX + TRPI_BATCH_BYTES_MAX + 2 * 65536
};

typedef struct report {
    uint64_t received, checksum;
    uint64_t next; /* number that comes next when nothing is lost */
    uint64_t gaps, missing;
    uint64_t disorder; /* came after a later one, or twice */
    uint64_t damaged;
    uint64_t first_ns, last_ns;
} report;

static trp_system *node;
static atomic_bool enough, told_all;
static _Atomic uint64_t told, told_checksum, associated, disassociated;
static uint64_t goal;
static trp_ref sink_far;
static _Atomic uint32_t ends[WATCHED]; /* trp_terminated of each */
static _Atomic uint64_t letters[TRP_DEAD_REASON_COUNT];

static uint64_t
now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
check(trp_err err, const char *what)
{
    if (err != TRP_OK) {
        (void)fprintf(stderr, "exchange: %s: %s\n", what, trp_strerror(err));
        exit(1);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void
fill(uint8_t bytes[MESSAGE_BYTES], uint64_t number)
{
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t word = i == 0 ? number : number * 0x9e3779b97f4a7c15u + i;

        memcpy(bytes + i * 8, &word, 8);
    }
    memcpy(bytes + WORDS * 8, &number, 4);
}

/* Depends on the order. */
static uint64_t
checksum(uint64_t sum, uint64_t number)
{
    return (sum ^ number) * 0x100000001b3u;
}

static trp_err
sink_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    report *r = state;
    uint8_t expected[MESSAGE_BYTES];
    const uint8_t *bytes = trp_msg_payload(msg);
    uint64_t number = 0;

    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply(ctx, &trp_bytes_type, r, sizeof *r);
        return TRP_OK;
    }
    if (trp_msg_bytes(msg) != MESSAGE_BYTES) {
        r->damaged++;
        return TRP_OK;
    }
    memcpy(&number, bytes, 8);
    fill(expected, number);
    r->damaged += memcmp(bytes, expected, sizeof expected) != 0;
    r->disorder += number < r->next;
    if (number > r->next) {
        r->gaps++;
        r->missing += number - r->next;
    }
    r->next = number + 1;
    r->received++;
    r->checksum = checksum(r->checksum, number);
    if (r->received == 1) {
        r->first_ns = now_ns();
    }
    if ((r->received & 63u) == 0) {
        r->last_ns = now_ns();
    }
    return TRP_OK;
}

/* At most TURN_TELLS a turn, then a message to itself; refused, it waits for trp_mailbox_ready. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t *number = state;
    uint64_t sum = atomic_load(&told_checksum);
    bool refused = false;

    (void)msg;
    for (int i = 0; i < TURN_TELLS && *number < goal && !atomic_load(&enough) && !refused; i++) {
        uint8_t bytes[MESSAGE_BYTES];

        fill(bytes, *number);
        refused = trp_try_tell(ctx, sink_far, &trp_bytes_type, bytes, sizeof bytes) != TRP_OK;
        if (!refused) {
            sum = checksum(sum, *number);
            ++*number;
        }
    }
    atomic_store(&told_checksum, sum);
    atomic_store(&told, *number);
    if (*number == goal || atomic_load(&enough)) {
        atomic_store(&told_all, true);
    } else if (!refused) {
        trp_tell(ctx, trp_self(ctx), &trp_string_type, "", 0);
    }
    return TRP_OK;
}

static trp_err
watched_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static trp_ref watched_far[WATCHED];

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *end = trp_msg_payload(msg);

        for (int i = 0; i < WATCHED; i++) {
            if (memcmp(&end->ref, &watched_far[i], sizeof end->ref) == 0) {
                atomic_fetch_add(&ends[i], 1);
            }
        }
        return TRP_OK;
    }
    for (int i = 0; i < WATCHED; i++) {
        check(trp_watch(ctx, watched_far[i]), "trp_watch");
    }
    return TRP_OK;
}

/* Changes of the link, and what of ours was found undeliverable here. */
static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_dead_letter *letter = trp_msg_payload(msg);

        if (letter->bytes == MESSAGE_BYTES) { /* nothing else has so many */
            atomic_fetch_add(&letters[letter->reason], 1);
        }
    } else {
        atomic_fetch_add(trp_msg_is(msg, &trp_associated_type) ? &associated : &disassociated, 1);
    }
    return TRP_OK;
}

static const trp_behaviour sink = TRP_BEHAVIOUR_INIT("sink", report, sink_receive);
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", uint64_t, teller_receive);
static const trp_behaviour watched = TRP_BEHAVIOUR_INIT("watched", char, watched_receive);
static const trp_behaviour watcher = TRP_BEHAVIOUR_INIT("watcher", char, watcher_receive);
static const trp_behaviour listener = TRP_BEHAVIOUR_INIT("listener", char, listener_receive);

/* ---- the node -------------------------------------------------------------------------------- */

static trp_ref
spawn(const trp_behaviour *behaviour, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    options.name = name;
    check(trp_system_spawn(node, behaviour, &options, &ref), name);
    return ref;
}

static trp_ref
resolve(const char *peer, const char *path)
{
    char text[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;
    trp_err err = TRP_ETIMEDOUT;

    (void)snprintf(text, sizeof text, "%s%s", peer, path);
    for (int i = 0; i < 6 && err != TRP_OK; i++) { /* the peer may still be starting */
        err = trp_system_resolve(node, text, ASK_MS, &ref);
        (void)nanosleep(&(struct timespec){ 0, SAMPLE_NS }, NULL);
    }
    check(err, text);
    return ref;
}

static trpi_remote *
start(const char *host, const char *port, const char *how, trp_ref watched_here[WATCHED])
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_remote_options remoting = { .driver = getenv("TROUPE_REMOTE_DRIVER"),
                                     .host = host,
                                     .bind_port = -1 };
    trpi_remote *remote;
    char text[TRPI_ADDRESS_TEXT_BYTES];

    options.log_level = TRP_LOG_WARNING;
    check(trp_system_new("demo", &options, &node), "trp_system_new");
    trp_ref listening = spawn(&listener, "listener");
    check(trp_system_subscribe(node, listening, &trp_associated_type), "subscribe");
    check(trp_system_subscribe(node, listening, &trp_disassociated_type), "subscribe");
    check(trp_system_subscribe(node, listening, &trp_dead_letter_type), "subscribe");
    (void)spawn(&sink, "sink");
    for (int i = 0; i < WATCHED; i++) {
        (void)snprintf(text, sizeof text, "watched-%d", i);
        watched_here[i] = spawn(&watched, text);
    }
    remoting.port = (uint16_t)strtoul(port, NULL, 10);
    if (strcmp(how, "patient") == 0) {
        remoting.link_pause_ms = PATIENT_PAUSE_MS;
    } else if (strcmp(how, "quick") == 0) {
        remoting.link_heartbeat_ms = QUICK_BEAT_MS;
        remoting.watch_heartbeat_ms = QUICK_BEAT_MS;
        remoting.link_pause_ms = QUICK_PAUSE_MS;
        remoting.handshake_timeout_ms = QUICK_HANDSHAKE_MS;
        remoting.backoff_max_ms = QUICK_BACKOFF_MS;
    }
    check(trpi_remote_start(node, &remoting, &remote), "trpi_remote_start");
    (void)printf("address %s\n",
                 trpi_address_format(trpi_remote_address(remote), text, sizeof text));
    (void)fflush(stdout);
    return remote;
}

/* Bytes that the kernel holds of this network's connections, to be sent, acknowledged or read. */
static uint64_t
wire_bytes(void)
{
    char line[512];
    uint64_t sum = 0;
    FILE *file = fopen("/proc/self/net/tcp", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned state;
        unsigned long out, in;

        if (sscanf(line, "%*s %*s %*s %x %lx:%lx", &state, &out, &in) == 3 && state != 10) {
            sum += out + in;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return sum;
}

/* ---- the report ------------------------------------------------------------------------------ */

static report
ask(void)
{
    report r = { 0 };
    trp_msg *reply = NULL;
    trp_err err = TRP_ETIMEDOUT;

    for (int i = 0; i < 6 && err != TRP_OK; i++) {
        err = trp_system_ask(node, sink_far, &trp_string_type, "?", 1, ASK_MS, &reply);
    }
    check(err, "the peer does not answer");
    memcpy(&r, trp_msg_payload(reply), sizeof r);
    trp_msg_free(reply);
    return r;
}

/* Return how many watchers were told of an end; *ret_wrong: of those, more than once. */
static uint32_t
ends_told(uint32_t *ret_wrong)
{
    uint32_t sum = 0;

    *ret_wrong = 0;
    for (int i = 0; i < WATCHED; i++) {
        uint32_t count = atomic_load(&ends[i]);

        sum += count > 0;
        *ret_wrong += count > 1;
    }
    return sum;
}

static uint64_t
letters_sum(void)
{
    uint64_t sum = 0;

    for (int reason = 0; reason < TRP_DEAD_REASON_COUNT; reason++) {
        sum += atomic_load(&letters[reason]);
    }
    return sum;
}

/* When no more of them come. */
static uint64_t
letters_all(void)
{
    uint64_t before = 0, sum = letters_sum();

    for (int quiet = 0; quiet < LETTERS_QUIET; quiet = sum == before ? quiet + 1 : 0) {
        before = sum;
        (void)nanosleep(&(struct timespec){ 0, SAMPLE_NS }, NULL);
        sum = letters_sum();
    }
    for (int reason = 0; reason < TRP_DEAD_REASON_COUNT; reason++) {
        if (atomic_load(&letters[reason]) > 0) {
            (void)printf("dead letters %" PRIu64 " %s\n", atomic_load(&letters[reason]),
                         trpi_dead_reason_text((trp_dead_reason)reason));
        }
    }
    return sum;
}

/* wire: how many bytes may have been lost with links. */
static void
balance(uint64_t start_ns, uint64_t wire)
{
    report r = ask();
    uint64_t dead = letters_all();
    uint64_t sent = atomic_load(&told), lost = sent - r.received - dead;
    uint32_t wrong, told_of = ends_told(&wrong);
    bool holds = r.disorder == 0 && r.damaged == 0 && wrong == 0 && r.received + dead <= sent &&
                 lost * WIRE_BYTES <= wire;

    (void)printf("sent %" PRIu64 " checksum %016" PRIx64 "\n", sent, atomic_load(&told_checksum));
    (void)printf("received %" PRIu64 " checksum %016" PRIx64 "\n", r.received, r.checksum);
    (void)printf("disorder %" PRIu64 " damaged %" PRIu64 " gaps %" PRIu64 " missing %" PRIu64 "\n",
                 r.disorder, r.damaged, r.gaps, r.missing + sent - r.next);
    (void)printf("lost on the wire %" PRIu64 " messages, %" PRIu64 " bytes of %" PRIu64 "\n", lost,
                 lost * WIRE_BYTES, wire);
    (void)printf("rate %.0f messages/s\n",
                 (double)r.received * 1e9 / (double)(r.last_ns - start_ns + 1));
    (void)printf("ends told %u twice %u\n", told_of, wrong);
    (void)printf("law %s\n", holds ? "holds" : "broken");
    (void)fflush(stdout);
}

/* Tell of changes of the link; of its ends with the most that was on the wire of late. Returns the
 * sum of that. */
static uint64_t
links_look(void)
{
    static uint64_t up, down, flowing, flowing_at, samples[SAMPLES], at;
    uint64_t sum = 0, most = 0;

    for (int i = 0; i < SAMPLES; i++) {
        most = samples[i] > most ? samples[i] : most;
    }
    for (; down < atomic_load(&disassociated); down++) {
        (void)printf("disassociated %" PRIu64 ", on the wire %" PRIu64 " bytes, in buffers at most "
                     "%d\n",
                     down + 1, most, HELD_BYTES);
        sum += most + HELD_BYTES;
    }
    for (; up < atomic_load(&associated); up++) {
        (void)printf("associated %" PRIu64 "\n", up + 1);
        flowing_at = atomic_load(&told) + FLOWING_TELLS;
    }
    if (flowing < up && atomic_load(&told) >= flowing_at) {
        flowing = up;
        (void)printf("flowing %" PRIu64 "\n", up);
    }
    (void)fflush(stdout);
    samples[at++ % SAMPLES] = wire_bytes();
    return sum;
}

static void
tell(const char *peer, const char *count)
{
    char path[32];

    goal = strtoull(count, NULL, 10);
    goal = goal == 0 ? UINT64_MAX : goal;
    sink_far = resolve(peer, "/user/sink");
    for (int i = 0; i < WATCHED; i++) {
        (void)snprintf(path, sizeof path, "/user/watched-%d", i);
        watched_far[i] = resolve(peer, path);
    }
    trp_system_tell(node, spawn(&watcher, "watcher"), &trp_string_type, "", 0);
    trp_system_tell(node, spawn(&teller, "teller"), &trp_string_type, "", 0);
}

int
main(int argc, char **argv)
{
    static const int wanted[] = { SIGTERM, SIGUSR1, SIGUSR2 };
    trp_ref watched_here[WATCHED];
    uint64_t wire = 0;
    bool balanced = argc < 5;
    int signal_number = 0, stopped = 0;
    sigset_t set;

    if (argc < 3) {
        (void)fprintf(stderr, "usage: exchange HOST PORT [quick|patient] [PEER COUNT]\n");
        return 64;
    }
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        (void)sigaddset(&set, wanted[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* before any thread: none of them takes these */
    trpi_remote *remote = start(argv[1], argv[2], argc > 3 ? argv[3] : "", watched_here);
    uint64_t start_ns = now_ns();
    if (!balanced) {
        tell(argv[argc - 2], argv[argc - 1]);
        start_ns = now_ns();
    }
    while (signal_number != SIGTERM) {
        signal_number = sigtimedwait(&set, NULL, &(struct timespec){ 0, SAMPLE_NS });
        wire += links_look();
        if (signal_number == SIGUSR1) {
            atomic_store(&enough, true);
        } else if (signal_number == SIGUSR2 && stopped < WATCHED) {
            trp_system_stop_actor(node, watched_here[stopped++]);
        }
        if (!balanced && atomic_load(&told_all)) {
            balanced = true;
            balance(start_ns, wire);
        }
    }
    check(trp_system_stop(node, ASK_MS), "trp_system_stop");
    trpi_remote_stop(remote);
    trp_system_free(node);
    return 0;
}
