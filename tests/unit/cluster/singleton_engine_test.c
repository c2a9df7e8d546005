/* The engine of singletons: tables of single cores. */
#include "tests/unit/cluster/singletons.h"

#include "base/alloc.h"

/* ---- one core -------------------------------------------------------------------------------- */

struct seen { /* what a core did */
    char text[512];
    uint32_t spawned, stopped, killed, stuck, over;
    char data[16];
    trpi_node_id to;
    uint64_t round;
};

static struct seen seen;
static trpi_singleton_core *core;
static uint64_t takeover_after_ms;

static void
see(void *arg, const trpi_singleton_action *a)
{
    static const char *const words[] = { "", "me", "progress", "done", "taken", "offer", "absent" };
    (void)arg;
    size_t at = strlen(seen.text);
    switch (a->kind) {
    case TRPI_SINGLETON_SEND:
        (void)snprintf(seen.text + at, sizeof seen.text - at, "%s%llu%s ", words[a->word],
                       (unsigned long long)a->to->uid - 100,
                       a->data != NULL && a->data->count > 0 ? "+" : "");
        seen.to = *a->to;
        seen.round = a->round;
        break;
    case TRPI_SINGLETON_SPAWN:
        seen.spawned++;
        seen.data[0] = '\0';
        if (a->data != NULL) {
            (void)snprintf(seen.data, sizeof seen.data, "%.*s", (int)a->data->count,
                           (const char *)a->data->data);
        }
        (void)snprintf(seen.text + at, sizeof seen.text - at, "spawn ");
        break;
    case TRPI_SINGLETON_STOP:
        seen.stopped++;
        (void)snprintf(seen.text + at, sizeof seen.text - at, "stop ");
        break;
    case TRPI_SINGLETON_KILL:
        seen.killed++;
        (void)snprintf(seen.text + at, sizeof seen.text - at, "kill ");
        break;
    case TRPI_SINGLETON_LEASE_ACQUIRE:
        (void)snprintf(seen.text + at, sizeof seen.text - at, "lease ");
        break;
    case TRPI_SINGLETON_LEASE_RELEASE:
        (void)snprintf(seen.text + at, sizeof seen.text - at, "unlease ");
        break;
    case TRPI_SINGLETON_STUCK:
        seen.stuck++;
        (void)snprintf(seen.text + at, sizeof seen.text - at, "stuck ");
        UNIT_TRUE(strstr(a->text, "10.0.0.1") != NULL);
        break;
    case TRPI_SINGLETON_OVER:
        seen.over++;
        (void)snprintf(seen.text + at, sizeof seen.text - at, "over ");
        break;
    default:
        break;
    }
}

static uint64_t
takeover(void *arg, const trpi_node_id *id)
{
    (void)arg;
    (void)id;
    return takeover_after_ms;
}

static void
begin(uint32_t self, const trpi_singleton_settings *with)
{
    trpi_aged own = member(self, TRP_MEMBER_UP);
    memset(&seen, 0, sizeof seen);
    takeover_after_ms = 0;
    UNIT_REQUIRE(trpi_singleton_new(&own.id, with, see, NULL, &core) == TRP_OK);
}

/* statuses: a letter a node, in order: u up, l leaving, e exiting, d down, - gone, j joining. */
static void
view(uint64_t now_ms, const char *statuses)
{
    trpi_aged members[NODES];
    uint32_t count = 0;
    for (uint32_t i = 0; statuses[i] != '\0'; i++) {
        static const char letters[] = "?juled";
        const char *letter = strchr(letters, statuses[i]);
        if (letter != NULL) {
            members[count] = member(i, (uint32_t)(letter - letters));
            members[count].up_number = statuses[i] == 'j' ? 0 : members[count].up_number;
            count++;
        }
    }
    trpi_singleton_event event = {
        .kind = TRPI_SINGLETON_VIEW, .members = members, .count = count, .takeover_ms = takeover
    };
    UNIT_EQUAL(trpi_singleton_step(core, now_ms, &event), TRP_OK);
}

static void
frame(uint64_t now_ms, uint32_t from, trpi_singleton_word word, uint64_t round, const char *data)
{
    trpi_buffer buffer = { NULL, 0, 0 };
    trpi_aged sender = member(from, TRP_MEMBER_UP);
    if (data != NULL) {
        UNIT_EQUAL(trpi_buffer_append(&buffer, data, strlen(data), 100), TRP_OK);
    }
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_FRAME,
                                   .from = sender.id,
                                   .up_number = sender.up_number,
                                   .word = word,
                                   .round = round,
                                   .data = &buffer };
    UNIT_EQUAL(trpi_singleton_step(core, now_ms, &event), TRP_OK);
    trpi_buffer_fini(&buffer);
}

