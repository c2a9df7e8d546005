/* receptionist.c - the actor that takes clients, opens doors for them, and moves them away.
 *
 * Shape.   channel 9 --note--> sessions (pure) --> doors, children of this actor --> services
 *          a service that is not here: FIND to the receptionists of other members, channel 10
 * Must hold.
 *   receptionist-R1  A client without a session gets STRANGER for all but HELLO and BYE.
 *   receptionist-R2  A door is opened for a service that is registered and permitted, and closed
 *       when the service, its registration or the session ends.
 *   receptionist-R3  A node that leaves tells its clients (MOVE) and waits LEAVE_MS at most until
 *       they have gone.
 * Limits.  clients_max sessions; TRPI_CLIENT_DOORS_MAX of a client; TRPI_SEARCHES_MAX.
 * Tests.   tests/unit/client/client_test.c
 * Sources. CONTRIB-24 to -29, -49; ROLES-03
 */
#include <stdio.h>
#include <string.h>

#include <troupe/shutdown.h>

#include "base/alloc.h"
#include "cluster/client/reception.h"
#include "cluster/client/searches.h"

enum { TICK_KEY = 1, TICK_MS = 200, SEARCH_MS = 2000, LEAVE_MS = 3000, MEMBERS_MAX = 1024 };

typedef struct doors { /* of a session, for one service or topic */
    struct doors *next;
    uint64_t number; /* the client's */
    uint32_t kind;   /* of trpi_client_kind */
    trp_ref service; /* of a topic: an actor that opens it; of ALL: none */
    trp_ref tells, asks;
    char name[];
} doors;

struct receptionist_state {
    reception *r;
    trpi_sessions sessions;
    trpi_searches searches;
    uint64_t leave_task, leave_until_ms; /* 0: it does not leave */
};

static uint64_t
now_ms(const reception *r)
{
    return trpi_world_mono_ns(trpi_system_world(r->system)) / 1000000u;
}

static void
frame_send(const reception *r, const trpi_node_id *to, const trpi_client_frame *frame)
{
    trpi_buffer bytes = { NULL, 0, 0 };
    if (trpi_client_frame_encode(frame, &bytes) == TRP_OK) {
        (void)trpi_remote_control_send(r->remote, to, TRPI_CHANNEL_RECEPTIONIST, bytes.data,
                                       bytes.count); /* lost: the other side asks again */
    }
    trpi_buffer_fini(&bytes);
}

static void
client_refuse(const reception *r, const trpi_node_id *to, uint32_t client, uint64_t number,
              trp_err err, const char *why)
{
    trpi_client_frame frame = {
        .word = TRPI_RECEPTIONIST_REFUSED, .client = client, .number = number, .err = (uint32_t)err
    };
    (void)snprintf(frame.why, sizeof frame.why, "%s", why);
    frame_send(r, to, &frame);
}

/* ---- members --------------------------------------------------------------------------------- */

/* Copy the members that may have a receptionist, this node too if it does not leave. Without a
 * cluster it is alone. Gives *ret_nodes (trpi_free). Returns how many. */
static uint32_t
members_read(const struct receptionist_state *s, trpi_node_id **ret_nodes)
{
    const reception *r = s->r;
    size_t count = 0;
    trp_member *members = trpi_alloc(MEMBERS_MAX * sizeof *members);
    trpi_node_id *nodes = trpi_alloc((MEMBERS_MAX + 1u) * sizeof *nodes);
    uint32_t kept = 0;
    trp_err err = members == NULL || nodes == NULL
                      ? TRP_ENOMEM
                      : trp_cluster_members(r->system, members, MEMBERS_MAX, &count);
    for (size_t i = 0; err == TRP_OK && i < count && i < MEMBERS_MAX; i++) {
        const trp_member *m = &members[i];
        if (m->self == 0 && m->reachable != 0 && m->status == TRP_MEMBER_UP &&
            (r->role[0] == '\0' || trp_member_has_role(m, r->role)) &&
            trpi_address_parse(m->address, &nodes[kept].address, NULL, NULL) == TRP_OK) {
            nodes[kept++].uid = m->uid;
        }
    }
    if (nodes != NULL && s->leave_until_ms == 0) {
        nodes[kept++] = r->self;
    }
    trpi_free(members);
    *ret_nodes = nodes;
    return kept;
}

