/* atomics.h - short names of memory orders, branch hints, cache lines, and the pause in a spin
 * loop.
 *
 * For implementation files; a header of ours that includes it makes its includers see the short
 * names too, which is fine within the library and never happens in a public header.
 */
#ifndef TRPI_BASE_ATOMICS_H
#define TRPI_BASE_ATOMICS_H

#include <stdatomic.h>

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define SEQ_CST memory_order_seq_cst

#define LIKELY(e) __builtin_expect(!!(e), 1)
#define UNLIKELY(e) __builtin_expect(!!(e), 0)
#define NOINLINE __attribute__((noinline)) /* off the hot path: its caller stays small */

/* Bytes of a cache line, and of the pair of lines that x86-64 prefetches together: members that
 * different threads write stand so far apart, against false sharing. */
#define TRPI_CACHE_LINE 64
#define TRPI_CACHE_LINE_PAIR 128

/* Tell the processor that the thread spins. */
static inline void
trpi_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
