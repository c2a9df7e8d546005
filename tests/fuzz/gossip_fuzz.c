/* gossip_fuzz.c - any bytes as a gossip frame: refused, or a view that merges, encodes and reads
 * back. A valid frame is also given to an engine that is a member, as if a member had sent it. */
#include "base/assert.h"
#include "cluster/engine/gossip_codec.h"
#include "cluster/engine/membership.h"
#include "tests/fuzz/node_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_view(const trpi_frame *frame)
{
    trpi_gossip *merged = NULL;
    trpi_gossip *back = NULL;
    trpi_assert(trpi_gossip_encode(frame->gossip) == TRP_OK);
    trpi_assert(trpi_gossip_decode(frame->gossip->encoded, frame->gossip->encoded_bytes, NULL,
                                   &back) == TRP_OK);
    trpi_assert(back->digest == frame->gossip->digest);
    trpi_assert(trpi_gossip_merge(frame->gossip, back, &merged) == TRP_OK);
    trpi_assert(merged->digest == back->digest);
    trpi_gossip_unref(merged);
    trpi_gossip_unref(back);
}

/* An engine that has made a cluster, with the sender as a second member. */
static void
try_engine(const uint8_t *data, size_t size)
{
    trpi_node_id self = node_id("sim", 2);
    trpi_node_id other = node_id("sim", 3);
    trpi_member_core *core = NULL;
    trpi_member_options options = { .seed = 1 };
    trpi_assert(trpi_member_new(&self, NULL, 0, "1", &options, &core) == TRP_OK);
    trpi_member_event join = { .kind = TRPI_MEMBER_JOIN,
                               .addresses = &self.address,
                               .addresses_count = 1 };
    trpi_assert(trpi_member_step(core, (trpi_member_now){ 1000, 1000 }, &join) == TRP_OK);
    trpi_ident *ident = NULL;
    trpi_assert(trpi_ident_new(&other, NULL, 0, "1", &ident) == TRP_OK);
    trpi_frame hello = { .kind = TRPI_FRAME_JOIN, .ticket = 1001, .ident = ident };
    trpi_buffer bytes = { 0 };
    trpi_assert(trpi_frame_encode(&hello, NULL, &bytes) == TRP_OK);
    trpi_member_event frame = {
        .kind = TRPI_MEMBER_FRAME, .from = other, .bytes = bytes.data, .count = bytes.count
    };
    trpi_assert(trpi_member_step(core, (trpi_member_now){ 1010, 1010 }, &frame) == TRP_OK);
    trpi_assert(trpi_member_view(core)->members_count == 2);
    frame.bytes = data;
    frame.count = size;
    for (uint64_t now = 1020; now < 1050; now += 10) {
        trpi_assert(trpi_member_step(core, (trpi_member_now){ now, (int64_t)now }, &frame) ==
                    TRP_OK);
    }
    trpi_buffer_fini(&bytes);
    trpi_ident_unref(ident);
    trpi_member_free(core);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_node_id from = node_id("sim", 1);
    trpi_frame frame;
    if (trpi_frame_decode(data, size, &from, NULL, NULL, &frame) == TRP_OK) {
        if (frame.gossip != NULL) {
            try_view(&frame);
        }
        trpi_frame_fini(&frame);
        try_engine(data, size);
    }
    return 0;
}
