/* why_test.c - `troupe why` and status: the reasons that a view gives, and what would help. */
#include "cluster/node/control_why.h"
#include "tests/unit/unit.h"

static trpi_view_member rows[3];
static const char *observers[2] = { "troupe.tcp://demo@a:1", "troupe.tcp://demo@c:3" };

/* Three members that all agree. */
static trpi_view
view_make(void)
{
    trpi_view view;
    memset(&view, 0, sizeof view);
    memset(rows, 0, sizeof rows);
    for (int i = 0; i < 3; i++) {
        snprintf(rows[i].m.address, sizeof rows[i].m.address, "troupe.tcp://demo@%c:%d", 'a' + i,
                 i + 1);
        rows[i].m.status = TRP_MEMBER_UP;
        rows[i].m.reachable = 1;
        rows[i].seen = true;
    }
    view.members = rows;
    view.count = 3;
    view.self = &rows[0];
    view.leader = &rows[0].m;
    view.converged = true;
    view.converged_ms = 60000;
    view.strategy = "keep-majority";
    view.stable_after_ms = 20000;
    view.stats.merged = 7;
    return view;
}

/* Check that status has the same entries as why, and none where why has none. */
static void
status_has_the_reasons_of(const cJSON *why, const trpi_view *view)
{
    cJSON *status = cJSON_CreateObject();
    UNIT_REQUIRE(trpi_why_add_reasons(status, view));
    UNIT_TRUE(cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(status, "reasons")));
    UNIT_TRUE(cJSON_Compare(cJSON_GetObjectItemCaseSensitive(status, "reasons"),
                            cJSON_GetObjectItemCaseSensitive(why, "reasons"), true));
    cJSON_Delete(status);
}

/* Reason `index` as "kind node since observers"; its help must hold `help`. "" there is none. */
static void
reason_is(const trpi_view *view, int index, const char *reason, const char *help)
{
    char is[256] = "";
    cJSON *reply = cJSON_CreateObject();
    UNIT_REQUIRE(trpi_why_fill(reply, rows[0].m.address, view));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "reasons");
    const cJSON *row = cJSON_GetArrayItem(list, index);
    if (row != NULL) {
        const char *node = trpi_json_get_text(row, "node");
        const cJSON *by = cJSON_GetObjectItemCaseSensitive(row, "observedBy");
        const cJSON *since = cJSON_GetObjectItemCaseSensitive(row, "sinceMs");
        snprintf(is, sizeof is, "%s %s %.0f %d", trpi_json_get_text(row, "kind"),
                 node != NULL ? node + strlen("troupe.tcp://demo@") : "-", since->valuedouble,
                 cJSON_GetArraySize(by));
        const char *text = trpi_json_get_text(row, "help");
        if (!UNIT_TRUE(strstr(text, help) != NULL)) {
            printf("  '%s' in '%s'\n", help, text);
        }
    }
    UNIT_TEXT(is, reason);
    status_has_the_reasons_of(reply, view);
    cJSON_Delete(reply);
}

/* A joining member is named if convergence waits for it; another one is not. */
static void
a_joiner_that_is_waited_for_is_a_reason(void)
{
    trpi_view view = view_make();
    view.converged = false;
    rows[2].m.status = TRP_MEMBER_JOINING;
    rows[2].seen = false;
    reason_is(&view, 0, "", "");
    rows[2].awaited = true;
    reason_is(&view, 0, "not-seen c:3 60000 0", "no gossip arrives by which it has seen this view");
}

static void
reason_lacks(const trpi_view *view, int index, const char *words)
{
    cJSON *reply = cJSON_CreateObject();
    UNIT_REQUIRE(trpi_why_add_reasons(reply, view));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "reasons");
    const char *help = trpi_json_get_text(cJSON_GetArrayItem(list, index), "help");
    UNIT_TRUE(help != NULL && strstr(help, words) == NULL);
    cJSON_Delete(reply);
}

/* MEMB-32 */
static void
a_cluster_that_agrees_has_no_reason(void)
{
    trpi_view view = view_make();
    reason_is(&view, 0, "", "");
}

