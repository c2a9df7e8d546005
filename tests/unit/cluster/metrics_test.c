/* The arithmetic of metrics: averages, capacities, weights, and names that programs register. */
#include <math.h>

#include "cluster/metrics/metrics.h"
#include "tests/unit/unit.h"

static trp_metric
make_metric(const char *name, double value, bool smooth)
{
    trp_metric m;
    memset(&m, 0, sizeof m);
    (void)snprintf(m.name, sizeof m.name, "%s", name);
    m.value = value;
    m.smooth = smooth;
    return m;
}

static void
add_metric(trp_node_metrics *node, const char *name, double value)
{
    node->metrics[node->count++] = make_metric(name, value, false);
}

static bool
is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* CMETRIC-03 */
static void
a_sample_counts_half_as_much_after_a_half_life(void)
{
    UNIT_TRUE(fabs(trpi_metrics_alpha(3000, 12000) - 0.1591) < 1e-4); /* the document's figure */
    UNIT_TRUE(is_near(trpi_metrics_alpha(12000, 12000), 0.5));
    UNIT_TRUE(is_near(trpi_metrics_alpha(0, 12000), 0.0));
    /* one sample of 1 and then zeros: after 4 half-lives 6 % of it is left, however often it is
     * measured meanwhile */
    for (uint64_t interval_ms = 1000; interval_ms <= 48000; interval_ms *= 2) {
        trp_metric sample = make_metric(TRP_METRIC_CPU, 1, true);
        trp_node_metrics now = { .count = 0 }, next = { .count = 0 };
        double left = 0;
        trpi_metrics_next(NULL, &sample, 1, 1, &now);
        sample.value = 0;
        for (uint64_t ms = 0; ms < 48000; ms += interval_ms) {
            trpi_metrics_next(&now, &sample, 1, trpi_metrics_alpha(interval_ms, 12000), &next);
            now = next;
        }
        UNIT_TRUE(trp_metrics_find(&now, TRP_METRIC_CPU, &left));
        UNIT_TRUE(interval_ms > 16000 || fabs(left - 0.0625) < 1e-9);
    }
}

/* CMETRIC-03, -11 */
static void
only_what_is_to_be_smoothed_is(void)
{
    const trp_metric first[] = { make_metric(TRP_METRIC_CPU, 1, true),
                                 make_metric(TRP_METRIC_LOAD, 4, false) };
    const trp_metric second[] = { make_metric(TRP_METRIC_CPU, 0, true),
                                  make_metric(TRP_METRIC_LOAD, 2, false),
                                  make_metric("queue", 7, true) };
    trp_node_metrics a = { .count = 0 }, b = { .count = 0 };
    double value = 0;
    trpi_metrics_next(NULL, first, 2, 0.25, &a);
    trpi_metrics_next(&a, second, 3, 0.25, &b);
    UNIT_EQUAL(a.number, 1);
    UNIT_EQUAL(b.number, 2);
    UNIT_TRUE(trp_metrics_find(&b, TRP_METRIC_CPU, &value) && is_near(value, 0.75));
    UNIT_TRUE(trp_metrics_find(&b, TRP_METRIC_LOAD, &value) && is_near(value, 2));
    UNIT_TRUE(trp_metrics_find(&b, "queue", &value) && is_near(value, 7)); /* no average yet */
}

/* CMETRIC-12 */
static void
a_figure_that_makes_no_sense_is_left_out(void)
{
    const trp_metric samples[] = { make_metric("minus", -1, false),
                                   make_metric("nan", NAN, false),
                                   make_metric("endless", INFINITY, false),
                                   make_metric("", 1, false),
                                   make_metric("two words", 1, false),
                                   make_metric("good", 0, false),
                                   make_metric("good", 5, false) };
    trp_node_metrics node = { .count = 0 };
    double value = 9;
    trp_metric endless_name;
    memset(&endless_name, 'x', sizeof endless_name.name);
    endless_name.value = 1;
    UNIT_FALSE(trpi_metric_is_valid(&endless_name)); /* no NUL: one byte past the limit */
    endless_name.name[TRP_METRIC_NAME_BYTES - 1] = '\0';
    UNIT_TRUE(trpi_metric_is_valid(&endless_name));
    trpi_metrics_next(NULL, samples, 7, 1, &node);
    UNIT_EQUAL(node.count, 1);
    UNIT_TRUE(trp_metrics_find(&node, "good", &value) && is_near(value, 0)); /* the first */
    UNIT_FALSE(trp_metrics_find(&node, "minus", &value));
    trp_metric many[TRP_METRICS_MAX + 1];
    for (uint32_t i = 0; i <= TRP_METRICS_MAX; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%u", i);
        many[i] = make_metric(name, i, false);
    }
    trpi_metrics_next(NULL, many, TRP_METRICS_MAX + 1, 1, &node);
    UNIT_EQUAL(node.count, TRP_METRICS_MAX);
}

