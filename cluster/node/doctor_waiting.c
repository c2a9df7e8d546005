/* doctor_waiting.c - the doctor's facts about asks: which wait on, of this node and of others.
 *
 * Why.     An ask that waits is no fault. One that waits for itself over others ends only by its
 *          timeout, and the actors look idle meanwhile.
 * Shape.   look --a moment--> look: asks that are in both wait; their keys --> doctor_asks.c. A
 *          member tells those that may be in a cycle over several nodes, and since when they wait:
 *          those count that have waited since before the doctor began to look, so that all asks
 *          of a cycle waited at one instant.
 * Limits.  TRPI_DOCTOR_ASKS_MAX asks of a node, the first ones; TRPI_DOCTOR_ASKS_TOLD_MAX that a
 *          member tells, those that have waited longest, of actors with address and path below
 *          TRPI_DOCTOR_NAME_BYTES. An ask through a router, a shard region, a proxy or a future
 *          does not say which actor it waits for.
 * Tests.   tests/unit/node/doctor_cycles_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <troupe/path.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/node/doctor_look.h"

#define KEY_BYTES (TRPI_ADDRESS_TEXT_BYTES + 1 + 2 * 21) /* "ADDRESS/#UID@UID" */

typedef struct trpi_doctor_waits {
    uint32_t count;
    trpi_waiting_ask list[TRPI_DOCTOR_ASKS_MAX + 1]; /* the last: there are more */
} trpi_doctor_waits;

/* ---- of this node ---------------------------------------------------------------------------- */

trpi_doctor_waits *
trpi_doctor_waits_begin(trp_node *node)
{
    trpi_doctor_waits *waits = trpi_alloc(sizeof *waits);
    if (waits != NULL) {
        waits->count =
            trpi_system_waiting_asks(node->system, waits->list, TRPI_DOCTOR_ASKS_MAX + 1);
    }
    if (waits != NULL && waits->count == 0) {
        trpi_free(waits);
        waits = NULL;
    }
    return waits;
}

/* Is the same ask in an earlier look? Both are in the order of their promises. */
static bool
waited_before(const trpi_doctor_waits *begun, const trpi_waiting_ask *ask, uint32_t *position)
{
    while (*position < begun->count && begun->list[*position].promise.slot < ask->promise.slot) {
        ++*position;
    }
    return *position < begun->count && trp_ref_equal(begun->list[*position].promise, ask->promise);
}

/* Make the key of an actor from its ref as text, and cut the text down to address and path. false:
 * it names no incarnation. */
static bool
key_take(char *text, char key[KEY_BYTES])
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    trpi_node_id id;
    const char *path;
    trp_ref ref;
    if (trpi_ref_text_parse(text, &id, &path, &ref) != TRP_OK || path == text ||
        ref.generation == 0 || id.uid == 0) {
        return false;
    }
    (void)snprintf(key, KEY_BYTES, "%s/#%" PRIu64 "@%" PRIu64,
                   trpi_address_format(&id.address, address, sizeof address),
                   (uint64_t)ref.generation << 32 | ref.slot, id.uid);
    text[strcspn(text, "#")] = '\0';
    return true;
}

/* Add an ask; *ret_cut: it cannot be followed. false: no memory. */
static bool
waiting_add(trp_node *node, const trpi_waiting_ask *ask, trpi_doctor_asks *asks, bool *ret_cut)
{
    char name[TRP_REF_TEXT_BYTES], to[TRP_REF_TEXT_BYTES];
    char from_key[KEY_BYTES], to_key[KEY_BYTES];
    if (trp_ref_format(node->system, ask->asker, TRP_REF_WITH_UID, name, sizeof name) != TRP_OK ||
        trp_ref_format(node->system, ask->asked, TRP_REF_WITH_UID, to, sizeof to) != TRP_OK ||
        !key_take(name, from_key) || !key_take(to, to_key)) {
        *ret_cut = true;
        return true;
    }
    return trpi_doctor_asks_add(asks, name, from_key, to_key, ask->waited_ns / 1000000u);
}

