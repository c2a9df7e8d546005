/* Envelopes between mediators that no mediator makes: each is a dead letter or is delivered, and
 * the mediator goes on. */
#include "base/wire.h"
#include "pattern/pattern.h"
#include "tests/unit/cluster/mediators.h"
#include "tests/unit/draw.h"

enum {
    HEAD_BYTES = 48, /* of the mediators' own bytes: mediator_deliver.c */
    PICK_BYTES = 5,
    KIND_PUBLISH = 1,
    KIND_SEND = 2,
    FLAG_ALL = 1,
    ENVELOPES = 4000
};

static const trp_ref nobody = TRP_REF_NONE;

typedef struct scene {
    trp_system *system;
    trp_mediator *mediator;
    trp_ref actor;
    trp_inbox *in, *in_group;
} scene;

static scene
scene_begin(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    scene s = { NULL };
    options.workers = 1;
    UNIT_REQUIRE(trp_system_new("envelopes", &options, &s.system) == TRP_OK);
    s.mediator = mediator_of(s.system);
    UNIT_REQUIRE(trp_system_resolve(s.system, "/system/pubsub", TAKE_MS, &s.actor) == TRP_OK);
    s.in = large_inbox_of(s.system, 10 * ENVELOPES);
    s.in_group = large_inbox_of(s.system, 10 * ENVELOPES);
    subscribe(s.mediator, "t", NULL, s.in, TRP_SUBSCRIBE_TELLS_MISSED);
    subscribe(s.mediator, "t", "g", s.in_group, 0);
    return s;
}

static void
scene_end(scene *s)
{
    trp_inbox_close(s->in);
    trp_inbox_close(s->in_group);
    UNIT_EQUAL(trp_system_stop(s->system, TAKE_MS), TRP_OK);
    trp_system_free(s->system);
}

/* Tell the mediator an envelope with this head; text NULL: what it carried cannot be read. */
static void
envelope_tell(const scene *s, const uint8_t *head, uint32_t head_bytes, const char *text)
{
    uint8_t bytes[512] = { 0 };
    size_t text_bytes = text == NULL ? 0 : strlen(text);
    trpi_topic_envelope envelope = { .mediator = s->actor,
                                     .type = text == NULL ? 0 : trp_string_type.number,
                                     .head_bytes = head_bytes,
                                     .lost = text == NULL };
    size_t skip = trpi_topic_envelope_bytes(head_bytes);
    UNIT_REQUIRE(skip + text_bytes <= sizeof bytes);
    memcpy(bytes, &envelope, sizeof envelope);
    memcpy(bytes + sizeof envelope, head, head_bytes);
    if (text_bytes > 0) {
        memcpy(bytes + skip, text, text_bytes);
    }
    trp_system_tell(s->system, s->actor, &trpi_topic_envelope_type, bytes, skip + text_bytes);
}

/* Every envelope before it has been handled. */
static void
barrier(const scene *s)
{
    trp_publish_report report;
    UNIT_EQUAL(publish_counted(s->mediator, "nobody is there", "", 0, 0, &report), 0);
}

static uint64_t
losses(const scene *s)
{
    return dead_letters(s->system, TRP_DEAD_NOT_ENCODABLE) +
           dead_letters(s->system, TRP_DEAD_NO_SUBSCRIBER);
}

/* dead-letter-D1 */
static void
what_cannot_be_read_is_one_dead_letter(void)
{
    scene s = scene_begin();
    uint8_t head[HEAD_BYTES + 1] = { KIND_PUBLISH, FLAG_ALL };
    trpi_put_u16(head + 2, 1);
    head[HEAD_BYTES] = 'x'; /* nobody subscribes to it */
    envelope_tell(&s, head, sizeof head, NULL);
    barrier(&s); /* a dead letter, too */
    UNIT_EQUAL(losses(&s), 2);
    envelope_tell(&s, head, sizeof head, "readable");
    barrier(&s);
    UNIT_EQUAL(losses(&s), 4);
    envelope_tell(&s, head, HEAD_BYTES, "its name is missing");
    barrier(&s);
    UNIT_EQUAL(losses(&s), 6);
    head[0] = 9; /* of tomorrow */
    envelope_tell(&s, head, sizeof head, "readable");
    barrier(&s);
    UNIT_EQUAL(losses(&s), 8);
    is_empty(s.in);
    scene_end(&s);
}

