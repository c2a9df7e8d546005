/* ring_test.c - consistent hashing: keys from three sources, and a ring that keeps its places. */
#include "pattern/routing.h"
#include "tests/unit/pattern/crew.h"

#include <inttypes.h>

#define KEYS 2000

typedef struct keyed_msg {
    uint64_t key, value;
} keyed_msg;
static const trp_field keyed_fields[] = { { "key", TRP_FIELD_u64, offsetof(keyed_msg, key) },
                                          { "value", TRP_FIELD_u64, offsetof(keyed_msg, value) } };
static trp_type keyed_type = { "ringtest.keyed", sizeof(keyed_msg), 1, 0, keyed_fields, 2, 0 };
static trp_type *const ring_types[] = { &keyed_type };
static const trp_protocol ring_protocol = { "ringtest", ring_types, 1 };

static int
key_of_struct(void *arg, const trp_msg *msg, trp_hash_key *ret_key)
{
    (void)arg;
    ret_key->bytes = trp_msg_payload(msg);
    ret_key->count = sizeof(uint64_t);
    return 1;
}

/* Texts "evict KEY": the key. Nothing else is mapped. */
static int
key_of_text(void *arg, const trp_msg *msg, trp_hash_key *ret_key)
{
    const char *text = trp_msg_payload(msg);

    UNIT_TRUE(arg == &keyed_type);
    if (!trp_msg_is(msg, &trp_string_type) || trp_msg_bytes(msg) <= 6 ||
        memcmp(text, "evict ", 6) != 0) {
        return 0;
    }
    ret_key->bytes = text + 6;
    ret_key->count = trp_msg_bytes(msg) - 6;
    return 1;
}

static trp_ref
open_ring(trp_system *system, const char *name, uint32_t instances)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.logic = "consistent-hashing";
    options.instances = instances;
    options.hash_mapping = key_of_text;
    options.hash_arg = &keyed_type;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, name, &options, &ref),
               TRP_OK);
    return ref;
}

/* ROUTE-12: the mapping of the router, the type's own key and the envelope lead equal keys to one
 * routee, whichever of them gives the key; the routee gets the content of the envelope. */
static void
equal_keys_of_all_three_sources_meet(void)
{
    trp_system *system = crew_open();
    trp_ref none = TRP_REF_NONE, router = open_ring(system, "cache", 10), refs[CREW_MAX];
    int64_t seven = 7;
    int used = 0, hits[10] = { 0 };

    UNIT_EQUAL(trp_protocol_register(&ring_protocol), TRP_OK);
    UNIT_EQUAL(trp_type_hash_key_set(&keyed_type, key_of_struct, NULL), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 10);
    for (uint64_t i = 0; i < 200; i++) {
        char text[32] = "evict ";
        keyed_msg msg = { i * 0x0101010101010101u, 0 };
        trp_ref by_mapping, by_type;
        int index;

        memcpy(text + 6, &msg.key, 8);
        by_mapping = crew_route(system, router, &trp_string_type, text, 14);
        by_type = crew_route(system, router, &keyed_type, &msg, sizeof msg);
        UNIT_TRUE(trp_ref_equal(by_mapping, by_type));
        index = crew_index(refs, 10, by_type);
        if (index < 0) {
            UNIT_FAIL("no routee");
            break;
        }
        used += hits[index]++ == 0;
        trp_system_router_tell_keyed(system, router, none, &msg.key, 8, &trp_i64_type, &seven, 8);
    }
    UNIT_TRUE(used >= 8); /* 200 keys over 10 routees of 10 places */
    for (int i = 0; i < 10; i++) {
        UNIT_EQUAL(crew_sum(system, refs[i]), 7 * hits[i]);
    }
    UNIT_EQUAL(trp_type_hash_key_set(&keyed_type, NULL, NULL), TRP_OK);
    stage_close(system);
}

