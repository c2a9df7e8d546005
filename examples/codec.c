/* codec.c - people and their happiness on a wire: a stage of one's own above one of the library,
 * and the way back through the same two. */
#include <stdio.h>

#include "codec.h"

#include "codec_stage.h"

static trp_err
message_show(void *arg, trp_item *item)
{
    const message *m = item->as.pointer;

    (void)arg;
    for (uint32_t i = 0; i < m->people_count; i++) {
        printf("%s %s\n", m->people[i].first, m->people[i].last);
    }
    for (uint32_t i = 0; i < m->points_count; i++) {
        printf("%.1f\n", m->points[i]);
    }
    return TRP_OK;
}

int
main(void)
{
    static const message happy = {
        2, 3, { { "Alice", "Gibbons" }, { "Bob", "Sparsely" } }, { 1.0, 3.0, 5.0 }
    };
    trp_length_options frame = TRP_LENGTH_OPTIONS_INIT;
    const trp_stage_use stages[] = { { &message_stage, NULL }, { &trp_length_stage, &frame } };
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_item item = trp_item_of(&message_item);
    trp_pipeline *pipeline;

    frame.bytes_max = 10000;
    options.order = TRP_BIG_ENDIAN;
    options.on_event = message_show;
    item.as.pointer = malloc(sizeof happy);
    if (item.as.pointer == NULL || trp_pipeline_new(stages, 2, &options, &pipeline) != TRP_OK) {
        return 1;
    }
    memcpy(item.as.pointer, &happy, sizeof happy);
    if (trp_pipeline_command(pipeline, &item) != TRP_OK ||
        !trp_pipeline_next_command(pipeline, &item)) {
        return 1;
    }
    printf("%zu bytes\n", trp_bytes_length(item.as.bytes));
    if (trp_pipeline_event(pipeline, &item) != TRP_OK) { /* as if they had come from a peer */
        return 1;
    }
    item = trp_item_of_bytes(TRP_BYTES_LITERAL("\0\0\0\x0c\xff\xff\xff\xff\0\0\0\0"));
    if (trp_pipeline_event(pipeline, &item) != TRP_OK) {
        printf("%s\n", trp_pipeline_reason(pipeline));
    }
    trp_item_clear(&item);
    trp_pipeline_free(pipeline);
    return 0;
}
