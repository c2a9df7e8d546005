/* deployment.c - see the header.
 *
 * Shape.   {"behaviour" text, "version" number, "path" text, "dispatcher" text, "mailbox" text,
 *           "stash" number, "supervisor" [slot, generation], "args" bytes: a USER frame}
 *          {"err" number, "code" number, "reason" text}
 * Must hold.
 *   deployment-N1  Input is not trusted: each length is checked, and no text is longer than its
 *       field.
 * Tests.   tests/unit/remote/deployment_codec_test.c
 * Sources. REMOTE-16, -18, -23.
 */
#include "remote/wire/deployment.h"

#include <string.h>

#include "base/pack.h"

_Static_assert(TRP_DEPLOY_ARGS_BYTES_MAX + TRP_PATH_BYTES_MAX + 4096 <= TRPI_SYSTEM_TAIL_BYTES_MAX,
               "an order fits a tail");

static void
put_text(trpi_pack_writer *w, const char *key, const char *text)
{
    trpi_pack_text(w, key);
    trpi_pack_text(w, text);
}

static void
put_number(trpi_pack_writer *w, const char *key, uint64_t number)
{
    trpi_pack_text(w, key);
    trpi_pack_u64(w, number);
}

/* Move the written bytes to out. */
static trp_err
writer_finish(trpi_pack_writer *w, trpi_buffer *out)
{
    trp_err err = w->err;
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, w->buffer.data, w->buffer.count, TRPI_BUFFER_NO_LIMIT);
    }
    trpi_buffer_fini(&w->buffer);
    return err;
}

/* Encode the arguments as a message to slot 0: so the codec translates their refs. */
static trp_err
args_encode(trpi_serializers *serializers, trpi_node_map *map, const trpi_deploy *deploy,
            trpi_buffer *out)
{
    const trpi_serializer *serializer = trpi_serializers_for(serializers, deploy->args_type);
    trpi_message message = { .type = deploy->args_type,
                             .wire_id = trpi_type_wire_id(deploy->args_type->number),
                             .payload = deploy->args,
                             .payload_bytes = deploy->args_bytes };
    if (serializer == NULL || (deploy->args_type->flags & TRP_TYPE_LOCAL) != 0) {
        return TRP_ENOTYPE;
    }
    return trpi_message_encode(out, serializer, map,
                               TRPI_USER_FIXED_BYTES + TRP_DEPLOY_ARGS_BYTES_MAX, &message);
}

trp_err
trpi_deploy_encode(trpi_serializers *serializers, trpi_node_map *map, const trpi_deploy *deploy,
                   trpi_buffer *out)
{
    trpi_pack_writer w = { .limit = TRPI_SYSTEM_TAIL_BYTES_MAX };
    trpi_buffer args = { 0 };
    if (deploy->args_type != NULL) {
        trp_err err = args_encode(serializers, map, deploy, &args);
        if (err != TRP_OK) {
            trpi_buffer_fini(&args);
            return err;
        }
    }
    trpi_pack_map(&w, 5u + (deploy->dispatcher != NULL) + (deploy->mailbox != NULL) +
                          (deploy->args_type != NULL));
    put_text(&w, "behaviour", deploy->behaviour);
    put_number(&w, "version", deploy->version);
    put_text(&w, "path", deploy->path);
    put_number(&w, "stash", deploy->stash_msgs_max);
    trpi_pack_text(&w, "supervisor");
    trpi_pack_array(&w, 2);
    trpi_pack_u64(&w, deploy->supervisor.slot);
    trpi_pack_u64(&w, deploy->supervisor.generation);
    if (deploy->dispatcher != NULL) {
        put_text(&w, "dispatcher", deploy->dispatcher);
    }
    if (deploy->mailbox != NULL) {
        put_text(&w, "mailbox", deploy->mailbox);
    }
    if (deploy->args_type != NULL) {
        trpi_pack_text(&w, "args");
        trpi_pack_bytes(&w, args.data, args.count);
    }
    trpi_buffer_fini(&args);
    return writer_finish(&w, out);
}

static bool
get_u32(const trpi_pack_value *value, uint32_t *ret)
{
    uint64_t number = 0;
    bool good = trpi_pack_get_u64(value, UINT32_MAX, &number);
    *ret = (uint32_t)number;
    return good;
}

