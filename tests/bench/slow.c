/* slow.c - two processes, and receivers that do not keep up: the effect on their neighbours.
 *
 * Shape.  /user/slow of the child handles 50 messages a second on a thread of its own, a thousand
 *         /user/slow-N share two such threads. The parent asks /user/echo beside them: with nothing
 *         else to do, while and after `slow` is told 200,000 times 500 bytes, and while and after
 *         the thousand are told as much together.
 */
#include "tests/bench/two.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define PAYLOAD_BYTES 500
#define TELLS_DEFAULT 200000u
#define TURN_TELLS 1000u
#define MANY 1000u
#define ASKS 3000u
#define HANDLE_NS 20000000
#define TURNS_NS 5000000000ull /* the teller gets as long to finish */

/* ---- child ----------------------------------------------------------------------------------- */

static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    (void)nanosleep(&(struct timespec){ 0, HANDLE_NS }, NULL);
    return TRP_OK;
}
static const trp_behaviour slow = TRP_BEHAVIOUR_INIT("slow", char, slow_receive);

void
bench_slow_spawn(trp_system *system)
{
    trp_dispatcher_options one = TRP_DISPATCHER_OPTIONS_INIT, few = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    char name[32];
    trp_ref ref;

    one.kind = TRP_DISPATCHER_PINNED;
    few.kind = TRP_DISPATCHER_BLOCKING;
    few.threads_min = few.threads_max = 2;
    few.throughput = 1;
    bench_check(trp_dispatcher_register(system, "one", &one), "dispatcher");
    bench_check(trp_dispatcher_register(system, "few", &few), "dispatcher");
    spawn.name = "slow";
    spawn.dispatcher = "one";
    bench_check(trp_system_spawn(system, &slow, &spawn, &ref), "slow");
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "slow-%u", i);
        spawn.name = name;
        spawn.dispatcher = "few";
        bench_check(trp_system_spawn(system, &slow, &spawn, &ref), "slow");
    }
}

/* ---- parent ---------------------------------------------------------------------------------- */

static trp_ref echo, told[MANY];
static unsigned told_count;
static uint64_t tells;
static atomic_bool told_all;

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const uint8_t payload[PAYLOAD_BYTES] = { 1 };
    uint64_t *sent = state;

    (void)msg;
    for (unsigned i = 0; i < TURN_TELLS && *sent < tells; i++, ++*sent) {
        trp_tell(ctx, told[*sent % told_count], &trp_bytes_type, payload, sizeof payload);
    }
    if (*sent < tells) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, "", 0);
    } else {
        atomic_store(&told_all, true);
    }
    return TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", uint64_t, teller_receive);

static int
compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Ask a neighbour one thing after the other, until so many are answered and all is told. Returns
 * the asks that were not. */
static uint64_t
asks_run(trp_system *system, const char *what)
{
    static uint64_t trip_ns[ASKS];
    uint64_t lost = 0, began_ns = bench_now_ns();
    char name[32];

    for (uint64_t i = 0;
         i < ASKS || (!atomic_load(&told_all) && bench_now_ns() - began_ns < TURNS_NS); i++) {
        trp_msg *reply = NULL;
        uint64_t start_ns = bench_now_ns();

        lost +=
            trp_system_ask(system, echo, &trp_string_type, "x", 1, BENCH_ASK_MS, &reply) != TRP_OK;
        trp_msg_free(reply);
        trip_ns[i % ASKS] = bench_now_ns() - start_ns;
    }
    lost += !atomic_load(&told_all);
    qsort(trip_ns, ASKS, sizeof *trip_ns, compare_ns);
    (void)snprintf(name, sizeof name, "%s_p50", what);
    bench_print("slow", name, (double)trip_ns[ASKS / 2] / 1e3, "us");
    (void)snprintf(name, sizeof name, "%s_p99", what);
    bench_print("slow", name, (double)trip_ns[ASKS * 99 / 100] / 1e3, "us");
    return lost;
}

static uint64_t
asks_beside(trp_system *system, const char *what)
{
    trp_ref ref;

    atomic_store(&told_all, false);
    bench_check(trp_system_spawn(system, &teller, NULL, &ref), "teller");
    trp_system_tell(system, ref, &trp_bytes_type, "", 0);
    return asks_run(system, what);
}

static int
run_slow(const bench_options *options)
{
    uint64_t lost;
    bench_two two;

    bench_two_start(&two, options, false);
    echo = bench_two_resolve(&two, "/user/echo");
    tells = options->count != 0 ? options->count : TELLS_DEFAULT;
    atomic_store(&told_all, true);
    lost = asks_run(two.system, "idle");
    told[0] = bench_two_resolve(&two, "/user/slow");
    told_count = 1;
    lost += asks_beside(two.system, "beside_one");
    for (told_count = 0; told_count < MANY; told_count++) {
        char path[32];

        (void)snprintf(path, sizeof path, "/user/slow-%u", told_count);
        told[told_count] = bench_two_resolve(&two, path);
    }
    lost += asks_beside(two.system, "beside_many");
    bench_print("slow", "peak_rss", (double)bench_peak_rss_bytes() / 1048576.0, "MiB");
    bench_print("slow", "lost", (double)lost, "messages");
    bench_two_end(&two);
    return lost == 0 ? 0 : 1;
}

const bench_workload bench_slow[] = {
    { "slow", "2 processes: asks beside receivers that handle 50 a second and are told 200,000",
      run_slow },
    { NULL, NULL, NULL },
};
