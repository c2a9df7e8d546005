/* control_fuzz.c - bytes of a client of the control socket: framing, request, payloads, names of
 * members.
 *
 * The input is a stream: whole frames in it are requests. A request that parses is used as the node
 * would: payload from JSON, name of a member.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/control_member.h"
#include "cluster/node/control_request.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/payload_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_ALL(F, S)                                                                             \
    F(S, bool, yes)                                                                                \
    F(S, i32, i32)                                                                                 \
    F(S, u32, u32) F(S, i64, i64) F(S, u64, u64) F(S, f64, f64) F(S, text32, text) F(S, ref, ref)
#define FUZZ_MESSAGES(M, P) M(P, all, FUZZ_ALL)
TRP_PROTOCOL_DECLARE(fuzz, FUZZ_MESSAGES)
TRP_PROTOCOL_DEFINE(fuzz, FUZZ_MESSAGES)

static void
name_try(const char *name)
{
    trpi_view view;
    static trpi_view_member member;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    memset(&view, 0, sizeof view);
    memcpy(member.m.address, "troupe.tcp://demo@10.0.0.1:2552", 32);
    member.m.uid = 17;
    view.members = &member;
    view.count = 1;
    trp_err err = trpi_view_find(&view, name, &found, &refusal);
    trpi_assert(err != TRP_OK || found == &member);
    trpi_assert(err == TRP_OK || refusal.exit == TRPI_CTL_EXIT_USAGE ||
                refusal.exit == TRPI_CTL_EXIT_NOT_FOUND);
}

static void
request_use(const trpi_control_request *request)
{
    void *payload = NULL;
    size_t bytes = 0;
    char what[128];
    trpi_assert(request->addresses_count <= TRPI_CONTROL_ADDRESSES_MAX);
    trpi_assert(request->uids_count <= TRPI_CONTROL_DOWNS_MAX);
    trpi_assert(request->timeout_ms <= TRPI_CONTROL_TIMEOUT_MS_MAX);
    if (request->member) {
        name_try(request->member);
    }
    if (request->text && trpi_payload_from_json(&fuzz_all_type, request->text, &payload, &bytes,
                                                what, sizeof what) == TRP_OK) {
        trpi_assert(bytes == sizeof(fuzz_all));
        trpi_free(payload);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint8_t *body = NULL;
        size_t bytes = 0;
        trpi_control_request request;
        trpi_control_refusal refusal;
        if (trpi_ctl_frame_decode(data, size, TRPI_CTL_REQUEST_BYTES_MAX, &body, &bytes) !=
            TRP_OK) {
            /* No frame: as a body, so that text corpora are of use. */
            body = data;
            bytes = size;
            data += size;
            size = 0;
        } else {
            size_t frame = TRPI_CTL_HEADER_BYTES + bytes;
            trpi_assert(frame <= size);
            data += frame;
            size -= frame;
        }
        trp_err err = trpi_control_request_parse(body, bytes, &request, &refusal);
        if (err == TRP_OK) {
            request_use(&request);
            trpi_control_request_fini(&request);
        } else {
            trpi_assert(refusal.exit == TRPI_CTL_EXIT_USAGE || refusal.exit == TRPI_CTL_EXIT_DATA ||
                        err == TRP_ENOMEM);
            trpi_assert(refusal.error[0] != '\0');
        }
    }
    return 0;
}
