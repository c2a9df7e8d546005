/* coroutine.c - functions that run on stacks of their own, and may be left and resumed.
 *
 * Why.     A flow is written in sequence and waits in the middle of it, without a thread. Its
 *          frames have to stay somewhere meanwhile.
 * Shape.   resume --switch--> fn on its stack --switch--> resume returns true, ..., false
 *          high [entry | frames of fn ... ]  low  [guard: no access]
 * Must hold.
 *   coroutine-Y1  A coroutine is on one thread at a time, and goes back to the resume that runs it.
 *   coroutine-Y2  What a switch saves is all that the calling convention wants kept: registers of
 *       the callee, and the control words of floating point. The signal mask is the thread's.
 *   coroutine-Y3  The sanitizers are told of each switch, on both sides of it.
 * Limits.  A stack overflow runs into the guard: a fault, see src/actor/kernel/fault.c. A frame
 *          above TRPI_STACK_GUARD_BYTES may skip it.
 * Cost.    A switch is about twenty instructions on x86-64; elsewhere, and with a shadow stack, it
 *          is that of ucontext, with a system call.
 * Not here. When a coroutine runs (dataflow.c).
 * Tests.   tests/unit/pattern/coroutine_test.c, tests/unit/pattern/coroutine_portable_test.c
 * Sources. System V ABI for x86-64, 3.2.1 (registers), 3.2.2 (stack alignment); swapcontext(3),
 *          sanitizer/common_interface_defs.h, sanitizer/tsan_interface.h.
 */
#include "pattern/coroutine.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#if defined(__x86_64__) && !defined(TRPI_COROUTINE_PORTABLE)
#define HAS_NATIVE 1
#else
#define HAS_NATIVE 0
#endif

#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define WITH_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define WITH_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define WITH_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define WITH_TSAN 0
#endif

/* The thread sanitizer has a stack of calls for each fiber: a function that tells it of a switch
 * must itself make the switch, so all of this is one function. */
#define INLINE __attribute__((always_inline))

struct trpi_coroutine {
    void *own, *outer;    /* native: the stack pointer of the side that does not run */
    ucontext_t *portable; /* or the registers of both: [OWN], [OUTER]; NULL: native */
    void (*fn)(void *arg);
    void *arg;
    trpi_stack stack;
    bool has_ended;
#if WITH_ASAN
    void *own_fake, *outer_fake; /* frames that the sanitizer keeps elsewhere */
    const void *outer_low;       /* the stack of the resume that runs it */
    size_t outer_bytes;
#endif
#if WITH_TSAN
    void *own_fiber, *outer_fiber;
#endif
};

/* ---- memory ---------------------------------------------------------------------------------- */

