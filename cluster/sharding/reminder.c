/* reminder.c - reminders as programs see them: orders to the home of the entity's shard.
 *
 * Shape.   trp_reminder_set -> an order, asked of the entity -> the region of its home
 *          (region_remember.c) -> the shard's store -> the answer
 * Tests.   tests/unit/cluster/entity_reminder_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/sized.h"
#include "cluster/sharding/region.h"

trp_type trpi_reminder_order_type = { .name = "sharding.reminder",
                                      .tag = 4,
                                      .flags = TRP_TYPE_VARIABLE };
trp_type trp_reminders_type = { .name = "sharding.reminders",
                                .tag = 5,
                                .flags = TRP_TYPE_VARIABLE };

/* ---- orders ---------------------------------------------------------------------------------- */

static bool
name_is_valid(const char *name)
{
    return name != NULL && name[0] != '\0' &&
           strnlen(name, TRP_REMINDER_NAME_BYTES_MAX + 1) <= TRP_REMINDER_NAME_BYTES_MAX;
}

trp_err
trpi_reminder_order_make(trpi_buffer *out, trpi_reminder_order *order, const char *name,
                         const char *type, const void *data, size_t bytes)
{
    order->name_bytes = (uint32_t)strlen(name) + 1;
    order->type_bytes = (uint32_t)strlen(type) + 1;
    order->data_bytes = (uint32_t)bytes;
    trp_err err = trpi_buffer_append(out, order, sizeof *order, TRPI_BUFFER_NO_LIMIT);
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, name, order->name_bytes, TRPI_BUFFER_NO_LIMIT);
    }
    if (err == TRP_OK) {
        err = trpi_buffer_append(out, type, order->type_bytes, TRPI_BUFFER_NO_LIMIT);
    }
    if (err == TRP_OK && order->data_bytes > 0) {
        err = trpi_buffer_append(out, data, bytes, TRPI_BUFFER_NO_LIMIT);
    }
    return err;
}

static trp_err
set_make(trp_system *system, const trp_reminder *given, trpi_buffer *out)
{
    trp_reminder own;
    trpi_buffer data = { 0 };
    if (given == NULL || !TRPI_SIZED_COPY(given, &own, bytes) || !name_is_valid(own.name) ||
        own.type == NULL || (own.period_ms != 0 && own.period_ms < TRP_REMINDER_PERIOD_MS_MIN) ||
        (own.payload == NULL && (own.type->flags & TRP_TYPE_VARIABLE) == 0 &&
         own.type->bytes > 0)) {
        return TRP_EINVAL;
    }
    if (own.type->number == 0) {
        return TRP_ENOTYPE;
    }
    uint64_t now_ms = (uint64_t)trpi_world_wall_ms(trpi_system_world(system));
    trpi_reminder_order order = { .kind = TRPI_REMINDER_SET, .period_ms = own.period_ms };
    order.due_ms = own.at_ms != 0                        ? own.at_ms
                   : own.in_ms < UINT64_MAX / 2 - now_ms ? now_ms + own.in_ms
                                                         : UINT64_MAX / 2;
    size_t bytes = (own.type->flags & TRP_TYPE_VARIABLE) == 0 ? own.type->bytes : own.bytes;
    trp_err err = trpi_stored_write(system, own.type, own.payload, bytes, &data);
    if (err == TRP_OK && data.count > TRP_REMINDER_BYTES_MAX) {
        err = TRP_EMSGSIZE;
    }
    if (err == TRP_OK) {
        err =
            trpi_reminder_order_make(out, &order, own.name, own.type->name, data.data, data.count);
    }
    trpi_buffer_fini(&data);
    return err;
}

static trp_err
cancel_make(const char *name, trpi_buffer *out)
{
    trpi_reminder_order order = { .kind = TRPI_REMINDER_CANCEL };
    return name_is_valid(name) ? trpi_reminder_order_make(out, &order, name, "", NULL, 0)
                               : TRP_EINVAL;
}

static trp_err
list_make(trpi_buffer *out)
{
    trpi_reminder_order order = { .kind = TRPI_REMINDER_LIST };
    return trpi_reminder_order_make(out, &order, "", "", NULL, 0);
}

/* ---- of actors ------------------------------------------------------------------------------- */

static trp_err
nobody_asks(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)err;
    (void)reply;
    return TRP_OK;
}

/* Ask the order in out, and free it. err: of its making. */
static trp_err
order_ask(trp_ctx *ctx, const trp_entity *entity, trpi_buffer *out, trp_err err,
          uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    if (err == TRP_OK) {
        err = trp_entity_ask(ctx, entity, &trpi_reminder_order_type, out->data, out->count,
                             timeout_ms, fn == NULL ? nobody_asks : fn, arg);
    }
    trpi_buffer_fini(out);
    return err;
}

