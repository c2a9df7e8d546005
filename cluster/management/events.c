/* events.c - see events.h. */
#include "cluster/management/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define TEXT_BYTES_MAX (1u << 20) /* of one event */
#define OUT_BYTES_MAX (16u << 20)

/* The types of the control protocol (CONTROL.md); the last two are not Akka's and are given to
 * readers that name them. */
static const char *const names[] = {
    "MemberJoined",    "MemberWeaklyUp",  "MemberUp",          "MemberLeft",
    "MemberExited",    "MemberDowned",    "MemberRemoved",     "UnreachableMember",
    "ReachableMember", "LeaderChanged",   "RoleLeaderChanged", "ClusterShuttingDown",
    "SeenChanged",     "DowningDecision",
};
#define NAMES_COUNT (sizeof names / sizeof names[0])

static const struct {
    const char *name;
    uint32_t bits;
} groups[] = { { "ClusterDomainEvent", 0xfff },
               { "MemberEvent", 0x7f },
               { "ReachabilityEvent", 0x180 } };
#define GROUPS_COUNT (sizeof groups / sizeof groups[0])

/* ---- types ----------------------------------------------------------------------------------- */

/* 0: no such type. */
static uint32_t
bits_of(const char *name, size_t bytes)
{
    for (size_t i = 0; i < NAMES_COUNT; i++) {
        if (strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0) {
            return 1u << i;
        }
    }
    for (size_t i = 0; i < GROUPS_COUNT; i++) {
        if (strlen(groups[i].name) == bytes && memcmp(groups[i].name, name, bytes) == 0) {
            return groups[i].bits;
        }
    }
    return 0;
}

trp_err
trpi_management_types_take(const char *query, uint32_t *ret_bits, char *ret_bad, size_t bad_bytes)
{
    static const char key[] = "type=";
    uint32_t bits = 0;
    for (const char *at = query; *at != '\0';) {
        size_t bytes = strcspn(at, "&");
        if (strncmp(at, key, sizeof key - 1) == 0) {
            const char *name = at + sizeof key - 1;
            size_t name_bytes = bytes - (sizeof key - 1);
            uint32_t found = bits_of(name, name_bytes);
            if (found == 0) {
                (void)snprintf(ret_bad, bad_bytes, "%.*s", (int)(name_bytes < 64 ? name_bytes : 64),
                               name);
                return TRP_EINVAL;
            }
            bits |= found;
        }
        at += bytes + (at[bytes] == '&');
    }
    *ret_bits = bits != 0 ? bits : groups[0].bits;
    return TRP_OK;
}

bool
trpi_management_types_add(cJSON *list, uint32_t bits)
{
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < NAMES_COUNT; i++) {
        ok = (bits & 1u << i) == 0 || cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
    }
    return ok;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Add Akka's keys to those of a member. */
static bool
member_widen(cJSON *member)
{
    char number[24];
    uint64_t uid = 0;
    const char *node = trpi_json_get_text(member, "node");
    bool ok = node != NULL && trpi_json_get_u64(member, "nodeUid", &uid) &&
              trpi_json_add_text(member, "dataCenter", "default");
    cJSON *address = ok ? cJSON_AddObjectToObject(member, "uniqueAddress") : NULL;
    (void)snprintf(number, sizeof number, "%" PRId64, (int64_t)uid); /* Akka's is signed */
    return trpi_json_add_text(address, "address", node) &&
           cJSON_AddRawToObject(address, "longUid", number) != NULL;
}

/* Add Akka's key to those of a leader. */
static bool
leader_widen(cJSON *event)
{
    return trpi_json_add_text(event, "address", trpi_json_get_text(event, "leader"));
}

trp_err
trpi_management_event_write(const char *object, trpi_buffer *text, uint32_t *ret_bit)
{
    cJSON *json = NULL;
    char *printed = NULL;
    trp_err err = trpi_json_parse(object, strlen(object), &json, NULL);
    cJSON *event = cJSON_GetObjectItemCaseSensitive(json, "event");
    const char *type = trpi_json_get_text(event, "type");
    uint32_t bit = type != NULL ? bits_of(type, strlen(type)) : 0;
    if (err == TRP_OK && (bit == 0 || (bit & (bit - 1)) != 0)) {
        err = TRP_EDATA;
    }
    if (err == TRP_OK) {
        cJSON *member = cJSON_GetObjectItemCaseSensitive(event, "member");
        bool leads = cJSON_GetObjectItemCaseSensitive(event, "leader") != NULL;
        bool ok = (member == NULL || member_widen(member)) && (!leads || leader_widen(event));
        printed = ok ? trpi_json_print(event) : NULL;
        err = printed == NULL ? TRP_ENOMEM : TRP_OK;
    }
    if (err == TRP_OK) { /* the JSON has no line breaks */
        err = trpi_buffer_printf(text, OUT_BYTES_MAX, "data:%s\nevent:%s\n\n", printed, type);
    }
    if (err == TRP_OK) {
        *ret_bit = bit;
    }
    cJSON_free(printed);
    cJSON_Delete(json);
    return err;
}

/* ---- the feed -------------------------------------------------------------------------------- */

void
trpi_management_feed_init(trpi_management_feed *feed, uint64_t epoch)
{
    memset(feed, 0, sizeof *feed);
    feed->epoch = epoch;
    feed->next = feed->first = 1;
}

static trpi_management_kept *
place_of(const trpi_management_feed *feed, uint64_t number)
{
    return (trpi_management_kept *)&feed->kept[number % TRPI_MANAGEMENT_EVENTS_MAX];
}

