/* cookie_test.c - two ends prove that they know a secret, byte by byte and with every mistake. */
#include "remote/security/cookie.h"
#include "tests/unit/unit.h"

static const trpi_secrets one = { 1, { "correct horse" } };
static const trpi_secrets other = { 1, { "battery staple" } };
static const trpi_secrets two = { 2, { "battery staple", "correct horse" } };
static const uint8_t nonce[2][32] = { { 1, 2, 3 }, { 9, 8, 7 } };
static const uint8_t unbound[32], bound[2][32] = { { 5 }, { 6 } };

/* Pass everything that one end has sent to the other one, `cut` bytes at a time. */
static trpi_cookie_result
bytes_deliver(trpi_cookie *to, const trpi_secrets *secrets, trpi_buffer *said, size_t cut,
              trpi_buffer *answer)
{
    trpi_cookie_result result = TRPI_COOKIE_MORE;
    for (size_t at = 0; at < said->count && result == TRPI_COOKIE_MORE;) {
        size_t used = 0, part = said->count - at < cut ? said->count - at : cut;
        result = trpi_cookie_feed(to, secrets, said->data + at, part, &used, answer);
        UNIT_REQUIRE(used > 0);
        at += used;
    }
    trpi_buffer_clear(said);
    return result;
}

/* The results of acceptor and dialler. */
static void
ends_talk(const trpi_secrets *dialler, const trpi_secrets *acceptor, const uint8_t *bind_d,
          const uint8_t *bind_a, size_t cut, trpi_cookie_result ret[2])
{
    trpi_cookie d, a;
    trpi_buffer from_d = { 0 }, from_a = { 0 };
    UNIT_EQUAL(trpi_cookie_begin(&d, true, nonce[0], bind_d, &from_d), TRPI_COOKIE_MORE);
    UNIT_EQUAL(trpi_cookie_begin(&a, false, nonce[1], bind_a, &from_a), TRPI_COOKIE_MORE);
    UNIT_EQUAL(from_a.count, 0); /* the dialler speaks first */
    UNIT_EQUAL(from_d.count, TRPI_COOKIE_HELLO_BYTES);
    UNIT_EQUAL(bytes_deliver(&a, acceptor, &from_d, cut, &from_a), TRPI_COOKIE_MORE);
    UNIT_EQUAL(from_a.count, TRPI_COOKIE_HELLO_BYTES);
    UNIT_EQUAL(bytes_deliver(&d, dialler, &from_a, cut, &from_d), TRPI_COOKIE_MORE);
    UNIT_EQUAL(from_d.count, TRPI_COOKIE_PROOF_BYTES);
    ret[1] = bytes_deliver(&a, acceptor, &from_d, cut, &from_a);
    UNIT_EQUAL(from_a.count, TRPI_COOKIE_VERDICT_BYTES);
    ret[0] = bytes_deliver(&d, dialler, &from_a, cut, &from_d);
    UNIT_EQUAL(from_d.count, 0);
    trpi_buffer_fini(&from_d);
    trpi_buffer_fini(&from_a);
}

/* REMOTE-56 */
static void
equal_secrets_agree_however_the_bytes_are_cut(void)
{
    for (size_t cut = 1; cut <= 65; cut++) {
        trpi_cookie_result result[2];
        ends_talk(&one, &one, unbound, unbound, cut, result);
        UNIT_EQUAL(result[0], TRPI_COOKIE_DONE);
        UNIT_EQUAL(result[1], TRPI_COOKIE_DONE);
    }
}

/* REMOTE-56 */
static void
another_secret_is_wrong_at_both_ends(void)
{
    trpi_cookie_result result[2];
    ends_talk(&other, &one, unbound, unbound, 64, result);
    UNIT_EQUAL(result[1], TRPI_COOKIE_WRONG);
    UNIT_EQUAL(result[0], TRPI_COOKIE_REFUSED);
}

static void
any_of_two_secrets_will_do_at_either_end(void)
{
    static const trpi_secrets *const pairs[][2] = {
        { &two, &one }, { &one, &two }, { &two, &other }, { &other, &two }, { &two, &two }
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        trpi_cookie_result result[2];
        ends_talk(pairs[i][0], pairs[i][1], unbound, unbound, 64, result);
        UNIT_EQUAL(result[0], TRPI_COOKIE_DONE);
        UNIT_EQUAL(result[1], TRPI_COOKIE_DONE);
    }
}

