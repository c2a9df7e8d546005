/* client.c - the actor that runs a client's engine, and what programs call.
 *
 * Shape.   transport thread --frame (channel 10)--> note --> the client's actor --> engine
 *          events of associations, a timer ---------------------^        |
 *          frames (channel 9), doors to the stubs, events <--------------'
 * Must hold.
 *   client-K1  A stub has doors only of the present contact; with it they are taken away.
 *   client-K2  A service that was refused is asked for again each OPEN_AGAIN_MS, while there is a
 *       contact.
 *   client-K3  A client with a contact and open services has a turn when it pings, and a beat.
 * Limits.  TRP_CLIENT_CONTACTS_MAX, TRP_CLIENT_SERVICES_MAX, buffer_msgs_max.
 * Threads. lock guards the list of services; the engine belongs to the actor.
 * Tests.   tests/unit/client/client_test.c
 * Sources. CONTRIB-22 to -29, -49
 */
#include "remote/client/client.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <troupe/remoting.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "remote/client/options.h"
#include "remote/client/stub.h"

/* A beat, which needs no memory once it runs, and between two of them a tick when one is due. */
enum {
    BEAT_KEY = 1,
    TICK_KEY = 2,
    BEAT_MS = 1000,
    TICK_MS = 50,
    OPEN_AGAIN_MS = 1000,
    STOP_MS = 5000
};

#define LOCAL_TYPE(text, bytes, tag, flags)                                                        \
    {                                                                                              \
        "troupe-client." text, bytes, tag, TRP_TYPE_LOCAL | (flags), NULL, 0, 0                    \
    }
trp_type trp_client_contact_type =
    LOCAL_TYPE("contact", sizeof(trp_client_contact), trp_client_contact_tag, 0);
trp_type trp_receptionist_client_type =
    LOCAL_TYPE("client", sizeof(trp_receptionist_client), trp_receptionist_client_tag, 0);
static const trp_field delivery_fields[] = {
    { "delivered", TRP_FIELD_u64, offsetof(trp_client_delivery, delivered), NULL },
    { "nodes", TRP_FIELD_u32, offsetof(trp_client_delivery, nodes), NULL },
    { "silent", TRP_FIELD_u32, offsetof(trp_client_delivery, silent), NULL },
};
trp_type trp_client_delivery_type = { "troupe-client.delivery",
                                      sizeof(trp_client_delivery),
                                      trp_client_delivery_tag,
                                      0,
                                      delivery_fields,
                                      sizeof delivery_fields / sizeof delivery_fields[0],
                                      0 };
trp_type trp_client_reach_type =
    LOCAL_TYPE("reach", sizeof(trp_client_reach), trp_client_reach_tag, 0);
trp_type client_note_type = LOCAL_TYPE("note", 0, 3, TRP_TYPE_VARIABLE);
trp_type client_tick_type = LOCAL_TYPE("tick", 0, 4, 0);
trp_type client_doors_type = LOCAL_TYPE("doors", sizeof(client_doors), 5, 0);
trp_type client_ended_type = LOCAL_TYPE("ended", sizeof(client_ended), 6, 0);
trp_type client_wanted_type = LOCAL_TYPE("wanted", sizeof(uint64_t), 7, 0);
static trp_type *const client_types[] = { &trp_client_contact_type, &trp_receptionist_client_type,
                                          &client_note_type,        &client_tick_type,
                                          &client_doors_type,       &client_ended_type,
                                          &client_wanted_type,      &trp_client_delivery_type,
                                          &trp_client_reach_type };
const trp_protocol trp_client_protocol = { "troupe-client", client_types,
                                           sizeof client_types / sizeof client_types[0], 0 };

trp_err
trpi_client_types_register(void)
{
    return trp_protocol_register(&trp_client_protocol);
}

typedef struct client_note { /* a frame, in the actor's mailbox */
    trpi_node_id from;
    trpi_client_frame frame;
} client_note;

typedef struct opening { /* a service that a stub stands for; by number - 1 */
    bool is_open, asked;
    uint64_t asked_ms;
    int32_t told; /* what the last event said: trp_err; -1: there was none */
} opening;

