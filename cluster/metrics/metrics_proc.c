/* metrics_proc.c - the collector "proc": the figures that Linux has of this machine and this
 * control group.
 *
 * Shape.   /proc/stat, loadavg, meminfo; the control group of this process (version 2) and those
 *          around it, of which the tightest limit counts.
 * Must hold.
 *   metrics-proc-P1  A figure that cannot be read, or is not there, is left out. No value means
 *       "none".
 *   metrics-proc-P2  used <= committed <= max: used cannot be reclaimed, committed includes caches.
 *       The first measurement logs figures that are missing: adaptive routers would be even without
 *       a visible cause.
 *   metrics-proc-P3  In a control group with a part of the machine the load average is left out: it
 *       is the whole machine's, and would be compared with the processors of the part. Processor
 *       time is the larger share of both.
 * Cost.    Five to ten small files each collect-interval.
 * Tests.   tests/unit/cluster/metrics_proc_test.c
 * Sources. CMETRIC-04 to -06, -11, -12; proc(5), cgroups(7); decision 128.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/decimal.h"
#include "cluster/metrics/metrics.h"

#define FILE_BYTES 8192 /* of /proc/stat only the first line is wanted */
#define PATH_BYTES 1024
#define GROUPS_MAX 32u /* nested control groups that are read */

struct proc {
    char root[256];
    trp_system *system; /* has the log; NULL: there is none */
    bool looked;
    double busy, all;     /* at the last measurement, in ticks; all 0: none */
    double group_s, at_s; /* processor time of the control group, and when; at_s 0: none */
};

struct limits {
    double max, used, committed; /* bytes; max 0: no limit */
    double processors;           /* 0: no limit */
    double group_s;              /* negative: not known */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* false: it is not there. */
static bool
read_file(const struct proc *proc, const char *path, char *text, size_t room)
{
    char whole[PATH_BYTES + sizeof proc->root];
    (void)snprintf(whole, sizeof whole, "%s%s", proc->root, path);
    FILE *file = fopen(whole, "re");
    if (file == NULL) {
        return false;
    }
    text[fread(text, 1, room - 1, file)] = '\0';
    return fclose(file) == 0;
}

/* The number of "key 123" or "key: 123 kB" on a line of its own; false: there is none. */
static bool
number_after(const char *text, const char *key, double *ret_number)
{
    size_t bytes = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, key, bytes) == 0) {
            trpi_decimal decimal;
            const char *rest;
            if (!trpi_decimal_take(line + bytes + strspn(line + bytes, " \t"), &decimal, &rest)) {
                return false;
            }
            *ret_number = trpi_decimal_f64(&decimal);
            return *ret_number >= 0;
        }
    }
    return false;
}

static bool
read_number(const struct proc *proc, const char *directory, const char *name, double *ret_number)
{
    char path[PATH_BYTES], text[256];
    (void)snprintf(path, sizeof path, "%.*s/%s", PATH_BYTES - 64, directory, name);
    return read_file(proc, path, text, sizeof text) && number_after(text, "", ret_number);
}

static bool
read_field(const struct proc *proc, const char *directory, const char *name, const char *key,
           double *ret_number)
{
    char path[PATH_BYTES], text[FILE_BYTES];
    (void)snprintf(path, sizeof path, "%.*s/%s", PATH_BYTES - 64, directory, name);
    return read_file(proc, path, text, sizeof text) && number_after(text, key, ret_number);
}

/* ---- control groups -------------------------------------------------------------------------- */

/* Find the path of this process's group below the mount point; false: there is none. */
static bool
group_path(const struct proc *proc, char path[PATH_BYTES])
{
    char text[FILE_BYTES];
    if (!read_file(proc, "/proc/self/cgroup", text, sizeof text)) {
        return false;
    }
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL) {
        return false;
    }
    line = strchr(line, '/');
    size_t bytes = line == NULL ? 0 : strcspn(line, "\n");
    if (bytes == 0 || bytes >= PATH_BYTES / 2) {
        return false;
    }
    memcpy(path, line, bytes);
    path[bytes == 1 ? 0 : bytes] = '\0'; /* "/": the mount point itself */
    return true;
}