static void
happens(uint64_t now_ms, trpi_singleton_event_kind kind, uint32_t count)
{
    trpi_singleton_event event = { .kind = kind, .count = count };
    UNIT_EQUAL(trpi_singleton_step(core, now_ms, &event), TRP_OK);
}

static void
gives(uint64_t now_ms, const char *data)
{
    trpi_buffer buffer = { NULL, 0, 0 };
    UNIT_EQUAL(trpi_buffer_append(&buffer, data, strlen(data), 100), TRP_OK);
    trpi_singleton_event event = { .kind = TRPI_SINGLETON_DATA, .data = &buffer };
    UNIT_EQUAL(trpi_singleton_step(core, now_ms, &event), TRP_OK);
    trpi_buffer_fini(&buffer);
}

#define DID(want)                                                                                  \
    do {                                                                                           \
        UNIT_TEXT(seen.text, want);                                                                \
        seen.text[0] = '\0';                                                                       \
    } while (0)
#define IN(want) UNIT_TEXT(trpi_singleton_state_name(trpi_singleton_state_get(core)), want)

/* CONTRIB-02 CONTRIB-01 */
static void
the_first_member_starts_it_at_once_and_a_younger_one_does_not(void)
{
    begin(0, &settings);
    IN("Start");
    view(0, "j");
    IN("Start");
    DID("");
    view(1, "u");
    IN("Oldest");
    DID("spawn ");
    view(2, "uuu");
    IN("Oldest");
    DID("");
    trpi_singleton_free(core);
    begin(1, &settings);
    view(0, "uu");
    IN("Younger");
    DID("");
    UNIT_EQUAL(trpi_singleton_wake_ms(core), UINT64_MAX);
    trpi_singleton_free(core);
}

/* CONTRIB-04, -07, -08: the messages of a hand-over, seen from both ends */
static void
a_leaving_host_hands_over_with_its_data(void)
{
    begin(0, &settings);
    view(0, "uu");
    view(1, "lu");
    IN("Oldest");
    DID("spawn ");
    view(2, "eu");
    IN("WasOldest");
    DID("offer1 ");
    UNIT_EQUAL(trpi_singleton_wake_ms(core), 2 + RETRY_MS);
    frame(3, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 7, NULL);
    IN("HandingOver");
    DID("progress1 stop ");
    gives(4, "state");
    frame(4, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 7, NULL);
    DID("progress1 ");
    happens(5, TRPI_SINGLETON_STOPPED, 0);
    IN("End");
    DID("done1+ ");
    UNIT_EQUAL(seen.round, 7);
    happens(5 + RETRY_MS, TRPI_SINGLETON_TICK, 0);
    DID("done1+ "); /* until it is confirmed */
    frame(6 + RETRY_MS, 1, TRPI_SINGLETON_TAKEN, 7, NULL);
    DID("over ");
    trpi_singleton_free(core);

    begin(1, &settings);
    view(0, "uu");
    view(1, "eu");
    IN("BecomingOldest");
    DID("me0 ");
    frame(2, 0, TRPI_SINGLETON_HAND_OVER_IN_PROGRESS, seen.round, NULL);
    DID("");
    frame(3, 0, TRPI_SINGLETON_HAND_OVER_DONE, seen.round, "state");
    DID("taken0 spawn ");
    UNIT_TEXT(seen.data, "state");
    IN("Oldest");
    frame(4, 0, TRPI_SINGLETON_HAND_OVER_DONE, seen.round, "state");
    DID("taken0 ");
    trpi_singleton_free(core);
}

/* CONTRIB-06, and the margin after an operator's down */
static void
a_crashed_host_is_succeeded_when_it_is_removed_and_its_time_is_over(void)
{
    begin(1, &settings);
    view(0, "uu");
    view(1, "du");
    IN("BecomingOldest");
    DID("me0 ");
    view(2, "-u");
    IN("Oldest");
    DID("spawn ");
    UNIT_TEXT(seen.data, "");
    trpi_singleton_free(core);
    begin(1, &settings);
    view(0, "uu");
    takeover_after_ms = 20000;
    view(10, "-u");
    IN("BecomingOldest");
    UNIT_EQUAL(trpi_singleton_wake_ms(core), 20010);
    trpi_singleton_look look;
    trpi_singleton_look_at(core, &look);
    UNIT_TRUE(look.awaited != NULL && look.awaited->uid == 100);
    UNIT_EQUAL(look.awaited_free_ms, 20010);
    happens(20009, TRPI_SINGLETON_TICK, 0);
    DID("");
    happens(20010, TRPI_SINGLETON_TICK, 0);
    DID("spawn ");
    trpi_singleton_free(core);
    begin(1, &settings); /* down --dead: it is over earlier */
    view(0, "uu");
    takeover_after_ms = 20000;
    view(10, "-u");
    takeover_after_ms = 0;
    view(500, "-u");
    DID("spawn ");
    trpi_singleton_free(core);
}

