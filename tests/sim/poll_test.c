/* poll_test.c - a conversation of three systems with the driver on the poller, over simulated
 * sockets: every seed is an order of events and a mix of faults.
 *
 * Each system tells both others numbered messages of up to LARGE_BYTES, as fast as they go. Laws:
 *   conversation-C1  What one system tells another arrives in order, whole, each at most once.
 *   conversation-C2  What did not arrive has a dead letter at its sender, or a link of the two
 *       broke: both of them were told so by an event.
 *   conversation-C3  Without faults that break links all arrives, and no link is given up.
 *   conversation-C4  When all is calm again, all that is told arrives.
 *   conversation-C5  Systems that use a link that carries nothing any more are told of it by its
 *       heartbeats (tick-T1).
 *
 *     TROUPE_SIM_SEEDS=10000 [TROUPE_SIM_FIRST=SEED] tests/sim/poll_test
 */
#include <inttypes.h>
#include <stdlib.h>

#include <troupe/mailbox.h>
#include <troupe/remoting.h>

#include "base/hash.h"
#include "base/world_virtual.h"
#include "remote/poll/link_poll.h"
#include "remote/remote.h"
#include "sim/sim_net.h"
#include "tests/unit/unit.h"

enum {
    SYSTEMS = 3,
    NOWHERE = SYSTEMS, /* the test's host */
    SEEDS = 20,
    TELLS_MAX = 30, /* that a teller begins at once */
    CALM_TELLS = 10,
    BURST = 20, /* in one turn */
    SMALL_BYTES = 400,
    LARGE_BYTES = 80000, /* more than one read */
    ROUND_MS = 20,
    NOISE_MS = 2000,
    CALM_MS = 60000,
    QUIET_MS = 10000,
    SILENCE_MS = 15000,
    NOTICE_MS = 100,
    PORT = 2552
};

/* The messages of one system to another, and its account of them. */
struct talk {
    trp_ref teller, sink; /* at the sender, at the receiver */
    trp_ref sink_far;     /* as the sender calls it */
    uint32_t goal, told;
    uint32_t received, last;
    uint32_t letters; /* dead ones, at the sender */
    bool wrong;
};

static struct {
    uint64_t seed, random;
    trpi_virtual *virt;
    trpi_sim_net *sockets;
    trp_system *systems[SYSTEMS];
    trpi_remote *remotes[SYSTEMS];
    struct talk talks[SYSTEMS][SYSTEMS];
    uint32_t ended[SYSTEMS][SYSTEMS]; /* links, as the first one was told */
    bool breaks;                      /* links, by faults */
    bool muted[SYSTEMS][SYSTEMS];
    bool undialled[SYSTEMS]; /* nobody answers its connects */
    uint32_t delay_ms;
} run;
static uint64_t all_missing, all_letters, all_ended;

static uint32_t
draw(uint32_t below)
{
    return (uint32_t)((run.random = trpi_hash_u64(run.random + 1)) % below);
}

/* ---- messages -------------------------------------------------------------------------------- */

static uint32_t
bytes_of(uint32_t number)
{
    uint64_t drawn = trpi_hash_u64(run.seed << 32 | number);

    return 4 + (uint32_t)(drawn >> 32) % (drawn % 80 == 0 ? LARGE_BYTES : SMALL_BYTES);
}

static uint8_t
byte_at(uint32_t number, uint32_t at)
{
    return (uint8_t)(number * 31u + at * 7u + (at >> 8));
}

static void
message_make(uint8_t *bytes, uint32_t number, uint32_t count)
{
    memcpy(bytes, &number, 4);
    for (uint32_t i = 4; i < count; i++) {
        bytes[i] = byte_at(number, i);
    }
}

static bool
message_is_whole(const uint8_t *bytes, uint32_t number, size_t count)
{
    for (uint32_t i = 4; i < count; i++) {
        if (bytes[i] != byte_at(number, i)) {
            return false;
        }
    }
    return count == bytes_of(number);
}

static struct talk *
talk_of(const void *state)
{
    struct talk *talk;

    memcpy(&talk, state, sizeof(struct talk *));
    return talk;
}

/* conversation-C1 */
static trp_err
sink_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct talk *talk = talk_of(state);
    uint32_t number;

    (void)ctx;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        memcpy(&number, trp_msg_payload(msg), 4);
        talk->wrong = talk->wrong || number <= talk->last || number > talk->told ||
                      !message_is_whole(trp_msg_payload(msg), number, trp_msg_bytes(msg));
        talk->last = number;
        talk->received++;
    }
    return TRP_OK;
}