/* the member, its observers, since when, what decides */
static void
an_unreachable_member_is_named_with_its_observers(void)
{
    trpi_view view = view_make();
    view.converged = false;
    rows[1].m.reachable = 0;
    rows[1].unreachable_ms = 6120;
    rows[1].observers = observers;
    rows[1].observers_count = 2;
    reason_is(&view, 0, "unreachable b:2 6120 2",
              "keep-majority decides when nothing has changed for 20 s");
    reason_is(&view, 0, "unreachable b:2 6120 2", "troupe down troupe.tcp://demo@b:2");
    reason_is(&view, 1, "", "");
    rows[1].observers_count = 1; /* then the fault may be the link */
    view.strategy = "manual";
    reason_is(&view, 0, "unreachable b:2 6120 1", "the link between it and troupe.tcp://demo@a:1");
    reason_is(&view, 0, "unreachable b:2 6120 1", "no strategy decides");
    rows[1].m.status = TRP_MEMBER_LEAVING; /* died while it left */
    reason_is(&view, 0, "unreachable b:2 6120 1", "troupe down troupe.tcp://demo@b:2");
    rows[1].m.status = TRP_MEMBER_DOWN; /* does not block any more */
    reason_is(&view, 0, "", "");
}

/* A port that answers is no matter of reach: the advice goes by the reason. */
static void
a_member_that_cannot_be_dialled_is_advised_on_by_the_reason(void)
{
    static const struct {
        const char *link, *help;
    } cases[] = {
        { "lane ordinary-1 cannot be dialled: Connection refused", "advertises: troupe reach" },
        { "no association with it: handshake-timeout: no answer", "advertises: troupe reach" },
        { "lane ordinary-1 cannot be dialled: no answer for 9 s", "advertises: troupe reach" },
        { "no association with it: not-yet-valid: certificate is not yet valid",
          "not yet valid; its port answers, and one of the two refuses what the other shows: "
          "troupe check certs and troupe check clock here and there" },
        { "lane ordinary-1 cannot be dialled: refused-by-peer: bad certificate",
          "troupe check clock" },
        { "no association with it: cookie: none", "troupe check certs" },
    };
    trpi_view view = view_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(rows[1].link, sizeof rows[1].link, "%s", cases[i].link);
        reason_is(&view, 0, "undialled b:2 0 0", cases[i].help);
        reason_is(&view, 1, "", "");
    }
}

/* A problem that agreement does not heal comes first, also in a view that has converged. */
static void
who_has_removed_this_node_and_that_it_stood_still_is_told(void)
{
    trpi_view view = view_make();
    rows[1].remover = true;
    view.removed_ms = 7000;
    reason_is(&view, 0, "two-clusters b:2 7000 0", "it has removed this node from its cluster");
    reason_is(&view, 0, "two-clusters b:2 7000 0", "go on by keep-majority, this node ends with");
    reason_is(&view, 1, "", "");
    view.waking = true;
    view.converged = false;
    rows[1].m.reachable = 0;
    reason_is(&view, 0, "stood-still - 0 0", "checks which members are reachable");
    reason_is(&view, 1, "two-clusters b:2 7000 0", "stop the nodes of the other one");
    reason_is(&view, 2, "unreachable b:2 0 0", "stable-after");
}

static trpi_peer_info
peer_make(const char *host, uint16_t port, const char *state, const char *reason)
{
    trpi_peer_info peer;
    memset(&peer, 0, sizeof peer);
    snprintf(peer.id.address.protocol, sizeof peer.id.address.protocol, "troupe.tcp");
    snprintf(peer.id.address.system, sizeof peer.id.address.system, "demo");
    snprintf(peer.id.address.host, sizeof peer.id.address.host, "%s", host);
    peer.id.address.port = port;
    peer.state = state;
    snprintf(peer.reason, sizeof peer.reason, "%s", reason);
    return peer;
}

