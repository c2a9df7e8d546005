/* doctor_causes_test.c - findings of real nodes about their links, their protection and their
 * actors: each cause is made, named, mended and gone. The others: doctor_node_test.c. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <troupe/persistence.h>

#include "base/alloc.h"
#include "cluster/node/cert.h"
#include "tests/unit/node/doctor_ask.h"

#define DAY_MS INT64_C(86400000)

static char directory[32];

static int64_t
wall_ms(void)
{
    return (int64_t)time(NULL) * 1000;
}

/* Make the directory of these tests, once. */
static const char *
directory_of(void)
{
    if (directory[0] == '\0') {
        snprintf(directory, sizeof directory, "/tmp/troupe-causes-XXXXXX");
        UNIT_REQUIRE(mkdtemp(directory) != NULL);
    }
    return directory;
}

/* A node with a control socket and these settings, which end with NULL. */
static trp_node *
node_with(const char *name, const char *const *more)
{
    char path[128];
    const char *extra[13] = { "cluster.control-socket=on", path };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    snprintf(path, sizeof path, "control.socket=/tmp/troupe-causes-%s-%d.sock", name,
             (int)getpid());
    for (size_t i = 2; *more != NULL; i++) {
        extra[i] = *more++;
    }
    UNIT_EQUAL(node_open(extra, &node, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(node != NULL);
    return node;
}

static trp_node *
up_with(const char *name, const char *const *more)
{
    trp_node *node = node_with(name, more);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

static const char *
seed_of(const trp_node *node, char text[512])
{
    snprintf(text, 512, "cluster.seed-nodes=%s", trp_node_address(node));
    return text;
}

/* ---- members and links ----------------------------------------------------------------------- */

static void
a_member_that_waits_for_others_is_named(void)
{
    char seed[512];
    const char *one[] = { "cluster.seed-nodes=self", "cluster.min-nr-of-members=2", NULL };
    trp_node *node = node_with("one", one);
    UNIT_WAIT(says(node, "joining", "warn", "joining members wait"), 60000);
    const char *two[] = { seed_of(node, seed), "cluster.min-nr-of-members=2", NULL };
    trp_node *second = up_with("two", two);
    UNIT_WAIT(says(node, "joining", "ok", ""), 60000);
    trp_node_close(second);
    trp_node_close(node);
}

static void
connections_that_are_refused_are_counted(void)
{
    char seed[512];
    const char *one[] = { "cluster.seed-nodes=self", "remote.require-cookie=on",
                          "remote.secure-cookie=0123456789abcdef0123456789abcdef", NULL };
    trp_node *node = up_with("one", one);
    UNIT_TRUE(says(node, "refusals", "ok", ""));
    const char *other[] = { seed_of(node, seed), "remote.require-cookie=on",
                            "remote.secure-cookie=fedcba9876543210fedcba9876543210", NULL };
    trp_node *stranger = node_with("two", other);
    UNIT_WAIT(says(node, "refusals", "warn", "were refused since the start: cookie"), 60000);
    trp_node_close(stranger);
    trp_node_close(node);
    node = up_with("one", one); /* the count is one since the start */
    UNIT_TRUE(says(node, "refusals", "ok", ""));
    trp_node_close(node);
}

static int
silent_connect(const trp_node *node)
{
    const char *colon = strrchr(trp_node_address(node), ':');
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)atoi(colon + 1)),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void
strangers_that_crowd_the_door_are_named(void)
{
    int fds[6];
    const char *one[] = { "cluster.seed-nodes=self", "remote.pending-handshakes-max=2", NULL };
    trp_node *node = up_with("one", one);
    UNIT_TRUE(says(node, "handshakes", "ok", ""));
    for (size_t i = 0; i < 6; i++) {
        fds[i] = silent_connect(node);
    }
    UNIT_WAIT(says(node, "handshakes", "warn", "connections"), 60000);
    for (size_t i = 0; i < 6; i++) {
        close(fds[i]);
    }
    trp_node_close(node);
    node = up_with("one", one); /* a warning lasts for a minute */
    UNIT_TRUE(says(node, "handshakes", "ok", ""));
    trp_node_close(node);
}

static bool
has_quarantined(const trp_node *node)
{
    cJSON *reply = control_ask(trp_node_control_path(node), "{\"cmd\":\"peers\"}");
    const cJSON *peer;
    bool has = false;
    cJSON_ArrayForEach(peer, cJSON_GetObjectItem(reply, "peers"))
    {
        has = has || strcmp(trpi_json_get_text(peer, "state"), "quarantined") == 0;
    }
    cJSON_Delete(reply);
    return has;
}

static void
a_removed_incarnation_is_named(void)
{
    char seed[512], down[600];
    const char *one[] = { "cluster.seed-nodes=self", "cluster.downing.active-strategy=manual",
                          NULL };
    trp_node *node = up_with("one", one);
    const char *two[] = { seed_of(node, seed), "cluster.downing.active-strategy=manual", NULL };
    trp_node *second = up_with("two", two);
    cJSON_Delete(control_ask(trp_node_control_path(second), "{\"cmd\":\"leave\",\"wait\":false}"));
    closes(second, TRP_NODE_LEFT);
    UNIT_WAIT(has_quarantined(node), 60000);       /* it is, as it comes back as another one only */
    UNIT_TRUE(says(node, "quarantine", "ok", "")); /* but it has left in good order */
    second = up_with("two", two);
    UNIT_WAIT(says(node, "quarantine", "ok", ""), 60000);
    snprintf(down, sizeof down, "{\"cmd\":\"down\",\"member\":\"%s\",\"dead\":true,\"wait\":false}",
             trp_node_address(second));
    cJSON_Delete(control_ask(trp_node_control_path(node), down));
    UNIT_WAIT(says(node, "quarantine", "warn", "is quarantined"), 60000);
    trp_node_close(second);
    trp_node_close(node);
}

/* A rolling restart that is not finished: the second tells another version. */
static const char *
version_next(void)
{
    return "0.99.0";
}

static void
members_of_another_version_are_named(void)
{
    static trpi_doctor_probes probes;
    char seed[512];
    const char *one[] = { "cluster.seed-nodes=self", NULL };
    trp_node *node = up_with("one", one);
    const char *two[] = { seed_of(node, seed), NULL };
    trp_node *second = up_with("two", two);
    probes = trpi_doctor_probes_real;
    probes.version = version_next;
    second->probes = &probes;
    UNIT_WAIT(says(node, "versions", "warn", "runs 0.99.0, this node"), 60000);
    second->probes = &trpi_doctor_probes_real;
    UNIT_WAIT(says(node, "versions", "ok", "on 1 of 1 other members"), 60000);
    trp_node_close(second);
    trp_node_close(node);
}

/* ---- protection ------------------------------------------------------------------------------ */

typedef struct pki {
    char *ca, *ca_key;
} pki;

static void
file_write(const char *name, const char *text, char ret_path[256])
{
    snprintf(ret_path, 256, "%s/%s", directory_of(), name);
    FILE *file = fopen(ret_path, "w");
    UNIT_REQUIRE(file != NULL && fputs(text, file) >= 0);
    UNIT_REQUIRE(fclose(file) == 0 && chmod(ret_path, 0600) == 0);
}

/* Write a certificate that ends in so many days, and the settings of a node that has it. */
static void
certified(const pki *of, const char *name, int64_t days, char settings[4][300])
{
    static const char *const names[] = { "127.0.0.1", "192.0.2.7" };
    char *cert = NULL, *key = NULL, why[256] = "", path[256];
    int64_t now_ms = wall_ms();
    trpi_cert_request request = { .subject = name,
                                  .names = names,
                                  .names_count = 2,
                                  .not_before_ms = now_ms - TRPI_CERT_SKEW_MS,
                                  .not_after_ms = now_ms + days * DAY_MS };
    UNIT_REQUIRE(trpi_cert_make_node(of->ca, of->ca_key, &request, &cert, &key, why, sizeof why) ==
                 TRP_OK);
    snprintf(settings[0], 300, "remote.transport=tls");
    file_write("ca.pem", of->ca, path);
    snprintf(settings[1], 300, "remote.tls.ca=%s", path);
    snprintf(path, sizeof path, "%s.pem", name);
    file_write(path, cert, settings[2] + sizeof "remote.tls.cert=" - 1);
    memcpy(settings[2], "remote.tls.cert=", sizeof "remote.tls.cert=" - 1);
    snprintf(path, sizeof path, "%s.key", name);
    file_write(path, key, settings[3] + sizeof "remote.tls.key=" - 1);
    memcpy(settings[3], "remote.tls.key=", sizeof "remote.tls.key=" - 1);
    trpi_free(cert);
    trpi_free(key);
}

static pki
pki_make(void)
{
    pki of = { NULL, NULL };
    char why[256] = "";
    trpi_cert_request request = { .subject = "causes-ca",
                                  .not_before_ms = wall_ms() - TRPI_CERT_SKEW_MS,
                                  .not_after_ms = wall_ms() + 3650 * DAY_MS };
    UNIT_REQUIRE(trpi_cert_make_authority(&request, &of.ca, &of.ca_key, why, sizeof why) == TRP_OK);
    return of;
}

static int64_t days_ahead;

static int64_t
wall_later(trp_node *node)
{
    return trpi_doctor_probes_real.wall_ms(node) + days_ahead * DAY_MS;
}

static void
certificates_that_end_soon_are_named(void)
{
    static trpi_doctor_probes probes;
    char mine[4][300], short_one[4][300], long_one[4][300], seed[512];
    pki of = pki_make();
    certified(&of, "one", 400, mine);
    certified(&of, "two", 5, short_one);
    certified(&of, "three", 400, long_one);
    const char *one[] = { "cluster.seed-nodes=self", mine[0], mine[1], mine[2], mine[3], NULL };
    trp_node *node = up_with("one", one);
    UNIT_TRUE(says(node, "certificate", "ok", "399 days"));
    const char *two[] = { seed_of(node, seed), short_one[0], short_one[1],
                          short_one[2],        short_one[3], NULL };
    trp_node *second = up_with("two", two);
    UNIT_WAIT(says(node, "member-certificates", "warn", "ends in 4 days"), 60000);
    UNIT_TRUE(says(second, "certificate", "warn", "4 days"));
    cJSON_Delete(control_ask(trp_node_control_path(second), "{\"cmd\":\"leave\",\"wait\":false}"));
    closes(second, TRP_NODE_LEFT);
    const char *three[] = { seed_of(node, seed), long_one[0], long_one[1],
                            long_one[2],         long_one[3], NULL };
    trp_node *third = up_with("three", three);
    UNIT_WAIT(says(node, "member-certificates", "ok", ""), 60000);
    probes = trpi_doctor_probes_real;
    probes.wall_ms = wall_later;
    days_ahead = 401;
    node->probes = &probes;
    UNIT_TRUE(says(node, "certificate", "fail", "has ended"));
    days_ahead = 0;
    UNIT_TRUE(says(node, "certificate", "ok", ""));
    trp_node_close(third);
    trp_node_close(node);
    trpi_free(of.ca);
    trpi_free(of.ca_key);
}

static void
a_node_without_protection_is_named(void)
{
    char mine[4][300];
    pki of = pki_make();
    const char *open[] = { "cluster.seed-nodes=self",
                           "remote.hostname=192.0.2.7",
                           "remote.bind-hostname=127.0.0.1",
                           NULL,
                           NULL,
                           NULL };
    trp_node *node = up_with("one", open);
    UNIT_TRUE(says(node, "protection", "fail", "nothing"));
    trp_node_close(node);
    open[3] = "remote.secure-cookie=0123456789abcdef0123456789abcdef";
    open[4] = "remote.require-cookie=on";
    node = up_with("one", open);
    UNIT_TRUE(says(node, "protection", "warn", "a cookie, without encryption"));
    trp_node_close(node);
    certified(&of, "four", 400, mine);
    const char *closed[] = { "cluster.seed-nodes=self",
                             "remote.hostname=192.0.2.7",
                             "remote.bind-hostname=127.0.0.1",
                             mine[0],
                             mine[1],
                             mine[2],
                             mine[3],
                             NULL };
    node = up_with("one", closed);
    UNIT_TRUE(says(node, "protection", "ok", ""));
    trp_node_close(node);
    trpi_free(of.ca);
    trpi_free(of.ca_key);
}

/* ---- actors ---------------------------------------------------------------------------------- */

static atomic_bool let_go;

static trp_err
fragile_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_EIO; /* a failure */
}
static const trp_behaviour fragile = {
    .size = sizeof(trp_behaviour), .name = "fragile", .version = 1, .receive = fragile_receive
};

static atomic_bool holds;

/* Makes a child that fails, and holds its thread, so that it does not decide. */
static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref child = TRP_REF_NONE;
    (void)state, (void)msg;
    options.name = "child";
    trp_err err = trp_spawn(ctx, &fragile, &options, &child);
    if (err == TRP_OK) {
        trp_tell(ctx, child, &trp_string_type, "x", 1);
    }
    atomic_store(&holds, true);
    while (err == TRP_OK && !atomic_load(&let_go)) {
        unit_pause();
    }
    return err;
}
static const trp_behaviour parent = {
    .size = sizeof(trp_behaviour), .name = "parent", .version = 1, .receive = parent_receive
};

