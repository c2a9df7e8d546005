/* stack.c - see stack.h.
 *
 * Why.     The stack of an actor that does not end its turn says which line it waits at. The node
 *          cannot look for it without a signal in the program's thread; a tracer can.
 * Shape.   modules and their unwind tables --> seize, interrupt --> program counters --> detach
 *          --> names. Files are read before and after the stop, as far as that is possible.
 * Must hold.
 *   stack-T1  One thread is stopped, and goes on whatever happens: a child of this process traces
 *       it, and the kernel detaches when that child ends or crashes. So a reader of the output
 *       that does not read on keeps nothing stopped; nor does Ctrl-Z, since the child is in a
 *       session of its own.                                                  (trpi_stack_take)
 *   stack-T2  A signal that arrives with the stop is given to the thread.        (thread_stop)
 * Limits.  STOP_MS for the thread to stop (one that waits for a disk in the kernel does not), then
 *          FRAMES_MS until the last frame is begun; TRPI_STACK_FRAMES_MAX frames; TAKE_MS in all.
 *          A system call that reports each stop (epoll_wait, sigtimedwait, semop) ends with EINTR,
 *          as under a debugger; all others are resumed by the kernel.
 * Tests.   tests/system/stack.sh
 * Sources. ptrace(2), signal(7); elfutils/libdwfl.h, whose functions are declared here, since a
 *          build should not need the header for one command.
 */
#include "cluster/cli/stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/loaded_library.h"
#include "base/utf8.h"
#include "cluster/cli/cli.h"

#define STOP_MS 500u
#define FRAMES_MS 100u
#define TAKE_MS 20000u

/* ---- libdw ----------------------------------------------------------------------------------- */

typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;
typedef struct Dwfl_Line Dwfl_Line;
typedef struct Dwfl_Frame Dwfl_Frame;
typedef struct Elf Elf;
typedef uint64_t Dwarf_Addr;
enum { DWARF_CB_OK = 0, DWARF_CB_ABORT = 1 };

typedef struct Dwfl_Callbacks {
    int (*find_elf)(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                    char **ret_path, Elf **ret_elf);
    int (*find_debuginfo)(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          const char *path, const char *link, uint32_t crc, char **ret_path);
    int (*section_address)(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                           const char *section, uint32_t index, const void *header,
                           Dwarf_Addr *ret_address);
    char **debuginfo_path;
} Dwfl_Callbacks;

typedef struct dw_functions { /* in the order of dw_names */
    Dwfl *(*begin)(const Dwfl_Callbacks *callbacks);
    int (*report)(Dwfl *dwfl, pid_t pid);
    int (*report_end)(Dwfl *dwfl, void *removed, void *arg);
    int (*find_elf)(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                    char **ret_path, Elf **ret_elf);
    int (*find_debuginfo)(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          const char *path, const char *link, uint32_t crc, char **ret_path);
    ptrdiff_t (*modules)(Dwfl *dwfl,
                         int (*each)(Dwfl_Module *module, void **data, const char *name,
                                     Dwarf_Addr base, void *arg),
                         void *arg, ptrdiff_t offset);
    void *(*eh_cfi)(Dwfl_Module *module, Dwarf_Addr *ret_bias);
    void *(*dwarf_cfi)(Dwfl_Module *module, Dwarf_Addr *ret_bias);
    int (*attach)(Dwfl *dwfl, pid_t pid, bool is_stopped);
    int (*frames)(Dwfl *dwfl, pid_t thread, int (*each)(Dwfl_Frame *frame, void *arg), void *arg);
    bool (*frame_pc)(Dwfl_Frame *frame, Dwarf_Addr *ret_pc, bool *ret_is_activation);
    Dwfl_Module *(*module_of)(Dwfl *dwfl, Dwarf_Addr address);
    const char *(*module_info)(Dwfl_Module *module, void ***data, Dwarf_Addr *ret_start,
                               Dwarf_Addr *ret_end, Dwarf_Addr *ret_bias, Dwarf_Addr *ret_symbias,
                               const char **ret_main, const char **ret_debug);
    const char *(*symbol)(Dwfl_Module *module, Dwarf_Addr address);
    Dwfl_Line *(*line)(Dwfl_Module *module, Dwarf_Addr address);
    const char *(*line_info)(Dwfl_Line *line, Dwarf_Addr *ret_address, int *ret_line, int *ret_col,
                             void *ret_modified, void *ret_length);
    const char *(*error)(int error);
} dw_functions;
static dw_functions dw;
static const char *const dw_names[] = {
    "dwfl_begin",
    "dwfl_linux_proc_report",
    "dwfl_report_end",
    "dwfl_linux_proc_find_elf",
    "dwfl_standard_find_debuginfo",
    "dwfl_getmodules",
    "dwfl_module_eh_cfi",
    "dwfl_module_dwarf_cfi",
    "dwfl_linux_proc_attach",
    "dwfl_getthread_frames",
    "dwfl_frame_pc",
    "dwfl_addrmodule",
    "dwfl_module_info",
    "dwfl_module_addrname",
    "dwfl_module_getsrc",
    "dwfl_lineinfo",
    "dwfl_errmsg",
};
_Static_assert(sizeof dw == sizeof dw_names, "one name for each function");
static trpi_loaded_library dw_library = { .file = "libdw.so.1",
                                          .package = "libdw1",
                                          .names = dw_names,
                                          .count = sizeof dw_names / sizeof dw_names[0],
                                          .functions = &dw };

