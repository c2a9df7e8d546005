/* persistent_random_test.c - a persistent actor under random faults: rejections, failures, a
 * journal that stands still, stops in any moment, other writers. One thread, one seed.
 *
 *     TROUPE_SEED=7 TROUPE_SEEDS=1 persistence_tests persistent_random_test
 *
 * Laws, whatever happened:
 *   1  What was confirmed is stored, and what was rejected is not.
 *   2  Events are stored in the order of their commands, none twice, none that was not asked for.
 *   3  A group is stored whole or not at all.
 *   4  The state after a recovery is the sum of the stored events.
 */
#include "tests/unit/draw.h"
#include "tests/unit/persistence/account.h"

enum { COMMANDS_MAX = 1024, STEPS = 60, SEEDS = 60 };

typedef struct play {
    book b;
    uint64_t random;
    trp_ref ref;
    trp_persistent what;
    int64_t next;                   /* amount of the next event */
    int64_t group_of[COMMANDS_MAX]; /* first amount of the group of each; 0: it is alone */
    uint8_t confirmed[COMMANDS_MAX], rejected[COMMANDS_MAX], stored[COMMANDS_MAX];
    int64_t last_stored, sum;
    bool is_held;
} play;

static uint32_t
draw(play *p, uint32_t below)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return (uint32_t)(p->random >> 32) % below;
}

/* Take the notes of the account: "c5" is confirmed, "rejected5" rejected. */
static void
notes_take(play *p)
{
    const char *said = account_said();
    long long amount;
    int bytes;

    for (; *said != '\0'; said += strcspn(said, " "), said += *said == ' ') {
        if (sscanf(said, "c%lld%n", &amount, &bytes) == 1 && amount > 0) {
            p->confirmed[amount] = 1;
        } else if (sscanf(said, "rejected%lld", &amount) == 1) {
            p->rejected[amount] = 1;
        }
    }
}

static void
run(play *p)
{
    book_run(&p->b, 0);
    notes_take(p);
}

static void
restart(play *p)
{
    UNIT_EQUAL(trp_system_graceful_stop(p->b.system, p->ref, 1000), TRP_OK);
    run(p);
    p->ref = account_spawn(&p->b, &p->what, "a");
}

static void
add(play *p)
{
    static const uint32_t hows[] = { ACCOUNT_SYNC, ACCOUNT_ALL, ACCOUNT_ASYNC, ACCOUNT_FAILS };
    uint32_t how = hows[draw(p, 4)], count = 1 + draw(p, 3);

    if (p->next + count >= COMMANDS_MAX) {
        return;
    }
    account_tell_add(&p->b, p->ref, p->next, count, how);
    for (uint32_t i = 0; how == ACCOUNT_ALL && i < count; i++) {
        p->group_of[p->next + i] = p->next;
    }
    p->next += count;
}

static void
step(play *p)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    switch (draw(p, 16)) {
    case 0:
    case 1:
        trp_journal_memory_hold(p->b.memory, p->is_held = !p->is_held);
        break;
    case 2:
        trp_journal_memory_fail(p->b.memory, TRP_JOURNAL_APPEND, draw(p, 3), 1 + draw(p, 3),
                                TRP_JOURNAL_REFUSED, TRP_EAGAIN);
        break;
    case 3:
        trp_journal_memory_fail(p->b.memory, draw(p, 2) ? TRP_JOURNAL_APPEND : TRP_JOURNAL_EVENTS,
                                draw(p, 3), 1, TRP_JOURNAL_FAILED, TRP_EIO);
        break;
    case 4:
        restart(p);
        break;
    case 5:
        if (!p->is_held) { /* another writer */
            op.scope = "/user/a";
            op.writer = "elsewhere";
            (void)trp_journal_call(p->b.journal, &op);
        }
        break;
    case 6:
        account_tell_keep(&p->b, p->ref, ACCOUNT_SNAPSHOT, 0, 0);
        break;
    case 7:
        run(p);
        restart(p);
        break;
    default:
        add(p);
        if (draw(p, 2)) {
            run(p);
        }
        break;
    }
    notes_take(p);
}

/* An event as it is stored. */
static trp_err
stored_take(trp_journal_op *op, const trp_journal_event *item)
{
    play *p = op->user;
    trp_msg *msg = NULL;

    UNIT_EQUAL(trpi_stored_read(p->b.system, item->data, item->bytes, &msg), TRP_OK);
    int64_t amount = account_added_as(msg)->amount;
    UNIT_TRUE(amount > p->last_stored && amount < p->next); /* law 2 */
    p->last_stored = amount;
    p->stored[amount] = 1;
    p->sum += amount;
    trp_msg_free(msg);
    return TRP_OK;
}

static void
laws_check(play *p)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "/user/a";
    op.from = 1;
    op.max_events = COMMANDS_MAX;
    op.give = stored_take;
    op.user = p;
    book_call(&p->b, &op);
    for (int64_t i = 1; i < p->next; i++) {
        int64_t group = p->group_of[i];

        UNIT_TRUE(!p->confirmed[i] || p->stored[i]);                 /* law 1 */
        UNIT_TRUE(!p->rejected[group ? group : i] || !p->stored[i]); /* law 1 */
        UNIT_TRUE(group == 0 || p->stored[group] == p->stored[i]);   /* law 3 */
    }
    UNIT_EQUAL(account_total_of(&p->b, p->ref), p->sum); /* law 4 */
}

static void
play_seed(uint64_t seed)
{
    static play p;

    memset(&p, 0, sizeof p);
    p.random = seed * 0x9e3779b97f4a7c15u + 1;
    p.next = 1;
    p.what = account_make();
    p.what.snapshot_every = draw(&p, 2) ? 5 : 0;
    p.what.snapshots_keep = 2;
    book_open(&p.b);
    p.ref = account_spawn(&p.b, &p.what, "a");
    for (int i = 0; i < STEPS; i++) {
        step(&p);
    }
    trp_journal_memory_hold(p.b.memory, 0);
    run(&p);
    trp_journal_memory_fail(p.b.memory, TRP_JOURNAL_APPEND, 0, 0, TRP_JOURNAL_REFUSED, TRP_OK);
    restart(&p);
    run(&p);
    laws_check(&p);
    book_close(&p.b);
}

static void
the_laws_hold_under_random_faults(void)
{
    unit_seeds_play(play_seed, SEEDS, "persistence_tests", "persistent_random_test");
}

UNIT_BEGIN("persistent_random")
UNIT(the_laws_hold_under_random_faults)
UNIT_END
