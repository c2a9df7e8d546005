/* sim_set.c - readiness of simulated sockets: edges, as EPOLLET reports them.
 *
 * Shape.   A change of a socket wakes it: it goes behind the others of its set, once, and a wait
 *          reports all that is ready then, or nothing if nothing is.
 *          A driven world does not wait: on_due says when there will be something. It is called for
 *          an event that may concern the set's host, unless an earlier one is to come; a wait asks
 *          again for what comes after it.
 * Must hold.
 *   sim-set-S1  A socket that is queued is reported by a wait that on_due has asked for.
 */
#include <errno.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "sim/sim_socket.h"

uint32_t
trpi_sim_mask(sim_socket *s)
{
    return s->type == SOCK_DGRAM ? trpi_sim_datagram_mask(s) : trpi_sim_stream_mask(s);
}

static void
set_ask(trpi_net_set *set, uint64_t due_ns)
{
    uint64_t now_ns = trpi_sim_now(set->net);

    due_ns = due_ns < now_ns ? now_ns : due_ns;
    if (due_ns < set->due_ns) {
        set->due_ns = due_ns;
        if (set->on_due != NULL) {
            set->on_due(set->arg, due_ns - now_ns);
        }
    }
}

void
trpi_sim_wake(sim_socket *s)
{
    trpi_net_set *set = s->set;

    if (set == NULL || s->pending) {
        return;
    }
    s->pending = true;
    s->pending_next = NULL;
    if (set->first == NULL) {
        set->first = s;
    } else {
        set->last->pending_next = s;
    }
    set->last = s;
    set_ask(set, 0);
}

static bool
event_concerns(const sim_event *event, const trpi_net_set *set)
{
    return event->host_a == set->host || event->host_b == set->host;
}

void
trpi_sim_sets_due(trpi_sim_net *net, const sim_event *event)
{
    for (trpi_net_set *set = net->sets; set != NULL; set = set->next) {
        if (event_concerns(event, set)) {
            set_ask(set, event->due_ns);
        }
    }
}

/* Ask for the next event that concerns the set. */
static void
set_ask_next(trpi_net_set *set)
{
    const trpi_sim_net *net = set->net;
    uint64_t due_ns = set->first != NULL ? 0 : UINT64_MAX;

    for (uint32_t i = 0; i < net->events_count && due_ns != 0; i++) {
        if (net->events[i].due_ns < due_ns && event_concerns(&net->events[i], set)) {
            due_ns = net->events[i].due_ns;
        }
    }
    if (due_ns != UINT64_MAX) {
        set_ask(set, due_ns);
    }
}

void
trpi_sim_set_forget(sim_socket *s)
{
    trpi_net_set *set = s->set;
    sim_socket *before = NULL;

    if (set == NULL) {
        return;
    }
    if (s->pending) {
        sim_socket *at = set->first;

        for (; at != s; at = at->pending_next) {
            before = at;
        }
        if (before == NULL) {
            set->first = s->pending_next;
        } else {
            before->pending_next = s->pending_next;
        }
        set->last = set->last == s ? before : set->last;
        s->pending = false;
    }
    s->set = NULL;
}

int
trpi_sim_set_new(trpi_world *world, void (*on_due)(void *arg, uint64_t in_ns), void *arg,
                 trpi_net_set **ret_set)
{
    trpi_sim_net *net = trpi_sim_of(world);
    trpi_net_set *set = trpi_alloc(sizeof *set);
    trpi_net_set **link = &net->sets;

    if (set == NULL) {
        return -ENOMEM;
    }
    set->net = net;
    set->host = world->host;
    set->on_due = on_due;
    set->arg = arg;
    set->due_ns = UINT64_MAX;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = set;
    *ret_set = set;
    return 0;
}

void
trpi_sim_set_free(trpi_net_set *set)
{
    trpi_net_set **link;

    if (set == NULL) {
        return;
    }
    for (sim_socket *s = set->net->sockets; s != NULL; s = s->next) {
        if (s->set == set) {
            trpi_sim_set_forget(s);
        }
    }
    for (link = &set->net->sets; *link != set; link = &(*link)->next) {
    }
    *link = set->next;
    trpi_free(set);
}

int
trpi_sim_set_add(trpi_net_set *set, int number, uint64_t key)
{
    sim_socket *s = trpi_sim_socket_of(set->net->world, number);

    if (s == NULL || s->set != NULL) {
        return s == NULL ? -EBADF : -EEXIST;
    }
    s->set = set;
    s->key = key;
    if (trpi_sim_mask(s) != 0) {
        trpi_sim_wake(s);
    }
    set_ask_next(set);
    return 0;
}

void
trpi_sim_set_remove(trpi_net_set *set, int number)
{
    uint32_t index = (uint32_t)number - TRPI_SIM_SOCKET_FIRST;

    if (number >= TRPI_SIM_SOCKET_FIRST && index < set->net->numbers_count &&
        set->net->numbers[index] != NULL && set->net->numbers[index]->set == set) {
        trpi_sim_set_forget(set->net->numbers[index]);
    }
}

int
trpi_sim_set_wait(trpi_net_set *set, trpi_net_report *ret_reports, int most, uint64_t timeout_ns)
{
    trpi_sim_net *net = set->net;
    int count = 0;

    (void)timeout_ns; /* a driven world does not wait */
    trpi_assert(most > 0);
    trpi_sim_advance(net);
    set->due_ns = UINT64_MAX;
    while (set->first != NULL && count < most) {
        sim_socket *s = set->first;
        uint32_t events = trpi_sim_mask(s);

        set->first = s->pending_next;
        s->pending = false;
        if (trpi_sim_chance(net, net->faults.spurious)) {
            events |= TRPI_NET_IN | TRPI_NET_OUT;
        }
        if (events != 0) {
            ret_reports[count].key = s->key;
            ret_reports[count].events = events;
            count++;
        }
    }
    set_ask_next(set);
    return count;
}

void
trpi_sim_set_wake(trpi_net_set *set)
{
    (void)set; /* nobody waits */
}