static pid_t looked_at; /* whose modules are being opened */

/* Open the file that is mapped at base, whatever its name means by now: it may be replaced, or lie
 * in a container. -1: not so. */
static int
mapped_open(Dwarf_Addr base, const char *name, char **ret_path)
{
    char path[PATH_MAX], line[PATH_MAX + 128];
    int fd = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)looked_at);
    FILE *maps = fopen(path, "re");
    while (fd < 0 && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uint64_t begin = 0, end = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) == 2 && begin == base) {
            (void)snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
                           (int)looked_at, begin, end);
            fd = open(path, O_RDONLY | O_CLOEXEC);
            break;
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    *ret_path = fd >= 0 ? strdup(name) : NULL; /* libdw frees it */
    return fd;
}

static int
elf_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **ret_path,
         Elf **ret_elf)
{
    int fd = name[0] == '/' ? mapped_open(base, name, ret_path) : -1;
    return fd >= 0 ? fd : dw.find_elf(module, data, name, base, ret_path, ret_elf);
}

/* Read the tables by which frames are found. */
static int
module_prepare(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, void *arg)
{
    Dwarf_Addr bias;
    (void)data, (void)name, (void)base, (void)arg;
    (void)dw.eh_cfi(module, &bias); /* a module may have none */
    (void)dw.dwarf_cfi(module, &bias);
    return DWARF_CB_OK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

typedef struct trace {
    Dwfl *dwfl;
    pid_t pid, thread;
    uint64_t until_ms;
    uint32_t count;
    bool is_cut;
    Dwarf_Addr at[TRPI_STACK_FRAMES_MAX]; /* in the call, not behind it */
} trace;

/* Find the thread that has this id in the namespace of its process: the last of NSpid. */
static pid_t
thread_find(pid_t pid, int id)
{
    char path[320], line[256];
    pid_t found = 0;
    const struct dirent *entry;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    while (found == 0 && threads != NULL && (entry = readdir(threads)) != NULL) {
        (void)snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, entry->d_name);
        FILE *status = fopen(path, "re");
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            const char *last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;
            if (last != NULL && strtol(last, NULL, 10) == id) {
                found = (pid_t)strtol(entry->d_name, NULL, 10);
            }
        }
        if (status != NULL) {
            (void)fclose(status);
        }
    }
    if (threads != NULL) {
        (void)closedir(threads);
    }
    return found;
}

static int
frame_take(Dwfl_Frame *frame, void *arg)
{
    trace *t = arg;
    Dwarf_Addr pc;
    bool is_activation;
    if (t->count == TRPI_STACK_FRAMES_MAX || trpi_cli_now_ms() >= t->until_ms) {
        t->is_cut = true;
        return DWARF_CB_ABORT;
    }
    if (!dw.frame_pc(frame, &pc, &is_activation)) {
        return DWARF_CB_ABORT;
    }
    t->at[t->count++] = is_activation ? pc : pc - 1; /* a return address may be the next line's */
    return DWARF_CB_OK;
}

