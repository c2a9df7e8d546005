/* troupe/registry.h - actors that are found by a key with a type, on all nodes of a cluster.
 *
 *     TRP_PROTOCOL(till, TILL_MESSAGES)
 *     TRP_TYPED(till, TILL_CALLS)
 *     TRP_REGISTRY(till)
 *
 *     static const till_registry_key main_tills = { "main" };
 *
 *     err = till_registry_add(system, main_tills, till);                  // a till_ref
 *     err = till_registry_find(system, main_tills, tills, 16, &count);    // till_ref tills[16]
 *     err = till_registry_subscribe(system, main_tills, trp_self(ctx));
 *     ... in its receive:
 *     uint32_t count;
 *     const till_ref *tills = till_registry_listing_of(msg, main_tills, &count);
 *     if (tills != NULL) { ... }                                          // all there are now
 *
 * A key is the name of a protocol and a text: keys of two protocols are never the same, and a ref
 * or a key of another protocol is an error of the compiler, in C as in C++. An actor may be
 * registered under several keys, several actors of several nodes under one.
 *
 * A registration belongs to the node of its actor. It is known there at once, and on the other
 * members within moments; it ends with the actor, by trp_registry_remove(), and when its node
 * leaves the cluster (from Leaving on) or is removed from it. An unreachable node's actors stay
 * until then. A node learns what the others have from its first call of this header on: the first
 * find may miss what a subscriber is told a moment later. On a system that is no cluster node the
 * registry is that of this system.
 *
 * A subscriber is told a listing at once, and then each time the set has changed, but not more than
 * about 20 times a second: what came and went in between it does not see. Its latest listing is
 * the set that its node knows.
 */
#ifndef TROUPE_REGISTRY_H
#define TROUPE_REGISTRY_H

#include <stddef.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>
#include <troupe/typed.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_REGISTRY_KEY_BYTES_MAX 255u      /* also of the protocol's name; without the NUL */
#define TRP_REGISTRY_ENTRIES_MAX 100000u     /* registrations of one node */
#define TRP_REGISTRY_KEYS_WATCHED_MAX 10000u /* keys that the actors of one node subscribe to */

/* Told to subscribers: all that are registered under a key, as far as this node knows. The refs
 * have no order. */
typedef struct trp_registry_listing {
    uint32_t refs_count;
    uint32_t protocol_bytes, key_bytes; /* of the names behind the refs */
    uint32_t zero;
} trp_registry_listing; /* and behind it the refs, the protocol's name, a NUL, the key, a NUL */
TRP_API extern trp_type trp_registry_listing_type;
/* Of a subscriber that says what it accepts (trp_behaviour.accepts). */
TRP_API extern const trp_protocol trp_registry_protocol;

/* Return the refs of a listing.
 *
 * Ownership: borrows listing; what is returned lives as long as it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TYPED-4.  Since: 0.2 */
static inline const trp_ref *
trp_registry_listing_refs(const trp_registry_listing *listing)
{
    return (const trp_ref *)(const void *)(listing + 1);
}

/* Return the name of a listing's protocol.
 *
 * Ownership: borrows listing; what is returned lives as long as it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TYPED-4.  Since: 0.2 */
static inline const char *
trp_registry_listing_protocol(const trp_registry_listing *listing)
{
    return (const char *)(trp_registry_listing_refs(listing) + listing->refs_count);
}

/* Return the key of a listing.
 *
 * Ownership: borrows listing; what is returned lives as long as it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TYPED-4.  Since: 0.2 */
static inline const char *
trp_registry_listing_key(const trp_registry_listing *listing)
{
    return trp_registry_listing_protocol(listing) + listing->protocol_bytes + 1;
}