/* All that were tried, of those that the view still takes for reachable */
static void
a_node_that_reaches_nobody_is_told_before_its_detector_speaks(void)
{
    static const struct {
        const char *b, *c;
        const char *text; /* NULL: no problem */
        bool again;       /* what is idle or shakes hands has failed before */
    } cases[] = {
        { "active", "active", NULL, false },
        { "active", "gated", NULL, false },
        { "idle", "idle", NULL, false },        /* none was tried */
        { "handshaking", "idle", NULL, false }, /* for the first time */
        { "gated", "idle", "reached: troupe.tcp://demo@b:2: connection refused (", false },
        { "gated", "gated", "reached: troupe.tcp://demo@b:2 and 1 more: connection refused (",
          false },
        { "idle", "handshaking", "reached: troupe.tcp://demo@b:2 and 1 more: connection refused (",
          true },
        { "idle", "active", NULL, true },
        { "quarantined", "active", NULL, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trpi_view view = view_make();
        const char *refused = "connection refused";
        trpi_peer_info peers[] = {
            peer_make("b", 2, cases[i].b,
                      cases[i].again || strcmp(cases[i].b, "gated") == 0 ? refused : ""),
            peer_make("c", 3, cases[i].c,
                      cases[i].again || strcmp(cases[i].c, "gated") == 0 ? refused : ""),
            peer_make("x", 9, "active", ""), /* no member */
            peer_make("a", 1, "active", ""), /* this node, hardly */
        };
        char text[256] = "";
        UNIT_EQUAL(trpi_peers_problem(&view, peers, 4, text, sizeof text), cases[i].text != NULL);
        UNIT_TRUE(strstr(text, cases[i].text != NULL ? cases[i].text : "") != NULL);
        rows[1].m.reachable = rows[2].m.reachable = 0; /* then each is a problem of its own */
        UNIT_FALSE(trpi_peers_problem(&view, peers, 4, text, sizeof text));
    }
}

static void
with_a_time_out_the_time_that_is_left_is_told(void)
{
    trpi_view view = view_make();
    view.strategy = "auto-down-after";
    view.auto_down_after_ms = 10000;
    view.converged = false;
    rows[1].m.reachable = 0;
    rows[1].unreachable_ms = 6120;
    reason_is(&view, 0, "unreachable b:2 6120 0", "the leader marks it Down in 4 s; if it lives");
    rows[1].unreachable_ms = 10000;
    reason_is(&view, 0, "unreachable b:2 10000 0", "the leader marks it Down now; if it lives");
}

/* Which side goes on decides what may be advised. */
static void
the_outlook_decides_what_is_advised(void)
{
    trpi_view view = view_make();
    view.converged = false;
    view.foresees = true;
    rows[1].m.reachable = 0;
    rows[1].unreachable_ms = 6120;
    rows[1].observers = observers;
    rows[1].observers_count = 1;
    view.forecast = (trpi_downing_forecast){ .kind = TRPI_FORECAST_GOES_ON,
                                             .in_ms = 13001,
                                             .may_down = true,
                                             .reason = "majority: 2 of 3 members on this side" };
    reason_is(&view, 0, "unreachable b:2 6120 1",
              "keep-majority goes on here and marks it Down in 14 s, if nothing changes (majority: "
              "2 of 3 members on this side); if it lives, look at the link between it and "
              "troupe.tcp://demo@a:1; if it is dead: troupe down troupe.tcp://demo@b:2");
    snprintf(rows[1].cause, sizeof rows[1].cause, "connection refused");
    reason_is(&view, 0, "unreachable b:2 6120 1", "demo@a:1 (from here: connection refused); if");
    view.forecast = (trpi_downing_forecast){ .kind = TRPI_FORECAST_STOPS,
                                             .in_ms = 0,
                                             .reason = "minority: 1 of 3 members on this side",
                                             .who = "a:1" };
    reason_is(
        &view, 0, "unreachable b:2 6120 1",
        "this side does not go on: keep-majority stops a:1 now, if nothing changes (minority: "
        "1 of 3 members on this side)");
    reason_is(&view, 0, "unreachable b:2 6120 1", "do not mark it Down here while it may live");
    reason_lacks(&view, 0, "troupe down");
    view.strategy = "manual";
    view.forecast.kind = TRPI_FORECAST_NONE;
    reason_is(&view, 0, "unreachable b:2 6120 1", "no strategy decides");
    reason_lacks(&view, 0, "troupe down");
    view.strategy = "auto-down-after"; /* it downs on each side; no operator is needed */
    view.auto_down_after_ms = 10000;
    view.forecast.kind = TRPI_FORECAST_GOES_ON;
    reason_is(&view, 0, "unreachable b:2 6120 1", "the leader marks it Down in 4 s");
    reason_lacks(&view, 0, "troupe down");
    view.strategy = "lease";
    view.forecast.kind = TRPI_FORECAST_LEASE;
    view.forecast.in_ms = 500;
    reason_is(&view, 0, "unreachable b:2 6120 1",
              "acquires the lease survives; this side requests it in 1 s");
    reason_lacks(&view, 0, "troupe down");
}

static void
equal_findings_are_one_with_a_count(void)
{
    trpi_view view = view_make();
    cJSON *reply = cJSON_CreateObject();
    view.converged = false;
    for (int i = 1; i < 3; i++) {
        rows[i].m.reachable = 0;
        rows[i].unreachable_ms = (uint64_t)i * 1000;
        rows[i].observers = &observers[i - 1];
        rows[i].observers_count = 1;
        rows[i].seen = false;
    }
    rows[1].observers = rows[2].observers = observers;
    rows[1].observers_count = 2;
    rows[2].observers_count = 2;
    reason_is(&view, 0, "unreachable b:2 2000 2", "if they are dead: troupe down --unreachable");
    reason_is(&view, 1, "not-seen b:2 60000 0", "it is unreachable: ");
    reason_is(&view, 2, "", "");
    UNIT_REQUIRE(trpi_why_add_reasons(reply, &view));
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(reply, "reasons"), 0);
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(row, "nodes");
    UNIT_EQUAL((int)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(row, "count")), 2);
    UNIT_EQUAL(cJSON_GetArraySize(nodes), 2);
    UNIT_TEXT(cJSON_GetStringValue(cJSON_GetArrayItem(nodes, 1)), "troupe.tcp://demo@c:3");
    UNIT_TRUE(cJSON_GetObjectItemCaseSensitive(row, "key") == NULL);
    UNIT_TRUE(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(reply, "outlook")));
    rows[2].m.status = TRP_MEMBER_LEAVING; /* not equal any more */
    reason_is(&view, 0, "unreachable b:2 1000 2",
              "if it is dead: troupe down troupe.tcp://demo@b:2");
    cJSON_Delete(reply);
}

