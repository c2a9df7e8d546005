/* world_virtual.c - a world of one seed.
 *
 * Why.     A run is repeated by its seed, or by the list of its decisions. Answer 0 is always the
 *          calm one (first come, first served; full turns; no time lost), so that a list of the few
 *          decisions that were not 0 is a whole schedule, and the fewer there are the easier it is
 *          to see what matters (pattern/testkit_seeded.c shrinks it).
 * Shape.   Each seed has its own temper: how often a decision is not 0, and whether such a decision
 *          takes any task or the newest. Uniform choice alone finds shallow races; long calm
 *          stretches with a few surprises, and old tasks that starve behind new ones, find the deep
 *          ones.
 * Must hold.
 *   world-virtual-V1  Decisions depend on the seed (or the list) and the sequence of questions, and
 *       on nothing else: no address, no clock of the machine.
 *   world-virtual-V2  The world's random numbers and its decisions come from two streams: a shrunk
 *       schedule sees the same random numbers as the one it came from.
 * Limits.  TRPI_CHOICES_MAX decisions a run.
 * Tests.   tests/unit/pattern/plan_test.c, tests/unit/sched/driven_test.c
 * Sources. S. Vigna, "splitmix64"; A. Zeller, "Simplifying failing tests" (what the list is for).
 */
#include "base/world_virtual.h"

#include <string.h>

#include <troupe/durable.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

#define START_NS 1000000000000ull   /* a clock that has run for a while: no timer is near 0 */
#define START_WALL_MS 1735689600000 /* 2025-01-01, so that stamps in logs look like stamps */
#define TURN_NS 1000u               /* time that a turn takes */
#define STALL_RARELY 64u            /* stalls are so many times rarer than other decisions */

typedef struct disk { /* a directory of this world */
    struct disk *next;
    trp_durable_memory *memory;
    char directory[];
} disk;

struct trpi_virtual {
    trpi_world world; /* first */
    trpi_world_ops ops;
    disk *disks;
    trpi_virtual_options options;
    uint64_t now_ns;
    uint64_t random_state; /* world-virtual-V2 */
    uint64_t choice_state;
    uint32_t temper; /* of 256 decisions, so many are drawn; the others are 0 */
    bool newest;     /* drawn tasks are the newest */
    uint64_t hash;
    uint64_t turns;
    uint32_t choices;
    uint32_t next; /* of options.deviations */
    trpi_deviation *made;
    uint32_t made_count, made_room;
    bool over, tidying;
};

static uint64_t
splitmix_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static trpi_virtual *
virtual_of(trpi_world *world)
{
    return (trpi_virtual *)(void *)world;
}

static uint64_t
virtual_mono_ns(trpi_world *world)
{
    return virtual_of(world)->now_ns;
}

static int64_t
virtual_wall_ms(trpi_world *world)
{
    return START_WALL_MS + (int64_t)((virtual_of(world)->now_ns - START_NS) / 1000000u);
}

static uint64_t
virtual_random_u64(trpi_world *world)
{
    return splitmix_next(&virtual_of(world)->random_state);
}

static void
virtual_free(trpi_world *world)
{
    trpi_assert(world->drive == NULL); /* its systems are gone */
    while (virtual_of(world)->disks != NULL) {
        disk *next = virtual_of(world)->disks->next;

        trp_durable_memory_free(virtual_of(world)->disks->memory);
        trpi_free(virtual_of(world)->disks);
        virtual_of(world)->disks = next;
    }
    trpi_free(virtual_of(world)->made);
    trpi_free(world);
}

static trp_err
virtual_storage(trpi_world *world, const char *directory, const trp_durable_storage **ret_storage)
{
    size_t bytes = strlen(directory) + 1;
    disk *at = virtual_of(world)->disks;

    while (at != NULL && strcmp(at->directory, directory) != 0) {
        at = at->next;
    }
    if (at == NULL) {
        at = trpi_alloc(sizeof *at + bytes);
        if (at == NULL || trp_durable_memory_new(&at->memory) != TRP_OK) {
            trpi_free(at);
            return TRP_ENOMEM;
        }
        memcpy(at->directory, directory, bytes);
        at->next = virtual_of(world)->disks;
        virtual_of(world)->disks = at;
    }
    *ret_storage = trp_durable_memory_storage(at->memory);
    return TRP_OK;
}

static bool
decision_record(trpi_virtual *virt, trpi_choice what, uint32_t value)
{
    if (TRPI_ARRAY_RESERVE(virt, made, 1, TRPI_CHOICES_MAX) != TRP_OK) {
        return false;
    }
    virt->made[virt->made_count++] =
        (trpi_deviation){ (uint32_t)virt->turns, (uint16_t)what, (uint16_t)value };
    return true;
}

static uint32_t
decision_listed(trpi_virtual *virt, trpi_choice what, uint32_t count)
{
    const trpi_virtual_options *options = &virt->options;
    const trpi_deviation *next = NULL;

    for (; virt->next < options->deviations_count; virt->next++) {
        next = &options->deviations[virt->next];
        if (next->turn > virt->turns || (next->turn == virt->turns && next->what >= what)) {
            break;
        }
    }
    if (virt->next == options->deviations_count || next->turn != virt->turns ||
        next->what != what) {
        return 0;
    }
    return next->value % count;
}