/* A subscriber that asks is told of it. */
static void
what_cannot_be_read_is_missed_by_who_subscribes(void)
{
    scene s = scene_begin();
    uint8_t head[HEAD_BYTES + 1] = { KIND_PUBLISH, FLAG_ALL };
    trpi_put_u16(head + 2, 1);
    head[HEAD_BYTES] = 't';
    envelope_tell(&s, head, sizeof head, NULL);
    trp_msg *msg = take(s.in, &trp_missed_type, NULL);
    UNIT_EQUAL(((const trp_missed *)trp_msg_payload(msg))->count, 1);
    UNIT_EQUAL(((const trp_missed *)trp_msg_payload(msg))->refused, 0);
    trp_msg_free(msg);
    barrier(&s);
    UNIT_EQUAL(losses(&s), 2);
    is_empty(s.in);
    scene_end(&s);
}

/* Fields that are likely, with bytes that are not. */
static uint32_t
head_draw(unit_draw *draw, uint8_t *head, uint32_t room)
{
    uint32_t bytes = unit_drawn(draw, room + 1);
    for (uint32_t i = 0; i < bytes; i++) {
        head[i] = (uint8_t)(unit_drawn(draw, 3) == 0 ? unit_drawn(draw, 256) : 0);
    }
    if (bytes > HEAD_BYTES && unit_drawn(draw, 4) != 0) {
        uint32_t behind = bytes - HEAD_BYTES;
        head[0] = (uint8_t)unit_drawn(draw, 5);
        head[1] = (uint8_t)unit_drawn(draw, 3);
        trpi_put_u16(head + 2, (uint16_t)(unit_drawn(draw, 2) == 0 ? 1 : unit_drawn(draw, behind)));
        trpi_put_u32(head + 4, unit_drawn(draw, 5) == 0 ? UINT32_MAX : unit_drawn(draw, 4));
        head[HEAD_BYTES] = 't';
        if (behind > 1 + PICK_BYTES) { /* one of the group, and whatever follows */
            head[HEAD_BYTES + 5] = 1;
            head[HEAD_BYTES + 6] = 'g';
        }
    }
    return bytes;
}

static void
whatever_comes_the_mediator_goes_on(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/cluster/cluster_tests", "pubsub_envelope_test");
    scene s = scene_begin();
    uint8_t head[HEAD_BYTES + 60];
    uint64_t came = 0;
    trp_msg *msg;
    for (uint32_t i = 0; i < ENVELOPES; i++) {
        uint32_t bytes = head_draw(&draw, head, sizeof head);
        envelope_tell(&s, head, bytes, unit_drawn(&draw, 3) == 0 ? NULL : "text");
    }
    barrier(&s);
    while (trp_inbox_receive(s.in_group, 0, &msg, NULL) == TRP_OK) {
        came += trp_msg_is(msg, &trp_string_type) != 0;
        trp_msg_free(msg);
    }
    UNIT_TRUE(came > 0); /* some are as they should be */
    UNIT_TRUE(losses(&s) > 0);
    publish(s.mediator, nobody, "t", "alive");
    take_text(s.in_group, "alive", nobody);
    scene_end(&s);
}

UNIT_BEGIN("pubsub_envelope")
UNIT(what_cannot_be_read_is_one_dead_letter)
UNIT(what_cannot_be_read_is_missed_by_who_subscribes)
UNIT(whatever_comes_the_mediator_goes_on)
UNIT_END