static void
an_actor_that_waits_for_its_supervisor_is_named(void)
{
    const char *one[] = { "cluster.seed-nodes=self", NULL };
    trp_node *node = up_with("one", one);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = "parent";
    UNIT_TRUE(says(node, "suspended", "ok", ""));
    UNIT_EQUAL(trp_system_spawn(trp_node_system(node), &parent, &options, &ref), TRP_OK);
    trp_system_tell(trp_node_system(node), ref, &trp_string_type, "x", 1);
    UNIT_WAIT(atomic_load(&holds), 60000);
    UNIT_WAIT(says(node, "suspended", "warn", "/user/parent/child waits"), 60000);
    atomic_store(&let_go, true);
    UNIT_WAIT(says(node, "suspended", "ok", ""), 60000);
    trp_node_close(node);
}

/* ---- persistence ----------------------------------------------------------------------------- */

#ifdef HAVE_LMDB
static _Atomic int stored, rejected;

typedef struct ledger {
    trp_persistent_state persistent; /* the first member */
} ledger;

static trp_err
ledger_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    (void)ctx, (void)state, (void)event, (void)arg;
    atomic_fetch_add(&stored, 1);
    return TRP_OK;
}

static trp_err
ledger_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    return trp_persist(ctx, &trp_string_type, trp_msg_payload(msg), trp_msg_bytes(msg),
                       ledger_stored, NULL);
}