static void
contacts_send(const struct receptionist_state *s, const trpi_session *session, uint32_t word)
{
    trpi_node_id *nodes = NULL;
    uint32_t count = members_read(s, &nodes), chosen[TRPI_CLIENT_CONTACTS_MAX];
    trpi_client_frame frame = { .word = word, .client = session->client };
    trpi_address *addresses = count > 0 ? trpi_alloc(count * sizeof *addresses) : NULL;
    for (uint32_t i = 0; addresses != NULL && i < count; i++) {
        addresses[i] = nodes[i].address;
    }
    if (addresses != NULL) {
        frame.contacts_count = trpi_contacts_choose(addresses, count, session->node.uid,
                                                    s->r->options.contacts, chosen);
        for (uint32_t i = 0; i < frame.contacts_count; i++) {
            frame.contacts[i] = addresses[chosen[i]];
        }
    }
    frame_send(s->r, &session->node, &frame);
    trpi_free(addresses);
    trpi_free(nodes);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void
event_publish(const reception *r, trp_ctx *ctx, const trpi_session *session, bool here,
              const char *reason)
{
    trp_receptionist_client event;
    memset(&event, 0, sizeof event);
    (void)trpi_address_format(&session->node.address, event.client, sizeof event.client);
    (void)trpi_remote_certificate_name(r->remote, &session->node.address, event.certificate,
                                       sizeof event.certificate);
    (void)snprintf(event.reason, sizeof event.reason, "%s", reason);
    event.uid = session->node.uid;
    event.here = here;
    trpi_log(r->system, TRP_LOG_INFO, "client", "client %s client=%s certificate=%s reason=\"%s\"",
             here ? "has come" : "has gone", event.client, event.certificate, reason);
    trp_publish(ctx, &trp_receptionist_client_type, &event, sizeof event);
}

static void
doors_close(const reception *r, trp_ctx *ctx, doors *d)
{
    trpi_remote_door_close(r->remote, d->tells);
    trpi_remote_door_close(r->remote, d->asks);
    trp_stop(ctx, d->tells);
    trp_stop(ctx, d->asks);
    trpi_free(d);
}

/* Takes session, which is in no table any more. */
static void
session_end(const reception *r, trp_ctx *ctx, trpi_session *session, const char *reason)
{
    while (session->own != NULL) {
        doors *d = session->own;
        session->own = d->next;
        doors_close(r, ctx, d);
    }
    event_publish(r, ctx, session, false, reason);
    trpi_session_free(session);
}

static void
client_hello(struct receptionist_state *s, trp_ctx *ctx, const reception_note *note)
{
    trpi_session *session;
    bool is_new = false;
    if (s->leave_until_ms != 0) {
        client_refuse(s->r, &note->from, note->frame.client, 0, TRP_ECLOSED,
                      "this node leaves the cluster");
        return;
    }
    trp_err err = trpi_session_hello(&s->sessions, &note->from, note->frame.client, now_ms(s->r),
                                     &session, &is_new);
    if (err != TRP_OK) {
        client_refuse(s->r, &note->from, note->frame.client, 0, err,
                      err == TRP_ELIMIT
                          ? "this receptionist has cluster.client.receptionist.clients-max "
                            "clients, or 16 of this process"
                          : "out of memory");
        return;
    }
    if (is_new) {
        event_publish(s->r, ctx, session, true, "");
    }
    contacts_send(s, session, TRPI_RECEPTIONIST_WELCOME);
}

/* ---- doors ----------------------------------------------------------------------------------- */

static doors *
doors_find(const trpi_session *session, uint64_t number)
{
    doors *d = session->own;
    while (d != NULL && d->number != number) {
        d = d->next;
    }
    return d;
}

static trp_err
door_spawn(const reception *r, trp_ctx *ctx, const trpi_session *session, const doors *d, bool asks,
           trp_ref *ret_ref)
{
    struct {
        client_door_args args;
        char topic[TRPI_CLIENT_NAME_BYTES_MAX];
    } all;
    client_door_args args = { .remote = r->remote,
                              .service = d->service,
                              .uid = session->node.uid,
                              .tunnel_ms = r->options.tunnel_ms,
                              .asks = asks };
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_err err = trpi_node_meet(r->system, &session->node, &args.client_node);
    if (d->kind == TRPI_CLIENT_ALL) {
        args.mediator = r->services_all;
    } else if (err == TRP_OK && d->kind == TRPI_CLIENT_TOPIC) {
        err = trp_mediator_of(r->system, NULL, &args.mediator);
    }
    if (err != TRP_OK) {
        return err;
    }
    args.topic_bytes = args.mediator == NULL ? 0 : (uint32_t)strlen(d->name);
    memcpy(&all.args, &args, sizeof args);
    memcpy(all.topic, d->name, args.topic_bytes);
    spawn.mailbox = "unbounded";
    spawn.dispatcher = "default";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &all;
    spawn.args_bytes = sizeof args + args.topic_bytes;
    err = trp_spawn(ctx, &client_door_behaviour, &spawn, ret_ref);
    if (err == TRP_OK) {
        err = trpi_remote_door_open(r->remote, *ret_ref, session->node.uid);
        if (err != TRP_OK) {
            trp_stop(ctx, *ret_ref);
        }
    }
    return err;
}

static void
opened_send(const reception *r, const trpi_session *session, const doors *d)
{
    const trpi_client_frame frame = { .word = TRPI_RECEPTIONIST_OPENED,
                                      .client = session->client,
                                      .number = d->number,
                                      .slot = d->tells.slot,
                                      .generation = d->tells.generation,
                                      .ask_slot = d->asks.slot,
                                      .ask_generation = d->asks.generation };
    frame_send(r, &session->node, &frame);
}

static doors *
doors_new(uint64_t number, uint32_t kind, const char *name, trp_ref to)
{
    size_t bytes = strlen(name) + 1;
    doors *d = trpi_alloc(sizeof *d + bytes);
    if (d != NULL) {
        d->number = number;
        d->kind = kind;
        d->service = to;
        memcpy(d->name, name, bytes);
    }
    return d;
}

/* to: the service, or an actor that opens the topic; none: all services of the name. */
static void
doors_open(struct receptionist_state *s, trp_ctx *ctx, trpi_session *session, uint64_t number,
           uint32_t kind, const char *name, trp_ref to)
{
    doors *d = doors_new(number, kind, name, to);
    trp_err err = d == NULL ? TRP_ENOMEM : trp_ref_is_none(to) ? TRP_OK : trp_watch(ctx, to);
    if (err == TRP_OK) {
        err = door_spawn(s->r, ctx, session, d, false, &d->tells);
    }
    if (err == TRP_OK) {
        err = door_spawn(s->r, ctx, session, d, true, &d->asks);
        if (err != TRP_OK) {
            trpi_remote_door_close(s->r->remote, d->tells);
            trp_stop(ctx, d->tells);
        }
    }
    if (err != TRP_OK) {
        trpi_free(d);
        client_refuse(s->r, &session->node, session->client, number, err,
                      err == TRP_EROLE
                          ? "the contact's node has no mediator of topics: cluster.pub-sub.role"
                          : trp_strerror(err));
        return;
    }
    d->next = session->own;
    session->own = d;
    opened_send(s->r, session, d);
}

/* Does this door lead to the actor that is gone, under that name (NULL: under any)? A topic that
 * another actor opens here stays open. */
static bool
door_is_over(struct receptionist_state *s, trp_ctx *ctx, doors *d, trp_ref ref,
             const reception_change *change)
{
    trp_ref other;
    if (!trp_ref_equal(d->service, ref) ||
        (change != NULL && (change->kind != d->kind || strcmp(change->name, d->name) != 0))) {
        return false;
    }
    if (d->kind != TRPI_CLIENT_TOPIC || !reception_find(s->r, d->kind, d->name, &other) ||
        trp_watch(ctx, other) != TRP_OK) {
        return true;
    }
    d->service = other;
    return false;
}

/* A service has ended (change NULL), or its name was taken back. receptionist-R2 */
static void
service_gone(struct receptionist_state *s, trp_ctx *ctx, trp_ref ref,
             const reception_change *change)
{
    for (trpi_session *session = s->sessions.first; session != NULL; session = session->next) {
        doors *first = session->own, **at = &first;
        while (*at != NULL) {
            doors *d = *at;
            if (!door_is_over(s, ctx, d, ref, change)) {
                at = &d->next;
                continue;
            }
            const trpi_client_frame frame = { .word = TRPI_RECEPTIONIST_CLOSED,
                                              .client = session->client,
                                              .number = d->number };
            *at = d->next;
            doors_close(s->r, ctx, d);
            frame_send(s->r, &session->node, &frame);
        }
        session->own = first;
    }
}

/* ---- searches -------------------------------------------------------------------------------- */

static void
search_refuse(const reception *r, const trpi_search *ended)
{
    client_refuse(r, &ended->node, ended->client, ended->client_number, TRP_ENOENT,
                  ended->kind == TRPI_CLIENT_TOPIC ? "no topic of that name is open to clients"
                                                   : "no service of that name is registered");
}

static void
search_begin(struct receptionist_state *s, const trpi_session *session,
             const trpi_client_frame *opens)
{
    trpi_node_id *nodes = NULL;
    trpi_search *new = NULL;
    if (trpi_search_begin(&s->searches, &session->node, session->client, opens,
                          now_ms(s->r) + SEARCH_MS, &new) != TRP_OK) {
        client_refuse(s->r, &session->node, session->client, opens->number, TRP_ELIMIT,
                      "too many services are being looked for: asked again soon");
        return;
    }
    trpi_client_frame frame = { .word = TRPI_RECEPTIONIST_FIND,
                                .number = new->number,
                                .kind = new->kind };
    (void)snprintf(frame.name, sizeof frame.name, "%s", new->name);
    uint32_t count = members_read(s, &nodes);
    for (uint32_t i = 0; i < count; i++) {
        if (!trpi_node_id_equal(&nodes[i], &s->r->self)) {
            new->answers_left++;
            frame_send(s->r, &nodes[i], &frame);
        }
    }
    trpi_free(nodes);
    if (new->answers_left == 0) {
        search_refuse(s->r, new);
        trpi_search_end(&s->searches, new);
    }
}

static void
search_answered(struct receptionist_state *s, trp_ctx *ctx, const reception_note *note)
{
    trpi_search *found = trpi_search_find(&s->searches, note->frame.number);
    if (found == NULL) {
        return; /* found already, or given up */
    }
    trpi_session *session = trpi_session_find(&s->sessions, &found->node, found->client);
    trp_ref ref = { 0, note->frame.slot, note->frame.generation, 0 };
    if (note->frame.word == TRPI_RECEPTIONIST_FOUND && session != NULL &&
        trpi_node_meet(s->r->system, &note->from, &ref.node) == TRP_OK) {
        if (doors_find(session, found->client_number) == NULL) {
            doors_open(s, ctx, session, found->client_number, found->kind, found->name, ref);
        }
        trpi_search_end(&s->searches, found);
    } else if (--found->answers_left == 0 || session == NULL) {
        if (session != NULL) {
            search_refuse(s->r, found);
        }
        trpi_search_end(&s->searches, found);
    }
}

static void
find_answer(struct receptionist_state *s, const reception_note *note)
{
    trp_ref ref = TRP_REF_NONE;
    bool is = reception_find(s->r, note->frame.kind, note->frame.name, &ref);
    const trpi_client_frame frame = { .word =
                                          is ? TRPI_RECEPTIONIST_FOUND : TRPI_RECEPTIONIST_ABSENT,
                                      .number = note->frame.number,
                                      .slot = ref.slot,
                                      .generation = ref.generation };
    frame_send(s->r, &note->from, &frame);
}

/* ---- frames of clients ----------------------------------------------------------------------- */

static uint32_t
doors_count(const trpi_session *session)
{
    uint32_t count = 0;
    for (const doors *d = session->own; d != NULL; d = d->next) {
        count++;
    }
    return count;
}

static trp_err
may_open(const reception *r, const trpi_session *session, const trpi_client_frame *frame,
         const char *certificate, const char **ret_why)
{
    /* of ALL as of a service */
    uint32_t kind = frame->kind == TRPI_CLIENT_TOPIC ? TRPI_CLIENT_TOPIC : TRPI_CLIENT_SERVICE;
    if (frame->number == 0 || frame->name[0] == '\0') {
        *ret_why = "the service has no name";
        return TRP_EINVAL;
    }
    if (frame->kind > TRPI_CLIENT_TOPIC) {
        *ret_why = "this version of the receptionist does not know what the client asks for";
        return TRP_EUNSUPPORTED;
    }
    if (!reception_permits(r, kind, frame->name, certificate)) {
        *ret_why = "cluster.client.receptionist.permissions does not permit it to your certificate";
        return TRP_EPERM;
    }
    if (doors_count(session) >= TRPI_CLIENT_DOORS_MAX) {
        *ret_why = "256 services are open, which is as many as a client may have";
        return TRP_ELIMIT;
    }
    return TRP_OK;
}

static void
open_service(struct receptionist_state *s, trp_ctx *ctx, trpi_session *session,
             const trpi_client_frame *frame)
{
    char certificate[66] = "";
    const char *why = "";
    trp_ref ref = TRP_REF_NONE;
    const doors *d = doors_find(session, frame->number);
    (void)trpi_remote_certificate_name(s->r->remote, &session->node.address, certificate,
                                       sizeof certificate);
    if (d != NULL) {
        opened_send(s->r, session, d); /* the answer was lost */
        return;
    }
    trp_err err = may_open(s->r, session, frame, certificate, &why);
    if (err != TRP_OK) {
        client_refuse(s->r, &session->node, session->client, frame->number, err, why);
    } else if (frame->kind == TRPI_CLIENT_ALL ||
               reception_find(s->r, frame->kind, frame->name, &ref)) {
        doors_open(s, ctx, session, frame->number, frame->kind, frame->name, ref);
    } else {
        search_begin(s, session, frame);
    }
}

static void
asker_ended(trp_ctx *ctx, const trpi_session *session, const trpi_client_frame *frame)
{
    const client_asker asker = { frame->slot, frame->generation };
    for (const doors *d = session->own; d != NULL; d = d->next) {
        trp_tell(ctx, d->tells, &client_asker_type, &asker, sizeof asker);
    }
}

static void
service_close(const reception *r, trp_ctx *ctx, trpi_session *session, uint64_t number)
{
    doors *first = session->own, **at = &first;
    while (*at != NULL && (*at)->number != number) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        doors *d = *at;
        *at = d->next;
        session->own = first;
        doors_close(r, ctx, d);
    }
}

