/* codec.h - people and their happiness as messages, and texts of them on the wire. */
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

typedef struct person {
    char first[32], last[32];
} person;
typedef struct message {
    uint32_t people_count, points_count;
    person people[16];
    double points[64];
} message;

static void
message_drop(trp_item *item)
{
    free(item->as.pointer);
}
static const trp_item_type message_item = { "message", message_drop };

static void
name_put(trp_bytes_writer *out, const char *name)
{
    trp_bytes_put_u32(out, (uint32_t)strlen(name));
    trp_bytes_put(out, 1, strlen(name), name);
}

/* A length that is too large for us is one that the bytes do not have: TRP_EDATA. */
static void
name_get(trp_bytes_reader *in, char name[32])
{
    uint32_t bytes = 0;

    trp_bytes_get_u32(in, &bytes);
    trp_bytes_get(in, 1, bytes < 32 ? bytes : SIZE_MAX, name);
}