/* Wait until the thread stands still. *ret_signal: what it is to get (stack-T2). */
static bool
thread_stop(pid_t thread, int *ret_signal)
{
    uint64_t until_ms = trpi_cli_now_ms() + STOP_MS;
    int status = 0;
    pid_t got = 0;
    while (got == 0 && trpi_cli_now_ms() < until_ms) {
        got = waitpid(thread, &status, __WALL | WNOHANG);
        if (got == 0) {
            (void)usleep(100);
        }
    }
    if (got != thread || !WIFSTOPPED(status)) {
        return false;
    }
    *ret_signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    return true;
}

/* Return who traces the thread; 0: nobody, or it cannot be seen. */
static int
tracer_of(const trace *t)
{
    char path[64], line[256];
    int tracer = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)t->pid, (int)t->thread);
    FILE *status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (sscanf(line, "TracerPid: %d", &tracer) == 1) {
            break;
        }
    }
    if (status != NULL) {
        (void)fclose(status);
    }
    return tracer;
}

static void
refusal_write(const trace *t, char *why, size_t why_bytes)
{
    char scope = '0';
    int tracer = tracer_of(t);
    if (tracer != 0) {
        (void)snprintf(why, why_bytes,
                       "process %d traces process %d already (ps -p %d): end that first", tracer,
                       (int)t->pid, tracer);
        return;
    }
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, &scope, 1);
        (void)close(fd);
    }
    if (scope == '3') {
        (void)snprintf(why, why_bytes,
                       "this host lets no process be traced (kernel.yama.ptrace_scope is 3)");
    } else if (geteuid() == 0) {
        (void)snprintf(why, why_bytes,
                       "root may not trace process %d here: the tool lacks CAP_SYS_PTRACE (in a "
                       "container, add that capability), or the process is of an outer user "
                       "namespace",
                       (int)t->pid);
    } else {
        (void)snprintf(why, why_bytes,
                       "this user may not trace process %d%s: run it as root (sudo troupe doctor), "
                       "or sudo gdb -p %d -batch -ex backtrace, which stops the node meanwhile",
                       (int)t->pid, scope != '0' ? " (kernel.yama.ptrace_scope)" : "",
                       (int)t->thread);
    }
}