/* Keep the tightest limit and the part of it that is used. */
static void
group_read(const struct proc *proc, const char *directory, struct limits *limits)
{
    double max, current, cache = 0, quota, period, us;
    char path[PATH_BYTES], text[128];
    if (read_number(proc, directory, "memory.max", &max) && /* "max": none */
        read_number(proc, directory, "memory.current", &current) &&
        (limits->max <= 0 || max < limits->max)) {
        (void)read_field(proc, directory, "memory.stat", "inactive_file ", &cache); /* else 0 */
        limits->max = max;
        limits->committed = current;
        limits->used = current > cache ? current - cache : 0;
    }
    (void)snprintf(path, sizeof path, "%.*s/cpu.max", PATH_BYTES - 64, directory);
    if (read_file(proc, path, text, sizeof text) && sscanf(text, "%lf %lf", &quota, &period) == 2 &&
        quota > 0 && period > 0 &&
        (limits->processors <= 0 || quota / period < limits->processors)) {
        limits->processors = quota / period;
        limits->group_s =
            read_field(proc, directory, "cpu.stat", "usage_usec ", &us) ? us / 1e6 : -1;
    }
}

/* Read the group and all its ancestors. */
static void
groups_read(const struct proc *proc, struct limits *limits)
{
    char group[PATH_BYTES], directory[PATH_BYTES];
    if (!group_path(proc, group)) {
        return;
    }
    for (uint32_t i = 0; i < GROUPS_MAX; i++) {
        (void)snprintf(directory, sizeof directory, "/sys/fs/cgroup%.*s", PATH_BYTES / 2, group);
        group_read(proc, directory, limits);
        char *end = strrchr(group, '/');
        if (end == NULL) {
            break;
        }
        *end = '\0';
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

struct figures {
    trp_metric *metrics;
    uint32_t count, max;
};

static void
figure_add(struct figures *figures, const char *name, double value, bool smooth)
{
    if (figures->count < figures->max) {
        trp_metric *metric = &figures->metrics[figures->count++];
        memset(metric, 0, sizeof *metric);
        memcpy(metric->name, name, strlen(name));
        metric->value = value;
        metric->smooth = smooth ? 1 : 0;
    }
}

/* metrics-proc-P1, metrics-proc-P2. false: neither the machine's nor the group's memory is
 * known. */
static bool
add_memory(const struct proc *proc, const struct limits *limits, struct figures *figures)
{
    char text[FILE_BYTES];
    double total, vacant, available;
    double max = limits->max, used = limits->used, committed = limits->committed;
    bool known = read_file(proc, "/proc/meminfo", text, sizeof text) &&
                 number_after(text, "MemTotal:", &total) &&
                 number_after(text, "MemFree:", &vacant) &&
                 number_after(text, "MemAvailable:", &available);
    if (known && (max <= 0 || max >= total * 1024)) {
        max = total * 1024;
        used = (total - available) * 1024;
        committed = (total - vacant) * 1024;
    } else if (known && max - used > available * 1024) {
        /* The lesser of both is left: limits of groups may exceed the memory of the machine. */
        used = max - available * 1024;
    } else if (max <= 0) {
        return false;
    }
    used = used > max ? max : used < 0 ? 0 : used;
    committed = committed > max ? max : committed < used ? used : committed;
    figure_add(figures, TRP_METRIC_HEAP_USED, used, true);
    figure_add(figures, TRP_METRIC_HEAP_COMMITTED, committed, true);
    figure_add(figures, TRP_METRIC_HEAP_MAX, max, false);
    return true;
}

/* The busy share since the last measurement; negative: this is the first, or too early. */
static double
busy_share(struct proc *proc)
{
    char text[FILE_BYTES];
    double t[8] = { 0 }, all = 0;
    /* user nice system idle iowait irq softirq steal */
    if (!read_file(proc, "/proc/stat", text, sizeof text) ||
        sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4],
               &t[5], &t[6], &t[7]) < 5) {
        return -1;
    }
    for (uint32_t i = 0; i < 8; i++) {
        all += t[i];
    }
    double busy = all - t[3], before_busy = proc->busy, before_all = proc->all;
    proc->busy = busy;
    proc->all = all;
    return before_all <= 0 || all <= before_all || busy < before_busy
               ? -1
               : (busy - before_busy) / (all - before_all);
}