static void
client_note(struct receptionist_state *s, trp_ctx *ctx, const reception_note *note)
{
    const trpi_client_frame *frame = &note->frame;
    trpi_session *session = trpi_session_find(&s->sessions, &note->from, frame->client);
    trpi_client_frame answer = { .word = TRPI_RECEPTIONIST_PONG, .client = frame->client };
    if (frame->word == TRPI_CLIENT_HELLO) {
        client_hello(s, ctx, note);
        return;
    }
    if (session == NULL) {
        answer.word = TRPI_RECEPTIONIST_STRANGER; /* receptionist-R1 */
        if (frame->word != TRPI_CLIENT_BYE) {
            frame_send(s->r, &note->from, &answer);
        }
        return;
    }
    session->heard_ms = now_ms(s->r);
    switch (frame->word) {
    case TRPI_CLIENT_PING:
        frame_send(s->r, &note->from, &answer);
        break;
    case TRPI_CLIENT_OPEN:
        open_service(s, ctx, session, frame);
        break;
    case TRPI_CLIENT_CLOSE:
        service_close(s->r, ctx, session, frame->number);
        break;
    case TRPI_CLIENT_ENDED:
        asker_ended(ctx, session, frame);
        break;
    case TRPI_CLIENT_BYE:
        trpi_session_remove(&s->sessions, session);
        session_end(s->r, ctx, session, "it said goodbye");
        break;
    default:
        break; /* of a later version */
    }
}

