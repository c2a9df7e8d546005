/* golden_test.c - the bytes of the gossip and heartbeat channels are those of the golden file of
 * wire version 1, and every frame of that file is still understood.
 *
 * TROUPE_GOLDEN_WRITE=1 writes the file anew: only together with another wire version. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster/gossip_codec.h"
#include "cluster/heartbeat.h"
#include "tests/unit/cluster/mesh.h"

#define IDENTS 3
#define FILE_BYTES_MAX 16384

static trpi_ident *idents[IDENTS];

static void
hex_line(FILE *file, const char *name, const uint8_t *bytes, size_t count)
{
    fprintf(file, "%s ", name);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%02x", bytes[i]);
    }
    fprintf(file, "\n");
}

/* Three members; the first holds the third unreachable; somebody was removed before. */
static trpi_gossip *
view_make(void)
{
    trpi_gossip *g = trpi_gossip_new();
    UNIT_REQUIRE(g != NULL);
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_node_id id = mesh_id(i, 0x1122334455667700u + i);
        const char *roles[2] = { "backend", i % 2 == 0 ? "even" : "odd" };
        UNIT_REQUIRE(trpi_ident_new(&id, roles, 2, "1.2.3", &idents[i]) == TRP_OK);
        uint32_t status = i == 0 ? TRP_MEMBER_UP : i == 1 ? TRP_MEMBER_LEAVING : TRP_MEMBER_JOINING;
        UNIT_EQUAL(trpi_gossip_add(g, idents[i], status, i < 2 ? i + 1 : 0), TRP_OK);
    }
    trpi_tombstone removed = { 0x0102030405060708u, 1700000000123, TRP_MEMBER_DOWN, 0 };
    UNIT_EQUAL(trpi_gossip_add_row(g, idents[0]->key, idents[2]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_version(g, idents[0]->key, 7), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_clock(g, idents[0]->key, 300), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_clock(g, idents[1]->key, 2), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_tombstone(g, removed), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    return g;
}

static void
frame_line(FILE *file, const char *name, const trpi_frame *frame, const trpi_seen *seen)
{
    trpi_buffer out = { 0 };
    trpi_frame back;
    UNIT_EQUAL(trpi_frame_encode(frame, seen, &out), TRP_OK);
    hex_line(file, name, out.data, out.count);
    UNIT_REQUIRE(trpi_frame_decode(out.data, out.count, &idents[0]->id, NULL, NULL, &back) ==
                 TRP_OK);
    UNIT_EQUAL(back.kind, frame->kind);
    trpi_frame_fini(&back);
    trpi_buffer_fini(&out);
}

static void
joining_lines(FILE *file)
{
    trpi_frame ask = { .kind = TRPI_FRAME_INIT_JOIN, .system = "sim" };
    trpi_frame ack = { .kind = TRPI_FRAME_INIT_JOIN_ACK, .to_uid = 12, .ticket = 100000 };
    trpi_frame nack = { .kind = TRPI_FRAME_INIT_JOIN_NACK,
                        .to_uid = 12,
                        .code = TRPI_NACK_REMOVED,
                        .reason = "this incarnation was removed" };
    trpi_frame join = {
        .kind = TRPI_FRAME_JOIN, .to_uid = 12, .ticket = 100000, .ident = idents[0]
    };
    frame_line(file, "init-join", &ask, NULL);
    frame_line(file, "init-join-ack", &ack, NULL);
    frame_line(file, "init-join-nack", &nack, NULL);
    frame_line(file, "join", &join, NULL);
}

static void
gossip_lines(FILE *file, trpi_gossip *g)
{
    trpi_seen seen;
    UNIT_REQUIRE(trpi_seen_init(&seen, g->members_count) == TRP_OK);
    trpi_seen_set(&seen, 0);
    trpi_seen_set(&seen, 2);
    trpi_frame welcome = { .kind = TRPI_FRAME_WELCOME, .to_uid = 12, .ttl = 4, .gossip = g };
    trpi_frame envelope = { .kind = TRPI_FRAME_ENVELOPE, .to_uid = 12, .ttl = 3, .gossip = g };
    trpi_frame digest = {
        .kind = TRPI_FRAME_DIGEST, .to_uid = 12, .ttl = 4, .digest = g->digest
    };
    trpi_frame version = { .kind = TRPI_FRAME_VERSION,
                           .to_uid = 12,
                           .ttl = 3,
                           .digest = g->digest,
                           .clock = g->clock,
                           .clock_count = g->clock_count };
    frame_line(file, "welcome", &welcome, &seen);
    frame_line(file, "digest", &digest, &seen);
    frame_line(file, "version", &version, NULL);
    trpi_seen_set(&seen, 1);
    frame_line(file, "envelope-seen-by-all", &envelope, &seen);
    trpi_seen_fini(&seen);
}

static void
leaving_lines(FILE *file)
{
    trpi_frame confirmed = { .kind = TRPI_FRAME_EXITING_CONFIRMED, .to_uid = 12 };
    trpi_frame gone = { .kind = TRPI_FRAME_GONE, .to_uid = 12, .code = TRP_MEMBER_EXITING };
    trpi_frame stranger = { .kind = TRPI_FRAME_STRANGER, .to_uid = 12 };
    frame_line(file, "exiting-confirmed", &confirmed, NULL);
    frame_line(file, "gone", &gone, NULL);
    frame_line(file, "stranger", &stranger, NULL);
}

static void
heartbeat_lines(FILE *file, trpi_gossip *g)
{
    trpi_heartbeat *heartbeat = NULL;
    const trpi_ident *const *targets = NULL;
    uint8_t request[TRPI_HEARTBEAT_BYTES];
    uint8_t answer[TRPI_HEARTBEAT_BYTES];
    UNIT_REQUIRE(trpi_heartbeat_new(idents[0], NULL, &heartbeat) == TRP_OK);
    UNIT_EQUAL(trpi_heartbeat_members(heartbeat, 0x0102030405u, g), TRP_OK);
    trpi_heartbeat_tick(heartbeat, 0x0102030405u);
    UNIT_EQUAL(trpi_heartbeat_targets(heartbeat, &targets, request), 2);
    UNIT_TRUE(trpi_heartbeat_reply(request, sizeof request, answer));
    hex_line(file, "heartbeat-request", request, sizeof request);
    hex_line(file, "heartbeat-answer", answer, sizeof answer);
    trpi_heartbeat_free(heartbeat);
}

static void
golden_write(FILE *file)
{
    trpi_gossip *g = view_make();
    joining_lines(file);
    gossip_lines(file, g);
    leaving_lines(file);
    heartbeat_lines(file, g);
    trpi_gossip_unref(g);
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_ident_unref(idents[i]);
    }
}

static void
the_bytes_of_gossip_and_heartbeats_are_those_of_the_golden_file(void)
{
    static const char path[] = TESTS_SRCDIR "/tests/golden/gossip-1.txt";
    static char expected[FILE_BYTES_MAX], got[FILE_BYTES_MAX];
    if (getenv("TROUPE_GOLDEN_WRITE") != NULL) {
        FILE *file = fopen(path, "w");
        UNIT_REQUIRE(file != NULL);
        golden_write(file);
        fclose(file);
    }
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(file != NULL);
    expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
    fclose(file);
    FILE *memory = fmemopen(got, sizeof got, "w");
    UNIT_REQUIRE(memory != NULL);
    golden_write(memory);
    fclose(memory);
    UNIT_TRUE(strcmp(expected, got) == 0);
}

UNIT_BEGIN("golden")
UNIT(the_bytes_of_gossip_and_heartbeats_are_those_of_the_golden_file)
UNIT_END