/* A burst, then a message to itself; refused, it waits for trp_mailbox_ready. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static uint8_t bytes[LARGE_BYTES + 4];
    struct talk *talk = talk_of(state);
    bool refused = false;

    (void)msg;
    for (uint32_t i = 0; i < BURST && talk->told < talk->goal && !refused; i++) {
        uint32_t number = talk->told + 1, count = bytes_of(number);

        message_make(bytes, number, count);
        refused = trp_try_tell(ctx, talk->sink_far, &trp_bytes_type, bytes, count) != TRP_OK;
        talk->told += !refused;
    }
    if (talk->told < talk->goal && !refused) {
        trp_tell(ctx, trp_self(ctx), &trp_string_type, "", 0);
    }
    return TRP_OK;
}

static uint32_t
peer_of(const char *address)
{
    char host[TRPI_SIM_HOST_BYTES];

    for (uint32_t i = 0; i < SYSTEMS; i++) {
        trpi_sim_net_address(i, host, sizeof host);
        if (strstr(address, host) != NULL) {
            return i;
        }
    }
    return 0;
}

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t self;

    (void)ctx;
    memcpy(&self, state, sizeof self);
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_dead_letter *letter = trp_msg_payload(msg);

        for (uint32_t i = 0; i < SYSTEMS; i++) {
            struct talk *talk = &run.talks[self][i];

            talk->letters += i != self && trp_ref_equal(letter->recipient, talk->sink_far);
        }
    } else if (trp_msg_is(msg, &trp_disassociated_type) ||
               trp_msg_is(msg, &trp_association_error_type)) {
        const trp_remoting_event *event = trp_msg_payload(msg);

        run.ended[self][peer_of(event->remote)]++;
    }
    return TRP_OK;
}

static trp_err
args_take(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), trp_msg_bytes(args));
    return TRP_OK;
}

#define ACTOR(name_, state_)                                                                       \
    static const trp_behaviour name_ = { .size = sizeof(trp_behaviour),                            \
                                         .name = #name_,                                           \
                                         .version = 1,                                             \
                                         .state_bytes = sizeof(state_),                            \
                                         .receive = name_##_receive,                               \
                                         .pre_start = args_take }
ACTOR(sink, struct talk *);
ACTOR(teller, struct talk *);
ACTOR(listener, uint32_t);

static trp_ref
spawn(uint32_t self, const trp_behaviour *behaviour, const void *args, size_t bytes)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    options.args_type = &trp_bytes_type;
    options.args = args;
    options.args_bytes = bytes;
    UNIT_REQUIRE(trp_system_spawn(run.systems[self], behaviour, &options, &ref) == TRP_OK);
    return ref;
}

/* ---- systems --------------------------------------------------------------------------------- */

static void
host_set(uint32_t host)
{
    trpi_virtual_world(run.virt)->host = host;
}

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (getenv("POLL_LOG") != NULL) {
        printf("%" PRIu64 " %s\n", trpi_world_mono_ns(trpi_virtual_world(run.virt)) / 1000000,
               line->text);
    }
}

static void
system_start(uint32_t self)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_remote_options remote = { .transport = &trpi_link_poll_ops, .bind_port = -1 };
    char host[TRPI_SIM_HOST_BYTES], name[8];
    trp_ref listening;

    trpi_sim_net_address(self, host, sizeof host);
    (void)snprintf(name, sizeof name, "s%u", self);
    options.log = log_line;
    options.log_level = TRP_LOG_DEBUG;
    options.workers = 1;
    host_set(self);
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(run.virt), name, &options,
                                    &run.systems[self]) == TRP_OK);
    remote.host = host;
    remote.port = PORT;
    remote.handshake_timeout_ms = 3000;
    remote.backoff_max_ms = 1000;
    remote.flush_on_shutdown_ms = 200;
    UNIT_REQUIRE(trpi_remote_start(run.systems[self], &remote, &run.remotes[self]) == TRP_OK);
    listening = spawn(self, &listener, &self, sizeof self);
    UNIT_REQUIRE(trp_system_subscribe(run.systems[self], listening, &trp_dead_letter_type) ==
                 TRP_OK);
    UNIT_REQUIRE(trp_system_subscribe(run.systems[self], listening, &trp_association_event_type) ==
                 TRP_OK);
    host_set(NOWHERE);
}

static void
talk_start(uint32_t from, uint32_t to)
{
    struct talk *talk = &run.talks[from][to];
    trpi_node_id id = { *trpi_remote_address(run.remotes[to]),
                        trpi_system_self(run.systems[to])->uid };

    talk->sink = spawn(to, &sink, &talk, sizeof(struct talk *));
    talk->teller = spawn(from, &teller, &talk, sizeof(struct talk *));
    talk->sink_far = talk->sink;
    UNIT_REQUIRE(trpi_node_intern(run.systems[from], &id, &talk->sink_far.node) == TRP_OK);
}