/* ---- the actor ------------------------------------------------------------------------------- */

static void
leave_look(struct receptionist_state *s)
{
    if (s->leave_task != 0 &&
        (s->sessions.count == 0 || now_ms(s->r) >= s->leave_until_ms)) { /* receptionist-R3 */
        trp_shutdown_done(s->r->system, s->leave_task, TRP_OK);
        s->leave_task = 0;
    }
}

static void
clients_move(struct receptionist_state *s, uint64_t task)
{
    s->leave_task = task;
    s->leave_until_ms = now_ms(s->r) + LEAVE_MS;
    for (const trpi_session *session = s->sessions.first; session != NULL;
         session = session->next) {
        contacts_send(s, session, TRPI_RECEPTIONIST_MOVE);
    }
}

static void
sessions_tick(struct receptionist_state *s, trp_ctx *ctx)
{
    uint64_t now = now_ms(s->r);
    trpi_session *session;
    while ((session = trpi_session_expired(&s->sessions, now)) != NULL) {
        session_end(s->r, ctx, session, "it has said nothing for silence-timeout");
    }
    trpi_search *old;
    while ((old = trpi_search_expired(&s->searches, now)) != NULL) {
        search_refuse(s->r, old);
        trpi_search_end(&s->searches, old);
    }
}

