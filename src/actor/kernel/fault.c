/* fault.c - a fault in an actor's code becomes its failure, or a crash line that names the actor.
 *
 * Why.     One wild pointer should not end a million actors; and if the process crashes, the first
 *          question is which actor caused it.
 * Shape.   signal on a worker -> is it the actor's own code? yes, and fault_trap is "on":
 *                                  fill ctx->failure, jump where trp_fail() would
 *                               else: one line on stderr that names the actor, then the handler
 *                                  installed before ours, or the signal's default action
 * Must hold.
 *   fault-V1  Without an option that asks for it no handler is installed. (open)
 *   fault-V2  A jump is taken only if the fault was raised by the instruction itself (not by kill)
 *       and that instruction is the program's or a plugin's. Code of any other object (libc, this
 *       library, others) may hold a lock. The ranges are collected beforehand because a handler
 *       cannot look them up. (may_trap)
 *   fault-V3  The handler calls only async-signal-safe code: own formatting, write(), trylock.
 *   fault-V4  A handler that was installed before ours is called after it, and restored when the
 *       last system that asked has ended. (previous_handler_call, trpi_fault_close)
 * Guests.  A guest (a flow) jumps on its own stack only, and an actor never off a guest's: a turn
 *          that is nested in a guest is told by its cell (guest_runs).
 * Limits.  TRPI_FAULT_RANGES ranges; faults in further plugins are not trapped;
 *          TRPI_FAULT_STACK_BYTES of alternate stack a thread.
 *          A library that is linked statically shares its range with the actors' code: then "on" is
 *          refused. x86-64 and arm64.
 * Cost.    None until a fault; then about two system calls.
 * Not here. Resources that a behaviour held (its locks, memory of malloc): they are lost, as with
 *          trp_fail().
 * Tests.   tests/unit/actor/fault_test.c
 * Sources. docs/architecture.md#failure; sigaltstack(2), sigaction(2), dl_iterate_phdr(3).
 */
#include "actor/kernel/fault.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "actor/kernel/run.h"
#include "base/alloc.h"
#include "base/assert.h"

#define TRPI_FAULT_RANGES 64u
#define TRPI_FAULT_STACK_BYTES (64u * 1024u)
#define GUARD_REACH (256u * 1024u) /* a fault this close below the stack is a stack overflow */

enum { FAULTS = 5, TRAPPED = 3 }; /* the first three can become failures */
static const int numbers[FAULTS] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
static const char *const names[FAULTS] = { "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT" };

typedef struct range {
    uintptr_t low, high;
} range;

/* Process-wide by nature, as the signals are. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all but what handlers read */
static uint32_t systems;                                 /* number of systems that asked */
static bool installed[FAULTS];
static struct sigaction previous[FAULTS]; /* written before our handler can run */
static range trusted[TRPI_FAULT_RANGES];  /* code of the program and of plugins */
static _Atomic uint32_t trusted_count;    /* release; pair: is_trusted() */

/* initial-exec: a lazily made variable would be allocated inside the handler (fault-V3) */
static _Thread_local struct {
    trp_ctx *ctx;
    void *stack;                /* the alternate one, owned */
    uintptr_t low, high;        /* the thread's stack; 0: unknown */
    trpi_guest *guest;          /* what runs on a stack of its own; NULL: nothing */
    volatile sig_atomic_t busy; /* in the handler: a fault there is final */
    volatile sig_atomic_t told; /* one line a thread, also if a previous handler returns */
} here __attribute__((tls_model("initial-exec")));

/* ---- code that a handler may jump out of ----------------------------------------------------- */

static void
range_add(uintptr_t low, uintptr_t high)
{
    uint32_t count = atomic_load_explicit(&trusted_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        if (trusted[i].low == low && trusted[i].high == high) {
            return;
        }
    }
    if (count < TRPI_FAULT_RANGES) {
        trusted[count] = (range){ low, high };
        /* release: a handler that sees the count sees the range */
        atomic_store_explicit(&trusted_count, count + 1, memory_order_release);
    }
}

typedef struct object_search {
    uintptr_t inside; /* an address in the object that is searched */
    bool found;
    bool is_program;
} object_search;

static bool
object_contains(const struct dl_phdr_info *info, uintptr_t address)
{
    bool found = false;

    for (unsigned i = 0; i < info->dlpi_phnum && !found; i++) {
        uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        found = info->dlpi_phdr[i].p_type == PT_LOAD && address >= low &&
                address < low + info->dlpi_phdr[i].p_memsz;
    }
    return found;
}

