/* sim.c - one run, and the command line of `troupe sim`. Tests: tests/sim/sim_test.c */
#include "cluster/sim/sim.h"

#include <troupe/sim.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "cluster/sim/world.h"

trp_err
trpi_sim_run(const trpi_sim_options *options, trpi_sim_result *ret_result)
{
    const sim_scenario *scenario =
        sim_scenario_find(options->scenario == NULL ? "swarm" : options->scenario);
    if (scenario == NULL || options->nodes > TRPI_SIM_NODES_MAX) {
        return TRP_EINVAL;
    }
    struct sim_world *w;
    trp_err err = sim_world_new(options, &w);
    if (err != TRP_OK) {
        return err;
    }
    scenario->prepare(w);
    scenario->play(w);
    *ret_result = w->result;
    sim_world_free(w);
    return TRP_OK;
}

/* ---- command line ---------------------------------------------------------------------------- */

struct sim_command {
    trpi_sim_options options;
    uint64_t seeds; /* how many, from options.seed on */
};

static void
usage(FILE *to)
{
    fprintf(to, "usage: troupe sim [--nodes N] [--seed S] [--seeds COUNT] [--until DURATION]\n"
                "                  [--faults none|swarm] [--scenario NAME] [--trace]\n"
                "Runs whole clusters in virtual time. Scenarios:");
    for (const char *const *name = trpi_sim_scenario_names(); *name != NULL; name++) {
        fprintf(to, " %s", *name);
    }
    fprintf(to, "\nExit code: 0 all invariants held, 1 one was broken, 64 usage.\n");
}

static bool
parse_number(const char *text, uint64_t max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > max) {
        return false;
    }
    *ret = value;
    return true;
}

/* "30s", "500ms", "2m", or seconds. */
static bool
parse_duration(const char *text, uint64_t *ret_ms)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || value > 86400000u) {
        return false;
    }
    uint64_t scale = strcmp(end, "ms") == 0 ? 1
                     : strcmp(end, "m") == 0 ? 60000
                     : strcmp(end, "s") == 0 || *end == '\0' ? 1000
                                                             : 0;
    *ret_ms = value * scale;
    return scale != 0 && value > 0;
}

/* One flag with its value; false: wrong. */
static bool
take_flag(struct sim_command *c, const char *flag, const char *value)
{
    uint64_t number;
    if (strcmp(flag, "--nodes") == 0 && parse_number(value, TRPI_SIM_NODES_MAX, &number) &&
        number > 0) {
        c->options.nodes = (uint32_t)number;
        return true;
    }
    if (strcmp(flag, "--seed") == 0) {
        return parse_number(value, UINT64_MAX, &c->options.seed);
    }
    if (strcmp(flag, "--seeds") == 0) {
        return parse_number(value, 1000000000u, &c->seeds) && c->seeds > 0;
    }
    if (strcmp(flag, "--until") == 0) {
        return parse_duration(value, &c->options.until_ms);
    }
    if (strcmp(flag, "--faults") == 0 && strcmp(value, "none") == 0) {
        c->options.scenario = "sunny";
        return true;
    }
    if (strcmp(flag, "--faults") == 0 && strcmp(value, "swarm") == 0) {
        c->options.scenario = "swarm";
        return true;
    }
    if (strcmp(flag, "--scenario") == 0 && sim_scenario_find(value) != NULL) {
        c->options.scenario = value;
        return true;
    }
    return false;
}

/* 0, or the exit code. */
static int
parse(int argc, char **argv, struct sim_command *c)
{
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        char flag[32];
        if (strcmp(argv[i], "--trace") == 0) {
            c->options.trace = stderr;
            continue;
        }
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return -1;
        }
        const char *value = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        size_t bytes = equals != NULL ? (size_t)(equals - argv[i])
                                      : strlen(argv[equals == NULL && value != NULL ? i - 1 : i]);
        const char *name = equals == NULL && value != NULL ? argv[i - 1] : argv[i];
        if (bytes >= sizeof(flag)) {
            bytes = sizeof(flag) - 1;
        }
        memcpy(flag, name, bytes);
        flag[bytes] = '\0';
        if (value == NULL || !take_flag(c, flag, value)) {
            static const char *const flags[] = { "--nodes",  "--seed",     "--seeds", "--until",
                                                 "--faults", "--scenario", "--trace", "--help" };
            const char *near = trpi_nearest(flag, flags, sizeof(flags) / sizeof(flags[0]));
            if (near != NULL && strcmp(near, flag) != 0) {
                fprintf(stderr, "troupe sim: unknown option %s; did you mean %s?\n", flag, near);
                return 64;
            }
            fprintf(stderr, "troupe sim: %s%s%s is not understood\n", flag,
                    value == NULL ? "" : " ", value == NULL ? " (a value is missing)" : value);
            usage(stderr);
            return 64;
        }
    }
    return 0;
}

static void
print_replay(const struct sim_command *c)
{
    fprintf(stderr, "replay: troupe sim --nodes %u --seed %llu --scenario %s", c->options.nodes,
            (unsigned long long)c->options.seed, c->options.scenario);
    if (c->options.until_ms != 0) {
        fprintf(stderr, " --until %llums", (unsigned long long)c->options.until_ms);
    }
    fprintf(stderr, " --trace\n");
}

int
trpi_sim_main(int argc, char **argv)
{
    struct sim_command c = { .options = { .nodes = 5, .seed = 1, .scenario = "swarm" },
                             .seeds = 1 };
    int code = parse(argc, argv, &c);
    if (code != 0) {
        return code < 0 ? 0 : code;
    }
    for (uint64_t i = 0; i < c.seeds; i++, c.options.seed++) {
        trpi_sim_result result;
        trp_err err = trpi_sim_run(&c.options, &result);
        if (err != TRP_OK) {
            fprintf(stderr, "troupe sim: %s\n", trp_strerror(err));
            return 70;
        }
        if (result.failed) {
            fprintf(stderr, "seed %llu FAILED %s\n", (unsigned long long)c.options.seed,
                    result.failure);
            print_replay(&c);
        }
        printf("seed %llu trace hash %016llx\n", (unsigned long long)c.options.seed,
               (unsigned long long)result.hash);
        if (result.failed) {
            return 1;
        }
    }
    return 0;
}

/* What the program `troupe` looks up in the library. */
int
trp_sim_main(int argc, char **argv)
{
    return trpi_sim_main(argc, argv);
}
