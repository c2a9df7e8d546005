/* complete_faults.c - faults of the network of complete nodes, and the phase of faults.
 *
 * A cut is what TCP makes of it: what is written waits, and arrives when the cut is over. The first
 * node, which is the first seed, is never killed nor isolated as a whole by trp_sim_faults(): a
 * first seed that can reach no other while it starts may make a cluster of its own, which is
 * documented, and no fault. Its links are cut one by one, and for seconds.
 */
#include "cluster/sim/complete.h"

#include <stdlib.h>

#include "base/sized.h"

#define MILLISECOND_NS 1000000u

/* Of sockets, where the program has not said how many; of 1,000. */
static const trpi_sim_faults phase_faults = {
    .refused = 50, .reset = 2, .partial = 200, .lost = 50, .duplicated = 20, .spurious = 50
};

/* ---- network --------------------------------------------------------------------------------- */

static struct sim_whole *
node_by_host(trp_sim *sim, const char *host)
{
    uint32_t number = host[0] == 'n' ? (uint32_t)strtoul(host + 1, NULL, 10) : UINT32_MAX;
    return number < sim->nodes_count ? &sim->nodes[number] : NULL;
}

static uint64_t
later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static trpi_mem_verdict
link_judge(trp_sim *sim, trpi_mem_event *event, uint64_t *random)
{
    struct sim_whole *from = node_by_host(sim, event->from_host);
    struct sim_whole *to = node_by_host(sim, event->to_host);
    if (from == NULL || to == NULL) {
        return TRPI_MEM_PASS;
    }
    if (from->unplugged || to->unplugged) {
        return TRPI_MEM_CUT;
    }
    uint64_t now_ns = sim_complete_now_ns(sim);
    uint64_t due_ns = now_ns;
    uint64_t closed_ns = later_of(to->port_until_ns, sim->dial_until_ns[from->number][to->number]);
    if (event->connect && closed_ns > now_ns) { /* refused by a host, or swallowed by a wall */
        return closed_ns / MILLISECOND_NS % 2 == 0 ? TRPI_MEM_CUT : TRPI_MEM_DROP;
    }
    if (sim->delay_ms > 0) {
        due_ns += sim_complete_draw(random) % ((uint64_t)sim->delay_ms * MILLISECOND_NS);
    }
    due_ns = later_of(due_ns, sim->cut_until_ns[from->number][to->number]);
    due_ns = later_of(due_ns, later_of(from->alone_until_ns, to->alone_until_ns));
    event->delay_ns = later_of(due_ns, to->still_until_ns) - now_ns;
    return TRPI_MEM_PASS;
}

trpi_mem_verdict
sim_complete_fault(void *arg, trpi_mem_event *event)
{
    trp_sim *sim = arg;
    return link_judge(sim, event, &sim->network_random);
}

trpi_mem_verdict
sim_complete_socket_fault(void *arg, trpi_mem_event *event)
{
    trp_sim *sim = arg;
    return link_judge(sim, event, &sim->socket_random);
}

trp_err
trp_sim_sockets(trp_sim *sim, const trp_sim_socket_faults *faults)
{
    trp_sim_socket_faults given = TRP_SIM_SOCKET_FAULTS_INIT;
    if (!TRPI_SIZED_COPY(faults, &given, spurious) ||
        later_of(later_of(later_of(given.refused, given.reset), given.partial),
                 later_of(later_of(given.lost, given.duplicated), given.spurious)) > 1000) {
        return TRP_EINVAL;
    }
    sim->socket_faults = (trpi_sim_faults){ .refused = given.refused,
                                            .reset = given.reset,
                                            .partial = given.partial,
                                            .lost = given.lost,
                                            .duplicated = given.duplicated,
                                            .spurious = given.spurious };
    sim->socket_faults_given = true;
    trpi_sim_net_faults_set(sim->sockets, &sim->socket_faults);
    return TRP_OK;
}

void
trp_sim_cut(trp_sim *sim, uint32_t from, uint32_t to, uint32_t ms)
{
    if (from < sim->nodes_count && to < sim->nodes_count) {
        sim->cut_until_ns[from][to] = sim_complete_now_ns(sim) + (uint64_t)ms * MILLISECOND_NS;
    }
}

void
trp_sim_reset(trp_sim *sim, uint32_t node)
{
    if (node < sim->nodes_count) {
        trpi_mem_network_cut(sim->network, sim->nodes[node].host, NULL);
        trpi_sim_net_reset(sim->sockets, node);
    }
}

void
trp_sim_delay(trp_sim *sim, uint32_t ms)
{
    sim->delay_ms = ms;
}

/* ---- the phase of faults --------------------------------------------------------------------- */

static uint32_t
draw_below(trp_sim *sim, uint32_t bound)
{
    return (uint32_t)(sim_complete_draw(&sim->network_random) >> 32) % bound;
}

/* Count the nodes that do not run or are isolated. */
static uint32_t
count_away(const trp_sim *sim)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        count +=
            sim->nodes[i].system == NULL || sim->nodes[i].alone_until_ns > sim_complete_now_ns(sim);
    }
    return count;
}

static void
start_some(trp_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        if (sim->nodes[i].system == NULL && draw_below(sim, 4) == 0) {
            trp_sim_start(sim, i);
        }
    }
}

static void
kill_or_isolate(trp_sim *sim, bool kill)
{
    uint32_t node = sim->nodes_count > 1 ? 1 + draw_below(sim, sim->nodes_count - 1) : 0;
    if (node == 0 || (count_away(sim) + 1) * 2 > sim->nodes_count) {
        return;
    }
    if (kill) {
        trp_sim_kill(sim, node);
    } else {
        sim->nodes[node].alone_until_ns =
            sim_complete_now_ns(sim) + (2000u + draw_below(sim, 30000)) * (uint64_t)MILLISECOND_NS;
    }
}

static void
one_fault(trp_sim *sim)
{
    uint32_t a = draw_below(sim, sim->nodes_count);
    uint32_t b = draw_below(sim, sim->nodes_count);
    uint32_t ms = 200 + draw_below(sim, 6000);
    switch (draw_below(sim, 8)) {
    case 0:
    case 1:
        kill_or_isolate(sim, true);
        break;
    case 2:
        kill_or_isolate(sim, false);
        break;
    case 3:
        trp_sim_pause(sim, a, ms);
        break;
    case 4:
        trp_sim_cut(sim, b, a, ms);
        trp_sim_cut(sim, a, b, ms);
        break;
    case 5:
        trp_sim_cut(sim, a, b, ms);
        break;
    case 6:
        trp_sim_reset(sim, a);
        break;
    default:
        trp_sim_delay(sim, draw_below(sim, 200));
        break;
    }
}

void
trp_sim_faults(trp_sim *sim, uint32_t ms)
{
    uint64_t end_ms = trp_sim_now_ms(sim) + ms;
    if (!sim->socket_faults_given) {
        trpi_sim_net_faults_set(sim->sockets, &phase_faults);
    }
    sim_journal_phase(sim, true);
    while (trp_sim_now_ms(sim) < end_ms && !sim->failed) {
        trp_sim_pass(sim, 100 + draw_below(sim, 1500));
        start_some(sim);
        one_fault(sim);
    }
}