/* Draw the same number of times for each decision (world-virtual-V1). */
static uint32_t
decision_draw(trpi_virtual *virt, trpi_choice what, uint32_t count)
{
    uint64_t number = splitmix_next(&virt->choice_state);
    bool surprise = (number & 255) < virt->temper;

    number >>= 8;
    if (what == TRPI_CHOICE_STALL) {
        if (number % STALL_RARELY != 0) {
            return 0;
        }
        number /= STALL_RARELY;
    }
    if (what == TRPI_CHOICE_TASK && virt->newest) {
        number = count - 1;
    }
    return surprise ? (uint32_t)(number % count) : 0;
}

static uint32_t
virtual_choose(trpi_world *world, trpi_choice what, uint32_t count)
{
    trpi_virtual *virt = virtual_of(world);
    uint32_t value = 0;

    trpi_assert(count > 0);
    if (virt->tidying) {
        return 0;
    }
    if (what == TRPI_CHOICE_STALL) {
        if (virt->options.stall_ms_max == 0) {
            return 0;
        }
        count = count <= virt->options.stall_ms_max ? count : virt->options.stall_ms_max + 1;
    }
    value =
        virt->options.calm ? decision_listed(virt, what, count) : decision_draw(virt, what, count);
    if (value != 0 && !decision_record(virt, what, value)) {
        virt->over = true;
        value = 0;
    }
    trpi_virtual_mix(virt, (uint64_t)what << 32 | value);
    virt->choices++;
    return value;
}

static void
virtual_advance(trpi_world *world, uint64_t mono_ns)
{
    trpi_virtual *virt = virtual_of(world);

    trpi_assert(mono_ns >= virt->now_ns);
    virt->now_ns = mono_ns;
    trpi_virtual_mix(virt, mono_ns);
}

static bool
virtual_ran(trpi_world *world, uint32_t task, uint32_t result)
{
    trpi_virtual *virt = virtual_of(world);

    if (!world->manual) {
        virt->now_ns += TURN_NS;
    }
    if (virt->tidying) {
        return true;
    }
    trpi_virtual_mix(virt, (uint64_t)result << 32 | task);
    virt->turns++;
    if ((virt->options.turns_max != 0 && virt->turns >= virt->options.turns_max) ||
        virt->turns == UINT32_MAX) {
        virt->over = true;
    }
    return !virt->over;
}

static const trpi_world_ops virtual_ops = {
    .name = "virtual",
    .mono_ns = virtual_mono_ns,
    .wall_ms = virtual_wall_ms,
    .random_u64 = virtual_random_u64,
    .free = virtual_free,
    .choose = virtual_choose,
    .advance = virtual_advance,
    .ran = virtual_ran,
    .storage = virtual_storage,
};

trp_err
trpi_virtual_new(const trpi_virtual_options *options, trpi_virtual **ret_virtual)
{
    static const uint32_t tempers[] = { 256, 256, 128, 64, 32, 16, 8, 4 };
    trpi_virtual *virt = trpi_alloc(sizeof *virt);

    if (virt == NULL) {
        return TRP_ENOMEM;
    }
    virt->ops = virtual_ops;
    virt->ops.net = options->net;
    virt->world.ops = &virt->ops;
    virt->world.manual = options->manual;
    virt->options = *options;
    virt->now_ns = START_NS;
    virt->random_state = options->seed;
    virt->choice_state = ~options->seed;
    (void)splitmix_next(&virt->choice_state);
    virt->temper =
        tempers[splitmix_next(&virt->choice_state) % (sizeof tempers / sizeof tempers[0])];
    virt->newest = splitmix_next(&virt->choice_state) % 4 == 0;
    virt->hash = options->seed;
    *ret_virtual = virt;
    return TRP_OK;
}

trpi_world *
trpi_virtual_world(trpi_virtual *virt)
{
    return &virt->world;
}

const trpi_deviation *
trpi_virtual_deviations(const trpi_virtual *virt, uint32_t *ret_count)
{
    *ret_count = virt->made_count;
    return virt->made;
}

uint32_t
trpi_virtual_choices(const trpi_virtual *virt)
{
    return virt->choices;
}

uint64_t
trpi_virtual_turns(const trpi_virtual *virt)
{
    return virt->turns;
}

uint64_t
trpi_virtual_hash(const trpi_virtual *virt)
{
    return virt->hash;
}

void
trpi_virtual_mix(trpi_virtual *virt, uint64_t what)
{
    virt->hash ^= what;
    (void)splitmix_next(&virt->hash); /* moves the state on ... */
    virt->hash ^= virt->hash >> 29;
    virt->hash *= 0xbf58476d1ce4e5b9u; /* ... and spreads it: the order of what is mixed matters */
}

bool
trpi_virtual_is_over(const trpi_virtual *virt)
{
    return virt->over;
}

void
trpi_virtual_calm(trpi_virtual *virt)
{
    virt->tidying = true;
    virt->over = false;
}
