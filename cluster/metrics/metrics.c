/* metrics.c - figures, their moving averages, capacities and weights: arithmetic, and two lists of
 * names. See metrics.h, include/troupe/metrics.h.
 *
 * Must hold.
 *   metrics-F1  A figure that leaves here is finite and not negative; an unknown figure is left
 *       out.
 *   metrics-F2  The share of a sample follows from the time that has passed, not from the interval:
 *       after a pause of the process the old average has little weight.
 *   metrics-F3  As long as there are routees, there is a weight above 0 among them.
 * Tests.   tests/unit/cluster/metrics_test.c
 * Sources. CMETRIC-03 to -12, GAP-13; decision 128.
 */
#include "cluster/metrics/metrics.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/sized.h"

#define DIVISOR_MIN 0.01 /* of capacities: bounds the weight of the others beside a full node */

/* ---- figures --------------------------------------------------------------------------------- */

static bool
name_is_valid(const char *name, size_t room)
{
    size_t bytes = strnlen(name, room);
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return bytes > 0 && bytes < room;
}

bool
trpi_metric_is_valid(const trp_metric *metric)
{
    return name_is_valid(metric->name, sizeof metric->name) && isfinite(metric->value) &&
           metric->value >= 0;
}

double
trpi_metrics_alpha(uint64_t elapsed_ms, uint32_t half_life_ms)
{
    trpi_assert(half_life_ms > 0);
    return 1.0 - pow(0.5, (double)elapsed_ms / half_life_ms);
}

int
trp_metrics_find(const trp_node_metrics *node, const char *name, double *ret_value)
{
    uint32_t count = node->count < TRP_METRICS_MAX ? node->count : TRP_METRICS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (strncmp(node->metrics[i].name, name, TRP_METRIC_NAME_BYTES) == 0) {
            *ret_value = node->metrics[i].value;
            return 1;
        }
    }
    return 0;
}

void
trpi_metrics_next(const trp_node_metrics *before, const trp_metric *samples, uint32_t count,
                  double alpha, trp_node_metrics *ret_next)
{
    ret_next->number = before == NULL ? 1 : before->number + 1;
    ret_next->count = 0;
    for (uint32_t i = 0; i < count && ret_next->count < TRP_METRICS_MAX; i++) {
        const trp_metric *sample = &samples[i];
        double old;
        if (!trpi_metric_is_valid(sample) || trp_metrics_find(ret_next, sample->name, &old)) {
            continue; /* metrics-F1; of one name the first */
        }
        trp_metric *metric = &ret_next->metrics[ret_next->count++];
        memset(metric, 0, sizeof *metric);
        memcpy(metric->name, sample->name, strlen(sample->name));
        metric->value = sample->value;
        if (sample->smooth != 0 && before != NULL && trp_metrics_find(before, sample->name, &old)) {
            metric->value = alpha * sample->value + (1.0 - alpha) * old; /* CMETRIC-03 */
        }
    }
}

int
trp_metrics_heap(const trp_node_metrics *node, trp_heap_metrics *ret_heap)
{
    trp_heap_metrics heap = { 0, 0, 0 };
    if (!trp_metrics_find(node, TRP_METRIC_HEAP_USED, &heap.used) ||
        !trp_metrics_find(node, TRP_METRIC_HEAP_COMMITTED, &heap.committed)) {
        return 0;
    }
    (void)trp_metrics_find(node, TRP_METRIC_HEAP_MAX, &heap.max); /* else 0 */
    *ret_heap = heap;
    return 1;
}

int
trp_metrics_cpu(const trp_node_metrics *node, trp_cpu_metrics *ret_cpu)
{
    trp_cpu_metrics cpu = { 0, 0, 0, 0, 0 };
    if (!trp_metrics_find(node, TRP_METRIC_PROCESSORS, &cpu.processors)) {
        return 0;
    }
    cpu.has_load = trp_metrics_find(node, TRP_METRIC_LOAD, &cpu.load) != 0;
    cpu.has_combined = trp_metrics_find(node, TRP_METRIC_CPU, &cpu.combined) != 0;
    *ret_cpu = cpu;
    return 1;
}

/* ---- capacities ------------------------------------------------------------------------------ */

static double
share_clamp(double value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

/* CMETRIC-04 */
static int
heap_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    double used, max, committed;
    (void)arg;
    if (!trp_metrics_find(node, TRP_METRIC_HEAP_USED, &used)) {
        return 0;
    }
    if (trp_metrics_find(node, TRP_METRIC_HEAP_MAX, &max) && max > 0) {
        *ret_capacity = share_clamp((max - used) / max);
        return 1;
    }
    if (trp_metrics_find(node, TRP_METRIC_HEAP_COMMITTED, &committed) && committed > 0) {
        *ret_capacity = share_clamp((committed - used) / committed);
        return 1;
    }
    return 0;
}

/* CMETRIC-05 */
static int
load_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    double load, processors;
    (void)arg;
    if (!trp_metrics_find(node, TRP_METRIC_LOAD, &load) ||
        !trp_metrics_find(node, TRP_METRIC_PROCESSORS, &processors) || processors <= 0) {
        return 0;
    }
    *ret_capacity = share_clamp(1.0 - load / processors);
    return 1;
}

/* CMETRIC-06 */
static int
cpu_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    double cpu;
    (void)arg;
    if (!trp_metrics_find(node, TRP_METRIC_CPU, &cpu)) {
        return 0;
    }
    *ret_capacity = share_clamp(1.0 - cpu);
    return 1;
}

