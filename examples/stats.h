/* stats.h - for stats_service.h: an actor that counts letters, and one that adds up the counts. */
#include <stdio.h>
#include <string.h>
#include <troupe/plugin.h>
#include <troupe/troupe.h>

static trp_err
count_letters(trp_ctx *ctx, void *state, const trp_msg *word)
{
    (void)state;
    trp_reply(ctx, &trp_i64_type, &(int64_t){ (int64_t)trp_msg_bytes(word) }, 0);
    return TRP_OK;
}
static const trp_behaviour worker = TRP_BEHAVIOUR_INIT("statsWorker", char, count_letters);

typedef struct job {
    trp_ref asker;
    int64_t words, heard, letters;
} job;
static trp_err
aggregate(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    job *j = state;
    char text[64] = "Service unavailable, try again later";
    if (trp_msg_is(msg, &trp_bytes_type)) { /* the work */
        *j = *(const job *)trp_msg_payload(msg);
        trp_receive_timeout_set(ctx, 3000);
        return TRP_OK;
    } else if (trp_msg_is(msg, &trp_i64_type)) {
        j->letters += *(const int64_t *)trp_msg_payload(msg);
        if (++j->heard < j->words) {
            return TRP_OK;
        }
        (void)snprintf(text, sizeof text, "%g", (double)j->letters / (double)j->words);
    }
    trp_tell_text(ctx, j->asker, text);
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}
static const trp_behaviour aggregator = TRP_BEHAVIOUR_INIT("aggregator", job, aggregate);
