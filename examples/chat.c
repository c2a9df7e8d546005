/* chat.c - messages of any length: lines of text one way, a page of them back. */
#include <stdio.h>

#include "chat.h"

static void
say(trp_system *system, trp_ref to, const char *from, const char *body)
{
    trp_builder b;
    chat_line *line = TRP_BUILD(&b, chat_line);
    trp_build_text(&b, &line->from, from);
    trp_build_text(&b, &line->body, body);
    trp_system_tell(system, to, TRP_BUILT(&b));
    trp_build_free(&b);
}

int
main(void)
{
    trp_system *system;
    trp_msg *reply;
    size_t count;
    trp_ref ref;
    if (trp_system_new("chat", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &behaviour, NULL, &ref) != TRP_OK) {
        return 1;
    }
    say(system, ref, "ann", "hello");
    say(system, ref, "bob", "a line may be as long as it likes");
    trp_err err = trp_system_ask(system, ref, &chat_look_type, &(chat_look){ 0 }, 0, 5000, &reply);
    if (err == TRP_OK) {
        const chat_page *page = trp_msg_payload(reply);
        const chat_line *lines = TRP_MSG_ARRAY(reply, page->lines, &count);
        printf("%s\n", trp_msg_text(reply, page->room, NULL));
        for (size_t i = 0; i < count; i++) {
            printf("%s: %s\n", trp_msg_text(reply, lines[i].from, NULL),
                   trp_msg_text(reply, lines[i].body, NULL));
        }
        trp_msg_free(reply);
    }
    trp_system_free(system);
    return 0;
}