static int
object_look(struct dl_phdr_info *info, size_t size, void *arg)
{
    object_search *search = arg;

    (void)size;
    search->found = object_contains(info, search->inside);
    search->is_program = search->found && info->dlpi_name[0] == 0; /* the program has no name */
    return search->found;
}

/* Trust the code of the object with this address (0: of the program), never of this library. */
static int
object_trust(struct dl_phdr_info *info, size_t size, void *arg)
{
    const object_search *search = arg;
    bool ours = info->dlpi_name[0] != 0 && object_contains(info, (uintptr_t)trpi_fault_open);

    (void)size;
    if (search->inside != 0 ? !object_contains(info, search->inside) : info->dlpi_name[0] != 0) {
        return 0;
    }
    for (unsigned i = 0; i < info->dlpi_phnum && !ours; i++) {
        uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            range_add(low, low + info->dlpi_phdr[i].p_memsz);
        }
    }
    return 1;
}

/* Is this library a shared object of its own? */
static bool
library_is_apart(void)
{
    object_search search = { (uintptr_t)trpi_fault_open, false, false };

    (void)dl_iterate_phdr(object_look, &search);
    return search.found && !search.is_program;
}

void
trpi_fault_trust(const void *inside)
{
    object_search search = { (uintptr_t)inside, false, false };

    pthread_mutex_lock(&lock);
    if (search.inside != 0) {
        (void)dl_iterate_phdr(object_trust, &search);
    }
    pthread_mutex_unlock(&lock);
}

static bool
is_trusted(uintptr_t pc)
{
    uint32_t count = atomic_load_explicit(&trusted_count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++) {
        if (pc >= trusted[i].low && pc < trusted[i].high) {
            return true;
        }
    }
    return false;
}

/* ---- the machine ----------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define FAULT_TRAP_SUPPORTED 1
static bool
stack_has(uintptr_t low, uintptr_t high, uintptr_t sp)
{
    return sp >= low && sp + sizeof sp <= high;
}
static uintptr_t
pc_of(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}
static uintptr_t
caller_of(const ucontext_t *context)
{
    uintptr_t sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];

    /* the return address that the call has just pushed */
    return stack_has(here.low, here.high, sp) ||
                   (here.guest != NULL && stack_has(here.guest->low, here.guest->high, sp))
               ? *(const uintptr_t *)sp
               : 0;
}
#elif defined(__aarch64__)
#define FAULT_TRAP_SUPPORTED 1
static uintptr_t
pc_of(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.pc;
}
static uintptr_t
caller_of(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.regs[30];
}
#else
#define FAULT_TRAP_SUPPORTED 0
static uintptr_t
pc_of(const ucontext_t *context)
{
    (void)context;
    return 0;
}
static uintptr_t
caller_of(const ucontext_t *context)
{
    (void)context;
    return 0;
}
#endif

/* Is it the guest's own code that runs, not a turn nested in it? */
static bool
guest_runs(const trp_ctx *ctx)
{
    return here.guest != NULL && here.guest->cell == ctx->cell;
}

/* fault-V2 */
static bool
may_trap(const trp_ctx *ctx, int index, const siginfo_t *info, const ucontext_t *context)
{
    uintptr_t pc = pc_of(context);

    if (ctx->system->options.fault_trap != TRP_FAULT_TRAP_ON || index >= TRAPPED ||
        info->si_code <= 0) {
        return false;
    }
    if (!guest_runs(ctx) && (ctx->cell == NULL || ctx->cell->ops != NULL || ctx->jump == NULL)) {
        return false;
    }
    if (index < 2 && (uintptr_t)info->si_addr == pc) {
        pc = caller_of(context); /* a call to a bad address: judge its caller */
    }
    return pc != 0 && is_trusted(pc);
}

/* ---- text without libc ----------------------------------------------------------------------- */

typedef struct text {
    char *at;
    const char *end; /* room for a NUL is kept */
} text;

static void
text_put(text *t, const char *words)
{
    while (*words != 0 && t->at < t->end) {
        *t->at++ = *words++;
    }
    *t->at = 0;
}

static void
text_put_hex(text *t, uintptr_t number)
{
    char digits[2 * sizeof number + 1];
    size_t at = sizeof digits - 1;

    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[number & 15u];
        number >>= 4;
    } while (number != 0);
    text_put(t, "0x");
    text_put(t, digits + at);
}