/* CONTRIB-08: The scenario of the chaos spec: the three oldest are gone at once. */
static void
each_of_several_older_members_is_waited_for(void)
{
    begin(3, &settings);
    view(0, "uuuu");
    view(1, "edeu");
    DID("me0 me1 me2 ");
    view(2, "e-eu");
    DID("");
    frame(3, 2, TRPI_SINGLETON_HAND_OVER_DONE, seen.round, NULL);
    DID("taken2 ");
    IN("BecomingOldest");
    frame(4, 0, TRPI_SINGLETON_ABSENT, 0, NULL);
    DID("spawn ");
    trpi_singleton_free(core);
}

/* CONTRIB-07 */
static void
an_older_member_that_never_answers_restarts_the_manager_with_its_name(void)
{
    begin(1, &settings);
    view(0, "uu");
    view(0, "eu");
    for (uint32_t i = 1; i < 20; i++) {
        UNIT_EQUAL(trpi_singleton_wake_ms(core), (uint64_t)i * RETRY_MS);
        happens((uint64_t)i * RETRY_MS, TRPI_SINGLETON_TICK, 0);
        UNIT_EQUAL(seen.stuck, 0);
    }
    seen.text[0] = '\0';
    happens(20 * RETRY_MS, TRPI_SINGLETON_TICK, 0);
    DID("stuck ");
    view(20 * RETRY_MS + 1, "eu");
    DID("");
    trpi_singleton_restart(core, 20 * RETRY_MS + 2);
    view(20 * RETRY_MS + 2, "eu");
    DID("me0 ");
    view(20 * RETRY_MS + 3, "-u"); /* known as removed: no hand-over */
    DID("spawn ");
    trpi_singleton_free(core);
}

static void
a_restarted_manager_still_waits_for_the_time_of_a_removed_member(void)
{
    begin(1, &settings);
    view(0, "uu");
    takeover_after_ms = 20000;
    view(10, "-u");
    takeover_after_ms = 19990;
    trpi_singleton_restart(core, 20);
    view(20, "-u");
    IN("BecomingOldest");
    DID("");
    happens(20010, TRPI_SINGLETON_TICK, 0);
    DID("spawn ");
    trpi_singleton_free(core);
}

/* CONTRIB-07: nobody takes it */
static void
a_leaving_host_whose_successor_is_silent_or_lacks_it_stops_it_and_goes(void)
{
    begin(0, &settings);
    view(0, "uu");
    view(0, "eu");
    for (uint32_t i = 1; i < 15; i++) {
        happens((uint64_t)i * RETRY_MS, TRPI_SINGLETON_TICK, 0);
    }
    UNIT_EQUAL(seen.stopped, 0);
    happens(15 * RETRY_MS, TRPI_SINGLETON_TICK, 0);
    UNIT_EQUAL(seen.stopped, 1);
    happens(15 * RETRY_MS + 1, TRPI_SINGLETON_STOPPED, 0);
    UNIT_EQUAL(seen.over, 1);
    trpi_singleton_free(core);
    begin(0, &settings);
    view(0, "uu");
    view(0, "eu");
    frame(1, 1, TRPI_SINGLETON_ABSENT, 0, NULL);
    DID("spawn offer1 stop ");
    happens(2, TRPI_SINGLETON_STOPPED, 0);
    DID("over ");
    trpi_singleton_free(core);
    begin(0, &settings);
    view(0, "u");
    view(0, "e");
    DID("spawn stop ");
    trpi_singleton_free(core);
}

static void
a_singleton_that_does_not_stop_is_stopped_by_force(void)
{
    begin(0, &settings);
    view(0, "uu");
    frame(1, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 3, NULL);
    UNIT_EQUAL(trpi_singleton_wake_ms(core), 8001);
    happens(8000, TRPI_SINGLETON_TICK, 0);
    UNIT_EQUAL(seen.killed, 0);
    happens(8001, TRPI_SINGLETON_TICK, 0);
    UNIT_EQUAL(seen.killed, 1);
    happens(9000, TRPI_SINGLETON_STOPPED, 0);
    IN("End");
    trpi_singleton_free(core);
}