static void
pass(uint32_t ms)
{
    trpi_system_pass(run.systems[0], ms);
}

/* Let one tell another one so many messages more. */
static void
talk_on(uint32_t from, uint32_t to, uint32_t count)
{
    struct talk *talk = &run.talks[from][to];

    talk->goal += count;
    trp_system_tell(run.systems[from], talk->teller, &trp_string_type, "", 0);
}

static uint32_t
missing_of(const struct talk *talk)
{
    return talk->told - talk->received - talk->letters;
}

static uint32_t
missing(void)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < SYSTEMS * SYSTEMS; i++) {
        sum += missing_of(&run.talks[i / SYSTEMS][i % SYSTEMS]);
    }
    return sum;
}

static bool
all_told(void)
{
    for (uint32_t i = 0; i < SYSTEMS * SYSTEMS; i++) {
        const struct talk *talk = &run.talks[i / SYSTEMS][i % SYSTEMS];

        if (talk->told < talk->goal) {
            return false;
        }
    }
    return true;
}

/* ---- the network ----------------------------------------------------------------------------- */

static uint32_t
host_of(const char *name)
{
    return trpi_sim_net_find(run.sockets, name);
}

static trpi_mem_verdict
link_judge(void *arg, trpi_mem_event *event)
{
    (void)arg;
    if (run.muted[host_of(event->from_host)][host_of(event->to_host)] ||
        (event->connect && run.undialled[host_of(event->from_host)])) {
        return TRPI_MEM_DROP;
    }
    event->delay_ns = (uint64_t)draw(run.delay_ms + 1) * 1000000u;
    return TRPI_MEM_PASS;
}

static void
noise_make(void)
{
    uint32_t from = draw(SYSTEMS), to = (from + 1 + draw(SYSTEMS - 1)) % SYSTEMS;

    talk_on(from, to, draw(TELLS_MAX));
    if (!run.breaks) {
        return;
    }
    switch (draw(40)) {
    case 0:
        trpi_sim_net_reset(run.sockets, from);
        break;
    case 1:
        run.muted[from][to] = !run.muted[from][to] && draw(3) == 0;
        break;
    default:
        break;
    }
}

static void
calm_begin(void)
{
    memset(run.muted, 0, sizeof run.muted);
    trpi_sim_net_faults_set(run.sockets, NULL);
    if (run.breaks) { /* those that carry nothing any more end here, not when the detector has it */
        for (uint32_t i = 0; i < SYSTEMS; i++) {
            trpi_sim_net_reset(run.sockets, i);
        }
        pass(NOTICE_MS); /* what is told meanwhile may be lost with them */
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void
laws_check(bool broken)
{
    for (uint32_t i = 0; i < SYSTEMS * SYSTEMS; i++) {
        uint32_t from = i / SYSTEMS, to = i % SYSTEMS;
        const struct talk *talk = &run.talks[from][to];
        uint32_t lost = missing_of(talk);

        UNIT_FALSE(talk->wrong);
        UNIT_EQUAL(talk->told, talk->goal);
        UNIT_TRUE(talk->received + talk->letters <= talk->told);
        UNIT_TRUE(lost == 0 ||
                  (run.ended[from][to] > 0 && run.ended[to][from] > 0)); /* conversation-C2 */
        if (!broken) {
            UNIT_EQUAL(lost + talk->letters + run.ended[from][to], 0); /* conversation-C3 */
        }
        all_missing += lost;
        all_letters += talk->letters;
        all_ended += run.ended[from][to];
    }
}

/* Wait until all is told and has arrived, or nothing arrives any more. */
static void
told_wait(void)
{
    uint32_t last = missing();

    for (uint32_t at = 0; at < CALM_MS && !all_told(); at += ROUND_MS) {
        pass(ROUND_MS);
    }
    for (uint32_t quiet = 0; quiet < QUIET_MS && missing() > 0; quiet += ROUND_MS) {
        pass(ROUND_MS);
        quiet = missing() == last ? quiet : 0;
        last = missing();
    }
}

/* conversation-C5 */
static void
silence_is_noticed(void)
{
    uint32_t before[2] = { run.ended[0][1], run.ended[1][0] };

    run.muted[0][1] = run.muted[1][0] = true;
    talk_on(0, 1, 1);
    talk_on(1, 0, 1);
    for (uint32_t at = 0;
         at < SILENCE_MS && (run.ended[0][1] == before[0] || run.ended[1][0] == before[1]);
         at += ROUND_MS) {
        pass(ROUND_MS);
    }
    UNIT_TRUE(run.ended[0][1] > before[0] && run.ended[1][0] > before[1]);
}

static void
run_start(uint64_t seed)
{
    trpi_virtual_options options = { .seed = seed, .net = &trpi_sim_net_ops };
    trpi_sim_faults faults = { .partial = 200, .spurious = 50 };

    memset(&run, 0, sizeof run);
    run.seed = run.random = seed;
    run.breaks = seed % 2 == 1;
    run.delay_ms = (uint32_t)(seed % 30);
    if (run.breaks) {
        faults.refused = 100;
        faults.reset = (uint32_t)(seed % 5);
    }
    UNIT_REQUIRE(trpi_virtual_new(&options, &run.virt) == TRP_OK);
    UNIT_REQUIRE(trpi_sim_net_new(trpi_virtual_world(run.virt), seed, &run.sockets) == TRP_OK);
    trpi_sim_net_link_set(run.sockets, link_judge, NULL);
    trpi_sim_net_faults_set(run.sockets, &faults);
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        system_start(i);
    }
    for (uint32_t i = 0; i < SYSTEMS * SYSTEMS; i++) {
        if (i / SYSTEMS != i % SYSTEMS) {
            talk_start(i / SYSTEMS, i % SYSTEMS);
        }
    }
}

static void
run_end(void)
{
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        host_set(i);
        UNIT_EQUAL(trp_system_stop(run.systems[i], 10000), TRP_OK);
        trpi_remote_stop(run.remotes[i]);
        trp_system_free(run.systems[i]);
        UNIT_EQUAL(trpi_sim_net_open(run.sockets, i), 0);
    }
    host_set(NOWHERE);
    UNIT_EQUAL(trpi_sim_net_misuses(run.sockets), 0);
    trpi_sim_net_free(run.sockets);
    trpi_world_free(trpi_virtual_world(run.virt));
}