struct client_state {
    struct trp_client *client;
    trpi_node_id contact; /* uid 0: none */
    bool hello_due;       /* the last one was not sent */
    uint32_t rounds;      /* without a contact, that events have told */
    uint64_t tick_at_ms;  /* of the tick that is set; 0: none */
    opening services[TRP_CLIENT_SERVICES_MAX];
};

static uint64_t
now_ms(const struct trp_client *client)
{
    return trpi_world_mono_ns(trpi_system_world(client->system)) / 1000000u;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* A lost frame is sent again. */
static trp_err
frame_send(const struct trp_client *client, const trpi_node_id *to, trpi_client_frame *frame)
{
    trpi_buffer bytes = { NULL, 0, 0 };
    frame->client = 1;
    trp_err err = trpi_client_frame_encode(frame, &bytes);
    if (err == TRP_OK) {
        err = trpi_remote_control_send(client->remote, to, TRPI_CHANNEL_CLIENT, bytes.data,
                                       bytes.count);
    }
    trpi_buffer_fini(&bytes);
    return err;
}

static trp_err
word_send(const struct trp_client *client, const trpi_address *to, uint32_t word)
{
    trpi_client_frame frame = { .word = word };
    const trpi_node_id id = { *to, 0 };
    return frame_send(client, &id, &frame);
}

static void
frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
              uint64_t arrived_ns)
{
    struct trp_client *client = arg;
    client_note note;
    (void)arrived_ns;
    memset(&note, 0, sizeof note);
    if (trpi_client_frame_decode(bytes, count, &note.frame) == TRP_OK) {
        note.from = *from;
        trp_ctx *ctx = trpi_enter(client->system);
        trpi_tell(ctx, client->actor, (trp_ref)TRP_REF_NONE, &client_note_type, &note, sizeof note);
        trpi_leave(ctx);
    }
}

/* ---- services -------------------------------------------------------------------------------- */

static client_service *
service_of(struct trp_client *client, uint64_t number)
{
    pthread_mutex_lock(&client->lock);
    client_service *service = client->services;
    while (service != NULL && service->number != number) {
        service = service->next;
    }
    pthread_mutex_unlock(&client->lock);
    return service;
}

static void
service_ask(struct client_state *s, uint64_t number)
{
    const client_service *service = service_of(s->client, number);
    opening *o = &s->services[number - 1];
    if (service == NULL || s->contact.uid == 0 || o->is_open) {
        return;
    }
    trpi_client_frame frame = { .word = TRPI_CLIENT_OPEN, .number = number };
    frame.kind = service->kind;
    (void)snprintf(frame.name, sizeof frame.name, "%s", service->name);
    o->asked = true;
    o->asked_ms = now_ms(s->client);
    (void)frame_send(s->client, &s->contact, &frame); /* lost: asked again */
}

/* Publish whether a service can be reached, when that has changed. */
static void
reach_tell(struct client_state *s, trp_ctx *ctx, const client_service *service, trp_err err,
           const char *reason)
{
    opening *o = &s->services[service->number - 1];
    trp_client_reach event;
    if (o->told == (int32_t)err) {
        return;
    }
    memset(&event, 0, sizeof event);
    event.service = service->actor;
    event.reachable = err == TRP_OK;
    event.err = o->told = (int32_t)err;
    (void)snprintf(event.reason, sizeof event.reason, "%s", reason);
    trp_publish(ctx, &trp_client_reach_type, &event, sizeof event);
}

/* err, why: why there are none. */
static void
doors_give(struct client_state *s, trp_ctx *ctx, uint64_t number, const client_doors *doors,
           trp_err err, const char *why)
{
    const client_service *service = service_of(s->client, number);
    s->services[number - 1].is_open = !trp_ref_is_none(doors->tells);
    if (service != NULL) {
        trp_tell(ctx, service->actor, &client_doors_type, doors, sizeof *doors);
        reach_tell(s, ctx, service, err, why);
    }
}

