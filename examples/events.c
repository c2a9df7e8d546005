/* events.c - the event stream of a system: subscribers of a type, or its parent, are told. */
#include <stdio.h>
#include <troupe/troupe.h>

#define NEWS_TEXT(F, S) F(S, text32, text)
#define NEWS_MESSAGES(M, P) M(P, any, NEWS_TEXT) M(P, sport, NEWS_TEXT) M(P, music, NEWS_TEXT)
TRP_PROTOCOL(news, NEWS_MESSAGES)

static trp_err
reader_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    trp_err err = trp_subscribe(ctx, &news_any_type); /* and so to its subtypes */
    return err != TRP_OK ? err : trp_subscribe(ctx, &trp_dead_letter_type);
}
static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        printf("lost: %llu bytes\n",
               (unsigned long long)((const trp_dead_letter *)trp_msg_payload(msg))->bytes);
        trp_system_shutdown(trp_ctx_system(ctx));
    } else if (trp_msg_is(msg, &trp_identify_type)) {
        return TRP_EUNHANDLED;
    } else {
        printf("%s: %s\n", trp_msg_type(msg)->name, (const char *)trp_msg_payload(msg));
    }
    return TRP_OK;
}
static const trp_behaviour reader = { sizeof reader, "reader", .receive = reader_receive,
                                      .pre_start = reader_start };

int
main(void)
{
    const news_sport sport = { "3:1" };
    const news_music music = { "encore" };
    const trp_identify ready = { 1 };
    const trp_ref nobody = TRP_REF_NONE;
    trp_system *system;
    trp_msg *reply = NULL;
    trp_ref ref;
    if (trp_system_new("paper", NULL, &system) != TRP_OK ||
        trp_protocol_register(&news_protocol) != TRP_OK ||
        trp_type_extend(&news_sport_type, &news_any_type) != TRP_OK ||
        trp_type_extend(&news_music_type, &news_any_type) != TRP_OK ||
        trp_system_spawn(system, &reader, NULL, &ref) != TRP_OK ||
        trp_system_ask(system, ref, &trp_identify_type, &ready, 0, 5000, &reply) != TRP_OK) {
        return 1; /* when it answers, it has subscribed */
    }
    trp_msg_free(reply);
    trp_system_publish(system, &news_sport_type, &sport, sizeof sport);
    trp_system_publish(system, &news_music_type, &music, sizeof music);
    trp_system_tell(system, nobody, &trp_string_type, "hello?", 6);
    trp_err err = trp_system_await(system, 10000);
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