/* Copy an optional text; absent or "": not set. false: too long. */
static bool
get_option(const trpi_pack_value *map, const char *key, char *text, size_t room,
           const char **ret_option)
{
    const trpi_pack_value *value = trpi_pack_find(map, key);
    *ret_option = NULL;
    if (value == NULL) {
        return true;
    }
    if (!trpi_pack_get_text(value, text, room)) {
        return false;
    }
    *ret_option = text[0] != '\0' ? text : NULL;
    return true;
}

trp_err
trpi_deploy_decode(const uint8_t *bytes, size_t count, trpi_deploy_read *ret_read)
{
    trpi_deploy *deploy = &ret_read->deploy;
    memset(ret_read, 0, sizeof *ret_read);
    trp_err err = trpi_pack_parse(bytes, count, &ret_read->doc);
    if (err != TRP_OK) {
        return err == TRP_ENOMEM ? err : TRP_EDATA;
    }
    const trpi_pack_value *map = trpi_pack_root(ret_read->doc);
    const trpi_pack_value *supervisor = trpi_pack_find(map, "supervisor");
    const trpi_pack_value *args = trpi_pack_find(map, "args");
    if (!trpi_pack_get_text(trpi_pack_find(map, "behaviour"), ret_read->behaviour,
                            sizeof ret_read->behaviour) ||
        !trpi_pack_get_text(trpi_pack_find(map, "path"), ret_read->path, sizeof ret_read->path) ||
        ret_read->path[0] != '/' || !get_u32(trpi_pack_find(map, "version"), &deploy->version) ||
        !get_u32(trpi_pack_find(map, "stash"), &deploy->stash_msgs_max) ||
        !get_u32(trpi_pack_at(supervisor, 0), &ret_read->supervisor_slot) ||
        !get_u32(trpi_pack_at(supervisor, 1), &ret_read->supervisor_generation) ||
        !get_option(map, "dispatcher", ret_read->dispatcher, sizeof ret_read->dispatcher,
                    &deploy->dispatcher) ||
        !get_option(map, "mailbox", ret_read->mailbox, sizeof ret_read->mailbox,
                    &deploy->mailbox) ||
        (args != NULL && !trpi_pack_get_bytes(args, &ret_read->args, &ret_read->args_bytes))) {
        trpi_deploy_read_fini(ret_read);
        return TRP_EDATA;
    }
    deploy->behaviour = ret_read->behaviour;
    deploy->path = ret_read->path;
    return TRP_OK;
}

void
trpi_deploy_read_fini(trpi_deploy_read *read)
{
    trpi_pack_doc_free(read->doc);
    read->doc = NULL;
}

trp_err
trpi_failure_encode(const trp_failure *failure, trpi_buffer *out)
{
    trpi_pack_writer w = { .limit = TRPI_SYSTEM_TAIL_BYTES_MAX };
    trpi_pack_map(&w, 3);
    put_number(&w, "err", (uint32_t)failure->err);
    trpi_pack_text(&w, "code");
    trpi_pack_i64(&w, failure->code);
    put_text(&w, "reason", failure->reason);
    return writer_finish(&w, out);
}

trp_err
trpi_failure_decode(const uint8_t *bytes, size_t count, trp_failure *ret_failure)
{
    trpi_pack_doc *doc = NULL;
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err == TRP_ENOMEM ? err : TRP_EDATA;
    }
    const trpi_pack_value *map = trpi_pack_root(doc);
    uint32_t number = 0;
    int64_t code = 0;
    memset(ret_failure, 0, sizeof *ret_failure);
    bool good = get_u32(trpi_pack_find(map, "err"), &number) && number != TRP_OK &&
                trpi_pack_get_i64(trpi_pack_find(map, "code"), &code) && code >= INT32_MIN &&
                code <= INT32_MAX &&
                trpi_pack_get_text(trpi_pack_find(map, "reason"), ret_failure->reason,
                                   sizeof ret_failure->reason);
    trpi_pack_doc_free(doc);
    ret_failure->err = (trp_err)number; /* of a later version: without a text here */
    ret_failure->code = (int32_t)code;
    return good ? TRP_OK : TRP_EDATA;
}

bool
trpi_deploy_is_allowed(const char *const *patterns, size_t count, const char *behaviour)
{
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(patterns[i]);
        bool open = bytes > 0 && patterns[i][bytes - 1] == '*';
        if (open ? strncmp(patterns[i], behaviour, bytes - 1) == 0
                 : strcmp(patterns[i], behaviour) == 0) {
            return true;
        }
    }
    return false;
}