/* client-K1 */
static void
doors_take_all(struct client_state *s, trp_ctx *ctx)
{
    const client_doors none = { TRP_REF_NONE, TRP_REF_NONE };
    for (uint64_t number = 1; number <= TRP_CLIENT_SERVICES_MAX; number++) {
        if (s->services[number - 1].is_open) {
            doors_give(s, ctx, number, &none, TRP_ECONN, "there is no contact");
        }
        s->services[number - 1].asked = false;
    }
}

static void
services_ask(struct client_state *s)
{
    uint64_t now = now_ms(s->client);
    pthread_mutex_lock(&s->client->lock);
    uint32_t count = s->client->services_count;
    pthread_mutex_unlock(&s->client->lock);
    for (uint64_t number = 1; number <= count; number++) {
        const opening *o = &s->services[number - 1];
        if (!o->is_open && (!o->asked || now - o->asked_ms >= OPEN_AGAIN_MS)) { /* client-K2 */
            service_ask(s, number);
        }
    }
}

/* ---- what the engine decides ----------------------------------------------------------------- */

static void
event_publish(const struct client_state *s, trp_ctx *ctx, const trpi_address *contact, bool stopped)
{
    trp_client_contact event;
    memset(&event, 0, sizeof event);
    event.stopped = stopped;
    if (contact != NULL) {
        (void)trpi_address_format(contact, event.contact, sizeof event.contact);
        trp_system_log(s->client->system, TRP_LOG_INFO, "client", "contact established contact=%s",
                       event.contact);
    } else {
        (void)snprintf(event.reason, sizeof event.reason, "%s", s->client->engine.why);
        trp_system_log(s->client->system, TRP_LOG_WARNING, "client",
                       stopped ? "no contact in time, the client stops reason=\"%s\" "
                                 "next=\"reconnect_timeout_ms sets the time\""
                               : "contact lost reason=\"%s\" next=\"the client looks for another "
                                 "one, messages wait\"",
                       event.reason);
    }
    trp_publish(ctx, &trp_client_contact_type, &event, sizeof event);
}

/* All contacts were asked, and none has taken the client. */
static void
rounds_tell(struct client_state *s, trp_ctx *ctx)
{
    const trpi_client_engine *engine = &s->client->engine;
    trp_client_contact event;
    if (engine->rounds <= s->rounds) {
        s->rounds = engine->rounds;
        return;
    }
    memset(&event, 0, sizeof event);
    event.rounds = s->rounds = engine->rounds;
    (void)snprintf(event.reason, sizeof event.reason, "%s", engine->why);
    if (engine->rounds == 1) {
        trp_system_log(s->client->system, TRP_LOG_WARNING, "client",
                       "no contact takes this client reason=\"%s\" next=\"they are asked again, "
                       "messages wait\"",
                       event.reason);
    }
    trp_publish(ctx, &trp_client_contact_type, &event, sizeof event);
}

static void
client_stop(struct client_state *s, trp_ctx *ctx)
{
    struct trp_client *client = s->client;
    event_publish(s, ctx, NULL, true);
    pthread_mutex_lock(&client->lock);
    client->closed = true;
    pthread_mutex_unlock(&client->lock);
    for (uint64_t number = 1; number <= TRP_CLIENT_SERVICES_MAX; number++) {
        const client_service *service = service_of(client, number);
        if (service != NULL) {
            trp_stop(ctx, service->actor);
        }
    }
    trp_stop(ctx, trp_self(ctx));
}

