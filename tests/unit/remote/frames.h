/* frames.h - nodes, messages and golden lines for tests of the codec. */
#ifndef TESTS_UNIT_REMOTE_FRAMES_H
#define TESTS_UNIT_REMOTE_FRAMES_H

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "remote/wire/codec.h"
#include "tests/unit/unit.h"

/* Nodes of a sender: 1 self, 2 receiver, 3.. others. The receiver sees 1 self, 2 the sender. */
static trpi_node_id nodes[64];
static uint32_t nodes_count = 3;

static inline const trpi_node_id *
node_get(void *arg, uint32_t node)
{
    (void)arg;
    return node < 64 ? &nodes[node] : NULL;
}
static inline trp_err
node_intern(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    (void)arg;
    for (uint32_t i = 3; i < nodes_count; i++) {
        if (trpi_node_id_equal(&nodes[i], id)) {
            *ret_node = i;
            return TRP_OK;
        }
    }
    if (nodes_count == 64) {
        return TRP_ELIMIT;
    }
    nodes[nodes_count] = *id;
    *ret_node = nodes_count++;
    return TRP_OK;
}

static inline void
nodes_make(void)
{
    memset(nodes, 0, sizeof nodes);
    for (uint32_t i = 1; i < 40; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "troupe.tcp://sys@10.0.0.%u:2552", i);
        UNIT_EQUAL(trpi_address_parse(text, &nodes[i].address, NULL, NULL), TRP_OK);
        nodes[i].uid = 1000 + i;
    }
    nodes_count = 40;
}

static inline trpi_node_map
map_of(uint32_t sending, uint32_t receiving)
{
    trpi_node_map map = {
        .sending = sending, .receiving = receiving, .get = node_get, .intern = node_intern
    };
    return map;
}

static inline trpi_message
message_of(const trp_type *type, const void *payload, size_t bytes)
{
    trpi_message message = { 0 };
    message.to_slot = 0x01020304;
    message.to_generation = 0x11121315;
    message.sender = (trp_ref){ 1, 5, 7, 0 };
    message.type = type;
    message.wire_id = trpi_hash_text(type->name);
    message.payload = payload;
    message.payload_bytes = bytes;
    return message;
}

static inline void
hex_line(FILE *file, const char *name, const trpi_buffer *bytes)
{
    fprintf(file, "%s ", name);
    for (size_t i = 0; i < bytes->count; i++) {
        fprintf(file, "%02x", bytes->data[i]);
    }
    fprintf(file, "\n");
}

#endif
