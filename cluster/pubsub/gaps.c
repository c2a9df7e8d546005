/* gaps.c - the numbers of publications, as they arrive.
 *
 * Why.     A publisher numbers what it publishes in a topic, whether this node is due or not. This
 *          node is due from the number at which the publisher knew of its subscription (since): so
 *          what it missed before the first arrival counts, and what was published before it
 *          subscribed does not.
 * Must hold.
 *   pubsub-G1  What is published under an earlier subscription of this node (begun), or by an
 *       earlier life of the publisher, counts for nothing.
 *   pubsub-G2  No publication counts as missed twice, none that came before.
 * Limits.  One stream for each member that has published in the topic, and
 *          TRPI_GAPS_STRANGERS_MAX of others: a node publishes here before this one has heard of
 *          it, and what a removed one has published may still come. Were a stranger forgotten, what
 *          it published before would be missed.
 * Tests.   tests/unit/cluster/pubsub_route_test.c, tests/sim/pubsub_test.c
 */
#include "cluster/pubsub/gaps.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

void
trpi_gaps_fini(trpi_gaps *gaps)
{
    trpi_free(gaps->streams);
    memset(gaps, 0, sizeof *gaps);
}

static trpi_stream *
stream_find(const trpi_gaps *gaps, uint64_t uid)
{
    for (uint32_t i = 0; i < gaps->streams_count; i++) {
        if (gaps->streams[i].uid == uid) {
            return &gaps->streams[i];
        }
    }
    return NULL;
}

/* Forget the stranger that has been one for the longest time, when there are too many. */
static void
limit_strangers(trpi_gaps *gaps)
{
    uint32_t strangers = 0, first = 0;
    for (uint32_t i = gaps->streams_count; i-- > 0;) {
        strangers += gaps->streams[i].stranger;
        first = gaps->streams[i].stranger ? i : first;
    }
    if (strangers > TRPI_GAPS_STRANGERS_MAX) {
        gaps->streams_count--;
        memmove(&gaps->streams[first], &gaps->streams[first + 1],
                (gaps->streams_count - first) * sizeof *gaps->streams);
    }
}

/* NULL: no memory. */
static trpi_stream *
stream_have(trpi_gaps *gaps, uint64_t uid, bool stranger)
{
    trpi_stream *stream = stream_find(gaps, uid);
    if (stream != NULL) {
        stream->stranger = stream->stranger && stranger;
        return stream;
    }
    if (!TRPI_ARRAY_HAS_ROOM(gaps, streams)) {
        return NULL;
    }
    gaps->streams[gaps->streams_count++] = (trpi_stream){ .uid = uid, .stranger = stranger };
    if (stranger) {
        limit_strangers(gaps);
    }
    return &gaps->streams[gaps->streams_count - 1];
}

trp_err
trpi_gaps_arrived(trpi_gaps *gaps, uint64_t uid, bool stranger, const trpi_pubsub_stamp *stamp,
                  uint64_t begun, trpi_pubsub_arrival *ret_arrival)
{
    *ret_arrival = (trpi_pubsub_arrival){ .missed = 0 };
    if (stamp->begun != begun || stamp->number < stamp->since || /* pubsub-G1, or nonsense */
        stamp->number > TRPI_PUBSUB_NUMBER_MAX || stamp->life > TRPI_PUBSUB_NUMBER_MAX) {
        return TRP_OK;
    }
    trpi_stream *stream = stream_have(gaps, uid, stranger);
    if (stream == NULL) {
        return TRP_ENOMEM;
    }
    if (stamp->life < stream->life) {
        return TRP_OK;
    }
    if (stamp->life > stream->life) {
        stream->life = stamp->life;
        stream->next = stamp->since;
    }
    /* After a new era the publisher is told again of all: what is between does not count. */
    stream->next = stream->next < stamp->since ? stamp->since : stream->next;
    ret_arrival->late = stamp->number < stream->next;
    if (!ret_arrival->late) {
        ret_arrival->missed = stamp->number - stream->next;
        stream->next = stamp->number + 1;
    }
    return TRP_OK;
}

void
trpi_gaps_estrange(trpi_gaps *gaps, uint64_t uid)
{
    trpi_stream *stream = stream_find(gaps, uid);
    if (stream != NULL && !stream->stranger) {
        trpi_stream last = *stream;
        gaps->streams_count--;
        memmove(stream, stream + 1,
                (size_t)(&gaps->streams[gaps->streams_count] - stream) * sizeof *stream);
        last.stranger = true;
        gaps->streams[gaps->streams_count++] = last;
        limit_strangers(gaps);
    }
}