static void
actions_do(struct client_state *s, trp_ctx *ctx)
{
    trpi_client_action action;
    while (trpi_client_next(&s->client->engine, &action)) {
        switch (action.kind) {
        case TRPI_CLIENT_DO_HELLO:
            trpi_remote_hurry(s->client->remote, &action.to);
            s->hello_due = word_send(s->client, &action.to, TRPI_CLIENT_HELLO) != TRP_OK;
            break;
        case TRPI_CLIENT_DO_PING:
            (void)word_send(s->client, &action.to, TRPI_CLIENT_PING);
            break;
        case TRPI_CLIENT_DO_BYE:
            (void)word_send(s->client, &action.to, TRPI_CLIENT_BYE);
            break;
        case TRPI_CLIENT_DO_LOST:
            doors_take_all(s, ctx);
            memset(&s->contact, 0, sizeof s->contact);
            event_publish(s, ctx, NULL, false);
            break;
        case TRPI_CLIENT_DO_SWITCH:
            doors_take_all(s, ctx);
            s->contact.address = action.to;
            event_publish(s, ctx, &action.to, false);
            break;
        case TRPI_CLIENT_DO_STOP:
            client_stop(s, ctx);
            break;
        }
    }
    rounds_tell(s, ctx);
}

/* ---- what the actor is told ------------------------------------------------------------------ */

static void
doors_opened(struct client_state *s, trp_ctx *ctx, const client_note *note)
{
    const trpi_client_frame *frame = &note->frame;
    client_doors doors = { TRP_REF_NONE, TRP_REF_NONE };
    uint32_t node = 0;
    trp_err err = TRP_ENOENT;
    const char *why = "it has ended, or was unregistered";
    if (frame->number == 0 || frame->number > TRP_CLIENT_SERVICES_MAX ||
        !trpi_node_id_equal(&note->from, &s->contact)) {
        return;
    }
    if (frame->word == TRPI_RECEPTIONIST_OPENED &&
        trpi_node_meet(s->client->system, &note->from, &node) == TRP_OK) {
        doors.tells = (trp_ref){ node, frame->slot, frame->generation, 0 };
        doors.asks = (trp_ref){ node, frame->ask_slot, frame->ask_generation, 0 };
        err = TRP_OK;
        why = "";
    } else if (frame->word == TRPI_RECEPTIONIST_REFUSED) {
        const client_service *service = service_of(s->client, frame->number);
        if (service != NULL) {
            reach_tell(s, ctx, service, frame->err != 0 ? (trp_err)frame->err : TRP_EINTERNAL,
                       frame->why);
        }
        trp_system_log(s->client->system, TRP_LOG_DEBUG, "client",
                       "service not reachable contact-says=\"%s\" next=\"asked again\"",
                       frame->why);
        return;
    }
    doors_give(s, ctx, frame->number, &doors, err, why);
    s->services[frame->number - 1].asked = false;
}

static void
note_take(struct client_state *s, trp_ctx *ctx, const client_note *note)
{
    trpi_client_engine *engine = &s->client->engine;
    const trpi_client_frame *frame = &note->frame;
    const trpi_address *from = &note->from.address;
    uint64_t now = now_ms(s->client);
    trpi_client_heard(engine, from, now);
    switch (frame->word) {
    case TRPI_RECEPTIONIST_WELCOME:
        trpi_client_welcome(engine, from, frame->contacts, frame->contacts_count, now);
        break;
    case TRPI_RECEPTIONIST_MOVE:
        trpi_client_move(engine, from, frame->contacts, frame->contacts_count, now);
        break;
    case TRPI_RECEPTIONIST_STRANGER:
        trpi_client_failed(engine, from, "the contact does not know this client any more", now);
        break;
    case TRPI_RECEPTIONIST_REFUSED:
        if (frame->number == 0) {
            trpi_client_failed(engine, from, frame->why, now);
            break;
        }
        doors_opened(s, ctx, note);
        break;
    case TRPI_RECEPTIONIST_OPENED:
    case TRPI_RECEPTIONIST_CLOSED:
        doors_opened(s, ctx, note);
        break;
    default:
        break; /* PONG, and words of later versions */
    }
    actions_do(s, ctx);
    if (trpi_client_has_contact(engine) && trpi_address_equal(&engine->contact, from)) {
        s->contact.uid = note->from.uid;
        services_ask(s);
    }
}