/* Register an actor of this system; again has no effect. A registration that fails later (all
 * TRP_REGISTRY_ENTRIES_MAX are in use, no memory) is an error in the log.
 *
 * Ownership: borrows protocol and key.
 * Errors:    TRP_EINVAL   a name is empty, or ref is none
 *            TRP_ELIMIT   a name is above TRP_REGISTRY_KEY_BYTES_MAX
 *            TRP_EUNSUPPORTED  the actor is another node's: it is registered there
 *            TRP_ECLOSED  the system is stopping, or the registry's actor has been stopped
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    TYPED-1, TYPED-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_registry_add(trp_system *system, const trp_protocol *protocol,
                                                const char *key, trp_ref ref);

/* Take an actor of this system out; one that is not registered has no effect.
 *
 * Ownership: borrows protocol and key.
 * Errors:    as trp_registry_add
 * Thread:    any; takes a lock for a moment.
 * Source:    TYPED-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_registry_remove(trp_system *system, const trp_protocol *protocol,
                                                   const char *key, trp_ref ref);

/* Find the actors under a key, in no order: as many as fit into refs. *ret_count is how many there
 * are, which may be more.
 *
 * Ownership: borrows protocol and key; refs may be NULL if refs_max is 0.
 * Errors:    TRP_EINVAL   a name is empty, ret_count is NULL, or refs
 *            TRP_ELIMIT   a name is above TRP_REGISTRY_KEY_BYTES_MAX
 *            TRP_ECLOSED  as trp_registry_add
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    TYPED-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_registry_find(trp_system *system, const trp_protocol *protocol,
                                                 const char *key, trp_ref *refs, size_t refs_max,
                                                 size_t *ret_count);

/* Tell an actor of this system the listing of a key, now and whenever it changes, until it ends or
 * unsubscribes. Again: it is told the listing again. A key beyond
 * TRP_REGISTRY_KEYS_WATCHED_MAX is an error in the log.
 *
 * Ownership: borrows protocol and key.
 * Errors:    as trp_registry_add
 * Thread:    any; takes a lock for a moment.
 * Source:    TYPED-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_registry_subscribe(trp_system *system,
                                                      const trp_protocol *protocol, const char *key,
                                                      trp_ref subscriber);

/* Tell it no more. A listing that is on its way still comes.
 *
 * Ownership: borrows protocol and key.
 * Errors:    as trp_registry_add
 * Thread:    any; takes a lock for a moment.
 * Source:    TYPED-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_registry_unsubscribe(trp_system *system,
                                                        const trp_protocol *protocol,
                                                        const char *key, trp_ref subscriber);

/* Make the typed functions of a protocol; behind TRP_TYPED(). */
#define TRP_REGISTRY(P)                                                                            \
    typedef struct P##_registry_key {                                                              \
        const char *name;                                                                          \
    } P##_registry_key;                                                                            \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_registry_add(trp_system *system,                    \
                                                            P##_registry_key key, P##_ref ref)     \
    {                                                                                              \
        return trp_registry_add(system, &P##_protocol, key.name, ref.ref);                         \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_registry_remove(trp_system *system,                 \
                                                               P##_registry_key key, P##_ref ref)  \
    {                                                                                              \
        return trp_registry_remove(system, &P##_protocol, key.name, ref.ref);                      \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_registry_find(trp_system *system,                   \
                                                             P##_registry_key key, P##_ref *refs,  \
                                                             size_t refs_max, size_t *ret_count)   \
    {                                                                                              \
        return trp_registry_find(system, &P##_protocol, key.name, (trp_ref *)(void *)refs,         \
                                 refs_max, ret_count);                                             \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_registry_subscribe(                                 \
        trp_system *system, P##_registry_key key, trp_ref subscriber)                              \
    {                                                                                              \
        return trp_registry_subscribe(system, &P##_protocol, key.name, subscriber);                \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_registry_unsubscribe(                               \
        trp_system *system, P##_registry_key key, trp_ref subscriber)                              \
    {                                                                                              \
        return trp_registry_unsubscribe(system, &P##_protocol, key.name, subscriber);              \
    }                                                                                              \
    /* The refs of a listing of this key; NULL: msg is none. They live as long as msg. */          \
    TRP_PRIV_INLINE const P##_ref *P##_registry_listing_of(                                        \
        const trp_msg *msg, P##_registry_key key, uint32_t *ret_count)                             \
    {                                                                                              \
        const trp_registry_listing *listing =                                                      \
            trp_msg_is(msg, &trp_registry_listing_type)                                            \
                ? (const trp_registry_listing *)trp_msg_payload(msg)                               \
                : NULL;                                                                            \
        if (listing == NULL ||                                                                     \
            strcmp(trp_registry_listing_protocol(listing), P##_protocol.name) != 0 ||              \
            strcmp(trp_registry_listing_key(listing), key.name) != 0) {                            \
            return NULL;                                                                           \
        }                                                                                          \
        *ret_count = listing->refs_count;                                                          \
        return (const P##_ref *)(const void *)trp_registry_listing_refs(listing);                  \
    }

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_REGISTRY_H */
