/* chat_messages.h - messages with everything that varies in length; included by one file of a
 * program.
 */
#ifndef TESTS_UNIT_REMOTE_CHAT_MESSAGES_H
#define TESTS_UNIT_REMOTE_CHAT_MESSAGES_H

#include <troupe/actor.h>
#include <troupe/payload.h>

#define CHAT_AUTHOR(F, S) F(S, text, name) F(S, ref, actor)
#define CHAT_LINE(F, S)                                                                            \
    F(S, struct(chat_author), author) F(S, text, body) F(S, array(u32), reads) F(S, i64, at_ms)
#define CHAT_HISTORY(F, S)                                                                         \
    F(S, text, room)                                                                               \
    F(S, bool, whole)                                                                              \
    F(S, array(struct(chat_line)), lines)                                                          \
    F(S, array(text), tags) F(S, bytes, icon) F(S, array(ref), members) F(S, text32, kind)
#define CHAT_MESSAGES(M, P) M(P, line, CHAT_LINE) M(P, history, CHAT_HISTORY)
TRP_STRUCT(chat, author, CHAT_AUTHOR)
TRP_PROTOCOL(chat, CHAT_MESSAGES)

#endif