/* The busy share of the processor time that the control group may have. at_s: processor time of the
 * machine, a clock that counts in all worlds. */
static double
group_share(struct proc *proc, const struct limits *limits, double at_s)
{
    double before_group = proc->group_s, before_at = proc->at_s;
    if (limits->processors <= 0 || limits->group_s < 0 || at_s <= 0) {
        proc->at_s = 0;
        return -1;
    }
    proc->group_s = limits->group_s;
    proc->at_s = at_s;
    return before_at <= 0 || at_s <= before_at || limits->group_s < before_group
               ? -1
               : (limits->group_s - before_group) / ((at_s - before_at) * limits->processors);
}

static double
processors_usable(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return CPU_COUNT(&set);
    }
    return online > 0 ? (double)online : 0; /* more than 1024 of them */
}

static void
add_processors(struct proc *proc, const struct limits *limits, struct figures *figures)
{
    char text[256];
    double usable = processors_usable(), online = (double)sysconf(_SC_NPROCESSORS_ONLN), load;
    double busy = busy_share(proc), ticks = (double)sysconf(_SC_CLK_TCK);
    double group = group_share(proc, limits, proc->all / ticks / (online > 0 ? online : 1));
    if (limits->processors > 0 && ceil(limits->processors) < usable) {
        usable = ceil(limits->processors);
    }
    if (usable > 0) {
        figure_add(figures, TRP_METRIC_PROCESSORS, usable, false);
    }
    if (usable >= online && read_file(proc, "/proc/loadavg", text, sizeof text) &&
        number_after(text, "", &load)) { /* metrics-proc-P3 */
        figure_add(figures, TRP_METRIC_LOAD, load, false);
    }
    busy = group > busy ? group : busy;
    if (busy >= 0) {
        figure_add(figures, TRP_METRIC_CPU, busy > 1 ? 1 : busy, true);
    }
}

/* ---- collector ------------------------------------------------------------------------------- */

/* metrics-proc-P1 */
static void
missing_figures_log(const struct proc *proc, bool memory)
{
    bool time = proc->all > 0;
    if (proc->system != NULL && (!memory || !time)) {
        trpi_log(proc->system, TRP_LOG_WARNING, "cluster",
                 "the metrics collector \"proc\" finds no %s%s%s: adaptive routers that use this "
                 "metric give this node an average share; check whether its service or container "
                 "hides the file (systemd: ProcSubset=pid)",
                 memory ? "" : "memory (/proc/meminfo)", memory || time ? "" : " and no ",
                 time ? "" : "processor time (/proc/stat)");
    }
}

static uint32_t
proc_collect(void *state, trp_metric *metrics, uint32_t max)
{
    struct proc *proc = state;
    struct limits limits = { .group_s = -1 };
    struct figures figures = { metrics, 0, max };
    groups_read(proc, &limits);
    bool memory = add_memory(proc, &limits, &figures);
    add_processors(proc, &limits, &figures);
    if (!proc->looked) {
        proc->looked = true;
        missing_figures_log(proc, memory);
    }
    return figures.count;
}

trp_err
trpi_metrics_proc_open(const char *root, trp_system *system, void **ret_state)
{
    struct proc *proc = trpi_alloc(sizeof *proc);
    if (proc == NULL) {
        return TRP_ENOMEM;
    }
    (void)snprintf(proc->root, sizeof proc->root, "%s", root);
    proc->system = system;
    *ret_state = proc;
    return TRP_OK;
}

static trp_err
proc_open(void *arg, trp_system *system, void **ret_state)
{
    (void)arg;
    return trpi_metrics_proc_open("", system, ret_state);
}

const trp_metrics_collector trpi_metrics_proc = {
    sizeof(trp_metrics_collector), "proc", proc_open, proc_collect, trpi_free, NULL
};
