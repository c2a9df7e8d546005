/* registry.c - a service registry: services subscribe to their name, in a group, so a job goes to
 * one of them, on whatever node; anybody lists what there is, and how often. */
#include <stdio.h>

#include <troupe/troupe.h>

static trp_err
printer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply_text(ctx, "printed"); /* to the one that published */
    }
    return TRP_OK;
}
static const trp_behaviour printer = TRP_BEHAVIOUR_INIT("printer", char, printer_receive);

static void
service_print(void *arg, const trp_topic_info *info)
{
    (void)arg;
    printf("%s: %u\n", info->topic, (unsigned)info->subscribers);
}

/* Wait for an acknowledgement, or an answer. */
static void
one_await(trp_inbox *inbox)
{
    trp_msg *msg;
    if (trp_inbox_receive(inbox, 5000, &msg, NULL) == TRP_OK) {
        if (trp_msg_is(msg, &trp_string_type)) {
            printf("%.*s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
        }
        trp_msg_free(msg);
    }
}

int
main(void)
{
    trp_subscribe_options how = TRP_SUBSCRIBE_OPTIONS_INIT;
    trp_system *system;
    trp_mediator *registry;
    trp_inbox *inbox;
    trp_ref ref = TRP_REF_NONE;
    if (trp_system_new("shop", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK ||
        trp_mediator_of(system, NULL, &registry) !=
            TRP_OK) { /* of a cluster node: knows all nodes */
        return 1;
    }
    how.group = "printers";
    how.answer_to = trp_inbox_ref(inbox);
    for (int i = 0; i < 3; i++) {
        if (trp_system_spawn(system, &printer, NULL, &ref) == TRP_OK &&
            trp_mediator_subscribe(registry, "print", ref, &how) == TRP_OK) {
            one_await(inbox);
        }
    }
    trp_mediator_topics(registry, service_print, NULL);
    trp_mediator_publish(registry, trp_inbox_ref(inbox), "print", &trp_string_type, "a page", 6);
    one_await(inbox);
    if (trp_mediator_unsubscribe(registry, "print", ref, &how) == TRP_OK) {
        one_await(inbox);
    }
    trp_mediator_topics(registry, service_print, NULL);
    trp_inbox_close(inbox);
    trp_system_free(system);
    return 0;
}