trp_err
trp_reminder_set(trp_ctx *ctx, const trp_entity *entity, const trp_reminder *reminder,
                 uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    trpi_buffer out = { 0 };
    trp_err err = set_make(trp_ctx_system(ctx), reminder, &out);
    return order_ask(ctx, entity, &out, err, timeout_ms, fn, arg);
}

trp_err
trp_reminder_cancel(trp_ctx *ctx, const trp_entity *entity, const char *name, uint32_t timeout_ms,
                    trp_reply_fn fn, void *arg)
{
    trpi_buffer out = { 0 };
    trp_err err = cancel_make(name, &out);
    return order_ask(ctx, entity, &out, err, timeout_ms, fn, arg);
}

trp_err
trp_reminder_list(trp_ctx *ctx, const trp_entity *entity, uint32_t timeout_ms, trp_reply_fn fn,
                  void *arg)
{
    trpi_buffer out = { 0 };
    trp_err err = fn == NULL ? TRP_EINVAL : list_make(&out);
    return order_ask(ctx, entity, &out, err, timeout_ms, fn, arg);
}

/* ---- of other threads ------------------------------------------------------------------------ */

/* Ask the order in out, free it, and wait. Gives *ret_reply. */
static trp_err
order_call(trp_system *system, const trp_entity *entity, trpi_buffer *out, trp_err err,
           uint32_t timeout_ms, trp_msg **ret_reply)
{
    trp_msg *reply = NULL;
    if (err == TRP_OK) {
        err = trp_system_entity_ask(system, entity, &trpi_reminder_order_type, out->data,
                                    out->count, timeout_ms, &reply);
    }
    trpi_buffer_fini(out);
    const trp_status_failure *failure =
        reply == NULL ? NULL : trp_msg_as(reply, &trp_status_failure_type);
    if (failure != NULL) {
        err = (trp_err)failure->err;
    }
    if (err != TRP_OK) {
        trp_msg_free(reply);
        return err;
    }
    *ret_reply = reply;
    return TRP_OK;
}

trp_err
trp_system_reminder_set(trp_system *system, const trp_entity *entity, const trp_reminder *reminder,
                        uint32_t timeout_ms)
{
    trpi_buffer out = { 0 };
    trp_msg *reply = NULL;
    trp_err err = system == NULL ? TRP_EINVAL : set_make(system, reminder, &out);
    err = order_call(system, entity, &out, err, timeout_ms, &reply);
    trp_msg_free(reply);
    return err;
}

trp_err
trp_system_reminder_cancel(trp_system *system, const trp_entity *entity, const char *name,
                           uint32_t timeout_ms)
{
    trpi_buffer out = { 0 };
    trp_msg *reply = NULL;
    trp_err err = system == NULL ? TRP_EINVAL : cancel_make(name, &out);
    err = order_call(system, entity, &out, err, timeout_ms, &reply);
    trp_msg_free(reply);
    return err;
}

trp_err
trp_system_reminder_list(trp_system *system, const trp_entity *entity, uint32_t timeout_ms,
                         trp_msg **ret_list)
{
    trpi_buffer out = { 0 };
    trp_err err = system == NULL || ret_list == NULL ? TRP_EINVAL : list_make(&out);
    return order_call(system, entity, &out, err, timeout_ms, ret_list);
}

/* ---- a list ---------------------------------------------------------------------------------- */

int
trp_reminder_next(const trp_msg *list, size_t *position, trp_reminder_view *ret_view)
{
    trpi_reminder_record record;
    size_t bytes = list == NULL || !trp_msg_is(list, &trp_reminders_type) ? 0 : trp_msg_bytes(list);
    if (*position > bytes || bytes - *position < sizeof record) {
        return 0;
    }
    const char *at = (const char *)trp_msg_payload(list) + *position;
    memcpy(&record, at, sizeof record);
    at += sizeof record;
    size_t texts = (size_t)record.name_bytes + record.type_bytes;
    if (record.name_bytes == 0 || record.type_bytes == 0 ||
        bytes - *position - sizeof record < texts || at[record.name_bytes - 1] != '\0' ||
        at[texts - 1] != '\0') {
        return 0; /* of another node, and no list */
    }
    *ret_view = (trp_reminder_view){ at, at + record.name_bytes, record.due_ms, record.period_ms };
    *position += sizeof record + texts;
    return 1;
}