static trp_err
ledger_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx, (void)state, (void)event;
    return TRP_OK;
}

static trp_err
ledger_rejected(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)ctx, (void)state, (void)event, (void)err, (void)why;
    atomic_fetch_add(&rejected, 1);
    return TRP_OK;
}

static void
ledger_failed(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)ledger_rejected(ctx, state, event, err, why);
}

static trp_persistent ledger_behaviour =
    TRP_PERSISTENT_INIT("ledger", ledger, ledger_command, ledger_event);

static trp_node *
with_ledger(const char *dir, const char *size_max, trp_ref *ret_ref)
{
    char at[300];
    const char *one[] = { "cluster.seed-nodes=self", "persistence.journal=lmdb", at, size_max,
                          NULL };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    snprintf(at, sizeof at, "persistence.lmdb.dir=%s/%s", directory_of(), dir);
    trp_node *node = up_with("one", one);
    ledger_behaviour.rejected = ledger_rejected;
    ledger_behaviour.failed = ledger_failed;
    options.name = "ledger";
    atomic_store(&stored, 0);
    atomic_store(&rejected, 0);
    UNIT_EQUAL(
        trp_system_spawn(trp_node_system(node), &ledger_behaviour.behaviour, &options, ret_ref),
        TRP_OK);
    return node;
}