/* An association has failed, or is over. */
static void
event_take(struct client_state *s, trp_ctx *ctx, const trp_msg *msg)
{
    const trp_remoting_event *event = trp_msg_payload(msg);
    trpi_address from, place;
    if (trp_msg_is(msg, &trp_associated_type) || event->remote[0] == '\0' ||
        trpi_address_parse(event->remote, &from, NULL, NULL) != TRP_OK) {
        return;
    }
    uint64_t now = now_ms(s->client);
    if (trpi_remote_is_elsewhere(s->client->remote, &from, &place)) {
        trpi_client_elsewhere(&s->client->engine, &from, &place, now);
    } else {
        trpi_client_failed(&s->client->engine, &from, event->reason, now);
    }
    actions_do(s, ctx);
}

/* When services are to be asked for again, in milliseconds. */
static uint64_t
services_due_ms(const struct client_state *s, uint64_t now)
{
    uint64_t due = UINT64_MAX;
    pthread_mutex_lock(&s->client->lock);
    uint32_t count = s->contact.uid != 0 ? s->client->services_count : 0;
    pthread_mutex_unlock(&s->client->lock);
    for (uint32_t i = 0; i < count; i++) {
        const opening *o = &s->services[i];
        uint64_t at = !o->asked ? now : o->asked_ms + OPEN_AGAIN_MS;
        if (!o->is_open && (at > now ? at - now : 0) < due) {
            due = at > now ? at - now : 0;
        }
    }
    return due;
}

/* A process with a thousand clients that have nothing to do is idle (client-K3). */
static void
tick_set(struct client_state *s, trp_ctx *ctx)
{
    uint64_t now = now_ms(s->client), services = services_due_ms(s, now);
    uint64_t due = trpi_client_due_ms(&s->client->engine, now);
    due = services < due ? services : due;
    due = due < TICK_MS || (s->hello_due && s->client->engine.trying) ? TICK_MS : due;
    if (due < BEAT_MS && (s->tick_at_ms == 0 || now + due < s->tick_at_ms) &&
        trp_timer_once(ctx, TICK_KEY, (uint32_t)due, &client_tick_type, NULL, 0) == TRP_OK) {
        s->tick_at_ms = now + due; /* without memory the beat comes later */
    }
}

static void
tick_take(struct client_state *s, trp_ctx *ctx)
{
    struct trp_client *client = s->client;
    s->tick_at_ms = 0; /* or this is a beat: it is set again, under its key */
    trpi_client_tick(&client->engine, trpi_world_random(trpi_system_world(client->system)),
                     now_ms(client));
    actions_do(s, ctx);
    if (s->hello_due && client->engine.trying) { /* the association waited for its back-off */
        s->hello_due = word_send(client, &client->engine.tried, TRPI_CLIENT_HELLO) != TRP_OK;
    }
    services_ask(s);
}

static trp_err
client_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct client_state *s = state;
    struct trp_client *client = s->client;
    uint64_t number;
    if (trp_msg_is(msg, &client_note_type)) {
        note_take(s, ctx, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &client_tick_type)) {
        tick_take(s, ctx);
    } else if (trp_msg_is(msg, &client_wanted_type)) {
        memcpy(&number, trp_msg_payload(msg), sizeof number);
        service_ask(s, number);
    } else if (trp_msg_is(msg, &client_ended_type)) {
        const client_ended *ended = trp_msg_payload(msg);
        trpi_client_frame frame = { .word = TRPI_CLIENT_ENDED,
                                    .slot = ended->slot,
                                    .generation = ended->generation };
        if (s->contact.uid != 0) {
            (void)frame_send(client, &s->contact, &frame); /* lost: the tunnel ends when idle */
        }
    } else {
        event_take(s, ctx, msg);
    }
    tick_set(s, ctx);
    return TRP_OK;
}

static trp_err
client_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct client_state *s = state;
    memcpy(&s->client, trp_msg_payload(args), sizeof s->client);
    for (size_t i = 0; i < TRP_CLIENT_SERVICES_MAX; i++) {
        s->services[i].told = -1;
    }
    trp_err err = trp_timer_repeat(ctx, BEAT_KEY, BEAT_MS, BEAT_MS, &client_tick_type, NULL, 0);
    err = err == TRP_OK ? trp_subscribe(ctx, &trp_association_event_type) : err;
    if (err == TRP_OK) {
        trpi_remote_control_bind(s->client->remote, TRPI_CHANNEL_RECEPTIONIST, frame_arrived,
                                 s->client);
        actions_do(s, ctx);
        tick_set(s, ctx);
    }
    return err;
}

