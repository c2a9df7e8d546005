/* control_member_test.c - members by the names that people write, leader and oldest of a view. */
#include "cluster/node/control_member.h"
#include "tests/unit/unit.h"

static trpi_view_member rows[4];

static trpi_view
view_make(void)
{
    static const struct {
        const char *address, *roles;
        uint64_t uid;
        uint32_t status, up_number;
        int reachable, self;
    } from[] = {
        { "troupe.tcp://demo@10.0.0.1:2552", "backend,seed", 0x4f1c93d2a0b7e655u, TRP_MEMBER_UP, 2,
          1, 1 },
        { "troupe.tcp://demo@10.0.0.2:2552", "backend", 17, TRP_MEMBER_UP, 1, 0, 0 },
        { "troupe.tcp://demo@10.0.0.2:2553", "frontend", 1234567890123456, TRP_MEMBER_DOWN, 3, 1,
          0 },
        { "troupe.tcp://demo@10.0.0.2:2553", "frontend", 19, TRP_MEMBER_JOINING, 0, 1, 0 },
    };
    trpi_view view;
    memset(&view, 0, sizeof view);
    memset(rows, 0, sizeof rows);
    for (size_t i = 0; i < 4; i++) {
        snprintf(rows[i].m.address, sizeof rows[i].m.address, "%s", from[i].address);
        snprintf(rows[i].m.roles, sizeof rows[i].m.roles, "%s", from[i].roles);
        rows[i].m.uid = from[i].uid;
        rows[i].m.status = from[i].status;
        rows[i].m.up_number = from[i].up_number;
        rows[i].m.reachable = (uint8_t)from[i].reachable;
        rows[i].m.self = (uint8_t)from[i].self;
    }
    view.members = rows;
    view.count = 4;
    view.self = &rows[0];
    return view;
}

static void
finds(const char *name, uint64_t uid)
{
    trpi_view view = view_make();
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal = { 0, "", "" };
    UNIT_EQUAL(trpi_view_find(&view, name, &found, &refusal), TRP_OK);
    UNIT_TEXT(refusal.error, "");
    UNIT_TRUE(found && found->m.uid == uid);
}

static void
refuses(const char *name, int exit_code, const char *error)
{
    trpi_view view = view_make();
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal = { 0, "", "" };
    UNIT_TRUE(trpi_view_find(&view, name, &found, &refusal) != TRP_OK);
    UNIT_EQUAL(refusal.exit, exit_code);
    UNIT_TEXT(refusal.error, error);
}

static void
member_is_found_by_every_kind_of_name(void)
{
    finds("troupe.tcp://demo@10.0.0.1:2552", 0x4f1c93d2a0b7e655u);
    finds("demo@10.0.0.2:2552", 17);
    finds("10.0.0.2:2552", 17);
    finds("10.0.0.1", 0x4f1c93d2a0b7e655u);
    finds("17", 17);
    finds("5700593761193027157", 0x4f1c93d2a0b7e655u);
    finds("4f1c93d2a0b7e655", 0x4f1c93d2a0b7e655u);
    finds("10.0.0.2:2553", 19);                  /* the new incarnation, not the Down one */
    finds("1234567890123456", 1234567890123456); /* sixteen digits, and not meant as hex */
    finds("000462d53c8abac0", 1234567890123456);
}

static void
strangers_and_ambiguous_names_are_refused(void)
{
    refuses("10.0.0.9", 68, "no such member 10.0.0.9");
    refuses("other@10.0.0.1:2552", 68, "no such member other@10.0.0.1:2552");
    refuses("10.0.0.2", 64,
            "'10.0.0.2' fits more than one member: troupe.tcp://demo@10.0.0.2:2552, "
            "troupe.tcp://demo@10.0.0.2:2553, troupe.tcp://demo@10.0.0.2:2553");
    refuses("10.0.0.1:port", 64,
            "'10.0.0.1:port' is not the name of a member: write an address, host:port, or a uid");
    refuses("@10.0.0.1:2552", 64,
            "'@10.0.0.1:2552' is not the name of a member: write an address, host:port, or a uid");
    refuses("", 64, "'' is not the name of a member: write an address, host:port, or a uid");
}

/* CLI-09 */
static void
leader_and_oldest_are_chosen_among_those_with_the_role(void)
{
    trpi_view view = view_make();
    UNIT_EQUAL(trpi_view_oldest(&view, NULL)->uid, 17);
    UNIT_EQUAL(trpi_view_oldest(&view, "seed")->uid, 0x4f1c93d2a0b7e655u);
    UNIT_TRUE(trpi_view_oldest(&view, "frontend") == NULL);
    UNIT_EQUAL(trpi_view_leader(&view, "backend")->uid, 0x4f1c93d2a0b7e655u);
    UNIT_EQUAL(trpi_view_leader(&view, "frontend")->uid, 19);
    UNIT_TRUE(trpi_view_leader(&view, "none") == NULL);
}

static char visited[64];

static bool
visit(void *arg, const char *role)
{
    size_t used = strlen(visited);
    snprintf(visited + used, sizeof visited - used, "%s ", role);
    return arg == NULL || strcmp(role, arg) != 0;
}

static void
every_role_is_visited_once_till_somebody_has_enough(void)
{
    static char last[] = "seed";
    trpi_view view = view_make();
    visited[0] = '\0';
    UNIT_TRUE(trpi_view_each_role(&view, visit, NULL));
    UNIT_TEXT(visited, "backend seed frontend ");
    visited[0] = '\0';
    UNIT_FALSE(trpi_view_each_role(&view, visit, last));
    UNIT_TEXT(visited, "backend seed ");
}

UNIT_BEGIN("control_member")
UNIT(member_is_found_by_every_kind_of_name)
UNIT(strangers_and_ambiguous_names_are_refused)
UNIT(every_role_is_visited_once_till_somebody_has_enough)
UNIT(leader_and_oldest_are_chosen_among_those_with_the_role)
UNIT_END
