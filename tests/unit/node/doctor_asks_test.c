/* doctor_asks_test.c - cycles of asks: found with all their actors, at any length, and nothing else
 * is one. */
#include "cluster/node/doctor_asks.h"
#include "tests/unit/unit.h"

#define SELF "troupe.tcp://demo@10.0.0.1:2552"
#define OTHER "troupe.tcp://demo@10.0.0.2:2552"
enum { CHAIN = 400 };

static void
add(trpi_doctor_asks *asks, char from, char to, uint64_t waited_ms)
{
    char name[96], keys[2][96];
    snprintf(name, sizeof name, "%s/user/%c", from < 'a' ? OTHER : SELF, from);
    snprintf(keys[0], sizeof keys[0], "%s/#%d@1", from < 'a' ? OTHER : SELF, from);
    snprintf(keys[1], sizeof keys[1], "%s/#%d@1", to < 'a' ? OTHER : SELF, to);
    UNIT_REQUIRE(trpi_doctor_asks_add(asks, name, keys[0], keys[1], waited_ms));
}

/* "ab bc": a waits for b, b for c; of this node, capital letters of another one. The first one
 * waits 9.9 s, the next 9.8 s. */
static trpi_doctor_asks
asks_of(const char *pairs)
{
    trpi_doctor_asks asks = { NULL, 0, 0 };
    uint64_t waited_ms = 9900;
    for (const char *p = pairs; p[0] != '\0'; p += p[2] == ' ' ? 3 : 2, waited_ms -= 100) {
        add(&asks, p[0], p[1], waited_ms);
    }
    return asks;
}

static uint32_t
cycles(const char *pairs, char text[400])
{
    trpi_doctor_asks asks = asks_of(pairs);
    text[0] = '\0';
    return trpi_doctor_asks_cycles(&asks, SELF, text, 400);
}

static void
cycles_are_found_with_all_their_actors(void)
{
    char text[400];
    UNIT_EQUAL(cycles("", text), 0);
    UNIT_EQUAL(cycles("ab", text), 0);
    UNIT_EQUAL(cycles("ab bc cd ad bd", text), 0);
    UNIT_TEXT(text, "");
    UNIT_EQUAL(cycles("aa", text), 1);
    UNIT_TEXT(text, "/user/a has waited 9.9 s for itself");
    UNIT_EQUAL(cycles("ab ba", text), 1);
    UNIT_TEXT(text, "/user/a has waited 9.9 s for /user/b, which has waited 9.8 s for /user/a");
    /* two asks between the same; actors that wait for the cycle; answers that do not come */
    UNIT_EQUAL(cycles("da xy bc ab ab ca eb cx", text), 1);
    UNIT_TEXT(text, "/user/b has waited 9.7 s for /user/c, which has waited 9.4 s for /user/a, "
                    "which has waited 9.5 s for /user/b");
    UNIT_EQUAL(cycles("ab ba cd de ec ff", text), 3);
    UNIT_EQUAL(cycles("ab ba bc cb", text), 1); /* b is in both */
    UNIT_EQUAL(cycles("da ab ba de ed", text), 2);
    UNIT_EQUAL(cycles("aB Ba", text), 1);
    UNIT_TEXT(text, SELF "/user/a has waited 9.9 s for " OTHER "/user/B, which has waited 9.8 s "
                         "for " SELF "/user/a");
    UNIT_EQUAL(cycles("aB Bc", text), 0);
    UNIT_EQUAL(cycles("Aa aB BA", text), 1);
}

/* The same path, and the same numbers on another life of the node, are other actors. */
static void
incarnations_are_told_apart(void)
{
    static const char *const again[] = { SELF "/#7@1", SELF "/#7@2", SELF "/#8@1", OTHER "/#7@1" };
    char text[400] = "";
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        trpi_doctor_asks asks = { NULL, 0, 0 };
        UNIT_REQUIRE(trpi_doctor_asks_add(&asks, SELF "/user/a", SELF "/#7@1", SELF "/#3@1", 1));
        UNIT_REQUIRE(trpi_doctor_asks_add(&asks, SELF "/user/b", SELF "/#3@1", again[i], 1));
        UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, SELF, text, sizeof text), i == 0);
    }
}

/* A chain of CHAIN actors, closed or not. */
static trpi_doctor_asks
chain_of(bool closed)
{
    trpi_doctor_asks asks = { NULL, 0, 0 };
    for (int i = 0; i + 1 < CHAIN || (closed && i < CHAIN); i++) {
        char name[96], keys[2][96];
        snprintf(name, sizeof name, SELF "/user/%d", i);
        snprintf(keys[0], sizeof keys[0], SELF "/#%d@1", i + 1);
        snprintf(keys[1], sizeof keys[1], SELF "/#%d@1", (i + 1) % CHAIN + 1);
        UNIT_REQUIRE(trpi_doctor_asks_add(&asks, name, keys[0], keys[1], (uint64_t)(9000 - i)));
    }
    return asks;
}

