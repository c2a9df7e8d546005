/* control_deadletters.c - deadletters: the last messages of this node that reached no actor.
 *
 * Why.     The counters of `status` say that messages are lost; this says which, and where to. An
 *          entry has no payload: whoever may ask the node need not see what its actors tell.
 * Shape.   The engine shows each dead letter on the thread that lost it (trpi_dead_watch). It goes
 *          into a ring; the command reads the ring, and with `follow` waits for what comes next.
 *          The nearest path is looked for when somebody asks, never when a message is lost.
 * Limits.  TRPI_DEAD_RING_BYTES; NEAREST_MAX, SIBLINGS_MAX.
 * Cost.    Nothing before the first dead letter. One: a path of its sender, a copy, a lock.
 * Tests.   tests/unit/node/deadletters_test.c, tests/system/observe.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/nearest.h"
#include "cluster/node/doctor.h"
#include "cluster/node/node_private.h"

#define NEAREST_MAX 16u    /* paths of one answer */
#define SIBLINGS_MAX 2000u /* below one parent; with more of them no guess is made */
#define LOOK_MS 100u       /* for an actor to tell its children */

/* One record; sender and path stand behind it, each with its NUL. */
typedef struct letter {
    int64_t wall_ms;
    uint64_t bytes;
    uint32_t reason, type;
    uint32_t sender_bytes, path_bytes; /* with the NUL */
} letter;

#define LETTER_BYTES_MAX (sizeof(letter) + 2u * (TRP_PATH_BYTES_MAX + 1u))
_Static_assert(LETTER_BYTES_MAX <= TRPI_DEAD_RING_BYTES / 4, "a letter always fits the ring");

/* ---- writing --------------------------------------------------------------------------------- */

/* trpi_dead_fn: any thread that loses a message. */
static void
letter_take(void *arg, trp_system *system, const trp_dead_letter *what)
{
    trp_node *node = arg;
    char record[LETTER_BYTES_MAX], sender[TRP_PATH_BYTES_MAX + 1] = "";
    letter head = { .wall_ms = trpi_world_wall_ms(trpi_system_world(system)),
                    .bytes = what->bytes,
                    .reason = what->reason,
                    .type = what->type };
    if (!trp_ref_is_none(what->sender)) {
        trp_path(system, what->sender, sender, sizeof sender);
    }
    head.sender_bytes = (uint32_t)strlen(sender) + 1;
    head.path_bytes = (uint32_t)strlen(what->path) + 1;
    memcpy(record, &head, sizeof head);
    memcpy(record + sizeof head, sender, head.sender_bytes);
    memcpy(record + sizeof head + head.sender_bytes, what->path, head.path_bytes);
    trpi_record_ring_put(&node->dead_ring, record,
                         sizeof head + head.sender_bytes + head.path_bytes);
}

void
trpi_node_deadletters_start(trp_node *node)
{
    trpi_dead_watch(node->system, letter_take, node);
}

/* ---- the nearest path ------------------------------------------------------------------------ */

/* The children of the actor above a missing path. */
typedef struct siblings {
    char **names;
    uint32_t count, room;
    uint32_t children; /* of the one that was asked without them */
} siblings;

/* The result for a path that was missing. */
typedef struct guess {
    char missing[256], nearest[256]; /* "": none */
} guess;

typedef struct guesses {
    guess of[NEAREST_MAX];
    uint32_t count;
} guesses;

static int
children_count(void *arg, const trp_tree_entry *entry)
{
    ((siblings *)arg)->children = entry->children;
    return 0;
}

static int
name_take(void *arg, const trp_tree_entry *entry)
{
    siblings *s = arg;
    if (entry->depth == 0) {
        return 0;
    }
    if (trpi_array_reserve(&s->names, s->count, &s->room, sizeof *s->names, 1, SIBLINGS_MAX) !=
        TRP_OK) {
        return 1; /* some names are enough for a guess */
    }
    s->names[s->count] = trpi_strdup(entry->path);
    return s->names[s->count] == NULL || ++s->count == 0;
}