/* ROUTE-12: no source knows a key: a dead letter, and one warning. */
static void
a_message_without_a_key_is_a_dead_letter(void)
{
    trp_system *system = crew_open();
    trp_ref router = open_ring(system, "cache", 3);
    trp_system_stats stats = { .size = sizeof stats };

    stage_tell(system, router, "no key");
    stage_tell(system, router, "none either");
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_NO_SUCH_ACTOR], 2);
    UNIT_WAIT(stage_book_has(&stage_lines, "[2 /user/cache: a message of type troupe.string has no "
                                           "hash key"),
              5000);
    stage_close(system);
    UNIT_TRUE(strstr(strstr(stage_lines.text, "hash key") + 1, "[2 ") == NULL);
}

/* ROUTE-12: without one of ten routees only its keys move, and they spread over the others; with it
 * again, all are back. And so on a live router. */
static void
only_the_keys_of_a_lost_routee_move(void)
{
    trpi_routee routees[10];
    trpi_routee *all[10], *fewer[9];
    trpi_routee_table *whole, *less;
    int moved_from_lost = 0, kept = 0, to[10] = { 0 }, used = 0;

    memset(routees, 0, sizeof routees);
    for (uint32_t i = 0; i < 10; i++) {
        routees[i].ref = (trp_ref){ 1, i + 1, 1, 0 };
        routees[i].identity = 0x9e3779b97f4a7c15u * (i + 1);
        all[i] = &routees[i];
        if (i != 4) {
            fewer[i < 4 ? i : i - 1] = &routees[i];
        }
    }
    UNIT_EQUAL(trpi_routee_table_new(all, 10, 10, &whole), TRP_OK);
    UNIT_EQUAL(trpi_routee_table_new(fewer, 9, 10, &less), TRP_OK);
    UNIT_EQUAL(whole->places_count, 100);
    for (uint64_t key = 0; key < KEYS; key++) {
        uint64_t hash = key * 0x2545f4914f6cdd1du + 0x1234567;
        trp_ref before = whole->refs[trpi_routee_table_lookup(whole, hash)];
        trp_ref after = less->refs[trpi_routee_table_lookup(less, hash)];

        if (before.slot == 5) {
            moved_from_lost++;
            to[after.slot - 1]++;
        } else if (trp_ref_equal(before, after)) {
            kept++;
        }
    }
    UNIT_EQUAL(kept + moved_from_lost, KEYS);
    UNIT_TRUE(moved_from_lost > KEYS / 40 && moved_from_lost < KEYS / 3);
    for (int i = 0; i < 10; i++) {
        used += to[i] > 0;
    }
    UNIT_TRUE(used >= 3);
    trpi_routee_table_free(whole);
    trpi_routee_table_free(less);
}

static void
the_ring_of_a_router_follows_its_routees(void)
{
    trp_system *system = crew_open();
    trp_ref router = open_ring(system, "cache", 6), refs[CREW_MAX], before[300];
    int moved = 0, lost = 0;
    trp_remove_routee remove;

    UNIT_EQUAL(trp_protocol_register(&ring_protocol), TRP_OK);
    UNIT_EQUAL(trp_type_hash_key_set(&keyed_type, key_of_struct, NULL), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 6);
    for (uint64_t i = 0; i < 300; i++) {
        keyed_msg msg = { i, 0 };

        before[i] = crew_route(system, router, &keyed_type, &msg, sizeof msg);
    }
    remove.routee = refs[2];
    trp_system_tell(system, router, &trp_remove_routee_type, &remove, sizeof remove);
    UNIT_WAIT(crew_count(system, router) == 5, 5000);
    for (uint64_t i = 0; i < 300; i++) {
        keyed_msg msg = { i, 0 };
        trp_ref after = crew_route(system, router, &keyed_type, &msg, sizeof msg);

        lost += trp_ref_equal(before[i], refs[2]);
        moved += !trp_ref_equal(before[i], after);
    }
    UNIT_EQUAL(moved, lost);
    UNIT_TRUE(lost > 0);
    UNIT_EQUAL(trp_type_hash_key_set(&keyed_type, NULL, NULL), TRP_OK);
    stage_close(system);
}

UNIT_BEGIN("ring")
UNIT(equal_keys_of_all_three_sources_meet)
UNIT(a_message_without_a_key_is_a_dead_letter)
UNIT(only_the_keys_of_a_lost_routee_move)
UNIT(the_ring_of_a_router_follows_its_routees)
UNIT_END
