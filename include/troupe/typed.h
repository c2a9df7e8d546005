/* troupe/typed.h - refs that carry the messages of their actor, and stubs whose calls are messages.
 *
 * A protocol (TRP_PROTOCOL) has messages; its list of calls says which of them are questions, and
 * what they are answered with. From both the compiler makes typed functions:
 *
 *     #define TILL_MESSAGES(M, P) \
 *         M(P, pay, TILL_PAY) M(P, sum, TILL_SUM) M(P, reset, TRP_NO_FIELDS)
 *     TRP_PROTOCOL(till, TILL_MESSAGES)
 *     #define TILL_CALLS(C, O, P) C(P, pay, sum) O(P, reset)
 *     TRP_TYPED(till, TILL_CALLS)
 *
 * C(P, request, reply) gives, besides what O(P, request) gives for a message without a reply:
 *     till_pay_tell(ctx, ref, m)                       one-way, from an actor
 *     till_pay_send(system, ref, m)                    one-way, from a thread
 *     till_pay_ask(ctx, ref, m, timeout_ms, done, arg) from an actor: done gets a till_sum
 *     till_pay_call(system, ref, m, timeout_ms, &sum)  from a thread, which waits: TRP_ETIMEDOUT
 *     till_pay_future(system, ref, m, timeout_ms, &f)  the future of a message of till_sum_type
 * ref is a till_ref, m a till_pay by value: anything else is an error of the compiler, which names
 * the function and both types, in C as in C++.
 *
 * The actor has a table of functions, typed likewise, and serves it:
 *
 *     static trp_err
 *     on_pay(trp_ctx *ctx, void *state, const till_pay *m, till_sum *ret_reply);
 *     static const till_methods methods = { on_pay, on_reset };
 *     ... in its receive: return till_serve(ctx, state, msg, &methods);
 *     ... in its pre_start: return till_methods_check(ctx, &methods);
 *
 * A function that returns an error has refused the call: the caller gets this error and the actor
 * goes on; trp_fail() makes it fail, as anywhere. The error of a function without a reply is the
 * actor's failure. An actor that uses the one-way form of a call with a reply is told the reply. A
 * message of another protocol is unhandled: parts of trp_or_else() serve several protocols. Inside
 * of a function ctx is what it is in any behaviour: trp_self(), trp_sender(), trp_stash(). One call
 * is handled at a time.
 *
 * Limits: messages of fixed size, since they are passed by value. m, ret_reply and state are valid
 * in the call alone: no pointer to them may leave the actor (TYPED-3). A typed ref says which
 * messages may be sent, not that they arrive or are answered. till_ref_of() is the programmer's
 * word that a ref is of that protocol, as a ref that was looked up or came from another node is.
 */
#ifndef TROUPE_TYPED_H
#define TROUPE_TYPED_H

#include <string.h>

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/future.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_PRIV_INLINE __attribute__((unused)) static inline