/* Look for the nearest name among the children of the lowest actor above path that lives. Ask few
 * actors: their parent alone, and then, if they are not too many, them. */
static void
nearest_look(trp_node *node, const trpi_call *call, guess *g)
{
    siblings s = { 0 };
    char missing[256], parent[256];
    uint32_t part_ms = trpi_call_left_ms(call) / 16;
    uint32_t limit_ms = part_ms < LOOK_MS ? part_ms + 1 : LOOK_MS;
    trp_err err = TRP_ENOENT;
    (void)snprintf(parent, sizeof parent, "%s", g->missing);
    for (char *slash; err == TRP_ENOENT && (slash = strrchr(parent, '/')) > parent;) {
        (void)snprintf(missing, sizeof missing, "%s", parent);
        *slash = '\0';
        err = trp_system_tree(node->system, parent, 0, limit_ms, children_count, &s);
    }
    if (err == TRP_OK && s.children <= SIBLINGS_MAX) { /* too late: some names, or none */
        (void)!trp_system_tree(node->system, parent, 1, limit_ms, name_take, &s);
    }
    const char *found =
        s.count > 0 ? trpi_nearest(missing, (const char *const *)s.names, s.count) : NULL;
    (void)snprintf(g->nearest, sizeof g->nearest, "%s", found != NULL ? found : "");
    for (uint32_t i = 0; i < s.count; i++) {
        trpi_free(s.names[i]);
    }
    trpi_free(s.names);
}

/* The path of a living actor that is like `path`; "": none, or it is not looked for. */
static const char *
nearest_find(trp_node *node, const trpi_call *call, guesses *all, uint32_t reason, const char *path)
{
    if ((reason != TRP_DEAD_NO_SUCH_ACTOR && reason != TRP_DEAD_STALE) || path[0] != '/') {
        return "";
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (strcmp(all->of[i].missing, path) == 0) {
            return all->of[i].nearest;
        }
    }
    if (all->count == NEAREST_MAX) {
        return "";
    }
    guess *g = &all->of[all->count++];
    (void)snprintf(g->missing, sizeof g->missing, "%s", path);
    nearest_look(node, call, g);
    return g->nearest;
}

/* "no such actor" as "no-such-actor": one word for scripts. */
static const char *
reason_word(uint32_t reason, char word[48])
{
    (void)snprintf(word, 48, "%s", trpi_dead_reason_text((trp_dead_reason)reason));
    for (char *c = word; *c != '\0'; c++) {
        *c = *c == ' ' ? '-' : *c;
    }
    return word;
}

