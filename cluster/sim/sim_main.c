/* sim_main.c - the command line of `troupe sim`. Tests: tests/system/sim.sh */
#include <troupe/sim.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "cluster/engine/membership.h"
#include "cluster/sim/schedule.h"
#include "cluster/sim/sim.h"

struct sim_command {
    trpi_sim_options options;
    uint64_t seeds;     /* how many, from options.seed on */
    const char *file;   /* the scenario is there; NULL: options.scenario */
    const char *broken; /* --break */
    bool shrink;
    trpi_sim_schedule *schedule; /* of the file */
};

static void
print_usage(FILE *to)
{
    fprintf(to, "usage: troupe sim [--nodes N] [--seed S] [--seeds COUNT] [--until DURATION]\n"
                "                  [--faults none|swarm] [--scenario NAME|FILE] [--trace]\n"
                "                  [--break no-tombstones|learn-pause|digest-without-seen|\n"
                "                   no-suspension|no-margin|no-stalls]\n"
                "                  [--shrink] [--tenant]\n"
                "Runs whole clusters in virtual time; by itself a cold start and 30 s of peace.\n"
                "A file has lines TIME ACTION ARGUMENTS, as --shrink prints them. Scenarios:");
    for (const char *const *name = trpi_sim_scenario_names(); *name != NULL; name++) {
        fprintf(to, " %s", *name);
    }
    fprintf(to, "\nExit code: 0 all invariants held, 1 one was broken, 64 usage.\n");
}

/* As in a scenario, or seconds. */
static bool
parse_until(const char *text, uint64_t *ret_ms)
{
    int64_t ms;
    uint64_t seconds;
    if (trpi_whole_parse(text, 0, TRPI_SIM_TIME_MS_MAX / 1000, &seconds)) {
        ms = (int64_t)seconds * 1000;
    } else if (!trpi_sim_duration(text, &ms)) {
        return false;
    }
    *ret_ms = (uint64_t)ms;
    return ms > 0;
}

static bool
is_scenario(const char *name)
{
    for (const char *const *known = trpi_sim_scenario_names(); *known != NULL; known++) {
        if (strcmp(*known, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A name, or else a file. */
static bool
take_scenario(struct sim_command *c, const char *value)
{
    c->options.scenario = is_scenario(value) ? value : NULL;
    c->file = c->options.scenario == NULL ? value : NULL;
    return true;
}

static bool
take_broken(struct sim_command *c, const char *value)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } broken[] = { { "no-tombstones", TRPI_BROKEN_NO_TOMBSTONES },
                   { "learn-pause", TRPI_BROKEN_LEARN_PAUSE },
                   { "digest-without-seen", TRPI_BROKEN_DIGEST_WITHOUT_SEEN },
                   { "no-suspension", TRPI_BROKEN_NO_SUSPENSION },
                   { "no-margin", TRPI_BROKEN_NO_MARGIN },
                   { "no-stalls", TRPI_BROKEN_NO_STALLS } };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        if (strcmp(value, broken[i].name) == 0) {
            c->broken = broken[i].name;
            c->options.broken = broken[i].bit;
            return true;
        }
    }
    return false;
}

/* One flag with its value; false: wrong. */
static bool
take_flag(struct sim_command *c, const char *flag, const char *value)
{
    uint64_t number;
    if (strcmp(flag, "--nodes") == 0 && trpi_whole_parse(value, 0, TRPI_SIM_NODES_MAX, &number) &&
        number > 0) {
        c->options.nodes = (uint32_t)number;
        return true;
    }
    if (strcmp(flag, "--seed") == 0) {
        return trpi_whole_parse(value, 0, UINT64_MAX, &c->options.seed);
    }
    if (strcmp(flag, "--seeds") == 0) {
        return trpi_whole_parse(value, 0, 1000000000u, &c->seeds) && c->seeds > 0;
    }
    if (strcmp(flag, "--until") == 0) {
        return parse_until(value, &c->options.until_ms);
    }
    if (strcmp(flag, "--faults") == 0 && strcmp(value, "none") == 0) {
        return take_scenario(c, "sunny");
    }
    if (strcmp(flag, "--faults") == 0 && strcmp(value, "swarm") == 0) {
        return take_scenario(c, "swarm");
    }
    return strcmp(flag, "--scenario") == 0 ? take_scenario(c, value)
           : strcmp(flag, "--break") == 0  ? take_broken(c, value)
                                           : false;
}

/* 0, or the exit code. */
static int
parse_arguments(int argc, char **argv, struct sim_command *c)
{
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        char flag[32];
        if (strcmp(argv[i], "--trace") == 0) {
            c->options.trace = stderr;
            continue;
        }
        if (strcmp(argv[i], "--tenant") == 0) {
            c->options.tenant = true;
            continue;
        }
        if (strcmp(argv[i], "--shrink") == 0) {
            c->shrink = true;
            continue;
        }
        if (strcmp(argv[i], "--help") == 0) {
            print_usage(stdout);
            return -1;
        }
        const char *value = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        size_t bytes = equals != NULL ? (size_t)(equals - argv[i])
                                      : strlen(argv[equals == NULL && value != NULL ? i - 1 : i]);
        const char *name = equals == NULL && value != NULL ? argv[i - 1] : argv[i];
        if (bytes >= sizeof flag) {
            bytes = sizeof flag - 1;
        }
        memcpy(flag, name, bytes);
        flag[bytes] = '\0';
        if (value == NULL || !take_flag(c, flag, value)) {
            static const char *const flags[] = { "--nodes",    "--seed",  "--seeds",  "--until",
                                                 "--faults",   "--break", "--shrink", "--trace",
                                                 "--scenario", "--help" };
            const char *near = trpi_nearest(flag, flags, sizeof flags / sizeof flags[0]);
            if (near != NULL && strcmp(near, flag) != 0) {
                fprintf(stderr, "troupe sim: unknown option %s; did you mean %s?\n", flag, near);
                return 64;
            }
            fprintf(stderr, "troupe sim: %s%s%s is not understood\n", flag,
                    value == NULL ? "" : " ", value == NULL ? " (a value is missing)" : value);
            print_usage(stderr);
            return 64;
        }
    }
    return 0;
}