/* A man in the middle has one session with each end. */
static void
a_proof_of_another_session_is_wrong(void)
{
    trpi_cookie_result result[2];
    ends_talk(&one, &one, bound[0], bound[1], 64, result);
    UNIT_EQUAL(result[1], TRPI_COOKIE_WRONG);
    ends_talk(&one, &one, bound[0], bound[0], 64, result);
    UNIT_EQUAL(result[1], TRPI_COOKIE_DONE);
}

static void
a_recorded_proof_is_wrong_the_next_time(void)
{
    trpi_cookie d, a;
    trpi_buffer from_d = { 0 }, from_a = { 0 }, proof = { 0 };
    (void)trpi_cookie_begin(&d, true, nonce[0], unbound, &from_d);
    (void)trpi_cookie_begin(&a, false, nonce[1], unbound, &from_a);
    (void)bytes_deliver(&a, &one, &from_d, 64, &from_a);
    (void)bytes_deliver(&d, &one, &from_a, 64, &proof);
    (void)trpi_cookie_begin(&d, true, nonce[0], unbound, &from_d); /* the same dialler's bytes */
    (void)trpi_cookie_begin(&a, false, bound[1], unbound, &from_a);
    (void)bytes_deliver(&a, &one, &from_d, 64, &from_a);
    trpi_buffer_clear(&from_a);
    UNIT_EQUAL(bytes_deliver(&a, &one, &proof, 64, &from_a), TRPI_COOKIE_WRONG);
    trpi_buffer_fini(&from_d);
    trpi_buffer_fini(&from_a);
    trpi_buffer_fini(&proof);
}

/* cookie-K1: a dialler's proof cannot be sent back to it as the acceptor's answer. */
static void
a_proof_that_is_sent_back_is_no_answer(void)
{
    trpi_cookie d;
    trpi_buffer said = { 0 };
    size_t used = 0;
    uint8_t hello[TRPI_COOKIE_HELLO_BYTES] = { 0 }, verdict[TRPI_COOKIE_VERDICT_BYTES] = { 1 };
    (void)trpi_cookie_begin(&d, true, nonce[0], unbound, &said);
    memcpy(hello, said.data, sizeof hello); /* our own nonce, mirrored */
    trpi_buffer_clear(&said);
    UNIT_EQUAL(trpi_cookie_feed(&d, &one, hello, sizeof hello, &used, &said), TRPI_COOKIE_MORE);
    memcpy(verdict + 8, said.data, 32);
    UNIT_EQUAL(trpi_cookie_feed(&d, &one, verdict, sizeof verdict, &used, &said),
               TRPI_COOKIE_WRONG);
    trpi_buffer_fini(&said);
}

/* The first wrong byte is enough, and bytes after the last step are not touched. */
static void
other_protocols_are_seen_at_once_and_the_rest_is_left(void)
{
    trpi_cookie a, d;
    trpi_buffer out = { 0 }, from_d = { 0 };
    size_t used = 0;
    (void)trpi_cookie_begin(&a, false, nonce[1], unbound, &out);
    UNIT_EQUAL(trpi_cookie_feed(&a, &one, (const uint8_t *)"TRP\x1a", 4, &used, &out),
               TRPI_COOKIE_MISSING);
    UNIT_EQUAL(out.count, TRPI_COOKIE_HELLO_BYTES); /* a node is told that one is wanted */
    UNIT_EQUAL(memcmp(out.data, TRPI_COOKIE_MAGIC, 4), 0);
    trpi_buffer_clear(&out);
    (void)trpi_cookie_begin(&a, false, nonce[1], unbound, &out);
    UNIT_EQUAL(trpi_cookie_feed(&a, &one, (const uint8_t *)"G", 1, &used, &out),
               TRPI_COOKIE_MISSING);
    UNIT_EQUAL(out.count, 0);
    (void)trpi_cookie_begin(&a, false, nonce[1], unbound, &out);
    (void)trpi_cookie_begin(&d, true, nonce[0], unbound, &from_d);
    (void)bytes_deliver(&a, &one, &from_d, 64, &out);
    (void)bytes_deliver(&d, &one, &out, 64, &from_d);
    UNIT_EQUAL(trpi_buffer_append(&from_d, "rest", 4, 1000), TRP_OK);
    UNIT_EQUAL(trpi_cookie_feed(&a, &one, from_d.data, from_d.count, &used, &out),
               TRPI_COOKIE_DONE);
    UNIT_EQUAL(used, from_d.count - 4);
    UNIT_EQUAL(trpi_cookie_wants(&a), 0);
    trpi_buffer_fini(&out);
    trpi_buffer_fini(&from_d);
}

