/* codec_trace_test.c - trace sections of frames. */
#include "remote/wire/codec.h"
#include "tests/unit/golden.h"
#include "tests/unit/remote/frames.h"

static const trpi_wire_trace some_trace = { { 0x4bf92f3577b34da6u, 0xa3ce929d0e0e4736u,
                                              0x00f067aa0ba902b7u, 3, 0 },
                                            0x1122334455667788u,
                                            1763640181204000000u };

/* Frames that minor version 5 added. A sender of a third node has its section behind the trace's.
 */
static void
golden_write_minor_5(FILE *file)
{
    for (uint32_t node = 1; node <= 3; node += 2) {
        trpi_buffer out = { 0 };
        trpi_message message = message_of(&trp_string_type, "hello", 5);
        trpi_node_map map = map_of(1, 2);
        message.sender.node = node;
        message.traced = true;
        message.trace = some_trace;
        UNIT_EQUAL(trpi_message_encode(&out, &trpi_serializer_text, &map, 4096, &message), TRP_OK);
        hex_line(file, node == 1 ? "user-traced" : "user-traced-third", &out);
        trpi_buffer_fini(&out);
    }
}

static void
the_bytes_of_minor_version_5_are_those_of_its_golden_file(void)
{
    nodes_make();
    (void)unit_golden("wire-1.5.txt", golden_write_minor_5);
}

/* codec-C1: also at each length that a frame may be cut to */
static void
a_trace_section_comes_back_and_a_damaged_one_is_refused(void)
{
    trpi_buffer frames = { 0 };
    trpi_node_map out = map_of(1, 2), in = map_of(2, 1);
    trpi_message message = message_of(&trp_string_type, "hello", 5), back;
    trpi_frame frame;
    nodes_make();
    message.traced = true;
    message.trace = some_trace;
    UNIT_EQUAL(trpi_message_encode(&frames, &trpi_serializer_text, &out, 4096, &message), TRP_OK);
    trpi_frame_header_decode(frames.data, &frame);
    UNIT_EQUAL(trpi_message_decode(&frame, &in, &back), TRP_OK);
    UNIT_TRUE(back.traced && memcmp(&back.trace, &some_trace, sizeof some_trace) == 0);
    UNIT_EQUAL(back.payload_bytes, 5);
    for (uint32_t bytes = 0; bytes < TRPI_USER_FIXED_BYTES + TRPI_TRACE_SECTION_BYTES; bytes++) {
        frame.bytes = bytes;
        UNIT_EQUAL(trpi_message_decode(&frame, &in, &back), TRP_EDATA);
    }
    trpi_frame_header_decode(frames.data, &frame);
    frame.kind = TRPI_FRAME_MANY; /* has none */
    UNIT_EQUAL(trpi_message_decode(&frame, &in, &back), TRP_EDATA);
    trpi_frame_header_decode(frames.data, &frame);
    memset(frames.data + frames.count - TRPI_TRACE_SECTION_BYTES, 0, 16); /* no id */
    UNIT_EQUAL(trpi_message_decode(&frame, &in, &back), TRP_EDATA);
    trpi_buffer_fini(&frames);
}

UNIT_BEGIN("codec_trace")
UNIT(the_bytes_of_minor_version_5_are_those_of_its_golden_file)
UNIT(a_trace_section_comes_back_and_a_damaged_one_is_refused)
UNIT_END