static bool
is_below_stack(uintptr_t low, uintptr_t address)
{
    return low != 0 && address < low && address + GUARD_REACH >= low;
}

/* "SIGSEGV at address 0x10, code 0x5555" */
static void
text_put_fault(text *t, int index, const siginfo_t *info, const ucontext_t *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;

    text_put(t, names[index]);
    if (index < 2 && info->si_code > 0) {
        if (is_below_stack(here.low, address) ||
            (here.guest != NULL && is_below_stack(here.guest->low, address))) {
            text_put(t, " (stack overflow)");
        }
        text_put(t, " at address ");
        text_put_hex(t, address);
    }
    text_put(t, ", code ");
    text_put_hex(t, pc_of(context));
}

/* Append the path of a cell that does not end meanwhile: this thread holds its token. */
static void
text_put_path(text *t, const trp_ctx *ctx, const trpi_cell *cell)
{
    const trpi_cell *line[TRP_PATH_DEPTH_MAX + 2];
    unsigned depth = 0;

    while (cell != NULL && cell->parent != 0 && depth < TRP_PATH_DEPTH_MAX + 2) {
        line[depth++] = cell;
        cell = trpi_cells_find(ctx->cells, trpi_cell_parent(cell));
    }
    while (depth-- > 0) {
        char name[TRP_NAME_BYTES_MAX + 1];

        ctx->system->hooks->name_try(ctx->system, line[depth], name, sizeof name);
        text_put(t, "/");
        text_put(t, name);
    }
}

/* Write the last line of this process. fault-V3 */
static void
crash_line_write(const trp_ctx *ctx, int index, const siginfo_t *info, const ucontext_t *context)
{
    char line[1024];
    text t = { line, line + sizeof line - 2 };
    const trp_type *type = ctx->msg == NULL ? NULL : trpi_type_get(ctx->msg->priv_type);
    ssize_t written;

    text_put(&t, "troupe: ");
    text_put_fault(&t, index, info, context);
    if (guest_runs(ctx)) {
        text_put(&t, ": flow ");
        text_put(&t, here.guest->name);
    } else {
        text_put(&t, ": actor ");
        text_put_path(&t, ctx, ctx->cell);
    }
    text_put(&t, " of system ");
    text_put(&t, ctx->system->name);
    if (!guest_runs(ctx) && ctx->cell->ops == NULL && ctx->cell->behaviour != NULL) {
        text_put(&t, ", behaviour ");
        text_put(&t, ctx->cell->behaviour->name);
    }
    if (type != NULL && !guest_runs(ctx)) {
        text_put(&t, ", handling ");
        text_put(&t, type->name);
    }
    *t.at++ = '\n';
    written = write(STDERR_FILENO, line, (size_t)(t.at - line));
    (void)written; /* a failed write cannot be reported */
}

/* ---- the handler ----------------------------------------------------------------------------- */

/* fault-V4 */
static void
previous_handler_call(int index, siginfo_t *info, void *context)
{
    const struct sigaction *before = &previous[index];
    struct sigaction by_default;

    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(numbers[index], info, context);
        return;
    }
    if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(numbers[index]);
        return;
    }
    memset(&by_default, 0, sizeof by_default);
    by_default.sa_handler = SIG_DFL;
    (void)sigaction(numbers[index], &by_default, NULL);
    if (info->si_code <= 0) {
        (void)raise(numbers[index]); /* sent by kill(): raise it again */
    } /* else the instruction runs again, and the core dump shows it */
}

static void
on_fault(int number, siginfo_t *info, void *context)
{
    trp_ctx *ctx = here.ctx;
    int index = 0;

    while (index < FAULTS - 1 && numbers[index] != number) {
        index++;
    }
    if (ctx != NULL && (ctx->cell != NULL || guest_runs(ctx)) && !here.busy) {
        here.busy = 1;
        if (may_trap(ctx, index, info, context)) {
            trpi_guest *guest = guest_runs(ctx) ? here.guest : NULL;
            trp_failure *what = guest != NULL ? &guest->failure : &ctx->failure;
            text t = { what->reason, what->reason + sizeof what->reason - 1 };

            what->err = TRP_EFAULT;
            what->code = number;
            what->file = NULL;
            what->line = 0;
            what->actor = ctx->self;
            text_put_fault(&t, index, info, context);
            here.busy = 0;
            if (guest != NULL) {
                ctx->turn.route_depth = guest->route_depth; /* it may leave a routing function */
                _longjmp(guest->jump, 1);
            }
            _longjmp(*ctx->jump, 1); /* signal mask unchanged: SA_NODEFER, empty sa_mask */
        }
        if (!here.told) {
            here.told = 1;
            crash_line_write(ctx, index, info, context);
        }
        here.busy = 0;
    }
    previous_handler_call(index, info, context);
}