static void
a_long_cycle_is_cut_in_the_text(void)
{
    trpi_doctor_asks asks = chain_of(true);
    char text[400];
    UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, SELF, text, 125), 1);
    UNIT_TEXT(text, "/user/0 has waited 9.0 s for /user/1, which has waited 8.9 s for /user/2, and "
                    "397 more");
    UNIT_TRUE(asks.list == NULL && asks.count == 0);
    for (size_t bytes = 1; bytes < 200; bytes++) { /* at any length */
        asks = asks_of("ab ba");
        UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, SELF, text, bytes), 1);
        UNIT_TRUE(strlen(text) < bytes);
    }
    asks = asks_of("aB Ba");
    UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, SELF, text, 140), 1);
    UNIT_TEXT(text,
              SELF "/user/a has waited 9.9 s for " OTHER "/user/B, which waits for the first");
    asks = chain_of(false);
    UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, SELF, text, sizeof text), 0);
}

/* The slowest ones: as many cycles as a node may have asks, and one as long. */
static void
many_asks_take_no_long(void)
{
    trpi_doctor_asks asks = { NULL, 0, 0 };
    char text[400];
    for (uint32_t i = 0; i < TRPI_DOCTOR_ASKS_MAX; i++) {
        char key[96];
        snprintf(key, sizeof key, SELF "/#%u@1", i + 1);
        UNIT_REQUIRE(trpi_doctor_asks_add(&asks, SELF "/user/a", key, key, 1));
    }
    uint64_t begun_ms = unit_now_ms();
    UNIT_EQUAL(trpi_doctor_asks_cycles(&asks, SELF, text, sizeof text), TRPI_DOCTOR_ASKS_MAX);
    UNIT_TRUE(unit_now_ms() - begun_ms < 20000); /* a hundredth of it, here */
}

static void
the_longest_waiting_are_kept(void)
{
    trpi_doctor_asks asks = asks_of("ab cd ef");
    add(&asks, 'x', 'y', 20000);
    UNIT_TRUE(trpi_doctor_asks_longest(&asks, 4)); /* at the limit */
    UNIT_EQUAL(asks.count, 4);
    UNIT_FALSE(trpi_doctor_asks_longest(&asks, 3));
    UNIT_EQUAL(asks.count, 3);
    UNIT_TEXT(asks.list[0].name, SELF "/user/x");
    UNIT_TEXT(asks.list[1].name, SELF "/user/a");
    UNIT_TEXT(asks.list[2].name, SELF "/user/c");
    trpi_doctor_asks_fini(&asks);
}

/* A node tells another one only asks that may be part of a cycle over both. */
static void
asks_of_actors_that_wait_for_nobody_are_dropped(void)
{
    trpi_doctor_asks asks = asks_of("ab bC cd de fa");
    UNIT_TRUE(trpi_doctor_asks_trim(&asks, SELF));
    UNIT_EQUAL(asks.count, 3); /* ab bC fa */
    for (size_t i = 0; i < asks.count; i++) {
        UNIT_TRUE(strchr("abf", asks.list[i].name[strlen(asks.list[i].name) - 1]) != NULL);
    }
    trpi_doctor_asks_fini(&asks);
    asks = asks_of("ab bc");
    UNIT_TRUE(trpi_doctor_asks_trim(&asks, SELF));
    UNIT_EQUAL(asks.count, 0);
    trpi_doctor_asks_fini(&asks);
    UNIT_TRUE(trpi_doctor_asks_trim(&asks, SELF)); /* none */
    trpi_doctor_asks_fini(&asks);
}

static uint32_t
next(uint32_t *random, uint32_t below)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 16) % below;
}

/* Against the slow way: an actor is in a cycle when it reaches itself. */
static void
random_asks_have_cycles_when_an_actor_reaches_itself(void)
{
    enum { ACTORS = 7, ROUNDS = 2000 };
    uint32_t random = 1; /* the same graphs each time; one that fails is printed */
    for (int round = 0; round < ROUNDS; round++) {
        char pairs[64] = "", text[400];
        bool reach[ACTORS][ACTORS] = { { false } }, any = false;
        size_t used = 0;
        for (int edges = (int)next(&random, 10); edges > 0; edges--) {
            int from = (int)next(&random, ACTORS), to = (int)next(&random, ACTORS);
            reach[from][to] = true;
            used += (size_t)snprintf(pairs + used, sizeof pairs - used, "%s%c%c",
                                     used > 0 ? " " : "", 'a' + from, 'a' + to);
        }
        for (int k = 0; k < ACTORS; k++) {
            for (int i = 0; i < ACTORS; i++) {
                for (int j = 0; j < ACTORS; j++) {
                    reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
                }
            }
        }
        for (int i = 0; i < ACTORS; i++) {
            any = any || reach[i][i];
        }
        bool found = cycles(pairs, text) > 0;
        if (found != any) {
            printf("    %s\n", pairs);
        }
        UNIT_EQUAL(found, any);
    }
}

UNIT_BEGIN("doctor_asks")
UNIT(cycles_are_found_with_all_their_actors)
UNIT(incarnations_are_told_apart)
UNIT(a_long_cycle_is_cut_in_the_text)
UNIT(many_asks_take_no_long)
UNIT(the_longest_waiting_are_kept)
UNIT(asks_of_actors_that_wait_for_nobody_are_dropped)
UNIT(random_asks_have_cycles_when_an_actor_reaches_itself)
UNIT_END