/* The instance stops when its own node is downed, in each state that has one. */
static void
it_is_stopped_at_once_when_the_membership_of_its_node_ends(void)
{
    begin(0, &settings);
    view(0, "uu");
    happens(1, TRPI_SINGLETON_OUT, 0);
    DID("spawn kill ");
    happens(2, TRPI_SINGLETON_STOPPED, 0);
    DID("over ");
    trpi_singleton_free(core);
    begin(0, &settings);
    view(0, "uu");
    view(0, "eu");
    happens(1, TRPI_SINGLETON_OUT, 0);
    DID("spawn offer1 kill ");
    trpi_singleton_free(core);
    begin(0, &settings);
    view(0, "uu");
    frame(1, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 3, NULL);
    happens(1, TRPI_SINGLETON_OUT, 0);
    DID("spawn progress1 stop kill ");
    trpi_singleton_free(core);
    begin(1, &settings);
    view(0, "uu");
    happens(1, TRPI_SINGLETON_OUT, 0);
    DID("over ");
    IN("End");
    trpi_singleton_free(core);
}

/* ClusterSingletonManagerPreparingForShutdownSpec */
static void
none_is_started_while_the_whole_cluster_ends(void)
{
    begin(1, &settings);
    view(0, "uu");
    happens(1, TRPI_SINGLETON_CLUSTER_ENDS, 1);
    view(2, "eu");
    frame(3, 0, TRPI_SINGLETON_HAND_OVER_DONE, seen.round, NULL);
    DID("me0 taken0 ");
    IN("BecomingOldest");
    view(4, "-e");
    DID("over ");
    trpi_singleton_free(core);
    begin(1, &settings); /* and when that was given up it is */
    view(0, "uu");
    happens(1, TRPI_SINGLETON_CLUSTER_ENDS, 1);
    view(2, "-u");
    DID("");
    happens(3, TRPI_SINGLETON_CLUSTER_ENDS, 0);
    DID("spawn ");
    trpi_singleton_free(core);
    begin(0, &settings); /* the host hands over to nobody */
    view(0, "uu");
    happens(1, TRPI_SINGLETON_CLUSTER_ENDS, 1);
    view(2, "eu");
    DID("spawn stop ");
    trpi_singleton_free(core);
}

/* The scenario of the lease spec */
static void
with_a_lease_it_runs_only_while_the_lease_is_held(void)
{
    trpi_singleton_settings with = settings;
    with.lease = true;
    begin(0, &with);
    view(0, "uu");
    DID("lease ");
    IN("BecomingOldest");
    happens(10, TRPI_SINGLETON_LEASE_REFUSED, 0);
    UNIT_EQUAL(trpi_singleton_wake_ms(core), 5010);
    happens(5010, TRPI_SINGLETON_TICK, 0);
    DID("lease ");
    happens(5020, TRPI_SINGLETON_LEASE_GRANTED, 0);
    DID("spawn ");
    happens(10020, TRPI_SINGLETON_TICK, 0);
    DID("lease "); /* still ours? */
    happens(10030, TRPI_SINGLETON_LEASE_REFUSED, 0);
    DID("kill ");
    happens(10031, TRPI_SINGLETON_STOPPED, 0);
    IN("BecomingOldest");
    happens(15030, TRPI_SINGLETON_TICK, 0);
    happens(15031, TRPI_SINGLETON_LEASE_GRANTED, 0);
    DID("lease spawn ");
    view(15040, "eu");
    frame(15041, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 1, NULL);
    happens(15042, TRPI_SINGLETON_STOPPED, 0);
    DID("offer1 progress1 stop unlease done1 ");
    trpi_singleton_free(core);
}

static void
it_is_started_again_when_it_ends_by_itself(void)
{
    begin(0, &settings);
    view(0, "u");
    happens(100, TRPI_SINGLETON_STOPPED, 0);
    DID("spawn ");
    UNIT_EQUAL(trpi_singleton_wake_ms(core), 100 + RETRY_MS);
    happens(100 + RETRY_MS, TRPI_SINGLETON_TICK, 0);
    DID("spawn ");
    trpi_singleton_free(core);
}