static double
capacity_of(const char *selector, const trp_node_metrics *node)
{
    double value = -1;
    return trp_metrics_capacity(selector, node, &value) ? value : -1;
}

/* CMETRIC-04, -05, -06, -07, CMETRIC-11 */
static void
each_selector_says_what_is_left(void)
{
    trp_node_metrics node = { .count = 0 };
    trp_heap_metrics heap;
    trp_cpu_metrics cpu;
    UNIT_TRUE(capacity_of("mix", &node) < 0); /* nothing is known */
    UNIT_FALSE(trp_metrics_heap(&node, &heap));
    UNIT_FALSE(trp_metrics_cpu(&node, &cpu));
    add_metric(&node, TRP_METRIC_HEAP_USED, 30);
    UNIT_TRUE(capacity_of("heap", &node) < 0);
    add_metric(&node, TRP_METRIC_HEAP_COMMITTED, 40);
    UNIT_TRUE(
        is_near(capacity_of("heap", &node), 0.25)); /* without a maximum: of what is committed */
    UNIT_TRUE(trp_metrics_heap(&node, &heap) && is_near(heap.max, 0) &&
              is_near(heap.committed, 40));
    add_metric(&node, TRP_METRIC_HEAP_MAX, 100);
    UNIT_TRUE(is_near(capacity_of("heap", &node), 0.7));
    UNIT_TRUE(is_near(capacity_of("memory", &node), 0.7));
    UNIT_TRUE(is_near(capacity_of("mix", &node), 0.7)); /* the mean of what is known */
    add_metric(&node, TRP_METRIC_LOAD, 1);
    UNIT_TRUE(capacity_of("load", &node) < 0);
    add_metric(&node, TRP_METRIC_PROCESSORS, 4);
    UNIT_TRUE(is_near(capacity_of("load", &node), 0.75));
    UNIT_TRUE(trp_metrics_cpu(&node, &cpu) && cpu.has_load && !cpu.has_combined);
    UNIT_TRUE(capacity_of("cpu", &node) < 0);
    add_metric(&node, TRP_METRIC_CPU, 0.9);
    UNIT_TRUE(is_near(capacity_of("cpu", &node), 0.1));
    UNIT_TRUE(is_near(capacity_of("mix", &node), (0.7 + 0.75 + 0.1) / 3));
    UNIT_TRUE(trp_metrics_cpu(&node, &cpu) && is_near(cpu.combined, 0.9) &&
              is_near(cpu.processors, 4));
    UNIT_TRUE(capacity_of("nobody", &node) < 0);
    node.metrics[3].value = 400; /* a load of a hundred times the processors leaves nothing */
    UNIT_TRUE(is_near(capacity_of("load", &node), 0));
}

static int
queue_capacity(void *arg, const trp_node_metrics *node, double *ret_capacity)
{
    double length;
    (void)arg;
    if (!trp_metrics_find(node, "queue", &length)) {
        return 0;
    }
    *ret_capacity = 1 / (1 + length);
    return 1;
}

