/* The collector "proc", on files that the test writes, and on this machine. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/metrics/metrics.h"
#include "tests/unit/unit.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024)

static char root[64];

static void
write_file(const char *path, const char *text)
{
    char whole[256];
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0700); /* EEXIST */
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    UNIT_REQUIRE(file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void *
bare_machine_open(trp_system *system)
{
    void *state = NULL;
    (void)snprintf(root, sizeof root, "/tmp/metrics-proc-XXXXXX");
    UNIT_REQUIRE(mkdtemp(root) != NULL);
    UNIT_REQUIRE(trpi_metrics_proc_open(root, system, &state) == TRP_OK);
    return state;
}

static void *
machine_open(void)
{
    void *state = bare_machine_open(NULL);
    write_file("/proc/meminfo",
               "MemTotal:    1000 kB\nMemFree:   100 kB\nMemAvailable:   600 kB\n");
    write_file("/proc/loadavg", "1.50 0.40 0.30 2/300 4711\n");
    write_file("/proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n");
    return state;
}

static void
machine_close(void *state)
{
    char command[96];
    trpi_metrics_proc.close(state);
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    UNIT_EQUAL(system(command), 0);
}

/* negative: not said */
static double
look_at_file(void *state, const char *name)
{
    trp_metric metrics[TRP_METRICS_MAX];
    uint32_t count = trpi_metrics_proc.collect(state, metrics, TRP_METRICS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        UNIT_TRUE(trpi_metric_is_valid(&metrics[i]));
        if (strcmp(metrics[i].name, name) == 0) {
            return metrics[i].value;
        }
    }
    return -1;
}

/* CMETRIC-04, -05, -11 */
static void
a_whole_machine_is_measured(void)
{
    void *state = machine_open();
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) == 1000 * KIB);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_USED) == 400 * KIB);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_COMMITTED) == 900 * KIB);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_PROCESSORS) >= 1);
    if (look_at_file(state, TRP_METRIC_PROCESSORS) == (double)sysconf(_SC_NPROCESSORS_ONLN)) {
        UNIT_TRUE(look_at_file(state, TRP_METRIC_LOAD) == 1.5);
    } /* else this test may use only a part of the machine */
    machine_close(state);
}

/* CMETRIC-06, -12 */
static void
processor_time_needs_two_looks(void)
{
    void *state = machine_open();
    UNIT_TRUE(look_at_file(state, TRP_METRIC_CPU) < 0);
    /* user 10, nice 5, system 10, idle 60, wait 15: 40 of 100 */
    write_file("/proc/stat", "cpu  110 5 110 860 15 0 0 0 0 0\n");
    UNIT_TRUE(look_at_file(state, TRP_METRIC_CPU) == 0.4);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_CPU) < 0); /* no time has passed */
    machine_close(state);
}

/* CMETRIC-12 */
static void
what_cannot_be_read_is_left_out(void)
{
    void *state = machine_open();
    write_file("/proc/meminfo", "MemTotal: 1000 kB\n");
    write_file("/proc/loadavg", "nonsense\n");
    write_file("/proc/stat", "cpu 1 2\n");
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) < 0);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_USED) < 0);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_LOAD) < 0);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_CPU) < 0);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_PROCESSORS) >= 1);
    machine_close(state);
}

static _Atomic uint32_t lines;
static char line[512];

static void
log_line(void *arg, const trp_log_line *what)
{
    (void)arg;
    if (strstr(what->text, "the metrics collector") != NULL) {
        (void)snprintf(line, sizeof line, "%s", what->text);
        lines++;
    }
}

/* CMETRIC-12: A service with ProcSubset=pid: of /proc there is only what is about processes. */
static void
what_is_hidden_is_said_once_with_what_to_look_at(void)
{
    trp_system *system = NULL;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 1;
    options.log = log_line;
    UNIT_REQUIRE(trp_system_new("hidden", &options, &system) == TRP_OK);
    void *state = bare_machine_open(system);
    write_file("/proc/self/cgroup", "0::/unit\n");
    write_file("/sys/fs/cgroup/unit/memory.max", "max\n");
    lines = 0;
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) < 0);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_CPU) < 0);
    UNIT_WAIT(lines == 1, 60000);
    UNIT_TRUE(strstr(line, "no memory (/proc/meminfo) and no processor time (/proc/stat)") != NULL);
    UNIT_TRUE(strstr(line, "ProcSubset=pid") != NULL);
    machine_close(state);

    state = bare_machine_open(system); /* where the group has a limit, that is known */
    write_file("/proc/self/cgroup", "0::/unit\n");
    write_file("/sys/fs/cgroup/unit/memory.max", "104857600\n");
    write_file("/sys/fs/cgroup/unit/memory.current", "62914560\n");
    lines = 0;
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) == 100 * MIB);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_USED) == 60 * MIB);
    UNIT_WAIT(lines == 1, 60000);
    UNIT_TRUE(strstr(line, "no processor time (/proc/stat)") != NULL);
    UNIT_TRUE(strstr(line, "memory") == NULL);
    machine_close(state);

    state = bare_machine_open(system);
    write_file("/proc/meminfo",
               "MemTotal:    1000 kB\nMemFree:   100 kB\nMemAvailable:   600 kB\n");
    write_file("/proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n");
    lines = 0;
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) == 1000 * KIB);
    machine_close(state);
    trp_system_free(system);
    UNIT_EQUAL(lines, 0);
}