/* Tell it an event, and wait until that is stored or is not. */
static void
ledger_tell(trp_node *node, trp_ref ref, size_t bytes)
{
    static char text[20000];
    int before = atomic_load(&stored) + atomic_load(&rejected);
    memset(text, 'x', sizeof text);
    UNIT_REQUIRE(bytes <= sizeof text);
    trp_system_tell(trp_node_system(node), ref, &trp_string_type, text, (uint32_t)bytes);
    UNIT_WAIT(atomic_load(&stored) + atomic_load(&rejected) > before, 60000);
}

static bool
has_problem(const trp_node *node, const char *text)
{
    cJSON *reply = control_ask(trp_node_control_path(node), "{\"cmd\":\"status\"}");
    const cJSON *problem;
    bool has = false;
    cJSON_ArrayForEach(problem, cJSON_GetObjectItem(reply, "problems"))
    {
        has = has || strstr(cJSON_GetStringValue(problem), text) != NULL;
    }
    cJSON_Delete(reply);
    return has;
}

static void
ledger_remove(const char *dir)
{
    static const char *const files[] = { "/data.mdb", "/lock.mdb", "" };
    char path[300];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s%s", directory_of(), dir, files[i]);
        (void)remove(path);
    }
}

/* It is filled, and has room again when persistence.lmdb.size-max is raised. */
static void
a_journal_that_is_full_is_named(void)
{
    static const char *const text = "it may take 1048576 bytes; raise persistence.lmdb.size-max";
    trp_ref ref;
    trp_node *node = with_ledger("full", "persistence.lmdb.size-max=1MiB", &ref);
    UNIT_TRUE(says(node, "journal", "ok", "the journal is open"));
    UNIT_FALSE(has_problem(node, "journal"));
    for (int i = 0; i < 1000 && atomic_load(&rejected) == 0; i++) {
        ledger_tell(node, ref, 20000);
    }
    UNIT_TRUE(says(node, "journal", "fail", "the journal refuses changes: the journal "));
    UNIT_TRUE(says(node, "journal", "fail", text));
    UNIT_TRUE(has_problem(node, "the journal (lmdb) refuses changes: "));
    UNIT_TRUE(has_problem(node, text));
    trp_node_close(node);
    node = with_ledger("full", "persistence.lmdb.size-max=16MiB", &ref);
    ledger_tell(node, ref, 20000);
    UNIT_EQUAL(atomic_load(&rejected), 0);
    UNIT_TRUE(says(node, "journal", "ok", "the journal is open"));
    UNIT_FALSE(has_problem(node, "journal"));
    trp_node_close(node);
    ledger_remove("full");
}