trp_err
trpi_stack_map(size_t bytes, trpi_stack *ret_stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (bytes + page - 1) / page * page;
    char *base = mmap(NULL, TRPI_STACK_GUARD_BYTES + usable, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    trpi_assert(TRPI_STACK_GUARD_BYTES % page == 0);
    if (base == MAP_FAILED) {
        return TRP_ENOMEM;
    }
    if (mprotect(base + TRPI_STACK_GUARD_BYTES, usable, PROT_READ | PROT_WRITE) != 0) {
        (void)munmap(base, TRPI_STACK_GUARD_BYTES + usable);
        return TRP_ENOMEM;
    }
    *ret_stack = (trpi_stack){ NULL, base + TRPI_STACK_GUARD_BYTES, usable };
    return TRP_OK;
}

void
trpi_stack_unmap(trpi_stack *stack)
{
    if (stack->low != NULL) {
        (void)munmap(stack->low - TRPI_STACK_GUARD_BYTES, TRPI_STACK_GUARD_BYTES + stack->bytes);
    }
    *stack = (trpi_stack){ NULL, NULL, 0 };
}

/* ---- what the sanitizers are told (coroutine-Y3) --------------------------------------------- */

static inline INLINE void
before_resume(trpi_coroutine *co)
{
#if WITH_ASAN
    __sanitizer_start_switch_fiber(&co->outer_fake, co->stack.low, co->stack.bytes);
#endif
#if WITH_TSAN
    co->outer_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(co->own_fiber, 0);
#endif
    (void)co;
}

static inline INLINE void
after_resume(trpi_coroutine *co)
{
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(co->outer_fake, NULL, NULL);
#endif
    (void)co;
}

static inline INLINE void
after_entry(trpi_coroutine *co)
{
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(co->own_fake, &co->outer_low, &co->outer_bytes);
#endif
    (void)co;
}

static inline INLINE void
before_exit(trpi_coroutine *co)
{
#if WITH_ASAN
    __sanitizer_start_switch_fiber(co->has_ended ? NULL : &co->own_fake, co->outer_low,
                                   co->outer_bytes);
#endif
#if WITH_TSAN
    __tsan_switch_to_fiber(co->outer_fiber, 0);
#endif
    (void)co;
}

/* ---- the switch ------------------------------------------------------------------------------ */

static void
coroutine_run(trpi_coroutine *co)
{
    after_entry(co);
    co->fn(co->arg);
    co->has_ended = true;
    trpi_coroutine_suspend(co);
    trpi_assert(co == NULL); /* one that has returned was resumed */
}

enum { OWN, OUTER };

/* makecontext() passes ints. */
static void
portable_entry(unsigned high, unsigned low)
{
    coroutine_run((trpi_coroutine *)((uintptr_t)((uint64_t)high << 32 | low)));
}

static trp_err
portable_prepare(trpi_coroutine *co)
{
    uint64_t number = (uintptr_t)co;
    ucontext_t *own;
    co->portable = trpi_alloc(2 * sizeof(ucontext_t));
    if (co->portable == NULL) {
        return TRP_ENOMEM;
    }
    own = &co->portable[OWN];
    (void)getcontext(own); /* cannot fail */
    own->uc_stack.ss_sp = co->stack.low;
    own->uc_stack.ss_size = co->stack.bytes;
    own->uc_link = NULL;
    makecontext(own, (void (*)(void))(uintptr_t)portable_entry, 2, (unsigned)(number >> 32),
                (unsigned)number);
    return TRP_OK;
}

#if HAS_NATIVE
/* Push what the caller wants kept (coroutine-Y2), store the stack pointer in *from, take the other
 * one and pop its. */
void trpi_coroutine_switch(void **from, void *to) __attribute__((visibility("hidden")));
void trpi_coroutine_entry(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden trpi_coroutine_switch\n"
        ".globl trpi_coroutine_switch\n"
        ".type trpi_coroutine_switch, @function\n"
        "trpi_coroutine_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size trpi_coroutine_switch, .-trpi_coroutine_switch\n"
        ".p2align 4\n"
        ".hidden trpi_coroutine_entry\n"
        ".globl trpi_coroutine_entry\n"
        ".type trpi_coroutine_entry, @function\n"
        "trpi_coroutine_entry:\n" /* the first switch returns here, with r12 and r13 as laid */
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n" /* debuggers end here */
        "    movq %r12, %rdi\n"
        "    xorl %ebp, %ebp\n"
        "    call *%r13\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size trpi_coroutine_entry, .-trpi_coroutine_entry\n");

/* The frame that trpi_coroutine_switch() pops. */
typedef struct first_frame {
    uint32_t mxcsr;
    uint16_t fpu_control, zero;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    uint64_t returns_to;
    uint64_t above[2]; /* the stack pointer is a multiple of 16 before the call of entry */
} first_frame;
_Static_assert(offsetof(first_frame, above) == 8 * 8, "as the switch pops it");

enum { SPARE_BYTES = 16 }; /* first_frame.above */

/* Has this thread a shadow stack? swapcontext() alone switches it. */
static bool
has_shadow_stack(void)
{
    uint64_t at = 0;
    __asm__ volatile("rdsspq %0" : "+r"(at)); /* does nothing where there is none */
    return at != 0;
}

static trp_err
switch_prepare(trpi_coroutine *co)
{
    uintptr_t high = (uintptr_t)(co->stack.low + co->stack.bytes);
    first_frame *frame =
        (first_frame *)((high - SPARE_BYTES) / 16 * 16 - offsetof(first_frame, above));
    if (has_shadow_stack()) {
        return portable_prepare(co);
    }
    memset(frame, 0, sizeof *frame);
    __asm__ volatile("stmxcsr %0" : "=m"(frame->mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(frame->fpu_control));
    frame->r12 = (uintptr_t)co;
    frame->r13 = (uintptr_t)coroutine_run;
    frame->returns_to = (uintptr_t)trpi_coroutine_entry;
    co->own = frame;
    return TRP_OK;
}

static inline INLINE void
switch_in(trpi_coroutine *co)
{
    if (co->portable == NULL) {
        trpi_coroutine_switch(&co->outer, co->own);
    } else {
        (void)swapcontext(&co->portable[OUTER], &co->portable[OWN]);
    }
}

static inline INLINE void
switch_out(trpi_coroutine *co)
{
    if (co->portable == NULL) {
        trpi_coroutine_switch(&co->own, co->outer);
    } else {
        (void)swapcontext(&co->portable[OWN], &co->portable[OUTER]);
    }
}
#else
static trp_err
switch_prepare(trpi_coroutine *co)
{
    return portable_prepare(co);
}

static inline INLINE void
switch_in(trpi_coroutine *co)
{
    (void)swapcontext(&co->portable[OUTER], &co->portable[OWN]);
}

static inline INLINE void
switch_out(trpi_coroutine *co)
{
    (void)swapcontext(&co->portable[OWN], &co->portable[OUTER]);
}
#endif

/* ---- coroutines ------------------------------------------------------------------------------ */

trp_err
trpi_coroutine_new(const trpi_stack *stack, void (*fn)(void *arg), void *arg,
                   trpi_coroutine **ret_coroutine)
{
    trpi_coroutine *co = trpi_alloc(sizeof *co);
    trp_err err;
    trpi_assert(stack->low != NULL);
    trpi_assert(fn != NULL);
    if (co == NULL) {
        return TRP_ENOMEM;
    }
    co->stack = *stack;
    co->fn = fn;
    co->arg = arg;
#if WITH_ASAN
    /* frames that a jump has left on it may have marked it */
    __asan_unpoison_memory_region(stack->low, stack->bytes);
#endif
    err = switch_prepare(co);
    if (err != TRP_OK) {
        trpi_free(co);
        return err;
    }
#if WITH_TSAN
    co->own_fiber = __tsan_create_fiber(0);
#endif
    *ret_coroutine = co;
    return TRP_OK;
}

void
trpi_coroutine_free(trpi_coroutine *co)
{
    if (co == NULL) {
        return;
    }
#if WITH_TSAN
    __tsan_destroy_fiber(co->own_fiber);
#endif
    trpi_free(co->portable);
    trpi_free(co);
}

bool
trpi_coroutine_resume(trpi_coroutine *co)
{
    trpi_assert(!co->has_ended);
    before_resume(co);
    switch_in(co);
    after_resume(co);
    return !co->has_ended;
}

/* noinline: whatever is thread-local is looked up anew behind it (coroutine-Y1) */
__attribute__((noinline)) void
trpi_coroutine_suspend(trpi_coroutine *co)
{
    before_exit(co);
    switch_out(co);
    after_entry(co);
}