/* Forget the events before `first`. */
static void
events_drop(trpi_management_feed *feed, uint64_t first)
{
    for (; feed->first < first; feed->first++) {
        trpi_management_kept *event = place_of(feed, feed->first);
        trpi_free(event->text);
        event->text = NULL;
    }
}

void
trpi_management_feed_fini(trpi_management_feed *feed)
{
    events_drop(feed, feed->next);
}

void
trpi_management_feed_add(trpi_management_feed *feed, const char *object)
{
    trpi_buffer text = { 0 };
    uint32_t bit = 0;
    uint64_t number = feed->next++;
    trp_err err = object == NULL
                      ? TRP_ENOMEM
                      : trpi_buffer_printf(&text, TEXT_BYTES_MAX, "id:%" PRIu64 "-%" PRIu64 "\n",
                                           feed->epoch, number);
    err = err == TRP_OK ? trpi_management_event_write(object, &text, &bit) : err;
    char *kept = err == TRP_OK ? trpi_buffer_take_text(&text) : NULL;
    trpi_buffer_fini(&text);
    if (kept == NULL) { /* events-F1: a hole ends all readers */
        events_drop(feed, number);
        feed->first = feed->next;
        return;
    }
    if (number - feed->first == TRPI_MANAGEMENT_EVENTS_MAX) {
        events_drop(feed, feed->first + 1);
    }
    *place_of(feed, number) = (trpi_management_kept){ kept, bit };
}

/* Read the decimal number of so many digits, and nothing else. */
static bool
number_take(const char *text, size_t bytes, uint64_t *ret_number)
{
    uint64_t number = 0;
    bool ok = bytes > 0;
    for (size_t i = 0; ok && i < bytes; i++) {
        ok = text[i] >= '0' && text[i] <= '9' && !__builtin_mul_overflow(number, 10u, &number) &&
             !__builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number);
    }
    *ret_number = number;
    return ok;
}

bool
trpi_management_feed_resumes(const trpi_management_feed *feed, const char *id, uint64_t *ret_next)
{
    uint64_t epoch = 0, number = 0;
    const char *dash = id != NULL ? strchr(id, '-') : NULL;
    if (dash == NULL || !number_take(id, (size_t)(dash - id), &epoch) ||
        !number_take(dash + 1, strlen(dash + 1), &number)) {
        return false;
    }
    if (epoch != feed->epoch || number >= feed->next || number + 1 < feed->first) {
        return false; /* events-F2; from the future; too old */
    }
    *ret_next = number + 1;
    return true;
}

bool
trpi_management_feed_read(const trpi_management_feed *feed, uint64_t *next, uint32_t bits,
                          size_t bytes_max, trpi_buffer *text)
{
    if (*next < feed->first) {
        return false; /* events-F1 */
    }
    trpi_assert(*next <= feed->next);
    size_t before = text->count;
    for (; *next < feed->next && text->count - before < bytes_max; ++*next) {
        const trpi_management_kept *event = place_of(feed, *next);
        if ((event->bit & bits) != 0 &&
            trpi_buffer_append_text(text, event->text, OUT_BYTES_MAX) != TRP_OK) {
            return false;
        }
    }
    return true;
}

trp_err
trpi_management_feed_mark(const trpi_management_feed *feed, uint64_t number, trpi_buffer *text)
{
    return trpi_buffer_printf(text, OUT_BYTES_MAX, "id:%" PRIu64 "-%" PRIu64 "\n\n", feed->epoch,
                              number);
}

/* Append a kept event as a member of a list: its id and its data are the first two lines of its
 * text (feed_add). */
static trp_err
listed_append(const trpi_management_kept *event, bool is_first, trpi_buffer *text)
{
    static const char id_key[] = "id:", data_key[] = "data:";
    const char *id = event->text + sizeof id_key - 1, *id_end = strchr(id, '\n');
    trpi_assert(id_end != NULL && strncmp(id_end + 1, data_key, sizeof data_key - 1) == 0);
    const char *data = id_end + sizeof data_key;
    return trpi_buffer_printf(text, OUT_BYTES_MAX, "%s{\"id\":\"%.*s\",\"event\":%.*s}",
                              is_first ? "" : ",", (int)(id_end - id), id, (int)strcspn(data, "\n"),
                              data);
}

char *
trpi_management_feed_list(const trpi_management_feed *feed, uint32_t bits, uint32_t count)
{
    trpi_buffer text = { 0 };
    uint64_t from = feed->next;
    for (uint32_t found = 0; from > feed->first && found < count; from--) {
        found += (place_of(feed, from - 1)->bit & bits) != 0 ? 1 : 0;
    }
    trp_err err = trpi_buffer_printf(&text, OUT_BYTES_MAX, "{\"complete\":%s,\"events\":[",
                                     feed->first == 1 ? "true" : "false");
    bool is_first = true;
    for (uint64_t at = from; err == TRP_OK && at < feed->next; at++) {
        const trpi_management_kept *event = place_of(feed, at);
        if ((event->bit & bits) != 0) {
            err = listed_append(event, is_first, &text);
            is_first = false;
        }
    }
    err = err == TRP_OK ? trpi_buffer_append(&text, "]}", 3, OUT_BYTES_MAX) : err;
    char *list = err == TRP_OK ? cJSON_malloc(text.count) : NULL;
    if (list != NULL) {
        memcpy(list, text.data, text.count);
    }
    trpi_buffer_fini(&text);
    return list;
}
