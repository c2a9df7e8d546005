/* renew_test.c - connections of lanes that are made anew because a certificate or cookie was
 * replaced: under constant load nothing is lost or reordered.
 */
#include <troupe/mailbox.h>

#include "tests/unit/remote/duo.h"

enum { RECEIVERS = 4, BATCH = 20000 };

typedef struct story {
    duo d;
    trp_ref to[RECEIVERS];
    int64_t told;
} story;

static _Atomic int64_t handled;
static atomic_bool in_order;

static trp_err
receiver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *last = state, number;
    (void)ctx;
    memcpy(&number, trp_msg_payload(msg), sizeof number);
    if (number != *last + 1) {
        atomic_store(&in_order, false);
    }
    *last = number;
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour receiver = TRP_BEHAVIOUR_INIT("receiver", int64_t, receiver_receive);

/* Another batch, as far as there is room. */
static void
tell_on(story *s)
{
    for (int i = 0; i < BATCH; i++) {
        int64_t number = s->told / RECEIVERS + 1;
        if (trp_system_try_tell(s->d.system[0], s->to[s->told % RECEIVERS], &trp_i64_type, &number,
                                sizeof number) != TRP_OK) {
            break;
        }
        s->told++;
    }
}

static void
files_of(const char *whose, const char *from)
{
    char source[64], copy[64];
    (void)snprintf(source, sizeof source, "%s.pem", from);
    (void)snprintf(copy, sizeof copy, "of-%s.pem", whose);
    file_copy(source, copy);
    (void)snprintf(source, sizeof source, "%s.key", from);
    (void)snprintf(copy, sizeof copy, "of-%s.key", whose);
    file_copy(source, copy);
}

static void
story_begin(story *s, const side *left, const side *right)
{
    memset(s, 0, sizeof *s);
    atomic_store(&handled, 0);
    atomic_store(&in_order, true);
    duo_start(&s->d, left, right);
    for (int i = 0; i < RECEIVERS; i++) {
        char address[TRPI_ADDRESS_TEXT_BYTES], name[8], path[TRP_PATH_BYTES_MAX];
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_ref there;
        (void)snprintf(name, sizeof name, "r%d", i);
        options.name = name;
        UNIT_REQUIRE(trp_system_spawn(s->d.system[1], &receiver, &options, &there) == TRP_OK);
        (void)snprintf(
            path, sizeof path, "%s/user/%s",
            trpi_address_format(trpi_remote_address(s->d.remote[1]), address, sizeof address),
            name);
        UNIT_REQUIRE(trp_system_resolve(s->d.system[0], path, 60000, &s->to[i]) == TRP_OK);
    }
    UNIT_WAIT((tell_on(s), atomic_load(&handled) > 1000), 60000);
}

static void
story_end(story *s)
{
    UNIT_WAIT(atomic_load(&handled) == s->told, 60000);
    UNIT_TRUE(atomic_load(&in_order));
    duo_end(&s->d);
}

/* Both read their files again while messages flow; the one that reads messages first. */
static void
both_reload(story *s)
{
    for (int i = 1; i >= 0; i--) {
        uint64_t before = pair_log_count("credentials read again");
        UNIT_EQUAL(trpi_remote_secrets_reload(s->d.remote[i], NULL, NULL), TRP_OK);
        UNIT_WAIT((tell_on(s), pair_log_count("credentials read again") > before), 60000);
    }
}

static bool
is_renewing(const story *s, int i)
{
    trpi_peer_info info;
    size_t count = 0;
    bool is = false;
    memset(&info, 0, sizeof info);
    trpi_remote_peers(s->d.remote[i], &info, 1, &count);
    for (int lane = 0; lane < TRPI_REMOTE_LANES; lane++) {
        is = is ||
             (info.lanes[lane].state != NULL && strcmp(info.lanes[lane].state, "renewing") == 0);
    }
    return is;
}

/* REMOTE-56: each step of a change of the authority */
static void
a_change_of_the_authority_loses_nothing(void)
{
    story s;
    const side left = { .ca = "of-all", .cert = "of-left" };
    const side right = { .ca = "of-all", .cert = "of-right" };
    files_setup();
    pki_node(&all, "other", "strange", "127.0.0.1", -1, 400);
    file_copy("ca.pem", "of-all.pem");
    files_of("left", "left");
    files_of("right", "right");
    story_begin(&s, &left, &right);
    file_copy("both.pem", "of-all.pem");
    both_reload(&s);
    UNIT_WAIT((tell_on(&s), !is_renewing(&s, 0) && !is_renewing(&s, 1)), 60000);
    files_of("left", "foreign");
    files_of("right", "strange");
    both_reload(&s);
    UNIT_WAIT((tell_on(&s), !is_renewing(&s, 0) && !is_renewing(&s, 1)), 60000);
    file_copy("other.pem", "of-all.pem");
    both_reload(&s);
    UNIT_WAIT((tell_on(&s), !is_renewing(&s, 0) && !is_renewing(&s, 1)), 60000);
    int64_t so_far = atomic_load(&handled);
    UNIT_WAIT((tell_on(&s), atomic_load(&handled) > so_far + 1000), 60000);
    UNIT_EQUAL(refused_sum(&s.d, 0) + refused_sum(&s.d, 1), 0);
    story_end(&s);
}

/* The peer does not trust the new certificate: the old connections continue. */
static void
without_a_new_connection_the_old_one_stays(void)
{
    story s;
    const side left = { .ca = "of-all", .cert = "of-left" };
    files_setup();
    file_copy("both.pem", "of-all.pem");
    files_of("left", "left");
    story_begin(&s, &left, &good_right);
    files_of("left", "foreign");
    UNIT_EQUAL(trpi_remote_secrets_reload(s.d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT((tell_on(&s), pair_logged("lane cannot be dialled")), 60000);
    int64_t so_far = atomic_load(&handled);
    UNIT_WAIT((tell_on(&s), atomic_load(&handled) > so_far + 1000), 60000);
    UNIT_TRUE(is_renewing(&s, 0));
    files_of("left", "left");
    UNIT_EQUAL(trpi_remote_secrets_reload(s.d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT((tell_on(&s), !is_renewing(&s, 0)), 60000);
    story_end(&s);
}

/* Without TLS as well */
static void
a_change_of_the_cookie_loses_nothing(void)
{
    story s;
    const side first = { .cookie = "correct horse" };
    story_begin(&s, &first, &first);
    for (int i = 0; i < 2; i++) {
        UNIT_EQUAL(trpi_remote_secrets_reload(s.d.remote[i], "battery staple", "correct horse"),
                   TRP_OK);
        UNIT_WAIT((tell_on(&s), pair_log_count("credentials read again") == (uint64_t)i + 1),
                  60000);
    }
    UNIT_WAIT((tell_on(&s), !is_renewing(&s, 0) && !is_renewing(&s, 1)), 60000);
    story_end(&s);
}

static void
files_are_removed(void)
{
    duo_files_remove();
}

UNIT_BEGIN("renew")
UNIT(a_change_of_the_authority_loses_nothing)
UNIT(without_a_new_connection_the_old_one_stays)
UNIT(a_change_of_the_cookie_loses_nothing)
UNIT(files_are_removed) /* last */
UNIT_END
