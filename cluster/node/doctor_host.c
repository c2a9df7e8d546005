/* doctor_host.c - the doctor's facts of the process and its host: descriptors, memory, processor,
 * disks, names.
 *
 * Shape.   All figures come through the node's probes, so that a test makes a disk full or a limit
 *          low, and the rest of the way is real.
 * Limits.  TRPI_DOCTOR_DISKS_MAX directories.
 * Tests.   tests/unit/node/doctor_node_test.c
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cluster/node/doctor_look.h"

/* ---- the real probes ------------------------------------------------------------------------- */

static bool
disk_real(trpi_doctor_disk *ret)
{
    struct statvfs figures;
    if (statvfs(ret->path, &figures) != 0) {
        return false;
    }
    ret->bytes = (uint64_t)figures.f_blocks * figures.f_frsize;
    ret->bytes_free = (uint64_t)figures.f_bavail * figures.f_frsize;
    ret->inodes = figures.f_files;
    ret->inodes_free = figures.f_favail;
    return ret->bytes > 0;
}

static bool
file_real(const char *path, char *buffer, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    ssize_t got = 1;
    while (got > 0 && used < bytes - 1) {
        got = read(fd, buffer + used, bytes - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    buffer[used] = '\0';
    (void)close(fd);
    return used > 0;
}

static int64_t
descriptors_real(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int64_t count = 0;
    if (dir == NULL) {
        return -1;
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count - 1; /* without that of dir */
}

static int64_t
descriptors_limit_real(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
               ? -1
               : (int64_t)limit.rlim_cur;
}

static bool
resolves_real(const char *host)
{
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, NULL, NULL, &found);
    if (code == 0) {
        freeaddrinfo(found);
    }
    return code == 0;
}

static int64_t
wall_ms_real(trp_node *node)
{
    return trpi_world_wall_ms(trpi_system_world(node->system));
}

const trpi_doctor_probes trpi_doctor_probes_real = { disk_real,        file_real,
                                                     descriptors_real, descriptors_limit_real,
                                                     resolves_real,    wall_ms_real,
                                                     trp_version };

/* ---- memory and processor -------------------------------------------------------------------- */

/* The number behind `key` in text; negative: it is not there. */
static int64_t
number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (at == NULL) {
        return -1;
    }
    at += strlen(key);
    at += strspn(at, " \t:=");
    return isdigit((unsigned char)*at) ? strtoll(at, NULL, 10) : -1;
}

/* The limit of the process's own control group, version 2; negative: none. */
static int64_t
group_limit(const trpi_doctor_probes *probes)
{
    char group[512], path[640], text[64];
    if (!probes->file("/proc/self/cgroup", group, sizeof group) || strncmp(group, "0::", 3) != 0) {
        return -1;
    }
    group[strcspn(group, "\n")] = '\0';
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group + 3);
    return probes->file(path, text, sizeof text) && isdigit((unsigned char)text[0])
               ? strtoll(text, NULL, 10)
               : -1;
}

static void
memory_look(const trpi_doctor_probes *probes, trpi_doctor_facts *facts)
{
    char text[4096];
    facts->memory_bytes = facts->memory_limit = facts->memory_free = facts->memory_all = -1;
    facts->cpu_pressure = -1;
    if (probes->file("/proc/self/status", text, sizeof text)) {
        int64_t kib = number_behind(text, "VmRSS");
        facts->memory_bytes = kib < 0 ? -1 : kib * 1024;
    }
    if (probes->file("/proc/meminfo", text, sizeof text)) {
        int64_t all = number_behind(text, "MemTotal"), free = number_behind(text, "MemAvailable");
        bool known = all > 0 && free >= 0 && free <= all;
        facts->memory_all = known ? all * 1024 : -1;
        facts->memory_free = known ? free * 1024 : -1;
    }
    facts->memory_limit = group_limit(probes);
    if (probes->file("/proc/pressure/cpu", text, sizeof text)) {
        const char *at = strstr(text, "some avg10=");
        facts->cpu_pressure = at != NULL ? strtod(at + strlen("some avg10="), NULL) : -1;
    }
}

/* ---- disks and names ------------------------------------------------------------------------- */

/* Look at the file system of path, or of the directory that it is in when it is a file to be. */
static void
disk_look(const trpi_doctor_probes *probes, trpi_doctor_facts *facts, const char *what,
          const char *path)
{
    trpi_doctor_disk *d = &facts->disks[facts->disks_count];
    if (path[0] == '\0' || facts->disks_count == TRPI_DOCTOR_DISKS_MAX) {
        return;
    }
    d->what = what;
    (void)snprintf(d->path, sizeof d->path, "%s", path);
    bool known = probes->disk(d);
    char *slash = strrchr(d->path, '/');
    if (!known && slash != NULL && slash > d->path) {
        *slash = '\0';
        known = probes->disk(d);
    }
    facts->disks_count += known;
}

static void
seeds_look(trp_node *node, const trpi_doctor_probes *probes, trpi_doctor_facts *facts)
{
    size_t count = trpi_config_list_count(node->config, "cluster.seed-nodes");
    for (size_t i = 0; i < count; i++) {
        const char *seed = trpi_config_list_at(node->config, "cluster.seed-nodes", i);
        trpi_address address;
        if (trpi_address_parse(seed, &address, NULL, NULL) == TRP_OK) { /* else "self" */
            facts->seeds++;
            if (!probes->resolves(address.host)) {
                trpi_doctor_case(&facts->seeds_unresolved,
                                 "seed node %s: the name %s has no address", seed, address.host);
            }
        }
    }
}

void
trpi_doctor_look_at_host(trp_node *node, trpi_doctor_facts *facts)
{
    const trpi_doctor_probes *probes = node->probes;
    facts->descriptors = probes->descriptors();
    facts->descriptors_limit = probes->descriptors_limit();
    memory_look(probes, facts);
    disk_look(probes, facts, "log",
              node->log_own ? trpi_config_text(node->config, "log.file") : "");
    if (strcmp(trpi_config_text(node->config, "persistence.journal"), "lmdb") == 0) {
        disk_look(probes, facts, "journal", trpi_config_text(node->config, "persistence.lmdb.dir"));
    }
    disk_look(probes, facts, "control socket", node->control_path);
    seeds_look(node, probes, facts);
}