/* ---- installing ------------------------------------------------------------------------------ */

static trp_err
handlers_install(void)
{
    struct sigaction ours;

    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    (void)sigemptyset(&ours.sa_mask);
    for (int i = 0; i < FAULTS; i++) {
        if (installed[i]) {
            continue;
        }
        if (sigaction(numbers[i], NULL, &previous[i]) != 0 || /* before ours can run */
            sigaction(numbers[i], &ours, NULL) != 0) {
            return TRP_EIO;
        }
        installed[i] = true;
    }
    return TRP_OK;
}

/* Remove our handlers, unless a later handler may call ours as its previous one. */
static void
handlers_remove(void)
{
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction now;

        if (installed[i] && sigaction(numbers[i], NULL, &now) == 0 &&
            (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) {
            (void)sigaction(numbers[i], &previous[i], NULL);
            installed[i] = false;
        }
    }
}

trp_err
trpi_fault_open(trp_system *system)
{
    object_search program = { 0, false, false };
    trp_err err = TRP_OK;

    if (system->options.fault_trap == TRP_FAULT_TRAP_OFF) {
        return TRP_OK; /* fault-V1 */
    }
    pthread_mutex_lock(&lock);
    (void)dl_iterate_phdr(object_trust, &program);
    if (system->options.fault_trap == TRP_FAULT_TRAP_ON &&
        (!FAULT_TRAP_SUPPORTED || !library_is_apart())) {
        err = TRP_EUNSUPPORTED;
    } else {
        err = handlers_install();
    }
    if (err == TRP_OK) {
        systems++;
        system->faults_open = true;
    } else if (systems == 0) {
        handlers_remove();
    }
    pthread_mutex_unlock(&lock);
    return err;
}

void
trpi_fault_close(trp_system *system)
{
    if (!system->faults_open) {
        return;
    }
    system->faults_open = false;
    pthread_mutex_lock(&lock);
    trpi_assert(systems > 0);
    if (--systems == 0) {
        handlers_remove();
    }
    pthread_mutex_unlock(&lock);
}

/* ---- guests ---------------------------------------------------------------------------------- */

/* noinline: the caller may be on another thread than before */
NOINLINE trpi_guest *
trpi_guest_swap(trpi_guest *guest)
{
    trpi_guest *before = here.guest;

    if (guest != NULL) {
        guest->cell = here.ctx != NULL ? here.ctx->cell : NULL;
        guest->route_depth = here.ctx != NULL ? here.ctx->turn.route_depth : 0;
    }
    here.guest = guest;
    return before;
}

NOINLINE const trpi_guest *
trpi_guest_here(void)
{
    return here.guest;
}

/* ---- threads --------------------------------------------------------------------------------- */

void
trpi_fault_thread_begin(trp_ctx *ctx)
{
    pthread_attr_t attributes;
    stack_t alternate;

    if (ctx->system->options.fault_trap == TRP_FAULT_TRAP_OFF) {
        return;
    }
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *low = NULL;
        size_t bytes = 0;

        if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
            here.low = (uintptr_t)low;
            here.high = (uintptr_t)low + bytes;
        }
        (void)pthread_attr_destroy(&attributes);
    }
    here.stack = trpi_alloc_aligned(64, TRPI_FAULT_STACK_BYTES);
    if (here.stack != NULL) { /* without it only a stack overflow cannot be handled */
        memset(&alternate, 0, sizeof alternate);
        alternate.ss_sp = here.stack;
        alternate.ss_size = TRPI_FAULT_STACK_BYTES;
        (void)sigaltstack(&alternate, NULL);
    }
    here.ctx = ctx;
}

void
trpi_fault_thread_end(trp_ctx *ctx)
{
    stack_t none;

    if (here.ctx != ctx) {
        return;
    }
    here.ctx = NULL;
    if (here.stack != NULL) {
        memset(&none, 0, sizeof none);
        none.ss_flags = SS_DISABLE;
        (void)sigaltstack(&none, NULL);
        trpi_free(here.stack);
        here.stack = NULL;
    }
}