/* CMETRIC-08, -15 */
static void
programs_bring_selectors_and_collectors_of_their_own(void)
{
    static const trp_metrics_selector own = { sizeof own, "queue", queue_capacity, NULL };
    static const trp_metrics_selector same = { sizeof same, "queue", queue_capacity, NULL };
    static const trp_metrics_selector taken = { sizeof taken, "mix", queue_capacity, NULL };
    static const trp_metrics_selector none = { sizeof none, "none", NULL, NULL };
    const trp_metrics_collector proc = { sizeof proc, "proc", NULL, trpi_metrics_proc.collect,
                                         NULL,        NULL };
    trp_node_metrics node = { .count = 0 };
    add_metric(&node, "queue", 3);
    UNIT_EQUAL(trp_metrics_selector_register(&own), TRP_OK);
    UNIT_EQUAL(trp_metrics_selector_register(&own), TRP_OK);
    UNIT_EQUAL(trp_metrics_selector_register(&same), TRP_EEXIST);
    UNIT_EQUAL(trp_metrics_selector_register(&taken), TRP_EEXIST);
    UNIT_EQUAL(trp_metrics_selector_register(&none), TRP_EINVAL);
    UNIT_EQUAL(trp_metrics_selector_register(NULL), TRP_EINVAL);
    UNIT_TRUE(is_near(capacity_of("queue", &node), 0.25));
    UNIT_EQUAL(trp_metrics_collector_register(NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_metrics_collector_register(&proc), TRP_EEXIST);
}

/* The limit, and one past it. */
static void
registered_names_are_limited(void)
{
    static trp_metrics_collector collectors[TRP_METRICS_NAMED_MAX + 1];
    static char names[TRP_METRICS_NAMED_MAX + 1][16];
    for (uint32_t i = 0; i <= TRP_METRICS_NAMED_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%u", i);
        collectors[i] = (trp_metrics_collector){ sizeof collectors[i],      names[i], NULL,
                                                 trpi_metrics_proc.collect, NULL,     NULL };
        UNIT_EQUAL(trp_metrics_collector_register(&collectors[i]),
                   i < TRP_METRICS_NAMED_MAX ? TRP_OK : TRP_ELIMIT);
    }
    UNIT_TRUE(trpi_metrics_collector_find("c0") == &collectors[0]);
    UNIT_TRUE(trpi_metrics_collector_find("proc") == &trpi_metrics_proc);
    UNIT_TRUE(trpi_metrics_collector_find("c64") == NULL);
}

/* CMETRIC-10, GAP-13 */
static void
capacities_become_weights(void)
{
    static const struct {
        double capacities[4];
        bool known[4];
        uint32_t weights[4];
    } cases[] = {
        { { 0.6, 0.3, 0.3, 0.1 }, { true, true, true, true }, { 6, 3, 3, 1 } },
        { { 0.5, 0.5, 0.5, 0.5 }, { true, true, true, true }, { 1, 1, 1, 1 } },
        { { 1.0, 0.001, 0.0, 0.5 }, { true, true, true, true }, { 100, 0, 0, 50 } }, /* 0.01 */
        { { 0.9, 0.3, 0.0, 0.3 }, { true, true, false, true }, { 3, 1, 1, 1 } },     /* mean 5/3 */
        { { 0.9, 0.3, 0.0, 0.0 }, { true, true, false, false }, { 3, 1, 2, 2 } },
        { { 0, 0, 0, 0 }, { false, false, false, false }, { 1, 1, 1, 1 } }, /* nothing is known */
        { { 0, 0, 0, 0 }, { true, true, false, true }, { 1, 1, 1, 1 } },    /* nothing is left */
        { { 1e9, 0.5, 0.5, -3 }, { true, true, true, true }, { 10000, 50, 50, 0 } }, /* its limit */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t weights[4] = { 77, 77, 77, 77 };
        trpi_metrics_weights(cases[i].capacities, cases[i].known, 4, weights);
        UNIT_TRUE(memcmp(weights, cases[i].weights, sizeof weights) == 0);
    }
}

/* CMETRIC-10: over all tickets each routee is drawn as often as it weighs. */
static void
a_ticket_finds_each_as_often_as_it_weighs(void)
{
    static const uint32_t weights[] = { 0, 3, 1, 0, 0, 7, 2, 0 };
    uint32_t sums[8], drawn[8] = { 0 }, sum = 0;
    for (uint32_t i = 0; i < 8; i++) {
        sums[i] = sum += weights[i];
    }
    for (uint32_t ticket = 1; ticket <= sum; ticket++) {
        drawn[trpi_metrics_pick(sums, 8, ticket)]++;
    }
    UNIT_TRUE(memcmp(drawn, weights, sizeof weights) == 0);
}

UNIT_BEGIN("metrics")
UNIT(a_sample_counts_half_as_much_after_a_half_life)
UNIT(only_what_is_to_be_smoothed_is)
UNIT(a_figure_that_makes_no_sense_is_left_out)
UNIT(each_selector_says_what_is_left)
UNIT(programs_bring_selectors_and_collectors_of_their_own)
UNIT(registered_names_are_limited)
UNIT(capacities_become_weights)
UNIT(a_ticket_finds_each_as_often_as_it_weighs)
UNIT_END
