/* fault_shaper.c - see the header. */
#include "remote/faults/fault_shaper.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static bool
is_chance(double p)
{
    return p >= 0.0 && p <= 1.0; /* false for a NaN, too */
}

bool
trpi_fault_rule_is_valid(const trpi_fault_rule *rule)
{
    return rule->bytes_per_s >= TRPI_FAULT_RATE_PASS && is_chance(rule->lose) &&
           is_chance(rule->repeat) && is_chance(rule->reorder) &&
           rule->delay_ms <= TRPI_FAULT_DELAY_MS_MAX && rule->jitter_ms <= TRPI_FAULT_DELAY_MS_MAX;
}

bool
trpi_fault_rule_is_none(const trpi_fault_rule *rule)
{
    return rule->bytes_per_s == TRPI_FAULT_RATE_PASS && !(rule->lose > 0.0) &&
           !(rule->repeat > 0.0) && !(rule->reorder > 0.0) && rule->delay_ms == 0 &&
           rule->jitter_ms == 0;
}

static bool
chance_happens(double chance, uint64_t roll)
{
    return (double)(roll >> 11) * 0x1p-53 < chance;
}

/* Token bucket: return when the last of so many bytes may pass. */
static uint64_t
due_by_rate(trpi_fault_shaper *shaper, int64_t bytes_per_s, uint64_t now_ns, uint64_t bytes)
{
    double ns_per_byte = (double)NS_PER_S / (double)bytes_per_s;
    uint64_t full_ns = (uint64_t)(TRPI_FAULT_BUCKET_BYTES * ns_per_byte);
    uint64_t from = shaper->free_ns > now_ns ? shaper->free_ns : now_ns;

    shaper->free_ns = from + (uint64_t)((double)bytes * ns_per_byte);
    return shaper->free_ns > now_ns + full_ns ? shaper->free_ns - full_ns : now_ns;
}

trpi_fault_verdict
trpi_fault_shaper_judge(trpi_fault_shaper *shaper, const trpi_fault_rule *rule, uint64_t now_ns,
                        uint64_t bytes, bool whole, const uint64_t rolls[4])
{
    trpi_fault_verdict verdict = { 1, now_ns };
    uint64_t wait_ns = rule->delay_ms * NS_PER_MS;

    if (!whole &&
        (rule->bytes_per_s == TRPI_FAULT_RATE_BLACKHOLE || chance_happens(rule->lose, rolls[0]))) {
        verdict.copies = 0;
        return verdict;
    }
    if (rule->bytes_per_s > 0) {
        verdict.due_ns = due_by_rate(shaper, rule->bytes_per_s, now_ns, bytes);
    }
    if (rule->jitter_ms > 0) {
        wait_ns += rolls[1] % (rule->jitter_ms * NS_PER_MS + 1);
    }
    verdict.due_ns += wait_ns;
    if (verdict.due_ns < shaper->due_ns) {
        verdict.due_ns = shaper->due_ns; /* fault-shaper-G1 */
    }
    if (!whole && chance_happens(rule->repeat, rolls[2])) {
        verdict.copies = 2;
    }
    if (!whole && chance_happens(rule->reorder, rolls[3])) { /* later frames overtake it */
        verdict.due_ns += NS_PER_MS + wait_ns;
    } else {
        shaper->due_ns = verdict.due_ns;
    }
    return verdict;
}
