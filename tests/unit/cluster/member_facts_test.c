/* Since when each member is Up, and which version of Troupe it runs, are known alike everywhere. */
#include <string.h>

#include "tests/unit/cluster/histories.h"

#define WALL_S 1700000000u /* of mesh.h, at its start */

static uint32_t
up_since_s(const struct mesh *m, uint32_t at, uint32_t of)
{
    const trpi_gossip *g = trpi_member_view(m->cores[at]);
    uint32_t index =
        g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(g, trpi_ident_key(&m->ids[of]));
    return index == TRPI_GOSSIP_NONE ? 0 : g->members[index].up_since_s;
}

static const char *
build_of(const struct mesh *m, uint32_t at, uint32_t of)
{
    const trpi_gossip *g = trpi_member_view(m->cores[at]);
    uint32_t index =
        g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(g, trpi_ident_key(&m->ids[of]));
    return index == TRPI_GOSSIP_NONE ? "" : g->members[index].ident->build;
}

/* Clocks differ by minutes, one joins when the others are Up for long, the leader goes. */
static void
all_know_since_when_each_is_up_by_the_clock_of_who_made_it_up(void)
{
    trpi_member_options options = { .seed = 1, .build = "0.1.0" };
    struct mesh *m = mesh_new();
    uint32_t at_s[4];
    for (uint32_t i = 0; i < 4; i++) {
        static const char *const builds[] = { "0.1.0", "0.2.0", "0.1.0", "0.3.0-rc1" };
        options.build = builds[i];
        mesh_add(m, &options);
        m->ahead_ms[i] = i == 0 ? 600000 : -(int64_t)i * 60000;
    }
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
        at_s[i] = WALL_S + (uint32_t)(m->now_ms / 1000);
        mesh_run(m, 100000);
    }
    for (uint32_t of = 0; of < 4; of++) { /* host0 is the first in order, so it leads */
        uint32_t since_s = up_since_s(m, 0, of);
        UNIT_TRUE(since_s >= at_s[of] + 600 && since_s <= at_s[of] + 610);
        for (uint32_t at = 0; at < 4; at++) {
            UNIT_EQUAL(up_since_s(m, at, of), since_s);
            UNIT_TEXT(build_of(m, at, of), build_of(m, of, of));
        }
    }
    UNIT_TEXT(build_of(m, 0, 3), "0.3.0-rc1");
    uint32_t since_s = up_since_s(m, 1, 2);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    mesh_run(m, 100000);
    UNIT_EQUAL(mesh_members(m, 1), 3);
    for (uint32_t at = 1; at < 4; at++) { /* another leads; what was is as it was */
        UNIT_EQUAL(up_since_s(m, at, 2), since_s);
    }
    mesh_free(m);
}