void
trpi_doctor_waits_end(trpi_doctor_waits *begun, trp_node *node, trpi_doctor_asks *asks,
                      bool *ret_cut)
{
    trpi_doctor_waits *now = begun != NULL ? trpi_doctor_waits_begin(node) : NULL;
    uint32_t position = 0;
    bool ok = now != NULL;
    if (now != NULL && now->count > TRPI_DOCTOR_ASKS_MAX) {
        *ret_cut = true;
        now->count = TRPI_DOCTOR_ASKS_MAX;
    }
    for (uint32_t i = 0; ok && i < now->count; i++) {
        if (waited_before(begun, &now->list[i], &position)) {
            ok = waiting_add(node, &now->list[i], asks, ret_cut);
        }
    }
    trpi_free(now);
    trpi_free(begun);
}

/* ---- of other members ------------------------------------------------------------------------ */

/* Write an ask as a row; *ret_cut: its texts are too long. false: no memory. */
static bool
row_add(cJSON *list, const trpi_doctor_ask *ask, bool *ret_cut)
{
    char from[TRPI_DOCTOR_NAME_BYTES + KEY_BYTES];
    if (strlen(ask->name) >= TRPI_DOCTOR_NAME_BYTES) {
        *ret_cut = true;
        return true;
    }
    cJSON *row = cJSON_CreateObject();
    (void)snprintf(from, sizeof from, "%s%s", ask->name, strchr(ask->from, '#'));
    return trpi_json_append(list, row,
                            trpi_json_add_text(row, "from", from) &&
                                trpi_json_add_text(row, "to", ask->to) &&
                                trpi_json_add_u64_string(row, "waitedMs", ask->waited_ms));
}

bool
trpi_doctor_asks_tell(const char *self, trpi_doctor_asks *asks, bool cut, cJSON *reply)
{
    cJSON *list = cJSON_AddArrayToObject(reply, "asks");
    bool ok = list != NULL && trpi_doctor_asks_trim(asks, self);
    cut = !trpi_doctor_asks_longest(asks, TRPI_DOCTOR_ASKS_TOLD_MAX) || cut;
    for (size_t i = 0; ok && i < asks->count; i++) {
        ok = row_add(list, &asks->list[i], &cut);
    }
    trpi_doctor_asks_fini(asks);
    return ok && trpi_json_add_bool(reply, "asksCut", cut);
}

/* Is it an actor of this node, as its member tells it, and may the text be shown? */
static bool
is_of_member(const char *text, const char *member)
{
    size_t bytes = strlen(member);
    return text != NULL && strncmp(text, member, bytes) == 0 && text[bytes] == '/' &&
           strlen(text) < TRPI_DOCTOR_NAME_BYTES + KEY_BYTES;
}

void
trpi_doctor_asks_told(const cJSON *reply, const char *member, uint64_t since_ms,
                      trpi_doctor_asks *asks, bool *ret_cut)
{
    const cJSON *row;
    uint32_t count = 0;
    bool ok = true;
    *ret_cut = *ret_cut || cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "asksCut"));
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "asks"))
    {
        const char *from = trpi_json_get_text(row, "from"), *to = trpi_json_get_text(row, "to");
        char name[TRPI_DOCTOR_NAME_BYTES + KEY_BYTES], asked[TRP_REF_TEXT_BYTES];
        char from_key[KEY_BYTES], to_key[KEY_BYTES];
        uint64_t waited_ms;
        if (count++ == TRPI_DOCTOR_ASKS_TOLD_MAX) {
            *ret_cut = true;
            return;
        }
        if (!ok || !is_of_member(from, member) || to == NULL || strlen(to) >= sizeof asked ||
            !trpi_json_get_u64(row, "waitedMs", &waited_ms) || waited_ms < since_ms) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s", from);
        (void)snprintf(asked, sizeof asked, "%s", to);
        ok = !key_take(name, from_key) || !key_take(asked, to_key) ||
             trpi_doctor_asks_add(asks, name, from_key, to_key, waited_ms);
    }
}