/* Stop the thread, note its frames, let it go. */
static bool
thread_look(trace *t, double *ret_stopped_ms, char *why, size_t why_bytes)
{
    struct timespec begin, end;
    int pending = 0;
    if (ptrace(PTRACE_SEIZE, t->thread, NULL, NULL) != 0) {
        if (errno == EPERM) {
            refusal_write(t, why, why_bytes);
        } else {
            (void)snprintf(why, why_bytes, "thread %d cannot be traced: %s", (int)t->thread,
                           strerror(errno));
        }
        return false;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    bool stands =
        ptrace(PTRACE_INTERRUPT, t->thread, NULL, NULL) == 0 && thread_stop(t->thread, &pending);
    if (stands) {
        t->until_ms = trpi_cli_now_ms() + FRAMES_MS;
        (void)dw.frames(t->dwfl, t->thread, frame_take, t); /* -1 where the outermost ends */
    }
    (void)ptrace(PTRACE_DETACH, t->thread, NULL, (void *)(intptr_t)pending);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    *ret_stopped_ms =
        (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
    if (!stands) {
        (void)snprintf(why, why_bytes,
                       "thread %d has not stopped within %u ms: it waits in the kernel for a disk "
                       "or a network file system (cat /proc/%d/task/%d/stack, as root)",
                       (int)t->thread, STOP_MS, (int)t->pid, (int)t->thread);
    }
    return stands;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* "spin_receive  spin.so (spin.c:17)"; without a symbol "spin.so+0x1234", for addr2line. */
static void
frame_name(const trace *t, Dwarf_Addr at, char text[TRPI_STACK_TEXT_BYTES])
{
    Dwfl_Module *module = dw.module_of(t->dwfl, at);
    if (module == NULL) {
        (void)snprintf(text, TRPI_STACK_TEXT_BYTES, "0x%" PRIx64, at);
        return;
    }
    Dwarf_Addr start = 0;
    int number = 0;
    const char *file = dw.module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
    const char *symbol = dw.symbol(module, at), *source = NULL;
    Dwfl_Line *line = dw.line(module, at);
    if (line != NULL) {
        source = dw.line_info(line, NULL, &number, NULL, NULL, NULL);
    }
    file = file == NULL ? "?" : strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
    if (symbol == NULL) {
        (void)snprintf(text, TRPI_STACK_TEXT_BYTES, "%.100s+0x%" PRIx64, file, at - start);
        return;
    }
    int used = snprintf(text, TRPI_STACK_TEXT_BYTES, "%.*s in %.60s", /* its version left out */
                        (int)strcspn(symbol, "@") % 100, symbol, file);
    if (source != NULL && used > 0 && (size_t)used < TRPI_STACK_TEXT_BYTES) {
        const char *slash = strrchr(source, '/');
        (void)snprintf(text + used, TRPI_STACK_TEXT_BYTES - (size_t)used, " (%.60s:%d)",
                       slash != NULL ? slash + 1 : source, number);
    }
}

typedef struct outcome { /* in memory that both processes see */
    bool ok;
    trpi_stack stack;
    char why[512];
} outcome;

/* Of the child. */
static bool
stack_take(pid_t pid, int thread, trpi_stack *ret_stack, char *why, size_t why_bytes)
{
    static const Dwfl_Callbacks template = { elf_find, NULL, NULL, NULL };
    Dwfl_Callbacks callbacks = template;
    trace t = { .pid = pid, .thread = thread_find(pid, thread) };
    if (!trpi_library_open(&dw_library, why, why_bytes)) {
        return false;
    }
    if (t.thread == 0) {
        (void)snprintf(why, why_bytes,
                       "process %d has no thread %d: it has ended, or /proc hides it", (int)pid,
                       thread);
        return false;
    }
    (void)unsetenv("DEBUGINFOD_URLS"); /* no download of symbols */
    callbacks.find_debuginfo = dw.find_debuginfo;
    looked_at = pid;
    t.dwfl = dw.begin(&callbacks);
    bool ok = t.dwfl != NULL && dw.report(t.dwfl, pid) == 0 &&
              dw.report_end(t.dwfl, NULL, NULL) == 0 && dw.attach(t.dwfl, pid, true) == 0;
    if (!ok) {
        const char *error = dw.error(-1);
        (void)snprintf(why, why_bytes, "the modules of process %d cannot be read: %s", (int)pid,
                       error != NULL ? error : "no memory");
    } else {
        (void)dw.modules(t.dwfl, module_prepare, NULL, 0);
        ok = thread_look(&t, &ret_stack->stopped_ms, why, why_bytes);
    }
    for (uint32_t i = 0; ok && i < t.count; i++) {
        frame_name(&t, t.at[i], ret_stack->frames[i]);
        trpi_utf8_mend(ret_stack->frames[i], strlen(ret_stack->frames[i])); /* a file's own name */
    }
    ret_stack->count = ok ? t.count : 0;
    ret_stack->is_cut = t.is_cut;
    return ok;
}

/* Wait for the child; false: it has crashed, or was too slow, and is no more. */
static bool
child_wait(pid_t child)
{
    uint64_t until_ms = trpi_cli_now_ms() + TAKE_MS;
    int status = 0;
    pid_t got = 0;
    while (got == 0 && trpi_cli_now_ms() < until_ms) {
        got = waitpid(child, &status, WNOHANG);
        if (got == 0) {
            trpi_cli_sleep_ms(1);
        }
    }
    if (got == 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, &status, 0);
    }
    return got == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool
trpi_stack_take(pid_t pid, int thread, trpi_stack *ret_stack, char *why, size_t why_bytes)
{
    outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = o != MAP_FAILED ? fork() : -1;
    if (child == 0) {
        /* stack-T1: what stops or ends this process must not keep a thread of the node stopped */
        (void)setsid();
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        o->ok = stack_take(pid, thread, &o->stack, o->why, sizeof o->why);
        _exit(0);
    }
    bool ok = child > 0 && child_wait(child);
    if (!ok) {
        (void)snprintf(why, why_bytes, "%s",
                       child > 0 ? "libdw could not read it (within 20 s)"
                                 : "no memory for a process");
    } else if (!o->ok) {
        (void)snprintf(why, why_bytes, "%s", o->why);
    } else {
        *ret_stack = o->stack;
    }
    ok = ok && o->ok;
    if (o != MAP_FAILED) {
        (void)munmap(o, sizeof *o);
    }
    return ok;
}