static void
client_stopped(trp_ctx *ctx, void *state)
{
    struct client_state *s = state;
    (void)ctx;
    if (trpi_client_has_contact(&s->client->engine)) {
        (void)word_send(s->client, &s->client->engine.contact, TRPI_CLIENT_BYE);
    }
}

static const trp_behaviour client_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "client",
    .version = 1,
    .state_bytes = sizeof(struct client_state),
    .receive = client_receive,
    .pre_start = client_start,
    .post_stop = client_stopped,
};

static trp_err
actor_spawn(struct trp_client *client, const trp_behaviour *behaviour, const char *dispatcher,
            const void *arg, trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    spawn.mailbox = "unbounded";
    spawn.dispatcher = dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &arg;
    spawn.args_bytes = sizeof arg;
    return trpi_system_spawn_internal(client->system, behaviour, &spawn, ret_ref);
}

/* ---- what programs call ---------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t given, uint32_t value)
{
    return given != 0 ? given : value;
}

static void
client_free(struct trp_client *client)
{
    while (client->services != NULL) {
        client_service *service = client->services;
        client->services = service->next;
        trpi_free(service);
    }
    trpi_mutex_destroy(&client->lock);
    trpi_free(client);
}

static trp_err
client_begin(struct trp_client *client, const trp_client_options *o)
{
    const trpi_client_config config = {
        .ping_ms = or_default(o->ping_ms, TRP_CLIENT_PING_MS_DEFAULT),
        .silence_ms = or_default(o->silence_ms, TRP_CLIENT_SILENCE_MS_DEFAULT),
        .try_ms = or_default(o->try_ms, TRP_CLIENT_TRY_MS_DEFAULT),
        .refresh_ms = or_default(o->refresh_ms, TRP_CLIENT_REFRESH_MS_DEFAULT),
        .pause_min_ms = 100,
        .pause_max_ms = 5000,
        .reconnect_ms = o->reconnect_timeout_ms,
    };
    trpi_address contacts[TRP_CLIENT_CONTACTS_MAX];
    trp_err err = trpi_client_contacts_parse(client->system, o, contacts);
    if (err == TRP_OK &&
        trpi_client_begin(&client->engine, &config, contacts, (uint32_t)o->contacts_count,
                          trpi_system_self(client->system)->uid, now_ms(client)) != TRP_OK) {
        err = trpi_client_option_refuse(client->system, "options", "",
                                        "silence_ms must be more than ping_ms");
    }
    return err;
}

trp_err
trp_client_open(trp_system *system, const trp_client_options *options, trp_client **ret_client)
{
    trp_client_options own = TRP_CLIENT_OPTIONS_INIT;
    if (system == NULL || ret_client == NULL || options == NULL ||
        !TRPI_SIZED_COPY(options, &own, cookie_file) ||
        (own.cookie != NULL && own.cookie_file != NULL) ||
        (own.buffer_msgs_max > TRP_CLIENT_BUFFER_MSGS_MAX &&
         own.buffer_msgs_max != TRP_CLIENT_BUFFER_NONE)) {
        return TRP_EINVAL;
    }
    struct trp_client *client = trpi_alloc(sizeof *client);
    if (client == NULL) {
        return TRP_ENOMEM;
    }
    client->system = system;
    pthread_mutex_init(&client->lock, NULL);
    client->buffer_msgs_max = own.buffer_msgs_max == TRP_CLIENT_BUFFER_NONE
                                  ? 0
                                  : or_default(own.buffer_msgs_max, TRP_CLIENT_BUFFER_MSGS_DEFAULT);
    trp_err err = trpi_client_types_register();
    err = err == TRP_OK ? client_begin(client, &own) : err;
    err = err == TRP_OK ? trpi_client_remoting_start(system, &own, &client->remote) : err;
    err = err == TRP_OK ? actor_spawn(client, &client_behaviour, "system", client, &client->actor)
                        : err;
    if (err != TRP_OK) {
        trpi_remote_stop(client->remote);
        client_free(client);
        return err;
    }
    *ret_client = client;
    return TRP_OK;
}

/* End an actor, which may still use the client; it cannot when it has ended, or the system has. */
static void
actor_end(const struct trp_client *client, trp_ref actor)
{
    if (trp_system_graceful_stop(client->system, actor, STOP_MS) == TRP_ETIMEDOUT) {
        trp_system_stop_actor(client->system, actor);
    }
}

