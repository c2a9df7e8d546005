/* durable_record.c - a message as bytes, and back.
 *
 * Must hold.
 *   durable-record-N1  Numbers of one process (types, nodes, slots) mean nothing in another one:
 *       each is stored with a name, and the identity of the process that wrote it.
 *   durable-record-N2  No byte of a record is used before it is checked.
 * Tests.   tests/unit/pattern/durable_test.c, tests/unit/pattern/durable_limits_test.c
 * Sources. DUR-06.
 */
#include "pattern/durable_record.h"

#include <string.h>

#include <troupe/actor.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/payload.h"

#define MAGIC 0x314d5254u

typedef struct header {
    uint32_t magic;
    uint16_t name_bytes;
    uint16_t refs; /* the sender is the first */
    uint64_t life; /* of the system that wrote it */
    int64_t stored_ms;
    uint64_t payload_bytes;
} header;

typedef struct ref_header {
    trp_ref ref;
    uint32_t path_bytes;
} ref_header;

static trp_err
ref_count(void *arg, uint8_t *ref)
{
    (void)ref;
    ++*(uint32_t *)arg;
    return TRP_OK;
}

/* Count the refs of a checked payload. */
static uint32_t
refs_count(const trp_type *type, const void *payload, size_t bytes)
{
    uint32_t count = 0;

    (void)trpi_payload_refs(type, (void *)(uintptr_t)payload, bytes, ref_count, &count);
    return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct writer {
    unsigned char *at; /* NULL: it only measures */
    size_t bytes;
} writer;

static void
put_bytes(writer *w, const void *data, size_t bytes)
{
    if (w->at != NULL && bytes > 0) {
        memcpy(w->at + w->bytes, data, bytes);
    }
    w->bytes += bytes;
}

static void
put_ref(writer *w, trp_system *system, trp_ref ref)
{
    char path[TRP_PATH_BYTES_MAX + 1] = "";
    ref_header head = { ref, 0 };

    if (!trp_ref_is_none(ref)) {
        (void)trp_path(system, ref, path, sizeof path);
    }
    head.path_bytes = (uint32_t)strlen(path);
    put_bytes(w, &head, sizeof head);
    put_bytes(w, path, head.path_bytes);
}

typedef struct writing {
    writer *w;
    trp_system *system;
} writing;

static trp_err
put_field_ref(void *arg, uint8_t *at)
{
    writing *to = arg;
    trp_ref ref;

    memcpy(&ref, at, sizeof ref);
    put_ref(to->w, to->system, ref);
    return TRP_OK;
}

static void
put_refs(writer *w, trp_system *system, const trp_msg *msg, const trp_type *type)
{
    writing to = { w, system };

    put_ref(w, system, trpi_msg_sender_get(msg));
    (void)trpi_payload_refs(type, (void *)(uintptr_t)trp_msg_payload(msg), trp_msg_bytes(msg),
                            put_field_ref, &to);
}

trp_err
trpi_record_write(trp_system *system, const trp_msg *msg, uint64_t max_bytes,
                  trpi_store_record *ret_record)
{
    const trp_type *type = trp_msg_type(msg);
    header head = { MAGIC,
                    (uint16_t)strlen(type->name),
                    0,
                    trpi_system_self(system)->uid,
                    trpi_world_wall_ms(trpi_system_world(system)),
                    trp_msg_bytes(msg) };
    writer refs = { NULL, 0 }, w = { NULL, 0 };
    size_t bytes;
    uint32_t count;

    if (trpi_payload_check(type, trp_msg_payload(msg), trp_msg_bytes(msg)) != TRP_OK) {
        return TRP_EDATA;
    }
    count = 1 + refs_count(type, trp_msg_payload(msg), trp_msg_bytes(msg));
    if (count > UINT16_MAX) {
        return TRP_EMSGSIZE;
    }
    head.refs = (uint16_t)count;

    /* written twice, for the size and for the bytes; in between a path may change */
    put_refs(&refs, system, msg, type);
    refs.at = trpi_alloc(refs.bytes + TRP_PATH_BYTES_MAX * (size_t)head.refs);
    if (refs.at == NULL) {
        return TRP_ENOMEM;
    }
    refs.bytes = 0;
    put_refs(&refs, system, msg, type);
    bytes = sizeof head + head.name_bytes + refs.bytes + (size_t)head.payload_bytes;
    if (bytes > max_bytes) {
        trpi_free(refs.at);
        return TRP_EMSGSIZE;
    }
    w.at = trpi_alloc(bytes);
    if (w.at == NULL) {
        trpi_free(refs.at);
        return TRP_ENOMEM;
    }
    put_bytes(&w, &head, sizeof head);
    put_bytes(&w, type->name, head.name_bytes);
    put_bytes(&w, refs.at, refs.bytes);
    put_bytes(&w, trp_msg_payload(msg), (size_t)head.payload_bytes);
    trpi_free(refs.at);
    *ret_record = (trpi_store_record){ w.at, w.bytes };
    return TRP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

static const unsigned char * /* Take so many bytes. NULL: fewer are left. */
get_bytes(reader *r, uint64_t bytes)
{
    const unsigned char *at = r->at;

    if (bytes > r->left) {
        return NULL;
    }
    r->at += bytes;
    r->left -= (size_t)bytes;
    return at;
}

/* Read a ref, and resolve it for this process (durable-record-N1). */
static bool
get_ref(reader *r, trp_system *system, bool same_life, trp_ref *ret_ref)
{
    const unsigned char *raw = get_bytes(r, sizeof(ref_header)), *text;
    char path[TRP_PATH_BYTES_MAX + 1];
    bool remote = false;
    ref_header head;

    if (raw == NULL) {
        return false;
    }
    memcpy(&head, raw, sizeof head);
    text = get_bytes(r, head.path_bytes);
    if (text == NULL || head.path_bytes > TRP_PATH_BYTES_MAX) {
        return false;
    }
    *ret_ref = head.ref;
    if (!same_life) {
        *ret_ref = (trp_ref)TRP_REF_NONE;
        memcpy(path, text, head.path_bytes);
        path[head.path_bytes] = 0;
        if (head.path_bytes > 0 &&
            (trpi_path_find(system, path, ret_ref, &remote) != TRP_OK || remote)) {
            *ret_ref = (trp_ref)TRP_REF_NONE;
        }
    }
    return true;
}

static bool
header_get(reader *r, header *ret_head)
{
    const unsigned char *raw = get_bytes(r, sizeof *ret_head);

    if (raw == NULL) {
        return false;
    }
    memcpy(ret_head, raw, sizeof *ret_head);
    return ret_head->magic == MAGIC && ret_head->refs > 0 &&
           ret_head->name_bytes <= TRP_TYPE_NAME_BYTES_MAX;
}

static const trp_type *
type_of(const unsigned char *name, const header *head, const void *payload)
{
    char text[TRP_TYPE_NAME_BYTES_MAX + 1];
    const trp_type *type;

    memcpy(text, name, head->name_bytes);
    text[head->name_bytes] = 0;
    type = trp_type_find(text);
    if (type == NULL || trpi_payload_check(type, payload, (size_t)head->payload_bytes) != TRP_OK ||
        refs_count(type, payload, (size_t)head->payload_bytes) + 1 != head->refs) {
        return NULL;
    }
    return type;
}

trp_err
trpi_record_read(trp_system *system, const trpi_store_record *record, trpi_record_info *ret_info)
{
    reader r = { record->data, record->bytes };
    const unsigned char *name;
    header head;
    bool same_life;

    if (!header_get(&r, &head)) {
        return TRP_EDATA;
    }
    name = get_bytes(&r, head.name_bytes);
    same_life = head.life == trpi_system_self(system)->uid;
    if (name == NULL || !get_ref(&r, system, same_life, &ret_info->sender)) {
        return TRP_EDATA;
    }
    ret_info->refs = r.at;
    for (uint32_t i = 1; i < head.refs; i++) {
        trp_ref ref;

        if (!get_ref(&r, system, true, &ref)) {
            return TRP_EDATA;
        }
    }
    ret_info->payload_bytes = (size_t)head.payload_bytes;
    ret_info->payload = get_bytes(&r, head.payload_bytes);
    if (ret_info->payload == NULL || r.left != 0) {
        return TRP_EDATA;
    }
    ret_info->stored_ms = head.stored_ms;
    ret_info->type = type_of(name, &head, ret_info->payload);
    return TRP_OK;
}

typedef struct reading {
    reader *r;
    trp_system *system;
    bool same_life;
} reading;

static trp_err
get_field_ref(void *arg, uint8_t *at)
{
    reading *from = arg;
    trp_ref ref;

    if (!get_ref(from->r, from->system, from->same_life, &ref)) {
        return TRP_EDATA;
    }
    memcpy(at, &ref, sizeof ref);
    return TRP_OK;
}

trp_err
trpi_record_msg(trp_system *system, trpi_store_record *record, const trpi_record_info *info,
                trp_ref to, trp_msg **ret_msg)
{
    unsigned char *start = record->data;
    reader r = { info->refs, (size_t)(info->payload - info->refs) };
    const trp_type *type = info->type;
    reading from = { &r, system, false };
    header head;
    trp_err err;

    memcpy(&head, start, sizeof head);
    from.same_life = head.life == trpi_system_self(system)->uid;
    err = trpi_payload_refs(type, start + (info->payload - start), info->payload_bytes,
                            get_field_ref, &from);
    if (err != TRP_OK) {
        return err;
    }
    return trpi_msg_restore(to, info->sender, type, info->payload, info->payload_bytes, ret_msg);
}