static void
a_member_that_has_not_seen_the_view_is_named(void)
{
    trpi_view view = view_make();
    view.converged = false;
    rows[2].seen = false;
    reason_is(&view, 0, "not-seen c:3 60000 0", "troupe peers");
    rows[2].m.reachable = 0; /* dead: no member says that it answers */
    reason_is(&view, 0, "unreachable c:3 0 0", "troupe down");
    rows[2].observers = observers; /* observers, which do not say that it has not seen the view */
    rows[2].observers_count = 2;
    reason_is(&view, 0, "unreachable c:3 0 2", "troupe down");
    reason_is(&view, 1, "not-seen c:3 60000 0", "it is unreachable: ");
    view.converged_ms = 900; /* nothing is on its way to it */
    reason_is(&view, 1, "not-seen c:3 900 0", "it is unreachable: ");
    rows[2].observers_count = 0;
    rows[2].m.reachable = 1;
    view.converged_ms = 900;
    reason_is(&view, 0, "not-seen c:3 900 0", "on its way");
    rows[2].m.status = TRP_MEMBER_JOINING; /* need not have seen it */
    reason_is(&view, 0, "", "");
}

static void
who_waits_though_all_agree_is_told_what_for(void)
{
    trpi_view view = view_make();
    rows[1].m.status = TRP_MEMBER_JOINING;
    rows[1].age_ms = 4000;
    rows[2].m.status = TRP_MEMBER_EXITING;
    reason_is(&view, 0, "exiting c:3 60000 0", "is removed when it reports that");
    snprintf(view.lacking, sizeof view.lacking, "2 of 3 members are there");
    reason_is(&view, 0, "too-few b:2 4000 0", "2 of 3 members are there: start more nodes");
    reason_is(&view, 1, "exiting c:3 60000 0", "");
}

static void
a_node_that_has_not_joined_says_whom_it_asks(void)
{
    trpi_view view = view_make();
    view.count = 0;
    view.self = NULL;
    view.leader = NULL;
    view.converged = false;
    reason_is(&view, 0, "not-joined - 0 0", "troupe join ADDRESS");
    snprintf(view.seeking, sizeof view.seeking, "troupe.tcp://demo@seed:1");
    reason_is(&view, 0, "not-joined - 0 0", "asks troupe.tcp://demo@seed:1");
}

UNIT_BEGIN("why")
UNIT(a_joiner_that_is_waited_for_is_a_reason)
UNIT(a_cluster_that_agrees_has_no_reason)
UNIT(an_unreachable_member_is_named_with_its_observers)
UNIT(a_member_that_cannot_be_dialled_is_advised_on_by_the_reason)
UNIT(who_has_removed_this_node_and_that_it_stood_still_is_told)
UNIT(a_node_that_reaches_nobody_is_told_before_its_detector_speaks)
UNIT(with_a_time_out_the_time_that_is_left_is_told)
UNIT(the_outlook_decides_what_is_advised)
UNIT(equal_findings_are_one_with_a_count)
UNIT(a_member_that_has_not_seen_the_view_is_named)
UNIT(who_waits_though_all_agree_is_told_what_for)
UNIT(a_node_that_has_not_joined_says_whom_it_asks)
UNIT_END