/* Return the hash of the trace. */
static uint64_t
run_seed(uint64_t seed)
{
    uint64_t hash;

    run_start(seed);
    for (uint32_t at = 0; at < NOISE_MS; at += ROUND_MS) {
        noise_make();
        pass(ROUND_MS);
    }
    calm_begin();
    told_wait();
    laws_check(run.breaks);
    uint32_t before = missing();
    for (uint32_t i = 0; i < SYSTEMS * SYSTEMS; i++) {
        if (i / SYSTEMS != i % SYSTEMS) {
            talk_on(i / SYSTEMS, i % SYSTEMS, CALM_TELLS);
        }
    }
    told_wait();
    UNIT_TRUE(all_told());
    UNIT_EQUAL(missing(), before); /* conversation-C4 */
    if (seed % 5 == 0) {
        silence_is_noticed();
    }
    hash = trpi_virtual_hash(run.virt);
    run_end();
    return hash;
}

static void
three_systems_talk_under_every_seed(void)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : SEEDS;

    for (uint64_t seed = from; seed < from + count && unit_failures() == 0; seed++) {
        uint64_t hash = run_seed(seed);

        if (seed % 10 < 2) {
            UNIT_TRUE(run_seed(seed) == hash);
        }
        if (unit_failures() != 0) {
            printf("  replay: TROUPE_SIM_FIRST=%" PRIu64
                   " TROUPE_SIM_SEEDS=1 tests/sim/poll_test\n",
                   seed);
        }
    }
    if (getenv("POLL_LOG") != NULL) {
        printf("missing %" PRIu64 ", dead letters %" PRIu64 ", told of ends %" PRIu64 "\n",
               all_missing, all_letters, all_ended);
    }
    UNIT_TRUE(count < SEEDS || (all_ended > 0 && all_missing + all_letters > 0));
}

/* A dial of its own hangs when the link breaks that the peer has made. */
static void
a_dial_without_an_answer_hides_no_broken_link(void)
{
    run_start(60);
    run.undialled[1] = true;
    talk_on(1, 0, 1);
    pass(100);
    talk_on(0, 1, 1);
    pass(1000);
    UNIT_EQUAL(run.talks[0][1].received, 1);
    trpi_sim_net_reset(run.sockets, 1);
    pass(NOTICE_MS);
    UNIT_TRUE(run.ended[0][1] > 0);
    UNIT_TRUE(run.ended[1][0] > 0);
    run.undialled[1] = false;
    talk_on(0, 1, 1);
    talk_on(1, 0, 1);
    told_wait();
    UNIT_EQUAL(run.talks[0][1].last, 2);
    UNIT_EQUAL(run.talks[1][0].last, 2);
    run_end();
}

UNIT_BEGIN("poll_sim")
UNIT(a_dial_without_an_answer_hides_no_broken_link)
UNIT(three_systems_talk_under_every_seed)
UNIT_END