static void
client_retired(void *client)
{
    client_free(client);
}

void
trp_client_close(trp_client *client)
{
    if (client == NULL) {
        return;
    }
    pthread_mutex_lock(&client->lock);
    client->closed = true;
    client_service *service = client->services;
    pthread_mutex_unlock(&client->lock);
    for (; service != NULL; service = service->next) { /* the list does not grow any more */
        actor_end(client, service->actor);
    }
    actor_end(client, client->actor);
    trpi_remote_control_bind(client->remote, TRPI_CHANNEL_RECEPTIONIST, NULL, NULL);
    trpi_remote_stop(client->remote);
    trpi_system_retire(client->system, client_retired, client);
}

/* By the lock: add the service, whose actor does not exist yet. */
static trp_err
service_add(struct trp_client *client, uint32_t kind, const char *name,
            client_service **ret_service)
{
    if (client->closed) {
        return TRP_ECLOSED;
    }
    if (client->services_count >= TRP_CLIENT_SERVICES_MAX) {
        return TRP_ELIMIT;
    }
    client_service *service = trpi_alloc(sizeof *service);
    if (service == NULL) {
        return TRP_ENOMEM;
    }
    (void)snprintf(service->name, sizeof service->name, "%s", name);
    service->client = client;
    service->kind = kind;
    service->number = client->services_count + 1u;
    trp_err err = actor_spawn(client, &client_stub_behaviour, "default", service, &service->actor);
    if (err != TRP_OK) {
        trpi_free(service);
        return err;
    }
    service->next = client->services;
    client->services = service;
    client->services_count++;
    *ret_service = service;
    return TRP_OK;
}

/* Find or make the actor that stands for it. */
static trp_err
service_get(trp_client *client, uint32_t kind, const char *name, trp_ref *ret_service)
{
    trp_err err = TRP_OK;
    pthread_mutex_lock(&client->lock);
    client_service *service = client->services;
    while (service != NULL && (service->kind != kind || strcmp(service->name, name) != 0)) {
        service = service->next;
    }
    if (service == NULL) {
        err = service_add(client, kind, name, &service);
    }
    if (err == TRP_OK) {
        *ret_service = service->actor;
    }
    pthread_mutex_unlock(&client->lock);
    return err;
}

static bool
name_is_good(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) <= TRP_CLIENT_SERVICE_NAME_BYTES_MAX;
}

trp_err
trp_client_service(trp_client *client, const char *name, trp_ref *ret_service)
{
    return client == NULL || !name_is_good(name) || ret_service == NULL
               ? TRP_EINVAL
               : service_get(client, TRPI_CLIENT_SERVICE, name, ret_service);
}

trp_err
trp_client_service_all(trp_client *client, const char *name, trp_ref *ret_services)
{
    return client == NULL || !name_is_good(name) || ret_services == NULL
               ? TRP_EINVAL
               : service_get(client, TRPI_CLIENT_ALL, name, ret_services);
}

trp_err
trp_client_topic(trp_client *client, const char *topic, trp_ref *ret_topic)
{
    if (client == NULL || topic == NULL || topic[0] == '\0' || ret_topic == NULL) {
        return TRP_EINVAL;
    }
    return strnlen(topic, TRP_TOPIC_BYTES_MAX + 1) > TRP_TOPIC_BYTES_MAX
               ? TRP_ELIMIT
               : service_get(client, TRPI_CLIENT_TOPIC, topic, ret_topic);
}