/* One member, Up, with these facts. */
static trpi_gossip *
view_of_one(uint32_t up_number, uint32_t since_s, const char *build)
{
    trpi_node_id id = mesh_id(0, 100);
    trpi_ident *ident = NULL;
    trpi_gossip *g = trpi_gossip_new();
    UNIT_REQUIRE(g != NULL && trpi_ident_new(&id, NULL, 0, "1.0", &ident) == TRP_OK);
    trpi_ident_set_build(ident, build);
    UNIT_EQUAL(trpi_gossip_add(g, ident, TRP_MEMBER_UP, up_number), TRP_OK);
    trpi_ident_unref(ident);
    g->members[0].up_since_s = since_s;
    UNIT_EQUAL(trpi_gossip_count_up(g, trpi_ident_key(&id)), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    return g;
}

/* Return the facts when `came` is read where `known` is the view (NULL: none). */
static void
reads_as(trpi_gossip *came, trpi_gossip *known, uint32_t since_s, const char *build)
{
    trpi_gossip *read = NULL;
    UNIT_EQUAL(trpi_gossip_encode(came), TRP_OK);
    UNIT_REQUIRE(trpi_gossip_decode(came->encoded, came->encoded_bytes, known, &read) == TRP_OK);
    UNIT_EQUAL(read->digest, came->digest);
    UNIT_EQUAL(read->members[0].up_since_s, since_s);
    UNIT_TEXT(read->members[0].ident->build, build);
    trpi_gossip_unref(read);
}

/* Builds before it write neither, and pass views on without: this node's own view fills them in. */
static void
what_an_older_build_has_dropped_is_filled_in(void)
{
    idents_make();
    trpi_gossip *full = view_of_one(3, 1000, "0.1.0"), *bare = view_of_one(3, 0, "");
    trpi_gossip *other = view_of_one(2, 0, ""), *newer = view_of_one(3, 990, "0.2.0");
    reads_as(full, NULL, 1000, "0.1.0");
    reads_as(bare, NULL, 0, "");
    reads_as(bare, full, 1000, "0.1.0");
    reads_as(full, bare, 1000, "0.1.0");
    reads_as(other, full, 0, "0.1.0");      /* made Up by another leader, at another moment */
    UNIT_EQUAL(full->digest, bare->digest); /* so that older builds agree with this one */
    UNIT_EQUAL(bare->encoded_bytes + 1 + 3 + 6, full->encoded_bytes);
    trpi_gossip *pairs[][2] = { { full, newer }, { newer, full } };
    for (size_t i = 0; i < 2; i++) { /* alike, whichever comes first */
        trpi_gossip *a = trpi_gossip_copy(pairs[i][0]), *b = trpi_gossip_copy(pairs[i][1]);
        trpi_gossip *merged = NULL;
        UNIT_EQUAL(trpi_gossip_add_clock(a, idents[1]->key, 5), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(a, idents[1], TRP_MEMBER_JOINING, 0), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add_clock(b, idents[2]->key, 5), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(b, idents[2], TRP_MEMBER_JOINING, 0), TRP_OK);
        UNIT_EQUAL(trpi_gossip_freeze(a), TRP_OK);
        UNIT_EQUAL(trpi_gossip_freeze(b), TRP_OK);
        UNIT_REQUIRE(trpi_gossip_merge(a, b, &merged) == TRP_OK);
        UNIT_EQUAL(merged->members_count, 3);
        UNIT_EQUAL(merged->members[0].up_since_s, 990);
        UNIT_TEXT(merged->members[0].ident->build, "0.2.0");
        trpi_gossip_unref(a);
        trpi_gossip_unref(b);
        trpi_gossip_unref(merged);
    }
    trpi_gossip_unref(full);
    trpi_gossip_unref(bare);
    trpi_gossip_unref(other);
    trpi_gossip_unref(newer);
    idents_free();
}

/* Facts of another form, of a later build, are unknown here, and the view is read all the same. */
static void
facts_that_are_none_are_unknown(void)
{
    trpi_gossip *g = view_of_one(1, 77, "0.1.0");
    trpi_gossip *read = NULL;
    UNIT_EQUAL(trpi_gossip_encode(g), TRP_OK);
    uint8_t *since = NULL;
    for (size_t i = 0; i + 7 < g->encoded_bytes; i++) { /* 77, then a text of 5 bytes */
        since = memcmp(g->encoded + i,
                       "\x4d\xa5"
                       "0.1.0",
                       7) == 0
                    ? g->encoded + i
                    : since;
    }
    UNIT_REQUIRE(since != NULL);
    since[0] = 0xc0; /* nil */
    since[2] = ' ';
    UNIT_REQUIRE(trpi_gossip_decode(g->encoded, g->encoded_bytes, NULL, &read) == TRP_OK);
    UNIT_EQUAL(read->members[0].up_since_s, 0);
    UNIT_EQUAL(read->members[0].up_number, 1);
    UNIT_TEXT(read->members[0].ident->build, "");
    trpi_gossip_unref(read);
    trpi_gossip_unref(g);
    char longest[TRPI_BUILD_BYTES_MAX + 2];
    memset(longest, '1', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    g = view_of_one(1, UINT32_MAX, longest); /* one byte too long */
    reads_as(g, NULL, UINT32_MAX, "");
    trpi_gossip_unref(g);
    longest[TRPI_BUILD_BYTES_MAX] = '\0';
    g = view_of_one(1, UINT32_MAX, longest);
    reads_as(g, NULL, UINT32_MAX, longest);
    trpi_gossip_unref(g);
}

UNIT_BEGIN("member-facts")
UNIT(all_know_since_when_each_is_up_by_the_clock_of_who_made_it_up)
UNIT(what_an_older_build_has_dropped_is_filled_in)
UNIT(facts_that_are_none_are_unknown)
UNIT_END
