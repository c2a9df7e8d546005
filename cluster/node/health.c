/* health.c - see health.h.
 *
 * Why.     A load balancer must know whether a node takes work; a supervisor must know whether it
 *          still does any, and kills it if not. The second question has fewer reasons for a no.
 * Shape.   ready: own status, the drain, and two probes that are answered within a second:
 *            a message ------------------------------> /system/health-default (default dispatcher)
 *            a frame -> loopback, poller, decoding --> /system/health-inbound (system dispatcher)
 *          alive: alive.c, looked at by a timer, and by each request, so that it does not depend on
 *            the thread of the timers.
 * Must hold.
 *   health-H1  Nothing is counted or locked when a message is told or handled: the looks read what
 *       the scheduler counts anyway, and send a probe only when no turn has ended.  (health_look)
 *   health-H2  No answer waits for a worker, a timer or a peer for longer than the time of a probe:
 *       `ready` waits on its caller's thread.                                    (probes_await)
 *   health-H3  A probe whose actor has ended is not waited for: the node stops.
 * Limits.  TRPI_HEALTH_PROBE_MS; management.alive-after, a tenth of which lies between two looks.
 * Cost.    A timer; in an idle system a message a look. Two sockets from the first `ready` on.
 * Tests.   tests/unit/node/health_test.c, tests/system/management.sh
 */
#include "cluster/node/health.h"

#include <stdio.h>
#include <string.h>

#include <troupe/cluster.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/alive.h"

#define LOOKS 10u /* in the time after which it is not alive */

enum { DEFAULT_PROBE = 0, INBOUND_PROBE = 1, PROBES = 2 };

typedef struct probe {
    trp_ref ref;
    uint64_t sent, answered; /* numbers of probes; with the lock */
    bool ended;              /* its actor; with the lock */
} probe;

struct trpi_health {
    trp_node *node;
    trpi_cond changed; /* its lock guards what follows */
    probe probes[PROBES];
    trpi_alive alive;
    trpi_loopback *loopback; /* NULL: not opened yet */
    uint64_t timer;
};

/* ---- the actors of the probes ---------------------------------------------------------------- */

typedef struct prober {
    trpi_health *health;
    probe *of;
} prober;

static trp_err
prober_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(prober));
    return TRP_OK;
}

static trp_err
prober_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    prober *self = state;
    uint64_t number = 0;
    (void)ctx;
    if (!trp_msg_is(msg, &trp_bytes_type) || trp_msg_bytes(msg) != sizeof number) {
        return TRP_OK; /* somebody else's */
    }
    memcpy(&number, trp_msg_payload(msg), sizeof number);
    pthread_mutex_lock(&self->health->changed.lock);
    if (number > self->of->answered && number <= self->of->sent) {
        self->of->answered = number;
        trpi_cond_broadcast(&self->health->changed);
    }
    pthread_mutex_unlock(&self->health->changed.lock);
    return TRP_OK;
}

static void
prober_stopped(trp_ctx *ctx, void *state)
{
    prober *self = state;
    (void)ctx;
    pthread_mutex_lock(&self->health->changed.lock);
    self->of->ended = true; /* health-H3 */
    trpi_cond_broadcast(&self->health->changed);
    pthread_mutex_unlock(&self->health->changed.lock);
}

static const trp_behaviour prober_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "health",
                                                .version = 1,
                                                .state_bytes = sizeof(prober),
                                                .receive = prober_receive,
                                                .pre_start = prober_start,
                                                .post_stop = prober_stopped };

static trp_err
prober_spawn(trpi_health *health, unsigned which, const char *name, const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    prober self = { health, &health->probes[which] };
    options.name = name;
    options.dispatcher = dispatcher;
    options.args_type = &trp_bytes_type;
    options.args = &self;
    options.args_bytes = sizeof self;
    return trpi_system_spawn_internal(health->node->system, &prober_behaviour, &options,
                                      &health->probes[which].ref);
}

/* ---- alive ----------------------------------------------------------------------------------- */

/* With the lock. */
static bool
is_waiting(const probe *p)
{
    return !p->ended && p->answered < p->sent;
}

/* Look once: health-H1. Returns whether the node is alive. Thread: any. */
static bool
health_look(trpi_health *health)
{
    trp_system *system = health->node->system;
    probe *p = &health->probes[DEFAULT_PROBE];
    uint64_t number = 0, turns = trpi_system_turns(system);
    pthread_mutex_lock(&health->changed.lock);
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(system));
    if (trpi_alive_look(&health->alive, now_ns, turns, is_waiting(p)) && !p->ended) {
        number = ++p->sent;
    }
    bool alive = trpi_alive_is(&health->alive);
    pthread_mutex_unlock(&health->changed.lock);
    if (number != 0) {
        trp_system_tell(system, p->ref, &trp_bytes_type, &number, sizeof number);
    }
    return alive;
}

static bool
look_again(void *arg)
{
    (void)health_look(arg);
    return true;
}

void
trpi_health_alive(trpi_health *health, trpi_health_check *ret_check)
{
    *ret_check = (trpi_health_check){ .name = "default-dispatcher", .ok = health_look(health) };
    (void)snprintf(ret_check->detail, sizeof ret_check->detail, "%s",
                   ret_check->ok ? "turns end"
                                 : "work has waited for management.alive-after, and no worker has "
                                   "ended a turn");
}

/* ---- ready ----------------------------------------------------------------------------------- */

typedef struct awaited {
    trpi_health *health;
    uint64_t numbers[PROBES]; /* 0: none was sent */
} awaited;

static bool
is_answered(const awaited *a, unsigned which)
{
    const probe *p = &a->health->probes[which];
    return p->answered >= a->numbers[which] || p->ended;
}