#define TRP_PRIV_TYPED_O(P, request)                                                               \
    TRP_PRIV_INLINE void P##_##request##_tell(trp_ctx *ctx, P##_ref to, P##_##request m)           \
    {                                                                                              \
        trp_tell(ctx, to.ref, &P##_##request##_type, &m, sizeof m);                                \
    }                                                                                              \
    TRP_PRIV_INLINE void P##_##request##_send(trp_system *system, P##_ref to, P##_##request m)     \
    {                                                                                              \
        trp_system_tell(system, to.ref, &P##_##request##_type, &m, sizeof m);                      \
    }

#define TRP_PRIV_TYPED_C(P, request, reply)                                                        \
    TRP_PRIV_TYPED_O(P, request)                                                                   \
    typedef trp_err (*P##_##request##_done)(trp_ctx * ctx, void *state, void *arg, trp_err err,    \
                                            const P##_##reply *answer);                            \
    typedef struct P##_##request##_priv_asked {                                                    \
        P##_##request##_done done;                                                                 \
        void *arg;                                                                                 \
    } P##_##request##_priv_asked;                                                                  \
    TRP_PRIV_INLINE trp_err P##_##request##_priv_answered(trp_ctx *ctx, void *state, void *arg,    \
                                                          trp_err err, const trp_msg *msg)         \
    {                                                                                              \
        P##_##request##_priv_asked asked = *(P##_##request##_priv_asked *)arg;                     \
        const P##_##reply *answer = err == TRP_OK ? P##_##reply##_as(msg) : NULL;                  \
        trp_alloc_free(ctx, arg);                                                                  \
        err = err == TRP_OK && answer == NULL ? TRP_EPROTO : err;                                  \
        return asked.done(ctx, state, asked.arg, err, answer);                                     \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_##request##_ask(                                    \
        trp_ctx *ctx, P##_ref to, P##_##request m, uint32_t timeout_ms, P##_##request##_done done, \
        void *arg)                                                                                 \
    {                                                                                              \
        P##_##request##_priv_asked *asked;                                                         \
        trp_err err;                                                                               \
        if (done == NULL) {                                                                        \
            return TRP_EINVAL;                                                                     \
        }                                                                                          \
        asked = (P##_##request##_priv_asked *)trp_alloc(ctx, sizeof *asked);                       \
        asked->done = done;                                                                        \
        asked->arg = arg;                                                                          \
        err = trp_ask(ctx, to.ref, &P##_##request##_type, &m, sizeof m, timeout_ms,                \
                      P##_##request##_priv_answered, asked);                                       \
        if (err != TRP_OK) {                                                                       \
            trp_alloc_free(ctx, asked);                                                            \
        }                                                                                          \
        return err;                                                                                \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_##request##_call(                                   \
        trp_system *system, P##_ref to, P##_##request m, uint32_t timeout_ms,                      \
        P##_##reply *ret_reply)                                                                    \
    {                                                                                              \
        trp_msg *msg = NULL;                                                                       \
        trp_err err =                                                                              \
            trp_system_ask(system, to.ref, &P##_##request##_type, &m, sizeof m, timeout_ms, &msg); \
        if (err == TRP_OK && P##_##reply##_as(msg) == NULL) {                                      \
            err = TRP_EPROTO;                                                                      \
        } else if (err == TRP_OK && ret_reply != NULL) {                                           \
            *ret_reply = *P##_##reply##_as(msg);                                                   \
        }                                                                                          \
        trp_msg_free(msg);                                                                         \
        return err;                                                                                \
    }                                                                                              \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_##request##_future(                                 \
        trp_system *system, P##_ref to, P##_##request m, uint32_t timeout_ms,                      \
        trp_future **ret_future)                                                                   \
    {                                                                                              \
        return trp_future_ask(system, to.ref, &P##_##request##_type, &m, sizeof m, timeout_ms,     \
                              ret_future);                                                         \
    }

#define TRP_PRIV_METHOD_C(P, request, reply)                                                       \
    trp_err (*request)(trp_ctx * ctx, void *state, const P##_##request *m, P##_##reply *ret_reply);
#define TRP_PRIV_METHOD_O(P, request)                                                              \
    trp_err (*request)(trp_ctx * ctx, void *state, const P##_##request *m);

#define TRP_PRIV_SERVE_C(P, request, reply)                                                        \
    if (trp_msg_is(msg, &P##_##request##_type)) {                                                  \
        P##_##reply answer;                                                                        \
        const P##_##request *m = P##_##request##_as(msg);                                          \
        trp_err err = TRP_EUNHANDLED;                                                              \
        if (methods->request == NULL || m == NULL) {                                               \
            return m == NULL ? TRP_EDATA : TRP_EUNHANDLED;                                         \
        }                                                                                          \
        memset((void *)&answer, 0, sizeof answer);                                                 \
        err = methods->request(ctx, state, m, &answer);                                            \
        if (err == TRP_EUNHANDLED) {                                                               \
            return err;                                                                            \
        }                                                                                          \
        if (trp_ref_is_none(trp_sender(ctx))) {                                                    \
            return TRP_OK; /* one-way, from a thread */                                            \
        }                                                                                          \
        if (err != TRP_OK) {                                                                       \
            trp_reply_failure(ctx, err, NULL);                                                     \
        } else {                                                                                   \
            trp_reply(ctx, &P##_##reply##_type, &answer, sizeof answer);                           \
        }                                                                                          \
        return TRP_OK;                                                                             \
    }
#define TRP_PRIV_SERVE_O(P, request)                                                               \
    if (trp_msg_is(msg, &P##_##request##_type)) {                                                  \
        const P##_##request *m = P##_##request##_as(msg);                                          \
        if (methods->request == NULL || m == NULL) {                                               \
            return m == NULL ? TRP_EDATA : TRP_EUNHANDLED;                                         \
        }                                                                                          \
        return methods->request(ctx, state, m);                                                    \
    }

#define TRP_PRIV_MISSING_C(P, request, reply) TRP_PRIV_MISSING_O(P, request)
#define TRP_PRIV_MISSING_O(P, request)                                                             \
    if (missing == NULL && methods->request == NULL) {                                             \
        missing = #request;                                                                        \
    }

/* Make the typed functions of a protocol; behind TRP_PROTOCOL() or TRP_PROTOCOL_DECLARE(). */
#define TRP_TYPED(P, CALLS)                                                                        \
    CALLS(TRP_PRIV_TYPED_C, TRP_PRIV_TYPED_O, P)                                                   \
    typedef struct P##_methods {                                                                   \
        CALLS(TRP_PRIV_METHOD_C, TRP_PRIV_METHOD_O, P)                                             \
    } P##_methods;                                                                                 \
    /* Call the function of msg's type, and send the answer; TRP_EUNHANDLED: it has none. */       \
    TRP_PRIV_INLINE trp_err P##_serve(trp_ctx *ctx, void *state, const trp_msg *msg,               \
                                      const P##_methods *methods)                                  \
    {                                                                                              \
        CALLS(TRP_PRIV_SERVE_C, TRP_PRIV_SERVE_O, P)                                               \
        return TRP_EUNHANDLED;                                                                     \
    }                                                                                              \
    /* TRP_EINVAL, with an error in the log: a call of the list has no function. */                \
    TRP_PRIV_INLINE trp_err P##_methods_check(trp_ctx *ctx, const P##_methods *methods)            \
    {                                                                                              \
        const char *missing = NULL;                                                                \
        CALLS(TRP_PRIV_MISSING_C, TRP_PRIV_MISSING_O, P)                                           \
        if (missing != NULL) {                                                                     \
            trp_log(ctx, TRP_LOG_ERROR, "typed actor: " #P ".%s has no function", missing);        \
        }                                                                                          \
        return missing == NULL ? TRP_OK : TRP_EINVAL;                                              \
    }                                                                                              \
    /* Give a ref its type: the program's word that its actor serves this protocol. */             \
    TRP_PRIV_INLINE P##_ref P##_ref_of(trp_ref ref)                                                \
    {                                                                                              \
        P##_ref typed;                                                                             \
        typed.ref = ref;                                                                           \
        return typed;                                                                              \
    }                                                                                              \
    /* Start a child, and give its typed ref; TRP_EINVAL: it does not accept this protocol. */     \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_spawn(trp_ctx *ctx, const trp_behaviour *behaviour, \
                                                     const trp_spawn_options *options,             \
                                                     P##_ref *ret_ref)                             \
    {                                                                                              \
        return trp_typed_accepts(behaviour, &P##_protocol)                                         \
                   ? trp_spawn(ctx, behaviour, options, &ret_ref->ref)                             \
                   : TRP_EINVAL;                                                                   \
    }                                                                                              \
    /* The same for a child of /user. */                                                           \
    TRP_MUST_CHECK TRP_PRIV_INLINE trp_err P##_system_spawn(                                       \
        trp_system *system, const trp_behaviour *behaviour, const trp_spawn_options *options,      \
        P##_ref *ret_ref)                                                                          \
    {                                                                                              \
        return trp_typed_accepts(behaviour, &P##_protocol)                                         \
                   ? trp_system_spawn(system, behaviour, options, &ret_ref->ref)                   \
                   : TRP_EINVAL;                                                                   \
    }

/* Return non-zero if a behaviour says that it accepts a protocol (trp_behaviour.accepts).
 *
 * Ownership: borrows behaviour and protocol.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TYPED-5.  Since: 0.2 */
static inline int
trp_typed_accepts(const trp_behaviour *behaviour, const trp_protocol *protocol)
{
    const trp_protocol *const *accepts = behaviour == NULL ? NULL : behaviour->accepts;
    while (accepts != NULL && *accepts != NULL && strcmp((*accepts)->name, protocol->name) != 0) {
        accepts++;
    }
    return accepts != NULL && *accepts != NULL;
}

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_TYPED_H */