/* CMETRIC-04, -05, -06: the tightest limit of the groups around this process counts */
static void
limits_of_control_groups_count(void)
{
    void *state = machine_open();
    double group;
    write_file("/proc/meminfo",
               "MemTotal: 1048576 kB\nMemFree: 524288 kB\nMemAvailable: 786432 kB\n");
    write_file("/proc/self/cgroup", "1:name=old:/other\n0::/outer/inner\n");
    write_file("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    write_file("/sys/fs/cgroup/outer/memory.max", "104857600\n"); /* 100 MiB */
    write_file("/sys/fs/cgroup/outer/memory.current", "62914560\n");
    write_file("/sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 20971520\n");
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) == 100 * MIB);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_COMMITTED) == 60 * MIB);
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_USED) == 40 * MIB);
    /* the machine has less left than the group may have */
    write_file("/proc/meminfo",
               "MemTotal: 1048576 kB\nMemFree: 10240 kB\nMemAvailable: 10240 kB\n");
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_USED) == 90 * MIB);
    write_file("/sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n"); /* half a processor */
    write_file("/sys/fs/cgroup/outer/inner/cpu.stat", "usage_usec 1000000\n");
    UNIT_TRUE(look_at_file(state, TRP_METRIC_PROCESSORS) == 1);
    UNIT_TRUE(sysconf(_SC_NPROCESSORS_ONLN) == 1 || look_at_file(state, TRP_METRIC_LOAD) < 0);
    /* A second of every processor has passed; the group had 0.4 of its 0.5 in it. */
    double ticks = (double)(sysconf(_SC_NPROCESSORS_ONLN) * sysconf(_SC_CLK_TCK));
    char text[128];
    (void)snprintf(text, sizeof text, "cpu  100 0 100 %.0f 0 0 0 0 0 0\n", 800 + ticks);
    write_file("/proc/stat", text);
    write_file("/sys/fs/cgroup/outer/inner/cpu.stat", "usage_usec 1400000\n");
    group = look_at_file(state, TRP_METRIC_CPU);
    UNIT_TRUE(group > 0.79 && group < 0.81);
    write_file("/sys/fs/cgroup/outer/memory.max", "nonsense\n");
    UNIT_TRUE(look_at_file(state, TRP_METRIC_HEAP_MAX) == 1024 * MIB);
    machine_close(state);
}

/* CMETRIC-11: of the kernel that this test runs on */
static void
this_machine_says_what_makes_sense(void)
{
    trp_metric samples[TRP_METRICS_MAX];
    trp_node_metrics node = { .count = 0 };
    trp_heap_metrics heap;
    trp_cpu_metrics cpu;
    void *state = NULL;
    UNIT_REQUIRE(trpi_metrics_proc.open(NULL, NULL, &state) == TRP_OK);
    uint32_t count = trpi_metrics_proc.collect(state, samples, TRP_METRICS_MAX);
    trpi_metrics_next(NULL, samples, count, 1, &node);
    UNIT_EQUAL(node.count, count);
    UNIT_REQUIRE(trp_metrics_heap(&node, &heap) && trp_metrics_cpu(&node, &cpu));
    UNIT_TRUE(heap.used > 0 && heap.used <= heap.committed && heap.committed <= heap.max);
    UNIT_TRUE(cpu.processors >= 1 && (!cpu.has_combined || cpu.combined <= 1));
    UNIT_EQUAL(trpi_metrics_proc.collect(state, samples, 1), 1); /* as much as there is room for */
    trpi_metrics_proc.close(state);
}

UNIT_BEGIN("metrics_proc")
UNIT(a_whole_machine_is_measured)
UNIT(processor_time_needs_two_looks)
UNIT(what_cannot_be_read_is_left_out)
UNIT(limits_of_control_groups_count)
UNIT(what_is_hidden_is_said_once_with_what_to_look_at)
UNIT(this_machine_says_what_makes_sense)
UNIT_END