void
trpi_node_deadletters_recent(trp_node *node, uint64_t window_ms, trpi_doctor_facts *facts)
{
    char record[LETTER_BYTES_MAX], word[48];
    trpi_record_place place = trpi_record_ring_find(&node->dead_ring, 0);
    int64_t now_ms = trpi_world_wall_ms(trpi_system_world(node->system)), first_ms = now_ms;
    bool all = place.number == 1; /* else the oldest ones were overwritten */
    uint64_t until = trpi_record_ring_newest(&node->dead_ring);
    size_t bytes = 0;
    facts->dead_letters_ms = window_ms;
    while (place.number <= until &&
           trpi_record_ring_read(&node->dead_ring, &place, record, &bytes)) {
        letter head;
        memcpy(&head, record, sizeof head);
        first_ms = head.wall_ms < first_ms ? head.wall_ms : first_ms;
        if (now_ms - head.wall_ms <= (int64_t)window_ms) {
            const char *path = record + sizeof head + head.sender_bytes;
            facts->dead_letters++;
            (void)snprintf(facts->dead_letter, sizeof facts->dead_letter, "%s to %s",
                           reason_word(head.reason, word), path[0] != '\0' ? path : "nobody");
        }
    }
    if (!all && now_ms - first_ms < (int64_t)window_ms) {
        facts->dead_letters_ms =
            (uint64_t)(now_ms - first_ms) + 1; /* all that are kept are younger */
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static const char *
text_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static bool
row_add(trp_node *node, const trpi_call *call, guesses *all, cJSON *list, uint64_t number,
        const char *record)
{
    letter head;
    char time[32], word[48];
    memcpy(&head, record, sizeof head);
    const char *sender = record + sizeof head, *path = sender + head.sender_bytes;
    const trp_type *type = trpi_type_get(head.type);
    cJSON *row = cJSON_CreateObject();
    bool ok = trpi_json_add_u64_string(row, "number", number) &&
              trpi_json_add_text(row, "time", trpi_time_format(head.wall_ms, time, sizeof time)) &&
              trpi_json_add_text(row, "reason", reason_word(head.reason, word)) &&
              trpi_json_add_text(row, "type", type != NULL ? type->name : NULL) &&
              trpi_json_add_i64(row, "bytes", (int64_t)head.bytes) &&
              trpi_json_add_text(row, "sender", text_or_null(sender)) &&
              trpi_json_add_text(row, "recipient", text_or_null(path)) &&
              trpi_json_add_text(row, "nearest",
                                 text_or_null(nearest_find(node, call, all, head.reason, path)));
    return trpi_json_append(list, row, ok);
}

/* Add the counters since the start, of all reasons that have one. */
static bool
counts_add(trp_node *node, cJSON *reply)
{
    trp_system_stats stats;
    char word[48];
    uint64_t total = trpi_node_stats(node, &stats);
    bool ok = trpi_json_add_i64(reply, "total", (int64_t)total);
    cJSON *reasons = ok ? cJSON_AddObjectToObject(reply, "byReason") : NULL;
    ok = reasons != NULL;
    for (uint32_t i = 0; ok && i < TRP_DEAD_REASON_COUNT; i++) {
        ok = stats.dead_letters[i] == 0 ||
             trpi_json_add_i64(reasons, reason_word(i, word), (int64_t)stats.dead_letters[i]);
    }
    return ok;
}

bool
trpi_node_records_await(trpi_call *call, trpi_record_ring *ring, trpi_record_place *ret_place)
{
    uint64_t after = call->request.after, newest = trpi_record_ring_newest(ring);
    uint32_t count = call->request.count;
    if (count > 0 && newest > count && after < newest - count) {
        after = newest - count;
    }
    *ret_place = trpi_record_ring_find(ring, after);
    while (call->request.follow && ret_place->missed == 0 &&
           trpi_record_ring_newest(ring) < ret_place->number && trpi_call_left_ms(call) > 0) {
        if (trpi_call_ends(call) || !trpi_call_pause(call, TRPI_FOLLOW_MS)) {
            trpi_call_refuse_order(call, TRP_ECLOSED, "");
            return false;
        }
    }
    return true;
}

void
trpi_node_serve_deadletters(trp_node *node, trpi_call *call)
{
    char record[LETTER_BYTES_MAX];
    trpi_record_place place;
    guesses all = { .count = 0 };
    size_t bytes = 0;
    if (!trpi_node_records_await(call, &node->dead_ring, &place)) {
        return;
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) && counts_add(node, reply);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "deadLetters") : NULL;
    ok = list != NULL;
    uint64_t until = trpi_record_ring_newest(&node->dead_ring);
    while (ok && place.number <= until &&
           trpi_record_ring_read(&node->dead_ring, &place, record, &bytes)) {
        trpi_assert(bytes >= sizeof(letter));
        ok = row_add(node, call, &all, list, place.number - 1, record);
    }
    ok = ok && trpi_json_add_i64(reply, "missed", (int64_t)place.missed) &&
         trpi_json_add_u64_string(reply, "next", place.number - 1);
    trpi_call_answer_if(call, ok, reply);
}