/* A dialler that means to go from one place to another; the acceptor asks whether it is meant. */
static bool
is_meant(const trpi_secrets *dialler, const trpi_secrets *acceptor, const uint8_t made[32],
         const char *from, const char *to)
{
    trpi_cookie d, a;
    trpi_buffer from_d = { 0 }, from_a = { 0 };
    (void)trpi_cookie_begin(&d, true, made, unbound, &from_d);
    (void)trpi_cookie_begin(&a, false, nonce[1], unbound, &from_a);
    (void)bytes_deliver(&a, acceptor, &from_d, 64, &from_a);
    (void)bytes_deliver(&d, dialler, &from_a, 64, &from_d);
    UNIT_EQUAL(bytes_deliver(&a, acceptor, &from_d, 64, &from_a), TRPI_COOKIE_DONE);
    trpi_buffer_fini(&from_d);
    trpi_buffer_fini(&from_a);
    return trpi_cookie_is_meant(&a, acceptor, from, to);
}

/* REMOTE-56: cookie-K4: a node that lures another one to its own address cannot relay that one's
 * proof. */
static void
a_proof_is_for_two_addresses(void)
{
    const trpi_secrets *const dialler[] = { &one, &two, &one };
    const trpi_secrets *const acceptor[] = { &one, &one, &two };
    for (size_t i = 0; i < 3; i++) {
        uint8_t made[32] = { 1, 2, 3, 4, 5, 6, 7, 8 };
        UNIT_TRUE(trpi_cookie_nonce(made, dialler[i], "10.0.0.1:2552", "10.0.0.2:2552"));
        UNIT_TRUE(is_meant(dialler[i], acceptor[i], made, "10.0.0.1:2552", "10.0.0.2:2552"));
        UNIT_FALSE(is_meant(dialler[i], acceptor[i], made, "10.0.0.1:2552", "10.0.0.3:2552"));
        UNIT_FALSE(is_meant(dialler[i], acceptor[i], made, "10.0.0.9:2552", "10.0.0.2:2552"));
        UNIT_FALSE(is_meant(dialler[i], acceptor[i], made, "10.0.0.1:2552", "10.0.0.2:2553"));
        UNIT_FALSE(is_meant(dialler[i], acceptor[i], made, "10.0.0.1:25521", "0.0.0.2:2552"));
    }
}

/* an earlier minor version has random bytes there, and is accepted */
static void
a_nonce_of_an_earlier_version_says_nothing(void)
{
    UNIT_TRUE(is_meant(&one, &one, nonce[0], "10.0.0.1:2552", "10.0.0.2:2552"));
    uint8_t made[32] = { 1 }; /* made with another secret than the one that matched */
    UNIT_TRUE(trpi_cookie_nonce(made, &other, "10.0.0.1:2552", "10.0.0.2:2552"));
    UNIT_TRUE(is_meant(&one, &one, made, "10.0.0.1:2552", "10.0.0.3:2552"));
}

UNIT_BEGIN("cookie")
UNIT(equal_secrets_agree_however_the_bytes_are_cut)
UNIT(a_proof_is_for_two_addresses)
UNIT(a_nonce_of_an_earlier_version_says_nothing)
UNIT(another_secret_is_wrong_at_both_ends)
UNIT(any_of_two_secrets_will_do_at_either_end)
UNIT(a_proof_of_another_session_is_wrong)
UNIT(a_recorded_proof_is_wrong_the_next_time)
UNIT(a_proof_that_is_sent_back_is_no_answer)
UNIT(other_protocols_are_seen_at_once_and_the_rest_is_left)
UNIT_END
