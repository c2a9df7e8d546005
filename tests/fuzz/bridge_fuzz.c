/* bridge_fuzz.c - bytes of a program behind a bridge: lines, requests, messages.
 *
 * The first byte says how the rest is cut into pieces, as a stream may be. Each line must become
 * one request or one refusal, however the stream is cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/bridge_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_ALL(F, S)                                                                             \
    F(S, bool, yes)                                                                                \
    F(S, i32, i32)                                                                                 \
    F(S, u32, u32) F(S, i64, i64) F(S, u64, u64) F(S, f64, f64) F(S, text32, text) F(S, ref, ref)
#define FUZZ_MESSAGES(M, P) M(P, all, FUZZ_ALL)
TRP_PROTOCOL(fuzz, FUZZ_MESSAGES)

typedef struct seen {
    uint64_t lines, requests, refusals;
} seen;

static void
request_use(const trpi_bridge_request *request)
{
    trpi_control_refusal refusal = { 0 };
    trpi_bridge_message message;
    trpi_assert(request->actor != NULL);
    trpi_assert(!request->has_id || request->id <= TRPI_BRIDGE_NUMBER_MAX);
    trpi_assert(request->timeout_ms > 0);
    trpi_assert(trpi_bridge_op_name(request->op)[0] != '\0');
    if (request->value == NULL && request->text == NULL && request->base64 == NULL) {
        return;
    }
    if (trpi_bridge_message_make(request, &message, &refusal) != TRP_OK) {
        trpi_assert(refusal.exit != 0 && refusal.error[0] != '\0');
        return;
    }
    trpi_assert(message.type != NULL);
    trpi_assert(message.type != &fuzz_all_type || message.bytes == sizeof(fuzz_all));
    trpi_free(message.owned);
}

static void
line_take(void *arg, uint64_t number, trp_err err, const char *text, size_t bytes)
{
    seen *s = arg;
    trpi_bridge_request request;
    trpi_control_refusal refusal = { 0 };
    trpi_assert(number > s->lines);
    s->lines = number;
    if (err != TRP_OK) {
        s->refusals++;
        return;
    }
    trpi_assert(bytes > 0 && bytes <= TRPI_BRIDGE_LINE_BYTES_MAX);
    trpi_assert(memchr(text, '\n', bytes) == NULL);
    if (trpi_bridge_request_parse(text, bytes, &request, &refusal) == TRP_OK) {
        s->requests++;
        request_use(&request);
        trpi_bridge_request_fini(&request);
    } else {
        s->refusals++;
        trpi_assert(refusal.exit != 0 && refusal.error[0] != '\0');
        char *line = trpi_bridge_refuse(&request, number, &refusal);
        trpi_assert(line != NULL && strchr(line, '\n') == line + strlen(line) - 1);
        cJSON_free(line);
    }
}

static void
stream_feed(const uint8_t *data, size_t size, size_t piece, seen *ret_seen)
{
    trpi_bridge_lines lines;
    memset(&lines, 0, sizeof lines);
    memset(ret_seen, 0, sizeof *ret_seen);
    for (size_t at = 0; at < size; at += piece) {
        size_t left = size - at;
        trpi_bridge_lines_feed(&lines, data + at, left < piece ? left : piece, line_take, ret_seen);
        trpi_assert(lines.held.count <= TRPI_BRIDGE_LINE_BYTES_MAX);
    }
    trpi_bridge_lines_fini(&lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    seen whole, pieces;
    static bool registered;
    if (!registered) {
        registered = trp_protocol_register(&fuzz_protocol) == TRP_OK;
        trpi_assert(registered);
    }
    if (size == 0) {
        return 0;
    }
    stream_feed(data + 1, size - 1, size, &whole);
    stream_feed(data + 1, size - 1, (size_t)data[0] + 1, &pieces);
    trpi_assert(memcmp(&whole, &pieces, sizeof whole) == 0);
    return 0;
}
