/* codec_stage.h - messages above, bytes below, in the byte order of the pipeline. */
static trp_err
message_command(trp_port *port, void *state, trp_item *command)
{
    const message *m = command->as.pointer;
    trp_bytes_writer out = TRP_BYTES_WRITER(trp_port_byte_order(port));
    trp_item item = trp_item_of(&trp_item_bytes);
    trp_err err;

    (void)state;
    trp_bytes_put_u32(&out, m->people_count);
    for (uint32_t i = 0; i < m->people_count; i++) {
        name_put(&out, m->people[i].first);
        name_put(&out, m->people[i].last);
    }
    trp_bytes_put_u32(&out, m->points_count);
    trp_bytes_put(&out, sizeof(double), m->points_count, m->points);
    err = trp_bytes_written(&out, &item.as.bytes);
    return err != TRP_OK ? err : trp_port_emit_command(port, &item);
}

static trp_err
message_event(trp_port *port, void *state, trp_item *event)
{
    trp_bytes_reader in = trp_bytes_read(event->as.bytes, trp_port_byte_order(port));
    trp_item item = trp_item_of(&message_item);
    message *m = item.as.pointer = calloc(1, sizeof *m);

    (void)state;
    if (m == NULL) {
        return TRP_ENOMEM;
    }
    trp_bytes_get_u32(&in, &m->people_count);
    for (uint32_t i = 0; i < m->people_count && i < 16; i++) {
        name_get(&in, m->people[i].first);
        name_get(&in, m->people[i].last);
    }
    trp_bytes_get_u32(&in, &m->points_count);
    trp_bytes_get(&in, sizeof(double), m->points_count <= 64 ? m->points_count : SIZE_MAX,
                  m->points);
    if (trp_bytes_reader_err(&in) != TRP_OK || m->people_count > 16 || trp_bytes_left(&in) > 0) {
        trp_item_clear(&item);
        return trp_port_fail(port, TRP_EDATA, "this frame is no message");
    }
    return trp_port_emit_event(port, &item);
}

static const trp_stage message_stage = { .size = sizeof(trp_stage),
                                         .name = "message",
                                         .needs = TRP_STAGE_NEEDS_BYTE_ORDER,
                                         .command = message_command,
                                         .event = message_event };
