/* troupe/journal_kit.h - the conformance kit of journals: for tests of a driver of one's own.
 *
 *     trp_journal_kit kit = { sizeof kit, &mine, my_open, my_forget, NULL };
 *     char why[TRP_JOURNAL_KIT_WHY_BYTES];
 *     for (uint32_t law = 0; law < trp_journal_kit_laws_count(); law++) {
 *         if (trp_journal_kit_run(&kit, law, why, sizeof why) != TRP_OK) {
 *             printf("%s: %s\n", trp_journal_kit_law(law), why);
 *         }
 *     }
 *
 * A law is one promise of troupe/journal.h, played through the driver. The drivers of the library
 * are tested with nothing else, besides their faults. */
#ifndef TROUPE_JOURNAL_KIT_H
#define TROUPE_JOURNAL_KIT_H

#include <troupe/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_JOURNAL_KIT_WHY_BYTES 2048

/* The journal under test. */
typedef struct trp_journal_kit {
    size_t size; /* sizeof(trp_journal_kit) */
    void *arg;   /* passed to both */
    /* Open the journal with what it held when it was closed. The kit calls the driver's close, and
     * opens it again then. */
    trp_err (*open)(void *arg, const trp_journal_driver **ret_driver);
    /* Make it empty; it is closed. */
    trp_err (*forget)(void *arg);
    /* With on = 1, let changes be failed, by chance or each, as when a connection breaks or a
     * server stands still, and be carried out later if that can happen; with 0, no longer. It must
     * not wait for answers. NULL: that cannot be done, and the law of failed operations holds
     * without having been played. */
    trp_err (*disturb)(void *arg, int on);
} trp_journal_kit;

/* Return how many laws there are.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API uint32_t trp_journal_kit_laws_count(void);

/* Return the name of a law, a static string; "" beyond the last one.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API const char *trp_journal_kit_law(uint32_t law);

/* Play one law on an empty journal. why is filled with what was broken, cut to its room; "" if the
 * law holds.
 *
 * Ownership: borrows kit and why
 * Errors:    TRP_EINVAL  kit is incomplete, why is NULL, or there is no such law
 *            TRP_EFAILED the law is broken, or the journal could not be opened
 *            TRP_ENOMEM  out of memory
 * Thread:    any; may block until the journal answers; never from a behaviour. It starts threads.
 * Source:    docs/adr, decision 286.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_journal_kit_run(const trp_journal_kit *kit, uint32_t law,
                                                   char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_JOURNAL_KIT_H */
