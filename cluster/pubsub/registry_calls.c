/* registry_calls.c - the calls of troupe/registry.h: each but the look-up is a message
 * to the actor of the registry's mediator.
 *
 * Must hold.
 *   registry-calls-A1  The calls of one thread or actor are done in their order; a look-up behind
 *       them may come before.
 * Limits.  TRP_REGISTRY_KEY_BYTES_MAX.
 * Tests.   tests/unit/cluster/registry_test.c, tests/system/typed.sh
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/pubsub/mediator.h"

enum { TOPIC_MAX = 2 * TRP_REGISTRY_KEY_BYTES_MAX + 1 };
_Static_assert(TOPIC_MAX <= TRPI_TOPIC_BYTES_MAX, "a key fits into a topic");
_Static_assert(TRP_REGISTRY_ENTRIES_MAX == TRPI_PUBREG_ENTRIES_MAX, "a registration is an entry");

typedef struct topic {
    char bytes[TOPIC_MAX];
    uint32_t count;
} topic;

static trp_err
topic_make(const trp_protocol *protocol, const char *key, topic *ret_topic)
{
    const char *name = protocol == NULL ? NULL : protocol->name;
    size_t protocol_bytes = name == NULL ? 0 : strnlen(name, TRP_REGISTRY_KEY_BYTES_MAX + 1);
    size_t key_bytes = key == NULL ? 0 : strnlen(key, TRP_REGISTRY_KEY_BYTES_MAX + 1);
    if (protocol_bytes == 0 || key_bytes == 0) {
        return TRP_EINVAL;
    }
    if (protocol_bytes > TRP_REGISTRY_KEY_BYTES_MAX || key_bytes > TRP_REGISTRY_KEY_BYTES_MAX) {
        return TRP_ELIMIT;
    }
    memcpy(ret_topic->bytes, name, protocol_bytes);
    ret_topic->bytes[protocol_bytes] = '\0';
    memcpy(ret_topic->bytes + protocol_bytes + 1, key, key_bytes);
    ret_topic->count = (uint32_t)(protocol_bytes + 1 + key_bytes);
    return TRP_OK;
}

static trp_err
request_send(trp_system *system, enum mediator_request_kind kind, const trp_protocol *protocol,
             const char *key, trp_ref ref)
{
    topic name;
    uint8_t group[MEDIATOR_KEYS_GROUP_BYTES];
    mediator_request request = { .ref = ref, .kind = kind };
    trp_ref nobody = TRP_REF_NONE;
    trp_mediator *m;
    trp_msg *msg;
    void *payload;
    trp_err err = system == NULL || trp_ref_is_none(ref) ? TRP_EINVAL
                  : ref.node != TRPI_NODE_SELF           ? TRP_EUNSUPPORTED
                                                         : topic_make(protocol, key, &name);
    err = err != TRP_OK ? err : mediators_registry(system, &m);
    if (err != TRP_OK) {
        return err;
    }
    request.name_bytes = name.count;
    request.group_bytes =
        kind == MEDIATOR_SUBSCRIBE || kind == MEDIATOR_UNSUBSCRIBE ? sizeof group : 0;
    size_t bytes = mediator_request_head_bytes(&request);
    err = trp_msg_new(&mediator_request_type, bytes, &msg, &payload);
    if (err != TRP_OK) {
        return err;
    }
    char *to = payload;
    mediator_keys_group(ref, group);
    memset(to, 0, bytes);
    memcpy(to, &request, sizeof request);
    memcpy(to + sizeof request, name.bytes, name.count);
    memcpy(to + sizeof request + name.count, group, request.group_bytes);
    trp_ctx *ctx = trpi_enter(system);
    trpi_send_as(ctx, m->actor, nobody, msg);
    trpi_leave(ctx);
    return TRP_OK;
}

trp_err
trp_registry_add(trp_system *system, const trp_protocol *protocol, const char *key, trp_ref ref)
{
    return request_send(system, MEDIATOR_SUBSCRIBE, protocol, key, ref);
}

trp_err
trp_registry_remove(trp_system *system, const trp_protocol *protocol, const char *key, trp_ref ref)
{
    return request_send(system, MEDIATOR_UNSUBSCRIBE, protocol, key, ref);
}

trp_err
trp_registry_subscribe(trp_system *system, const trp_protocol *protocol, const char *key,
                       trp_ref subscriber)
{
    return request_send(system, MEDIATOR_LISTEN, protocol, key, subscriber);
}

trp_err
trp_registry_unsubscribe(trp_system *system, const trp_protocol *protocol, const char *key,
                         trp_ref subscriber)
{
    return request_send(system, MEDIATOR_UNLISTEN, protocol, key, subscriber);
}

trp_err
trp_registry_find(trp_system *system, const trp_protocol *protocol, const char *key, trp_ref *refs,
                  size_t refs_max, size_t *ret_count)
{
    topic name;
    trp_mediator *m;
    if (system == NULL || ret_count == NULL || (refs == NULL && refs_max > 0)) {
        return TRP_EINVAL;
    }
    trp_err err = topic_make(protocol, key, &name);
    err = err != TRP_OK ? err : mediators_registry(system, &m);
    if (err == TRP_OK) {
        trpi_pubsub_key topic_key =
            mediator_key(TRPI_PUBSUB_TOPIC, name.bytes, name.count, NULL, 0);
        pthread_mutex_lock(&m->lock);
        *ret_count = m->registry == NULL ? 0 : mediator_keys_read(m, &topic_key, refs, refs_max);
        pthread_mutex_unlock(&m->lock);
    }
    return err;
}