/* Two clusters became one: the younger host gives way, and stays a candidate. */
static void
a_host_that_is_not_the_oldest_any_more_gives_way_to_an_older_member(void)
{
    begin(1, &settings);
    view(0, "-u");
    DID("spawn ");
    view(1, "uu");
    IN("WasOldest");
    DID("offer0 ");
    frame(2, 0, TRPI_SINGLETON_HAND_OVER_TO_ME, 5, NULL);
    happens(3, TRPI_SINGLETON_STOPPED, 0);
    DID("progress0 stop done0 ");
    IN("Younger");
    view(4, "eu");
    DID("me0 ");
    IN("BecomingOldest");
    trpi_singleton_free(core);
    begin(0, &settings); /* the other one, which runs it already */
    view(0, "u");
    view(1, "uu");
    frame(2, 1, TRPI_SINGLETON_TAKE_OVER_FROM_ME, 0, NULL);
    DID("spawn me1 ");
    trpi_singleton_free(core);
}

/* singleton-O5: of three, the second leaves while it asks the first. */
static void
a_member_that_is_asked_while_it_asks_passes_the_data_on(void)
{
    begin(1, &settings);
    view(0, "uuu");
    view(1, "euu");
    DID("me0 ");
    view(2, "eeu");
    IN("BecomingOldest");
    frame(3, 2, TRPI_SINGLETON_HAND_OVER_TO_ME, 9, NULL);
    DID("progress2 ");
    frame(4, 0, TRPI_SINGLETON_HAND_OVER_DONE, 1, "state");
    DID("taken0 done2+ ");
    IN("End");
    trpi_singleton_free(core);
    begin(0, &settings); /* the first: the data is for the second */
    view(0, "uuu");
    view(1, "euu");
    frame(2, 2, TRPI_SINGLETON_HAND_OVER_TO_ME, 4, NULL);
    frame(3, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 1, NULL);
    gives(4, "state");
    happens(5, TRPI_SINGLETON_STOPPED, 0);
    DID("spawn offer1 progress2 stop progress1 done1+ done2 ");
    trpi_singleton_free(core);
}

/* singleton-O3: "host in a peer's view and not yet in its own" */
static void
a_node_that_was_asked_by_a_younger_member_ends_and_comes_back_only_after_a_while(void)
{
    begin(0, &settings);
    view(0, "uu");
    frame(1, 1, TRPI_SINGLETON_HAND_OVER_TO_ME, 1, NULL);
    happens(2, TRPI_SINGLETON_STOPPED, 0);
    frame(3, 1, TRPI_SINGLETON_TAKEN, 1, NULL);
    IN("End");
    UNIT_EQUAL(seen.over, 0); /* it is Up: it does not leave */
    UNIT_EQUAL(trpi_singleton_wake_ms(core), 2 + 20 * RETRY_MS);
    seen.text[0] = '\0';
    happens(2 + 20 * RETRY_MS, TRPI_SINGLETON_TICK, 0);
    IN("BecomingOldest");
    DID("me1 ");
    trpi_singleton_free(core);
}

static void
lack_of_memory_leaves_the_core_as_it_was(void)
{
    begin(1, &settings);
    trpi_aged members[] = { member(0, TRP_MEMBER_UP), member(1, TRP_MEMBER_UP) };
    trpi_singleton_event event = {
        .kind = TRPI_SINGLETON_VIEW, .members = members, .count = 2, .takeover_ms = takeover
    };
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_singleton_step(core, 0, &event), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    IN("Start");
    UNIT_EQUAL(trpi_singleton_step(core, 0, &event), TRP_OK);
    IN("Younger");
    trpi_singleton_free(core);
}

UNIT_BEGIN("singleton_engine")
UNIT(the_first_member_starts_it_at_once_and_a_younger_one_does_not)
UNIT(a_leaving_host_hands_over_with_its_data)
UNIT(a_crashed_host_is_succeeded_when_it_is_removed_and_its_time_is_over)
UNIT(each_of_several_older_members_is_waited_for)
UNIT(an_older_member_that_never_answers_restarts_the_manager_with_its_name)
UNIT(a_restarted_manager_still_waits_for_the_time_of_a_removed_member)
UNIT(a_leaving_host_whose_successor_is_silent_or_lacks_it_stops_it_and_goes)
UNIT(a_singleton_that_does_not_stop_is_stopped_by_force)
UNIT(it_is_stopped_at_once_when_the_membership_of_its_node_ends)
UNIT(none_is_started_while_the_whole_cluster_ends)
UNIT(with_a_lease_it_runs_only_while_the_lease_is_held)
UNIT(it_is_started_again_when_it_ends_by_itself)
UNIT(a_host_that_is_not_the_oldest_any_more_gives_way_to_an_older_member)
UNIT(a_member_that_is_asked_while_it_asks_passes_the_data_on)
UNIT(a_node_that_was_asked_by_a_younger_member_ends_and_comes_back_only_after_a_while)
UNIT(lack_of_memory_leaves_the_core_as_it_was)
UNIT_END