/* CMETRIC-07 */
static int
mix_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    double sum = 0, one = 0;
    int known = 0;
    if (heap_capacity(arg, node, &one)) {
        sum += one;
        known++;
    }
    if (cpu_capacity(arg, node, &one)) {
        sum += one;
        known++;
    }
    if (load_capacity(arg, node, &one)) {
        sum += one;
        known++;
    }
    if (known > 0) {
        *ret_capacity = sum / known;
    }
    return known > 0;
}

static const trp_metrics_selector selectors[] = {
    { sizeof(trp_metrics_selector), "mix", mix_capacity, NULL },
    { sizeof(trp_metrics_selector), "heap", heap_capacity, NULL },
    { sizeof(trp_metrics_selector), "memory", heap_capacity, NULL },
    { sizeof(trp_metrics_selector), "cpu", cpu_capacity, NULL },
    { sizeof(trp_metrics_selector), "load", load_capacity, NULL },
};

/* ---- selectors and collectors of programs: process-wide, like routing logics ----------------- */

struct named { /* the head that both kinds share */
    size_t size;
    const char *name;
};
struct register_of {
    const struct named *list[TRP_METRICS_NAMED_MAX];
    uint32_t count;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* both below */
static struct register_of own_selectors, own_collectors;

static const struct named *
register_find(const struct register_of *own, const char *name)
{
    const struct named *found = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < own->count && found == NULL; i++) {
        found = strcmp(own->list[i]->name, name) == 0 ? own->list[i] : NULL;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static trp_err
register_add(struct register_of *own, const void *object)
{
    const struct named *one = object;
    trp_err err = TRP_OK;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < own->count && err == TRP_OK; i++) {
        if (own->list[i] == one) {
            pthread_mutex_unlock(&lock);
            return TRP_OK;
        }
        err = strcmp(own->list[i]->name, one->name) == 0 ? TRP_EEXIST : TRP_OK;
    }
    if (err == TRP_OK && own->count == TRP_METRICS_NAMED_MAX) {
        err = TRP_ELIMIT;
    }
    if (err == TRP_OK) {
        own->list[own->count++] = one;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

static const trp_metrics_selector *
built_in_find(const char *name)
{
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
        if (strcmp(selectors[i].name, name) == 0) {
            return &selectors[i];
        }
    }
    return NULL;
}

const trp_metrics_selector *
trpi_metrics_selector_find(const char *name)
{
    const trp_metrics_selector *found = built_in_find(name);
    return found != NULL ? found : (const void *)register_find(&own_selectors, name);
}

trp_err
trp_metrics_selector_register(const trp_metrics_selector *selector)
{
    if (selector == NULL || !TRPI_SIZED_FITS(selector, arg) || selector->name == NULL ||
        selector->name[0] == '\0' || selector->capacity == NULL) {
        return TRP_EINVAL;
    }
    return built_in_find(selector->name) != NULL ? TRP_EEXIST
                                                 : register_add(&own_selectors, selector);
}

int
trp_metrics_capacity(const char *selector, const trp_node_metrics *node, double *ret_capacity)
{
    const trp_metrics_selector *found = trpi_metrics_selector_find(selector);
    return found != NULL ? found->capacity(found->arg, node, ret_capacity) : 0;
}

const trp_metrics_collector *
trpi_metrics_collector_find(const char *name)
{
    return strcmp(name, trpi_metrics_proc.name) == 0
               ? &trpi_metrics_proc
               : (const void *)register_find(&own_collectors, name);
}

trp_err
trp_metrics_collector_register(const trp_metrics_collector *collector)
{
    if (collector == NULL || !TRPI_SIZED_FITS(collector, arg) || collector->name == NULL ||
        collector->name[0] == '\0' || collector->collect == NULL) {
        return TRP_EINVAL;
    }
    return strcmp(collector->name, trpi_metrics_proc.name) == 0
               ? TRP_EEXIST
               : register_add(&own_collectors, collector);
}

/* ---- weights --------------------------------------------------------------------------------- */

static uint32_t
weight_of(double capacity, double divisor)
{
    double weight = capacity > 0 ? floor(capacity / divisor + 0.5) : 0;
    return weight < TRPI_METRICS_WEIGHT_MAX ? (uint32_t)weight : TRPI_METRICS_WEIGHT_MAX;
}

void
trpi_metrics_weights(const double *capacities, const bool *known, uint32_t count,
                     uint32_t *ret_weights)
{
    double least = INFINITY;
    uint64_t sum = 0;
    uint32_t known_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (known[i] && capacities[i] < least) {
            least = capacities[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (known[i]) {
            ret_weights[i] = weight_of(capacities[i], least > DIVISOR_MIN ? least : DIVISOR_MIN);
            sum += ret_weights[i];
            known_count++;
        }
    }
    uint32_t mean = known_count == 0 ? 1 : (uint32_t)(sum / known_count);
    for (uint32_t i = 0; i < count; i++) {
        if (!known[i] || sum == 0) { /* metrics-F3: no node has capacity left: equal weights */
            ret_weights[i] = sum == 0 ? 1 : mean;
        }
    }
}

uint32_t
trpi_metrics_pick(const uint32_t *sums, uint32_t count, uint32_t ticket)
{
    uint32_t low = 0, high = count;
    trpi_assert(count > 0 && ticket >= 1 && ticket <= sums[count - 1]);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sums[middle] < ticket) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