static trp_err
receptionist_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct receptionist_state *s = state;
    if (trp_msg_is(msg, &reception_note_type)) {
        const reception_note *note = trp_msg_payload(msg);
        if (note->is_client != 0) {
            client_note(s, ctx, note);
        } else if (note->frame.word == TRPI_RECEPTIONIST_FIND) {
            find_answer(s, note);
        } else if (note->frame.word == TRPI_RECEPTIONIST_FOUND ||
                   note->frame.word == TRPI_RECEPTIONIST_ABSENT) {
            search_answered(s, ctx, note);
        }
    } else if (trp_msg_is(msg, &reception_tick_type)) {
        sessions_tick(s, ctx);
    } else if (trp_msg_is(msg, &reception_change_type)) {
        const reception_change *change = trp_msg_payload(msg);
        if (change->gone != 0) {
            service_gone(s, ctx, change->ref, change);
        } else {
            trp_err watched = trp_watch(ctx, change->ref);
            (void)watched; /* no memory: its doors watch it, too */
        }
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *ended = trp_msg_payload(msg);
        reception_forget(s->r, ended->ref);
        service_gone(s, ctx, ended->ref, NULL);
    } else if (trp_msg_is(msg, &trp_subscribe_ack_type)) {
        const trp_subscribe_ack *ack = trp_msg_payload(msg);
        if (ack->err != TRP_OK) {
            trpi_log(s->r->system, TRP_LOG_WARNING, "client",
                     "a service is reached by its name, but not among all of that name: %s",
                     trp_strerror((trp_err)ack->err));
        }
    } else if (trp_msg_is(msg, &trp_unsubscribe_ack_type)) {
        return TRP_OK;
    } else if (trp_msg_is(msg, &reception_leave_type)) {
        uint64_t task;
        memcpy(&task, trp_msg_payload(msg), sizeof task);
        clients_move(s, task);
    }
    leave_look(s);
    return TRP_OK;
}

static trp_err
receptionist_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct receptionist_state *s = state;
    memcpy(&s->r, trp_msg_payload(args), sizeof s->r);
    s->sessions.max = s->r->options.clients_max;
    s->sessions.silence_ms = s->r->options.silence_ms;
    return trp_timer_repeat(ctx, TICK_KEY, TICK_MS, TICK_MS, &reception_tick_type, NULL, 0);
}

static void
receptionist_stopped(trp_ctx *ctx, void *state)
{
    struct receptionist_state *s = state;
    trpi_session *session;
    while ((session = trpi_session_any(&s->sessions)) != NULL) {
        session_end(s->r, ctx, session, "the receptionist stops");
    }
    while (s->searches.first != NULL) {
        trpi_search_end(&s->searches, s->searches.first);
    }
}

const trp_behaviour receptionist_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "receptionist",
    .version = 1,
    .state_bytes = sizeof(struct receptionist_state),
    .receive = receptionist_receive,
    .pre_start = receptionist_start,
    .post_stop = receptionist_stopped,
};