static bool
all_are_answered(void *arg)
{
    return is_answered(arg, DEFAULT_PROBE) && is_answered(arg, INBOUND_PROBE);
}

/* With the lock. Send a frame through the loopback. */
static trp_err
inbound_send(trpi_health *health, uint64_t *ret_number)
{
    probe *p = &health->probes[INBOUND_PROBE];
    uint64_t number = p->sent + 1;
    trp_err err = health->loopback != NULL
                      ? TRP_OK
                      : trpi_remote_loopback_open(health->node->remote, &health->loopback);
    err = err == TRP_OK
              ? trpi_remote_loopback_send(health->loopback, p->ref, &number, sizeof number)
              : err;
    if (err == TRP_OK) {
        *ret_number = p->sent = number;
    }
    return err;
}

static void
probe_judge(const awaited *a, unsigned which, trp_err err, trpi_health_check *check)
{
    const probe *p = &a->health->probes[which];
    check->name = which == DEFAULT_PROBE ? "default-dispatcher" : "inbound";
    check->ok = err == TRP_OK && !p->ended && is_answered(a, which);
    if (err != TRP_OK) {
        (void)snprintf(check->detail, sizeof check->detail, "no probe can be sent: %s",
                       trp_strerror(err));
    } else if (p->ended) {
        (void)snprintf(check->detail, sizeof check->detail, "the node is stopping");
    } else {
        (void)snprintf(check->detail, sizeof check->detail,
                       check->ok ? "answers" : "a probe was not answered within %u ms",
                       TRPI_HEALTH_PROBE_MS);
    }
}

/* health-H2. Fill in two checks. */
static void
probes_await(trpi_health *health, trpi_health_check *checks)
{
    trp_system *system = health->node->system;
    awaited a = { .health = health };
    uint64_t until_ns =
        trpi_world_mono_ns(trpi_system_world(system)) + (uint64_t)TRPI_HEALTH_PROBE_MS * 1000000u;
    pthread_mutex_lock(&health->changed.lock);
    uint64_t number = a.numbers[DEFAULT_PROBE] = ++health->probes[DEFAULT_PROBE].sent;
    trp_err err = inbound_send(health, &a.numbers[INBOUND_PROBE]);
    pthread_mutex_unlock(&health->changed.lock);
    trp_system_tell(system, health->probes[DEFAULT_PROBE].ref, &trp_bytes_type, &number,
                    sizeof number);
    pthread_mutex_lock(&health->changed.lock);
    (void)trpi_cond_wait(&health->changed, trpi_system_sched(system), all_are_answered, &a,
                         until_ns);
    probe_judge(&a, DEFAULT_PROBE, TRP_OK, &checks[DEFAULT_PROBE]);
    probe_judge(&a, INBOUND_PROBE, err, &checks[INBOUND_PROBE]);
    pthread_mutex_unlock(&health->changed.lock);
}

static void
membership_judge(trp_node *node, trpi_health_check *check)
{
    trp_member self = { .status = 0 };
    bool known = trp_cluster_self(node->system, &self) == TRP_OK && self.status != 0;
    check->name = "cluster-membership";
    check->ok = known && (self.status == TRP_MEMBER_UP || self.status == TRP_MEMBER_WEAKLY_UP);
    (void)snprintf(check->detail, sizeof check->detail, "%s",
                   known ? trp_member_status_name(self.status) : "not a member");
}

bool
trpi_node_takes_work(trp_node *node, const char **ret_why)
{
    pthread_mutex_lock(&node->lock);
    bool leaves = node->ending.told_to_leave;
    pthread_mutex_unlock(&node->lock);
    bool drained = trpi_cluster_is_drained(node->cluster);
    *ret_why = leaves    ? "this node has been told to leave"
               : drained ? "this node is drained (troupe undrain)"
                         : "not draining";
    return !leaves && !drained;
}

void
trpi_health_ready(trpi_health *health, trpi_health_check ret_checks[TRPI_HEALTH_READY_CHECKS])
{
    const char *why = "";
    membership_judge(health->node, &ret_checks[0]);
    ret_checks[1] =
        (trpi_health_check){ .name = "drain", .ok = trpi_node_takes_work(health->node, &why) };
    (void)snprintf(ret_checks[1].detail, sizeof ret_checks[1].detail, "%s", why);
    probes_await(health, &ret_checks[2]);
}

/* ---- start and stop -------------------------------------------------------------------------- */

trp_err
trpi_health_start(trp_node *node, trpi_health **ret_health)
{
    uint64_t limit_ms = (uint64_t)trpi_config_int(node->config, "management.alive-after");
    trpi_health *health = trpi_alloc(sizeof *health);
    if (health == NULL) {
        return TRP_ENOMEM;
    }
    health->node = node;
    trpi_cond_init(&health->changed);
    trpi_alive_init(&health->alive, limit_ms * 1000000u);
    *ret_health = health; /* the node's from now on: probes that are there may be used until then */
    trp_err err = prober_spawn(health, DEFAULT_PROBE, "health-default", "default");
    err = err == TRP_OK ? prober_spawn(health, INBOUND_PROBE, "health-inbound", NULL) : err;
    return err == TRP_OK ? trpi_system_every(node->system, limit_ms / LOOKS + 1, look_again, NULL,
                                             health, &health->timer)
                         : err;
}

void
trpi_health_stop(trpi_health *health)
{
    if (health != NULL && health->loopback != NULL) {
        trpi_remote_loopback_close(health->loopback);
        health->loopback = NULL;
    }
}

void
trpi_health_free(trpi_health *health)
{
    if (health != NULL) {
        trpi_assert(health->loopback == NULL);
        trpi_cond_fini(&health->changed);
        trpi_free(health);
    }
}