/* Read the scenario file, once the number of nodes is known. Returns 0, or the exit code. */
static int
read_file(struct sim_command *c)
{
    char error[160] = "";
    FILE *file = fopen(c->file, "r");
    if (file == NULL) {
        fprintf(stderr, "troupe sim: %s: %s; the scenarios with a name are:", c->file,
                strerror(errno));
        for (const char *const *name = trpi_sim_scenario_names(); *name != NULL; name++) {
            fprintf(stderr, " %s", *name);
        }
        fprintf(stderr, "\n");
        return 64;
    }
    trp_err err = trpi_sim_schedule_read(file, c->options.nodes, &c->schedule, error, sizeof error);
    (void)fclose(file);
    if (err != TRP_OK) {
        fprintf(stderr, "troupe sim: %s: %s\n", c->file,
                err == TRP_ECONFIG ? error : trp_strerror(err));
        return err == TRP_ECONFIG ? 65 : 70;
    }
    c->options.schedule = c->schedule;
    return 0;
}

static void
print_replay(const struct sim_command *c)
{
    fprintf(stderr, "replay: troupe sim --nodes %u --seed %llu --scenario %s", c->options.nodes,
            (unsigned long long)c->options.seed, c->file != NULL ? c->file : c->options.scenario);
    if (c->options.until_ms != 0) {
        fprintf(stderr, " --until %llums", (unsigned long long)c->options.until_ms);
    }
    if (c->broken != NULL) {
        fprintf(stderr, " --break %s", c->broken);
    }
    fprintf(stderr, "%s --trace\n", c->options.tenant ? " --tenant" : "");
}

/* The shortest schedule that still fails, as a scenario file on standard output. */
static int
shrink_schedule(const struct sim_command *c)
{
    bool swarm = c->options.scenario != NULL && strcmp(c->options.scenario, "swarm") == 0;
    bool operated =
        c->options.scenario != NULL && strcmp(c->options.scenario, TRPI_SIM_OPERATED) == 0;
    trpi_sim_schedule *schedule =
        c->schedule != NULL ? trpi_sim_schedule_without(c->schedule, 0, 0)
        : swarm    ? trpi_sim_schedule_draw(c->options.nodes, c->options.seed, c->options.until_ms)
        : operated ? trpi_sim_schedule_draw_complete(c->options.nodes, c->options.seed,
                                                     c->options.until_ms)
                   : NULL;
    trpi_sim_result result;
    if (schedule == NULL) {
        fprintf(stderr, "troupe sim: only a swarm or a file can be shrunk\n");
        return 64;
    }
    uint32_t before = schedule->count;
    trp_err err = trpi_sim_shrink(&c->options, &schedule, &result);
    if (err == TRP_OK) {
        printf("# %s\n# %u of %u actions; ", result.failure, schedule->count, before);
        printf("troupe sim --nodes %u --seed %llu --scenario THIS-FILE%s%s\n", c->options.nodes,
               (unsigned long long)c->options.seed, c->broken != NULL ? " --break " : "",
               c->broken != NULL ? c->broken : "");
        trpi_sim_schedule_write(schedule, stdout);
    }
    trpi_sim_schedule_free(schedule);
    return err == TRP_OK ? 1 : 70;
}

static int
run_seeds(struct sim_command *c)
{
    for (uint64_t i = 0; i < c->seeds; i++, c->options.seed++) {
        trpi_sim_result result;
        trp_err err = trpi_sim_run(&c->options, &result);
        if (err != TRP_OK) {
            fprintf(stderr, "troupe sim: %s\n", trp_strerror(err));
            return 70;
        }
        if (result.failed) {
            fprintf(stderr, "seed %llu FAILED %s\n", (unsigned long long)c->options.seed,
                    result.failure);
            print_replay(c);
        }
        printf("%sseed %llu trace hash %016llx\n", c->shrink ? "# " : "", /* a file's comment */
               (unsigned long long)c->options.seed, (unsigned long long)result.hash);
        if (result.failed) {
            return c->shrink ? shrink_schedule(c) : 1;
        }
    }
    return 0;
}

int
trpi_sim_main(int argc, char **argv)
{
    struct sim_command c = { .options = { .nodes = TRPI_SIM_NODES, .seed = 1, .scenario = "sunny" },
                             .seeds = 1 };
    int code = parse_arguments(argc, argv, &c);
    if (code != 0) {
        return code < 0 ? 0 : code;
    }
#ifndef TRPI_DEBUG
    if (c.broken != NULL) {
        fprintf(stderr, "troupe sim: --break needs a build made by configure --enable-developer\n");
        return 69;
    }
#endif
    code = c.file == NULL ? 0 : read_file(&c);
    code = code == 0 ? run_seeds(&c) : code;
    trpi_sim_schedule_free(c.schedule);
    return code;
}

/* The entry point that the program `troupe` looks up in the library. */
int
trp_sim_main(int argc, char **argv)
{
    return trpi_sim_main(argc, argv);
}
