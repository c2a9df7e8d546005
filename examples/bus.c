/* bus.c - a bus of the program's own: subscribers of a topic get its subtopics, too. */
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

typedef struct event {
    const char *topic;
    const char *text;
} event;

static trp_bus_value
classify(void *arg, const void *published)
{
    (void)arg;
    return trp_bus_of_pointer(((const event *)published)->topic);
}
static int
is_below(void *arg, trp_bus_value classifier, trp_bus_value channel)
{
    (void)arg;
    return strncmp(classifier.pointer, channel.pointer, strlen(channel.pointer)) == 0;
}
static int
compare(void *arg, trp_bus_value a, trp_bus_value b)
{
    (void)arg;
    return strcmp(a.pointer, b.pointer);
}
static void
publish(void *arg, const void *published, trp_bus_value subscriber)
{
    (void)arg;
    printf("%s: %s\n", (const char *)subscriber.pointer, ((const event *)published)->text);
}

int
main(void)
{
    const event rain = { "weather/rain", "it rains" }, goal = { "sport/goal", "1:0" };
    trp_bus_options options = TRP_BUS_OPTIONS_INIT;
    trp_bus *bus;
    options.kind = TRP_BUS_SUBCHANNEL;
    options.classify = classify;
    options.is_below = is_below;
    options.compare_classifiers = options.compare_subscribers = compare;
    options.publish = publish; /* with actors: a tell */
    if (trp_bus_new(&options, &bus) != TRP_OK ||
        trp_bus_subscribe(bus, trp_bus_of_pointer("ann"), trp_bus_of_pointer("weather")) != 0 ||
        trp_bus_subscribe(bus, trp_bus_of_pointer("bob"), trp_bus_of_pointer("sport")) != 0) {
        return 1;
    }
    printf("%u heard\n", (unsigned)trp_bus_publish(bus, &rain));
    printf("%u heard\n", (unsigned)trp_bus_publish(bus, &goal));
    trp_bus_free(bus);
    return 0;
}