/* Put a device on which no write succeeds in the place of the journal's file. */
static void
disk_break(void)
{
    char link[64], target[512];
    int broken = 0, full = open("/dev/full", O_RDWR | O_CLOEXEC);
    UNIT_REQUIRE(full >= 0);
    for (int fd = 3; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(link, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        if (strstr(target, "/broken/data.mdb") != NULL) {
            UNIT_EQUAL(dup2(full, fd), fd);
            broken++;
        }
    }
    UNIT_TRUE(broken > 0);
    (void)close(full);
}

/* A write that has failed: what the disk has is not known, so the node is started again. */
static void
a_journal_on_a_broken_disk_is_named(void)
{
    trp_ref ref;
    trp_node *node = with_ledger("broken", "persistence.lmdb.size-max=16MiB", &ref);
    ledger_tell(node, ref, 10);
    UNIT_EQUAL(atomic_load(&stored), 1);
    disk_break();
    ledger_tell(node, ref, 10);
    UNIT_EQUAL(atomic_load(&stored), 1);
    UNIT_TRUE(says(node, "journal", "fail", "the journal is read-only: "));
    UNIT_TRUE(says(node, "journal", "fail", "since a commit has failed: No space left on device"));
    UNIT_TRUE(has_problem(node, "the journal (lmdb) is read-only"));
    trp_node_close(node);
    node = with_ledger("broken", "persistence.lmdb.size-max=16MiB", &ref);
    ledger_tell(node, ref, 10);
    UNIT_EQUAL(atomic_load(&stored), 1);
    UNIT_TRUE(says(node, "journal", "ok", "the journal is open"));
    trp_node_close(node);
    ledger_remove("broken");
}
#endif

UNIT_BEGIN("doctor_causes")
UNIT(a_member_that_waits_for_others_is_named)
UNIT(connections_that_are_refused_are_counted)
UNIT(strangers_that_crowd_the_door_are_named)
UNIT(a_removed_incarnation_is_named)
UNIT(members_of_another_version_are_named)
UNIT(certificates_that_end_soon_are_named)
UNIT(a_node_without_protection_is_named)
UNIT(an_actor_that_waits_for_its_supervisor_is_named)
#ifdef HAVE_LMDB
UNIT(a_journal_that_is_full_is_named)
UNIT(a_journal_on_a_broken_disk_is_named)
#endif
UNIT_END
