/* chat.h - the messages of a chat, and the room that keeps their lines. */
#include <troupe/troupe.h>

#define CHAT_LINE(F, S) F(S, text, from) F(S, text, body)
#define CHAT_PAGE(F, S) F(S, text, room) F(S, array(struct(chat_line)), lines)
#define CHAT_MESSAGES(M, P) M(P, line, CHAT_LINE) M(P, page, CHAT_PAGE) M(P, look, TRP_NO_FIELDS)
TRP_PROTOCOL(chat, CHAT_MESSAGES)

typedef struct room {
    trp_msg *said[8]; /* copies of messages */
    size_t count;
} room;

static trp_err
room_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    room *r = state;
    trp_builder b;
    if (trp_msg_tag(msg) == chat_line_tag) {
        return r->count < 8 ? trp_msg_dup(msg, &r->said[r->count++]) : TRP_OK;
    }
    chat_page *page = TRP_BUILD(&b, chat_page);
    trp_build_text(&b, &page->room, "lobby");
    chat_line *lines = TRP_BUILD_ARRAY(&b, &page->lines, r->count);
    for (size_t i = 0; lines != NULL && i < r->count; i++) {
        const chat_line *said = trp_msg_payload(r->said[i]);
        trp_build_text(&b, &lines[i].from, trp_msg_text(r->said[i], said->from, NULL));
        trp_build_text(&b, &lines[i].body, trp_msg_text(r->said[i], said->body, NULL));
        trp_msg_free(r->said[i]);
    }
    r->count = 0;
    trp_reply(ctx, TRP_BUILT(&b)); /* type, payload and bytes */
    trp_build_free(&b);
    return TRP_OK;
}
static const trp_protocol *const accepts[] = { &chat_protocol, NULL };
static const trp_behaviour behaviour = { sizeof(trp_behaviour), "room", .state_bytes = sizeof(room),
                                         .receive = room_receive, .accepts = accepts };
