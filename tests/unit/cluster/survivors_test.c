/* survivors_test.c - the table of docs/operating.md, which side goes on after a loss, agrees with
 * the strategies. */
#include "tests/unit/cluster/scene.h"

static char doc[262144];

struct column {
    const char *strategy;
    const char *keeper; /* what a side must have where that decides: member 0 */
};

/* Return what remains of n when `lost` do not answer any more, over all choices of them. */
static const char *
fate_text(const struct column *column, uint32_t n, uint32_t lost, char *buffer, size_t bytes)
{
    trpi_downing_options options = { .stable_after_ms = 20000,
                                     .quorum_size = n / 2 + 1,
                                     .least_nodes = 1,
                                     .referee = mesh_id(0, 0).address };
    uint32_t on = 0, off = 0, keeps = 0;
    for (uint32_t gone = 1; gone < 1u << n; gone++) {
        if ((uint32_t)__builtin_popcount(gone) != lost) {
            continue;
        }
        uint32_t rest = ((1u << n) - 1) & ~gone;
        enum fate fate = fate_of(column->strategy, &options, n, rest, NULL);
        UNIT_TRUE(fate != FATE_MIXED);
        on += fate == FATE_STAYS ? 1 : 0;
        off += fate == FATE_STOPS ? 1 : 0;
        keeps += (fate == FATE_STAYS) == ((rest & 1) != 0) ? 1 : 0;
    }
    UNIT_TRUE(on == 0 || off == 0 || keeps == on + off);
    snprintf(buffer, bytes,
             on == 0    ? "stop"
             : off == 0 ? "go on"
                        : "go on with %s",
             column->keeper);
    return buffer;
}

static void
the_table_of_the_handbook_is_what_the_strategies_say(void)
{
    static const struct column columns[] = { { "keep-majority", "the lowest address" },
                                             { "static-quorum", "?" },
                                             { "keep-oldest", "the oldest" },
                                             { "keep-referee", "the referee" },
                                             { "down-all", "?" } };
    char path[512];
    (void)snprintf(path, sizeof path, "%s/docs/operating.md", unit_srcdir());
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(file != NULL);
    size_t count = fread(doc, 1, sizeof doc - 1, file);
    fclose(file);
    UNIT_REQUIRE(count > 0 && count < sizeof doc - 1);
    for (uint32_t n = 2; n <= 5; n++) {
        for (uint32_t lost = 1; lost < n; lost++) {
            char line[512], cell[64];
            int used = snprintf(line, sizeof line, "| %u | %u | %u |", n, lost, n - lost);
            for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
                used += snprintf(line + used, sizeof line - (size_t)used, " %s |",
                                 fate_text(&columns[i], n, lost, cell, sizeof cell));
            }
            if (!unit_check(strstr(doc, line) != NULL, __LINE__, "a line of the table", __FILE__,
                            false)) {
                printf("  docs/operating.md must say: %s\n", line);
            }
        }
    }
}

UNIT_BEGIN("survivors")
UNIT(the_table_of_the_handbook_is_what_the_strategies_say)
UNIT_END
